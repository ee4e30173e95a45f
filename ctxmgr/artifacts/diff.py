"""Compare two contents of an artifact as a unified diff of bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff

from ctxmgr.artifacts.content import Content

LARGEST = 8 * 2**20
"""Contents larger than this, in bytes, are not compared line by line."""
MOST_LINES = 4_000
"""Lines of each side that are compared once what both begin and end with is put aside; the time grows with the square."""
MOST_SHOWN = 10_000
"""Lines of a diff that are shown."""
CONTEXT = 3


@dataclass(frozen=True, slots=True)
class Difference:
    """A unified diff, or None where there is none to show; ``note`` says what a person should know of it."""

    text: str | None
    added: int
    removed: int
    note: str | None = None


def difference(old: Content, new: Content, names: tuple[str, str]) -> Difference:
    """Return what changed from one content to the other.

    Raises:
        Damaged: a content was changed behind the store's back.
    """
    if old.row.hash == new.row.hash:
        return Difference("", 0, 0)
    if max(old.row.size, new.row.size) > LARGEST:
        return Difference(None, 0, 0, f"larger than {LARGEST // 2**20} MB: not compared line by line")
    try:
        before, after = (content.read().decode("utf-8") for content in (old, new))
    except UnicodeDecodeError:
        return Difference(None, 0, 0, "binary content differs")
    if "\0" in before or "\0" in after:
        return Difference(None, 0, 0, "binary content differs")
    return between(before, after, names)


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        return [line + "\n" for line in lines[:-1]]
    return [*(line + "\n" for line in lines[:-1]), lines[-1] + "\n\\ No newline at end of file\n"]


def between(old: str, new: str, names: tuple[str, str]) -> Difference:
    """Return what changed from one text to the other, in the form that ``patch`` takes."""
    before, after = _lines(old), _lines(new)
    start = _alike(before, after)
    end = _alike(before[start:][::-1], after[start:][::-1])
    first = max(0, start - CONTEXT)
    sides = [side[first : len(side) - max(0, end - CONTEXT)] for side in (before, after)]
    cut = any(len(side) > MOST_LINES for side in sides)
    drawn = list(unified_diff(sides[0][:MOST_LINES], sides[1][:MOST_LINES], *names, n=CONTEXT))
    added = sum(line.startswith("+") for line in drawn[2:])
    removed = sum(line.startswith("-") for line in drawn[2:])
    text = "".join(_moved(line, first) for line in drawn[:MOST_SHOWN])
    cut = cut or len(drawn) > MOST_SHOWN
    return Difference(text, added, removed, "too long to show whole: the diff is cut" if cut else None)


def _alike(before: Sequence[str], after: Sequence[str]) -> int:
    """Return with how many equal lines both begin."""
    for place, (one, other) in enumerate(zip(before, after, strict=False)):
        if one != other:
            return place
    return min(len(before), len(after))


def _moved(line: str, first: int) -> str:
    """Return a line of the diff with the line numbers of its head moved to where the compared part stands."""
    if first == 0 or not line.startswith("@@"):
        return line
    words = line.split(" ")
    for place in (1, 2):
        sign, (number, comma, count) = words[place][0], words[place][1:].partition(",")
        words[place] = f"{sign}{int(number) + first}{comma}{count}"
    return " ".join(words)
