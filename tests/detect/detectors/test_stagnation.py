"""A change that is made and taken back, whether it is told as a pair of texts or as a patch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.detect.scenario import Scenario


def _patch(old: str, new: str, path: str = "app.py") -> str:
    return f"*** Begin Patch\n*** Update File: {path}\n@@\n def run():\n-{old}\n+{new}\n*** End Patch\n"


WAYS: dict[str, Callable[[str], Any]] = {
    "a patch": lambda text: text,
    "a field of the patch tool": lambda text: {"input": text},
    "a shell command": lambda text: {"cmd": f"apply_patch <<'EOF'\n{text}EOF"},
}


@pytest.mark.parametrize("way", WAYS)
def test_patches_that_undo_each_other_are_found(way: str) -> None:
    """The same lines are replaced and put back, with tests between, whatever the tests say."""
    story = Scenario()
    for number in range(6):
        one, two = ("    return 1", "    return 2")[:: 1 if number % 2 == 0 else -1]
        story.call("apply_patch", WAYS[way](_patch(one, two)), "Success. Updated the following files:\nM app.py")
        story.fail("exec_command", {"cmd": f"pytest -q test_{number}.py"}, f"{number} failed")

    assert [finding.kind for finding in story.found()] == ["editRevert"]


def test_patches_that_go_on_are_none() -> None:
    """Each patch changes what the one before wrote: that is work."""
    story = Scenario()
    for number in range(8):
        story.call("apply_patch", _patch(f"    return {number}", f"    return {number + 1}"), "Success. M app.py")
        story.fail("exec_command", {"cmd": f"pytest -q test_{number}.py"}, f"{number} failed")

    assert story.found() == []


def test_a_patch_of_two_files_is_not_read_as_one() -> None:
    """What such a patch undoes can't be told from the lines of one file."""
    story = Scenario()
    for number in range(6):
        one, two = ("1", "2")[:: 1 if number % 2 == 0 else -1]
        both = _patch(one, two).replace("*** End Patch\n", "") + _patch(f"{number}", f"{number + 1}", "b.py").partition("\n")[2]
        story.call("apply_patch", both, f"Success {number}")

    assert story.found() == []
