"""Judge what is wrong with a session now from its end alone: as far back as is needed, not the whole of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.replay import observations_of
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.store import Store
from ctxmgr.types.finding import Finding
from ctxmgr.types.observation import Observation

FIRST_LOOK = 4_000
"""Entries that are replayed at first. A shorter session is replayed whole, so that nothing is approximate for it."""

_DEEPER = 4
_MARGIN = 4


def judged_end(
    store: Store, key: int, settings: DetectSettings, kinds: tuple[str, ...], moment: float | None, *, live: bool
) -> tuple[list[Finding], list[str]]:
    """Return the findings at the end of a session, and the monitor's notes.

    What lasts is the same as in a replay of the whole session: a finding that begins in the first quarter of what was
    replayed may have begun earlier, so it makes the look go further back. Findings that were over before are not among them.
    """
    total = store.sessions.entry_count(key)
    size = FIRST_LOOK
    while True:
        start = max(0, total - size)
        border = start + (total - start) // _MARGIN
        monitor = Monitor(settings)
        opened = store.sessions.open_before(key, start)
        early: set[str] = set()
        seen = observations_of(store.sessions.records_from(key, start, kinds), start, opened, distinct=True)
        monitor.observe_all(_noted(seen, start, border, early))
        findings = monitor.findings(moment, live)
        # A finding may begin with an entry or with a message: which of the two, its id does not say.
        if start == 0 or not any(each.resolved is None and each.first in early for each in findings):
            return findings, list(monitor.notes)
        size *= _DEEPER


def _noted(observations: Iterable[Observation], place: int, border: int, early: set[str]) -> Iterator[Observation]:
    """Pass on what happened; ids of what lies before the border are put into ``early``."""
    rest = iter(observations)
    for observation in rest:
        if observation.kind == "start" and observation.index is not None:
            place = observation.index
        if place >= border:
            yield observation
            break
        early.add(observation.id)
        yield observation
    yield from rest
