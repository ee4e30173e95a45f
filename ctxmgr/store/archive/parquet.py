"""Archives of sessions: Parquet files by day, written whole or not at all, and read as a read-only store.

Each row is one record: its body as it was recorded, and a checksum that continues the chain of the row before. Further columns
(session, kind, action, ...) let any Parquet reader filter. To read an archive, this module first writes its rows as a log into
the cache folder, once. That log is then read in place like any other, page by page. DuckDB reads and writes Parquet; it is an
extra: ``pip install 'ctxmgr-cli[archive]'``.

An archive may be in a bucket of S3, or of a service with the same protocol: ``s3://BUCKET/PREFIX``. Its files are written
once and never changed, and their names are derived from their content. So the bucket is read through copies in the cache
folder, each fetched once. obstore talks to the service; it is an extra: ``pip install 'ctxmgr-cli[s3]'``. Keys, region and
endpoint come from the usual variables (``AWS_ACCESS_KEY_ID``, ``AWS_REGION``, ``AWS_ENDPOINT_URL``, ...); without them, from
the identity of the machine.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from ctxmgr.base.paths import make_private_folder, open_regular, read_regular, replace_file, sync_folder, user_folder
from ctxmgr.errors import Damaged, InvalidInput, NotFound, StorageFailed
from ctxmgr.log import codec
from ctxmgr.log.ids import parse_time
from ctxmgr.store.engine.log_bytes import DamagedRange
from ctxmgr.store.log_store import LogStore
from ctxmgr.store.text_normalisation import storable
from ctxmgr.store.verification import VerificationResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxmgr.log.codec import Record
    from ctxmgr.store.log_rows import Progress


SCHEME = "s3://"

_URL = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._=+:~-]+)*/?")
_FOLDER = r"(?:team|day)=[A-Za-z0-9._~:+%-]{1,200}"
_NAME = re.compile(rf"(?:{_FOLDER}/){{0,2}}[A-Za-z0-9_-]{{1,200}}-[0-9]{{1,15}}\.parquet")
"""Pattern of an archive's file names. Other objects in a bucket are ignored and never become a path here."""

_SERVICE_CODE = re.compile(r"<Code>(\w{1,60})</Code>")
_REMEDY = "check the bucket, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL"


def is_bucket(location: str) -> bool:
    """Whether a location is in a bucket."""
    return location.startswith(SCHEME)


