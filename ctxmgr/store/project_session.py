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
"""Id of the session. It is never the latest one, and no agent sees its events: their own commands show what they say."""

# Types of the events that the project's state is made of; each holds a whole change.
VERSION = "project_version"
PRUNED = "project_version_pruned"
KEY = "project_context"
RULES = "project_access_rules"
NEEDS = "project_context_needs"
PACKAGE = "project_context_package"
ACCESS = "project_access"

EXECUTION = "execution"
"""Action and input type of the entries that record a run of an agent; they may be in any session."""

ARCHIVED = "archived:"
"""How names in ``state`` begin that say of a session that it was archived, and where."""

GAP = "gap:"
"""How names in ``state`` begin that hold the sum of an archived record of the common chain, whose place follows."""

END = "end:"
"""How names in ``state`` begin that hold, of an archived session, its last sum and how many records had sums of its own chain.

The place of its last record follows, in 20 digits.
"""

CHAINED = "sums.chained"
"""Names in ``state`` the last place up to which the sums of all sessions are one chain; behind it each session has its own."""


def end_name(place: int) -> str:
    """Return the name in ``state`` of what is kept of an archived session, whose last record stood at this place."""
    # With leading zeros the names sort as the places do.
    return f"{END}{place:020d}"


def require_not_archived(engine: Engine, session: str) -> None:
    """Refuse a session that was taken out of the store: its records would be there twice, here and in the archive.

    Args:
        engine: of the store.
        session: its id as it is stored.

    Raises:
        InvalidInput: it was archived; says where.
        Damaged: it was archived, and where can't be read.
    """
    fields = find_archive(engine, session)
    if fields is not None:
        place = f"{fields['archive']}/{fields['file']}"
        raise InvalidInput(
            f"session {session!r} was archived in {place}",
            f"read it with --store {place}, or take it back: ctxmgr store restore {place}",
        )


def find_archive(engine: Engine, session: str) -> dict[str, Any] | None:
    """Return what a store says of a session that was archived, see `parse_archive_mark`; None where it was not.

    Args:
        engine: of the store.
        session: its id as it is stored.
    """
    rows = engine.query("SELECT value FROM state WHERE name = :name", {"name": f"{ARCHIVED}{session}"})
    return parse_archive_mark(session, rows[0][0]) if rows else None


def parse_archive_mark(session: str, text: object) -> dict[str, Any]:
    """Return what a store says of a session that was archived: archive, file, records and the time.

    Args:
        session: its id.
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
    """Return the warning that so many records written by others were left out."""
    records = "1 record" if count == 1 else f"{count:,} records"
    return f"{records} of the project's own state (rules, artifacts, context) left out; --trust-project takes them over"
