"""Read the shared state of a project: artifacts and their versions, context keys, rules, needs, executions, packages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.errors import InvalidInput
from ctxmgr.log import fast_json
from ctxmgr.log.codec import Record
from ctxmgr.store import project_session
from ctxmgr.store.engine.dialect import replace_statement
from ctxmgr.store.engine.interface import Engine, Row
from ctxmgr.store.row_mapper import ENTRY_COLUMNS, entry_views, load, readable
from ctxmgr.store.text_normalisation import storable
from ctxmgr.store.write.project_state import CURRENT, STATE

if TYPE_CHECKING:
    from ctxmgr.types.access import AccessRule
    from ctxmgr.types.project_state import AgentNeed, ContextKey
    from ctxmgr.types.view import EntryView


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """A stored summary of a content: text, tokens of the summary and of the content, and whether the summary is lossless."""

    text: str
    tokens: int
    original_tokens: int
    lossless: bool


class ProjectState:
    """The shared state of a store, and the cache of summaries."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def context_keys(self) -> list[ContextKey]:
        """Return all context keys, ordered by name."""
        from ctxmgr.types.project_state import ContextKey

        rows = self._engine.query("SELECT key, value, type, description, author, ts FROM context_key ORDER BY key")
        with readable():
            return [
                ContextKey.model_validate(
                    {
                        "key": row[0], "value": fast_json.loads(row[1]), "type": row[2], "description": row[3],
                        "updated_by": row[4], "updated_at": row[5],
                    }
                )
                for row in rows
            ]  # fmt: skip

    def rules(self) -> list[AccessRule]:
        """Return the access rules in force."""
        from ctxmgr.types.access import MAX_PRIORITY, MIN_PRIORITY, AccessRule

        rows = self._engine.query(
            "SELECT agent, resource, pattern, permission, priority FROM access_rule "
            "ORDER BY priority, agent, resource, pattern, permission"
        )
        # 2**31 was once a valid priority, and a log may contain any number. Clamp it, because a store whose rules can't be read
        # would refuse every agent.
        with readable():
            return [
                AccessRule.model_validate(
                    {"agent": row[0], "resource_type": row[1], "pattern": row[2], "permission": row[3],
                     "priority": max(MIN_PRIORITY, min(row[4], MAX_PRIORITY))}
                )
                for row in rows
            ]  # fmt: skip

    def needs(self, agent: str | None = None) -> list[AgentNeed]:
        """Return the needs of one agent, or of all: what a context package must or may contain."""
        from ctxmgr.types.project_state import AgentNeed

        rows = self._engine.query(
            "SELECT agent, pattern, need, max_tokens, use_summary, priority FROM need "
            f"{'' if agent is None else 'WHERE agent = :agent '}ORDER BY agent, priority, pattern",
            {} if agent is None else {"agent": storable(agent)},
        )
        with readable():
            return [
                AgentNeed.model_validate(
                    {"agent": row[0], "pattern": row[1], "need": row[2], "max_tokens": row[3], "use_summary": bool(row[4]),
                     "priority": row[5]}
                )
                for row in rows
            ]  # fmt: skip

    def execution(self, identity: str) -> tuple[EntryView, Record] | None:
        """Return the entry and the record of the execution with this id, or the only one whose id has this prefix, or None.

        Raises:
            InvalidInput: several ids have this prefix.
        """
        wanted = storable(identity)
        # First the exact id, because it may be a prefix of another one. The prefix is a range of ids, which uses an index; no
        # character in an id sorts after U+10FFFF.
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

    def events(self, kind: str) -> list[Record]:
        """Return the events of one type of the reserved session, in the order of the log."""
        rows = self._engine.query(
            "SELECT record.body FROM event JOIN record ON record.seq = event.seq AND record.session = event.session "
            "JOIN session ON session.key = event.session "
            "WHERE session.id = :session AND event.type = :type ORDER BY event.seq",
            {"session": project_session.PROJECT, "type": kind},
        )
        return [load(row[0]) for row in rows]

    def package(self, identity: str | None = None, agent: str | None = None) -> Record | None:
        """Return the package record with this id or prefix, or without ``identity`` the latest one; of one agent or of all.

        Raises:
            InvalidInput: several ids have this prefix.
        """
        conditions, values = ["TRUE"], dict[str, Any]()
        whole = "" if identity is None else "package.id = :id DESC, "
        if identity is not None:
            conditions.append("package.id >= :id AND package.id < :after")
            values |= {"id": storable(identity), "after": storable(identity) + "\U0010ffff"}
        if agent is not None:
            conditions.append("package.agent = :agent")
            values["agent"] = storable(agent)
        rows = self._engine.query(
            "SELECT record.body, package.id FROM package JOIN record ON record.seq = package.seq "
            # The exact id first, because it may be a prefix of others.
            f"WHERE {' AND '.join(conditions)} ORDER BY {whole}package.seq DESC LIMIT 2",
            values,
        )
        if identity is not None and len(rows) > 1 and rows[0][1] != storable(identity):
            raise InvalidInput(f"several package ids start with {identity!r}", "give more of the id")
        return load(rows[0][0]) if rows else None

    def summary(self, content: str, strategy: str, counter: str) -> SummaryRow | None:
        """Return the cached summary of the content with this hash."""
        rows = self._engine.query(
            "SELECT text, tokens, original_tokens, lossless FROM summary "
            "WHERE hash = :hash AND strategy = :strategy AND counter = :counter",
            {"hash": content, "strategy": strategy, "counter": counter},
        )
        return SummaryRow(str(rows[0][0]), int(rows[0][1]), int(rows[0][2]), bool(rows[0][3])) if rows else None

    def keep_summary(self, content: str, strategy: str, counter: str, made: SummaryRow) -> None:
        """Cache the summary of a content, and drop summaries of contents that no artifact has any more."""
        with self._engine.transaction():
            # The cache grows only here, so this is the place to limit it.
            self._engine.execute("DELETE FROM summary WHERE hash NOT IN (SELECT hash FROM artifact)")
            self._engine.execute(
                replace_statement("summary", "hash, strategy, counter", "text, tokens, original_tokens, lossless"),
                {
                    "hash": content, "strategy": strategy, "counter": counter, "text": made.text, "tokens": made.tokens,
                    "original_tokens": made.original_tokens, "lossless": int(made.lossless),
                },
            )  # fmt: skip


