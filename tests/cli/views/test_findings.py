"""What a loop and a stall look like at 80 columns without colour, in a pipe, and when little is known."""

from __future__ import annotations

import pytest

from ctxmgr.cli.views.findings import loop_steps, rounds_to_show, show_findings
from ctxmgr.types.finding import Finding, SessionVerdict
from ctxmgr.types.view import EntryView
from tests.cli import view_samples as s

REPETITION = """\
── loop  nightly  1 finding ────────────────────────────────────────────────────
✗ LOOP repetition ×4  builder  @12 → @15, raised at @14, still going
  builder ran Bash pytest -q tests/test_app.py 4 times and got the same error
  each time

  round     1     2     3     4
  Bash   ✗ 12  ✗ 13  ✗ 14  ✗ 15  pytest -q tests/test_app.py
  ✗ error

  error          ModuleNotFoundError: No module named 'app'
  last progress  @11 Edit src/app.py  10:11:00 UTC
  finding        f1

  next  ctxmgr recover --session nightly
"""

CYCLE = """\
── loop  nightly  1 finding ────────────────────────────────────────────────────
✗ LOOP cycle of 3 steps ×17  builder  @12 → @62, raised at @20, still going
  builder went round 17 times through Read then Edit then Bash, with the same
  results each time

  round     1     2     3     4     5  ⋯ 9 more ⋯    15    16    17
  Read   ● 12  ● 15  ● 18  ● 21  ● 24      ⋯       ● 54  ● 57  ● 60  src/app.py
  Edit   ✗ 13  ✗ 16  ✗ 19  ✗ 22  ✗ 25      ⋯       ✗ 55  ✗ 58  ✗ 61  src/app.py
  Bash   ⊘ 14  ⊘ 17  ⊘ 20  ⊘ 23  ⊘ 26      ⋯       ⊘ 56  ⊘ 59  ⊘ 62  pytest -q
  ● ok   ✗ error   ⊘ denied

  error          permission denied
  last progress  @11 Bash git status  10:11:00 UTC
  finding        f1

  next  ctxmgr recover --session nightly
"""

STALL = """\
── hung  nightly  1 finding ────────────────────────────────────────────────────
✗ HUNG  builder  silent for 34 min, last seen @41, still silent
  builder has waited 34 min for Bash pytest -q, beyond its limit of 10 min

  @41 started 10:41:00                                            11:15:09 now
  ●─────────────────────┃━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━▶
                        limit 10 min                         silent for 34 min

  ○ @41  Bash  pytest -q  open, limit 10 min

  last progress  @40 Read src/app.py  10:40:00 UTC
  finding        f2

  next  ctxmgr recover --session nightly
"""

ASCII_CYCLE = """\
  round     1     2     3     4     5  .. 10 more ..    16    17
  Read   * 12  * 15  * 18  * 21  * 24        ..       * 57  * 60  src/app.py
  Edit   x 13  x 16  x 19  x 22  x 25        ..       x 58  x 61  src/app.py
  Bash   ! 14  ! 17  ! 20  ! 23  ! 26        ..       ! 59  ! 62  pytest -q
  * ok   x error   ! denied
"""


def drawn(*found: tuple[Finding, list[EntryView]], width: int = 80, terminal: bool = True, encoding: str = "utf-8") -> str:
    """Return the view of one session with these findings."""
    entries = {entry.id: entry for _, entries in found for entry in entries}
    verdict = s.verdict(*(finding for finding, _ in found))
    return s.draw(lambda out: show_findings(out, [verdict], entries), width=width, terminal=terminal, encoding=encoding)


@pytest.mark.parametrize(
    ("found", "expected"),
    [(s.repetition(), REPETITION), (s.cycle(), CYCLE), (s.stall(), STALL)],
    ids=["repetition", "cycle", "stall"],
)
def test_a_finding_is_seen_at_a_glance(found: tuple[Finding, list[EntryView]], expected: str) -> None:
    """A loop shows its rounds beside each other, a stall its silence against the limit, both what to do next."""
    assert drawn(found) == expected


def test_a_plain_encoding_draws_the_same_in_ascii() -> None:
    """Where the encoding holds no symbols the loop stands in ASCII signs, still aligned."""
    assert ASCII_CYCLE in drawn(s.cycle(), encoding="ascii")


def test_a_wide_terminal_shows_all_rounds() -> None:
    """Rounds are left out in the middle only when they do not fit."""
    assert "more" not in drawn(s.cycle(), width=200)
    assert "⋯ 13 more ⋯" in drawn(s.cycle(), width=60)


def test_a_pipe_gets_the_same_page_without_rules() -> None:
    """In a pipe the reason stays on one line and nothing is drawn out to a width."""
    lines = drawn(s.cycle(), terminal=False).splitlines()

    assert lines[0] == "loop  nightly  1 finding"
    assert lines[2].endswith("with the same results each time")


def test_a_thousand_rounds_stay_one_line() -> None:
    """A loop of any length is drawn in a few lines, its first and last rounds shown."""
    text = drawn(s.repetition(1000))

    assert len(text.splitlines()) == len(REPETITION.splitlines())
    assert "⋯ 996 more ⋯" in text
    assert "✗ 1011" in text


