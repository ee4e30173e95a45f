"""``store`` and ``index``: administer the store, and update its search index."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.address import locate_log
from ctxmgr.cli.output import Answer, OutputOptions, answer, answer_without_store, resolve
from ctxmgr.cli.requests import moment
from ctxmgr.cli.terminal import Printer, ProgressMeter
from ctxmgr.cli.views.layout import plural
from ctxmgr.config import find_store, load_config
from ctxmgr.errors import InvalidInput
from ctxmgr.log.ids import parse_time
from ctxmgr.store import administer
from ctxmgr.workspace import Workspace

if TYPE_CHECKING:
    from ctxmgr.store.archive.retention import RetentionResult
    from ctxmgr.store.server_store import Administration


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
    how: OutputOptions,
) -> None:
    """Upgrade the tables of a store to the version of this ctxmgr, all or nothing; records are never changed.

    A store on a server is only ever migrated by this command, run by the role that owns it; until then it can be read. Stop
    older recorders and shippers first. A database on this machine is migrated by the first command that writes.

    Examples:
      ctxmgr store migrate
      ctxmgr store migrate --store postgresql://ctxmgr_owner@db.example/history
    """

    def migration_answer(before: int, now: int) -> Answer:
        def draw(out: Printer) -> None:
            out.line(
                f"tables of version {before} are now of version {now}" if before < now else f"the tables are of version {now}"
            )

        return Answer({"before": before, "now": now}, draw)

    def migrate_tables() -> Answer:
        with closing(_administration(store)) as owner:
            return migration_answer(*owner.migrate())

    def work(workspace: Workspace) -> Answer:
        return migration_answer(*workspace.store.migrate())

    # Tables on a server belong to a role, so the owner's connection changes them. A database is migrated by opening it.
    if "://" in _location(store):
        answer_without_store("store migrate", how, migrate_tables)
    else:
        answer("store migrate", how, work, store=store, writes=True)


@store_app.command("init")
def init(
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Create the tables of a store on a server; existing ones are not changed.

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

    answer_without_store("store init", how, work)


@store_app.command("grant")
def grant(
    role: Role,
    team: Annotated[str, typer.Option("--team", metavar="NAME", help="The team, which is created if it is new.")] = "default",
    reader: Annotated[bool, typer.Option("--reader", help="Let the role only read.")] = False,
    keeper: Annotated[bool, typer.Option("--keeper", help="Let the role also remove what was archived.")] = False,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Let a role read and write the history of one team of a store on a server, or only read it; run by the store's owner.

    Teams do not see each other's sessions. A role belongs to one team: the one granted last. Once anything is granted, a role
    that nobody granted anything sees nothing; what was recorded before is the team "default", and so is the owner.

    Examples:
      ctxmgr store grant alice --team payments
      ctxmgr store grant dashboard --team payments --reader
    """

    def work() -> Answer:
        if reader and keeper:
            raise InvalidInput("a role that may only read can't remove anything", "leave out --reader or --keeper")
        does = "reads" if reader else "reads, writes and archives" if keeper else "reads and writes"
        with closing(_administration(store)) as owner:
            divided = owner.grant(role, team, writes=not reader, removes=keeper)
        # The first grant divides the store into teams. Roles that saw everything before may now see nothing.
        warnings = ["from now on roles that were not granted anything by this command see nothing"] if divided else []

        def draw(out: Printer) -> None:
            out.line(f"{role} {does} the history of the team {team}")

        return Answer({"role": role, "team": team, "writes": not reader, "removes": keeper}, draw, warnings=warnings)

    answer_without_store("store grant", how, work)


