"""Measure content while it streams by: its hash, its size, what it is written in, and its tokens by the estimate."""

from __future__ import annotations

import codecs
import hashlib
import json
from dataclasses import dataclass

from ctxmgr.assemble.counting import ESTIMATE, Estimate
from ctxmgr.assemble.kinds import kind_of, known_kind

BINARY = "binary"
"""The type of content that is no text."""

_HEAD, _TAIL = 100_000, 4_096  # characters that the kind is told by
MASKED_AT_MOST = 16 * 2**20
"""Texts larger than this, in bytes, are not searched for secrets."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What content is; ``size`` in bytes, ``tokens`` by ``counter``.

    ``secret`` says whether it holds what looks like a secret.
    """

    hash: str
    size: int
    type: str
    tokens: int
    secret: bool
    counter: str = ESTIMATE.name


class Measure:
    """Takes content piece by piece; its memory does not grow with it beyond 16 MB.

    Args:
        name: of the artifact.
        kind: the type that was named for it, if one was.
        usual: the type that it had before; kept while text stays text.
    """

    def __init__(self, name: str, kind: str | None = None, usual: str | None = None) -> None:
        self._name, self._kind, self._usual = name, kind, usual
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

    def done(self) -> Measured:
        """Return what the whole is."""
        if self._decoder is not None:
            try:
                self._text(self._decoder.decode(b"", final=True))
            except UnicodeDecodeError:
                self._give_up()
        text = self._decoder is not None
        kind = self._kind or (self._text_kind() if text else BINARY)
        tokens = Estimate.of_size(self._chars if text else self._size, known_kind(kind))
        return Measured(self.digest, self._size, kind, tokens, self._secret())

    def _text_kind(self) -> str:
        if self._usual not in (None, BINARY):
            return str(self._usual)
        return kind_of(self._name, self._head if self._chars <= _HEAD else self._head + self._tail)

    def _secret(self) -> bool:
        if not self._kept:
            return False
        from ctxmgr.masking import mask

        line = json.dumps(b"".join(self._kept).decode("utf-8")).encode("ascii")
        return mask(line) != line
