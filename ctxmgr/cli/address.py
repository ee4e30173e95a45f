"""Addresses on the command line: ``SESSION@42``, ``@-1``, ``@last``, ``42``, ids and their prefixes, ``-`` for stdin."""

from __future__ import annotations

import sys

from ctxmgr.errors import InvalidInput
from ctxmgr.history.address import Address as Address
from ctxmgr.history.address import parse as parse

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than a whole query
if TYPE_CHECKING:
    from collections.abc import Sequence


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
