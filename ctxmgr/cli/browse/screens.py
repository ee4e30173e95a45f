"""The screens: sessions, search hits, the timeline of a session with its findings, an entry."""

from __future__ import annotations

import asyncio
import time
from typing import Any, ClassVar, Generic, TypeVar, cast

from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.events import Resize
from textual.geometry import Size
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Footer, Static

from ctxmgr.cli.browse import lines as screen_lines
from ctxmgr.cli.browse.history import History, Judgement
from ctxmgr.cli.browse.lines import Line, Timeline
from ctxmgr.cli.browse.widgets import PAGE, Help, LinesPane, PagedList, Question
from ctxmgr.cli.views.layout import Span, plural
from ctxmgr.cli.views.safe_text import safe
from ctxmgr.errors import CtxmgrError
from ctxmgr.types.query import SearchHit
from ctxmgr.types.view import EntryView, SessionView


class Browser(App[CtxmgrError]):
    """The list of sessions, the timeline of a session, and an entry. Exits with the error if the history can't be opened.

    Args:
        location: of the store or the log; None to find it.
        session: the session to start with; None for the list of sessions, or for the only session.
    """

    # Textual's palette offers only commands of the library.
    ENABLE_COMMAND_PALETTE = False
    TITLE = "ctxmgr"
    CSS = "Screen { background: $background; }"
    # Textual's own answer to it only names the key that quits, and a modal screen gives none.
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "interrupt", show=False, priority=True)]

    def __init__(self, location: str | None, session: str | None) -> None:
        super().__init__()
        self.history = History(location)
        self.fault: Exception | None = None
        self._interrupted = 0.0  # the time of the last Ctrl-C
        self._session = session

    def action_interrupt(self) -> None:
        """Copy the selected text, if there is any. Else quit at the second time in a row."""
        if (selected := self.screen.get_selected_text()) is not None:
            self.copy_to_clipboard(selected)
        elif time.time() - self._interrupted < 3:
            self.exit()
        else:
            self._interrupted = time.time()
            self.notify("Ctrl+C again quits, as q does", timeout=3)

    def on_mount(self) -> None:
        """Show a message and open the history."""
        self.push_screen(waiting := MessageScreen())
        self._open(waiting)

    @work
    async def _open(self, waiting: MessageScreen) -> None:
        try:
            await self.history.open(lambda done, total: self.call_from_thread(waiting.progress, done, total))
            _, total = await self.history.sessions(0, 1, judge=False)
            found = await self.history.session(self._session) if self._session is not None or total == 1 else None
        except CtxmgrError as error:
            self.exit(error)
            return
        await self.switch_screen(SessionsScreen())
        if found is not None:
            self.push_screen(TimelineScreen(found.session))
        # Markup is off here and wherever text is shown, because recorded text must not style the screen.
        for warning in self.history.warnings:
            self.notify(safe(warning), severity="warning", markup=False)

    def _handle_exception(self, error: Exception) -> None:
        """End the app and keep the error for `browse`. Textual would show local values, which may hold recorded text."""
        self.fault = self.fault or error
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        # Textual would print its own traceback here, with local values. `browse` raises the error instead.
        self._close_messages_no_wait()

    def on_unmount(self) -> None:
        """End the threads."""
        self.history.close()


def browse(location: str | None, session: str | None) -> CtxmgrError | None:
    """Run the browser until the user leaves. Return the error if the history could not be opened.

    Raises:
        Exception: a fault of the program.
    """
    app = Browser(location, session)
    error = app.run()
    if app.fault is not None:
        raise getattr(app.fault, "error", app.fault)
    return error


_T = TypeVar("_T")

_WIDE = 110
"""Minimum screen width in cells for a pane beside the timeline. On narrower screens, the pane is below it."""

_REFRESH_SECONDS = 2.0
"""Seconds between two looks for new records of a followed session."""


