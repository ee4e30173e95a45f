"""Find and walk the artifact folder beside a store, without following links."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import unicodedata
from collections.abc import Generator, Iterable, Sequence

from ctxmgr.access.patterns import check_owner, is_unnameable, quote_name
from ctxmgr.base.paths import is_url, sync_folder
from ctxmgr.errors import Busy, CtxmgrError, Damaged, InvalidInput, StorageFailed
from ctxmgr.log import codec
from ctxmgr.text.patterns import lazy_pattern

FOLDER = "artifacts"
OBJECTS = "objects"
CURRENT = "current"
_MARKER = ".store"
_LOCK = ".lock"
_RESERVE = ".reserve"
_RESERVED = 1 << 20  # bytes; a prune on a full disk writes its event and some folder entries with it
_UNDER_WAY, _AT_REST = b"under way\n", b"at rest  \n"  # of equal length, so that overwriting works on a full disk
_HASH = lazy_pattern("[0-9a-f]{64}")
# O_NOFOLLOW on every part of a path: a link in the folder never leads reads or writes out of it.
_READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MARKER_DRAFT = _MARKER + "-"  # prefix
LOCK_SECONDS = 30.0  # laying out a version of very many artifacts takes seconds, and a second writer waits for it


def artifacts_folder(location: str) -> str:
    """Return the folder that holds, or will hold, the artifacts of the store at this path.

    ``artifacts`` beside the store, unless that is somebody else's; then the store's own name with ``.artifacts``.

    Raises:
        InvalidInput: the store is on a server.
    """
    if is_url(location):
        raise InvalidInput(
            "a store on a server has no folder of artifacts: it keeps their contents itself",
            "read them with 'ctxmgr artifact get'",
        )
    store = os.path.realpath(location)
    usual = os.path.join(os.path.dirname(store), FOLDER)
    return usual if _is_free(usual, os.path.basename(store)) else f"{store}.{FOLDER}"


def folder_name(location: str) -> str:
    """Return the name with which the paths of artifacts begin; on a server, where no files lie there, the usual one."""
    return FOLDER if is_url(location) else os.path.basename(artifacts_folder(location))


def _is_free(folder: str, name: str) -> bool:
    try:
        if os.path.islink(folder):  # refused where it is opened, so that nobody is led past it
            return True
        owner = _owner(folder)
        return owner == name if owner is not None else all(item.startswith(MARKER_DRAFT) for item in os.listdir(folder))
    except FileNotFoundError:
        return True
    except NotADirectoryError:
        return False
    except OSError as error:
        raise folder_error(folder, error) from None


def _owner(folder: str) -> str | None:
    try:
        # O_NONBLOCK: opening a FIFO of this name would otherwise wait forever.
        descriptor = os.open(os.path.join(folder, _MARKER), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        return os.read(descriptor, 4096).decode("utf-8", "surrogateescape").strip("\n")
    finally:
        os.close(descriptor)


def folder_error(path: str, error: OSError) -> CtxmgrError:
    """Return the ctxmgr error for an ``OSError``; a link or a file in the place of a folder is damage, not a refusal."""
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return Damaged(
            f"{path} is, or leads through, a link or a file where artifacts keep a real folder",
            "put the folder back in its place; nothing was read or written through it",
        )
    hint = "free some space and try again" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "check it, and its permissions"
    return StorageFailed(f"{path}: {error.strerror}", f"{hint}; nothing was half stored")


class Folder:
    """The open artifacts folder of a store; every path in it is resolved part by part from its descriptor.

    Attributes:
        path: its location.
        root: its descriptor.
    """

    def __init__(self, location: str, *, create: bool) -> None:
        """Open it.

        Raises:
            FileNotFoundError: it is not there and ``create`` is false.
            Damaged: it is a link, or another store's.
            StorageFailed: the system refused.
        """
        self.path = artifacts_folder(location)
        self._shards: dict[str, int] = {}
        self.root = -1
        try:
            if create:
                self._make(os.path.basename(os.path.realpath(location)))
            self.root = os.open(self.path, _READ_FOLDER)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not create:
                raise
            raise folder_error(self.path, error) from None

    def _make(self, name: str) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.path, 0o700)
            # Else a power loss could take the new folder, with all that was synced in it.
            sync_folder(os.path.dirname(self.path))
        descriptor = os.open(self.path, _READ_FOLDER)
        try:
            if _owner(self.path) is None:
                self._mark(descriptor, name)
            if _owner(self.path) != name:  # another store was faster: it is not ours
                raise Damaged(f"{self.path} was just taken by another store", "try again")
        finally:
            os.close(descriptor)

    @staticmethod
    def _mark(root: int, name: str) -> None:
        draft = MARKER_DRAFT + os.urandom(8).hex()
        # The marker appears whole or not at all: written and synced under another name, then linked, which fails if one is
        # there.
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=root)
        try:
            os.write(descriptor, os.fsencode(name) + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        try:
            with contextlib.suppress(FileExistsError, FileNotFoundError):  # another process was faster, and tidied up
                os.link(draft, _MARKER, src_dir_fd=root, dst_dir_fd=root, follow_symlinks=False)
        except OSError:  # a file system without hard links: whoever renames last owns it, as checked afterwards
            os.rename(draft, _MARKER, src_dir_fd=root, dst_dir_fd=root)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=root)
        os.fsync(root)

    @contextlib.contextmanager
    def writer_lock(self, timeout: float = LOCK_SECONDS) -> Generator[bool]:
        """Hold the writer's lock; yields whether the last writer was interrupted, so that the folder needs repair.

        Raises:
            Busy: another process holds it for longer than ``timeout`` seconds.
        """
        from ctxmgr.log.journal import lock_within

        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            lock = os.open(_LOCK, flags, 0o600, dir_fd=self.root)
        except OSError as error:
            raise folder_error(os.path.join(self.path, _LOCK), error) from None
        try:
            if not lock_within(lock, timeout):
                raise Busy(f"{self.path} is being written by another process", f"it stayed locked for {timeout:g} s; try again")
            # The kernel drops a dead writer's lock, so the lock alone can't tell; the text it left in the file does.
            broken = os.pread(lock, len(_UNDER_WAY), 0) not in (b"", _AT_REST)
            try:
                os.pwrite(lock, _UNDER_WAY, 0)
            except OSError as error:
                raise folder_error(self.path, error) from None
            yield broken
            with contextlib.suppress(OSError):  # only after an orderly end; what can't be said is healed once more
                os.pwrite(lock, _AT_REST, 0)
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)

    def keep_reserve(self) -> None:
        """Reserve a megabyte, so that `release_reserve` lets a prune work on a full disk; does nothing if there is no space."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(_RESERVE, flags, 0o600, dir_fd=self.root)
        except OSError:  # mostly it is there
            return
        try:
            # Allocated, not only extended: a sparse file would reserve nothing.
            os.posix_fallocate(descriptor, 0, _RESERVED)
        except OSError:
            self.release_reserve()
        finally:
            os.close(descriptor)

    def release_reserve(self) -> bool:
        """Release the reserved space; return whether there was any."""
        try:
            os.unlink(_RESERVE, dir_fd=self.root)
        except OSError:
            return False
        return True

    def shard(self, digest: str, *, create: bool = False) -> int:
        """Return the descriptor of the folder that holds the object with this hash.

        Raises:
            OSError: it is missing, or not a folder, or the digest is not a hash. Digests come from recorded history, which
                is hostile, and become a path here.
        """
        if not _HASH.fullmatch(digest):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        name = digest[:2]
        if name not in self._shards:
            self._shards[name] = open_folder(self.objects(create=create), name, create=create)
        return self._shards[name]

    def objects(self, *, create: bool = False) -> int:
        """Return the descriptor of the folder of objects."""
        if OBJECTS not in self._shards:
            self._shards[OBJECTS] = open_folder(self.root, OBJECTS, create=create)
        return self._shards[OBJECTS]

    def current(self) -> str | None:
        """Return the target of the ``current`` link, e.g. ``v3``; None when there is no such link."""
        try:
            return os.readlink(CURRENT, dir_fd=self.root)
        except OSError:
            return None

    def close(self) -> None:
        """Release the descriptors."""
        for descriptor in (*self._shards.values(), self.root):
            if descriptor >= 0:
                os.close(descriptor)
        self._shards, self.root = {}, -1

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def release_reserve(location: str) -> bool:
    """Release the space that a store's artifacts reserve for a full disk; return whether there was any."""
    try:
        with Folder(location, create=False) as folder:
            return folder.release_reserve()
    except (OSError, CtxmgrError):
        return False


