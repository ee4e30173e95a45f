"""Run the detectors, and simple baselines, over labelled sessions, and count right and wrong answers."""

from __future__ import annotations

import json
import math
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.base.paths import read_regular
from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.replay import session_observations
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.errors import InvalidInput, NotFound, StorageFailed
from ctxmgr.history.ingest import import_logs
from ctxmgr.log.codec import Record
from ctxmgr.store import Store, open_store
from ctxmgr.types.analysis import Alarm, Backtest, Distance, Distances, Label, MissedLoop, PatternCount, Score
from ctxmgr.types.base import fault_words, first_fault
from ctxmgr.types.finding import Finding, Observation


@dataclass(slots=True)
class DetectorRun:
    """The result of running the detectors over one session.

    Attributes:
        moves: its calls and messages.
        alarms: all findings of severity loop or hung, in the order in which they were raised, in their final state.
        standing: those alarms that are unresolved at the end.
        warnings: warnings that are unresolved at the end.
        warned: anything was ever found, including warnings.
        raised: finding id -> id of the record that raised the alarm.
        places: record id -> position among the observations.
        indexes: record id -> index of the entry; for an event, the index of the next entry.
    """

    moves: list[Move]
    alarms: list[Finding] = field(default_factory=list[Finding])
    standing: list[Finding] = field(default_factory=list[Finding])
    warnings: list[Finding] = field(default_factory=list[Finding])
    warned: bool = False
    raised: dict[str, str] = field(default_factory=dict[str, str])
    places: dict[str, int] = field(default_factory=dict[str, int])
    indexes: dict[str, int] = field(default_factory=dict[str, int])


def try_session(records: Iterable[Mapping[str, Any]], settings: DetectSettings, now: float | None = None) -> DetectorRun:
    """Show a session's records to a new monitor, one by one.

    Args:
        records: the records in the order of the log.
        settings: settings of the detectors.
        now: seconds after the session's first usable timestamp at which stalls are judged; None for the end of the log.
    """
    observations = list(session_observations(records))
    trial = DetectorRun(list_moves(observations))
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
            # A stall has no record: it shows only against a clock, after the last record.
            trial.raised.setdefault(finding.id, observations[-1].id or finding.raised_at)
            seen[finding.id] = finding
    trial.alarms = list(seen.values())
    unresolved = [finding for finding in final if finding.resolved is None]
    trial.standing = [finding for finding in unresolved if finding.severity != "warn"]
    trial.warnings = [finding for finding in unresolved if finding.severity == "warn"]
    return trial


def _note_places(trial: DetectorRun, observations: Iterable[Observation]) -> None:
    following = 0
    for place, observation in enumerate(observations):
        trial.places.setdefault(observation.id, place)
        if observation.index is not None:
            following = max(following, observation.index + 1)
        trial.indexes.setdefault(observation.id, following if observation.index is None else observation.index)


def _first_time(observations: Iterable[Observation]) -> float | None:
    return next((observation.at for observation in observations if observation.at is not None), None)


LABELS = "labels.json"
_MAX_BYTES = 64 * 1024 * 1024
_EXAMPLE = 'e.g. [{"session": "run-1", "loop": true}, {"session": "run-2", "loop": false}]'


def read_labels(folder: Path) -> list[Label]:
    """Return the labels of a folder, one per session, in the file's order.

    Raises:
        NotFound: the folder or its ``labels.json`` is not there.
        StorageFailed: the file can't be read.
        InvalidInput: it is not a list of labels, or two of them are about one session.
    """
    path = folder / LABELS
    if not folder.is_dir():
        raise NotFound(f"no folder at {folder}", f"a folder with logs and a {LABELS}")
    try:
        value: object = json.loads(read_regular(path, _MAX_BYTES))
    except FileNotFoundError:
        raise NotFound(f"no {LABELS} in {folder}", _EXAMPLE) from None
    except OSError as error:
        raise StorageFailed(f"can't read {path}: {error.strerror}", "check its permissions") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path} is not JSON", _EXAMPLE) from None
    if not isinstance(value, list):
        raise InvalidInput(f"{path} is not a list", _EXAMPLE)
    labels = [_parse_label(path, place, item) for place, item in enumerate(cast("list[object]", value))]
    seen: set[str] = set()
    for label in labels:
        if label.session in seen:
            raise InvalidInput(f"{path}: two labels for session {label.session!r}", "one label a session")
        seen.add(label.session)
    return labels


