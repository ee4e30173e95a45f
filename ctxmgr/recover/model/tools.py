"""The tools of a consulted model: read one session, propose notes.

They are plain functions over the reader, and only fixed texts describe them to the model. Every answer is bounded, fenced
and counted; an error is an answer too. Nothing here writes, so a tool that outlives its consultation can do no harm.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import Field

from ctxmgr.errors import CtxmgrError
from ctxmgr.history.query import tools
from ctxmgr.log.mask_prefilter import mask_value
from ctxmgr.recover.evidence.quotes import CITABLE, clip_middle, fit_value, quote_text
from ctxmgr.recover.model.exchange import Budget, Consultation, ShownNames, aliases, parse_place
from ctxmgr.recover.model.messages import entry_text, event_text
from ctxmgr.types.base import Shape
from ctxmgr.types.memory import MEMORY_TAG, RetainRequest
from ctxmgr.types.query import AddNoteRequest, CreateSnapshotRequest
from ctxmgr.types.route import CONTEXT_MANAGER
from ctxmgr.types.view import EntryView, EventView

MOST_ROWS = 20
MOST_NOTES, MOST_SNAPSHOTS, MOST_MEMORIES = 8, 2, 5
_PAGE = 6_000
_SHORT, _LONG = 160, 3_000
_FENCE = 400
_BY_MODEL = "model"
_LEAST = 300
_SHORTEST = 10
_TEXT, _TAG, _TAGS, _CITED = 600, 40, 5, 12

Reference = Annotated[str, Field(description="An entry: its id, or @ and its index, e.g. @12.")]
Elsewhere = Annotated[str | None, Field(description="A related session, e.g. s1; leave out for this one.")]
Some = Annotated[str | None, Field(description="Only rows with exactly this name; leave out for all.")]
Limit = Annotated[int, Field(description=f"Rows of the page, at most {MOST_ROWS}.")]
Offset = Annotated[int, Field(description="Rows to skip; the last page said where the next begins.")]


class Toolkit:
    """The tools of one consultation.

    Args:
        question: the consultation whose history is read.
        budget: the limits that are left.
        say: called with one line for each tool call.
    """

    def __init__(self, question: Consultation, budget: Budget, say: Callable[[str], None]) -> None:
        self._question = question
        self._budget = budget
        self._say = say
        self._lock = threading.Lock()
        self._reader, self._session = question.reader, question.reader.session
        self._agents = aliases(question.targets)
        self._sessions = question.sessions
        self._notes: list[AddNoteRequest] = []
        self._snapshots: list[CreateSnapshotRequest] = []
        self._memories: list[RetainRequest] = []
        self._shown: int | None = None  # tools run one at a time
        self.seen = ShownNames(question.cited, question.places)

    def close(self) -> tuple[tuple[AddNoteRequest, ...], tuple[CreateSnapshotRequest, ...], tuple[RetainRequest, ...]]:
        """End the consultation, and return what the model wanted written. What a late thread wants is dropped."""
        with self._lock:
            self._budget.closed = True
            return tuple(self._notes), tuple(self._snapshots), tuple(self._memories)

    def trace(self, action: Some = None, agent: Some = None, offset: Offset = 0, limit: Limit = 10) -> str:
        """Read the entries of an action or agent in order."""

        def work() -> str:
            actions, agents = [action] if action else [], self._agent_names(agent)
            return self._page("trace", self._reader.ask(tools.trace, action=actions, agent=agents, **_window(offset, limit)))

        return self._answer("trace", " ".join(quote_text(name, 40) for name in (action, agent) if name), work)

    def list_(
        self,
        offset: Offset = 0,
        limit: Limit = 10,
        newest_first: Annotated[bool, Field(description="Begin at the end of the session.")] = True,
        status: Annotated[
            str | None, Field(description="Only entries that ended so: ok, error, denied, interrupted or open.")
        ] = None,
        agent: Some = None,
        session: Elsewhere = None,
    ) -> str:
        """Read a page of the session's entries."""

        def work() -> str:
            found = self._reader.ask(
                tools.list_, session=self._of(session), kind="entry", newest_first=newest_first, agent=self._agent_names(agent),
                status=[status] if status in _STATUSES else [], **_window(offset, limit),
            )  # fmt: skip
            return self._page("list", found, session=session)

        return self._answer("list", "newest first" if newest_first else "oldest first", work)

    def search(
        self,
        query: Annotated[str, Field(description="Words as they stand in the records; found inside words too.")],
        offset: Offset = 0,
        limit: Limit = 10,
        session: Elsewhere = None,
    ) -> str:
        """Find the entries and messages in which a text occurs."""

        def work() -> str:
            window = _window(offset, limit)
            found = self._reader.ask(
                tools.search, session=self._of(session), kind="all", query=clip_middle(query, 500), max_results=window["limit"],
                offset=window["offset"], exact_total=True,
            )  # fmt: skip
            return self._page("search", found, session=session)

        return self._answer("search", quote_text(query, 60), work)

    def show(self, entry: Reference, session: Elsewhere = None) -> str:
        """Read one entry with all it says."""

        def work() -> str:
            place = self._reference(entry, session)
            found = self._reader.ask(tools.show, session=self._of(session), **place)
            return self._page("show", tools.QueryResult(None, [found], 0, 1, 1), _LONG, session)

        return self._answer("show", quote_text(entry, 60), work)

    def messages(
        self,
        entry: Annotated[str | None, Field(description="An entry (id or @index), or leave out for the whole session.")] = None,
        offset: Offset = 0,
        limit: Limit = 10,
    ) -> str:
        """Read what was said and thought at an entry, or in the session."""

        def work() -> str:
            place: dict[str, Any] = {} if entry is None else self._reference(entry)
            return self._page("messages", self._reader.ask(tools.messages, **place, **_window(offset, limit)), 400)

        return self._answer("messages", "" if entry is None else quote_text(entry, 60), work)

    def note(
        self,
        entries: Annotated[list[str], Field(description="Entries that you have looked at: ids or @index.")],
        content: Annotated[str, Field(description=f"What matters about them, at most {_TEXT} characters.")],
        tags: Annotated[list[str] | None, Field(description="A few plain words.")] = None,
    ) -> str:
        """Leave a note on entries."""

        def work() -> str:
            text = _require_text(content, "Note content cannot be empty")
            note = AddNoteRequest(content=text, tags=["recovery", _BY_MODEL, *_tags(tags or ())], **self._written_for(entries))
            return self._collect(self._notes, note, MOST_NOTES)

        return self._answer("note", quote_text(content, 60), work)

    def snapshot(
        self,
        entries: Annotated[list[str], Field(description="Entries that you have looked at: ids or @index.")],
        summary: Annotated[str, Field(description="What the bundle is.")],
        reasoning: Annotated[str, Field(description="Why these entries.")] = "",
    ) -> str:
        """Bundle entries that belong together."""

        def work() -> str:
            text = _require_text(summary, "Snapshot summary cannot be empty")
            told = self._written_for(entries, signed=False)
            bundle = CreateSnapshotRequest(summary=text, reasoning=f"by a model: {clip_middle(reasoning, _TEXT)}", **told)
            return self._collect(self._snapshots, bundle, MOST_SNAPSHOTS)

        return self._answer("snapshot", quote_text(summary, 60), work)

    def recall(
        self,
        query: Annotated[str, Field(description="Words of what you would like to remember.")],
        limit: Annotated[int, Field(description="Memories, at most 10.")] = 5,
    ) -> str:
        """Read what was remembered from this and other sessions."""

        def work() -> str:
            memory = self._question.memory
            found: Sequence[Any] = () if memory is None else memory.recall(clip_middle(query, 500), _within(limit, 10))
            rows: list[Any] = [fit_value(_plain(each), 800) for each in found]
            return self._fence_result("recall", {"status": "ok" if rows else "empty", "rows": fit_value(rows, _PAGE // 2)})

        return self._answer("recall", quote_text(query, 60), work)

    def reflect(self, question: Annotated[str, Field(description="What the memories shall be weighed for.")]) -> str:
        """Read what the memories say together."""

        def work() -> str:
            found = None if self._question.memory is None else self._question.memory.reflect(clip_middle(question, 500))
            status = "empty" if found is None else "ok"
            return self._fence_result("reflect", {"status": status, "answer": fit_value(_plain(found), _PAGE // 2)})

        return self._answer("reflect", quote_text(question, 60), work)

    def retain(
        self,
        text: Annotated[str, Field(description=f"What is worth knowing in later sessions, at most {_TEXT} characters.")],
        entries: Annotated[list[str], Field(description="Entries that show it: ids or @index.")],
    ) -> str:
        """Ask for something to be remembered beyond this session."""

        def work() -> str:
            said = _require_text(text, "A memory cannot be empty")
            memory = RetainRequest(text=said, tags=[_BY_MODEL], **self._written_for(entries))
            return self._collect(self._memories, memory, MOST_MEMORIES)

        return self._answer("retain", quote_text(text, 60), work)

    def _answer(self, tool: str, asked: str, work: Callable[[], str]) -> str:
        """Do a tool's work. Any error becomes an answer, since an exception would end the conversation."""
        if self._budget.closed:
            return _refusal("this recovery is over")
        if not self._budget.call():
            return _refusal("no call is left: answer with what you know")
        try:
            answer = work()
        except CtxmgrError as error:
            answer = _refusal(error.message)  # without the hint: it may list recorded ids outside of a fence
        except Exception as error:  # a driver's own errors, and those that only odd records provoke
            answer = _refusal(f"the history can't be read just now: {type(error).__name__}: {error}")
        self._budget.tell(len(answer))
        shown, self._shown = self._shown, None
        if not self._budget.closed:
            ended = "refused" if answer.startswith(_REFUSED) else "" if shown is None else f"{shown:,} found"
            verb = "reading" if tool in _READS else "collecting"
            self._say(f"{verb}: {tool} {asked}".rstrip() + (f" ({ended})" if ended else ""))
        return answer

    def _of(self, session: str | None) -> str:
        """Return the id of the session to read.

        Raises:
            CtxmgrError: no related session has this name.
        """
        if session is not None and session not in self._sessions:
            known = f"one of {', '.join(self._sessions)}" if self._sessions else "there is none"
            raise CtxmgrError(f"{quote_text(session, 40)} is no related session: {known}")
        return self._session if session is None else self._sessions[session]

    def _page(self, tool: str, found: tools.QueryResult, cut: int = _SHORT, session: str | None = None) -> str:
        """Return as many rows as fit. Only these count as shown."""
        related, rows = self._question.related, found.rows
        if session is not None and related is not None:
            rows = [related.read(row, self._sessions[session]) for row in rows]
        room = min(_PAGE, self._budget.characters) - _FENCE
        if room < _LEAST:
            return _refusal("nothing more can be read: answer with what you know")
        told: list[str] = []
        for row in rows[:MOST_ROWS]:
            shown, length = self._row(row, cut, session or ""), cut
            while len(shown) > room and not told and length > _SHORTEST:  # show at least one row, cut as far as needed
                length //= 2
                shown = self._row(row, length, session or "")
            if len(shown) > room:
                break
            room -= len(shown) + 1
            told.append(shown)
            if isinstance(row, EntryView) and len(row.id) <= CITABLE:
                self.seen.add(row.id, row.index, session or "")
        self._shown = found.total
        after = found.page[0] + len(told)
        more = f", the next begin at offset {after}" if told and after < found.total else ""
        head = f"{len(told)} of {found.total}{more}" if told else "none"
        return self._question.fence.text(f"history tool {tool}", "\n".join([head, *told]), limit=2 * _PAGE)

    def _row(self, row: EntryView | EventView, cut: int, session: str) -> str:
        suspicion = self._question.suspicion
        if isinstance(row, EventView):
            return mask_value(event_text(row, max(cut, 400), suspicion))
        return mask_value(entry_text(row, cut, suspicion, f"{session}@{row.index}"))

    def _fence_result(self, tool: str, body: Any) -> str:
        return self._question.fence.wrap(f"history tool {tool}", body, limit=2 * _PAGE)

    def _collect(self, kept: list[Any], wanted: object, most: int) -> str:
        with self._lock:
            if self._budget.closed:
                return _refusal("this recovery is over")
            if len(kept) >= most:
                return _refusal(f"{most} of them are enough")
            kept.append(wanted)
        return json.dumps({"status": "ok"})

    def _written_for(self, references: Sequence[str], *, signed: bool = True) -> dict[str, Any]:
        """Return session, entries and author of what the model wants written."""
        author = {"author": CONTEXT_MANAGER} if signed else {}
        return {"session": self._session, "entry_ids": self._looked_at(references), **author}

    def _looked_at(self, references: Sequence[str]) -> list[str]:
        found = [self.seen.find(reference) for reference in references[:_CITED]]
        unknown = [reference for reference, name in zip(references, found, strict=False) if name is None]
        if (related := self._question.related) is not None and related.knows(name for name in found if name is not None):
            raise CtxmgrError("name entries of this session: what other sessions hold is not annotated here")
        if unknown or not found:
            named = quote_text(unknown[0], 80) if unknown else "no entry"
            raise CtxmgrError(f"{named}: name entries that you have looked at, by id or @index")
        return list(dict.fromkeys(name for name in found if name is not None))

    def _reference(self, text: str, session: str | None = None) -> dict[str, Any]:
        text = text if session is None else text.removeprefix(session)
        known, place = self.seen.find(f"{session or ''}{text}"), parse_place(text)
        return {"index": place} if known is None and place is not None else {"entry_id": known or text.strip()}

    def _agent_names(self, agent: str | None) -> list[str]:
        return [] if not agent else [self._agents.get(agent, agent)]


_READS = ("trace", "list", "search", "show", "messages", "recall", "reflect")
_STATUSES = ("ok", "error", "denied", "interrupted", "open")
_REFUSED = '{"status": "error"'


def _refusal(reason: str) -> str:
    return json.dumps({"status": "error", "message": clip_middle(reason, 300)})


def _require_text(text: str, otherwise: str) -> str:
    if not text.strip():
        raise CtxmgrError(otherwise)
    return clip_middle(text.strip(), _TEXT)


def _tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Return the tags of a note without the tag that marks a memory: only `retain` writes memories, and fewer of them."""
    fair = (clip_middle(tag.strip(), _TAG) for tag in tags if tag.strip() and tag.strip().casefold() != MEMORY_TAG)
    return tuple(dict.fromkeys(fair))[:_TAGS]


def _within(number: int, most: int) -> int:
    return max(1, min(number, most))


def _window(offset: int, limit: int) -> dict[str, Any]:
    return {"offset": max(0, min(offset, 2**53)), "limit": _within(limit, MOST_ROWS)}


def _plain(value: Any) -> Any:
    return mask_value(value.to_json() if isinstance(value, Shape) else value)