def is_version(name: str) -> bool:
    """Whether this is the name of a version's folder: ``v`` and a number."""
    # With leading zeros one version would have several names.
    return name[:1] == "v" and name[1:].isascii() and name[1:].isdecimal() and (name[1] != "0" or name == "v0")


def open_folder(parent: int, name: str, *, create: bool = False) -> int:
    """Return the descriptor of a folder inside another one; it is never reached through a link.

    Raises:
        OSError: what the system answered.
    """
    if create:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=parent)
            os.fsync(parent)
    return os.open(name, _READ_FOLDER, dir_fd=parent)


def open_file(root: int, path: str) -> int:
    """Return the descriptor of a regular file below a folder, for reading; no part of its path may be a link.

    Raises:
        OSError: what the system answered.
    """
    *folders, name = path.split("/")
    parent = os.dup(root)
    try:
        for part in folders:
            inner = os.open(part, _READ_FOLDER, dir_fd=parent)
            os.close(parent)
            parent = inner
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=parent)
    finally:
        os.close(parent)
    # Asked of the open file, not of its name, which could be swapped in between.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ELOOP, "not a regular file")
    return descriptor


def remove_tree(parent: int, name: str) -> None:
    """Remove a file, a link or a folder with its contents; links are removed, never followed.

    Raises:
        OSError: what the system answered; that something is gone already is no fault.
    """
    try:
        os.unlink(name, dir_fd=parent)
        return
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):  # unlink of a folder: EISDIR on Linux, EPERM by POSIX
        pass
    try:
        folder = os.open(name, _READ_FOLDER, dir_fd=parent)
    except FileNotFoundError:
        return
    try:
        for inner in os.listdir(folder):
            remove_tree(folder, inner)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=parent)


