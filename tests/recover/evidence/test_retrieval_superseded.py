"""A later record takes the place of an earlier one; a warning is answered only where it is asked for."""

from __future__ import annotations

import pytest

from ctxmgr.recover.evidence.history_reader import HistoryReader
from ctxmgr.recover.evidence.retrieval import superseded_records
from ctxmgr.recover.stuck_request import worst_finding
from ctxmgr.store import Store
from ctxmgr.types.finding import Finding, Scope
from tests.recover.runs import call, said


@pytest.mark.parametrize(("more", "gone"), [({"split": "clean"}, True), ({"offset": 20}, False), ({"task": "other"}, False)])
def test_a_look_up_made_more_precise(store: Store, more: dict[str, object], gone: bool) -> None:
    """The same look-up with more arguments replaces what it gave under the same name; another piece or subject does not."""
    store.append(call("s", 0, "evaluate", {"task": "spam"}, "best model so far: step-4"))
    store.append(call("s", 1, "evaluate", {"task": "spam", **more}, "best model: step-7"))
    rows = HistoryReader(store, "s").entries_before(2, 2)
    assert bool(superseded_records([(row, str(row.output), ()) for row in rows])) is gone


def test_a_lasting_warning_is_answered_when_asked_for() -> None:
    """A warning is the finding only where it is asked for, and only while it lasts."""
    warning = Finding(
        id="f", kind="repetition", severity="warn", period=1, count=3, first="a", last="c", raised_at="c", resolved=None,
        members=["a", "b", "c"], last_progress=None, scope=Scope(agent="coder", process=None), confidence=0.5, reason="r",
        evidence={"identity": "i"},
    )  # fmt: skip
    assert worst_finding([warning]) is None
    assert worst_finding([warning], warned=True) == warning
    assert worst_finding([warning.model_copy(update={"resolved": "progress"})], warned=True) is None


@pytest.mark.parametrize(("shared", "gone"), [(1, False), (2, False), (3, True), (5, True)])
def test_a_correction_speaks_of_most_of_the_same_words(store: Store, shared: int, gone: bool) -> None:
    """What says that a value has changed replaces a record with which it shares three of the five words that are sought."""
    words = ("balancer", "timeout", "seconds", "staging", "cluster")
    store.append(call("s", 0, "Bash", {"command": "show"}, "the timeout is 61s"))
    store.append([said("s", 1, "no longer: the timeout is now 48s", after=0)])
    reader = HistoryReader(store, "s")
    (earlier,), (later,) = reader.entries_before(1, 1), reader.find("longer", 1)

    told = superseded_records(
        [(earlier, str(earlier.output), words), (later, "no longer: the timeout is now 48s", (*words[:shared], "other"))]
    )

    assert list(told) == ([earlier.id] if gone else [])
