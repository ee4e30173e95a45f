"""The one envelope of all JSON answers (design section 5)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from ctxmgr.types.base import Shape, Text
from ctxmgr.types.query import Page

SCHEMA = "ctxmgr/1"


class ErrorView(Shape):
    """What went wrong; ``kind`` is the contract, the message is for people."""

    kind: str
    message: Text
    hint: Text | None
    retryable: bool


class Envelope(Shape):
    """One answer: lists are arrays, single things objects; the shape never changes with the row count."""

    schema_: str = Field(default=SCHEMA, alias="schema")
    command: str
    status: Literal["ok", "empty", "partial", "error"]
    data: Any = None
    page: Page | None = None
    warnings: list[Text] = []
    next: list[Text] = []
    error: ErrorView | None = None
