"""What several tests of commands stand on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.goals import PLAN


@pytest.fixture
def project(empty_project: Path) -> Path:
    """Work in a project that holds nothing but a plan."""
    (empty_project / "plan.md").write_text(PLAN, "utf-8")
    return empty_project
