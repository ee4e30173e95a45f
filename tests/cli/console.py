"""Run the command line: inside this process where that says enough, as a process of its own where streams matter."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple

from ctxmgr.log.codec import Record
from ctxmgr.store import open_store
from tests import builders as b
from tests.frontends import invoke

LIMIT = 60
"""Seconds after which a process counts as hanging."""


class Ran(NamedTuple):
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def envelope(self) -> dict[str, Any]:
        """The JSON envelope that it printed."""
        return json.loads(self.out)


def run(*arguments: str, given: str | bytes | None = None) -> Ran:
    """Run a command in this process; anything but an orderly end fails the test."""
    ended = invoke(arguments, given)
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise AssertionError(f"{arguments} crashed") from ended.exception
    return Ran(ended.exit_code, ended.stdout, ended.stderr)


def command(*arguments: str) -> list[str]:
    """Return the command line of a process of its own."""
    return [sys.executable, "-m", "ctxmgr", *arguments]


def process(
    *arguments: str | bytes,
    given: bytes | None = None,
    env: dict[str, str] | None = None,
    out: IO[bytes] | int = subprocess.PIPE,
    limits: Callable[[], None] | None = None,
    folder: Path | None = None,
    limit: float = LIMIT,
) -> Ran:
    """Run a command in a process of its own; one that hangs fails the test."""
    argv: Sequence[str | bytes] = [sys.executable, "-m", "ctxmgr", *arguments]
    # Some Pythons keep a compiled module that a limit of file sizes cut off.
    compiles = {} if limits is None else {"PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        argv, input=given, env={**os.environ, **compiles, **(env or {})}, stdout=out, stderr=subprocess.PIPE, timeout=limit,
        preexec_fn=limits, cwd=folder, check=False,
    )  # fmt: skip
    return Ran(
        ended.returncode,
        (ended.stdout or b"").decode("utf-8", "surrogateescape"),
        ended.stderr.decode("utf-8", "surrogateescape"),
    )


def watched(*arguments: str, typed: bool = True, talk: bool = False) -> tuple[int, str]:
    """Run a command on a terminal; return its exit code and what the terminal got, with ``talk`` stderr too."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command(*arguments), stdin=theirs if typed else subprocess.DEVNULL, stdout=theirs,
        stderr=theirs if talk else subprocess.DEVNULL,
    ) as process:  # fmt: skip
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:
                break
            if not part:
                break
            shown += part
        code = process.wait(LIMIT)
    os.close(ours)
    return code, shown.decode("utf-8").replace("\r\n", "\n")


def records() -> list[Record]:
    """Return a small history: a healthy session with a note, a loop, and an older one that ended inside a call."""
    healthy = [
        b.build("session", "healthy", b.at(0), process="p1", workflow="release", meta={"title": "Ship it"}),
        *b.steps("healthy", ["> ship it", "Read:a.py -> text", "!Bash:make -> boom", "Bash:make -> done"],
                 process="p1", inputType="command"),
        b.event("healthy", 9, "message", {"text": "all shipped"}, after=3, agent="coder", entry=b.entry_id("healthy", 2)),
        b.build("note", "healthy", b.at(4), id="n1", entries=[b.entry_id("healthy", 1)], content="flaky", tags=["diagnostic"],
                author="ann"),
        b.build("sessionEnd", "healthy", b.at(5), outcome="completed", process="p1"),
    ]  # fmt: skip
    looping = b.steps("looping", ["Read:b.py -> text", *["Bash:ls -> same"] * 4], agent="worker")
    hung = [
        {**record, "ts": b.at(number - 86_400)} for number, record in enumerate(b.steps("hung", ["Bash:a -> b", "?Bash:sleep"]))
    ]
    return [*hung, *looping, *healthy]


def make_history(place: Path, *more: Record) -> Path:
    """Write `records` and more into a new store and return its path."""
    if place.suffix == ".db" and place.parent.exists():
        lay_tables(place)
    store = open_store(str(place), create=True)
    store.append([*records(), *more])
    store.close()
    return place


def lay_tables(place: Path) -> None:
    """Write a database with the tables of a store where none is, for its owner alone, as a store makes it."""
    with open(place, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream:
        stream.write(_empty_database())


@cache
def _empty_database() -> bytes:
    """Return a database that holds nothing but tables: to make these takes fifty times as long as to copy them."""
    with TemporaryDirectory() as folder:
        place = Path(folder, "history.db")
        open_store(str(place), create=True).close()
        return place.read_bytes()


def lines(*given: Record) -> str:
    """Return records as stdin of ``record`` takes them."""
    return "".join(json.dumps(record) + "\n" for record in given)
