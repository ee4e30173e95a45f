"""``trust``: say which settings files of projects may grant what."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ctxmgr import config as kept
from ctxmgr.cli import declarations as typer
from ctxmgr.cli.output import Answer, Shown, answer_without_store
from ctxmgr.cli.views.layout import Span
from ctxmgr.config import SettingsFile, grants, project_file
from ctxmgr.errors import CtxmgrError, InvalidInput, NotFound
from ctxmgr.paths import OWN_FILE, SHARED_FILE
from ctxmgr.types.setup import TrustedCommand, TrustView

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.goal import Probe


def trust(
    folder: Annotated[str | None, typer.Argument(metavar="[FOLDER]", help="Of the project; else the current one.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List every file that is trusted; change nothing.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Show what would be trusted; change nothing.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Stop trusting the file.")] = False,
    *,
    how: Shown,
) -> None:
    """Trust a project's settings file as it is now, with the commands of its probes. Read it first.

    Without trust the file only tunes: it names no model and no server, allows no commands, and puts no store outside of its
    folder. Any change of the file ends the trust; a command that comes later, or whose script is changed, is not covered.

    Examples:
      ctxmgr trust --show
      ctxmgr trust
      ctxmgr trust --list
      ctxmgr trust --revoke
    """

    def work() -> Answer:
        if list_ + show + revoke > 1:
            raise InvalidInput("--list, --show and --revoke are three questions", "ask one of them")
        if list_:
            return _answer([_kept_view(each) for each in kept.listed(os.environ)])
        place = Path(folder) if folder is not None else Path.cwd()
        if not os.path.isdir(place):
            raise InvalidInput(f"{str(place)!r} is no folder", "name the project's folder")
        if revoke:
            return _answer(_revoke(place))
        return _answer([_show(place) if show else _grant(place)])

    answer_without_store("trust", how, work)


def _answer(rows: list[TrustView]) -> Answer:
    return Answer([row.to_json() for row in rows], lambda out: show_trust(out, rows), "ok" if rows else "empty")


def _kept_view(each: kept.Trust) -> TrustView:
    """Return a row for what is kept, which holds only while the file is as it was."""
    try:
        file = project_file(Path(each.path).parent)
    except CtxmgrError:
        file = None
    if file is None or kept.identity(file.path) != each.path or kept.find(file.path, file.content, os.environ) is None:
        return TrustView(path=each.path, trusted=False, since=each.since)
    return TrustView(path=each.path, trusted=True, since=each.since, grants=_granting(file))


def _found(place: Path) -> SettingsFile:
    file = project_file(place.absolute())
    if file is None:
        raise NotFound(
            f"no settings file of a project holds in {str(place)!r}",
            f"a project has {OWN_FILE}, or [tool.ctxmgr] in {SHARED_FILE}",
        )
    return file


def _show(place: Path) -> TrustView:
    file = _found(place)
    return _view(file, place, kept.find(file.path, file.content, os.environ))


def _grant(place: Path) -> TrustView:
    file = _found(place)
    commands = {fingerprint for _, _, fingerprint in _commands(file, place)}
    return _view(file, place, kept.grant(file.path, file.content, commands, os.environ))


def _revoke(place: Path) -> list[TrustView]:
    paths = [place / OWN_FILE, place / SHARED_FILE]
    with suppress(CtxmgrError):  # it is gone or broken by now, and its trust ends all the same
        paths.insert(0, _found(place).path)
    return [TrustView(path=kept.identity(path), trusted=False) for path in paths if kept.revoke(path, os.environ)]


def _view(file: SettingsFile, place: Path, trust: kept.Trust | None) -> TrustView:
    trusted = frozenset[str]() if trust is None else trust.commands
    commands = [
        TrustedCommand(probe=probe.name, folder=folder, argv=probe.argv, trusted=fingerprint in trusted)
        for probe, folder, fingerprint in _commands(file, place)
    ]
    return TrustView(
        path=str(file.path), trusted=trust is not None, since=None if trust is None else trust.since, grants=_granting(file),
        commands=commands,
    )  # fmt: skip


def _granting(file: SettingsFile) -> dict[str, object]:
    return {name: file.values[name] for name in grants(file)}


def _commands(file: SettingsFile, place: Path) -> Iterator[tuple[Probe, str, str]]:
    """Yield the commands of the goals in the project's folder and the one that was named, with their fingerprints."""
    from ctxmgr.goals.probes import fingerprint
    from ctxmgr.goals.service import Goals

    for folder in dict.fromkeys(os.path.realpath(each) for each in (file.path.parent, place)):
        try:
            with Goals.open(folder) as goals:
                probes = goals.state().probes
        except NotFound:
            continue
        for probe in probes:
            if probe.kind == "command":
                yield probe, folder, fingerprint(probe, Path(folder))


_NAME = 14


def show_trust(printer: Printer, rows: Sequence[TrustView]) -> None:
    """Show every file with what it grants; all values are the project's and pass the printer's filter."""
    for row in rows:
        state = Span("trusted", "ok") if row.trusted else Span("not trusted", "warn")
        printer.line(state, "  ", row.path, hang=2)
        for name, value in row.grants.items():
            printer.line("  ", Span("grants".ljust(_NAME), "dim"), f"{name} = {json.dumps(value, default=str)}", hang=_NAME + 2)
        for command in row.commands:
            word = "may run" if command.trusted and row.trusted else "may not run"
            text = f"{' '.join(command.argv)}  (probe {command.probe} in {command.folder})"
            printer.line("  ", Span(word.ljust(_NAME), "dim"), text, hang=_NAME + 2)
        if row.trusted and not row.grants:
            printer.hint(f"{row.path} grants nothing: it needs no trust")
    if not rows:
        printer.hint("no file is trusted")
