"""``ctxmgr browse``: what its screens show, what its keys do, in a long history, a hostile one and a growing one."""

from __future__ import annotations

import asyncio
import builtins
import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pyte
import pytest
from textual.pilot import Pilot

from ctxmgr.cli.browse.screens import Browser, EntryScreen, HitsScreen, SessionsScreen, TimelineScreen
from ctxmgr.errors import CtxmgrError
from ctxmgr.log.ids import format_time
from ctxmgr.types.query import ListNotesRequest
from ctxmgr.workspace import Workspace
from tests import builders as b
from tests.cli.browse.screen_texts import FOLDER, SCREENS, draw, settled, shown
from tests.cli.console import lines, make_history, run
from tests.readme import RUN

HOSTILE = "\x1b[31mred\x1b]52;c;eA==\x07 [bold]loud[/] \u202eabc\u200b\x9b2J \ud800 \nsecond"
Visit = Callable[[Pilot[CtxmgrError], Browser], Awaitable[None]]


def visit(location: Path, walk: Visit, *, session: str | None = None, size: tuple[int, int] = (80, 24)) -> Browser:
    """Open a history in a terminal of this size and walk through it."""

    async def walked() -> Browser:
        app = Browser(str(location), session)
        async with app.run_test(size=size, notifications=True) as pilot:
            await settled(pilot)
            await walk(pilot, app)
        return app

    return asyncio.run(walked())


async def press(pilot: Pilot[CtxmgrError], *keys: str) -> None:
    """Press keys, and wait after each until everything is drawn."""
    for key in keys:
        await pilot.press(key)
        await settled(pilot)


async def until(pilot: Pilot[CtxmgrError], holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    for _ in range(1000):
        if holds():
            return
        await pilot.pause(0.01)
    raise AssertionError("it never came\n" + shown(pilot.app))  # pyright: ignore[reportArgumentType]


def timeline(app: Browser) -> TimelineScreen:
    """Return the screen, which is a timeline."""
    assert isinstance(app.screen, TimelineScreen)
    return app.screen


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", SCREENS)
def test_the_screens_show_what_is_kept(name: str) -> None:
    """Each screen of the demo run looks as in its file."""
    assert draw(name) == (FOLDER / f"{name}.txt").read_text("utf-8")


def test_no_screen_is_left_over() -> None:
    """Every file belongs to a screen."""
    assert {path.stem for path in FOLDER.iterdir()} == set(SCREENS)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (60, 15), (20, 8)])
def test_every_line_fits_the_terminal(size: tuple[int, int], tmp_path: Path) -> None:
    """No line is wider than the terminal, however small, and every screen of them can be drawn."""
    place = make_history(tmp_path / "h.db")

    async def walk(pilot: Pilot[CtxmgrError], app: Browser) -> None:
        for keys in (("enter",), ("p",), ("p",), ("p",), ("enter",), ("escape",), ("question_mark",)):
            await press(pilot, *keys)
            assert all(len(line) <= size[0] for line in shown(app).splitlines())

    visit(place, walk, size=size)


def test_sessions_lead_to_a_timeline_and_an_entry_and_back(tmp_path: Path) -> None:
    """Enter goes in, Escape out; the verdicts of the sessions come by themselves."""
    place = make_history(tmp_path / "h.db")

    async def walk(pilot: Pilot[CtxmgrError], app: Browser) -> None:
        await until(pilot, lambda: "✗ loop" in shown(app) and "✗ hung" in shown(app))
        await press(pilot, "j", "enter")
        assert timeline(app).session == "looping"
        await press(pilot, "t")
        assert timeline(app).rows.cursor == 1
        await press(pilot, "enter")
        assert isinstance(app.screen, EntryScreen)
        assert "looping@1" in shown(app)
        await press(pilot, "right")
        assert "looping@2" in shown(app)
        await press(pilot, "left", "left", "left")
        assert "looping@0" in shown(app)
        await press(pilot, "escape", "escape", "escape", "escape")
        assert isinstance(app.screen, SessionsScreen)

    visit(place, walk)


@pytest.mark.slow
def test_a_session_may_be_named(tmp_path: Path) -> None:
    """The named session is shown at once; an unknown one ends with its error."""
    place = make_history(tmp_path / "h.db")

    async def walk(_pilot: Pilot[CtxmgrError], app: Browser) -> None:
        assert timeline(app).session == "hung"

    visit(place, walk, session="hung")

    async def unknown() -> CtxmgrError | None:
        app = Browser(str(place), "nosuch")
        async with app.run_test() as pilot:
            await pilot.pause(1)
        return app.return_value

    error = asyncio.run(unknown())
    assert error is not None
    assert error.kind == "notFound"


