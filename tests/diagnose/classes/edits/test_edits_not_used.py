"""The step that takes in the edits is one that the project has."""

from __future__ import annotations

import json

import pytest

from tests.diagnose.build import edit, evidence, failed, read, require_told


@pytest.mark.parametrize(
    ("scripts", "step"),
    [
        ({"test": "node --test", "assemble": "babel src --out-dir dist"}, "`npm run assemble`"),
        ({"test": "node --test", "build": "tsc -p ."}, "`npm run build`"),
        ({"test": "node --test", "start": "node dist/main.js"}, "no script of its manifest names it"),
    ],
    ids=["names the folder", "named like a build", "none"],
)
def test_the_build_is_a_script_of_the_manifest(scripts: dict[str, str], step: str) -> None:
    """A script that makes the folder comes before one that is only named like a build; one that is missing is not advised."""
    manifest = json.dumps({"name": "fees", "main": "dist/fees.js", "scripts": scripts}, indent=2)
    check = failed("npm test", "not ok 1 - fee of 3\n  3 !== 4")
    edits = [edit("/home/dev/shop/src/fees.js", f"return {n}", f"return {n + 1}") for n in range(3)]
    calls = [call for change in edits for call in (check, change)]

    require_told(evidence(read("package.json", manifest), *calls, check), "editsNotUsed", ["dist/fees.js"], [step])
