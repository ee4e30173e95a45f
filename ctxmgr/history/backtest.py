"""Judge labelled sessions and count: how often the detectors are right, how exact, how fast, against simpler rules."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxmgr.detect.settings import DetectSettings
from ctxmgr.history.baselines import RULES_OF_THUMB
from ctxmgr.history.ingest import import_logs
from ctxmgr.history.labels import read_labels
from ctxmgr.history.trial import Trial, try_session
from ctxmgr.store import Store, open_store
from ctxmgr.types.backtest import Alarm, Backtest, Distance, Distances, Found, Label, Missed, Score
from ctxmgr.types.finding import Finding
from ctxmgr.wire import Record


@dataclass(frozen=True, slots=True)
class Judged:
    """A labelled session and what came of it."""

    label: Label
    trial: Trial

    @property
    def loop(self) -> bool:
        """Whether it is labelled as a loop or stall."""
        return self.label.loop is True

    @property
    def counted(self) -> list[Finding]:
        """The alarms that count: all; of a healthy session that is judged at its end, those that stand there."""
        return self.trial.standing if not self.loop and self.label.eval == "final" else self.trial.alarms


def backtest_folder(folder: Path, settings: Mapping[str, Any]) -> tuple[Backtest, list[str]]:
    """Return how well the detectors tell the sessions of a folder apart, and what a person should hear about its logs.

    The logs, of any format that can be imported, go into a store in a temporary folder, so that what is judged is what
    ``ctxmgr detect`` would see. Nothing in the folder is changed.

    Args:
        folder: logs and a ``labels.json``.
        settings: the ``detect`` table of the configuration.

    Raises:
        NotFound, InvalidInput, StorageFailed: no folder, no labels, or labels or settings that can't be used.
    """
    checked = DetectSettings.from_table(settings)
    labels = read_labels(folder)
    with tempfile.TemporaryDirectory(prefix="ctxmgr-backtest-") as place:
        store = open_store(str(Path(place) / "history.db"), create=True)
        try:
            report = import_logs(store, [folder], home=Path(place), environment={})
            notes = [f"{file.path}: {file.skipped}" for file in report.files if file.skipped]
            if report.damaged:
                notes.append(f"{report.damaged} damaged ranges in the logs were passed over")
            return backtest(labels, _sessions(store), checked), notes
        finally:
            store.close()


def backtest(
    labels: Sequence[Label], sessions: Mapping[str, Iterable[Record]], settings: DetectSettings | None = None
) -> Backtest:
    """Return how well the detectors tell labelled sessions apart.

    Args:
        labels: one a session.
        sessions: id -> its records in the order of the log.
        settings: of the detectors; the defaults when None.
    """
    used = settings or DetectSettings()
    wanted = [label for label in labels if label.loop is not None]
    judged = [
        Judged(label, try_session(sessions[label.session], used, label.now)) for label in wanted if label.session in sessions
    ]
    loops = [each for each in judged if each.loop]
    healthy = [each for each in judged if not each.loop]
    named = {label.session for label in labels}
    return Backtest(
        scored=len(judged), loops=len(loops), healthy=len(healthy), ignored=len(labels) - len(wanted),
        absent=[label.session for label in wanted if label.session not in sessions],
        unlabelled=sum(name not in named for name in sessions),
        detectors=_score("detectors", judged, [bool(each.counted) for each in judged]),
        baselines=_baselines(judged),
        rules=[
            _score(name, judged, [rule(each.trial.moves) is not None for each in judged])
            for name, rule in RULES_OF_THUMB.items()
        ],
        false_alarms=[_alarm(each.label.session, each.counted[0]) for each in healthy if each.counted],
        missed=[
            Missed(session=each.label.session, pattern=each.label.pattern, period=each.label.period, warned=each.trial.warned)
            for each in loops
            if not each.counted
        ],
        warned=[each.label.session for each in healthy if each.trial.warned and not each.counted],
        patterns=_patterns(loops),
        onset=_onsets(loops),
        delay=_delays(loops),
    )  # fmt: skip


class _Sessions(Mapping[str, Iterable[Record]]):
    """The sessions of a store, read when asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._keys = {store.sessions.name(key): key for key, _ in store.sessions.page(0, None)}

    def __getitem__(self, name: str) -> Iterable[Record]:
        return self._store.sessions.records(self._keys[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def _sessions(store: Store) -> Mapping[str, Iterable[Record]]:
    return _Sessions(store)


def _score(rule: str, judged: Sequence[Judged], alarms: Sequence[bool]) -> Score:
    pairs = [(each.loop, alarm) for each, alarm in zip(judged, alarms, strict=True)]
    return Score(
        rule=rule, true_positives=pairs.count((True, True)), false_positives=pairs.count((False, True)),
        false_negatives=pairs.count((True, False)), true_negatives=pairs.count((False, False)),
    )  # fmt: skip


def _baselines(judged: Sequence[Judged]) -> list[Score]:
    lengths = [len(each.trial.moves) for each in judged]
    median = statistics.median(lengths) if lengths else 0
    return [
        _score("always", judged, [True] * len(judged)),
        _score("never", judged, [False] * len(judged)),
        _score("longer", judged, [length > median for length in lengths]),
    ]


def _alarm(session: str, finding: Finding) -> Alarm:
    return Alarm(
        session=session, finding=finding.id, kind=finding.kind, severity=finding.severity, raised_at=finding.raised_at,
        resolved=finding.resolved, reason=finding.reason,
    )  # fmt: skip


def _patterns(loops: Sequence[Judged]) -> list[Found]:
    patterns = sorted({each.label.pattern for each in loops}, key=lambda pattern: (pattern is None, pattern or ""))
    groups = [(pattern, [each for each in loops if each.label.pattern == pattern]) for pattern in patterns]
    return [Found(pattern=pattern, found=sum(bool(each.counted) for each in group), of=len(group)) for pattern, group in groups]


def _onsets(loops: Sequence[Judged]) -> Distances:
    """Compare where the first alarm says that the loop began with where it did."""
    found: list[Distance] = []
    for each in loops:
        onset, trial = each.label.onset, each.trial
        if onset is None or not each.counted:
            continue
        given = each.counted[0].first
        labelled = onset if isinstance(onset, int) else trial.indexes.get(onset)
        if labelled is None or given not in trial.indexes:
            continue
        gap = trial.indexes[given] - labelled
        same = given == onset or (isinstance(onset, int) and gap == 0)
        found.append(Distance(session=each.label.session, labelled=onset, given=given, entries=0 if same else gap))
    off = [each for each in found if each.entries]
    return _distances(found, off, [abs(each.entries) for each in found])


def _delays(loops: Sequence[Judged]) -> Distances:
    """Compare when the first alarm was raised with when the third iteration was complete."""
    found: list[Distance] = []
    off: list[Distance] = []
    for each in loops:
        third, trial = each.label.third_iteration, each.trial
        if third is None or third not in trial.places or not each.counted:
            continue
        raised = trial.raised[each.counted[0].id]
        gap = trial.indexes.get(raised, 0) - trial.indexes[third]
        found.append(Distance(session=each.label.session, labelled=third, given=raised, entries=gap))
        if trial.places.get(raised, 0) > trial.places[third]:
            off.append(found[-1])
    return _distances(found, off, [each.entries for each in found])


def _distances(found: Sequence[Distance], off: list[Distance], entries: Sequence[int]) -> Distances:
    return Distances(
        measured=len(found), good=len(found) - len(off), median=statistics.median(entries) if entries else None,
        largest=max(entries) if entries else None, off=off,
    )  # fmt: skip