@pytest.mark.slow
def test_a_search_leads_to_the_entry(tmp_path: Path) -> None:
    """A slash asks for a text; from the sessions it is sought in all of them, and Enter leads to the entry."""
    place = make_history(tmp_path / "h.db")

    async def walk(pilot: Pilot[CtxmgrError], app: Browser) -> None:
        await press(pilot, "slash", *"done", "enter")
        await until(pilot, lambda: isinstance(app.screen, HitsScreen) and app.screen.rows.total == 1)
        await press(pilot, "enter")
        await until(pilot, lambda: isinstance(app.screen, TimelineScreen) and app.screen.rows.cursor == 2)
        assert timeline(app).session == "healthy"
        await press(pilot, "slash", *"same", "enter")
        await until(pilot, lambda: isinstance(app.screen, HitsScreen) and app.screen.rows.total == 0)
        assert "No match" in shown(app)

    visit(place, walk)


@pytest.mark.slow
def test_a_note_is_recorded(tmp_path: Path) -> None:
    """A note is taken on the entry under the cursor and shown with it; nothing else is written."""
    place = make_history(tmp_path / "h.db")

    async def walk(pilot: Pilot[CtxmgrError], app: Browser) -> None:
        await press(pilot, "down", "n", *"odd one", "enter")
        await until(pilot, lambda: "✎1" in shown(app))
        await press(pilot, "n", "escape")

    visit(place, walk, session="looping")
    with Workspace.open(str(place), readonly=True) as workspace:
        notes = workspace.list_notes(ListNotesRequest(session="looping")).notes
    assert [(note.content, note.indexes, note.author) for note in notes] == [("odd one", [1], "user")]


@pytest.mark.slow
def test_a_note_beside_another_agents_log_says_why_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another agent's log is only read: the refusal and the way around it are told."""
    monkeypatch.chdir(tmp_path)
    log = Path("run.jsonl")  # where the refusal breaks into lines would depend on a longer name
    log.write_bytes(RUN.read_bytes())

    async def walk(pilot: Pilot[CtxmgrError], app: Browser) -> None:
        await press(pilot, "n", *"odd", "enter")
        await until(pilot, lambda: "which ctxmgr only reads" in shown(app))

    visit(log, walk)
    assert log.read_bytes() == RUN.read_bytes()


@pytest.mark.slow
def test_the_prompt_is_copied(tmp_path: Path) -> None:
    """`y` gives the terminal the same text that `recover --prompt` prints; a healthy session has none."""
    log = tmp_path / "run.jsonl"
    log.write_bytes(RUN.read_bytes())

    async def walk(pilot: Pilot[CtxmgrError], app: Browser) -> None:
        await press(pilot, "y")
        assert "is copied" in shown(app)

    copied = visit(log, walk).clipboard
    assert copied.strip() == run("recover", str(log), "--plan", "--prompt").out.strip()

    async def healthy(pilot: Pilot[CtxmgrError], app: Browser) -> None:
        await press(pilot, "y", "t")
        await until(pilot, lambda: "no prompt" in shown(app) and "Nothing was found wrong" in shown(app))

    assert visit(make_history(tmp_path / "h.db"), healthy, session="healthy").clipboard == ""


@pytest.mark.slow
def test_a_running_session_is_followed(tmp_path: Path) -> None:
    """New entries appear, the cursor stays at the end, and the verdict changes with them."""
    log = tmp_path / "run.jsonl"
    rounds = b.steps("s", ["Read:a -> b", *["!Bash:make -> boom"] * 5])
    log.write_text(lines(*rounds[:4]), "utf-8")

    async def walk(pilot: Pilot[CtxmgrError], app: Browser) -> None:
        await press(pilot, "f")
        await until(pilot, lambda: timeline(app).rows.cursor == 1)
        await pilot.pause(2.5)
        with log.open("a", encoding="utf-8") as stream:
            stream.write(lines(*rounds[4:]))
        await until(pilot, lambda: timeline(app).rows.total == 6 and "✗ loop" in shown(app))
        assert timeline(app).rows.cursor == 5

    visit(log, walk)