class Bucket:
    """An archive in a bucket.

    Args:
        url: ``s3://BUCKET/PREFIX``.

    Attributes:
        folder: the folder of the copies on this machine, with the same layout as the archive.
        drafts: the folder for files that are not in the bucket yet.

    Raises:
        InvalidInput: the URL is not one of a bucket, or obstore is not installed.
    """

    def __init__(self, url: str) -> None:
        name = url.removeprefix(SCHEME).partition("/")[0]
        if re.fullmatch(r"[a-z0-9.-]{1,2}|[a-z0-9.-]{64,}", name):
            raise InvalidInput(
                f"the name of the bucket {name!r} is too {'short' if len(name) < 3 else 'long'}", "it has 3 to 63 signs"
            )
        if _URL.fullmatch(url) is None:
            raise InvalidInput(
                f"{url} names no bucket", "write s3://BUCKET/PREFIX; set AWS_ACCESS_KEY_ID and the like for the keys"
            )
        self._url = url.rstrip("/")
        self._client: Any = None
        cache = os.path.join(user_folder(os.environ, "XDG_CACHE_HOME", ".cache"), "ctxmgr", "archive")
        # Two services may have buckets of the same name, so the folder's name depends on the service too.
        service = os.environ.get("AWS_ENDPOINT_URL", "")
        self.folder = os.path.join(cache, f"bucket-{codec.digest(f'{service} {self._url}'.encode())[:32]}")
        self.drafts = os.path.join(self.folder, ".drafts")
        self._connect()

    def _connect(self) -> None:
        try:
            from obstore.store import from_url
        except ModuleNotFoundError:
            raise InvalidInput("archives at s3:// need obstore", "pip install 'ctxmgr-cli[s3]'") from None
        plain = os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true", "yes")
        try:
            self._client = from_url(
                self._url,
                client_options={"allow_http": plain, "connect_timeout": "5s", "timeout": "120s"},
                retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=30)},
            )
        except _bucket_faults() as error:
            self._raise_failure(error)

    def _raise_failure(self, error: Exception) -> NoReturn:
        code = _SERVICE_CODE.search(str(error))
        reason = code[1] if code is not None else str(error).splitlines()[0].rpartition(": ")[2][:200]
        raise StorageFailed(f"{self._url} can't be used: {reason}", _REMEDY) from None

    def require_there(self) -> None:
        """Check that the bucket can be listed.

        Raises:
            StorageFailed: the bucket does not exist or can't be read.
        """
        import obstore

        try:
            next(iter(obstore.list(self._client)), None)
        except (FileNotFoundError, *_bucket_faults()) as error:
            self._raise_failure(error)

    def fetch(self, within: str = "") -> str:
        """Copy new files from the bucket, and remove copies of deleted files. Return the path of the copies.

        Args:
            within: a folder or a file of the archive; by default all of it.

        Raises:
            StorageFailed: the bucket can't be read, or the cache folder can't be written.
        """
        there = dict(self._list_files(within))
        try:
            # A file that was deleted in the bucket must not be read here any more.
            for name in set(_copies(self.folder)) - there.keys():
                if not within or name == within or name.startswith(f"{within}/"):
                    os.unlink(os.path.join(self.folder, name))
            for name, size in sorted(there.items()):
                path = os.path.join(self.folder, name)
                # A file's name is derived from its content, so a copy of the same size is complete and up to date.
                if not (os.path.isfile(path) and os.path.getsize(path) == size):
                    self._copy(name, path)
        except OSError as error:
            raise StorageFailed(f"can't write {self.folder}: {error.strerror}", "free space in the cache folder") from None
        return os.path.join(self.folder, within) if within else self.folder

    def _list_files(self, within: str) -> Iterator[tuple[str, int]]:
        """Yield (name, size in bytes) of the archive's files in the bucket."""
        import obstore

        try:
            if within.endswith(".parquet"):
                yield within, int(obstore.head(self._client, within)["size"])
                return
            for page in obstore.list(self._client, within or None):
                for found in page:
                    if _NAME.fullmatch(found["path"]) is not None:
                        yield found["path"], int(found["size"])
        except FileNotFoundError:
            return
        except _bucket_faults() as error:
            self._raise_failure(error)

    def _copy(self, name: str, path: str) -> None:
        import obstore

        make_private_folder(os.path.dirname(path))
        # A copy gets its final name only when it is complete, because other processes read the folder at the same time.
        draft = f"{path}.{os.getpid()}.part"
        try:
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as stream:
                for piece in obstore.get(self._client, name).stream():
                    stream.write(piece)
            os.replace(draft, path)
        except _bucket_faults() as error:
            self._raise_failure(error)
        finally:
            if os.path.exists(draft):
                os.unlink(draft)

    def put(self, draft: str, folder: str) -> str:
        """Upload a file into a folder of the archive, and read it back. Return the path of its local copy.

        Raises:
            StorageFailed: the file can't be written, or its content differs when read back.
        """
        import obstore

        name = f"{folder}/{os.path.basename(draft)}"
        try:
            obstore.put(self._client, name, Path(draft))
            there = sha256()
            for piece in obstore.get(self._client, name).stream():
                there.update(piece)
        except (FileNotFoundError, *_bucket_faults()) as error:
            self._raise_failure(error)
        with open(open_regular(draft), "rb") as stream:
            here = sha256(stream.read())
        # Check what the service returns, because the archived sessions are removed from the store next.
        if here.digest() != there.digest():
            raise StorageFailed(f"{self._url}/{name} does not hold what was written to it", "nothing was removed; try again")
        path = os.path.join(self.folder, name)
        make_private_folder(os.path.dirname(path))
        os.replace(draft, path)
        return path


def local_copy(location: str) -> str:
    """Return the local path of an archive, a folder of it or one of its files; for a bucket, the path of a copy.

    Raises:
        InvalidInput, StorageFailed: the bucket can't be read.
        NotFound: the bucket has nothing there.
    """
    if not is_bucket(location):
        return os.path.realpath(location)
    within: list[str] = []
    url = location.rstrip("/")
    # Trailing parts that look like a folder or a file of an archive are not part of the archive's prefix.
    while re.fullmatch(rf"{_FOLDER}|[^/]+\.parquet", url.rpartition("/")[2]):
        url, _, last = url.rpartition("/")
        within.insert(0, last)
    place = Bucket(url).fetch("/".join(within))
    if not os.path.exists(place):
        raise NotFound(f"no archive at {location}", "check the bucket and the prefix")
    return place


