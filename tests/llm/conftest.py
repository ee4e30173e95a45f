"""What the tests with a real model stand on: they share one server, and tell their figures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from _pytest.terminal import TerminalReporter

from bench.llm.packages import default_folder
from bench.llm.report import rates
from bench.llm.server import Server, running, set_up
from bench.llm.trial import Outcome

_FOLDER = default_folder()  # asked for here, before a test's own home hides the one that the server was built in
_OUTCOMES: list[Outcome] = []


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
