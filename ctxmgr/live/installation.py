"""Install our hook in a client's settings, and undo that so that the settings are byte for byte as they were.

The earlier content of a file is kept beside the live state. Undoing restores it if nobody has changed the file since.
Otherwise it removes our additions and leaves the rest alone.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import time
from base64 import b64decode, b64encode
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from ctxmgr import __file__ as package
from ctxmgr.base.paths import make_private_folder, read_regular, replace_file
from ctxmgr.clients import (
    CLIENTS,
    WATCHER_LOCK,
    Client,
    as_object,
    client,
    count_tellings,
    state_folder,
    state_paths,
)
from ctxmgr.config import load_config
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import duration
from ctxmgr.errors import InvalidInput, StorageFailed
from ctxmgr.live.json_text import blank_comments, insert_items, remove_items
from ctxmgr.log.codec import digest
from ctxmgr.types.setup import Check

Scope = Literal["user", "project"]

# Guards against a missing file, see `hook_command`. Sets ``__file__``, by which the hook finds its package.
_START = "import os,sys;__file__=sys.argv.pop(1);os.path.exists(__file__) and exec(open(__file__).read())"
# Earlier versions had the file one folder up. Their installations are replaced and removed as well.
_OURS = re.compile(r"ctxmgr[/\\]{1,2}(?:live[/\\]{1,2})?hook\.py")
_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_TOP = "hooks"
_MAX_FILE_BYTES = 5_000_000
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_MAX_SECONDS = 60.0  # time limit of each program that is run here
HOOK_PLACES = ("__init__.py", "errors.py", "base", "log", "clients", "live/__init__.py", "live/event_answer.py")
"""Files and folders of the package that a hook may load. Whole folders, since the loaded modules depend on the event."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one file by an installation or its undoing.

    Attributes:
        client: the client that reads the file.
        path: the path of the file, with links resolved.
        before: the current content; None if there is no file.
        after: the new content; None to remove the file.
    """

    client: Client
    path: str
    before: bytes | None
    after: bytes | None

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to change."""
        return self.before != self.after

    def diff(self) -> str:
        """Return the change as a unified diff."""
        old, new = ((each or b"").decode("utf-8", "replace").splitlines(keepends=True) for each in (self.before, self.after))
        lines = difflib.unified_diff(old, new, self.path, self.path)
        return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def hook_command(client: Client) -> list[str]:
    """Return the command for the client: this interpreter without its site packages, and our file, both by absolute paths.

    If a file is missing, Python exits with 2, at which clients block the action of the agent or the user. So the command runs
    the file only if it exists, and hooks of a removed package do nothing.
    """
    hook = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hook.py")
    # Absolute, because a shim that finds the interpreter takes many times as long as the hook itself.
    return [os.path.abspath(sys.executable), "-I", "-S", "-c", _START, hook, client.name]


def plan_installation(client: Client, scope: Scope, folder: Path, environment: Mapping[str, str]) -> Change:
    """Return the change that installing would make. It replaces the hooks of an earlier installation.

    Raises:
        InvalidInput: the settings have a format that the client could not read, or the client has none for this scope.
        StorageFailed: the settings can't be read.
    """
    path = _place(client, scope, folder, environment)
    before = read_settings(path)
    own_file = client.whole_file(hook_command(client))
    if own_file is not None:
        if before is not None and not _OURS.search(before.decode("utf-8", "replace")):
            raise InvalidInput(f"{path} is there and is not ours", "move it away first; nothing was changed")
        return Change(client, path, before, own_file.encode("utf-8"))
    text = _text(path, before)
    entries = client.entries(hook_command(client))
    with _prefix_errors(path):
        bare = remove_items(text, _OURS, _TOP, comments=client.comments) if text.strip() else text
        after = insert_items(bare, entries, comments=client.comments)
    # If all items are complete, keep them where people may have moved them, so that installing twice changes nothing.
    if _holds(text, entries, client):
        after = text
    return Change(client, path, before, after.encode("utf-8"))


def _holds(text: str, entries: Sequence[tuple[tuple[str, ...], Any]], client: Client) -> bool:
    """Whether settings that were already checked contain exactly these items of ours."""
    if not text.strip():
        return False
    root: Any = json.loads((blank_comments(text) if client.comments else text).removeprefix("\ufeff"))
    hooks: dict[str, Any] = root.get(_TOP) or {}
    # People may write any value beside our events, e.g. `"Foo": 5`.
    items = [item for listed in hooks.values() if isinstance(listed, list) for item in cast("list[Any]", listed)]
    wanted = [item for _, item in entries]
    return sum(_OURS.search(json.dumps(item)) is not None for item in items) == len(wanted) and all(
        item in hooks.get(keys[-1], []) for keys, item in entries
    )


