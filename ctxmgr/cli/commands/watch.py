"""``watch``: follow a running session or a growing log, report findings at once, and run a command on them."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from ctxmgr.base.paths import DATABASES, open_regular
from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.exits import Exit
from ctxmgr.cli.invocation import child_environment
from ctxmgr.cli.output import OutputOptions, fail, say
from ctxmgr.cli.terminal import Printer, Span, printer
from ctxmgr.cli.views.layout import verdict_sign, verdict_style
from ctxmgr.config import load_config
from ctxmgr.errors import CtxmgrError, InvalidInput, NoHistory, NotFound, StorageFailed
from ctxmgr.history.live.record_sources import Follower, LogSource, LogTail, Sight, Source, StoreTail
from ctxmgr.history.live.shared_sessions import SharedSessions
from ctxmgr.history.query.address import session_key
from ctxmgr.live.watcher import HookedSessions, only_watcher
from ctxmgr.log import ids
from ctxmgr.log.fast_json import json_object
from ctxmgr.store import LogStore
from ctxmgr.types.finding import Finding
from ctxmgr.workspace import Workspace

HEARTBEAT = 60.0
"""Interval of the heartbeat in the JSON output, in seconds."""

_MAX_VARIABLE_BYTES = 100_000  # Linux starts no program with a variable above 128 KiB
_HOOK_SECONDS = 60.0  # findings wait for the command, so a hanging command must not stop the watch
_SEVERITIES = ("loop", "hung", "warn")


def watch(
    target: Annotated[
        str | None, typer.Argument(metavar="[SESSION|LOG]", help="A session, or a log of ctxmgr, Claude Code or Codex.")
    ] = None,
    session: o.Session = None,
    every: Annotated[float, typer.Option("--every", metavar="SECONDS", help="Polling interval.")] = 2.0,
    command: Annotated[
        str | None,
        typer.Option("--exec", metavar="CMD", help="Command to run on each finding, with the finding as JSON on stdin."),
    ] = None,
    exit_on: Annotated[
        str | None, typer.Option("--exit-on", metavar="A,B", help="Findings at which to end: loop, hung, warn.")
    ] = None,
    until_end: Annotated[bool, typer.Option("--until-end", help="End when the session has ended.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Check once and end.")] = False,
    hooked: Annotated[
        bool, typer.Option("--hooked", help="Follow all sessions of clients that call ctxmgr, for hanging calls and silence.")
    ] = False,
    service: Annotated[
        bool, typer.Option("--service", help="Share a server's sessions among all watchers with this option.")
    ] = False,
    store: o.Store = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Follow a running session or a growing log, and report every loop and stall when it begins and when it is over.

    CMD is run with CTXMGR_FINDING and CTXMGR_SESSION, without a shell: pipes and ">>" need "sh -c '...'". Its output goes to
    stderr. On a terminal a bell rings too. With --hooked you are notified as the settings under [live] say, and the agent at
    its next event; the first hook starts the same in the background unless [live] watch is false.

    On a server, all sessions that were active within the last hour are followed, up to 64. With --service several watchers
    share them: each session is followed by one, and if that one falls silent, by another within a minute.

    Exit codes with --exit-on: 10 loop, 11 hung, 12 both.

    Examples:
      ctxmgr watch
      ctxmgr watch ~/.claude/projects/my-project/7e999fd2.jsonl --exec 'notify-send stuck'
      ctxmgr watch 01a1ffcb --json --exit-on loop,hung
      ctxmgr watch --hooked
      ctxmgr watch --service --store postgresql://ctxmgr@db.example/history --exec 'notify-send stuck'
    """
    # A watch has no end for an envelope, so its JSON output is one row per event.
    how = OutputOptions("ndjson" if json_ else "table")
    try:
        o.require_interval(every)
        wanted, hook = _severities(exit_on), Hook(_argv(command)) if command is not None else None
        _require_alone(hooked, service, named=target is not None or session is not None, store=store)
        with (
            _follow_hooks() if hooked else _follow(target, session, every, store, once=once, service=service) as follower,
            _end_on_sigterm(),
        ):
            show = Show(printer(), as_json=json_)
            _say_start(target or session, store, quiet=json_ or once, hooked=hooked)
            code = Watcher(follower, show, hook, wanted, until_end=until_end, bell=sys.stderr.isatty()).run(every, once=once)
    except CtxmgrError as error:
        fail("watch", how, error)
    except KeyboardInterrupt as end:
        code = Exit.TERMINATED if isinstance(end, _Terminated) else Exit.INTERRUPTED
    raise typer.Exit(int(code))


def _say_start(named: str | None, store: str | None, *, quiet: bool, hooked: bool) -> None:
    """Tell a person what is followed. A healthy run shows nothing, which would look like a hang."""
    if quiet or not sys.stderr.isatty():
        return
    if hooked:
        say("Following all sessions of clients that call ctxmgr; Ctrl-C ends it.")
        return
    words = ["ctxmgr", "recover", named or "SESSION", *(["--store", store] if store is not None else [])]
    say(f"Following {named or 'what is recorded'}; Ctrl-C ends it. When it is stuck: {shlex.join(words)}")


