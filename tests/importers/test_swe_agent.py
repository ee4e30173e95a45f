"""The command in an answer's text, where versions of mini-swe-agent list none beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.importers.base import Log
from ctxmgr.importers.swe_agent import MINI_SWE_AGENT
from ctxmgr.types.import_report import FileCount
from tests.growth import grows_linearly


def _inputs(answer: str) -> list[object]:
    log = Log("mini-swe-agent", Path("a.json"), FileCount(Path("a.json")))
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": answer}]
    MINI_SWE_AGENT.reader(log).read({"info": {}, "messages": messages})  # type: ignore[union-attr]
    return [record["input"] for record in log.take(final=True) if record["kind"] == "entry"]


@pytest.mark.parametrize(
    ("answer", "command"),
    [
        ("I look.\n```bash\nls -l\n```\nDone", "ls -l"),
        ("```mswea_bash_command \n\n \n  ls\npwd\n```", "  ls\npwd"),
        ("```bash\none\n```\n```bash\ntwo\n```", "one"),
        ("```bash\n\n```", None),
        ("```bash\nls", None),
        ("```sh\nls\n```", None),
    ],
)
def test_the_first_block_of_an_answer_is_its_command(answer: str, command: str | None) -> None:
    """Without the empty lines before it; a block that is not closed is none."""
    assert _inputs(answer) == ([] if command is None else [{"command": command}])


@pytest.mark.parametrize("unit", ["\n", " ", "```bash\n"])
def test_blocks_cost_linear_time(unit: str) -> None:
    """Whatever stands behind the beginning of a block."""
    assert grows_linearly(lambda size: _inputs("```bash" + unit * (size // len(unit))), 4_000 * len(unit))
