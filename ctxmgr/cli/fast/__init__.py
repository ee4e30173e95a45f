"""The fast path from a command line to a command, without typer, pydantic or rich where they are not needed.

Begin with `dispatch`. `table` holds every command and is generated from the declarations by ``python -m
ctxmgr.cli.fast.generate``; `rows` and `detection` answer the commonest reads from rows, without models.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ctxmgr.cli.terminal import Printer
    from ctxmgr.store.row_mapper import Verbatim

    Page = tuple[int, int, int, int, bool] | dict[str, Any]


class FastRequest:
    """A request as the tools read it: the fields of the command's request, by their names."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)


class Answer:
    """The answer of a command; for a person it is the text ``line``, or what ``draw`` shows.

    ``texts`` puts long texts into the lines of output in place of the marks that rows hold for them.
    ``page`` is the JSON page, or (offset, limit, rows shown, rows in all, whether that is exact).
    """

    __slots__ = ("code", "data", "draw", "line", "next", "page", "status", "texts", "warnings")

    def __init__(self, data: Any, status: str = "ok", page: Page | None = None) -> None:
        self.data = data
        self.status = status
        if isinstance(page, tuple):
            from ctxmgr.types.plain_records import page_of

            page = page_of(*page)
        self.page = page
        self.code = 0
        self.next: list[str] = []
        self.warnings: list[str] = []
        self.line: str | None = None
        self.draw: Callable[[Printer], object] | None = None
        self.texts: Verbatim | None = None
