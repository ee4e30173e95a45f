"""Sets of words, written as prose instead of columns of quotes."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """Return the words of ``text``, which spaces and line ends separate."""
    return frozenset(text.split())
