"""``config`` and ``trust``: the current settings, and the trust in settings of folders."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ctxmgr import config as kept
from ctxmgr.base import paths
from ctxmgr.base.paths import OWN_FILE, SHARED_FILE
from ctxmgr.cli import declarations as typer
from ctxmgr.cli.output import Answer, OutputOptions, answer_without_store
from ctxmgr.cli.terminal import Printer
from ctxmgr.cli.views.layout import Column, Span, scalar_text
from ctxmgr.config import SETTINGS, Config, SettingsFile, grants, load_config, project_file
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.errors import CtxmgrError, InvalidInput, NotFound
from ctxmgr.types.setup import SettingsPath, SettingView, TrustedCommand, TrustView

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.goal import Probe


_HELP = """Show the settings: their values, where each is set, and what can be set.

Settings are written with an editor: into ctxmgr.toml of a project, or into the user's own config.toml.

\b
Examples:
  ctxmgr config list
  ctxmgr config get recover.attempts
"""
_DETECT = "detect."

config_app = typer.Typer(no_args_is_help=True, help=_HELP)


@config_app.command("list")
def list_(*, how: OutputOptions) -> None:
    """List the settings that apply here: the value of each, and where it is set.

    The thresholds of the detectors are listed where they are set; 'ctxmgr config explain' shows all.

    Examples:
      ctxmgr config list
      ctxmgr config list --json
    """
    _answer("config list", how, lambda config: list(_settings_in_force(config)), show_list)


@config_app.command("get")
def get(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the setting, e.g. recover.attempts or detect.repeat_rounds.")
    ],
    *,
    how: OutputOptions,
) -> None:
    """Print the value of a setting that applies here; nothing if it has none.

    Examples:
      ctxmgr config get live.mode
      ctxmgr config get detect.repeat_rounds --json
    """

    def work() -> Answer:
        found = _find_setting(load_config(Path.cwd()), name)
        return Answer(found.to_json(), lambda out: show_value(out, found))

    answer_without_store("config get", how, work)


@config_app.command("path")
def path(*, how: OutputOptions) -> None:
    """List the files that settings may come from, marking those that exist; the project's first one and the user's own count.

    Examples:
      ctxmgr config path
    """

    def work() -> Answer:
        found = _files(load_config(Path.cwd()))
        return Answer([each.to_json() for each in found], lambda out: show_paths(out, found))

    answer_without_store("config path", how, work)


@config_app.command("explain")
def explain(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Name of a setting; else all settings.")] = None,
    *,
    how: OutputOptions,
) -> None:
    """Explain a setting, or all: its meaning, value, default, who may set it, and its other names.

    Examples:
      ctxmgr config explain recover.model
      ctxmgr config explain detect.repeat_rounds
      ctxmgr config explain --format md
    """
    _answer(
        "config explain", how, lambda config: [_find_setting(config, name)] if name is not None else list(_all(config)),
        show_setting_details,
    )  # fmt: skip


def _answer(
    command: str,
    how: OutputOptions,
    find: Callable[[Config], list[SettingView]],
    show: Callable[[Printer, list[SettingView]], None],
) -> None:
    def work() -> Answer:
        found = find(load_config(Path.cwd()))
        return Answer([each.to_json() for each in found], lambda out: show(out, found))

    answer_without_store(command, how, work)


def _files(config: Config) -> list[SettingsPath]:
    user = paths.user_file(os.environ)
    # The first is listed even if it does not exist, because it tells where to create one.
    nearest = [str(Path.cwd() / paths.OWN_FILE), *paths.settings_files(os.getcwd())]
    held = {str(each) for each in (config.path, config.user) if each is not None}
    return [
        *(SettingsPath(path=each, kind="project", holds=each in held) for each in dict.fromkeys(nearest)),
        SettingsPath(path=user, kind="user", holds=user in held),
    ]


def _settings_in_force(config: Config) -> Iterator[SettingView]:
    """Yield every setting, except thresholds with their default."""
    for name in SETTINGS:
        if name == "detect":
            yield from (_threshold(config, each) for each in config.detect)
        else:
            yield _setting(config, name)


def _all(config: Config) -> Iterator[SettingView]:
    for name in SETTINGS:
        if name == "detect":
            yield from (_threshold(config, each.name) for each in fields(DetectSettings) if each.init)
        else:
            yield _setting(config, name)


def _find_setting(config: Config, name: str) -> SettingView:
    """Return one setting.

    Raises:
        NotFound: no setting has this name.
    """
    if name in SETTINGS and name != "detect":
        return _setting(config, name)
    threshold = name.removeprefix(_DETECT)
    if name.startswith(_DETECT) and threshold in {each.name for each in fields(DetectSettings)}:
        return _threshold(config, threshold)
    raise NotFound(f"no setting {name!r}", f"there are {', '.join(SETTINGS)}; the thresholds are detect.NAME")


_VALUES: dict[str, Callable[[Config], Any]] = {
    "store": lambda config: config.store,
    "artifacts": lambda config: dict(config.artifacts) or None,
    "recover.attempts": lambda config: config.attempts,
    "recover.diff": lambda config: config.diff,
    "recover.routes": lambda config: str(config.routes) if isinstance(config.routes, Path) else config.routes,
    "recover.model": lambda config: dict(config.model) or None,
    "goal.allow_commands": lambda config: config.allow_commands,
    "live.mode": lambda config: config.live_mode,
    "live.quiet_kinds": lambda config: sorted(config.live_quiet[0]),
    "live.quiet_actions": lambda config: sorted(config.live_quiet[1]),
    "live.exec": lambda config: list(config.live_exec),
    "live.watch": lambda config: config.live_watch,
    "live.desktop": lambda config: config.live_desktop,
}


def _setting(config: Config, name: str) -> SettingView:
    setting = SETTINGS[name]
    # Taken from the settings themselves, so that there is no second list of defaults.
    default = _VALUES[name](Config())
    # An empty variable counts as unset.
    text = os.environ.get(setting.variable) if setting.variable is not None else None
    file = config.find_file(name)
    return SettingView(
        name=name, value=text if text else _VALUES[name](config), default=default,
        origin="environment" if text else config.origins.get(name, "built-in"),
        file=None if text or file is None else str(file), about=setting.about, option=setting.option, variable=setting.variable,
        project=setting.project,
    )  # fmt: skip


def _threshold(config: Config, name: str) -> SettingView:
    own = name in config.detect
    default = _plain(getattr(DetectSettings(), name, None))
    file = config.find_file("detect") if own else None
    return SettingView(
        name=_DETECT + name, value=_plain(config.detect[name]) if own else default, default=default,
        origin=config.origins.get("detect", "built-in") if own else "built-in", file=None if file is None else str(file),
        about=_description(name), option=f"--set {name}=VALUE", variable=None, project="free",
    )  # fmt: skip


def _plain(value: Any) -> Any:
    if isinstance(value, set | frozenset | tuple):
        return sorted(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
    return value


def _description(name: str) -> str:
    """Return the description of a threshold from the docstring of the settings. Some thresholds share one line."""
    # Only this docstring describes them, because a second list here would become outdated.
    attributes = (DetectSettings.__doc__ or "").partition("Attributes:\n")[2].partition("\n\n")[0]
    lines: list[str] = []
    for line in attributes.splitlines():
        words = line.strip()
        # Attributes are indented by eight blanks in the class. Deeper lines continue the attribute above.
        if line.startswith(" " * 8) and not line.startswith(" " * 9):
            lines.append(words)
        elif lines:
            lines[-1] += f" {words}"
    about = next((each for each in lines if name in each.replace("``", " ").replace(",", " ").replace(":", " ").split()), "")
    return about.replace("``", "").replace(f"{name}: ", "", 1) if about.startswith(name) else about.replace("``", "")


_COLUMNS = (
    Column("SETTING"),
    Column("VALUE", fill=True, least=16),
    Column("SET BY", give=1, least=8),
)
_MAY = {
    "free": "a project's own file may set it",
    "inside": "a project's own file may name places inside of its folder",
    "restrict": "only you may grant it; a project's own file may only forbid it, unless you trust it",
}


def show_list(printer: Printer, rows: Sequence[SettingView]) -> None:
    """Show one row per setting; defaults are dimmed."""
    printer.table(
        _COLUMNS,
        (
            [
                row.name,
                Span(scalar_text(row.value), "dim" if row.origin == "built-in" else "strong"),
                Span(row.file or row.variable or row.origin if row.origin != "built-in" else "built in", "dim", "end"),
            ]
            for row in rows
        ),
    )


def show_value(printer: Printer, row: SettingView) -> None:
    """Show only the value, and nothing if there is none."""
    if row.value is not None:
        printer.line(scalar_text(row.value))


def show_paths(printer: Printer, rows: Sequence[SettingsPath]) -> None:
    """Show the files in order of precedence."""
    for row in rows:
        # Only the nearest file of a project is read.
        why = "" if row.holds else ", not read" if os.path.isfile(row.path) else ", not there"
        printer.line(Span(row.path, "strong" if row.holds else "dim"), Span(f"  {row.kind}{why}", "dim"))


def show_setting_details(printer: Printer, rows: Sequence[SettingView]) -> None:
    """Show all details of each setting."""
    for number, row in enumerate(rows):
        if number:
            printer.line()
        printer.line(Span(row.name, "strong"), "  ", row.about)
        others = [each for each in (row.option, row.variable) if each]
        printer.pairs(
            [
                ("value", scalar_text(row.value)),
                ("set by", row.file or (row.variable if row.origin == "environment" else None)),
                ("default", scalar_text(row.default)),
                ("also by", ", ".join(others)),
                ("who", _MAY[row.project]),
            ]
        )


def trust(
    folder: Annotated[
        str | None, typer.Argument(metavar="[FOLDER]", help="Folder of the project; else the current one.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List every file that is trusted; change nothing.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Show what would be trusted; change nothing.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Stop trusting the file.")] = False,
    *,
    how: OutputOptions,
) -> None:
    """Trust a project's settings file in its present form, with the commands of its probes. Read it first.

    Without trust the file only tunes: it names no model and no server, allows no commands, and puts no store outside of its
    folder. Any change of the file ends the trust; a command that comes later, or whose script is changed, is not covered.

    Examples:
      ctxmgr trust --show
      ctxmgr trust
      ctxmgr trust --list
      ctxmgr trust --revoke
    """

    def work() -> Answer:
        # Each of them asks for something else, so any choice between them could be wrong.
        if list_ + show + revoke > 1:
            raise InvalidInput("--list, --show and --revoke are three questions", "ask one of them")
        if list_:
            return _trust_answer([_kept_view(each) for each in kept.list_trusted(os.environ)])
        place = Path(folder) if folder is not None else Path.cwd()
        if not os.path.isdir(place):
            raise InvalidInput(f"{str(place)!r} is no folder", "name the project's folder")
        if revoke:
            return _trust_answer(_revoke(place))
        return _trust_answer([_show(place) if show else _grant(place)])

    answer_without_store("trust", how, work)


def _trust_answer(rows: list[TrustView]) -> Answer:
    return Answer([row.to_json() for row in rows], lambda out: show_trust(out, rows), "ok" if rows else "empty")


def _kept_view(each: kept.Trust) -> TrustView:
    """Return a row for a stored trust, which is valid only while the file is unchanged."""
    try:
        file = project_file(Path(each.path).parent)
    except CtxmgrError:  # an unreadable file grants nothing
        file = None
    if file is None or kept.identity(file.path) != each.path or kept.find(file.path, file.content, os.environ) is None:
        return TrustView(path=each.path, trusted=False, since=each.since)
    return TrustView(path=each.path, trusted=True, since=each.since, grants=_grant_row(file))


def _settings_file(place: Path) -> SettingsFile:
    file = project_file(place.absolute())
    if file is None:
        raise NotFound(
            f"no settings file of a project holds in {str(place)!r}",
            f"a project has {OWN_FILE}, or [tool.ctxmgr] in {SHARED_FILE}",
        )
    return file


def _show(place: Path) -> TrustView:
    file = _settings_file(place)
    return _view(file, place, kept.find(file.path, file.content, os.environ))


def _grant(place: Path) -> TrustView:
    file = _settings_file(place)
    commands = {fingerprint for _, _, fingerprint in _commands(file, place)}
    return _view(file, place, kept.grant(file.path, file.content, commands, os.environ))


def _revoke(place: Path) -> list[TrustView]:
    paths = [place / OWN_FILE, place / SHARED_FILE]
    with suppress(CtxmgrError):  # the file may be gone or broken, but its trust must end
        paths.insert(0, _settings_file(place).path)
    return [TrustView(path=kept.identity(path), trusted=False) for path in paths if kept.revoke(path, os.environ)]


def _view(file: SettingsFile, place: Path, trust: kept.Trust | None) -> TrustView:
    trusted = frozenset[str]() if trust is None else trust.commands
    commands = [
        TrustedCommand(probe=probe.name, folder=folder, argv=probe.argv, trusted=fingerprint in trusted)
        for probe, folder, fingerprint in _commands(file, place)
    ]
    return TrustView(
        path=str(file.path), trusted=trust is not None, since=None if trust is None else trust.since, grants=_grant_row(file),
        commands=commands,
    )  # fmt: skip


def _grant_row(file: SettingsFile) -> dict[str, object]:
    return {name: file.values[name] for name in grants(file)}


def _commands(file: SettingsFile, place: Path) -> Iterator[tuple[Probe, str, str]]:
    """Yield the commands of the goals in the project's folder and in the named folder, with their fingerprints."""
    from ctxmgr.goals.probes import fingerprint
    from ctxmgr.goals.service import Goals

    for folder in dict.fromkeys(os.path.realpath(each) for each in (file.path.parent, place)):
        try:
            with Goals.open(folder) as goals:
                probes = goals.state().probes
        except NotFound:  # a project without a goal has no commands to trust
            continue
        for probe in probes:
            if probe.kind == "command":
                yield probe, folder, fingerprint(probe, Path(folder))


_NAME = 14


def show_trust(printer: Printer, rows: Sequence[TrustView]) -> None:
    """Show every file with what it grants. All values come from the project and pass the printer's filter."""
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
