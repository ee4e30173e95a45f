"""The seam of an importer, and importers by description: of logs that are JSON, and of SQLite databases.

A description is all that a format adds. Importers are pure: they read the files they are given and touch no store and no clock.
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
    """Where an agent keeps its logs.

    Attributes:
        folder: below the user's home folder.
        pattern: of the logs below it, as for `Path.glob`.
        variable: environment variable that may name another folder, "" if there is none.
        below: the folder of the logs inside the one that the variable names.
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
        """The place as shown to people: ``~/.pi/agent/sessions/*/*.jsonl``."""
        return f"~/{self.folder}/{self.pattern}"


def find_files(places: Iterable[Place], home: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files at these places, each once."""
    seen: set[Path] = set()
    for place in places:
        for path in sorted(place.root(home, environment).glob(place.pattern), key=str):  # a log comes before its folder
            if path not in seen:
                seen.add(path)
                yield path


@dataclass(frozen=True)
class Coverage:
    """The facts that a format's logs hold and its importer yields.

    Attributes:
        calls, results: whether there are tool calls, and results.
        errors: whether failed calls are marked.
        open_calls: whether a call without a result can be seen.
        usage: whether there are tokens of each response.
        sub_agents: whether the work of agents that the agent started is told apart.
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

    Rules that hold for every importer (each is a fault of some published tool):

    * order by place in the file, never by timestamp inside one file;
    * a tool call is an ``entry`` record, its result a separate ``result`` record, a call without result stays open;
    * messages, thoughts, compactions, interrupts are ``event`` records; harness text never becomes a ``user_message``;
    * usage is an ``event`` of type ``usage``, one for each API response;
    * ids are the source's own, so that importing twice yields the same records, byte for byte;
    * unknown record types are counted, never fatal; damage is counted with its byte range, never silent.
    """

    @property
    def name(self) -> str:
        """The name for ``ctxmgr import --from NAME``."""
        ...

    @property
    def title(self) -> str:
        """The name that people use."""
        ...

    @property
    def coverage(self) -> Coverage:
        """The facts that its logs hold."""
        ...

    @property
    def places(self) -> Sequence[Place]:
        """The places where the agent keeps its logs."""
        ...

    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether a file with this path and these first bytes (up to 64 KiB) is of this format; content decides."""
        ...

    def discover(self, home: Path, environment: Mapping[str, str]) -> Iterator[Path]:
        """Yield the log files that the agent keeps under the user's home folder (or where the environment says)."""
        ...

    def companions(self, path: Path) -> Sequence[Path]:
        """Return the files that belong to the session in ``path`` (its sub-agents' logs), existing ones only."""
        ...

    def groups(self, paths: Iterable[Path]) -> list[list[Path]]:
        """Group files by session, a session's main log first, originals before their forks."""
        ...

    def read(self, group: Sequence[Path], counts: list[FileCount]) -> Iterator[Record]:
        """Yield the records of one session; append one `FileCount` for each file to ``counts``, filled when exhausted.

        Raises:
            OSError: when a file can't be read.
        """
        ...


_MAX_ID = 200
_MIN_FULL_HEAD = 60_000
"""Bytes of a head from which on the file is longer than the head (64 KiB)."""
_MAX_RANGES = 1_000
"""Damaged ranges of one file that are listed."""
_MAX_SEARCHED = 16 << 20
"""Bytes of a long document that are searched for what proves its format."""
# OpenHands names the folder of a conversation by a UUID without hyphens. 32 digits within a longer hash are none.
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])", re.IGNORECASE)