def _parse_label(path: Path, place: int, item: object) -> Label:
    try:
        label = Label.model_validate(item)
    except ValueError as error:
        first = first_fault(error)
        where = ".".join(str(part) for part in first["loc"][:1])
        raise InvalidInput(f"{path}: label {place}: {where or 'it'}{fault_words(first)}", _EXAMPLE) from None
    if label.now is not None and not math.isfinite(label.now):
        raise InvalidInput(f"{path}: label {place}: now: must be a finite number", _EXAMPLE)
    return label


@dataclass(frozen=True, slots=True)
class LabelledResult:
    """A labelled session and its result."""

    label: Label
    trial: DetectorRun

    @property
    def loop(self) -> bool:
        """Whether the session is labelled as a loop or stall."""
        return self.label.loop is True

    @property
    def counted_alarms(self) -> list[Finding]:
        """The alarms that count: all of them, or only the unresolved ones for a healthy session that is judged at its end."""
        return self.trial.standing if not self.loop and self.label.eval == "final" else self.trial.alarms


def backtest_folder(folder: Path, settings: Mapping[str, Any]) -> tuple[Backtest, list[str]]:
    """Return how well the detectors classify the sessions of a folder, and notes on its logs for a person.

    The logs may have any format that can be imported. They are imported into a temporary store, so that the detectors see
    what ``ctxmgr detect`` would show them. Nothing in the folder is changed.

    Args:
        folder: logs and a ``labels.json``.
        settings: the ``detect`` table of the configuration.

    Raises:
        NotFound, InvalidInput, StorageFailed: there is no folder, there are no labels, or labels or settings can't be used.
    """
    checked = DetectSettings.from_table(settings)
    labels = read_labels(folder)
    with tempfile.TemporaryDirectory(prefix="ctxmgr-backtest-") as place:
        store = open_store(str(Path(place) / "history.db"), create=True)
        try:
            report = import_logs(store, [folder], home=Path(place), environment={})
            notes = [f"{file.path}: {file.skipped}" for file in report.files if file.skipped]
            if report.damaged:
                notes.append(
                    f"passed over in the logs: {report.damaged} damaged {'range' if report.damaged == 1 else 'ranges'}"
                )
            return backtest(labels, _Sessions(store), checked), notes
        finally:
            store.close()


def backtest(
    labels: Sequence[Label], sessions: Mapping[str, Iterable[Record]], settings: DetectSettings | None = None
) -> Backtest:
    """Return how well the detectors classify labelled sessions.

    Args:
        labels: one label per session.
        sessions: id -> records of the session in the order of the log.
        settings: settings of the detectors; None for the defaults.
    """
    used = settings or DetectSettings()
    wanted = [label for label in labels if label.loop is not None]
    judged = [
        LabelledResult(label, try_session(sessions[label.session], used, label.now))
        for label in wanted
        if label.session in sessions
    ]
    loops = [each for each in judged if each.loop]
    healthy = [each for each in judged if not each.loop]
    named = {label.session for label in labels}
    return Backtest(
        scored=len(judged), loops=len(loops), healthy=len(healthy), ignored=len(labels) - len(wanted),
        absent=[label.session for label in wanted if label.session not in sessions],
        unlabelled=sum(name not in named for name in sessions),
        detectors=_make_score("detectors", judged, [bool(each.counted_alarms) for each in judged]),
        baselines=_baselines(judged),
        rules=[
            _make_score(name, judged, [rule(each.trial.moves) is not None for each in judged])
            for name, rule in RULES_OF_THUMB.items()
        ],
        false_alarms=[_make_alarm(each.label.session, each.counted_alarms[0]) for each in healthy if each.counted_alarms],
        missed=[
            MissedLoop(
                session=each.label.session, pattern=each.label.pattern, period=each.label.period, warned=each.trial.warned
            )
            for each in loops
            if not each.counted_alarms
        ],
        warned=[each.label.session for each in healthy if each.trial.warned and not each.counted_alarms],
        patterns=_patterns(loops),
        onset=_onsets(loops),
        delay=_delays(loops),
    )  # fmt: skip


