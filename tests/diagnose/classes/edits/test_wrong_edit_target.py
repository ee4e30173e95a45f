"""An edit that names what the file does not hold: the line that is there is told, whichever tool edits."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.classes.edits import wrong_edit_target
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import Call, bash, edit, evidence, failed, read, require_told

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


SERVER = """class Server:
    def start(self):
        with self.guard():
            log.info("state %s", self.state)
    def halt(self):
        with self.guard():
            log.info("state %s", self.state)"""


def test_the_places_of_a_repeated_text_are_told_by_the_line_that_only_one_has_above() -> None:
    """Different forms of the edit are refused with one error, and a test that fails after them does not hide it."""
    refused = "No replacement was made. Multiple occurrences of `{}` in lines [{}]. Make it unique."
    log, line = '"state %s"', 'log.info("state %s", self.state)'
    known = evidence(
        read("server.py", SERVER),
        failed("pytest -q", "FAILED test_server.py::test_halt"),
        edit("server.py", line, line.replace("info", "debug"), refused.format(line, "4, 7")),
        edit("server.py", log, '"halted %s"', refused.format(log, "4, 7")),
        failed("pytest -q", "FAILED test_server.py::test_halt"),
        edit("server.py", f"{line}\n", f"{line}  # 1\n", refused.format(f"{line}\n", "4, 7")),
        found=False,
    )

    require_told(
        known, "wrongEditTarget", ["stands 2 times", "lines 4, 7"],
        ["ine 4 is below `def start(self):`", "line 7 is below `def halt(self):`"],
    )  # fmt: skip


SEVEN = (
    "Found 7 matches of the string to replace, but replace_all is false. To replace only one, provide more context.\nString: x"
)


@pytest.mark.parametrize(
    ("before", "said", "cause"),
    [
        ([], SEVEN, "found its old_string `x` 7 times"),
        ([read("a.py", "import os\n")], SEVEN, "found its old_string `x` 7 times"),
        ([read("a.py", "x = 1\ny = x\nx = 2")], SEVEN, "stands 7 times in the file, among others at lines 1, 2, 3"),
        ([], "Failed to edit, expected 1 occurrence but found 3.", "found its old_string `x` 3 times"),
        ([], "No replacement was performed. Multiple occurrences of old_str `x` in lines [1, 2].", "more than once"),
        ([], "Failed to edit, 0 occurrences found for old_string in a.py.", "is not in the file"),
        ([], "String to replace not found in file (searched 3 times).", "is not in the file"),
    ],
)
def test_a_text_that_the_tool_found_is_not_said_to_be_absent(before: list[Call], said: str, cause: str) -> None:
    """The tool has read the file, whatever the agent has read."""
    found = wrong_edit_target.diagnose(evidence(*before, *[edit("a.py", "x", "total", said)] * THRICE))

    assert found is not None
    assert cause in found.cause
    assert ("not in the file" in found.cause) == ("not in the file" in cause)


def test_what_only_reads_has_rewritten_nothing() -> None:
    """The rebase has, and not the look at the log with its format; of the old lines the one that went is named."""
    old = "if late:\n    sleep(delay)"
    tried = edit("retry.py", old, "pass", "No replacement was performed: old_str did not appear verbatim in retry.py.")
    known = evidence(
        read("retry.py", f"def run():\n{old}\n"),
        bash("git fetch && git rebase origin/main", "Successfully rebased"),
        bash('git log -3 --format="%h %s"', "ab12 jitter"),
        *[tried] * THRICE,
        bash("git show ab12", "@@ -1 +1 @@\n if late:\n-    sleep(delay)\n+    sleep(wait)"),
    )
    told = wrong_edit_target.diagnose(known)

    assert told is not None
    assert "`sleep(delay)` is not in the file any more" in told.cause
    assert "git rebase origin/main" in told.cause
    assert "git log" not in told.cause
