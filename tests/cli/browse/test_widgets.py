"""The parts that screens are made of: rows that are read by pages, lines, and a question."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from ctxmgr.cli.browse.screens import Browser
from ctxmgr.cli.browse.widgets import PAGE, LinesPane, PagedList, Question
from ctxmgr.cli.views.layout import Span
from ctxmgr.errors import CtxmgrError, StorageFailed
from ctxmgr.workspace import Workspace
from tests import builders as b
from tests.cli.browse.screen_texts import shown
from tests.cli.browse.test_screens import press, timeline, until, visit


@pytest.mark.slow
def test_a_long_history_is_read_by_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many entries only those in sight and their neighbours are held, and the last is there at once."""
    place = tmp_path / "long.jsonl"
    count = 5_000
    with place.open("w", encoding="utf-8") as stream:
        for number in range(count):
            stream.write(
                json.dumps(b.build("entry", "long", b.at(number), id=f"e{number}", agent=f"a{number % 3}", action="Read",
                                   inputType="path", input=f"file {number}", result={"status": "ok", "output": "x"})) + "\n"
            )  # fmt: skip
    asked: list[int] = []
    listed = Workspace.list

    def counted(workspace: Workspace, request: Any) -> Any:
        asked.append(request.limit)
        return listed(workspace, request)

    monkeypatch.setattr(Workspace, "list", counted)

    async def walk(pilot: Pilot[CtxmgrError], app: Browser) -> None:
        rows = timeline(app).rows
        assert rows.total == count
        await press(pilot, "end")
        await until(pilot, lambda: f"{count - 1}" in shown(app) and f"file {count - 1}" in shown(app))
        await press(pilot, "home")
        await until(pilot, lambda: "file 0" in shown(app))

    visit(place, walk)
    assert set(asked) == {PAGE}
    assert len(asked) < 20


class _Parts(App[None]):
    """A screen with a list of 250 rows, and lines beside it."""

    def __init__(self, *, fault: bool = False) -> None:
        super().__init__()
        self.fetched: list[int] = []
        self.rows = PagedList[int](self.fetch, lambda row, _before, _width: [Span(f"row {row}")], empty="none")
        self.pane = LinesPane()
        self._fault = fault

    async def fetch(self, offset: int, limit: int) -> tuple[list[int], int]:
        """Return the rows of a page."""
        if self._fault:
            raise StorageFailed("[bold]gone[/]", "")
        self.fetched.append(offset)
        return list(range(250))[offset : offset + limit], 250

    def compose(self) -> ComposeResult:
        """Lay out both."""
        yield self.rows
        yield self.pane


def test_a_row_is_read_with_its_page_when_it_is_wanted() -> None:
    """The cursor stays within the list; only the pages that were in sight are read, and a row of no page is None."""

    async def walked() -> None:
        app = _Parts()
        async with app.run_test() as pilot:
            await pilot.pause()
            assert (app.rows.total, app.rows.current_row, app.fetched) == (250, 0, [0])
            app.rows.go_to(10**9)
            await pilot.pause()
            assert (app.rows.cursor, app.rows.current_row) == (249, 249)
            assert set(app.fetched) == {0, 200}
            assert (app.rows.row(150), app.rows.row(-1), app.rows.row(250)) == (None, None, None)
            app.rows.go_to(-5)
            assert app.rows.cursor == 0

    asyncio.run(walked())


def test_a_page_that_cannot_be_read_is_told() -> None:
    """The reason is shown as it is, and the list stays."""

    async def walked() -> None:
        app = _Parts(fault=True)
        async with app.run_test(notifications=True) as pilot:
            await pilot.pause()
            await pilot.pause()
            assert app.rows.total is None
            assert [note.message for note in app._notifications] == ["[bold]gone[/]"]  # pyright: ignore[reportPrivateUsage]

    asyncio.run(walked())


@pytest.mark.cases(1)
@pytest.mark.parametrize(("keys", "answer"), [(["a", "enter"], "a"), (["space", "enter"], None), (["a", "escape"], None)])
def test_a_question_gives_back_a_line_or_nothing(keys: list[str], answer: str | None) -> None:
    """Blanks alone and Escape are no answer."""

    async def walked() -> list[str | None]:
        given: list[str | None] = []
        app = _Parts()
        async with app.run_test() as pilot:
            app.push_screen(Question("\x1b[2J [b]what[/]?"), given.append)
            await pilot.pause()
            await pilot.press(*keys)
            await pilot.pause()
        return given

    assert asyncio.run(walked()) == [answer]
