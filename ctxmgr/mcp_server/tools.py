"""The tools of the MCP server, and the rows of their answers.

Rows always have the same fields. A long text is cut, and the answer says how to read the rest. Every call opens the store
again, so it sees all records so far.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from ctxmgr.errors import InvalidInput, NoHistory, NotStuck, StorageFailed
from ctxmgr.log.fast_json import json_object
from ctxmgr.types.memory import Episode, RecallRequest, RetainRequest
from ctxmgr.types.operations import AgentRequest, DetectRequest, RecoverRequest
from ctxmgr.types.query import (
    AddNoteRequest,
    ListRequest,
    ListResponse,
    MessagesRequest,
    SearchRequest,
    ShowRequest,
    TraceRequest,
    TraceResponse,
)
from ctxmgr.types.route import Continuation
from ctxmgr.types.view import EntryView, EventView, NoteView
from ctxmgr.workspace import Workspace

MAX_ROWS = 20
"""Maximum number of rows on a page. An agent asks for further pages."""

_MAX_COMPARED = 5000
"""Maximum number of calls of an action that `Tools.tried_before` compares, starting with the latest."""

_MAX_EARLIER_CALLS = 5
"""Maximum number of earlier calls that `Tools.tried_before` shows."""

_T = TypeVar("_T")


MAX_TEXT = 600
"""Maximum length of an input, output or error in a list, in characters. `history_show` gives the whole text in pages."""

MAX_PAGE = 8000
"""Length of one page of a long output in characters."""


# The names and docstrings of these models are public: the schemas of the tools use them as titles and descriptions, which
# clients pass to their models.


class Entry(BaseModel):
    """One recorded action. ``cut`` names the fields that `history_show` gives whole."""

    index: int
    id: str
    session: str
    time: str | None
    agent: str
    action: str
    status: str
    input: str
    output: str
    error: str
    notes: list[str]
    cut: list[str]


class Message(BaseModel):
    """A message or another event; ``after`` is the index of the entry before it."""

    id: str
    type: str
    time: str | None
    agent: str | None
    after: int | None
    text: str


class Note(BaseModel):
    """An annotation on entries, or an episode of the memory."""

    id: str
    session: str
    entries: list[int]
    text: str
    tags: list[str]
    author: str | None


class EntryPage(BaseModel):
    """Entries in order; ``next_offset`` is null on the last page."""

    session: str | None
    entries: list[Entry]
    next_offset: int | None


class Hit(BaseModel):
    """Where a text was found; ``index`` is the entry's place, null in an event."""

    session: str
    index: int | None
    id: str
    field: str
    excerpt: str


class HitPage(BaseModel):
    """Hits in the order of the history; ``next_offset`` is null on the last page."""

    hits: list[Hit]
    total: int
    next_offset: int | None


class MessagePage(BaseModel):
    """Messages and other events in order; ``next_offset`` is null on the last page."""

    session: str | None
    messages: list[Message]
    next_offset: int | None


class EntryDetail(BaseModel):
    """An entry with a page of each long text; ``next_from`` is where the next page begins, null at the end."""

    entry: Entry
    next_from: int | None


class FindingSummary(BaseModel):
    """One unresolved finding, with its cause and the next step where the record shows them."""

    id: str
    kind: str
    severity: str
    count: int
    agent: str | None
    reason: str
    cause: str | None
    next_step: str | None


class StuckReport(BaseModel):
    """Whether a session is stuck: ``verdict`` is healthy, warn, loop, hung or loop+hung.

    ``notes`` say what was amiss with the history itself, such as damage, or times that are missing.
    """

    session: str
    verdict: str
    summary: str
    findings: list[FindingSummary]
    notes: list[str]


class ContinuationAnswer(BaseModel):
    """Exactly one continuation. ``prompt`` is the text for ``target``; null where nothing is wrong, and ``reason`` says so."""

    stuck: bool
    id: str | None
    target: str | None
    reason: str
    prompt: str | None


class EarlierCalls(BaseModel):
    """How often an action was done with this input, and how it went the last times, the latest first."""

    times: int
    ok: int
    failed: int
    latest: list[Entry]


