"""Every importer passes the battery for importers, on real logs of its format."""

from __future__ import annotations

import json
from pathlib import Path

from ctxmgr.conformance import ImporterConformance
from ctxmgr.history.formats import IMPORTERS
from ctxmgr.importers.claude_code import CLAUDE_CODE
from ctxmgr.importers.codex import CODEX

FIXTURES = Path(__file__).parents[2] / "fixtures"
LOGS = FIXTURES / "logs"


class TestClaudeCode(ImporterConformance):
    importer = CLAUDE_CODE
    logs = sorted(path for path in (LOGS / "claude-code").rglob("*.jsonl") if "subagents" not in path.parts)


class TestCodex(ImporterConformance):
    importer = CODEX
    logs = sorted((LOGS / "codex").rglob("*.jsonl"))


def _described() -> dict[str, type[ImporterConformance]]:
    """Return a class for each format that is only described: its logs are the samples in its folder.

    Where some are JSON lines and others documents, the lines get a class of their own. A list of messages states no session;
    it is named by its folder too, so a copy elsewhere is another session, and can't be held to the original.
    """
    found: dict[str, type[ImporterConformance]] = {}
    for importer in IMPORTERS:
        folder = FIXTURES / "formats" / importer.name
        if folder.is_dir():
            logs = [folder / name for name in json.loads((folder / "TRUTH.json").read_text())]
            name = "Test" + importer.name.title().replace("-", "")
            lines = [log for log in logs if log.suffix == ".jsonl"]
            about = {"importer": importer, "logs": logs, "is_lines": lines == logs}
            found[name] = type(name, (ImporterConformance,), about)
            if lines and lines != logs and importer.name != "messages":
                about = {"importer": importer, "logs": lines}
                found[f"{name}Lines"] = type(f"{name}Lines", (ImporterConformance,), about)
    return found


globals().update(_described())


def test_every_importer_passes_the_battery() -> None:
    """None is registered without it."""
    tried = [each for each in globals().values() if isinstance(each, type) and issubclass(each, ImporterConformance)]
    assert {each.importer.name for each in tried if hasattr(each, "importer")} == {each.name for each in IMPORTERS}
