"""``store``: look after the store itself."""

from __future__ import annotations

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.output import Answer, Shown, answer
from ctxmgr.cli.terminal import Printer
from ctxmgr.workspace import Workspace

_HELP = """Look after the store itself.

\b
Examples:
  ctxmgr store migrate --store postgresql://ctxmgr_owner@db.example/history
"""

store_app = typer.Typer(no_args_is_help=True, help=_HELP)


@store_app.command("migrate")
def migrate(
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """Bring the tables of a store to the version of this ctxmgr, all or nothing; records are never changed.

    A store on a server is only ever migrated by this command, run by the role that owns it; until then it can be read. End
    older recorders and shippers before. A database on this machine is migrated by the first command that writes.

    Examples:
      ctxmgr store migrate
      ctxmgr store migrate --store postgresql://ctxmgr_owner@db.example/history
    """

    def work(workspace: Workspace) -> Answer:
        before, now = workspace.store.migrate()

        def draw(out: Printer) -> None:
            out.line(
                f"tables of version {before} are now of version {now}" if before < now else f"the tables are of version {now}"
            )

        return Answer({"before": before, "now": now}, draw)

    answer("store migrate", how, work, store=store, writes=True)