def ids_with_prefix(engine: Engine, start: str) -> list[str]:
    """Return the ids of artifacts with this prefix, in order."""
    rows = engine.query(
        "SELECT id FROM artifact WHERE id >= :id AND id < :after ORDER BY id",
        {"id": storable(start), "after": storable(start) + "\U0010ffff"},
    )
    return [str(row[0]) for row in rows]


def list_owners(engine: Engine, version: int) -> list[str]:
    """Return the owners of the artifacts in a version, in order."""
    rows = engine.query(
        # A version also has the artifacts of its ancestors, except those whose content it replaces.
        "WITH RECURSIVE line(number) AS (SELECT :version UNION ALL SELECT version.parent FROM version "
        "JOIN line ON version.number = line.number WHERE version.parent IS NOT NULL) "
        "SELECT DISTINCT agent FROM artifact WHERE version IN (SELECT number FROM line) ORDER BY agent",
        {"version": version},
    )
    return [str(row[0]) for row in rows]


ARTIFACT_ID = re.compile(r"art_[0-9a-f]{16}")
"""Pattern of the id of an artifact. A snapshot or a continuation that contains an id pins the artifact."""

_COLUMNS = "id, version, agent, name, type, description, hash, size, tokens, counter, ts"


@dataclass(frozen=True, slots=True)
class ArtifactRow:
    """One content of an artifact; ``version`` introduced it, ``size`` is in bytes, and ``counter`` counted the ``tokens``."""

    id: str
    version: int
    agent: str
    name: str
    type: str
    description: str | None
    hash: str
    size: int
    tokens: int
    counter: str
    ts: str | None


