"""Read what a report tells of one session: verdict, continuation, timeline, evidence, notes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ctxmgr.cli.detection_answer import NOTHING_READ
from ctxmgr.cli.report.timeline import Timeline, draw_timeline, tokens_of
from ctxmgr.cli.views.evidence import Entries, mapping
from ctxmgr.cli.views.formatting import amount, clock, day, duration, plural
from ctxmgr.cli.views.loop_diagram import lanes_of
from ctxmgr.cli.views.one_line import brief, compact, error_text, pretty, said
from ctxmgr.errors import AttemptsUsedUp, CtxmgrError, NoHistory, NotStuck
from ctxmgr.log.ids import parse_time
from ctxmgr.log.masking import mask_value
from ctxmgr.types.finding import Finding, SessionVerdict
from ctxmgr.types.operations import DetectRequest, DetectResponse, RecoverRequest
from ctxmgr.types.query import ListRequest
from ctxmgr.types.route import Continuation
from ctxmgr.types.view import EntryView, EventView, NoteView
from ctxmgr.workspace import Workspace

_PAGE = 5000
"""Rows read at a time."""

_LONG = 2000
"""Rows from which on less of each input and output is quoted."""

_QUOTED, _QUOTED_IN_LONG = 4000, 400
"""Characters quoted of an input or output."""

_BEFORE = 5
"""Entries before the trouble that a focused report keeps."""

_ROUNDS = 12
"""Rounds of a loop that its grid shows; of more the first and the last half of them."""

_SPOKEN = ("message", "user_message", "user_message_chunk", "interrupt", "nudge", "compaction", "waiting", "error")
"""Types of the events that a reader of the table needs; the others are pieces of what the entries tell."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table: an entry (``index`` is its place) or something that was said (``index`` is None)."""

    index: int | None
    time: str
    agent: str
    title: str
    brief: str
    status: str
    took: str
    texts: list[tuple[str, str]]
    in_trouble: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A row of a loop's grid: one step of the round, and (index, status) for each round shown; None where some are left out."""

    action: str
    input: str
    rounds: list[tuple[str, str] | None]


@dataclass(frozen=True, slots=True)
class Trouble:
    """A finding in words, with the grid of its rounds."""

    kind: str
    severity: str
    reason: str
    over: str
    heads: list[str]
    steps: list[Step]


@dataclass(frozen=True, slots=True)
class Answer:
    """What to do: the diagnosis, who goes on, and the text for that agent."""

    target: str
    cause: str
    next_step: str
    check: str
    prompt: str
    known: list[tuple[str, str, str]]
    repeats: list[tuple[str, str, int]]


@dataclass(slots=True)
class SessionReport:
    """All that a page shows. Every text is masked; with ``redacted`` what was recorded is told by its shape alone."""

    session: str
    title: str
    verdict: str
    summary: str
    facts: list[tuple[str, str]]
    troubles: list[Trouble]
    answer: Answer | None
    no_answer: str
    timeline: Timeline
    rows: list[Row]
    left_out: int
    notes: list[tuple[str, str, str]]
    redacted: bool
    warnings: list[str] = field(default_factory=list[str])


def read_session(workspace: Workspace, session: str | None, *, focus: bool = False, redact: bool = False) -> SessionReport:
    """Return the report of a session (None: the latest one); recover's answer is worked out and not recorded.

    ``focus`` keeps the entries of the unresolved findings, with a few before and all after the first of them.

    Raises:
        NoHistory: there is no session.
        CtxmgrError: as `Workspace.list` and `Workspace.detect`.
    """
    found = workspace.detect(DetectRequest(session=session))
    if not found.verdicts:
        raise NoHistory(NOTHING_READ)
    return session_report(workspace, found, found.verdicts[0], focus=focus, redact=redact)


