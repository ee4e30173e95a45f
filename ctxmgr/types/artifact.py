"""Models of artifacts, versions and dependencies, and the requests about them (spec 003)."""

from __future__ import annotations

from typing import Annotated, Literal

from ctxmgr.types.base import Field, Shape, Text
from ctxmgr.types.plain_records import MAX_EXACT_INTEGER
from ctxmgr.types.query import Limit, Offset, Page, Request, Status

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
    # A content that a later version still shows keeps the version in which it appeared, and so its id.
    version: int
    description: Text | None = None
    hash: Text
    size: int
    tokens: int
    # An estimate is told from an exact count by the name of what counted (ruling 17).
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
    # Bytes that are no UTF-8 would come back changed from JSON as text.
    encoding: Literal["utf-8", "base64"] | None = None


class Rollback(Shape):
    """A rollback: when, by whom, from which version, and why."""

    at: Text | None
    by: Text | None
    from_version: int | None
    reason: Text | None


class VersionView(Shape):
    """One version of the context; ``artifacts`` counts what it holds, ``changed`` what was new in it.

    ``parent`` is the version that was current before. ``pinned`` says what keeps it from being pruned. ``rollbacks`` are those
    that made it the current one again, oldest first.
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
    rollbacks: list[Rollback] = []


class NewVersion(Shape):
    """A version made on request, holding what its parent held."""

    version: int
    # After a rollback it is not the number before: the parent is what was current (ruling 18).
    previous_version: int | None
    path: Text


class RollbackResult(Shape):
    """A rollback; undone by rolling back to ``rolled_back_from``."""

    current_version: int
    rolled_back_from: int
    reason: Text


class KeptVersion(Shape):
    """A version that stays, and why."""

    version: int
    reason: Text


class PruneResult(Shape):
    """What pruning removed, or would remove (``dry_run``): versions, and the bytes that no other version shows."""

    dry_run: bool
    removed: list[int]
    kept: list[KeptVersion]
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


VersionNumber = Annotated[int, Field(ge=1, le=MAX_EXACT_INTEGER)]


class NewArtifact(Shape):
    """Content to keep under a name: as text, or as the path of a file; ``-`` is the stream that is given along.

    What is not said stays as it was for a name that is known. ``type`` else follows from the name and the content.
    """

    name: Text
    content: Text | None = None
    path: Text | None = None
    type: Text | None = None
    description: Text | None = None
    dependencies: list[NewDependency] | None = None


class PutRequest(Shape):
    """Artifacts of one owner, stored all or none; ``description`` is the new version's.

    Contents are never masked: their bytes come back as they were given. ``secrets`` says what is done about text of up to
    16 MB that holds what looks like a secret: ``warn`` of it, ``reject`` the whole request, or ``allow`` it silently.
    """

    agent: Text
    artifacts: Annotated[list[NewArtifact], Field(min_length=1)]
    description: Text | None = None
    secrets: Literal["warn", "reject", "allow"] = "warn"


class GetRequest(Shape):
    """An artifact by its id (or an unambiguous start of it) or by owner and name; without a version the current one."""

    id: Text | None = None
    agent: Text | None = None
    name: Text | None = None
    version: VersionNumber | None = None


class ListArtifactsRequest(Shape):
    """The artifacts of a version, the current one by default; ``agent`` is their owner."""

    agent: Text | None = None
    type: Text | None = None
    version: VersionNumber | None = None
    offset: Offset = 0
    limit: Limit = 100


class ListArtifactsResponse(Shape):
    """One page of artifacts, ordered by owner and name."""

    status: Status
    version: int | None
    artifacts: list[ArtifactView]
    page: Page


class ArtifactLogRequest(Shape):
    """Every content that an artifact had."""

    agent: Text
    name: Text


class ArtifactLog(Shape):
    """Every content that an artifact had, newest first."""

    artifacts: list[ArtifactView]


class DiffRequest(Shape):
    """Two versions of an artifact; by default the current one against the content before it."""

    agent: Text
    name: Text
    from_version: VersionNumber | None = None
    to_version: VersionNumber | None = None


class CreateVersionRequest(Request):
    """A version that holds what the current one holds, to give the moment a number and a description.

    ``author`` (``createdBy`` in spec 003) is who made it; an agent can name itself alone.
    """

    description: Annotated[Text, Field(min_length=1)]
    author: Text | None = None


class RollbackRequest(Request):
    """The version to make current again, why, and who asked for it (``targetVersion`` and ``requestedBy`` in spec 003)."""

    version: VersionNumber
    reason: Text
    author: Text | None = None


class PruneRequest(Shape):
    """Which versions stay; ``dry_run`` removes nothing."""

    retention: Retention = Retention()
    dry_run: bool = False
