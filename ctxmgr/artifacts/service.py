"""Artifacts and versions as one agent may see, change and compare them; start reading here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

from ctxmgr.access.guard import AccessGuard
from ctxmgr.artifacts.finder import Finder
from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.errors import InvalidInput, NotFound
from ctxmgr.store import Store
from ctxmgr.store.repositories.shared_state import ArtifactRow
from ctxmgr.types.artifact import (
    ArtifactDiff,
    ArtifactLog,
    ArtifactLogRequest,
    ArtifactView,
    CreateVersionRequest,
    DiffRequest,
    GetRequest,
    GetResponse,
    ListArtifactsRequest,
    ListArtifactsResponse,
    NewVersion,
    PruneRequest,
    PruneResult,
    PutRequest,
    PutResponse,
    RollbackRequest,
    RollbackResult,
    VersionView,
)
from ctxmgr.types.query import Page

if TYPE_CHECKING:
    from ctxmgr.artifacts.finder import Content

MAX_ANSWERED_BYTES = 64 * 2**20
"""Largest content, in bytes, that an answer holds; larger ones are copied out to a file."""


class ArtifactStore:
    """The artifacts of a store.

    Args:
        store: the store itself, not what an agent may see of its history.
        guard: who asks; the operator by default.

    Attributes:
        warnings: what a person should hear of the last calls.
    """

    def __init__(self, store: Store, guard: AccessGuard | None = None) -> None:
        self._store = store
        self._guard = AccessGuard(store) if guard is None else guard
        self.warnings: list[str] = []

    def put(self, request: PutRequest, stream: BinaryIO | None = None) -> PutResponse:
        """Store artifacts, all or none; see `ctxmgr.artifacts.put.put`."""
        from ctxmgr.artifacts.put import put

        done = put(self._store, self._guard, request, stream)
        if request.secrets != "allow":
            self.warnings += [
                f"{name} holds what looks like a secret ({what}); it is kept exactly as it is" for name, what in done.secrets
            ]
        views = Finder(self._store, self._guard).views(done.rows, done.version)
        only = views[0] if len(views) == 1 else None
        return PutResponse(
            id=only.id if only else None, version=done.version, path=only.path if only else None, changed=done.changed,
            artifacts=views,
        )  # fmt: skip

    def get(self, request: GetRequest, *, content: bool = True) -> GetResponse:
        """Return an artifact with its content, or without.

        Raises:
            NotFound: it is not there, or may not be read.
            Damaged: its bytes were changed behind the store's back.
            InvalidInput: it is too large for an answer.
        """
        if not content:
            return GetResponse(artifact=self._find(request)[1])
        view, opened = self.open(request)
        with opened:
            if view.size > MAX_ANSWERED_BYTES:
                raise InvalidInput(f"{view.agent}/{view.name} has {view.size:,} bytes: too many for an answer", "use -o FILE")
            data = opened.read()
        try:
            return GetResponse(artifact=view, content=data.decode("utf-8"), encoding="utf-8")
        except UnicodeDecodeError:
            import base64

            return GetResponse(artifact=view, content=base64.b64encode(data).decode("ascii"), encoding="base64")

    def open(self, request: GetRequest) -> tuple[ArtifactView, Content]:
        """Return an artifact and its verified content, to be copied out and closed.

        Raises:
            NotFound, Damaged: as in `get`.
        """
        from ctxmgr.artifacts.finder import open_content

        row, view = self._find(request)
        content = open_content(self._store, row)
        self._guard.log("artifact get", "read", [(row.agent, row.name)])
        return view, content

    def _find(self, request: GetRequest) -> tuple[ArtifactRow, ArtifactView]:
        finder = Finder(self._store, self._guard)
        row, version = finder.find(request, "artifact get")
        return row, finder.views([row], version)[0]

    def list(self, request: ListArtifactsRequest) -> ListArtifactsResponse:
        """Return what a version shows.

        Raises:
            NotFound: there is no such version.
        """
        finder = Finder(self._store, self._guard)
        if request.version is not None and not finder.is_listed(request.version):
            raise NotFound(f"no version {request.version}", "'ctxmgr version list' shows them")
        version = self._store.artifacts.current() if request.version is None else request.version
        rows = [row for row in finder.state(version, request.agent) if request.type in (None, row.type)]
        page = rows[request.offset : request.offset + request.limit]
        self._guard.log("artifact list", "read", [(row.agent, row.name) for row in page])
        return ListArtifactsResponse(
            status="ok" if page else "empty",
            version=version,
            artifacts=finder.views(page, version),
            page=Page.make(request.offset, request.limit, len(page), len(rows)),
        )

    def log(self, request: ArtifactLogRequest) -> ArtifactLog:
        """Return every content that an artifact had, newest first.

        Raises:
            NotFound: it had none, or may not be read.
        """
        finder = Finder(self._store, self._guard)
        rows = finder.log(request.agent, request.name, "artifact log")
        self._guard.log("artifact log", "read", [(request.agent, request.name)])
        return ArtifactLog(artifacts=finder.views(rows))

    def diff(self, request: DiffRequest) -> ArtifactDiff:
        """Return what changed between two versions of an artifact.

        Raises:
            NotFound: it is not in one of them, had only one content, or may not be read.
            Damaged: its bytes were changed behind the store's back.
        """
        from ctxmgr.artifacts.finder import open_content

        finder = Finder(self._store, self._guard)
        new, to_version = finder.find(
            GetRequest(agent=request.agent, name=request.name, version=request.to_version), "artifact diff"
        )
        old, from_version = self._find_older_version(finder, new, request)
        with open_content(self._store, old) as before, open_content(self._store, new) as after:
            label = f"{request.agent}/{request.name}"
            found = difference(before, after, (f"{label}@v{from_version}", f"{label}@v{to_version}"))
        self._guard.log("artifact diff", "read", [(request.agent, request.name)])
        if found.note:
            self.warnings.append(found.note)
        return ArtifactDiff(
            agent=request.agent, name=request.name, from_version=from_version, to_version=to_version, from_id=old.id,
            to_id=new.id, identical=old.hash == new.hash, added=found.added, removed=found.removed, diff=found.text,
        )  # fmt: skip

    def _find_older_version(self, finder: Finder, new: ArtifactRow, request: DiffRequest) -> tuple[ArtifactRow, int]:
        if request.from_version is not None:
            return finder.find(
                GetRequest(agent=request.agent, name=request.name, version=request.from_version), "artifact diff"
            )
        rows = finder.log(request.agent, request.name, "artifact diff")
        # A version may have changed only its type or what it depends on: that is no other content to compare with.
        older = next((row for row in rows if row.version < new.version and row.hash != new.hash), None)
        if older is None:
            raise NotFound(f"{request.agent}/{request.name} had no other content before", "--from names another version")
        return older, finder.find_showing_version(older)

    def create_version(self, request: CreateVersionRequest) -> NewVersion:
        """Make a version on request; see `ctxmgr.artifacts.versions.create_version`."""
        from ctxmgr.artifacts.versions import create_version

        return create_version(self._store, self._guard, request.description, request.author)

    def rollback(self, request: RollbackRequest) -> RollbackResult:
        """Make another version current; see `ctxmgr.artifacts.versions.rollback`."""
        from ctxmgr.artifacts.versions import rollback

        return rollback(self._store, self._guard, request.version, request.reason, request.author)

    def versions(self) -> list[VersionView]:
        """Return the versions, oldest first; see `ctxmgr.artifacts.versions.list_versions`."""
        from ctxmgr.artifacts.versions import list_versions

        return list_versions(self._store, self._guard)

    def prune(self, request: PruneRequest) -> PruneResult:
        """Remove old versions; see `ctxmgr.artifacts.versions.prune`."""
        from ctxmgr.artifacts.versions import prune

        return prune(self._store, self._guard, request.retention, dry_run=request.dry_run)


LARGEST = 8 * 2**20
"""Largest content, in bytes, that is compared line by line."""
MAX_COMPARED_LINES = 4_000
"""Lines of each side that are compared, without their common start and end; difflib's time grows with the square."""
MAX_DIFF_LINES = 10_000
"""Most lines of a diff that are shown."""
CONTEXT = 3
_CUT = "too long to show whole: the diff is cut"


