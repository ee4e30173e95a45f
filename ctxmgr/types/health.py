"""The rows of ``doctor``."""

from __future__ import annotations

from typing import Literal

from ctxmgr.types.base import Json, Shape, Text

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
