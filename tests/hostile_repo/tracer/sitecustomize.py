"""Loaded by the interpreter at its start where ``CTXMGR_TRACE`` is set: log what reaches out of the places that are allowed.

``CTXMGR_TRACE`` names the log, ``CTXMGR_TRACE_ALLOWED`` the folders that may be written to, separated by colons. What a C
library does by itself raises no audit event (SQLite's files), so that tests compare the folders too.
"""

import json
import os
import sys
from typing import cast

_CHANGES = ("os.mkdir", "os.rmdir", "os.remove", "os.truncate", "os.chmod", "os.chown", "os.utime", "os.mkfifo", "os.mknod")
_PAIRS = ("os.rename", "os.link", "os.symlink")
_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "pty.spawn")
_CALLS = ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname")
_NEW = os.O_CREAT | os.O_EXCL
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Tracer:
    """Logs every program that is started, every connection, and every change outside of the allowed folders."""

    def __init__(self, log: str, allowed: list[str]) -> None:
        self._descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._roots = [os.path.realpath(folder) for folder in allowed]

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        """Hear of an event of the interpreter."""
        if event == "open" or event in _CHANGES or event in _PAIRS:
            if self._changes_outside(event, arguments):
                self._note("write", event, arguments)
        elif event in _STARTS:
            if not _is_own(arguments):
                self._note("command", event, arguments)
        elif event in _CALLS and not (event == "socket.connect" and isinstance(arguments[1], (str, bytes))):
            self._note("connection", event, arguments[1:])

    def _changes_outside(self, event: str, arguments: tuple[object, ...]) -> bool:
        if event == "open":
            path, _, flags = arguments
            if not isinstance(flags, int) or not flags & _WRITING:
                return False
            follow = not flags & os.O_NOFOLLOW and flags & _NEW != _NEW
            return self._is_outside(path, follow)
        if event in _PAIRS:  # a link to what lies outside changes nothing there
            return any(self._is_outside(path, False) for path in arguments[event != "os.rename" : 2])
        return self._is_outside(arguments[0], event in ("os.truncate", "os.utime"))

    def _is_outside(self, path: object, follow: bool) -> bool:
        if not isinstance(path, (str, bytes)):  # a descriptor; what Python opens by a path object is a text by now
            return False
        text = os.path.join(os.getcwd(), os.fsdecode(path))
        folder, name = os.path.split(text.rstrip("/"))
        real = os.path.realpath(text) if follow else os.path.join(os.path.realpath(folder), name)
        if real.startswith("/dev/") and not real.startswith("/dev/shm/"):
            return False
        return not any(real == root or real.startswith(root + "/") for root in self._roots)

    def _note(self, kind: str, event: str, what: object) -> None:
        os.write(self._descriptor, json.dumps([kind, event, repr(what)[:400]]).encode() + b"\n")


def _is_own(arguments: tuple[object, ...]) -> bool:
    """Whether this is what ctxmgr starts by itself: git, asked one question, its own second half, or what `platform` asks."""
    given = arguments[1] if len(arguments) > 1 else None
    words = [str(word) for word in cast("list[object]", given)] if isinstance(given, list) else []
    if words[:1] == ["git"]:
        return "check-ignore" in words and "core.fsmonitor=false" in words
    return words == ["uname", "-p"] or (words[:1] == [sys.executable] and any("import marshal" in word for word in words))


if os.environ.get("CTXMGR_TRACE"):
    sys.addaudithook(Tracer(os.environ["CTXMGR_TRACE"], os.environ["CTXMGR_TRACE_ALLOWED"].split(":")))
