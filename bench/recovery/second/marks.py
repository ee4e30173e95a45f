"""Replace marks in the texts of a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def fill(value: Any, marks: Mapping[str, str]) -> Any:
    """Return the value with every ``<mark>`` in its texts and names replaced."""
    if isinstance(value, str):
        for mark, text in marks.items():
            value = value.replace(f"<{mark}>", text)
        return value
    if isinstance(value, dict):
        return {fill(name, marks): fill(item, marks) for name, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [fill(item, marks) for item in cast("list[Any]", value)]
    return value
