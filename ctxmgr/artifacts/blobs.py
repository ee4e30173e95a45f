"""Store bytes under their hash with their size, content kind and token estimate, and verify them on every read."""

from __future__ import annotations

import codecs
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from ctxmgr.artifacts.folder import Folder, folder_error, open_file, open_folder
from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.errors import InvalidInput, StorageFailed
from ctxmgr.store.repositories.shared_state import ArtifactRow
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.text.tokens import ESTIMATE, Estimate, content_kind, known_kind

PIECE = 1 << 20
DRAFT = ".tmp-"
"""Prefix of files that have not become objects yet."""
# Read and write: what was written is read back before it becomes an object. O_EXCL and O_NOFOLLOW: nobody can plant a link.
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Source(Protocol):
    """Where content comes from, once; with a size, again and again."""

    @property
    def size(self) -> int | None:
        """Its present length in bytes; None where nobody knows."""
        ...

    def pieces(self) -> Iterator[bytes]:
        """Yield the content in pieces of at most a megabyte.

        Raises:
            CtxmgrError: it can't be read, or changes while it is read.
        """
        ...


class BlobStore(Protocol):
    """Where a writer of artifacts keeps contents by their hash: `Objects`, or `ctxmgr.artifacts.server_blobs.ServerBlobs`.

    Attributes:
        replaced: whether what shows the contents has to be made anew, for bytes were brought back.
    """

    replaced: bool

    def take(self, measure: Callable[[], Measure], source: Source, known: ArtifactRow | None = None) -> ContentMetadata:
        """Take what a source yields, and return its metadata; known content is kept once.

        Args:
            measure: makes what measures it.
            source: where it comes from.
            known: the artifact that it takes the place of.

        Raises:
            CtxmgrError: the source's own error, or the content could not be written; nothing of it stays.
        """
        ...

    def settle(self) -> None:
        """Make durable what was taken, before it is listed."""
        ...

    def confirm(self, rows: Iterable[ArtifactRow]) -> None:
        """Make sure that the contents of these artifacts are there, inside the transaction that lists them.

        Raises:
            Busy: they are not.
        """
        ...

    def remove(self, digests: Iterable[str]) -> None:
        """Remove these contents, which no version shows any more."""
        ...

    def remove_all_but(self, kept: set[str]) -> None:
        """Remove every content that is not among these, which the versions show."""
        ...


