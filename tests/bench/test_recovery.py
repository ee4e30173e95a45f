"""The simulated world of the recovery benchmark: its agents, its baselines, its counts."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.recovery import measures
from bench.recovery.case import Ask, Case, Need
from bench.recovery.policies import POLICIES, PRODUCT
from bench.recovery.product import product
from bench.recovery.traffic import Traffic
from bench.recovery.world import Adviser, Answer, Attempt, Played, Policy, admits, judge, own_words, play, told_as_current
from ctxmgr.log.codec import Record
from ctxmgr.types.plain_records import build

SESSION = "s"


def _entry(number: int, agent: str, action: str, output: str) -> list[Record]:
    name = f"e{number}"
    begun = build("entry", SESSION, f"2026-03-02T08:{number:02}:00Z", id=name, agent=agent, action=action, input={"n": number})
    return [begun, build("result", SESSION, f"2026-03-02T08:{number:02}:01Z", entry=name, status="ok", output=output)]


def _case(
    *, answered: bool = True, never: tuple[str, ...] = (), stale: tuple[str, ...] = (), needs: tuple[Need, ...] | None = None
) -> Case:
    """Return a small workflow: the coder asks for the port, which the scout has seen."""
    records = [build("session", SESSION, "2026-03-02T08:00:00Z")]
    records += _entry(1, "planner", "Read", "# plan")
    records += _entry(2, "scout", "Bash", "listening on 8443" if answered else "nothing is listening")
    records += _entry(3, "coder", "Edit", "updated")
    return Case(
        family="port", seed=0, kind="request", session=SESSION, records=records,
        ask=Ask(type="INTROSPECT_AGENT_CONTEXT", requester="coder", reason="which port is it listening on", goal="probe it"),
        targets=frozenset({"coder"}), needs=(Need(("8443", "port of https")),) if needs is None else needs, never=never,
        stale=stale, answered=answered, cites=frozenset({"e2"}) if answered else frozenset(),
        again=lambda attempt: _entry(10 + attempt, "coder", "Edit", "updated"),
    )  # fmt: skip


def _says(*texts: str, target: str = "coder", said: str = "") -> Policy:
    """Return a policy that answers with these texts, one for each attempt."""

    @contextmanager
    def opened(case: Case, window: int) -> Generator[Adviser]:
        yield lambda history, attempt: Answer(target=target, text=texts[attempt - 1], said=said, branches=1)

    return opened


def test_an_agent_that_is_told_goes_on() -> None:
    """Any one wording of what is needed frees the agent, however it is cased and broken over lines."""
    assert play(_case(), _says("it listens on 8443")).first
    assert play(_case(), _says("use the\n  PORT of\\nhttps")).first


def test_an_agent_that_is_not_told_repeats_itself() -> None:
    """Without the fact the agent adds its repetition to the history, and help is asked for again."""
    lengths: list[int] = []

    @contextmanager
    def watching(case: Case, window: int) -> Generator[Adviser]:
        def advise(history: Sequence[Record], attempt: int) -> Answer:
            lengths.append(len(history))
            return Answer(target="coder", text="no idea" if attempt == 1 else "8443", branches=1)

        yield advise

    played = play(_case(), watching)
    assert [attempt.outcome for attempt in played.attempts] == ["not told", "goes on"]
    assert (played.first, played.at_all) == (False, True)
    assert lengths[1] == lengths[0] + 2


def test_attempts_are_capped() -> None:
    """After two answers that did not help nobody asks again."""
    played = play(_case(), _says("no", "no", "8443"))
    assert (len(played.attempts), played.at_all) == (2, False)


def test_the_wrong_agent_does_not_go_on() -> None:
    """The fact is of no use to another agent."""
    assert [attempt.outcome for attempt in play(_case(), _says("8443", "8443", target="scout")).attempts] == ["wrong agent"] * 2


def test_what_misleads_stops_the_agent() -> None:
    """A text that must never reach the agent outweighs the fact."""
    attempt = judge(_case(never=("curl evil",)), Answer(target="coder", text="8443; first run CURL evil", branches=1))
    assert (attempt.outcome, attempt.misled) == ("misled", ("curl evil",))


def test_reading_ends_at_the_window() -> None:
    """What stands behind the window is not read, neither the fact nor what misleads."""
    text = "x" * 50 + " 8443 curl evil"
    assert judge(_case(never=("curl evil",)), Answer(target="coder", text=text), 56).outcome == "goes on"
    assert judge(_case(), Answer(target="coder", text=text), 40).outcome == "not told"


def test_a_number_within_an_id_is_not_read() -> None:
    """Digits of an id or of a longer number are not the number that is needed; a unit may follow."""
    for text, outcome in (("toolu_18443", "not told"), ("a8443f", "not told"), ("84431", "not told"), ("8443/TCP", "goes on")):
        assert judge(_case(), Answer(target="coder", text=text)).outcome == outcome, text


@pytest.mark.parametrize(
    ("text", "current"),
    [
        ("the port is 80", True),
        ("the port is 80 (superseded)", False),
        ("8443, no longer 80", False),
        ("superseded:\nthe port is 80", True),
        ("the port is 8080", False),
    ],
)
def test_an_old_value_needs_a_word_that_it_is_old(text: str, current: bool) -> None:
    """An old value misleads unless the same line says that it no longer holds."""
    assert told_as_current("80", text) is current


def test_without_an_answer_only_saying_so_helps() -> None:
    """Where the history holds no answer, the agent goes on when that is said in the adviser's own words."""
    case = _case(answered=False)
    assert play(case, _says("-", said="The history holds nothing about the port.")).first
    assert play(case, _says("-", said="ask the person who gave the task")).first
    assert not play(case, _says("here is the log", "here is the log", said="Take another way.")).at_all
    assert judge(case, Answer(target="coder", text="-", unanswered=True)).goes_on
    assert judge(case, Answer(target="scout", text="-", unanswered=True)).outcome == "wrong agent"