def test_a_log_that_is_being_written_is_followed_at_once(tmp_path: Path) -> None:
    """Recent records in a file that was written to lately: nobody has to ask; an old one is only shown."""
    log = tmp_path / "run.jsonl"
    records = b.steps("s", ["Read:a -> b", "Read:c -> d"])
    now = time.time()
    log.write_text(lines(*({**each, "ts": format_time(now - 9 + place)} for place, each in enumerate(records))), "utf-8")

    async def fresh(_pilot: Pilot[CtxmgrError], app: Browser) -> None:
        assert "following" in shown(app)

    visit(log, fresh)

    async def old(_pilot: Pilot[CtxmgrError], app: Browser) -> None:
        assert "following" not in shown(app)

    log.write_text(lines(*records), "utf-8")
    visit(log, old)


@pytest.mark.slow
def test_a_growing_log_of_another_agent_is_followed(tmp_path: Path) -> None:
    """Another agent's log is read anew when it has grown."""
    log = tmp_path / "run.jsonl"
    whole = RUN.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(whole[:40]))

    async def walk(pilot: Pilot[CtxmgrError], app: Browser) -> None:
        before = timeline(app).rows.total
        await press(pilot, "f")
        log.write_bytes(b"".join(whole))
        await until(pilot, lambda: timeline(app).rows.total == 33 and "✗ loop" in shown(app))
        assert before is not None
        assert before < 33

    visit(log, walk)


@pytest.mark.slow
def test_a_judgement_that_takes_long_keeps_nothing_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the detectors work the timeline can be read and walked through."""
    place = make_history(tmp_path / "h.db")
    detect = Workspace.detect

    def slow(workspace: Workspace, request: Any) -> Any:
        time.sleep(3)
        return detect(workspace, request)

    monkeypatch.setattr(Workspace, "detect", slow)

    async def walked() -> None:
        app = Browser(str(place), "looping")
        async with app.run_test(size=(80, 24), notifications=True) as pilot:
            await until(pilot, lambda: isinstance(app.screen, TimelineScreen) and app.screen.rows.total == 5)
            await pilot.press("down", "down")
            await until(pilot, lambda: timeline(app).rows.cursor == 2)
            assert "judging it" in shown(app)
            await pilot.press("y")
            await until(pilot, lambda: "still being judged" in shown(app))
            await pilot.press("enter")
            await until(pilot, lambda: "looping@2" in shown(app))

    asyncio.run(walked())


def test_what_comes_during_a_judgement_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more time is remembered, however often it is asked for meanwhile."""
    place = make_history(tmp_path / "h.db")
    began, go_on, judged = threading.Event(), threading.Event(), list[str | None]()
    detect = Workspace.detect

    def slow(workspace: Workspace, request: Any) -> Any:
        judged.append(request.session)
        began.set()
        go_on.wait(30)
        return detect(workspace, request)

    async def walked() -> None:
        app = Browser(str(place), "looping")
        async with app.run_test(size=(80, 24), notifications=True) as pilot:
            await settled(pilot)
            monkeypatch.setattr(Workspace, "detect", slow)
            for _ in range(4):
                timeline(app)._judge()  # pyright: ignore[reportPrivateUsage]
                await until(pilot, began.is_set)
            go_on.set()
            await until(pilot, lambda: not timeline(app)._is_judging)  # pyright: ignore[reportPrivateUsage]

    asyncio.run(walked())
    assert judged == ["looping"] * 2


@pytest.mark.slow
def test_hostile_content_is_only_shown(tmp_path: Path) -> None:
    """Escapes, markup and characters that turn text around are told by their codes on every screen."""
    records = b.steps("evil", ["Read:a -> b"])
    wild = [
        b.build("session", "evil", b.at(0), process="p", workflow=HOSTILE, meta={"title": HOSTILE}),
        *[{**record, "agent": HOSTILE, "action": HOSTILE, "input": {"command": HOSTILE}} if record["kind"] == "entry"
          else {**record, "status": "error", "output": HOSTILE, "error": {"type": HOSTILE, "message": HOSTILE}}
          for record in records],
        b.event("evil", 3, "message", {"text": HOSTILE}, after=0, agent=HOSTILE, entry=b.entry_id("evil", 0)),
        b.build("note", "evil", b.at(4), id="n", entries=[b.entry_id("evil", 0)], content=HOSTILE, tags=[HOSTILE]),
    ]  # fmt: skip
    place = make_history(tmp_path / "h.db", *wild)

    async def walk(pilot: Pilot[CtxmgrError], app: Browser) -> None:
        async def clean(*keys: str) -> None:
            await press(pilot, *keys)
            text = shown(app)
            assert not [char for char in text if char != "\n" and not char.isprintable()]
            assert "\\x1b" in text
            if "loud" in text:
                assert "[bold]loud[/]" in text

        await clean()
        await clean("enter")
        await clean("end")
        await clean("escape", "slash", *"red", "enter")

    visit(place, walk, session="evil")


