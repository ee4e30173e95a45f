"""Records shown one at a time say the same as the whole log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.detect.replay import session_observations
from ctxmgr.history.live.monitor import RecordStream
from ctxmgr.log.codec import Record
from tests import builders as b
from tests.recover import runs

FIXTURES = Path(__file__).parents[3] / "fixtures" / "demo"
CLAUDE = FIXTURES / "claude-code/projects/-home-dev-invoice-tool/7e999fd2-d31f-46eb-9632-55e969fb3852.jsonl"


HISTORIES = {
    "cycle": runs.looped(),
    "hung": runs.hung(),
    "errors": runs.varied(),
    "pong": runs.ping_pong(),
    "late": [b.result("s", 0), *b.steps("s", ["?Bash:a", "?Bash:b"]), b.result("s", 1), b.result("s", 0), b.result("s", 0)],
    "doubled": [*b.steps("s", ["Bash:a -> b"] * 3), *b.steps("s", ["Bash:a -> b"] * 3)],
    "whole": [b.entry("s", 0, status="ok", output="x"), b.event("s", 0, "usage", {}), b.event("s", 1, "nudge")],
}


@pytest.mark.parametrize("name", HISTORIES)
def test_one_at_a_time_is_the_same_as_all_at_once(name: str) -> None:
    """Records shown one by one give the observations that the whole log gives, in the same order."""
    records, feed = HISTORIES[name], RecordStream()
    one_by_one = [seen for record in records for seen in feed.take(record)]
    at_once = list(session_observations(records))

    assert [_bare(seen) for seen in one_by_one] == [_bare(seen) for seen in at_once]
    assert [seen.seq for seen in one_by_one] == sorted(seen.seq for seen in one_by_one)


def _bare(seen: Any) -> dict[str, Any]:
    return {name: getattr(seen, name) for name in seen.__slots__ if name != "seq"}


_VALUES = st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)


@given(st.lists(st.fixed_dictionaries({
    "kind": st.sampled_from(["entry", "result", "event", "sessionEnd", "odd"]), "id": st.sampled_from(["a", "b"]) | _VALUES,
    "entry": st.sampled_from(["a", "b"]) | _VALUES, "status": st.sampled_from([None, "ok", "error"]) | _VALUES,
}), max_size=12))  # fmt: skip
def test_any_records_are_shown_alike(records: list[Record]) -> None:
    """Whatever the records hold, showing them one by one never raises and gives what the whole log gives."""
    feed = RecordStream()
    one_by_one = [seen for record in records for seen in feed.take(record)]

    assert [_bare(seen) for seen in one_by_one] == [_bare(seen) for seen in session_observations(records)]
