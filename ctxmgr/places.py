"""Where settings and stores lie, and private folders for them: asked of the system with as little machinery as can be."""

from __future__ import annotations

import os

from ctxmgr.files import MOST_SETTINGS, is_inside, read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

OWN_FILE, SHARED_FILE, NAME = "ctxmgr.toml", "pyproject.toml", "ctxmgr"
STORE_VARIABLE = "CTXMGR_STORE"
_NAME = NAME.encode()
STORE = os.path.join(".ctxmgr", "history.db")
USER_FILE = os.path.join(NAME, "config.toml")


def upwards(folder: str) -> Iterator[str]:
    """Yield a folder and those above it, the nearest first."""
    yield folder
    while (above := os.path.dirname(folder)) != folder:
        folder = above
        yield folder


def settings_files(folder: str) -> Iterator[str]:
    """Yield the files that may hold settings for a folder, the nearest first; a shared one only if it names us."""
    for place in upwards(folder):
        own, shared = os.path.join(place, OWN_FILE), os.path.join(place, SHARED_FILE)
        if os.path.isfile(own):  # unlike the method of a Path it never raises, e.g. below a locked folder
            yield own
        # Reading somebody's whole configuration would cost more than most commands.
        if os.path.isfile(shared) and _names_us(shared):
            yield shared


def _names_us(path: str) -> bool:
    try:
        content = read_regular(path, MOST_SETTINGS)
    except OSError:
        return False
    # A project that merely depends on us names us too, and parsing its file takes longer than most commands.
    if _NAME not in content:
        return False
    lines = [line.strip(b" \t\r\"'") for line in content.split(b"\n")]
    tool = any(line.partition(b"#")[0].strip(b"[] \t\"'") == b"tool" for line in lines if line.startswith(b"["))
    return any(_may_hold_settings(line, tool=tool) for line in lines if line)


def _may_hold_settings(line: bytes, *, tool: bool) -> bool:
    """Whether a line of TOML may begin or hold our table; it may say so of others, never fail to.

    ``tool``: whether the file has a table [tool], of which our name may be a key.
    """
    if line.startswith(b"["):
        return _NAME in line and b"tool" in line
    if line.startswith(_NAME):
        return tool and line[len(_NAME) :].lstrip(b" \t\"'")[:1] in (b"=", b".")
    return line.startswith(b"tool")  # tool.ctxmgr.store = "x", tool = {...}


def user_file(environment: Mapping[str, str]) -> str:
    """Return where the user's own settings are kept (XDG Base Directory Specification); a relative folder is ignored."""
    base = environment.get("XDG_CONFIG_HOME") or ""
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser(os.path.join("~", ".config")), USER_FILE)


def is_project_store(folder: str, store: str) -> bool:
    """Whether a project's own file may name a store: a path inside of its folder, by name and by every link on the way."""
    return bool(store) and "\0" not in store and "://" not in store and is_inside(folder, store)


def store_alone(path: str) -> tuple[bool, str | None] | None:
    """Return whether a project's file holds no more than what needs no checking beside a store, and the store's path.

    None when it is a shared file with nothing of ours. Reading of a history asks no more of the settings than that;
    whatever is odd, and a store that a project may not name, is left to `ctxmgr.config`.
    """
    shared = os.path.basename(path) == SHARED_FILE
    found = None if shared else _one_setting(path)
    simple, store = (True, found) if found is not None else _parsed(path, shared=shared) or (None, None)
    if simple is None:
        return None
    if store is None:
        return simple, None
    folder = os.path.dirname(path)
    return (True, os.path.join(folder, store)) if simple and is_project_store(folder, store) else (False, None)


def _parsed(path: str, *, shared: bool) -> tuple[bool, str | None] | None:
    import tomllib

    try:
        table: Any = tomllib.loads(read_regular(path, MOST_SETTINGS).decode("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None if shared else (False, None)
    if shared:
        tools: Any = table.get("tool")
        table = tools.get(NAME) if _is_table(tools) else None
        if not _is_table(table):
            return None
    store: Any = table.get("store")
    if set(table) - {"store", "detect"} or not _is_table(table.get("detect", {})) or not isinstance(store, str | None):
        return False, None
    return True, store


def _one_setting(path: str) -> str | None:
    """Return the store that a file names when it plainly holds nothing else: most do not, and parsing loads slowly."""
    try:
        text = read_regular(path, MOST_SETTINGS).decode("ascii")
    except (OSError, ValueError):
        return None
    lines = [line.strip(" \t") for line in text.split("\n") if line.strip(" \t") and not line.lstrip().startswith("#")]
    if len(lines) != 1:
        return None
    key, sign, value = lines[0].partition("=")
    value = value.strip(" \t")
    plain = len(value) > 2 and value[0] == value[-1] == '"' and value[1:-1].isprintable()
    return value[1:-1] if key.rstrip(" \t") == "store" and sign and plain and not set(value[1:-1]) & set('"\\') else None


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def nearest_store(folder: str) -> str:
    """Return the nearest store upwards, else the place where a writing command would make one."""
    for place in upwards(folder):
        if os.path.isfile(os.path.join(place, STORE)):
            return os.path.join(place, STORE)
    return os.path.join(folder, STORE)


def make_private_folder(path: str) -> list[str]:
    """Make the folder and its missing parents with mode 0700, whatever the umask; return those that were made.

    Raises:
        OSError: when the system refuses.
    """
    missing: list[str] = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    made: list[str] = []
    for folder in reversed(missing):
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            continue
        os.chmod(folder, 0o700)
        made.append(folder)
    return made


def sync_folder(path: str) -> None:
    """Return when the names in the folder are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
