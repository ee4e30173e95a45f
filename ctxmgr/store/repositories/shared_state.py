"""Read the project's shared state: context keys, rules, needs, executions, packages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ctxmgr.errors import InvalidInput
from ctxmgr.light_dataclass import dataclass
from ctxmgr.log.codec import Record
from ctxmgr.store import reserved
from ctxmgr.store.engine.interface import Engine
from ctxmgr.store.engine.spelling import replacing
from ctxmgr.store.normalise import storable
from ctxmgr.store.row_mapper import ENTRY_COLUMNS, entry_views, load

if TYPE_CHECKING:
    from ctxmgr.types.access import AccessRule
    from ctxmgr.types.context_package import AgentNeed, ContextKey
    from ctxmgr.types.view import EntryView


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """A stored summary of a content: its text, its tokens and those of the whole, and whether nothing is lost in it."""

    text: str
    tokens: int
    original_tokens: int
    lossless: bool


class Shared:
    """The shared state of a store, and the cache of summaries."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def context_keys(self) -> list[ContextKey]:
        """Return all context keys, ordered by name."""
        from ctxmgr.types.context_package import ContextKey

        rows = self._engine.query("SELECT key, value, type, description, author, ts FROM context_key ORDER BY key")
        return [
            ContextKey.model_validate(
                {
                    "key": row[0], "value": json.loads(row[1]), "type": row[2], "description": row[3], "updated_by": row[4],
                    "updated_at": row[5],
                }
            )
            for row in rows
        ]  # fmt: skip

    def rules(self) -> list[AccessRule]:
        """Return the access rules in force."""
        from ctxmgr.types.access import MAX_PRIORITY, AccessRule

        rows = self._engine.query(
            "SELECT agent, resource, pattern, permission, priority FROM access_rule "
            "ORDER BY priority, agent, resource, pattern, permission"
        )
        # 2**31 was allowed once, and no rule may fail to be read: without its rules a store would answer nobody.
        return [
            AccessRule.model_validate(
                {"agent": row[0], "resource_type": row[1], "pattern": row[2], "permission": row[3],
                 "priority": min(row[4], MAX_PRIORITY)}
            )
            for row in rows
        ]  # fmt: skip

    def needs(self, agent: str | None = None) -> list[AgentNeed]:
        """Return what packages must or may hold; of one agent, or of all."""
        from ctxmgr.types.context_package import AgentNeed

        rows = self._engine.query(
            "SELECT agent, pattern, need, max_tokens, use_summary, priority FROM need "
            f"{'' if agent is None else 'WHERE agent = :agent '}ORDER BY agent, priority, pattern",
            {} if agent is None else {"agent": storable(agent)},
        )
        return [
            AgentNeed.model_validate(
                {"agent": row[0], "pattern": row[1], "need": row[2], "max_tokens": row[3], "use_summary": bool(row[4]),
                 "priority": row[5]}
            )
            for row in rows
        ]  # fmt: skip

    def execution(self, identity: str) -> tuple[EntryView, Record] | None:
        """Return the entry and the record of the execution with this id, or with one that starts so.

        Raises:
            InvalidInput: several ids start so.
        """
        wanted = storable(identity)
        for condition in ("execution.id = :id", "execution.id >= :id AND execution.id < :after") if wanted else ():
            rows = self._engine.query(
                f"{ENTRY_COLUMNS} JOIN execution ON execution.seq = record.seq WHERE {condition} LIMIT 2",
                {"id": wanted, "after": wanted + "\U0010ffff"},
            )
            if len(rows) > 1:
                raise InvalidInput(f"several execution ids start with {identity!r}", "give more of the id")
            if rows:
                return entry_views(self._engine, rows)[0], load(rows[0][4])
        return None

    def executions(
        self, *, agent: str | None = None, task: str | None = None, sprint: str | None = None, status: str | None = None
    ) -> list[tuple[EntryView, Record]]:
        """Return executions with their records, newest first; ``status`` is started, completed or failed."""
        conditions, values = ["TRUE"], dict[str, Any]()
        for name, wanted in (("agent", agent), ("task", task), ("sprint", sprint)):
            if wanted is not None:
                conditions.append(f"execution.{name} = :{name}")
                values[name] = storable(wanted)
        if status is not None:
            stored = {"started": "= 'open'", "completed": "= 'ok'"}.get(status, "NOT IN ('open', 'ok')")
            conditions.append(f"entry.status {stored}")
        rows = self._engine.query(
            f"{ENTRY_COLUMNS} JOIN execution ON execution.seq = record.seq WHERE {' AND '.join(conditions)} "
            "ORDER BY entry.seq DESC",
            values,
        )
        return list(zip(entry_views(self._engine, rows), (load(row[4]) for row in rows), strict=True))

    def events(self, kind: str, *, newest_first: bool = False) -> list[Record]:
        """Return the events of one type of the reserved session, in the order of the log."""
        order = "DESC" if newest_first else "ASC"
        rows = self._engine.query(
            "SELECT record.body FROM event JOIN record ON record.seq = event.seq AND record.session = event.session "
            "JOIN session ON session.key = event.session "
            f"WHERE session.id = :session AND event.type = :type ORDER BY event.seq {order}",
            {"session": reserved.PROJECT, "type": kind},
        )
        return [load(row[0]) for row in rows]

    def package(self, identity: str | None = None, agent: str | None = None) -> Record | None:
        """Return the record of a package: by its id or a prefix of it, else the latest one, of one agent or of all.

        Raises:
            InvalidInput: several ids start so.
        """
        conditions, values = ["TRUE"], dict[str, Any]()
        if identity is not None:
            conditions.append("package.id >= :id AND package.id < :after")
            values |= {"id": storable(identity), "after": storable(identity) + "\U0010ffff"}
        if agent is not None:
            conditions.append("package.agent = :agent")
            values["agent"] = storable(agent)
        rows = self._engine.query(
            "SELECT record.body, package.id FROM package JOIN record ON record.seq = package.seq "
            f"WHERE {' AND '.join(conditions)} ORDER BY package.seq DESC LIMIT 2",
            values,
        )
        if identity is not None and len(rows) > 1 and identity not in (row[1] for row in rows):
            raise InvalidInput(f"several package ids start with {identity!r}", "give more of the id")
        chosen = next((row for row in rows if row[1] == identity), rows[0] if rows else None)
        return None if chosen is None else load(chosen[0])

    def summary(self, content: str, strategy: str, counter: str) -> SummaryRow | None:
        """Return the cached summary of the content with this hash."""
        rows = self._engine.query(
            "SELECT text, tokens, original_tokens, lossless FROM summary "
            "WHERE hash = :hash AND strategy = :strategy AND counter = :counter",
            {"hash": content, "strategy": strategy, "counter": counter},
        )
        return SummaryRow(str(rows[0][0]), int(rows[0][1]), int(rows[0][2]), bool(rows[0][3])) if rows else None

    def keep_summary(self, content: str, strategy: str, counter: str, made: SummaryRow) -> None:
        """Cache the summary of a content; what no artifact shows any more is dropped."""
        with self._engine.transaction():
            self._engine.execute("DELETE FROM summary WHERE hash NOT IN (SELECT hash FROM artifact)")
            self._engine.execute(
                replacing("summary", "hash, strategy, counter", "text, tokens, original_tokens, lossless"),
                {
                    "hash": content, "strategy": strategy, "counter": counter, "text": made.text, "tokens": made.tokens,
                    "original_tokens": made.original_tokens, "lossless": int(made.lossless),
                },
            )  # fmt: skip
