"""Draw artifacts and versions: tables, diffs, and contents on a terminal, in a pipe or in a file."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ctxmgr.base.paths import require_no_link
from ctxmgr.cli.views.layout import TIME_STEPS, Column, Span, date_span, plural
from ctxmgr.errors import InvalidInput, StorageFailed

if TYPE_CHECKING:
    from ctxmgr.artifacts.finder import Content
    from ctxmgr.cli.output import Answer
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.artifact import (
        ArtifactDiff,
        ArtifactView,
        GetResponse,
        NewVersion,
        PruneResult,
        PutResponse,
        RollbackResult,
        VersionView,
    )
    from ctxmgr.workspace import Workspace


_ARTIFACTS = (
    Column("ARTIFACT", give=1, least=32), Column("TYPE", give=2, least=9), Column("TOKENS", right=True),
    Column("SINCE", right=True), Column("TIME", give=4, least=10, optional=True, steps=TIME_STEPS),
    Column("ID", give=5, least=12, optional=True), Column("DESCRIPTION", fill=True, least=8),
)  # fmt: skip
_ROLLBACKS = (
    Column("TIME", give=4, least=10, steps=TIME_STEPS), Column("TO", right=True), Column("FROM", right=True),
    Column("BY", give=2, least=8), Column("REASON", fill=True, least=12),
)  # fmt: skip
_VERSIONS = (
    Column(""), Column("VERSION", right=True), Column("FROM", right=True, give=7, optional=True), Column("CHANGED", right=True),
    Column("ARTIFACTS", right=True), Column("BY", give=2, least=8), Column("TIME", give=4, least=10, steps=TIME_STEPS),
    Column("DESCRIPTION", fill=True, least=8), Column("PINNED", give=6, least=8, optional=True),
)  # fmt: skip


def show_artifacts(printer: Printer, artifacts: Sequence[ArtifactView]) -> None:
    """Show a table of artifacts, one per row."""
    if not artifacts:
        printer.hint("No artifacts here. Keep one: ctxmgr artifact put FILE --agent AGENT")
        return
    printer.table(_ARTIFACTS, (_row(printer, item) for item in artifacts))


def _row(printer: Printer, item: ArtifactView) -> list[str | Span]:
    return [
        Span(f"{item.agent}/{item.name}", "name", "middle"), item.type, f"{item.tokens:,}", f"v{item.version}",
        date_span(item.created_at, printer.terminal), Span(item.id, "dim", "bare"), item.description or "",
    ]  # fmt: skip


def show_artifact(printer: Printer, found: GetResponse) -> None:
    """Show all fields of one artifact, and its content if that is text."""
    item = found.artifact
    printer.pairs(
        (
            ("artifact", f"{item.agent}/{item.name}"), ("id", item.id), ("type", item.type), ("since", f"v{item.version}"),
            ("description", item.description), ("size", f"{item.size:,} bytes"),
            ("tokens", f"{item.tokens:,} ({item.counter})"), ("sha-256", item.hash), ("path", item.path),
            ("depends on", ", ".join(f"{needed.agent}/{needed.name} ({needed.type})" for needed in item.dependencies)),
        ),
        indent=0,
    )  # fmt: skip
    if found.content is not None and found.encoding == "utf-8":
        printer.block(found.content.removesuffix("\n"))


def show_put_response(printer: Printer, done: PutResponse) -> None:
    """Show what a put stored, and as which version."""
    show_artifacts(printer, done.artifacts)
    printer.hint(f"version {done.version}" if done.changed else f"nothing new: version {done.version} stays the current one")


def show_log(printer: Printer, artifacts: Sequence[ArtifactView]) -> None:
    """Show the successive contents of an artifact."""
    show_artifacts(printer, artifacts)
    printer.hint(plural(len(artifacts), "content"))


_LINES = {"+": "ok", "-": "error", "@": "dim"}


def show_diff(printer: Printer, found: ArtifactDiff) -> None:
    """Show the differences line by line."""
    if found.identical:
        printer.hint(f"{found.agent}/{found.name}: the same in version {found.from_version} and {found.to_version}")
        return
    if found.diff is None:
        printer.line(f"{found.agent}/{found.name} differs in version {found.from_version} and {found.to_version}")
        return
    for line in found.diff.removesuffix("\n").split("\n"):
        printer.block(line, style=_LINES.get(line[:1], ""))
    printer.hint(f"{plural(found.added, 'line')} added, {found.removed:,} removed")


def show_new_version(printer: Printer, done: NewVersion) -> None:
    """Show a version that has just been created."""
    printer.line(Span(f"version {done.version}", "strong"), f"  holds what version {done.previous_version} holds")


def show_rollback(printer: Printer, done: RollbackResult) -> None:
    """Show the result of a rollback."""
    printer.line(
        Span(f"version {done.current_version}", "strong"), f" is current, version {done.rolled_back_from} was: {done.reason}"
    )


def show_versions(printer: Printer, versions: Sequence[VersionView]) -> None:
    """Show versions and mark the current one."""
    if not versions:
        printer.hint("No versions here. The first artifact makes one: ctxmgr artifact put FILE --agent AGENT")
        return
    printer.table(
        _VERSIONS,
        (
            [
                Span("current" if item.current else "", "ok"), str(item.version),
                "" if item.parent is None else str(item.parent), str(item.changed), str(item.artifacts),
                Span(item.created_by or "", "name"), date_span(item.created_at, printer.terminal), item.description or "",
                Span(", ".join(item.pinned), "dim"),
            ]
            for item in versions
        ),
    )  # fmt: skip
    made = sorted(((rollback, item) for item in versions for rollback in item.rollbacks), key=lambda pair: pair[0].at or "")
    if made:
        printer.heading("Rollbacks")
        printer.table(
            _ROLLBACKS,
            (
                [
                    date_span(rollback.at, printer.terminal), str(item.version),
                    "" if rollback.from_version is None else str(rollback.from_version), Span(rollback.by or "", "name"),
                    rollback.reason or "",
                ]
                for rollback, item in made
            ),
        )  # fmt: skip


def show_prune_result(printer: Printer, done: PruneResult) -> None:
    """Show which versions were or would be deleted, and why the others stay."""
    went = "would go" if done.dry_run else "gone"
    for number in done.removed:
        printer.line(Span(f"version {number}", "strong"), f"  {went}")
    for item in done.kept:
        printer.line(f"version {item.version}  stays: ", Span(item.reason, "dim"))
    printer.hint(f"{plural(len(done.removed), 'version')} {went}, with {plural(done.files, 'file')} of {done.bytes:,} bytes")


MAX_SHOWN_BYTES = 4 * 2**20
"""Maximum size in bytes of a content that is written to a terminal."""


def write_content(out: Printer, view: ArtifactView, content: Content) -> None:
    """Write verified content to standard output."""
    with content:
        if not out.terminal:
            sys.stdout.flush()
            content.copy_to(sys.stdout.buffer.write)
            sys.stdout.buffer.flush()
            return
        if view.size > MAX_SHOWN_BYTES:
            out.hint(f"{view.size:,} bytes: too many for a terminal. Write them to a file with -o FILE, or into a pipe")
            return
        try:
            text = content.read().decode("utf-8")
        except UnicodeDecodeError:
            out.hint(f"{view.size:,} bytes that are no text. Write them to a file with -o FILE, or into a pipe")
            return
        out.block(text.removesuffix("\n"))


def save_content(file: str, content: Content) -> None:
    """Write verified content to a file. An existing file is replaced atomically, or stays unchanged if this fails.

    Raises:
        InvalidInput: the path is a folder or a link, or no file can have this name.
        StorageFailed: the system refuses.
        Damaged: the content has changed since it was verified.
    """
    if not file or "\0" in file or os.path.isdir(file):
        raise InvalidInput(f"{file!r} can't be written", "name a file: -o FILE")
    if os.path.exists(file) and not os.path.isfile(file):  # write into a pipe or a device, never replace it
        with open(file, "wb") as stream:
            content.copy_to(stream.write)
        return
    try:
        require_no_link(file, writing=True)
    except OSError as error:
        raise InvalidInput(f"{file!r} can't be written: {error.strerror}", "name the file itself") from None
    # In the folder of the target, because a file can be replaced atomically only within one file system.
    target = os.path.abspath(file)
    # A random name, so that two processes that save at the same time use different drafts.
    draft = f"{target}.{os.urandom(4).hex()}.part"
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


def add_warnings(answered: Answer, workspace: Workspace) -> Answer:
    """Return the answer with the warnings of the artifacts and of the access rules added."""
    answered.warnings += [*workspace.artifacts.warnings, *workspace.guard.warnings]
    return answered
