"""Contents of artifacts on their way to a server: gathered in a file without a name here, and sent before they are listed."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from tempfile import TemporaryFile, gettempdir
from types import TracebackType
from typing import Self

from ctxmgr.artifacts.blobs import PIECE, ContentMetadata, Measure, Source
from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.errors import Busy, StorageFailed
from ctxmgr.log import codec
from ctxmgr.store.repositories.blobs import Blobs, split
from ctxmgr.store.repositories.shared_state import ArtifactRow

_TOGETHER = PIECE
"""Up to so many bytes are sent in the transaction that lists them; more would keep other writers of the store waiting."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A content that is to be sent: where it lies in the file, and the hash of each of its pieces."""

    start: int
    size: int
    sums: list[str]


class ServerBlobs:
    """What one writer of artifacts takes for a server; see `ctxmgr.artifacts.blobs.BlobStore`.

    Nothing is sent before all of it was read, measured and found to be no secret. Up to a megabyte is sent in the transaction
    that lists it, more of it before: what a crash leaves then is shown by no version, and the next prune removes it.
    """

    replaced = False

    def __init__(self, rows: Blobs, place: str) -> None:
        self._rows, self._place = rows, place
        self._waiting: dict[str, _Waiting] = {}
        with _on_this_machine():
            self._file = TemporaryFile()  # noqa: SIM115 - closed by `__exit__`

    def take(self, measure: Callable[[], Measure], source: Source, known: ArtifactRow | None = None) -> ContentMetadata:
        """Read and measure what a source yields, and remember to send it where the server does not have it."""
        measuring = measure()
        with _on_this_machine():
            start = self._file.seek(0, os.SEEK_END)
            for piece in source.pieces():
                measuring.add(piece)
                self._file.write(piece)
            self._file.flush()
        measured = measuring.done()
        with _on_this_machine():
            sums, whole = list[str](), sha256()
            for piece in self._pieces(start, measured.size):
                sums.append(codec.digest(piece))
                whole.update(piece)
        if whole.hexdigest() != measured.hash:
            raise StorageFailed(f"{gettempdir()}: what was written reads back otherwise", "check the disk; nothing was stored")
        if measured.hash not in self._waiting and self._rows.sums(measured.hash) != sums:
            self._waiting[measured.hash] = _Waiting(start, measured.size, sums)
            if known is not None and known.hash == measured.hash:
                self._send()  # it is listed already: its bytes were lost, or changed, behind the store's back
        return measured

    def _pieces(self, start: int, size: int) -> Iterator[bytes]:
        return split(os.pread(self._file.fileno(), min(PIECE, size - done), start + done) for done in range(0, size, PIECE))

    def settle(self) -> None:
        """Send what is too much for the transaction that lists it."""
        if sum(each.size for each in self._waiting.values()) > _TOGETHER:
            self._send()

    def confirm(self, rows: Iterable[ArtifactRow]) -> None:
        """Send the rest, and make sure that the contents of these artifacts are there."""
        self._send()
        wanted = {row.hash: row.size for row in rows}
        # A prune may have removed one that was known, if this writer lost its lock.
        if self._rows.sizes(wanted) != wanted:
            raise Busy("contents were removed by another process just now", "try again")

    def _send(self) -> None:
        for digest, each in self._waiting.items():
            self._rows.add(digest, self._pieces(each.start, each.size), each.sums)
            if self._rows.sums(digest) != each.sums:
                raise StorageFailed(
                    f"{self._place}: what was written reads back otherwise",
                    "tell whoever runs the server; nothing was half stored",
                )
        self._waiting.clear()

    def remove(self, digests: Iterable[str]) -> None:
        """Do nothing: `remove_all_but`, which follows, removes these too."""

    def remove_all_but(self, kept: set[str]) -> None:
        """Remove every content that no version shows; the server looks up which those are."""
        self._rows.remove_unnamed()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()


@contextmanager
def _on_this_machine() -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StorageFailed(
            f"{gettempdir()}: {error.strerror}", "free some space, or name another folder with TMPDIR; nothing was stored"
        ) from None
