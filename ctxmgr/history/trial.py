"""One session shown to the detectors as if it were live: what they raised, at which record, and what stands at the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.replay import observations_of
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.history.baselines import Move, moves_of
from ctxmgr.types.finding import Finding
from ctxmgr.types.observation import Observation


@dataclass(slots=True)
class Trial:
    """What came of one session.

    Attributes:
        moves: its calls and messages.
        alarms: findings of severity loop or hung that were ever raised, first raised first, as they are at the end.
        standing: those of them that are unresolved at the end.
        warnings: warnings that are unresolved at the end.
        warned: whether anything at all was ever found, warnings included.
        raised: id of the record at which each alarm was raised, by the finding's id.
        places: record id -> place among the observations.
        indexes: record id -> index of the entry; of an event, the index that the next entry will have.
    """

    moves: list[Move]
    alarms: list[Finding] = field(default_factory=list[Finding])
    standing: list[Finding] = field(default_factory=list[Finding])
    warnings: list[Finding] = field(default_factory=list[Finding])
    warned: bool = False
    raised: dict[str, str] = field(default_factory=dict[str, str])
    places: dict[str, int] = field(default_factory=dict[str, int])
    indexes: dict[str, int] = field(default_factory=dict[str, int])


def try_session(records: Iterable[Mapping[str, Any]], settings: DetectSettings, now: float | None = None) -> Trial:
    """Show a session's records to a fresh monitor, one by one.

    Args:
        records: in the order of the log.
        settings: of the detectors.
        now: seconds after the session's first usable timestamp at which stalls are judged; None: at the end of the log.
    """
    observations = list(observations_of(records))
    trial = Trial(moves_of(observations))
    _note_places(trial, observations)
    monitor = Monitor(settings)
    seen: dict[str, Finding] = {}
    for observation in observations:
        for finding in monitor.observe(observation):
            trial.warned = True
            if finding.severity != "warn" and finding.id not in seen:
                seen[finding.id] = finding
                trial.raised[finding.id] = observation.id
    moment = None if now is None else (_first_time(observations) or 0.0) + now
    final = monitor.findings(moment)
    for finding in final:
        trial.warned = True
        if finding.severity != "warn":
            trial.raised.setdefault(finding.id, observations[-1].id or finding.raised_at)
            seen[finding.id] = finding
    trial.alarms = list(seen.values())
    unresolved = [finding for finding in final if finding.resolved is None]
    trial.standing = [finding for finding in unresolved if finding.severity != "warn"]
    trial.warnings = [finding for finding in unresolved if finding.severity == "warn"]
    return trial


def _note_places(trial: Trial, observations: Iterable[Observation]) -> None:
    following = 0
    for place, observation in enumerate(observations):
        trial.places.setdefault(observation.id, place)
        if observation.index is not None:
            following = max(following, observation.index + 1)
        trial.indexes.setdefault(observation.id, following if observation.index is None else observation.index)


def _first_time(observations: Iterable[Observation]) -> float | None:
    return next((observation.at for observation in observations if observation.at is not None), None)
