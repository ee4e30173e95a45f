"""``store``: look after the store itself."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.output import Answer, Shown, answer, answer_alone
from ctxmgr.cli.terminal import Printer
from ctxmgr.config import find_store, load_config
from ctxmgr.store import administer
from ctxmgr.workspace import Workspace

if TYPE_CHECKING:
    from ctxmgr.store.teams import Administration

_HELP = """Look after the store itself.

\b
Examples:
  ctxmgr store init --store postgresql://ctxmgr_owner@db.example/history
  ctxmgr store grant alice --team payments
"""

store_app = typer.Typer(no_args_is_help=True, help=_HELP)

Role = Annotated[str, typer.Argument(metavar="ROLE", help="A role that can log in at the server.")]


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

    def told(before: int, now: int) -> Answer:
        def draw(out: Printer) -> None:
            out.line(
                f"tables of version {before} are now of version {now}" if before < now else f"the tables are of version {now}"
            )

        return Answer({"before": before, "now": now}, draw)

    def alone() -> Answer:
        with closing(_administration(store)) as owner:
            return told(*owner.migrate())

    def work(workspace: Workspace) -> Answer:
        return told(*workspace.store.migrate())

    if "://" in _location(store):
        answer_alone("store migrate", how, alone)
    else:
        answer("store migrate", how, work, store=store, writes=True)


@store_app.command("init")
def init(
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """Make the tables of a store on a server; where there are some already nothing is changed.

    The role that makes them owns them: it migrates the store and says who may read or write it.

    Examples:
      ctxmgr store init --store postgresql://ctxmgr_owner@db.example/history
    """

    def work() -> Answer:
        with closing(_administration(store)) as owner:
            before, now = owner.init()

        def draw(out: Printer) -> None:
            out.line(f"the tables are there already, of version {now}" if before else f"made the tables, of version {now}")

        return Answer({"before": before, "now": now}, draw)

    answer_alone("store init", how, work)


@store_app.command("grant")
def grant(
    role: Role,
    team: Annotated[str, typer.Option("--team", metavar="NAME", help="The team; made if there is none so named.")] = "default",
    reader: Annotated[bool, typer.Option("--reader", help="It may only read.")] = False,
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """Let a role read and write the history of one team of a store on a server, or only read it; run by the store's owner.

    Teams do not see each other's sessions. A role is of one team: of the one granted last. Once anything is granted, a role
    that nobody granted anything sees nothing; what was recorded before is the team "default", and so is the owner.

    Examples:
      ctxmgr store grant alice --team payments
      ctxmgr store grant dashboard --team payments --reader
    """

    def work() -> Answer:
        with closing(_administration(store)) as owner:
            divided = owner.grant(role, team, writes=not reader)
        warnings = ["from now on roles that were not granted anything by this command see nothing"] if divided else []

        def draw(out: Printer) -> None:
            out.line(f"{role} {'reads' if reader else 'reads and writes'} the history of the team {team}")

        return Answer({"role": role, "team": team, "writes": not reader}, draw, warnings=warnings)

    answer_alone("store grant", how, work)


@store_app.command("revoke")
def revoke(
    role: Role,
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """Take a role out of its team, with all its rights in a store on a server; what it recorded stays.

    Examples:
      ctxmgr store revoke alice
    """

    def work() -> Answer:
        with closing(_administration(store)) as owner:
            owner.revoke(role)
        return Answer({"role": role}, lambda out: out.line(f"{role} has no rights in the store any more"))

    answer_alone("store revoke", how, work)


@store_app.command("teams")
def teams(
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """List the teams of a store on a server, and the roles that read or write them; run by the store's owner.

    Examples:
      ctxmgr store teams
      ctxmgr store teams --json
    """

    def work() -> Answer:
        with closing(_administration(store)) as owner:
            found = owner.members()
        rows = [{"team": each.team, "role": each.role, "writes": each.writes if each.role else None} for each in found]

        def draw(out: Printer) -> None:
            for each in found:
                rights = "no role" if each.role is None else f"{each.role} ({'writer' if each.writes else 'reader'})"
                out.line(f"{each.team}: {rights}", hang=2)

        return Answer(rows, draw, columns=("team", "role", "writes"))

    answer_alone("store teams", how, work)


def _location(store: str | None) -> str:
    folder = Path.cwd()
    return store if store is not None else find_store(folder, os.environ, load_config(folder))[0]


def _administration(store: str | None) -> Administration:
    return administer(_location(store))
