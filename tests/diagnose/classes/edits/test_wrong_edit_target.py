"""An edit that names what the file does not hold: the line that is there is told, whichever tool edits."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.classes.edits import wrong_edit_target
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import Call, bash, edit, evidence, read, require_told

THRICE = 3
PATCH = "*** Begin Patch\n*** Update File: shop/cart.py\n@@\n-total = 1\n+total = 2\n*** End Patch"
CART = "import tax\n\ntotal = 0"


SAID: list[tuple[str, Evidence, list[str], list[str]]] = [
    (
        "codex patch",
        evidence(
            Call("exec_command", {"cmd": "cat shop/cart.py"}, CART),
            *[
                Call(
                    "apply_patch",
                    PATCH,
                    "apply_patch verification failed: Failed to find expected lines in shop/cart.py",
                    "error",
                )
            ]
            * THRICE,
        ),
        ["`total = 1`", "Line 3 is `total = 0`"],
        ["line 3"],
    ),
    (
        "patch in a shell",
        evidence(
            bash("sed -n '1,3p' shop/cart.py", CART),
            *[Call("shell", {"command": ["apply_patch", PATCH]}, "Failed to find expected lines", "error")] * THRICE,
        ),
        ["Line 3"],
        ["line 3"],
    ),
    (
        "str_replace editor",
        evidence(
            Call(
                "str_replace_based_edit_tool",
                {"command": "view", "path": "shop/cart.py"},
                "     1\timport tax\n     2\t\n     3\ttotal = 0",
            ),
            *[
                Call(
                    "str_replace_based_edit_tool",
                    {"command": "str_replace", "path": "shop/cart.py", "old_str": ("total = 1"), "new_str": "total = 2"},
                    "No replacement was performed, old_str `total = 1` did not appear verbatim in shop/cart.py.",
                    "error",
                )
            ]
            * THRICE,
        ),
        ["its old_str `total = 1`", "Line 3"],
        ["line 3"],
    ),
    (
        "several edits in one",
        evidence(
            read("shop/cart.py", CART),
            *[
                Call(
                    "MultiEdit",
                    {
                        "file_path": "shop/cart.py",
                        "edits": [
                            {"old_string": "import tax", "new_string": ("import taxes")},
                            {"old_string": "total = 1", "new_string": "total = 2"},
                        ],
                    },
                    "String to replace not found in file.",
                    "error",
                )
            ]
            * THRICE,
        ),
        ["total = 1", "Line 3"],
        ["line 3"],
    ),
    (
        "must be read first",
        evidence(
            *[edit("shop/cart.py", "total = 0", "total = 1", "File has not been read yet. Read it first before writing to it.")]
            * THRICE
        ),
        ["until you read the file"],
        ["Read"],
    ),
    (
        "the text is in another file",
        evidence(
            read("shop/cart.py", CART),
            read("shop/tax.py", "RATE_OF_TAX = 0.19\nROUNDING = 2"),
            *[edit("shop/cart.py", "RATE_OF_TAX = 0.19", "RATE_OF_TAX = 0.07", "String to replace not found in file.")]
            * THRICE,
        ),
        ["shop/tax.py", "line 1"],
        ["shop/tax.py"],
    ),
]


@pytest.mark.parametrize(("known", "cause", "step"), [each[1:] for each in SAID], ids=[each[0] for each in SAID])
def test_a_cause_is_known_in_other_words(known: Evidence, cause: list[str], step: list[str]) -> None:
    """Cause and next step are named as well where another client or tool tells them."""
    require_told(known, wrong_edit_target.KIND, cause, step)
