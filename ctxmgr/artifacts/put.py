"""Store what an agent produced: bytes first, then the version, then the event that lists it.

A new version locks and repairs its folder, builds the view, and appends the event last.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from ctxmgr.access.guard import AccessGuard
from ctxmgr.access.patterns import quote_name
from ctxmgr.artifacts.blobs import BINARY, PIECE, BlobStore, ContentMetadata, Measure, Objects, list_secrets
from ctxmgr.artifacts.folder import LOCK_SECONDS, Folder, check_names
from ctxmgr.artifacts.version_folders import Views, repair
from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.errors import Busy, Damaged, Denied, InvalidInput, NotFound, StorageFailed
from ctxmgr.log import codec
from ctxmgr.log.codec import Record
from ctxmgr.log.ids import new_id, now
from ctxmgr.store import LogStore, Store
from ctxmgr.store.project_session import PROJECT, VERSION
from ctxmgr.store.repositories.shared_state import ArtifactRow, DependencyRow
from ctxmgr.text.tokens import KINDS, TEXT, known_kind
from ctxmgr.types.artifact import NewArtifact, PutRequest
from ctxmgr.types.plain_records import MAX_EXACT_INTEGER, build

_WHO = "'ctxmgr access explain' names the rule; --as says who asks, --agent whose artifact it is"


class FileSource:
    """A regular file, read once from its start; it may be reached through links, which are its owner's business.

    Raises:
        NotFound, InvalidInput, StorageFailed: nothing is there, it is no regular file, or it can't be opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        if not path or "\0" in path:
            raise InvalidInput(f"{path!r} can't name a file", "give the path of the artifact's content, or - for stdin")
        try:
            # O_NONBLOCK and O_NOCTTY: a FIFO without a writer must not block, nor a terminal become ours, before it is refused
            # below.
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound(f"no file at {path}", "give the path of the artifact's content, or - for stdin") from None
        except OSError as error:
            raise _unreadable(path, error) from None
        mode = os.fstat(self._descriptor).st_mode
        if not stat.S_ISREG(mode):
            self.close()
            what = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
            raise InvalidInput(f"{path} is {what}", "name files one by one; a pipe is read from stdin, given as -")

    @property
    def size(self) -> int:
        """Its present length in bytes."""
        return os.fstat(self._descriptor).st_size

    def pieces(self) -> Iterator[bytes]:
        """Yield the content.

        Raises:
            StorageFailed: it can't be read, or it changed meanwhile.
        """
        try:
            before = _state(self._descriptor)
            place = 0
            while piece := os.pread(self._descriptor, PIECE, place):
                place += len(piece)
                yield piece
            # A mixture of two states of a file would be stored as if it had existed.
            if _state(self._descriptor) != before or place != before[0]:
                raise StorageFailed(f"{self.path} changed while it was read", "try again when nothing writes to it")
        except OSError as error:
            raise _unreadable(self.path, error) from None

    def close(self) -> None:
        """Release the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class StreamSource:
    """A stream that is read to its end."""

    size: int | None = None

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def pieces(self) -> Iterator[bytes]:
        """Yield the content.

        Raises:
            StorageFailed: it can't be read.
        """
        try:
            while piece := self._stream.read(PIECE):
                yield piece
        except OSError as error:
            raise _unreadable("stdin", error) from None

    def close(self) -> None:
        """Do nothing: the stream belongs to the caller."""


class TextSource:
    """A text in memory, stored as UTF-8."""

    def __init__(self, text: str) -> None:
        try:
            self._bytes = text.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidInput("the content holds an unpaired surrogate", "give whole characters, or a file") from None
        self.size: int | None = len(self._bytes)

    def pieces(self) -> Iterator[bytes]:
        """Yield the content."""
        for start in range(0, len(self._bytes), PIECE):
            yield self._bytes[start : start + PIECE]

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


AnySource = FileSource | StreamSource | TextSource


def _state(descriptor: int) -> tuple[int, int, int]:
    found = os.fstat(descriptor)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _unreadable(path: str, error: OSError) -> StorageFailed:
    return StorageFailed(f"{path} can't be read: {error.strerror}", "check it, and its permissions; nothing was stored")


MAX_DEPENDENCIES = 1_000
"""Most dependencies that one artifact may have."""


class Dependencies:
    """The dependencies of the artifacts of one put, checked on construction.

    Raises:
        NotFound: one of them is not there, or may not be read: the two look the same.
        InvalidInput: an artifact depends on itself, twice on the same, or on too many.
    """

    def __init__(self, store: Store, guard: AccessGuard, current: int | None, request: PutRequest) -> None:
        self._store, self._current, self._agent = store, current, request.agent
        self._items = {item.name: item for item in request.artifacts}
        for item in request.artifacts:
            self._check(guard, item)

    def _check(self, guard: AccessGuard, item: NewArtifact) -> None:
        seen: set[tuple[str, str]] = set()
        for needed in item.dependencies or ():
            key = (needed.agent, needed.name)
            if key == (self._agent, item.name):
                raise InvalidInput(f"{quote_name(item.name)} depends on itself", "name what it was made from")
            if key in seen or len(seen) >= MAX_DEPENDENCIES:
                raise InvalidInput(
                    f"{quote_name(item.name)} depends on {'/'.join(key)} twice, or on too many", "name each once"
                )
            seen.add(key)
            in_request = needed.agent == self._agent and needed.name in self._items
            if not in_request and (self._current_row(*key) is None or not guard.reads(*key)):
                guard.log("artifact put", "read", denied=[key], failed="no such dependency")
                raise NotFound(f"no artifact {needed.agent}/{needed.name} to depend on", "'ctxmgr artifact list' shows all")

    def _current_row(self, agent: str, name: str) -> ArtifactRow | None:
        return None if self._current is None else self._store.artifacts.find(agent, name, self._current)

    def are_unchanged(self, item: NewArtifact, known: ArtifactRow) -> bool:
        """Whether an artifact's dependencies are unchanged; a request that does not mention them leaves them so."""
        if item.dependencies is None:
            return True
        before = {(row.agent, row.name, row.type) for row in self._store.artifacts.dependencies(known.id)}
        return before == {(needed.agent, needed.name, needed.type) for needed in item.dependencies}

    def current_dependencies(
        self, row: ArtifactRow, known: ArtifactRow | None, changed: Mapping[str, ArtifactRow]
    ) -> Sequence[DependencyRow]:
        """Return the dependencies of a new artifact, with the ids that are current once this put is done."""
        given = self._items[row.name].dependencies
        if given is not None:
            named = [(needed.agent, needed.name, str(needed.type), "") for needed in given]
        else:
            before = () if known is None else self._store.artifacts.dependencies(known.id)
            named = [(old.agent, old.name, old.type, old.target) for old in before]
        return [DependencyRow(self._id(agent, name, changed) or old, agent, name, kind) for agent, name, kind, old in named]

    def _id(self, agent: str, name: str, changed: Mapping[str, ArtifactRow]) -> str | None:
        if agent == self._agent and name in changed:
            return changed[name].id
        standing = self._current_row(agent, name)
        return None if standing is None else standing.id


