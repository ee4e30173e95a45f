"""Create a version: lock and repair the folder, build the view, append the event."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxmgr.artifacts.folder import LOCK_SECONDS, Folder
from ctxmgr.artifacts.repair import heal
from ctxmgr.artifacts.version_folders import Views
from ctxmgr.errors import Busy, Damaged, InvalidInput, StorageFailed
from ctxmgr.log import codec
from ctxmgr.log.codec import Record
from ctxmgr.log.ids import new_id, now
from ctxmgr.store import LogStore, Store
from ctxmgr.store.durable import durably
from ctxmgr.store.repositories.artifacts import ArtifactRow, DependencyRow
from ctxmgr.store.reserved import PROJECT, VERSION
from ctxmgr.types.record import build

_MOST = 2**53  # versions; what other programs read as a whole number
_ROOM = 10_000  # bytes of an event beside its artifacts


@dataclass(frozen=True, slots=True)
class Held:
    """The right to change a store's artifacts, and where they stand.

    Attributes:
        folder: open, its lock held.
        current: the current version, None when there is none yet.
        next: the number of the version that would come about.
    """

    folder: Folder
    current: int | None
    next: int


@dataclass(frozen=True, slots=True)
class VersionDraft:
    """An artifact that is to be listed; ``row`` is complete but for its time."""

    row: ArtifactRow
    dependencies: Sequence[DependencyRow] = field(default_factory=lambda: list[DependencyRow]())


@contextlib.contextmanager
def writing(store: Store, timeout: float = LOCK_SECONDS) -> Generator[Held]:
    """Take the folder's lock, heal what an earlier writer left, and say where things stand.

    Raises:
        Busy: another process writes artifacts for too long.
        CtxmgrError: the folder or the store can't be used.
    """
    if store.readonly:
        raise StorageFailed(f"{store.location} was opened for reading only", "open it for writing")
    with Folder(store.location, create=True) as folder, folder.writing(timeout) as broken:
        if isinstance(store, LogStore):
            store.catch_up()  # another process may have written since it was opened
        heal(store, folder, broken=broken)
        highest = store.artifacts.highest()
        if highest >= _MOST:
            raise Damaged(f"the highest version is {highest}: there is no number after it", "a foreign history may say so")
        yield Held(folder, store.artifacts.current(), highest + 1)
        folder.keep_reserve()


def append(store: Store, kind: str, author: str, data: dict[str, Any], check: Callable[[], bool]) -> None:
    """Append an event of the reserved session, durable, if what it builds on still holds.

    Raises:
        Busy: somebody else changed the versions without the lock, e.g. an import.
        InvalidInput: there are too many artifacts for one event.
    """
    record: Record = build("event", PROJECT, now(), id=new_id(), type=kind, agent=author, data=data)
    with durably(store), store.engine.transaction():
        if not check():
            raise Busy("the versions were changed by another process just now", "try again")
        store.append([record])


def write_version(
    store: Store, held: Held, drafts: Sequence[VersionDraft], *, op: str, author: str, description: str | None
) -> None:
    """List a new version with these artifacts beside what the current one shows.

    Raises:
        CtxmgrError: it could not be laid out or recorded; the next writer removes what is there of it.
    """
    data = {
        "op": op, "version": held.next, "parent": held.current, "description": description, "by": author,
        "artifacts": [_listed(draft) for draft in drafts],
    }  # fmt: skip
    if len(drafts) > 1000 and len(codec.encode(data)) > codec.MAX_LINE - _ROOM:
        raise InvalidInput(f"{len(drafts):,} artifacts are too many for one version", "put them in several steps")
    views = Views(held.folder)
    rows = {} if held.current is None else {(row.agent, row.name): row for row in store.artifacts.state(held.current)}
    rows.update({(draft.row.agent, draft.row.name): draft.row for draft in drafts})
    views.lay_out(held.next, rows.values())
    append(store, VERSION, author, data, lambda: is_as_held(store, held))
    views.point(held.next)


def _listed(draft: VersionDraft) -> dict[str, Any]:
    row = draft.row
    return {
        "id": row.id, "agent": row.agent, "name": row.name, "type": row.type, "description": row.description,
        "hash": row.hash, "size": row.size, "tokens": row.tokens, "counter": row.counter,
        "dependencies": [
            {"id": item.target, "agent": item.agent, "name": item.name, "type": item.type} for item in draft.dependencies
        ],
    }  # fmt: skip


def is_as_held(store: Store, held: Held) -> bool:
    """Whether nobody changed the versions past the lock."""
    return (store.artifacts.current(), store.artifacts.highest()) == (held.current, held.next - 1)
