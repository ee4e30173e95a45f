"""A version as a person names it: its number, or ``current``."""

from __future__ import annotations

from ctxmgr.access.patterns import quoted
from ctxmgr.errors import InvalidInput

CURRENT = "current"
_MOST_DIGITS = 20


def version_number(text: str | None) -> int | None:
    """Return the number of a version ("3" or "v3"), None for the current one and where none is named.

    Raises:
        InvalidInput: it is neither.
    """
    if text is None or text == CURRENT:
        return None
    digits = text.removeprefix("v")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS and int(digits)):
        raise InvalidInput(f"{quoted(text)} is no version", "give its number, e.g. 3, or 'current'")
    return int(digits)
