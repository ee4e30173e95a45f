"""Collect the report of a session and write it as one HTML file, which needs no network and no script."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxmgr.base.paths import open_regular, packaged_text, replace_file
from ctxmgr.cli.detection import NOTHING_READ
from ctxmgr.cli.report.timeline import Timeline, draw_timeline, total_tokens
from ctxmgr.cli.views.findings import Entries, loop_steps
from ctxmgr.cli.views.layout import amount, brief, clock, compact, day, duration, error_text, event_text, plural, pretty
from ctxmgr.cli.views.safe_text import safe
from ctxmgr.errors import AttemptsUsedUp, Conflict, CtxmgrError, NoHistory, NotStuck, StorageFailed
from ctxmgr.log.fast_json import json_object
from ctxmgr.log.ids import parse_time
from ctxmgr.log.mask_prefilter import mask_value
from ctxmgr.types.finding import Finding, SessionVerdict
from ctxmgr.types.operations import DetectRequest, DetectResponse, RecoverRequest
from ctxmgr.types.query import ListRequest
from ctxmgr.types.route import Continuation
from ctxmgr.types.view import EntryView, EventView, NoteView
from ctxmgr.workspace import Workspace

if TYPE_CHECKING:
    from jinja2 import Environment


_PAGE = 5000
"""Number of rows to read at a time."""

_LONG_ROWS = 2000
"""Number of rows above which inputs and outputs are quoted in less length."""

_QUOTED, _QUOTED_IN_LONG = 4000, 400
"""Maximum length of a quoted input or output in characters, in usual and in long reports."""

_BEFORE = 5
"""Number of entries before the first unresolved finding that a report with ``focus`` keeps."""

_ROUNDS = 12
"""Maximum number of rounds in the grid of a loop. Of more rounds it shows the first and the last half of this number."""

_SPOKEN = ("message", "user_message", "user_message_chunk", "interrupt", "nudge", "compaction", "waiting", "error")
"""Types of the events in the table. The other types only repeat parts of the entries."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: an entry (``index`` is its place in the session) or an event (``index`` is None)."""

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
    """A row of a loop's grid: one step, with (index, status) per round, and None in the place of rounds left out."""

    action: str
    input: str
    rounds: list[tuple[str, str] | None]


