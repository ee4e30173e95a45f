"""Sets of words that are written as prose, not as columns of quotes."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """Return the words of ``text``, which blanks and line ends separate."""
    return frozenset(text.split())
