"""The composition root and public facade: open a workspace, then ask it.

    with Workspace.open() as workspace:
        workspace.list(ListRequest(limit=20))

Every method takes one request and returns one response, the same through every door.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ctxmgr.config import Config, find_store, load_config
from ctxmgr.errors import CtxmgrError, DegenerateLoopError, HungError, NoHistory
from ctxmgr.history import annotating, reading
from ctxmgr.history.address import session_key
from ctxmgr.history.opening import open_history
from ctxmgr.store import Store

if TYPE_CHECKING:
    from ctxmgr.types.desk import (
        AgentRequest,
        DetectRequest,
        DetectResponse,
        RecoverRequest,
        RecoverResponse,
        SessionsRequest,
        SessionsResponse,
    )
    from ctxmgr.types.importing import ImportReport
    from ctxmgr.types.memory import (
        RecallRequest,
        RecallResponse,
        ReflectRequest,
        ReflectResponse,
        RetainRequest,
        RetainResponse,
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


class Workspace:
    """One opened store with its settings.

    Attributes:
        store: the history.
        config: what the configuration file says.
        warnings: what a person should hear: no store yet, damage met, masking off.
    """

    def __init__(self, store: Store, config: Config, warnings: Sequence[str] = ()) -> None:
        self.store = store
        self.config = config
        self.warnings = list(warnings)

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
    ) -> Workspace:
        """Open the store that is meant (see `ctxmgr.config.find_store`).

        Args:
            location: path of the store; None to find it.
            create: make it when it is not there, as writing commands do. Without it an absent store that nobody named
                is read as an empty one.
            readonly: refuse to write, as reading commands do; never migrates the store.
            masked: mask secrets in what is written.
            folder: where to start looking; the current one by default.
            environment: of the process.
            progress: hears of long indexing.

        Raises:
            NotFound: a store was named and is not there.
            CtxmgrError: it can't be opened.
        """
        folder = folder or Path.cwd()
        config = load_config(folder)
        path, explicit = (
            (location, True)
            if location is not None
            else find_store(folder, os.environ if environment is None else environment, config)
        )
        store, warnings = open_history(
            path, explicit=explicit, create=create, readonly=readonly, masked=masked, progress=progress
        )
        return cls(store, config, warnings)

    def trace(self, request: TraceRequest) -> TraceResponse:
        """Return the ordered history of an action or agent."""
        return reading.trace(self.store, request)

    def list(self, request: ListRequest) -> ListResponse:
        """Return one page of a session's entries or events."""
        return reading.list_(self.store, request)

    def search(self, request: SearchRequest) -> SearchResponse:
        """Return the rows that contain a text."""
        return reading.search(self.store, request)

    def show(self, request: ShowRequest) -> ShowResponse:
        """Return one entry."""
        return reading.show(self.store, request)

    def messages(self, request: MessagesRequest) -> MessagesResponse:
        """Return what was said at an entry."""
        return reading.messages(self.store, request)

    def add_note(self, request: AddNoteRequest) -> AddNoteResponse:
        """Annotate entries."""
        return annotating.add_note(self.store, request)

    def list_notes(self, request: ListNotesRequest) -> ListNotesResponse:
        """Return notes by tag and text."""
        return annotating.list_notes(self.store, request)

    def create_snapshot(self, request: CreateSnapshotRequest) -> CreateSnapshotResponse:
        """Store a curated bundle of entries."""
        return annotating.create_snapshot(self.store, request)

    def list_snapshots(self, request: ListSnapshotsRequest) -> ListSnapshotsResponse:
        """Return a session's snapshots."""
        return annotating.list_snapshots(self.store, request)

    def show_snapshot(self, request: ShowSnapshotRequest) -> ShowSnapshotResponse:
        """Return a snapshot and its entries."""
        return annotating.show_snapshot(self.store, request)

    def retain(self, request: RetainRequest) -> RetainResponse:
        """Keep a text as an episode of memory."""
        from ctxmgr.memory.embedded import EmbeddedMemory

        return EmbeddedMemory(self.store).retain(request)

    def recall(self, request: RecallRequest) -> RecallResponse:
        """Return the episodes of memory that answer a query best."""
        from ctxmgr.memory.embedded import EmbeddedMemory

        return EmbeddedMemory(self.store).recall(request)

    def reflect(self, request: ReflectRequest) -> ReflectResponse:
        """Return what the recalled episodes say together."""
        from ctxmgr.memory.embedded import EmbeddedMemory

        return EmbeddedMemory(self.store).reflect(request)

    def sessions(self, request: SessionsRequest) -> SessionsResponse:
        """Return the sessions, each judged by the detectors."""
        from ctxmgr.history import judging

        return judging.sessions(self.store, request, self.config.detect)

    def detect(self, request: DetectRequest) -> DetectResponse:
        """Return what the detectors find in a session, or in all."""
        from ctxmgr.history import judging

        return judging.detect_(self.store, request, self.config.detect)

    def adjust(self, detect: Mapping[str, Any]) -> None:
        """Judge by this table of detection settings from now on, instead of the configuration file's."""
        self.config = replace(self.config, detect=detect)

    def require_progress(self, request: DetectRequest) -> None:
        """Return when the session is healthy, for loops that want an exception when it is not (FR-002, FR-003).

        Raises:
            DegenerateLoopError: it goes in circles; ``finding`` holds the pattern.
            HungError: it stopped making progress; ``finding`` holds the last action and the silence.
        """
        for verdict in self.detect(request).verdicts:
            for finding in verdict.findings:
                if finding.resolved is None and finding.severity != "warn":
                    raised = HungError if finding.severity == "hung" else DegenerateLoopError
                    raise raised(f"session {verdict.session!r}: {finding.reason}", finding)

    def recover(self, request: RecoverRequest, progress: Callable[[str], None] | None = None) -> RecoverResponse:
        """Return exactly one continuation for what is wrong with a session.

        Args:
            request: what is to be answered, and how.
            progress: hears what a model is doing, a line at a time.

        Raises:
            NoHistory, NotStuck, RecoveryRefused, AttemptsUsedUp, InvalidInput: each its own answer.
        """
        from ctxmgr.recover.service import Service

        return Service(self.store, self.config, progress=progress).stuck(self._key(request.session), request)

    def request(self, request: AgentRequest, progress: Callable[[str], None] | None = None) -> RecoverResponse:
        """Answer an agent that asks for context itself, or a review or merge agent that has completed.

        Args:
            request: who asks, and for what.
            progress: hears what a model is doing, a line at a time.

        Raises:
            NoHistory, RecoveryRefused, InvalidInput: each its own answer.
        """
        from ctxmgr.recover.service import Service

        return Service(self.store, self.config, progress=progress).asked(self._key(request.session), request)

    def import_logs(
        self,
        paths: Sequence[Path] | None,
        *,
        only: str | None = None,
        home: Path | None = None,
        progress: Callable[[int, int, Path], None] | None = None,
    ) -> ImportReport:
        """Bring foreign logs into the store; see `ctxmgr.history.ingest.import_logs`."""
        from ctxmgr.history.ingest import import_logs

        return import_logs(self.store, paths, home=home or Path.home(), environment=os.environ, only=only, progress=progress)

    def indexes(self, session: str, ids: Sequence[str]) -> dict[str, int]:
        """Return the index of each of the session's entries that exists, for showing references as people read them."""
        from ctxmgr.store.hydrate import entry_places

        key = session_key(self.store, session)
        return {} if key is None else entry_places(self.store.engine, key, ids)

    def _key(self, session: str | None) -> int:
        key = session_key(self.store, session)
        if key is None:
            raise NoHistory("record or import a run first")
        return key

    def close(self) -> None:
        """Release the store."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(CtxmgrError):
            self.close()
