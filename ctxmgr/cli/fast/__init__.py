"""The fast path from a command line to a command, without typer, pydantic or rich where they are not needed.

Begin with `dispatch`. `table` holds every command and is generated from the declarations by ``python -m
ctxmgr.cli.fast.generate``. May import whatever does not load those three at the top of a module.

Thirteen commands are answered twice: by `rows` and `detection` for programs, from rows and without models, and by their own
functions for people. Both ask the same tools (`history.query.tools`, `cli.detection`, `cli.record_input`), take addresses
apart by the same `cli.address`, and are held to the same bytes by `tests/cli/fast`. What is there twice is only how options
become a request, and an answer output. Each has a reason to stay:

- ``list``, ``trace``, ``show``, ``messages``, ``search``: agents read history at every turn. From rows that takes a third of
  the time of the function, which loads pydantic's shapes and what draws; and long texts pass as they are stored.
- ``record``, ``note add``, ``note list``, ``snapshot create``, ``snapshot list``: what a hook or a harness calls beside a
  running agent, in less than half the time for the same reason.
- ``sessions``, ``detect``, ``recover``: answered from cached verdicts, also for people, without detectors or recovery. Where
  nothing is cached, ``sessions`` and ``detect`` answer programs here all the same: to hand over would load what draws, which
  takes a tenth of the time of a short log. ``recover`` hands over.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ctxmgr.cli.terminal import Printer
    from ctxmgr.store.row_mapper import LongTexts

    Page = tuple[int, int, int, int, bool] | dict[str, Any]


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
            from ctxmgr.types.plain_records import make_page

            page = make_page(*page)
        self.page = page
        self.code = 0
        self.next: list[str] = []
        self.warnings: list[str] = []
        self.line: str | None = None
        self.draw: Callable[[Printer], object] | None = None
        self.texts: LongTexts | None = None
