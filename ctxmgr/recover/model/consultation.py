"""Ask a model to improve the rules' answer, and decide what to use of its answer.

No history goes to a model that nobody has named. The recovery itself writes what the model wants written. It marks this as
the model's, writes it together with the continuation, and only if the model's answer is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ctxmgr.base.light_dataclass import dataclass, replace
from ctxmgr.base.paths import replace_file, require_no_link
from ctxmgr.diagnose import CauseExplanation
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.errors import CtxmgrError, InvalidInput
from ctxmgr.history.query.tools import note_record, snapshot_record
from ctxmgr.log.codec import Record
from ctxmgr.memory.candidates import Candidates, TextFinder
from ctxmgr.memory.note_memory import EmbeddedMemory, retain_record
from ctxmgr.recover.answer.draft import Additions, Draft, citable
from ctxmgr.recover.answer.facts import count_tokens
from ctxmgr.recover.answer.gate import adds_nothing, allowed_targets, cited_ids, find_cited_entry, objections
from ctxmgr.recover.evidence.brief import Case
from ctxmgr.recover.evidence.quotes import call, citable_ids, clip_middle, display_name, in_line, outcome, quote_text
from ctxmgr.recover.evidence.related import RelatedReader
from ctxmgr.recover.injection import suspicion
from ctxmgr.recover.model.client import Preparation, consult
from ctxmgr.recover.model.config import ModelChoice, chosen, describe
from ctxmgr.recover.model.exchange import Consultation, ModelAnswer
from ctxmgr.recover.model.messages import Fence, narrow, opening_message
from ctxmgr.recover.recovery import Consult, ConsultationResult
from ctxmgr.store import Store
from ctxmgr.store.row_mapper import entry_places
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.memory import RecallRequest, ReflectRequest
from ctxmgr.types.model_proposal import Proposal
from ctxmgr.types.operations import ModelRequest, PlanView
from ctxmgr.types.route import Alternative, Fact, ModelUse, Section
from ctxmgr.types.view import EntryView

_TEXT = 600
_SUMMARY = 1_200
_BASIS = "suggested by the model"
_PLACES = lazy_pattern(r" ?\((?:see |in |at )?@\d+(?:,? (?:and )?@\d+)*\)")


def from_proposal(draft: Draft, proposal: Proposal, use: ModelUse) -> Additions:
    """Return the additions of a proposal that passed the gate, all marked as the model's and none as verified."""
    target = draft.target
    if proposal.target != target.agent:
        others = f"the rules would have chosen {display_name(target.agent)}"
        reason = f"the model chose it: {quote_text(proposal.reason, 400)}; {others}"
        target = replace(target, agent=proposal.target, reason=reason, back=False)
    told = [(fact, f"By the model{_from(draft, fact.entries)}: {quote_text(fact.text, _TEXT)}") for _, fact in proposal.claims]
    facts = [Fact(text=text, entries=citable_ids(fact.entries), label="reconstructed") for fact, text in told]
    steps = [(item, quote_text(item.text, _TEXT)) for _, item in proposal.steps]
    leads = [Alternative(text=text, basis=_BASIS, entries=citable_ids(item.entries)) for item, text in steps]
    said = [proposal.summary, *([f"Then check: {proposal.check}"] if proposal.check else [])]
    words = Section(title="In the words of the model, not verified", text=quote_text("\n".join(said), _SUMMARY))
    return Additions(
        target=target, facts=tuple(facts), alternatives=tuple(leads), sections=(words,),
        unanswered=tuple(clip_middle(text, _TEXT) for text in proposal.unanswered),
        dropped={item.entry: item.reason for item in proposal.dropped}, cause=_cause(draft, proposal), model=use,
    )  # fmt: skip


def _cause(draft: Draft, proposal: Proposal) -> CauseExplanation | None:
    """Return the model's cause and step with the lines that they rest on, followed by those of the rules."""
    cause, step, evidence, case = proposal.cause, proposal.next_step, draft.evidence, draft.case
    if cause is None or step is None:
        return None
    rows = [find_cited_entry(case, name) for name in dict.fromkeys([*cause.entries, *step.entries])]
    found = diagnosis(
        "model", f"A model that read the record says, not verified: {_sentence(cause.text)}",
        f"A model suggests: {_sentence(step.text)}", *(evidence.quote(row) for row in rows if row),
        check=proposal.check, confidence="low",
    )  # fmt: skip
    rules = [] if draft.cause is None else [draft.cause.found]
    said = [(f"The rules, which are not sure, say: {each.cause}", None) for each in rules if each.kind != "unknown"]
    after = [f"Else: {each.next_step}" for each in rules]
    return citable(CauseExplanation(found, causes=said, after=after), evidence, case.related)


def _sentence(text: str) -> str:
    """Return a model's text in one line, as a sentence; entry references are removed, since they mean nothing to an agent."""
    plain = _PLACES.sub("", in_line(text, _TEXT)).strip()
    return plain if plain.endswith((".", "!", "?")) else f"{plain}."


