"""What each command costs to start and to answer, on a small store: ``python -m bench.speed.commands``.

Whole processes, each round in turn with a bare Python; medians are compared, and the least, of the clock and of the
processor's time, which a busy machine changes least. A program reads JSON from a pipe; a person watches a terminal of 100
columns. Each run of a command that writes has a copy of the store for itself. "First" is a command before which nothing
was kept of its answer.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import pty
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import ctxmgr

ROOT = Path(ctxmgr.__file__).parents[1]
ENTRIES = 1_000
BARE = "python -c pass"


class Measured(NamedTuple):
    """A command line that is measured.

    ``writes`` gives each run a fresh copy of the folder, ``given`` is its stdin. ``first`` takes away before each run what
    was kept of earlier answers; ``place`` is "answered" where the stuck session was answered already, and "between" where
    no step of the goal is under way.
    """

    words: tuple[str, ...]
    writes: bool = False
    given: str = ""
    first: bool = False
    place: str = "whole"


_RECORD = '{"kind":"event","session":"calm","type":"message","data":{"text":"done"}}\n'
COMMANDS: dict[str, Measured] = {
    "list": Measured(("list",)),
    "show": Measured(("show", "calm@7")),
    "trace": Measured(("trace", "Bash", "--limit", "20")),
    "search": Measured(("search", "needle")),
    "sessions": Measured(("sessions",)),
    "sessions, first": Measured(("sessions",), first=True),
    "detect": Measured(("detect", "-s", "stuck", "--exit-zero")),
    "detect, first": Measured(("detect", "-s", "stuck", "--exit-zero"), first=True),
    "recover --prompt": Measured(("recover", "-s", "stuck", "--prompt"), place="answered"),
    "recover --prompt, first": Measured(("recover", "-s", "stuck", "--prompt"), writes=True),
    "recover, first": Measured(("recover", "-s", "stuck"), writes=True),
    "record": Measured(("record",), writes=True, given=_RECORD),
    "note add": Measured(("note", "add", "calm@3", "-m", "look here"), writes=True),
    "note list": Measured(("note", "list", "--all-sessions")),
    "memory recall": Measured(("memory", "recall", "needle")),
    "goal record": Measured(("goal", "record", "run_tests", "--args", "{}", "--result", "success"), writes=True),
    "goal next": Measured(("goal", "next"), writes=True, place="between"),
    "goal brief": Measured(("goal", "brief")),
    "goal done": Measured(("goal", "done"), writes=True),
    "goal tree": Measured(("goal", "tree")),
    "artifact list": Measured(("artifact", "list")),
    "artifact get": Measured(("artifact", "get", "coder/plan.md")),
    "artifact put": Measured(("artifact", "put", "new.md", "--agent", "coder"), writes=True),
    "context get": Measured(("context", "get")),
    "access check": Measured(("access", "check", "coder", "read", "artifact", "coder/plan.md")),
    "access list": Measured(("access", "list")),
    "version list": Measured(("version", "list")),
    "trust": Measured(("trust", "--list")),
    "import, nothing new": Measured(("import", "log.jsonl"), writes=True),
    "verify": Measured(("verify",)),
    "doctor": Measured(("doctor",)),
}  # fmt: skip


def records() -> Iterator[dict[str, Any]]:
    """Yield a calm session of 940 entries and one of 60 that repeats itself."""
    for session, count in (("calm", ENTRIES - 60), ("stuck", 60)):
        yield {"kind": "session", "session": session, "process": "p", "workflow": "bench"}
        for number in range(count):
            same = session == "stuck" and number > 20
            action, told = ("Bash", "1 failed") if same or number % 3 else ("Read", f"line {number} " + "text " * 20)
            made = {"command": "pytest -x"} if same else {"path": f"src/part_{number}.py", "why": f"step {number}"}
            stamp = f"2026-01-22T{10 + number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z"
            ident = f"{session}-{number:05}"
            yield {
                "kind": "entry",
                "session": session,
                "id": ident,
                "ts": stamp,
                "agent": "coder",
                "action": action,
                "input": made,
            }
            told += " needle" if number % 400 == 7 else ""
            yield {"kind": "result", "session": session, "entry": ident, "ts": stamp, "status": "error" if same else "ok",
                   "output": told}  # fmt: skip


class Took(NamedTuple):
    """What a run took, in seconds of the clock and of the processor, and its exit code."""

    wall: float
    cpu: float
    code: int


Of = Callable[[Iterable[float]], float]
"""The median, or the least."""


def of(which: Of, taken: Sequence[Took]) -> Took:
    """Return the median or the least of each time."""
    return Took(which([each.wall for each in taken]), which([each.cpu for each in taken]), taken[-1].code)


def cells(taken: Sequence[Took], floor: Sequence[Took]) -> str:
    """Return the cells of a row: the median in milliseconds, and both times as multiples of the floor's: medians, and least."""
    half, least = ((of(which, taken), of(which, floor)) for which in (statistics.median, min))
    parts = [f"{half[0].wall * 1e3:.0f}"]
    for ours, theirs in (half, least):
        parts += [f"{ours.wall / theirs.wall:.1f}", f"{ours.cpu / theirs.cpu:.1f}"]
    return " | ".join(parts)


