"""Keep account of the lines that a prompt has shown, so that none of them is shown twice."""

from __future__ import annotations

from ctxmgr.diagnose.evidence.texts import strip_wrapper
from ctxmgr.recover.evidence.quotes import clean
from ctxmgr.text.lazy_pattern import lazy_pattern

_LEADING = lazy_pattern(r"^(?:> |\s*\d+[\t|:→] ?)")
"""A mark before a line: of a person's words, or the number that a client puts there."""
_LONG, _LEAST_NEWS, _BEGINNING = 25, 12, 80
"""Characters from which on a line is compared, that are worth a quote, and by which a text within a sentence is known."""


class ShownText:
    """The lines that a prompt has shown so far."""

    def __init__(self) -> None:
        self._text, self._lines = "", set[str]()

    def add(self, text: str) -> None:
        """Note what is shown."""
        self._text += f" {' '.join(text.split())}"
        self._lines.update(_keys(text))

    def without_shown(self, text: str) -> str:
        """Return a text without a client's lines around it, with a mark for lines that were shown; "" where little is left."""
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
    """Return what is equal for lines that say the same: without marks before them, and blanks made one."""
    return [" ".join(_LEADING.sub("", line).split()) for line in text.split("\n")]
