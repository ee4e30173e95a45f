"""The command table reads every command line that it understands as typer does; all others it leaves to typer."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from typer.exceptions import TyperException
from typer.main import get_command

from ctxmgr.cli import application, invocation
from ctxmgr.cli.command_line import read
from ctxmgr.cli.declarations import Exit
from ctxmgr.cli.envelope import take_output_options
from ctxmgr.cli.fast import dispatch
from ctxmgr.cli.fast.table import TABLE

_VALUES = st.sampled_from(
    [
        "a",
        "",
        "-",
        "coder/x",
        "3",
        "0",
        "007",
        "2.5",
        "1e3",
        "-1",
        "x=y",
        "--json",
        " 5",
        "٣",
        "1_0",
        "9" * 20,
        ".",
        "5.",
        "nan",
    ]
)
_ODD = st.sampled_from(["--", "--nosuch", "-x", "--help", "-h", "--json=1", "-n5", "--limi", "3", "word", "--store="])


class _Typer:
    """The whole command line as typer reads it, with functions that keep what they are called with."""

    def __init__(self) -> None:
        self.given: dict[str, Any] | None = None
        with pytest.MonkeyPatch.context() as patch:
            real = application.typer_command

            def kept(function: Any) -> Any:
                return real(self._kept(function))

            patch.setattr(application, "typer_command", kept)
            self._root: Any = get_command(application.build())

    def _kept(self, function: Any) -> Any:
        @wraps(function)
        def keep(**given: Any) -> None:
            self.given = given

        keep.__qualname__ = "keep"  # else the handler of a quick command would be called in its place
        return keep

    def read(self, words: list[str]) -> dict[str, Any] | None:
        """Return what the function of a command would be called with, who asks beside it; None for a fault or help."""
        self.given = None
        invocation.set_agent(None)
        try:
            self._root.main(words, prog_name="ctxmgr", standalone_mode=False)
        except (TyperException, Exit, SystemExit):
            return None
        return None if self.given is None else _comparable({**self.given, "as_agent": invocation.current_agent()})


@pytest.fixture(scope="module")
def typers() -> _Typer:
    """Return typer's reading of command lines."""
    return _Typer()


def _read(words: list[str]) -> dict[str, Any] | None:
    """Return what the table makes of a command line."""
    found = dispatch.find_command(words)
    values = None if found is None else dispatch.parse(found[1], found[2])
    if found is None or values is None:
        return None
    if found[1]["how"]:
        values["how"] = take_output_options(values)
    return _comparable({"as_agent": None, **values})


def _comparable(values: dict[str, Any]) -> dict[str, Any]:
    how = values.get("how")
    return {**values, "how": how and [getattr(how, name) for name in how.__slots__]}


@st.composite
def _lines(draw: st.DrawFn) -> list[str]:
    name = draw(st.sampled_from(sorted(TABLE)))
    command = dispatch.command_by_name(name)
    assert command is not None
    words: list[str] = []
    options = sorted(command["options"])
    for option in draw(st.lists(st.sampled_from(options), max_size=4)) if options else []:
        kind = command["options"][option][1]
        if kind in ("flag", "no flag"):
            words.append(option)
            continue
        value = (
            str(draw(st.integers(0, 9))) if kind in ("number", "numbers", "float") and draw(st.booleans()) else draw(_VALUES)
        )
        words += [f"{option}={value}"] if option.startswith("--") and draw(st.booleans()) else [option, value]
    for _ in range(draw(st.integers(0, len(command["arguments"]) + command["many"]))):
        words.insert(draw(st.sampled_from([0, len(words)])), draw(_VALUES))
    if not draw(st.integers(0, 5)):
        words.insert(draw(st.integers(0, len(words))), draw(_ODD))
    return [*name.split(), *words]


@pytest.mark.long
@settings(max_examples=1500, deadline=None)
@given(_lines())
def test_the_table_reads_a_command_line_as_typer_does(typers: _Typer, words: list[str]) -> None:
    """Whatever the table understands means the same to typer: the same value of every parameter."""
    words = read(words)  # typer's own way begins with it too
    ours = _read(words)

    assume(ours is not None)
    assert ours == typers.read(words)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_every_command_is_read_by_the_table(name: str, typers: _Typer) -> None:
    """A command line with what a command must be given needs no typer, whatever the command."""
    command = dispatch.command_by_name(name)
    assert command is not None
    words = name.split()
    for option, (dest, kind) in command["options"].items():
        if dest in command["required"] and option.startswith("--"):
            words += [option, "3" if kind == "number" else "x"]
    words += ["x" for parameter, _ in command["arguments"] if parameter in command["required"]]
    ours = _read(words)

    assert ours is not None
    assert ours == typers.read(words)


def test_paths_and_numbers_are_read_as_what_they_are() -> None:
    """A path is a path, a number a number; a sign or a blank is left to typer."""
    found = _read(["ship", "a", "b/c"])
    assert found is not None
    assert found["logs"] == [Path("a"), Path("b/c")]
    assert _read(["version", "prune", "--always-keep", "3", "--always-keep", "4"]) is not None
    assert _read(["list", "--limit", "-1"]) is None
    assert _read(["recover", "--timeout", "1.2.3"]) is None


def test_a_name_that_is_no_command_is_typers() -> None:
    """Groups alone, unknown names and nothing at all are typer's."""
    for words in ([], ["goal"], ["goal", "nosuch"], ["nosuch"], ["goal", "probe"], [""], ["--version"]):
        assert dispatch.find_command(words) is None
