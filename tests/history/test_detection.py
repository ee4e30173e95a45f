"""Verdicts over stored sessions: which clock stalls are judged by, what a page of sessions tells, what is shown."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.config import Config
from ctxmgr.errors import InvalidInput, NotFound
from ctxmgr.history import detection
from ctxmgr.recorder import Recorder
from ctxmgr.store import Store
from ctxmgr.store.repositories.bookkeeping import FileState
from ctxmgr.types.finding import SessionVerdict
from ctxmgr.types.operations import DetectRequest, DetectResponse, RecoverRequest, SessionsRequest
from ctxmgr.workspace import Workspace
from tests.builders import START, at, build, entry, entry_id, event, result, write

LOOP = ["Read:a", *["!Bash:make -> no rule to make it"] * 4]


def detect(store: Store, settings: dict[str, Any] | None = None, **request: Any) -> DetectResponse:
    """Return what is detected in a store."""
    return Workspace(store, Config(detect=settings or {})).detect(DetectRequest(**request))


def sessions(store: Store, **request: Any) -> dict[str, tuple[str | None, int | None]]:
    """Return verdict and number of findings of each listed session."""
    found = detection.sessions(store, SessionsRequest(**request), {})
    return {view.session: (view.verdict, view.findings) for view in found.sessions}


@pytest.mark.requirement("FR-001", "R-06")
def test_a_loop_is_found_with_its_entries(store: Store) -> None:
    """The finding names its members and its last progress, and the answer brings those entries along."""
    write(store, "s", LOOP)
    found = detect(store)
    finding = found.verdicts[0].findings[0]

    assert (found.status, found.verdicts[0].verdict, finding.count) == ("ok", "loop", 4)
    assert finding.members == [entry_id("s", number) for number in (1, 2, 3, 4)]
    assert finding.last_progress == entry_id("s", 0)
    assert set(found.entries) == {entry_id("s", number) for number in range(5)}
    assert all(found.entries[name].id == name for name in found.entries)


@pytest.mark.parametrize("others", [["e10"], ["e10", "e11"]])
def test_only_entries_of_exactly_that_id_are_shown(store: Store, monkeypatch: pytest.MonkeyPatch, others: list[str]) -> None:
    """A finding that names what is no entry brings no other entry along whose id merely begins the same."""
    write(store, "s", LOOP)
    finding = detect(store).verdicts[0].findings[0].model_copy(update={"members": ["e1"], "last_progress": "e1"})
    store.append([entry("s", 9, id=name) for name in others])
    verdict = SessionVerdict(session="s", verdict="loop", findings=[finding])

    def judge(*_: object) -> tuple[SessionVerdict, list[str]]:
        return verdict, []

    monkeypatch.setattr(detection, "judge", judge)

    assert detect(store).entries == {}


def test_an_empty_store(store: Store) -> None:
    """Nothing recorded is an empty answer; a session that does not exist is an error."""
    assert detect(store).status == "empty"
    assert detect(store, all_sessions=True).verdicts == []
    with pytest.raises(NotFound):
        detect(store, session="nowhere")


def test_every_session(store: Store) -> None:
    """All sessions are judged, each by itself, latest activity first."""
    write(store, "old", ["Read:a"])
    write(store, "stuck", LOOP)
    found = detect(store, all_sessions=True)

    assert {verdict.session: verdict.verdict for verdict in found.verdicts} == {"stuck": "loop", "old": "healthy"}


@pytest.mark.requirement("FR-003", "SC-003")
@pytest.mark.parametrize(
    ("now", "verdict"),
    [
        pytest.param(None, "hung", id="the log ends inside the call"),
        pytest.param(at(5), "healthy", id="just begun"),
        pytest.param(at(500), "warn", id="within its limit, without a sign of life"),
        pytest.param(at(700), "hung", id="beyond its limit"),
    ],
)
def test_now_is_what_stalls_are_judged_against(store: Store, now: str | None, verdict: str) -> None:
    """An open call is judged against the given time, or, where no process runs, against the end of the log."""
    write(store, "s", ["Read:a", "?Bash:make"])

    assert detect(store, now=now).verdicts[0].verdict == verdict


def test_now_by_the_clock(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """``now`` as a word is the store's clock; a text that is no time is refused with an example."""
    write(store, "s", ["Read:a", "?Bash:make"])
    monkeypatch.setattr(store, "clock", lambda: START + 60)
    assert detect(store, now="now").verdicts[0].verdict == "healthy"

    with pytest.raises(InvalidInput) as caught:
        detect(store, now="soon")
    assert "2026" in str(caught.value.hint)