MAX_DESCRIPTION = 10_000
"""Longest description, in characters."""
_BATCH = 16  # artifacts; from here on, one sync of the whole file system costs less than one for each object


@dataclass(frozen=True, slots=True)
class PutResult:
    """The result of a put: the version that is current now, its artifacts, and what in them looks like secrets.

    ``secrets`` holds (artifact name, findings with their lines) of each artifact that has any.
    """

    version: int
    changed: bool
    rows: list[ArtifactRow]
    secrets: list[tuple[str, str]]


def put(store: Store, guard: AccessGuard, request: PutRequest, stream: BinaryIO | None = None) -> PutResult:
    """Store artifacts, all or none; unchanged ones make no new version.

    Args:
        store: the store to write to.
        guard: who asks.
        request: the artifacts to store.
        stream: read for an artifact whose path is ``-``.

    Raises:
        Denied: the asker may not write one of them, whether it is there or not.
        InvalidInput, NotFound, StorageFailed, Busy: each its own reason; nothing was stored.
    """
    _check(guard, request, stream)
    with write_access(store, each=len(request.artifacts) < _BATCH) as access:
        known = _known_dependencies(store, access, request)
        dependencies = Dependencies(store, guard, access.current, request)
        measurements = [
            _store_content(access.blobs, item, known.get(item.name), stream, reject=request.secrets == "reject")
            for item in request.artifacts
        ]
        changed = {
            item.name: _row(request.agent, item, measured, known.get(item.name), access.next)
            for item, measured in zip(request.artifacts, measurements, strict=True)
            if not _is_artifact_unchanged(item, measured, known.get(item.name), dependencies)
        }
        if changed:
            # Objects must be durable before the event that lists them: a crash in between leaves surplus bytes, never a listed
            # gap.
            access.blobs.settle()
            drafts = [
                VersionDraft(row, dependencies.current_dependencies(row, known.get(row.name), changed))
                for row in changed.values()
            ]
            write_version(
                store, access, drafts, op="put", author=guard.agent or request.agent, description=request.description
            )  # fmt: skip
        if access.blobs.replaced and access.folder is not None:  # version folders still link the bytes that somebody changed
            repair(store, access.folder, broken=True)
        now = access.next if changed else access.current or 0
        after = {row.name: row for row in store.artifacts.state(now, request.agent)} if changed else known
    guard.log("artifact put", "write", [(request.agent, item.name) for item in request.artifacts])
    found = zip(request.artifacts, measurements, strict=True)
    secrets = [(item.name, list_secrets(measured.secrets)) for item, measured in found if measured.secrets]
    return PutResult(now, bool(changed), [after[item.name] for item in request.artifacts], secrets)