def session_report(
    workspace: Workspace,
    found: DetectResponse,
    verdict: SessionVerdict,
    *,
    continuation: Continuation | None = None,
    focus: bool = False,
    redact: bool = False,
) -> SessionReport:
    """Return the report of a session that was judged already; ``continuation`` is recover's answer where it is known too."""
    texts = _Texts(redact)
    rows = list(_rows(workspace, verdict.session))
    entries = [row for row in rows if isinstance(row, EntryView)]
    lasting = [each for each in verdict.findings if each.resolved is None]
    over = [each for each in verdict.findings if each.resolved is not None]
    answer, no_answer = _answer(workspace, verdict, texts) if continuation is None else (_told(continuation, texts), "")
    members = {member for each in lasting for member in each.members}
    kept = _kept(rows, members) if focus else rows
    texts.most = _QUOTED_IN_LONG if len(kept) > _LONG else _QUOTED
    notes = {note.id: note for entry in entries for note in entry.notes if note.superseded_by is None}
    return SessionReport(
        session=verdict.session, title=_title(rows, texts) or verdict.session, verdict=verdict.verdict,
        summary=verdict.summary or verdict.verdict, facts=_facts(entries, verdict),
        troubles=[_trouble(each, found.entries, texts) for each in [*lasting, *over]],
        answer=answer, no_answer=no_answer, timeline=draw_timeline(entries, verdict.findings),
        rows=[_row(row, texts, in_trouble=row.id in members) for row in kept], left_out=len(rows) - len(kept),
        notes=[_note(note, texts) for note in notes.values()], redacted=redact,
        warnings=[*workspace.warnings, *_notes_of(found, verdict.session)],
    )  # fmt: skip


def _notes_of(found: DetectResponse, session: str) -> list[str]:
    return [note for note in found.notes if len(found.verdicts) == 1 or note.startswith(f"{session}:")]


class _Texts:
    """Every recorded text passes here: secrets masked, cut to ``most`` characters, or told by its shape alone."""

    def __init__(self, redacted: bool) -> None:
        self.redacted = redacted
        self.most = _QUOTED

    def __call__(self, text: str | None) -> str:
        if not text:
            return ""
        if self.redacted:
            lines = text.count("\n") + 1
            return f"[{plural(len(text), 'character')}" + (f" in {lines:,} lines]" if lines > 1 else "]")
        return self.cut(mask_value(text))

    def value(self, value: Any) -> str:
        """Return a JSON value to be read; redacted, the names of its fields with the shapes of what they hold."""
        if value in (None, "", {}, []):
            return ""
        if self.redacted and (fields := mapping(value)):
            return "\n".join(f"{name}: {self(pretty(held))}" for name, held in fields.items())
        if self.redacted:
            return self(pretty(value))
        return self.cut(pretty(mask_value(value)))

    def cut(self, text: str) -> str:
        """Return the text, its end left out where it is long; that is said."""
        return text if len(text) <= self.most else f"{text[: self.most]}\n… {len(text) - self.most:,} more characters"


def _rows(workspace: Workspace, session: str) -> Iterator[EntryView | EventView]:
    offset: int | None = 0
    while offset is not None:
        page = workspace.list(ListRequest(session=session, kind="all", offset=offset, limit=_PAGE))
        yield from (row for row in page.rows if isinstance(row, EntryView) or row.type in _SPOKEN)
        offset = page.page.next_offset


def _kept(rows: list[EntryView | EventView], members: set[str]) -> list[EntryView | EventView]:
    first = next((number for number, row in enumerate(rows) if row.id in members), None)
    return rows if first is None else rows[max(first - _BEFORE, 0) :]


def _title(rows: list[EntryView | EventView], texts: _Texts) -> str:
    """Return the first line of the first thing a person said."""
    asked = (said(row.data) for row in rows if isinstance(row, EventView) and row.type.startswith("user_message"))
    first = next((text.strip() for text in asked if text.strip()), "")
    return texts(first.splitlines()[0][:200]) if first else ""


