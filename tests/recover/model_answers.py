"""A reviewer's PROCEED in a session of three agents, answered with or without a model that says what it is told to say."""

from __future__ import annotations

from typing import Any

from ctxmgr.recover.model.consultation import from_proposal
from ctxmgr.recover.recovery import Consult, ConsultationResult, Recovery, RecoveryOptions
from ctxmgr.store import Store
from ctxmgr.types.model_proposal import Proposal
from ctxmgr.types.route import ContextRequest, Continuation, ModelUse
from tests.recover.runs import chain

USE = ModelUse(name="test:m", mode="tools", requests=2, tool_calls=1, input_tokens=10, output_tokens=5, seconds=0.5)
ASKED = ContextRequest(
    session="chain", type="PROCEED", requester="reviewer", reason="done", source="agentRequest", goal="carry on"
)


def answers(records: list[dict[str, Any]] | None = None, **fields: Any) -> Consult:
    """Return a model that answers so, past the gate."""
    known = {"target": "planner", "reason": "it has the plan", "summary": "All is reviewed.", **fields}
    proposal = Proposal.model_validate(known)
    return lambda draft: ConsultationResult(from_proposal(draft, proposal, USE), records or [])


def recovery(store: Store, consult: Consult | None = None, **options: Any) -> Recovery:
    """Return the recovery of a request with these options."""
    return Recovery(store, 1, ASKED, None, options=RecoveryOptions(consult=consult, **options))


def answered(store: Store, consult: Consult | None, **options: Any) -> Continuation:
    """Return the answer to the reviewer's PROCEED in a session of three agents."""
    if store.sessions.key("chain") is None:
        store.append(chain())
    return recovery(store, consult, **options).answer()
