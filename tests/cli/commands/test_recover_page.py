"""The page of a continuation, as a person reads it and as a pipe gets it."""

from __future__ import annotations

from ctxmgr.cli.commands.recover import show_continuation
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.route import DoNotRepeat, Fact
from tests.cli import view_samples as s

CONTINUATION = """\
✗ the same error 4 times

── continue with planner  PROCEED ──────────────────────────────────────────────
planner gave builder its task.
Its text: ctxmgr recover --session nightly --last --prompt  (1.2 k tokens by
chars/4, only what is new since c0)
For a program: --json; 'data.continuation.returnTo' holds exactly one request.

Task
  make the tests pass

Where things stand
  The tests fail because the package is not installed.

What is known
  verified  pytest exits with 1  [@12 e13]
  unknown   what e77 said is gone  [e77]

Do not repeat before something has changed
  ✗ Bash  pytest  ×4  [@12]
    → exit 1

Try instead
  → pip install -e .  (worked at @4)  [e4]

Last words of the person
  fix the tests
  and nothing else

About this answer
  session        nightly
  asked by       the run is stuck
  reason         builder ran the same failing command 4 times
  finding        repetition ×4
  started at     @12
  last progress  e11
  not sent to    builder
  routed by      what the history shows
  written by     the rules (the model had no answer that counts)
  attempt        1
  kept as        c1
  evidence       ctxmgr snapshot show s1
  notes          1 note: n1
"""


def test_a_continuation_is_a_page_to_read_and_paste() -> None:
    """The page leads with what is wrong and who continues; the evidence follows, and how the answer came about."""
    assert s.draw(lambda out: show_continuation(out, s.continuation(), {"e12": 12})) == CONTINUATION


def test_the_page_says_nothing_twice() -> None:
    """The task has its heading, and an entry that a fact names in its words is not cited behind it."""
    goal = "make the tests pass"
    facts = [
        Fact(text=f'The task as a person gave it: "{goal}"', entries=["ev1"], label="recorded"),
        Fact(text="About the trouble (@12, builder, ok)", entries=["e12"], label="recorded"),
    ]
    answer = s.continuation(goal=goal, context=s.continuation().context.model_copy(update={"facts": facts}))
    shown = s.draw(lambda out: show_continuation(out, answer, {"e12": 12}))

    assert shown.count(goal) == 1
    assert "About the trouble (@12, builder, ok)\n" in shown


def test_failures_without_a_loop_have_a_headline() -> None:
    """The page of a run that only failed begins with that, and not with an empty line."""
    found = Diagnosis(kind="knownError", cause="It fails.", next_step="Mend it.", check="", confidence="low", evidence=())
    answer = s.continuation(loop=None, diagnosis=found, reason="no loop was found, but 3 failures in a row")

    assert s.draw(lambda out: show_continuation(out, answer)).startswith("✗ no loop was found, but 3 failures in a row\n")


def test_a_long_quote_takes_two_lines_on_a_terminal_and_is_whole_in_a_pipe() -> None:
    """The page stays short for a reader; nothing is cut for a program."""
    outcome = " ".join(f"word{number}" for number in range(100))
    answer = s.continuation(do_not_repeat=[DoNotRepeat(action="Bash", input="ls", times=4, outcome=outcome, entries=["e12"])])

    shown = s.draw(lambda out: show_continuation(out, answer))
    _, _, after = shown.partition("Do not repeat before something has changed\n")
    lines = after.partition("\n\n")[0].splitlines()

    assert len(lines) == 3
    assert lines[2].endswith("…")
    assert max(map(len, lines)) <= 80
    assert outcome in s.draw(lambda out: show_continuation(out, answer), terminal=False)
