"""Check whether an agent may write records into a history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ctxmgr.access.patterns import quoted
from ctxmgr.access.resources import USER
from ctxmgr.access.rules import Rules
from ctxmgr.errors import Conflict, Denied, NotFound
from ctxmgr.history.query.visibility import citations
from ctxmgr.log.codec import Record
from ctxmgr.store import Store
from ctxmgr.store.normalise import storable
from ctxmgr.store.partial_copy import Extract
from ctxmgr.store.reserved import PROJECT

_HINT = "'ctxmgr access explain' shows the rule that decides"
_WITH_ID = ("entry", "event", "note", "snapshot", "continuation", "result")


class WritePermissions:
    """The questions of one append.

    Args:
        seen: the history as the agent sees it.
        extract: tells what of the whole history that holds.
        agent: who writes.
        rules: what it may.
        records: all that is to be written together, checked: they may name one another.
    """

    def __init__(self, seen: Store, extract: Extract, agent: str, rules: Rules, records: Sequence[Record]) -> None:
        self._seen = seen
        self._extract = extract
        self._agent = agent
        self._rules = rules
        self._records = records
        self._new = {
            (storable(record["session"]), record["kind"], storable(record["id"])): record
            for record in reversed(records)
            if record["kind"] in ("entry", "note", "snapshot", "event")
        }

    def require(self) -> None:
        """Return when all may be written.

        Raises:
            Denied: a record needs a permission that the agent does not have.
            NotFound: a record names one that is not there, or that the agent may not see.
            Conflict: a record has the id of one that is there.
        """
        for record in self._records:
            session = storable(record["session"])
            if session == PROJECT:
                raise Denied(
                    f"session {PROJECT!r} is written by the project's own commands alone", "write into another session"
                )
            for owner in self._owners(record, session):
                if not self._rules.may(self._agent, "write", "history", owner, session):
                    told = f"agent {quoted(self._agent)} may not write history of {quoted(owner)} in session {quoted(session)}"
                    raise Denied(told, _HINT)
        for record in self._records:
            self._require_new(record, storable(record["session"]))

    def _owners(self, record: Record, session: str) -> Iterable[str]:
        """Return the agents whose history a record adds to."""
        kind = record["kind"]
        if kind == "entry":
            return [str(record["agent"])]
        if kind == "result":
            return self._agents(session, [record["entry"]])
        if kind == "event":
            named = [] if record.get("entry") is None else self._agents(session, [record["entry"]])
            said = record.get("agent")
            return [*named, *([str(said)] if said is not None else [] if named else [USER])]
        if kind in ("note", "snapshot"):
            return self._annotated(record, session)
        if kind == "continuation":
            return self._continued(record, session)
        if kind in ("session", "sessionEnd"):
            return [self._agent]
        raise Denied(f"agent {quoted(self._agent)} may not write records of kind {quoted(str(kind))}", "only the operator may")

    def _annotated(self, record: Record, session: str) -> list[str]:
        author = record.get("author")
        names = [str(name) for name in record["entries"]]
        owners = self._agents(session, names) if names else [USER if author is None else str(author)]
        former = record.get("supersedes") if record["kind"] == "note" else None
        if former is not None and former != record["id"]:
            owners += self._superseded(session, str(former))
        return owners

    def _superseded(self, session: str, name: str) -> list[str]:
        """Return the agents of the entries that the note which is put out of force was attached to."""
        if (new := self._new.get((session, "note", storable(name)))) is not None:
            return self._agents(session, [str(entry) for entry in new["entries"]])
        key = self._key(session)
        note = None if key is None else self._seen.annotations.note(key, name)
        if note is None:
            raise NotFound(f"no note {name!r} to supersede", "'ctxmgr note list' shows the ids")
        return self._agents(session, note.entries) if note.entries else [USER if note.author is None else note.author]

    def _continued(self, record: Record, session: str) -> list[str]:
        target, cited = record.get("target"), citations(record)
        if not isinstance(target, str) or cited is None:
            raise Denied(f"agent {quoted(self._agent)} may not write a continuation of this shape", "only the operator may")
        key = self._key(session)
        there: set[str] = set() if key is None else self._seen.annotations.known(key, cited)
        for name in cited:
            stored = storable(name)
            if name not in there and not any(
                (session, kind, stored) in self._new for kind in ("entry", "event", "note", "snapshot")
            ):
                raise NotFound(f"no record {name!r} in session {session}", "a continuation names what is there")
        return [target]

    def _agents(self, session: str, names: Sequence[str]) -> list[str]:
        """Return the agents of entries, seen or written along.

        Raises:
            NotFound: one of them is neither.
        """
        key = self._key(session)
        bodies = {} if key is None else self._seen.annotations.entry_bodies(key, names)
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
        return self._seen.sessions.key(session) if self._extract.shows(session) else None

    def _require_new(self, record: Record, session: str) -> None:
        """Refuse an id that a hidden record has: first kept, it would let the rest of this append be about that one."""
        kind = record["kind"]
        if kind not in _WITH_ID:
            return
        name = record["entry"] if kind == "result" else record["id"]
        place = self._extract.place_of(session, kind, storable(name))
        if place is not None and not self._extract.holds(place):
            raise Conflict(
                f"{kind} {name!r} of session {record['session']!r} is known with other content; nothing was written",
                "give a new record a new id; records are never changed",
            )
