"""Manifests that were read, and the command that makes a file."""

from __future__ import annotations

import json

import pytest

from ctxmgr.diagnose.evidence.manifests import find_build_command, read_scripts
from tests.diagnose.build import bash, evidence, read


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
