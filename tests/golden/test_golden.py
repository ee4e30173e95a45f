"""The JSON of every command on a fixed history is, byte for byte, what fixtures/golden holds."""

from __future__ import annotations

import json

import pytest

from ctxmgr import cli
from tests.golden.golden import GOLDEN, answer, commands, names


@pytest.mark.cases(20)
@pytest.mark.parametrize("name", sorted(names()))
def test_the_json_of_a_command_is_pinned(name: str) -> None:
    """A command's exit code and the bytes of its envelope are the golden ones; nothing is said beside them."""
    pinned = json.loads((GOLDEN / f"{name}.json").read_bytes())
    ran = answer(name)

    assert ran.code == pinned["exit"]
    # JSON only ever gains fields: where one was meant to come, renew the file, and look at what else differs in it.
    renew = "if this was meant: python -m tests.golden.golden, then read git diff fixtures/golden"
    assert ran.out == json.dumps(pinned["answer"], separators=(",", ":")) + "\n", renew
    assert ran.err == ""


def test_no_golden_file_is_left_over() -> None:
    """Every golden file belongs to a case."""
    assert {path.stem for path in GOLDEN.iterdir()} == names()


def test_every_command_that_answers_in_json_is_pinned() -> None:
    """Only the commands that print no envelope have no golden file."""
    assert set(cli.COMMANDS) - commands() == {
        "check",
        "completion",
        "config",
        "export",
        "demo",
        "watch",
        "doctor",
        "report",
        "browse",
        "install",
        "uninstall",
        "hook",
        "mcp",
        "receive",
        "ship",
        "tap",
    }
