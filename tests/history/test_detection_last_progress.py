"""Last progress: one answer, whoever asks, and the one that can be read off the records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxmgr.config import Config
from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.history import detection
from ctxmgr.history.ingest import import_logs
from ctxmgr.history.live.monitor import RecordStream
from ctxmgr.log.codec import Record
from ctxmgr.log.ids import format_time, parse_time
from ctxmgr.store import Store, open_store
from ctxmgr.types.finding import Finding
from ctxmgr.types.operations import DetectRequest, RecoverRequest, SessionsRequest
from ctxmgr.types.view import SessionView
from ctxmgr.workspace import Workspace
from tests.builders import at, entry_id, event, steps, write

FIXTURES = Path(__file__).parents[2] / "fixtures"
PINGS = ["Bash:ping -> no answer"] * 4


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Open one store, which each test gives sessions of its own."""
    opened = open_store(str(tmp_path_factory.mktemp("progress") / "history.db"), create=True)
    yield opened
    opened.close()


def succeeded(records: Sequence[Record]) -> list[tuple[int, str, str | None]]:
    """Return place, entry and time of every result that says ok, as the records alone tell it."""
    found: list[tuple[int, str, str | None]] = []
    for place, record in enumerate(records):
        if record.get("status") == "ok" and record["kind"] in ("entry", "result"):
            name = record["id"] if record["kind"] == "entry" else record["entry"]
            found.append((place, name, record.get("ts")))
    return found


def expected(finding: Finding, records: Sequence[Record]) -> str | None:
    """Return the last entry that had succeeded before the finding's first member, or of a stall that lasts at all."""
    first = next(place for place, record in enumerate(records) if record.get("id") == finding.first)
    until = len(records) if finding.kind == "hung" else first
    return next((name for place, name, _ in reversed(succeeded(records)) if place < until), None)


def listed(store: Store, session: str, agent: str | None) -> SessionView:
    """Return the session's row in the list of the sessions of an agent."""
    found = Workspace(store, Config()).sessions(SessionsRequest(agent=agent, limit=1000))
    (view,) = [each for each in found.sessions if each.session == session]
    return view


def agree(store: Store, session: str, now: str | None = None) -> None:
    """Ask everybody what the last progress of a session and of each of its findings is."""
    key = store.sessions.key(session)
    assert key is not None
    records = list(store.sessions.records(key))
    (verdict,) = Workspace(store, Config()).detect(DetectRequest(session=session, now=now)).verdicts
    moment = None if now is None else parse_time(now)
    live, feed = Monitor(DetectSettings()), RecordStream()
    for record in records:
        for seen in feed.take(record):
            live.observe(seen)
    told = {each.id: each.last_progress for each in live.findings(moment, live=now is not None)}
    for finding in verdict.findings:
        assert told[finding.id] == finding.last_progress
        if finding.kind != "recoveryLoop" and (finding.kind != "hung" or finding.resolved is None):
            assert finding.last_progress == expected(finding, records)
    lasting = [each for each in verdict.findings if each.resolved is None]
    done = succeeded(records)
    last = lasting[0].last_progress if lasting else done[-1][1] if done else None
    assert (live.last_progress.id if live.last_progress else None) == last
    at_end = detection.judge_now(store, key, {}, now)
    assert [each.last_progress for each in at_end.findings if each.resolved is None] == [each.last_progress for each in lasting]
    if now is None:
        view = listed(store, session, next((each["agent"] for each in records if each["kind"] == "entry"), None))
        moments = {name: parse_time(ts) for _, name, ts in done}
        wanted = moments.get(last or "")
        assert view.last_progress == (None if wanted is None else format_time(wanted))


