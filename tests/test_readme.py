"""The README tells the truth: every command in it prints what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from ctxmgr.cli import COMMANDS
from tests.readme import README, ROOT, normal, run_all, steps


def test_every_command_prints_what_the_readme_shows() -> None:
    """Run in order in one folder, each command gives the output below it (new ids and ages aside)."""
    found = steps(README.read_text("utf-8"))
    outputs = list(run_all([step.command for step in found]))

    assert len(found) > 5
    for step, output in zip(found, outputs, strict=True):
        assert normal(step.shown) == normal(output), step.command


def test_every_command_of_the_program_is_named() -> None:
    """No command is left undocumented."""
    text = README.read_text("utf-8")

    assert [name for name in COMMANDS if not re.search(rf"`ctxmgr {name}\b|ctxmgr {name}\b", text)] == []


def test_the_python_example_runs(tmp_path: Path) -> None:
    """The recorder example of the README works as it stands."""
    folder = tmp_path
    [example] = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", example], cwd=folder, env=environment, check=True, timeout=60)

    assert [path.name for path in folder.glob("*.jsonl")] == ["run.jsonl"]
