"""Create, roll back, list and prune versions of the context (spec 003, Version Control).

Pruning removes what nothing needs; never a current, pinned, young or protected version.
"""

from __future__ import annotations

from typing import Any

from ctxmgr.access.guard import AccessGuard
from ctxmgr.access.patterns import VERSION_KEY
from ctxmgr.artifacts.finder import Finder
from ctxmgr.artifacts.folder import folder_name, release_reserve
from ctxmgr.artifacts.put import append, check_description, is_unchanged, write_access, write_version
from ctxmgr.artifacts.version_folders import Views, is_certain
from ctxmgr.errors import Denied, InvalidInput, NotFound, StorageFailed
from ctxmgr.log.fast_json import json_object, text_or_none
from ctxmgr.log.ids import parse_time
from ctxmgr.store import Store
from ctxmgr.store.project_session import PRUNED, VERSION
from ctxmgr.store.repositories.shared_state import ArtifactRow, VersionRow
from ctxmgr.types.artifact import KeptVersion, NewVersion, PruneResult, Retention, Rollback, RollbackResult, VersionView

CURRENT_ARTIFACT = ("project", "current")
"""The pointer to the current version as a resource of rules: who may write it may roll back what others made."""

_DAY = 86_400


def create_version(store: Store, guard: AccessGuard, description: str, author: str | None = None) -> NewVersion:
    """Create a version with the content of the current one and a number of its own.

    Raises:
        Denied: the asker may not write the context's version, or signs as somebody else.
        NotFound: there is no version yet.
    """
    check_description(description)
    if not description.strip():
        raise InvalidInput("a description can't be empty", "say what the version is")
    require_versions(guard, "version create")
    author = guard.sign(author, "version create")
    _require_version(store, store.artifacts.current())  # before the lock, which a store that is not there can't give
    with write_access(store) as access:
        current = _require_version(store, access.current)
        write_version(store, access, [], op="create", author=author, description=description)
        guard.log("version create", "write", [("project", VERSION_KEY)], resource_type="context")
        return NewVersion(version=access.next, previous_version=current, path=version_path(store, access.next))


def _require_version(store: Store, number: int | None) -> int:
    """Return the number of a version that is there.

    Raises:
        NotFound: there is none.
    """
    if number is None:
        raise NotFound("there is no version yet", "'ctxmgr artifact put' makes the first one")
    row = store.artifacts.version(number)
    if row is None or row.pruned is not None:
        raise NotFound(f"no version {number}", "'ctxmgr version list' shows them")
    return number


def rollback(store: Store, guard: AccessGuard, version: int, reason: str, author: str | None = None) -> RollbackResult:
    """Make any other version the current one; nothing is lost by it.

    An agent needs the right to write the context's version, and the right to write either the artifact
    ``project/current`` or every artifact that changes by it.

    Raises:
        Denied: the asker may not do that, or signs as somebody else.
        NotFound: there is no such version, or it was pruned.
        InvalidInput: no reason is given, or it is the current version already.
    """
    check_description(reason)
    if not reason.strip():
        raise InvalidInput("a rollback needs a reason", "say it with --reason")
    require_versions(guard, "version rollback")
    author = guard.sign(author, "version rollback")
    _require_version(store, version)
    with write_access(store) as access:
        _require_version(store, version)
        current = _require_version(store, access.current)
        if version == current:
            raise InvalidInput(f"version {version} is the current one", "'ctxmgr version list' shows the others")
        changed = _find_changes(store.artifacts.state(current), store.artifacts.state(version))
        if not guard.writes(*CURRENT_ARTIFACT):
            require_writes(guard, changed, "version rollback")
        data: dict[str, Any] = {
            "op": "rollback", "version": version, "parent": None, "from": current, "description": reason, "by": author,
            "artifacts": [],
        }  # fmt: skip
        append(store, VERSION, author, data, lambda: is_unchanged(store, access))
        if access.folder is not None:
            Views(access.folder).point(version)
        guard.log("version rollback", "write", changed)
        return RollbackResult(current_version=version, rolled_back_from=current, reason=reason)


