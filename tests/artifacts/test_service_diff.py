"""Differences: what changed between two versions, in a form that can be applied, of a bounded size."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.artifacts import service as diffing
from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.errors import NotFound
from ctxmgr.types.artifact import ArtifactDiff, DiffRequest
from tests.artifacts.putting import put, put_one


def _diff(artifacts: ArtifactStore, name: str = "a.md", old: int | None = None, new: int | None = None) -> ArtifactDiff:
    return artifacts.diff(DiffRequest(agent="arch", name=name, from_version=old, to_version=new))


def test_the_current_content_is_compared_with_the_one_before(artifacts: ArtifactStore) -> None:
    """Without versions the current content stands against the one before it, however many versions lie between."""
    put(artifacts, "arch", a_md="one\ntwo\nthree\n")
    put(artifacts, "arch", a_md="one\n2\nthree\n")
    put(artifacts, "arch", b_md="b\n")

    found = _diff(artifacts)

    assert (found.from_version, found.to_version, found.added, found.removed) == (1, 3, 1, 1)
    assert found.diff == "--- arch/a.md@v1\n+++ arch/a.md@v3\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"


def test_two_versions_are_compared_as_asked(artifacts: ArtifactStore) -> None:
    """Any two versions can be compared, in either direction, the same content too."""
    for number in (1, 2, 3):
        put(artifacts, "arch", a_md=f"{number}\n")
    put(artifacts, "arch", b_md="b\n")

    assert "-3\n+1\n" in (_diff(artifacts, old=3, new=1).diff or "")
    same = _diff(artifacts, old=3, new=4)
    assert (same.identical, same.diff, same.added) == (True, "", 0)
    with pytest.raises(NotFound, match="no other content before"):
        _diff(artifacts, "b.md")
    with pytest.raises(NotFound):
        _diff(artifacts, "b.md", old=1)


def test_binary_content_has_no_lines(artifacts: ArtifactStore) -> None:
    """Of binary content it is said that it differs."""
    put_one(artifacts, "arch", "a.md", "text\n")
    put_one(artifacts, "arch", "a.md", "\0binary\n")

    found = _diff(artifacts)

    assert (found.identical, found.diff) == (False, None)
    assert artifacts.warnings == ["binary content differs"]


def test_a_long_diff_is_cut_and_says_so(artifacts: ArtifactStore) -> None:
    """Contents that differ in very many lines are compared up to a limit, with a warning; the totals are of the whole."""
    put_one(artifacts, "arch", "a.md", "".join(f"a {number}\n" for number in range(9_000)))
    put_one(artifacts, "arch", "a.md", "".join(f"b {number}\n" for number in range(9_000)))

    found = _diff(artifacts)

    assert found.diff is not None
    assert found.diff.count("\n") <= diffing.MAX_DIFF_LINES
    assert (found.added, found.removed) == (9_000, 9_000)
    assert artifacts.warnings == ["too long to show whole: the diff is cut, and lines that only moved are not counted"]


def test_the_totals_of_a_cut_diff_are_of_the_whole(artifacts: ArtifactStore) -> None:
    """Lines that both contents have are not counted, though they stand beyond what is compared."""
    put_one(artifacts, "arch", "a.md", "".join(f"{number}\n" for number in range(1, 12_001)))
    put_one(artifacts, "arch", "a.md", "".join(f"{number}\n" for number in range(2, 24_001, 3)))

    found = _diff(artifacts)

    assert (found.added, found.removed) == (4_000, 8_000)


def test_a_small_change_in_a_long_text_is_shown_whole(artifacts: ArtifactStore) -> None:
    """However long both contents are, a change of one line is shown with its place."""
    lines = [f"line {number}\n" for number in range(100_000)]
    put_one(artifacts, "arch", "a.md", "".join(lines))
    put_one(artifacts, "arch", "a.md", "".join([*lines[:70_000], "other\n", *lines[70_001:]]))

    found = _diff(artifacts)

    assert (found.added, found.removed, artifacts.warnings) == (1, 1, [])
    assert "@@ -69998,7 +69998,7 @@" in (found.diff or "")


_LINES = st.lists(st.sampled_from(["a", "b", "c", "--", "++", "@@", " ", ""]), max_size=12)


def _text(lines: list[str], ended: bool) -> str:
    return "\n".join(lines) + ("\n" if ended and lines else "")


@given(_LINES, _LINES, st.booleans(), st.booleans())
def test_a_diff_can_be_applied(old: list[str], new: list[str], old_ended: bool, new_ended: bool) -> None:
    """Applied to the old content by the rules of unified diffs, a diff makes the new one, its last line end included."""
    before, after = _text(old, old_ended), _text(new, new_ended)
    found = diffing.text_difference(before, after, ("a", "b"))

    assert found.text is not None
    assert _applied(before, found.text) == after
    assert (found.added == 0 and found.removed == 0) == (before == after)


def _applied(before: str, diff: str) -> str:
    source, out, place, last = before.splitlines(keepends=True), list[str](), 0, " "
    for line in diff.splitlines(keepends=True)[2:]:
        if match := re.match(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@\n$", line):
            start = int(match[1]) - (match[2] != "0")
            out += source[place:start]
            place = start
            continue
        if line[0] == "\\":
            if last in " +":
                out[-1] = out[-1].removesuffix("\n")
            continue
        last = line[0]
        if last in " -":
            assert source[place].removesuffix("\n") == line[1:].removesuffix("\n")
            place += 1
        if last in " +":
            out.append(line[1:])
    return "".join([*out, *source[place:]])
