"""The registry of requirements and the tests agree, in both directions."""

from __future__ import annotations

import re
from pathlib import Path

from tests.requirements import REQUIREMENTS, marks, report, uncovered

ROOT = Path(__file__).parents[1]


def test_marks_name_known_requirements() -> None:
    """Every requirement mark names ids of the registry, written as plain text."""
    unknown = [mark for mark in marks() if mark.name not in REQUIREMENTS]

    assert unknown == []


def test_every_requirement_has_a_test() -> None:
    """Every requirement is named by at least one test."""
    missing = " ".join(uncovered())

    assert missing == "", "no test names these; 'python -m tests.requirements' says what they demand"


def test_the_code_cites_what_can_be_looked_up() -> None:
    """Every ruling that the code cites is on the page of the rulings, every clause is in the registry."""
    code = "\n".join(path.read_text("utf-8") for path in (ROOT / "ctxmgr").rglob("*.py"))
    page = (ROOT / "docs" / "rulings.md").read_text("utf-8")
    told = set(re.findall(r"^\| (\d+) \|", page, re.MULTILINE))
    cited = {
        number for numbers in re.findall(r"\brulings? (\d+(?:(?:,| and) \d+)*)", code) for number in re.findall(r"\d+", numbers)
    }
    clauses = set(re.findall(r"\b(?:FR|SC|AC|EC)-\d+\b", code))

    assert {"16", "17"} <= cited <= told
    assert "FR-013" in clauses
    assert clauses <= REQUIREMENTS.keys()


def test_the_numbering_is_complete() -> None:
    """The registry holds every number of the specification: FR-021 and story 5 do not exist there."""
    functional = [f"FR-{number:03}" for number in range(1, 27) if number != 21]
    outcomes = [f"SC-{number:03}" for number in range(1, 15)]
    scenarios = {1: 3, 2: 4, 3: 4, 4: 3, 6: 4, 7: 5, 8: 5, 9: 4, 10: 7, 11: 4, 12: 4}
    stories = [f"US{story}-{number}" for story, count in scenarios.items() for number in range(1, count + 1)]
    edges = [f"EC-{number}" for number in range(1, 7)]

    assert list(REQUIREMENTS)[: len(functional + outcomes + stories + edges)] == functional + outcomes + stories + edges


def test_marks_are_read_without_importing(tmp_path: Path) -> None:
    """Marks are found on functions, classes, parameters and whole modules, and a computed id is seen as such."""
    lines = [
        "import missing_module",
        "pytestmark = pytest.mark.requirement('A')",
        "@requirement('B', 'C')",
        "def test_one(): ...",
        "CASE = pytest.param(1, marks=pytest.mark.requirement(name))",
    ]
    (tmp_path / "test_sample.py").write_text("\n".join(lines), encoding="utf-8")

    assert {(mark.name, mark.place) for mark in marks(tmp_path)} == {
        ("A", "test_sample.py:2"),
        ("B", "test_sample.py:3"),
        ("C", "test_sample.py:3"),
        (None, "test_sample.py:5"),
    }


def test_what_no_test_names_is_found(tmp_path: Path) -> None:
    """Of a folder whose tests name one clause alone every other one is told."""
    (tmp_path / "test_sample.py").write_text("pytestmark = pytest.mark.requirement('FR-001')", encoding="utf-8")

    assert uncovered(tmp_path) == [name for name in REQUIREMENTS if name != "FR-001"]
    assert report() == f"{len(REQUIREMENTS)} of {len(REQUIREMENTS)} requirements are named by a test"
