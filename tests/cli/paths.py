"""Run command lines by the fast path and by typer, on the same stores, and demand that they agree."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ctxmgr import cli
from ctxmgr.cli.fast import dispatch
from ctxmgr.store import open_store
from tests import builders as b
from tests.cli.console import lines, make_history, records

CLAUDE = Path(__file__).parents[2] / "fixtures/demo/claude-code/projects/-home-dev-invoice-tool"


class Ended(NamedTuple):
    """How a command line ended, what it wrote, and whether the fast path answered it."""

    code: int
    out: bytes
    err: bytes
    was_quick: bool


class _Stream(io.TextIOWrapper):
    """A standard stream that remembers its bytes; ``terminal`` makes it one that a person watches."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="strict", write_through=True)
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    def written(self) -> bytes:
        """Return all bytes."""
        self.flush()
        kept = self.buffer
        assert isinstance(kept, io.BytesIO)
        return kept.getvalue()


def run_by(words: list[str], answered: Callable[[list[str]], int | None], *, terminal: bool = False) -> Ended:
    """Run a command line in this process with an ``answer_quickly`` in the place of the fast path's."""
    was_quick: list[bool] = []

    def asked(arguments: list[str]) -> int | None:
        code = answered(arguments)
        was_quick.append(code is not None)
        return code

    out, err = _Stream(terminal=terminal), _Stream(terminal=terminal)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch, "answer_command", asked)
        patch.setattr(sys, "argv", ["ctxmgr", *words])
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        code = cli.main()
        return Ended(code, out.written(), err.written(), was_quick == [True])


def both(words: list[str], *, terminal: bool = False) -> Ended:
    """Run a command line by the fast path and by typer, demand that they agree, and return how it ended."""
    by_quick = run_by(words, dispatch.answer_command, terminal=terminal)
    by_typer = run_by(words, lambda _: None, terminal=terminal)
    assert by_quick[:3] == by_typer[:3], words
    return by_quick


HOSTILE = [
    *b.steps("härte/ö", ["Read:\x1b[2J‮ -> \x7f\x00", "!Bash:\ud800 -> \udfff 💥", "?Ed it:" + "x" * 5000]),
    b.entry("härte/ö", 3, "Nested", {"a": [{"b": [1, -0.0, 1e300, 2**80, True, None, "é\u2028"]}], "\ud83d": {"\ude00": "key"}},
            turn=7, step="s", parent="gone", timeoutMs=1.5, task="t", meta={"missing": ["file x", 3]}),
    b.result("härte/ö", 3, {"deep": [[[[[[[[]]]]]]]]}, durationMs=12, usage={"inputTokens": 3}, meta={"more": [1]}),
    b.event("härte/ö", 0, "message", {"text": "sagt \ud83d\ude00 \x7f"}, after=1, entry=b.entry_id("härte/ö", 1)),
    b.event("härte/ö", 1, "user_message", "STRASSE ﬀ İ", after=2),
    b.event("härte/ö", 2, "heartbeat", None, after=3, ts=None),
    b.build("snapshot", "healthy", b.at(3), id="hp", entries=["gone", b.entry_id("healthy", 0)], summary="ß", reasoning="\x7f",
            hash="0" * 16),
    b.build("snapshot", "healthy", None, id="hq", entries=[], summary="", reasoning="", hash=""),
    b.build("note", "härte/ö", b.at(4), id="hn", entries=["gone", b.entry_id("härte/ö", 0)], content="\ud800 é", tags=["ß"]),
]  # fmt: skip


def _nested(depth: int) -> Any:
    found: Any = "bottom"
    for _ in range(depth):
        found = [found]
    return found


def make_stores(folder: Path) -> None:
    """Make the stores that command lines name: whole, empty, a log, damaged, altered, foreign, a folder, a list of names."""
    make_history(folder / "history.db", *HOSTILE, b.entry("deep", 0, "Deep", _nested(240), ts=b.at(99)))
    open_store(str(folder / "empty.db"), create=True).close()
    with closing(open_store(str(folder / "log.jsonl"), create=True)) as store:
        store.append([*records(), *HOSTILE])
    (folder / "torn.jsonl").write_text(lines(*records()) + '{"v":1,"kind":"entry","ses\n{}\n' * 7 + '{"torn', "utf-8")
    (folder / "damaged.db").write_bytes((folder / "history.db").read_bytes()[:3000] + b"\xff" * 40_000)
    (folder / "foreign.db").write_text("no database at all " * 100, "utf-8")
    (folder / "folder.db").mkdir()
    shutil.copyfile(next(CLAUDE.glob("7e999fd2*.jsonl")), folder / "claude.jsonl")
    shutil.copyfile(folder / "log.jsonl", folder / "own.log")
    (folder / "garbage.txt").write_text("no log at all\n", "utf-8")
    for name, change in (
        ("body", '{"v":1,'),
        ("list", "[]"),
        ("shape", '{"id":7,"session":[]}'),
        ("nan", '{"id":"x","input":NaN'),
    ):
        with closing(open_store(str(make_history(folder / f"altered-{name}.db")))) as store:
            store.engine.execute("UPDATE record SET body = :body WHERE id = 'healthy-e0001'", {"body": change})
    with closing(open_store(str(make_history(folder / "altered-status.db")))) as store:
        store.engine.execute("UPDATE entry SET status = 'odd' WHERE idx = 1")
    for kind in ("note", "snapshot"):
        with closing(open_store(str(make_history(folder / f"altered-{kind}.db", *HOSTILE)))) as store:
            store.engine.execute("UPDATE record SET body = :body WHERE kind = :kind", {"body": '{"id":7}', "kind": kind})
