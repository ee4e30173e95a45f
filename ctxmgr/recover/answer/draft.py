"""Build the rules' own answer: all parts of a continuation that follow from the history, without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from ctxmgr.base.light_dataclass import dataclass, field, replace
from ctxmgr.detect.text.fingerprints import mask_volatile
from ctxmgr.diagnose import CauseExplanation, Evidence, explain, explain_contrast, messages_of
from ctxmgr.diagnose.ending import find_ending
from ctxmgr.diagnose.next_looks import is_flaky
from ctxmgr.history.session_evidence import RelatedEntries, session_folder
from ctxmgr.log.codec import encode
from ctxmgr.log.ids import new_id
from ctxmgr.recover.answer.facts import (
    SIZES,
    Amounts,
    brief_text,
    build_context,
    collect_facts,
    count_tokens,
    list_alternatives,
    repeated_calls,
)
from ctxmgr.recover.answer.prompt import PromptInput, write_prompt
from ctxmgr.recover.earlier_answers import without_held
from ctxmgr.recover.evidence.brief import Brief, Case, prepare_brief
from ctxmgr.recover.evidence.quotes import CITABLE, citable_ids, clean, clip_middle
from ctxmgr.recover.evidence.related import RelatedReader
from ctxmgr.recover.stuck_request import build_pattern
from ctxmgr.recover.target import Target, build_target_request, choose_target
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis, Quote
from ctxmgr.types.route import Alternative, Context, Continuation, DoNotRepeat, Fact, ModelUse, Section
from ctxmgr.types.view import EntryView

MAX_BYTES = 60_000
"""Maximum size of a continuation record, in bytes. It keeps continuations small enough for a message and a prompt."""

_REASON = 2_000
_QUOTES = 6
_TROUBLE = lazy_pattern(r"(?i)\b(?:fail\w*|errors?|broken|stuck|crash\w*|hangs?|(?:does|is|can|wo)(?:n't| ?not))\b")
"""Words that state a failure."""
_LOOKED_AT = 400
"""Most entries searched for a cause. Each is first checked for injections, which takes time."""


@dataclass(frozen=True, slots=True)
class Additions:
    """The additions of a model to the rules' answer, after they have passed the gate.

    Attributes:
        target: the allowed agent that the model chose; None to keep the rules' choice.
        facts, alternatives, sections, unanswered: added to those of the rules.
        dropped: id -> reason of entries that the rules cited and the model leaves out.
        cause: the model's own cause and next step; shown first if the rules are not sure of a cause.
        model: the use of the model; set even if its answer failed and adds nothing.
    """

    target: Target | None = None
    facts: tuple[Fact, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    sections: tuple[Section, ...] = ()
    unanswered: tuple[str, ...] = ()
    dropped: Mapping[str, str] = field(default_factory=lambda: dict[str, str]())
    cause: CauseExplanation | None = None
    model: ModelUse | None = None

    @property
    def counts(self) -> bool:
        """Whether the answer contains anything from the model."""
        told = self.target or self.facts or self.alternatives or self.sections or self.unanswered or self.dropped
        return self.model is not None and self.model.failure is None and bool(told)


@dataclass(frozen=True, slots=True)
class Draft:
    """The findings of the rules. They yield a continuation with or without a model's additions.

    Attributes:
        evidence: the part of the history that was searched for a cause.
        cause: why the calls fail, as far as the record shows it.
        unanswered: questions of the request that neither a record nor the cause answers.
        ending: how the run ended well, if the stuck handler asks; "" if it did not.
    """

    case: Case
    target: Target
    brief: Brief
    leads: list[Alternative]
    evidence: Evidence
    cause: CauseExplanation | None
    unanswered: Sequence[str] = ()
    ending: str = ""

    @property
    def is_sure(self) -> bool:
        """Whether the record itself shows the cause."""
        return self.cause is not None and self.cause.found.confidence == "high"

    def continuation(self, added: Additions | None = None) -> Continuation:
        """Return the most detailed continuation that fits into `MAX_BYTES`.

        Raises:
            InvalidInput: no request that the target accepts can be built.
        """
        added = added or Additions()
        made = self._write_continuation(SIZES[0], added)
        for amounts in SIZES[1:]:
            if len(encode(made.to_json())) <= MAX_BYTES:
                break
            made = self._write_continuation(amounts, added)
        return made

    def _write_continuation(self, amounts: Amounts, added: Additions) -> Continuation:
        request, finding, table, target = self.case.request, self.case.finding, self.case.table, added.target or self.target
        stalled = finding is not None and finding.severity == "hung"
        kind = request.type if request.source != "stuckHandler" or target.back else "PROCEED"
        steps = repeated_calls(self.brief, finding, amounts)
        leads = [*added.alternatives, *self.leads]
        context = self._context(amounts, added, target, steps, leads)
        pattern = build_pattern(finding, citable_ids(list(finding.members), 2 * amounts.ids)) if finding else None
        asked = build_target_request(self.case.reader, table.route(target.agent), request, context.prompt, context.summary)
        goal = clip_middle(self._goal(), _REASON if request.source != "stuckHandler" else amounts.words)
        return Continuation(
            id=new_id(), session=request.session, request_type=kind, source=request.source,
            target=target.agent, candidates=target.candidates, target_reason=target.reason,
            reason=clip_middle(request.reason, _REASON), goal=goal, context=context,
            loop=None if stalled else pattern, stall=pattern if stalled else None, do_not_repeat=steps, alternatives=leads,
            snapshot=None, notes=[], by="model" if added.counts else "rules",
            fallback=added.model is not None and added.model.failure is not None, attempts=self.case.attempt,
            routing=table.routing, request=asked, diagnosis=self.cause and self.cause.diagnosis,
            quarantined=citable_ids(list(self.case.reader.withheld)), model=added.model,
        )  # fmt: skip

    def _context(
        self, amounts: Amounts, added: Additions, target: Target, steps: list[DoNotRepeat], leads: list[Alternative]
    ) -> Context:
        case, dropped = self.case, added.dropped.keys()
        known = [fact for fact in collect_facts(case, self.brief, amounts) if not fact.entries or {*fact.entries} - dropped]
        plain = build_context(case, self.brief, [*case.outside_facts, *added.facts, *known], steps, amounts)
        unanswered = list(dict.fromkeys([*self.unanswered, *added.unanswered]))
        context = plain.model_copy(update={"sections": [*added.sections, *plain.sections], "unanswered": unanswered})
        if case.known_facts is not None:
            context = without_held(context, case.known_facts(target.agent))
        with self.evidence.days_named():
            prompt = write_prompt(self._prompt_input(added, target, context))
        brief = brief_text(context, case.request.goal, steps, leads, amounts)
        return context.model_copy(update={"prompt": prompt, "brief": brief, "token_count": count_tokens(prompt)})

    def _prompt_input(self, added: Additions, target: Target, context: Context) -> PromptInput:
        first = added.cause if not self.is_sure else None
        leads, told = (added.alternatives[1:], added.facts[1:]) if first is not None else (added.alternatives, added.facts)
        by_model = [*(lead.text for lead in leads[:1]), *(fact.text for fact in told[:2])]
        found = self.cause.found if self.cause is not None and self.case.finding is None else None
        calls, times = ([], 0) if found is None else _find_calls(self.evidence, found)
        failing = self.evidence.failing_calls[:1]
        alike = self.evidence.equal_failures(failing[0]) if failing else []
        held = None if context.diff_of is None else frozenset(name for each in context.held for name in each.entries)
        return PromptInput(
            case=self.case, brief=self.brief, cause=first or self.cause, target=target.agent, calls=calls, times=times,
            alike=alike, unanswered=context.unanswered, model_words=by_model, held_records=held, ending=self.ending,
        )  # fmt: skip

    def _goal(self) -> str:
        """Return the task in the user's words if the stuck handler asks: its own goal is only to get on with the task."""
        words, request = self.brief.goal, self.case.request
        return request.goal if words is None or request.source != "stuckHandler" else clean(words.text)


