"""The seam of an importer: recognise a file, find files on a machine, read one session's files.

Importers are pure: they read the files they are given and touch no store and no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ctxmgr.log.codec import Record
from ctxmgr.types.import_report import FileCount

HEAD_SIZE = 64 * 1024
"""Bytes of a file by which its format is recognised. One line of Codex's alone may have 22 KB of instructions."""


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
    def shown(self) -> str:
        """The place as shown to people: ``~/.pi/agent/sessions/*/*.jsonl``."""
        return f"~/{self.folder}/{self.pattern}"


def found_at(places: Iterable[Place], home: Path, environment: Mapping[str, str]) -> Iterator[Path]:
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
        """Whether a file with this path and these first bytes (up to `HEAD_SIZE`) is of this format; content decides."""
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
