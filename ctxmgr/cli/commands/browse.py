"""``browse``: look around in a history in the terminal."""

from __future__ import annotations

import sys

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.output import Shown, fail, resolve_place
from ctxmgr.errors import InvalidInput


def browse(target: o.Target = None, session: o.Session = None, store: o.Store = None) -> None:
    """Look around in a history: sessions, the timeline of one with what is wrong in it, every entry.

    Nothing is written but the notes that you take. A running session is followed. '?' shows the keys. Needs the tui
    extra: pip install 'ctxmgr-cli[tui]'.

    Examples:
      ctxmgr browse
      ctxmgr browse 01a1ffcb
      ctxmgr browse run.jsonl
    """
    how = Shown()
    session, store = resolve_place("browse", how, target, session, store)
    try:
        from ctxmgr.cli.browse.app import browse as run
    except ImportError:
        fail("browse", how, InvalidInput("browse needs the tui extra", "pip install 'ctxmgr-cli[tui]'"))
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        fail("browse", how, InvalidInput("browse needs a terminal", "'ctxmgr report -o run.html' makes a page to look at"))
    if (error := run(store, session)) is not None:
        fail("browse", how, error)
    raise typer.Exit(0)