def draft(case: Case) -> Draft:
    """Return the findings of the rules for a case.

    Raises:
        RecoveryRefused, InvalidInput: as `choose_target`.
    """
    target, brief, evidence = choose_target(case), prepare_brief(case), _evidence(case)
    with evidence.days_named():
        ending = find_ending(evidence) if case.request.requester is None else ""
        cause = None if ending else _cause(case, evidence)  # what failed before a good end is settled
    drafted = Draft(case, target, brief, [], evidence, cause, ending=ending)
    # A sure cause answers all that a stuck session leaves open. For an agent, any cause answers failures that it only states.
    told = drafted.is_sure if case.request.requester is None else drafted.cause is not None
    left = [text for text in brief.unanswered if not told or (case.request.requester and _asks(text))]
    asked = brief if case.finding is not None else replace(brief, unanswered=left)
    return replace(drafted, leads=list_alternatives(case, asked, sure=drafted.is_sure), unanswered=left)


def _asks(text: str) -> bool:
    return "?" in text or not _TROUBLE.search(text)


def _find_calls(evidence: Evidence, found: Diagnosis) -> tuple[list[EntryView], int]:
    """Return the calls that a cause is about, and how often they ended alike; no calls if one of them also ended otherwise."""
    quoted = [each for each in evidence.recent if found.evidence and each.id == found.evidence[0].entry]
    calls = evidence.failing_calls or evidence.repeated_calls or (quoted if found.kind == "unknown" else [])
    if not calls or any(is_flaky(evidence, each) for each in calls) or calls[0].status == "open":
        return [], 0
    failed = evidence.has_failed(calls[0])
    same = calls[:1] if failed else calls  # different commands that run one program and get the same answer
    said = mask_volatile(evidence.text(calls[0]))
    count = sum(
        evidence.has_failed(each) if failed else mask_volatile(evidence.text(each)) == said
        for call in same for each in evidence.equal_calls(call)
    )  # fmt: skip
    return (same if failed or found.kind != "unknown" else []), count  # otherwise it is not certain that anything is wrong


