"""The README and the pages of docs/ tell the truth: every command prints what they show, and every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ctxmgr.cli import COMMANDS
from tests.readme import PAGES, README, ROOT, normal, run_all, steps

WITH_COMMANDS = [page for page in PAGES if steps(page.read_text("utf-8"))]


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.name, marks=() if page == README else (pytest.mark.slow,)) for page in WITH_COMMANDS],
)
def test_every_command_prints_what_the_page_shows(page: Path) -> None:
    """Run in order in one folder, each command gives the output below it (new ids and ages aside)."""
    found = steps(page.read_text("utf-8"))
    assert found
    outputs = list(run_all([step.command for step in found]))

    for step, output in zip(found, outputs, strict=True):
        assert normal(step.shown) == normal(output), step.command


def test_the_pages_show_commands() -> None:
    """The README and the pages about using it have examples."""
    assert {"README.md", "goals.md", "history.md", "packages.md", "recovery.md"} <= {page.name for page in WITH_COMMANDS}


def test_every_command_of_the_program_is_named() -> None:
    """No command is left undocumented."""
    text = (ROOT / "docs" / "commands.md").read_text("utf-8")

    assert [name for name in COMMANDS if not re.search(rf"`ctxmgr {name}\b", text)] == []


def test_the_readme_is_short() -> None:
    """A stranger finds his way in one page; the rest is in docs/."""
    assert len(README.read_text("utf-8").splitlines()) <= 200


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """Every relative link names a file of the project."""
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8"))

    assert [target for target in targets if "://" not in target and not (page.parent / target).exists()] == []
