"""Answers that are awaited to a thing which was only drafted."""

from __future__ import annotations

from typing import Any

from ctxmgr.diagnose import diagnose
from ctxmgr.types.finding import Diagnosis
from tests.diagnose.build import Call, Said, evidence

TASK = Said("Ask Dr. Wu whether talk T3 may move; her yes is needed.")
LOOK = Call("messenger.inbox", {"from": "u-7"}, {"messages": []})
PAUSE = Call("wait", {"minutes": 10}, {"ok": True})
_WAITING = [LOOK, PAUSE] * 3


def compose(action: str = "messenger.compose", **answer: Any) -> Call:
    """Return a call that makes a message, answered with these members."""
    return Call(action, {"to": "u-7", "text": "May T3 move?"}, {"messageId": "m-55", **answer})


DRAFT = compose(state="draft", actions=["send", "discard"])


def _unsent(*steps: Call | Said) -> Diagnosis | None:
    told = diagnose(evidence(*steps, found=False))
    return told if told is not None and "was never sent" in told.cause else None


def test_a_question_that_was_only_drafted_is_told_with_the_action_that_sends_it() -> None:
    """Its id, its state and the offered action are named."""
    told = _unsent(TASK, DRAFT, *_WAITING)

    assert told is not None
    assert "left `m-55` as `state: draft`" in told.cause
    assert "use `send` on it" in told.next_step


def test_any_answer_that_says_unsent_is_read() -> None:
    """The state may be a flag; without an action, the call that sends is still to be found."""
    for made in (compose(sent=False), compose(status="not submitted"), compose(is_draft=True)):
        told = _unsent(TASK, made, *_WAITING)

        assert told is not None, made
        assert "make the call that sends or submits it" in told.next_step
    assert _unsent(TASK, compose(status="pending_confirmation", actions=["confirm"]), *_WAITING) is not None


def test_what_was_sent_or_is_kept_back_is_no_cause() -> None:
    """It was sent, shown again, confirmed by others, made for somebody else, wanted as a draft; or nobody waits."""
    send = Call("messenger.send", {"messageId": "m-55"}, {"ok": True})
    for steps in (
        [DRAFT, send, *_WAITING],
        [DRAFT, Call("messenger.act", {"id": "m-9", "do": "send"}, {"ok": True}), *_WAITING],
        [DRAFT, Call("messenger.get", {"id": "m-55"}, {"messageId": "m-55", "state": "sent"}), *_WAITING],
        [compose(state="sent"), *_WAITING],
        [compose(status="pending_confirmation"), *_WAITING],
        [compose("pages.create", state="draft"), *[Call("jobs.get", {"id": "j-3"}, {"state": "running"}), PAUSE] * 3],
        [Call("messenger.get", {"id": "m-1"}, {"messageId": "m-55", "state": "draft"}), *_WAITING],
        [Said("Do not send anything before I have seen it."), DRAFT, *_WAITING],
        [Said("Make a draft for me."), DRAFT, *_WAITING],
        [DRAFT, LOOK, PAUSE],
        [DRAFT, *_WAITING, Call("av.order", {"room": "A"}, {"orderId": "AV-92"})],
    ):
        assert _unsent(TASK, *steps) is None, steps
