"""What `ctxmgr browse` shows of the demo run, as text; ``python -m tests.cli.browse.screen_texts`` renews the files."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from textual.pilot import Pilot
from textual.screen import ModalScreen

from ctxmgr.cli.browse.screens import Browser, BrowseScreen
from ctxmgr.errors import CtxmgrError
from tests.readme import RUN

NOW = 1_796_000_000.0
"""The moment at which the screens are drawn: seconds since 1970."""

FOLDER = Path(__file__).parents[3] / "fixtures" / "screens"

SCREENS: dict[str, tuple[tuple[int, int], tuple[str, ...], str]] = {
    "sessions-80": ((80, 24), ("escape",), "✗ loop"),
    "timeline-80": ((80, 24), (), "LOOP cycle"),
    "timeline-120": ((120, 40), ("t",), "LOOP cycle"),
    "pane-80": ((80, 24), ("p",), "next step"),
    "entry-80": ((80, 24), ("t", "right", "enter"), "Output"),
    "hits-80": ((80, 24), ("slash", *"rounding", "enter"), "29 rows with"),
    "help-80": ((80, 24), ("question_mark",), "this help"),
}
"""Name -> size of the terminal, the keys that lead there from the timeline of the run, and a text that must be there."""


def shown(app: Browser) -> str:
    """Return the screen as text, without the blanks at the ends of its lines."""
    size = app.size
    strips = app.screen._compositor.render_strips(size)  # pyright: ignore[reportPrivateUsage]
    return "\n".join(strip.text.rstrip() for strip in strips).rstrip() + "\n"


async def settled(pilot: Pilot[CtxmgrError]) -> None:
    """Wait until everything that was asked for has been read, judged and drawn."""
    app = pilot.app
    assert isinstance(app, Browser)
    for _ in range(1000):
        await pilot.pause(0.01)
        screen = app.screen
        if (isinstance(screen, BrowseScreen) and screen.ready) or isinstance(screen, ModalScreen) or app.fault is not None:
            break
    else:
        raise AssertionError("the screen never settled:\n" + shown(app))
    await pilot.pause()
    await pilot.pause()


def visit(log: Path, size: tuple[int, int], keys: tuple[str, ...], expected: str) -> str:
    """Open a log in a terminal of this size, press keys, and return the screen once a text is on it and nothing changes."""

    async def visited() -> str:
        app = Browser(str(log), None)
        async with app.run_test(size=size) as pilot:
            await settled(pilot)
            for key in keys:
                await pilot.press(key)
                await settled(pilot)
            before = ""
            for _ in range(100):
                await pilot.pause(0.2)
                before, now = shown(app), before
                if before == now and expected in now:
                    return now
            raise AssertionError("the screen never showed " + repr(expected) + ":\n" + before)

    return asyncio.run(visited())


def draw(name: str) -> str:
    """Return one of the screens on the demo run."""
    folder = Path(tempfile.mkdtemp(prefix="browse-"))
    try:
        shutil.copy(RUN, folder / "run.jsonl")
        with patch("ctxmgr.cli.browse.lines.time", SimpleNamespace(time=lambda: NOW)):
            return visit(folder / "run.jsonl", *SCREENS[name])
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in SCREENS:
        (FOLDER / f"{each}.txt").write_text(draw(each), "utf-8")
