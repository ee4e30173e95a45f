"""What the lane for programs hands to a tool, and what it makes of the outcome."""

from __future__ import annotations

from ctxmgr.types.plain import page_of

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than a whole query
if TYPE_CHECKING:
    from typing import Any


class Asked:
    """A request as the tools read it: the fields of the command's request, by their names."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)


class Answer:
    """What a command found; ``line`` tells a person, where that takes no more than a line."""

    __slots__ = ("data", "line", "next", "page", "status", "warnings")

    def __init__(self, data: Any, status: str = "ok", page: tuple[int, int, int, int, bool] | None = None) -> None:
        self.data = data
        self.status = status
        self.page = None if page is None else page_of(*page)
        self.next: list[str] = []
        self.warnings: list[str] = []
        self.line: str | None = None
