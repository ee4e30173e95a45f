"""What a model proposes: every text and every entry of it has a place by which it is objected to."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.types.model_proposal import MAX_FACTS, Lead, Proposal

WHOLE: dict[str, Any] = {
    "target": "coder", "reason": "r", "summary": "s", "cause": {"text": "c", "entries": ["e1"]},
    "next_step": {"text": "n", "entries": ["e2", "e1"]}, "check": "k", "facts": [{"text": "f", "entries": ["e3"]}],
    "advice": [{"text": "a", "entries": ["e2"]}], "dropped": [{"entry": "e9", "reason": "d"}], "unanswered": ["u"],
}  # fmt: skip


def test_every_text_has_its_place() -> None:
    """Nothing that a model writes is left out of what is checked."""
    made = Proposal.model_validate(WHOLE)

    assert dict(made.texts) == {
        "the reason": "r", "the summary": "s", "the cause": "c", "fact 1": "f", "the next step": "n", "advice 1": "a",
        "the check": "k", "what is unanswered": "u", "the reason for leaving an entry out": "d",
    }  # fmt: skip
    assert made.cited == ["e1", "e3", "e2"]


def test_what_is_left_out_has_no_place() -> None:
    """An answer may have neither cause nor step."""
    made = Proposal.model_validate({name: WHOLE[name] for name in ("target", "reason", "summary")})

    assert (made.claims, made.steps, made.cited, len(made.texts)) == ([], [], [], 2)


@pytest.mark.parametrize(
    "change",
    [
        {"target": ""}, {"target": "x" * 257}, {"reason": "x" * 401}, {"summary": ""}, {"check": "x" * 201},
        {"facts": [WHOLE["cause"]] * (MAX_FACTS + 1)}, {"unanswered": ["x" * 301]}, {"unanswered": ["x"] * 6},
        {"target": ["coder"]},
    ],
)  # fmt: skip
def test_what_is_too_long_is_refused(change: dict[str, Any]) -> None:
    """A model writes on until it is stopped."""
    with pytest.raises(ValueError, match=r".+"):
        Proposal.model_validate({**WHOLE, **change})


@pytest.mark.parametrize("answer", [-1, 201, "x", None, 1.5])
def test_a_number_names_an_entry_or_none(answer: object) -> None:
    """From 0 to 200."""
    with pytest.raises(ValueError, match=r".+"):
        Lead.model_validate({"need": "x", "answer": answer})
