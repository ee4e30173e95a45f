"""Widgets of the browser: a list that is read page by page, a pane of lines, a question, and the help.

The list and the pane draw only the visible lines.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Generic, TypeVar

from rich.style import Style
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input, Static

from ctxmgr.cli.browse.lines import Line, strip
from ctxmgr.cli.views.layout import Span
from ctxmgr.cli.views.safe_text import safe
from ctxmgr.errors import CtxmgrError

_T = TypeVar("_T")

PAGE = 100
"""Number of rows to read at a time."""

_MAX_PAGES = 30
"""Maximum number of pages in memory."""

_CURSOR = Style(reverse=True)


class PagedList(ScrollView, Generic[_T], can_focus=True):
    """A list of any length with a cursor. Rows are read when they become visible, the last requested page first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown,space", "page(1)", "Page down", show=False),
        Binding("home,g", "go(0)", "First", show=False),
        Binding("end,G", "go(-1)", "Last", show=False),
        Binding("enter", "choose", "Open", show=True),
    ]
    DEFAULT_CSS = "PagedList { height: 1fr; overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; }"

    class Moved(Message):
        """The cursor is on another row, or the row under it has been read."""

    class Chosen(Message):
        """The user has chosen a row with Enter or a click."""

    def __init__(
        self,
        fetch: Callable[[int, int], Awaitable[tuple[list[_T], int]]],
        draw: Callable[[_T, _T | None, int], Line],
        *,
        empty: str,
    ) -> None:
        """Create the list.

        Args:
            fetch: takes (offset, limit); returns the rows, and the total number of rows.
            draw: takes (row, row before it or None, width); returns the row as a line.
            empty: text to show if there are no rows.
        """
        super().__init__()
        self.total: int | None = None
        self.cursor = 0
        self._fetch = fetch
        self._draw = draw
        self._empty = empty
        self._pages: dict[int, list[_T]] = {}
        self._stale: set[int] = set()
        self._wanted: list[int] = []
        self._reading = False
        self._to_end = False

    def on_mount(self) -> None:
        """Read the first page."""
        self._want(0)

    def row(self, index: int) -> _T | None:
        """Return a row, or None if it is not loaded or does not exist."""
        page = self._pages.get(index // PAGE, []) if index >= 0 else []
        return page[index % PAGE] if index % PAGE < len(page) else None

    @property
    def current_row(self) -> _T | None:
        """The row under the cursor, if it is loaded."""
        return self.row(self.cursor)

    def renew(self, *, to_end: bool = False) -> None:
        """Read the visible rows again. With ``to_end``, a cursor on the last row moves to the new last row."""
        self._to_end = to_end and self.total is not None and self.cursor >= self.total - 1
        self._stale = set(self._pages)
        self._want(max((self.total or 0) - 1, 0) // PAGE)
        self.refresh()

    def replace(self, offset: int, rows: list[_T]) -> None:
        """Replace loaded rows."""
        if offset // PAGE in self._pages:
            self._pages[offset // PAGE] = rows
            self.refresh()
            self.post_message(self.Moved())

    def go_to(self, index: int) -> None:
        """Move the cursor to a row and make the row visible."""
        if self.total is not None:
            index = max(min(index, self.total - 1), 0)
        self.cursor = index
        height = max(self.size.height, 1)
        if not self.scroll_offset.y <= index < self.scroll_offset.y + height:
            self.scroll_to(y=max(self._find_top(index, height), 0), animate=False, force=True, immediate=True)
        self.refresh()
        self.post_message(self.Moved())

    def _find_top(self, index: int, height: int) -> int:
        """Return the first visible line for an invisible row: scroll by one line after a single step, else centre the row."""
        top = self.scroll_offset.y
        if index == top + height:
            return top + 1
        return index if index == top - 1 else index - height // 2

    def action_move(self, by: int) -> None:
        """Move the cursor by a number of rows."""
        self.go_to(self.cursor + by)

    def action_page(self, by: int) -> None:
        """Move the cursor by a page."""
        self.go_to(self.cursor + by * max(self.size.height - 1, 1))

    def action_go(self, index: int) -> None:
        """Move the cursor to the first row (0) or the last (-1)."""
        self.go_to(index if index >= 0 else max((self.total or 1) - 1, 0))

    def action_choose(self) -> None:
        """Choose the row under the cursor."""
        if self.current_row is not None:
            self.post_message(self.Chosen())

    @on(Click)
    def _handle_click(self, event: Click) -> None:
        at = self.scroll_offset.y + event.y
        if self.total is None or at >= self.total:
            return
        # A second click on a row opens it, like Enter.
        again = at == self.cursor
        self.go_to(at)
        if again:
            self.action_choose()

    @on(Resize)
    def _handle_resize(self) -> None:
        self._measure()
        self.go_to(self.cursor)

    def _measure(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, self.total or 0)

    def render_line(self, y: int) -> Strip:
        """Return one line of the screen, and request its row if that is not loaded."""
        width = self.scrollable_content_region.width
        index = self.scroll_offset.y + y
        if self.total is None or index >= self.total:
            text = "" if y else "Reading…" if self.total is None else self._empty if self.total == 0 else ""
            return strip([Span(text, "dim")], width, under=self.rich_style)
        if index // PAGE not in self._pages or index // PAGE in self._stale:
            self.call_later(self._want, index // PAGE)  # not now, because drawing must start no work
        row = self.row(index)
        here = index == self.cursor
        mark = Span("›" if here else " ", "strong")
        line = [mark, Span("…", "dim")] if row is None else [mark, *self._draw(row, self.row(index - 1), width - 1)]
        under = self.rich_style + _CURSOR if here and self.has_focus else self.rich_style
        return strip(line, width, under=under)

    def _want(self, page: int) -> None:
        if page in self._wanted:
            self._wanted.remove(page)
        self._wanted.append(page)
        if not self._reading:
            self._reading = True
            self.run_worker(self._read())

    async def _read(self) -> None:
        """Read the requested pages, the last request first. Skip pages that are no longer visible."""
        try:
            while self._wanted:
                page = self._wanted.pop()
                if self._wanted and not self._in_sight(page) and page not in self._stale:
                    continue
                rows, total = await self._fetch(page * PAGE, PAGE)
                self._take(page, rows, total)
        except CtxmgrError as error:
            self.app.notify(f"{error.message}", severity="error", markup=False)
        finally:
            self._reading = False

    def _in_sight(self, page: int) -> bool:
        top = self.scroll_offset.y
        return top // PAGE <= page <= (top + self.size.height) // PAGE

    def _take(self, page: int, rows: list[_T], total: int) -> None:
        self._pages.pop(page, None)  # moves the page to the end: the order of the dictionary is the order of reading
        self._pages[page] = rows
        self._stale.discard(page)
        for old in [each for each in self._pages if not self._in_sight(each)][: max(len(self._pages) - _MAX_PAGES, 0)]:
            del self._pages[old]
        if total != self.total:
            self.total = total
            self._measure()
            if self.cursor >= total or self._to_end:
                self._to_end = False
                self.go_to(total - 1)
        self.refresh()
        self.post_message(self.Moved())


class LinesPane(ScrollView, can_focus=True):
    """Scrollable lines in memory, drawn again if the width changes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", "Up", show=False),
        Binding("down,j", "scroll_down", "Down", show=False),
        Binding("pageup", "page_up", "Page up", show=False),
        Binding("pagedown,space", "page_down", "Page down", show=False),
        Binding("home,g", "scroll_home", "Top", show=False),
        Binding("end,G", "scroll_end", "Bottom", show=False),
    ]
    DEFAULT_CSS = "LinesPane { height: 1fr; overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; }"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._lines: list[Line] = [[Span("Reading…", "dim")]]
        self._draw: Callable[[int], Awaitable[list[Line]]] | None = None
        self._width = 0
        self.ready = False
        """Whether the latest content is drawn."""

    def on_mount(self) -> None:
        """Reserve room for the first line."""
        self.virtual_size = Size(1, len(self._lines))

    def show(self, draw: Callable[[int], Awaitable[list[Line]]]) -> None:
        """Show the lines that ``draw`` returns for the width of the pane."""
        self._draw = draw
        self._width = 0
        self.ready = False
        self._redraw(top=True)

    @on(Resize)
    def _handle_resize(self) -> None:
        self._redraw(top=False)

    def _redraw(self, *, top: bool) -> None:
        width = self.scrollable_content_region.width
        # Before the first layout there is no width. `_handle_resize` calls this again with one.
        if self._draw is not None and width > 1 and width != self._width:
            self._width = width
            self.ready = False
            # Exclusive, because a drawing for an older width must not finish last.
            self.run_worker(self._draw_lines(self._draw, width, top=top), exclusive=True)

    async def _draw_lines(self, draw: Callable[[int], Awaitable[list[Line]]], width: int, *, top: bool) -> None:
        try:
            self._lines = await draw(width - 1)
        except CtxmgrError as error:
            self._lines = [[Span(error.message, "error")]]
        self.virtual_size = Size(width, len(self._lines))
        if top:
            self.scroll_to(y=0, animate=False)
        self.ready = True
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return one line of the screen."""
        at = self.scroll_offset.y + y
        line = self._lines[at] if at < len(self._lines) else []
        return strip([Span(" "), *line], self.scrollable_content_region.width, under=self.rich_style)


KEYS = """\
↑ ↓  j k         move             PgUp PgDn   a page
Home End  g G    first, last      Enter       open
Esc              back             q           leave
Tab              to the pane and back
/                search (from the sessions: in all of them)
t                to where the next loop or stall begins
f                follow a running session, or stop that
p                the pane: half, whole, none
← →              the entry before, the entry after
a                an entry: all of a long value, or less
n                note on an entry
y                copy the prompt for the agent
?                this help

● ok   ✗ error   ○ open   ⊘ denied   ◌ interrupted
In a timeline each agent has a column. A number is the round
of a loop that begins there; ┃ is the rest of that round."""


class Question(ModalScreen[str | None]):
    """Asks for one line. The result is None after Escape or an empty answer."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel")]
    DEFAULT_CSS = """
    Question { align: center bottom; background: transparent; }
    Question Vertical { height: auto; max-width: 100; background: $surface; border: round $foreground; }
    Question Input { border: none; height: 1; padding: 0; }
    """

    def __init__(self, title: str, placeholder: str = "") -> None:
        super().__init__()
        self._title, self._placeholder = safe(title), placeholder

    def compose(self) -> ComposeResult:
        """Lay out the question and its input line."""
        with Vertical():
            yield Static(Content(self._title))
            yield Input(placeholder=self._placeholder)

    @on(Input.Submitted)
    def _handle_answer(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)


class Help(ModalScreen[None]):
    """The keys and the signs."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q,enter", "dismiss(None)", "Close")]
    DEFAULT_CSS = """
    Help { align: center middle; background: transparent; }
    Help Static { width: auto; height: auto; max-width: 100%; background: $surface; border: round $foreground; padding: 0 1; }
    """

    def compose(self) -> ComposeResult:
        """Lay out the text."""
        yield Static(Content(KEYS))
