"""Move ended sessions from a store into an archive, and back.

A session is removed only after its records were written to the archive and read back. Three things stay in ``state``:

- a mark, with which the store refuses the session's records, so that importing or shipping a log again stores nothing twice;
- its last checksum, which an anchor may include;
- in the common chain of an old store, the checksums of its records before records of other sessions, with which
  `ctxmgr.store.verification` follows that chain.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.errors import Damaged, InvalidInput, NotFound
from ctxmgr.log.codec import chain, digest
from ctxmgr.log.ids import format_time, new_id
from ctxmgr.store.archive.parquet import Bucket, archive_files, is_bucket, read_records, read_rows, require_writable, write_file
from ctxmgr.store.engine.dialect import KEEP_STATE
from ctxmgr.store.engine.disposable_files import BORN
from ctxmgr.store.log_store import LogStore
from ctxmgr.store.project_session import ARCHIVED, GAP, PROJECT, end_name, parse_archive_mark
from ctxmgr.store.repositories.bookkeeping import WATCHED
from ctxmgr.store.row_mapper import load
from ctxmgr.store.text_normalisation import storable
from ctxmgr.store.verification import common_chain, session_faults
from ctxmgr.store.write.append import BATCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ctxmgr.log.codec import Record
    from ctxmgr.store.base import Store

    Heard = Callable[[int, int], None]
    """Called with the number of sessions done and of all sessions."""

_TABLES = (
    "usage", "milestone", "note_entry", "note_tag", "superseded", "event", "entry", "process", "record",
)  # fmt: skip
"""Tables with rows of a session. Its own row is deleted last."""

_FILE_BYTES = 64 << 20
"""Number of bytes of records after which a new file of the day begins."""

# Length of the quoted name. File systems limit a name to 255 bytes, and `_FOLDER` of `parquet` to 200 characters.
_MAX_TEAM_NAME = 150

_OLD = (
    "SELECT key, id, first, last, source IS NOT NULL, entries + events FROM session "
    "WHERE id <> :project AND last < :before ORDER BY first, key"
)
_GAPS = (
    "SELECT seq, sum FROM record AS own WHERE session = :key AND seq <= :until AND NOT EXISTS "
    "(SELECT 1 FROM record AS following WHERE following.session = own.session AND following.seq = own.seq + 1)"
)
_END = (
    "SELECT seq, sum, (SELECT count(*) FROM record WHERE record.session = session.key AND record.seq > :until) FROM session "
    "WHERE key = :key"
)


@dataclass(frozen=True, slots=True)
class ArchivableSession:
    """A session that may be archived.

    Attributes:
        key: its key.
        session: its id.
        day: the day of its first record, YYYY-MM-DD in UTC.
    """

    key: int
    session: str
    day: str


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """The result of `retain`.

    Attributes:
        sessions: the ids of the sessions that were archived and removed.
        records: the number of their records.
        files: the archive's files with these sessions.
        passed_over: (session, reason) of those that were old enough but stay.
    """

    sessions: list[str]
    records: int
    files: list[str]
    passed_over: list[tuple[str, str]]


def archivable_sessions(
    store: Store, before: float, abandoned_before: float | None = None
) -> tuple[list[ArchivableSession], list[tuple[str, str]]]:
    """Return the sessions that may be archived, oldest first, and (session, reason) of those that are old enough but stay.

    A session has ended if each of its processes recorded its end. An imported session, whose log may not record an end, has
    ended if no call in it is open. A session stays if it is live, if a recovery is at work, or if it has the last record of
    the store.

    Args:
        store: the store.
        before: only sessions whose last record is older than this, in seconds since 1970.
        abandoned_before: also sessions without an end whose last record is older than this.

    Raises:
        InvalidInput: the store is a log.
    """
    if isinstance(store, LogStore):
        raise InvalidInput(
            f"{store.location} is a log, from which nothing is removed",
            "take it into a database: ctxmgr import LOG --store h.db",
        )
    found, kept = list[ArchivableSession](), list[tuple[str, str]]()
    # The last record of a file stays, because the next one is numbered after it, and no place may be used twice.
    newest = None if store.engine.shared else store.sessions.last_record(None)[0]
    for key, session, first, last, imported, shown in store.engine.query(_OLD, {"before": before, "project": PROJECT}):
        reason = _why_open(store, int(key), str(session), imported=bool(imported))
        if reason is not None and abandoned_before is not None and float(last) < abandoned_before and reason != _LIVE:
            reason = None
        if reason is None and newest is not None and store.sessions.last_record(int(key))[0] == newest:
            reason = "the last record of the store is there"
        if reason is None and not shown and not store.sessions.holds(int(key), ("sessionEnd",)):
            reason = "nothing was recorded yet"
        if reason is not None:
            kept.append((str(session), reason))
            continue
        try:
            day = format_time(float(first))[:10]
        except (ValueError, OverflowError):
            kept.append((str(session), "times were changed"))
            continue
        found.append(ArchivableSession(int(key), str(session), day))
    return found, kept


NO_END = "no end was recorded"
"""The reason why a session stays that may have been abandoned."""

_LIVE = "a recorder or a recovery is at work"


def _why_open(store: Store, key: int, session: str, *, imported: bool) -> str | None:
    """Return why a session counts as open, or None."""
    if store.is_live(session) or store.leases.expiry(session, store.clock()) is not None:
        return _LIVE
    outcomes = [process.outcome for process in store.sessions.processes(key)]
    if outcomes and all(outcome is not None for outcome in outcomes):
        return None
    if not imported:
        return NO_END
    pending = store.engine.query("SELECT 1 FROM entry WHERE session = :key AND status = 'open' LIMIT 1", {"key": key})
    return "a call is still open" if pending else None


def retain(store: Store, archive: str, sessions: list[ArchivableSession], heard: Heard | None = None) -> RetentionResult:
    """Archive sessions and remove them from the store. After a kill, the next run completes the work.

    Args:
        store: a store open for writing, with the right to remove records.
        archive: the folder of the archive, created if it is missing; or a place in a bucket, ``s3://BUCKET/PREFIX``.
        sessions: sessions from `archivable_sessions`.
        heard: called after each session.

    Raises:
        InvalidInput: the archive can't be written here.
        StorageFailed, Busy, Denied: the archive or the store can't be written; sessions that were not archived stay.
    """
    bucket = require_ready(store, archive)
    # Verify a whole database before anything is removed. On a server, `_records` verifies each session when it reads it.
    if not store.engine.shared and (damaged := store.examine().damaged):
        raise Damaged(f"{store.location}: {damaged[0].reason}; nothing was archived", "'ctxmgr verify' lists what is damaged")
    done, records, files, passed = list[str](), 0, list[str](), list[tuple[str, str]]()
    root = archive if bucket is None else bucket.folder
    above = _team_folder(store)
    for day, group in groupby(sessions, key=lambda each: each.day):
        within = f"{above}day={day}"
        folder = os.path.join(root, within)
        if bucket is not None:
            bucket.fetch(within)
        there = _read_archive_folder(folder)
        waiting = list(group)
        # A run that was killed between writing and removing left sessions in both places. Do not write these again.
        new = [each for each in waiting if there.get(each.session, _NOWHERE).sum != _session_checksum(store, each)]
        for part in _parts(store, new):
            written = write_file(folder if bucket is None else bucket.drafts, _records(store, part))
            if bucket is not None:
                written = bucket.put(written, within)
            there.update(_read_archive_file(written))
        for each in waiting:
            found = there[each.session]
            removed, reason = _remove(store, each, found, archive, root)
            if reason is None:
                done.append(each.session)
                records += removed
                files.append(found.file if bucket is None else f"{archive.rstrip('/')}/{os.path.relpath(found.file, root)}")
            else:
                passed.append((each.session, reason))
            if heard is not None:
                heard(len(done) + len(passed), len(sessions))
    store.forget_sessions()
    return RetentionResult(done, records, list(dict.fromkeys(files)), passed)


def require_ready(store: Store, archive: str) -> Bucket | None:
    """Check that `retain` can write and remove, before it writes anything. Return the `Bucket` if the archive is in one.

    Raises:
        InvalidInput: the archive's location is not valid, or a needed package is not installed.
        StorageFailed: the archive can't be written.
        Denied: the store is on a server, and the role may not remove records from it.
    """
    if "://" in archive and not is_bucket(archive):
        raise InvalidInput(f"{archive} is no folder", "name a folder of this machine, or s3://BUCKET/PREFIX")
    store.require_keeper()
    return require_writable(archive)


def _team_folder(store: Store) -> str:
    """Return the folder of the team whose records are archived, with a slash; "" if the store is not divided into teams."""
    team = store.team()
    if team is None:
        return ""
    name = quote(team, safe="")
    return f"team={name if len(name) <= _MAX_TEAM_NAME else digest(team.encode())[:32]}/"


@dataclass(frozen=True, slots=True)
class _Archived:
    """A session in an archive: its file, the number of its records, and the last checksum over its bodies alone."""

    file: str
    records: int
    sum: str


_NOWHERE = _Archived("", 0, "")


def _read_archive_folder(folder: str) -> dict[str, _Archived]:
    """Return the sessions in the files of a day. If several files have a session, the longest counts."""
    found: dict[str, _Archived] = {}
    for file in archive_files(folder) if os.path.isdir(folder) else ():
        for session, archived in _read_archive_file(file).items():
            if archived.records > found.get(session, _NOWHERE).records:
                found[session] = archived
    return found


def _read_archive_file(file: str) -> dict[str, _Archived]:
    counts, sums = Counter[str](), dict[str, str]()
    for body, _ in read_rows(file):
        # Use the stored form of the id, without lone surrogates.
        session = storable(str(load(body)["session"]))
        counts[session] += 1
        sums[session] = chain(sums.get(session, ""), body.encode())
    return {session: _Archived(file, counts[session], total) for session, total in sums.items()}


def _bodies(store: Store, session: ArchivableSession) -> Iterator[str]:
    sql = "SELECT body FROM record WHERE session = :key ORDER BY seq"
    for (body,) in store.engine.stream(sql, {"key": session.key}):
        yield str(body)


def _session_checksum(store: Store, session: ArchivableSession) -> str:
    total = ""
    for body in _bodies(store, session):
        total = chain(total, body.encode())
    return total


def _parts(store: Store, sessions: list[ArchivableSession]) -> Iterator[list[ArchivableSession]]:
    """Yield groups of sessions, one for each file."""
    part, size = list[ArchivableSession](), 0
    for each in sessions:
        part.append(each)
        sql = "SELECT coalesce(sum(length(body)), 0) FROM record WHERE session = :key"
        size += int(store.engine.query(sql, {"key": each.key})[0][0])
        # Split only between sessions, so that restoring one reads one file.
        if size >= _FILE_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _records(store: Store, sessions: list[ArchivableSession]) -> Iterator[tuple[str, Record, str]]:
    for each in sessions:
        if store.engine.shared and (faults := session_faults(store.engine, each.key)):
            raise Damaged(f"session {each.session!r}: {faults[0].reason}", "'ctxmgr verify' lists what is damaged")
        for body in _bodies(store, each):
            yield each.session, load(body), body


def _remove(store: Store, session: ArchivableSession, archived: _Archived, archive: str, root: str) -> tuple[int, str | None]:
    """Remove a session from the store if it equals the archived one. Return (number of records, None) or (0, reason)."""
    engine, values = store.engine, {"key": session.key}
    with engine.transaction():
        if store.is_live(session.session):
            return 0, _LIVE
        # The session may have gone on since it was archived.
        if _session_checksum(store, session) != archived.sum:
            return 0, "something was recorded meanwhile"
        until = common_chain(engine)
        # The common chain of an old store covers the records of all sessions. Without these checksums it would break here.
        for place, total in engine.query(_GAPS, {**values, "until": until}):
            engine.execute(KEEP_STATE, {"name": f"{GAP}{place}", "value": total or ""})
        for place, total, own in engine.query(_END, {**values, "until": until}):
            engine.execute(KEEP_STATE, {"name": end_name(int(place)), "value": f"{total} {own}"})
        # The order of `_TABLES` satisfies the foreign keys: rows that refer to others are deleted first.
        for table in _TABLES:
            engine.execute(f"DELETE FROM {table} WHERE session = :key", values)
        if engine.shared:
            engine.execute("DELETE FROM search_text WHERE session = :key", values)
        engine.execute("DELETE FROM session WHERE key = :key", values)
        named = storable(session.session)
        engine.execute("DELETE FROM lease WHERE session IN (:id, :watched)", {"id": named, "watched": f"{WATCHED}{named}"})
        told = {"file": os.path.relpath(archived.file, root), "records": archived.records, "at": format_time(store.clock())}
        mark = {"name": f"{ARCHIVED}{named}", "value": json.dumps({"archive": archive, **told})}
        engine.execute(KEEP_STATE, mark)
        # A new value makes partial copies for agents, which hold records by place, be built again.
        engine.execute(KEEP_STATE, {"name": BORN, "value": new_id()})
    return archived.records, None


def restore(store: Store, archive: str, session: str | None = None) -> tuple[int, int]:
    """Restore all sessions of an archive, or one, into a store. Return (sessions restored, records that were added).

    Raises:
        NotFound: the archive does not have the session.
        Damaged: a file of the archive can't be read.
        Conflict: the store has another record with the same id.
    """
    restored, added = set[str](), 0
    for records in _batches(read_records(archive, session)):
        with store.engine.transaction():
            for name in sorted({str(record["session"]) for record in records} - restored):
                # An append refuses the session while the mark exists. Both happen in one transaction.
                store.engine.execute("DELETE FROM state WHERE name = :name", {"name": f"{ARCHIVED}{storable(name)}"})
                restored.add(name)
            added += store.append(records).added
    if not restored:
        raise NotFound(f"no session {session!r} in {archive}" if session else f"no session in {archive}", "check the path")
    return len(restored), added


def _batches(records: Iterator[Record]) -> Iterator[list[Record]]:
    while batch := list(islice(records, BATCH)):
        yield batch


def archived_sessions(store: Store) -> list[dict[str, Any]]:
    """Return session, archive, file, number of records and time of each archived session, ordered by session.

    Raises:
        Damaged: the mark of a session was changed.
    """
    rows = store.engine.query(
        "SELECT name, value FROM state WHERE name >= :name AND name < :after ORDER BY name",
        {"name": ARCHIVED, "after": ARCHIVED + "\U0010ffff"},
    )
    sessions = [(str(name)[len(ARCHIVED) :], value) for name, value in rows]
    return [{"session": session, **parse_archive_mark(session, value)} for session, value in sessions]
