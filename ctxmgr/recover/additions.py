"""Turn what a model answered, once the gate has passed it, into what is told beside the rules' answer."""

from __future__ import annotations

from dataclasses import replace

from ctxmgr.recover.draft import Additions, Draft
from ctxmgr.recover.quoting import call, cited, clipped, named, outcome, quoted
from ctxmgr.types.proposal import Lead, Proposal
from ctxmgr.types.route import Alternative, Fact, ModelUse, Section
from ctxmgr.types.view import EntryView

_TEXT = 600
_SUMMARY = 1_200
_BASIS = "suggested by the model"


def from_proposal(draft: Draft, proposal: Proposal, use: ModelUse) -> Additions:
    """Return what a passed proposal adds. All of it is marked as the model's, and nothing of it as verified."""
    target = draft.target
    if proposal.target != target.agent:
        reason = f"the model chose it: {quoted(proposal.reason, 400)}; the rules would have chosen {named(target.agent)}"
        target = replace(target, agent=proposal.target, reason=reason, back=False)
    told = [
        Fact(text=f"By the model: {quoted(fact.text, _TEXT)}", entries=cited(fact.entries), label="reconstructed")
        for fact in proposal.facts
    ]
    leads = [Alternative(text=quoted(item.text, _TEXT), basis=_BASIS, entries=cited(item.entries)) for item in proposal.advice]
    words = Section(title="In the words of the model, not verified", text=quoted(proposal.summary, _SUMMARY))
    return Additions(
        target=target,
        facts=tuple(told),
        alternatives=tuple(leads),
        sections=(words,),
        unanswered=tuple(clipped(text, _TEXT) for text in proposal.unanswered),
        dropped={item.entry: item.reason for item in proposal.dropped},
        model=use,
    )


def from_lead(entry: EntryView, lead: Lead, use: ModelUse) -> Additions:
    """Return an unverified lead: the record's own words, and that only a model thinks they answer."""
    where = f"@{entry.index}, {named(entry.agent)}"
    told = f"A lead, not verified ({where}): {call(entry, 160)} -> {outcome(entry, 400)}"
    need = quoted(lead.need, 200)
    return Additions(
        facts=(Fact(text=told, entries=[entry.id], label="reconstructed"),),
        alternatives=(
            Alternative(
                text=f"check whether @{entry.index} answers {need}", basis="a model thinks so; not verified", entries=[entry.id]
            ),
        ),
        model=use,
    )
