"""Measure the detectors on labelled runs and write what came out.

    python -m bench.detection RUNS [--cases DIR] [--write FILE] [--no-cost]

RUNS is a folder with the data sets (tau2_official, tau2_gemma, taubench, agentrx, sweagent_traj, mast_hyperagent_human)
as their projects publish them. DIR is a folder for ``ctxmgr detect --backtest``. FILE gets the report as Markdown.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench.detection import hang, measures, tau
from bench.detection.cost import cost
from bench.detection.hyper_agent import hyper_agent
from bench.detection.live import live
from bench.detection.runs import dicts, load
from bench.detection.swe_agent import swe_agent
from bench.detection.tables import table
from ctxmgr import __version__
from ctxmgr.history.backtest import backtest_folder
from ctxmgr.types.analysis import Backtest

_FOLDERS = {
    "tau2_official": "tau2, results in the upstream history", "tau2_gemma": "tau2, results of a fork with a Gemma agent",
    "taubench": "tau-bench, gpt-4o airline", "agentrx": "AgentRx, tau retail",
    "sweagent_traj": "SWE-agent, demonstrations", "mast_hyperagent_human": "MAST, HyperAgent with human labels",
}  # fmt: skip


def main() -> int:
    """Measure everything; print it, and write it where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", type=Path, help="folder with the data sets")
    parser.add_argument("--cases", type=Path, help="folder with labelled cases")
    parser.add_argument("--write", type=Path, help="file for the report")
    parser.add_argument("--no-cost", action="store_true", help="leave out speed and memory")
    options = parser.parse_args()
    text = "\n".join(_report(options.runs, options.cases, costs=not options.no_cost)) + "\n"
    sys.stdout.write(text)
    if options.write is not None:
        options.write.write_text(text, encoding="utf-8")
    return 0


def _report(folder: Path, cases: Path | None, *, costs: bool) -> list[str]:
    tau2 = measures.try_all(tau.tau2(folder))
    served = [*tau2, *measures.try_all([*tau.tau_bench(folder), *tau.agentrx(folder)])]
    shown = " --cases CASES" if cases else ""
    parts: list[tuple[str, list[str]]] = [
        ("Exact loops: tau2, tau-bench, AgentRx", measures.exact(served)),
        ("Successful runs: tau2, tau-bench, AgentRx", measures.successes(served)),
        ("Repeated calls: tau2", measures.groups(tau2)),
        ("HyperAgent, human labels", measures.hyper(list(hyper_agent(folder)), list(hyper_agent(folder, copies=2)))),
        ("SWE-agent demonstrations", measures.demonstrations(measures.try_all(swe_agent(folder)))),
        ("Told by a client's hook", live([*(each.run for each in served), *swe_agent(folder)])),
        ("Hung: tau2", hang.hang([each.run for each in tau2])),
    ]
    if cases is not None:
        parts.append(("Labelled cases", _backtest(backtest_folder(cases, {})[0])))
    if costs:
        parts.append(("Cost", cost()))
    lines = [
        "# How good the detectors are on real runs",
        "",
        f"Made by `python -m bench.detection RUNS{shown} --write bench/detection/RESULTS.md` with ctxmgr {__version__} and its "
        f"default settings, {datetime.now(UTC).date().isoformat()}. An alarm is a finding of severity `loop` or `hung`; the "
        "runs are shown record by record, as if live. How runs are read and grouped is said in the modules of this folder. "
        'Rules of thumb: one call or message three times in a row, A-B-A-B, one three times anywhere; "row" and A-B-A-B in '
        "the whole run and in each agent's own steps. The data is not part of this repository.",
        "",
        *_versions(folder),
    ]
    for title, part in parts:
        lines += ["", f"## {title}", "", *part]
    return lines


def _versions(folder: Path) -> list[str]:
    rows: list[list[str]] = []
    for name, title in _FOLDERS.items():
        files = sorted(path for path in (folder / name).rglob("*") if path.is_file())
        digest = hashlib.sha256()
        made: set[str] = set()
        for path in files:
            digest.update(path.name.encode() + path.read_bytes())
            if name.startswith("tau2"):
                made |= {str(value.get("timestamp"))[:10] for value in dicts([load(path)])}
        dates = f"{min(made)} to {max(made)}" if made else ""
        rows.append([name, title, str(len(files)), dates, digest.hexdigest()[:16]])
    return table(["folder", "data", "files", "made", "SHA-256 of names and contents"], rows)


def _backtest(found: Backtest) -> list[str]:
    rows: list[list[str]] = []
    for score in (found.detectors, *found.baselines, *found.rules):
        counts = (score.true_positives, score.false_positives, score.false_negatives, score.true_negatives)
        values = (score.precision, score.recall, score.f1, score.mcc)
        rows.append([score.rule, *map(str, counts), *("" if value is None else f"{value:.3f}" for value in values)])
    patterns = ", ".join(f"{each.pattern} {each.found} of {each.of}" for each in found.patterns)
    return [
        f"{found.scored} cases: {found.loops} loops, {found.healthy} healthy. By pattern: {patterns}. Raised by the third "
        f"iteration: {found.delay.good} of {found.delay.measured} that have one and were found.",
        "",
        *table(["rule", "TP", "FP", "FN", "TN", "precision", "recall", "F1", "MCC"], rows),
        "",
        f"False alarms: {', '.join(each.session for each in found.false_alarms) or 'none'}.",
        "",
        f"Missed: {', '.join(each.session for each in found.missed) or 'none'}.",
    ]


if __name__ == "__main__":
    sys.exit(main())