class _Sessions(Mapping[str, Iterable[Record]]):
    """The sessions of a store. Each is read on access, because all of them would not fit into memory."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._keys = {store.sessions.name(key): key for key, _ in store.sessions.page(0, None)}

    def __getitem__(self, name: str) -> Iterable[Record]:
        return self._store.sessions.records(self._keys[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def _make_score(rule: str, judged: Sequence[LabelledResult], alarms: Sequence[bool]) -> Score:
    pairs = [(each.loop, alarm) for each, alarm in zip(judged, alarms, strict=True)]
    return Score(
        rule=rule, true_positives=pairs.count((True, True)), false_positives=pairs.count((False, True)),
        false_negatives=pairs.count((True, False)), true_negatives=pairs.count((False, False)),
    )  # fmt: skip


def _baselines(judged: Sequence[LabelledResult]) -> list[Score]:
    lengths = [len(each.trial.moves) for each in judged]
    median = statistics.median(lengths) if lengths else 0
    return [
        _make_score("always", judged, [True] * len(judged)),
        _make_score("never", judged, [False] * len(judged)),
        _make_score("longer", judged, [length > median for length in lengths]),
    ]


def _make_alarm(session: str, finding: Finding) -> Alarm:
    return Alarm(
        session=session, finding=finding.id, kind=finding.kind, severity=finding.severity, raised_at=finding.raised_at,
        resolved=finding.resolved, reason=finding.reason,
    )  # fmt: skip


def _patterns(loops: Sequence[LabelledResult]) -> list[PatternCount]:
    patterns = sorted({each.label.pattern for each in loops}, key=lambda pattern: (pattern is None, pattern or ""))
    groups = [(pattern, [each for each in loops if each.label.pattern == pattern]) for pattern in patterns]
    return [
        PatternCount(pattern=pattern, found=sum(bool(each.counted_alarms) for each in group), of=len(group))
        for pattern, group in groups
    ]


def _onsets(loops: Sequence[LabelledResult]) -> Distances:
    """Compare the start of the loop according to the first alarm with the labelled start."""
    found: list[Distance] = []
    for each in loops:
        onset, trial = each.label.onset, each.trial
        if onset is None or not each.counted_alarms:
            continue
        given = each.counted_alarms[0].first
        labelled = onset if isinstance(onset, int) else trial.indexes.get(onset)
        if labelled is None or given not in trial.indexes:
            continue
        gap = trial.indexes[given] - labelled
        same = given == onset or (isinstance(onset, int) and gap == 0)
        found.append(Distance(session=each.label.session, labelled=onset, given=given, entries=0 if same else gap))
    off = [each for each in found if each.entries]
    return _distances(found, off, [abs(each.entries) for each in found])


def _delays(loops: Sequence[LabelledResult]) -> Distances:
    """Compare the record that raised the first alarm with the end of the third iteration."""
    found: list[Distance] = []
    off: list[Distance] = []
    for each in loops:
        third, trial = each.label.third_iteration, each.trial
        if third is None or third not in trial.places or not each.counted_alarms:
            continue
        raised = trial.raised[each.counted_alarms[0].id]
        gap = trial.indexes.get(raised, 0) - trial.indexes[third]
        found.append(Distance(session=each.label.session, labelled=third, given=raised, entries=gap))
        # Compare positions, not entries: the record in question may be a message between two entries.
        if trial.places.get(raised, 0) > trial.places[third]:
            off.append(found[-1])
    return _distances(found, off, [each.entries for each in found])


def _distances(found: Sequence[Distance], off: list[Distance], entries: Sequence[int]) -> Distances:
    return Distances(
        measured=len(found), good=len(found) - len(off), median=statistics.median(entries) if entries else None,
        largest=max(entries) if entries else None, off=off,
    )  # fmt: skip


ROW = 3
"""Number of repeats at which a rule of thumb raises an alarm. FR-001 and most frameworks have the same number."""

_MESSAGE_TYPES = frozenset({"message", "agent_message_chunk"})


@dataclass(frozen=True, slots=True)
class Move:
    """A call or a message as a rule of thumb sees it: agent, action and input, but not the result.

    Attributes:
        place: position among the moves of its session.
        key: equal for equal calls (agent, action and canonical input) and equal messages.
        name: the record's id.
    """

    place: int
    agent: str | None
    key: str
    name: str


def list_moves(observations: Iterable[Observation]) -> list[Move]:
    """Return the calls and messages of a session in order."""
    found: list[Move] = []
    for each in observations:
        if each.kind == "start":
            what = [each.agent, each.action, each.input]
        elif each.kind == "event" and each.type in _MESSAGE_TYPES and _says_something(each.data):
            what = [each.agent, None, each.data]
        else:
            continue
        found.append(Move(len(found), each.agent, _canonical(what), each.id))
    return found


def same_in_a_row(moves: Sequence[Move]) -> Move | None:
    """Return the move that repeats a call or message for the `ROW`-th time in a row, among all moves or those of one agent."""
    return _first_move(_longest_row(stream) for stream in _streams(moves))


def alternation(moves: Sequence[Move]) -> Move | None:
    """Return the move that completes A-B-A-B, among all moves or those of one agent."""
    return _first_move(_find_alternation(stream) for stream in _streams(moves))


def any_repeat(moves: Sequence[Move]) -> Move | None:
    """Return the move that repeats a call or message for the `ROW`-th time, anywhere in the session."""
    seen: Counter[str] = Counter()
    for move in moves:
        seen[move.key] += 1
        if seen[move.key] >= ROW:
            return move
    return None


RULES_OF_THUMB = {"sameInARow": same_in_a_row, "abab": alternation, "anyRepeat": any_repeat}
"""Name -> rule. Each rule returns the move at which it raises an alarm, or None."""


def _streams(moves: Sequence[Move]) -> list[Sequence[Move]]:
    own: dict[str | None, list[Move]] = {}
    for move in moves:
        own.setdefault(move.agent, []).append(move)
    # Include the stream of all agents together, since a simple rule does not distinguish agents.
    return [moves, *own.values()] if len(own) > 1 else [moves]


def _first_move(found: Iterable[Move | None]) -> Move | None:
    return min((move for move in found if move is not None), key=lambda move: move.place, default=None)


def _longest_row(moves: Sequence[Move]) -> Move | None:
    length = 0
    for place, move in enumerate(moves):
        length = length + 1 if place and move.key == moves[place - 1].key else 1
        if length >= ROW:
            return move
    return None


def _find_alternation(moves: Sequence[Move]) -> Move | None:
    keys = [move.key for move in moves]
    for end in range(3, len(keys)):
        a, b, c, d = keys[end - 3 : end + 1]
        if a == c and b == d and a != b:
            return moves[end]
    return None


def _says_something(data: object) -> bool:
    text = cast("dict[str, object]", data).get("text") if isinstance(data, dict) else data
    return not isinstance(text, str) or bool(text.strip())


def _canonical(value: Any) -> str:
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return _shallow(value)


def _shallow(value: Any) -> str:
    """Return a text for a value that is not JSON, made of its outermost parts."""
    try:
        return repr([str(part)[:200] for part in cast("list[object]", value)])
    except (TypeError, ValueError, RecursionError):
        return ""
