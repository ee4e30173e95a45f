"""Watch the sessions that hooks reported for hanging calls and for silence, because no client calls a hook while a call hangs.

One background process for each user does this. The first hook of a session starts it, and it ends when no session is alive.
While a session is active, the watcher only checks the times of its files and does not read its log.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ctxmgr.base.paths import make_private_folder, replace_file
from ctxmgr.clients import AFTER, SESSION_SUFFIX, WATCHER_LOCK, Client, Event, client, read_rows, state_folder, state_name
from ctxmgr.config import Config, load_config
from ctxmgr.errors import Busy, CtxmgrError
from ctxmgr.history.live.record_sources import Batch, Follower, LogSource, Sight, Source
from ctxmgr.live.event_answer import modification_time, open_calls
from ctxmgr.types.finding import Finding

EVERY = 5.0
"""Polling interval of the background watcher in seconds."""

_SILENCE = 300.0
"""Default seconds of silence without an open call before a person is notified. A model may think for a long time."""

_QUIET = 60.0
"""Seconds without activity after which a session's log is read."""

_ALIVE = 7_200.0
"""Seconds without activity after which a session counts as ended."""

INTERRUPT = (
    "Interrupt the call, or wait for it: with its end, or with your next word, the agent is told why it hung and what to do."
)
_LOCK_ATTEMPTS, _LOCK_PAUSE = 5, 0.2  # seconds


@dataclass(slots=True)
class WatchedSession:
    """A session that hooks reported.

    Attributes:
        client: the client in which it runs.
        session: the client's id of the session.
        log: the path of its log.
        folder: the folder in which its agent works.
        pid: the process that started the hook, which is a shell if the client starts hooks through one.
        moved: the latest modification time of its files, in seconds since 1970.
        ended: whether the client ended it.
    """

    client: Client
    session: str
    log: str
    folder: str
    pid: int
    moved: float
    ended: bool


