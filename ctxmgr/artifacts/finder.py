"""Find artifacts by id, or by owner, name and version, for one asker; hidden ones are not found. No content is read."""

from __future__ import annotations

import os
from collections.abc import Callable

from ctxmgr.access.guard import AccessGuard
from ctxmgr.access.patterns import quote_name
from ctxmgr.artifacts.blobs import PIECE, Objects, hash_file
from ctxmgr.artifacts.folder import Folder, folder_error, folder_name, name_paths, open_file, owner_paths, view_paths
from ctxmgr.errors import Damaged, InvalidInput, NotFound, StorageFailed
from ctxmgr.log import codec
from ctxmgr.store import Store
from ctxmgr.store.repositories.shared_state import ARTIFACT_ID, ArtifactRow, ids_with_prefix, list_owners
from ctxmgr.types.artifact import ArtifactView, Dependency, GetRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxmgr.store.repositories.blobs import Blobs

_MAX_SUGGESTED = 5
_MAX_GAP = 0.1  # similarity to the best suggestion; whatever is farther off would only distract
_ID_PREFIX = len("art_")


class Finder:
    """Looks up artifacts of a store for one asker; what it may not read is treated as absent."""

    def __init__(self, store: Store, guard: AccessGuard) -> None:
        self._store, self._guard = store, guard
        self._paths: dict[tuple[int, str], dict[str, str]] = {}

    def state(self, version: int | None, agent: str | None = None) -> list[ArtifactRow]:
        """Return the rows of a version that the asker may read; none of a missing version."""
        if version is None or not self.is_listed(version):
            return []
        return [row for row in self._store.artifacts.state(version, agent) if self._guard.reads(row.agent, row.name)]

    def is_listed(self, version: int) -> bool:
        """Whether a version is there and was not pruned."""
        found = self._store.artifacts.version(version)
        return found is not None and found.pruned is None

    def find(self, request: GetRequest, command: str) -> tuple[ArtifactRow, int]:
        """Return an artifact and the version in which to show it.

        Raises:
            NotFound: it is not there, or may not be read: the two look the same (ruling 16).
            InvalidInput: neither an id nor owner and name are given, or the prefix fits several ids.
        """
        if request.id is not None and request.agent is None and request.name is None:
            return self._by_id(request.id, command)
        if request.id is not None or request.agent is None or request.name is None:
            raise InvalidInput("name an artifact by its id, or by its owner and name", "e.g. system_architect/schema.yaml")
        row = self.in_version(request.agent, request.name, request.version)
        if row is None:
            raise self._absent(request.agent, request.name, request.version, command)
        return row, request.version or self._store.artifacts.current() or row.version

    def in_version(self, agent: str, name: str, version: int | None) -> ArtifactRow | None:
        """Return an artifact as of a version, by default the current one; None when it is absent or may not be read."""
        number = self._store.artifacts.current() if version is None else version
        if number is None or not self.is_listed(number) or not self._guard.reads(agent, name):
            return None
        return self._store.artifacts.find(agent, name, number)

    def log(self, agent: str, name: str, command: str) -> list[ArtifactRow]:
        """Return every content that an artifact had, newest first.

        Raises:
            NotFound: it had none, or may not be read.
        """
        rows = self._store.artifacts.log(agent, name) if self._guard.reads(agent, name) else []
        if not rows:
            raise self._absent(agent, name, None, command)
        return rows

    def _by_id(self, start: str, command: str) -> tuple[ArtifactRow, int]:
        row = self._store.artifacts.by_id(start) if ARTIFACT_ID.fullmatch(start) else None
        if row is None and start.startswith("art_") and len(start) > _ID_PREFIX:
            rows = [self._store.artifacts.by_id(item) for item in ids_with_prefix(self._store.engine, start)]
            # Prefixes of hidden ids must not make a readable one ambiguous: that would reveal that they exist.
            readable = [item for item in rows if item is not None and self._guard.reads(item.agent, item.name)]
            if len(readable) > 1:
                raise InvalidInput(f"several artifact ids start with {quote_name(start)}", "give more of the id")
            row = readable[0] if readable else None
        if row is None or not self._guard.reads(row.agent, row.name):
            self._guard.log(command, "read", failed=f"no artifact {quote_name(start)}")
            raise NotFound(f"no artifact {quote_name(start)}", "'ctxmgr artifact list' shows all, with their ids")
        return row, self.find_showing_version(row)

    def find_showing_version(self, row: ArtifactRow) -> int:
        """Return a version that shows a content: its first one, or, if that was pruned, the oldest one left."""
        if self.is_listed(row.version):
            return row.version
        for version in self._store.artifacts.versions():
            found = self._store.artifacts.find(row.agent, row.name, version.number)
            if found is not None and found.id == row.id:
                return version.number
        return row.version

    def _absent(self, agent: str, name: str, version: int | None, command: str) -> NotFound:
        self._guard.log(command, "read", denied=[(agent, name)], failed="no such artifact")
        if version is not None and not self.is_listed(version):
            return NotFound(f"no version {version}", "'ctxmgr version list' shows them")
        where = "" if version is None else f" in version {version}"
        known = {f"{row.agent}/{row.name}" for row in self.state(version) or self.state(self._store.artifacts.current())}
        near = _similar(f"{agent}/{name}", known)
        other = self._store.artifacts.log(agent, name) if self._guard.reads(agent, name) else []
        hint = f"did you mean {', '.join(near)}?" if near else "'ctxmgr artifact list' shows all"
        if other:
            shown = self.find_showing_version(other[0])
            hint = f"its latest content stands in version {shown}: --version {shown}"
        return NotFound(f"no artifact {quote_name(agent + '/' + name)}{where}", hint)

    def views(self, rows: list[ArtifactRow], version: int | None = None) -> list[ArtifactView]:
        """Return the public views of artifacts, as of a version, or each in a version that shows it."""
        return [self._view(row, version if version is not None else self.find_showing_version(row)) for row in rows]

    def _view(self, row: ArtifactRow, version: int) -> ArtifactView:
        needed = self._store.artifacts.dependencies(row.id)
        return ArtifactView(
            id=row.id, agent=row.agent, name=row.name, type=row.type, version=row.version, description=row.description,
            hash=row.hash, size=row.size, tokens=row.tokens, counter=row.counter, created_at=row.ts,
            path=self._path(row, version),
            dependencies=[
                Dependency.model_validate({"id": item.target, "agent": item.agent, "name": item.name, "type": item.type})
                for item in needed
                if self._guard.reads(item.agent, item.name)
            ],
        )  # fmt: skip

    def _path(self, row: ArtifactRow, version: int) -> str:
        """Return the path of an artifact in a version's folder, relative to the folder of the store."""
        place = (version, row.agent)
        if place not in self._paths:
            # Computed among readable artifacts only: a ``~hash`` suffix would otherwise reveal a hidden one of almost the same
            # name.
            names = [item.name for item in self.state(version, row.agent)]
            folder = owner_paths({*self._owners(version), row.agent})[row.agent]
            self._paths[place] = {name: f"{folder}/{path}" for name, path in name_paths([*names, row.name]).items()}
        path = self._paths[place].get(row.name) or view_paths([(row.agent, row.name)])[row.agent, row.name]
        return f"{folder_name(self._store.location)}/v{version}/{path}"

    def _owners(self, version: int) -> list[str]:
        if self._guard.agent is None:
            return list_owners(self._store.engine, version)
        return sorted({row.agent for row in self.state(version)})


