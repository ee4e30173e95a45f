"""Say of each client whether it calls the hook, when it did last, and what a call costs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import get_args

from ctxmgr.clients import CLIENTS, client
from ctxmgr.clients.interface import Client
from ctxmgr.clients.session_file import state_folder
from ctxmgr.detect.descriptions import duration
from ctxmgr.live.installation import Scope, commands_in, hook_command, is_installed
from ctxmgr.types.setup import Check

_STARTS = 5
_SECONDS = 20.0


def check_clients(folder: Path, environment: Mapping[str, str]) -> Iterator[Check]:
    """Yield a row for each client that is installed on this machine, or whose settings start the hook."""
    for name in CLIENTS:
        asked = client(name)
        assert asked is not None, "every name of the tuple has its module"
        scopes = _scopes(asked, folder, environment)
        plugin = asked.has_plugin(environment)
        if scopes or plugin:
            yield _check(asked, scopes, plugin, folder, environment)
        elif shutil.which(asked.program):
            finding = f"{asked.title} is here, and does not call the hook"
            hint = f"'ctxmgr install {name}' has its agents told when they go in circles"
            yield Check(name=f"hook.{name}", level="info", finding=finding, hint=hint, detail={"installed": False})


def _scopes(asked: Client, folder: Path, environment: Mapping[str, str]) -> list[Scope]:
    """Return where it is installed; in one's home the settings of a project are one's own."""
    found: dict[str | None, Scope] = {}
    for scope in get_args(Scope):
        if is_installed(asked, scope, folder, environment):
            found.setdefault(asked.settings_file(scope, str(folder), environment), scope)
    return [*found.values()]


def _check(asked: Client, scopes: Sequence[Scope], plugin: bool, folder: Path, environment: Mapping[str, str]) -> Check:
    paths = [asked.settings_file(scope, str(folder), environment) or "" for scope in scopes]
    gone = [word for path in paths for word in commands_in(path) if word.startswith("/") and not os.path.exists(word)]
    undone = [told for path in paths if (told := asked.left_to_do(os.path.realpath(path), environment)) is not None]
    last, told = last_called(asked.name)
    cost, alone = cost_of(asked)
    parts = ["installed " + " and ".join([f"for the {scope}" for scope in scopes] + (["as a plugin"] if plugin else []))]
    if asked.asks_trust:
        parts.append("not trusted yet" if undone else "trusted")
    parts.append(
        "never called yet"
        if last is None
        else f"called {duration(max(0.0, time.time() - last))} ago, agents told so far: {told}"
    )
    if cost is not None and alone:
        look = "a third round" if asked.counts_rounds else "a call"
        parts.append(f"{look} takes {1000 * cost:.0f} ms, Python alone {1000 * alone:.0f} ms")
    places = [*scopes, *(["plugin"] if plugin else [])]
    detail = {"installed": True, "scopes": places, "trusted": not undone, "lastCalled": last,
              "told": told, "callSeconds": cost, "pythonSeconds": alone}  # fmt: skip
    finding = ", ".join(parts)
    if gone:
        finding, hint = f"{gone[0]} is gone, so nothing is called", f"install it again: 'ctxmgr install {asked.name}'"
        return Check(name=f"hook.{asked.name}", level="warn", finding=finding, hint=hint, detail=detail)
    level, hint = ("warn", undone[0]) if undone else ("ok", None)
    return Check(name=f"hook.{asked.name}", level=level, finding=finding, hint=hint, detail=detail)


def last_called(name: str) -> tuple[float | None, int]:
    """Return when a client's agent was counted last, as seconds of the epoch, and how often its agents were told."""
    last, told = None, 0
    with suppress(OSError), os.scandir(state_folder()) as found:
        for entry in found:
            if entry.name.startswith(f"{name}-") and "." not in entry.name and entry.is_file(follow_symlinks=False):
                moment = entry.stat(follow_symlinks=False).st_mtime
                last = moment if last is None else max(last, moment)
                with open(entry.path, "rb") as stream:
                    told += sum(line.startswith(b"t ") for line in stream)
    return last, told


def cost_of(asked: Client) -> tuple[float | None, float | None]:
    """Return the least seconds that a call of the hook takes here, and those of Python alone."""
    command = hook_command(asked)
    return _least(command), _least([sys.executable, "-I", "-S", "-c", "pass"])


def _least(command: Sequence[str]) -> float | None:
    taken: list[float] = []
    for _ in range(_STARTS):
        start = time.perf_counter()
        try:
            subprocess.run(command, input=b"{}", capture_output=True, timeout=_SECONDS, check=True)
        except (OSError, subprocess.SubprocessError):
            return None
        taken.append(time.perf_counter() - start)
    return min(taken)