def plan_removal(client: Client, scope: Scope, folder: Path, environment: Mapping[str, str]) -> Change:
    """Return the change that uninstalling would make.

    Raises:
        InvalidInput: the settings are no longer valid.
        StorageFailed: the settings can't be read.
    """
    path = _place(client, scope, folder, environment)
    before = read_settings(path)
    kept = _read_record(path)
    if before is None:
        return Change(client, path, None, None)
    if kept is not None and kept["after"] == digest(before):
        return Change(client, path, before, None if kept["before"] is None else b64decode(kept["before"]))
    if client.whole_file(hook_command(client)) is not None:
        ours = _OURS.search(before.decode("utf-8", "replace")) is not None
        return Change(client, path, before, None if ours else before)
    text = _text(path, before)
    with _prefix_errors(path):
        after = remove_items(text, _OURS, _TOP, comments=client.comments) if text.strip() else text
    return Change(client, path, before, after.encode("utf-8"))


def apply(change: Change, *, undo: bool = False) -> None:
    """Write a change, and store the data to undo it.

    Raises:
        StorageFailed: the system refused, or the file was changed meanwhile; the file was not changed.
    """
    # Clients write their settings too. A change that was planned for older content would undo theirs.
    if read_settings(change.path) != change.before:
        raise StorageFailed(f"{change.path} was changed just now", "try again")
    record = _record(change.path)
    try:
        if not undo:
            _keep(change, record)  # first, so that every change can be undone
        if change.is_needed and change.after is None:
            os.unlink(change.path)
        elif change.is_needed and change.after is not None:
            _write(change.path, change.after)
        if undo:
            with suppress(FileNotFoundError):
                os.unlink(record)
    except OSError as error:
        raise StorageFailed(f"can't write {error.filename or change.path}: {error.strerror}", "check its permissions") from None


def remove_state(client: Client, path: str, environment: Mapping[str, str], *, dry_run: bool) -> str | None:
    """Remove what the hooks of a client noted about its sessions, unless other settings than ``path`` still start them.

    Returns:
        What was done, or what stays and why, as a sentence for the user; None if there was nothing.

    Raises:
        StorageFailed: the system refused.
    """
    folder = state_folder()
    try:
        paths = state_paths(client.name)
        if paths and (other := _other_installation(client, path, environment)):
            return f"what its hooks noted stays in {folder}, because {other} still starts them"
        if not dry_run:
            for each in paths:
                os.unlink(each)
            _remove_empty_folders(folder)
    except OSError as error:
        raise StorageFailed(f"can't remove {error.filename or folder}: {error.strerror}", "check its permissions") from None
    files, were = ("1 file", "was") if len(paths) == 1 else (f"{len(paths)} files", "were")
    were = "would be" if dry_run else were
    return f"{files} about its sessions {were} removed from {folder}" if paths else None


def _other_installation(client: Client, own: str, environment: Mapping[str, str]) -> str | None:
    """Return the path of settings other than ``own`` that start the hook, or the name of the plugin."""
    if client.has_plugin(environment):
        return "the plugin of ctxmgr"
    folder = os.path.dirname(_record(""))
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        fields = _read_fields(os.path.join(folder, name))
        path = fields.get("path")
        if fields.get("client") == client.name and isinstance(path, str) and path != own:
            with suppress(StorageFailed):
                if _OURS.search((read_settings(path) or b"").decode("utf-8", "replace")):
                    return path
    return None


def _remove_empty_folders(folder: str) -> None:
    """Remove the lock of the watcher, which ends without sessions, and the folders that are empty then."""
    if os.path.isdir(folder) and os.listdir(folder) == [WATCHER_LOCK]:
        os.unlink(os.path.join(folder, WATCHER_LOCK))
    for each in (folder, os.path.dirname(_record("")), os.path.dirname(folder)):
        if os.path.isdir(each) and not os.listdir(each):
            os.rmdir(each)


def is_installed(client: Client, scope: Scope, folder: Path, environment: Mapping[str, str]) -> bool:
    """Whether the client's settings start our hook, in this or an earlier installation."""
    try:
        before = read_settings(_place(client, scope, folder, environment))
    except (InvalidInput, StorageFailed):
        return False
    return before is not None and _OURS.search(before.decode("utf-8", "replace")) is not None


