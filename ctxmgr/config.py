"""Settings from files and the environment: the store, thresholds, models, commands, and who may set them.

Precedence: arguments of a call, then the environment, then the project's file (``ctxmgr.toml``, or ``[tool.ctxmgr]`` in
``pyproject.toml``, from the nearest parent folder that has either), then the user's own file
(``$XDG_CONFIG_HOME/ctxmgr/config.toml``), then the defaults.

Somebody else may have written a project's file. It can tune, but grants nothing (design ruling 29). The table `SETTINGS` says
what such a file may set. Other settings in it are ignored and reported, unless the user trusts the file (`grant`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, get_args

from ctxmgr.base import paths
from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.base.paths import MAX_SETTINGS_BYTES, is_inside, make_private_folder, read_regular, replace_file
from ctxmgr.errors import InvalidInput, StorageFailed
from ctxmgr.log.ids import now

if TYPE_CHECKING:
    from pathlib import Path

_FOLDER = os.path.join("ctxmgr", "trust")
_SUFFIX = ".json"
_MAX_TRUST_BYTES = 1_000_000
_GROUP_AND_OTHERS = 0o077  # permission bits


@dataclass(frozen=True, slots=True)
class Trust:
    """A trusted file.

    Attributes:
        path: path of the settings file, with links in its folder resolved.
        digest: SHA-256 of its content in hex.
        commands: fingerprints of the commands of probes that the user trusted with it.
        since: time of the trust, RFC 3339.
    """

    path: str
    digest: str
    commands: frozenset[str]
    since: str


def trust_folder(environment: Mapping[str, str]) -> str:
    """Return the folder of the trust records."""
    return os.path.join(paths.user_folder(environment, "XDG_STATE_HOME", os.path.join(".local", "state")), _FOLDER)


def identity(path: str | os.PathLike[str]) -> str:
    """Return the path of a settings file with links in its folder resolved. If the file itself is a link, the link stays."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


def find(path: str | os.PathLike[str], content: bytes, environment: Mapping[str, str]) -> Trust | None:
    """Return the trust in a file with this content, or None.

    Records that somebody else may have written do not count. The record and its folder must belong to the user alone, and must
    lie outside of the project.
    """
    folder, place = trust_folder(environment), identity(path)
    # A project that contains the state folder (a home under version control) could come with its own trust.
    if _contains(os.path.dirname(place), folder) or not _is_private(folder):
        return None
    found = _read(os.path.join(folder, _name(place)))
    return found if found is not None and found.path == place and found.digest == _digest(content) else None


def grant(path: str | os.PathLike[str], content: bytes, commands: Collection[str], environment: Mapping[str, str]) -> Trust:
    """Trust a file with this content, together with these commands.

    Raises:
        InvalidInput: the project contains the state folder, so its author could write the trust there.
        StorageFailed: the system refuses; the trust is unchanged.
    """
    import json

    folder, place = trust_folder(environment), identity(path)
    # Otherwise the project could come with a record of its own trust.
    if _contains(os.path.dirname(place), folder):
        raise InvalidInput(
            f"{place} can't be trusted: the state folder {folder} lies in the same project",
            f"write these settings into the user's own file instead, {os.path.join('~', '.config', 'ctxmgr', 'config.toml')}",
        )
    made = Trust(place, _digest(content), frozenset(commands), now())
    fields = {"v": 1, "path": place, "digest": made.digest, "commands": sorted(made.commands), "since": made.since}
    try:
        make_private_folder(folder)
        if not _is_private(folder):
            raise InvalidInput(f"{folder} can be used by others", f"chmod go= {folder}, and own it")
        replace_file(os.path.join(folder, _name(place)), (json.dumps(fields) + "\n").encode("ascii"), sync=True)
    except OSError as error:
        raise StorageFailed(f"can't write {folder}: {error.strerror}", "check the folder and its permissions") from None
    return made


def revoke(path: str | os.PathLike[str], environment: Mapping[str, str]) -> bool:
    """End the trust in a file, whatever its content is now. Return whether there was any.

    Raises:
        StorageFailed: the system refuses.
    """
    place = os.path.join(trust_folder(environment), _name(identity(path)))
    try:
        os.unlink(place)
    except (FileNotFoundError, NotADirectoryError):  # the file was not trusted
        return False
    except OSError as error:
        raise StorageFailed(f"can't remove {place}: {error.strerror}", "check the folder and its permissions") from None
    return True


