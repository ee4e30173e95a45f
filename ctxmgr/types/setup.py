"""The rows of the commands that set up and check ctxmgr: ``install``, ``config``, ``trust`` and ``doctor``."""

from __future__ import annotations

from typing import Literal

from ctxmgr.types.base import Json, Shape, Text


class InstallationView(Shape):
    """How a client is set up to call the hook.

    Attributes:
        client: its name.
        scope: whose settings: the user's, or the project's; or a plugin in a folder.
        path: of the settings file, or of the folder; null where the client has none of this scope.
        installed: whether they start the hook, after what was done.
        changed: whether that was changed now.
        diff: what was, or with ``--dry-run`` would be, changed, as a unified diff.
        version: of the client, as it says; null when it was not asked or can't be.
        then: what the user must still do; null when nothing is missing.
        state: after ``uninstall``, what became of the notes of the hooks; null when there are none.
    """

    client: str
    scope: Literal["user", "project", "plugin"]
    path: Text | None
    installed: bool
    changed: bool = False
    diff: Text | None = None
    version: str | None = None
    then: Text | None = None
    state: Text | None = None


class SettingView(Shape):
    """One setting of the files, as it holds in the folder at hand.

    Attributes:
        value: what holds; null where nothing is set and nothing is built in.
        default: what is built in.
        origin: who set it. An option of a command comes before all of these.
        file: that it is from, or null.
        project: what a project's own file may do without being trusted: set it (``free``), name places ``inside`` of its
            folder, or only ``restrict`` what is allowed.
    """

    name: Text
    value: Json
    default: Json
    origin: Literal["environment", "project", "user", "built-in"]
    file: Text | None
    about: Text
    option: Text | None
    variable: Text | None
    # A file that came with a checkout may tune; only the user grants (ruling 29).
    project: Literal["free", "inside", "restrict"]


class SettingsPath(Shape):
    """A file that may hold settings; ``holds`` says whether it is there and read."""

    path: Text
    kind: Literal["user", "project"]
    holds: bool


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
    # Shown as it would run: the trust covers this command, and a changed script needs a new one.
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


Level = Literal["ok", "info", "warn", "fail"]


class Check(Shape):
    """One thing that was looked at.

    Attributes:
        name: what, by a name that stays the same; the part before the point groups.
        level: ``fail`` is what other commands would end with; a ``warn`` needs attention and stops nothing.
        finding: what was found, for people.
        hint: what to do about it.
        detail: the same for programs.
        kind: of a ``fail``, the kind of the error that other commands would answer with; else null.
    """

    name: str
    level: Level
    finding: Text
    hint: Text | None = None
    detail: dict[str, Json] = {}
    kind: str | None = None
