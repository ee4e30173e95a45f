"""Cut a text at the end of a line, or within its first line, so that what is left fits."""

from __future__ import annotations

from collections.abc import Callable

MARK = "… cut here\n"


def cut(text: str, fits: Callable[[str], bool]) -> str | None:
    """Return the longest beginning that fits, with a mark at its end, or None where not one character does.

    Args:
        text: what is too long.
        fits: whether a text is short enough; what is shorter than a fitting one must fit as well.
    """
    ends = [number + 1 for number, sign in enumerate(text) if sign == "\n"]
    lines = _most(len(ends), lambda count: fits(text[: ends[count - 1]] + MARK))
    if lines:
        return text[: ends[lines - 1]] + MARK
    first = ends[0] - 1 if ends else len(text)
    signs = _most(first, lambda count: fits(text[:count] + MARK))
    return text[:signs] + MARK if signs else None


def _most(limit: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number up to the limit that fits, 0 for none."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
