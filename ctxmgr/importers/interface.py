"""The seam of an importer: recognise a file, find files on a machine, read one session's files.

Importers are pure: they read the files they are given and touch no store and no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from ctxmgr.log.codec import Record
from ctxmgr.types.importing import FileCount


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

    name: str
    """What ``ctxmgr import --from NAME`` calls it."""

    title: str
    """What people call it."""

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
