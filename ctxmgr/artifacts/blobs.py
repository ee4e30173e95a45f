"""Store bytes under their hash, and verify them on every read."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator
from typing import Protocol

from ctxmgr.artifacts.folder import Folder, failed, open_file, open_folder
from ctxmgr.artifacts.metadata import ContentMetadata, Measure
from ctxmgr.errors import StorageFailed

PIECE = 1 << 20
DRAFT = ".tmp-"
"""How the names of files begin that have not become objects yet."""
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Source(Protocol):
    """Where content comes from, once."""

    def pieces(self) -> Iterator[bytes]:
        """Yield the content in pieces of at most a megabyte.

        Raises:
            CtxmgrError: it can't be read, or changes while it is read.
        """
        ...


class Objects:
    """The objects of a folder.

    Args:
        folder: open; whoever writes holds its lock.
        each: make every object durable by itself; without it the caller syncs after all of them (`settle`).

    Attributes:
        replaced: whether bytes that had been changed, or lost, behind the store's back were brought back.
    """

    def __init__(self, folder: Folder, *, each: bool = True) -> None:
        self._folder = folder
        self._each = each
        self.replaced = False

    def take(self, measure: Measure, source: Source) -> ContentMetadata:
        """Store what a source yields, verified, and return what it is; content that is known already is kept once.

        Raises:
            CtxmgrError: the source's own error, or the content could not be written; nothing of it stays.
        """
        try:
            objects = self._folder.objects(create=True)
            draft = DRAFT + secrets.token_hex(8)
            descriptor = os.open(draft, _NEW, 0o600, dir_fd=objects)
        except OSError as error:
            raise failed(str(self._folder.path), error) from None
        try:
            measured = self._write(descriptor, measure, source)
            self._place(objects, draft, measured.hash)
        except OSError as error:
            self._discard(draft)
            raise failed(str(self._folder.path), error) from None
        except BaseException:
            self._discard(draft)
            raise
        finally:
            os.close(descriptor)
        return measured

    def _write(self, descriptor: int, measure: Measure, source: Source) -> ContentMetadata:
        for piece in source.pieces():
            measure.add(piece)
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        os.fchmod(descriptor, 0o400)
        if self._each:
            os.fsync(descriptor)
        measured = measure.done()
        if hash_of(descriptor) != measured.hash:
            raise StorageFailed(
                f"{self._folder.path}: what was written reads back otherwise", "check the disk; nothing was half stored"
            )
        return measured

    def _place(self, objects: int, draft: str, digest: str) -> None:
        shard = self._folder.shard(digest, create=True)
        if self.is_sound(digest):
            os.unlink(draft, dir_fd=objects)
            return
        self.replaced = self.replaced or self._is_there(digest)
        os.rename(draft, digest[2:], src_dir_fd=objects, dst_dir_fd=shard)
        if self._each:
            os.fsync(shard)

    def _is_there(self, digest: str) -> bool:
        try:
            os.stat(digest[2:], dir_fd=self._folder.shard(digest), follow_symlinks=False)
        except OSError:
            return False
        return True

    def _discard(self, draft: str) -> None:
        try:
            os.unlink(draft, dir_fd=self._folder.objects())
        except OSError:
            return  # the next writer removes it

    def settle(self) -> None:
        """Make durable what was taken without being so one by one."""
        if not self._each:
            os.sync()

    def is_sound(self, digest: str) -> bool:
        """Whether the object is there with the bytes that its name promises."""
        try:
            return has_hash_closing(self.open(digest), digest)
        except OSError:
            return False

    def open(self, digest: str) -> int:
        """Return the descriptor of an object, unverified.

        Raises:
            OSError: what the system answered.
        """
        return open_file(self._folder.shard(digest), digest[2:])

    def remove(self, digests: Iterable[str]) -> None:
        """Remove these objects; that some are gone already is no fault.

        Raises:
            CtxmgrError: the system refused.
        """
        for digest in digests:
            try:
                os.unlink(digest[2:], dir_fd=self._folder.shard(digest))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise failed(str(self._folder.path), error) from None

    def remove_drafts(self) -> None:
        """Remove what a writer left that did not come to its end; call it where no other can be writing.

        Raises:
            CtxmgrError: the system refused.
        """
        try:
            objects = self._folder.objects()
            for name in os.listdir(objects):
                if name.startswith(DRAFT):
                    os.unlink(name, dir_fd=objects)
        except FileNotFoundError:
            return
        except OSError as error:
            raise failed(str(self._folder.path), error) from None

    def remove_all_but(self, kept: set[str]) -> None:
        """Remove every object that is not among these.

        Raises:
            CtxmgrError: the system refused.
        """
        try:
            objects = self._folder.objects()
            for name in os.listdir(objects):
                if len(name) == 2:
                    shard = open_folder(objects, name)
                    try:
                        surplus = [rest for rest in os.listdir(shard) if len(rest) == 62 and name + rest not in kept]
                    finally:
                        os.close(shard)
                    self.remove(name + rest for rest in surplus)
        except FileNotFoundError:
            return
        except OSError as error:
            raise failed(str(self._folder.path), error) from None


def has_hash_closing(descriptor: int, digest: str) -> bool:
    """Close a file, and return whether its bytes have this hash.

    Raises:
        OSError: they can't be read.
    """
    try:
        return hash_of(descriptor) == digest
    finally:
        os.close(descriptor)


def hash_of(descriptor: int) -> str:
    """Return the hash of a whole file."""
    digest, place = hashlib.sha256(), 0
    while piece := os.pread(descriptor, PIECE, place):
        digest.update(piece)
        place += len(piece)
    return digest.hexdigest()
