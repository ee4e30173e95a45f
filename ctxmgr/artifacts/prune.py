"""Remove versions that nothing needs; never a current, pinned, young or protected one."""

from __future__ import annotations

from ctxmgr.access.guard import AccessGuard
from ctxmgr.artifacts.blobs import Objects
from ctxmgr.artifacts.folder import release_reserve
from ctxmgr.artifacts.new_version import append, is_as_held, writing
from ctxmgr.artifacts.repair import is_certain
from ctxmgr.artifacts.version_folders import Views
from ctxmgr.artifacts.versions import CURRENT_ARTIFACT, OPERATOR_NAME, require_versions, require_writes
from ctxmgr.errors import StorageFailed
from ctxmgr.log.ids import parse_time
from ctxmgr.store import Store
from ctxmgr.store.repositories.artifacts import ArtifactRow
from ctxmgr.store.reserved import PRUNED
from ctxmgr.types.artifact import Kept, Pruned, Retention

_DAY = 86_400


def prune(store: Store, guard: AccessGuard, retention: Retention, *, dry_run: bool) -> Pruned:
    """Remove the versions that the retention does not keep, and the bytes that no other version shows.

    Raises:
        Denied: the asker may not change versions, ``project/current`` among them, or may not write an artifact that would go.
        CtxmgrError: something could not be removed; the next writer goes on with it.
    """
    require_versions(guard, "version prune")
    require_writes(guard, [CURRENT_ARTIFACT], "version prune")
    if dry_run:
        removed, kept, gone = _plan(store, retention)
        require_writes(guard, sorted({(row.agent, row.name) for row in gone.values()}), "version prune")
        return _answer(guard, removed, kept, gone, dry_run=True)
    try:
        return _prune(store, guard, retention)
    except StorageFailed:  # mostly a full disk, where even to free space takes some
        if not release_reserve(store.location):
            raise
        return _prune(store, guard, retention)


def _prune(store: Store, guard: AccessGuard, retention: Retention) -> Pruned:
    with writing(store) as held:
        removed, kept, gone = _plan(store, retention)
        require_writes(guard, sorted({(row.agent, row.name) for row in gone.values()}), "version prune")
        if removed:
            author = guard.agent or OPERATOR_NAME
            append(store, PRUNED, author, {"versions": removed, "by": author}, lambda: is_as_held(store, held))
        views = Views(held.folder)
        for number in removed:
            views.remove(number)
        objects = Objects(held.folder)
        objects.remove(gone)
        if is_certain(store):
            objects.remove_all_but(store.artifacts.hashes())
        guard.log("version prune", "write", sorted({(row.agent, row.name) for row in gone.values()}))
        return _answer(guard, removed, kept, gone, dry_run=False)


def _plan(store: Store, retention: Retention) -> tuple[list[int], list[Kept], dict[str, ArtifactRow]]:
    """Return the versions that go, those that stay with the reason, and hash -> artifact of the bytes that go."""
    versions = store.artifacts.versions()
    newest = {row.number for row in versions[-retention.keep_versions :]}
    current, pins, present = store.artifacts.current(), store.artifacts.pins(), store.clock()
    kept: list[Kept] = []
    for row in versions:
        moment = parse_time(row.ts)
        young = moment is not None and present - moment < retention.keep_days * _DAY
        reasons = [
            (row.number == current, "current"),
            (row.number in pins, f"pinned by {', '.join(pins.get(row.number, [])[:3])}"),
            (row.number in retention.always_keep, "always kept"),
            (row.number in newest, f"among the newest {retention.keep_versions}"),
            (moment is None, "its time is not known"),
            (young, f"younger than {retention.keep_days:g} days"),
        ]
        why = next((reason for holds, reason in reasons if holds), None)
        if why is not None:
            kept.append(Kept(version=row.number, reason=why))
    stay = {item.version for item in kept}
    removed = [row.number for row in versions if row.number not in stay]
    if not removed:
        return [], kept, {}
    shown = {row.hash for number in stay for row in store.artifacts.state(number)}
    gone = {row.hash: row for number in removed for row in store.artifacts.state(number) if row.hash not in shown}
    return removed, kept, gone


def _answer(guard: AccessGuard, removed: list[int], kept: list[Kept], gone: dict[str, ArtifactRow], *, dry_run: bool) -> Pruned:
    if guard.agent is not None:  # what pins a version may be hidden from the asker
        kept = [item.model_copy(update={"reason": "pinned"}) if item.reason.startswith("pinned") else item for item in kept]
    size = sum(row.size for row in gone.values())
    return Pruned(dry_run=dry_run, removed=removed, kept=kept, files=len(gone), bytes=size)
