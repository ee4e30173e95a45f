"""Build the browsable folders: ``vN/owner/name`` as hard links, and ``current``, swapped atomically."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Mapping

from ctxmgr.artifacts.blobs import PIECE
from ctxmgr.artifacts.folder import CURRENT, Folder, failed, open_folder, remove_tree, view_paths
from ctxmgr.errors import StorageFailed
from ctxmgr.store.repositories.shared_state import ArtifactRow

DRAFT = ".v"
"""Prefix of version folders that are being laid out."""
LINK_DRAFT = ".current-"
# How file systems refuse a hard link: too many, not supported (FAT, some network and container mounts), another device.
_NO_LINKS = (errno.EMLINK, errno.EPERM, errno.EXDEV, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Views:
    """The version folders (``v1``, ``v2``, ...) of an artifacts folder; whoever changes them holds its lock."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def lay_out(self, number: int, rows: Iterable[ArtifactRow], *, replace: bool = False) -> None:
        """Create the folder of a version from the objects, all or nothing.

        Args:
            number: of the version.
            rows: what it shows.
            replace: whether it may take the place of an existing folder.

        Raises:
            CtxmgrError: the system refused.
        """
        hashes = {(row.agent, row.name): row.hash for row in rows}
        draft = f"{DRAFT}{number}-{os.urandom(8).hex()}"
        root = self._folder.root
        try:
            os.mkdir(draft, 0o700, dir_fd=root)
            self._fill(draft, hashes)
            displaced = f"{DRAFT}{number}-{os.urandom(8).hex()}"
            if replace:
                with contextlib.suppress(FileNotFoundError):
                    # A folder can't be renamed over a full one, so for a moment there is none; a crash here is repaired like a
                    # missing one.
                    os.rename(f"v{number}", displaced, src_dir_fd=root, dst_dir_fd=root)
            os.rename(draft, f"v{number}", src_dir_fd=root, dst_dir_fd=root)
            os.fsync(root)
            if replace:
                remove_tree(root, displaced)
        except OSError as error:
            with contextlib.suppress(OSError):
                remove_tree(root, draft)
            raise failed(str(self._folder.path), error) from None

    def _fill(self, draft: str, hashes: Mapping[tuple[str, str], str]) -> None:
        """Link every object to its place.

        Every folder is synced: a version is listed only after that, and nothing tells later that a power loss left its view
        incomplete. The objects are durable already.
        """
        paths = view_paths(hashes)
        by_folder: dict[str, list[tuple[str, str]]] = {}
        for key, path in paths.items():
            head, _, last = path.rpartition("/")
            by_folder.setdefault(head, []).append((last, hashes[key]))
        top = open_folder(self._folder.root, draft)
        try:
            for head in sorted(by_folder):
                self._fill_one(top, head.split("/"), by_folder[head])
            os.fsync(top)
        finally:
            os.close(top)

    def _fill_one(self, top: int, parts: list[str], files: list[tuple[str, str]]) -> None:
        folder = os.dup(top)
        try:
            for depth, part in enumerate(parts):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=folder)
                    if depth:  # the folder of the version itself is synced when it is filled
                        os.fsync(folder)
                inner = open_folder(folder, part)
                os.close(folder)
                folder = inner
            shard, link = self._folder.shard, os.link
            for name, digest in files:
                try:
                    link(digest[2:], name, src_dir_fd=shard(digest), dst_dir_fd=folder, follow_symlinks=False)
                except OSError as error:
                    self._copy_or_skip(folder, name, digest, error)
            os.fsync(folder)
        finally:
            os.close(folder)

    def _copy_or_skip(self, folder: int, name: str, digest: str, error: OSError) -> None:
        """Handle a failed link: copy where links do not work, skip an object that is gone."""
        if (
            error.errno == errno.ENOENT
        ):  # lost behind the store's back: a reader is told so, the rest of the version stays usable
            return
        if error.errno not in _NO_LINKS:
            raise error
        source = os.open(digest[2:], os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder.shard(digest))
        try:
            target = os.open(name, _NEW, 0o600, dir_fd=folder)
            try:
                while piece := os.read(source, PIECE):
                    rest = memoryview(piece)
                    while rest:
                        rest = rest[os.write(target, rest) :]
                os.fchmod(target, 0o400)
            finally:
                os.close(target)
        finally:
            os.close(source)

    def point(self, number: int) -> None:
        """Point ``current`` to a version, atomically: a reader finds the old one or the new one.

        Raises:
            CtxmgrError: the system refused.
        """
        root = self._folder.root
        if self._folder.current() == f"v{number}":
            return
        draft = LINK_DRAFT + os.urandom(8).hex()
        try:
            # A symlink can't be replaced in place; a rename over it is the atomic way.
            os.symlink(f"v{number}", draft, dir_fd=root)
            os.rename(draft, CURRENT, src_dir_fd=root, dst_dir_fd=root)
            os.fsync(root)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(draft, dir_fd=root)
            raise StorageFailed(
                f"{self._folder.path / CURRENT}: {error.strerror}; version {number} is current, but this link lags behind",
                "the next change of artifacts moves it",
            ) from None

    def remove(self, number: int) -> None:
        """Remove the folder of a version.

        Raises:
            CtxmgrError: the system refused.
        """
        try:
            remove_tree(self._folder.root, f"v{number}")
        except OSError as error:
            raise failed(str(self._folder.path), error) from None
