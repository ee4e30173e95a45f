"""Judging a folder of logs: what is wrong with the command is no fault of the logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import builders as b
from tests.cli.console import lines, run


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--set", "nonsense=1"), "unknown setting 'nonsense'"),
        (("--set", "repeat_rounds=1"), "repeat_rounds must be at least 2"),
        (("--now", "soon"), "soon"),
    ],
)
def test_a_wrong_option_is_told_as_for_one_log(options: tuple[str, ...], reason: str, tmp_path: Path) -> None:
    """Not as logs that could not be read."""
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "a.jsonl"
    log.write_text(lines(*b.steps("s", ["Bash:ls -> same"] * 3)), "utf-8")
    one, all_ = run("detect", str(log), *options), run("detect", str(tmp_path / "logs"), *options)

    assert (all_.code, all_.err) == (one.code, one.err)
    assert (all_.code, reason in all_.err) == (2, True)
