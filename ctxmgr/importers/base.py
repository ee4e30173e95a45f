"""The interface of importers, and importers by description for logs in JSON and in SQLite databases.

Formats add only a description. Importers are pure: they read the given files and use no store and no clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count as count_from
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ctxmgr.errors import Damaged
from ctxmgr.importers.log_files import ZSTD_REMEDY, head_values, open_log, plain_name, read_values
from ctxmgr.importers.transcript import Cursor, Part, Transcript
from ctxmgr.importers.values import text
from ctxmgr.log.codec import Record
from ctxmgr.log.foreign_jsonl import Line, Report
from ctxmgr.types.import_report import FileCount


@dataclass(frozen=True)
class Place:
    """A place where an agent keeps its logs.

    Attributes:
        folder: path below the user's home folder.
        pattern: pattern of the logs in it, as for `Path.glob`.
        variable: environment variable that may name another folder, or "".
        below: folder of the logs inside the folder that the variable names.
    """

    folder: str
    pattern: str
    variable: str = ""
    below: str = ""

    def root(self, home: Path, environment: Mapping[str, str]) -> Path:
        """Return the folder on this machine."""
        named = environment.get(self.variable) if self.variable else None
        return Path(named, self.below) if named else home / self.folder

    @property
    def display_path(self) -> str:
        """The place as text for people: ``~/.pi/agent/sessions/*/*.jsonl``."""
        return f"~/{self.folder}/{self.pattern}"


def find_files(places: Iterable[Place], home: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files at these places without repetition."""
    seen: set[Path] = set()
    for place in places:
        for path in sorted(place.root(home, environment).glob(place.pattern), key=str):  # a log comes before its folder
            if path not in seen:
                seen.add(path)
                yield path


@dataclass(frozen=True)
class Coverage:
    """The facts that logs of a format contain and its importer yields.

    Attributes:
        calls, results: whether there are tool calls, and results.
        errors: whether failed calls are marked.
        open_calls: whether calls without a result can be recognised.
        usage: whether each response has token counts.
        sub_agents: whether the work of started agents can be distinguished.
        times: whether calls and results have times.
    """

    calls: bool = True
    results: bool = True
    errors: bool = True
    open_calls: bool = True
    usage: bool = True
    sub_agents: bool = True
    times: bool = True


class Importer(Protocol):
    """One foreign log format.

    Rules for every importer, each of which some published tool breaks:

    * order by place in the file, never by timestamp inside one file;
    * a tool call is an ``entry`` record, its result a separate ``result`` record, a call without result stays open;
    * messages, thoughts, compactions, interrupts are ``event`` records; harness text never becomes a ``user_message``;
    * usage is an ``event`` of type ``usage``, one per API response;
    * ids are the source's own, so that importing twice yields the same records, byte for byte;
    * unknown record types are counted, never fatal; damage is counted with its byte range, never silent.
    """

    @property
    def name(self) -> str:
        """Its name for ``ctxmgr import --from NAME``."""
        ...

    @property
    def title(self) -> str:
        """Its name for people."""
        ...

    @property
    def coverage(self) -> Coverage:
        """The facts that its logs contain."""
        ...

    @property
    def places(self) -> Sequence[Place]:
        """The places where the agent keeps its logs."""
        ...

    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether a file with this path and these first bytes (up to 64 KiB) has this format. The content decides."""
        ...

    def discover(self, home: Path, environment: Mapping[str, str]) -> Iterator[Path]:
        """Yield the agent's log files in the user's home folder, or where environment variables say."""
        ...

    def companions(self, path: Path) -> Sequence[Path]:
        """Return the existing files that belong to the session in ``path``, i.e. the logs of its sub-agents."""
        ...

    def groups(self, paths: Iterable[Path]) -> list[list[Path]]:
        """Group files by session: the main log of a session first, originals before their forks."""
        ...

    def read(self, group: Sequence[Path], counts: list[FileCount]) -> Iterator[Record]:
        """Yield the records of one session. Append one `FileCount` per file to ``counts``; they are complete at the end.

        Raises:
            OSError: a file can't be read.
        """
        ...


_MAX_ID = 200
_MIN_FULL_HEAD = 60_000
"""From this size in bytes, a head means that the file is longer than the head (64 KiB)."""
_MAX_RANGES = 1_000
"""Maximum number of damaged ranges to list per file."""
_MAX_SEARCHED = 16 << 20
"""Maximum number of bytes of a long document to search for proof of its format."""
# OpenHands names the folder of a conversation by a UUID without hyphens. 32 digits inside a longer hash are no UUID.
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])", re.IGNORECASE)


@dataclass(slots=True)
class Log:
    """The state of reading the files of one group, with the sessions in them.

    Attributes:
        name: name of the format.
        path, count: of the current file; group: all files of the session.
        line: number of the current line; cursor: the same as a place, after the file's name except in the first file.
    """

    name: str
    path: Path
    count: FileCount
    group: Sequence[Path] = ()
    line: int = 0
    cursor: Cursor = field(default_factory=Cursor)
    transcripts: dict[tuple[str, str], Transcript] = field(default_factory=lambda: dict[tuple[str, str], Transcript]())
    counter: Iterator[int] = field(default_factory=count_from)
    _prefix: str | None = None
    _finished: list[Transcript] = field(default_factory=lambda: list[Transcript]())
    _unsettled: dict[tuple[str, str], Transcript] = field(default_factory=lambda: dict[tuple[str, str], Transcript]())

    @property
    def place(self) -> int | str:
        """The current place in the log, as part of ids."""
        return self.cursor.place

    def turn_to(self, path: Path, count: FileCount) -> None:
        """Continue with a file."""
        # Lines of the first file have bare numbers, so that a session keeps its ids if it gets a second file later.
        self._prefix = "" if self._prefix is None else f"{path.stem}:"
        self.path, self.count = path, count
        for transcript in self.transcripts.values():
            transcript.count = count

    def go_to(self, number: int) -> None:
        """Continue with a line."""
        self.count.records += 1
        self.line = number
        self.cursor.move(f"{self._prefix}{number}" if self._prefix else number)

    def session(self, session: object = None, *, agent: str = "main", part: str = "", parent: str | None = None) -> Transcript:
        """Return the transcript of a session or of an agent's part of it. Create it at the first call.

        Args:
            session: id of the session; by default the id that follows from the file name.
            agent: name of the agent.
            part: prefix of the ids in this agent's part, if the session has several parts.
            parent: id of the entry by which another agent started this one.
        """
        key = name, _ = self._session_key(session, part)
        if key not in self.transcripts:
            self.transcripts[key] = self._unsettled[key] = Transcript(
                name, self.count, self.name, agent, parent, part=part, cursor=self.cursor, counter=self.counter
            )
        return self.transcripts[key]

    def has_part(self, session: object, part: str) -> bool:
        """Whether this part of a session has a transcript."""
        return self._session_key(session, part) in self.transcripts

    def _session_key(self, session: object, part: str) -> tuple[str, str]:
        name = (text(session) or session_name(self.path))[:_MAX_ID]
        return name, part or name

    def sub_agent(self, main: Transcript, own: str, name: str, call: object) -> Transcript:
        """Return the part of an agent that another agent started.

        Args:
            main: part of the starting agent.
            own: id of the started agent, or of its work.
            name: name of the started agent.
            call: id of the call that started it, if known.
        """
        # An empty parent still marks the part as that of a sub-agent whose call is unknown.
        made = main.calls.get(text(call) or "")
        return self.session(main.session, agent=name, part=f"{main.part}:{own}", parent=made.entry if made else "")

    def add(self, transcript: Transcript) -> None:
        """Add a transcript of the format's own class."""
        transcript.cursor = self.cursor
        key = transcript.session, transcript.part
        self.transcripts[key] = self._unsettled[key] = transcript

    def drop(self, key: tuple[str, str]) -> Transcript:
        """Remove a transcript whose records have been taken, and return it."""
        dropped = self.transcripts.pop(key)
        self._unsettled.pop(key, None)
        self.cursor.changed.pop(id(dropped), None)
        return dropped

    def close(self) -> None:
        """Finish the sessions so far and release them, because a log may hold thousands."""
        self._finished += self.transcripts.values()
        for forgotten in (self.transcripts, self._unsettled, self.cursor.changed):
            forgotten.clear()

    def unknown(self, name: object) -> None:
        """Count an unknown record type."""
        self.count.unknown[(text(name) or "(no type)")[:100]] += 1

    def take(self, *, final: bool = False, live: bool = False) -> list[Record]:
        """Return the records added since the last call. ``live`` (a running program) includes those that wait for a title."""
        if final:
            self.close()
        # The usual case, called after every line, skips the lists and the sorting below.
        if len(self.transcripts) == 1 and not self._finished:
            (only,) = self.transcripts.values()
            if only.titled:
                return Part.take(only)[1] if only.records else []
            return only.take(final=live)[1]
        numbers: list[int] = []
        records: list[Record] = []
        for transcript in self._finished:
            transcript.finish()
            taken = transcript.take(final=True)
            numbers += taken[0]
            records += taken[1]
        self._finished.clear()
        # The session record comes first and has the title, so all parts of a session wait until the title is known.
        waiting = {part.session for part in self._unsettled.values() if not (live or part.is_ready())}
        # Visit only changed parts. A run may start hundreds of agents, and this is called after every line.
        visited = {id(part): part for part in self._unsettled.values()} | self.cursor.changed
        for transcript in visited.values():
            if transcript.session not in waiting:
                taken = transcript.take(final=live)
                numbers += taken[0]
                records += taken[1]
                self.cursor.changed.pop(id(transcript), None)
        for key in [key for key, part in self._unsettled.items() if part.is_settled]:
            del self._unsettled[key]
        return [record for _, record in sorted(zip(numbers, records, strict=True), key=itemgetter(0))]


def session_name(path: Path, content: object = None) -> str:
    """Return a session id for a log without one: the UUID in its path, else its name and a digest of its beginning."""
    # All logs of Copilot CLI are called ``events.jsonl``. Only their folder identifies the session.
    for name in (plain_name(path), path.parent.name):
        if found := _UUID.search(name):
            return found[0].lower()
    stem = plain_name(path).split(".")[0] or path.name
    # Include the folder, because some clients use one file name for all sessions, in separate folders.
    mark = sha256(f"{path.parent.name}/{plain_name(path)}\0{content!r}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"{stem[:80]}-{mark[:8]}"


class ObjectReader(Protocol):
    """Takes the objects of a log, or of one file of it."""

    def read(self, value: dict[str, Any]) -> object:
        """Take the next object: each of JSON lines, or the document."""
        ...


class Reader(ObjectReader, Protocol):
    """Reads one log. The description of a format names a class of this kind."""

    def __init__(self, log: Log) -> None:
        """Start reading a log."""
        ...


@runtime_checkable
class FileReader(Protocol):
    """Reads a log in which each file begins and ends separately."""

    def __init__(self, log: Log) -> None:
        """Start reading a log."""
        ...

    def begin(self) -> ObjectReader:
        """Return the reader for the current file of the log."""
        ...

    def end(self) -> None:
        """Add the records that depend on the end of the file."""
        ...


@runtime_checkable
class FinishingReader(Protocol):
    """A reader that holds records back until the end of a log."""

    def finish(self) -> None:
        """Add the records that were held back."""
        ...


@dataclass(frozen=True, kw_only=True)
class FormatDescription:
    """The description of a format and its files. `Importer` defines what the attributes and methods mean.

    Attributes:
        related: returns all files of the session in a file, including that file; the main log first.
        is_log: returns whether a file at the format's places is a log.
        grouped: groups files, for a format whose sessions continue each other.
    """

    name: str
    title: str
    coverage: Coverage
    places: Sequence[Place] = ()
    related: Callable[[Path], Sequence[Path]] | None = None
    is_log: Callable[[Path], bool] | None = None
    grouped: Callable[[Iterable[Path]], list[list[Path]]] | None = None

    def discover(self, home: Path, environment: Mapping[str, str]) -> Iterator[Path]:
        """Yield the logs at the places where the agent keeps them."""
        # Without `is_log`, `filter(None, …)` keeps all paths, because every path is true.
        return filter(self.is_log, find_files(self.places, home, environment))

    def companions(self, path: Path) -> Sequence[Path]:
        """Return the other files of the session in a file."""
        return [other for other in self.related(path) if other != path] if self.related else ()

    def groups(self, paths: Iterable[Path]) -> list[list[Path]]:
        """Group the files by session."""
        if self.grouped is not None:
            return self.grouped(paths)
        groups: dict[Path, list[Path]] = {}
        placed: set[Path] = set()
        # In a fixed order, so that every file of a group leads to the same group.
        for path in sorted(set(paths)):
            if path in placed:
                continue
            files = list(self.related(path)) if self.related else [path]
            placed.update(files)
            groups.setdefault(files[0] if files else path, files or [path])
        return list(groups.values())


@dataclass(frozen=True, kw_only=True)
class JsonImporter(FormatDescription):
    """An importer by description, for JSON lines and JSON documents.

    Attributes:
        reader: class that reads a log.
        proves: returns whether one object occurs only in logs of this format.
        lists: names of a document's lists of records, which are read even in a damaged document.
        marked: returns whether the first bytes of a non-JSON file prove the format.
        values: yields the objects of a file.
        further_on: pattern that proves the format in a long document that begins with other content; tried last.
        recognises: decides by path and first bytes, for a format without proof in single objects.
    """

    reader: type[Reader] | type[FileReader]
    proves: Callable[[dict[str, Any]], bool] | None = None
    lists: tuple[str, ...] = ()
    marked: Callable[[bytes], bool] | None = None
    values: Callable[[Path, Sequence[str], Report], Iterator[Line]] = read_values
    further_on: re.Pattern[bytes] | None = None
    recognises: Callable[[Path, bytes], bool] | None = None

    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether the beginning of a file proves this format."""
        if self.recognises is not None:
            return self.recognises(path, head)
        if self.marked is not None and self.marked(head):
            return True
        # With `LISTS` instead of `self.lists`, all importers share one cached parse of the head (`head_values`).
        if self.proves is not None and any(map(self.proves, head_values(head, LISTS))):
            return True
        return self.further_on is not None and _holds_later(path, head, self.further_on)

    def read(self, group: Sequence[Path], counts: list[FileCount]) -> Iterator[Record]:
        """Yield the records of one session's files.

        Raises:
            OSError: a file can't be read.
        """
        log: Log | None = None
        reader: Reader | FileReader | None = None
        for path in group:
            count = FileCount(path, bytes=path.stat().st_size)
            counts.append(count)
            log = log or Log(self.name, path, count, group)
            log.turn_to(path, count)
            reader = reader or self.reader(log)
            taking = reader.begin() if isinstance(reader, FileReader) else reader
            go_to, read, take = log.go_to, taking.read, log.take
            for line in self.values(path, self.lists, damage_reporter(count)):
                go_to(line.number)
                read(line.value)
                # After each line, because a log of gigabytes must not be held in memory.
                if records := take():
                    yield from records
            if isinstance(reader, FileReader):
                reader.end()
        if isinstance(reader, FinishingReader):
            reader.finish()
        if log is not None:
            yield from log.take(final=True)


def _holds_later(path: Path, head: bytes, pattern: re.Pattern[bytes]) -> bool:
    """Whether the first megabytes of a document contain the pattern. Only its beginning is in ``head``."""
    if len(head) < _MIN_FULL_HEAD or not head.startswith((b"{", b"[")):
        return False
    try:
        with open_log(path, lambda _offset, _length, _reason: None) as stream:
            return pattern.search(stream.read(_MAX_SEARCHED)) is not None
    except OSError:
        return False


def damage_reporter(count: FileCount) -> Report:
    """Return a callback that adds damage to the count of a file."""

    def add_damage(offset: int, length: int, reason: str) -> None:
        if len(count.damaged) < _MAX_RANGES:
            count.damaged.append((offset, length, reason))
        elif len(count.damaged) == _MAX_RANGES:  # a hostile file may be damaged at every other byte
            # Offsets in a compressed log count unpacked bytes, so they may exceed the size of the file.
            count.damaged.append((offset, max(0, count.bytes - offset), "more damage follows; not listed"))
        if reason == ZSTD_REMEDY:
            count.notes.append(reason)

    return add_damage


LISTS = (
    "messages", "contents", "conversation", "traj", "simulations", "trajectory", "history", "steps", "samples", "events",
    "data", "resourceSpans", "resourceLogs", "",
)  # fmt: skip
"""Names of the lists of records in the documents of all formats, for reading the beginning of an incomplete document.

They include the `lists` of all importers.
"""


class Tables(Protocol):
    """The tables of a database, as of its opening."""

    columns: Mapping[str, Sequence[str]]
    """Table -> names of its columns."""

    def rows(
        self, table: str, columns: Sequence[str], order: Sequence[str] = (), where: Mapping[str, object] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table with those of the columns that it has, and nothing if the table does not exist.

        Raises:
            Damaged: reading the database fails.
        """
        ...


OpenTables = Callable[[Path], AbstractContextManager[Tables]]
"""Opens a database for reading. Writes nothing, not even side files. Raises `Damaged` or `OSError`."""

SQLITE_MAGIC = b"SQLite format 3\0"
_SIDE_FILE = "-wal"


@dataclass(frozen=True, kw_only=True)
class TableImporter(FormatDescription):
    """An importer by description, for SQLite databases.

    Attributes:
        open_tables: opens a database.
        proves: returns whether only databases of this format have tables with these columns.
        reader: adds the rows of the tables to a log, and yields whenever records may be taken.
    """

    open_tables: OpenTables
    proves: Callable[[Mapping[str, Sequence[str]]], bool]
    reader: Callable[[Log, Tables], Iterator[None]]

    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether a file is a database with the tables of this format."""
        if not head.startswith(SQLITE_MAGIC):
            return False
        try:
            with self.open_tables(path) as tables:
                return self.proves(tables.columns)
        # It may be locked by the program that writes it, or no database. Another importer may know it.
        except (Damaged, OSError):
            return False

    def companions(self, path: Path) -> Sequence[Path]:
        """Return the write-ahead log of a database, which holds the latest changes, if it exists."""
        # Without it, the last minutes of a running program would be missing.
        wal = path.with_name(f"{path.name}{_SIDE_FILE}")
        return [wal] if wal.is_file() else []

    def groups(self, paths: Iterable[Path]) -> list[list[Path]]:
        """Group each database with its write-ahead log."""
        return [[path, *self.companions(path)] for path in sorted(set(paths)) if not path.name.endswith(_SIDE_FILE)]

    def read(self, group: Sequence[Path], counts: list[FileCount]) -> Iterator[Record]:
        """Yield the records of all sessions in a database.

        Raises:
            OSError: the file can't be read.
        """
        # Open only the database, because SQLite reads the write-ahead log by itself.
        counts += [FileCount(path, bytes=path.stat().st_size) for path in group]
        if not group:
            return
        log = Log(self.name, group[0], counts[-len(group)])
        try:
            with self.open_tables(group[0]) as tables:
                for _ in self.reader(log, tables):
                    yield from log.take()
        except Damaged as error:
            # SQLite does not report where a database is damaged, so the range is the whole file.
            log.count.damaged.append((0, log.count.bytes, error.message))
        yield from log.take(final=True)
