"""The checks of ``doctor``: the store in use (which one, why, content, damage) and the environment.

The environment is Python, SQLite, the configuration, the cache, the extras, and the logs that could be imported.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ctxmgr import __version__
from ctxmgr.base.paths import STORE, is_url
from ctxmgr.config import SETTINGS, STORE_VARIABLE, Config, find_store, foreign_file_message, load_config
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.errors import CtxmgrError
from ctxmgr.history.formats import IMPORTERS
from ctxmgr.history.open_history import open_history
from ctxmgr.history.shipper import known_progress, printable_location
from ctxmgr.store import LogStore, open_store
from ctxmgr.store.status import MAX_FAULTS, contents, library, quick_check, server_facts
from ctxmgr.types.setup import Check

LITTLE_SPACE = 100_000_000
"""Free bytes below which recording may soon fail."""

_STORE = Path(STORE)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_SIDE_FILES = ("", "-wal", "-shm")
_GIT_SECONDS = 5.0

EXTRAS: Mapping[str, tuple[str, str]] = {
    "jq": ("jq", "--jq EXPR"),
    "zstd": ("zstandard", "reading compressed Codex logs"),
    "postgresql": ("psycopg", "stores on a server"),
    "archive": ("duckdb", "archives: store retain, store restore"),
    "s3": ("obstore", "archives in a bucket"),
    "llm": ("pydantic-ai-slim", "recovery with a model"),
}
"""Extra -> (the distribution that it installs, its purpose)."""


def check_store(location: str | None, folder: Path, environment: Mapping[str, str], config: Config) -> Iterator[Check]:
    """Yield the checks of the store that a command would use here. Nothing is written to it.

    Args:
        location: the path given by an option, if any.
        folder: the folder where the search for a store starts.
        environment: the environment of the process.
        config: the configuration.
    """
    path, why, explicit = _find_store(location, folder, environment, config)
    if is_url(path):
        yield from _check_server(path, why)
        return
    place = Path(path)
    detail = {"path": path, "why": why, "exists": os.path.exists(path)}
    # A new user has no store yet. That is no fault.
    if not os.path.lexists(path) and not explicit:
        hint = "'ctxmgr import' or 'ctxmgr record' makes it"
        yield Check(name="store.path", level="info", finding=f"{path} is not there yet", hint=hint, detail=detail)
        yield check_space(place)
        return
    if os.path.lexists(path):
        yield Check(name="store.path", level="ok", finding=f"{path} ({why})", detail=detail)
    yield from _content_checks(path)
    if place.is_file():
        yield _permissions(place)
        yield _access(place)
        yield from _git_check(place)
    yield check_space(place)


def _check_server(url: str, why: str) -> Iterator[Check]:
    """Yield the checks of a store on a server."""
    place = printable_location(url)
    try:
        with closing(open_store(url, readonly=True)) as store:
            summary = contents(store)
            facts = server_facts(store)
            team = "" if facts["team"] is None else f" of team {facts['team']}"
            yield Check(name="store.path", level="ok", finding=f"{place} ({why})", detail={"path": place, "why": why})
            yield Check(
                name="store.server", level="ok", detail=facts,
                finding=f"PostgreSQL {facts['version']}, as {facts['user']}{team}, {facts['encrypted'] or 'not encrypted'}, "
                f"answers in {facts['milliseconds']} ms, clock {facts['clockAhead']:+.1f} s, "
                f"{'trigrams' if facts['trigrams'] else 'no trigrams: searching reads the texts'}",
            )  # fmt: skip
            yield Check(
                name="store.contents", level="ok",
                finding=f"sessions: {summary.sessions:,}, entries: {summary.entries:,}, schema: {summary.schema}",
                detail={"kind": "server", "origin": None, "sessions": summary.sessions, "entries": summary.entries,
                        "schema": summary.schema, "knownSchema": summary.latest},
            )  # fmt: skip
    except CtxmgrError as error:
        yield Check(name="store.path", level="fail", finding=error.message, hint=error.hint, kind=error.kind,
                    detail={"path": place})  # fmt: skip


def check_shipping() -> Iterator[Check]:
    """Yield a check for each log of this machine that is shipped to another store."""
    for each in known_progress():
        detail = each.to_json()
        finding = f"{each.source}: {each.lag:,} of {each.size:,} {detail['unit']} left for {each.target}"
        if each.error is not None:
            finding += f"; failing since {each.since}: {each.error}"
        hint = None if each.error is None else "'ctxmgr ship --follow' goes on where it is; the log keeps everything"
        if each.archived:
            finding += f"; {each.archived:,} records archived in {each.archive}"
        if each.refused:
            finding += f"; {each.refusal_text()}"
            hint = hint or "the log keeps them; 'ctxmgr store restore' takes a session that was archived back"
        yield Check(name="ship", level="ok" if hint is None else "warn", finding=finding, detail=detail, hint=hint)


def _find_store(location: str | None, folder: Path, environment: Mapping[str, str], config: Config) -> tuple[str, str, bool]:
    """Return (path of the store, the reason for it, whether a person named it). See `ctxmgr.config.find_store`."""
    if location is not None:
        return location, "named by --store", True
    path, explicit = find_store(folder, environment, config)
    if environment.get(STORE_VARIABLE):
        return path, f"named by {STORE_VARIABLE}", True
    if explicit:
        return path, f"named by {config.find_file('store')}", True
    return path, f"the nearest {_STORE} upwards", False


def _content_checks(path: str) -> Iterator[Check]:
    try:
        with closing(open_history(path, explicit=True, readonly=True)[0]) as store:
            summary = contents(store)
            files = [Path(path + suffix) for suffix in _SIDE_FILES]
            size = sum(file.stat().st_size for file in files if file.is_file())
            kind = "log" if store.origin is not None or isinstance(store, LogStore) else "database"
            origin = f"a log of {store.origin}, read in place; " if store.origin is not None else ""
            yield Check(
                name="store.contents", level="ok",
                finding=f"{origin}sessions: {summary.sessions:,}, entries: {summary.entries:,}, bytes: {size:,}, "
                f"schema: {summary.schema}",
                detail={"kind": kind, "origin": store.origin, "sessions": summary.sessions, "entries": summary.entries,
                        "bytes": size, "schema": summary.schema, "knownSchema": summary.latest},
            )  # fmt: skip
            yield _damage(quick_check(store))
    except CtxmgrError as error:
        name = "store.contents" if os.path.lexists(path) else "store.path"
        yield Check(name=name, level="fail", finding=error.message, hint=error.hint, kind=error.kind, detail={"path": path})
    except OSError as error:
        finding = f"{path} can't be read: {error.strerror}"
        yield Check(name="store.contents", level="fail", finding=finding, hint="check its permissions", kind="storage")


def _damage(faults: list[str]) -> Check:
    if not faults:
        finding = "none seen by the quick check; 'ctxmgr verify' checks every record's sum"
        return Check(name="store.damage", level="ok", finding=finding, detail={"faults": []})
    return Check(
        name="store.damage", level="fail", kind="damaged",
        finding=("at least " if len(faults) >= MAX_FAULTS else "") + f"{len(faults)} damaged: {faults[0]}",
        hint="'ctxmgr verify' lists all of it; what is intact can be read", detail={"faults": faults},
    )  # fmt: skip


def _permissions(place: Path) -> Check:
    """Check that other users can't read the store: its files, and its folder if ctxmgr created the folder."""
    files_checked = [Path(f"{place}{suffix}") for suffix in _SIDE_FILES]
    # A folder that the user created may be open to others for good reasons.
    if place.parent.name == _STORE.parent.name:
        files_checked.append(place.parent)
    modes = {str(each): stat.S_IMODE(each.stat().st_mode) for each in files_checked if each.exists()}
    detail = {name: f"{mode:04o}" for name, mode in modes.items()}
    if any(mode & _OTHERS for mode in modes.values()):
        open_ones = [name for name, mode in modes.items() if mode & _OTHERS]
        return Check(
            name="store.permissions", level="warn", detail=detail,
            finding=f"{open_ones[0]} has mode {detail[open_ones[0]]}: other users may get at the history",
            hint=f"chmod go= {shlex.join(open_ones)}",
        )  # fmt: skip
    return Check(name="store.permissions", level="ok", finding="only its owner may read it", detail=detail)


