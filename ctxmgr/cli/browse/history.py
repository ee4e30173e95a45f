"""Query the history on threads, so that the screen never waits for the store."""

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
"""Maximum number of messages to show with an entry."""

_LATEST = 20
"""Number of sessions to compare when looking for new records in all sessions."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a session, and what to do.

    Attributes:
        verdict: None if the session no longer exists.
        entries: entries that the findings name, by id.
        continuation: the answer of `recover`, as a plan that is not recorded; None if there is none.
        reason: why there is no answer, as a sentence.
    """

    verdict: SessionVerdict | None
    entries: dict[str, EntryView]
    continuation: Continuation | None
    reason: str


class History:
    """A history that is read on one thread, and judged and searched on two others. Slow work therefore never delays a page."""

    def __init__(self, location: str | None) -> None:
        self._location = location
        # Three workspaces, because two threads must not use one store at the same time.
        self._pages = _Reader(location)
        self._judge = _Reader(location)
        self._search = _Reader(location)
        self.warnings: list[str] = []

    async def open(self, progress: Progress | None = None) -> None:
        """Open the history. The first opening of a long log takes a while; ``progress`` reports it.

        Raises:
            CtxmgrError: as `Workspace.open`.
        """
        self.warnings = await self._pages.ask(lambda workspace: list(workspace.warnings), progress)

    def close(self) -> None:
        """Finish the running work and end the threads."""
        self._pages.close()
        self._judge.close()
        self._search.close()

    async def sessions(self, offset: int, limit: int, *, judge: bool) -> tuple[list[SessionView], int]:
        """Return one page of sessions and their total number. ``judge`` adds the verdicts."""
        # Judging takes longer than reading. On its own thread, it does not delay the first page.
        reader = self._judge if judge else self._pages
        found = await reader.ask(lambda each: each.sessions(SessionsRequest(offset=offset, limit=limit, judge=judge)))
        return found.sessions, found.page.total

    async def session(self, name: str | None) -> SessionView | None:
        """Return a session by id or prefix (None: the latest), or None if there is none."""

        def find_session(workspace: Workspace) -> SessionView | None:
            key = session_key(workspace.store, name)
            if key is None:
                return None
            view = workspace.store.sessions.view(key)
            return view.model_copy(update={"live": workspace.store.is_live(view.session) or _grows(workspace, view)})

        return await self._pages.ask(find_session)

    async def entries(self, session: str, offset: int, limit: int) -> tuple[list[EntryView], int]:
        """Return one page of a session's entries, and their total number."""
        found = await self._pages.ask(lambda each: each.list(ListRequest(session=session, offset=offset, limit=limit)))
        return found.entries, found.page.total

    async def entry(self, session: str, index: int) -> tuple[EntryView, MessagesResponse | None]:
        """Return a whole entry with its messages."""

        def find_entry(workspace: Workspace) -> tuple[EntryView, MessagesResponse | None]:
            entry = workspace.show(ShowRequest(session=session, index=index)).entry
            asked = MessagesRequest(session=session, index=index, limit=_MESSAGES)
            return entry, workspace.messages(asked) if entry.events else None

        return await self._pages.ask(find_entry)

    async def search(self, query: str, session: str | None, offset: int, limit: int) -> tuple[list[SearchHit], int]:
        """Return one page of the entries that contain a text, and their total number. ``session=None`` searches all."""
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
        """Judge a session and compute the answer of `recover`."""
        return await self._judge.ask_anew(lambda workspace: _judge(workspace, session))

    async def add_note(self, session: str, index: int, content: str) -> None:
        """Add a note to an entry.

        Raises:
            CtxmgrError: the note can't be written, e.g. beside another agent's log.
        """

        def add(_reading: Workspace) -> None:
            # Opened only for this write, because the browser keeps no store open for writing.
            with Workspace.open(self._location) as workspace:
                workspace.add_note(AddNoteRequest(session=session, entry_indices=[index], content=content, author="user"))

        await self._pages.ask(add)

    async def catch_up(self, session: str | None) -> bool:
        """Read new records. Return whether there are any in this session, or in any session (None)."""
        return await self._pages.ask(lambda _: self._pages.read_on(session))


