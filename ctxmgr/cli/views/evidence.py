"""Read a finding's evidence, whatever is in it: indexes, steps, texts, numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from ctxmgr.types.finding import Finding
    from ctxmgr.types.view import EntryView

Entries = Mapping[str, "EntryView"]
"""Those of the entries a finding names that are at hand, by id."""


def place(finding: Finding, entries: Entries, name: str, record: str | None) -> str:
    """Return where a record that a finding names stands: "@12", else its id, else ""."""
    if record is None:
        return ""
    if record in entries:
        return f"@{entries[record].index}"
    index = mapping(finding.evidence.get("indexes")).get(name)
    return f"@{index}" if is_index(index) else record


def member_places(finding: Finding, entries: Entries) -> list[str]:
    """Return for each member its index in the session as text, or a question mark."""
    listed = mapping(finding.evidence.get("indexes")).get("members")
    indexes = cast("list[Any]", listed) if isinstance(listed, list) else []
    places: list[str] = []
    for number, member in enumerate(finding.members):
        if member in entries:
            places.append(str(entries[member].index))
        else:
            known = number < len(indexes) and is_index(indexes[number])
            places.append(str(indexes[number]) if known else "?")
    return places


def steps(finding: Finding, name: str = "steps") -> list[dict[str, Any]]:
    """Return the calls that the evidence lists under a name."""
    listed = finding.evidence.get(name)
    return [mapping(step) for step in cast("list[Any]", listed)] if isinstance(listed, list) else []


def seconds(finding: Finding, name: str) -> float | None:
    """Return a span of time in the evidence, or None."""
    return as_seconds(finding.evidence.get(name))


def as_seconds(value: Any) -> float | None:
    """Return a value as a finite number of seconds, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return float(value) if math.isfinite(value) else None


def mapping(value: Any) -> dict[str, Any]:
    """Return a JSON object, or an empty one when it is something else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def is_index(value: Any) -> bool:
    """Whether a value can be an entry's place in its session."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53
