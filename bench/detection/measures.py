"""Count how the detectors and the rules of thumb do on labelled runs; every count names what it is out of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.detection.groups import Row, exact_loops, repeated
from bench.detection.hyper_agent import Log
from bench.detection.readings import READINGS
from bench.detection.runs import Run
from bench.detection.tables import table
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.history.backtest import RULES_OF_THUMB, DetectorRun, same_in_a_row, try_session
from ctxmgr.types.analysis import Score

RULE_NAMES = {"sameInARow": "same 3 in a row", "abab": "A-B-A-B", "anyRepeat": "same 3 anywhere"}
_SETTINGS = DetectSettings()


@dataclass(frozen=True, slots=True)
class Tried:
    """A run and what came of it."""

    run: Run
    trial: DetectorRun

    def rule(self, name: str) -> bool:
        """Whether a rule of thumb speaks."""
        return RULES_OF_THUMB[name](self.trial.moves) is not None


def try_all(runs: Iterable[Run]) -> list[Tried]:
    """Show every run to the detectors, with their defaults."""
    return [Tried(run, try_session(run.records, _SETTINGS)) for run in runs]


@dataclass(frozen=True, slots=True)
class LoopFound:
    """What the detectors said about one exact loop."""

    run: Run
    row: Row
    found: bool
    exact: bool
    in_time: bool
    said: str


def loops_found(tried: Iterable[Tried]) -> list[LoopFound]:
    """Compare each exact loop with the first alarm that shares a member with it."""
    found: list[LoopFound] = []
    for each in tried:
        for row in exact_loops(each.run):
            members = set(row.names)
            alarm = next((alarm for alarm in each.trial.alarms if members & {*alarm.members, alarm.first, alarm.last}), None)
            if alarm is None:
                found.append(LoopFound(each.run, row, False, False, False, ""))
                continue
            places, raised = each.trial.places, each.trial.raised[alarm.id]
            in_time = places.get(raised, 1 << 62) <= places[row.names[2]]
            said = f"{alarm.kind} from {alarm.first}, raised at {raised}"
            found.append(LoopFound(each.run, row, True, alarm.first == row.names[0], in_time, said))
    return found


def exact(tried: Sequence[Tried]) -> list[str]:
    """Report the exact loops."""
    loops = loops_found(tried)
    thumb = [each for each in tried if exact_loops(each.run) and same_in_a_row(each.trial.moves) is not None]
    rows = [
        [_short(each.run.name), each.row.action, f"{each.row.names[0]} to {each.row.names[-1]}, {len(each.row.names)} times",
         each.row.names[2], each.said or "nothing"]
        for each in loops
    ]  # fmt: skip
    return [
        f"Found {_of(each.found for each in loops)}; onset exact {_of(each.exact for each in loops)}; raised by the third "
        f"repetition {_of(each.in_time for each in loops)}. Same 3 in a row: {len(thumb)} of "
        f"{len({each.run.name for each in loops})} runs, by definition.",
        "",
        *table(["run", "what", "loop", "its third", "the detectors said"], rows),
    ]


def successes(tried: Sequence[Tried]) -> list[str]:
    """Report the alarms on runs that solved their task."""
    good = [each for each in tried if each.run.success]
    alarmed = [each for each in good if each.trial.alarms]
    standing = [each for each in good if each.trial.standing]
    readings = [READINGS.get(each.run.name, ("not read", "")) for each in alarmed]
    faults = sum(reading[0] != "true loop" for reading in readings)
    counts = [("ctxmgr, an alarm at any time", len(alarmed)), ("ctxmgr, an alarm that stands at the end", len(standing))]
    counts += [(f"rule: {title}", sum(each.rule(name) for each in good)) for name, title in RULE_NAMES.items()]
    rows = [[name, str(count), f"{100 * count / max(1, len(good)):.2f}"] for name, count in counts]
    read = [
        [_short(each.run.name), _kinds(each.trial), "yes" if each.trial.standing else "no", *reading]
        for each, reading in zip(alarmed, readings, strict=True)
    ]
    return [
        *table([f"of {len(good)} successful runs", "runs", "per 100"], rows),
        "",
        f"By reading: {len(alarmed) - faults} go in circles all the same, {faults} are faults of the detectors or not "
        "read yet.",
        "",
        *table(["run", "alarm", "stands", "reading", "why"], read),
    ]


def groups(tried: Sequence[Tried]) -> list[str]:
    """Report the runs that repeat one call, by whether its result ever changed and whether the task was solved."""
    sorts: list[tuple[str, str | None, bool]] = [
        ("failed, an unchanging result", "unchanging", False), ("successful, an unchanging result", "unchanging", True),
        ("successful, changing results (healthy polling)", "changing", True), ("failed, changing results", "changing", False),
        ("successful, no call three times", None, True), ("failed, no call three times", None, False),
    ]  # fmt: skip
    columns: list[tuple[str, Callable[[Tried], bool]]] = [
        ("alarm at any time", lambda each: bool(each.trial.alarms)),
        ("alarm stands", lambda each: bool(each.trial.standing)),
        ("alarm or warning stands", lambda each: bool(each.trial.standing or each.trial.warnings)),
        ("alarm or warning at any time", lambda each: each.trial.warned),
    ]
    columns += [(title, _speaks(name)) for name, title in RULE_NAMES.items()]
    sorted_ = [(each, repeated(each.run)) for each in tried]
    rows: list[list[str]] = []
    for title, wanted, success in sorts:
        group = [each for each, kind in sorted_ if kind == wanted and each.run.success is success]
        rows.append([title, str(len(group)), *(str(sum(map(count, group))) for _, count in columns)])
    missed = [
        each.run.name
        for each, kind in sorted_
        if kind == "unchanging" and each.run.success is False and not each.trial.alarms and not each.trial.warned
    ]
    alarmed = [each.run.name for each, kind in sorted_ if kind == "changing" and each.run.success and each.trial.alarms]
    return [
        *table(["group", "runs", *(title for title, _ in columns)], rows),
        "",
        *_named("Failed runs with an unchanging result about which nothing was said", missed),
        *_named("Healthy polling runs with an alarm", alarmed),
    ]


def hyper(logs: Sequence[Log], doubled: Sequence[Log]) -> list[str]:
    """Report the logs with human labels: a log has an alarm when one of its starts has one."""
    trials = [[try_session(part.records, _SETTINGS) for part in log.parts] for log in logs]
    again = [[try_session(part.records, _SETTINGS) for part in log.parts] for log in doubled]
    truth = [any(part.repetition for part in log.parts) for log in logs]
    alarms = [_loops(parts) for parts in trials]
    lengths = [log.steps for log in logs]
    median = sorted(lengths)[len(lengths) // 2]
    scores = [("ctxmgr", _score(truth, [bool(found) for found in alarms]))]
    warned = [bool(found) or any(part.warnings for part in parts) for found, parts in zip(alarms, trials, strict=True)]
    scores.append(("ctxmgr, standing warnings too", _score(truth, warned)))
    for name, title in RULE_NAMES.items():
        rule = RULES_OF_THUMB[name]
        scores.append((title, _score(truth, [any(rule(part.moves) for part in parts) for parts in trials])))
    scores.append(("longer than the median", _score(truth, [length > median for length in lengths])))
    split = sum((len(log.parts) > 1) == any(part.restarted for part in log.parts) for log in logs)
    same = sum(_loops(one) == _loops(two) for one, two in zip(trials, again, strict=True))
    hung = sum(any(finding.severity == "hung" for finding in part.standing) for parts in trials for part in parts)
    wrong = [
        [log.name, "step repetition" if label else "none", "; ".join(sorted(set(found))) or "nothing"]
        for log, label, found in zip(logs, truth, alarms, strict=True)
        if label != bool(found)
    ]
    return [
        f"{sum(log.raw_steps for log in logs):,} logged steps, {sum(log.steps for log in logs):,} after copies made by doubled "
        f"log handlers are collapsed; {sum(len(log.parts) for log in logs)} starts with steps. A log holds several such starts "
        f"exactly where a person said that it was restarted: {split} of {len(logs)}. The verdict on a log and on its doubled "
        f"copy is the same: {same} of {len(logs)}. {hung} starts end in a call whose result is not in the log (verdict hung, "
        "not counted here: the label is about repetition).",
        "",
        *_scores(scores),
        "",
        *table(["wrong on", "label", "the detectors said"], wrong),
    ]


def demonstrations(tried: Sequence[Tried]) -> list[str]:
    """Report the demonstrations."""
    alarmed = [each for each in tried if each.trial.alarms]
    rows = [[_short(each.run.name), _kinds(each.trial), *READINGS.get(each.run.name, ("not read", ""))] for each in alarmed]
    entries = sum(record["kind"] == "entry" for each in tried for record in each.run.records)
    thumb = ", ".join(f"{title} {sum(each.rule(name) for each in tried)}" for name, title in RULE_NAMES.items())
    return [
        f"{len(tried)} runs, {entries} steps; alarms on {len(alarmed)}. Rules of thumb: {thumb}.",
        "",
        *table(["run", "alarm", "reading", "why"], rows),
    ]


def _speaks(rule: str) -> Callable[[Tried], bool]:
    return lambda each: each.rule(rule)


def _loops(parts: Sequence[DetectorRun]) -> list[str]:
    return [
        f"{finding.kind} x{finding.count} from {finding.first}"
        for part in parts
        for finding in part.alarms
        if finding.severity == "loop"
    ]


def _score(truth: Sequence[bool], said: Sequence[bool]) -> Score:
    pairs = list(zip(truth, said, strict=True))
    return Score(
        rule="", true_positives=pairs.count((True, True)), false_positives=pairs.count((False, True)),
        false_negatives=pairs.count((True, False)), true_negatives=pairs.count((False, False)),
    )  # fmt: skip


def _scores(scores: Sequence[tuple[str, Score]]) -> list[str]:
    rows: list[list[str]] = []
    for name, score in scores:
        counts = (score.true_positives, score.false_positives, score.false_negatives, score.true_negatives)
        measures = (score.precision, score.recall, score.f1, score.mcc)
        rows.append([name, *map(str, counts), *("" if value is None else f"{value:.2f}" for value in measures)])
    return table(["rule", "TP", "FP", "FN", "TN", "precision", "recall", "F1", "MCC"], rows)


def _named(title: str, names: Sequence[str]) -> list[str]:
    return [f"{title}: {len(names)}" + (": " if names else "") + ", ".join(map(_short, names)) + ".", ""]


def _kinds(trial: DetectorRun) -> str:
    return "; ".join(f"{alarm.kind} x{alarm.count} from {alarm.first}" for alarm in trial.alarms)


def _of(flags: Iterable[bool]) -> str:
    all_ = list(flags)
    return f"{sum(all_)} of {len(all_)}"


def _short(name: str) -> str:
    """Return a run's name with the long file names of the sources cut to what tells them apart."""
    return (
        name.replace("ft_gpt-4.1-2025-04-14_sierra_tau2-full-sft_BzrYdMNm", "ft").replace("_1trials", "")
        .replace("trajectories__demonstrations__", "").replace("tau2_official/", "").replace("-2025-04-14", "")
    )  # fmt: skip