@dataclass(slots=True)
class Log:
    """The files of one group while they are read, and the sessions in them.

    Attributes:
        name: of the format.
        path, count: of the present file; group: all files of the session.
        line: what is being read; cursor: the same as a place, behind the file's name where it is not the first file.
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
        """What is being read, as ids have it."""
        return self.cursor.place

    def turn_to(self, path: Path, count: FileCount) -> None:
        """Go on to a file."""
        # Lines of the first file have bare numbers, so that a session which gets a second file later keeps its ids.
        self._prefix = "" if self._prefix is None else f"{path.stem}:"
        self.path, self.count = path, count
        for transcript in self.transcripts.values():
            transcript.count = count

    def go_to(self, number: int) -> None:
        """Go on to a line."""
        self.count.records += 1
        self.line = number
        self.cursor.move(f"{self._prefix}{number}" if self._prefix else number)

    def session(self, session: object = None, *, agent: str = "main", part: str = "", parent: str | None = None) -> Transcript:
        """Return the transcript of a session, or of an agent's part of it; a new one where there is none yet.

        Args:
            session: its id; what is none stands for that which the file's name tells.
            agent: the agent's name.
            part: what the ids of this agent's part begin with, where the session has several.
            parent: the entry by which another agent started this one.
        """
        key = name, _ = self._session_key(session, part)
        if key not in self.transcripts:
            self.transcripts[key] = self._unsettled[key] = Transcript(
                name, self.count, self.name, agent, parent, part=part, cursor=self.cursor, counter=self.counter
            )
        return self.transcripts[key]

    def has_part(self, session: object, part: str) -> bool:
        """Whether there is a transcript of this part of a session."""
        return self._session_key(session, part) in self.transcripts

    def _session_key(self, session: object, part: str) -> tuple[str, str]:
        name = (text(session) or session_name(self.path))[:_MAX_ID]
        return name, part or name

    def sub_agent(self, main: Transcript, own: str, name: str, call: object) -> Transcript:
        """Return the part of an agent that another one started.

        Args:
            main: the part of the one that did.
            own: id of the agent, or of its work.
            name: the agent's name.
            call: the id of the call that started it, as far as that is known.
        """
        # An empty parent still marks the part as a sub-agent's, whose call is not known.
        made = main.calls.get(text(call) or "")
        return self.session(main.session, agent=name, part=f"{main.part}:{own}", parent=made.entry if made else "")

    def add(self, transcript: Transcript) -> None:
        """Take in a transcript of the format's own kind."""
        transcript.cursor = self.cursor
        key = transcript.session, transcript.part
        self.transcripts[key] = self._unsettled[key] = transcript

    def drop(self, key: tuple[str, str]) -> Transcript:
        """Forget a transcript whose records were taken, and return it."""
        dropped = self.transcripts.pop(key)
        self._unsettled.pop(key, None)
        self.cursor.changed.pop(id(dropped), None)
        return dropped

    def close(self) -> None:
        """Let go of the sessions so far, which are complete: a log may hold thousands."""
        self._finished += self.transcripts.values()
        for forgotten in (self.transcripts, self._unsettled, self.cursor.changed):
            forgotten.clear()

    def unknown(self, name: object) -> None:
        """Count a record type that is not known."""
        self.count.unknown[(text(name) or "(no type)")[:100]] += 1

    def take(self, *, final: bool = False, live: bool = False) -> list[Record]:
        """Return the records added since last time; of a running program (``live``) all, though a title is not known yet."""
        if final:
            self.close()
        # The usual log: asked after every line, so the lists and the sort below are left out.
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
        # A session's record comes first and holds its title, so all its parts wait until that is known.
        waiting = {part.session for part in self._unsettled.values() if not (live or part.is_ready())}
        # A run may start hundreds of agents: the others have nothing new, and each line would ask all of them.
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
    """Return a session's id for a log that states none: the UUID in its path, else its name and what it begins with."""
    # Copilot CLI calls every log ``events.jsonl``; only the folder around it tells the session.
    for name in (plain_name(path), path.parent.name):
        if found := _UUID.search(name):
            return found[0].lower()
    stem = plain_name(path).split(".")[0] or path.name
    # The folder too: some clients give the logs of all sessions one name, in a folder each.
    mark = sha256(f"{path.parent.name}/{plain_name(path)}\0{content!r}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"{stem[:80]}-{mark[:8]}"


class ObjectReader(Protocol):
    """Takes the objects of a log, or of one file of it."""

    def read(self, value: dict[str, Any]) -> object:
        """Take the next object: of JSON lines each line, else the document."""
        ...


class Reader(ObjectReader, Protocol):
    """Reads one log; a class of this kind is what a format's description names."""

    def __init__(self, log: Log) -> None:
        """Begin a log."""
        ...


@runtime_checkable
class FileReader(Protocol):
    """Reads a log whose files each begin and end by themselves."""

    def __init__(self, log: Log) -> None:
        """Begin a log."""
        ...

    def begin(self) -> ObjectReader:
        """Return what reads the file that the log has turned to."""
        ...

    def end(self) -> None:
        """Add what the end of the file decides."""
        ...


@runtime_checkable
class FinishingReader(Protocol):
    """A reader that holds back what only the end of a log decides."""

    def finish(self) -> None:
        """Add what was held back."""
        ...


@dataclass(frozen=True, kw_only=True)
class FormatDescription:
    """What a description says of a format and of the files that hold it; see `Importer` for what it promises.

    Attributes:
        related: the files that belong to the session in a file, the file itself among them; the main log first.
        is_log: which of the files at its places are logs.
        grouped: puts files into groups, of a format whose sessions go on from one another.
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
        # Without `is_log` these are all: by None `filter` keeps what is true, as every path is.
        return filter(self.is_log, find_files(self.places, home, environment))

    def companions(self, path: Path) -> Sequence[Path]:
        """Return the other files of the session in a file."""
        return [other for other in self.related(path) if other != path] if self.related else ()

    def groups(self, paths: Iterable[Path]) -> list[list[Path]]:
        """Put the files of each session into one group."""
        if self.grouped is not None:
            return self.grouped(paths)
        groups: dict[Path, list[Path]] = {}
        placed: set[Path] = set()
        # In a fixed order, so that whichever file of a group is named first makes the same group.
        for path in sorted(set(paths)):
            if path in placed:
                continue
            files = list(self.related(path)) if self.related else [path]
            placed.update(files)
            groups.setdefault(files[0] if files else path, files or [path])
        return list(groups.values())


@dataclass(frozen=True, kw_only=True)
class JsonImporter(FormatDescription):
    """An importer by description, of JSON lines and documents.

    Attributes:
        reader: reads a log of it.
        proves: whether one object can stand only in a log of this format.
        lists: members of a document that hold its records, read even where the document is damaged.
        marked: whether the first bytes of a file that is no JSON itself prove the format.
        values: yields the objects of a file.
        further_on: what proves it where a long document begins with other things; it is looked for after all else.
        recognises: judges a file's path and first bytes, of a format that single objects do not prove.
    """

    reader: type[Reader] | type[FileReader]
    proves: Callable[[dict[str, Any]], bool] | None = None
    lists: tuple[str, ...] = ()
    marked: Callable[[bytes], bool] | None = None
    values: Callable[[Path, Sequence[str], Report], Iterator[Line]] = read_values
    further_on: re.Pattern[bytes] | None = None
    recognises: Callable[[Path, bytes], bool] | None = None

    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether the beginning of a file proves that it is of this format."""
        if self.recognises is not None:
            return self.recognises(path, head)
        if self.marked is not None and self.marked(head):
            return True
        # Not `self.lists`: asked with the same arguments, all importers share one parse of a head, which `head_values` keeps.
        if self.proves is not None and any(map(self.proves, head_values(head, LISTS))):
            return True
        return self.further_on is not None and _holds_later(path, head, self.further_on)

    def read(self, group: Sequence[Path], counts: list[FileCount]) -> Iterator[Record]:
        """Yield the records of one session's files.

        Raises:
            OSError: when a file can't be read.
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
                # After each line: a log of gigabytes is never held in memory.
                if records := take():
                    yield from records
            if isinstance(reader, FileReader):
                reader.end()
        if isinstance(reader, FinishingReader):
            reader.finish()
        if log is not None:
            yield from log.take(final=True)


def _holds_later(path: Path, head: bytes, pattern: re.Pattern[bytes]) -> bool:
    """Whether a document whose beginning is all that is known holds this in its first megabytes."""
    if len(head) < _MIN_FULL_HEAD or not head.startswith((b"{", b"[")):
        return False
    try:
        with open_log(path, lambda _offset, _length, _reason: None) as stream:
            return pattern.search(stream.read(_MAX_SEARCHED)) is not None
    except OSError:
        return False


def damage_reporter(count: FileCount) -> Report:
    """Return a callback that notes the damage of a file in its count."""

    def add_damage(offset: int, length: int, reason: str) -> None:
        if len(count.damaged) < _MAX_RANGES:
            count.damaged.append((offset, length, reason))
        elif len(count.damaged) == _MAX_RANGES:  # a hostile file may hold damage at every other byte
            # Offsets in a compressed log count what was unpacked, so they may lie behind the end of the file.
            count.damaged.append((offset, max(0, count.bytes - offset), "more damage follows; not listed"))
        if reason == ZSTD_REMEDY:
            count.notes.append(reason)

    return add_damage


LISTS = (
    "messages", "contents", "conversation", "traj", "simulations", "trajectory", "history", "steps", "samples", "events",
    "data", "resourceSpans", "resourceLogs", "",
)  # fmt: skip
"""Members that hold the records of some format's documents, for reading the beginning of one that is not all there.

All that any importer names as its `lists` are among them.
"""


class Tables(Protocol):
    """The tables of a database, as they were when it was opened."""

    columns: Mapping[str, Sequence[str]]
    """The names of the columns of each table."""

    def rows(
        self, table: str, columns: Sequence[str], order: Sequence[str] = (), where: Mapping[str, object] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table with those of the columns that it has; none where there is no such table.

        Raises:
            Damaged: the database can't be read on.
        """
        ...


OpenTables = Callable[[Path], AbstractContextManager[Tables]]
"""Opens a database for reading; nothing is written, not even beside it. Raises `Damaged` or `OSError`."""

SQLITE_MAGIC = b"SQLite format 3\0"
_SIDE_FILE = "-wal"


@dataclass(frozen=True, kw_only=True)
class TableImporter(FormatDescription):
    """An importer by description, of SQLite databases.

    Attributes:
        open_tables: opens a database.
        proves: whether tables with these columns can stand only in a database of this format.
        reader: adds the rows of the tables to a log; it yields whenever records may be taken.
    """

    open_tables: OpenTables
    proves: Callable[[Mapping[str, Sequence[str]]], bool]
    reader: Callable[[Log, Tables], Iterator[None]]

    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether a file is a database with this format's tables."""
        if not head.startswith(SQLITE_MAGIC):
            return False
        try:
            with self.open_tables(path) as tables:
                return self.proves(tables.columns)
        # Locked by the program that writes it, or no database at all: another importer, or none, may know it.
        except (Damaged, OSError):
            return False

    def companions(self, path: Path) -> Sequence[Path]:
        """Return the log beside a database that holds its latest changes, where there is one."""
        # Left unread, the last minutes of a running program would be missing.
        wal = path.with_name(f"{path.name}{_SIDE_FILE}")
        return [wal] if wal.is_file() else []

    def groups(self, paths: Iterable[Path]) -> list[list[Path]]:
        """Put each database and the log beside it into one group."""
        return [[path, *self.companions(path)] for path in sorted(set(paths)) if not path.name.endswith(_SIDE_FILE)]

    def read(self, group: Sequence[Path], counts: list[FileCount]) -> Iterator[Record]:
        """Yield the records of all sessions in a database.

        Raises:
            OSError: when the file can't be read.
        """
        # Of the group only the database is opened: SQLite reads the log beside it by itself.
        counts += [FileCount(path, bytes=path.stat().st_size) for path in group]
        if not group:
            return
        log = Log(self.name, group[0], counts[-len(group)])
        try:
            with self.open_tables(group[0]) as tables:
                for _ in self.reader(log, tables):
                    yield from log.take()
        except Damaged as error:
            # SQLite does not say where a database is damaged, so the range is the whole file.
            log.count.damaged.append((0, log.count.bytes, error.message))
        yield from log.take(final=True)
