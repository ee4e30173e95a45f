"""Read artifacts and versions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.store.engine.interface import Engine, Row
from ctxmgr.store.normalise import storable
from ctxmgr.store.write.project_state import CURRENT, STATE


def ids_starting(engine: Engine, start: str) -> list[str]:
    """Return the ids of artifacts with this prefix, in order."""
    rows = engine.query(
        "SELECT id FROM artifact WHERE id >= :id AND id < :after ORDER BY id",
        {"id": storable(start), "after": storable(start) + "\U0010ffff"},
    )
    return [str(row[0]) for row in rows]


def owners_in(engine: Engine, version: int) -> list[str]:
    """Return the owners of what a version shows, in order."""
    rows = engine.query(
        "WITH RECURSIVE line(number) AS (SELECT :version UNION ALL SELECT version.parent FROM version "
        "JOIN line ON version.number = line.number WHERE version.parent IS NOT NULL) "
        "SELECT DISTINCT agent FROM artifact WHERE version IN (SELECT number FROM line) ORDER BY agent",
        {"version": version},
    )
    return [str(row[0]) for row in rows]


ARTIFACT_ID = re.compile(r"art_[0-9a-f]{16}")
"""What the id of an artifact looks like; whatever mentions one in a snapshot or a continuation pins it."""

_COLUMNS = "id, version, agent, name, type, description, hash, size, tokens, counter, ts"


@dataclass(frozen=True, slots=True)
class ArtifactRow:
    """One artifact as of the version in which its content appeared; ``size`` in bytes, ``tokens`` by ``counter``."""

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
    """That one artifact depends on another: its id when that was said, its owner and name."""

    artifact: str
    target: str
    agent: str
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One version of the context; ``pruned`` is when it was taken away, else None."""

    number: int
    parent: int | None
    op: str
    description: str | None
    author: str | None
    ts: str | None
    pruned: str | None


class Artifacts:
    """The artifacts of a store. ``version`` always means a version of the context, whose state its parents make up."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def current(self) -> int | None:
        """Return the number of the current version, or None when there is none yet."""
        rows = self._engine.query("SELECT value FROM state WHERE name = :name", {"name": CURRENT})
        return int(rows[0][0]) if rows else None

    def highest(self) -> int:
        """Return the highest number that a version ever had, pruned ones included; 0 when there is none."""
        return int(self._engine.query("SELECT coalesce(max(number), 0) FROM version")[0][0])

    def version(self, number: int) -> VersionRow | None:
        """Return a version, pruned or not."""
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
        """Return the artifacts of a version, ordered by owner and name; ``agent`` narrows it to one owner."""
        narrowed = "" if agent is None else "AND artifact.agent = :agent "
        rows = self._engine.query(STATE.format(narrowed=narrowed), {"version": version, "agent": storable(agent or "")})
        return [_artifact(row) for row in rows]

    def find(self, agent: str, name: str, version: int) -> ArtifactRow | None:
        """Return an artifact as it stands in a version."""
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

    def changed_in(self, version: int) -> int:
        """Return how many artifacts were new or changed in a version."""
        return int(self._engine.query("SELECT count(*) FROM artifact WHERE version = :version", {"version": version})[0][0])

    def dependencies(self, artifact: str) -> list[DependencyRow]:
        """Return what an artifact depends on."""
        rows = self._engine.query(
            "SELECT artifact, target, agent, name, type FROM dependency WHERE artifact = :id ORDER BY agent, name",
            {"id": storable(artifact)},
        )
        return [DependencyRow(*row) for row in rows]

    def hashes(self) -> set[str]:
        """Return the hash of every content that some version shows."""
        return {str(row[0]) for row in self._engine.query("SELECT DISTINCT hash FROM artifact")}

    def pins(self) -> dict[int, list[str]]:
        """Return version -> what keeps it: packages that hold its artifacts, snapshots and continuations that name them."""
        found: dict[int, list[str]] = {}
        rows = self._engine.query(
            "SELECT DISTINCT artifact.version, package_item.package FROM package_item "
            "JOIN artifact ON artifact.id = package_item.artifact ORDER BY 1, 2"
        )
        for version, package in rows:
            found.setdefault(int(version), []).append(f"package {package}")
        for named, artifact in self._named():
            row = self.by_id(artifact)
            if row is not None and named not in found.setdefault(row.version, []):
                found[row.version].append(named)
        return found

    def _named(self) -> Iterator[tuple[str, str]]:
        """Yield (what, artifact id) for snapshots and continuations that name an artifact, or an execution that used it."""
        sql = (
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
