"""What of a log can't be read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DamagedRange:
    """Bytes of a log that hold no readable record, or break its chain of sums."""

    offset: int
    length: int
    reason: str
