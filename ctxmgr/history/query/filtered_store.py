"""A store as one agent may see it: hidden records do not exist in it.

The records that the agent may read are copied into a disposable index, which grows with the history and answers all queries.
So counts, indexes, search hits and errors reveal nothing else. Writes go into the whole history, if permitted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from ctxmgr.access.guard import AccessGuard, signature
from ctxmgr.access.patterns import USER, check_agent, quote_name
from ctxmgr.access.rules import Rules
from ctxmgr.base.paths import is_url
from ctxmgr.errors import Busy, Conflict, Damaged, Denied, NotFound, StorageFailed
from ctxmgr.history.query.visibility import VisibilitySync, citations
from ctxmgr.log.codec import Record
from ctxmgr.log.reader import Line
from ctxmgr.store import DamagedRange, Store
from ctxmgr.store.engine.disposable_files import cache_name, open_cache, open_in_memory
from ctxmgr.store.engine.interface import Engine, OnConflict
from ctxmgr.store.partial_copy import PartialCopy
from ctxmgr.store.project_session import PROJECT
from ctxmgr.store.repositories.bookkeeping import Leases
from ctxmgr.store.repositories.queries import Queries, holds_record
from ctxmgr.store.text_normalisation import storable
from ctxmgr.store.verification import VerificationResult
from ctxmgr.store.write.append import AppendResult
from ctxmgr.types.record import check

_LAYOUT = "4"
"""Version of the index. A new version rebuilds every index."""

_HINT = "'ctxmgr access explain' shows the rule that decides"
_WITH_ID = ("entry", "event", "note", "snapshot", "continuation", "result")


class FilteredStore(Store):
    """A store as one agent may read it; see the module.

    Args:
        source: the whole history; it is closed with this store.
        agent: the asking agent.
        rules: the rules; only those on ``history`` are used.

    Attributes:
        agent: the asking agent.
        source: the whole history.
        hidden: number of records hidden from the agent, without those of the project's own state.
        looked_at: number of records that the last `catch_up` judged.
        copied: number of these records that it copied.

    Raises:
        InvalidInput: no agent can have this name.
        CtxmgrError: the whole history can't be read.
    """

    def __init__(self, source: Store, agent: str, rules: Rules) -> None:
        self.agent = check_agent(agent)
        self.source = source
        self.hidden = self.looked_at = self.copied = 0
        self._rules = rules
        self._guard = AccessGuard(source, self.agent, rules)
        self._use(_open_index(source.location, agent, rules.digest))
        self.catch_up()

    def _use(self, engine: Engine) -> None:
        super().__init__(engine, self.source.location, readonly=self.source.readonly, masked=True)
        self.queries = Queries(engine, exact=True)  # exact, since gaps between places would reveal the number of hidden records
        # Leases concern the real session: a lease in the copy would lock nobody out.
        self.leases = Leases(self.source.engine)
        self._extract = PartialCopy(self.source.engine, engine)

    def catch_up(self) -> None:
        """Copy the records written since last time in one transaction; all records if the history was replaced.

        Raises:
            CtxmgrError: the whole history can't be read.
        """
        self.source.catch_up()
        try:
            self._copy()
        except (Busy, Conflict, Damaged, StorageFailed):
            # The index is unusable, so use a new one in memory. If the history itself is at fault, that raises the error again.
            self.engine.close()
            self._use(open_in_memory())
            self._copy()

    def _copy(self) -> None:
        self.looked_at = self.copied = 0
        progress = self._extract.progress()
        if progress is None or self._extract.is_behind(progress):
            with self._extract.extend() as progress:
                sync = VisibilitySync(self._extract, self.agent, self._rules)
                sync.run(progress)
            self.looked_at, self.copied = sync.looked_at, sync.copied
        self.hidden = progress.hidden

    def append(self, records: Iterable[Record], *, on_conflict: OnConflict = "raise", doubles: bool = False) -> AppendResult:
        """Write records into the whole history, all or none, if the agent may; see `Store.append`.

        Raises:
            Denied: the agent may not write one of them, or another one signed it.
            NotFound: one of them names an entry or a note that is missing or hidden.
            InvalidInput, Conflict, StorageFailed, Busy: as `Store.append`.
        """
        return self._append(records, on_conflict=on_conflict, doubles=doubles)

    def append_own(self, records: Iterable[Record]) -> AppendResult:
        """Write records that the program itself signed; else as `append`."""
        return self._append(records, own=True)

    def _append(
        self, records: Iterable[Record], *, on_conflict: OnConflict = "raise", doubles: bool = False, own: bool = False
    ) -> AppendResult:
        self._require_writable()
        given = [check(record) for record in records]
        self.catch_up()
        try:
            WritePermissions(self, self._extract, self._rules, given).require(own=own)
        except Denied as error:
            self._guard.log("write history", "write", failed=error.message)
            raise
        done = self.source.append(given, on_conflict=on_conflict, doubles=doubles)
        self.catch_up()
        return done

    def signature(self, author: str | None) -> str | None:
        """Return the agent, the only one as whom it may sign.

        Raises:
            Denied: it names another author.
        """
        return self._guard.sign(author, "write history")

    def append_encoded(self, record: Record, body: bytes) -> AppendResult:
        """Write a record into the whole store, as `append` does."""
        return self.append((record,))

    def append_lines(self, lines: Iterable[Line], *, on_conflict: OnConflict = "raise") -> AppendResult:
        """Write the records of a log, as `append` does."""
        return self.append((line.record for line in lines), on_conflict=on_conflict)

    def bulk(self) -> None:
        """Return None, because each record must be checked separately."""
        return None

    def index(self, progress: object = None) -> bool:
        """Do nothing: this store is searched by reading.

        Records are copied with their places in the whole history, slightly out of order. A search index, however, relies on
        no writes below the place up to which it was built.
        """
        return False

    def count_unindexed(self) -> int:
        """Return 0: there is no index to bring up to date."""
        return 0

    def damage(self) -> list[DamagedRange]:
        """Return nothing, because damage of the whole history may concern hidden records."""
        return []

    def examine(self) -> VerificationResult:
        """Count the visible records. The checksums of the whole history can't be verified without the hidden ones."""
        return VerificationResult(sum(1 for _ in self.sessions.records(None)), [])

    def is_live(self, session: str) -> bool:
        """Whether a recorder has this session open now; False for a hidden session."""
        return self._extract.shows(storable(session)) and self.source.is_live(session)

    def clock(self) -> float:
        """Return the current time in seconds since 1970."""
        return self.source.clock()

    def close(self) -> None:
        """Release this store and the whole one."""
        try:
            super().close()
        finally:
            self.source.close()