def _copies(folder: str) -> Iterator[str]:
    """Yield the names of the copied files."""
    for path in Path(folder).rglob("*.parquet"):
        name = path.relative_to(folder).as_posix()
        if _NAME.fullmatch(name) is not None:
            yield name


def _bucket_faults() -> tuple[type[Exception], ...]:
    from obstore.exceptions import BaseError

    return (BaseError,)


SUFFIX = ".parquet"

_COLUMNS = {
    "session": "VARCHAR", "place": "BIGINT", "kind": "VARCHAR", "id": "VARCHAR", "time": "TIMESTAMP WITH TIME ZONE",
    "agent": "VARCHAR", "action": "VARCHAR", "status": "VARCHAR", "body": "VARCHAR", "sum": "VARCHAR",
}  # fmt: skip
_AT_ONCE = 1_000
_DRAFT = ".draft-"


def is_archive(path: str) -> bool:
    """Whether a location is an archive: a bucket's URL, a Parquet file, or a folder with one in it or in its day folders."""
    if is_bucket(path):
        return True
    if os.path.isdir(path):
        return next(archive_files(path), None) is not None
    return path.lower().endswith(SUFFIX) and os.path.isfile(path)


def archive_files(path: str) -> Iterator[str]:
    """Yield the files of an archive in the order of their names. Symbolic links are ignored."""
    if not os.path.isdir(path):
        yield path
        return
    try:
        with os.scandir(path) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise StorageFailed(f"can't read {path}: {error.strerror}", "check its permissions") from None
    for entry in entries:
        if entry.is_file(follow_symlinks=False) and entry.name.endswith(SUFFIX) and not entry.name.startswith("."):
            yield entry.path
        elif entry.is_dir(follow_symlinks=False) and entry.name.startswith(("day=", "team=")):
            yield from archive_files(entry.path)


def require_writable(archive: str) -> Bucket | None:
    """Check that an archive can be written, without creating anything. Return the `Bucket` if it is in one.

    Raises:
        InvalidInput: DuckDB or obstore is not installed, or the URL is not one of a bucket.
        StorageFailed: the bucket does not exist, or the folder can't be written.
    """
    _duckdb().close()
    if is_bucket(archive):
        bucket = Bucket(archive)
        bucket.require_there()
        return bucket
    above = archive
    while not os.path.lexists(above) and os.path.dirname(above) != above:
        above = os.path.dirname(above)
    if not os.path.isdir(above or ".") or not os.access(above or ".", os.W_OK | os.X_OK):
        reason = "you may not write there" if os.path.isdir(above) else f"{above} is no folder"
        raise StorageFailed(f"can't write below {archive}: {reason}", "name another folder")
    return None


def write_file(folder: str, records: Iterable[tuple[str, Record, str]]) -> str:
    """Write the records of whole sessions into a new file, read it back and sync it. Return its path.

    Args:
        folder: the folder of the day, created if it is missing.
        records: (session, record, stored body) of each record, in order.

    Raises:
        InvalidInput: DuckDB is not installed.
        StorageFailed: the file can't be written.
    """
    database = _duckdb(folder_for_spilling=folder)
    draft = os.path.join(folder, f"{_DRAFT}{os.getpid()}-{os.urandom(4).hex()}")
    try:
        make_private_folder(folder)
        database.execute(f"CREATE TABLE record ({', '.join(f'{name} {kind}' for name, kind in _COLUMNS.items())})")
        count, total = _fill(database, records)
        database.table("record").write_parquet(draft, compression="zstd")
        database.close()
        # The name is derived from the content, so a run repeated after a kill writes the same file, not a second one.
        place = os.path.join(folder, f"{total}-{count}{SUFFIX}")
        # Read the file back before it gets its name, so that every file with the name of an archive is complete.
        _require_same(draft, count, total)
        # Sync first the content, then the name, then the folders, so that a crash leaves the whole file or none.
        _sync(draft)
        os.replace(draft, place)
        for above in (folder, os.path.dirname(folder), os.path.dirname(os.path.dirname(folder))):  # of the team, of the archive
            sync_folder(above)
    except OSError as error:
        raise StorageFailed(
            f"can't write below {folder}: {error.strerror}", "free space there, or name another folder"
        ) from None
    except _faults() as error:
        raise StorageFailed(
            f"can't write below {folder}: {_first_line(error)}", "free space there, or name another folder"
        ) from None
    finally:
        database.close()
        if os.path.exists(draft):
            os.unlink(draft)
    return place


