"""Read artifacts; the hash is verified before the first byte is returned."""

from __future__ import annotations

import os
from collections.abc import Callable

from ctxmgr.artifacts.blobs import PIECE, Objects, hash_of
from ctxmgr.artifacts.folder import Folder, failed, open_file
from ctxmgr.artifacts.names import view_paths
from ctxmgr.errors import Damaged, NotFound
from ctxmgr.log import codec
from ctxmgr.store import Store
from ctxmgr.store.repositories.artifacts import ArtifactRow

IN_MEMORY = 64 * PIECE
"""Contents up to this size, in bytes, are held in memory; what is handed on are then the very bytes that were verified."""


class Content:
    """The verified content of an artifact; close it, or use it in a ``with``.

    Attributes:
        row: what is known of it.
    """

    def __init__(self, row: ArtifactRow, descriptor: int) -> None:
        self.row = row
        self._descriptor = descriptor
        self._held: bytes | None = None

    def read(self) -> bytes:
        """Return all of it.

        Raises:
            Damaged: it was changed since it was verified.
        """
        if self._held is None:
            parts: list[bytes] = []
            self.copy_to(parts.append)
            self._held = b"".join(parts)
        return self._held

    def copy_to(self, write: Callable[[bytes], object]) -> None:
        """Hand it on piece by piece.

        Raises:
            Damaged: it was changed since it was verified; what was handed on is to be thrown away.
        """
        if self._held is not None:
            write(self._held)
            return
        from hashlib import sha256

        digest, place = sha256(), 0
        while piece := os.pread(self._descriptor, PIECE, place):
            digest.update(piece)
            place += len(piece)
            write(piece)
        if digest.hexdigest() != self.row.hash:
            raise damaged(self.row)

    def verify(self) -> bool:
        """Whether the bytes are those that were stored; small ones are kept in memory."""
        if self.row.size <= IN_MEMORY:
            if os.fstat(self._descriptor).st_size != self.row.size:
                return False
            held = b"".join(iter(_pieces(self._descriptor)))
            if codec.digest(held) != self.row.hash:
                return False
            self._held = held
            return True
        return hash_of(self._descriptor) == self.row.hash

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
    try:
        folder = Folder(store.location, create=False)
    except FileNotFoundError:
        raise damaged(row) from None
    with folder:
        try:
            found = _verified(row, lambda: Objects(folder).open(row.hash))
        except PermissionError as error:
            raise failed(str(folder.path), error) from None
        if found is None:
            found = _copy_in_a_view(store, folder, row)
    if found is None:
        if store.artifacts.by_id(row.id) is None:
            raise NotFound(f"{row.agent}/{row.name} of version {row.version} was pruned just now", "ask for another version")
        raise damaged(row)
    return found


def _verified(row: ArtifactRow, opened: Callable[[], int]) -> Content | None:
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


def _copy_in_a_view(store: Store, folder: Folder, row: ArtifactRow) -> Content | None:
    for version in store.artifacts.versions():
        state = {(item.agent, item.name): item.hash for item in store.artifacts.state(version.number)}
        paths = view_paths(state)
        for key, digest in state.items():
            if digest == row.hash:
                found = _verified(row, lambda path=f"v{version.number}/{paths[key]}": open_file(folder.root, path))
                if found is not None:
                    return found
    return None


def damaged(row: ArtifactRow) -> Damaged:
    """Return the error for an artifact whose bytes are not those that were stored."""
    return Damaged(
        f"{row.agent}/{row.name} of version {row.version} ({row.id}): its bytes were changed or are gone",
        "they are not served; put it again from its source, or bring the artifacts folder back from a backup",
    )