def _known_dependencies(store: Store, access: WriteAccess, request: PutRequest) -> Mapping[str, ArtifactRow]:
    if access.current is None:
        return {}
    # One lookup instead of a whole state: agents put one file at a time into large versions.
    if len(request.artifacts) == 1:
        row = store.artifacts.find(request.agent, request.artifacts[0].name, access.current)
        return {} if row is None else {row.name: row}
    return {row.name: row for row in store.artifacts.state(access.current, request.agent)}


def _check(guard: AccessGuard, request: PutRequest, stream: BinaryIO | None) -> None:
    seen: set[str] = set()
    for item in request.artifacts:
        check_names(request.agent, item.name)
        if item.name in seen:
            raise InvalidInput(f"{quote_name(item.name)} is given twice", "give each artifact a name of its own")
        seen.add(item.name)
        if (item.content is None) == (item.path is None):
            raise InvalidInput(f"{quote_name(item.name)} needs either content or a path", "give one of them")
        parse_kind(item.type)
        check_description(item.description)
    check_description(request.description)
    streamed = sum(item.path == "-" for item in request.artifacts)
    if streamed > 1 or (streamed and stream is None):
        raise InvalidInput("there is no stream for each '-'", "one stream can be read, once; give the others as files")
    # Asked last among the checks, but before any look at the store: the answer does not depend on whether it exists.
    refused = [(request.agent, item.name) for item in request.artifacts if not guard.writes(request.agent, item.name)]
    if refused:
        guard.log("artifact put", "write", denied=refused)
        owner, name = refused[0]
        raise Denied(f"{guard.agent} may not write the artifact {owner}/{name}", _WHO)


def check_description(text: str | None) -> None:
    """Check a description; None is none.

    Raises:
        InvalidInput: it is too long, or holds an unpaired surrogate.
    """
    if text is None:
        return
    if len(text) > MAX_DESCRIPTION:
        raise InvalidInput(f"the text has {len(text):,} characters; the limit is {MAX_DESCRIPTION:,}", "keep it as an artifact")
    if any(0xD800 <= ord(letter) < 0xE000 for letter in text) or "\0" in text:
        raise InvalidInput("the text holds a NUL or an unpaired surrogate", "give whole characters")