def _judge(workspace: Workspace, session: str) -> Judgement:
    found = workspace.detect(DetectRequest(session=session))
    if not found.verdicts:
        return Judgement(None, {}, None, "")
    try:
        # A plan, because looking at a session must not use up its attempts.
        answer = workspace.recover(RecoverRequest(session=session, plan=True)).continuation
    except NotStuck:
        return Judgement(found.verdicts[0], found.entries, None, "")
    except AttemptsUsedUp as error:
        return Judgement(found.verdicts[0], found.entries, None, error.message)
    except CtxmgrError as error:
        return Judgement(found.verdicts[0], found.entries, None, f"No answer could be worked out: {error.message}")
    return Judgement(found.verdicts[0], found.entries, answer, "")


class _Reader:
    """A read-only workspace on its own thread, opened at the first question."""

    def __init__(self, location: str | None) -> None:
        self._location = location
        self._thread = ThreadPoolExecutor(1, "ctxmgr-browse")
        self._workspace: Workspace | None = None
        self._files: list[tuple[int, int]] = []
        self._is_outdated = False
        self._seen: dict[str | None, list[SessionView]] = {}

    async def ask(self, question: Callable[[Workspace], _T], progress: Progress | None = None) -> _T:
        """Put a question to the workspace. The thread answers questions one after another."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: question(self._open_workspace(progress)))

    async def ask_anew(self, question: Callable[[Workspace], _T]) -> _T:
        """Read new records, then answer as `ask`."""

        def read_and_ask() -> _T:
            self.read_on(None)
            return question(self._open_workspace())

        return await asyncio.get_running_loop().run_in_executor(self._thread, read_and_ask)

    def close(self) -> None:
        # Closed on its own thread, because no other thread may use the workspace.
        self._thread.submit(self._close)
        # Answer the pending questions first: a note that is being written must not be lost.
        self._thread.shutdown(cancel_futures=False)

    def _open_workspace(self, progress: Progress | None = None) -> Workspace:
        if self._workspace is None:
            # ``scratch`` judges another agent's log, beside which nothing may be written.
            self._workspace = Workspace.open(self._location, readonly=True, scratch=True, progress=progress)
            self._files = _file_states(self._workspace)
        return self._workspace

    def _close(self) -> None:
        if self._workspace is not None:
            self._workspace.close()
            self._workspace = None

    def read_on(self, session: str | None) -> bool:
        """Read new records; return whether there are any since the last call. Must run on the reader's thread."""
        workspace = self._open_workspace()
        if workspace.store.origin is not None:  # another agent's log is opened again if its files have changed
            if _file_states(workspace) != self._files:
                # Set until the log is open again. If opening fails, e.g. during a rotation, the next call reports the change.
                self._is_outdated = True
                self._close()
                self._open_workspace()
            changed, self._is_outdated = self._is_outdated, False
            return changed
        workspace.store.catch_up()
        before, now = self._seen.get(session), _summary(workspace, session)
        self._seen[session] = now
        # The first call only stores the current state.
        return before is not None and before != now


def _file_states(workspace: Workspace) -> list[tuple[int, int]]:
    """Return (size, modification time in nanoseconds) of the files of a log. A database has none."""
    store = workspace.store
    states: list[tuple[int, int]] = []
    for path in getattr(store, "files", [store.location] if isinstance(store, LogStore) else []):
        try:
            found = os.stat(path)
        except OSError:  # the file is being rotated
            continue
        states.append((found.st_size, found.st_mtime_ns))
    return states


def _grows(workspace: Workspace, view: SessionView) -> bool:
    """Whether a log is probably being written. Its records must be recent too, because a copied log is a new file."""
    now, last = workspace.store.clock(), parse_time(view.last)
    if last is None or not 0 <= now - last < GONE_AFTER:
        return False
    return any(0 <= now - written / 1e9 < GONE_AFTER for _, written in _file_states(workspace))


def _summary(workspace: Workspace, session: str | None) -> list[SessionView]:
    """Return a value that changes whenever something is recorded in a session, or in any session (None)."""
    sessions = workspace.store.sessions
    if session is None:
        return [view for _, view in sessions.page(0, _LATEST)]
    key = session_key(workspace.store, session)
    return [] if key is None else [sessions.view(key)]
