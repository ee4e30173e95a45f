"""Detect in labelled runs as the importers read them, and as the readers of `bench.detection` do; both must say the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.detection import tau
from bench.detection.runs import Run
from bench.detection.swe_agent import swe_agent
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.history.backtest import try_session
from ctxmgr.history.formats import IMPORTERS, read_head, recognise_format
from ctxmgr.log.codec import Record
from ctxmgr.types.import_report import FileCount

_FILES = {
    "tau2_official": "tau2_official/*.json", "tau2_gemma": "tau2_gemma/*.json", "taubench": "taubench/gpt-4o-airline.json",
    "agentrx": "agentrx/tau_retail/tau_dataset_full.json", "swe-agent": "sweagent_traj/*.traj",
}  # fmt: skip


@dataclass(slots=True)
class Compared:
    """How many runs were compared, and in which the alarms differ: (run, by its reader, through the importer)."""

    runs: int = 0
    alarms: int = 0
    differing: list[tuple[str, str, str]] = field(default_factory=lambda: list[tuple[str, str, str]]())
    unread: list[str] = field(default_factory=lambda: list[str]())


def imported(path: Path) -> list[list[Record]]:
    """Return the sessions of a file as its importer reads them, in their order; none where no importer knows it."""
    name = recognise_format(path, read_head(path))
    importer = next((each for each in IMPORTERS if each.name == name), None)
    if importer is None:
        return []
    counts: list[FileCount] = []
    sessions: dict[str, list[Record]] = {}
    for record in importer.read([path], counts):
        sessions.setdefault(str(record["session"]), []).append(record)
    return list(sessions.values())


def alarms(records: list[Record]) -> str:
    """Return what is raised in a run: each kind with its period and how many it counts."""
    raised = try_session(records, DetectSettings()).alarms
    found = Counter(f"{each.kind} x{each.count} of {each.period}" for each in raised)
    return ", ".join(f"{count} {name}" if count > 1 else name for name, count in sorted(found.items())) or "none"


def compare(folder: Path) -> dict[str, Compared]:
    """Compare all runs of the data sets in a folder."""
    found: dict[str, Compared] = {}
    for name, runs in _runs(folder):
        result = found.setdefault(name, Compared())
        by_file: dict[Path, list[Run]] = {}
        for run in runs:
            stem = run.name.partition("/")[2].rpartition("#")[0] or run.name.partition("/")[2]
            by_file.setdefault(next(path for path in folder.glob(_FILES[name]) if path.stem == stem), []).append(run)
        for path, held in by_file.items():
            sessions = imported(path)
            whole = [run for run in held if run.records]
            if len(sessions) != len(whole):
                result.unread.append(f"{path.name}: {len(sessions)} of {len(whole)} runs")
                continue
            for run, records in zip(whole, sessions, strict=True):
                result.runs += 1
                own, ours = alarms(run.records), alarms(records)
                result.alarms += own != "none"
                if own != ours:
                    result.differing.append((run.name, own, ours))
    return found


def _runs(folder: Path) -> Iterator[tuple[str, list[Run]]]:
    tau2 = list(tau.tau2(folder))
    for name in tau.TAU2:
        yield name, [run for run in tau2 if run.dataset == name]
    yield "taubench", list(tau.tau_bench(folder))
    yield "agentrx", list(tau.agentrx(folder))
    yield "swe-agent", list(swe_agent(folder))
