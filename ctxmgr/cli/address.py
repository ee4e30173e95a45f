"""Addresses on the command line: ``SESSION@42``, ``@-1``, ``@last``, ``42``, ids and their prefixes, ``-`` for stdin.

In the place of a session a file may be named, which is then the store: ``run.jsonl``, ``run.jsonl@42``.
"""

from __future__ import annotations

import os
import sys

from ctxmgr.base.paths import DATABASES, is_url
from ctxmgr.errors import InvalidInput, NoHistory, NotFound
from ctxmgr.history.query.address import Address as Address
from ctxmgr.history.query.address import is_number
from ctxmgr.history.query.address import parse as parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


# Endings of the logs that importers read: ``.traj`` is SWE-agent's, ``.eval`` Inspect's.
_FILES = (".jsonl", ".ndjson", ".json", ".zst", ".gz", ".xz", ".bz2", ".traj", ".eval", *DATABASES, ".log")


def parse_all(texts: Sequence[str], session: str | None) -> tuple[str | None, list[int], list[str]]:
    """Return (session, indexes, ids) of several addresses of one session; ``-`` reads more of them from stdin.

    Raises:
        InvalidInput: they lie in different sessions.
    """
    asked = session
    indexes: list[int] = []
    ids: list[str] = []
    for text in _with_stdin(texts):
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


def _with_stdin(texts: Sequence[str]) -> list[str]:
    found: list[str] = []
    for text in texts:
        # An id or an index never holds blanks, so any of them may stand between two.
        found += sys.stdin.read().split() if text == "-" else [text]
    return found


def locate_store(target: str | None, session: str | None, store: str | None) -> tuple[str | None, str | None]:
    """Return (session, store) where a file may be given instead of the session.

    Args:
        target: the argument that names a session or a file, if one was given.
        session: what ``--session`` names.
        store: what ``--store`` names.

    Raises:
        NotFound: the argument names a file that is not there.
        NoHistory: it names an empty file.
        InvalidInput: two stores, or two sessions, are named; or the argument is a folder.
    """
    if target is not None and is_place(target):
        if not is_url(target) and not os.path.exists(target):
            raise NotFound(f"no file at {target}", "check the path")
        return session, _one_store(target, store)
    # A session's id may be the name of a file here; only one that is also spelled like a file is taken for a log.
    if session is not None and store is None and os.path.isfile(session) and _looks_like_file(session):
        return target, _one_store(session, store)
    if target is not None and session is not None and target != session:
        raise InvalidInput(f"{target!r} and --session {session!r} name different sessions", "leave one of them out")
    return target if session is None else session, store


def locate_log(log: str | None, store: str | None) -> str | None:
    """Return the store that an argument or ``--store`` names.

    Raises:
        NotFound, NoHistory, InvalidInput: as `locate_store`.
    """
    if log is None:
        return store
    # A URL is looked for by what opens it, not on this disk.
    if not is_url(log) and not os.path.exists(log):
        raise NotFound(f"no file at {log}", "check the path")
    return _one_store(log, store)


def locate_entry(address: str, session: str | None, store: str | None) -> tuple[str, str | None, str | None]:
    """Return (address, session, store) of an address whose session may be a file, see `locate_store`.

    The address is empty where a file alone was named.

    Raises:
        NotFound, NoHistory, InvalidInput: as `locate_store`.
    """
    named, at, place = address.rpartition("@")
    # Only an index or "last" is an address: the name of a file may hold an @ itself.
    if at and named and (place == "last" or is_number(place)) and is_place(named):
        return f"@{place}", *locate_store(named, session, store)
    # A bare number is an index, even where a file of that name lies here.
    if is_place(address) and not is_number(address):
        return "", *locate_store(address, session, store)
    return address, *locate_store(None, session, store)


def locate_entries(texts: Sequence[str], session: str | None, store: str | None) -> tuple[list[str], str | None, str | None]:
    """Return (addresses, session, store) of several addresses whose session may be a file, see `locate_store`.

    Raises:
        NotFound: as `locate_store`.
        InvalidInput: as `locate_store`; or a file is named without an entry, or several files are.
    """
    session, store = locate_store(None, session, store)
    found: list[str] = []
    for text in texts:
        address = text
        # What comes from stdin is read once, by `parse_all`.
        if text != "-":
            address, session, store = locate_entry(text, session, store)
        if not address and text:
            raise InvalidInput(f"{text!r} names no entry", f"e.g. {text}@3")
        found.append(address)
    return found, session, store


_MOVING = ("action", "agent", "input_type", "status", "process", "event_type", "since", "until", "newest_first")


def moves_rows(values: Mapping[str, Any]) -> bool:
    """Whether the options of ``list`` filter or reverse its rows, so that an entry's index is not its place among them."""
    return values["kind"] != "entry" or any(values[name] for name in _MOVING)


def list_start(target: str | None, offset: int, *, chosen: bool) -> tuple[str | None, int]:
    """Return (target, offset) of a list that begins at an entry: ``SESSION@42``, ``run.jsonl@42``.

    Args:
        target: the session or log that the argument names.
        offset: value of ``--offset``.
        chosen: what `moves_rows` says of the options.

    Raises:
        InvalidInput: the address counts from the end, or is given with what it can't be combined with.
    """
    named, at, place = ("", "", "") if target is None else target.rpartition("@")
    if not at or not (place == "last" or is_number(place)):
        return target, offset
    if place == "last" or place.startswith("-"):
        raise InvalidInput(f"a list begins at an index, not at '@{place}'", "'--newest-first' lists the newest rows first")
    # The index is a place among all entries; among chosen ones it would name another row.
    if offset or chosen:
        raise InvalidInput(f"'@{place}' can't be combined with --offset, --newest-first or a filter", "name the session alone")
    return named or None, int(place)


def locate_action(
    action: str | None, target: str | None, session: str | None, store: str | None
) -> tuple[str | None, str | None, str | None]:
    """Return (action, session, store) of two arguments; either may be a file, see `locate_store`.

    Raises:
        NotFound, NoHistory, InvalidInput: as `locate_store`.
    """
    # Of two files the second is the log: the first may be an action that is named like a file.
    if action is not None and is_place(action) and (target is None or not is_place(target)):
        return target, *locate_store(action, session, store)
    return action, *locate_store(target, session, store)


def is_folder(text: str | None) -> bool:
    """Whether an argument names a folder and is spelled as one: ``.``, ``logs/``, ``./logs``; else it may be a session."""
    return text is not None and (text in (".", "..") or os.sep in text) and os.path.isdir(text)


def is_place(text: str) -> bool:
    """Whether an argument names a file rather than a session; a folder only where it is spelled as one."""
    return _looks_like_file(text) or is_url(text) or os.path.isfile(text)


def _looks_like_file(text: str) -> bool:
    return text.lower().endswith(_FILES) or text.startswith(("/", "./", "../", "~/"))


def _one_store(path: str, store: str | None) -> str:
    if store is not None and store != path:
        raise InvalidInput(f"{path!r} and --store {store!r} name different stores", "leave one of them out")
    if os.path.isdir(path):
        raise InvalidInput(f"{path} is a folder", f"name a log in it, or 'ctxmgr import {path}'")
    # Named and empty is an error: to say "healthy" of it would be false (ruling 28).
    if os.path.isfile(path) and not os.path.getsize(path) and not path.lower().endswith(DATABASES):
        raise NoHistory(f"{path} is an empty file: nothing was read")
    return path
