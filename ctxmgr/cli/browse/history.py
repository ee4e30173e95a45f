"""Answer the screens' questions on threads, so that the screen never waits for the store."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from ctxmgr.errors import AttemptsUsedUp, CtxmgrError, NotStuck
from ctxmgr.history.detection import GONE_AFTER
from ctxmgr.history.query.address import session_key
from ctxmgr.log.ids import parse_time
from ctxmgr.store import LogStore
from ctxmgr.types.finding import SessionVerdict
from ctxmgr.types.operations import DetectRequest, RecoverRequest, SessionsRequest
from ctxmgr.types.query import (
    AddNoteRequest,
    ListRequest,
    MessagesRequest,
    MessagesResponse,
    SearchHit,
    SearchRequest,
    ShowRequest,
)
from ctxmgr.types.route import Continuation
from ctxmgr.types.view import EntryView, SessionView
from ctxmgr.workspace import Workspace

_T = TypeVar("_T")
Progress = Callable[[int, int], None]

_MESSAGES = 50
"""Messages shown with an entry."""

_LATEST = 20
"""Sessions that are looked at to see whether anything was recorded."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is wrong with a session, and what to do.

    Attributes:
        verdict: None where the session is gone.
        entries: those that the findings name, by id.
        continuation: recover's answer, worked out and not recorded; None where there is none.
        reason: why there is none, in words.
    """

    verdict: SessionVerdict | None
    entries: dict[str, EntryView]
    continuation: Continuation | None
    reason: str


class History:
    """One history, read on one thread, judged and searched on two others, so that slow work never delays a page."""

    def __init__(self, location: str | None) -> None:
        self._location = location
        # Three workspaces: one store must not be used by two threads at once.
        self._pages = _Reader(location)
        self._judge = _Reader(location)
        self._search = _Reader(location)
        self.warnings: list[str] = []

    async def open(self, progress: Progress | None = None) -> None:
        """Open the history; the first time a long log is opened takes a while, which ``progress`` reports.

        Raises:
            CtxmgrError: as `Workspace.open`.
        """
        self.warnings = await self._pages.ask(lambda workspace: list(workspace.warnings), progress)

    def close(self) -> None:
        """End the threads; what they still do is waited for."""
        self._pages.close()
        self._judge.close()
        self._search.close()

    async def sessions(self, offset: int, limit: int, *, judge: bool) -> tuple[list[SessionView], int]:
        """Return one page of sessions, and how many there are; with their verdicts when these are asked for."""
        # Judging takes longer than reading, so the first page is there before its verdicts.
        reader = self._judge if judge else self._pages
        found = await reader.ask(lambda each: each.sessions(SessionsRequest(offset=offset, limit=limit, judge=judge)))
        return found.sessions, found.page.total

    async def session(self, name: str | None) -> SessionView | None:
        """Return a session by id or prefix (None: the latest), None when there is none."""

        def find_session(workspace: Workspace) -> SessionView | None:
            key = session_key(workspace.store, name)
            if key is None:
                return None
            view = workspace.store.sessions.view(key)
            return view.model_copy(update={"live": workspace.store.is_live(view.session) or _grows(workspace, view)})

        return await self._pages.ask(find_session)

    async def entries(self, session: str, offset: int, limit: int) -> tuple[list[EntryView], int]:
        """Return one page of a session's entries, and how many there are."""
        found = await self._pages.ask(lambda each: each.list(ListRequest(session=session, offset=offset, limit=limit)))
        return found.entries, found.page.total

    async def entry(self, session: str, index: int) -> tuple[EntryView, MessagesResponse | None]:
        """Return an entry in full, with its messages."""

        def find_entry(workspace: Workspace) -> tuple[EntryView, MessagesResponse | None]:
            entry = workspace.show(ShowRequest(session=session, index=index)).entry
            asked = MessagesRequest(session=session, index=index, limit=_MESSAGES)
            return entry, workspace.messages(asked) if entry.events else None

        return await self._pages.ask(find_entry)

    async def search(self, query: str, session: str | None, offset: int, limit: int) -> tuple[list[SearchHit], int]:
        """Return one page of the rows that hold a text, and how many there are; without a session of all of them."""
        found = await self._search.ask_anew(
            lambda each: each.search(
                SearchRequest(
                    query=query, session=session, all_sessions=session is None, offset=offset, max_results=limit, kind="entry",
                    exact_total=True,
                )
            )
        )  # fmt: skip
        return found.hits, found.page.total

    async def judge(self, session: str) -> Judgement:
        """Judge a session and work out recover's answer."""
        return await self._judge.ask_anew(lambda workspace: _judge(workspace, session))

    async def add_note(self, session: str, index: int, content: str) -> None:
        """Annotate an entry.

        Raises:
            CtxmgrError: it can't be written, as beside another agent's log.
        """

        def add(_reading: Workspace) -> None:
            # A workspace of its own, for as long as the write takes: the browser holds no store open for writing.
            with Workspace.open(self._location) as workspace:
                workspace.add_note(AddNoteRequest(session=session, entry_indices=[index], content=content, author="user"))

        await self._pages.ask(add)

    async def catch_up(self, session: str | None) -> bool:
        """Read what others recorded meanwhile; return whether anything came, in this session or in any (None)."""
        return await self._pages.ask(lambda _: self._pages.read_on(session))