def test_a_fault_ends_with_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of the program ends it and is kept; no trace with recorded text is drawn."""
    place = make_history(tmp_path / "h.db")

    def broken(_workspace: Workspace, _request: Any) -> Any:
        recorded = HOSTILE
        raise ZeroDivisionError(recorded)

    monkeypatch.setattr(Workspace, "list", broken)

    async def walked() -> Browser:
        app = Browser(str(place), "looping")
        with pytest.raises(BaseException):  # the pilot tells of the fault  # noqa: B017, PT011
            async with app.run_test() as pilot:
                await until(pilot, lambda: app.fault is not None)
        return app

    app = asyncio.run(walked())
    assert isinstance(getattr(app.fault, "error", app.fault), ZeroDivisionError)
    assert not app._exit_renderables  # pyright: ignore[reportPrivateUsage]


def test_without_the_extra_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Textual is missing the command says in one sentence what to install."""
    imported = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith(("textual", "ctxmgr.cli.browse")):
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    ended = run("browse")

    assert ended.code == 2
    # These tests run in a checkout, of which an index would give another copy.
    assert f"pip install -e '{Path(__file__).parents[3]}[tui]'" in ended.err


def test_without_a_terminal_it_says_so() -> None:
    """In a pipe there is nothing to look at; the page for that is named."""
    ended = run("browse")

    assert ended.code == 2
    assert "needs a terminal" in ended.err
    assert "ctxmgr report" in ended.err


class Terminal:
    """A real terminal of 80x24 with a program in it."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.screen = pyte.Screen(80, 24)
        self.raw = b""
        self._stream = pyte.ByteStream(self.screen)
        self.pid, self._ours = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ.update({"TERM": "xterm", "COLUMNS": "80", "LINES": "24", **environment})
            os.execv(sys.executable, [sys.executable, "-m", "ctxmgr", *arguments])

    def until(self, *texts: str) -> None:
        """Read until all these stand on the screen."""
        end = time.monotonic() + 60
        while not all(text in "\n".join(self.screen.display) for text in texts):
            assert time.monotonic() < end, "\n".join(self.screen.display)
            if select.select([self._ours], [], [], 0.2)[0]:
                part = os.read(self._ours, 1 << 16)
                self.raw += part
                self._stream.feed(part)

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self._ours, keys.encode())

    def ended(self) -> int:
        """Read to the end and return the exit code."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                if select.select([self._ours], [], [], 0.2)[0]:
                    self.raw += os.read(self._ours, 1 << 16)
            except OSError:  # the other side of a terminal is gone: Linux says so instead of an end
                break
        else:
            os.kill(self.pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.mark.slow
@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1", "TERM": "vt100"}], ids=["colour", "monochrome"])
def test_in_a_real_terminal(tmp_path: Path, environment: dict[str, str]) -> None:
    """The program itself runs in a terminal: the loop is seen, the prompt reaches the clipboard by OSC 52, `q` ends it."""
    (tmp_path / "run.jsonl").write_bytes(RUN.read_bytes())
    terminal = Terminal(tmp_path, "browse", "run.jsonl", **environment)
    terminal.until("✗ loop", "LOOP cycle of 3 steps", "Copy prompt")
    terminal.press("t")
    terminal.until("›    12")
    terminal.press("y")
    terminal.until("is copied")
    terminal.press("q")

    assert terminal.ended() == 0
    assert b"\x1b]52;c;" in terminal.raw
    if environment:
        assert b"\x1b[38;2" not in terminal.raw.replace(b"\x1b[38;2;0;0;0", b"")


def test_a_log_that_is_none_ends_with_the_reason(tmp_path: Path) -> None:
    """What can't be read is said in plain text, with the exit code of every other command."""
    (tmp_path / "x.log").write_text("no log at all\n", "utf-8")
    ended = subprocess.run(
        ["script", "-qec", f"'{sys.executable}' -m ctxmgr browse x.log", "/dev/null"], cwd=tmp_path,
        capture_output=True, timeout=60, check=False, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip

    assert ended.returncode == 2
    assert b"not a log of a known format" in ended.stdout
