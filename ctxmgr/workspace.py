"""The public facade: open a workspace, then call its methods.

    with Workspace.open() as workspace:
        workspace.list(ListRequest(limit=20))

Every method takes one request and returns one response, the same for every front end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ctxmgr.base.light_dataclass import replace
from ctxmgr.config import Config, find_store, load_config
from ctxmgr.errors import CtxmgrError, DegenerateLoopError, HungError, NoHistory, NotFound, StorageFailed
from ctxmgr.history.open_history import check_asker_name, open_history
from ctxmgr.history.query.address import session_key
from ctxmgr.store import Store, exists
from ctxmgr.types.base import Shape

if TYPE_CHECKING:
    import builtins
    from pathlib import Path

    from ctxmgr.access.guard import AccessGuard
    from ctxmgr.access.project_state import Project
    from ctxmgr.artifacts.service import ArtifactStore
    from ctxmgr.context.service import ContextPackages
    from ctxmgr.types.analysis import SqlRequest, SqlResponse, SqlView, StatsRequest, StatsResponse
    from ctxmgr.types.import_report import ImportReport
    from ctxmgr.types.memory import (
        RecallRequest,
        RecallResponse,
        ReflectRequest,
        ReflectResponse,
        RetainRequest,
        RetainResponse,
        RetainSessionRequest,
    )
    from ctxmgr.types.operations import (
        AgentPrompt,
        AgentRequest,
        DetectRequest,
        DetectResponse,
        PromptRequest,
        RecoverRequest,
        RecoverResponse,
        SessionsRequest,
        SessionsResponse,
    )
    from ctxmgr.types.query import (
        AddNoteRequest,
        AddNoteResponse,
        CreateSnapshotRequest,
        CreateSnapshotResponse,
        ListNotesRequest,
        ListNotesResponse,
        ListRequest,
        ListResponse,
        ListSnapshotsRequest,
        ListSnapshotsResponse,
        MessagesRequest,
        MessagesResponse,
        SearchRequest,
        SearchResponse,
        ShowRequest,
        ShowResponse,
        ShowSnapshotRequest,
        ShowSnapshotResponse,
        TraceRequest,
        TraceResponse,
    )
    from ctxmgr.types.route import Continuation

_Q = TypeVar("_Q")
_R = TypeVar("_R", bound=Shape)
_T = TypeVar("_T")
_P = TypeVar("_P", "RecoverRequest", "AgentRequest")


class Workspace:
    """An open store with its settings.

    Attributes:
        store: the history as the asker may see it.
        source: the whole store; the same object, unless an agent asks.
        agent: the agent that asks, under the access rules; None for the operator.
        config: the configuration.
        warnings: warnings for a person: refused settings, no store yet, damage, masking off.
    """

    def __init__(
        self,
        store: Store,
        config: Config,
        warnings: Sequence[str] = (),
        *,
        agent: str | None = None,
        source: Store | None = None,
    ) -> None:
        self.store = store
        self.source = store if source is None else source
        self.agent = agent
        self.config = config
        self.warnings = [*config.warnings(), *warnings]

    @classmethod
    def open(
        cls,
        location: str | None = None,
        *,
        create: bool = False,
        readonly: bool = False,
        masked: bool = True,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        progress: Callable[[int, int], None] | None = None,
        agent: str | None = None,
        scratch: bool = False,
    ) -> Workspace:
        """Open the named store, else the one that `ctxmgr.config.find_store` finds.

        Args:
            location: path of the store; None to find it.
            create: create a missing store, as writing commands do. Otherwise, a missing store that nobody named is read as
                empty.
            readonly: refuse to write, as reading commands do; such a store is never migrated.
            masked: mask secrets in new records.
            folder: the folder where the search starts; by default the current one.
            environment: by default that of the process.
            progress: called with (done, total) during long indexing.
            agent: the agent that asks. It sees only what its access rules grant (spec 003, "Access Control"). Its reads are
                logged, so the store is opened for writing if possible.
            scratch: accept and discard writes if nothing can be recorded, as for another agent's log.

        Raises:
            NotFound: a store was named and does not exist.
            InvalidInput: a file of no known format, or a write to another agent's log.
            CtxmgrError: the store can't be opened.
        """
        place = os.getcwd() if folder is None else folder
        config = load_config(place, environment)
        path, explicit = (
            (location, True)
            if location is not None
            else find_store(place, os.environ if environment is None else environment, config)
        )
        if agent is not None:
            check_asker_name(agent)
        # A missing store has nothing to hide, so an agent gets the same empty history as the operator.
        if agent is not None and (create or explicit or exists(path)):
            return cls._open_as(agent, path, config, explicit=explicit, create=create, masked=masked, progress=progress)
        store, warnings = open_history(
            path,
            explicit=explicit,
            create=create,
            readonly=readonly,
            masked=masked,
            progress=progress,
            scratch=scratch,
        )
        return cls(store, config, warnings)

    @classmethod
    def _open_as(
        cls,
        agent: str,
        path: str,
        config: Config,
        *,
        explicit: bool,
        create: bool,
        masked: bool,
        progress: Callable[[int, int], None] | None,
    ) -> Workspace:
        from ctxmgr.access.rules import Rules
        from ctxmgr.history.query.filtered_store import FilteredStore

        try:
            source, _ = open_history(path, explicit=explicit, create=create, masked=masked, progress=progress, scratch=True)
        except StorageFailed:  # read-only: accesses can't be logged, but the answers are the same
            source, _ = open_history(path, explicit=explicit, readonly=True, progress=progress)
        try:
            visible = FilteredStore(source, agent, Rules(source.shared.rules()))
            return cls(visible, config, agent=agent, source=source)
        except CtxmgrError:
            source.close()
            raise

    @cached_property
    def guard(self) -> AccessGuard:
        """Access checks for resources other than the history, which is already filtered."""
        from ctxmgr.access.guard import AccessGuard

        return AccessGuard(self.source, self.agent)

    @cached_property
    def project(self) -> Project:
        """Context keys, executions and access rules."""
        from ctxmgr.access.project_state import Project

        return Project(self.source, self.store, self.guard)

    @cached_property
    def artifacts(self) -> ArtifactStore:
        """Versioned artifacts that the asker may see and change."""
        from ctxmgr.artifacts.service import ArtifactStore

        return ArtifactStore(self.source, self.guard)

    @cached_property
    def supply(self) -> ContextPackages:
        """The needs of agents, and their context packages."""
        from ctxmgr.context.service import ContextPackages

        return ContextPackages(self.source, self.store, self.guard)

    def _read(self, command: str, tool: Callable[[Store, _Q], _R], request: _Q) -> _R:
        """Call a reading tool. If an agent asks, log the shown resources or the failure."""
        return self.log_read(command, lambda: tool(self.store, request), lambda answer: answer.to_json())

    def log_read(self, command: str, tool: Callable[[], _T], shown: Callable[[_T], object]) -> _T:
        """Return what a reading tool returns; for an agent the entries and events in what it was ``shown`` are logged."""
        if self.agent is None:
            return tool()
        from ctxmgr.access.guard import find_resources

        try:
            answer = tool()
        except CtxmgrError as error:
            self.guard.log(command, "read", resource_type="history", failed=error.message, hidden=self._hidden())
            raise
        self.guard.log(command, "read", find_resources(shown(answer)), resource_type="history", hidden=self._hidden())
        return answer

    def _hidden(self) -> int:
        return int(getattr(self.store, "hidden", 0))

    def trace(self, request: TraceRequest) -> TraceResponse:
        """Return the history of an action or agent in order."""
        from ctxmgr.history.query import requests

        return self._read("trace", requests.trace, request)

    def list(self, request: ListRequest) -> ListResponse:
        """Return one page of a session's entries or events."""
        from ctxmgr.history.query import requests

        return self._read("list", requests.list_, request)

    def search(self, request: SearchRequest) -> SearchResponse:
        """Return the rows that contain a text."""
        from ctxmgr.history.query import requests

        return self._read("search", requests.search, request)

    def show(self, request: ShowRequest) -> ShowResponse:
        """Return one entry."""
        from ctxmgr.history.query import requests

        return self._read("show", requests.show, request)

    def messages(self, request: MessagesRequest) -> MessagesResponse:
        """Return the messages at an entry, or of the whole session."""
        from ctxmgr.history.query import requests

        return self._read("messages", requests.messages, request)

    def add_note(self, request: AddNoteRequest) -> AddNoteResponse:
        """Add a note to entries."""
        from ctxmgr.history.query import requests

        return requests.add_note(self.store, request)

    def list_notes(self, request: ListNotesRequest) -> ListNotesResponse:
        """Return notes by tag and text."""
        from ctxmgr.history.query import requests

        return self._read("note list", requests.list_notes, request)

    def create_snapshot(self, request: CreateSnapshotRequest) -> CreateSnapshotResponse:
        """Store a curated bundle of entries."""
        from ctxmgr.history.query import requests

        return requests.create_snapshot(self.store, request)

    def list_snapshots(self, request: ListSnapshotsRequest) -> ListSnapshotsResponse:
        """Return a session's snapshots."""
        from ctxmgr.history.query import requests

        return self._read("snapshot list", requests.list_snapshots, request)

    def show_snapshot(self, request: ShowSnapshotRequest) -> ShowSnapshotResponse:
        """Return a snapshot and its entries."""
        from ctxmgr.history.query import requests

        return self._read("snapshot show", requests.show_snapshot, request)

    def retain(self, request: RetainRequest) -> RetainResponse:
        """Store a text as an episode of memory."""
        from ctxmgr.memory.note_memory import EmbeddedMemory

        return EmbeddedMemory(self.store).retain(request)

    def retain_session(self, request: RetainSessionRequest) -> RetainResponse:
        """Store the episode of a session (what it decided, learned and left open), unless it is stored already.

        Raises:
            NoHistory: there is no session, or nothing happened in it. Denied: the asker may not write it.
        """
        from ctxmgr.memory.candidates import note_episode
        from ctxmgr.memory.episodes import retain_session
        from ctxmgr.types.memory import RetainResponse

        key = self._key(request.session)
        note = self.store.annotations.note(key, retain_session(self.store, key))
        assert note is not None, "an appended note can be read back"
        return RetainResponse(episode=note_episode(note))

    def recall(self, request: RecallRequest) -> RecallResponse:
        """Return the best matching episodes of memory."""
        from ctxmgr.memory.note_memory import EmbeddedMemory

        return self._read("memory recall", lambda store, asked: EmbeddedMemory(store).recall(asked), request)

    def reflect(self, request: ReflectRequest) -> ReflectResponse:
        """Return a digest of the recalled episodes."""
        from ctxmgr.memory.note_memory import EmbeddedMemory

        return self._read("memory reflect", lambda store, asked: EmbeddedMemory(store).reflect(asked), request)

    def sessions(self, request: SessionsRequest) -> SessionsResponse:
        """Return the sessions with the verdicts of the detectors."""
        from ctxmgr.history import detection

        return self._read("sessions", lambda store, asked: detection.sessions(store, asked, self.config.detect), request)

    def detect(self, request: DetectRequest, progress: Callable[[int, int], None] | None = None) -> DetectResponse:
        """Return the findings in one session or in all. ``progress`` is called with (sessions done, sessions in total)."""
        from ctxmgr.history import detection

        return self._read("detect", lambda store, asked: detection.detect_(store, asked, self.config.detect, progress), request)

    def sql(self, request: SqlRequest) -> SqlResponse:
        """Return the rows of a user's SELECT over the documented views (docs/sql.md).

        Raises:
            InvalidInput: the query is not a single SELECT, names a table that is not a view, or is invalid.
        """
        from ctxmgr.history import analysis

        answer = analysis.sql(self.store, request, self.config.detect)
        self._log_analysis("sql")
        return answer

    def sql_views(self) -> builtins.list[SqlView]:
        """Return the views that a query may use, with their columns."""
        from ctxmgr.history import analysis

        return analysis.views(self.store)

    def stats(self, request: StatsRequest) -> StatsResponse:
        """Return calls, failures, tokens and time by action, agent, model, day, session or status."""
        from ctxmgr.history import analysis

        session = None if request.session is None else self.store.sessions.name(self._key(request.session))
        answer = analysis.stats(self.store, request, session)
        self._log_analysis("stats")
        return answer

    def _log_analysis(self, command: str) -> None:
        """Log a read of everything that the agent may see, because sums do not tell which records they come from."""
        if self.agent is not None:
            from ctxmgr.history import analysis

            self.guard.log(command, "read", analysis.owners(self.store), resource_type="history", hidden=self._hidden())

    def adjust(self, detect: Mapping[str, Any]) -> None:
        """Replace the configured detection settings with this table."""
        self.config = replace(self.config, detect=detect)

    def require_progress(self, request: DetectRequest) -> None:
        """Check that the session is healthy, for callers that want an exception if it is not (FR-002, FR-003).

        Raises:
            DegenerateLoopError: it is in a loop; ``finding`` has the pattern.
            HungError: it has stopped making progress; ``finding`` has the last action and the time since.
        """
        for verdict in self.detect(request).verdicts:
            for finding in verdict.findings:
                if finding.resolved is None and finding.severity != "warn":
                    raised = HungError if finding.severity == "hung" else DegenerateLoopError
                    raise raised(f"session {verdict.session!r}: {finding.reason}", finding)

    def recover(self, request: RecoverRequest, progress: Callable[[str], None] | None = None) -> RecoverResponse:
        """Return exactly one continuation for a stuck session.

        Args:
            request: the session and options.
            progress: called with lines about the work of a model.

        Raises:
            NoHistory: the session is empty. NotStuck: it is healthy. RecoveryRefused: a recovery is already running.
            AttemptsUsedUp: a person is needed. InvalidInput: the request is invalid.
            NotFound: the last continuation is requested, but there is none.

        Where the store can't be written, the rules answer, nothing is stored, and a warning of the workspace says so.
        """
        if request.last:
            from ctxmgr.types.operations import RecoverResponse

            return RecoverResponse(continuation=self.continuation(request.session))
        from ctxmgr.recover.service import Service

        service, key = Service(self.store, self.config, progress=progress), self._key(request.session)
        return self._store_or_plan(lambda asked: service.answer_finding(key, asked), request)

    def request(self, request: AgentRequest, progress: Callable[[str], None] | None = None) -> RecoverResponse:
        """Answer an agent that asks for context, or a review or merge agent that has finished.

        Args:
            request: the asking agent and its question.
            progress: called with lines about the work of a model.

        Raises:
            NoHistory: the session is empty. RecoveryRefused: a recovery is already running, or the request is not allowed.
            InvalidInput: the request is invalid.

        Where the store can't be written, the answer is as that of `recover`.
        """
        from ctxmgr.recover.service import Service

        service, key = Service(self.store, self.config, progress=progress), self._key(request.session)
        return self._store_or_plan(lambda asked: service.answer_request(key, asked), request)

    def _store_or_plan(self, answer: Callable[[_P], RecoverResponse], request: _P) -> RecoverResponse:
        """Return the answer to a request. If it can't be stored, return what would have been, and add a warning."""
        try:
            return answer(request)
        except StorageFailed as error:
            if request.plan:
                raise
            found = answer(request.model_copy(update={"plan": True}))
            self.warnings.append(f"nothing was stored, so this counts as no attempt: {error.message}")
            return found.model_copy(update={"plan": None, "stored": False})

    def continuation(self, session: str | None = None, continuation_id: str | None = None) -> Continuation:
        """Return a recorded continuation: the one with this id or prefix, else the last one of the session.

        Raises:
            NotFound: there is none. InvalidInput: the prefix is ambiguous.
        """
        from ctxmgr.recover.earlier_answers import recorded_continuation

        # An id alone is searched in all sessions. Without an id, the latest session is used.
        anywhere = session is None and continuation_id is not None
        found = recorded_continuation(self.store, None if anywhere else self._key(session), continuation_id)
        if found is None:
            which = "in this session" if continuation_id is None else f"with the id {continuation_id!r}"
            raise NotFound(f"no continuation was recorded {which}", "'ctxmgr recover' gives one")
        return found

    def agent_prompt(self, request: PromptRequest) -> AgentPrompt:
        """Return the instructions for an agent that may ask the context manager, with the names in the routing table.

        Without a table, the agents of the latest session are named.

        Raises:
            NotFound: the table does not name this agent. InvalidInput: the routing table is invalid.
        """
        from ctxmgr.recover.agent_instructions import agent_prompt
        from ctxmgr.recover.routes import derive_table
        from ctxmgr.recover.service import Service

        table = Service(self.store, self.config).table(request.routes)
        if table is None:
            key = session_key(self.store, None)
            table = derive_table([] if key is None else self.store.sessions.agents(key))
        return agent_prompt(request.agent, table)

    def import_logs(
        self,
        paths: Sequence[Path | str] | None,
        *,
        only: str | None = None,
        home: Path | None = None,
        trust_project: bool = False,
        progress: Callable[[int, int, Path], None] | None = None,
        indexing: Callable[[int, int], None] | None = None,
        searching: Callable[[int, None], None] | None = None,
    ) -> ImportReport:
        """Import logs, and store the episodes of ended sessions in foreign formats; see `ctxmgr.history.ingest`."""
        from pathlib import Path

        from ctxmgr.history.formats import OWN_FORMAT
        from ctxmgr.history.ingest import import_logs

        report = import_logs(
            self.store, paths, home=home or Path.home(), environment=os.environ, only=only, trust_project=trust_project,
            progress=progress, indexing=indexing, searching=searching,
        )  # fmt: skip
        # Not for our own format: its logs have their episodes already, and export plus import must not change the records.
        foreign = [each.session for each in report.files if each.format != OWN_FORMAT]
        if report.added and foreign:
            from ctxmgr.memory.episodes import retain_ended_sessions

            retain_ended_sessions(self.store, foreign)
        return report

    def indexes(self, session: str, ids: Sequence[str]) -> dict[str, int]:
        """Return entry id -> index for those ids that exist in the session, to show references as ``@42``."""
        from ctxmgr.store.row_mapper import entry_places

        key = session_key(self.store, session)
        return {} if key is None else entry_places(self.store.engine, key, ids)

    def _key(self, session: str | None) -> int:
        key = session_key(self.store, session)
        if key is None:
            raise NoHistory(hint="record or import a run first")
        return key

    def close(self) -> None:
        """Close the store. A store that is filtered for an agent also closes the whole store."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # An error of closing must not hide the original error. Without one it is raised: records may not be on the disk.
        with suppress(CtxmgrError) if error is not None else nullcontext():
            self.close()


def release_reserve(location: str | None) -> bool:
    """Release the space reserved for a prune on a full disk. Return whether there was any.

    Args:
        location: path of the store; None to find it as `Workspace.open` does.
    """
    from ctxmgr.artifacts.folder import release_reserve

    folder = os.getcwd()
    return release_reserve(location if location is not None else find_store(folder, os.environ, load_config(folder))[0])
