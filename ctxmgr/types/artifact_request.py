"""Requests about artifacts and versions (spec 003, Context Operations)."""

from __future__ import annotations

from typing import Annotated, Literal

from ctxmgr.types.artifact import ArtifactView, NewDependency, Retention
from ctxmgr.types.base import Field, Shape, Text
from ctxmgr.types.query import Limit, Offset, Page, Request, Status

VersionNumber = Annotated[int, Field(ge=1, le=2**53)]


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