@dataclass(frozen=True, slots=True)
class Difference:
    """A unified diff, or None where none can be shown; ``note`` says why, or that it was cut.

    ``added`` and ``removed`` count the lines of the whole, also where the diff is cut.
    """

    text: str | None
    added: int
    removed: int
    note: str | None = None


def difference(old: Content, new: Content, names: tuple[str, str]) -> Difference:
    """Return what changed from one content to the other.

    Raises:
        Damaged: a content was changed behind the store's back.
    """
    if old.row.hash == new.row.hash:
        return Difference("", 0, 0)
    if max(old.row.size, new.row.size) > LARGEST:
        return Difference(None, 0, 0, f"larger than {LARGEST // 2**20} MB: not compared line by line")
    try:
        before, after = (content.read().decode("utf-8") for content in (old, new))
    except UnicodeDecodeError:
        return Difference(None, 0, 0, "binary content differs")
    # Valid UTF-8, but diff and git tell a binary file by it.
    if "\0" in before or "\0" in after:
        return Difference(None, 0, 0, "binary content differs")
    return text_difference(before, after, names)


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        return [line + "\n" for line in lines[:-1]]
    # The marker of diff and git, without which `patch` would add the line break.
    return [*(line + "\n" for line in lines[:-1]), lines[-1] + "\n\\ No newline at end of file\n"]


