"""Requests and answers of the fast path."""

from __future__ import annotations

from ctxmgr.types.plain_records import page_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ctxmgr.cli.terminal import Printer
    from ctxmgr.store.repositories.raw_json import Verbatim

    Page = tuple[int, int, int, int, bool] | dict[str, Any]


class FastRequest:
    """A request as the tools read it: the fields of the command's request, by their names."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)


class Answer:
    """What a command found; ``line`` tells a person, where that takes no more than a line; ``draw`` does where it takes more.

    ``texts`` puts long texts into the lines of output, where the rows hold marks for them.
    ``page`` is as JSON has it, or offset, limit, rows shown and in all, and whether that is exact.
    """

    __slots__ = ("code", "data", "draw", "line", "next", "page", "status", "texts", "warnings")

    def __init__(self, data: Any, status: str = "ok", page: Page | None = None) -> None:
        self.data = data
        self.status = status
        self.page = page_of(*page) if isinstance(page, tuple) else page
        self.code = 0
        self.next: list[str] = []
        self.warnings: list[str] = []
        self.line: str | None = None
        self.draw: Callable[[Printer], object] | None = None
        self.texts: Verbatim | None = None