def _from(draft: Draft, entries: Sequence[str]) -> str:
    """Return the other sessions that a statement is based on, in words; "" if it is based on this session alone."""
    related = draft.case.related
    rows = [] if related is None else [row for name in entries if (row := related.entry(name)) is not None]
    return "".join(f", {where}" for where in dict.fromkeys(related.describe(row).where for row in rows)) if related else ""


def from_lead(entry: EntryView, need: str, use: ModelUse) -> Additions:
    """Return an unverified lead: the record's own words, with the remark that only a model takes them for an answer."""
    where = f"@{entry.index}, {display_name(entry.agent)}"
    told = f"A lead, not verified ({where}): {call(entry, 160)} -> {outcome(entry, 400)}"
    advice = f"check whether @{entry.index} answers {quote_text(need, 200)}"
    return Additions(
        facts=(Fact(text=told, entries=[entry.id], label="reconstructed"),),
        alternatives=(Alternative(text=advice, basis="a model thinks so; not verified", entries=[entry.id]),),
        model=use,
    )


_CANDIDATES = 80
_SHORTEST_ID = 6
_LEAST, _REST = 0.1, 0.5
"""Least seconds that a model gets, and seconds reserved for recording the answer."""


def consultant(
    store: Store,
    wanted: ModelRequest,
    environment: Mapping[str, str],
    table: Mapping[str, Any],
    progress: Callable[[str], None] | None,
    model: Any = None,
) -> Consult | None:
    """Return the function that asks the named model; None if no model is named.

    ``model`` is a pydantic-ai model to ask instead, such as that of a test or of an embedding program.

    Raises:
        InvalidInput: the model can't be asked: a setting is wrong, a package is not installed, or a key is missing.
    """
    choice = chosen(wanted, environment, table)
    if choice is None:
        return None
    if progress is not None:
        progress(f"recovering by the rules first; then {describe(choice, environment).text}")
    loading = Preparation(choice) if model is None else None  # loads while the rules read the history
    transcript = None if wanted.transcript is None else Path(wanted.transcript)
    if transcript is not None:
        _write_private(transcript, b"[]\n")  # refuse a path that can't be written before anything is sent
    return _Consultant(store, choice, transcript, progress, model, loading)


