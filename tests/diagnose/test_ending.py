"""A run that ended well is told so; one that nothing ends is not."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.ending import find_ending
from tests.diagnose.build import Call, Said, bash, evidence, failed

REFUSED = Call("book_reservation", {"payment": "card_1"}, "Error: Payment method card_1 not found", "error")


@pytest.mark.parametrize(
    ("steps", "ending"),
    [
        ([bash("ls"), Call("submit", {"command": "submit flag{b3l0w}"}, "")], "submit call at 10:00 declared it done"),
        ([REFUSED, Call("transfer_to_human_agents", {"summary": "no card"}, "Transfer successful")], "handed it to a person"),
        ([Call("book", {"payment": "card_2"}, "HAT"), Said("That's all I needed. Thanks! ###STOP###")], "goodbye at 10:00"),
        ([Call("submit", {"command": "submit x"}, "Wrong flag!")], ""),
        ([Call("submit", {"command": "submit x"}, "Error: no such task", "error")], ""),
        ([REFUSED, Said("Thanks, goodbye! ###STOP###")], ""),
        ([Said("Thanks! ###STOP###"), bash("make", "done")], ""),
        ([bash("make", "done"), Said("Thanks! Now run the tests, please.")], ""),
        ([failed("make", "error: 1")], ""),
        ([], ""),
    ],
    ids=["submitted", "handed over", "goodbye", "wrong", "refused", "in vain", "went on", "more to do", "failed", "empty"],
)  # fmt: skip
def test_a_good_end_is_told(steps: list[Call | Said], ending: str) -> None:
    """It takes a last call that worked, and that is the last of its kind, or the user's goodbye after it."""
    found = find_ending(evidence(*steps, found=False))

    assert ending in found
    assert bool(found) == bool(ending)


def test_a_run_with_a_finding_is_not_over() -> None:
    """Then the loop or the stall is the matter."""
    assert find_ending(evidence(*[Call("submit", {}, "ok")] * 3)) == ""
