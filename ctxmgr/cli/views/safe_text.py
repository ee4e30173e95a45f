"""Make recorded text safe for a terminal, and cut it to a width."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from ctxmgr.text.patterns import lazy_pattern

TYPE_CHECKING = False
MAX_MARKS = 8
"""Maximum number of combining marks on one character. A longer pile would hide the lines above it."""

VARIATION = "\ufe0e\ufe0f"
"""The variation selectors, which choose between the plain and the coloured form of a sign."""

if TYPE_CHECKING:
    from typing import Literal

    Keep = Literal["start", "middle", "end", "bare"]
else:
    Keep = str

# Blocks of common characters that are all visible and not combining, so they need no check one by one. They exclude the
# soft hyphen (U+00AD), and from U+2028 on the line separators and the marks that change the direction of text.
_EVERYDAY = (
    r"\x20-\x7e\xa1-\xac\xae-\u02ff\u0400-\u0481\u2010-\u2027\u2030-\u205e\u2190-\u23ff\u2500-\u27bf"
    r"\u3041-\u3096\u30a1-\u30ff\u4e00-\u9ffc\uac00-\ud7a3"
)
_ODD = lazy_pattern(f"[^{_EVERYDAY}]+")
_ODD_IN_LINES = lazy_pattern(f"[^{_EVERYDAY}\\t\\n]+")
_SHORT = 500
"""Maximum length of a text for which checking each character is faster than compiling the patterns."""
_KEYCAPS = "#*0123456789"
# Letters and marks that draw nothing, so that text could hide in them. Their Unicode categories do not show it.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_WIDE_SINCE_UNICODE_16 = (
    ("\u2630", "\u2637"), ("\u268a", "\u268f"), ("\u4dc0", "\u4dff"),
    ("\U0001d300", "\U0001d356"), ("\U0001d360", "\U0001d376"),
)  # fmt: skip


def safe(text: object, *, limit: int | None = None, keep_lines: bool = False) -> str:
    r"""Return text that can neither control a terminal nor hide: the filter for all recorded and user-given text.

    Control, format, bidirectional, zero-width, private-use and unassigned characters and lone surrogates become visible escapes
    (``\x1b``, ``\u202e``). A line end becomes ``⏎`` and a tab a blank; ``keep_lines`` keeps both. ``limit`` cuts the text to
    that many terminal cells, including the ``…``. Filtering twice changes nothing. Never raises.
    """
    try:
        shown = text if isinstance(text, str) else "" if text is None else str(text)
    except (ValueError, RecursionError):  # an integer with too many digits, or deeply nested lists
        shown = f"<{type(text).__name__}>"
    if not _is_plain(shown):
        text_ = shown.replace("\r\n", "\n")
        if not keep_lines:
            text_ = text_.replace("\n", "⏎").replace("\t", " ")
        if _is_plain(text_.replace("\n", "").replace("\t", "")):
            return text_ if limit is None else cut(text_, limit)
        # After a line end, a mark has no character to combine with.
        shown = (_ODD_IN_LINES if keep_lines else _ODD).sub(
            lambda run: _visible(run.group(), text_[max(run.start() - 1, 0) : run.start()].strip("\n\t")), text_
        )
    return shown if limit is None else cut(shown, limit)


def _is_plain(text: str) -> bool:
    """Whether every character is visible and not a mark. For long texts outside ASCII, the patterns are faster."""
    if not text.isprintable():
        return False
    if text.isascii():
        return True
    return len(text) <= _SHORT and not any(char in _BLANK or unicodedata.category(char)[0] == "M" for char in text)


def _visible(run: str, before: str) -> str:
    shown: list[str] = []
    marks = 0
    for char in run:
        # A selector belongs to a sign, or to a digit of a key cap. Anywhere else it could hide a message.
        if char in VARIATION and not marks and (before > "\x7f" or (before and before in _KEYCAPS)):
            shown.append(char)
            marks = 1
            continue
        if before and char not in _BLANK and char not in VARIATION and unicodedata.category(char)[0] == "M":
            marks += 1
            if marks <= MAX_MARKS:
                shown.append(char)
            continue
        if marks > MAX_MARKS:
            shown.append(f"[+{marks - MAX_MARKS} marks]")
        marks = 0
        shown.append(_escape(char))
        before = shown[-1][-1]  # the next mark combines with the shown character, not with the recorded one
    if marks > MAX_MARKS:
        shown.append(f"[+{marks - MAX_MARKS} marks]")
    return "".join(shown)


@lru_cache(8192)
def _escape(char: str) -> str:
    category = unicodedata.category(char)
    # A mark here has no character to combine with, and would change our own text before it.
    if category == "Zs" or (char.isprintable() and char not in _BLANK and category[0] != "M"):
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


@lru_cache(8192)
def _cell(char: str) -> int:
    # A test compares this with rich.cells (`tests/cli/views/test_safe_text.py`). Importing rich takes longer than a page
    # of a history.
    if unicodedata.category(char)[0] == "M" or "\u1160" <= char <= "\u11ff" or "\ud7b0" <= char <= "\ud7ff":
        return 0  # combining marks; vowels and finals of Hangul, which join the syllable before them
    # Terminals differ on flags and skin tones. The wider reading never wraps a row; it only leaves a gap.
    wide = unicodedata.east_asian_width(char) in "WF" or "\U0001f1e6" <= char <= "\U0001f1ff"
    return 2 if wide or any(first <= char <= last for first, last in _WIDE_SINCE_UNICODE_16) else 1


def cells(text: str) -> int:
    """Return the width of filtered text in terminal cells, the larger one where terminals differ."""
    return len(text) if text.isascii() else sum(_cell(char) for char in text)


def cut(text: str, limit: int, ellipsis: str = "…", keep: Keep = "start") -> str:
    """Return filtered text cut to ``limit`` cells, with a mark at the cut. ``keep`` says which part stays.

    ``bare`` keeps the start without a mark, for texts that only lose precision, like a time without its seconds.
    """
    limit = max(limit, 0)
    if len(text) <= limit and cells(text) <= limit:
        return text
    if keep == "bare":
        return take(text, limit)
    room = limit - len(ellipsis)
    if room < 1:
        return take(text, limit)
    if keep == "start":
        head = take(text, room)
        return text if take(text, limit) == text else head + ellipsis
    tail = room if keep == "end" else room // 2
    # A cell holds at most nine characters, one and its `MAX_MARKS`, so ten per cell are enough to reverse.
    end = take(text[::-1][: tail * 10], tail)[::-1]
    return take(text, room - tail) + ellipsis + end if cells(text) > limit else text


def take(text: str, room: int) -> str:
    """Return the longest beginning of filtered text that fits into ``room`` cells."""
    if text.isascii():
        return text[:room]
    for place, char in enumerate(text):
        room -= _cell(char)
        if room < 0:
            return text[:place]
    return text
