"""Addresses on the command line: ``SESSION@42``, ``@-1``, ``@last``, ``42``, ids and their prefixes, ``-`` for stdin."""

from __future__ import annotations

import sys

from ctxmgr.errors import InvalidInput

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than a whole query
if TYPE_CHECKING:
    from collections.abc import Sequence


class Address:
    """One entry (or a whole session, when neither index nor id is given)."""

    __slots__ = ("entry_id", "index", "session")

    def __init__(self, session: str | None = None, index: int | None = None, entry_id: str | None = None) -> None:
        self.session = session
        self.index = index
        self.entry_id = entry_id


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 15


def parse(text: str, session: str | None = None) -> Address:
    """Return what an address means; ``session`` is the one that ``--session`` names.

    Raises:
        InvalidInput: it is no address, or names another session than ``--session``.
    """
    if _is_number(text):
        return Address(session, int(text))
    named, at, place = text.rpartition("@")
    if at and (place == "last" or _is_number(place)):
        if named and session is not None and named != session:
            raise InvalidInput(f"{text!r} and --session {session!r} name different sessions", "leave one of them out")
        return Address(named or session, -1 if place == "last" else int(place))
    if not text.strip():
        raise InvalidInput("an empty address", "e.g. SESSION@42, @-1, @last, or an entry id")
    return Address(session, entry_id=text)


def parse_all(texts: Sequence[str], session: str | None) -> tuple[str | None, list[int], list[str]]:
    """Return (session, indexes, ids) of several addresses of one session; ``-`` reads more of them from stdin.

    Raises:
        InvalidInput: they lie in different sessions.
    """
    asked = session
    indexes: list[int] = []
    ids: list[str] = []
    for text in _expanded(texts):
        address = parse(text, asked)
        if address.session is not None:
            if session is not None and address.session != session:
                raise InvalidInput("the addresses lie in different sessions", "annotate one session at a time")
            session = address.session
        if address.index is not None:
            indexes.append(address.index)
        elif address.entry_id is not None:
            ids.append(address.entry_id)
    return session, indexes, ids


def _expanded(texts: Sequence[str]) -> list[str]:
    found: list[str] = []
    for text in texts:
        found += sys.stdin.read().split() if text == "-" else [text]
    return found