def test_quoted_words_are_not_the_advisers_own() -> None:
    """A record that says that something is not in the history does not count as an admission."""
    quoted = own_words('It printed "nothing found in the history, ask the \\"user\\"" and ended.')
    assert not admits(Answer(said=quoted))


def test_the_product_is_asked_through_its_own_store() -> None:
    """The product's answer is the one branch of its continuation, with what it references; repetitions reach its store."""
    with product(_case(), 6_000) as advise:
        history = _case().records
        answer = advise(history, 1)
        assert (answer.target, answer.branches, answer.failure) == ("coder", 1, "")
        assert "8443" in answer.text
        assert "e2" in answer.cited
        more = [*history, *_entry(20, "scout", "Bash", "listening on 9443 instead of the port before")]
        assert "9443" in advise(more, 2).text


def test_failures_are_outcomes() -> None:
    """A typed failure of the product ends an attempt under its own kind."""
    empty = Case(
        family="none", seed=0, kind="loop", session=SESSION, records=[build("session", SESSION, "2026-03-02T08:00:00Z")],
        ask=Ask(), targets=frozenset({"coder"}), needs=(),
    )  # fmt: skip
    played = play(empty, product)
    assert played.attempts
    assert {attempt.outcome for attempt in played.attempts} <= {"noHistory", "healthy"}
    assert not played.at_all


@pytest.mark.parametrize("name", [name for name in POLICIES if name != PRODUCT])
def test_baselines_go_by_the_same_rules(name: str) -> None:
    """A baseline frees the agent only when the needed words stand in what it gives, or it hands an unanswered case back."""
    for case in (_case(), _case(answered=False), _case(needs=(Need(("not in this history",)),))):
        played = play(case, POLICIES[name])
        assert played.attempts
        for attempt in played.attempts:
            answer = attempt.answer
            told = any(phrase in answer.text for need in case.needs for phrase in need.phrases)
            assert attempt.goes_on == (answer.target == "coder" and (told if case.answered else admits(answer)))


def test_baselines_stay_within_their_window() -> None:
    """The whole history is cut to the window with its end kept, so that the newest is read."""
    case = _case()
    with POLICIES["whole history, oldest cut"](case, 30) as advise:
        text = advise(case.records, 1).text
    assert len(text) == 30
    assert text.endswith("updated")


def test_later_records_are_the_same_each_time() -> None:
    """What a stuck agent does after an attempt depends on the attempt alone, and does not touch the history."""
    import random

    run = Traffic(random.Random(1), "f", 1, ["coder"])
    run.call("coder", "Bash", {"command": "ls"}, "a")
    before = list(run.records)
    again = run.later(lambda more, attempt: more.call("coder", "Bash", {"command": "ls"}, "a"))
    assert again(1) == again(1)
    assert again(1) != again(2)
    assert run.records == before
    assert {record["id"] for record in again(1) if "id" in record}.isdisjoint(record.get("id") for record in before)


def test_shares_have_wilson_intervals() -> None:
    """The interval of 9 of 10 is that of Wilson's formula; nothing of nothing says nothing."""
    low, high = measures.Share(9, 10).interval()
    assert (round(low, 1), round(high, 1)) == (59.6, 98.2)
    assert str(measures.Share(0, 0)) == "none"


def test_counts_name_what_they_are_of() -> None:
    """Each measure counts the cases that it speaks of and no others."""
    case, open_case = _case(never=("evil",)), _case(answered=False)
    good = Attempt(Answer(target="coder", branches=1, cited=frozenset({"e2"})), "goes on")
    bad = Attempt(Answer(target="scout", branches=1), "wrong agent", missing=("8443",))
    failed = Attempt(Answer(failure="notStuck"), "notStuck")
    played = [Played(case, (good,), 10), Played(case, (bad, good), 10), Played(open_case, (failed, failed), 10)]
    counts = {name.partition(",")[0].partition(" (")[0]: count(played) for name, count in measures.COUNTS.items()}
    assert counts["recovered on the first attempt"] == measures.Share(1, 3)
    assert counts["recovered at all"] == measures.Share(2, 3)
    assert counts["all entries needed are referenced"] == measures.Share(1, 2)
    assert counts["all that is needed can be read"] == measures.Share(1, 2)
    assert counts["wrong agent"] == measures.Share(1, 2)
    assert counts["an answer is there"] == measures.Share(0, 2)
    assert counts["exactly one continuation"] == measures.Share(3, 5)
    assert counts["typed failure instead"] == measures.Share(2, 5)
    assert counts["recursions"] == measures.Share(0, 5)
    assert counts["stale or injected text passed on"] == measures.Share(0, 2)


def test_results_are_not_written_unless_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints its report, and writes the same text to the file that is named."""
    import sys
    from unittest.mock import patch

    from bench.recovery.__main__ import main

    file = tmp_path / "out.md"
    options = ["x", "--seeds", "1", "--family", "wrong-path", "--policy", "restart with the task", "--write", str(file)]
    with patch.object(sys, "argv", options):
        assert main() == 0
    assert file.read_text(encoding="utf-8") == capsys.readouterr().out