def list_trusted(environment: Mapping[str, str]) -> list[Trust]:
    """Return all trusted files, ordered by path. Unreadable records are skipped."""
    folder = trust_folder(environment)
    if not _is_private(folder):
        return []
    found = [_read(os.path.join(folder, name)) for name in os.listdir(folder) if name.endswith(_SUFFIX)]
    return sorted((trust for trust in found if trust is not None), key=lambda trust: trust.path)


def _name(place: str) -> str:
    return _digest(os.fsencode(place)) + _SUFFIX


def _digest(content: bytes) -> str:
    from hashlib import sha256  # imported here, because most projects have no settings that need trust

    return sha256(content).hexdigest()


def _contains(project: str, folder: str) -> bool:
    """Whether the project's folder contains the state folder, by its path or through links."""
    return is_inside(project, os.path.realpath(folder))


def _is_private(folder: str) -> bool:
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & _GROUP_AND_OTHERS


def _read(path: str) -> Trust | None:
    import json

    try:
        # A record grants trust, so it counts only if no other user can write it.
        status = os.lstat(path)
        if status.st_uid != os.geteuid() or status.st_mode & _GROUP_AND_OTHERS:
            return None
        value: Any = json.loads(read_regular(path, _MAX_TRUST_BYTES, follow=False))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    commands: Any = fields.get("commands")
    texts = [fields.get("path"), fields.get("digest"), fields.get("since")]
    if not isinstance(commands, list) or not all(isinstance(text, str) for text in (*texts, *cast("list[Any]", commands))):
        return None
    return Trust(fields["path"], fields["digest"], frozenset(cast("list[str]", commands)), fields["since"])


STORE_VARIABLE = paths.STORE_VARIABLE

Origin = Literal["built-in", "user", "project"]
LiveMode = Literal["advise", "deny", "watch"]


class Setting(NamedTuple):
    """Who may change a setting. Users always may, by an option, the environment or their own file.

    Attributes:
        project: what a project's file may do without trust: set it freely, name places ``inside`` its own folder, or only
            ``restrict`` what is allowed.
        about: what it sets, in a sentence.
        option: the option of the command line, or None.
        variable: the environment variable, or None.
    """

    project: Literal["free", "inside", "restrict"]
    about: str
    option: str | None = None
    variable: str | None = None


SETTINGS: Mapping[str, Setting] = {
    "store": Setting("inside", "The path of the store.", "--store", STORE_VARIABLE),
    "detect": Setting("free", "The thresholds of the detectors.", "--set"),
    "artifacts": Setting("free", "Which versions 'version prune' keeps: keep_versions, keep_days, always_keep."),
    "recover.attempts": Setting("free", "How often one loop is answered before a person is needed; 2 unless it is set."),
    "recover.diff": Setting("free", "Whether a continuation leaves out what its agent was given before.", "--diff"),
    "recover.routes": Setting("inside", "Which agents may follow each other: a table, or the path of a file.", "--routes"),
    "recover.model": Setting("restrict", "The language model that is asked too, and how.", "--model", "CTXMGR_MODEL"),
    "goal.allow_commands": Setting(
        "restrict", "Whether probes of a goal may run commands.", "--allow-commands", "CTXMGR_ALLOW_COMMANDS"
    ),
    "live.mode": Setting("free", "What a client's hook does about a loop: advise, deny or watch."),
    "live.quiet_kinds": Setting("free", "Kinds of findings of which the hook says nothing."),
    "live.quiet_actions": Setting("free", "Actions of which the hook says nothing."),
    "live.exec": Setting("restrict", "The command that calls a person when an agent goes on after all."),
    "live.watch": Setting("restrict", "Whether the first hook starts the watcher, which finds calls that hang."),
    "live.desktop": Setting("restrict", "Whether the watcher tells you on the desktop."),
}
"""Every setting of a file. Files with other settings are refused, so a new setting must be added here first."""

_TABLES = frozenset(name.partition(".")[0] for name in SETTINGS if "." in name)


