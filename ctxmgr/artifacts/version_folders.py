"""The browsable folders: ``vN/owner/name`` as hard links, and ``current``, swapped atomically; and their repair.

The history is the truth, and a folder is a view of it: what a crash, another program or a foreign log left wrong is built
anew from the stored contents.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing

from ctxmgr.artifacts.blobs import PIECE, Objects, has_hash_closing
from ctxmgr.artifacts.folder import (
    CURRENT,
    MARKER_DRAFT,
    Folder,
    artifacts_folder,
    folder_error,
    is_version,
    open_file,
    open_folder,
    remove_tree,
    view_paths,
)
from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.errors import CtxmgrError, StorageFailed
from ctxmgr.log.reader import TORN_TAIL
from ctxmgr.store import Store, open_store
from ctxmgr.store.repositories.shared_state import ArtifactRow
from ctxmgr.types.base import Json
from ctxmgr.types.setup import Check

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
            # The event that lists the version comes next: by then its name must be on the disk.
            os.fsync(root)
            if replace:
                remove_tree(root, displaced)
        except OSError as error:
            with contextlib.suppress(OSError):
                remove_tree(root, draft)
            raise folder_error(self._folder.path, error) from None

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
                # As an object is, which a link would be.
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
                f"{self._folder.path}/{CURRENT}: {error.strerror}; version {number} is current, but this link lags behind",
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
            raise folder_error(self._folder.path, error) from None


UNLISTED = ".unlisted-"
"""Prefix of version folders that are set aside, because the damaged part of a history may have listed them."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A disagreement of folder and history: a path, and what is wrong with it."""

    what: str
    reason: str


def repair(store: Store, folder: Folder, *, broken: bool) -> None:
    """Make the folder show the versions that the history lists, and no others.

    Args:
        store: the history.
        folder: open, its lock held.
        broken: the last writer was interrupted, so every version is checked; else only the names in the folder.

    Raises:
        CtxmgrError: the system refused.
    """
    views = Views(folder)
    listed = {row.number for row in store.artifacts.versions()}
    names = os.listdir(folder.root)
    present = {int(name[1:]) for name in names if is_version(name)}
    drafts = [name for name in names if name.startswith((DRAFT, LINK_DRAFT, MARKER_DRAFT))]
    try:
        for name in drafts:
            remove_tree(folder.root, name)
        Objects(folder).remove_drafts()
        if not is_certain(store):
            for number in present - listed:
                os.rename(
                    # Random digits: the same number may be set aside more than once.
                    f"v{number}",
                    f"{UNLISTED}v{number}-{os.urandom(4).hex()}",
                    src_dir_fd=folder.root,
                    dst_dir_fd=folder.root,
                )
        # Reading all object names is linear in the store, so it is done only where something shows that a writer was cut off.
        elif broken or drafts or present - listed:
            for number in present - listed:
                views.remove(number)
            Objects(folder).remove_all_but(store.artifacts.hashes())
    except OSError as error:
        raise folder_error(folder.path, error) from None
    torn = {number for number in listed & present if _faults_of_view(folder, number, store)} if broken else set[int]()
    for number in sorted((listed - present) | torn):
        views.lay_out(number, store.artifacts.state(number), replace=True)
    current = store.artifacts.current()
    if current is not None and current in listed:
        views.point(current)


def is_certain(store: Store) -> bool:
    """Whether all of the history can be read.

    If not, nothing may be removed as unlisted, for the unreadable part may list it. A record that was torn while it was
    written does not count: it was never acknowledged.
    """
    return all(damage.reason == TORN_TAIL for damage in store.damage())


def audit(store: Store) -> list[Fault]:
    """Return every disagreement of the folder with the history; every object is read and verified.

    It only reads and takes no lock, so the work of a concurrent writer may show as a fault.

    Raises:
        CtxmgrError: the folder can't be looked at.
    """
    wanted = store.artifacts.hashes()
    if (blobs := store.blobs()) is not None:
        sound = blobs.sound(wanted)
        return [Fault(f"content {digest}", "is gone, or its bytes were changed") for digest in sorted(wanted - sound)]
    try:
        folder = Folder(store.location, create=False)
    except FileNotFoundError:
        return [Fault(artifacts_folder(store.location), "is gone, with every artifact in it")] if wanted else []
    with folder:
        objects = Objects(folder)
        faults = [
            Fault(f"{os.path.basename(folder.path)}/objects/{digest[:2]}/{digest[2:]}", "is gone, or its bytes were changed")
            for digest in sorted(wanted)
            if not objects.is_sound(digest)
        ]
        for row in store.artifacts.versions():
            faults += _faults_of_view(folder, row.number, store)
        current = store.artifacts.current()
        if current is not None and folder.current() != f"v{current}":
            faults.append(Fault(f"{os.path.basename(folder.path)}/current", f"does not lead to v{current}"))
        return faults


def _faults_of_view(folder: Folder, number: int, store: Store) -> list[Fault]:
    rows = {(row.agent, row.name): row for row in store.artifacts.state(number)}
    faults: list[Fault] = []
    for key, path in view_paths(rows).items():
        shown = f"v{number}/{path}"
        try:
            found = os.stat(shown, dir_fd=folder.root, follow_symlinks=False)
        except OSError:
            faults.append(Fault(f"{os.path.basename(folder.path)}/{shown}", "is gone"))
            continue
        # Sizes first, which costs no read.
        if found.st_size != rows[key].size or not _is_object(folder, shown, found, rows[key].hash):
            faults.append(Fault(f"{os.path.basename(folder.path)}/{shown}", "its bytes were changed"))
    return faults


def _is_object(folder: Folder, shown: str, found: os.stat_result, digest: str) -> bool:
    """Whether a file of a view is the object itself, or, where links fail or the object was replaced, has its bytes."""
    try:
        kept = os.stat(digest[2:], dir_fd=folder.shard(digest), follow_symlinks=False)
        if (kept.st_dev, kept.st_ino) == (found.st_dev, found.st_ino):
            return True  # the object itself is verified elsewhere, once for all versions
    except OSError:
        pass  # lost; the view may still have them
    try:
        return has_hash_closing(open_file(folder.root, shown), digest)
    except OSError:
        return False


_NAME = "store.artifacts"
_MAX_FAULTS = 20


def check_artifacts(location: str) -> Iterator[Check]:
    """Yield the `doctor` check of the artifacts of the store at a path; nothing where it never had any.

    Every content is read and verified; nothing is written.
    """
    try:
        with closing(open_store(location, readonly=True)) as store:
            versions = store.artifacts.versions()
            if not versions:
                return
            faults = [f"{fault.what} {fault.reason}" for fault in audit(store)]
            current = store.artifacts.current()
    except CtxmgrError as error:
        yield Check(name=_NAME, level="fail", finding=error.message, hint=error.hint, kind=error.kind)
        return
    detail: dict[str, Json] = {"versions": len(versions), "current": current, "faults": faults[:_MAX_FAULTS]}
    if not faults:
        finding = f"versions: {len(versions):,}, every content verified"
        yield Check(name=_NAME, level="ok", finding=finding, detail=detail)
        return
    yield Check(
        name=_NAME, level="fail", kind="damaged", finding=f"{len(faults):,} damaged: {faults[0]}", detail=detail,
        hint="content comes back when the same file is put again; a version's folder, once removed, with the next change",
    )  # fmt: skip
