"""What stands in for a missing command is named where a listing of the project shows it."""

from __future__ import annotations

import pytest

from tests.diagnose.build import bash, evidence, failed, require_told


@pytest.mark.parametrize(
    ("listing", "shown", "program", "step"),
    [
        ("ls", "mvnw\npom.xml\nsrc", "mvn", "./mvnw"),
        ("ls -l", "drwxr-xr-x 2 dev dev 40 bin\n-rwxr-xr-x 1 dev dev 90 mill", "mill", "./mill"),
        ("ls vendor/bin", "phpunit\nphpcs", "phpcs", "vendor/bin/phpcs"),
    ],
    ids=["wrapper", "script in the folder", "folder of programs"],
)
def test_the_wrapper_of_the_project_is_the_next_step(listing: str, shown: str, program: str, step: str) -> None:
    """Nothing has to be installed where the project has its own wrapper."""
    calls = [failed(f"{program} {goal}", f"bash: line 1: {program}: command not found") for goal in ("verify", "test")] * 2

    require_told(evidence(bash(listing, shown), *calls), "toolMissing", [step], [f"`{step}`"])


def test_a_folder_with_the_name_is_no_script() -> None:
    """A listing without rights does not show whether a name is a program."""
    calls = [failed("mill test", "bash: line 1: mill: command not found")] * 3

    require_told(evidence(bash("ls", "mill\nsrc"), *calls), "toolMissing", [], ["command -v mill"])
