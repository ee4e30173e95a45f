"""Where no cause is known: what changed since the same call last worked, or that it never did."""

from __future__ import annotations

from ctxmgr.diagnose.contrast import KIND, contrast
from tests.diagnose.build import Call, bash, edit, evidence, failed, read

BROKEN = failed("python tool.py", "zorg: 17 glims lost")


def told(*calls: Call) -> str:
    """Return cause and next step, which must be told."""
    found = contrast(evidence(*calls, loop=3))
    assert found is not None
    assert found.kind == KIND
    assert found.cause
    assert found.evidence
    return f"{found.cause}\n{found.next_step}"


def test_what_changed_since_it_worked_is_named() -> None:
    """The change is a place to look at."""
    text = told(bash("python tool.py", "fine"), edit("zeta.py", "a", "b"), *[BROKEN] * 3)

    assert "It worked" in text
    assert "zeta.py" in text
    assert "no change is recorded since" in told(bash("python tool.py", "fine"), *[BROKEN] * 3)


def test_what_never_worked_is_said_to_be_so() -> None:
    """Nothing of an earlier success is made up."""
    text = told(bash("ls", "tool.py"), *[BROKEN] * 3)

    assert "zorg" in text
    assert "It worked" not in text


def test_a_file_that_the_error_names_and_nobody_read_is_the_next_look() -> None:
    """A file that was read is none."""
    error = failed("python tool.py", 'File "core/glim.py", line 17, in lose\nzorg: lost')
    assert "core/glim.py" in told(*[error] * 3).partition("\n")[2]
    assert "core/glim.py" not in told(read("core/glim.py", "x\n" * 20), *[error] * 3).partition("\n")[2]


def test_without_a_finding_nothing_is_said() -> None:
    """Nor of a record that is empty."""
    assert contrast(evidence(bash("ls", "a"), found=False)) is None
    assert contrast(evidence(found=False)) is None


def test_edits_that_changed_nothing_are_counted() -> None:
    """Without a finding too, nobody is told that nothing was changed."""
    edits = [edit("tool.py", f"glims = {number}", f"glims = {number + 1}") for number in range(3)]
    check = failed("pytest tests", "zorg: 17 glims lost")
    for found in (True, False):
        known = contrast(evidence(check, *(step for each in edits for step in (each, check)), found=found))
        assert known is not None
        assert "after 3 changes of `tool.py`" in known.cause


def test_of_several_open_calls_the_cause_is_about_the_one_that_the_finding_names() -> None:
    """Headline and cause speak of one call, the oldest."""
    known = evidence(
        Call("WebSearch", {"query": "one"}, None, "open"), Call("Artifact", {"title": "two"}, None, "open"),
        loop=2, kind="hung", severity="hung",
    )  # fmt: skip
    found = contrast(known)
    assert found is not None
    assert "WebSearch" in found.cause
    assert "Artifact" not in found.cause