def parse_kind(word: str | None) -> str | None:
    """Return the artifact type that a word names; None for None.

    Raises:
        InvalidInput: it means no known type.
    """
    if word is None:
        return None
    plain = word.strip().lower()
    if plain == BINARY:
        return BINARY
    kind = known_kind(word)
    if kind == TEXT and plain not in (TEXT, "prose", "plain"):
        raise InvalidInput(f"no artifact type is called {quote_name(word)}", f"known: {', '.join((*KINDS, BINARY))}")
    return kind


def _source(item: NewArtifact, stream: BinaryIO | None) -> AnySource:
    if item.content is not None:
        return TextSource(item.content)
    return StreamSource(stream) if item.path == "-" and stream is not None else FileSource(item.path or "")


def _store_content(
    blobs: BlobStore, item: NewArtifact, known: ArtifactRow | None, stream: BinaryIO | None, *, reject: bool
) -> ContentMetadata:
    """Store one artifact's content and return its metadata; content that is stored already is not written again."""
    kind, usual = parse_kind(item.type), None if known is None else known.type
    source = _source(item, stream)
    try:
        return blobs.take(lambda: Measure(item.name, kind, usual, reject=reject), source, known)
    finally:
        source.close()


def _row(agent: str, item: NewArtifact, measured: ContentMetadata, known: ArtifactRow | None, number: int) -> ArtifactRow:
    return ArtifactRow(
        id=artifact_id(agent, item.name, number, measured.hash),
        version=number,
        agent=agent,
        name=item.name,
        type=measured.type,
        description=_description(item, known),
        hash=measured.hash,
        size=measured.size,
        tokens=measured.tokens,
        counter=measured.counter,
        ts=None,
    )


def _description(item: NewArtifact, known: ArtifactRow | None) -> str | None:
    if item.description is None:
        return None if known is None else known.description
    return item.description or None


def artifact_id(agent: str, name: str, version: int, digest: str) -> str:
    """Return the id of an artifact: derived from owner, name, version and content, so it is the same on every machine."""
    text = "\0".join((agent, name, str(version), digest))
    return "art_" + codec.digest(text.encode("utf-8"))[:16]


def _is_artifact_unchanged(
    item: NewArtifact, measured: ContentMetadata, known: ArtifactRow | None, dependencies: Dependencies
) -> bool:
    return (
        known is not None
        and (measured.hash, measured.type, _description(item, known)) == (known.hash, known.type, known.description)
        and dependencies.are_unchanged(item, known)
    )


_EVENT_OVERHEAD = 10_000  # bytes of an event without its artifacts; generous


@dataclass(frozen=True, slots=True)
class WriteAccess:
    """The right to change a store's artifacts, and the versions at that moment.

    Attributes:
        blobs: where contents are kept.
        folder: open, its lock held; None on a server, which has none.
        current: the current version, None when there is none yet.
        next: the number of the version that a change would create.
    """

    blobs: BlobStore
    folder: Folder | None
    current: int | None
    next: int


@dataclass(frozen=True, slots=True)
class VersionDraft:
    """An artifact to be listed in a new version; ``row`` is complete but for its time."""

    row: ArtifactRow
    dependencies: Sequence[DependencyRow] = field(default_factory=lambda: list[DependencyRow]())


@contextlib.contextmanager
def write_access(store: Store, timeout: float = LOCK_SECONDS, *, each: bool = True) -> Generator[WriteAccess]:
    """Take the lock of artifacts, repair what an earlier writer left, and yield the state of the versions.

    Args:
        store: to write to.
        timeout: how many seconds to wait for another writer.
        each: sync every content by itself.

    Raises:
        Busy: another process writes artifacts for too long.
        CtxmgrError: the folder or the store can't be used.
    """
    if store.readonly:
        raise StorageFailed(f"{store.location} was opened for reading only", "open it for writing")
    if (rows := store.blobs()) is not None:
        from ctxmgr.artifacts.server_blobs import ServerBlobs

        with rows.writer_lock(timeout), ServerBlobs(rows, store.engine.path) as blobs:
            yield _access(store, blobs, None)
        return
    with Folder(store.location, create=True) as folder, folder.writer_lock(timeout) as broken:
        if isinstance(store, LogStore):
            store.catch_up()  # another process may have written since it was opened
        repair(store, folder, broken=broken)
        yield _access(store, Objects(folder, each=each), folder)
        folder.keep_reserve()


