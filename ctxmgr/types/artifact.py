"""Models of artifacts, versions and dependencies (spec 003)."""

from __future__ import annotations

from typing import Annotated, Literal

from ctxmgr.types.base import Field, Shape, Text

DependencyType = Literal["required", "optional", "reference"]
Operation = Literal["put", "create", "rollback"]


class Dependency(Shape):
    """An artifact that another one was made from or needs; ``id`` is the one that stood there when it was put."""

    id: Text
    agent: Text
    name: Text
    type: DependencyType


class ArtifactView(Shape):
    """One artifact as of one version: ``size`` in bytes, ``tokens`` by ``counter``, ``hash`` the SHA-256 of its bytes.

    ``version`` is the context's version in which this content appeared. ``path`` is relative to the folder of the store.
    """

    id: Text
    agent: Text
    name: Text
    type: Text
    version: int
    description: Text | None = None
    hash: Text
    size: int
    tokens: int
    counter: Text
    created_at: Text | None = None
    path: Text
    dependencies: list[Dependency] = []


class NewDependency(Shape):
    """What a new artifact depends on, named by its owner and name."""

    agent: Text
    name: Text
    type: DependencyType = "required"


class PutResponse(Shape):
    """The context's version after a put, and the artifacts as they stand; ``changed`` is false when nothing was new.

    ``id`` and ``path`` are those of the artifact when exactly one was put, else null.
    """

    id: Text | None
    version: int
    path: Text | None
    changed: bool
    artifacts: list[ArtifactView]


class GetResponse(Shape):
    """An artifact and its content: as text, or as base64 where its bytes are no UTF-8; null where only facts were wanted."""

    artifact: ArtifactView
    content: Text | None = None
    encoding: Literal["utf-8", "base64"] | None = None


class VersionView(Shape):
    """One version of the context; ``artifacts`` counts what it holds, ``changed`` what was new in it.

    ``parent`` is the version that was current before. ``pinned`` says what keeps it from being pruned.
    """

    version: int
    parent: int | None
    op: Operation
    description: Text | None
    created_by: Text | None
    created_at: Text | None
    current: bool
    artifacts: int
    changed: int
    path: Text
    pinned: list[Text] = []


class VersionCreated(Shape):
    """A version made on request, holding what its parent held."""

    version: int
    previous_version: int | None
    path: Text


class RolledBack(Shape):
    """A rollback; undone by rolling back to ``rolled_back_from``."""

    current_version: int
    rolled_back_from: int
    reason: Text


class Kept(Shape):
    """A version that stays, and why."""

    version: int
    reason: Text


class Pruned(Shape):
    """What pruning removed, or would remove (``dry_run``): versions, and the bytes that no other version shows."""

    dry_run: bool
    removed: list[int]
    kept: list[Kept]
    files: int
    bytes: int


class Retention(Shape):
    """Which versions stay: the newest, the young, and those named; current and pinned ones always do."""

    keep_versions: Annotated[int, Field(ge=1)] = 10
    keep_days: Annotated[float, Field(ge=0)] = 30
    always_keep: list[int] = [1]


class ArtifactDiff(Shape):
    """What changed between two versions of an artifact; ``diff`` is a unified diff, null for binary content."""

    agent: Text
    name: Text
    from_version: int
    to_version: int
    from_id: Text
    to_id: Text
    identical: bool
    added: int
    removed: int
    diff: Text | None