def _access(place: Path) -> Check:
    readable = os.access(place, os.R_OK)
    # Check the folder too, because SQLite creates its journal and its write-ahead log beside the database.
    writable = os.access(place, os.W_OK) and os.access(place.parent, os.W_OK)
    detail = {"readable": readable, "writable": writable}
    if not readable:
        hint = "check the owner and the mode of the file"
        finding = "you may not read it"
        return Check(name="store.access", level="fail", finding=finding, hint=hint, detail=detail, kind="storage")
    if not writable:
        hint = "inspecting works; recording, notes and recovery need to write"
        return Check(name="store.access", level="warn", finding="it can be read but not written", hint=hint, detail=detail)
    return Check(name="store.access", level="ok", finding="it can be read and written", detail=detail)


def _git_check(place: Path) -> Iterator[Check]:
    """Warn if git would commit the history with the project that contains it."""
    place = place.absolute()
    tree = next((folder for folder in place.parents if (folder / ".git").exists()), None)
    if tree is None:
        return
    detail = {"workTree": str(tree)}
    ignored = _ask_git_ignored(place)
    if ignored:
        yield Check(name="store.git", level="ok", finding=f"git ignores it in {tree}", detail={**detail, "ignored": True})
    elif ignored is None:
        finding = f"it lies in the git work tree {tree}; whether git ignores it could not be asked"
        yield Check(name="store.git", level="info", finding=finding, detail={**detail, "ignored": None})
    else:
        inside = place.relative_to(tree)
        line = f"{_STORE.parent}/" if _STORE.parent.name in inside.parts else f"/{inside}"
        yield Check(
            name="store.git", level="warn", detail={**detail, "ignored": False},
            finding=f"git would commit it: it lies in {tree} and is not ignored", hint=f"add {line} to {tree / '.gitignore'}",
        )  # fmt: skip


