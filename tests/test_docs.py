"""The pages of the documentation hold: each Python example runs, and each name in the tables is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ctxmgr
from ctxmgr import goals
from ctxmgr.clients import CLIENTS, client
from ctxmgr.config import SETTINGS
from ctxmgr.types import query

PAGE = Path(__file__).parents[1] / "docs" / "python.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.requirement("H-API", "FR-014")
def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The blocks of the page run one after the other in an empty folder."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)

    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), {})
    told = capsys.readouterr().out
    assert "0 Bash " in told
    assert "notes[1].content the flaky one" in told  # behind the episode of the session
    assert (tmp_path / ".agent_context" / "state.json").is_file()


@pytest.mark.requirement("H-API", "R-30")
def test_the_names_of_the_page_are_there() -> None:
    """Every name that the tables map to exists, and the alias is the class that it stands for."""
    assert goals.ContextManager is goals.GoalTracker
    for name in ("load_or_init", "record_action", "get_compact_context", "mark_subtask_complete", "advance_to_next_subtask"):
        assert f"`{name}(" in TEXT
        assert callable(getattr(goals.GoalTracker, name))
    for name in ("BlackboardHistory", "EventBus", "EventSubscriber", "StuckHandler", "DegenerateLoopError", "HungError"):
        assert f"`{name}`" in TEXT
        assert hasattr(ctxmgr, name)
    for name in ("TraceRequest", "ListRequest", "SearchRequest", "ShowRequest", "CreateSnapshotRequest", "AddNoteRequest"):
        assert f"`{name}`" in TEXT
        assert hasattr(query, name)


def test_the_page_about_clients_names_them_all() -> None:
    """Every client stands in its table with the oldest version that is supported, and every setting is shown."""
    page = (PAGE.parent / "live.md").read_text(encoding="utf-8")
    for name in CLIENTS:
        found = client(name)
        assert found is not None
        assert f"| `{name}` | {'.'.join(map(str, found.least))} |" in page
    for name in SETTINGS:
        table, _, key = name.partition(".")
        assert table != "live" or f"\n{key} = " in page


PAGES = (PAGE.parent / "architecture.md", PAGE.parent / "extending.md", PAGE.parents[1] / "CONTRIBUTING.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_named_for_developers_is_there(page: Path) -> None:
    """Each file that these pages name exists, and each name that is said to stand in a file stands in it."""
    text = page.read_text(encoding="utf-8")
    homes = (PAGE.parents[1], PAGE.parents[1] / "ctxmgr")
    named = set(re.findall(r"`([a-z_]+/[\w./-]*\.(?:py|toml|md|txt))`", text))

    assert len(named) >= 2
    assert [name for name in sorted(named) if not any((home / name).is_file() for home in homes)] == []
    placed = re.findall(r"`([A-Za-z_]+)`(?: of| to)?\s+in\s+`([\w./]+\.py)`", text)
    assert placed or page.name == "CONTRIBUTING.md"
    for name, place in placed:
        (found,) = [home / place for home in homes if (home / place).is_file()]
        assert re.search(rf"\b{name}\b", found.read_text(encoding="utf-8")), (name, place)
