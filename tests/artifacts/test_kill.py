"""A kill at any moment of a change leaves no version without its files, and nothing that the next change does not heal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import STORE_FILES

ROOT = Path(__file__).parents[2]
LEAST = {"first": 25, "put": 30, "create": 15, "rollback": 8, "prune": 15}
"""Calls that change a file in each operation, at the least: a sweep that finds fewer has lost its grip."""


@pytest.mark.requirement("003-S9", "003-V6")
@pytest.mark.parametrize("kind", sorted(STORE_FILES))
@pytest.mark.parametrize("operation", sorted(LEAST))
def test_a_kill_before_any_file_change_is_healed(operation: str, kind: str, tmp_path: Path) -> None:
    """Killed before each of its calls that change a file, an operation leaves whole versions only.

    Every listed version has all its files with the right bytes; the operation, done again, succeeds; then history and folder
    agree to the last file.
    """
    command = [sys.executable, "-m", "tests.artifacts.sweep", operation, STORE_FILES[kind], str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)

    assert ran.returncode == 0, ran.stderr
    moments, wrong = map(int, ran.stdout.split())
    assert wrong == 0
    assert moments >= LEAST[operation]
