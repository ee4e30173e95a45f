"""Sessions and verdicts from cached answers are those of the commands, to the byte."""

from __future__ import annotations

import gc
import shlex
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.cli.fast import detection
from ctxmgr.history.query import tools
from tests.cli.console import make_history, process
from tests.cli.paths import both

pytestmark = pytest.mark.usefixtures("here")

QUICK = [
    "sessions", "sessions --no-judge", "sessions --judge -n 2 --offset 1", "sessions --agent WORKER",
    "sessions --store empty.db", "sessions --no-judge --judge --store log.jsonl", "detect --exit-zero", "detect -s healthy",
    "detect -s hea --now yesterday", "detect --all-sessions --exit-zero", "detect --ever --exit-zero -s looping",
    "sessions log.jsonl", "sessions claude.jsonl", "detect healthy", "detect claude.jsonl --exit-zero",
    "detect log.jsonl --all-sessions --exit-zero",
    "detect --set repeat_rounds=2 --set actions.Bash.repeat_rounds=9 -s looping --exit-zero",
]  # fmt: skip
"""Command lines that the fast path answers itself, well ended ones and refused ones."""

REFUSED = [
    "detect -s none", "detect --now soon", "detect --set x", "detect --set nosuch=1", "detect --set repeat_rounds=x",
    "detect --store none.db", "sessions --store none.db", "detect --all-sessions --store altered-body.db", "detect -s looping",
    "detect -s hung --now 2026-01-22T12:00:00Z", "detect --all-sessions", "detect -s deep", "detect -s ''",
    "sessions --store damaged.db", "detect --store ''", "detect --store empty.db", "detect claude.jsonl", "detect garbage.txt",
    "sessions none", "sessions -",
]  # fmt: skip
"""Command lines that the fast path itself refuses, or that end with a verdict."""


@pytest.mark.parametrize("form", ["--json", "--format=ndjson", "--format json"])
@pytest.mark.parametrize("text", [*QUICK, *REFUSED])
def test_sessions_and_verdicts_are_those_of_typer(text: str, form: str) -> None:
    """A cached verdict, one that is worked out and a refusal have typer's bytes on both streams and its exit code."""
    words = shlex.split(text)
    ended = both([words[0], *form.split(), *words[1:]])

    assert ended.was_quick
    assert (ended.code == 0) == (text in QUICK)


@pytest.mark.cases(1)
@pytest.mark.parametrize("words", [("detect", "looping"), ("sessions",), ("list", "looping"), ("list", "nosuch")])
def test_a_setting_that_is_left_out_is_told_once(words: tuple[str, ...], tmp_path: Path) -> None:
    """Where the quick path hands a command on, both read the settings: the warning is told by the one that answers."""
    store = make_history(tmp_path / "history.db")
    (tmp_path / "ctxmgr.toml").write_text('[live]\nexec = ["true"]\n', "utf-8")
    for _ in range(2):  # with a judgement to make, and with one that is kept
        ran = process(*words, "--store", str(store), folder=tmp_path)
        assert ran.err.count("sets live.exec, which only you may") == 1


def test_the_collector_rests_during_a_query_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Garbage is not looked for while the fast path reads; it is while it judges, while typer runs, and afterwards."""
    seen: dict[str, list[bool]] = {"list": [], "sessions": []}
    real_list, real_sessions = tools.list_, detection.HANDLERS["sessions"]

    def listing(*given: Any) -> Any:
        seen["list"].append(gc.isenabled())
        return real_list(*given)

    def sessions(*given: Any) -> Any:
        seen["sessions"].append(gc.isenabled())
        return real_sessions(*given)

    monkeypatch.setattr(tools, "list_", listing)
    monkeypatch.setitem(detection.HANDLERS, "sessions", sessions)
    for words in (["list", "--json"], ["sessions", "--json"]):
        assert both(words).was_quick
        assert gc.isenabled()

    assert seen == {"list": [False, True], "sessions": [True, True]}
