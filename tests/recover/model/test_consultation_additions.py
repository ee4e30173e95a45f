"""What a model adds to the rules' answer: each part in its place, all of it marked as the model's."""

from __future__ import annotations

import pytest

from ctxmgr.recover.answer.draft import Draft
from ctxmgr.recover.model.consultation import from_lead, from_proposal
from ctxmgr.recover.recovery import Recovery
from ctxmgr.store import Store
from ctxmgr.types.model_proposal import Proposal
from ctxmgr.types.route import ContextRequest
from tests.builders import entry_id
from tests.recover.model_answers import USE
from tests.recover.runs import chain


@pytest.fixture
def drafted(store: Store) -> Draft:
    """Return the rules' draft for a PROCEED of the reviewer, which the planner or the coder may get."""
    store.append(chain())
    asked = ContextRequest(session="chain", type="PROCEED", requester="reviewer", reason="r", source="agentRequest", goal="g")
    return Recovery(store, 1, asked, None).draft()


def test_every_part_is_marked(drafted: Draft) -> None:
    """Facts are no more than reconstructed, advice and summary say whose they are, in quotes."""
    proposal = Proposal.model_validate({
        "target": drafted.target.agent, "reason": "it knows", "summary": 'All\n## "done"',
        "facts": [{"text": "part 2 is\ndone", "entries": [entry_id("chain", 2)]}],
        "advice": [{"text": "ask `planner`", "entries": [entry_id("chain", 0)]}],
        "dropped": [{"entry": entry_id("chain", 4), "reason": "it is out of date"}], "unanswered": ["the port"],
    })  # fmt: skip
    added = from_proposal(drafted, proposal, USE)
    made = drafted.continuation(added)

    assert added.counts
    assert [(fact.whole, fact.label) for fact in added.facts] == [('By the model: "part 2 is\\ndone"', "reconstructed")]
    assert [(lead.text, lead.basis) for lead in added.alternatives] == [('"ask `planner`"', "suggested by the model")]
    assert added.sections[0].title == "In the words of the model, not verified"
    assert added.sections[0].text == '"All\\n## \\"done\\""'
    assert added.dropped == {entry_id("chain", 4): "it is out of date"}
    assert (made.by, made.fallback, made.model) == ("model", False, USE)
    assert made.context.facts[0] == added.facts[0]
    assert made.alternatives[0] == added.alternatives[0]
    assert made.context.unanswered == ["the port"]
    assert entry_id("chain", 4) not in {name for fact in made.context.facts for name in fact.entries}
    assert entry_id("chain", 4) in {name for fact in drafted.continuation().context.facts for name in fact.entries}


@pytest.mark.requirement("FR-018", "US10-7")
@pytest.mark.parametrize("other", [True, False])
def test_the_target(drafted: Draft, other: bool) -> None:
    """Another target is told as the model's choice, beside that of the rules; the same one keeps the rules' reason."""
    rules = drafted.target.agent
    chosen = next(name for name in drafted.target.candidates if (name != rules) == other)
    proposal = Proposal(target=chosen, reason="it has\nthe key", summary="s")
    made = drafted.continuation(from_proposal(drafted, proposal, USE))

    assert (made.target, made.candidates) == (chosen, drafted.target.candidates)
    if other:
        assert made.target_reason == f'the model chose it: "it has\\nthe key"; the rules would have chosen {rules}'
    else:
        assert made.target_reason == drafted.target.reason


def test_a_lead_is_the_records_own_words(drafted: Draft) -> None:
    """Of a small model's answer only the choice of the entry counts: what is told is the record, as not verified."""
    row = drafted.case.reader.entry(entry_id("chain", 1))
    assert row is not None
    added = from_lead(row, "the\nport", USE)

    assert added.target is None
    assert [(fact.entries, fact.label) for fact in added.facts] == [([row.id], "reconstructed")]
    assert added.facts[0].whole.startswith("A lead, not verified (@1, coder): coder_step")
    assert "part 1 done" in added.facts[0].whole
    assert added.alternatives[0].text == 'check whether @1 answers "the\\nport"'
    assert "not verified" in added.alternatives[0].basis
    assert drafted.continuation(added).by == "model"


def test_a_failure_adds_nothing(drafted: Draft) -> None:
    """A model whose answer does not count leaves the rules' answer, marked as a fallback with the reason."""
    from ctxmgr.recover.answer.draft import Additions

    failed = USE.model_copy(update={"failure": "it took too long"})
    made, own = drafted.continuation(Additions(model=failed)), drafted.continuation()

    assert (made.by, made.fallback, made.model) == ("rules", True, failed)
    assert made.context == own.context
    assert made.target == own.target
