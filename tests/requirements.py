"""Every clause the product answers to, by id, and which tests name it.

``python -m tests.requirements`` prints what no test names yet, and ``python -m tests.requirements FR-013`` what one
clause demands and which tests name it. A test names the
clauses it covers with ``@pytest.mark.requirement("FR-001", ...)``; tests/test_requirements.py holds both directions.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.requirements_artifacts import ACCESS, CONTEXT
from tests.requirements_design import CONTRACTS, LIVE, PROMPTING, RULINGS, TICKET
from tests.requirements_functional import FUNCTIONAL, OUTCOMES
from tests.requirements_hierarchy import HIERARCHY
from tests.requirements_packages import PACKAGES
from tests.requirements_stories import EDGE_CASES, STORIES
from tests.requirements_versions import ARTIFACTS, VERSIONS

TESTS = Path(__file__).parent


class Requirement(NamedTuple):
    """One clause: what it demands, and where it comes from."""

    sentence: str
    source: str


_SOURCES = {
    "spec 000, functional requirements": FUNCTIONAL,
    "spec 000, measurable outcomes": OUTCOMES,
    "spec 000, acceptance scenarios": STORIES,
    "spec 000, edge cases": EDGE_CASES,
    "spec 000, prompting notes": PROMPTING,
    "spec 001": TICKET,
    "spec 002": CONTRACTS,
    "spec 003, access control": ACCESS,
    "spec 003, context packages": PACKAGES,
    "spec 003, shared state": CONTEXT,
    "spec 003, artifacts": ARTIFACTS,
    "spec 003, versions": VERSIONS,
    "spec 004": HIERARCHY,
    "design, rulings": RULINGS,
    "design, inside people's agents": LIVE,
}

REQUIREMENTS: dict[str, Requirement] = {
    name: Requirement(sentence, source) for source, sentences in _SOURCES.items() for name, sentence in sentences.items()
}


class Mark(NamedTuple):
    """One requirement mark in a test module; ``name`` is None where it is not written as plain text."""

    name: str | None
    place: str


def marks(folder: Path = TESTS) -> tuple[Mark, ...]:
    """Return every requirement mark of the test modules below a folder, read from their syntax, once, not by running them."""
    return _marks(folder)


@cache
def _marks(folder: Path) -> tuple[Mark, ...]:
    return tuple(_found(folder))


def _found(folder: Path) -> Iterator[Mark]:
    for path in sorted(folder.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "requirement(" in text else ():  # most modules have none
            if isinstance(node, ast.Call) and "requirement" in (getattr(node.func, "attr", ""), getattr(node.func, "id", "")):
                place = f"{path.relative_to(folder)}:{node.lineno}"
                for argument in node.args:
                    plain = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
                    yield Mark(ast.literal_eval(argument) if plain else None, place)


def covered(folder: Path = TESTS) -> set[str]:
    """Return the ids that some test names."""
    return {mark.name for mark in marks(folder) if mark.name is not None}


def uncovered(folder: Path = TESTS) -> list[str]:
    """Return the ids, in the registry's order, that no test names."""
    named = covered(folder)
    return [name for name in REQUIREMENTS if name not in named]


def report() -> str:
    """Return the state of the registry as text: how much of it is named by tests, and what is not."""
    missing = uncovered()
    lines = [f"{len(REQUIREMENTS) - len(missing)} of {len(REQUIREMENTS)} requirements are named by a test"]
    return "\n".join(lines + [f"uncovered  {name:10}  {REQUIREMENTS[name].sentence}" for name in missing])


def looked_up(name: str) -> str:
    """Return what a clause demands, where it comes from, and which tests name it."""
    clause = REQUIREMENTS[name]
    places = [f"  tests/{mark.place}" for mark in marks() if mark.name == name]
    return "\n".join([f"{name} ({clause.source}): {clause.sentence}", *places])


if __name__ == "__main__":
    print("\n".join(map(looked_up, sys.argv[1:])) or report())
