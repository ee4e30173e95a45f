"""The pages of the documentation hold: each Python example runs, and each name in the tables is there."""

from __future__ import annotations

import ast
import re
from functools import cache
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

    assert len(blocks) == 12
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), {})
    told = capsys.readouterr().out
    assert "0 Bash " in told
    assert "notes[1].content the flaky one" in told  # behind the episode of the session
    assert (tmp_path / ".agent_context" / "state.json").is_file()
    for said in (
        "version 2 artifacts/v2/architect/plan.yaml\n", "+database: postgres\n", "3 1 True before the review\n",
        "no artifact 'architect/plan.yaml'\n", 'included: "full"', "\nrequired\nsuccess\n",
        "coder completed 1 850\n", "Deploys need the VPN.\n",
    ):  # fmt: skip
        assert said in told, said


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
    assert set(ctxmgr.__all__) <= set(dir(ctxmgr))
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


ROOT = PAGE.parents[1]
PAGES = (PAGE.parent / "architecture.md", PAGE.parent / "extending.md", ROOT / "CONTRIBUTING.md")
PACKAGES = sorted((ROOT / "ctxmgr").rglob("__init__.py"))
FORMER = {"_MUCH"}
"""A name that a page gives as an example of a bad one."""
_DOCSTRING = re.compile(r'""".*?"""', re.DOTALL)
_PATH = re.compile(r"(?:[\w-]+/)+[\w.-]+/?|[\w-]+\.(?:py|toml|md|txt)")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*(?:\(\))?")


@cache
def _code() -> dict[str, str]:
    """Return the code of each module by its dotted name, without its docstrings: these may name what is gone."""
    files = (
        path
        for room in ("ctxmgr", "tests", "bench")
        for path in (ROOT / room).rglob("*.py")
        if not path.is_relative_to(ROOT / "bench" / "out")
    )
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): _DOCSTRING.sub(
            "", path.read_text(encoding="utf-8")
        )
        for path in files
    }


@cache
def _words(code: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", code))


@cache
def _modules(name: str) -> list[str]:
    """Return the code of the modules of this name, whatever package it begins in."""
    return [code for module, code in _code().items() if f".{module}".endswith(f".{name}")]


def _is_named(name: str) -> bool:
    """Whether a name with or without dots is a module, stands in the one that it begins with, or in a class of that name."""
    if _modules(name):
        return True
    home, _, last = name.rpartition(".")
    if home and _modules(home):
        made = re.compile(
            rf"\b(?:def|class) {last}\b|^ *{last}\b *[:=]|^ *from .* import .*\b{last}\b|^ *{last},$", re.MULTILINE
        )
        return any(made.search(code) for code in _modules(home))
    spellings = {last, re.sub(r"(?<=[a-z])[A-Z]", lambda sign: f"_{sign[0].lower()}", last)}  # fields of JSON have both
    holders = list(_code().values())
    if home:
        inner = re.compile(rf"^ *(?:class )?{home.rpartition('.')[2]}\b", re.MULTILINE)
        holders = [code for code in holders if inner.search(code)]
    return any(not spellings.isdisjoint(_words(code)) for code in holders)


@cache
def _file_names() -> frozenset[str]:
    """Return the name of each file and folder of the project, wherever it stands."""
    rooms = (ROOT / room for room in ("ctxmgr", "tests", "bench", "fixtures", "docs"))
    return frozenset(path.name for room in rooms for path in room.rglob("*"))


def _is_file(name: str) -> bool:
    """Whether a path is there, from the project or its package on; a name alone may stand in any folder."""
    if "/" in name:
        return any((home / name).exists() for home in (ROOT, ROOT / "ctxmgr"))
    return name == "ctxmgr.toml" or (ROOT / name).exists() or name in _file_names()


@pytest.mark.parametrize("page", [*PAGES, *PACKAGES], ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_named_for_developers_is_there(page: Path) -> None:
    """Each file, folder, module and name in backticks exists, and stands in the file in which it is said to stand."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".py":
        text = ast.get_docstring(ast.parse(text)) or ""
    quoted = set(re.findall(r"`+([^`\s]+)`+", text))
    files = {name for name in quoted if _PATH.fullmatch(name)}
    names = {name.removesuffix("()") for name in quoted - files - FORMER if _NAME.fullmatch(name)}

    assert len(files | names) >= 2 or page.suffix == ".py"
    assert [name for name in sorted(files) if not _is_file(name)] == []
    assert [name for name in sorted(names) if not name.endswith((".json", ".jsonl")) and not _is_named(name)] == []
    placed = re.findall(r"`([A-Za-z_]+)`(?: of| to)?\s+in\s+`([\w./]+\.py)`", text)
    assert placed or page.suffix == ".py" or page.name == "CONTRIBUTING.md"
    for name, place in placed:
        (found,) = [home / place for home in (ROOT, ROOT / "ctxmgr") if (home / place).is_file()]
        assert re.search(rf"\b{name}\b", found.read_text(encoding="utf-8")), (name, place)
