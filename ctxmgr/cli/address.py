"""Read addresses on the command line: ``SESSION@42``, ``@-1``, ``@last``, ``42``, ids and their prefixes, ``-`` for stdin.

A file may stand in the place of a session, and is then the store: ``run.jsonl``, ``run.jsonl@42``.
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
    """Return (session, indexes, ids) of several addresses of one session; ``-`` reads more addresses from stdin.

    Raises:
        InvalidInput: the addresses lie in different sessions.
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
        # Ids and indexes contain no white space, so any white space may separate them.
        found += sys.stdin.read().split() if text == "-" else [text]
    return found


def require_file(log: str) -> None:
    """Refuse stdin, which other commands call ``-``.

    Raises:
        InvalidInput: it is stdin, and no file of that name is here.
    """
    if log == "-" and not os.path.exists(log):
        raise InvalidInput("a log can't be read from stdin", "it is read more than once: save it first, and name the file")


def require_files(logs: Sequence[str]) -> None:
    """Refuse stdin among logs, see `require_file`."""
    for log in logs:
        require_file(log)


def locate_store(target: str | None, session: str | None, store: str | None) -> tuple[str | None, str | None]:
    """Return (session, store) for a command that accepts a file in the place of a session.

    Args:
        target: the argument that names a session or a file, if there is one.
        session: value of ``--session``.
        store: value of ``--store``.

    Raises:
        NotFound: the argument names a file that does not exist.
        NoHistory: the argument names an empty file.
        InvalidInput: two stores or two sessions are named, or the argument is a folder or stdin.
    """
    require_file(target or "")
    if target is not None and is_place(target):
        return session, locate_log(target, store)
    # A file here may have the name of a session. It is a log only if the name also looks like that of a file.
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
    require_file(log)
    # A URL is checked when the store is opened; it is not a file on this disk.
    if not is_url(log) and not os.path.exists(log):
        raise NotFound(f"no file at {log}", "check the path")
    return _one_store(log, store)


def locate_entry(address: str, session: str | None, store: str | None) -> tuple[str, str | None, str | None]:
    """Return (address, session, store) for an address whose session may be a file, see `locate_store`.

    The address is empty if a file is named without an entry.

    Raises:
        NotFound, NoHistory, InvalidInput: as `locate_store`.
    """
    named, at, place = address.rpartition("@")
    # Only an index or "last" after the @ makes an address, because the name of a file may contain an @.
    if at and named and (place == "last" or is_number(place)) and is_place(named):
        return f"@{place}", *locate_store(named, session, store)
    # A bare number is an index, even if a file in this folder has that name.
    if is_place(address) and not is_number(address):
        return "", *locate_store(address, session, store)
    return address, *locate_store(None, session, store)


def locate_entries(texts: Sequence[str], session: str | None, store: str | None) -> tuple[list[str], str | None, str | None]:
    """Return (addresses, session, store) for several addresses whose session may be a file, see `locate_store`.

    Raises:
        NotFound: as `locate_store`.
        InvalidInput: as `locate_store`; or a file is named without an entry, or several files are named.
    """
    session, store = locate_store(None, session, store)
    found: list[str] = []
    for text in texts:
        address = text
        # `parse_all` reads stdin, which can be read only once.
        if text != "-":
            address, session, store = locate_entry(text, session, store)
        if not address and text:
            raise InvalidInput(f"{text!r} names no entry", f"e.g. {text}@3")
        found.append(address)
    return found, session, store


_MOVING = ("action", "agent", "input_type", "status", "process", "event_type", "since", "until", "newest_first")


def moves_rows(values: Mapping[str, Any]) -> bool:
    """Whether the options of ``list`` filter or reverse its rows. If so, an entry's index is not its place among the rows."""
    return values["kind"] != "entry" or any(values[name] for name in _MOVING)


def list_start(target: str | None, offset: int, *, chosen: bool) -> tuple[str | None, int]:
    """Return (target, offset) of a list that begins at an entry: ``SESSION@42``, ``run.jsonl@42``.

    Args:
        target: the argument that names a session or a log.
        offset: value of ``--offset``.
        chosen: result of `moves_rows` for the options.

    Raises:
        InvalidInput: the address counts from the end, or is combined with an offset or with options that move rows.
    """
    named, at, place = ("", "", "") if target is None else target.rpartition("@")
    if not at or not (place == "last" or is_number(place)):
        return target, offset
    if place == "last" or place.startswith("-"):
        raise InvalidInput(f"a list begins at an index, not at '@{place}'", "'--newest-first' lists the newest rows first")
    # The index counts all entries. Among filtered rows it would name another entry.
    if offset or chosen:
        raise InvalidInput(f"'@{place}' can't be combined with --offset, --newest-first or a filter", "name the session alone")
    return named or None, int(place)


def locate_action(
    action: str | None, target: str | None, session: str | None, store: str | None
) -> tuple[str | None, str | None, str | None]:
    """Return (action, session, store) for two arguments, of which either may be a file, see `locate_store`.

    Raises:
        NotFound, NoHistory, InvalidInput: as `locate_store`.
    """
    # If both look like files, the second one is the log: the name of an action may look like that of a file.
    if action is not None and is_place(action) and (target is None or not is_place(target)):
        return target, *locate_store(action, session, store)
    return action, *locate_store(target, session, store)


def is_folder(text: str | None) -> bool:
    """Whether an argument is the path of a folder: ``.``, ``logs/``, ``./logs``. A bare name may be a session instead."""
    return text is not None and (text in (".", "..") or os.sep in text) and os.path.isdir(text)


def is_place(text: str) -> bool:
    """Whether an argument names a file or a URL instead of a session."""
    return _looks_like_file(text) or is_url(text) or os.path.isfile(text)


def _looks_like_file(text: str) -> bool:
    return text.lower().endswith(_FILES) or text.startswith(("/", "./", "../", "~/"))


def _one_store(path: str, store: str | None) -> str:
    if store is not None and store != path:
        raise InvalidInput(f"{path!r} and --store {store!r} name different stores", "leave one of them out")
    if os.path.isdir(path):
        raise InvalidInput(f"{path} is a folder", f"name a log in it, or 'ctxmgr import {path}'")
    # An empty file is an error: the verdict "healthy" would be false for it (ruling 28).
    if os.path.isfile(path) and not os.path.getsize(path) and not path.lower().endswith(DATABASES):
        raise NoHistory(hint=f"{path} is an empty file: nothing was read")
    return path
