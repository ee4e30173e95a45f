"""What is wrong with a run now, judged from its end: the same findings that last as in a replay of the whole of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxmgr.history import detection
from ctxmgr.history import detection as tail
from ctxmgr.history.ingest import import_logs
from ctxmgr.log.codec import Record
from ctxmgr.store import Store, open_store
from ctxmgr.types.finding import Finding
from tests.builders import at, entry, event, result

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Open one store, which each test gives sessions of its own."""
    opened = open_store(str(tmp_path_factory.mktemp("tail") / "history.db"), create=True)
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def _short_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at 64 entries first, so that short histories are long ones."""
    monkeypatch.setattr(tail, "FIRST_LOOK", 64)


def lasting(store: Store, session: str, *, whole: bool, now: str | None = None) -> list[Finding]:
    """Return the findings that last, by a replay of the whole session or of its end."""
    key = store.sessions.key(session)
    assert key is not None
    found = detection.judge(store, key, {}, now)[0] if whole else detection.judge_now(store, key, {}, now)
    return [finding for finding in found.findings if finding.resolved is None]


def same(store: Store, session: str, records: list[Record], now: str | None = None) -> list[Finding]:
    """Append a history, compare both judgements of it, and return the findings."""
    store.append(records)
    found = lasting(store, session, whole=True, now=now)
    assert lasting(store, session, whole=False, now=now) == found
    return found


def work(session: str, start: int, count: int, agents: tuple[str, ...] = ("coder",)) -> list[Record]:
    """Return so many steps that each bring something new, the agents taking turns."""
    records: list[Record] = []
    for number in range(start, start + count):
        action = ("Read", "Bash", "Edit")[number % 3]
        records.append(entry(session, number, action, {"path": f"src/{number}.py"}, agent=agents[number % len(agents)]))
        records.append(result(session, number, f"content of {number}"))
    return records


def loop(session: str, start: int, rounds: int, period: int, *, agent: str = "coder", error: bool = False) -> list[Record]:
    """Return rounds of the same steps, the last of which fails or not."""
    records: list[Record] = []
    for number in range(start, start + rounds * period):
        step = (number - start) % period
        records.append(entry(session, number, "Bash", {"command": f"make step{step}"}, agent=agent))
        failed: dict[str, Any] = {"status": "error", "error": {"type": "E", "message": "no rule to make it"}}
        records.append(result(session, number, None if error else f"same {step}", **(failed if error else {})))
    return records


@pytest.mark.parametrize("error", [False, True])
@pytest.mark.parametrize("period", [1, 2, 5, 12])
@pytest.mark.parametrize("rounds", [3, 7, 30])
def test_a_loop_at_the_end(store: Store, rounds: int, period: int, error: bool) -> None:
    """A loop of whatever length and period is found as it is, its first step and its count included."""
    session = f"loop-{rounds}-{period}-{error}"
    found = same(store, session, [*work(session, 0, 250), *loop(session, 250, rounds, period, error=error)])

    assert found
    assert found[0].evidence["indexes"]["first"] == 250


def test_a_loop_that_is_all_there_is(store: Store) -> None:
    """A run that has done nothing else from its beginning is replayed whole."""
    found = same(store, "whole", loop("whole", 0, 200, 2))

    assert found[0].count == 200


def test_nothing_wrong(store: Store) -> None:
    """A long healthy run is healthy, also where a loop was left long ago."""
    assert same(store, "healthy", work("healthy", 0, 300)) == []
    assert same(store, "left", [*loop("left", 0, 5, 2), *work("left", 10, 300)]) == []


@pytest.mark.parametrize("before", [1, 30, 200, 290])
def test_a_person_speaks(store: Store, before: int) -> None:
    """A word of a person ends what was before it, wherever in or before the end of the run it was said."""
    session = f"person-{before}"
    number = 300 - before
    said = event(session, 0, "user_message", {"text": "go on"}, after=number, agent="user")
    records = [*work(session, 0, 50), *loop(session, 50, 125, 2)]
    place = next(place for place, record in enumerate(records) if record.get("id") == f"{session}-e{number:04}")
    found = same(store, session, [*records[:place], said, *records[place:]])

    assert [finding.count for finding in found] == ([125] if before > 250 else [min(before, 250) // 2] if before > 5 else [])


@pytest.mark.parametrize("opened", [0, 100, 299])
def test_an_open_call(store: Store, opened: int) -> None:
    """A call without a result is open however long ago it was made; that a run ended within it is judged the same."""
    session = f"open-{opened}"
    records = [record for record in work(session, 0, 300) if record.get("entry") != f"{session}-e{opened:04}"]
    same(store, session, records)
    found = same(store, session, [], now=at(10_000))

    assert bool(found)


def test_a_launcher_that_waits(store: Store) -> None:
    """A launcher that waits since long before the end for an agent that goes in circles is known as waiting."""
    records = [entry("waits", 0, "Task", {"prompt": "look"}, agent="main"), *work("waits", 1, 200)]
    same(store, "waits", [*records, *loop("waits", 201, 10, 2)])
    found = same(store, "waits", [], now=at(100_000))

    assert {finding.severity for finding in found} == {"loop", "hung"}


@pytest.mark.parametrize("error", [False, True])
def test_without_times(store: Store, error: bool) -> None:
    """Without timestamps the same is found."""
    session = f"untimed-{error}"
    records = [*work(session, 0, 200), *loop(session, 200, 40, 3, error=error)]
    found = same(store, session, [{name: value for name, value in record.items() if name != "ts"} for record in records])

    assert found


@pytest.mark.parametrize("count", [3, 40, 400])
def test_words_that_repeat(store: Store, count: int) -> None:
    """A monologue is counted from its first word on, also where that is a message near the beginning of the look."""
    session = f"words-{count}"
    said = [event(session, n, "agent_message_chunk", {"text": "Let me check."}, after=n, agent="coder") for n in range(count)]
    talk = [event(session, 1_000 + n, "message", {"text": "Let me check."}, after=n, agent="coder") for n in range(count)]
    found = same(store, session, [*work(session, 0, 200), *said, *talk])

    assert found


def test_words_between_steps(store: Store) -> None:
    """Two agents who say the same to each other for longer than the look are counted from the first word on."""
    records = work("pong", 0, 20)
    for number in range(300):
        records.append(event("pong", number, "message", {"text": f"no, you {number % 2}"}, after=20, agent=f"a{number % 2}"))
        if number % 3 == 0:
            records += [
                entry("pong", 20 + number, "Read", {"path": f"n{number}"}, agent="watcher"),
                result("pong", 20 + number, f"new {number}"),
            ]
    same(store, "pong", records)


def test_the_recorded_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every recorded run of the project is judged the same from its end."""
    monkeypatch.setattr(tail, "FIRST_LOOK", 256)
    opened = open_store(str(tmp_path / "history.db"), create=True)
    try:
        import_logs(opened, [FIXTURES / "logs", FIXTURES / "demo"], home=tmp_path, environment={})
        assert opened.sessions.count(None) > 5
        for _, view in opened.sessions.page(0, None):
            whole, end = (lasting(opened, view.session, whole=each) for each in (True, False))
            assert end == whole
    finally:
        opened.close()