def plan_view(drafted: Draft, store: Store, choice: ModelChoice, environment: Mapping[str, str]) -> PlanView:
    """Return what a recovery with a model would do, and where it would send history; nothing is contacted."""
    question, prompt, sends = _question(drafted, store), None, describe(choice, environment).text
    if choice.mode == "tools":
        prompt = opening_message(question, choice)
    elif _open(drafted):
        prompt, _ = narrow(question, choice)
    else:
        sends = f"nothing: the rules have found an answer, and {choice.name} would only be asked for one"
    return PlanView(
        candidates=allowed_targets(drafted), fixed=drafted.target.fixed, model=choice.name, sends=sends, prompt=prompt,
        prompt_tokens=0 if prompt is None else count_tokens(prompt),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Consultant:
    store: Store
    choice: ModelChoice
    transcript: Path | None
    progress: Callable[[str], None] | None
    model: Any
    loading: Preparation | None

    def __call__(self, draft: Draft) -> ConsultationResult | None:
        if self.choice.mode == "lead" and not _open(draft):
            return None
        if self.loading is not None:
            self.loading.wait()
        heard = consult(
            _question(draft, self.store),
            # The limit is for the answer to be given (SC-004). It counts from the first request.
            replace(self.choice, seconds=max(_LEAST, round(self.choice.seconds - _REST, 1))),
            # The consultation itself refuses what the model was not shown. Its brief showed what the rules cite.
            check=lambda proposal: objections(proposal, draft),
            progress=self.progress,
            model=self.model,
        )
        if self.transcript is not None:
            _write_private(self.transcript, heard.transcript + b"\n")
        if heard.use.failure is not None:
            return _failure_result(heard.use, _withhold_orders(heard.use.failure))
        if heard.proposal is not None and adds_nothing(heard.proposal, draft):
            return _failure_result(heard.use, "its answer added nothing to that of the rules")
        if heard.proposal is not None:
            return ConsultationResult(from_proposal(draft, heard.proposal, heard.use), self._records(draft, heard))
        entry = None if heard.lead is None or heard.lead.entry is None else draft.case.reader.entry(heard.lead.entry)
        if heard.lead is None or entry is None or entry.id in draft.case.reader.withheld:
            return ConsultationResult(Additions(model=heard.use))
        if (why := suspicion(heard.lead.need)) is not None:
            return _failure_result(heard.use, f"what it says is needed {why}")
        return ConsultationResult(from_lead(entry, heard.lead.need[:300], heard.use))

    def _records(self, draft: Draft, heard: ModelAnswer) -> list[Record]:
        """Return the records that the model wants written, without any that read like an order to a later reader."""
        store, key = self.store, self.store.sessions.key(draft.case.request.session)
        fair = [note.model_copy(update={"tags": [tag for tag in note.tags if suspicion(tag) is None]}) for note in heard.notes]
        wanted: list[tuple[str, Callable[[], Record]]] = [
            *((note.content, partial(note_record, store, key, note)) for note in fair),
            *((f"{each.summary}\n{each.reasoning}", partial(snapshot_record, store, key, each)) for each in heard.snapshots),
            *((memory.text, partial(retain_record, store, key, memory)) for memory in heard.memories),
        ]
        return [record for text, make in wanted if suspicion(text) is None for record in _record_or_nothing(make)]


def _failure_result(use: ModelUse, why: str) -> ConsultationResult:
    return ConsultationResult(Additions(model=use.model_copy(update={"failure": why})))


def _withhold_orders(failure: str) -> str:
    """Return why a model failed, without text that reads like an order: it is shown in the answer and in a note."""
    why = suspicion(failure)
    return failure if why is None else f"{failure.partition(':')[0][:80]}: [withheld: it {why}]"


def _record_or_nothing(make: Callable[[], Record]) -> list[Record]:
    """Return one record, or none if what it names is gone by now."""
    try:
        return [make()]
    except CtxmgrError:
        return []


def _open(draft: Draft) -> bool:
    """Whether the rules have found no answer. Only then is the narrow question asked."""
    return bool(draft.brief.unanswered) or not any(found.sure for found in draft.brief.relevant)


def _question(draft: Draft, store: Store) -> Consultation:
    own, case, related = draft.continuation(), draft.case, draft.case.related
    key = store.sessions.key(case.request.session)
    cites = cited_ids(own)
    places = {} if key is None else entry_places(store.engine, key, cites)
    memory = None if related is None else _Memory(EmbeddedMemory(store, finder=_Related(TextFinder(store), related)))
    return Consultation(
        reader=case.reader, request=case.request, allowed=allowed_targets(draft), cited=cites,
        brief=_with_indexes(own.context.brief, places), fence=Fence(), memory=memory,
        suspicion=lambda entry: case.reader.withheld.get(entry.id),
        candidates=_candidates(draft), places=places, trouble=_trouble(case), related=related,
    )  # fmt: skip


def _trouble(case: Case) -> str:
    if case.finding is not None:
        return "hang" if case.finding.severity == "hung" else "loop"
    return "proceed" if case.request.type == "PROCEED" else "introspect"


def _with_indexes(brief: str, places: Mapping[str, int]) -> str:
    """Return the brief with entry ids replaced by their indexes, which the model uses."""
    for name in sorted(places, key=len, reverse=True):
        if len(name) >= _SHORTEST_ID:
            brief = brief.replace(name, f"@{places[name]}")
    return brief


def _candidates(draft: Draft) -> list[EntryView]:
    """Return the entries that the narrow question offers: those that may be related, then the newest others."""
    brief = draft.brief
    aside = {entry.id for entry in brief.members} | set(draft.case.reader.withheld)
    related = [found.row for found in brief.relevant if isinstance(found.row, EntryView)]
    newest = draft.case.reader.newest(2 * _CANDIDATES)
    rows = {entry.id: entry for entry in [*related, *brief.agents, *brief.failures, *newest] if entry.id not in aside}
    return list(rows.values())[:_CANDIDATES]


@dataclass(frozen=True, slots=True)
class _Related:
    """Finds memories of this session and of related ones; memories of other projects are withheld."""

    finder: TextFinder
    related: RelatedReader

    def find(self, request: RecallRequest) -> Candidates:
        found = self.finder.find(request)
        return replace(
            found,
            episodes=[each for each in found.episodes if self.related.may_tell(each.session)],
            outdated=[each for each in found.outdated if self.related.may_tell(each.session)],
        )


@dataclass(frozen=True, slots=True)
class _Memory:
    """The reading side of memory, without memories that read like instructions."""

    memory: EmbeddedMemory

    def recall(self, query: str, limit: int) -> Sequence[Any]:
        found = self.memory.recall(RecallRequest(query=query, limit=limit)).episodes
        return [episode.to_json() for episode in found if suspicion(episode.text) is None]

    def reflect(self, question: str) -> Any:
        told = self.memory.reflect(ReflectRequest(query=question)).to_json()
        return told if suspicion(str(told)) is None else {"withheld": "it reads like instructions to an agent"}


def _write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner may read, since it holds recorded text.

    Raises:
        InvalidInput: it can't be written, or is no regular file.
    """
    try:
        require_no_link(str(path), writing=True)
        if path.exists() and not path.is_file():
            raise InvalidInput(f"the transcript {str(path)!r} is no regular file", "name another file")
        replace_file(path, data)
    except OSError as error:
        raise InvalidInput(f"the transcript {str(path)!r} can't be written: {error.strerror}", "name another file") from None