def test_a_live_session_is_judged_by_the_clock(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a recorder holds the session open, an open call is in flight and not lost."""
    write(store, "s", ["Read:a", "?Bash:make"])
    monkeypatch.setattr(store, "is_live", {"s": True}.get)
    monkeypatch.setattr(store, "clock", lambda: START + 60)
    assert detect(store).verdicts[0].verdict == "healthy"

    monkeypatch.setattr(store, "clock", lambda: START + 900)
    assert detect(store).verdicts[0].verdict == "hung"


@pytest.mark.parametrize(
    ("clock", "written", "running"),
    [
        pytest.param(60, 55, True, id="written to a moment ago"),
        pytest.param(60, -5_000, False, id="left alone for long"),
        pytest.param(5_000, 4_990, False, id="an old log that was copied just now"),
        pytest.param(60, None, False, id="the file is gone"),
    ],
)
def test_an_imported_session_that_runs(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: float, written: float | None, running: bool
) -> None:
    """An imported run counts as going on while its file is written to by the run itself, not by copying it."""
    write(store, "s", ["Read:a", "?Bash:make"])
    source = tmp_path / "run.jsonl"
    source.write_text("{}\n")
    store.imported.remember(source, "claude-code", FileState.read(source), "s", {})
    if written is None:
        source.unlink()
    else:
        os.utime(source, (START + written, START + written))
    monkeypatch.setattr(store, "clock", lambda: START + clock)

    assert detect(store).verdicts[0].verdict == ("healthy" if running else "hung")


@pytest.mark.parametrize("open_now", [True, False])
def test_an_imported_log_of_our_own_is_judged_as_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_now: bool
) -> None:
    """Its recorder's lock tells whether it runs, however fresh the file is. A killed run is judged at the end of its log."""
    log = tmp_path / "run.jsonl"
    recorder = Recorder(log, session="s", agent="a")
    recorder.result(recorder.entry("a", "Bash", {"command": "make"}), "ok", output="done")
    if not open_now:
        recorder.end()
        log.write_bytes(b"".join(line for line in log.read_bytes().splitlines(True) if b'"sessionEnd"' not in line))
    verdicts: list[tuple[str, list[str]]] = []
    for target in (log, tmp_path / "h.db"):
        with Workspace.open(str(target), create=True) as workspace:
            if target != log:
                workspace.import_logs([log])
            monkeypatch.setattr(workspace.store, "clock", lambda: time.time() + 600)
            verdicts += [(each.verdict, each.notes) for each in workspace.detect(DetectRequest(all_sessions=True)).verdicts]
    assert verdicts == [("hung" if open_now else "healthy", [])] * 2
    recorder.end()


@pytest.mark.parametrize("imported", [False, True])
@pytest.mark.parametrize("acted", [True, False])
def test_a_run_whose_process_was_killed(tmp_path: Path, imported: bool, acted: bool) -> None:
    """The lock file that a killed process left beside its log says so. Without it nothing is known."""
    log = tmp_path / "run.jsonl"
    recorder = Recorder(log, session="s", agent="a")
    recorder.event("user_message", {"text": "Build it."})
    if acted:
        recorder.entry("a", "Bash", {"command": "make"})
    lock = next((tmp_path / "run.jsonl.live").iterdir())
    name, note = lock, lock.read_bytes()
    recorder.end()
    log.write_bytes(b"".join(line for line in log.read_bytes().splitlines(True) if b'"sessionEnd"' not in line))
    gone: list[object] = []
    for killed in (True, False):
        if killed:
            name.parent.mkdir(exist_ok=True)
            name.write_bytes(note)
        else:
            name.unlink()
        with Workspace.open(str(tmp_path / f"{killed}.db" if imported else log), create=True) as workspace:
            if imported:
                workspace.import_logs([log])
            finding = detection.judge(workspace.store, 1, {}, None)[0].findings[0]
            gone.append(finding.evidence.get("processGone"))
    assert gone == [True, None]


@pytest.mark.parametrize("place", ["run.jsonl", "h.db"])
def test_a_recovery_changes_no_verdict(tmp_path: Path, place: str) -> None:
    """An agent that failed inside a call has ended, before and after somebody asked for help with its session."""
    recorder = Recorder(tmp_path / place, session="s", agent="a")
    recorder.entry("a", "Bash", {"command": "make"})
    recorder.end("failed")
    seen: list[tuple[str, list[str], list[str]]] = []
    for _ in range(3):
        with Workspace.open(str(tmp_path / place)) as workspace:
            verdict = workspace.detect(DetectRequest(all_sessions=True)).verdicts[0]
            seen.append((verdict.verdict, verdict.notes, [each.id for each in verdict.findings]))
            workspace.recover(RecoverRequest(force=True))
    assert seen == [("healthy", ["ended as failed"], [])] * 3


def test_without_times_stalls_are_not_judged(store: Store) -> None:
    """A log without timestamps is judged for loops alone, and the answer says so."""
    store.append([entry("s", 0, "Bash", "make", ts=None), result("s", 0, "x", ts=None), entry("s", 1, "Bash", "x", ts=None)])
    found = detect(store, now=at(9_000))

    assert found.verdicts[0].verdict == "healthy"
    assert found.notes == ["s: no timestamps: stalls are not judged"]


@pytest.mark.requirement("EC-5")
def test_thresholds_are_configuration(store: Store) -> None:
    """A threshold that is too low for a run can be raised, a kind switched off, and a wrong setting is refused."""
    write(store, "s", LOOP)
    for settings in ({"repeat_rounds": 6, "error_same_rounds": 6}, {"disabled": ["repetition", "errorRepetition"]}):
        assert detect(store, settings).verdicts[0].verdict == "healthy"
    with pytest.raises(InvalidInput):
        detect(store, {"repeat_round": 6})


@pytest.mark.requirement("FR-006", "SC-013", "R-08")
def test_a_person_resolves(store: Store) -> None:
    """A loop that a person ended is still told, as resolved, and the verdict does not speak of it."""
    write(store, "s", [*LOOP, "> stop that", "Read:b"])
    verdict = detect(store).verdicts[0]

    assert verdict.verdict == "healthy"
    assert [finding.resolved for finding in verdict.findings] == ["user"]


def test_sessions_are_judged_on_request(store: Store) -> None:
    """A page of sessions tells each one's verdict and open findings, or nothing where judging is not wanted."""
    write(store, "fine", ["Read:a"])
    write(store, "stuck", LOOP)
    write(store, "freed", [*LOOP, "> stop that"])

    assert sessions(store) == {"fine": ("healthy", 0), "stuck": ("loop", 1), "freed": ("healthy", 0)}
    assert set(sessions(store, judge=False).values()) == {(None, None)}


def test_last_progress_of_a_session(store: Store) -> None:
    """A stuck session's last progress is the result before its loop, a healthy one's the last result."""
    write(store, "stuck", LOOP)
    write(store, "fine", ["Read:a", "Read:b"])
    views = {view.session: view for view in detection.sessions(store, SessionsRequest(), {}).sessions}

    assert views["stuck"].last_progress == at(0.5)
    assert views["fine"].last_progress == views["fine"].last == at(1.5)


@pytest.mark.requirement("SC-009")
def test_sessions_of_an_agent_are_paged(store: Store) -> None:
    """The page of an agent's sessions counts all of them, so that the last page is known as the last."""
    for number in range(5):
        write(store, f"s{number}", ["Read:a"], agent="coder" if number % 2 == 0 else "planner")
    pages = [detection.sessions(store, SessionsRequest(agent="coder", offset=offset, limit=2), {}).page for offset in (0, 2)]

    assert [(page.total, page.has_more) for page in pages] == [(3, True), (3, False)]
    assert detection.sessions(store, SessionsRequest(agent="nobody"), {}).status == "empty"


def test_events_alone(store: Store) -> None:
    """A session in which a person was answered is no stall; one in which nobody answered and nothing was done is hung."""
    store.append([event("s", 0, "user_message", {"text": "hello"}), event("s", 1, "message", {"text": "hi"})])
    store.append([event("mute", 0, "user_message", {"text": "hello"})])

    assert sessions(store) == {"s": ("healthy", 0), "mute": ("hung", 1)}


@pytest.mark.requirement("FR-003")
def test_a_run_that_never_begins_is_hung(store: Store) -> None:
    """A process that began and recorded nothing is a stall after two minutes, and where it is gone."""
    store.append([build("session", "s", at(0), process="p")])

    assert [detect(store, now=now).verdicts[0].verdict for now in (at(110), at(125), None)] == ["healthy", "hung", "hung"]
    assert "nothing was ever done" in detect(store).verdicts[0].findings[0].reason
    store.append([build("sessionEnd", "s", at(9), outcome="completed")])
    assert detect(store).verdicts[0].verdict == "healthy"


@pytest.mark.parametrize(("steps", "end", "notes"), [
    (["> go", "Edit:a -> ok"], "completed", []),
    (["> go", *(f"!Edit:a{n} -> no {n}x of {n}" for n in range(5))], None, ["5 failures in a row"]),
    (["> go", "!Edit:a -> x", "!Read:b -> y"], None, []),
    (["> go", *(f"!Edit:a{n} -> no {n}x of {n}" for n in range(5)), "Read:b -> fine"], None, []),
    (["> go"], None, ["no action recorded"]),
    (["> go", "Edit:a -> ok"], "failed", ["ended as failed"]),
])  # fmt: skip
def test_healthy_is_said_of_what_is(steps: list[str], end: str | None, notes: list[str], store: Store) -> None:
    """Failures in a row, an end in failure and a session without actions are named, though they are no finding."""
    write(store, "s", steps)
    if end is not None:
        store.append([build("sessionEnd", "s", at(99), outcome=end)])
    workspace = Workspace(store, Config())
    verdict = workspace.detect(DetectRequest()).verdicts[0]
    row = workspace.sessions(SessionsRequest()).sessions[0]

    if verdict.verdict == "healthy":
        assert (verdict.notes, verdict.summary) == (notes, ", ".join(["no loop found", *notes]) if notes else "healthy")
    assert verdict.notes == notes
    assert row.summary == verdict.summary


def test_an_end_in_an_error_is_named(store: Store) -> None:
    """An error behind which nothing came is told; one of a hook, or one that the run got over, is not."""
    for session, data, after in (
        ("ended", {"text": "API error 529"}, []), ("hook", {"reason": "hookFailed"}, []),
        ("over", {"text": "API error 529"}, [build("event", "over", at(9), id="m", type="message", data="done")]),
    ):  # fmt: skip
        write(store, session, ["> go", "Edit:a -> ok"])
        store.append([build("event", session, at(8), id=f"{session}-error", type="error", data=data), *after])
    found = Workspace(store, Config()).detect(DetectRequest(all_sessions=True)).verdicts

    assert {each.session: each.notes for each in found} == {"ended": ["ended in an error"], "hook": [], "over": []}


def test_a_session_without_a_title_has_that_of_its_task(store: Store) -> None:
    """Only foreign logs name their sessions; of our own the task tells more than the folder."""
    store.append([event("s", 0, "user_message", {"text": "Make the importer\n  pass."}), entry("s", 1), result("s", 1)])

    assert detect(store).verdicts[0].title == "Make the importer pass."