def _ask_git_ignored(place: Path) -> bool | None:
    """Ask git whether it ignores a file. Return None if there is no git, or no answer."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # A repository is untrusted: its settings could make git start a program (fsmonitor), and GIT_* variables could mislead git.
    command = [
        "git",
        "--no-pager",
        "-c",
        "core.fsmonitor=false",
        "-c",
        "safe.bareRepository=explicit",
        "check-ignore",
        "--quiet",
        "--",
        str(place),
    ]
    try:
        ran = subprocess.run(
            command, cwd=place.parent, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, timeout=_GIT_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    # Exit code 128 is no answer but a fault, such as a folder of another owner.
    return {0: True, 1: False}.get(ran.returncode)


def check_space(place: Path) -> Check:
    """Check the free space on the disk of a store, which need not exist yet."""
    nearest = next(folder for folder in place.absolute().parents if folder.is_dir() or folder == folder.parent)
    try:
        free = shutil.disk_usage(nearest).free
    except OSError as error:
        return Check(name="store.space", level="info", finding=f"unknown: {error.strerror}")
    detail = {"folder": str(nearest), "freeBytes": free}
    if free < LITTLE_SPACE:
        hint = "a recording that meets a full disk fails; nothing is half written"
        return Check(name="store.space", level="warn", finding=f"only {free:,} bytes free", hint=hint, detail=detail)
    return Check(name="store.space", level="ok", finding=f"{free / 1e9:,.1f} GB free", detail=detail)


def check_program() -> Iterator[Check]:
    """Yield the versions of ctxmgr, Python and SQLite."""
    python = platform.python_version()
    yield Check(
        name="ctxmgr", level="ok", finding=f"{__version__} on Python {python}",
        detail={"version": __version__, "python": python, "platform": platform.platform(terse=True)},
    )  # fmt: skip
    found = library()
    detail = {"module": found.module, "version": found.version, "sound": found.fault is None}
    if found.fault is None:
        yield Check(name="sqlite", level="ok", finding=f"{found.version} from {found.module}", detail=detail)
    else:
        fault = found.fault
        yield Check(name="sqlite", level="fail", finding=fault.message, hint=fault.hint, detail=detail, kind=fault.kind)


def check_config(folder: Path) -> tuple[Config, Check]:
    """Return the configuration that applies in a folder, and its check. An invalid configuration counts as empty."""
    config = Config()
    try:
        config = load_config(folder)
        DetectSettings.from_table(config.detect)
    except CtxmgrError as error:
        detail = {"path": None if config.path is None else str(config.path), "valid": False}
        finding, hint = error.message, error.hint
        return config, Check(name="config", level="fail", finding=finding, hint=hint, detail=detail, kind=error.kind)
    except OSError as error:
        finding = f"{error.filename}: {error.strerror}"
        return config, Check(name="config", level="fail", finding=finding, hint="check its permissions", kind="storage")
    if config.path is None and config.user is None:
        finding = "no file: the defaults hold"
        return config, Check(name="config", level="info", finding=finding, detail={"path": None, "valid": True})
    files = [str(path) for path in (config.path, config.user) if path is not None]
    detail = {"path": None if config.path is None else str(config.path), "valid": True}
    finding = f"{' and '.join(files)} {'is' if len(files) == 1 else 'are'} valid"
    return config, Check(name="config", level="ok", finding=finding, detail=detail)


def check_settings(config: Config, environment: Mapping[str, str]) -> Iterator[Check]:
    """Yield the origin of each setting that is no default, and the refused settings of the project file (ruling 29)."""
    found: dict[str, str] = {}
    for name, setting in SETTINGS.items():
        if setting.variable is not None and environment.get(setting.variable):
            found[name] = setting.variable
        elif (path := config.find_file(name)) is not None:
            found[name] = str(path)
    origins = "; ".join(f"{name} from {origin}" for name, origin in found.items())
    detail: dict[str, Any] = {"origins": found, "refused": list(config.refused), "trusted": config.trusted}
    yield Check(name="settings", level="info", finding=origins or "all are built in", detail=detail)
    for path in config.foreign:
        finding, _, hint = foreign_file_message(path).partition(": left out. ")
        yield Check(name="settings.foreign", level="warn", finding=f"left out: {finding}", hint=hint, detail={"path": path})
    for name in config.refused:
        (line,) = config.warnings(name)
        finding, _, hint = line.partition(": left out. ")
        yield Check(name="settings.refused", level="warn", finding=f"left out: {finding}", hint=hint, detail={"setting": name})


def check_extras() -> Iterator[Check]:
    """Yield which extras are installed, without importing any of them."""
    for extra, (distribution, purpose) in EXTRAS.items():
        try:
            found = version(distribution)
        except PackageNotFoundError:
            hint = f"pip install 'ctxmgr-cli[{extra}]'"
            finding = f"not installed: {purpose}"
            yield Check(name=f"extra.{extra}", level="info", finding=finding, hint=hint, detail={"version": None})
        else:
            finding = f"{distribution} {found}: {purpose}"
            yield Check(name=f"extra.{extra}", level="ok", finding=finding, detail={"version": found})


def check_cache(environment: Mapping[str, str], home: Path) -> Check:
    """Check the size of the log indexes in the cache folder. They may be deleted at any time."""
    base = environment.get("XDG_CACHE_HOME") or ""
    folder = (Path(base) if os.path.isabs(base) else home / ".cache") / "ctxmgr" / "index"
    count, size = 0, 0
    try:
        with os.scandir(folder) as items:
            for item in items:
                count += item.name.endswith(".db")
                size += item.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        detail = {"path": str(folder), "indexes": 0, "bytes": 0}
        return Check(name="cache", level="info", finding=f"{folder} is not there yet", detail=detail)
    except OSError as error:
        finding = f"{folder} can't be read: {error.strerror}"
        hint = "logs are indexed in the temporary folder, or anew each time"
        return Check(name="cache", level="warn", finding=finding, hint=hint, detail={"path": str(folder)})
    detail = {"path": str(folder), "indexes": count, "bytes": size}
    finding = f"{count:,} indexes of logs, {size:,} bytes in {folder}"
    hint = "they may be deleted at any time; a log is indexed anew when it is read" if count else None
    return Check(name="cache", level="ok", finding=finding, hint=hint, detail=detail)


def check_logs(environment: Mapping[str, str], home: Path) -> Check:
    """Count the logs of other tools on this machine, without opening any of them."""
    counts: dict[str, int] = {}
    for importer in IMPORTERS:
        try:
            counts[importer.name] = sum(1 for _ in importer.discover(home, environment))
        except OSError:
            counts[importer.name] = 0
    found = ", ".join(f"{count:,} of {name}" for name, count in counts.items() if count)
    hint = "'ctxmgr import' reads them" if found else None
    return Check(name="logs", level="info", finding=found or "none of other tools found", hint=hint, detail={**counts})