MAX_NAME = 255
"""Longest artifact name in bytes of UTF-8, slashes included."""

_HINT = f"use 1 to {MAX_NAME} printable bytes, e.g. architecture.yaml or src/main.py"
_MAX_PART = 255  # bytes of one part of a path, on nearly every file system
# Names that every file system stores as they are; all others go through `_escape`, letter by letter.
_PLAIN = lazy_pattern(r"[A-Za-z0-9_+=@,()\[\]{}!#$&'^`-][A-Za-z0-9_+=@,()\[\]{}!#$&'^` .-]*")
# The same for many names at once, one a line, without slashes; see `name_paths`.
_ALL_PLAIN = lazy_pattern(
    r"(?:(?!(?:con|prn|aux|nul|com[0-9]|lpt[0-9])[ .\n])[a-z0-9_+=@,()\[\]{}!#$&'^`-](?:[a-z0-9_+=@,()\[\]{}!#$&'^` .-]*"
    r"[a-z0-9_+=@,()\[\]{}!#$&'^`-])?+\n)+",
    re.IGNORECASE | re.ASCII,
)
# '%' and '~' are ours (escapes and hash suffixes), so escaped names stay unambiguous; the rest is what Windows forbids.
_UNSAFE = frozenset('%~\\:*?"<>|/')
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # what a listing would not show as it is
# Names that Windows takes for devices, with any extension; the superscript digits are among them.
_DEVICE = lazy_pattern(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?=[ .]|$)", re.IGNORECASE)


def check_names(agent: str, name: str) -> None:
    """Refuse an owner or a name that no artifact can have.

    Raises:
        InvalidInput: empty, too long, with control characters or an unpaired surrogate, absolute, with an empty part, ``.`` or
            ``..``, or with a secret of a known shape in it.
    """
    check_owner(agent)
    fault = _fault(name)
    if fault is not None:
        raise InvalidInput(f"artifact name {quote_name(name)} {fault}", _HINT)
    line = codec.encode({"agent": agent, "name": name})
    from ctxmgr.log.mask_prefilter import mask  # which a reader has no need of

    if mask(line) != line:  # it would be masked wherever it is recorded, and then mean another artifact
        raise InvalidInput("the artifact's owner or name looks like a secret", "names are shown everywhere: take another one")


def _fault(name: str) -> str | None:
    if not name:
        return "is empty"
    if is_unnameable(name):
        return "holds a control character, a line break or an unpaired surrogate"
    if len(name) > MAX_NAME or len(name.encode("utf-8")) > MAX_NAME:
        return f"is longer than {MAX_NAME} bytes"
    if os.sep != "/" and os.sep in name:
        return f"holds {os.sep!r}, which parts folders here"
    parts = name.split("/")
    if not parts[0]:
        return "is absolute"
    if "" in parts:
        return "has an empty part"
    if "." in parts or ".." in parts:
        return "has a part that means a folder, '.' or '..'"
    return None


