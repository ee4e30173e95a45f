"""Remember outside of a history how far it had come, so that a cut or rewritten one is noticed.

A chain of sums can't show that its last records are gone. After each sync a writer therefore notes the length of the
history, its last sum and the time in the user's state folder, ``$XDG_STATE_HOME/ctxmgr/anchors`` (mode 0700). An anchor
is never ahead of what is on the disk, and it is only moved forward along a history that still holds what it says.
Standard library only.
"""

from __future__ import annotations

import os

from ctxmgr.base.paths import make_private_folder, open_regular, user_folder
from ctxmgr.log import codec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_AGE = 30 * 86_400.0  # seconds after which the anchor of a history that is gone is removed
_SESSION = '"session":"'
_MAX_BYTES = 65_536  # bytes of an anchor: a path and an id are its longest parts


class Anchor:
    """How far a history had come.

    Attributes:
        length: bytes of a log up to the end of a line; in a database the place of the last record. 0 at its beginning.
        total: the sum of the last record up to there, "" at its beginning.
        session: id of the session of its first record: it tells a rewritten history from another one at the same path.
        inode: of the file, 0 when unknown.
        ends: in a database a digest of the last sums of all sessions up to there, "" when unknown.
        begun: when a writer of ours made the file, RFC 3339; "" when unknown.
        time: when this was noted.
        path: of the history.
    """

    __slots__ = ("begun", "ends", "inode", "length", "path", "session", "time", "total")

    def __init__(self, length: int, total: str, session: str, inode: int = 0) -> None:
        self.length = length
        self.total = total
        self.session = session
        self.inode = inode
        self.begun = self.ends = self.time = self.path = ""

    def same_head(self, other: Anchor | None) -> bool:
        """Whether another anchor says the same of the same file."""
        return other is not None and (self.length, self.total, self.inode) == (other.length, other.total, other.inode)


def folder() -> str:
    """Return where anchors are kept."""
    return os.path.join(user_folder(os.environ, "XDG_STATE_HOME", os.path.join(".local", "state")), "ctxmgr", "anchors")


def anchor_path(path: str) -> str:
    """Return the file that holds, or would hold, the anchor of the history at a path."""
    # By the real path: a log that is also opened through a link has one anchor and not two.
    return os.path.join(folder(), codec.digest(os.fsencode(os.path.realpath(path)))[:32])


def load(path: str) -> Anchor | None:
    """Return the anchor of the history at a path, or None where none can be read."""
    try:
        with open(open_regular(anchor_path(path)), "rb") as stream:
            return parse(stream.read(_MAX_BYTES))
    except OSError:
        return None


def parse(raw: bytes) -> Anchor | None:
    """Return the anchor that some bytes spell, or None: a power cut may leave half of one."""
    try:
        # `int` below: the digest of the ends is reckoned on with, so what is no hexadecimal number is damage.
        found = codec.decode(raw)
        int(str(found.get("ends", "0")), 16)
    except ValueError:
        return None
    length, inode = found.get("length"), found.get("inode", 0)
    texts = [found.get(name, "") for name in ("sum", "session", "begun", "ends", "time", "path")]
    if type(length) is not int or type(inode) is not int or not all(type(text) is str for text in texts):
        return None
    anchor = Anchor(length, texts[0], texts[1], inode)
    anchor.begun, anchor.ends, anchor.time, anchor.path = texts[2:]
    return anchor


def spell(anchor: Anchor) -> bytes:
    """Return the bytes of an anchor, as `parse` reads them."""
    return codec.encode({
        "v": 1, "path": anchor.path, "length": anchor.length, "sum": anchor.total, "session": anchor.session,
        "inode": anchor.inode, "begun": anchor.begun, "time": anchor.time, **({"ends": anchor.ends} if anchor.ends else {}),
    })  # fmt: skip


def advance(path: str, head: Anchor, holds: Callable[[Anchor], bool], *, made: bool = False) -> bool:
    """Move the anchor of a history forward; return whether it says now how far the history has come.

    An anchor that the history contradicts stays as it is: going on writing must not hide that something was cut or
    rewritten. An anchor that is further along stays too: another process wrote it.

    Args:
        path: of the history.
        head: how far it is on the disk; its path and time are filled in here.
        holds: whether the history still holds what an earlier anchor says.
        made: whether the file was empty when the writer opened it. Then an anchor of another file belongs to one that is
            gone.
    """
    found = load(path)
    if found is not None and not (made and found.length and found.inode != head.inode):
        if head.same_head(found):
            return True
        # One of a history that had only begun says nothing that could be contradicted.
        if found.length and not holds(found):
            return False
        if found.length > head.length:
            return True
        # Only who made the file could note when.
        head.begun = found.begun
    return store(path, head)


def begin(path: str) -> None:
    """Write the first anchor of a new history. What was noted for its path before belongs to a history that is gone."""
    from ctxmgr.log.ids import now

    head = Anchor(0, "", "")
    head.begun = now()
    store(path, head)


def store(path: str, head: Anchor) -> bool:
    """Write an anchor in place of the one that is there; return whether that could be done.

    It is not synced: one that is lost with the power only knows less.
    """
    from ctxmgr.log.ids import now

    head.path, head.time = os.fsdecode(os.fsencode(os.path.realpath(path))), now()
    place = anchor_path(path)
    # Several processes, and threads of one, may note the same history at once.
    draft = f"{place}.{os.getpid()}-{id(head)}"
    try:
        if not os.path.isdir(os.path.dirname(place)):
            make_private_folder(os.path.dirname(place))
        # Only a new name makes the folder larger: who notes the same history each second does not tidy up each time.
        fresh = not os.path.exists(place)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(descriptor, spell(head))
        finally:
            os.close(descriptor)
        os.replace(draft, place)
        if fresh and place.endswith("00"):  # a name is a hash: about one new history in 256 tidies up
            _forget_gone(os.path.dirname(place))
    except OSError:  # a home that can't be written: `verify` says that there is no anchor
        return False
    return True


def first_session(head: bytes) -> str:
    """Return the session of a log's first record, given what the log begins with; "" where it can't be told."""
    # Searched and not decoded: what is given ends anywhere, mostly within a record.
    text = head.decode("utf-8", "replace")
    at = text.find(_SESSION)
    try:
        return str(codec.decoder.raw_decode(text, at + len(_SESSION) - 1)[0]) if at >= 0 else ""
    except ValueError:
        return ""


def _forget_gone(where: str) -> None:
    """Remove old anchors of histories that are gone."""
    import time

    for entry in os.scandir(where):
        try:
            if time.time() - entry.stat(follow_symlinks=False).st_mtime < _MAX_AGE:
                continue
            with open(open_regular(entry.path), "rb") as stream:
                found = parse(stream.read(_MAX_BYTES))
            if found is None or not os.path.exists(found.path):
                os.unlink(entry.path)
        except OSError:
            continue
