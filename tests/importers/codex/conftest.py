"""A reader of handwritten logs of Codex."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.importers.codex_lines import NAME, Reader, read_growing


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    """Return a reader of handwritten lines."""
    return lambda lines: read_growing(tmp_path / NAME, lines)
