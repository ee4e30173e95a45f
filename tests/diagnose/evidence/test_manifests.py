"""Manifests that were read, and the command that makes a file."""

from __future__ import annotations

import json

import pytest

from ctxmgr.diagnose.evidence.manifests import find_build_command, list_steps, read_scripts
from tests.diagnose.build import Call, bash, evidence, read


@pytest.mark.parametrize(
    ("text", "scripts"),
    [
        ('{"scripts": {"a": "tsc", "b": 3}}', {"a": "tsc", "b": "3"}),
        ('{"tasks": {"a": "tsc"}}', {"a": "tsc"}),
        ('  "scripts": {\n    "a:b": "tsc -p .",\n    "c"', {"a:b": "tsc -p ."}),
        ("[]", {}),
        ("nothing", {}),
    ],
)
def test_scripts_are_read_with_their_commands(text: str, scripts: dict[str, str]) -> None:
    """A part of a manifest has scripts too."""
    assert read_scripts(text) == scripts


@pytest.mark.parametrize(
    ("path", "text", "made", "command"),
    [
        (
            "ui/package.json",
            json.dumps({"scripts": {"pack": "rollup -o dist/ui.js"}}),
            "dist/ui.js",
            "npm --prefix ui run pack",
        ),
        ("Makefile", "lint:\n\tcc -W\nparser: parser.y\n\tbison -o out/parser.c parser.y\n", "out/parser.c", "make parser"),
        ("package.json", json.dumps({"scripts": {"clean": "rm -rf dist", "start": "node dist/ui.js"}}), "dist/ui.js", None),
    ],
    ids=["folder", "make", "none"],
)
def test_the_command_that_makes_a_file_is_found(path: str, text: str, made: str, command: str | None) -> None:
    """What only removes or runs the file does not make it."""
    assert find_build_command(evidence(read(path, text), bash("ls")), made, 2) == (command, True)


@pytest.mark.parametrize(
    ("manifest", "command", "lines"),
    [
        (read("Makefile", "all: lib\nlib: gen # first\n\tcc -c a.c\ngen:\n\t@python3 gen.py\n"), "make",
         ["python3 gen.py", "cc -c a.c"]),
        (read("Makefile", "all: all b\n\techo a\nb:\n\techo b\n"), "make -j2 V=1 all", ["echo b", "echo a"]),
        (read("package.json", json.dumps({"scripts": {"test": "npm run gen && jest", "gen": "node g.js"}})), "npm test",
         ["node g.js", "npm run gen && jest"]),
        (read("package.json", json.dumps({"scripts": {"pretest": "tsc", "test": "jest"}})), "yarn run test", ["tsc", "jest"]),
        (read("Makefile", "test:\n\techo a\n"), "pytest test", []),
        (read("Makefile", "test:\n\techo a\n"), "make lint", []),
    ],
)  # fmt: skip
def test_what_a_command_runs_is_told_in_its_order(manifest: Call, command: str, lines: list[str]) -> None:
    """What a target needs comes before it; a ring ends."""
    assert [step.line for step in list_steps(evidence(manifest), command, 9)] == lines
