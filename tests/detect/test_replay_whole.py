"""A replay that nobody asks step by step finds what the same observations find one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.replay import session_observations
from ctxmgr.types.plain_records import build
from tests.builders import at

_SETTINGS = settings(max_examples=300, deadline=None)

entries = st.fixed_dictionaries(
    {
        "kind": st.just("entry"),
        "agent": st.sampled_from(("one", "two", None)),
        "process": st.sampled_from(("p", "p", "q")),
        "action": st.sampled_from(("Read", "Bash", "Task", "message", "finish", "AskUser")),
        "input": st.sampled_from((None, {"command": "ls"}, {"command": "make all"}, {"path": "a", "timeout": 5})),
        "status": st.sampled_from((None, "ok", "ok", "ok", "error", "interrupted")),
        "output": st.sampled_from(("same", "same", "running", None)),
        "parent": st.sampled_from((None, None, None, "e0", "e1")),
        "turn": st.sampled_from((None, None, None, 1, 2)),
        "step": st.sampled_from((None, None, None, "x")),
    }
)
results = st.fixed_dictionaries(
    {"kind": st.just("result"), "back": st.integers(1, 6), "status": st.sampled_from(("ok", "error", "interrupted"))}
)
kinds = ("message", "thought", "user_message", "nudge", "heartbeat", "compaction", "retry", "interrupt", "waiting")
said = st.sampled_from(("I will try again.", "I will try again.", "Done", ""))
events = st.fixed_dictionaries(
    {"kind": st.just("event"), "type": st.sampled_from(kinds), "agent": st.sampled_from(("one", "two", None)), "text": said}
)
happenings = st.lists(st.tuples(st.one_of(entries, entries, entries, results, events), st.integers(1, 3)), max_size=40)


def recorded(told: list[tuple[dict[str, Any], int]]) -> list[dict[str, Any]]:
    """Return the records of a session in which each thing happens so many times on end."""
    made: list[dict[str, Any]] = []
    for fields, times in told:
        for _ in range(times):
            place = len(made)
            rest = {name: value for name, value in fields.items() if name not in ("kind", "back", "text")}
            if fields["kind"] == "result":
                made.append(build("result", "s", at(place), entry=f"e{place - fields['back']}", output="same", **rest))
            elif fields["kind"] == "event":
                made.append(build("event", "s", at(place), id=f"e{place}", data={"text": fields["text"]}, **rest))
            else:
                made.append(build("entry", "s", at(place), id=f"e{place}", **rest))
    return made


@pytest.mark.slow
@_SETTINGS
@given(happenings, st.booleans(), st.sampled_from((None, 10.0, 1e6)))
def test_a_replay_finds_the_same_as_a_watch(
    told: list[tuple[dict[str, Any], int]], distinct: bool, later: float | None
) -> None:
    """Findings are equal in every field, of stalls too, whoever acts and however results come."""
    seen = list(session_observations(recorded(told), distinct=distinct))
    watch, replay = Monitor(), Monitor()
    for observation in seen:
        watch.observe(observation)
    replay.observe_all(seen)
    now = None if later is None else max((each.at for each in seen if each.at is not None), default=0.0) + later
    assert replay.findings(now, live=later is not None) == watch.findings(now, live=later is not None)
    assert replay.notes == watch.notes


def test_entries_that_come_with_their_result_are_loops_too() -> None:
    """The shorter way leads to the same finding as the longer one."""
    told = {"kind": "entry", "agent": "one", "action": "Bash", "input": {"command": "ls"}, "status": "ok", "output": "same"}
    monitor = Monitor()
    monitor.observe_all(session_observations(recorded([(told, 4)])))
    (finding,) = monitor.findings()
    assert (finding.kind, finding.count, finding.raised_at) == ("repetition", 4, "e2")
