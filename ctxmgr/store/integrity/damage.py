"""The damage that was found in a log."""

from __future__ import annotations


class DamagedRange:
    """Bytes of a log that hold no readable record, or break its chain of sums: offset, length, and why.

    Attributes:
        kind: ``unreadable``, ``altered``, ``inserted``, ``unsummed`` or ``cut``; see `ctxmgr.store.integrity.verification`.
    """

    __slots__ = ("kind", "length", "offset", "reason")

    def __init__(self, offset: int, length: int, reason: str, kind: str = "unreadable") -> None:
        self.offset = offset
        self.length = length
        self.reason = reason
        self.kind = kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DamagedRange) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return "DamagedRange({}, {}, {!r})".format(*self._values())

    def _values(self) -> tuple[int, int, str]:
        return self.offset, self.length, self.reason
