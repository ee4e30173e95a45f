"""Named checks of the world: a file exists, a file contains a text, a command succeeds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path

from ctxmgr.base.paths import open_regular
from ctxmgr.errors import InvalidInput
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.goal import Probe, ProbeResult

MAX_SEARCHED_BYTES = 64 * 1024 * 1024
"""Maximum number of bytes of a file to search for a text. Beyond them the result is unknown."""
SECONDS = 10.0
"""Default time limit of a command, or of searching a file, in seconds."""

NOT_TRUSTED = "not covered by the trust in this project: read it, then run 'ctxmgr trust'"
"""Detail for a command that was added, or whose script was changed, after the user trusted the project."""

_CHUNK = 1024 * 1024
_PARTS = lazy_pattern(r"[\s;|&<>()'\"=]+")
_NAME = lazy_pattern(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """Result of a probe: whether it holds (None if unknown), and a short reason."""

    holds: bool | None
    why: str = ""


def require_sound(probe: Probe) -> None:
    """Check that the probe can be run.

    Raises:
        InvalidInput: its name is not one word, as a brief needs it, or a field that its kind requires is missing.
    """
    if not _NAME.fullmatch(probe.name):
        raise InvalidInput(f"{probe.name[:80]!r} is no name of a probe", "letters, digits, '_', '-' and '.', e.g. pkg_exists")
    if probe.kind == "command":
        if not probe.argv or not probe.argv[0].strip():
            raise InvalidInput(f"the probe {probe.name!r} names no command", "e.g. python -m pytest -q")
    elif not (probe.path or "").strip():
        raise InvalidInput(f"the probe {probe.name!r} names no path", "a path, relative to the project's folder")
    elif probe.kind == "fileContains" and not probe.text:
        raise InvalidInput(f"the probe {probe.name!r} names no text to look for", "some text that the file shall contain")


def fingerprint(probe: Probe, folder: Path) -> str:
    """Return the identity of a trusted command: its folder, its words, and the contents of the files that they name.

    This covers a script, e.g. ``sh check.sh``, but not files that a program loads by itself, e.g. the tests of ``pytest``. A
    new file is a change too: a command that names its own output is trusted only until it has written the output.
    """
    root = os.path.realpath(folder)
    contents = [list(_contents(root, word)) for word in probe.argv]
    return sha256(json.dumps([root, probe.argv, probe.code, contents]).encode()).hexdigest()


def _contents(root: str, word: str) -> Iterator[tuple[str, str]]:
    """Yield (name, digest) of the files that a word of a command names. A shell line in one word may name several."""
    # The whole word first, because a file name may contain blanks and shell characters.
    for name in dict.fromkeys((word, *_PARTS.split(word))):
        try:
            with open(open_regular(os.path.join(root, name)), "rb") as stream:
                yield name, file_digest(stream, "sha256").hexdigest()
        except (OSError, ValueError):  # no file: an option, or a program found by the search path
            continue


def check(probe: Probe, folder: Path, *, commands: bool | Collection[str] = False) -> ProbeResult:
    """Run a probe; never raises.

    Args:
        probe: the probe.
        folder: the project's folder, where relative paths start and commands run.
        commands: whether commands may run, or the fingerprints of those that may.
    """
    if probe.kind == "fileExists":
        found = exists(folder, probe.path or "")
    elif probe.kind == "fileContains":
        found = contains(folder, probe.path or "", probe.text or "")
    # Checked at each run, because the script may have changed since it was trusted.
    elif not isinstance(commands, bool) and fingerprint(probe, folder) not in commands:
        found = ProbeOutcome(None, NOT_TRUSTED)
    elif commands:
        found = ends_well(folder, probe.argv, probe.code)
    else:
        found = ProbeOutcome(None, "commands are not allowed")
    return ProbeResult(name=probe.name, kind=probe.kind, ok=found.holds, detail=found.why or None)


def check_all(probes: Iterable[Probe], folder: Path, *, commands: bool | Collection[str] = False) -> list[ProbeResult]:
    """Run every probe; return the results in the same order."""
    return [check(probe, folder, commands=commands) for probe in probes]


def exists(folder: Path, path: str) -> ProbeOutcome:
    """Check that a path exists, whatever it is. A broken link does not exist."""
    try:
        os.stat(folder / path)
    except (FileNotFoundError, NotADirectoryError):
        return ProbeOutcome(False, f"{path} is not there")
    except (OSError, ValueError) as error:
        return ProbeOutcome(None, f"{path}: {_reason(error)}")
    return ProbeOutcome(True, f"{path} is there")


def contains(folder: Path, path: str, text: str) -> ProbeOutcome:
    """Search a regular file for a text as UTF-8 bytes. Never reads pipes, devices or endless files."""
    try:
        descriptor = open_regular(folder / path)
    except (FileNotFoundError, NotADirectoryError):
        return ProbeOutcome(False, f"{path} is not there")
    except (OSError, ValueError) as error:
        return ProbeOutcome(None, f"{path}: {_reason(error)}")
    try:
        return _search(descriptor, path, text.encode("utf-8", "surrogatepass"))
    except OSError as error:
        return ProbeOutcome(None, f"{path}: {_reason(error)}")
    finally:
        os.close(descriptor)


def _search(descriptor: int, path: str, wanted: bytes) -> ProbeOutcome:
    end, read, tail = time.monotonic() + SECONDS, 0, b""
    while chunk := os.read(descriptor, _CHUNK):
        read += len(chunk)
        window = tail + chunk
        if wanted in window:
            return ProbeOutcome(True, f"{path} contains it")
        if read >= MAX_SEARCHED_BYTES or time.monotonic() > end:
            return ProbeOutcome(None, f"{path}: not in its first {read // _CHUNK:,} MiB, and no more is read")
        # The text may begin in one chunk and end in the next.
        tail = window[max(0, len(window) - len(wanted) + 1) :] if len(wanted) > 1 else b""
    return ProbeOutcome(False, f"{path} does not contain it")


def ends_well(folder: Path, argv: Sequence[str], code: int = 0, seconds: float = SECONDS) -> ProbeOutcome:
    """Run a command without a shell, without stdin, and ignore its output. The probe holds if the exit code is ``code``.

    After ``seconds``, the command is killed together with its process group.
    """
    try:
        running = subprocess.Popen(
            list(argv), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,  # its own process group, which can be killed as a whole
        )  # fmt: skip
    except (OSError, ValueError, IndexError) as error:
        return ProbeOutcome(None, f"it can't be run: {_reason(error)}")
    try:
        ended = running.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return ProbeOutcome(None, f"not done after {seconds:g} s")
    finally:
        # Not only after a time-out: Ctrl-C must not leave the command running.
        if running.returncode is None:
            with suppress(OSError):
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    return ProbeOutcome(ended == code, f"exit code {ended}" if ended >= 0 else f"ended by signal {-ended}")


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