class Head(Widget):
    """A few lines at the top of a screen."""

    DEFAULT_CSS = "Head { height: 1; }"

    def __init__(self, lines: int = 1) -> None:
        super().__init__()
        self._lines: list[Line] = []
        self.styles.height = lines

    def show(self, *lines: Line) -> None:
        """Show these lines."""
        self._lines = list(lines)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return one line of the screen."""
        line = self._lines[y] if y < len(self._lines) else []
        return screen_lines.strip(line, self.size.width, under=self.rich_style)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """Return the whole width."""
        return container.width


class BrowseScreen(Screen[None]):
    """What all screens share: the history, going back, search, help."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace", "back", "Back", show=False),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q", "app.quit", "Quit"),
    ]

    def __init__(self, within: str | None = None) -> None:
        """Create the screen. ``within`` is the session that it shows, None for several sessions."""
        super().__init__()
        self.within = within
        self._looking = False

    @property
    def ready(self) -> bool:
        """Whether the initial content of the screen is read and drawn."""
        return True

    @property
    def history(self) -> History:
        """The history that is browsed."""
        return cast("Browser", self.app).history

    def action_back(self) -> None:
        """Go back to the previous screen, but never leave the first one."""
        if len(self.app.screen_stack) > 2:  # the stack also holds Textual's own empty screen
            self.app.pop_screen()

    def action_help(self) -> None:
        """Show the keys."""
        self.app.push_screen(Help())

    @work
    async def action_search(self) -> None:
        """Ask for a text and show the matches."""
        where = "in all sessions" if self.within is None else "in this session"
        query = await self.app.push_screen_wait(Question(f"Search {where}", "any text, taken literally"))
        if query is not None:
            self.app.push_screen(HitsScreen(query, self.within))

    async def look(self) -> None:
        """Show new records."""

    def look_every(self, seconds: float) -> None:
        """Call `look` periodically in the background, but never twice at the same time."""
        self.set_interval(seconds, self._begin_to_look)

    def _begin_to_look(self) -> None:
        if not self._looking:
            self._looking = True
            self.run_worker(self._look())

    async def _look(self) -> None:
        try:
            await self.look()
        finally:
            self._looking = False

    def tell(self, text: str, *, wrong: bool = False) -> None:
        """Show a notification for a few seconds."""
        self.app.notify(safe(text), severity="error" if wrong else "information", markup=False, timeout=6)


