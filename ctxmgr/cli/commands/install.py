"""``install``, ``uninstall`` and ``hook``: put the hook into the settings of clients, and run it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

from ctxmgr.cli import declarations as typer
from ctxmgr.cli.output import Answer, OutputOptions, answer_without_store
from ctxmgr.cli.terminal import printer, safe
from ctxmgr.cli.views.layout import Span
from ctxmgr.clients import CLIENTS, Client, client
from ctxmgr.errors import InvalidInput, StorageFailed
from ctxmgr.live import installation
from ctxmgr.live.installation import Change, Scope
from ctxmgr.types.setup import InstallationView

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer


_Name = Annotated[str | None, typer.Argument(metavar="CLIENT", help=f"One of {', '.join(CLIENTS)}.")]
_ScopeOption = Annotated[
    str, typer.Option("--scope", metavar="SCOPE", help="user: in all your projects; project: in this folder alone.")
]
_Plugin = Annotated[
    str | None,
    typer.Option("--plugin", metavar="DIR", help="Folder for a plugin, which is its marketplace too (claude-code)."),
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the change; change nothing.")]
_Yes = Annotated[bool, typer.Option("--yes", "-y", help="Change the settings without asking.")]


def install(
    name: _Name = None,
    list_: Annotated[bool, typer.Option("--list", help="List all clients; change nothing.")] = False,
    scope: _ScopeOption = "user",
    dry_run: _DryRun = False,
    yes: _Yes = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Also have the client trust the hooks, where it asks for that (codex).")
    ] = False,
    client_version: Annotated[
        str | None, typer.Option("--client-version", metavar="VERSION", help="Version of the client, if it can't be asked.")
    ] = None,
    plugin: _Plugin = None,
    *,
    how: OutputOptions,
) -> None:
    """Make a client call ctxmgr, so that its agent is told when it goes in circles, and what to do next.

    Its other settings stay as they are; 'ctxmgr uninstall' puts them back byte for byte. The client's version is asked first.

    Examples:
      ctxmgr install claude-code
      ctxmgr install claude-code --dry-run
      ctxmgr install codex --trust --yes
      ctxmgr install claude-code --plugin ~/ctxmgr-plugin
      ctxmgr install --list
    """

    def work() -> Answer:
        if list_ or name is None:
            if name is not None or not list_:
                raise InvalidInput("name one client, or ask for --list", f"clients: {', '.join(CLIENTS)}")
            return _rows_answer(list(_client_rows()))
        asked, where = _client(name), _scope(scope)
        found = installation.require_version(asked, client_version)
        if plugin is not None:
            return _rows_answer([_plugin_row(_require_claude(asked), plugin, how, dry_run=dry_run, yes=yes, undo=False)])
        # With two hooks, each call would count as two rounds.
        if asked.has_plugin(os.environ):
            raise InvalidInput(
                f"{asked.title} has the plugin of ctxmgr enabled, and with hooks beside it each call would count twice",
                "uninstall one of them first; nothing was changed",
            )
        change = installation.plan_installation(asked, where, Path.cwd(), os.environ)
        row = InstallationView(
            client=asked.name, scope=where, path=change.path, installed=True, diff=change.diff() or None,
            version=".".join(map(str, found)),
        )  # fmt: skip
        row = _apply_change(row, change, how, dry_run=dry_run, yes=yes, undo=False)
        if row.installed and not dry_run:
            # Only on request, because trusting a program that runs at every call is the user's decision (ruling 29).
            if trust and not asked.trust(change.path, os.getcwd()):
                raise InvalidInput(f"{asked.title} knows no hooks of ours that it could trust", "leave out --trust")
            row = row.model_copy(update={"then": asked.left_to_do(change.path, os.environ)})
        return _rows_answer([row])

    answer_without_store("install", how, work)


def uninstall(
    name: _Name,
    scope: _ScopeOption = "user",
    dry_run: _DryRun = False,
    yes: _Yes = False,
    plugin: _Plugin = None,
    *,
    how: OutputOptions,
) -> None:
    """Remove ctxmgr from a client's settings, which become what they were before, and the notes of its hooks.

    Examples:
      ctxmgr uninstall claude-code
      ctxmgr uninstall codex --scope project --yes
      ctxmgr uninstall claude-code --plugin ~/ctxmgr-plugin
    """

    def work() -> Answer:
        asked, where = _client(name or ""), _scope(scope)
        if plugin is not None:
            row = _plugin_row(_require_claude(asked), plugin, how, dry_run=dry_run, yes=yes, undo=True)
        else:
            change = installation.plan_removal(asked, where, Path.cwd(), os.environ)
            row = InstallationView(
                client=asked.name, scope=where, path=change.path, installed=False, diff=change.diff() or None
            )
            row = _apply_change(row, change, how, dry_run=dry_run, yes=yes, undo=True)
        if dry_run or not row.installed:
            state = installation.remove_state(asked, row.path or "", os.environ, dry_run=dry_run)
            row = row.model_copy(update={"state": state})
        return _rows_answer([row])

    answer_without_store("uninstall", how, work)


def hook(name: Annotated[str, typer.Argument(metavar="CLIENT", help=f"One of {', '.join(CLIENTS)}.")]) -> None:
    """Answer one event of a client, read as JSON from stdin; clients start the same by a quicker way.

    It prints nothing unless the agent goes in circles, and never fails.

    Examples:
      ctxmgr hook claude-code < event.json
    """
    from contextlib import suppress

    from ctxmgr.live.event_answer import run

    with suppress(Exception):  # a client takes a failed hook for an answer, and may block the agent's call
        run(name)


def _client(name: str) -> Client:
    found = client(name)
    if found is None:
        raise InvalidInput(f"unknown client {name!r}", f"clients: {', '.join(CLIENTS)}")
    return found


def _scope(text: str) -> Scope:
    for each in get_args(Scope):
        if text == each:
            return each
    raise InvalidInput(f"--scope {text!r} is unknown", "user or project")


def _require_claude(asked: Client) -> Client:
    if asked.name != "claude-code":
        raise InvalidInput(f"{asked.title} has no plugin of ours", "leave out --plugin")
    return asked


def _plugin_row(asked: Client, folder: str, how: OutputOptions, *, dry_run: bool, yes: bool, undo: bool) -> InstallationView:
    """Create the plugin in a folder, or remove it, if the user agrees."""
    from ctxmgr.live import plugin_folder

    top = Path(folder).expanduser()
    changes = plugin_folder.plan_plugin_removal(top) if undo else plugin_folder.plan_plugin(top, os.environ)
    diff = "".join(change.diff() for change in changes if change.is_needed)
    row = InstallationView(client=asked.name, scope="plugin", path=str(top), installed=not undo, diff=diff or None)
    # Without a change, the user is not asked and nothing is written.
    if diff and (dry_run or not (yes or _user_agrees(row, how))):
        return row.model_copy(update={"installed": undo})
    if not undo and not installation.compile_hook(asked):
        raise StorageFailed("the hook does not start with this Python", "nothing was changed; 'ctxmgr doctor' tells more")
    plugin_folder.apply_plugin(top, changes)
    then = None if undo else plugin_folder.what_to_do(top, os.environ)
    return row.model_copy(update={"changed": bool(diff), "then": then})


def _client_rows() -> Iterator[InstallationView]:
    for name in CLIENTS:
        each = _client(name)
        for where in get_args(Scope):
            path = each.settings_file(where, os.getcwd(), os.environ)
            if path is not None:
                there = installation.is_installed(each, where, Path.cwd(), os.environ)
                yield InstallationView(client=name, scope=where, path=path, installed=there)


def _apply_change(
    row: InstallationView, change: Change, how: OutputOptions, *, dry_run: bool, yes: bool, undo: bool
) -> InstallationView:
    """Make a change that the user agrees to, and return the row that reports it.

    Raises:
        InvalidInput: nobody can be asked. StorageFailed: the file can't be written, or the hook does not start.
    """
    if not change.is_needed:
        return row
    if dry_run or not (yes or _user_agrees(row, how)):
        # Nothing was done: something to remove is still installed, something to install is not.
        return row.model_copy(update={"installed": undo})
    # Test the hook before writing, because a failing hook would disturb every call of every agent.
    if not undo and not installation.compile_hook(change.client):
        raise StorageFailed("the hook does not start with this Python", "nothing was changed; 'ctxmgr doctor' tells more")
    installation.apply(change, undo=undo)
    return row.model_copy(update={"changed": True})


def _user_agrees(row: InstallationView, how: OutputOptions) -> bool:
    # A program can't be asked, but changing a person's settings needs consent.
    if how.format != "table" or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInput(
            f"{row.path} would be changed, and nobody can be asked here", "say --yes, or look at it with --dry-run"
        )
    show_diff(printer(), row)
    from typer import confirm  # only here, because loading typer takes longer than the rest

    return confirm(f"Change {safe(row.path or '')}?", default=True)


def _rows_answer(rows: list[InstallationView]) -> Answer:
    return Answer([row.to_json() for row in rows], lambda out: show_installations(out, rows))


_STYLES = {"+": "ok", "-": "error", "@": "dim"}


def show_diff(printer: Printer, row: InstallationView) -> None:
    """Show the change of a settings file as a diff."""
    for line in (row.diff or "").splitlines():
        printer.line(Span(line, _STYLES.get(line[:1], "")))


def show_installations(printer: Printer, rows: Sequence[InstallationView]) -> None:
    """Show each client with its file and what is left to do; show a change that was not made as a diff."""
    name = max(len(row.client) for row in rows) + 2
    for row in rows:
        state = Span("installed".ljust(15), "ok") if row.installed else Span("not installed".ljust(15), "dim")
        printer.line(row.client.ljust(name), row.scope.ljust(9), state, row.path or "", hang=name + 2)
    if len(rows) != 1:
        return
    (row,) = rows
    if row.diff and not row.changed:
        show_diff(printer, row)
    elif not row.changed:
        printer.hint("nothing had to be changed")
    # Quoted for a shell.
    elif row.installed:
        how = {"project": " --scope project", "plugin": f" --plugin {shlex.quote(row.path or '')}"}.get(row.scope, "")
        printer.hint(
            f"'ctxmgr uninstall {row.client}{how}' undoes it",
            "Start the client again if it runs already: it may read its settings only at its start.",
        )
    if row.then and row.installed:
        printer.hint(row.then)
    if row.state:
        printer.hint(row.state)