class HookedSessions:
    """Checks every session that hooks reported, notifies a person of hangs, and leaves a message for the agent.

    Args:
        clock: function that returns seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._files: dict[str, tuple[float, WatchedSession | None]] = {}
        self._followed: dict[str, Follower] = {}
        self._hung: dict[str, dict[str, Sight]] = {}
        self._running: set[int] = set()

    def tick(self) -> list[Sight]:
        """Check all sessions once. Return the hangs that began and those that ended."""
        now, sights = self._clock(), list[Sight]()
        living = self.living_sessions()
        for path in [path for path in self._followed if path not in living]:
            sights += self._let_go(path)
        for path, each in living.items():
            if now - each.moved < _QUIET:
                sights += self._let_go(path)
                continue
            # An unreadable log, or wrong settings in one folder, must not end the watch over the other sessions.
            with contextlib.suppress(CtxmgrError, OSError, ValueError):
                sights += self._look(path, each)
        return sights

    def living_sessions(self) -> dict[str, WatchedSession]:
        """Return the live sessions by the paths of their files."""
        now, found = self._clock(), dict[str, tuple[float, WatchedSession | None]]()
        with contextlib.suppress(OSError), os.scandir(state_folder()) as entries:
            for entry in entries:
                if entry.name.endswith(SESSION_SUFFIX) and entry.is_file(follow_symlinks=False):
                    with contextlib.suppress(OSError):
                        touched = entry.stat(follow_symlinks=False).st_mtime
                        known = self._files.get(entry.path)  # parsed again only after a change
                        same = known is not None and known[0] == touched
                        found[entry.path] = known if known is not None and same else (touched, _read_session(entry.path))
        self._files = found
        living: dict[str, WatchedSession] = {}
        for path, (touched, each) in found.items():
            if each is None or each.ended:
                continue
            # A client that writes its log late still calls hooks, and one that calls no hook for long still writes its log.
            each.moved = max(touched, modification_time(each.log), modification_time(path.removesuffix(SESSION_SUFFIX)))
            # A time in the future, e.g. of a file from another machine, must not keep the watcher for ever.
            if abs(now - each.moved) < _ALIVE and not self._is_gone(each.pid):
                living[path] = each
        return living

    def counts(self) -> dict[str, int]:
        """Return the number of entries by session, for the sessions whose logs were read."""
        return {session: count for each in self._followed.values() for session, count in each.counts().items()}

    def has_ended(self) -> bool:
        """Whether no session is alive."""
        return not self.living_sessions()

    def _is_gone(self, pid: int) -> bool:
        """Whether a process that was once seen alive has ended. A shell that started a hook ends before the first check."""
        # Process 1 adopts orphans, and for `kill` 0 and negative numbers mean process groups.
        if pid <= 1:
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return pid in self._running
        except OSError:  # the process exists and belongs to another user
            pass
        self._running.add(pid)
        return False

    def _let_go(self, path: str) -> list[Sight]:
        self._followed.pop(path, None)
        hangs = self._hung.pop(path, {}).values()
        return [
            replace(sight, event="over", finding=sight.finding.model_copy(update={"resolved": "progress"}))
            for sight in hangs if sight.finding is not None
        ]  # fmt: skip

    def _look(self, path: str, each: WatchedSession) -> list[Sight]:
        config = _config(each.folder)
        follower = self._followed.get(path)
        if follower is None:
            # A longer time than for `ctxmgr detect`, because nobody asked here, and a false alarm disturbs.
            settings = {"stall_seconds": _SILENCE, **config.detect}
            follower = self._followed[path] = Follower(_source(each), settings, self._clock)
        hung = self._hung.setdefault(path, {})
        sights: list[Sight] = []
        for sight in follower.tick():
            finding = sight.finding
            if finding is None or finding.kind != "hung":
                continue
            # Report the end of a hang only if its begin was reported.
            if sight.event == "over" and hung.pop(finding.id, None) is not None:
                sights.append(sight)
            elif sight.event != "over" and finding.severity == "hung" and not config.is_quiet(finding.kind, finding.evidence):
                hung[finding.id] = sight
                sights.append(sight)
                _tell(each, finding, config, self._clock())
        return sights


def _read_session(path: str) -> WatchedSession | None:
    begun: dict[str, Any] | None = None
    ended = False
    for row in read_rows(path):
        if row.get("kind") == "session":
            begun, ended = row, False
        elif row.get("kind") == "sessionEnd":
            ended = True
    if begun is None or not all(isinstance(begun.get(name), str) for name in ("client", "session", "log", "folder")):
        return None
    asked, pid = client(begun["client"]), begun.get("pid")
    if asked is None or type(pid) is not int:
        return None
    return WatchedSession(asked, begun["session"], begun["log"], begun["folder"], pid, 0.0, ended)


class _LogWithOpenCalls:
    """A log that does not grow, read once together with its open calls, which the client logs only when they are over."""

    def __init__(self, log: str, begun: Sequence[str]) -> None:
        self._log = log
        self._begun = begun
        self._done = False

    def poll(self) -> Batch | None:
        """Return the session once."""
        if self._done:
            return None
        from ctxmgr.live.detector_answer import excerpt

        with tempfile.TemporaryDirectory(prefix="ctxmgr-") as place:
            batch = LogSource(Path(excerpt(self._log, place, (), self._begun)), once=True).poll()
            if batch is not None:
                batch.records = list(batch.records)
        self._done = True
        return batch


def _source(each: WatchedSession) -> Source:
    begun = open_calls(each.client, each.session, modification_time(each.log))
    return _LogWithOpenCalls(each.log, begun) if begun else LogSource(Path(each.log), every=EVERY)


def _config(folder: str) -> Config:
    return load_config(Path(folder) if os.path.isabs(folder) and os.path.isdir(folder) else Path.home())


def _tell(each: WatchedSession, finding: Finding, config: Config, now: float) -> None:
    """Notify a person, and leave a message that the agent reads when the call returns.

    Silence without an open call is not caused by the agent, so only the person is notified.
    """
    # Loads the recovery, which most watchers never need.
    from ctxmgr.live.detector_answer import confirmed_prompt, hang_text, headline, notify_person

    told = config.live_mode != "watch" and bool(finding.members)
    line = headline(each.client, each.folder, finding.reason)
    notify_person(config, each.session, line, f"{line}\n{INTERRUPT}\n" if told else f"{line}\n")
    if not told:
        return
    event = Event(AFTER, "", each.session, (), "", each.log, each.folder)
    prompt = confirmed_prompt(each.client, event, config, Path.home(), hung_at=now)
    if prompt is not None:
        stall = os.path.join(state_folder(), state_name(each.client.name, each.session) + ".stall")
        replace_file(stall, hang_text(prompt).encode("utf-8", "replace"))


@contextlib.contextmanager
def only_watcher() -> Generator[None]:
    """Hold the lock of the user's only watcher.

    Raises:
        Busy: another watcher is running.
        OSError: the state folder can't be written.
    """
    folder = state_folder()
    make_private_folder(folder)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(os.path.join(folder, WATCHER_LOCK), flags, 0o600)
    try:
        _hold(descriptor)
        # Only for the message to a second watcher. The lock itself decides.
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        yield
    finally:
        os.close(descriptor)


def _hold(descriptor: int) -> None:
    for attempt in range(_LOCK_ATTEMPTS):  # a hook that tests the lock holds it for an instant
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt == _LOCK_ATTEMPTS - 1:
                pid = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
                hint = "that one tells you of hangs; end it by its id to see them here"
                raise Busy(f"a watcher runs already, as process {pid or '?'}", hint) from None
            time.sleep(_LOCK_PAUSE)
        else:
            return


def run(_name: str, pause: Callable[[float], None] = time.sleep) -> None:
    """Watch in the background until no session is alive. A second watcher ends at once.

    Raises:
        Exception: any error, which nobody sees.
    """
    os.closerange(3, 256)  # descriptors that the client left open
    os.chdir("/")  # else the folder in which the client was started could not be unmounted or removed
    # The watcher must never slow down the agent.
    os.nice(10)
    if not load_config(Path.home()).live_watch:
        return
    sessions = HookedSessions()
    # Two loops: a session that begins just before the lock is released finds it held, and so starts no watcher of its own.
    while not sessions.has_ended():
        with only_watcher():
            while not sessions.has_ended():
                sessions.tick()
                pause(EVERY)