@dataclass(frozen=True, slots=True)
class Config:
    """The settings for a folder.

    Attributes:
        path: the project's file, or None.
        user: the user's own file, or None.
        store: path of the store, resolved against the folder of the file that names it.
        detect: the ``detect`` table; the detectors' settings check it.
        attempts: number of answers to the same loop before a person is needed.
        diff: whether continuations leave out what their agent got before.
        model: the ``recover.model`` table, checked when a model is chosen.
        routes: the ``recover.routes`` table, or the path of a file that holds one; checked at use.
        artifacts: the ``artifacts`` table, which says which versions `version prune` keeps; checked at use.
        allow_commands: whether probes of a goal may run commands.
        trusted_commands: fingerprints of the commands that may run; None if ``allow_commands`` alone decides.
        live_mode: what a client's hook does about a loop: tell the agent (``advise``), also refuse the call if the loop goes on
            (``deny``), or only count (``watch``).
        live_quiet: kinds of findings, and actions, that the hook does not report.
        live_exec: the command that calls a person if an agent continues its loop or hangs; empty for none.
        live_watch: whether hooks start the watcher, which looks for hangs.
        live_desktop: whether a notice on the desktop calls a person too.
        origins: setting -> origin of its value.
        refused: settings in the project's file that it may not set.
        trusted: whether the user trusts the project's file.
        foreign: files that are ignored because they belong to other users.
    """

    path: Path | None = None
    user: Path | None = None
    store: str | None = None
    detect: Mapping[str, Any] = field(default_factory=lambda: dict[str, Any]())
    attempts: int | None = None
    diff: bool = False
    model: Mapping[str, Any] = field(default_factory=lambda: dict[str, Any]())
    routes: Mapping[str, Any] | Path | None = None
    artifacts: Mapping[str, Any] = field(default_factory=lambda: dict[str, Any]())
    allow_commands: bool = False
    trusted_commands: frozenset[str] | None = None
    live_mode: LiveMode = "advise"
    live_quiet: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    live_exec: tuple[str, ...] = ()
    live_watch: bool = True
    live_desktop: bool = True
    origins: Mapping[str, Origin] = field(default_factory=lambda: dict[str, Origin](), compare=False)
    refused: tuple[str, ...] = ()
    trusted: bool = False
    foreign: tuple[str, ...] = ()

    def find_file(self, setting: str) -> Path | None:
        """Return the file that sets a setting, or None for a default."""
        return {"user": self.user, "project": self.path}.get(self.origins.get(setting, "built-in"))

    def is_quiet(self, kind: str, evidence: Mapping[str, Any]) -> bool:
        """Whether the hook must not report this finding: its kind is quiet, or all actions in its evidence are."""
        kinds, actions = self.live_quiet
        named = {str(step.get("action")) for name in ("steps", "openCalls") for step in evidence.get(name) or ()}
        return kind in kinds or (bool(named) and named <= actions)

    @property
    def routes_folder(self) -> Path | None:
        """The folder that must contain the files named in the routing table; None if they may lie anywhere."""
        confined = self.path is not None and self.origins.get("recover.routes") == "project" and not self.trusted
        return self.path.parent if confined and self.path is not None else None

    def warnings(self, *names: str) -> list[str]:
        """Return a line per ignored setting and file, with what to do about it; with ``names``, only for these settings."""
        left_out = [self._refusal(name) for name in self.refused if not names or name in names]
        return left_out if names else left_out + [foreign_file_message(path) for path in self.foreign]

    def _refusal(self, name: str) -> str:
        setting = SETTINGS[name]
        by = "".join(f", {source}" for source in (setting.option, setting.variable) if source)
        what = "to a place outside of its folder" if setting.project == "inside" else "which only you may"
        return (
            f"{self.path} sets {name}, {what}: left out. To have it, set it yourself (your own config.toml{by}), "
            "or read that file and then run 'ctxmgr trust'"
        )


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A file of settings: its raw content, and its checked values under the names in `SETTINGS`."""

    path: Path
    content: bytes
    values: dict[str, Any]


def load_config(folder: str | os.PathLike[str], environment: Mapping[str, str] | None = None) -> Config:
    """Return the configuration for a folder.

    Args:
        folder: where the upward search for the project's file starts.
        environment: by default that of the process; it locates the user's own file and trust records.

    Raises:
        InvalidInput: a file is not TOML, not a regular file, too large, or has an unknown or wrong setting.
    """
    environment = os.environ if environment is None else environment
    foreign: list[str] = []
    user, project = _user(environment), project_file(folder, foreign)
    if project is None:
        return _merge(user, None, {}, (), None, foreign)
    refused = tuple(name for name, value in project.values.items() if not _is_allowed(project.path, name, value))
    # Trust is looked up only if it can make a difference.
    asks = refused or "recover.routes" in project.values
    trusted = find(project.path, project.content, environment) if asks else None
    kept = {name: value for name, value in project.values.items() if trusted is not None or name not in refused}
    return _merge(user, project, kept, () if trusted is not None else refused, trusted, foreign)


def foreign_file_message(path: str) -> str:
    """Return the warning about a file of settings that belongs to another user."""
    return f"{path} belongs to another user: left out. To have it, make it yours with chown, or copy what you want of it"


def project_file(folder: str | os.PathLike[str], foreign: list[str] | None = None) -> SettingsFile | None:
    """Return the settings in the nearest project file, including those that it may not set.

    ``foreign`` collects nearer files that belong to other users.

    Raises:
        InvalidInput: as `load_config`.
    """
    for path in paths.settings_files(os.fspath(folder), foreign):
        shared = os.path.basename(path) == paths.SHARED_FILE
        if (found := _file(path, ("tool", paths.NAME) if shared else (), lenient=shared)) is not None:
            return found
    return None


def grants(file: SettingsFile) -> list[str]:
    """Return the names of the settings in a project's file that need the user's trust."""
    return [name for name, value in file.values.items() if not _is_allowed(file.path, name, value)]


def _is_allowed(path: Path, name: str, value: Any) -> bool:
    """Whether a project's file may set this without trust."""
    rule = SETTINGS[name].project
    if rule == "free":
        return True
    if rule == "inside":
        # A table of routes names files too. They are checked where the table is read.
        return not isinstance(value, str) or paths.is_project_store(str(path.parent), value)
    return value is False or value in ({"name": "none"}, [])  # switching off is always allowed


