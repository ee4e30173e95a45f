"""What a model adds to the rules' answer: each part in its place, all of it marked as the model's."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.base.light_dataclass import replace
from ctxmgr.recover.answer.draft import Draft
from ctxmgr.recover.model.consultation import from_lead, from_proposal
from ctxmgr.recover.recovery import Recovery
from ctxmgr.recover.stuck_request import build_request
from ctxmgr.store import Store
from ctxmgr.types.model_proposal import Proposal
from ctxmgr.types.operations import DetectRequest
from ctxmgr.types.route import ContextRequest
from tests.builders import entry_id
from tests.recover.model.asking import records
from tests.recover.model_answers import USE
from tests.recover.runs import chain, workspace


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


def proposed(**fields: Any) -> Proposal:
    """Return an answer with a cause and a step for the coder that asks the wrong port."""
    cause = {"text": "It asks port 8080, the service listens on `port 8471` (@0)", "entries": [entry_id("stuck", 0)]}
    step = {"text": "Ask port 8471 for the health", "entries": [entry_id("stuck", 0)]}
    known = {
        "target": "coder",
        "reason": "it is stuck",
        "summary": "s",
        "cause": cause,
        "nextStep": step,
        "check": "the answer",
    }
    return Proposal.model_validate({**known, **fields})


def _stuck(store: Store) -> Draft:
    store.append(records())
    (finding, *_) = workspace(store).detect(DetectRequest(session="stuck")).verdicts[0].findings
    return Recovery(store, 1, build_request("stuck", finding, force=False), finding).draft()


def test_the_cause_of_a_model_is_told_first(store: Store) -> None:
    """Where the rules are not sure, cause and step stand on top as the model's, with the line they rest on; then the rules'."""
    given = _stuck(store)
    made = given.continuation(from_proposal(given, proposed(), USE))
    prompt = made.context.prompt

    assert not given.is_sure
    told = [
        "Cause, as far as can be guessed: A model that read the record says, not verified: "
        "It asks port 8080, the service listens on `port 8471`. The rules, which are not sure, say: ",
        "```\nservice listens on port 8471\n```",
        "Next step: A model suggests: Ask port 8471 for the health. Else: ",
        "Then check: the answer",
    ]
    places = [prompt.find(each) for each in told]
    assert -1 not in places
    assert places == sorted(places)
    assert places[2] < 900
    assert "What a model that read the history says" not in prompt
    assert "@0" not in prompt
    assert made.diagnosis == given.continuation().diagnosis
    assert (made.context.facts[0].label, made.alternatives[0].basis) == ("reconstructed", "suggested by the model")
    assert "Then check: the answer" in made.context.sections[0].text


def test_a_sure_cause_of_the_rules_stays(store: Store) -> None:
    """Where the record itself shows the cause, the model's is told further down, fenced and marked."""
    given = _stuck(store)
    assert given.cause is not None
    found = given.cause.found.model_copy(update={"confidence": "high"})
    sure = replace(given, cause=given.cause._replace(found=found))
    prompt = sure.continuation(from_proposal(sure, proposed(), USE)).context.prompt

    assert f"Cause: {found.cause[:40]}" in prompt
    assert "A model suggests" not in prompt
    assert 'What a model that read the history says, not verified:\n```\n"Ask port 8471' in prompt


@pytest.mark.parametrize("missing", ["cause", "nextStep"])
def test_a_cause_without_a_step_is_a_fact(store: Store, missing: str) -> None:
    """One without the other does not stand on top."""
    given = _stuck(store)
    made = given.continuation(from_proposal(given, proposed(**{missing: None}), USE))

    assert "A model suggests" not in made.context.prompt
    assert "What a model that read the history says, not verified" in made.context.prompt


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
