"""Watch a workflow while it runs: judge each record, and stalls against a clock."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.errors import HungError
from ctxmgr.history.live.record_stream import RecordStream
from ctxmgr.log.codec import Record
from ctxmgr.types.finding import Finding

if TYPE_CHECKING:
    from ctxmgr.history.live.blackboard import BlackboardHistory


class LiveMonitor:
    """A monitor that can be shown records, and that speaks again of a loop that goes on all the same.

    A finding is raised once. A workflow that goes on with the same loop, for instance because the advice it got did not
    help, would then never be stopped again; so a loop counts anew from where it was raised.
    """

    def __init__(self, settings: DetectSettings) -> None:
        self._monitor = Monitor(settings)
        self._feed = RecordStream()
        self._standing: dict[str, list[int]] = {}  # finding -> [results until it is looked at again, rounds it then has]

    def take(self, record: Record, *, repeat: bool) -> list[Finding]:
        """Take a record; return the findings that it raises, with ``repeat`` those that go on too."""
        raised = [found for seen in self._feed.take(record) for found in self._monitor.observe(seen)]
        if not repeat:
            return raised
        again = self._go_on() if self._standing and record.get("kind") in ("entry", "result") else []
        for finding in (*raised, *again):
            if finding.severity == "loop":
                rounds = self.rounds(finding)
                self._standing[finding.id] = [rounds * max(1, finding.period), finding.count + rounds]
        return raised + again

    def rounds(self, finding: Finding) -> int:
        """Return how many rounds make a loop of this kind."""
        settings = self._monitor.settings
        return settings.cycle_rounds if finding.period > 1 else settings.repeat_rounds

    def _go_on(self) -> list[Finding]:
        due: list[str] = []
        for name, (left, _) in self._standing.items():
            self._standing[name][0] = left - 1
            if left <= 1:
                due.append(name)
        if not due:
            return []
        known = {finding.id: finding for finding in self._monitor.findings(live=True)}
        again: list[Finding] = []
        for name in due:
            finding = known.get(name)
            if finding is None or finding.resolved is not None:
                del self._standing[name]
            elif finding.count >= self._standing[name][1]:
                again.append(finding)
            else:
                self._standing[name][0] = 1
        return again

    def findings(self, now: float) -> list[Finding]:
        """Return every finding so far, with the stalls as of ``now``."""
        return self._monitor.findings(now, live=True)


class StallAlarm:
    """Tells of each stall of a history once."""

    def __init__(self, board: BlackboardHistory, on_hung: Callable[[HungError], object]) -> None:
        self._board = weakref.ref(board)
        self._on_hung = on_hung
        self._told: str | None = None
        self._stopped = threading.Event()

    def tick(self, now: float | None = None) -> None:
        """Look once; what ``on_hung`` raises is kept in the history's failures."""
        board = self._board()
        if board is None:
            self._stopped.set()
            return
        try:
            try:
                board.check_stalls(now)
                self._told = None
            except HungError as stall:
                finding = stall.finding
                name = finding.id if isinstance(finding, Finding) else ""
                if name != self._told:
                    self._told = name
                    self._on_hung(stall)
        except Exception as error:  # the thread has nobody to raise to
            board.failures.append(error)

    def start(self, every: float) -> None:
        """Look every so many seconds, in a daemon thread, until `stop` or until the history is gone."""
        threading.Thread(target=self._run, args=(every,), name="ctxmgr-stall-alarm", daemon=True).start()

    def _run(self, every: float) -> None:
        while not self._stopped.wait(every):
            self.tick()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
