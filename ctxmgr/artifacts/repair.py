"""Repair the artifact folder from the history after a crash, and check that every artifact can be read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

from ctxmgr.artifacts.blobs import Objects, has_hash_closing
from ctxmgr.artifacts.folder import MARKER_DRAFT, Folder, failed, is_version, open_file, place_of, remove_tree, view_paths
from ctxmgr.artifacts.version_folders import DRAFT, LINK_DRAFT, Views
from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.base.paths import is_url
from ctxmgr.errors import CtxmgrError
from ctxmgr.log.reader import TORN_TAIL
from ctxmgr.store import Store, open_store
from ctxmgr.types.base import Json
from ctxmgr.types.setup import Check

UNLISTED = ".unlisted-"
"""Prefix of version folders that are set aside, because the damaged part of a history may have listed them."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A disagreement of folder and history: a path, and what is wrong with it."""

    what: str
    reason: str


def heal(store: Store, folder: Folder, *, broken: bool) -> None:
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
        raise failed(str(folder.path), error) from None
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
    if is_url(store.location):  # its artifact events came from other stores, which hold the contents
        return []
    wanted = store.artifacts.hashes()
    try:
        folder = Folder(store.location, create=False)
    except FileNotFoundError:
        return [Fault(str(place_of(store.location)), "is gone, with every artifact in it")] if wanted else []
    with folder:
        objects = Objects(folder)
        faults = [
            Fault(f"{folder.path.name}/objects/{digest[:2]}/{digest[2:]}", "is gone, or its bytes were changed")
            for digest in sorted(wanted)
            if not objects.is_sound(digest)
        ]
        for row in store.artifacts.versions():
            faults += _faults_of_view(folder, row.number, store)
        current = store.artifacts.current()
        if current is not None and folder.current() != f"v{current}":
            faults.append(Fault(f"{folder.path.name}/current", f"does not lead to v{current}"))
        return faults


def _faults_of_view(folder: Folder, number: int, store: Store) -> list[Fault]:
    rows = {(row.agent, row.name): row for row in store.artifacts.state(number)}
    faults: list[Fault] = []
    for key, path in view_paths(rows).items():
        shown = f"v{number}/{path}"
        try:
            found = os.stat(shown, dir_fd=folder.root, follow_symlinks=False)
        except OSError:
            faults.append(Fault(f"{folder.path.name}/{shown}", "is gone"))
            continue
        # Sizes first, which costs no read.
        if found.st_size != rows[key].size or not _is_object(folder, shown, found, rows[key].hash):
            faults.append(Fault(f"{folder.path.name}/{shown}", "its bytes were changed"))
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