def _user(environment: Mapping[str, str]) -> SettingsFile | None:
    path = paths.user_file(environment)
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    # Root may set settings for all users. Read permission does not matter, because settings are not secret.
    if status.st_uid not in (0, os.geteuid()) or status.st_mode & stat.S_IWOTH:
        raise InvalidInput(f"{path}: others can write it, and it may grant things", f"own it, and chmod o-w {path}")
    return _file(path, (), lenient=False)


def _file(found: str, names: tuple[str, ...], *, lenient: bool) -> SettingsFile | None:
    from pathlib import Path  # most folders have no file of settings

    path = Path(found)
    try:
        content = read_regular(path, MAX_SETTINGS_BYTES)
        import tomllib

        value: Any = tomllib.loads(content.decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        if lenient:  # a faulty pyproject.toml of somebody else is not reported
            return None
        reason = error.strerror if isinstance(error, OSError) else _reason(error)
        raise InvalidInput(f"{path}: {reason}", "mend the file, or move it away") from None
    for name in names:
        value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return SettingsFile(path, content, _values(path, cast("dict[str, Any]", value))) if isinstance(value, dict) else None


def _reason(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _values(path: Path, table: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a file under the names in `SETTINGS`, after checking their types.

    Raises:
        InvalidInput: a setting is unknown or has the wrong type.
    """
    known = sorted({name.partition(".")[0] for name in SETTINGS})
    if unknown := sorted(set(table) - set(known)):
        raise InvalidInput(f"{path}: unknown setting {unknown[0]!r}", f"known: {', '.join(known)}")
    if wrong := [name for name in known if name != "store" and not isinstance(table.get(name, {}), dict)]:
        raise InvalidInput(f"{path}: detect, recover, artifacts, goal and live must be tables", f"e.g. [{wrong[0]}]")
    values: dict[str, Any] = {}
    for name, value in table.items():
        values |= {f"{name}.{inner}": item for inner, item in value.items()} if name in _TABLES else {name: value}
    for name in values:
        if name not in SETTINGS:
            known = [setting.partition(".")[2] for setting in SETTINGS if setting.startswith(name.partition(".")[0] + ".")]
            raise InvalidInput(f"{path}: unknown setting {name}", f"known: {', '.join(known)}")
    # Converted before the check: ``model = "none"`` switches models off, which a project may do without trust.
    if isinstance(values.get("recover.model"), str):
        values["recover.model"] = {"name": values["recover.model"]}
    for name, value in values.items():
        _check(path, name, value)
    return values


_KINDS: Mapping[str, tuple[tuple[type, ...], str, str]] = {
    "store": ((str,), "text", 'e.g. store = ".ctxmgr/history.db"'),
    "recover.attempts": ((int,), "a number from 1 up", "e.g. attempts = 2"),
    "recover.diff": ((bool,), "true or false", "e.g. diff = true"),
    "recover.routes": ((dict, str), "a table, or the path of a file that holds one", 'e.g. routes = "routes.toml"'),
    "recover.model": ((dict,), "a table", 'e.g. [recover.model] name = "ollama:qwen3"'),
    "goal.allow_commands": ((bool,), "true or false", "e.g. allow_commands = true"),
    "live.mode": ((str,), "advise, deny or watch", 'e.g. mode = "deny"'),
    "live.quiet_kinds": ((list,), "a list of kinds of findings", 'e.g. quiet_kinds = ["nearDuplicate"]'),
    "live.quiet_actions": ((list,), "a list of actions", 'e.g. quiet_actions = ["wait_for_build"]'),
    "live.exec": ((list,), "a list of a command and its arguments", 'e.g. exec = ["notify-send", "an agent is stuck"]'),
    "live.watch": ((bool,), "true or false", "e.g. watch = false"),
    "live.desktop": ((bool,), "true or false", "e.g. desktop = false"),
}


def _check(path: Path, name: str, value: Any) -> None:
    kinds, words, hint = _KINDS.get(name, ((object,), "", ""))
    # In Python, True is an int too.
    wrong = not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds and object not in kinds)
    wrong = wrong or (name == "recover.attempts" and value < 1) or (name == "live.mode" and value not in get_args(LiveMode))
    wrong = wrong or (kinds == (list,) and not all(isinstance(item, str) and item for item in cast("list[Any]", value)))
    if wrong:
        raise InvalidInput(f"{path}: {name} must be {words}", hint)


def _merge(
    user: SettingsFile | None,
    project: SettingsFile | None,
    kept: dict[str, Any],
    refused: tuple[str, ...],
    trusted: Trust | None,
    foreign: list[str],
) -> Config:
    """Return the settings of both files. Tables of thresholds are merged key by key; other values are replaced."""
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    settings: list[tuple[Origin, SettingsFile, str]] = []
    if user is not None:
        settings.extend(("user", user, name) for name in user.values)
    if project is not None:
        settings.extend(("project", project, name) for name in kept)
    for origin, file, name in settings:  # those of the project come last and replace the user's
        path, value = file.path, file.values[name]
        # A project's store lies in its folder, so ``~`` does not mean the home there.
        if name == "store" and not paths.is_url(value):
            value = str(path.parent / (os.path.expanduser(value) if origin == "user" else value))
        elif name == "recover.routes" and isinstance(value, str):
            value = path.parent / value
        elif name in ("detect", "artifacts"):
            value = {**values.get(name, {}), **value}
        values[name], origins[name] = value, origin
    # The user's own file allows any command. A project's file allows only the commands that the user saw when trusting it.
    commands = trusted.commands if trusted is not None and origins.get("goal.allow_commands") == "project" else None
    return Config(
        path=None if project is None else project.path,
        user=None if user is None else user.path,
        store=values.get("store"),
        detect=values.get("detect", {}),
        attempts=values.get("recover.attempts"),
        diff=values.get("recover.diff", False),
        model=values.get("recover.model", {}),
        routes=values.get("recover.routes"),
        artifacts=values.get("artifacts", {}),
        allow_commands=values.get("goal.allow_commands", False),
        trusted_commands=commands,
        live_mode=values.get("live.mode", "advise"),
        live_quiet=(frozenset(values.get("live.quiet_kinds", ())), frozenset(values.get("live.quiet_actions", ()))),
        live_exec=tuple(values.get("live.exec", ())),
        live_watch=values.get("live.watch", True),
        live_desktop=values.get("live.desktop", True),
        origins=origins,
        refused=refused,
        trusted=trusted is not None,
        foreign=tuple(foreign),
    )


def find_store(folder: str | os.PathLike[str], environment: Mapping[str, str], config: Config) -> tuple[str, bool]:
    """Return (path of the store, whether it was chosen explicitly).

    The path is ``CTXMGR_STORE``, else the configured store, else the nearest ``.ctxmgr/history.db`` upwards, else the path at
    which a writing command would create one.
    """
    if named := environment.get(STORE_VARIABLE):
        return named, True
    if config.store is not None:
        return config.store, True
    return paths.nearest_store(os.fspath(folder)), False
