"""The reserved session that holds a project's own state.

Its records are part of the one history, so they are exported, imported, verified and masked like all others.
"""

from __future__ import annotations

from ctxmgr.errors import Damaged, InvalidInput
from ctxmgr.log import fast_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ctxmgr.store.engine.interface import Engine

PROJECT = "ctxmgr:project"
"""Id of the session. It never counts as the latest one. Agents do not see its events; the project's commands show them."""

# Types of the events from which the project's state is derived. Each event holds a whole change.
VERSION = "project_version"
PRUNED = "project_version_pruned"
KEY = "project_context"
RULES = "project_access_rules"
NEEDS = "project_context_needs"
PACKAGE = "project_context_package"
ACCESS = "project_access"

EXECUTION = "execution"
"""Action and input type of the entries that record a run of an agent. They may be in any session."""

ARCHIVED = "archived:"
"""Prefix of the names in ``state`` whose row says where a session was archived. The session's id follows."""

GAP = "gap:"
"""Prefix of the names in ``state`` whose row holds the checksum of an archived record in the common chain; a place follows."""

END = "end:"
"""Prefix of the names in ``state`` whose row describes the end of an archived session; see `end_name`.

The value is the session's last checksum and the number of its records with checksums in a chain of its own.
"""

CHAINED = "sums.chained"
"""Name of the row in ``state`` with the last place of the common chain of checksums; behind it each session has its own."""


def end_name(place: int) -> str:
    """Return the name in ``state`` for the end of an archived session whose last record was at this place."""
    # 20 digits with leading zeros, so the names sort like the places.
    return f"{END}{place:020d}"


def require_not_archived(engine: Engine, session: str) -> None:
    """Check that a session was not archived. Otherwise its records could be both here and in the archive.

    Args:
        engine: the engine of the store.
        session: the session's id in its stored form.

    Raises:
        InvalidInput: the session was archived; the message says where.
        Damaged: the session was archived, and the row that says where was changed.
    """
    fields = find_archive(engine, session)
    if fields is not None:
        place = f"{fields['archive']}/{fields['file']}"
        raise InvalidInput(
            f"session {session!r} was archived in {place}",
            f"read it with --store {place}, or take it back: ctxmgr store restore {place}",
        )


def find_archive(engine: Engine, session: str) -> dict[str, Any] | None:
    """Return where a session was archived, see `parse_archive_mark`; None if it was not.

    Args:
        engine: the engine of the store.
        session: the session's id in its stored form.
    """
    rows = engine.query("SELECT value FROM state WHERE name = :name", {"name": f"{ARCHIVED}{session}"})
    return parse_archive_mark(session, rows[0][0]) if rows else None


def parse_archive_mark(session: str, text: object) -> dict[str, Any]:
    """Return the archive, file, number of records and time of an archived session, as a dict.

    Args:
        session: the session's id.
        text: the value of its row in ``state``.

    Raises:
        Damaged: the row was changed.
    """
    try:
        fields = fast_json.json_object(fast_json.loads(str(text)))
    except (ValueError, RecursionError):
        fields = {}
    told = fields.get("archive"), fields.get("file"), fields.get("at"), fields.get("records")
    if list(map(type, told)) != [str, str, str, int]:
        raise Damaged(f"session {session!r} was archived, and what says where was changed", "look for it in your archives")
    return fields


def untrusted_message(count: int) -> str:
    """Return the warning that ``count`` records by other authors were left out."""
    records = "1 record" if count == 1 else f"{count:,} records"
    return f"{records} of the project's own state (rules, artifacts, context) left out; --trust-project takes them over"