def _open_index(location: str, agent: str, rules: str) -> Engine:
    """Return the index of an agent's view, under these rules, of the history at a location."""
    try:
        if is_url(location):
            path = location
        elif not os.path.isfile(location):
            return open_in_memory()  # like the history itself
        else:
            path = os.path.realpath(location)
    except (OSError, ValueError):
        return open_in_memory()
    identity = b"\0".join([b"seen", os.fsencode(path), agent.encode("utf-8", "surrogatepass")])
    return open_cache(cache_name(identity), cache_name(f"{_LAYOUT} {rules}".encode())[:16])


class WritePermissions:
    """Checks whether an agent may append records.

    Args:
        visible: the history as the writing agent sees it.
        extract: tells which records of the whole history the agent sees.
        rules: the agent's permissions.
        records: all records to be written together. They may name one another.
    """

    def __init__(self, visible: FilteredStore, extract: PartialCopy, rules: Rules, records: Sequence[Record]) -> None:
        self._visible = visible
        self._extract = extract
        self._agent = visible.agent
        self._rules = rules
        self._records = records
        self._new = {
            (storable(record["session"]), record["kind"], storable(record["id"])): record
            # Backwards, so that of two records with one id the first one counts, as in a write.
            for record in reversed(records)
            if record["kind"] in ("entry", "note", "snapshot", "event")
        }

    def require(self, *, own: bool = False) -> None:
        """Check that all records may be written. ``own``: the program signed them, so the agent need not have.

        Raises:
            Denied: a record needs a permission that the agent does not have, or another one signed it.
            NotFound: a record names a record that is missing or hidden.
            Conflict: a record has the id of a hidden record.
        """
        for record in self._records:
            session = storable(record["session"])
            if session == PROJECT:
                raise Denied(
                    f"session {PROJECT!r} is written by the project's own commands alone", "write into another session"
                )
            for owner in self._owners(record, session):
                if not self._rules.may(self._agent, "write", "history", owner, session):
                    message = (
                        f"agent {quote_name(self._agent)} may not write history of {quote_name(owner)} "
                        f"in session {quote_name(session)}"
                    )
                    raise Denied(message, _HINT)
            if record["kind"] == "note" and not own:
                signature(self._agent, record.get("author"))
        for record in self._records:
            self._require_new(record, storable(record["session"]))

    def _owners(self, record: Record, session: str) -> Iterable[str]:
        """Return the agents to whose history a record adds."""
        kind = record["kind"]
        if kind == "entry":
            return [str(record["agent"])]
        if kind == "result":
            return self._agents(session, [record["entry"]])
        if kind == "event":
            named = [] if record.get("entry") is None else self._agents(session, [record["entry"]])
            agent = record.get("agent")
            return [*named, *([str(agent)] if agent is not None else [] if named else [USER])]
        if kind in ("note", "snapshot"):
            return self._annotation_owners(record, session)
        if kind == "continuation":
            return self._continuation_owners(record, session)
        if kind in ("session", "sessionEnd"):
            return [self._agent]
        raise Denied(
            f"agent {quote_name(self._agent)} may not write records of kind {quote_name(str(kind))}", "only the operator may"
        )

    def _annotation_owners(self, record: Record, session: str) -> list[str]:
        author = record.get("author")
        names = [str(name) for name in record["entries"]]
        owners = self._agents(session, names) if names else [USER if author is None else str(author)]
        former = record.get("supersedes") if record["kind"] == "note" else None
        if former is not None and former != record["id"]:
            owners += self._superseded_owners(session, str(former))
        return owners

    def _superseded_owners(self, session: str, name: str) -> list[str]:
        """Return the agents whose entries the superseded note is about."""
        if (new := self._new.get((session, "note", storable(name)))) is not None:
            return self._agents(session, [str(entry) for entry in new["entries"]])
        key = self._key(session)
        note = None if key is None else self._visible.annotations.note(key, name)
        if note is None:
            raise NotFound(f"no note {name!r} to supersede", "'ctxmgr note list' shows the ids")
        return self._agents(session, note.entries) if note.entries else [USER if note.author is None else note.author]

    def _continuation_owners(self, record: Record, session: str) -> list[str]:
        target, cited = record.get("target"), citations(record)
        if not isinstance(target, str) or cited is None:
            raise Denied(f"agent {quote_name(self._agent)} may not write a continuation of this shape", "only the operator may")
        key = self._key(session)
        there: set[str] = set() if key is None else self._visible.annotations.known_ids(key, cited)
        for name in cited:
            stored = storable(name)
            if name not in there and not any(
                (session, kind, stored) in self._new for kind in ("entry", "event", "note", "snapshot")
            ):
                raise NotFound(f"no record {name!r} in session {session}", "a continuation names what is there")
        return [target]

    def _agents(self, session: str, names: Sequence[str]) -> list[str]:
        """Return the agents of entries that are visible or written in the same append.

        Raises:
            NotFound: an entry is neither.
        """
        key = self._key(session)
        bodies = {} if key is None else self._visible.annotations.entry_bodies(key, names)
        agents: dict[str, None] = {}
        for name in names:
            entry = next((body for body in bodies.get(name, []) if body.get("kind") == "entry"), None)
            entry = entry or self._new.get((session, "entry", storable(name)))
            if entry is None:
                raise NotFound(f"no entry {name!r} in session {session}", "'ctxmgr list' shows the ids")
            agents[str(entry.get("agent", ""))] = None
        return list(agents)

    def _key(self, session: str) -> int | None:
        """Return the key of the session with exactly this id."""
        return self._visible.sessions.key(session) if self._extract.shows(session) else None

    def _require_new(self, record: Record, session: str) -> None:
        """Refuse the id of a hidden record. If that record were kept, other records of this append would refer to it."""
        kind = record["kind"]
        if kind not in _WITH_ID:
            return
        name = record["entry"] if kind == "result" else record["id"]
        whole, visible = self._visible.source.engine, self._visible.engine
        if holds_record(whole, session, kind, name) and not holds_record(visible, session, kind, name):
            raise Conflict(
                f"{kind} {name!r} of session {record['session']!r} is known with other content; nothing was written",
                "give a new record a new id; records are never changed",
            )