def test_what_a_person_says_takes_no_progress_back(store: Store) -> None:
    """Three reads, a word of a person and four pings: the third read is the last progress, and `recover` says the same."""
    write(store, "told", ["Read:a", "Read:b", "Read:c", "> go on", *PINGS])
    agree(store, "told")
    found = Workspace(store, Config()).detect(DetectRequest(session="told")).verdicts[0].findings[0]
    answer = Workspace(store, Config()).recover(RecoverRequest(session="told"))

    assert found.last_progress == entry_id("told", 2)
    assert answer.continuation is not None
    assert answer.continuation.loop is not None
    assert answer.continuation.loop.last_progress == entry_id("told", 2)


def test_a_loop_from_the_first_step_has_none_before_it(store: Store) -> None:
    """Nothing succeeded before it, so nobody names anything, and a page of sessions shows no time either."""
    write(store, "first", ["!Read:a -> gone", *PINGS])
    agree(store, "first")
    (view,) = [each for each in Workspace(store, Config()).sessions(SessionsRequest()).sessions if each.session == "first"]

    assert view.last_progress is None


def test_progress_of_another_agent_counts(store: Store) -> None:
    """What the planner achieved is the last progress of a session in which the coder then only goes round."""
    write(store, "two", ["Read:plan"], agent="planner")
    write(store, "two", PINGS, agent="coder")
    agree(store, "two")

    assert Workspace(store, Config()).detect(DetectRequest(session="two")).verdicts[0].findings[0].last_progress == entry_id(
        "two", 0
    )


def test_a_failure_that_says_ok_is_none(store: Store) -> None:
    """A command that reports an exit code above 0 is no progress, though its call went well."""
    records = steps("code", ["Read:a", "Bash:make", *PINGS])
    records[3]["output"] = {"exit_code": 2}
    store.append(records)

    assert Workspace(store, Config()).detect(DetectRequest(session="code")).verdicts[0].findings[0].last_progress == entry_id(
        "code", 0
    )


def test_progress_before_the_end_that_is_looked_at(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only the end of a long session is replayed, what came before it is looked for further back."""
    monkeypatch.setattr(detection, "FIRST_LOOK", 16)
    failures = [f"!Read:f{number} -> {'xyzuvw'[number % 6] * 9} {number * 7919}" for number in range(60)]
    write(store, "long", ["Read:a", *failures, *PINGS])
    agree(store, "long")


@pytest.mark.parametrize("each", [9, pytest.param(1, marks=pytest.mark.slow)], ids=["each ninth", "all"])
def test_all_agree_on_real_logs(tmp_path: Path, each: int) -> None:
    """On every log among the fixtures, now and at the end of the log."""
    store = open_store(str(tmp_path / "logs.db"), create=True)
    import_logs(store, [FIXTURES / "demo", FIXTURES / "logs"], home=tmp_path, environment={})
    sessions = [view.session for _, view in store.sessions.page(0, None)]
    assert len(sessions) > 5
    for session in sessions[::each]:
        agree(store, session)
    store.close()


WORDS = st.sampled_from(
    ["Read:a -> x", "Read:b -> y", "Read:c", "!Bash:make -> broken", "!Bash:test", "?Bash:wait", "> go on", "Edit:a -> done"]
)
RUNS = st.lists(st.tuples(WORDS, st.integers(1, 6), st.sampled_from(["coder", "planner"])), min_size=1, max_size=14)
_sessions = iter(range(1_000_000))


@pytest.mark.slow
@settings(max_examples=120)
@given(runs=RUNS, nudged=st.booleans(), judged_now=st.booleans())
def test_all_agree_on_random_histories(store: Store, runs: list[tuple[str, int, str]], nudged: bool, judged_now: bool) -> None:
    """Whatever happens, in whatever order, by whomever."""
    session = f"random-{next(_sessions)}"
    for word, times, agent in runs:
        write(store, session, [word] * times, agent=f"{agent} of {session}")
    if nudged:
        store.append([event(session, 900, "nudge", {"text": "try something else"}, after=900)])
        write(store, session, PINGS, agent=f"coder of {session}")
    agree(store, session, at(2_000) if judged_now else None)
