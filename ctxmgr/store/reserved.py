"""The reserved session that holds a project's own state.

Its records are part of the one history, so they are exported, imported, verified and masked like all others.
"""

from __future__ import annotations

PROJECT = "ctxmgr:project"
"""Id of the session. It is never the latest one, and no agent sees its events: their own commands show what they say."""

VERSION = "project_version"
PRUNED = "project_version_pruned"
KEY = "project_context"
RULES = "project_access_rules"
NEEDS = "project_context_needs"
PACKAGE = "project_context_package"
ACCESS = "project_access"
EVENT_TYPES = (VERSION, PRUNED, KEY, RULES, NEEDS, PACKAGE, ACCESS)
"""Types of the events that the project's state is made of; each holds a whole change."""

EXECUTION = "execution"
"""Action and input type of the entries that record a run of an agent; they stand in any session."""


def untrusted(count: int) -> str:
    """Return how a person is told that so many records of the session were left out of what somebody else wrote."""
    records = "1 record" if count == 1 else f"{count:,} records"
    return f"{records} of the project's own state (rules, artifacts, context) left out; --trust-project takes them over"
