"""Kill, or let fail, every writing command at every system call that touches its files, and look at what is left.

    python bench/sweep.py                         all commands, all calls
    python bench/sweep.py --only "note add" --every 5

The command runs once under strace, which tells its calls that name a file of the workspace; then once for each of them
and each fault: SIGKILL, ENOSPC, EIO. Afterwards the history must be what it was before the command or after it (an import
may have come half way), ``verify`` must find nothing wrong, no command may end in an internal fault, and the command done
again must succeed. Only the main thread is swept. Exit code 1 when anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

CALLS = (
    "openat", "write", "pwrite64", "rename", "link", "linkat", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir", "fchmod",
    "chmod", "fsync", "fdatasync", "ftruncate", "symlinkat", "symlink", "renameat", "fallocate", "flock", "read", "pread64",
)  # fmt: skip
WRITING = frozenset(CALLS) - {"read", "pread64", "flock"}
FAULTS = {"kill": "signal=KILL", "full": "error=ENOSPC", "broken": "error=EIO"}
_CALL = re.compile(r"^(?P<process>\d+) +(?P<call>\w+)\((?P<rest>.*)$")

_LOG = "".join(
    json.dumps(record) + "\n"
    for number in range(40)
    for record in (
        {"v": 1, "kind": "entry", "session": "s", "ts": "2026-01-22T10:00:00Z", "id": f"e{number}", "agent": "a",
         "action": "Bash", "input": {"command": "make"}},
        {"v": 1, "kind": "result", "session": "s", "ts": "2026-01-22T10:00:01Z", "entry": f"e{number}", "status": "error",
         "error": {"type": "Exit", "message": "1"}},
    )
)  # fmt: skip

_PLAN = ["goal", "start", "--from", "plan.md", "--yes"]
_PUT = ["artifact", "put", "a.md", "--name", "a.md", "--agent", "arch"]
COMMANDS: dict[str, tuple[list[list[str]], list[str]]] = {
    "import": ([], ["import", "log.jsonl"]),
    "note add": ([["import", "log.jsonl"]], ["note", "add", "@0", "-m", "look"]),
    "recover": ([["import", "log.jsonl"]], ["recover", "--force"]),
    "artifact put": ([_PUT], ["artifact", "put", "b.md", "--name", "a.md", "--agent", "arch"]),
    "version rollback": (
        [_PUT, ["artifact", "put", "b.md", "--name", "a.md", "--agent", "arch"]],
        ["version", "rollback", "1", "--reason", "swept"],
    ),
    "version prune": (
        [_PUT, ["artifact", "put", "b.md", "--name", "a.md", "--agent", "arch"], ["artifact", "put", "c.md", "--name", "a.md",
         "--agent", "arch"]],
        ["version", "prune", "--keep-versions", "1", "--keep-days", "0"],
    ),
    "goal start": ([], _PLAN),
    "goal record": ([_PLAN], ["goal", "record", "edit", "--args", '{"n": 9}', "--result", "success"]),
    "goal done": ([_PLAN], ["goal", "done"]),
    "goal next": ([_PLAN, ["goal", "done"]], ["goal", "next"]),
    "index": ([["import", "log.jsonl"]], ["index"]),
}  # fmt: skip
"""Name -> the commands that lead to it, and the command itself."""


@dataclass
class Outcome:
    """What the sweep of one command found."""

    command: str
    points: Counter[str] = field(default_factory=lambda: Counter[str]())
    wrong: list[str] = field(default_factory=lambda: list[str]())


def _environment(folder: Path) -> dict[str, str]:
    home = {name: str(folder / "home") for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
    return {**os.environ, **home, "CTXMGR_STORE": str(folder / "history.db"), "NO_COLOR": "1"}


@dataclass(frozen=True)
class _Ran:
    returncode: int
    stdout: str
    stderr: str


def _run(folder: Path, words: list[str], before: list[str] | None = None) -> _Ran:
    """Run a command: under what is named ``before``, else in a fork of this process, which has the program loaded."""
    if before is None:
        return _forked(folder, words)
    line = [*before, sys.executable, "-m", "ctxmgr", *words]
    ran = subprocess.run(
        line, cwd=folder, env=_environment(folder), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    return _Ran(ran.returncode, ran.stdout, ran.stderr)


def _forked(folder: Path, words: list[str]) -> _Ran:
    for name in ("cli.application", "history.ingest", "store.log.log_store", "workspace"):
        import_module(f"ctxmgr.{name}")
    from ctxmgr.__main__ import main as command

    places = [folder.with_name("stdout"), folder.with_name("stderr")]
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.environ.clear()
            os.environ.update(_environment(folder))
            os.chdir(folder)
            for descriptor, place in enumerate([os.devnull, *map(str, places)]):
                os.dup2(os.open(place, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), descriptor)
            sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - whatever stood there before
            sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            sys.argv = ["ctxmgr", *words]
            try:
                code = int(command() or 0)
            except SystemExit as ended:
                code = int(ended.code or 0)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    return _Ran(os.waitstatus_to_exitcode(status), places[0].read_text(errors="replace"), places[1].read_text(errors="replace"))


def _prepare(folder: Path, first: list[list[str]]) -> None:
    folder.mkdir()
    (folder / "home").mkdir()
    (folder / "log.jsonl").write_text(_LOG)
    (folder / "plan.md").write_text("# survive\n\n## one\n\n- first\n- second\n\n## two\n\n- third\n")
    for name in "abc":
        (folder / f"{name}.md").write_text(f"# {name}\n" * 30)
    for words in first:
        ran = _run(folder, words)
        if ran.returncode:
            raise RuntimeError(f"{words}: {ran.stderr}")


def told(folder: Path) -> dict[str, object]:
    """Return what a workspace says of itself, without ids and times."""
    answers: dict[str, object] = {}
    for name, words in (
        ("entries", ["list", "--session", "s", "--json"]), ("notes", ["note", "list", "--json"]),
        ("versions", ["version", "list", "--json"]), ("goal", ["goal", "tree", "--json"]),
    ):  # fmt: skip
        if name == "goal" and not (folder / ".agent_context").exists():
            continue
        if name != "goal" and not (folder / "history.db").exists():
            continue
        ran = _run(folder, words)
        answer: dict[str, Any] = json.loads(ran.stdout or "{}")
        if ran.returncode not in (0, 3):
            answers[name] = f"exit {ran.returncode}: {ran.stderr.strip()[:200]}"
        elif name == "goal":
            answers[name] = sorted(re.findall(r'"status": "(\w+)"', json.dumps(answer.get("data"))))
        elif name == "versions":
            rows: list[dict[str, Any]] = answer.get("data") or []
            answers[name] = [(row.get("version"), row.get("current")) for row in rows]
        else:
            answers[name] = (answer.get("page") or {}).get("total", 0)
    return answers


def points(folder: Path, words: list[str]) -> list[tuple[str, int]]:
    """Run a command and return (call, its number among those of that name) of the calls that name a file of the folder."""
    trace = folder.with_name(folder.name + ".trace")
    _run(
        folder,
        words,
        ["strace", "-f", "--seccomp-bpf", "-qq", "-y", "-s", "4096", "-o", str(trace), "-e", f"trace={','.join(CALLS)}"],
    )
    seen: Counter[str] = Counter()
    found: list[tuple[str, int]] = []
    lines = trace.read_text(errors="replace").splitlines()
    main_process = lines[0].split()[0]  # `when=` counts for each thread; the others are not swept
    for line in lines:
        if (match := _CALL.match(line)) is None or match["process"] != main_process:
            continue
        call, rest = match["call"], match["rest"]
        seen[call] += 1
        if (
            call in WRITING
            and str(folder) in rest
            and not (call == "openat" and "O_CREAT" not in rest and "O_RDWR" not in rest)
        ):
            found.append((call, seen[call]))
    return found


def faults_left(folder: Path, words: list[str], allowed: list[dict[str, object]], *, partly: bool) -> list[str]:
    """Return what is wrong with a workspace after a fault, then with the command done again."""
    found = told(folder)
    wrong: list[str] = []
    if found not in allowed and not partly:
        wrong.append(f"neither before nor after: {found}")
    if any("exit" in str(answer) for answer in found.values()):
        wrong.append(f"a question failed: {found}")
    again = _run(folder, words)
    if again.returncode in (1, 4, 5, 7) or again.returncode < 0:
        wrong.append(f"again: exit {again.returncode}: {again.stderr.strip()[:300]}")
    for place in (folder / "history.db", folder / ".agent_context" / "history.jsonl"):
        if place.exists():
            checked = _run(folder, ["verify", "--json", "--store", str(place)])
            kinds = {row["kind"] for row in json.loads(checked.stdout)["data"]["damaged"]} - {"unreadable"}
            if kinds or (checked.returncode and place.suffix == ".db"):
                wrong.append(f"verify of {place.name}: {checked.stdout[:400]}")
    return wrong


def sweep(command: str, folder: Path, *, every: int = 1, kinds: tuple[str, ...] = tuple(FAULTS)) -> Outcome:
    """Sweep one command; ``every``: only each n-th point."""
    first, words = COMMANDS[command]
    base, whole = folder / "base", folder / "work"
    _prepare(base, first)
    shutil.copytree(base, whole, symlinks=True)
    before = told(whole)
    found = points(whole, words)
    allowed = [before, told(whole)]
    outcome = Outcome(command)
    for number, (call, nth) in enumerate(found):
        for shift, kind in enumerate(kinds):
            if (number + shift) % every:
                continue
            shutil.rmtree(whole)
            subprocess.run(["cp", "-a", str(base), str(whole)], check=True)  # hard links stay
            inject = [
                "strace",
                "-f",
                "-qq",
                "-o",
                os.devnull,
                "-e",
                f"trace={call}",
                "-e",
                f"inject={call}:{FAULTS[kind]}:when={nth}",
            ]
            ran = _run(whole, words, inject)
            outcome.points[kind] += 1
            wrong = faults_left(whole, words, allowed, partly=command == "import")
            if kind == "kill" and ran.returncode != -signal.SIGKILL:
                outcome.points["not reached"] += 1
            elif kind != "kill" and (ran.returncode == 1 or "Traceback" in ran.stderr):
                wrong.append(f"exit {ran.returncode}: {ran.stderr.strip()[:300]}")
            elif kind != "kill" and ran.returncode == 0 and told(whole) == before != allowed[1]:
                wrong.append("it said that it was done, and it was not")
            outcome.wrong += [f"{kind} at {call} {nth}: {text}" for text in wrong]
    return outcome


def main() -> int:
    """Sweep what was asked for and print a line for each command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", choices=sorted(COMMANDS))
    parser.add_argument("--every", type=int, default=1, help="only each n-th point")
    parser.add_argument("--kind", action="append", choices=sorted(FAULTS))
    given = parser.parse_args()
    broken = False
    for command in given.only or COMMANDS:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            found = sweep(command, Path(folder), every=given.every, kinds=tuple(given.kind or FAULTS))
        broken |= bool(found.wrong)
        seconds = round(time.monotonic() - began, 1)
        print(json.dumps({"sweep": command, **found.points, "wrong": len(found.wrong), "seconds": seconds}), flush=True)
        for text in found.wrong[:12]:
            print(f"  {text}", file=sys.stderr, flush=True)
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
