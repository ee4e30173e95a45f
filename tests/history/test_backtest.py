"""A backtest: confusion table, distances and false alarms of labelled sessions, and the labels it reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import CtxmgrError, InvalidInput, NotFound
from ctxmgr.history.backtest import backtest, backtest_folder, read_labels
from ctxmgr.log.codec import Record
from ctxmgr.types.analysis import Label, Score
from tests import builders as b

LOOP = ["Read:a.py -> text", *["Bash:ls -> same"] * 4]
ENDED = [*LOOP, "> something else, please", "Read:c.py -> other"]
WORK = ["Read:a.py -> text", "Edit:a.py -> done", "Bash:make -> ok"]
CUT = ["Read:a.py -> text", "?Bash:sleep"]


def _sessions(**stories: list[str]) -> dict[str, list[Record]]:
    return {name: b.steps(name, story) for name, story in stories.items()}


def _labels(**loops: Any) -> list[Label]:
    return [Label.model_validate({"session": name, **label}) for name, label in loops.items()]


def test_table_counts_each_labelled_session_once() -> None:
    """Loops found and missed, healthy sessions with and without an alarm, each lands in its own cell."""
    sessions = _sessions(found=LOOP, missed=WORK, alarmed=LOOP, quiet=WORK, cut=CUT, odd=WORK, extra=WORK)
    labels = _labels(
        found={"loop": True, "pattern": "repetition", "period": 1}, missed={"loop": True, "pattern": "drift"},
        alarmed={"loop": False}, quiet={"loop": False, "eval": "streaming"}, cut={"loop": True, "pattern": "hung"},
        odd={"loop": None}, gone={"loop": True},
    )  # fmt: skip
    found = backtest(labels, sessions)
    score = found.detectors
    assert (score.true_positives, score.false_negatives, score.false_positives, score.true_negatives) == (2, 1, 1, 1)
    assert (found.scored, found.loops, found.healthy, found.ignored, found.unlabelled) == (5, 3, 2, 1, 1)
    assert found.absent == ["gone"]
    assert [(missed.session, missed.pattern, missed.warned) for missed in found.missed] == [("missed", "drift", False)]
    assert [(alarm.session, alarm.kind, alarm.raised_at) for alarm in found.false_alarms] == [
        ("alarmed", "repetition", b.entry_id("alarmed", 3))
    ]
    assert [(each.pattern, each.found, each.of) for each in found.patterns] == [
        ("drift", 0, 1), ("hung", 1, 1), ("repetition", 1, 1),
    ]  # fmt: skip


def test_healthy_session_judged_at_its_end_may_have_had_a_loop() -> None:
    """``final`` forgives what was resolved, ``streaming``, and no word about it, does not."""
    labels = _labels(final={"loop": False, "eval": "final"}, live={"loop": False, "eval": "streaming"}, bare={"loop": False})
    found = backtest(labels, _sessions(final=ENDED, live=ENDED, bare=ENDED))
    assert [alarm.session for alarm in found.false_alarms] == ["live", "bare"]
    assert [alarm.resolved for alarm in found.false_alarms] == ["user", "user"]
    assert found.warned == ["final"]


def test_baselines_and_rules_of_thumb_stand_beside_the_detectors() -> None:
    """Always, never and length know nothing; the rules of thumb see inputs and no results."""
    polls = ["Read:log -> 1", "Read:log -> 2", "Read:log -> 3"]
    labels = _labels(loop={"loop": True}, polls={"loop": False}, work={"loop": False})
    found = backtest(labels, _sessions(loop=LOOP, polls=polls, work=WORK))
    cells = {
        score.rule: (score.true_positives, score.false_positives, score.false_negatives, score.true_negatives)
        for score in (found.detectors, *found.baselines, *found.rules)
    }
    assert cells == {
        "detectors": (1, 0, 0, 2), "always": (1, 2, 0, 0), "never": (0, 0, 1, 2), "longer": (1, 0, 0, 2),
        "sameInARow": (1, 1, 0, 1), "abab": (0, 0, 1, 2), "anyRepeat": (1, 1, 0, 1),
    }  # fmt: skip


@pytest.mark.parametrize("onset", [1, b.entry_id("s", 1)], ids=["by index", "by id"])
def test_exact_onset_is_no_distance(onset: str | int) -> None:
    """An onset may be named by the index of an entry or by a record id."""
    found = backtest(_labels(s={"loop": True, "onset": onset}), _sessions(s=LOOP)).onset
    assert (found.measured, found.good, found.median, found.largest, found.off) == (1, 1, 0, 0, [])


def test_onset_is_off_by_entries_and_direction() -> None:
    """An alarm that starts two entries after the labelled onset is two entries off."""
    found = backtest(_labels(s={"loop": True, "onset": 0}), _sessions(s=LOOP)).onset
    assert (found.measured, found.good, found.largest) == (1, 0, 1)
    assert [(each.labelled, each.given, each.entries) for each in found.off] == [(0, b.entry_id("s", 1), 1)]


@pytest.mark.requirement("SC-002")
def test_alarm_at_the_third_iteration_is_in_time() -> None:
    """The delay counts entries from the third iteration; an alarm there is in time, one after a mislabelled earlier is not."""
    labels = _labels(
        good={"loop": True, "thirdIteration": b.entry_id("good", 3)},
        late={"loop": True, "thirdIteration": b.entry_id("late", 2)},
        lost={"loop": True, "thirdIteration": "no such record"},
    )  # fmt: skip
    found = backtest(labels, _sessions(good=LOOP, late=LOOP, lost=LOOP)).delay
    assert (found.measured, found.good, found.median, found.largest) == (2, 1, 0.5, 1)
    assert [(each.session, each.entries) for each in found.off] == [("late", 1)]


def test_stalls_are_judged_at_the_labelled_second() -> None:
    """``now`` counts from the session's first time: the same run is fine early and hangs later."""
    story = [*WORK, "Bash:wait -> slow"]
    sessions = _sessions(early=story, late=story)
    found = backtest(_labels(early={"loop": False, "now": 5}, late={"loop": True, "now": 5000}), sessions)
    assert (found.detectors.true_positives, found.detectors.true_negatives) == (1, 1)