def _fill(database: Any, records: Iterable[tuple[str, Record, str]]) -> tuple[int, str]:
    count, total, rows = 0, "", list[tuple[object, ...]]()

    def insert() -> None:
        if rows:
            columns = [list(column) for column in zip(*rows, strict=True)]
            # DuckDB stores columns, so passing whole columns is far faster than inserting rows.
            database.execute(f"INSERT INTO record SELECT {', '.join('unnest(?)' for _ in _COLUMNS)}", columns)
            rows.clear()

    for session, record, body in records:
        total = codec.chain(total, body.encode())
        rows.append((_to_plain_text(session), count, *_filter_columns(record), body, total))
        count += 1
        if len(rows) >= _AT_ONCE:
            insert()
    insert()
    return count, total


def _filter_columns(record: Record) -> tuple[str | None, ...]:
    """Return the columns by which other readers of Parquet may filter. ctxmgr itself does not read them."""
    moment = record.get("ts")
    known = isinstance(moment, str) and parse_time(moment) is not None
    named = record.get("entry") if record["kind"] == "result" else record.get("id")
    columns = (record["kind"], named, moment if known else None, *(record.get(name) for name in ("agent", "action", "status")))
    return tuple(_to_plain_text(value) if isinstance(value, str) else None for value in columns)


def _to_plain_text(text: str) -> str:
    """Return a text that any reader accepts. Texts with unprintable characters (lone surrogates, NUL) get JSON escapes."""
    if "\0" in text or not text.isprintable():
        return codec.encode_value(text, 0).decode()[1:-1]
    return text


def _require_same(path: str, count: int, total: str) -> None:
    """Read a file back and check its number of records and its last checksum.

    Raises:
        StorageFailed: the content differs from what was written.
    """
    found, last = 0, ""
    for body, said in read_rows(path):
        last = codec.chain(last, body.encode())
        found += last == said
    if (found, last) != (count, total):
        raise StorageFailed(f"{path} does not hold what was written to it", "check the disk; nothing was removed")


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_rows(path: str) -> Iterator[tuple[str, str]]:
    """Yield (body, checksum) of each record in a file, in order.

    Raises:
        Damaged: the file can't be read, or another program wrote it.
        InvalidInput: DuckDB is not installed.
    """
    database = _duckdb()
    try:
        # By default DuckDB would add columns for ``day=`` and ``team=`` in the path.
        found = database.execute("SELECT body, sum FROM read_parquet(?, hive_partitioning = false)", [path])
        while rows := found.fetchmany(_AT_ONCE):
            yield from rows
    except _faults() as error:
        raise Damaged(f"{path}: {_first_line(error)}", "it is damaged, or no archive that 'ctxmgr store retain' made") from None
    finally:
        database.close()


def read_records(path: str, session: str | None = None) -> Iterator[Record]:
    """Yield the records of an archive, or of one session of it, in order. Checksums are verified while reading.

    Raises:
        Damaged: a file can't be read, or a record was changed.
    """
    for file in archive_files(local_copy(path)):
        for record, _ in _check(file):
            if session is None or storable(record["session"]) == storable(session):
                yield record


def _check(file: str) -> Iterator[tuple[Record, str]]:
    last = ""
    for number, (body, said) in enumerate(read_rows(file)):
        last = codec.chain(last, body.encode())
        if last != said:
            raise Damaged(f"{file}: record {number:,} was changed, or one before it was removed", "take a copy of the file")
        try:
            yield codec.decode(body.encode()), body
        except ValueError:
            raise Damaged(f"{file}: record {number:,} is no record", "take a copy of the file") from None


