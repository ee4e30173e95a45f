"""Every importer of the registry passes the battery for importers, on its samples among the fixtures."""

from __future__ import annotations

import json
from pathlib import Path

from ctxmgr.conformance import ImporterConformance
from ctxmgr.history.formats import IMPORTERS
from ctxmgr.importers.interface import Importer

FIXTURES = Path(__file__).parents[2] / "fixtures"
_OLDEST = {"claude-code", "codex"}
"""Formats whose samples lie in a folder of their own."""


def _logs(importer: Importer) -> list[Path]:
    folder = FIXTURES / ("logs" if importer.name in _OLDEST else "formats") / importer.name
    if importer.name in _OLDEST:
        return sorted(path for path in folder.rglob("*.jsonl") if "subagents" not in path.parts)
    truths = json.loads((folder / "TRUTH.json").read_text())
    return [folder / name for name, truth in truths.items() if "verdict" in truth and (folder / name).is_file()]


def _battery(importer: Importer) -> type[ImporterConformance]:
    logs = _logs(importer)
    known = {"importer": importer, "logs": logs, "is_lines": all(path.suffix == ".jsonl" for path in logs)}
    return type(f"Test_{importer.name}", (ImporterConformance,), known)


globals().update({battery.__name__: battery for battery in map(_battery, IMPORTERS)})
