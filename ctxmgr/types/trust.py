"""What ``trust`` answers: one row for each settings file of a project."""

from __future__ import annotations

from ctxmgr.types.base import Json, Shape, Text


class TrustedCommand(Shape):
    """A command that a probe of the project's goal runs.

    Attributes:
        probe: its name.
        folder: of the goal; the command runs there.
        argv: the program and its arguments.
        trusted: whether it may run now, by the trust in the project's file.
    """

    probe: Text
    folder: Text
    argv: list[Text]
    trusted: bool


class TrustView(Shape):
    """A settings file, and whether the user trusts it as it is.

    Attributes:
        path: of the file.
        trusted: whether what it grants holds now.
        since: when it was trusted, RFC 3339; null when it is not.
        grants: the settings that hold only while it is trusted, with their values.
        commands: of the probes of the project's goal.
    """

    path: Text
    trusted: bool
    since: Text | None = None
    grants: dict[str, Json] = {}
    commands: list[TrustedCommand] = []
