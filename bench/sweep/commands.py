"""The commands that are swept, and how the folder is made ready in which each of them runs."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from bench.sweep.injection import Ended, run

STORES = {"db": "history.db", "jsonl": "history.jsonl"}
_MODULE = "module: "
GOAL = "goal"
"""Stands for the store of a goal, which is always a log in ``.agent_context``."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line, and those that run before it, undisturbed.

    ``partly``: what stands between before and after is right too, for it stores one batch after the other.
    ``before``: what else makes the folder ready. ``stdin``: the file that it reads.
    """

    words: list[str]
    first: tuple[list[str], ...] = ()
    partly: bool = False
    before: Callable[[Path], None] | None = None
    stdin: str = os.devnull

    def work(self) -> Callable[[], int]:
        """Return the work of running it."""
        return line(self.words, self.stdin)


_IMPORT = ["import", "log.jsonl"]
_PUT = ["artifact", "put", "a.md", "same.md", "--agent", "arch"]
_PUT_AGAIN = ["artifact", "put", "two/a.md", "c.md", "--agent", "arch"]
_PUT_THIRD = ["artifact", "put", "three/a.md", "d.md", "same.md", "--agent", "arch"]
_PLAN = ["goal", "start", "--from", "plan.md", "--yes"]


def _die_as_owner(folder: Path) -> None:
    """Let a process take a goal, work on it, and die without letting go."""
    goals = import_module("ctxmgr.goals")
    requests = import_module("ctxmgr.types.goal")
    child = os.fork()
    if child == 0:
        try:
            held = goals.Goals(folder / ".agent_context", hold=True)
            held.resume()
            held.record(requests.RecordRequest(action="edit", args={"n": 1}, result="success"))
        finally:
            os._exit(0)
    os.waitpid(child, 0)


COMMANDS: dict[str, Command] = {
    "import": Command(_IMPORT, partly=True),
    "import more": Command(["import", "longer.jsonl"], (_IMPORT,), partly=True),
    "record": Command(["record"], (_IMPORT,), partly=True, stdin="more.jsonl"),
    "note add": Command(["note", "add", "@0", "-m", "look"], (_IMPORT,)),
    "snapshot create": Command(["snapshot", "create", "@0", "@1", "--summary", "s", "--reasoning", "r"], (_IMPORT,)),
    "recover": Command(["recover"], (_IMPORT,), partly=True),
    "context set": Command(["context", "set", "goal", '"x"', "--create"], (_IMPORT,)),
    "artifact put first": Command(_PUT),
    "artifact put": Command(_PUT_THIRD, (_PUT, _PUT_AGAIN)),
    "version create": Command(["version", "create", "on request"], (_PUT, _PUT_AGAIN)),
    "version rollback": Command(["version", "rollback", "1", "--reason", "swept"], (_PUT, _PUT_AGAIN)),
    "version prune": Command(
        ["version", "prune", "--keep-versions", "1", "--keep-days", "0"], (_PUT, _PUT_AGAIN, _PUT_THIRD)
    ),
    "index": Command(["index"], (_IMPORT,)),
    "goal start": Command(_PLAN),
    "goal record": Command(["goal", "record", "edit", "--args", '{"n": 9}', "--result", "success"], (_PLAN,)),
    "goal done": Command(["goal", "done"], (_PLAN,)),
    "goal next": Command(["goal", "next"], (_PLAN, ["goal", "done"])),
    "goal resume": Command(["goal", "resume"], (_PLAN, ["goal", "done"], ["goal", "next"]), before=_die_as_owner),
}  # fmt: skip


def stores_of(name: str) -> list[str]:
    """Return the kinds of store a command is swept on."""
    return [GOAL] if name.startswith(GOAL) else list(STORES)


def environment(folder: Path, store: str) -> dict[str, str]:
    """Return the environment of a command: its homes are inside the folder, so that anchors and settings are swept too."""
    homes = {name: str(folder / "home") for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
    path = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**path, **homes, "CTXMGR_STORE": str(folder / STORES.get(store, "history.db")), "NO_COLOR": "1"}


def load(work: Callable[[], int], folder: Path, store: str) -> None:
    """Load what work needs, by doing it once: its forks then load nothing, and make the same calls each time."""

    def told() -> int:
        work()
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        print("".join(f"\n{_MODULE}{name}" for name, module in sys.modules.items() if getattr(module, "__file__", None)))
        return 0

    for row in run(told, folder, environment(folder, store)).out.split("\n"):
        if row.startswith(_MODULE):
            import_module(row.removeprefix(_MODULE))


def line(words: list[str], stdin: str = os.devnull, *, later: float = 0.0) -> Callable[[], int]:
    """Return the work of running a command line of the program; ``later``: seconds by which its clock is ahead."""

    def work() -> int:
        main: Callable[[], int] = import_module("ctxmgr.__main__").main
        sys.argv = ["ctxmgr", *words]
        os.dup2(os.open(stdin, os.O_RDONLY), 0)
        if later:
            clock = time.time
            time.time = lambda: clock() + later
        try:
            return int(main() or 0)
        except SystemExit as ended:
            return int(ended.code or 0)

    return work


def do(folder: Path, store: str, words: list[str], stdin: str = os.devnull, *, later: float = 0.0) -> Ended:
    """Run a command line undisturbed."""
    return run(line(words, stdin, later=later), folder, environment(folder, store))


def prepare(folder: Path, name: str, store: str) -> None:
    """Make the folder in which a command runs.

    Raises:
        RuntimeError: a command on the way failed.
    """
    folder.mkdir(parents=True)
    for place in ("home", "two", "three"):
        (folder / place).mkdir()
    (folder / "log.jsonl").write_text(_log("s", 40))
    (folder / "longer.jsonl").write_text(_log("s", 60) + _log("t", 10))
    (folder / "more.jsonl").write_text(_log("u", 12))
    (folder / "plan.md").write_text("# survive\n\n## one\n\n- first\n- second\n\n## two\n\n- third\n")
    for number, file in enumerate(("a.md", "same.md", "two/a.md", "c.md", "three/a.md", "d.md")):
        (folder / file).write_text("# the same\n" if file == "same.md" else f"# {number}\n" * 30)
    command = COMMANDS[name]
    for words in command.first:
        ended = do(folder, store, words)
        if ended.code:
            raise RuntimeError(f"{words}: {ended.code}: {ended.err}")
    if command.before is not None:
        command.before(folder)


def _log(session: str, entries: int) -> str:
    records = [
        record
        for number in range(entries)
        for record in (
            {"v": 1, "kind": "entry", "session": session, "ts": "2026-01-22T10:00:00Z", "id": f"{session}{number}",
             "agent": "a", "action": "Bash", "input": {"command": "make"}},
            {"v": 1, "kind": "result", "session": session, "ts": "2026-01-22T10:00:01Z", "entry": f"{session}{number}",
             "status": "error", "error": {"type": "Exit", "message": "1"}},
        )
    ]  # fmt: skip
    return "".join(json.dumps(record) + "\n" for record in records)
