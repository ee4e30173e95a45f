"""``ctxmgr detect --explain``: what each detector thought of one entry, in JSON and for people."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.cli.exits import Exit
from ctxmgr.detect.detectors import DETECTORS
from ctxmgr.store import open_store
from tests import builders as b
from tests.cli.console import run

HOSTILE = "evil\x1b[31m[bold]"


@pytest.fixture(autouse=True)
def _history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every command find a session that loops from entry 1 on, waits in entry 5, and one with a hostile name."""
    monkeypatch.chdir(tmp_path)
    store = open_store(str(tmp_path / "history.db"), create=True)
    store.append(b.steps(HOSTILE, [f"{HOSTILE}:ls -> same"]))
    store.append(b.steps("s", ["Read:a.py -> text", *["Bash:ls -> same"] * 4, "?Bash:sleep"]))
    store.close()
    monkeypatch.setenv("CTXMGR_STORE", str(tmp_path / "history.db"))


@pytest.mark.requirement("R-13", "EC-5")
def test_each_detector_says_what_it_compared_and_how_often_it_saw_it() -> None:
    """At the third identical call the repetition is full; everyone else says why it raised nothing."""
    ran = run("detect", "--session", "s", "--explain", "3", "--json")
    data = ran.envelope["data"]
    assert (ran.code, ran.envelope["command"], data["entry"]["index"], data["note"]) == (0, "detect explain", 3, None)
    thoughts = {thought["detector"]: thought for thought in data["thoughts"]}
    assert (thoughts["repetition"]["count"], thoughts["repetition"]["threshold"]) == (3, 3)
    assert set(thoughts) == {detector.kind for detector in DETECTORS}
    assert all(thought["why"] for thought in data["thoughts"])
    assert [(finding["kind"], finding["raisedAt"]) for finding in data["findings"]] == [("repetition", b.entry_id("s", 3))]


def test_detectors_of_one_kind_are_told_apart() -> None:
    """Three detectors look for a hang; each says what it goes by, in JSON and for people."""
    thoughts = run("detect", "--session", "s", "--explain", "3", "--json").envelope["data"]["thoughts"]
    names = [(thought["detector"], thought.get("rule")) for thought in thoughts]
    assert len(set(names)) == len(names) == len(DETECTORS)
    assert {rule for kind, rule in names if kind == "hung"} == {"progress reports", "pauses", "novelty"}
    assert "hung: pauses" in run("detect", "--session", "s", "--explain", "3").out


@pytest.mark.parametrize(("address", "count"), [("s@1", 1), ("s@2", 2), (b.entry_id("s", 2), 2)])
def test_counts_are_those_of_the_time(address: str, count: int) -> None:
    """What came later changes nothing about what was thought of an earlier entry."""
    thoughts = run("detect", "--session", "s", "--explain", address, "--json").envelope["data"]["thoughts"]
    assert [thought["count"] for thought in thoughts if thought["detector"] == "repetition"] == [count]


def test_entry_that_no_detector_saw_says_so() -> None:
    """An open call has no result to compare, so there are no thoughts but a note."""
    data = run("detect", "--session", "s", "--explain", "@last", "--json").envelope["data"]
    assert (data["entry"]["index"], data["thoughts"]) == (5, [])
    assert "no result" in data["note"]
    assert "no result" in run("detect", "--session", "s", "--explain", "@last").out


def test_people_see_the_nearest_detector_first() -> None:
    """The one that saw its pattern most fully leads, then the finding in a sentence; recorded text is filtered."""
    out = run("detect", "--session", "s", "--explain", "3").out
    rows = out.split("\n")
    assert rows[0].startswith("s@3")
    assert rows[2].split()[:3] == ["repetition", "3", "3"]
    assert "loop  repetition" in out
    assert "\x1b" not in run("detect", "--session", HOSTILE, "--explain", "0").out


@pytest.mark.parametrize(
    ("arguments", "code", "kind"),
    [
        (("--explain", "99"), Exit.NOT_FOUND, "outOfBounds"),
        (("--explain", "nobody@1"), Exit.USAGE, "invalid"),
        (("--explain", " "), Exit.USAGE, "invalid"),
        (("--explain", "1", "--all-sessions"), Exit.USAGE, "invalid"),
        (("--explain", "1", "--ever"), Exit.USAGE, "invalid"),
    ],
)
def test_what_cannot_be_explained_is_refused(arguments: tuple[str, ...], code: Exit, kind: str) -> None:
    """An entry that is not there and options without a meaning end in their usual errors."""
    ran = run("detect", "--session", "s", *arguments, "--json")
    assert (ran.code, ran.envelope["error"]["kind"]) == (code, kind)
