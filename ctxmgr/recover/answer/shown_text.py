"""Track the lines that a prompt has shown, so that none is shown twice."""

from __future__ import annotations

from ctxmgr.diagnose.evidence.texts import strip_wrapper
from ctxmgr.recover.evidence.quotes import clean
from ctxmgr.text.patterns import lazy_pattern

_LEADING = lazy_pattern(r"^(?:> |\s*\d+[\t|:→] ?)")
"""A mark before a line: the ``>`` of a person's words, or the line number that a client adds."""
_LONG, _LEAST_NEWS, _BEGINNING = 25, 12, 80
"""Characters from which a line is compared; from which a text is worth a quote; by which a text within a sentence is known."""


class ShownText:
    """The lines that a prompt has shown so far."""

    def __init__(self) -> None:
        self._text, self._lines = "", set[str]()

    def add(self, text: str) -> None:
        """Mark the lines of a text as shown."""
        self._text += f" {' '.join(text.split())}"
        self._lines.update(_keys(text))

    def without_shown(self, text: str) -> str:
        """Return a text without lines that clients add. A mark replaces lines shown before. Returns "" if little is left."""
        text = strip_wrapper(clean(text)).strip("\n") or clean(text)
        keys, seen = _keys(text), set(self._lines)
        if seen.issuperset([*filter(None, keys)]) or " ".join(text.split())[:_BEGINNING] in self._text:
            return ""
        left: list[str] = []
        for line, key in zip(text.split("\n"), keys, strict=True):
            again = len(key) > _LONG and key in seen
            if not again or left[-1:] != ["…"]:
                left.append("…" if again else line)
            seen.add(key)
        news = "\n".join(left)
        return news if news == text or sum(map(str.isalnum, news)) >= _LEAST_NEWS else ""


def _keys(text: str) -> list[str]:
    """Return a key that is equal for lines with the same words: no marks before the line, single spaces."""
    return [" ".join(_LEADING.sub("", line).split()) for line in text.split("\n")]