@dataclass(frozen=True, slots=True)
class FindingSection:
    """A finding in words, and the grid of its rounds."""

    kind: str
    severity: str
    reason: str
    over: str
    heads: list[str]
    steps: list[Step]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to the trouble: the diagnosis, the agent that continues, and the text for it."""

    target: str
    cause: str
    next_step: str
    check: str
    prompt: str
    known: list[tuple[str, str, str]]
    repeats: list[tuple[str, str, int]]


@dataclass(slots=True)
class SessionReport:
    """The content of a page. Every text is masked. With ``redacted``, recorded texts are replaced by their sizes."""

    session: str
    title: str
    verdict: str
    summary: str
    facts: list[tuple[str, str]]
    troubles: list[FindingSection]
    answer: Answer | None
    no_answer: str
    timeline: Timeline
    rows: list[Row]
    left_out: int
    notes: list[tuple[str, str, str]]
    redacted: bool
    warnings: list[str] = field(default_factory=list[str])


def read_session(workspace: Workspace, session: str | None, *, focus: bool = False, redact: bool = False) -> SessionReport:
    """Return the report of a session (None: the latest one). The answer of `recover` in it is a plan and not recorded.

    ``focus`` drops the entries before the unresolved findings, except the last few.

    Raises:
        NoHistory: there is no session.
        CtxmgrError: as `Workspace.list` and `Workspace.detect`.
    """
    found = workspace.detect(DetectRequest(session=session))
    if not found.verdicts:
        raise NoHistory(hint=NOTHING_READ)
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
    """Return the report of a session for a known verdict. ``continuation`` is the answer of `recover`, if that is known too."""
    texts = _Texts(redact)
    rows = list(_rows(workspace, verdict.session))
    entries = [row for row in rows if isinstance(row, EntryView)]
    lasting = [each for each in verdict.findings if each.resolved is None]
    over = [each for each in verdict.findings if each.resolved is not None]
    answer, no_answer = _answer(workspace, verdict, texts) if continuation is None else (_to_answer(continuation, texts), "")
    members = {member for each in lasting for member in each.members}
    kept = _rows_to_quote(rows, members) if focus else rows
    # The limit depends on the number of rows: browsers struggle with a page of thousands of rows with whole texts.
    texts.limit = _QUOTED_IN_LONG if len(kept) > _LONG_ROWS else _QUOTED
    notes = {note.id: note for entry in entries for note in entry.notes if note.superseded_by is None}
    return SessionReport(
        session=verdict.session, title=_title(rows, texts) or verdict.session, verdict=verdict.verdict,
        summary=verdict.summary or verdict.verdict, facts=_facts(entries, verdict),
        troubles=[_finding_section(each, found.entries, texts) for each in [*lasting, *over]],
        answer=answer, no_answer=no_answer, timeline=draw_timeline(entries, verdict.findings),
        rows=[_row(row, texts, in_trouble=row.id in members) for row in kept], left_out=len(rows) - len(kept),
        notes=[_note(note, texts) for note in notes.values()], redacted=redact,
        warnings=[*workspace.warnings, *_collect_notes(found, verdict.session)],
    )  # fmt: skip


def _collect_notes(found: DetectResponse, session: str) -> list[str]:
    return [note for note in found.notes if len(found.verdicts) == 1 or note.startswith(f"{session}:")]


class _Texts:
    """Filter of all recorded texts. It masks secrets, cuts texts to ``limit`` characters, or replaces texts by their sizes."""

    def __init__(self, redacted: bool) -> None:
        self.redacted = redacted
        self.limit = _QUOTED

    def __call__(self, text: str | None) -> str:
        if not text:
            return ""
        if self.redacted:
            lines = text.count("\n") + 1
            return f"[{plural(len(text), 'character')}" + (f" in {lines:,} lines]" if lines > 1 else "]")
        return self.cut(mask_value(text))

    def value(self, value: Any) -> str:
        """Return a JSON value as text. If redacted, it has the names of the fields and the sizes of their values."""
        if value in (None, "", {}, []):
            return ""
        # Field names come from the tool, and show what kind of call it was.
        if self.redacted and (fields := json_object(value)):
            return "\n".join(f"{name}: {self(pretty(held))}" for name, held in fields.items())
        if self.redacted:
            return self(pretty(value))
        return self.cut(pretty(mask_value(value)))

    def cut(self, text: str) -> str:
        """Return the text, cut at the limit with the number of missing characters."""
        return text if len(text) <= self.limit else f"{text[: self.limit]}\n… {len(text) - self.limit:,} more characters"


def _rows(workspace: Workspace, session: str) -> Iterator[EntryView | EventView]:
    offset: int | None = 0
    while offset is not None:
        page = workspace.list(ListRequest(session=session, kind="all", offset=offset, limit=_PAGE))
        yield from (row for row in page.rows if isinstance(row, EntryView) or row.type in _SPOKEN)
        offset = page.page.next_offset


def _rows_to_quote(rows: list[EntryView | EventView], members: set[str]) -> list[EntryView | EventView]:
    first = next((number for number, row in enumerate(rows) if row.id in members), None)
    return rows if first is None else rows[max(first - _BEFORE, 0) :]


def _title(rows: list[EntryView | EventView], texts: _Texts) -> str:
    """Return the first line of the first message by a person."""
    asked = (event_text(row.data) for row in rows if isinstance(row, EventView) and row.type.startswith("user_message"))
    first = next((text.strip() for text in asked if text.strip()), "")
    return texts(first.splitlines()[0][:200]) if first else ""


def _facts(entries: list[EntryView], verdict: SessionVerdict) -> list[tuple[str, str]]:
    times = [entry.ts for entry in entries if entry.ts]
    begin, end = (times[0], times[-1]) if times else (None, None)
    first, last = parse_time(begin), parse_time(end)
    took = duration(last - first) if first is not None and last is not None else ""
    failed = sum(entry.status == "error" for entry in entries)
    agents = list(dict.fromkeys(entry.agent for entry in entries))
    tokens = sum(map(total_tokens, entries))
    facts = [
        ("Session", verdict.session),
        ("Time", f"{day(begin)} {clock(begin)} to {clock(end)} UTC, {took}" if begin else "not recorded"),
        ("Calls", f"{len(entries):,}" + (f", {failed:,} failed" if failed else "")),
        ("Agents", ", ".join(agents[:8]) + (f" and {len(agents) - 8} more" if len(agents) > 8 else "")),
        ("Tokens", amount(tokens) if tokens else ""),
    ]
    return [(name, text) for name, text in facts if text]


def _answer(workspace: Workspace, verdict: SessionVerdict, texts: _Texts) -> tuple[Answer | None, str]:
    try:
        found = workspace.recover(RecoverRequest(session=verdict.session, plan=True)).continuation
    except NotStuck:
        return None, ""
    except AttemptsUsedUp as error:
        return None, error.message
    except CtxmgrError as error:
        return None, f"no answer could be worked out: {error.message}"
    return _to_answer(found, texts), ""


def _to_answer(found: Continuation, texts: _Texts) -> Answer:
    diagnosis = found.diagnosis
    cause, next_step, check = (
        ("", "", "") if diagnosis is None else (diagnosis.cause, diagnosis.next_step, diagnosis.check or "")
    )
    if texts.redacted:
        cause, next_step, check = (f"The failure is of the kind {diagnosis.kind}." if diagnosis else "", "", "")
    else:
        cause, next_step, check = texts(cause), texts(next_step), texts(check)
    # The prompt quotes records in many places, so a redacted page leaves it out.
    return Answer(
        target=found.target, cause=cause, next_step=next_step, check=check,
        prompt="" if texts.redacted else texts(found.prompt),
        known=[(fact.label, texts(fact.text), texts(fact.quote)) for fact in found.context.facts],
        repeats=[(each.action, texts(brief(each.input)), each.times) for each in found.do_not_repeat],
    )  # fmt: skip


def _finding_section(finding: Finding, entries: Entries, texts: _Texts) -> FindingSection:
    steps = loop_steps(finding, entries) if finding.severity != "hung" else []
    rounds = len(steps[0].places) if steps else 0
    # The beginning and the end of a loop say more than its middle.
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
    return FindingSection(
        finding.kind, finding.severity, reason, over, ["…" if at is None else str(at + 1) for at in shown], grid
    )


def _row(row: EntryView | EventView, texts: _Texts, *, in_trouble: bool) -> Row:
    if isinstance(row, EventView):
        heard = texts(event_text(row.data))
        first = heard.splitlines()[0] if heard else ""
        rest = [("Text", heard)] if heard != first or len(first) > 200 else []
        by_person = row.type.startswith("user_message")
        title = "User" if by_person else "Said" if row.type == "message" else row.type.capitalize()
        return Row(None, clock(row.ts), "" if by_person else row.agent or "", title, first[:200], "", "", rest)
    call = brief(row.input)
    shown = [
        ("Input", "" if isinstance(row.input, str) and row.input == call and len(call) < 200 else texts.value(row.input)),
        ("Output", texts.value(row.output)),
        ("Error", texts(error_text(row.error)) if row.error else ""),
    ]
    took = duration(row.duration_ms / 1000) if row.duration_ms is not None else ""
    head = texts(call.splitlines()[0][:300]) if call else ""
    return Row(
        row.index, clock(row.ts), row.agent, row.action, head, row.status, took,
        [(name, text) for name, text in shown if text], in_trouble,
    )  # fmt: skip


def _note(note: NoteView, texts: _Texts) -> tuple[str, str, str]:
    places = ", ".join(f"@{index}" for index in note.indexes[:8])
    return (note.author or "", places, texts(note.content) + (f"  {compact(note.tags)}" if note.tags else ""))


_HEAD = b'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="generator" content="ctxmgr'
"""Beginning of every page by ctxmgr. `write_page` replaces only files that begin with it."""

_INDEX = "index.html"
_ODD = re.compile(r"[^A-Za-z0-9._-]+")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    # ``StrictUndefined`` makes a misspelled name in a template an error instead of a gap in the page.
    environment = Environment(
        loader=PackageLoader("ctxmgr.cli.report", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_visible,
    )  # fmt: skip
    return environment


def _visible(value: Any) -> Any:
    """Escape recorded characters that hide or change the direction of text. Markup of the template passes."""
    # Not `isinstance`, because `Markup`, e.g. the style sheet, is a subclass of `str`.
    return safe(value, keep_lines=True) if type(value) is str else value


@cache
def _style() -> tuple[str, str]:
    """Return the style sheet, and its hash for the content security policy."""
    text = packaged_text(__file__, "report.css")
    # The page's policy allows this style alone and no script, so recorded text can't add any.
    digest = hashlib.sha256(text.encode()).digest()
    return text, f"sha256-{base64.b64encode(digest).decode()}"


def session_page(report: SessionReport, *, index: str = "") -> str:
    """Return the page of one session. ``index`` is the file name of the index that it links to."""
    return _page("session.html", report=report, index=index)


def index_page(reports: Sequence[tuple[str, SessionReport]]) -> str:
    """Return the index page of several (file name, report), with the stuck sessions first."""
    # Readers of the index look for trouble.
    ordered = sorted(reports, key=lambda each: each[1].verdict in ("healthy", "warn"))
    return _page("index.html", reports=ordered)


def _page(name: str, **values: Any) -> str:
    from markupsafe import Markup

    from ctxmgr import __version__

    style, digest = _style()
    return _environment().get_template(name).render(style=Markup(style), digest=digest, version=__version__, **values)


def write_page(path: Path, text: str) -> None:
    """Write a page atomically. It replaces an earlier page, but never another file.

    Raises:
        Conflict: another file exists at the path.
        StorageFailed: the page can't be written.
    """
    try:
        if os.path.lexists(path):
            # Follow no link: only our own page at the very path may be replaced.
            with open(open_regular(path, follow=False), "rb") as stream:
                if stream.read(len(_HEAD)) != _HEAD:
                    raise Conflict(f"{path} exists already and is no report", "name another file: nothing else is replaced")
        replace_file(path, text.encode())
    except OSError as error:
        raise StorageFailed(f"can't write {path}: {error.strerror}", "choose another place") from None


class PageFolder:
    """A folder with one page per session, and an index of the pages.

    Raises:
        StorageFailed: the folder can't be created.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pages: list[tuple[Path, SessionReport]] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageFailed(f"can't make {folder}: {error.strerror}", "choose another place") from None

    def add(self, report: SessionReport, log: str = "") -> None:
        """Write the page of a session. ``log`` distinguishes sessions of the same name in several logs."""
        path = self.folder / _file_name(report.session, log)
        write_page(path, session_page(report, index=_INDEX))
        report.rows.clear()  # the index needs no rows, and those of all sessions together may take much memory
        self.pages.append((path, report))

    def finish(self) -> Path:
        """Write the index and return its path."""
        write_page(index := self.folder / _INDEX, index_page([(path.name, report) for path, report in self.pages]))
        return index


def _file_name(session: str, log: str) -> str:
    """Return the file name of a session's page: the readable part of its id, and a digest that makes the name unique."""
    plain = _ODD.sub("-", f"{Path(log).stem[:30]}-{session}").strip("-.")[:60]
    # Recorded names may hold lone surrogates, which UTF-8 can't encode without "surrogatepass".
    digest = hashlib.sha256(f"{log}\0{session}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain or 'session'}-{digest}.html"
