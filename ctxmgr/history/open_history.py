"""Open the store that is meant, or an empty one in its place."""

from __future__ import annotations

import os

from ctxmgr.errors import Damaged, InvalidInput, StorageFailed
from ctxmgr.paths import is_foreign, is_url, open_regular
from ctxmgr.store import empty_store, exists, open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxmgr.store import DamagedRange, Store
    from ctxmgr.store.log.log_store import Progress

NOTHING_RECORDED = "nothing was recorded: {} is another agent's log; 'ctxmgr import' it to keep what is answered"
NOTHING_ARCHIVED = "nothing was recorded: {} is an archive; 'ctxmgr store restore' takes a session back"
_DATABASES = (".db", ".sqlite", ".sqlite3")
_DATABASE = b"SQLite format 3\0"
_OWN = (b'{"v":1,"kind":"', b'{"v": 1, "kind": "')
_OWN_TABLE = b"record_once"
_BUCKET = "s3://"
_ENOUGH = 64
_SCHEMA = 1 << 16

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
    """Return the store and what a person should hear about it.

    Args:
        path: of the store, or its URL.
        explicit: somebody named it. One that nobody named and that is not there is read as an empty one.
        create: make it when it is not there.
        readonly: refuse to write; never migrates the store.
        masked: mask secrets in what is written.
        progress: hears of long indexing.
        scratch: where nothing can be recorded, as beside another agent's log, work all the same and keep nothing.

    Raises:
        NotFound: a store was named and is not there.
        InvalidInput: a file of no known format, or another agent's log that is to be written to.
        CtxmgrError: it can't be opened.
    """
    in_bucket = path.startswith(_BUCKET)
    if is_url(path) and not in_bucket:
        return open_store(path, create=create, readonly=readonly, masked=masked), []
    if not create and not explicit and not in_bucket and not exists(path):
        return empty_store(path), [NOTHING_YET]
    may_be_archive = in_bucket or path.endswith(".parquet") or os.path.isdir(path)
    if may_be_archive and (archive := _archive(path, readonly, scratch, create, progress)):
        return archive, [] if readonly else [NOTHING_ARCHIVED.format(path)]
    if os.path.isdir(path):
        raise InvalidInput(f"{path} is a folder", "name a log in it; 'ctxmgr import' and 'ctxmgr detect' read every log there")
    warnings: list[str] = []
    head = _head(path)
    is_log = head.startswith(_OWN)
    if not explicit and is_foreign(path, os.getcwd()):
        raise InvalidInput(f"{path} belongs to another user", "name it with --store to use it all the same")
    store = None if is_log or not head else _foreign(path, readonly=readonly, scratch=scratch, progress=progress)
    if store is None:
        is_log = is_log or (bool(head) and not head.startswith(_DATABASE))
        store = open_store(path, create=create, readonly=readonly, masked=masked, progress=progress, is_log=is_log)
    elif not readonly:
        warnings.append(NOTHING_RECORDED.format(path))
    try:
        return store, warnings + _heard(store.damage())
    except BaseException:
        store.close()
        raise


def _archive(path: str, readonly: bool, scratch: bool, create: bool, progress: Progress | None) -> Store | None:
    """Open an archive of sessions; None where the path is none.

    Raises:
        InvalidInput: it is to be written to.
    """
    from ctxmgr.store.archive.parquet import is_archive, open_archive

    if not is_archive(path):
        return None
    if create or not (readonly or scratch):
        raise InvalidInput(f"{path} is an archive, which is only read", "take a session back: ctxmgr store restore")
    return open_archive(path, scratch=not readonly, progress=progress)


def require_record(store: Store) -> None:
    """Refuse a log that holds something and nothing that can be read: to answer from it would look like an empty history.

    Raises:
        Damaged: it is one.
    """
    damage = store.damage()
    if damage and not store.sessions.count():
        reason = f"{damage[0].reason} at offset {damage[0].offset:,}"
        raise Damaged(f"{store.location}: no record of it can be read ({reason})", "'ctxmgr verify' lists what is damaged")


def _head(path: str) -> bytes:
    """Return how a file begins that is no store of ours; nothing where its name or its content says that it is one.

    An empty file is what its name says, and a database that is damaged at its beginning is not taken for anything else. One
    whose first pages do not name the table that all stores have may be another program's.
    """
    if not os.path.isfile(path):
        return b""
    try:
        with open(open_regular(path), "rb") as stream:
            head = stream.read(_ENOUGH)
            if head.startswith(_DATABASE):
                return b"" if _OWN_TABLE in head + stream.read(_SCHEMA) else head
    except OSError:  # told where it is opened
        return b""
    return b"" if path.lower().endswith(_DATABASES) else head


def _foreign(path: str, *, readonly: bool, scratch: bool, progress: Progress | None) -> Store | None:
    """Open another agent's log; None when records of our own are in it."""
    from ctxmgr.history.foreign_log import foreign_importer, open_foreign

    try:
        importer = foreign_importer(path)
    except OSError as error:
        raise StorageFailed(f"can't read {path}: {error.strerror}", "check its permissions") from None
    except InvalidInput:
        if _begins_like_database(path):  # a new store may still be all in its write-ahead log; it is judged where it is opened
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


def _heard(damage: list[DamagedRange]) -> list[str]:
    warnings = [f"damaged: {item.length:,} bytes at offset {item.offset:,}: {item.reason}" for item in damage[:5]]
    if (more := len(damage) - 5) > 0:
        warnings.append(f"{more} more damaged ranges; 'ctxmgr verify' lists them all")
    return warnings


def check_asking(agent: str) -> None:
    """Refuse a name by which rules mean something else than an agent.

    Raises:
        InvalidInput: it is one.
    """
    from ctxmgr.access.patterns import PROJECT_OWNER, USER, check_agent

    if check_agent(agent) in (USER, PROJECT_OWNER):
        raise InvalidInput(f"no agent can be called {agent!r}: the rules mean something else by it", "name the agent")