def test_entries_that_are_not_at_hand_leave_dots() -> None:
    """Without the entries a loop is drawn from the evidence alone, each status unknown."""
    text = s.draw(lambda out: show_findings(out, [s.verdict(s.cycle(3)[0])], {}))

    assert "  Edit   · 13  · 16  · 19  src/app.py" in text
    assert "last progress  @11\n" in text


def test_an_entry_speaks_for_its_own_session_only() -> None:
    """An entry of another session with the same id is not taken for a member."""
    finding, entries = s.repetition()
    foreign = {entry.id: entry.model_copy(update={"session": "other", "action": "Foreign"}) for entry in entries}

    assert "Foreign" not in s.draw(lambda out: show_findings(out, [s.verdict(finding)], foreign))


def test_calls_issued_together_are_steps_of_their_own() -> None:
    """A step of two parallel calls is drawn as two rows of one round."""
    members = [s.entry(20 + n, ("Read", "Glob")[n % 2], {"path": "abc"[n % 2]}) for n in range(6)]
    finding = s.loop("repetition", members, 2, "both again").model_copy(update={"period": 1, "count": 3})

    steps = loop_steps(finding, {member.id: member for member in members})

    assert [(step.action, step.places) for step in steps] == [("Read", ["20", "22", "24"]), ("Glob", ["21", "23", "25"])]


def test_inputs_that_differ_are_listed() -> None:
    """The same error from different calls shows what was tried."""
    members = [s.entry(30 + n, "Bash", {"command": f"python run.py {n}"}, "error") for n in range(9)]
    text = drawn((s.loop("errorRepetition", members, 1, "same error", error="OSError: disk full"), members))

    assert "  Bash with different inputs\n    @30  python run.py 0\n" in text
    assert "    ⋯ 4 more\n    @38  python run.py 8\n" in text


def test_what_is_over_is_one_line() -> None:
    """A healthy session takes one line, its past findings one more each, with what ended them."""
    finding, entries = s.repetition(3)
    verdict = s.verdict(finding.model_copy(update={"resolved": "user"}), session="calm")

    text = s.draw(lambda out: show_findings(out, [verdict], {entry.id: entry for entry in entries}))

    assert text == (
        "✓ healthy  calm  1 past finding, all over\n"
        "  ✗ LOOP repetition ×3  builder  @12 → @14, raised at @14, over: a person spoke\n"
    )


def test_of_many_sessions_the_healthy_ones_are_a_count() -> None:
    """Among several sessions those in which nothing is wrong are counted; one with a note is told, though no finding."""
    finding, entries = s.repetition(3)
    calm = s.verdict(finding.model_copy(update={"resolved": "user"}), session="calm")
    failing = s.verdict(session="failing").model_copy(update={"notes": ["5 failures in a row"], "summary": "no loop found, 5"})

    text = s.draw(lambda out: show_findings(out, [calm, s.verdict(session="quiet"), failing], {e.id: e for e in entries}))

    assert (
        text
        == "○ no loop found, 5  failing\n\n0 of 3 sessions stuck, 2 healthy (1 with findings that are over), 1 with a\nremark\n"
    )


def test_a_head_tells_what_the_session_is_about() -> None:
    """The title and the last part of the folder stand below the head; neither where the log tells none."""
    finding, entries = s.repetition(3)
    verdict = s.verdict(finding).model_copy(update={"title": "Fix the\x1b[31m total", "project": "/home/dev/invoice-tool"})

    def lines(each: SessionVerdict) -> list[str]:
        return s.draw(lambda out: show_findings(out, [each], {entry.id: entry for entry in entries})).splitlines()

    assert lines(verdict)[1] == "  Fix the\\x1b[31m total  in invoice-tool"
    assert lines(verdict.model_copy(update={"title": None}))[1] == "  invoice-tool"
    assert len(lines(s.verdict(finding))) == len(lines(verdict)) - 1


def test_a_log_that_ends_in_a_call_says_so() -> None:
    """A stall without a known silence has no line of time, but names the call that never returned."""
    finding, entries = s.stall()
    ended = finding.model_copy(update={"evidence": {**finding.evidence, "ended": True, "stalledSeconds": None}})
    text = drawn((ended, entries))

    assert "✗ HUNG  builder  last seen @41, the log ends here\n" in text
    assert "○ @41  Bash  pytest -q  open, limit 10 min" in text
    assert "━" not in text


@pytest.mark.parametrize(
    ("rounds", "slots", "expected"),
    [
        (3, 9, [0, 1, 2]),
        (5, 5, [0, 1, 2, 3, 4]),
        (9, 5, [0, 1, 2, None, 8]),
        (9, 0, [0, None, 8]),
        (20, 7, [0, 1, 2, 3, None, 18, 19]),
    ],
)
def test_the_middle_rounds_are_left_out(rounds: int, slots: int, expected: list[int | None]) -> None:
    """First and last rounds stay, as many as there is room for."""
    assert rounds_to_show(rounds, slots) == expected