def _judge(workspace: Workspace, session: str) -> Judgement:
    found = workspace.detect(DetectRequest(session=session))
    if not found.verdicts:
        return Judgement(None, {}, None, "")
    try:
        # A plan, so that looking at a session uses up none of its attempts.
        answer = workspace.recover(RecoverRequest(session=session, plan=True)).continuation
    except NotStuck:
        return Judgement(found.verdicts[0], found.entries, None, "")
    except AttemptsUsedUp as error:
        return Judgement(found.verdicts[0], found.entries, None, error.message)
    except CtxmgrError as error:
        return Judgement(found.verdicts[0], found.entries, None, f"No answer could be worked out: {error.message}")
    return Judgement(found.verdicts[0], found.entries, answer, "")


class _Reader:
    """A workspace that only reads, on a thread of its own; opened at the first question."""

    def __init__(self, location: str | None) -> None:
        self._location = location
        self._thread = ThreadPoolExecutor(1, "ctxmgr-browse")
        self._workspace: Workspace | None = None
        self._files: list[tuple[int, int]] = []
        self._is_outdated = False
        self._seen: dict[str | None, list[SessionView]] = {}

    async def ask(self, question: Callable[[Workspace], _T], progress: Progress | None = None) -> _T:
        """Put a question to the workspace; the thread answers one after the other."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: question(self._open_workspace(progress)))

    async def ask_anew(self, question: Callable[[Workspace], _T]) -> _T:
        """As `ask`, after what others recorded meanwhile was read."""

        def read_and_ask() -> _T:
            self.read_on(None)
            return question(self._open_workspace())

        return await asyncio.get_running_loop().run_in_executor(self._thread, read_and_ask)

    def close(self) -> None:
        # On its own thread, which is the only one that may use the workspace.
        self._thread.submit(self._close)
        # What was asked is still answered: a note that is being written must not be lost.
        self._thread.shutdown(cancel_futures=False)

    def _open_workspace(self, progress: Progress | None = None) -> Workspace:
        if self._workspace is None:
            # `scratch`: another agent's log is judged beside it, where nothing may be written.
            self._workspace = Workspace.open(self._location, readonly=True, scratch=True, progress=progress)
            self._files = _file_states(self._workspace)
        return self._workspace

    def _close(self) -> None:
        if self._workspace is not None:
            self._workspace.close()
            self._workspace = None

    def read_on(self, session: str | None) -> bool:
        """Read what was recorded; return whether that is anything since this was last asked. On the reader's thread only."""
        workspace = self._open_workspace()
        if workspace.store.origin is not None:  # another agent's log is read anew where it has changed
            if _file_states(workspace) != self._files:
                # Noted until it is open again: where that fails, as between two files of a rotation, the next look says so.
                self._is_outdated = True
                self._close()
                self._open_workspace()
            changed, self._is_outdated = self._is_outdated, False
            return changed
        workspace.store.catch_up()
        before, now = self._seen.get(session), _summary(workspace, session)
        self._seen[session] = now
        # The first look only notes how things stand.
        return before is not None and before != now


def _file_states(workspace: Workspace) -> list[tuple[int, int]]:
    """Return sizes and times (in nanoseconds) of the files that a log consists of; a database has none."""
    store = workspace.store
    states: list[tuple[int, int]] = []
    for path in getattr(store, "files", [store.location] if isinstance(store, LogStore) else []):
        try:
            found = os.stat(path)
        except OSError:  # between two files of a rotation
            continue
        states.append((found.st_size, found.st_mtime_ns))
    return states


def _grows(workspace: Workspace, view: SessionView) -> bool:
    """Whether a log is probably written to: lately, and with recent records, since copying a log makes its file new."""
    now, last = workspace.store.clock(), parse_time(view.last)
    if last is None or not 0 <= now - last < GONE_AFTER:
        return False
    return any(0 <= now - written / 1e9 < GONE_AFTER for _, written in _file_states(workspace))


def _summary(workspace: Workspace, session: str | None) -> list[SessionView]:
    """Return what changes whenever something is recorded in a session, or in any."""
    sessions = workspace.store.sessions
    if session is None:
        return [view for _, view in sessions.page(0, _LATEST)]
    key = session_key(workspace.store, session)
    return [] if key is None else [sessions.view(key)]
