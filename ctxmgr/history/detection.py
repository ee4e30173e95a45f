"""Judge sessions by replaying them through the detectors, or take cached verdicts.

The detectors are imported only if a session must be judged (see `ctxmgr.history.verdict_cache`). A second process reads
ahead in a long session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ctxmgr.detect.replay import RecordFields, record_fields, row_observations
from ctxmgr.errors import InvalidInput, NoHistory, StorageFailed
from ctxmgr.history.query.address import find_named_entry, session_key
from ctxmgr.history.verdict_cache import GONE_AFTER, OWN_FORMAT, STUCK, VerdictCache, is_running
from ctxmgr.log.fast_json import loads
from ctxmgr.log.ids import format_time, parse_time
from ctxmgr.log.record_schema import RECORDS
from ctxmgr.store import Store
from ctxmgr.store.row_mapper import load
from ctxmgr.store.worker_process import (
    Place,
    ProcessLost,
    creation_mark,
    find_place,
    is_of_use,
    run_in_second_process,
    stored_bodies,
    stored_bodies_in_worker,
)
from ctxmgr.types.finding import Finding, Observation, SessionVerdict, find_verdict, verdict_summary
from ctxmgr.types.view import EntryView, SessionView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ctxmgr.detect.settings import DetectSettings
    from ctxmgr.store import Store
    from ctxmgr.types.finding import Observation, Progress
    from ctxmgr.types.operations import (
        DetectRequest,
        DetectResponse,
        ExplainRequest,
        Explanation,
        SessionsRequest,
        SessionsResponse,
    )

__all__ = ["FIRST_LOOK", "GONE_AFTER", "STUCK", "detect_", "explain", "judge", "judge_end", "judge_now", "sessions"]

FIRST_LOOK = 4_000
"""Entries at the end of a session that are replayed first. A shorter session is replayed completely."""

NOTHING_KNOWN = "no record of a known kind"
"""Note on a session that was not judged, because a later version or another program wrote it, or because it holds words alone
and records that were not understood: its actions may be among them."""

UNSEEN = "the detectors were not shown this entry: it has no result, or its action is exempt"
"""Note on an entry on which no detector has an opinion."""

# A factor instead of a fixed step, so that all looks together cost little more than the last one.
_GROWTH = 4  # factor by which each further look reaches back
_MARGIN = 4  # a finding in the first quarter of a look may have begun before it


def judge_end(
    store: Store, key: int, settings: DetectSettings, moment: float | None, *, live: bool
) -> tuple[list[Finding], Progress | None]:
    """Return the findings at the end of a session, and its last progress. Replays no more of the session than necessary.

    Unresolved findings are the same as in a replay of the whole session. For that, the look is extended if a finding begins
    in its first quarter, since it may have begun earlier, or if nothing succeeded before the finding. Findings that were
    resolved earlier are missing.
    """
    from ctxmgr.detect.monitor import Monitor
    from ctxmgr.detect.replay import session_observations

    total = store.sessions.entry_count(key)
    size = FIRST_LOOK
    while True:
        # A page of sessions judges dozens, most of them healthy. For these, the last entries are enough.
        start = max(0, total - size)
        border = start + (total - start) // _MARGIN
        monitor = Monitor(settings)
        # A call from before the look that still has no result may be the one that hangs.
        opened = store.sessions.find_open_entries(key, start)
        early: set[str] = set()
        observations = session_observations(store.sessions.read_records_from(key, start, KINDS), start, opened, distinct=True)
        monitor.observe_all(_collect_early_ids(observations, start, border, early))
        findings = monitor.findings(moment, live)
        progress = monitor.last_progress
        unresolved = [each for each in findings if each.resolved is None]
        # `first` is the id of an entry or a message, so it can't be compared by index. The early ids can.
        is_cut = progress is None or any(each.first in early or each.last_progress is None for each in unresolved)
        if start == 0 or not is_cut:
            return findings, progress
        size *= _GROWTH


def _collect_early_ids(observations: Iterable[Observation], place: int, border: int, early: set[str]) -> Iterator[Observation]:
    """Yield the observations unchanged. Collect the ids of those before the border in ``early``."""
    rest = iter(observations)
    for observation in rest:
        if observation.kind == "start" and observation.index is not None:
            place = observation.index
        if place >= border:
            yield observation
            break
        early.add(observation.id)
        yield observation
    yield from rest


FAILURES_IN_ROW = 3
"""Number of failures in a row at the end of a session from which it is not called healthy (ruling 28)."""

_SHOWN = 24  # number of members at each end of a finding whose entries are returned


def judge_now(store: Store, key: int, settings: Mapping[str, Any], now: str | None) -> SessionVerdict:
    """Return the verdict on a session at its end. Only the necessary part of a long session is replayed.

    Raises:
        InvalidInput: as `judge`.
    """
    return _judge_end(store, key, settings, now)[0]


def _judge_end(store: Store, key: int, settings: Mapping[str, Any], now: str | None) -> tuple[SessionVerdict, Progress | None]:
    from ctxmgr.detect.settings import DetectSettings

    session = store.sessions.name(key)
    moment, live = _moment(store, key, session, now)
    findings, progress = judge_end(store, key, DetectSettings.from_table(settings), moment, live=live)
    return _verdict(store, key, session, findings), progress


def judge(
    store: Store, key: int, settings: Mapping[str, Any] | DetectSettings, now: str | None
) -> tuple[SessionVerdict, list[str]]:
    """Return the verdict on one session, and notes such as "no timestamps: stalls are not judged".

    Raises:
        InvalidInput: ``now`` is not a time, or a setting is wrong.
    """
    from ctxmgr.detect.monitor import Monitor
    from ctxmgr.detect.settings import DetectSettings

    monitor = Monitor(settings if isinstance(settings, DetectSettings) else DetectSettings.from_table(settings))
    monitor.observe_all(replay(store, key))
    session = store.sessions.name(key)
    moment, live = _moment(store, key, session, now)
    findings = monitor.findings(moment, live)
    return _verdict(store, key, session, findings), list(monitor.notes)


def _verdict(store: Store, key: int, session: str, findings: list[Finding]) -> SessionVerdict:
    notes = _list_doubts(store, key)
    findings = [] if NOTHING_KNOWN in notes else [_note_process(store, key, session, finding) for finding in findings]
    verdict = find_verdict(findings)
    title, project = store.sessions.head(key)
    return SessionVerdict(
        session=session, verdict=verdict, findings=findings, notes=notes, summary=verdict_summary(verdict, notes),
        title=title or _task_title(store, key), project=project,
    )  # fmt: skip


def _note_process(store: Store, key: int, session: str, finding: Finding) -> Finding:
    """Return a stall in which a log ends with the fact ``processGone``, if the lock of its process shows that it crashed."""
    if finding.kind != "hung" or not finding.evidence.get("ended"):
        return finding
    ran = store.sessions.processes(key)
    process = finding.scope.process or (ran[-1].process if ran else None)
    if process is None:
        return finding
    from ctxmgr.log.session_lock import is_gone

    logs = [store.location, *(path for path, _, form in store.imported.sources(session) if form == OWN_FORMAT)]
    if not any(is_gone(path, session, process) for path in logs):
        return finding
    return finding.model_copy(update={"evidence": {**finding.evidence, "processGone": True}})


def _task_title(store: Store, key: int) -> str | None:
    """Return the beginning of the task as a person gave it, for a session without a title of its own; None if there is none."""
    from ctxmgr.importers.values import title

    return title(store.sessions.first_words(key)) or None


def _is_unknown(store: Store, key: int) -> bool:
    """Whether a session without entries was written in an unknown form, and has not just begun."""
    # A session that has just begun has only its `session` record. That is no unknown form.
    if not store.sessions.holds(key, tuple(RECORDS)):
        return True
    unknown = store.imported.count_unknown_records(store.sessions.name(key))
    return unknown > store.sessions.event_count(key)


def _list_doubts(store: Store, key: int) -> list[str]:
    """Return the reasons, besides findings, not to call a session healthy (ruling 28)."""
    notes: list[str] = []
    if store.sessions.entry_count(key) == 0:
        notes.append("no action recorded")
        if _is_unknown(store, key):
            notes.append(NOTHING_KNOWN)
    failures = store.sessions.failures_in_row(key)
    if failures >= FAILURES_IN_ROW:
        notes.append(f"{failures:,} failures in a row")
    if store.gaps():
        notes.append("a part of the log was not understood")
    error = store.sessions.last_error(key)
    # A hook is the user's own program, so its failure says nothing about the agent's work.
    if error is not None and error.get("reason") != "hookFailed":
        notes.append("ended in an error")
    elif (ran := store.sessions.processes(key)) and ran[-1].outcome == "failed":
        notes.append("ended as failed")
    return notes


def _moment(store: Store, key: int, session: str, now: str | None) -> tuple[float | None, bool]:
    """Return the time at which stalls are judged (None: the end of the log), and whether the session is running."""
    if now is not None:
        moment = store.clock() if now == "now" else parse_time(now)
        if moment is None:
            raise InvalidInput(f"--now {now!r} is not a time", "use RFC 3339, e.g. 2026-01-22T10:00:00Z")
        return moment, True
    if is_running(store, key, session):
        return store.clock(), True
    return None, False


def detect_(
    store: Store,
    request: DetectRequest,
    settings: Mapping[str, Any],
    progress: Callable[[int, int], None] | None = None,
) -> DetectResponse:
    """Return the verdict on one session or on all. ``progress`` is called with (sessions done, sessions in all)."""
    from ctxmgr.types.operations import DetectResponse

    if request.all_sessions:
        keys = [key for key, _ in store.sessions.keys(0, None)]
    else:
        key = session_key(store, request.session)
        keys = [] if key is None else [key]
    verdicts: list[SessionVerdict] = []
    entries: dict[str, EntryView] = {}
    notes: list[str] = []
    # A verdict for a given time is valid only for that time.
    cache = VerdictCache(store, settings) if request.now is None else None
    try:
        for done, key in enumerate(keys, 1):
            verdict, judge_notes = _judge_cached(store, key, settings, request.now, cache)
            verdicts.append(verdict)
            notes += [f"{verdict.session}: {note}" for note in judge_notes]
            named_entries(store, key, verdict, entries)
            if progress is not None:
                progress(done, len(keys))
    finally:
        if cache is not None:
            cache.close()
    return DetectResponse(status="ok" if verdicts else "empty", verdicts=verdicts, entries=entries, notes=notes)


def _judge_cached(
    store: Store, key: int, settings: Mapping[str, Any], now: str | None, cache: VerdictCache | None
) -> tuple[SessionVerdict, list[str]]:
    """Return the verdict on one session with the causes of unresolved findings, and notes; from the cache if possible."""
    session = store.sessions.name(key)
    cached = None if cache is None else cache.verdict(key, session)
    if cached is not None:
        return SessionVerdict.model_validate(cached["verdict"]), cached["notes"]
    verdict, judge_notes = judge(store, key, settings, now)
    verdict = _add_causes(store, verdict)
    if cache is not None:
        cache.keep_verdict(key, session, {"verdict": verdict.to_json(), "notes": judge_notes})
    return verdict, judge_notes


def _add_causes(store: Store, verdict: SessionVerdict) -> SessionVerdict:
    """Return the verdict with the causes of unresolved findings. Without any, the diagnosis is not imported."""
    # Resolved findings need no cause, and the search for causes also reads related sessions.
    if all(finding.resolved is not None for finding in verdict.findings):
        return verdict
    from ctxmgr.history.session_evidence import diagnose_findings

    return verdict.model_copy(update={"findings": diagnose_findings(store, verdict.session, verdict.findings)})


def named_entries(store: Store, key: int, verdict: SessionVerdict, entries: dict[str, EntryView]) -> None:
    """Add the entries that a session's findings name, to show them; only those at both ends of a long loop."""
    # A finding may also name an event, or an entry that is gone.
    named = [
        name
        for finding in verdict.findings
        for name in (*finding.members[:_SHOWN], *finding.members[-_SHOWN:], finding.last_progress or "")
    ]
    entries |= store.queries.entries_by_ids(key, [name for name in dict.fromkeys(named) if name and name not in entries])