def _access(store: Store, blobs: BlobStore, folder: Folder | None) -> WriteAccess:
    # Highest, not current: after a rollback numbers go on from the top (ruling 18), so no number is ever used twice.
    highest = store.artifacts.highest()
    if highest >= MAX_EXACT_INTEGER:
        raise Damaged(f"the highest version is {highest}: there is no number after it", "a foreign history may say so")
    return WriteAccess(blobs, folder, store.artifacts.current(), highest + 1)


@contextlib.contextmanager
def _durably(store: Store) -> Generator[None]:
    """Make the appends inside durable against power loss (level ``os``); enter it outside of a transaction.

    A log is synced by each append that opens and closes it, as stores do; a database at its commit.
    """
    engine = store.engine
    if isinstance(store, LogStore) or engine.readonly:
        yield
        return
    with engine.durably():
        yield


def append(store: Store, kind: str, author: str, data: dict[str, Any], check: Callable[[], bool]) -> None:
    """Append an event of the reserved session, durably, if ``check`` still holds inside the transaction.

    Raises:
        Busy: somebody else changed the versions without the lock, e.g. an import.
        InvalidInput: there are too many artifacts for one event.
    """
    record: Record = build("event", PROJECT, now(), id=new_id(), type=kind, agent=author, data=data)
    with _durably(store), store.engine.transaction():
        # The lock of artifacts keeps out their other writers, not an import, which writes to the store alone.
        if not check():
            raise Busy("the versions were changed by another process just now", "try again")
        store.append([record])


def write_version(
    store: Store, access: WriteAccess, drafts: Sequence[VersionDraft], *, op: str, author: str, description: str | None
) -> None:
    """Create a version: the current one with these artifacts added or replaced.

    Raises:
        CtxmgrError: it could not be laid out or recorded; the next writer removes the remains.
    """
    data = {
        "op": op, "version": access.next, "parent": access.current, "description": description, "by": author,
        "artifacts": [_draft_fields(draft) for draft in drafts],
    }  # fmt: skip
    if len(drafts) > 1000 and len(codec.encode(data)) > codec.MAX_LINE - _EVENT_OVERHEAD:
        raise InvalidInput(f"{len(drafts):,} artifacts are too many for one version", "put them in several steps")

    def check() -> bool:
        access.blobs.confirm(draft.row for draft in drafts)
        return is_unchanged(store, access)

    if access.folder is None:  # nothing shows it but the event
        append(store, VERSION, author, data, check)
        return
    views = Views(access.folder)
    rows = {} if access.current is None else {(row.agent, row.name): row for row in store.artifacts.state(access.current)}
    rows.update({(draft.row.agent, draft.row.name): draft.row for draft in drafts})
    # Order: folder, event, link. Only the event makes the version exist. A crash before it leaves a folder that nobody lists
    # (removed), after it a link that lags behind (moved); both by the next writer.
    views.lay_out(access.next, rows.values())
    append(store, VERSION, author, data, check)
    views.point(access.next)


def _draft_fields(draft: VersionDraft) -> dict[str, Any]:
    row = draft.row
    return {
        "id": row.id, "agent": row.agent, "name": row.name, "type": row.type, "description": row.description,
        "hash": row.hash, "size": row.size, "tokens": row.tokens, "counter": row.counter,
        "dependencies": [
            {"id": item.target, "agent": item.agent, "name": item.name, "type": item.type} for item in draft.dependencies
        ],
    }  # fmt: skip


def is_unchanged(store: Store, access: WriteAccess) -> bool:
    """Whether the versions are as they were when the lock was taken."""
    return (store.artifacts.current(), store.artifacts.highest()) == (access.current, access.next - 1)