def require_versions(guard: AccessGuard, command: str) -> None:
    """Refuse an asker that may not change the context's version.

    Raises:
        Denied: as the rules say.
    """
    if not guard.writes_key(VERSION_KEY):
        guard.log(command, "write", denied=[("project", VERSION_KEY)], resource_type="context")
        raise _deny(guard)


def require_writes(guard: AccessGuard, changed: list[tuple[str, str]], command: str) -> None:
    """Refuse an asker that may not write all of these, without naming any.

    Raises:
        Denied: as the rules say.
    """
    refused = [item for item in changed if not guard.writes(*item)]
    if refused:
        guard.log(command, "write", denied=refused)
        raise _deny(guard)


def _deny(guard: AccessGuard) -> Denied:
    return Denied(f"{guard.agent} may not change the versions so", "'ctxmgr access explain' names the rules")


def _find_changes(before: list[ArtifactRow], after: list[ArtifactRow]) -> list[tuple[str, str]]:
    old, new = ({(row.agent, row.name): row.id for row in rows} for rows in (before, after))
    return sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))


def list_versions(store: Store, guard: AccessGuard) -> list[VersionView]:
    """Return the versions, oldest first.

    An agent sees a version in which something changed that it may read, or of which nothing is hidden from it. It sees the
    current one too if it may read anything there, but then without description and author. Counts include only what it may
    read. It is told of a rollback between two versions whose descriptions it sees.
    """
    current = store.artifacts.current()
    pins = store.artifacts.pins() if guard.agent is None else {}
    finder = Finder(store, guard)
    views: dict[int, VersionView] = {}
    described: set[int | None] = set()
    for row in store.artifacts.versions():
        every = store.artifacts.state(row.number)
        readable = [item for item in every if guard.reads(item.agent, item.name)]
        changed = sum(item.version == row.number for item in readable)
        counts_shown = guard.agent is None or changed > 0 or (bool(every) and len(readable) == len(every))
        if counts_shown or (row.number == current and readable):
            pinned = pins.get(row.number, [])
            views[row.number] = _view(store, row, len(readable), changed, pinned, current=current, counts_shown=counts_shown)
        if counts_shown:
            described.add(row.number)
    for number, made in _rollbacks(store):
        # What a rollback says may be about what changed by it, so both of its versions must be told of.
        if number in described and (guard.agent is None or made.from_version in described):
            views[number].rollbacks.append(made)
    guard.log("version list", "read", [(row.agent, row.name) for row in finder.state(current)])
    return list(views.values())


def _rollbacks(store: Store) -> list[tuple[int, Rollback]]:
    """Return each rollback with the version that it made current, oldest first."""
    found: list[tuple[int, Rollback]] = []
    for record in store.shared.events(VERSION):
        data = json_object(record.get("data"))
        number, before = data.get("version"), data.get("from")
        if data.get("op") == "rollback" and isinstance(number, int):
            found.append((number, Rollback(
                at=text_or_none(record.get("ts")), by=text_or_none(data.get("by")),
                from_version=before if isinstance(before, int) else None, reason=text_or_none(data.get("description")),
            )))  # fmt: skip
    return found


def _view(
    store: Store, row: VersionRow, artifacts: int, changed: int, pinned: list[str], *, current: int | None, counts_shown: bool
) -> VersionView:  # fmt: skip
    return VersionView.model_validate(
        {
            "version": row.number, "parent": row.parent, "op": row.op, "description": row.description if counts_shown else None,
            "created_by": row.author if counts_shown else None, "created_at": row.ts, "current": row.number == current,
            "artifacts": artifacts, "changed": changed, "path": version_path(store, row.number), "pinned": pinned,
        }
    )  # fmt: skip


def version_path(store: Store, number: int) -> str:
    """Return the path of a version's folder, relative to the folder of the store."""
    return f"{folder_name(store.location)}/v{number}/"


