"""What the tests with a real model stand on: they run only when asked for, share one server, and tell their figures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from _pytest.terminal import TerminalReporter

from bench.llm.packages import default_folder
from bench.llm.report import rates
from bench.llm.server import Server, running, set_up
from bench.llm.trial import Outcome

_MARK = "llm"
_FOLDER = default_folder()  # asked for here, before a test's own home hides the one that the server was built in
_OUTCOMES: list[Outcome] = []


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", f"{_MARK}: needs a real model on this machine; only run with -m {_MARK}")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the marked tests out unless the command line speaks of the marker."""
    if _MARK in str(config.option.markexpr):
        return
    left_out = [item for item in items if item.get_closest_marker(_MARK)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Run the server with its model, set up when it is not there yet."""
    binary, model = set_up(_FOLDER)
    with running(binary, model) as started:
        yield started


@pytest.fixture(scope="session")
def outcomes() -> list[Outcome]:
    """Return the list whose figures are told at the end."""
    return _OUTCOMES


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Tell how often the model was of use: figures, not verdicts."""
    if _OUTCOMES:
        terminalreporter.section("a real small model in the loop")
        for line in rates(_OUTCOMES):
            terminalreporter.write_line(line)