def _evidence(case: Case) -> Evidence:
    reader, related = case.reader, case.related
    recent, said = list(reversed(reader.newest(_LOOKED_AT))), messages_of([*reader.streamed(), *reader.heard()])
    elsewhere: Sequence[EntryView] = () if related is None else RelatedEntries(lambda: related.entries)
    return Evidence(recent, case.finding, said, elsewhere, session_folder(reader.store, reader.session))


def _cause(case: Case, evidence: Evidence) -> CauseExplanation | None:
    """Return why a session is stuck or why its last calls failed, and what to do next; None if nothing can be said."""
    cause = explain(evidence)
    # For an agent's own question, only a loop, a stall or a failing call justifies a guess at the cause.
    if cause is None and (case.request.requester is None or case.finding is not None or evidence.failing_calls):
        cause = explain_contrast(evidence)
    return None if cause is None else citable(cause, evidence, case.related)


def citable(cause: CauseExplanation, evidence: Evidence, related: RelatedReader | None) -> CauseExplanation:
    """Return a cause whose quotes have citable ids, and name their source if it is another session."""
    here = {entry.id for entry in evidence.entries}
    quotes = _citable(cause.found.evidence, here, related)
    return cause._replace(
        found=cause.found.model_copy(update={"evidence": tuple(quotes[:_QUOTES])}), quotes=_citable(cause.quotes, here, related)
    )


def _citable(quotes: Sequence[Quote], here: AbstractSet[str], related: RelatedReader | None) -> list[Quote]:
    """Return the quotes; one of another session names it, and ids longer than `CITABLE`, which sources choose, are gone."""
    there = {} if related is None else {entry.id: entry for entry in related.entries if entry.id not in here}
    found: list[Quote] = []
    for each in quotes:
        if related is not None and each.entry in there:
            each = each.model_copy(update={"source": related.describe(there[each.entry]).source})
        found.append(each if len(each.entry or "") <= CITABLE else each.model_copy(update={"entry": None}))
    return found
