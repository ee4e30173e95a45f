"""Agents that wait for each other, in a ring of three."""

from __future__ import annotations

from ctxmgr.diagnose import diagnose
from ctxmgr.diagnose.classes.waiting import mutual_wait
from tests.diagnose.build import Call, Said, edit, evidence, require_told

RULE = Said("Render the poster today. In doubt the layout comes first, on the old photo; then crop cuts it.")
LAYOUT = Said("I set the layout once crop has cut the photo to size.", "layout")
CROP = Said("Before I can cut, print has to say the paper format.", "crop")
PRINT = Said("I need the layout from layout before I choose a paper.", "print")


def polls() -> list[Call]:
    """Return calls of all three that find nothing."""
    return [Call("mailbox.read", {"box": who}, {"mails": []}, agent=who) for who in ("layout", "crop", "print")] * 2


def test_a_ring_of_three_is_told_with_the_order_that_the_user_gave() -> None:
    """Each is named with what it waits for, and the one whose part the user put first begins."""
    known = evidence(RULE, LAYOUT, CROP, PRINT, *polls())

    require_told(
        known, mutual_wait.KIND, ["layout", "crop", "print", "in a ring"], ["the layout comes first", "layout can begin now"]
    )


def test_a_ring_without_an_order_is_ended_by_a_draft() -> None:
    """Where nobody said who begins, any of them may."""
    known = evidence(Said("Render the poster today."), LAYOUT, CROP, PRINT, *polls())

    require_told(known, mutual_wait.KIND, ["in a ring"], ["draft"])


def test_a_chain_is_no_ring() -> None:
    """If one of the three has answered, or works, the others wait for work that goes on."""
    answered = evidence(RULE, LAYOUT, CROP, PRINT, *polls()[:1], Said("crop: the paper is A2.", "print"), *polls())
    works = evidence(RULE, LAYOUT, CROP, PRINT, edit("poster.svg", "a", "b")._replace(agent="crop"), *polls())

    for known in (answered, works):
        assert (told := diagnose(known)) is None or "in a ring" not in told.cause


BOARD = {
    "cards": [
        {"id": "DOC-4", "title": "manual", "blocked_by": "UI-9"},
        {"id": "UI-9", "title": "dialog", "blocked_by": ["API-2", "OPS-1"]},
        {"id": "API-2", "title": "endpoint", "blocked_by": "DOC-4"},
        {"id": "OPS-1", "title": "host", "blocked_by": None},
    ]
}
POLL = Call("board.next", {"for": "API-2"}, {"ready": False, "state": "blocked"})


def test_a_ring_of_cards_is_told() -> None:
    """A list shows that each is blocked by the next one."""
    known = evidence(Call("board.list", {}, BOARD), *[POLL] * 3)

    require_told(known, mutual_wait.KIND, ["DOC-4", "UI-9", "API-2", "in a ring"], ["End the ring"])


def test_a_ring_that_was_opened_since_is_no_cause() -> None:
    """The newest answer about a card counts."""
    known = evidence(
        Call("board.list", {}, BOARD), Call("board.get", {"id": "UI-9"}, {"id": "UI-9", "blocked_by": None}), *[POLL] * 3
    )

    assert (told := diagnose(known)) is None or "in a ring" not in told.cause


def look_for_news(agent: str, of: str) -> Call:
    """Return a look of an agent into its inbox."""
    return Call("check_inbox", {"from": of}, "no new messages", agent=agent)


def test_looks_for_news_of_each_other_bring_none() -> None:
    """Agents that only ask after each other are told to write."""
    looks = [look_for_news("reviewer", "writer"), look_for_news("writer", "reviewer")] * 3
    require_told(evidence(*looks, loop=6, kind="pingPong"), "mutualWait", ["reviewer and writer only look"], ["in one message"])


def test_looks_for_news_of_a_third_are_no_mutual_wait() -> None:
    """Whoever both wait for may still write."""
    looks = [look_for_news("reviewer", "customer"), look_for_news("writer", "customer")] * 3
    assert mutual_wait.diagnose(evidence(*looks, loop=6, kind="pingPong")) is None
