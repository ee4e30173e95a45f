"""Settings from files and the environment: where the store is, and the thresholds.

Precedence: what a call says, then the environment, then ``ctxmgr.toml`` or ``[tool.ctxmgr]`` of ``pyproject.toml`` in the
nearest folder upwards that has either.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ctxmgr import places
from ctxmgr.errors import InvalidInput

STORE_VARIABLE = places.STORE_VARIABLE
STORE_NAME = Path(places.STORE)


@dataclass(frozen=True, slots=True)
class Config:
    """What the nearest configuration file says.

    Attributes:
        path: the file, or None when there is none.
        store: path of the store, resolved against the file's folder.
        detect: the ``detect`` table, checked by the detectors' settings.
        attempts: how often the same loop is answered before a person is needed.
        diff: whether continuations leave out what their agent was given before.
        model: the ``recover.model`` table, checked where a model is chosen.
        routes: the ``recover.routes`` table, or the path of a file that holds one; checked where it is used.
        artifacts: the ``artifacts`` table: which versions `version prune` keeps; checked where it is used.
        allow_commands: whether probes of a goal may run commands.
    """

    path: Path | None = None
    store: str | None = None
    detect: Mapping[str, Any] = field(default_factory=lambda: dict[str, Any]())
    attempts: int | None = None
    diff: bool = False
    model: Mapping[str, Any] = field(default_factory=lambda: dict[str, Any]())
    routes: Mapping[str, Any] | Path | None = None
    artifacts: Mapping[str, Any] = field(default_factory=lambda: dict[str, Any]())
    allow_commands: bool = False


def load_config(folder: Path) -> Config:
    """Return the configuration that holds in a folder.

    Raises:
        InvalidInput: the file is not TOML or holds an unknown or wrong setting.
    """
    for path in map(Path, places.settings_files(str(folder))):
        if (found := _table(path, ("tool", places.NAME) if path.name == places.SHARED_FILE else ())) is not None:
            return _config(path, found)
    return Config()


def _table(path: Path, names: tuple[str, ...]) -> dict[str, Any] | None:
    try:
        value: Any = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        if names:  # somebody else's pyproject.toml is not ours to complain about
            return None
        raise InvalidInput(f"{path}: {error}", "mend the file, or move it away") from None
    for name in names:
        value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _config(path: Path, table: dict[str, Any]) -> Config:
    if unknown := sorted(set(table) - {"store", "detect", "recover", "artifacts", "goal"}):
        known = "known: store, [detect], [recover], [artifacts], [goal]"
        raise InvalidInput(f"{path}: unknown setting {unknown[0]!r}", known)
    store, detect, recover = table.get("store"), table.get("detect", {}), table.get("recover", {})
    artifacts, goal = table.get("artifacts", {}), table.get("goal", {})
    if store is not None and not isinstance(store, str):
        raise InvalidInput(f"{path}: store must be text", 'e.g. store = ".ctxmgr/history.db"')
    if not all(isinstance(item, dict) for item in (detect, recover, artifacts, goal)):
        raise InvalidInput(f"{path}: detect, recover, artifacts and goal must be tables", "e.g. [detect]")
    return Config(
        path=path,
        store=None if store is None else str(path.parent / store),
        detect=cast("dict[str, Any]", detect),
        artifacts=cast("dict[str, Any]", artifacts),
        allow_commands=_allows_commands(path, cast("dict[str, Any]", goal)),
        **_recovery(path, cast("dict[str, Any]", recover)),
    )


def _allows_commands(path: Path, table: dict[str, Any]) -> bool:
    """Return the checked setting of the ``goal`` table."""
    if unknown := sorted(set(table) - {"allow_commands"}):
        raise InvalidInput(f"{path}: unknown setting goal.{unknown[0]}", "known: allow_commands")
    allow = table.get("allow_commands", False)
    if not isinstance(allow, bool):
        raise InvalidInput(f"{path}: goal.allow_commands must be true or false", "e.g. allow_commands = true")
    return allow


def _recovery(path: Path, table: dict[str, Any]) -> dict[str, Any]:
    """Return the checked settings of the ``recover`` table."""
    if unknown := sorted(set(table) - {"attempts", "diff", "model", "routes"}):
        raise InvalidInput(f"{path}: unknown setting recover.{unknown[0]}", "known: attempts, diff, model, routes")
    attempts, diff, model, routes = table.get("attempts"), table.get("diff", False), table.get("model", {}), table.get("routes")
    if attempts is not None and (not isinstance(attempts, int) or isinstance(attempts, bool) or attempts < 1):
        raise InvalidInput(f"{path}: recover.attempts must be a number from 1 up", "e.g. attempts = 2")
    if not isinstance(diff, bool):
        raise InvalidInput(f"{path}: recover.diff must be true or false", "e.g. diff = true")
    if isinstance(model, str):
        model = {"name": model}
    if not isinstance(model, dict):
        raise InvalidInput(f"{path}: recover.model must be a table", 'e.g. [recover.model] name = "ollama:qwen3"')
    if isinstance(routes, str):
        routes = path.parent / routes
    elif routes is not None and not isinstance(routes, dict):
        raise InvalidInput(
            f"{path}: recover.routes must be a table, or the path of a file that holds one", 'e.g. routes = "routes.toml"'
        )
    return {"attempts": attempts, "diff": diff, "model": model, "routes": routes}


def find_store(folder: Path, environment: Mapping[str, str], config: Config) -> tuple[str, bool]:
    """Return (the store's path, whether it was chosen explicitly).

    ``CTXMGR_STORE``, else the configuration, else the nearest ``.ctxmgr/history.db`` upwards, else the one that a writing
    command would make in this folder.
    """
    if named := environment.get(STORE_VARIABLE):
        return named, True
    if config.store is not None:
        return config.store, True
    return places.nearest_store(str(folder)), False
