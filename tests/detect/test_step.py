"""A step: when two are the same, whether one failed, and the words in which a loop of them is told."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from ctxmgr.detect.step import Call, ObservedStep, call_text, duration, excerpt, has_failed, loop_reason
from ctxmgr.types.finding import Observation


def call(
    action: str = "Bash", given: Any = None, output: Any = "done", status: str | None = "ok", *, number: int = 0, **more: Any
) -> Call:
    """Return a call with its result; without a status it has none."""
    start_fields = {name: more.pop(name) for name in ("task", "at") if name in more}
    fields: dict[str, Any] = {"session": "s", "id": f"e{number}", "seq": 2 * number, "action": action, "input": given}

    def observed(kind: Literal["start", "finish"], **values: Any) -> Observation:
        every: dict[str, Any] = {**fields, "kind": kind, **values}
        return Observation(**every)

    start = observed("start", **start_fields)
    finish = None if status is None else observed("finish", seq=2 * number + 1, status=status, output=output, **more)
    return Call.from_observations(start, finish)


def step(*given: Any, **more: Any) -> ObservedStep:
    """Return a step of one call."""
    return ObservedStep([call(*given, **more)])


@pytest.mark.requirement("R-07")
def test_two_steps_are_the_same_when_question_and_answer_are() -> None:
    """The order of the input's members tells nothing; another action, input, answer or status makes another step."""
    one = step("Read", {"path": "a", "limit": 3}, "text")

    assert one.same(step("Read", {"limit": 3, "path": "a"}, "text", number=7))
    assert not one.same(step("View", {"path": "a", "limit": 3}, "text"))
    assert not one.same(step("Read", {"path": "b", "limit": 3}, "text"))
    assert not one.same(step("Read", {"path": "a", "limit": 3}, "other text"))
    assert not one.same(step("Read", {"path": "a", "limit": 3}, "text", "error"))


@pytest.mark.requirement("R-07")
def test_times_are_noise_and_the_ids_of_a_read_are_news() -> None:
    """Of an error and of a change the ids are noise too: they are its receipt."""
    ids = [f"0199a7b3-1c2d-7e4f-8a9b-0c1d2e3f4a5{digit}" for digit in "bc"]

    assert step("Bash", "ls", "took 0.31 s").same(step("Bash", "ls", "took 0.87 s"))
    one, two = (step("get_order", {"n": 1}, f"order {each}") for each in ids)
    assert not one.same(two)
    one, two = (step("create_order", {"n": 1}, f"created order {each}") for each in ids)
    assert one.same(two)
    one, two = (step("get_order", {"n": 1}, f"no order {each}", "error") for each in ids)
    assert one.same(two)


def test_of_what_measures_the_time_is_the_answer() -> None:
    """A benchmark that gives another figure each time brings news."""
    one, two = (step("Bash", {"command": "hyperfine ./app"}, f"mean {each} s") for each in ("0.31", "0.87"))

    assert not one.same(two)


def test_what_cant_be_compared_is_never_the_same() -> None:
    """A loop is claimed on evidence alone: an input or an answer without a form equals nothing, itself included."""
    odd: Any = object()

    assert not step("Bash", odd, number=1).same(step("Bash", odd, number=2))
    assert step("Bash", "x", odd).results() == (None,)
    assert not step("Bash", "x", odd).same(step("Bash", "x", odd))


def test_calls_of_a_log_without_results_are_answered_alike() -> None:
    """Only what was asked tells them apart."""
    assert step("Bash", "ls", status=None).same(step("Bash", "ls", status=None, number=4))
    assert not step("Bash", "ls", status=None).same(step("Bash", "pwd", status=None))


def test_the_order_in_a_batch_tells_nothing() -> None:
    """Calls side by side are one question; each answer belongs to its call."""
    a, b = call("Read", {"path": "a"}, "A"), call("Read", {"path": "b"}, "B")

    assert ObservedStep([a, b]).same(ObservedStep([b, a]))
    crossed = ObservedStep([call("Read", {"path": "a"}, "B"), call("Read", {"path": "b"}, "A")])
    assert not ObservedStep([a, b]).same(crossed)
    assert not ObservedStep([a, b]).same(ObservedStep([a]))


def test_a_stub_is_compared_by_what_it_stands_for() -> None:
    """A compaction replaced one output; the identity from before decides, where both have one."""
    kept = step("Read", {"path": "a"}, "long text", meta={"output_identity": "h1"})

    assert kept.same(step("Read", {"path": "a"}, "[cleared]", meta={"output_identity": "h1"}))
    assert not kept.same(step("Read", {"path": "a"}, "long text", meta={"output_identity": "h2"}))
    assert not kept.same(step("Read", {"path": "a"}, "[cleared]"))


@pytest.mark.parametrize(
    ("more", "failed"),
    [
        ({"status": "error"}, True), ({"status": "denied"}, True), ({"output": "fine"}, False),
        ({"output": "Error: it broke"}, True), ({"output": "Error: " + "x" * 600}, False),
        ({"output": {"exit_code": 2}}, True), ({"output": {"exitCode": 0, "status": "done"}}, False),
        ({"output": {"returncode": True}}, False), ({"output": {"isError": True}}, True),
        ({"output": {"is_error": "yes"}}, False),
        ({"output": {"status": "rejected"}}, True), ({"output": {"status": ["failed"]}}, False),
        ({"output": "fine", "meta": {"exit_code": 1}}, True), ({"output": "fine", "meta": ["exit_code", 1]}, False),
    ],
)  # fmt: skip
def test_a_result_may_say_itself_that_it_is_a_failure(more: dict[str, Any], failed: bool) -> None:
    """By its status, its exit code, or how it begins; values of another type say nothing."""
    made = call("Bash", "x", **more)

    assert made.finish is not None
    assert has_failed(made.finish) is failed
    assert made.failed is failed


