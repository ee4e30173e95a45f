"""Every importer passes the battery for importers, on real logs of its format."""

from __future__ import annotations

from pathlib import Path

from ctxmgr.conformance import ImporterConformance
from ctxmgr.importers import IMPORTERS
from ctxmgr.importers.claude_code.importer import ClaudeCode
from ctxmgr.importers.codex.importer import Codex

LOGS = Path(__file__).parents[2] / "fixtures/logs"


class TestClaudeCode(ImporterConformance):
    importer = ClaudeCode()
    logs = sorted(path for path in (LOGS / "claude-code").rglob("*.jsonl") if "subagents" not in path.parts)


class TestCodex(ImporterConformance):
    importer = Codex()
    logs = sorted((LOGS / "codex").rglob("*.jsonl"))


def test_every_importer_passes_the_battery() -> None:
    """None is registered without it."""
    tried = [each for each in globals().values() if isinstance(each, type) and issubclass(each, ImporterConformance)]
    assert {type(each.importer) for each in tried if hasattr(each, "importer")} == {type(each) for each in IMPORTERS}