class ArchiveStore(LogStore):
    """An archive as a read-only store."""

    def __init__(self, location: str, log: str, files: list[str], *, scratch: bool, progress: Progress | None) -> None:
        self._scratch = tempfile.mkdtemp(prefix="ctxmgr-") if scratch else None
        if self._scratch is not None:
            # Appends go into a copy, because the log in the cache must keep the content of the archive.
            log = shutil.copy(log, self._scratch)
        super().__init__(log, readonly=not scratch, progress=progress)
        self.location = location
        self._files = files

    def close(self) -> None:
        """Close the store, and remove its scratch copy."""
        super().close()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def examine(self) -> VerificationResult:
        """Verify the checksum of every record in every file."""
        records, damaged = 0, list[DamagedRange]()
        for file in self._files:
            try:
                for _ in _check(file):
                    records += 1
            except Damaged as error:
                damaged.append(DamagedRange(records, 1, error.message, "altered"))
        checked_text = f"the sums of {records:,} records, each of which follows from the one before in its file"
        return VerificationResult(
            records, damaged, [] if damaged else [checked_text], ["whether a whole file was removed can't be told"]
        )

    def is_live(self, session: str) -> bool:
        """Return False, because archived sessions have ended."""
        del session
        return False


def open_archive(path: str, *, scratch: bool = False, progress: Progress | None = None) -> ArchiveStore:
    """Open an archive, a folder of it or one of its files as a read-only store.

    Args:
        path: the path of the archive, or its URL, see `ctxmgr.store.archive.parquet`.
        scratch: accept appends, which are lost when the store is closed.
        progress: called while the log is indexed.

    Raises:
        NotFound: there is no archive at the path.
        Damaged: a file can't be read, or a record was changed.
        InvalidInput: DuckDB is not installed.
        StorageFailed: the cache folder can't be written.
    """
    place = local_copy(path)
    files = list(archive_files(place))
    if not files or not os.path.exists(files[0]):
        raise NotFound(f"no archive at {path}", "check the path")
    states = [(file, status.st_size, status.st_mtime_ns) for file in files for status in [os.stat(file)]]
    state = codec.digest(repr(states).encode()).encode()
    folder = os.path.join(user_folder(os.environ, "XDG_CACHE_HOME", ".cache"), "ctxmgr", "archive")
    stem = os.path.join(folder, codec.digest(os.fsencode(place))[:32])
    log, note = f"{stem}.jsonl", f"{stem}.state"
    try:
        # The note is written after the log. If a process was killed in between, the log is written again.
        if not (os.path.exists(log) and os.path.exists(note) and read_regular(note, 128) == state):
            make_private_folder(folder)
            _write_log(log, files)
            replace_file(note, state)
        return ArchiveStore(path, log, files, scratch=scratch, progress=progress)
    except OSError as error:
        raise StorageFailed(f"can't write {log}: {error.strerror}", "free space in the cache folder") from None


def _write_log(log: str, files: list[str]) -> None:
    """Write the records of all files as one log, whole or not at all. A record in several files is written once."""
    draft = f"{log}.{os.getpid()}"
    known, total = set[bytes](), ""
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as stream:
            for file in files:
                for _, body in _check(file):
                    line = body.encode()
                    # Two files may have the same records, after a run that was killed, or if a restored session was archived
                    # again.
                    if len(files) > 1:
                        # Keep digests instead of lines, so that millions of records fit into memory.
                        mark = hashlib.blake2b(line, digest_size=12).digest()
                        if mark in known:
                            continue
                        known.add(mark)
                    total = codec.chain(total, line)
                    stream.write(codec.seal(line, total, b"\n"))
        os.replace(draft, log)
    finally:
        if os.path.exists(draft):
            os.unlink(draft)


def _duckdb(folder_for_spilling: str | None = None) -> Any:
    try:
        import duckdb
    except ModuleNotFoundError:
        raise InvalidInput("archives need DuckDB", "pip install 'ctxmgr-cli[archive]'") from None
    config = {
        # A file must not make DuckDB fetch or load code. One core and little memory, because DuckDB runs beside agents.
        "autoinstall_known_extensions": "false", "autoload_known_extensions": "false", "threads": "1", "memory_limit": "1GB",
    }  # fmt: skip
    if folder_for_spilling is not None:
        config["temp_directory"] = os.path.join(folder_for_spilling, f"{_DRAFT}spilled-{os.getpid()}")
    return cast("Any", duckdb).connect(config=config)


def _faults() -> tuple[type[Exception], ...]:
    import duckdb

    return (duckdb.Error,)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:200]
