"""The process of a command: how wide its lines are, which plugins it loads, and what its child processes get."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from ctxmgr.cli import invocation

PLUGINS = "PYDANTIC_DISABLE_PLUGINS"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("said", "wide"), [("40", 40), ("0", 80), ("-3", 80), ("x", 80), ("", 80), (None, 80)])
def test_the_variable_says_how_wide_a_line_is(said: str | None, wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no width counts as none; without a terminal a line has 80 cells."""
    if said is not None:
        monkeypatch.setenv("COLUMNS", said)

    assert invocation.columns(io.StringIO()) == wide
    assert invocation.columns(None) == wide


@pytest.mark.parametrize("said", ["30", "1"])
def test_a_message_is_broken_at_words_on_a_terminal_alone(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line is indented like the first, and no narrower than 20 cells; a pipe gets one line."""
    monkeypatch.setenv("COLUMNS", said)
    message = "  hint: wide signs 字字字字 count twice, and every word is told"
    broken = invocation.at_words(message, _Terminal()).split("\n")

    assert len(broken) > 1
    assert all(line.startswith("  ") and len(line) <= max(int(said), 20) for line in broken)
    assert " ".join(line.strip() for line in broken) == message.strip()
    assert invocation.at_words(message, io.StringIO()) == message


_PLUGINS = """
import os, sys
from ctxmgr.cli import invocation
invocation.disable_plugins()
import pydantic
class Model(pydantic.BaseModel):
    number: int
assert Model(number="3").number == 3
print(os.environ["PYDANTIC_DISABLE_PLUGINS"], invocation.child_environment().get("PYDANTIC_DISABLE_PLUGINS"))
"""


@pytest.mark.cases(1)
@pytest.mark.parametrize(("given", "said"), [(None, "__all__ None"), ("__all__", "__all__ __all__"), ("some", "some some")])
def test_plugins_are_left_out_here_and_not_in_child_processes(given: str | None, said: str) -> None:
    """What the environment says of plugins holds, here and there; what was set here is not handed on."""
    environment = {name: value for name, value in os.environ.items() if name != PLUGINS}
    environment |= {PLUGINS: given} if given is not None else {}
    ran = subprocess.run([sys.executable, "-c", _PLUGINS], env=environment, capture_output=True, text=True, check=False)

    assert (ran.stdout.strip(), ran.stderr) == (said, "")