PARTS = st.lists(
    st.tuples(st.sampled_from(["loop", "errors", "person", "quiet"]), st.integers(1, 5), st.integers(2, 25)),
    min_size=1,
    max_size=6,
)
_taken = iter(range(10**9))


@settings(max_examples=10)
@given(parts=PARTS, agents=st.integers(1, 3), look=st.integers(32, 64), last=st.integers(0, 3))
def test_random_histories(store: Store, parts: list[tuple[str, int, int]], agents: int, look: int, last: int) -> None:
    """Loops, errors, words of a person and work in any order, with work between, are judged the same from any end."""
    session = f"random-{next(_taken)}"
    names = tuple(f"a{number}" for number in range(agents))
    records: list[Record] = []
    number = 0
    for place, (kind, period, rounds) in enumerate(parts):
        if kind == "person":
            records.append(event(session, place, "user_message", {"text": f"do {place}"}, after=number, agent="user"))
        elif kind in ("loop", "errors"):
            records += loop(session, number, rounds, period, agent=names[rounds % agents], error=kind == "errors")
            number += rounds * period
        if place < len(parts) - 1:
            records += work(session, number, 12 * agents, names)
            number += 12 * agents
    records += work(session, number, last, names)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tail, "FIRST_LOOK", look)
        same(store, session, [*records, *([] if number + last else work(session, 0, 1))])