def sessions(store: Store, request: SessionsRequest, settings: Mapping[str, Any]) -> SessionsResponse:
    """Return one page of sessions, latest activity first, each with its verdict if requested."""
    from ctxmgr.types.operations import SessionsResponse
    from ctxmgr.types.query import Page

    filters = (request.agent, request.project, parse_time(request.since))
    cache = VerdictCache(store, settings)
    try:
        if request.stuck:  # the total is known only after all are judged
            every = [_judge_view(store, key, name, settings, cache) for key, name in store.sessions.keys(0, None, *filters)]
            stuck = [view for view in every if view.verdict in STUCK]
            views, total = stuck[request.offset : request.offset + request.limit], len(stuck)
        elif request.judge:
            page = store.sessions.keys(request.offset, request.limit, *filters)
            views = [_judge_view(store, key, name, settings, cache) for key, name in page]
            total = store.sessions.count(*filters)
        else:
            shown = store.sessions.page(request.offset, request.limit, *filters)
            views = [view.model_copy(update={"live": store.is_live(view.session)}) for _, view in shown]
            total = store.sessions.count(*filters)
    finally:
        cache.close()
    return SessionsResponse(
        status="ok" if views else "empty", sessions=views, page=Page.make(request.offset, request.limit, len(views), total)
    )


