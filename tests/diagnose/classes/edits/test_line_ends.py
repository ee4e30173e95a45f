"""A text of several lines is not found in a file whose lines end in another way: said only where the record shows the ends."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.classes.edits import wrong_edit_target
from tests.diagnose.build import Call, bash, edit, evidence, read, require_told

FILE = "src/Rounding.cs"
TEXT = "class R\n{\n    x = 1;\n    return Round(x, 2);\n}"
OLD, NEW = "    x = 1;\n    return Round(x, 2);", "    x = 1;\n    return Round(x, 2, Away);"
EOL = "i/lf    w/lf    attr/                 \tsrc/Tax.cs\ni/crlf  w/crlf  attr/text=auto eol=crlf  \tsrc/Rounding.cs"
REFUSED = "No match found for old_string in src/Rounding.cs"
TOLD = ["CRLF", "from line 3 on", "in LF"]


def tries(old: str = OLD, new: str = NEW) -> list[Call]:
    """Return an edit that is refused again and again."""
    return [edit(FILE, old, new, refused=REFUSED)] * 3


@pytest.mark.parametrize(
    ("look", "words"),
    [
        (bash("git ls-files --eol", EOL), "`w/crlf` in your `git ls-files --eol`"),
        (bash(f"file {FILE}", f"{FILE}: C# source, ASCII text, with CRLF line terminators"), "`CRLF line terminators`"),
        (bash(f"cat -A {FILE} | head -3", "class R^M$\n{^M$\n    x = 1;^M$"), "`^M$`"),
        (bash(f"sed -n l {FILE}", "class R\\r$\n{\\r$"), "`\\r$`"),
        (bash(f"head -c 30 {FILE} | od -c", "0000000 c l \\r  \\n {  \\r  \\n"), "`\\r\\n`"),
        (Call("fetch", {"path": FILE}, "class R\r\n{\r\n    x = 1;\r\n"), "`\\r\\n`"),
    ],
)
def test_the_ends_of_lines_are_named_with_what_shows_them(look: Call, words: str) -> None:
    """The single line that changes is given, old and new."""
    require_told(
        evidence(read(FILE, TEXT), look, *tries(), loop=3), "wrongEditTarget", [*TOLD, words],
        ["one line at a time", "`return Round(x, 2);` by `return Round(x, 2, Away);`", "CRLF too"],
    )  # fmt: skip


def test_other_blanks_are_named_beside_the_ends_of_lines() -> None:
    """Correct blanks would not help, so the ends come first."""
    tabs = OLD.replace("    ", "\t")

    require_told(
        evidence(read(FILE, TEXT), bash("git ls-files --eol", EOL), *tries(tabs), loop=3),
        "wrongEditTarget", [*TOLD, "apart from blanks"], ["one line at a time"],
    )  # fmt: skip


@pytest.mark.parametrize(
    "steps",
    [
        [*tries()],
        [bash("git ls-files --eol", EOL.replace("w/crlf", "w/mixed")), *tries()],
        [bash("git ls-files --eol", EOL.replace("Rounding", "Total")), *tries()],
        [bash(f"file {FILE}", f"{FILE}: ASCII text, with CRLF, LF line terminators"), *tries()],
        [bash(f"cat -A {FILE}", "class R$\n{$\n    x = 1;^M$"), *tries()],
        [bash(f"git diff {FILE}", "@@ -1 +1 @@\n+x = 1;^M\n+y^M"), *tries()],
        [bash("git ls-files --eol", EOL), bash(f"dos2unix {FILE}"), *tries()],
        [bash("git ls-files --eol", EOL), bash(f"file {FILE}", f"{FILE}: ASCII text"), *tries()],
        [bash("git ls-files --eol", EOL), *tries(OLD.replace("\n", "\r\n"))],
        [bash("git ls-files --eol", EOL), *tries("    x = 2;\n    return Round(x, 2);")],
        [bash("git ls-files --eol", EOL), edit(FILE, "class R\n{", "class R\n{"), *tries()],
    ],
    ids=["no evidence", "mixed", "other file", "both ends", "some lines", "diff", "converted", "newer look", "CRLF text",
         "other line", "tool takes breaks"],
)  # fmt: skip
def test_ends_of_lines_are_not_guessed(steps: list[Call]) -> None:
    """Without a sign of them, after a change of them, or where the text differs by more."""
    found = wrong_edit_target.diagnose(evidence(read(FILE, TEXT), *steps, loop=3))

    assert found is None or "CRLF" not in found.cause