def test_a_batch_failed_when_all_of_it_did() -> None:
    """One that worked is something; its times reach from the first start to the last end."""
    bad, good = call("Bash", "a", "no", "error", at=10.0), call("Bash", "b", "yes", at=4.0)

    assert ObservedStep([bad, bad]).failed
    assert not ObservedStep([bad, good]).failed
    assert ObservedStep([bad, good]).started == 4.0
    assert ObservedStep([call(status=None)]).ended is None


def test_pages_that_differ_in_gauges_show_one_view() -> None:
    """A screen with its clock is looked at again; an acknowledgement shows nothing, and a failure is no view."""
    page = "Dashboard of the shop, 3 orders are open\nupdated 10:0{}:00, request 0199a7b3-1c2d-7e4f-8a9b-0c1d2e3f4a5{}"
    one, two = step("look", {}, page.format(1, "b")), step("look", {}, page.format(7, "c"))

    assert one.shows_the_same(two)
    assert not one.shows_the_same(step("look", {}, page.format(1, "b").replace("3 orders", "no orders")))
    assert not step("look", {}, "ok").shows_the_same(step("look", {}, "ok"))
    assert not one.shows_the_same(step("look", {}, page.format(1, "b"), "error"))


def test_answers_are_echoes_when_nearly_each_letter_is_the_same() -> None:
    """To the letter, or of nearly one length with one beginning and one view; two batches are none."""
    long = "The build is under way, stage compile of five, since 10:01:0{}"

    assert step("x", {}, "same").echoes(step("x", {}, "same"))
    assert step("x", {}, long.format(1)).echoes(step("x", {}, long.format(7)))
    assert not step("x", {}, long.format(1)).echoes(step("x", {}, "Another " + long.format(1)))
    assert not step("x", {}, "same").echoes(step("x", {}, "Same"))
    assert not step("x", {}, {"a": 1}).echoes(step("x", {}, "same"))
    assert not ObservedStep([call(), call()]).echoes(ObservedStep([call(), call()]))
    assert not step("x", status=None).echoes(step("x", status=None))


@pytest.mark.parametrize(
    ("action", "given", "words"),
    [
        ("Bash", {"command": "pytest -q"}, 'Bash "pytest -q"'),
        ("exec", {"cmd": ["bash", "-lc", "ls"]}, 'exec "bash -lc ls"'),
        ("Read", {"file_path": "a.py", "limit": 3}, 'Read "a.py"'),
        ("done", {}, "done"),
        ("say", "hello\nyou", 'say "hello you"'),
        ("add", {"b": 1, "a": 2}, 'add {"a":2,"b":1}'),
    ],
)
def test_a_call_is_told_by_the_telling_part_of_its_input(action: str, given: Any, words: str) -> None:
    """On one line, with its action."""
    assert call_text(call(action, given).start) == words


def test_a_step_is_excerpted_with_its_end() -> None:
    """Result, error, or none; of a batch how many more."""
    assert excerpt(step("Bash", {"command": "ls"}, "a.txt")) == 'Bash "ls", result: a.txt'
    assert excerpt(step("Bash", {"command": "ls"}, "", "ok")) == 'Bash "ls", result: (empty)'
    assert excerpt(step("Bash", {"command": "ls"}, "boom", "error")).startswith('Bash "ls", error: boom')
    assert excerpt(step("Bash", {"command": "ls"}, status=None)) == 'Bash "ls", no result'
    assert (
        excerpt(ObservedStep([call("Bash", {"command": "ls"}), call(), call()])) == 'Bash "ls" and 2 more at once, result: done'
    )


def test_a_loop_is_told_in_a_sentence() -> None:
    """Who, what, how often, with which end; rounds of several steps name the first four."""
    once = step("Bash", {"command": "make"}, "no rule", "error")
    round_ = [step(f"act{number}", {}, "x") for number in range(6)]

    assert loop_reason("repetition", "coder", [once], 4, 1) == (
        'coder ran Bash "make" 4 times and got the same error each time (no rule)'
    )
    assert loop_reason("cycle", None, round_, 3, 1) == (
        "the agent went round 3 times through act0 then act1 then act2 then act3 and 2 more steps, "
        "with the same results each time"
    )
    assert loop_reason("repetition", "coder", [step("Bash", {"command": "make"}, status=None)], 4, 1) == (
        'coder called Bash "make" 4 times; the log holds no results to tell whether anything changed'
    )
    assert loop_reason("errorRepetition", "coder", [once], 5, 3) == (
        "coder got the same error 5 times from 3 different calls (no rule)"
    )
    assert loop_reason("escalatingFailure", "coder", [once], 2, 1, {"task": "t1", "level": "task"}) == (
        "2 attempts of t1 failed, and the failure has climbed to the task above it"
    )
    assert loop_reason("pingPong", None, [once], 3, 1, {"agents": ["a\x1b", "b"]}).endswith(
        ", b gave each other the same words 3 times"
    )


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (119.4, "119 s"), (120, "2 min"), (7_199, "120 min"), (7_200, "2.0 h"), (90_000, "25.0 h")],
)
def test_spans_are_told_in_the_unit_that_people_use(seconds: float, words: str) -> None:
    """Seconds up to two minutes, minutes up to two hours, then hours."""
    assert duration(seconds) == words
