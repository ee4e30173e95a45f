"""Open files safely, find settings files and stores, and create private folders."""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

OWN_FOLDERS = frozenset({".ctxmgr", ".agent_context", ".ctxmgr-index"})
"""Folders that ctxmgr creates in a project. They are never followed if they are links."""

MAX_SETTINGS_BYTES = 1_000_000
"""Maximum size of a file of settings or of a schema, in bytes."""

SIDE_FILES = ("-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite keeps beside a database (sqlite.org/tempfiles.html)."""

DATABASES = (".db", ".sqlite", ".sqlite3")
"""Suffixes of databases. Such a file may be empty while all records are still in the write-ahead log."""

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # not blocking, in case the file is replaced by a pipe
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")  # ends a journal that names another file (sqlite.org/fileformat2.html)


def open_regular(path: str | os.PathLike[str], *, follow: bool = True) -> int:
    """Return a descriptor of a regular file for reading. A pipe or a device is never opened.

    Args:
        path: path of the file.
        follow: whether the file itself may be a link.

    Raises:
        OSError: the file can't be opened, or is not a regular file; ``strerror`` says which.
    """
    # Checked before opening, because opening some devices has effects, and after it, because the path may have changed.
    _require_regular(os.stat(path, follow_symlinks=follow).st_mode, path)
    descriptor = os.open(path, _READ if follow else _READ | os.O_NOFOLLOW)
    try:
        _require_regular(os.fstat(descriptor).st_mode, path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def read_regular(path: str | os.PathLike[str], most: int, *, follow: bool = True) -> bytes:
    """Return the content of a regular file of at most ``most`` bytes.

    Raises:
        OSError: as `open_regular`, or the file is larger.
    """
    descriptor = open_regular(path, follow=follow)
    with open(descriptor, "rb") as stream:
        content = stream.read(most + 1)
    # One more byte was read than allowed, so the check does not rely on the size that the system reports.
    if len(content) > most:
        raise OSError(errno.EFBIG, f"larger than {most:,} bytes", os.fspath(path))
    return content


def packaged_text(module: str, name: str) -> str:
    """Return the text of a file beside a module, given by the ``__file__`` of the module.

    `importlib.resources` takes longer to load than most of these files.
    """
    with open(os.path.join(os.path.dirname(module), name), encoding="utf-8") as stream:
        return stream.read()


def _require_regular(mode: int, path: str | os.PathLike[str]) -> None:
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, "a link, and no link is followed here", os.fspath(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))


def require_no_link(path: str, *, writing: bool) -> None:
    """Refuse a path through a link that a project may contain.

    Folders of ctxmgr on the way (`OWN_FOLDERS`) and their direct entries must not be links. Other parts may be links if the
    file is only read. Parts above are not checked, because a home or a project may be reached through a link. For writing, a
    relative path must not lead out of the current folder. A file with a second name (a hard link, as an archive can hold) is
    not written either if a project controls it.

    Raises:
        OSError: the path is such a link, or leads through one.
    """
    parts = path.split(os.sep)
    for count, part in enumerate(parts, 1):
        own = part in OWN_FOLDERS or (count > 1 and parts[count - 2] in OWN_FOLDERS)
        if own or (writing and count == len(parts)):
            place = os.sep.join(parts[:count])
            if os.path.islink(place):
                raise OSError(errno.ELOOP, "a link, and nothing is read or written through it", place)
    inner = os.path.normpath(path)
    if writing and (not os.path.isabs(inner) or OWN_FOLDERS.intersection(parts)):
        require_one_name(path)
    if writing and not os.path.isabs(inner) and parts[0] != os.pardir and not is_inside(os.getcwd(), inner):
        raise OSError(errno.ELOOP, "reached through a link that leads out of this folder; name the place itself", path)


def require_one_name(path: str | int) -> None:
    """Refuse a regular file with a second name, through which a write would change another file. A missing file is fine.

    Raises:
        OSError: the file has several names.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return
    # Every folder has several hard links.
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        raise OSError(errno.EMLINK, "a hard link: another file would change with it; put a copy in its place", path)


def require_plain_database(path: str) -> None:
    """Refuse side files of a SQLite database that would lead SQLite to a file outside of its folder.

    SQLite opens side files by name. A link would make it write to another file. A journal may name a further file, which SQLite
    deletes when it plays back the journal.

    Raises:
        OSError: there is such a side file.
    """
    # Use the real path, because SQLite follows a link to a database before it derives the names of side files.
    real = os.path.realpath(path)
    for suffix in SIDE_FILES:
        side = real + suffix
        try:
            mode = os.lstat(side).st_mode
        except OSError:
            continue
        _require_regular(mode, side)
        if suffix == "-journal" and _names_another(side):
            raise OSError(errno.EINVAL, "a journal that names another file", side)


def _names_another(journal: str) -> bool:
    with open(open_regular(journal, follow=False), "rb") as stream:
        stream.seek(0, os.SEEK_END)
        stream.seek(max(0, stream.tell() - len(_SUPER_JOURNAL)))
        return stream.read() == _SUPER_JOURNAL


def is_inside(folder: str, path: str) -> bool:
    """Whether a path lies in a folder, both by its name and after resolving links."""
    inner = os.path.normpath(os.path.join(folder, path))
    above = os.path.normpath(folder)
    if inner == above or not inner.startswith(above.rstrip(os.sep) + os.sep):
        return False
    real = os.path.realpath(above)
    return os.path.realpath(inner).startswith(real.rstrip(os.sep) + os.sep)


OWN_FILE, SHARED_FILE, NAME = "ctxmgr.toml", "pyproject.toml", "ctxmgr"
STORE_VARIABLE = "CTXMGR_STORE"
_NAME = NAME.encode()
STORE = os.path.join(".ctxmgr", "history.db")
USER_FILE = os.path.join(NAME, "config.toml")


def upwards(folder: str) -> Iterator[str]:
    """Yield a folder and its parents, the nearest first."""
    yield folder
    while (above := os.path.dirname(folder)) != folder:
        folder = above
        yield folder


def settings_files(folder: str, foreign: list[str] | None = None) -> Iterator[str]:
    """Yield the files that may hold settings for a folder, the nearest first. A shared file counts only if it names ctxmgr.

    Files of other users are skipped (see `is_foreign`); ``foreign`` collects their paths.
    """
    others = [] if foreign is None else foreign
    for place in upwards(folder):
        own, shared = os.path.join(place, OWN_FILE), os.path.join(place, SHARED_FILE)
        if os.path.isfile(own):  # unlike the method of a Path, it never raises
            if is_foreign(own, folder):
                others.append(own)
            else:
                yield own
        # Parsing somebody's whole configuration would take longer than most commands.
        if os.path.isfile(shared) and _names_us(shared):
            if is_foreign(shared, folder):
                others.append(shared)
            else:
                yield shared


def is_foreign(path: str, folder: str) -> bool:
    """Whether a file or folder found above a folder belongs to another user.

    Below a folder that everybody may write to, such as /tmp, anybody can plant settings and stores for others. Files of the
    system administrator, or of the folder's owner, are not foreign.
    """
    try:
        owner = os.stat(path).st_uid
        return owner not in (0, os.geteuid()) and owner != os.stat(folder).st_uid
    except (OSError, AttributeError):  # removed meanwhile, or a system without owners
        return False


def _names_us(path: str) -> bool:
    try:
        content = read_regular(path, MAX_SETTINGS_BYTES)
    except OSError:
        return False
    # A project that only depends on ctxmgr contains its name too, and parsing the file takes longer than most commands.
    if _NAME not in content:
        return False
    lines = [line.strip(b" \t\r\"'") for line in content.split(b"\n")]
    tool = any(line.partition(b"#")[0].strip(b"[] \t\"'") == b"tool" for line in lines if line.startswith(b"["))
    return any(_may_hold_settings(line, tool=tool) for line in lines if line)


def _may_hold_settings(line: bytes, *, tool: bool) -> bool:
    """Whether a line of TOML may begin or hold our table. It may be wrong about other tables, but never misses ours.

    ``tool`` says whether the file has a table [tool], which may have our name as a key.
    """
    if line.startswith(b"["):
        return _NAME in line and b"tool" in line
    if line.startswith(_NAME):
        return tool and line[len(_NAME) :].lstrip(b" \t\"'")[:1] in (b"=", b".")
    return line.startswith(b"tool")  # tool.ctxmgr.store = "x", tool = {...}


def user_folder(environment: Mapping[str, str], variable: str, default: str) -> str:
    """Return a folder of the user (XDG Base Directory Specification): the value of a variable, else a default in the home.

    Relative values are ignored, because they would lie in the current folder, which may be a checkout by somebody else.
    """
    base = environment.get(variable) or ""
    if os.path.isabs(base):
        return base
    home = os.path.expanduser("~")
    # ``HOME`` may be relative too. Then use the home in the system's list of users.
    if not os.path.isabs(home):
        import pwd

        home = pwd.getpwuid(os.getuid()).pw_dir
    return os.path.join(home, default)


def user_file(environment: Mapping[str, str]) -> str:
    """Return the path of the user's own settings."""
    return os.path.join(user_folder(environment, "XDG_CONFIG_HOME", ".config"), USER_FILE)


# Keywords of connection strings, and URLs without slashes (postgresql.org/docs: libpq-connect).
_SERVERS = ("host=", "hostaddr=", "dbname=", "postgresql:", "postgres:")


def is_url(location: str) -> bool:
    """Whether a location is no path: a URL, or another form in which libpq accepts a server."""
    scheme, found, _ = location.partition("://")
    if found:
        return scheme.isascii() and scheme.replace("+", "").replace(":", "").isalnum()
    squeezed = location.replace(" ", "").lower()
    return squeezed.startswith(_SERVERS) or "password=" in squeezed


def is_project_store(folder: str, store: str) -> bool:
    """Whether a project's file may name this store: a path inside its folder, by name and after resolving links."""
    return bool(store) and "\0" not in store and not is_url(store) and is_inside(folder, store)


def read_store_setting(path: str) -> tuple[bool, str | None] | None:
    """Read only the store from a project's file, for commands that need no other setting.

    Returns:
        (whether `ctxmgr.config` has nothing to check in the file, path of the store or None); None for a shared file without
            our table. Unusual content, and stores that a project may not name, are left to `ctxmgr.config`.
    """
    shared = os.path.basename(path) == SHARED_FILE
    found = None if shared else _one_setting(path)
    simple, store = (True, found) if found is not None else _parse_settings(path, shared=shared) or (None, None)
    if simple is None:
        return None
    if store is None:
        return simple, None
    folder = os.path.dirname(path)
    return (True, os.path.join(folder, store)) if simple and is_project_store(folder, store) else (False, None)


def _parse_settings(path: str, *, shared: bool) -> tuple[bool, str | None] | None:
    import tomllib

    try:
        table: Any = tomllib.loads(read_regular(path, MAX_SETTINGS_BYTES).decode("utf-8"))
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
    """Return the store of a file with only this setting, as most have; None if the file must be parsed."""
    try:
        text = read_regular(path, MAX_SETTINGS_BYTES).decode("ascii")
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
    """Return the nearest existing store upwards, else the path at which a writing command would create one."""
    for place in upwards(folder):
        if os.path.isfile(os.path.join(place, STORE)):
            return os.path.join(place, STORE)
    return os.path.join(folder, STORE)


def make_private_folder(path: str) -> list[str]:
    """Create a folder and its missing parents with mode 0700 despite the umask. Return the created folders.

    Raises:
        OSError: the system refuses.
    """
    missing: list[str] = []
    # The parent of the first part of a relative path is "".
    while path and not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    made: list[str] = []
    for folder in reversed(missing):
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            # Another process has created it. Its mode is not our concern.
            continue
        os.chmod(folder, 0o700)  # the umask may have removed bits
        made.append(folder)
    return made


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Sync a folder: on return, the names in it are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: str | os.PathLike[str], content: bytes, *, mode: int = 0o600, sync: bool = False) -> None:
    """Replace a file atomically.

    Args:
        path: path of the file; a link there is replaced, not followed.
        content: the new content.
        mode: permissions, whatever the umask.
        sync: return only when content and name are on the disk.

    Raises:
        OSError: the system refuses; the old file stays.
    """
    folder = os.path.dirname(path) or "."
    # In the same folder, because a rename is atomic only within one file system.
    draft = os.path.join(folder, f".{os.urandom(8).hex()}.tmp")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as stream:
            os.fchmod(descriptor, mode)
            stream.write(content)
            # Before the rename, because the name may reach the disk earlier than the content.
            if sync:
                stream.flush()
                os.fsync(descriptor)
        os.replace(draft, path)
    except BaseException:
        if os.path.lexists(draft):  # a signal may interrupt after the rename
            os.unlink(draft)
        raise
    if sync:
        sync_folder(folder)
