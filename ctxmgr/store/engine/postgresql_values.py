"""How values are sent to a PostgreSQL server and read back: texts with NUL, and the binary form of arrays."""

from __future__ import annotations

import re
from functools import lru_cache
from struct import Struct, error, pack
from typing import TYPE_CHECKING, Any

from psycopg.types.string import StrBinaryDumper, StrDumperUnknown, TextLoader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# A text of PostgreSQL can't hold NUL. It is stored as two noncharacters, and the first of them as two others, so every text is
# read back unchanged and a prefix of a text stays a prefix.
_ESCAPE = "\ufdd0"
_SPELLINGS = {"\0": "\ufdd0\ufdd1", _ESCAPE: "\ufdd0\ufdd2"}
_MEANINGS = {spelling: letter for letter, spelling in _SPELLINGS.items()}


def _escape_text(text: str) -> str:
    if "\0" in text or _ESCAPE in text:
        return re.sub("[\0\ufdd0]", lambda found: _SPELLINGS[found.group()], text)
    return text


def server_text(text: str) -> bytes:
    """Return a text as the server stores and compares it."""
    return _escape_text(text).encode()


class TextDumper(StrDumperUnknown):
    """Sends a text of which the server finds out the type."""

    def dump(self, obj: str) -> Any:
        """Return the form in which the text is sent."""
        return super().dump(_escape_text(obj))


class BinaryTextDumper(StrBinaryDumper):
    """Sends a text in binary form."""

    def dump(self, obj: str) -> Any:
        """Return the form in which the text is sent."""
        return super().dump(_escape_text(obj))


class StoredTextLoader(TextLoader):
    """Reads a text."""

    def load(self, data: Any) -> Any:
        """Return the text as it was before it was sent."""
        text = str(super().load(data))
        if _ESCAPE in text:
            return re.sub("\ufdd0[\ufdd1\ufdd2]", lambda found: _MEANINGS[found.group()], text)
        return text


_NULL = b"\xff\xff\xff\xff"
_length = Struct("!i").pack


def _head(kind: int, size: int) -> bytes:
    return pack("!iiiii", 1, 1, kind, size, 1) if size else pack("!iii", 0, 0, kind)


def _texts(values: Sequence[str | bytes | None]) -> bytes:
    """Return the binary form of an array of texts. Values of type bytes are already in the server's form."""
    size = len(values)
    # The agent, the action or the status is often the same in the whole batch.
    if size > 1 and not isinstance(first := values[0], bytes) and values.count(first) == size:
        return _head(25, size) + _element(first) * size
    parts = [_head(25, size)]
    for each in values:
        if isinstance(each, bytes):
            parts += (_length(len(each)), each)
        else:
            parts.append(_element(each))
    return b"".join(parts)


@lru_cache(maxsize=1024)  # agents, actions and kinds recur
def _element(text: str | None) -> bytes:
    if text is None:
        return _NULL
    said = server_text(text)
    return _length(len(said)) + said


def _numbers(kind: int, code: str) -> Callable[[Sequence[float | None]], bytes]:
    one = Struct(f"!i{code}").pack

    @lru_cache(maxsize=64)  # batches are mostly of one size
    def pack_all(size: int) -> Callable[..., bytes]:
        return Struct("!" + f"i{code}" * size).pack

    def packed(values: Sequence[float | None]) -> bytes:
        size = len(values)
        mixed: list[Any] = [8] * (2 * size)
        mixed[1::2] = values
        try:
            return _head(kind, size) + pack_all(size)(*mixed)
        except error:  # None among them
            return _head(kind, size) + b"".join([_NULL if each is None else one(8, each) for each in values])

    return packed


_PACKED: dict[str, Callable[[Any], bytes]] = {
    "TEXT[]": _texts, "BIGINT[]": _numbers(20, "q"), "DOUBLE PRECISION[]": _numbers(701, "d"),
    "BIGINT": lambda number: str(number).encode(),
}  # fmt: skip


_EMPTY = {kind: b"0" if kind == "BIGINT" else packed(()) for kind, packed in _PACKED.items()}


def pack_values(kinds: Sequence[str], values: Sequence[Any]) -> list[bytes]:
    """Return values of these types in the form in which they are sent: arrays in binary form, numbers as text."""
    return [_PACKED[kind](each) if each else _EMPTY[kind] for kind, each in zip(kinds, values, strict=True)]