class Bench:
    """The folder that commands run in, and how they are run."""

    def __init__(self, folder: Path, rounds: int) -> None:
        self.folder, self.rounds = folder, rounds
        self.script = folder / "ctxmgr"
        lines = [f"#!{sys.executable}", "import sys", "from ctxmgr.__main__ import start", "sys.exit(start())", ""]
        self.script.write_text("\n".join(lines), "utf-8")
        self.script.chmod(0o755)
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "cache"),
            "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1",
        }  # fmt: skip
        self.whole = folder / "whole"
        self._filled()
        for name, words in (("answered", ("recover", "-s", "stuck")), ("between", ("goal", "done"))):
            shutil.copytree(self.whole, folder / name, symlinks=True)
            assert self.run(words, folder / name).code == 0

    def _filled(self) -> None:
        self.whole.mkdir()
        (self.folder / "home").mkdir()
        stored = "".join(json.dumps(record) + "\n" for record in records())
        (self.whole / "log.jsonl").write_text(stored.replace('{"kind"', '{"v":1,"kind"'), "utf-8")
        (self.whole / "plan.md").write_text("# Plan\n\nFirst this, then that.\n", "utf-8")
        (self.whole / "new.md").write_text("# New\n", "utf-8")
        for words, given in (
            (("record",), stored), (("import", "log.jsonl"), ""),
            (("note", "add", "calm@1", "-m", "a needle in a note"), ""),
            (("memory", "retain", "-m", "the needle is in part 7"), ""),
            (("artifact", "put", "plan.md", "--agent", "coder"), ""),
            (("context", "set", "stack", "python", "--by", "coder", "--create"), ""),
            (("access", "allow", "coder", "artifact", "coder/*"), ""),
            (("goal", "start", "Ship it"), ""), (("goal", "add", "write it", "test it"), ""), (("goal", "next"), ""),
        ):  # fmt: skip
            assert self.run(words, self.whole, given).code == 0, words

    def run(self, words: Sequence[str], folder: Path, given: str = "", *, watched: bool = False) -> Took:
        """Run a command."""
        environment = {**self.environment, "CTXMGR_STORE": str(folder / ".ctxmgr/history.db")}
        return _timed([str(self.script), *words], folder, environment, given, watched=watched)

    def measured(self, measured: Measured) -> tuple[Sequence[Took], ...]:
        """Return what a bare Python, and the command for a person and for a program took in turn; a first round is left out."""
        rounds = [self._round(measured, number) for number in range(self.rounds + 1)][1:]
        return tuple(zip(*rounds, strict=True))

    def _round(self, measured: Measured, number: int) -> tuple[Took, Took, Took]:
        floor = _timed([sys.executable, *BARE.split()[1:]], self.folder, self.environment, "", watched=False)
        return floor, self._once(measured, number, watched=True), self._once(measured, number, watched=False)

    def _once(self, measured: Measured, number: int, *, watched: bool) -> Took:
        place = self.folder / measured.place
        if measured.writes:
            place = self.folder / f"copy-{number}"
            shutil.copytree(self.folder / measured.place, place, symlinks=True)
        if measured.first:
            shutil.rmtree(self.folder / "cache" / "ctxmgr" / "answers", ignore_errors=True)
        words = measured.words if watched else (*measured.words, "--json")
        took = self.run(words, place, measured.given, watched=watched)
        if measured.writes:
            shutil.rmtree(place)
        return took


def _timed(words: list[str], folder: Path, environment: Mapping[str, str], given: str, *, watched: bool) -> Took:
    with tempfile.TemporaryFile() as source:
        source.write(given.encode())
        source.seek(0)
        reader, writer = pty.openpty() if watched else os.pipe()
        began = time.perf_counter()
        process = subprocess.Popen(
            words, stdin=source, stdout=writer, stderr=writer if watched else subprocess.DEVNULL, cwd=folder, env=environment
        )
        os.close(writer)
        with suppress(OSError):  # how the end of a terminal shows
            while os.read(reader, 1 << 16):
                pass
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        os.close(reader)
    return Took(wall, used.ru_utime + used.ru_stime, process.returncode)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table in Markdown."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed.commands", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help="of each command; the median counts")
    parser.add_argument("--only", default="", help="commands whose name begins with one of these words, parted by commas")
    options = parser.parse_args(arguments)
    compileall.compile_dir(Path(ctxmgr.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options.rounds)
        each = "ms | x | CPU x | least x | least CPU x"
        print(f"| command | person, {each} | program, {each} | {BARE}, CPU ms | exit |")
        print(f"| --- {'| --- ' * 12}|")
        for name, measured in COMMANDS.items():
            if name.startswith(tuple(options.only.split(","))):
                floor, person, program = bench.measured(measured)
                codes = ", ".join(map(str, sorted({taken.code for taken in (*person, *program)})))
                bare = f"{of(statistics.median, floor).cpu * 1e3:.1f}"
                print(f"| {name} | {cells(person, floor)} | {cells(program, floor)} | {bare} | {codes} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
