"""Anchors: the end of a history, stored outside of it, to detect that a history was cut or rewritten.

A chain of checksums can't show that its last records are gone. Therefore a writer stores, after each sync, the length of the
history, its last checksum and the time in the user's state folder, ``$XDG_STATE_HOME/ctxmgr/anchors`` (mode 0700). An anchor
is never ahead of what is on the disk. It only moves forward, and only while the history still matches it.
Standard library only.
"""

from __future__ import annotations

import os

from ctxmgr.base.paths import make_private_folder, open_regular, user_folder
from ctxmgr.log import codec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_AGE = 30 * 86_400.0  # seconds after which the anchor of a deleted history is removed
_SESSION_FIELD = '"session":"'
_MAX_BYTES = 65_536  # bytes of an anchor: a path and an id are its longest parts


class Anchor:
    """The end of a history at some time.

    Attributes:
        length: in a log the number of bytes up to a line end, in a database the place of the last record; 0 for a new history.
        total: the checksum of the last record up to there, "" for a new history.
        session: the session id of the first record, which distinguishes a rewritten history from another at the same path.
        inode: the inode of the file, 0 if unknown.
        ends_digest: in a database a digest of the last checksums of all sessions up to there, "" if unknown.
        created: the time at which our writer created the file, RFC 3339; "" if unknown.
        time: the time at which the anchor was stored.
        path: the path of the history.
    """

    __slots__ = ("created", "ends_digest", "inode", "length", "path", "session", "time", "total")

    def __init__(self, length: int, total: str, session: str, inode: int = 0) -> None:
        self.length = length
        self.total = total
        self.session = session
        self.inode = inode
        self.created = self.ends_digest = self.time = self.path = ""

    def has_same_end(self, other: Anchor | None) -> bool:
        """Whether another anchor has the same file, length and checksum."""
        return other is not None and (self.length, self.total, self.inode) == (other.length, other.total, other.inode)


def anchor_folder() -> str:
    """Return the folder of the anchors."""
    return os.path.join(user_folder(os.environ, "XDG_STATE_HOME", os.path.join(".local", "state")), "ctxmgr", "anchors")


def anchor_path(path: str) -> str:
    """Return the path of the anchor for the history at a path, whether it exists or not."""
    # By the real path, so that a log that is also opened through a link has only one anchor.
    return os.path.join(anchor_folder(), codec.digest(os.fsencode(os.path.realpath(path)))[:32])


def load(path: str) -> Anchor | None:
    """Return the anchor of the history at a path, or None if none can be read."""
    try:
        with open(open_regular(anchor_path(path)), "rb") as stream:
            return parse_anchor(stream.read(_MAX_BYTES))
    except OSError:
        return None


def parse_anchor(raw: bytes) -> Anchor | None:
    """Return the anchor encoded in some bytes, or None if they are damaged; a power cut may leave half of one."""
    try:
        # `int` below: later anchors calculate with the digest in ``ends``, so it must be a hexadecimal number.
        fields = codec.decode(raw)
        int(str(fields.get("ends", "0")), 16)
    except ValueError:
        return None
    length, inode = fields.get("length"), fields.get("inode", 0)
    texts = [fields.get(name, "") for name in ("sum", "session", "begun", "ends", "time", "path")]
    if type(length) is not int or type(inode) is not int or not all(type(text) is str for text in texts):
        return None
    anchor = Anchor(length, texts[0], texts[1], inode)
    anchor.created, anchor.ends_digest, anchor.time, anchor.path = texts[2:]
    return anchor


def encode_anchor(anchor: Anchor) -> bytes:
    """Return the bytes of an anchor, which `parse_anchor` reads."""
    return codec.encode({
        "v": 1, "path": anchor.path, "length": anchor.length, "sum": anchor.total, "session": anchor.session,
        "inode": anchor.inode, "begun": anchor.created, "time": anchor.time,
        **({"ends": anchor.ends_digest} if anchor.ends_digest else {}),
    })  # fmt: skip


def advance(path: str, head: Anchor, matches: Callable[[Anchor], bool], *, is_new: bool = False) -> bool:
    """Move the anchor of a history forward. Return whether the stored anchor is now at ``head`` or further along.

    An anchor that the history contradicts stays, because later records must not hide that something was cut or rewritten.
    An anchor further along stays too, because another process wrote it.

    Args:
        path: the path of the history.
        head: the end of the history on the disk. Its path and time are filled in here.
        matches: whether the history still matches an earlier anchor.
        is_new: whether the file was empty when the writer opened it. Then the anchor of another file belongs to a deleted one.
    """
    stored = load(path)
    if stored is not None and not (is_new and stored.length and stored.inode != head.inode):
        if head.has_same_end(stored):
            return True
        # An anchor of a new, empty history says nothing that could be contradicted.
        if stored.length and not matches(stored):
            return False
        if stored.length > head.length:
            return True
        # Keep the time at which the file was created.
        head.created = stored.created
    return store(path, head)


def store_empty(path: str) -> None:
    """Write the first anchor of a new history. A former anchor for its path belongs to a deleted history."""
    from ctxmgr.log.ids import now

    head = Anchor(0, "", "")
    head.created = now()
    store(path, head)


def store(path: str, head: Anchor) -> bool:
    """Replace the stored anchor. Return whether that succeeded.

    The file is not synced: after a power loss an older anchor only protects less.
    """
    from ctxmgr.log.ids import now

    head.path, head.time = os.fsdecode(os.fsencode(os.path.realpath(path))), now()
    target = anchor_path(path)
    # Several processes and threads may store an anchor of the same history at once.
    temporary = f"{target}.{os.getpid()}-{id(head)}"
    try:
        if not os.path.isdir(os.path.dirname(target)):
            make_private_folder(os.path.dirname(target))
        # Only a new anchor makes the folder larger, so the anchor of the same history is not a reason to clean up each second.
        is_first = not os.path.exists(target)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(descriptor, encode_anchor(head))
        finally:
            os.close(descriptor)
        os.replace(temporary, target)
        if is_first and target.endswith("00"):  # names are hashes, so about one new history in 256 cleans up
            _remove_old_anchors(os.path.dirname(target))
    except OSError:  # the home can't be written; `verify` reports that there is no anchor
        return False
    return True


def first_session(beginning: bytes) -> str:
    """Return the session id of a log's first record, given the first bytes of the log; "" if it can't be found."""
    # Search and do not decode, because the bytes usually end within a record.
    text = beginning.decode("utf-8", "replace")
    start = text.find(_SESSION_FIELD)
    try:
        return str(codec.decoder.raw_decode(text, start + len(_SESSION_FIELD) - 1)[0]) if start >= 0 else ""
    except ValueError:
        return ""


def _remove_old_anchors(folder: str) -> None:
    """Remove old anchors of deleted histories."""
    import time

    for entry in os.scandir(folder):
        try:
            if time.time() - entry.stat(follow_symlinks=False).st_mtime < _MAX_AGE:
                continue
            with open(open_regular(entry.path), "rb") as stream:
                anchor = parse_anchor(stream.read(_MAX_BYTES))
            if anchor is None or not os.path.exists(anchor.path):
                os.unlink(entry.path)
        except OSError:
            continue