class Objects:
    """The content-addressed objects of an artifacts folder: ``objects/ab/cdef…`` by SHA-256.

    Args:
        folder: open; whoever writes holds its lock.
        each: sync every object by itself; without it the caller syncs once, after all of them (`settle`).

    Attributes:
        replaced: whether bytes that had been changed, or lost, behind the store's back were brought back.
    """

    def __init__(self, folder: Folder, *, each: bool = True) -> None:
        self._folder = folder
        self._each = each
        self.replaced = False

    def take(self, measure: Callable[[], Measure], source: Source, known: ArtifactRow | None = None) -> ContentMetadata:
        """Store what a source yields, verified, and return its metadata; see `BlobStore`."""
        # Of equal size it is most likely unchanged: hash it first, without a copy. The source is read again if it is not. A
        # stream has no size, for it can be read only once.
        if known is not None and source.size == known.size:
            measured = measure()
            for piece in source.pieces():
                measured.add(piece)
            if measured.digest == known.hash:
                if self.is_sound(known.hash):
                    return measured.done()
                self.replaced = True
        return self._store(measure(), source)

    def _store(self, measure: Measure, source: Source) -> ContentMetadata:
        try:
            objects = self._folder.objects(create=True)
            draft = DRAFT + os.urandom(8).hex()
            descriptor = os.open(draft, _NEW, 0o600, dir_fd=objects)
        except OSError as error:
            raise folder_error(self._folder.path, error) from None
        try:
            measured = self._write(descriptor, measure, source)
            self._place(objects, draft, measured.hash)
        except OSError as error:
            self._discard(draft)
            raise folder_error(self._folder.path, error) from None
        except BaseException:
            self._discard(draft)
            raise
        finally:
            os.close(descriptor)
        return measured

    def _write(self, descriptor: int, measure: Measure, source: Source) -> ContentMetadata:
        for piece in source.pieces():
            measure.add(piece)
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        # Read-only, since version folders hard-link it: an editor that writes in place there would change every version.
        os.fchmod(descriptor, 0o400)
        if self._each:
            os.fsync(descriptor)
        # The measure may refuse the content (secrets), so nothing has been placed yet at this point.
        measured = measure.done()
        if hash_file(descriptor) != measured.hash:
            raise StorageFailed(
                f"{self._folder.path}: what was written reads back otherwise", "check the disk; nothing was half stored"
            )
        return measured

    def _place(self, objects: int, draft: str, digest: str) -> None:
        shard = self._folder.shard(digest, create=True)
        # Known and whole: the file that version folders link stays where it is.
        if self.is_sound(digest):
            os.unlink(draft, dir_fd=objects)
            return
        # There, but unsound: version folders that link the old bytes must be laid out again.
        self.replaced = self.replaced or self._exists(digest)
        # A crash before this leaves a draft, which the next writer removes; after it, an object that no version lists.
        os.rename(draft, digest[2:], src_dir_fd=objects, dst_dir_fd=shard)
        if self._each:
            os.fsync(shard)

    def _exists(self, digest: str) -> bool:
        try:
            os.stat(digest[2:], dir_fd=self._folder.shard(digest), follow_symlinks=False)
        except OSError:
            return False
        return True

    def _discard(self, draft: str) -> None:
        try:
            os.unlink(draft, dir_fd=self._folder.objects())
        except OSError:
            return  # the next writer removes it

    def settle(self) -> None:
        """Make durable what was taken without a sync of its own."""
        if not self._each:
            # One sync of everything costs less than many of single files; see `ctxmgr.artifacts.put._BATCH`.
            os.sync()

    def confirm(self, rows: Iterable[ArtifactRow]) -> None:
        """Do nothing: who holds the folder's lock is the only one that removes objects."""

    def is_sound(self, digest: str) -> bool:
        """Whether the object is there with the bytes that its name promises."""
        try:
            return has_hash_closing(self.open(digest), digest)
        except OSError:
            return False

    def open(self, digest: str) -> int:
        """Return the descriptor of an object, unverified.

        Raises:
            OSError: what the system answered.
        """
        return open_file(self._folder.shard(digest), digest[2:])

    def remove(self, digests: Iterable[str]) -> None:
        """Remove these objects; that some are gone already is no fault.

        Raises:
            CtxmgrError: the system refused.
        """
        for digest in digests:
            try:
                os.unlink(digest[2:], dir_fd=self._folder.shard(digest))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise folder_error(self._folder.path, error) from None

    def remove_drafts(self) -> None:
        """Remove the drafts of a writer that was interrupted; the caller holds the lock.

        Raises:
            CtxmgrError: the system refused.
        """
        try:
            objects = self._folder.objects()
            for name in os.listdir(objects):
                if name.startswith(DRAFT):
                    os.unlink(name, dir_fd=objects)
        except FileNotFoundError:
            return
        except OSError as error:
            raise folder_error(self._folder.path, error) from None

    def remove_all_but(self, kept: set[str]) -> None:
        """Remove every object that is not among these.

        Raises:
            CtxmgrError: the system refused.
        """
        try:
            objects = self._folder.objects()
            for name in os.listdir(objects):
                if len(name) == 2:
                    shard = open_folder(objects, name)
                    try:
                        # Only names that have the form of an object (2 + 62 hex digits): what somebody else put here is not
                        # ours to remove.
                        surplus = [rest for rest in os.listdir(shard) if len(rest) == 62 and name + rest not in kept]
                    finally:
                        os.close(shard)
                    self.remove(name + rest for rest in surplus)
        except FileNotFoundError:
            return
        except OSError as error:
            raise folder_error(self._folder.path, error) from None


def has_hash_closing(descriptor: int, digest: str) -> bool:
    """Close a file, and return whether its bytes have this hash.

    Raises:
        OSError: they can't be read.
    """
    try:
        return hash_file(descriptor) == digest
    finally:
        os.close(descriptor)


def hash_file(descriptor: int) -> str:
    """Return the hash of a whole file."""
    from hashlib import sha256

    digest, place = sha256(), 0
    while piece := os.pread(descriptor, PIECE, place):
        digest.update(piece)
        place += len(piece)
    return digest.hexdigest()


BINARY = "binary"
"""The type of content that is not UTF-8 text."""

_MAX_NAMED = 5
_ESCAPED = lazy_pattern(rb"\\(.)")  # finds the line breaks of the text in its JSON form
_HEAD, _TAIL = 100_000, 4_096  # characters from which the content kind is detected
MASKED_AT_MOST = 16 * 2**20
"""Largest text, in bytes, that is searched for secrets; it is kept in memory until then."""