def view_paths(named: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the path below a version's folder of each (owner, name).

    Most are ``owner/name`` as they are. What file systems treat specially is percent-encoded. Of several that a file system
    could take for the same (another case, another form of Unicode, a file beside a folder of its name) each gets ``~`` and
    digits of its hash, so all differ; the same artifacts get the same paths on every machine.
    """
    by_owner: dict[str, list[str]] = {}
    for owner, name in named:
        by_owner.setdefault(owner, []).append(name)
    folders = owner_paths(by_owner)
    return {
        (owner, name): f"{folders[owner]}/{path}"
        for owner, names in by_owner.items()
        for name, path in name_paths(names).items()
    }


def owner_paths(owners: Iterable[str]) -> dict[str, str]:
    """Return owner -> folder name, unique among these owners."""
    escaped = {owner: _escape(owner) for owner in owners}
    groups: dict[str, list[str]] = {}
    for owner, path in escaped.items():
        groups.setdefault(_fold(path), []).append(owner)
    return {
        owner: _mark_part(escaped[owner], owner, alike) if len(alike) > 1 else escaped[owner]
        for alike in groups.values()
        for owner in alike
    }


def name_paths(names: Sequence[str]) -> dict[str, str]:
    """Return name -> path below its owner's folder, unique among these names."""
    joined = "\n".join(names) + "\n"
    if (
        len(joined) < _MAX_PART * len(names)
        and joined.count("\n") == len(names)
        and _ALL_PLAIN.fullmatch(joined)
        and len(set(joined.lower().split("\n"))) == len(names) + 1
        and max(map(len, names)) <= _MAX_PART
    ):
        return {name: name for name in names}  # by far the most common case: one match over all costs less than one for each
    paths = {name: "/".join(map(_escape, name.split("/"))) for name in names}
    groups: dict[str, list[str]] = {}
    folders: set[str] = set()
    for name, path in paths.items():
        folded = _fold(path)
        groups.setdefault(folded, []).append(name)
        # A file can't stand beside a folder of its name: "a" and "a/b" are both valid artifact names.
        end = -1
        while (end := folded.find("/", end + 1)) >= 0:
            folders.add(folded[:end])
    return {
        name: paths[name] if len(alike) == 1 and folded not in folders else _mark_last(paths[name], name, alike)
        for folded, alike in groups.items()
        for name in alike
    }


def _mark_last(path: str, name: str, rivals: list[str]) -> str:
    head, slash, last = path.rpartition("/")
    return f"{head}{slash}{_mark_part(last, name, rivals)}"


def _mark_part(part: str, name: str, rivals: list[str]) -> str:
    """Return the part with ``~`` and 8 digits of the name's hash, or 64 where 8 do not make it unique or it is cut."""
    own = _digest(name)
    alike = any(other != name and _digest(other)[:8] == own[:8] for other in rivals)
    digits = 64 if alike or len(part.encode("utf-8")) > _MAX_PART - 9 else 8
    return f"{_cut(part, _MAX_PART - digits - 1)}~{own[:digits]}"


def _escape(part: str) -> str:
    """Return one part of a path, percent-encoded wherever some file system treats a character specially."""
    if not part:
        return "%"  # which no other part is
    if _PLAIN.fullmatch(part) and part[-1] not in " ." and len(part) <= _MAX_PART and not _DEVICE.match(part):
        return part
    # Windows drops dots and spaces at the end of a name.
    last = len(part.rstrip(" .")) - 1
    device = _DEVICE.match(part) is not None
    out = "".join(
        _percent_encode(letter)
        if _needs_escape(letter) or place > last or (place == 0 and (device or letter == "."))
        else letter
        for place, letter in enumerate(part)
    )
    if len(out.encode("utf-8")) > _MAX_PART:
        # Room for 16 digits between two tildes; the second one tells it from the marks of `_mark_part`.
        return f"{_cut(out, _MAX_PART - 18)}~{_digest(part)[:16]}~"
    return out


def _needs_escape(letter: str) -> bool:
    return letter in _UNSAFE or (not letter.isalnum() and unicodedata.category(letter) in _HIDDEN)


def _percent_encode(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogatepass"))


def _cut(part: str, limit: int) -> str:
    """Return the start of a text, at most ``limit`` bytes, without cutting a character or an escape."""
    if len(part.encode("utf-8")) <= limit:
        return part
    kept = part.encode("utf-8")[:limit].decode("utf-8", "ignore")
    return re.sub(r"%[0-9A-F]?$", "", kept).rstrip(" .")


def _fold(path: str) -> str:
    """Return the form that file systems compare which ignore case and Unicode normalisation (APFS, NTFS)."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKD", path).casefold())


def _digest(name: str) -> str:
    return codec.digest(name.encode("utf-8", "surrogatepass"))