def find_hook_commands(path: str) -> list[str]:
    """Return the absolute paths with which a settings file starts our hook: the hook's file and the interpreter."""
    try:
        text = read_regular(path, _MAX_FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    found: list[str] = []
    program: str | None = None
    for match in _TEXT.finditer(text):
        text_value = _unescape(match.group(0))
        if text_value.startswith("/") and _OURS.search(text_value) and text_value.endswith("hook.py"):
            # A separate argument, because Claude Code starts hooks without a shell. Blanks are part of the path.
            found += [text_value] if program is None else [text_value, program]
        elif _OURS.search(text_value):
            with suppress(ValueError):
                found += [word for word in shlex.split(text_value) if word.startswith("/")]
        elif text_value.startswith("/"):
            program = text_value
    return [*dict.fromkeys(found)]


def _unescape(literal: str) -> str:
    try:
        return json.loads(literal)
    except ValueError:
        return literal[1:-1]


def compile_hook(client: Client) -> bool:
    """Compile the modules that the hook loads, and run it once. Return whether it succeeded and printed nothing.

    Later the hook may run as a user who can't write into the package, so that each start would compile them again.
    """
    root = os.path.dirname(os.path.abspath(package))
    files = [os.path.join(root, place) for place in HOOK_PLACES]
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            [sys.executable, "-I", "-S", "-m", "compileall", "-q", *files],
            capture_output=True,
            timeout=_MAX_SECONDS,
            check=False,
        )
        ran = subprocess.run(hook_command(client), input=b"{}", capture_output=True, timeout=_MAX_SECONDS, check=False)
        return (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    return False


def client_version(client: Client) -> tuple[int, ...] | None:
    """Return the version that the client's command prints; None if it can't be run or prints none."""
    try:
        ended = subprocess.run(
            [client.program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_MAX_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = _VERSION.search((ended.stdout or ended.stderr).decode("utf-8", "replace"))
    return None if found is None else tuple(int(part) for part in found[0].split("."))


def _numbers(version: str) -> tuple[int, ...]:
    # Add ".0", because the pattern requires a dot and "2" is a version too.
    found = _VERSION.search(f"{version}.0")
    if found is None:
        raise InvalidInput(f"{version!r} is no version", "e.g. --client-version 2.1.330")
    return tuple(map(int, found[0].split(".")))


def require_version(client: Client, named: str | None) -> tuple[int, ...]:
    """Return the client's version: the given one, else the one that the client prints.

    Raises:
        InvalidInput: the version is unknown, or too old for the events and settings that we use.
    """
    found = client_version(client) if named is None else _numbers(named)
    least = ".".join(map(str, client.least))
    if found is None:
        raise InvalidInput(
            f"the version of {client.title} is not known: '{client.program} --version' gave no answer",
            f"put '{client.program}' on the PATH, or name its version with --client-version ({least} or newer)",
        )
    if found < client.least:
        version = named or ".".join(map(str, found))
        raise InvalidInput(f"{client.title} {version} is too old: {least} is the first that is supported", "update it first")
    return found


def _place(client: Client, scope: Scope, folder: Path, environment: Mapping[str, str]) -> str:
    if scope == "user" and environment.get("HOME") == "":  # "~" would be the root of the file system
        raise InvalidInput("HOME is empty, so nobody can say where your settings are", "set HOME to your home folder")
    path = client.settings_file(scope, str(folder), environment)
    if path is None:
        raise InvalidInput(f"{client.title} has no hooks of a {scope}", "try --scope user")
    real = os.path.realpath(path)
    # A project may come from a stranger, so a link in it must not redirect our writes.
    if scope == "project" and not Path(real).is_relative_to(os.path.realpath(folder)):
        raise InvalidInput(f"{path} leads out of the project, to {real}", "install it for the user, or remove that link")
    return real


def read_settings(path: str) -> bytes | None:
    """Return the content of a client's settings file, None if it does not exist.

    Raises:
        StorageFailed: the file can't be read, is not a regular file, or is too long.
    """
    try:
        return read_regular(path, _MAX_FILE_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageFailed(f"can't read {path}: {error.strerror}", "check the file and its permissions") from None


def _text(path: str, content: bytes | None) -> str:
    try:
        return "" if content is None else content.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{path}: it is not UTF-8", "mend the file first; nothing was changed") from None


@contextmanager
def _prefix_errors(path: str) -> Generator[None]:
    """Put the file's path before the message of an error."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error.message}", error.hint) from None


def _record(path: str) -> str:
    return os.path.join(os.path.dirname(state_folder()), "installed", digest(os.fsencode(path))[:32] + ".json")


def _read_record(path: str) -> dict[str, Any] | None:
    fields = _read_fields(_record(path))
    return fields if fields.get("path") == path else None


def _read_fields(record: str) -> dict[str, Any]:
    try:
        found: Any = json.loads(read_regular(record, 4 * _MAX_FILE_BYTES, follow=False))
    except (OSError, ValueError):
        return {}
    return as_object(found) or {}


def _keep(change: Change, record: str) -> None:
    kept = _read_record(change.path)
    before = change.before
    original = None if before is None else b64encode(before).decode("ascii")
    if kept is not None and before is not None and kept["after"] == digest(before):
        original = kept["before"]  # a repeated installation keeps the content before the first one
    elif before is not None and _OURS.search(before.decode("utf-8", "replace")):
        return  # somebody has changed the file since, so undoing will only remove our items
    make_private_folder(os.path.dirname(record))
    after = digest(change.after or b"")
    fields = {"v": 1, "client": change.client.name, "path": change.path, "before": original, "after": after}
    replace_file(record, json.dumps(fields).encode("ascii"))


def _write(path: str, content: bytes) -> None:
    """Replace the file's content atomically, with the permissions that the file had."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    mode = 0o600
    with suppress(FileNotFoundError):
        mode = stat.S_IMODE(os.stat(path).st_mode)
    replace_file(path, content, mode=mode, sync=True)


_TIMED_STARTS = 5
_PROGRAM_SECONDS = 20.0


def check_clients(folder: Path, environment: Mapping[str, str]) -> Iterator[Check]:
    """Yield a check for each client that is installed on this machine, or whose settings start the hook."""
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
    """Return the scopes in which the hook is installed. In the home folder both scopes are one file, which counts as "user"."""
    found: dict[str | None, Scope] = {}
    for scope in get_args(Scope):
        if is_installed(asked, scope, folder, environment):
            found.setdefault(asked.settings_file(scope, str(folder), environment), scope)
    return [*found.values()]


def _check(asked: Client, scopes: Sequence[Scope], plugin: bool, folder: Path, environment: Mapping[str, str]) -> Check:
    paths = [asked.settings_file(scope, str(folder), environment) or "" for scope in scopes]
    gone = [word for path in paths for word in find_hook_commands(path) if word.startswith("/") and not os.path.exists(word)]
    to_do = [step for path in paths if (step := asked.left_to_do(os.path.realpath(path), environment)) is not None]
    last, told = last_hook_call(asked.name)
    cost, alone = measure_cost(asked)
    wrong = _settings_error(folder)
    parts = ["installed " + " and ".join([f"for the {scope}" for scope in scopes] + (["as a plugin"] if plugin else []))]
    if asked.asks_trust:
        parts.append("not trusted yet" if to_do else "trusted")
    parts.append(
        "never called yet"
        if last is None
        else f"called {duration(max(0.0, time.time() - last))} ago, agents told so far: {told}"
    )
    if cost is not None and alone:
        look = "a third round" if asked.counts_rounds else "a call"
        parts.append(f"{look} takes {1000 * cost:.0f} ms, Python alone {1000 * alone:.0f} ms")
    places = [*scopes, *(["plugin"] if plugin else [])]
    detail = {"installed": True, "scopes": places, "trusted": not to_do, "lastCalled": last,
              "told": told, "callSeconds": cost, "pythonSeconds": alone}  # fmt: skip
    if wrong is not None:
        parts.append("tells nobody anything while the settings are wrong")
    finding = ", ".join(parts)
    if gone:
        finding, hint = f"{gone[0]} is gone, so nothing is called", f"install it again: 'ctxmgr install {asked.name}'"
        return Check(name=f"hook.{asked.name}", level="warn", finding=finding, hint=hint, detail=detail)
    to_do += [] if wrong is None else [f"{wrong.message} ({wrong.hint})"]
    level, hint = ("warn", to_do[0]) if to_do else ("ok", None)
    return Check(name=f"hook.{asked.name}", level=level, finding=finding, hint=hint, detail=detail)


def _settings_error(folder: Path) -> InvalidInput | None:
    """Return why the hook can't use the settings of a folder; None if it can."""
    try:
        DetectSettings.from_table(load_config(folder).detect)
    except InvalidInput as error:
        return error
    return None


def last_hook_call(name: str) -> tuple[float | None, int]:
    """Return when a client's hook last counted a call (seconds since 1970), and how often its agents were told."""
    last, told = None, 0
    with suppress(OSError):
        for path in state_paths(name):
            if "." not in os.path.basename(path):  # the files of messages, open calls and sessions have a suffix
                last = max(last or 0.0, os.stat(path).st_mtime)
                told += count_tellings(path)
    return last, told


def measure_cost(asked: Client) -> tuple[float | None, float | None]:
    """Return the shortest time in seconds of a call of the hook on this machine, and of Python alone."""
    command = hook_command(asked)
    return _shortest(command), _shortest([sys.executable, "-I", "-S", "-c", "pass"])


def _shortest(command: Sequence[str]) -> float | None:
    taken: list[float] = []
    for _ in range(_TIMED_STARTS):
        start = time.perf_counter()
        try:
            subprocess.run(command, input=b"{}", capture_output=True, timeout=_PROGRAM_SECONDS, check=True)
        except (OSError, subprocess.SubprocessError):
            return None
        taken.append(time.perf_counter() - start)
    return min(taken)  # the least disturbed one, because other work on the machine can only add time