def text_difference(old: str, new: str, names: tuple[str, str]) -> Difference:
    """Return what changed from one text to the other, in the form that ``patch`` takes."""
    from difflib import unified_diff

    before, after = _lines(old), _lines(new)
    # Common lines at both ends are cut off first, so that a small change in a large file is found within the limit.
    start = _common_prefix(before, after)
    end = _common_prefix(before[start:][::-1], after[start:][::-1])
    first = max(0, start - CONTEXT)
    sides = [side[first : len(side) - max(0, end - CONTEXT)] for side in (before, after)]
    partial = any(len(side) > MAX_COMPARED_LINES for side in sides)
    drawn = list(unified_diff(sides[0][:MAX_COMPARED_LINES], sides[1][:MAX_COMPARED_LINES], *names, n=CONTEXT))
    # The first two lines name the sides, ``---`` and ``+++``.
    added = sum(line.startswith("+") for line in drawn[2:])
    removed = sum(line.startswith("-") for line in drawn[2:])
    text = "".join(_shift_hunk(line, first) for line in drawn[:MAX_DIFF_LINES])
    if partial:
        added, removed = _count_lines_of_one(*sides)
        return Difference(text, added, removed, f"{_CUT}, and lines that only moved are not counted")
    return Difference(text, added, removed, _CUT if len(drawn) > MAX_DIFF_LINES else None)


def _count_lines_of_one(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """Return how many lines only the new side has, and how many only the old one, wherever they stand."""
    from collections import Counter

    old, new = Counter(before), Counter(after)
    return (new - old).total(), (old - new).total()


def _common_prefix(before: Sequence[str], after: Sequence[str]) -> int:
    """Return the number of equal lines at the start of both."""
    for place, (one, other) in enumerate(zip(before, after, strict=False)):
        if one != other:
            return place
    return min(len(before), len(after))


def _shift_hunk(line: str, first: int) -> str:
    """Return a diff line; the line numbers of a hunk's head are shifted by ``first``, the lines cut off before."""
    if first == 0 or not line.startswith("@@"):
        return line
    words = line.split(" ")
    for place in (1, 2):
        sign, (number, comma, count) = words[place][0], words[place][1:].partition(",")
        words[place] = f"{sign}{int(number) + first}{comma}{count}"
    return " ".join(words)