def _facts(entries: list[EntryView], verdict: SessionVerdict) -> list[tuple[str, str]]:
    times = [entry.ts for entry in entries if entry.ts]
    begin, end = (times[0], times[-1]) if times else (None, None)
    first, last = parse_time(begin), parse_time(end)
    took = duration(last - first) if first is not None and last is not None else ""
    failed = sum(entry.status == "error" for entry in entries)
    agents = list(dict.fromkeys(entry.agent for entry in entries))
    tokens = sum(map(tokens_of, entries))
    told = [
        ("Session", verdict.session),
        ("Time", f"{day(begin)} {clock(begin)} to {clock(end)} UTC, {took}" if begin else "not recorded"),
        ("Calls", f"{len(entries):,}" + (f", {failed:,} failed" if failed else "")),
        ("Agents", ", ".join(agents[:8]) + (f" and {len(agents) - 8} more" if len(agents) > 8 else "")),
        ("Tokens", amount(tokens) if tokens else ""),
    ]
    return [(name, text) for name, text in told if text]


def _answer(workspace: Workspace, verdict: SessionVerdict, texts: _Texts) -> tuple[Answer | None, str]:
    try:
        found = workspace.recover(RecoverRequest(session=verdict.session, plan=True)).continuation
    except NotStuck:
        return None, ""
    except AttemptsUsedUp as error:
        return None, error.message
    except CtxmgrError as error:
        return None, f"no answer could be worked out: {error.message}"
    return _told(found, texts), ""


def _told(found: Continuation, texts: _Texts) -> Answer:
    told = found.diagnosis
    cause, next_step, check = ("", "", "") if told is None else (told.cause, told.next_step, told.check or "")
    if texts.redacted:
        cause, next_step, check = (f"The failure is of the kind {told.kind}." if told else "", "", "")
    else:
        cause, next_step, check = texts(cause), texts(next_step), texts(check)
    return Answer(
        target=found.target, cause=cause, next_step=next_step, check=check,
        prompt="" if texts.redacted else texts(found.prompt),
        known=[(fact.label, texts(fact.text), texts(fact.quote)) for fact in found.context.facts],
        repeats=[(each.action, texts(brief(each.input)), each.times) for each in found.do_not_repeat],
    )  # fmt: skip


def _trouble(finding: Finding, entries: Entries, texts: _Texts) -> Trouble:
    steps = lanes_of(finding, entries) if finding.severity != "hung" else []
    rounds = len(steps[0].places) if steps else 0
    half = _ROUNDS // 2
    shown: list[int | None] = list(range(rounds)) if rounds <= _ROUNDS else [*range(half), None, *range(rounds - half, rounds)]
    grid = [
        Step(
            step.action,
            texts(step.input or (step.variants[0][1] if step.variants else "")),
            [None if at is None or at >= len(step.places) else (step.places[at], step.statuses[at] or "") for at in shown],
        )
        for step in steps
    ]
    over = f"over: {finding.resolved}" if finding.resolved else ""
    reason = f"{finding.kind} {finding.count} times" if texts.redacted else texts(finding.reason)
    return Trouble(finding.kind, finding.severity, reason, over, ["…" if at is None else str(at + 1) for at in shown], grid)


def _row(row: EntryView | EventView, texts: _Texts, *, in_trouble: bool) -> Row:
    if isinstance(row, EventView):
        heard = texts(said(row.data))
        first = heard.splitlines()[0] if heard else ""
        rest = [("Text", heard)] if heard != first or len(first) > 200 else []
        by_person = row.type.startswith("user_message")
        title = "User" if by_person else "Said" if row.type == "message" else row.type.capitalize()
        return Row(None, clock(row.ts), "" if by_person else row.agent or "", title, first[:200], "", "", rest)
    told = brief(row.input)
    shown = [
        ("Input", "" if isinstance(row.input, str) and row.input == told and len(told) < 200 else texts.value(row.input)),
        ("Output", texts.value(row.output)),
        ("Error", texts(error_text(row.error)) if row.error else ""),
    ]
    took = duration(row.duration_ms / 1000) if row.duration_ms is not None else ""
    head = texts(told.splitlines()[0][:300]) if told else ""
    return Row(
        row.index, clock(row.ts), row.agent, row.action, head, row.status, took,
        [(name, text) for name, text in shown if text], in_trouble,
    )  # fmt: skip


def _note(note: NoteView, texts: _Texts) -> tuple[str, str, str]:
    places = ", ".join(f"@{index}" for index in note.indexes[:8])
    return (note.author or "", places, texts(note.content) + (f"  {compact(note.tags)}" if note.tags else ""))
