"""Open the store at a path: a database, a log, another agent's log or an archive; or an empty one."""

from __future__ import annotations

import os

from ctxmgr.base.paths import DATABASES, is_foreign, is_url, open_regular
from ctxmgr.errors import Damaged, InvalidInput, StorageFailed
from ctxmgr.store import empty_store, exists, open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxmgr.store import Store
    from ctxmgr.store.log_store import Progress

NOTHING_RECORDED = "nothing was recorded: {} is another agent's log; 'ctxmgr import' it to keep what is answered"
NOTHING_ARCHIVED = "nothing was recorded: {} is an archive; 'ctxmgr store restore' takes a session back"
_DATABASE = b"SQLite format 3\0"
_OWN = (b'{"v":1,"kind":"', b'{"v": 1, "kind": "')
_OWN_TABLE = b"record_once"
_BUCKET = "s3://"
_ENOUGH = 64  # bytes that identify our log and SQLite
_SCHEMA = 1 << 16  # bytes in which the schema of one of our stores names `_OWN_TABLE`

NOTHING_YET = "no history here yet: 'ctxmgr import' reads the logs on this machine"


def open_history(
    path: str,
    *,
    explicit: bool,
    create: bool = False,
    readonly: bool = False,
    masked: bool = True,
    progress: Progress | None = None,
    scratch: bool = False,
) -> tuple[Store, list[str]]:
    """Return the store, and warnings for a person.

    Args:
        path: path or URL of the store.
        explicit: somebody named the store. Otherwise, a missing store is read as an empty history.
        create: create a missing store.
        readonly: refuse writes; such a store is never migrated.
        masked: mask secrets in new records.
        progress: called during long indexing.
        scratch: accept and discard writes if nothing can be recorded, as with another agent's log.

    Raises:
        NotFound: a named store does not exist.
        InvalidInput: a file of no known format, or a write to another agent's log.
        CtxmgrError: it can't be opened.
    """
    in_bucket = path.startswith(_BUCKET)
    if is_url(path) and not in_bucket:
        return open_store(path, create=create, readonly=readonly, masked=masked), []
    # Before anything is recorded, reading must neither fail nor leave an empty store behind (ruling 4).
    if not create and not explicit and not in_bucket and not exists(path):
        return empty_store(path), [NOTHING_YET]
    may_be_archive = in_bucket or path.endswith(".parquet") or os.path.isdir(path)
    if may_be_archive and (archive := _archive(path, readonly, scratch, create, progress)):
        return archive, [] if readonly else [NOTHING_ARCHIVED.format(path)]
    if os.path.isdir(path):
        raise InvalidInput(f"{path} is a folder", "name a log in it; 'ctxmgr import' and 'ctxmgr detect' read every log there")
    warnings: list[str] = []
    head = _read_head(path)
    is_log = head.startswith(_OWN)
    # It was found by searching upwards, for example in a shared /tmp. Its records could steer the agents of other users.
    if not explicit and is_foreign(path, os.getcwd()):
        raise InvalidInput(f"{path} belongs to another user", "name it with --store to use it all the same")
    store = None if is_log or not head else _open_foreign(path, readonly=readonly, scratch=scratch, progress=progress)
    if store is None:
        is_log = is_log or (bool(head) and not head.startswith(_DATABASE))
        store = open_store(path, create=create, readonly=readonly, masked=masked, progress=progress, is_log=is_log)
    elif not readonly:
        warnings.append(NOTHING_RECORDED.format(path))
    try:
        return store, warnings + _damage_warnings(store) + store.gaps()
    except BaseException:
        store.close()
        raise


def _archive(path: str, readonly: bool, scratch: bool, create: bool, progress: Progress | None) -> Store | None:
    """Open an archive of sessions; None if the path is not one.

    Raises:
        InvalidInput: the archive would be written to.
    """
    from ctxmgr.store.archive.parquet import is_archive, open_archive

    if not is_archive(path):
        return None
    if create or not (readonly or scratch):
        raise InvalidInput(f"{path} is an archive, which is only read", "take a session back: ctxmgr store restore")
    return open_archive(path, scratch=not readonly, progress=progress)


def require_record(store: Store) -> None:
    """Check that a log is not entirely unreadable, because its answers would look like those of an empty history.

    Raises:
        Damaged: no record of it can be read.
    """
    damage = store.damage()
    if damage and not store.sessions.count():
        reason = f"{damage[0].reason} at offset {damage[0].offset:,}"
        raise Damaged(f"{store.location}: no record of it can be read ({reason})", "'ctxmgr verify' lists what is damaged")


def _read_head(path: str) -> bytes:
    """Return the first bytes of a file that is not one of our databases; nothing if its name or content shows that it is.

    An empty file is judged by its name, and a database with a damaged beginning counts as a database. If the first pages of a
    database do not name the table that all our stores have, it may belong to another program.
    """
    if not os.path.isfile(path):
        return b""
    try:
        with open(open_regular(path), "rb") as stream:
            head = stream.read(_ENOUGH)
            if head.startswith(_DATABASE):
                return b"" if _OWN_TABLE in head + stream.read(_SCHEMA) else head
    except OSError:  # reported when it is opened
        return b""
    return b"" if path.lower().endswith(DATABASES) else head


def _open_foreign(path: str, *, readonly: bool, scratch: bool, progress: Progress | None) -> Store | None:
    """Open another agent's log; None if it contains records of our own."""
    from ctxmgr.history.foreign_log import foreign_importer, open_foreign

    try:
        importer = foreign_importer(path)
    except OSError as error:
        raise StorageFailed(f"can't read {path}: {error.strerror}", "check its permissions") from None
    except InvalidInput:
        if _begins_like_database(path):  # the tables of a new store may still be in its write-ahead log: let SQLite open it
            return None
        raise
    if importer is None:
        return None
    if not readonly and not scratch:
        raise InvalidInput(
            f"{path} is a log of {importer.title}, which ctxmgr only reads", f"'ctxmgr import {path}' takes it into a store"
        )
    return open_foreign(path, importer, scratch=not readonly, progress=progress)


def _begins_like_database(path: str) -> bool:
    with open(path, "rb") as stream:
        return stream.read(len(_DATABASE)) == _DATABASE


def _damage_warnings(store: Store) -> list[str]:
    damage = store.damage()
    if len(damage) == 1 and not store.unread():
        from ctxmgr.log.reader import TORN_TAIL

        return [f"incomplete: the last {damage[0].length:,} bytes, at offset {damage[0].offset:,}: a {TORN_TAIL}"]
    warnings = [f"damaged: {item.length:,} bytes at offset {item.offset:,}: {item.reason}" for item in damage[:5]]
    if (more := len(damage) - 5) > 0:
        warnings.append(f"{more} more damaged {'range' if more == 1 else 'ranges'}; 'ctxmgr verify' lists them all")
    return warnings


def check_asker_name(agent: str) -> None:
    """Check that an agent with this name may ask. Rules use ``user`` and ``project`` for other things.

    Raises:
        InvalidInput: the name is reserved or invalid.
    """
    from ctxmgr.access.patterns import PROJECT_OWNER, USER, check_agent

    if check_agent(agent) in (USER, PROJECT_OWNER):
        raise InvalidInput(f"no agent can be called {agent!r}: the rules mean something else by it", "name the agent")