class ListScreen(BrowseScreen, Generic[_T]):
    """A screen with one list and a line above it."""

    def __init__(self, within: str | None = None) -> None:
        super().__init__(within)
        self.head = Head()
        self.rows = self.make_list()

    def make_list(self) -> PagedList[_T]:
        """Return the list of this screen."""
        raise NotImplementedError

    @property
    def ready(self) -> bool:
        """Whether the first rows are read."""
        return self.rows.total is not None

    def compose(self) -> ComposeResult:
        """Lay out the head, the list and the keys."""
        yield self.head
        yield self.rows
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Focus the list."""
        self.rows.focus()


class SessionsScreen(ListScreen[SessionView]):
    """All sessions, latest activity first."""

    def make_list(self) -> PagedList[SessionView]:
        """Return the list of sessions."""
        return PagedList(
            self._read, lambda row, _before, width: screen_lines.session_row(row, width),
            empty="No sessions yet: 'ctxmgr import' reads the logs on this machine.",
        )  # fmt: skip

    def on_mount(self) -> None:
        """Look for new sessions periodically."""
        super().on_mount()
        self.look_every(_REFRESH_SECONDS * 2)

    async def _read(self, offset: int, limit: int) -> tuple[list[SessionView], int]:
        found, total = await self.history.sessions(offset, limit, judge=False)
        self.head.show([Span(f" {plural(total, 'session')}", "strong")])
        self._judge(offset, len(found))
        return found, total

    @work(group="judge")
    async def _judge(self, offset: int, count: int) -> None:
        """Add the verdicts a few sessions at a time, in the order of the list."""
        rows: list[SessionView] = []
        # Judging one long session takes seconds. In small groups, the sessions above it get their verdicts first.
        for start in range(offset, offset + count, 5):
            try:
                found, _ = await self.history.sessions(start, min(5, offset + count - start), judge=True)
            except CtxmgrError:
                return
            rows += found
            shown = [self.rows.row(place) for place in range(offset + len(rows), offset + count)]
            self.rows.replace(offset, [*rows, *(row for row in shown if row is not None)])

    async def look(self) -> None:
        """Show new sessions."""
        # A screen below another one is invisible. It catches up when it is on top again.
        if self.app.screen is self and await _catch_up(self.history, None):
            self.rows.renew()

    @on(PagedList.Chosen)
    def _open(self) -> None:
        if self.rows.current_row is not None:
            self.app.push_screen(TimelineScreen(self.rows.current_row.session))


class HitsScreen(ListScreen[SearchHit]):
    """The hits of a search."""

    def __init__(self, query: str, session: str | None) -> None:
        self.query_text = query
        super().__init__(session)

    def make_list(self) -> PagedList[SearchHit]:
        """Return the list of hits."""
        several = self.within is None
        return PagedList(
            self._read, lambda row, _before, width: screen_lines.hit_row(row, self.query_text, width, several=several),
            empty="No match: the text is taken literally. Esc goes back.",
        )  # fmt: skip

    async def _read(self, offset: int, limit: int) -> tuple[list[SearchHit], int]:
        found, total = await self.history.search(self.query_text, self.within, offset, limit)
        self.head.show([Span(f" {plural(total, 'row')} with ", "strong"), Span(safe(self.query_text, limit=50), "match")])
        return found, total

    @on(PagedList.Chosen)
    def _open(self) -> None:
        hit = self.rows.current_row
        if hit is not None and hit.row.kind == "entry":
            self.app.push_screen(TimelineScreen(hit.row.session, hit.row.index))


class TimelineScreen(BrowseScreen):
    """A session: its entries with a column per agent, and a pane with the findings and the prompt."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "switch", "Pane", show=False),
        Binding("p", "pane", "Pane size", show=False),
        Binding("n", "note", "Note"),
        Binding("y", "copy", "Copy prompt"),
        Binding("t", "trouble", "Trouble"),
        Binding("f", "follow", "Follow"),
    ]
    DEFAULT_CSS = """
    TimelineScreen #body { height: 1fr; layout: vertical; }
    TimelineScreen #pane { height: auto; max-height: 50%; border-top: solid $foreground 50%; }
    TimelineScreen #pane:focus { border-top: heavy $foreground; }
    TimelineScreen.wide #body { layout: horizontal; }
    TimelineScreen.wide #pane { height: 1fr; max-height: 100%; width: 45%; }
    TimelineScreen.wide #pane { border-top: none; border-left: solid $foreground 50%; }
    TimelineScreen.wide #pane:focus { border-left: heavy $foreground; }
    TimelineScreen.whole #body PagedList { display: none; }
    TimelineScreen.whole #pane { width: 1fr; height: 1fr; max-height: 100%; }
    TimelineScreen.none #pane { display: none; }
    """

    def __init__(self, session: str, index: int | None = None) -> None:
        super().__init__(session)
        self.session = session
        self._index = index
        self._view: SessionView | None = None
        self._judged: Judgement | None = None
        self._timeline = Timeline()
        self._follows = False
        self._is_judging = self._again = False
        self.head = Head(3)
        self.rows: PagedList[EntryView] = PagedList(self._read, self._timeline.row, empty="No entry is recorded here yet.")
        self.pane = LinesPane(id="pane")

    @property
    def ready(self) -> bool:
        """Whether the session is read, judged and drawn."""
        return self._judged is not None and self.rows.total is not None and self.pane.ready

    def compose(self) -> ComposeResult:
        """Lay out the head, the timeline, the pane and the keys."""
        yield self.head
        with Container(id="body"):
            yield self.rows
            yield self.pane
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Read and judge the session, and follow it if it is running."""
        self.rows.focus()
        self._start()
        self.look_every(_REFRESH_SECONDS)

    @on(Resize)
    def _handle_resize(self, event: Resize) -> None:
        self.set_class(event.size.width >= _WIDE, "wide")
        self._draw_head()

    @work
    async def _start(self) -> None:
        await self._read_session()
        if self._view is not None:
            self._follows = self._view.live
            if self._index is not None:
                self.rows.go_to(self._index)
        self._draw_head()
        self._judge()

    async def _read_session(self) -> None:
        try:
            self._view = await self.history.session(self.session)
        except CtxmgrError as error:
            self.tell(error.message, wrong=True)
            return
        if self._view is not None:
            self._timeline.agents[:] = self._view.agents
            self._timeline.total = self._view.entries

    @work(group="judge")
    async def _judge(self) -> None:
        """Judge the session. Calls during a run cause only one more run."""
        self._again = True
        if self._is_judging:
            return
        self._is_judging = True
        try:
            while self._again:
                self._again = False
                await self._judge_once()
        finally:
            self._is_judging = False

    async def _judge_once(self) -> None:
        try:
            judged = await self.history.judge(self.session)
        except CtxmgrError as error:
            self.tell(error.message, wrong=True)
            return
        self._judged = judged
        self._timeline.take(judged)
        self._draw_head()
        self.rows.refresh()
        self.pane.show(lambda width: asyncio.to_thread(screen_lines.judged_lines, judged, width))

    async def _read(self, offset: int, limit: int) -> tuple[list[EntryView], int]:
        return await self.history.entries(self.session, offset, limit)

    def _draw_head(self) -> None:
        if self._view is None:
            return
        first, second = screen_lines.session_head(
            self._view, self._judged, self.rows.current_row, self.size.width, follows=self._follows
        )
        self.head.show(first, second, self._timeline.overview(self.rows.cursor, self.size.width))

    @on(PagedList.Moved)
    def _handle_move(self) -> None:
        self._draw_head()

    @on(PagedList.Chosen)
    def _open(self) -> None:
        self.app.push_screen(EntryScreen(self.session, self.rows.cursor, self._timeline.total), self._came_back)

    def _came_back(self, _nothing: Any) -> None:
        self.rows.refresh()

    async def look(self) -> None:
        """Show new records if the session is followed."""
        if not self._follows or not await _catch_up(self.history, self.session):
            return
        await self._read_session()
        self.rows.renew(to_end=True)
        self._draw_head()
        self._judge()

    def action_follow(self) -> None:
        """Follow new records, or stop following them."""
        self._follows = not self._follows
        self.tell("Following: new entries appear as they are recorded." if self._follows else "Not following any more.")
        if self._follows:
            self.rows.action_go(-1)
        self._draw_head()

    def action_trouble(self) -> None:
        """Move to the beginning of the next finding."""
        place = self._timeline.find_next_trouble(self.rows.cursor)
        if place is None:
            self.tell("The session is still being judged." if self._judged is None else "Nothing was found wrong here.")
        else:
            self.rows.go_to(place)

    def action_switch(self) -> None:
        """Move the focus between the pane and the timeline."""
        if self.rows.has_focus and not self.has_class("none"):
            self.pane.focus()
        elif not self.has_class("whole"):
            self.rows.focus()

    def action_pane(self) -> None:
        """Switch the pane between half of the screen, all of it, and hidden."""
        states = ("", "whole", "none")
        now = next((state for state in states[1:] if self.has_class(state)), "")
        after = states[(states.index(now) + 1) % len(states)]
        self.remove_class("whole", "none")
        if after:
            self.add_class(after)
        (self.pane if after == "whole" else self.rows).focus()

    def action_copy(self) -> None:
        """Copy the prompt for the agent to the clipboard of the terminal."""
        if self._judged is None:
            self.tell("The session is still being judged.")
        elif self._judged.continuation is None:
            self.tell(self._judged.reason or "Nothing is wrong here, so there is no prompt.")
        else:
            # Uses an escape sequence (OSC 52), which also works over SSH. Terminals without support ignore it.
            self.app.copy_to_clipboard(safe(self._judged.continuation.prompt, keep_lines=True))
            self.tell(f"The prompt for {self._judged.continuation.target} is copied.")

    @work
    async def action_note(self) -> None:
        """Ask for a note on the entry under the cursor, and record it."""
        if self.rows.current_row is not None and await take_note(self, self.session, self.rows.current_row.index):
            self.rows.renew()


class EntryScreen(BrowseScreen):
    """One entry in full, with its messages."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "turn(-1)", "Before"),
        Binding("right", "turn(1)", "After"),
        Binding("a", "all", "All of it"),
        Binding("n", "note", "Note"),
    ]

    def __init__(self, session: str, index: int, total: int) -> None:
        super().__init__(session)
        self.session = session
        self._index, self._total, self._full = index, total, False
        self.pane = LinesPane()

    @property
    def ready(self) -> bool:
        """Whether the entry is read and drawn."""
        return self.pane.ready

    def compose(self) -> ComposeResult:
        """Lay out the entry and the keys."""
        yield self.pane
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Show the entry."""
        self.pane.focus()
        self._show()

    def _show(self) -> None:
        async def draw_entry(width: int) -> list[Line]:
            entry, messages = await self.history.entry(self.session, self._index)
            return await asyncio.to_thread(screen_lines.entry_lines, entry, messages, width, full=self._full)

        self.pane.show(draw_entry)

    def action_turn(self, by: int) -> None:
        """Show the entry before or after this one."""
        # The total may be older than this entry, so moving back is always allowed.
        if 0 <= self._index + by < max(self._total, self._index + 1):
            self._index += by
            self._full = False
            self._show()

    def action_all(self) -> None:
        """Show long values completely, or only their beginnings again."""
        self._full = not self._full
        self._show()

    @work
    async def action_note(self) -> None:
        """Ask for a note on this entry, and record it."""
        if await take_note(self, self.session, self._index):
            self._show()


class MessageScreen(Screen[None]):
    """One sentence, shown while the history opens."""

    DEFAULT_CSS = "MessageScreen { align: center middle; } MessageScreen Static { width: auto; }"

    def compose(self) -> ComposeResult:
        """Lay out the sentence."""
        self._text = Static(Content("Opening the history…"))
        yield self._text

    def progress(self, done: int, total: int) -> None:
        """Show the progress."""
        self._text.update(Content(f"Reading the log: {done * 100 // max(total, 1)} %"))


async def take_note(screen: BrowseScreen, session: str, index: int) -> bool:
    """Ask for a note on an entry and record it. Return whether the note was recorded."""
    text = await screen.app.push_screen_wait(Question(f"Note on @{index}", "what should others know about this entry?"))
    if text is None:
        return False
    try:
        await screen.history.add_note(session, index, text)
    except CtxmgrError as error:
        screen.tell(f"{error.message}. {error.hint}" if error.hint else error.message, wrong=True)
        return False
    screen.tell(f"The note on @{index} is recorded.")
    return True


async def _catch_up(history: History, session: str | None) -> bool:
    """Read new records. A temporary failure, e.g. while a log is replaced, counts as no change; the next look tries again."""
    try:
        return await history.catch_up(session)
    except (CtxmgrError, OSError):
        return False


__all__ = ["PAGE", "EntryScreen", "HitsScreen", "MessageScreen", "SessionsScreen", "TimelineScreen"]
