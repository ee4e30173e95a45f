"""``index``: bring the search index of a store up to date."""

from __future__ import annotations

from ctxmgr.cli import options as o
from ctxmgr.cli.address import located_log
from ctxmgr.cli.output import Answer, Shown, answer, resolve
from ctxmgr.cli.progress import ProgressMeter
from ctxmgr.cli.terminal import Printer
from ctxmgr.workspace import Workspace


def index(
    log: o.Log = None,
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """Index what was recorded since last time, so that searching a long history stays quick; 'ctxmgr import' does it by itself.

    Search finds the same without it: what is not indexed is read. It can be interrupted, and goes on next time.

    Examples:
      ctxmgr index
      ctxmgr index history.jsonl
    """
    store = resolve("index", how, located_log, log, store)

    def work(workspace: Workspace) -> Answer:
        moved = workspace.store.index(ProgressMeter("indexing for search", "records", 1))

        def draw(out: Printer) -> None:
            out.line("the search index is up to date" if moved else "the search index was up to date")

        return Answer({"indexed": moved}, draw)

    answer("index", how, work, store=store, writes=True)