def _similar(wanted: str, known: set[str]) -> list[str]:
    """Return the most similar names: at most five, none much worse than the best."""
    from difflib import SequenceMatcher, get_close_matches

    near = get_close_matches(wanted, sorted(known), n=_MAX_SUGGESTED)
    likeness = [SequenceMatcher(None, wanted, item).ratio() for item in near]
    return [item for item, ratio in zip(near, likeness, strict=True) if ratio > likeness[0] - _MAX_GAP]


IN_MEMORY = 64 * PIECE
"""Contents up to this size, in bytes, are kept in memory, so that the bytes handed on are those that were verified."""


class Content:
    """The verified content of an artifact; close it, or use it in a ``with``.

    Attributes:
        row: what is known of it.
    """

    def __init__(self, row: ArtifactRow, descriptor: int) -> None:
        self.row = row
        self._descriptor = descriptor
        self._content: bytes | None = None

    def read(self) -> bytes:
        """Return the whole content.

        Raises:
            Damaged: it was changed since it was verified.
        """
        if self._content is None:
            parts: list[bytes] = []
            self.copy_to(parts.append)
            self._content = b"".join(parts)
        return self._content

    def copy_to(self, write: Callable[[bytes], object]) -> None:
        """Pass the content to ``write`` in pieces of at most a megabyte.

        Raises:
            Damaged: it was changed since it was verified; the caller must discard what was written.
        """
        if self._content is not None:
            write(self._content)
            return
        from hashlib import sha256

        digest, place = sha256(), 0
        while piece := os.pread(self._descriptor, PIECE, place):
            digest.update(piece)
            place += len(piece)
            write(piece)
        if digest.hexdigest() != self.row.hash:
            raise damage_error(self.row)

    def verify(self) -> bool:
        """Whether the bytes are those that were stored; small ones are kept in memory."""
        if self.row.size <= IN_MEMORY:
            # A file that was swapped for a huge one is not even read.
            if os.fstat(self._descriptor).st_size != self.row.size:
                return False
            content = b"".join(iter(_pieces(self._descriptor)))
            if codec.digest(content) != self.row.hash:
                return False
            self._content = content
            return True
        return hash_file(self._descriptor) == self.row.hash

    def close(self) -> None:
        """Release the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Content:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _pieces(descriptor: int) -> list[bytes]:
    parts: list[bytes] = []
    place = 0
    # Bounded by itself, for a file may grow between the look at its size and the read.
    while len(parts) <= IN_MEMORY // PIECE and (piece := os.pread(descriptor, PIECE, place)):
        parts.append(piece)
        place += len(piece)
    return parts


def open_content(store: Store, row: ArtifactRow) -> Content:
    """Return the content of an artifact.

    Raises:
        Damaged: its bytes were changed or are gone; they are never served. An intact copy in a version's folder is.
        NotFound: it was pruned just now.
        StorageFailed: it can't be read.
    """
    blobs = store.blobs()
    found = _open_in_folder(store, row) if blobs is None else _open_verified(row, lambda: fetch(blobs, row))
    if found is None:
        # Readers take no lock: a prune may have run since the row was read, which is no damage.
        if store.artifacts.by_id(row.id) is None:
            raise NotFound(f"{row.agent}/{row.name} of version {row.version} was pruned just now", "ask for another version")
        raise damage_error(row)
    return found


def fetch(blobs: Blobs, row: ArtifactRow) -> int:
    """Return the descriptor of a file without a name that holds a content from a server, unverified.

    Raises:
        FileNotFoundError: it is not there.
        StorageFailed: this machine has no room for it.
    """
    from tempfile import TemporaryFile, gettempdir

    found = False
    try:
        with TemporaryFile() as file:
            for piece in blobs.pieces(row.hash):
                found = True
                file.write(piece)
                if file.tell() > row.size:  # what was swapped for something huge is not fetched whole
                    break
            file.flush()
            descriptor = os.dup(file.fileno())
    except OSError as error:
        raise StorageFailed(
            f"{gettempdir()}: {error.strerror}", "free some space, or name another folder with TMPDIR"
        ) from None
    if not found:
        os.close(descriptor)
        raise FileNotFoundError
    return descriptor


def _open_in_folder(store: Store, row: ArtifactRow) -> Content | None:
    try:
        folder = Folder(store.location, create=False)
    except FileNotFoundError:
        raise damage_error(row) from None
    with folder:
        try:
            found = _open_verified(row, lambda: Objects(folder).open(row.hash))
        except PermissionError as error:
            # Bytes that this user may not read are not damaged.
            raise folder_error(folder.path, error) from None
        if found is None:
            # Where hard links failed, version folders hold copies, and one of them may have survived.
            found = _find_copy_in_version_folder(store, folder, row)
    return found


def _open_verified(row: ArtifactRow, opened: Callable[[], int]) -> Content | None:
    try:
        content = Content(row, opened())
    except PermissionError:
        raise
    except OSError:
        return None
    try:
        if content.verify():
            return content
    except OSError:
        pass
    content.close()
    return None


def _find_copy_in_version_folder(store: Store, folder: Folder, row: ArtifactRow) -> Content | None:
    for version in store.artifacts.versions():
        state = {(item.agent, item.name): item.hash for item in store.artifacts.state(version.number)}
        paths = view_paths(state)
        for key, digest in state.items():
            if digest == row.hash:
                found = _open_verified(row, lambda path=f"v{version.number}/{paths[key]}": open_file(folder.root, path))
                if found is not None:
                    return found
    return None


def damage_error(row: ArtifactRow) -> Damaged:
    """Return the error for an artifact whose bytes differ from what was stored, or are gone."""
    return Damaged(
        f"{row.agent}/{row.name} of version {row.version} ({row.id}): its bytes were changed or are gone",
        "they are not served; put it again from its source, or bring the artifacts folder back from a backup",
    )