@dataclass(frozen=True, slots=True)
class DependencyRow:
    """A dependency of an artifact on another one: the target's id at that time, its owner and name."""

    target: str
    agent: str
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One version of the context; ``pruned`` is the time at which it was removed, else None."""

    number: int
    parent: int | None
    op: str
    description: str | None
    author: str | None
    ts: str | None
    pruned: str | None


class Artifacts:
    """The artifacts of a store. ``version`` always means a version of the context, which inherits from its parents."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def current(self) -> int | None:
        """Return the number of the current version, or None if there is none yet."""
        rows = self._engine.query("SELECT value FROM state WHERE name = :name", {"name": CURRENT})
        with readable():
            return int(rows[0][0]) if rows else None

    def highest(self) -> int:
        """Return the highest number that a version ever had, including pruned ones; 0 if there is none."""
        return int(self._engine.query("SELECT coalesce(max(number), 0) FROM version")[0][0])

    def version(self, number: int) -> VersionRow | None:
        """Return a version, pruned or not."""
        # SQLite's integers have 64 bits. A larger number would raise an error, but simply does not exist.
        if abs(number) > 2**62:
            return None
        rows = self._engine.query(
            "SELECT number, parent, op, description, author, ts, pruned FROM version WHERE number = :number", {"number": number}
        )
        return VersionRow(*rows[0]) if rows else None

    def versions(self) -> list[VersionRow]:
        """Return the versions that were not pruned, oldest first."""
        rows = self._engine.query(
            "SELECT number, parent, op, description, author, ts, pruned FROM version WHERE pruned IS NULL ORDER BY number"
        )
        return [VersionRow(*row) for row in rows]

    def state(self, version: int, agent: str | None = None) -> list[ArtifactRow]:
        """Return the artifacts of a version, of one owner (``agent``) or of all, ordered by owner and name."""
        narrowed = "" if agent is None else "AND artifact.agent = :agent "
        rows = self._engine.query(STATE.format(narrowed=narrowed), {"version": version, "agent": storable(agent or "")})
        return [_artifact(row) for row in rows]

    def find(self, agent: str, name: str, version: int) -> ArtifactRow | None:
        """Return an artifact as it is in a version."""
        rows = self._engine.query(
            STATE.format(narrowed="AND artifact.agent = :agent AND artifact.name = :name "),
            {"version": version, "agent": storable(agent), "name": storable(name)},
        )
        return _artifact(rows[0]) if rows else None

    def by_id(self, artifact: str) -> ArtifactRow | None:
        """Return the artifact with this id."""
        rows = self._engine.query(f"SELECT {_COLUMNS} FROM artifact WHERE id = :id", {"id": storable(artifact)})
        return _artifact(rows[0]) if rows else None

    def log(self, agent: str, name: str) -> list[ArtifactRow]:
        """Return every content that an artifact had, newest first."""
        rows = self._engine.query(
            f"SELECT {_COLUMNS} FROM artifact WHERE agent = :agent AND name = :name ORDER BY version DESC",
            {"agent": storable(agent), "name": storable(name)},
        )
        return [_artifact(row) for row in rows]

    def dependencies(self, artifact: str) -> list[DependencyRow]:
        """Return the dependencies of an artifact."""
        rows = self._engine.query(
            "SELECT target, agent, name, type FROM dependency WHERE artifact = :id ORDER BY agent, name",
            {"id": storable(artifact)},
        )
        return [DependencyRow(*row) for row in rows]

    def hashes(self) -> set[str]:
        """Return the hash of every content that some version shows."""
        return {str(row[0]) for row in self._engine.query("SELECT DISTINCT hash FROM artifact")}

    def pins(self) -> dict[int, list[str]]:
        """Return version -> what pins it: packages with its artifacts, and snapshots and continuations that name them."""
        found: dict[int, list[str]] = {}
        rows = self._engine.query(
            "SELECT DISTINCT artifact.version, package_item.package FROM package_item "
            "JOIN artifact ON artifact.id = package_item.artifact ORDER BY 1, 2"
        )
        for version, package in rows:
            found.setdefault(int(version), []).append(f"package {package}")
        for named, artifact in self._find_named_artifacts():
            row = self.by_id(artifact)
            if row is not None and named not in found.setdefault(row.version, []):
                found[row.version].append(named)
        return found

    def _find_named_artifacts(self) -> Iterator[tuple[str, str]]:
        """Yield (kind and id, artifact id) for records that name an artifact, or an execution that used it."""
        sql = (
            # SQLite leaves out most bodies with ``instr``, so the pattern is applied to few.
            "SELECT kind, id, body FROM record WHERE kind IN ('snapshot', 'continuation') AND instr(body, 'art_') "
            "UNION ALL SELECT pinning.kind, pinning.id, used.body FROM record AS pinning "
            "JOIN record AS used ON used.session = pinning.session JOIN execution ON execution.seq = used.seq "
            "WHERE pinning.kind IN ('snapshot', 'continuation') AND instr(pinning.body, used.id)"
        )
        for kind, identity, body in self._engine.stream(sql):
            for artifact in dict.fromkeys(ARTIFACT_ID.findall(str(body))):
                yield f"{kind} {identity}", artifact


def _artifact(row: Row) -> ArtifactRow:
    return ArtifactRow(*row[:11])