def prune(store: Store, guard: AccessGuard, retention: Retention, *, dry_run: bool) -> PruneResult:
    """Remove the versions that the retention does not keep, and the bytes that no other version shows.

    Raises:
        Denied: the asker may not change versions, ``project/current`` among them, or may not write an artifact that would go.
        CtxmgrError: something could not be removed; the next writer goes on with it.
    """
    require_versions(guard, "version prune")
    require_writes(guard, [CURRENT_ARTIFACT], "version prune")
    if dry_run or not store.artifacts.versions():
        removed, kept, gone = _plan(store, retention)
        require_writes(guard, sorted({(row.agent, row.name) for row in gone.values()}), "version prune")
        return _answer(guard, removed, kept, gone, dry_run=dry_run)
    try:
        return _prune(store, guard, retention)
    except StorageFailed:  # mostly a full disk, where even freeing space takes some
        if not release_reserve(store.location):
            raise
        return _prune(store, guard, retention)


def _prune(store: Store, guard: AccessGuard, retention: Retention) -> PruneResult:
    with write_access(store) as access:
        removed, kept, gone = _plan(store, retention)
        require_writes(guard, sorted({(row.agent, row.name) for row in gone.values()}), "version prune")
        if removed:
            author = guard.sign(None, "version prune")
            # The event first: a crash after it leaves surplus files, which repair removes. The other order would leave listed
            # versions without content.
            append(store, PRUNED, author, {"versions": removed, "by": author}, lambda: is_unchanged(store, access))
        if access.folder is not None:
            views = Views(access.folder)
            for number in removed:
                views.remove(number)
        access.blobs.remove(gone)
        if is_certain(store):
            access.blobs.remove_all_but(store.artifacts.hashes())
        guard.log("version prune", "write", sorted({(row.agent, row.name) for row in gone.values()}))
        return _answer(guard, removed, kept, gone, dry_run=False)


def _plan(store: Store, retention: Retention) -> tuple[list[int], list[KeptVersion], dict[str, ArtifactRow]]:
    """Return the versions to remove, those to keep with the reason, and hash -> artifact of the bytes to remove."""
    versions = store.artifacts.versions()
    newest = {row.number for row in versions[-retention.keep_versions :]}
    current, pins, present = store.artifacts.current(), store.artifacts.pins(), store.clock()
    kept: list[KeptVersion] = []
    for row in versions:
        moment = parse_time(row.ts)
        young = moment is not None and present - moment < retention.keep_days * _DAY
        reasons = [
            (row.number == current, "current"),
            (row.number in pins, f"pinned by {', '.join(pins.get(row.number, [])[:3])}"),
            (row.number in retention.always_keep, "always kept"),
            (row.number in newest, f"among the newest {retention.keep_versions}"),
            # Without a time nobody can say that it is old enough to go.
            (moment is None, "its time is not known"),
            (young, f"younger than {retention.keep_days:g} days"),
        ]
        why = next((reason for holds, reason in reasons if holds), None)
        if why is not None:
            kept.append(KeptVersion(version=row.number, reason=why))
    stay = {item.version for item in kept}
    removed = [row.number for row in versions if row.number not in stay]
    if not removed:
        return [], kept, {}
    shown = {row.hash for number in stay for row in store.artifacts.state(number)}
    gone = {row.hash: row for number in removed for row in store.artifacts.state(number) if row.hash not in shown}
    return removed, kept, gone


def _answer(
    guard: AccessGuard, removed: list[int], kept: list[KeptVersion], gone: dict[str, ArtifactRow], *, dry_run: bool
) -> PruneResult:
    if guard.agent is not None:  # what pins a version may be hidden from the asker
        kept = [item.model_copy(update={"reason": "pinned"}) if item.reason.startswith("pinned") else item for item in kept]
    size = sum(row.size for row in gone.values())
    return PruneResult(dry_run=dry_run, removed=removed, kept=kept, files=len(gone), bytes=size)
