"""A log of Claude Code that a test goes on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.importers.claude_code_log import Log


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Begin a log with a person's words."""
    found = Log(tmp_path / "project")
    found.says("Fix the build")
    return found