def test_measures_that_divide_by_zero_are_null() -> None:
    """No alarm has no precision, no loop has no recall; a perfect table has MCC 1."""
    none = Score(rule="", true_positives=0, false_positives=0, false_negatives=0, true_negatives=3)
    assert (none.precision, none.recall, none.f1, none.mcc) == (None, None, None, None)
    perfect = Score(rule="", true_positives=2, false_positives=0, false_negatives=0, true_negatives=3)
    assert (perfect.precision, perfect.recall, perfect.f1, perfect.mcc) == (1, 1, 1, 1)
    mixed = Score(rule="", true_positives=4, false_positives=1, false_negatives=3, true_negatives=19)
    assert (mixed.precision, mixed.recall, mixed.f1, mixed.mcc) == (0.8, 0.5714, 0.6667, 0.5883)


def _folder(place: Path, labels: object, *, log: str = "log.jsonl") -> Path:
    records = [*b.steps("loop", LOOP), *b.steps("work", WORK)]
    (place / log).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    (place / "labels.json").write_text(labels if isinstance(labels, str) else json.dumps(labels), encoding="utf-8")
    return place


def test_folder_is_read_and_left_as_it_was(tmp_path: Path) -> None:
    """Logs of a folder are imported elsewhere; damage is said, and the folder keeps its files alone."""
    _folder(tmp_path, [{"session": "loop", "loop": True, "why": "kept by the labeller"}, {"session": "work", "loop": False}])
    with (tmp_path / "log.jsonl").open("ab") as log:
        log.write(b'{"v":1,"kind":"entry","session":"work","id":"to')
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    found, notes = backtest_folder(tmp_path, {})
    assert (found.detectors.true_positives, found.detectors.true_negatives, found.scored) == (1, 1, 2)
    assert notes == ["passed over in the logs: 1 damaged range"]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_settings_apply(tmp_path: Path) -> None:
    """The thresholds of the configuration are what is measured."""
    folder = _folder(tmp_path, [{"session": "loop", "loop": True}])
    found, _ = backtest_folder(folder, {"disabled": ["repetition"]})
    assert found.detectors.false_negatives == 1


@pytest.mark.parametrize(
    "labels",
    ["", "[", "{}", '"loop"', "[1]", "[[]]", '[{"loop": true}]', '[{"session": 3}]', '[{"session": "a", "eval": "later"}]',
     '[{"session": "a", "now": Infinity}]', '[{"session": "a", "onset": [1]}]', '[{"session": "a"}, {"session": "a"}]',
     "[" * 100_000, '[{"session": "a", "loop": "perhaps"}]'],
)  # fmt: skip
def test_labels_that_cannot_be_used_are_refused(labels: str, tmp_path: Path) -> None:
    """Whatever is wrong with the labels, the answer is an error that names the file."""
    with pytest.raises(InvalidInput, match=r"labels\.json"):
        read_labels(_folder(tmp_path, labels))


def test_missing_folder_and_missing_labels_are_not_found(tmp_path: Path) -> None:
    """Neither a folder that is not there nor one without labels is an empty backtest."""
    for folder in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(NotFound) as caught:
            read_labels(folder)
        assert isinstance(caught.value, CtxmgrError)
