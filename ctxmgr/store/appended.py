"""What an append answers."""

from __future__ import annotations


class Appended:
    """What an append did: records written, known already, and known with other content (``changed``: first kept).

    ``doubles`` counts records that were left out because another session holds them.
    """

    __slots__ = ("added", "changed", "doubles", "known")

    def __init__(self, added: int = 0, known: int = 0, changed: int = 0, doubles: int = 0) -> None:
        self.added = added
        self.known = known
        self.changed = changed
        self.doubles = doubles

    def plus(self, other: Appended) -> None:
        """Add another append's counts to these."""
        self.added += other.added
        self.known += other.known
        self.changed += other.changed
        self.doubles += other.doubles

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Appended) and self._counts() == other._counts()

    __hash__ = None  # pyright: ignore[reportAssignmentType] -- its counts change

    def __repr__(self) -> str:
        return "Appended(added={}, known={}, changed={}, doubles={})".format(*self._counts())

    def _counts(self) -> tuple[int, int, int, int]:
        return self.added, self.known, self.changed, self.doubles