def _require_alone(hooked: bool, service: bool, *, named: bool, store: str | None) -> None:
    if hooked and (named or store is not None):
        raise InvalidInput("--hooked follows the sessions that hooks reported", "leave out the session, the log and --store")
    if service and (hooked or named):
        raise InvalidInput("--service follows the sessions of a server", "leave out the session, the log and --hooked")


def _severities(text: str | None) -> frozenset[str]:
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    for name in names:
        if name not in _SEVERITIES:
            raise InvalidInput(f"--exit-on {name!r} is unknown", f"known: {', '.join(_SEVERITIES)}")
    return frozenset(names)


def _argv(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InvalidInput(f"--exec {command!r}: {error}", "quote it as in a shell") from None
    if not words:
        raise InvalidInput("--exec needs a command", "e.g. --exec 'notify-send stuck'")
    return words


@contextmanager
def _follow_hooks() -> Generator[HookedSessions]:
    try:
        with only_watcher():
            yield HookedSessions()
    except OSError as error:
        raise StorageFailed(f"can't keep {error.filename or 'the state of the hooks'}: {error.strerror}", "check it") from None


@contextmanager
def _follow(
    target: str | None, session: str | None, every: float, store: str | None, *, once: bool, service: bool
) -> Generator[Follower]:
    path = Path(target) if target is not None else None
    # A log is followed directly as it grows, without an index. A file with the suffix of a store is opened as a store.
    if path is not None and path.is_file() and path.suffix.lower() not in DATABASES:
        _require_readable(path)
        yield Follower(LogSource(path, session=session, every=every, once=once), load_config(Path.cwd()).detect)
        return
    # The id of a session has neither a suffix nor a slash, so this is the name of a file.
    if path is not None and not path.exists() and (path.suffix or os.sep in str(target)):
        raise NotFound(f"no log at {path}", "check the path")
    if path is not None and path.exists():
        store, target = str(path), None
    with Workspace.open(store, readonly=True) as workspace:
        named = target or session
        if workspace.store.engine.shared and named is None:
            yield from _share_follower(workspace, share=service)
            return
        if service:
            raise InvalidInput("--service needs a store on a server", "name it: --store postgresql://USER@HOST/DATABASE")
        key = session_key(workspace.store, named)
        if key is None:
            raise NoHistory(hint="record or import a run first, or name a log")
        yield Follower(_source(workspace, key if named is not None else None), workspace.config.detect)


def _require_readable(path: Path) -> None:
    """Refuse a log that can't be read: a source takes it for one that is being replaced, and would wait for ever."""
    try:
        os.close(open_regular(path))
    except OSError as error:
        raise StorageFailed(f"can't read {path}: {error.strerror}", "check its permissions") from None


def _share_follower(workspace: Workspace, *, share: bool) -> Generator[Follower]:
    with closing(SharedSessions(workspace.store, share=share)) as source:
        follower = Follower(source, workspace.config.detect, workspace.store.clock)
        follower.wait = workspace.store.wait
        yield follower


def _source(workspace: Workspace, key: int | None) -> Source:
    if isinstance(workspace.store, LogStore):
        return LogTail(Path(workspace.store.path), None if key is None else workspace.store.sessions.name(key))
    return StoreTail(workspace.store, key)


class _Terminated(KeyboardInterrupt):
    """SIGTERM was received. Like Ctrl-C it cancels what a server is doing, so that the connection can be used to tidy up."""


@contextmanager
def _end_on_sigterm() -> Generator[None]:
    """End in order on SIGTERM: flush the output and do not leave a running command behind."""

    def end(_number: int, _frame: object) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@dataclass(slots=True)
class Watcher:
    """Polls a source, shows its sights, runs the command on findings, and ends on the requested severities."""

    follower: Follower | HookedSessions
    show: Show
    hook: Hook | None = None
    exit_on: frozenset[str] = frozenset()
    until_end: bool = False
    bell: bool = False
    pause: Callable[[float], None] = field(default=time.sleep)

    def __post_init__(self) -> None:
        """Wait by the source's own means if it is notified of new records, instead of sleeping."""
        if isinstance(self.follower, Follower) and self.follower.wait is not None:
            self.pause = self.follower.wait

    def run(self, every: float, *, once: bool = False) -> int:
        """Poll until a requested event ends the watch; return the exit code."""
        while True:
            code = self.look(beat=once)
            if code is not None:
                return code
            if once or (self.until_end and self.follower.has_ended()):
                return Exit.OK
            self.pause(every)

    def look(self, *, beat: bool = False) -> int | None:
        """Poll once. Return the exit code if the watch is to end, else None."""
        met: set[str] = set()
        for sight in self.follower.tick():
            self.show.sight(sight)
            if sight.event in ("raised", "escalated") and sight.finding is not None:
                # On stderr, because a bell in a piped stdout would be data.
                if self.bell:
                    sys.stderr.write("\a")
                    sys.stderr.flush()
                if self.hook is not None:
                    self.hook.run(sight)
                if sight.finding.resolved is None:
                    met |= self.exit_on & {sight.finding.severity}
        # Show all sights of this round before ending, because a second one may turn a loop into a loop and a hang.
        self.show.write_heartbeats(self.follower.counts(), force=beat)
        self.show.flush()
        if {"loop", "hung"} <= met:
            return Exit.LOOP_AND_HUNG
        return Exit.HUNG if "hung" in met else Exit.LOOP if met else None


@dataclass(frozen=True, slots=True)
class Hook:
    """A command to run on findings. It is split into words once, so recorded text never becomes part of it."""

    argv: Sequence[str]

    def run(self, sight: Sight) -> None:
        """Run the command and wait for at most a minute. A failure is only reported."""
        finding = {} if sight.finding is None else sight.finding.to_json()
        text = json.dumps(finding, default=str)
        short = text
        if len(text) > _MAX_VARIABLE_BYTES:
            # The system starts no program with a longer variable. Stdin always has the whole finding.
            short = json.dumps({name: finding.get(name) for name in ("id", "kind", "severity", "period", "count")})
        # A log may name its session with a NUL or a lone surrogate. A variable can hold neither.
        session = sight.session.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")[:_MAX_VARIABLE_BYTES]
        try:
            # Its stdout goes to our stderr, because a program may be parsing our stdout.
            ended = subprocess.run(
                self.argv, input=text.encode("ascii"), stdout=2, timeout=_HOOK_SECONDS, check=False,
                env={**child_environment(), "CTXMGR_FINDING": short, "CTXMGR_SESSION": session},
            )  # fmt: skip
        except (OSError, ValueError) as error:
            say(f"ctxmgr: --exec {self.argv[0]} could not be run: {getattr(error, 'strerror', None) or error}")
        except subprocess.TimeoutExpired:
            say(f"ctxmgr: --exec {self.argv[0]} took longer than {_HOOK_SECONDS:g} s and was ended")
        else:
            if ended.returncode:
                say(f"ctxmgr: --exec {self.argv[0]} ended with {ended.returncode}")


def _place(finding: Finding) -> str:
    named = json_object(finding.evidence.get("indexes"))
    first, last = named.get("first"), named.get("last")
    return "" if first is None or last is None else f" @{first}" if first == last else f" @{first}..@{last}"


_ENDED_BY = {
    "progress": "it made progress",
    "user": "a person spoke",
    "interrupt": "a person interrupted it",
    "answered": "the recovery was followed",
    "process": "a later process took on",
    "end": "the session ended",
}


class Show:
    """Writes one line per sight: for people, or as JSON with a heartbeat."""

    def __init__(self, out: Printer, *, as_json: bool, clock: Callable[[], float] = time.time) -> None:
        self._out = out
        self._as_json = as_json
        self._clock = clock
        # Makes the first poll write a heartbeat, so that a reader knows that the watch has begun.
        self._beat = float("-inf")

    def sight(self, sight: Sight) -> None:
        """Write one sight."""
        if not self._as_json:
            self._line(sight)
            return
        row: dict[str, Any] = {"event": sight.event, "session": sight.session}
        row["finding"] = None if sight.finding is None else sight.finding.to_json()
        if sight.event == "ended":
            row |= {"outcome": sight.outcome, "lost": sight.lost}
        self._row(row)

    def _row(self, row: dict[str, Any]) -> None:
        text = json.dumps({"schema": "ctxmgr/1", "ts": ids.format_time(self._clock()), **row}, default=str)
        # JSON does not escape DEL, the one control character in ASCII output.
        sys.stdout.write(text.replace("\x7f", "\\u007f") + "\n")
        self._beat = self._clock()

    def _line(self, sight: Sight) -> None:
        moment = Span(time.strftime("%H:%M:%S", time.localtime(self._clock())), "dim")
        finding = sight.finding
        if finding is None:
            lost = f", {sight.lost} events lost" if sight.lost is not None else ""
            self._out.line(moment, "  ", Span("ended"), f"  {sight.session}  {sight.outcome}{lost}")
            return
        where = f"{finding.scope.agent or 'an agent'} in {sight.session}{_place(finding)}"
        kind = "" if finding.kind == finding.severity else f" {finding.kind}"
        if sight.event == "over":
            why = _ENDED_BY.get(finding.resolved or "", finding.resolved or "it is gone")
            self._out.line(moment, "  ", Span("over", "ok"), f"  {finding.severity}{kind} of {where}: {why}", hang=10)
            return
        sign = verdict_sign(self._out.symbols, finding.severity)
        word = Span(f"{sign} {finding.severity.upper()}", verdict_style(finding.severity))
        self._out.line(moment, "  ", word, f"{kind}  {where}  ", finding.reason, hang=10)

    def write_heartbeats(self, counts: dict[str, int], *, force: bool = False) -> None:
        """Write a JSON heartbeat per session if nothing was written for `HEARTBEAT` seconds."""
        if self._as_json and (force or self._clock() - self._beat >= HEARTBEAT):
            for session, entries in counts.items():
                self._row({"event": "heartbeat", "session": session, "finding": None, "entries": entries})

    def flush(self) -> None:
        """Flush stdout: in a pipe it is buffered, but a reader waits for each line."""
        sys.stdout.flush()