def entry_row(entry: EntryView, limit: int = MAX_TEXT, start: int = 0) -> Entry:
    """Return an entry with its texts from ``start`` on, each cut to ``limit`` characters."""
    texts = {"input": json_text(entry.input), "output": json_text(entry.output), "error": json_text(entry.error)}
    shown = {name: text[start : start + limit] for name, text in texts.items()}
    return Entry(
        index=entry.index, id=entry.id, session=entry.session, time=entry.ts, agent=entry.agent, action=entry.action,
        status=entry.status, notes=[note.content[:MAX_TEXT] for note in entry.notes],
        cut=[name for name, text in texts.items() if len(text) > start + limit], **shown,
    )  # fmt: skip


def entry_page(found: ListResponse | TraceResponse) -> EntryPage:
    """Return the entries of an answer as a page."""
    entries = [entry_row(entry) for entry in found.entries]
    return EntryPage(session=found.session, entries=entries, next_offset=found.page.next_offset)


def continuation_answer(found: Continuation) -> ContinuationAnswer:
    """Return a continuation as an answer."""
    return ContinuationAnswer(stuck=True, id=found.id, target=found.target, reason=found.reason, prompt=found.prompt)


def event_row(event: EventView) -> Message:
    """Return an event as a row."""
    text = json_text(event.data)[:MAX_TEXT]
    return Message(id=event.id, type=event.type, time=event.ts, agent=event.agent, after=event.after, text=text)


def note_row(note: NoteView) -> Note:
    """Return a note as a row."""
    return Note(
        id=note.id, session=note.session, entries=note.indexes, text=note.content, tags=list(note.tags), author=note.author
    )


def episode_row(episode: Episode) -> Note:
    """Return an episode of the memory as a row."""
    return Note(
        id=episode.id, session=episode.session, entries=episode.indexes, text=episode.text, tags=list(episode.tags),
        author=episode.author,
    )  # fmt: skip