@dataclass(frozen=True, slots=True)
class ContentMetadata:
    """Metadata of one content; ``size`` in bytes, ``tokens`` by ``counter``.

    ``secrets`` holds the kind and the line (from 1) of everything that looks like a secret, e.g. ``github in line 3``.
    """

    hash: str
    size: int
    type: str
    tokens: int
    secrets: tuple[str, ...]
    counter: str = ESTIMATE.name


class Measure:
    """Measures content piece by piece, with at most `MASKED_AT_MOST` bytes in memory.

    Args:
        name: of the artifact.
        kind: the type that the caller named, if any.
        previous: the type that it had before; kept while text stays text.
        reject: whether content that holds what looks like a secret is refused.
    """

    def __init__(self, name: str, kind: str | None = None, previous: str | None = None, *, reject: bool = False) -> None:
        from hashlib import sha256

        self._name, self._kind, self._previous, self._reject = name, kind, previous, reject
        self._hash = sha256()
        self._size = self._chars = 0
        self._decoder: codecs.IncrementalDecoder | None = codecs.getincrementaldecoder("utf-8")()
        self._head = self._tail = ""
        self._kept: list[bytes] = []

    def add(self, piece: bytes) -> None:
        """Take the next piece."""
        self._hash.update(piece)
        self._size += len(piece)
        if self._decoder is None:
            return
        # A NUL is valid UTF-8, but no text that people or agents write; git takes it for binary too.
        if b"\0" in piece:
            self._treat_as_binary()
            return
        if self._size <= MASKED_AT_MOST:
            self._kept.append(piece)
        else:
            self._kept.clear()
        try:
            self._add_text(self._decoder.decode(piece))
        except UnicodeDecodeError:
            self._treat_as_binary()

    def _add_text(self, text: str) -> None:
        self._chars += len(text)
        if len(self._head) < _HEAD:
            self._head += text[: _HEAD - len(self._head)]
        self._tail = (self._tail + text)[-_TAIL:]

    def _treat_as_binary(self) -> None:
        self._decoder = None
        self._kept.clear()

    @property
    def digest(self) -> str:
        """The hash of what was taken so far."""
        return self._hash.hexdigest()

    def done(self) -> ContentMetadata:
        """Return the metadata of all that was added.

        Raises:
            InvalidInput: it holds what looks like a secret, or is too large to be searched for one, and that is refused.
        """
        if self._decoder is not None:
            try:
                # Content that ends in the middle of a character is binary.
                self._add_text(self._decoder.decode(b"", final=True))
            except UnicodeDecodeError:
                self._treat_as_binary()
        text = self._decoder is not None
        kind = self._kind or (self._text_kind() if text else BINARY)
        tokens = Estimate.of_size(self._chars if text else self._size, known_kind(kind))
        found = self._secrets()
        if self._reject and (found or (text and self._size > MASKED_AT_MOST)):
            self._refuse(found)
        return ContentMetadata(self.digest, self._size, kind, tokens, found)

    def _text_kind(self) -> str:
        if self._previous not in (None, BINARY):
            return str(self._previous)
        return content_kind(self._name, self._head if self._chars <= _HEAD else self._head + self._tail)

    def _refuse(self, found: tuple[str, ...]) -> None:
        if not found:
            raise InvalidInput(
                f"{self._name} is larger than {MASKED_AT_MOST:,} bytes and can't be searched for secrets; nothing was stored",
                "split it, or leave out --reject-secrets",
            )
        raise InvalidInput(
            f"{self._name} holds what looks like a secret ({list_secrets(found)}); nothing was stored",
            "take it out of the file, or leave out --reject-secrets",
        )

    def _secrets(self) -> tuple[str, ...]:
        if not self._kept:
            return ()
        import json

        from ctxmgr.log.masking import secret_spans

        # The masking of log lines works on encoded JSON, so the text is searched in that form, and lines are counted in it.
        line = json.dumps(b"".join(self._kept).decode("utf-8")).encode("ascii")
        spans = secret_spans(line)
        if not spans:
            return ()
        ends = [found.start() for found in _ESCAPED.finditer(line) if found[1] == b"n"]
        return tuple(dict.fromkeys(f"{kind} in line {bisect_left(ends, start) + 1}" for start, _, kind in spans))


def list_secrets(found: tuple[str, ...]) -> str:
    """Return the first five findings as text, and how many more there are."""
    more = len(found) - _MAX_NAMED
    return ", ".join(found[:_MAX_NAMED]) + (f", {more} more" if more > 0 else "")
