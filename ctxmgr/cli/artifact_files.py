"""Write an artifact's content to a terminal, a pipe or a file."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from typing import TYPE_CHECKING

from ctxmgr.errors import InvalidInput, StorageFailed
from ctxmgr.paths import require_no_link

if TYPE_CHECKING:
    from ctxmgr.artifacts.content import Content
    from ctxmgr.cli.output import Answer
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.artifact import ArtifactView
    from ctxmgr.workspace import Workspace

SHOWN_AT_MOST = 4 * 2**20
"""Contents larger than this, in bytes, are not written to a terminal."""


def pour(out: Printer, view: ArtifactView, content: Content) -> None:
    """Write verified content to standard output."""
    with content:
        if not out.terminal:
            sys.stdout.flush()
            content.copy_to(sys.stdout.buffer.write)
            sys.stdout.buffer.flush()
            return
        if view.size > SHOWN_AT_MOST:
            out.hint(f"{view.size:,} bytes: too many for a terminal. Write them to a file with -o FILE, or into a pipe")
            return
        try:
            text = content.read().decode("utf-8")
        except UnicodeDecodeError:
            out.hint(f"{view.size:,} bytes that are no text. Write them to a file with -o FILE, or into a pipe")
            return
        out.block(text.removesuffix("\n"))


def keep_in(file: str, content: Content) -> None:
    """Write verified content to a file; what is there is replaced at once, or stays as it is.

    Raises:
        InvalidInput: a folder, or a name that no file can have.
        StorageFailed: the system refused.
        Damaged: the content was changed meanwhile.
    """
    if not file or "\0" in file or os.path.isdir(file):
        raise InvalidInput(f"{file!r} can't be written", "name a file: -o FILE")
    if os.path.exists(file) and not os.path.isfile(file):  # a pipe or a device is written to, never replaced
        with open(file, "wb") as stream:
            content.copy_to(stream.write)
        return
    try:
        require_no_link(file, writing=True)
    except OSError as error:
        raise InvalidInput(f"{file!r} can't be written: {error.strerror}", "name the file itself") from None
    target = os.path.abspath(file)
    draft = f"{target}.{secrets.token_hex(4)}.part"
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as stream:
            content.copy_to(stream.write)
        os.replace(draft, target)
    except OSError as error:
        raise StorageFailed(f"can't write {file}: {error.strerror}", "check the place and its permissions") from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(draft)


def told(answered: Answer, workspace: Workspace) -> Answer:
    """Return the answer with what a person should hear of it."""
    answered.warnings += [*workspace.artifacts.warnings, *workspace.guard.warnings]
    return answered