def json_text(value: Any) -> str:
    """Return a JSON value as text: a text unchanged, the text of ``{"text": ...}``, other values as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    fields = json_object(value)
    if len(fields) == 1 and isinstance(fields.get("text"), str):
        return fields["text"]
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools over one store.

    Attributes:
        store: path of the store or of any log; None for the nearest store.
        agent: the agent that asks, whose access rules apply; None for the operator.
        readonly: refuse to write; answers are computed but not recorded.
    """

    store: str | None = None
    agent: str | None = None
    readonly: bool = False

    def _ask(self, work: Callable[[Workspace], _T], *, writes: bool = False, lenient: bool = False) -> _T:
        """Open the store and do the work. ``lenient``: a store that can't be written is only read."""
        if writes and self.readonly:
            raise InvalidInput("this server only reads", "start it without --read-only")
        # A writing tool may be the first to use the store, so it creates the store. A reading tool must leave no file behind.
        try:
            opened = Workspace.open(self.store, readonly=not writes, agent=self.agent, scratch=True, create=writes)
        except StorageFailed:
            if not lenient:
                raise
            opened = Workspace.open(self.store, readonly=True, agent=self.agent, scratch=True)
        with opened as workspace:
            return work(workspace)

    def stuck_check(self, session: str | None = None) -> StuckReport:
        """Say whether a session is stuck: in a loop, hung, or healthy; the latest session if none is named."""

        def work(workspace: Workspace) -> StuckReport:
            detected = workspace.detect(DetectRequest(session=session))
            if not detected.verdicts:
                raise NoHistory(hint="record a run, or import its log")
            verdict = detected.verdicts[0]
            unresolved = [finding for finding in verdict.findings if finding.resolved is None]
            findings = [
                FindingSummary(
                    id=each.id, kind=each.kind, severity=each.severity, count=each.count, agent=each.scope.agent,
                    reason=each.reason, cause=each.diagnosis.cause if each.diagnosis else None,
                    next_step=each.diagnosis.next_step if each.diagnosis else None,
                )
                for each in unresolved
            ]  # fmt: skip
            summary = verdict.summary or verdict.verdict
            return StuckReport(
                session=verdict.session, verdict=verdict.verdict, summary=summary, findings=findings,
                notes=[*workspace.warnings, *detected.notes],
            )  # fmt: skip

        return self._ask(work)

    def continuation(
        self, session: str | None = None, agent: str | None = None, only_session: bool = False
    ) -> ContinuationAnswer:
        """Return exactly one continuation for a stuck session: the cause, the next step and what is known, as a text to act on.

        The same history gives the same answer, told again. ``only_session`` reads neither related sessions nor memory.
        """
        asked = RecoverRequest(session=session, to=agent, plan=self.readonly, only_session=only_session)

        def work(workspace: Workspace) -> ContinuationAnswer:
            try:
                found = workspace.recover(asked).continuation
            except NotStuck as error:  # an answer instead of an error: agents ask to learn whether they are stuck
                return ContinuationAnswer(stuck=False, id=None, target=None, reason=error.message, prompt=None)
            return continuation_answer(found)

        return self._ask(work, writes=not self.readonly, lenient=True)

    def context_request(
        self,
        type: str,  # noqa: A002 - the name that an agent reads
        agent: str,
        reason: str,
        goal: str,
        to: str | None = None,
        session: str | None = None,
        only_session: bool = False,
    ) -> ContinuationAnswer:
        """Ask the context manager for what you lack; ``type`` is introspect (back to you) or proceed (on to ``to``).

        ``only_session`` reads neither related sessions nor memory.
        """
        # Short words for models. The values are part of the public contract of requests.
        kinds = {"introspect": "INTROSPECT_AGENT_CONTEXT", "proceed": "PROCEED"}
        if type not in kinds:
            raise InvalidInput(f"unknown type {type!r}", "types: introspect, proceed")
        asked = AgentRequest.model_validate({
            "session": session, "type": kinds[type], "requester": agent, "to": to, "reason": reason, "goal": goal,
            "plan": self.readonly, "only_session": only_session,
        })  # fmt: skip

        def work(workspace: Workspace) -> ContinuationAnswer:
            return continuation_answer(workspace.request(asked).continuation)

        return self._ask(work, writes=not self.readonly, lenient=True)

    def tried_before(
        self,
        action: str,
        input: str | dict[str, Any] | list[Any],  # noqa: A002
        session: str | None = None,
    ) -> EarlierCalls:
        """Say whether an action was already done with this input, and how it went.

        ``input`` is what the action was given: an object, its JSON, or the text itself.
        """
        # Try a text both as JSON and unchanged, because a text may only look like JSON: a command `1e3`, or
        # arguments as a client recorded them.
        wanted = {_comparison_key(input), _comparison_key(_from_json(input) if isinstance(input, str) else input)}

        def work(workspace: Workspace) -> EarlierCalls:
            # The latest first, because an agent wants to know whether a call fails now.
            asked = ListRequest(session=session, action=[action], newest_first=True, limit=_MAX_COMPARED)
            # A page of a list may also hold events, which have no input to compare.
            entries = [row for row in workspace.list(asked).rows if isinstance(row, EntryView)]
            same = [entry for entry in entries if not wanted.isdisjoint((_comparison_key(entry.input), *_values(entry.input)))]
            failed = sum(entry.status in ("error", "denied") for entry in same)
            return EarlierCalls(
                times=len(same), ok=sum(entry.status == "ok" for entry in same), failed=failed,
                latest=[entry_row(entry) for entry in same[:_MAX_EARLIER_CALLS]],
            )  # fmt: skip

        return self._ask(work)

    def history_search(
        self, query: str, session: str | None = None, all_sessions: bool = False, limit: int = 10, offset: int = 0
    ) -> HitPage:
        """Find a text anywhere in the history, taken literally and regardless of case."""

        def work(workspace: Workspace) -> HitPage:
            asked = SearchRequest(
                query=query, session=session, all_sessions=all_sessions, max_results=_rows(limit), offset=offset
            )
            found = workspace.search(asked)
            hits = [
                Hit(
                    session=hit.row.session, index=hit.row.index if isinstance(hit.row, EntryView) else None, id=hit.row.id,
                    field=hit.field, excerpt=hit.excerpt,
                )
                for hit in found.hits
            ]  # fmt: skip
            return HitPage(hits=hits, total=found.page.total, next_offset=found.page.next_offset)

        return self._ask(work)

    def history_list(
        self, session: str | None = None, agent: str | None = None, action: str | None = None, status: str | None = None,
        newest_first: bool = False, limit: int = 10, offset: int = 0,
    ) -> EntryPage:  # fmt: skip
        """Page through a session's actions. ``status`` is ok, error, denied, interrupted or open."""

        def work(workspace: Workspace) -> EntryPage:
            asked = ListRequest.model_validate({
                "session": session, "agent": _one_name(agent), "action": _one_name(action), "status": _one_name(status),
                "newest_first": newest_first, "limit": _rows(limit), "offset": offset,
            })  # fmt: skip
            found = workspace.list(asked)
            return entry_page(found)

        return self._ask(work)

    def history_trace(
        self, action: str | None = None, agent: str | None = None, session: str | None = None, limit: int = 10, offset: int = 0
    ) -> EntryPage:
        """Return everything that happened under an action or agent, in order."""
        asked = TraceRequest(
            session=session, action=_one_name(action), agent=_one_name(agent), limit=_rows(limit), offset=offset
        )
        return self._ask(lambda workspace: entry_page(workspace.trace(asked)))

    def history_show(self, index: int, session: str | None = None, start: int = 0) -> EntryDetail:
        """Return one entry whole; -1 is the last. A long text comes in pages: ``start`` is where this one begins."""

        def work(workspace: Workspace) -> EntryDetail:
            entry = workspace.show(ShowRequest(session=session, index=index)).entry
            row = entry_row(entry, MAX_PAGE, max(start, 0))
            return EntryDetail(entry=row, next_from=max(start, 0) + MAX_PAGE if row.cut else None)

        return self._ask(work)

    def history_messages(
        self, index: int | None = None, session: str | None = None, limit: int = 10, offset: int = 0
    ) -> MessagePage:
        """Return what was said at an entry and on the way to it, or in the whole session."""

        def work(workspace: Workspace) -> MessagePage:
            found = workspace.messages(MessagesRequest(session=session, index=index, limit=_rows(limit), offset=offset))
            messages = [event_row(event) for event in found.messages]
            return MessagePage(session=found.session, messages=messages, next_offset=found.page.next_offset)

        return self._ask(work)

    def note_add(
        self,
        entries: list[int],
        text: str,
        tags: list[str] | None = None,
        author: str | None = None,
        session: str | None = None,
    ) -> Note:
        """Leave a note on entries, named by their index. Notes add to the history and never change it."""
        asked = AddNoteRequest(session=session, entry_indices=entries, content=text, tags=tags or [], author=author or None)
        return self._ask(lambda workspace: note_row(workspace.add_note(asked).note), writes=True)

    def memory_recall(self, query: str, limit: int = 5) -> list[Note]:
        """Return what earlier sessions learned about the words of a query, the best first."""
        asked = RecallRequest(query=query, limit=_rows(limit))
        return self._ask(lambda workspace: [episode_row(each) for each in workspace.recall(asked).episodes])

    def memory_retain(
        self, text: str, tags: list[str] | None = None, entries: list[int] | None = None, session: str | None = None
    ) -> Note:
        """Keep what was learned, so that any later session can recall it. ``entries`` are where it came from."""
        asked = RetainRequest(session=session, text=text, tags=tags or [], entry_indices=entries or [])
        return self._ask(lambda workspace: episode_row(workspace.retain(asked).episode), writes=True)

    def continuation_text(self, continuation_id: str) -> str:
        """Return the text of a recorded continuation.

        Raises:
            NotFound: there is none with this id.
        """
        return self._ask(lambda workspace: workspace.continuation(None, continuation_id).prompt)


def _rows(limit: int) -> int:
    # Clamped instead of refused: a model that asks for a hundred rows gets twenty and the next offset.
    return max(1, min(limit, MAX_ROWS))


def _one_name(name: str | None) -> list[str]:
    return [] if name is None else [name]


def _from_json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # not JSON, so use the text itself
        return text


def _comparison_key(value: object) -> str:
    # The order of keys makes no difference for an input.
    return json.dumps(value, sort_keys=True) if not isinstance(value, str) else value.strip()


def _values(value: object) -> list[str]:
    """Return the value of an input with one field, so that a command alone matches ``{"command": ...}``."""
    fields = json_object(value)
    return [_comparison_key(held) for held in fields.values()] if len(fields) == 1 else []
