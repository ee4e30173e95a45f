"""Run work in a forked process, list its system calls that change files of a folder, and hurt it at one of them (strace)."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CALLS = (
    "openat", "write", "pwrite64", "pwritev", "writev", "rename", "renameat", "renameat2", "link", "linkat", "symlink",
    "symlinkat", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir", "chmod", "fchmod", "fchmodat", "fsync", "fdatasync",
    "ftruncate", "fallocate", "sendfile", "copy_file_range", "utimensat",
)  # fmt: skip
"""System calls that change a file or make sure of it; an ``openat`` counts only when it may create the file."""

FAULTS = {"kill": "signal=KILL", "full": "error=ENOSPC", "broken": "error=EIO"}
"""What happens at a call: the process is killed before the call has done anything, or the call fails."""

_CALL = re.compile(r"^(?P<process>\d+) +(?P<call>\w+)\((?P<rest>.*)$")
_OPEN = re.compile(r"<(/[^>]*)>")
_NAMED = re.compile(r'"([^"]*)"')
_BY_DESCRIPTOR = frozenset({
    "write", "pwrite64", "pwritev", "writev", "fchmod", "fsync", "fdatasync", "ftruncate", "fallocate", "sendfile",
    "copy_file_range",
})  # fmt: skip
_ATTACHED_WITHIN = 10.0  # seconds


@dataclass(frozen=True, slots=True)
class Point:
    """One system call of a run: the ``number``-th (from 1) of its name in the thread that began, and the file it touched."""

    call: str
    number: int
    file: str


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: its exit code (negative: the signal), what it said, and whether the fault was met."""

    code: int
    out: str
    err: str
    met: bool = False


def available() -> str | None:
    """Return why nothing can be hurt here, or None when it can."""
    if shutil.which("strace") is None:
        return "needs strace"
    tried = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, check=False)
    return f"strace may not trace here: {tried.stderr.decode(errors='replace').strip()}" if tried.returncode else None


def run(work: Callable[[], int], folder: Path, environment: Mapping[str, str], tracer: list[str] | None = None) -> Ended:
    """Run work in a fork of this process with that current folder and environment; return how it ended.

    Args:
        work: what to do; returns the exit code.
        folder: the current folder of the process; what it says is kept beside it while it runs.
        environment: replaces that of this process.
        tracer: a command line that attaches to the process before it begins, ended by the number of the process.
    """
    places = [folder.with_name(f"{folder.name}.{name}") for name in ("out", "err")]
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _be_child(work, folder, environment, places, stopped=tracer is not None)
    if tracer is None:
        status = os.waitpid(child, 0)[1]
    else:
        os.waitpid(child, os.WUNTRACED)
        with subprocess.Popen([*tracer, str(child)], stderr=subprocess.PIPE) as attached:
            _wait_until_traced(child, attached)
            os.kill(child, signal.SIGCONT)
            status = os.waitpid(child, 0)[1]
    out, err = (place.read_text(errors="replace") for place in places)
    return Ended(os.waitstatus_to_exitcode(status), out, err)


def _be_child(
    work: Callable[[], int], folder: Path, environment: Mapping[str, str], places: list[Path], *, stopped: bool
) -> None:
    code = 1
    try:
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        for descriptor, place in enumerate([os.devnull, *map(str, places)]):
            os.dup2(os.open(place, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), descriptor)
        sys.dont_write_bytecode = True
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - whatever stood there before
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        if stopped:
            os.kill(os.getpid(), signal.SIGSTOP)
        code = work()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        sys.stderr.write(traceback.format_exc())
        sys.stderr.flush()
    finally:
        os._exit(code)


def _wait_until_traced(process: int, tracer: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _ATTACHED_WITHIN
    while "TracerPid:\t0\n" in Path(f"/proc/{process}/status").read_text():
        if tracer.poll() is not None or time.monotonic() > until:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            raise RuntimeError(f"strace could not attach: {tracer.stderr.read() if tracer.stderr else b''!r}")
        time.sleep(0.0005)


def points(work: Callable[[], int], folder: Path, environment: Mapping[str, str]) -> tuple[Ended, list[Point]]:
    """Run work undisturbed; return how it ended and its calls that change a file below the folder, in their order.

    Only those of the thread that began are listed: calls are numbered for each thread.
    """
    ended, rows = traced(work, folder, environment, CALLS, "-s", "4096")
    seen: Counter[str] = Counter()
    found: list[Point] = []
    first = ""
    for row in rows.splitlines():
        if (match := _CALL.match(row)) is None:
            continue
        first = first or match["process"]
        if match["process"] != first:
            continue
        call, rest = match["call"], match["rest"]
        seen[call] += 1
        if (file := _file(call, rest, folder)) and (call != "openat" or "O_CREAT" in rest):
            found.append(Point(call, seen[call], file))
    return ended, found


def traced(
    work: Callable[[], int], folder: Path, environment: Mapping[str, str], calls: Sequence[str], *options: str
) -> tuple[Ended, str]:
    """Run work undisturbed; return how it ended and the system calls of these names, a line each, as strace writes them."""
    trace = folder.with_name(f"{folder.name}.trace")
    line = ["strace", "-f", "-qq", "-y", *options, "-o", str(trace), "-e", f"trace={','.join(calls)}", "-p"]
    ended = run(work, folder, environment, line)
    return ended, trace.read_text(errors="replace")


def _file(call: str, rest: str, folder: Path) -> str:
    """Return the file below the folder that a call is about, or nothing."""
    names: list[str] = _OPEN.findall(rest)
    if call not in _BY_DESCRIPTOR:  # a relative name is one in an open folder, or in the current one
        start = next((name for name in names if name.startswith(str(folder))), str(folder))
        names = [os.path.join(start, name) for name in _NAMED.findall(rest)]
    return next((name.removeprefix(f"{folder}/") for name in names if f"{name}/".startswith(f"{folder}/")), "")


def hurt(work: Callable[[], int], folder: Path, environment: Mapping[str, str], point: Point, fault: str) -> Ended:
    """Run work with a fault of `FAULTS` at one of its points; ``met`` says whether it got that far."""
    trace = folder.with_name(f"{folder.name}.trace")
    inject = f"inject={point.call}:{FAULTS[fault]}:when={point.number}"
    ended = run(
        work, folder, environment, ["strace", "-f", "-qq", "-o", str(trace), "-e", f"trace={point.call}", "-e", inject, "-p"]
    )
    met = ended.code == -signal.SIGKILL if fault == "kill" else "(INJECTED)" in trace.read_text(errors="replace")
    return Ended(ended.code, ended.out, ended.err, met)
