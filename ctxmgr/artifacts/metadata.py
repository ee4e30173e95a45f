"""Compute hash, size, content kind and token estimate while content streams by."""

from __future__ import annotations

import codecs
import hashlib
import json
from bisect import bisect_left

from ctxmgr.errors import InvalidInput
from ctxmgr.light_dataclass import dataclass
from ctxmgr.text.content_kind import kind_of, known_kind
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.text.tokens import ESTIMATE, Estimate

BINARY = "binary"
"""The type of content that is no text."""

_MOST_TOLD = 5
_ESCAPED = lazy_pattern(rb"\\(.)")
_HEAD, _TAIL = 100_000, 4_096  # characters that the kind is told by
MASKED_AT_MOST = 16 * 2**20
"""Texts larger than this, in bytes, are not searched for secrets."""


@dataclass(frozen=True, slots=True)
class ContentMetadata:
    """What content is; ``size`` in bytes, ``tokens`` by ``counter``.

    ``secrets`` are the kind and the line, from 1 on, of each piece that looks like a secret, as ``github in line 3``.
    """

    hash: str
    size: int
    type: str
    tokens: int
    secrets: tuple[str, ...]
    counter: str = ESTIMATE.name


class Measure:
    """Takes content piece by piece; its memory does not grow with it beyond 16 MB.

    Args:
        name: of the artifact.
        kind: the type that was named for it, if one was.
        usual: the type that it had before; kept while text stays text.
        reject: whether content that holds what looks like a secret is refused.
    """

    def __init__(self, name: str, kind: str | None = None, usual: str | None = None, *, reject: bool = False) -> None:
        self._name, self._kind, self._usual, self._reject = name, kind, usual, reject
        self._hash = hashlib.sha256()
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
        if b"\0" in piece:
            self._give_up()
            return
        if self._size <= MASKED_AT_MOST:
            self._kept.append(piece)
        else:
            self._kept.clear()
        try:
            self._text(self._decoder.decode(piece))
        except UnicodeDecodeError:
            self._give_up()

    def _text(self, text: str) -> None:
        self._chars += len(text)
        if len(self._head) < _HEAD:
            self._head += text[: _HEAD - len(self._head)]
        self._tail = (self._tail + text)[-_TAIL:]

    def _give_up(self) -> None:
        self._decoder = None
        self._kept.clear()

    @property
    def digest(self) -> str:
        """The hash of what was taken so far."""
        return self._hash.hexdigest()

    def done(self) -> ContentMetadata:
        """Return what the whole is.

        Raises:
            InvalidInput: it holds what looks like a secret, or is too large to be searched for one, and that is refused.
        """
        if self._decoder is not None:
            try:
                self._text(self._decoder.decode(b"", final=True))
            except UnicodeDecodeError:
                self._give_up()
        text = self._decoder is not None
        kind = self._kind or (self._text_kind() if text else BINARY)
        tokens = Estimate.of_size(self._chars if text else self._size, known_kind(kind))
        found = self._secrets()
        if self._reject and (found or (text and self._size > MASKED_AT_MOST)):
            self._refuse(found)
        return ContentMetadata(self.digest, self._size, kind, tokens, found)

    def _text_kind(self) -> str:
        if self._usual not in (None, BINARY):
            return str(self._usual)
        return kind_of(self._name, self._head if self._chars <= _HEAD else self._head + self._tail)

    def _refuse(self, found: tuple[str, ...]) -> None:
        if not found:
            raise InvalidInput(
                f"{self._name} is larger than {MASKED_AT_MOST:,} bytes and can't be searched for secrets; nothing was stored",
                "split it, or leave out --reject-secrets",
            )
        raise InvalidInput(
            f"{self._name} holds what looks like a secret ({told(found)}); nothing was stored",
            "take it out of the file, or leave out --reject-secrets",
        )

    def _secrets(self) -> tuple[str, ...]:
        if not self._kept:
            return ()
        from ctxmgr.log.masking import secret_spans

        line = json.dumps(b"".join(self._kept).decode("utf-8")).encode("ascii")
        spans = secret_spans(line)
        if not spans:
            return ()
        ends = [found.start() for found in _ESCAPED.finditer(line) if found[1] == b"n"]
        return tuple(dict.fromkeys(f"{kind} in line {bisect_left(ends, start) + 1}" for start, _, kind in spans))


def told(found: tuple[str, ...]) -> str:
    """Return the first of what looks like secrets, and how many more there are."""
    more = len(found) - _MOST_TOLD
    return ", ".join(found[:_MOST_TOLD]) + (f", {more} more" if more > 0 else "")