@store_app.command("revoke")
def revoke(
    role: Role,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Remove a role from its team, with all its rights in a store on a server; its records stay.

    Examples:
      ctxmgr store revoke alice
    """

    def work() -> Answer:
        with closing(_administration(store)) as owner:
            owner.revoke(role)
        return Answer({"role": role}, lambda out: out.line(f"{role} has no rights in the store any more"))

    answer_without_store("store revoke", how, work)


@store_app.command("teams")
def teams(
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """List the teams of a store on a server, and the roles that read or write them; run by the store's owner.

    Examples:
      ctxmgr store teams
      ctxmgr store teams --json
    """

    def work() -> Answer:
        with closing(_administration(store)) as owner:
            found = owner.members()
        rows = [
            {"team": each.team, "role": each.role, "writes": each.writes if each.role else None,
             "removes": each.removes if each.role else None}
            for each in found
        ]  # fmt: skip

        def draw(out: Printer) -> None:
            for each in found:
                kind = "keeper" if each.removes else "writer" if each.writes else "reader"
                out.line(f"{each.team}: {'no role' if each.role is None else f'{each.role} ({kind})'}", hang=2)

        return Answer(rows, draw, columns=("team", "role", "writes", "removes"))

    answer_without_store("store teams", how, work)


@store_app.command("retain")
def retain(
    keep: Annotated[str, typer.Option("--keep", metavar="AGE", help="Age up to which sessions are kept: 30d, 12h.")],
    archive: Annotated[str, typer.Option("--archive", metavar="PLACE", help="The archive: a folder, or s3://BUCKET/PREFIX.")],
    abandoned: Annotated[
        str | None,
        typer.Option("--abandoned", metavar="AGE", help="Age at which sessions that never ended are moved too."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done; do nothing.")] = False,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Move sessions that ended into an archive: Parquet files by day, read with --store like any store.

    A session leaves the store once all its records were written to the archive and read back from it. Open sessions stay,
    whatever their age: those that are live, being recovered, or whose end was never recorded. On a server the role needs the
    right to remove records (see store grant --keeper).

    Examples:
      ctxmgr store retain --keep 30d --archive /srv/archive --dry-run
      ctxmgr store retain --keep 30d --archive /srv/archive --abandoned 180d
      ctxmgr store retain --keep 30d --archive s3://history/archive --store postgresql://keeper@db.example/history
      ctxmgr search "disk full" --all-sessions --store /srv/archive/day=2026-01-22
    """

    def work(workspace: Workspace) -> Answer:
        from ctxmgr.store.archive import retention

        now = workspace.store.clock()
        before, abandoned_before = (None if age is None else _time_limit(age, now) for age in (keep, abandoned))
        chosen, kept = retention.archivable_sessions(workspace.store, before or 0.0, abandoned_before)
        # The path is recorded for `store archived`, so it must not depend on the current folder.
        place = archive if "://" in archive else os.path.abspath(archive)
        if dry_run:
            retention.require_ready(workspace.store, place)
            # The choice is the same as without --dry-run, but nothing is moved.
            done = retention.RetentionResult([each.session for each in chosen], 0, [], kept)
        else:
            meter = ProgressMeter("archiving", "sessions", 1)
            done = retention.retain(workspace.store, place, chosen, meter)
            meter.end()
            done = replace(done, passed_over=[*kept, *done.passed_over])
        return _retention_answer(done, dry_run=dry_run)

    answer("store retain", how, work, store=store, writes=not dry_run)


@store_app.command("restore")
def restore(
    archive: Annotated[
        str, typer.Argument(metavar="ARCHIVE", help="An archive, a folder of it or one of its files, also in a bucket.")
    ],
    session: Annotated[str | None, typer.Option("--session", "-s", metavar="ID", help="Restore only this session.")] = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Copy sessions of an archive back into a store; the archive stays as it is.

    Examples:
      ctxmgr store restore /srv/archive/day=2026-01-22
      ctxmgr store restore /srv/archive --session 9f2c61d0
      ctxmgr store restore s3://history/archive --session 9f2c61d0
    """

    def work(workspace: Workspace) -> Answer:
        from ctxmgr.store.archive.retention import restore as take_back

        sessions, added = take_back(workspace.store, archive, session)

        def draw(out: Printer) -> None:
            out.line(f"{plural(sessions, 'session')}: {plural(added, 'record')} taken back")

        return Answer({"sessions": sessions, "added": added}, draw)

    answer("store restore", how, work, store=store, writes=True)


@store_app.command("archived")
def archived(
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """List the sessions that were moved from a store into an archive, and where each is.

    Examples:
      ctxmgr store archived
      ctxmgr store archived --json
    """

    def work(workspace: Workspace) -> Answer:
        from ctxmgr.store.archive.retention import archived_sessions as found

        rows = found(workspace.store)

        def draw(out: Printer) -> None:
            for row in rows:
                out.line(f"{row['session']}: {plural(row['records'], 'record')} in {row['archive']}/{row['file']}", hang=2)
            if not rows:
                out.line("nothing was archived from this store")

        return Answer(rows, draw, columns=("session", "records", "archive", "file", "at"))

    answer("store archived", how, work, store=store)


def _time_limit(age: str, now: float) -> float:
    try:
        found = parse_time(moment(age, now))
    except InvalidInput:  # its message is about times, not ages
        found = None
    # An age in the future would archive everything.
    if found is None or found > now:
        raise InvalidInput(f"{age!r} is no age", "e.g. 30d, 12h")
    return found


def _retention_answer(done: RetentionResult, *, dry_run: bool) -> Answer:
    from ctxmgr.store.archive.retention import NO_END

    data = {
        "sessions": done.sessions, "records": done.records, "files": done.files, "dryRun": dry_run,
        "passedOver": [{"session": session, "reason": reason} for session, reason in done.passed_over],
    }  # fmt: skip

    def draw(out: Printer) -> None:
        if dry_run:
            out.line(f"{plural(len(done.sessions), 'session')} would be archived")
        else:
            out.line(f"{plural(len(done.sessions), 'session')} archived: {plural(done.records, 'record')}")
        for path in done.files:
            out.line(f"  {path}")
        if done.passed_over:
            for reason, count in Counter(reason for _, reason in done.passed_over).most_common():
                remedy = "; --abandoned AGE moves such ones too" if reason == NO_END else ""
                out.line(
                    f"{plural(count, 'session')} of that age {'stays' if count == 1 else 'stay'} because {reason}{remedy}",
                    hang=2,
                )

    return Answer(data, draw)


def _location(store: str | None) -> str:
    folder = Path.cwd()
    return store if store is not None else find_store(folder, os.environ, load_config(folder))[0]


def _administration(store: str | None) -> Administration:
    return administer(_location(store))


def index(
    log: o.Log = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Index what was recorded since last time, so that searching a long history stays quick; 'ctxmgr import' does it by itself.

    Search finds the same without it: what is not indexed is read. It can be interrupted, and goes on next time.

    Examples:
      ctxmgr index
      ctxmgr index history.jsonl
    """
    store = resolve("index", how, locate_log, log, store)

    def work(workspace: Workspace) -> Answer:
        moved = workspace.store.index(ProgressMeter("indexing for search", "records", 1))

        def draw(out: Printer) -> None:
            out.line("the search index is up to date" if moved else "the search index was up to date")

        return Answer({"indexed": moved}, draw)

    answer("index", how, work, store=store, writes=True)