def _judge_view(store: Store, key: int, name: str, settings: Mapping[str, Any], cache: VerdictCache) -> SessionView:
    """Return the row of a session with its verdict, from the cache if possible."""
    cached = cache.row(key, name)
    if cached is not None:
        return SessionView.model_validate(cached)
    verdict, progress = _judge_end(store, key, settings, None)
    view = store.sessions.view(key).model_copy(
        update={
            "live": store.is_live(name),
            "verdict": verdict.verdict,
            "summary": verdict.summary,
            "findings": sum(finding.resolved is None for finding in verdict.findings),
            "last_progress": _find_time(progress),
        }
    )
    cache.keep_row(key, name, view.to_json())
    return view


def _find_time(progress: Progress | None) -> str | None:
    if progress is None or progress.at is None:
        return None
    try:
        return format_time(progress.at)
    except (ValueError, OverflowError):
        return None  # from a foreign clock that is far off


def explain(store: Store, request: ExplainRequest, settings: Mapping[str, Any]) -> Explanation:
    """Return the opinion of each detector on an entry when it was recorded, and the findings to which the entry belongs.

    Args:
        store: the history.
        request: the entry.
        settings: the ``detect`` table of the configuration.

    Raises:
        NoHistory, OutOfBounds, NotFound: there is no such entry.
        InvalidInput: an ambiguous name, or an invalid setting.
    """
    from ctxmgr.detect.monitor import Monitor
    from ctxmgr.detect.replay import session_observations
    from ctxmgr.detect.settings import DetectSettings
    from ctxmgr.types.operations import DetectorCheck, Explanation

    key = session_key(store, request.session)
    entry = find_named_entry(store, key, request.index, request.entry_id)
    if key is None:
        raise NoHistory(hint="record or import a run first")
    monitor = Monitor(DetectSettings.from_table(settings), explain=entry.index)
    # Replay from the beginning, because an opinion depends on everything that the detector saw before.
    for observation in session_observations(store.sessions.records(key), distinct=True):
        monitor.observe(observation)
    thoughts = [
        DetectorCheck(
            detector=opinion.detector, compared=opinion.compared, count=opinion.count, threshold=opinion.threshold,
            why=opinion.why, rule=opinion.rule,
        )
        for opinion in monitor.explain(entry.index)
    ]  # fmt: skip
    findings = [finding for finding in monitor.findings() if entry.id in finding.members]
    return Explanation(entry=entry, thoughts=thoughts, findings=findings, note=None if thoughts else UNSEEN)


