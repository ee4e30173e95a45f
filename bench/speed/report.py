"""The report: tables for a terminal of 100 columns, and the same as Markdown with the machine, versions and growth."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.detection.tables import table
from bench.speed.figures import GOALS, Findings, Row, duration, number
from ctxmgr import __version__

WIDTH = 100
_HEADS = ("", "against", "ours", "theirs", "figure", "CPU", "goal", "")
_WIDTHS = (34, 20, 9, 9, 9, 6, 7, 6)
_GOAL_WIDTHS = (47, 20, 9, 9, 15)


def judged(findings: Findings) -> dict[str, Row | None]:
    """Return, for each goal, the row that is worst at the largest size; without a figure one that says why, or None."""
    worst: dict[str, Row | None] = {}
    for key, goal in GOALS.items():
        rows = [row for row in findings.rows if row.goal == key]
        largest = max((row.size for row in rows if row.size is not None), default=None)
        rows = [row for row in rows if row.size == largest]
        wrong = [row for row in rows if row.wrong]
        figures = [row for row in rows if row.figure is not None]
        figures.sort(key=lambda row: row.figure or 0.0, reverse=not goal.least)
        worst[key] = next(iter([*wrong, *figures, *rows]), None)
    return worst


def _verdict(row: Row | None) -> str:
    if row is None or row.figure is None:
        return "WRONG" if row and row.wrong else "not measured"
    return row.verdict or f"from {GOALS[row.goal].above:,}"


def _figure(row: Row) -> str:
    if row.wrong or row.missing or row.figure is None:
        return ""
    return f"{number(row.figure)} {row.unit.partition(' ')[0]}"


def _parts(rows: Sequence[Row]) -> dict[str, list[Row]]:
    parts: dict[str, list[Row]] = {}
    for row in rows:
        parts.setdefault(row.part, []).append(row)
    return parts


def plain(findings: Findings) -> str:
    """Return the report for a terminal."""
    largest = findings.largest()
    lines = [_cells(["goals" + (f" at {largest:,} records" if largest else ""), "against", "goal", "worst", ""], _GOAL_WIDTHS)]
    for key, row in judged(findings).items():
        goal = GOALS[key]
        cells = [goal.operation, goal.against, str(goal), _figure(row) if row else "", _verdict(row)]
        lines.append(_cells(cells, _GOAL_WIDTHS))
    for part, rows in _parts([row for row in findings.rows if row.size in (None, largest)]).items():
        title = _cells([part, *_HEADS[2:]], [sum(_WIDTHS[:2]), *_WIDTHS[2:]], 1)
        lines += ["", title, *(_line(row) for row in rows)]
    lines += ["", *_curve_lines(findings), "", *(line[:WIDTH] for line in findings.notes)]
    lines += [f"WRONG: {row.part}, {row.what}: {row.wrong}"[:WIDTH] for row in findings.wrong]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _line(row: Row) -> str:
    if row.wrong or row.missing:
        return _cells([row.what, row.against], _WIDTHS[:2]) + f"  {row.wrong or row.missing}"[: WIDTH - sum(_WIDTHS[:2])]
    return _cells(_row_cells(row), _WIDTHS)


def _row_cells(row: Row) -> list[str]:
    goal = str(GOALS[row.goal]) if row.goal else ""
    cpu = "" if row.cpu is None else number(row.cpu)
    return [row.what, row.against, row.ours, row.theirs, _figure(row), cpu, goal.replace("= ", "="), row.verdict]


def _cells(cells: Sequence[str], widths: Sequence[int], left: int = 2) -> str:
    texts: list[str] = []
    for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        cut = cell[: width - 1]
        texts.append(f"{cut:{width}}" if place < left else f"{cut:>{width}}")
    return "".join(texts)


def _curve_lines(findings: Findings) -> Iterator[str]:
    sizes = sorted({size for curve in findings.curves.values() for size in curve})
    if len(sizes) > 1:
        widths = (40, *([12] * len(sizes)))
        yield _cells(["at records", *(f"{size:,}" for size in sizes)], widths, 1)
        for name, curve in findings.curves.items():
            yield _cells([name, *(duration(curve[size]) if size in curve else "" for size in sizes)], widths, 1)


def markdown(findings: Findings, machine: dict[str, str], versions: dict[str, str], missing: dict[str, str]) -> str:
    """Return the report as a document."""
    largest = findings.largest()
    size = f"{largest:,} records" if largest else "no history"
    lines = ["# Speed", "", *_introduction(size), "## Machine", "", *table(["", ""], [*machine.items()]), ""]
    absent = [(name, f"not available: {why}") for name, why in missing.items()]
    lines += ["## Versions", "", *table(["", ""], [*versions.items(), *absent])]
    lines += ["", "## Goals", "", *_goal_table(findings)]
    for part, rows in _parts([row for row in findings.rows if row.size in (None, largest)]).items():
        lines += ["", f"## {part[:1].upper()}{part[1:]}", ""]
        lines += table(["", "against", "ours", "theirs", "figure", "CPU", "goal", ""], [_document_cells(row) for row in rows])
    lines += ["", *_smaller(findings, largest), *_curves(findings)]
    if findings.notes:
        lines += ["## Notes", "", *(f"- {note}" for note in findings.notes), ""]
    return "\n".join(lines).rstrip() + "\n"


def _introduction(size: str) -> list[str]:
    return [
        f"Written by `python -m bench.speed --write FILE` (`make bench`); the largest history here: {size}. The histories are",
        "generated, the same at each run: 1.1 KB a record, 60 % actions and 40 % messages, one session, sums in every line.",
        "",
        "A figure is the median of the ratios of each round, by the clock (`figure`) and by the processor's time (`CPU`);",
        "rounds are interleaved (A B C A B C), one round before warms the caches. `x` is ours divided by the floor or the",
        "peer beside it, so less is better, but for rates. Programs are whole processes, from start to end, with their output",
        "read from a pipe; ours is started as an installer sets it up, with its modules compiled and without orjson, but where",
        "a row says otherwise. What ours and a peer found is compared first: where it differs the row is marked WRONG. What",
        "takes more than 4 s is run three times, more than 20 s once. Figures of two processors do not compare: theirs and",
        "ours gain and lose in other proportions.",
        "",
    ]


def _goal_table(findings: Findings) -> list[str]:
    rows: list[list[str]] = []
    for key, row in judged(findings).items():
        goal = GOALS[key]
        where = "" if row is None else ", ".join(part for part in (row.what, row.wrong or row.missing) if part)
        rows.append([goal.operation, goal.against, str(goal), _figure(row) if row else "", _verdict(row), where])
    return table(["operation", "against", "goal", "worst figure", "", "which"], rows)


def _document_cells(row: Row) -> list[str]:
    if row.wrong or row.missing:
        goal = str(GOALS[row.goal]) if row.goal else ""
        return [row.what, row.against, row.wrong or row.missing, "", "", "", goal, row.verdict]
    return _row_cells(row)


def _smaller(findings: Findings, largest: int | None) -> list[str]:
    sizes = sorted({row.size for row in findings.rows if row.size is not None and row.size != largest})
    if not sizes:
        return []
    figures: dict[tuple[str, str, str], dict[int, Row]] = {}
    for row in findings.rows:
        if row.size is not None:
            figures.setdefault((row.part, row.what, row.against), {})[row.size] = row
    every = sizes if largest is None else sorted([*sizes, largest])
    rows = [[*key, *(_cell(found.get(size)) for size in every)] for key, found in figures.items() if len(found) > 1]
    return ["## The same figures at each size", "", *table(["", "", "against", *(f"{size:,}" for size in every)], rows), ""]


def _cell(row: Row | None) -> str:
    return "" if row is None else "WRONG" if row.wrong else _figure(row)


def _curves(findings: Findings) -> list[str]:
    sizes = sorted({size for curve in findings.curves.values() for size in curve})
    if len(sizes) < 2:
        return []
    rows = [
        [name, *(duration(curve[size]) if size in curve else "" for size in sizes)] for name, curve in findings.curves.items()
    ]
    return ["## Growth curve", "", *table(["median of the clock", *(f"{size:,}" for size in sizes)], rows), ""]


def as_json(findings: Findings, machine: dict[str, str], versions: dict[str, str], missing: dict[str, str]) -> str:
    """Return everything as one line."""
    told: dict[str, Any] = {
        "machine": machine, "versions": versions, "missing": missing, "notes": findings.notes, "curves": findings.curves,
        "goals": {key: {**asdict(GOALS[key]), "figure": row.figure if row else None, "verdict": _verdict(row)}
                  for key, row in judged(findings).items()},
        "rows": [{**asdict(row), "verdict": row.verdict} for row in findings.rows],
    }  # fmt: skip
    return json.dumps(told) + "\n"


def machine_of(folder: Path) -> dict[str, str]:
    """Return what figures depend on, and nothing that names this machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{memory:.0f} GB",
        "file system": _file_system(folder),
        "kernel": f"{platform.system()} {platform.release().partition('-')[0]}",
        "load before": f"{os.getloadavg()[0]:.1f}",
    }


def own_versions() -> dict[str, str]:
    """Return the versions of ours and of what it stands on."""
    from ctxmgr.store.engine.sqlite import SqliteEngine

    engine = SqliteEngine(":memory:")
    sqlite = str(engine.query("SELECT sqlite_version()")[0][0])
    engine.close()
    return {"ctxmgr": __version__, "Python": ".".join(map(str, sys.version_info[:3])), "SQLite in ctxmgr": sqlite}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _file_system(folder: Path) -> str:
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return "unknown"
    inside = [mount for mount in mounts if folder.resolve().is_relative_to(mount[1])]
    return max(inside, key=lambda mount: len(mount[1]))[2] if inside else "unknown"
