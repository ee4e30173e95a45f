"""Which names a manifest lists, and the nearest of them."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import bash, evidence, failed, read, require_told


@pytest.mark.parametrize(
    ("manifest", "text", "command", "said", "near"),
    [
        (
            ".pre-commit-config.yaml",
            "repos:\n  - repo: https://git.example/ruff\n    hooks:\n      - id: ruff-format",
            "pre-commit run ruff-fmt",
            "No hook with id `ruff-fmt` in stage `pre-commit`",
            "ruff-format",
        ),
        ("tox.ini", "[testenv:py311]\ndeps = pytest", "tox -e py31", "unknown environment py31", "py311"),
        (
            "compose.yaml",
            "services:\n  billing:\n    image: b",
            "docker compose up biling",
            "no such service: biling",
            "billing",
        ),
    ],
    ids=["hook", "environment", "service"],
)
def test_the_nearest_name_of_a_manifest_is_offered(manifest: str, text: str, command: str, said: str, near: str) -> None:
    """Each manifest lists its names in its own way."""
    found = diagnose(evidence(read(manifest, text), *[failed(command, said)] * 3))

    assert found is not None
    assert found.kind == "unknownName"
    assert near in found.next_step


_TASKS = '{"scripts": {"report": "node report.js", "report:send": "node send.js", "summary": "node report.js --format pdf"}}'


def test_the_name_whose_definition_has_more_of_the_wanted_words_comes_first() -> None:
    """The nearest name in spelling is told too, with what it does."""
    calls = [failed(f"npm run {name}", f'npm error Missing script: "{name}"') for name in ("pdf", "pdf:report", "report:pdf")]

    require_told(
        evidence(read("package.json", _TASKS), bash("npm run report:send", "sent"), *calls),
        "unknownName",
        ["`summary` (`node report.js --format pdf`)", "`report:send`", "was run already"],
        ["npm run summary", "`pdf`"],
    )


def test_a_slip_of_the_keys_is_corrected() -> None:
    """Almost the same name is meant, whatever the other definitions have."""
    calls = [failed("npm run reprot:send", 'npm error Missing script: "reprot:send"')] * 3

    require_told(evidence(read("package.json", _TASKS), *calls), "unknownName", [], ["Run `npm run report:send` instead"])


def test_the_recipe_of_a_target_is_its_definition() -> None:
    """A makefile defines a target by the lines below it."""
    makefile = "all: app\n\ndocs:\n\tpandoc a.md\n\ndump-rows: app\n\t./app --out rows.json\n"
    calls = [failed(f"make {name}", f"make: *** No rule to make target '{name}'.  Stop.") for name in ("json", "docs-json")]

    require_told(
        evidence(read("Makefile", makefile), bash("make docs", ""), *calls * 2),
        "unknownName",
        ["`dump-rows`"],
        ["make dump-rows"],
    )


@pytest.mark.parametrize("behind", ["", " 2>&1 | tail -3"])
def test_the_descriptions_in_a_help_text_are_told(behind: str) -> None:
    """A program without a manifest lists its commands itself; one that is hardly like the refused name is not advised."""
    shown = "Usage: vault COMMAND\n\nCommands:\n  dump   Write all entries as CSV\n  store  Take entries in\n  sync"
    calls = [failed(f"vault {name}{behind}", f"Error: No such command '{name}'.") for name in ("save", "export", "save")]

    require_told(
        evidence(bash("vault --help", shown), *calls),
        "unknownName",
        ["`dump` (`Write all entries as CSV`)", "`store` (`Take entries in`)"],
        ["by these descriptions"],
    )


def test_a_script_that_is_no_shorthand_is_run_in_the_whole_form() -> None:
    """`npm start` is short for a script of that name alone."""
    manifest = '{"scripts": {"serve": "node server.js start", "lint": "eslint ."}}'
    calls = [failed("npm start", 'npm error Missing script: "start"')] * 3

    require_told(evidence(read("package.json", manifest), *calls), "unknownName", ["`serve`"], ["`npm run serve`"])
