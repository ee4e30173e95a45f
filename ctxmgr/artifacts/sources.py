"""Where the content of a new artifact comes from: a file that must hold still, a stream, or text at hand."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

from ctxmgr.artifacts.objects import PIECE
from ctxmgr.errors import InvalidInput, NotFound, StorageFailed


class FileSource:
    """A regular file, read once from its start; it may be reached through links, which are its owner's business.

    Raises:
        NotFound, InvalidInput, StorageFailed: nothing is there, it is no regular file, or it can't be opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        if not path or "\0" in path:
            raise InvalidInput(f"{path!r} can't name a file", "give the path of the artifact's content, or - for stdin")
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound(f"no file at {path}", "give the path of the artifact's content, or - for stdin") from None
        except OSError as error:
            raise _unreadable(path, error) from None
        mode = os.fstat(self._descriptor).st_mode
        if not stat.S_ISREG(mode):
            self.close()
            what = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
            raise InvalidInput(f"{path} is {what}", "name files one by one; a pipe is read from stdin, given as -")

    @property
    def size(self) -> int:
        """Its length in bytes at the moment."""
        return os.fstat(self._descriptor).st_size

    def pieces(self) -> Iterator[bytes]:
        """Yield the content.

        Raises:
            StorageFailed: it can't be read, or it changed meanwhile.
        """
        try:
            before = _state(self._descriptor)
            place = 0
            while piece := os.pread(self._descriptor, PIECE, place):
                place += len(piece)
                yield piece
            if _state(self._descriptor) != before or place != before[0]:
                raise StorageFailed(f"{self.path} changed while it was read", "try again when nothing writes to it")
        except OSError as error:
            raise _unreadable(self.path, error) from None

    def close(self) -> None:
        """Release the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class StreamSource:
    """A stream that is read to its end."""

    size: int | None = None

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def pieces(self) -> Iterator[bytes]:
        """Yield the content.

        Raises:
            StorageFailed: it can't be read.
        """
        try:
            while piece := self._stream.read(PIECE):
                yield piece
        except OSError as error:
            raise _unreadable("stdin", error) from None

    def close(self) -> None:
        """Leave the stream to whoever gave it."""


class TextSource:
    """Text at hand, kept as UTF-8."""

    def __init__(self, text: str) -> None:
        try:
            self._bytes = text.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidInput("the content holds half a character", "give whole characters, or the bytes as a file") from None
        self.size: int | None = len(self._bytes)

    def pieces(self) -> Iterator[bytes]:
        """Yield the content."""
        for start in range(0, len(self._bytes), PIECE):
            yield self._bytes[start : start + PIECE]

    def close(self) -> None:
        """Nothing is held."""


AnySource = FileSource | StreamSource | TextSource


def _state(descriptor: int) -> tuple[int, int, int]:
    found = os.fstat(descriptor)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _unreadable(path: str, error: OSError) -> StorageFailed:
    return StorageFailed(f"{path} can't be read: {error.strerror}", "check it, and its permissions; nothing was stored")