KINDS = ("session", "entry", "result", "event", "continuation", "sessionEnd")

_MIN_FOR_SECOND_PROCESS = 20_000
"""Entries of a session from which a second process saves more time than it takes to start."""


def replay(store: Store, key: int) -> Iterator[Observation]:
    """Yield the observations of a session, in the order of the log.

    Raises:
        CtxmgrError: it can't be read.
    """
    place = (
        find_place(store.engine, store.location)
        if is_of_use() and store.sessions.entry_count(key) >= _MIN_FOR_SECOND_PROCESS
        else None
    )
    happenings = _read_here(store, key, 0) if place is None else _read_in_second_process(store, key, place)
    return row_observations(happenings, distinct=True)


def _read_here(store: Store, key: int, after: int) -> Iterator[RecordFields | None]:
    for _, bodies in stored_bodies(store.engine, key, KINDS, after):
        yield from map(record_fields, map(load, bodies))


def _read_in_second_process(store: Store, key: int, place: Place) -> Iterator[RecordFields | None]:
    last = 0
    with run_in_second_process("ctxmgr.history.detection:read_ahead", tuple(place), key) as stream:
        while True:
            try:
                stretch = next(stream, None)
            # The second process was killed for lack of memory, or can't start here. This process reads on.
            except ProcessLost:
                break
            if stretch is None:
                return
            last, happenings = stretch
            yield from happenings
    # The process does not report why it failed. If the store is at fault, reading it here will show that.
    if last and creation_mark(store.engine) != place.born:
        raise StorageFailed(f"{store.location} was replaced", "run the command again")
    yield from _read_here(store, key, last)


def read_ahead(place: Iterable[str], key: int) -> Iterator[tuple[int, list[RecordFields | None]]]:
    """Yield (place of the last record, fields of the records) in portions. Runs in the second process.

    Raises:
        CtxmgrError: the session can't be read.
        ValueError: a stored body is not a record.
    """
    for last, bodies in stored_bodies_in_worker(Place(*place), key, KINDS):
        yield last, [record_fields(loads(body)) for body in bodies]
