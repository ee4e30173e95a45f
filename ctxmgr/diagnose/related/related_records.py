"""Find what else the record says about the cause in other words: from a person, from another agent, in a look-up.

A failure has a topic (the clock, the disk, memory ...), and a topic has its own words. The search for them covers all
messages and outputs of the session and of related sessions.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from ctxmgr.diagnose.errors.lines import (
    error_details,
    error_members,
    gives_reason,
    is_advice,
    is_telling,
    list_offers,
    quotable_lines,
    quotable_words,
    reasons,
    states_reason,
    telling_line,
)
from ctxmgr.diagnose.errors.refusals import unknown_names
from ctxmgr.diagnose.errors.table import find_topic
from ctxmgr.diagnose.evidence import Evidence, call_input, call_key, clock, program_name
from ctxmgr.diagnose.evidence.calls import command_of, split_command
from ctxmgr.diagnose.evidence.nearest_names import likeness
from ctxmgr.diagnose.evidence.texts import blanks_for_underscores, capital, clip, code, join_names, sentences_in
from ctxmgr.diagnose.interface import MOST_CAUSE, MOST_ERROR, MOST_STEP
from ctxmgr.diagnose.related.alternatives import FREE_INSTEAD, alternatives
from ctxmgr.diagnose.related.arguments import Alternative
from ctxmgr.diagnose.related.definitions import RULE_RELEVANCE, find_definitions, find_rules_on_values
from ctxmgr.diagnose.related.related_lines import MOST_NAMES, RelatedLine, find_names, find_related_lines
from ctxmgr.diagnose.related.users_words import (
    AS_SAID,
    OTHER_WAY,
    USER_SAID,
    WayAround,
    find_named_by_user,
    find_sentence_of_person,
)
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis, Quote
from ctxmgr.types.view import EntryView

_HOLDER = lazy_pattern(
    r"^(?:lock_?)?(?:holder|owner|held_?by|locked_?by|claimed_?by|assignee|assigned_?to|leased_?(?:to|by)|used_?by)$", re.I
)
_UNTIL = lazy_pattern(
    r"(?:until|expires?(?:_?at)?|available_?(?:at|from)|retry_?(?:after|at)|unlocks?_?at|reset_?(?:at)?)$", re.I
)
_CALL, _CUT = lazy_pattern(r"(`[^`]{40})[^`]{4,}`"), r"\1…`"
_ALIKE, _MISSPELT = 0.7, 0.8
_DIGITS = lazy_pattern(r"\d+")
_MISSES = lazy_pattern(
    r"\bnot[ -](?:be )?(?:found|known|defined|exist)|\bno such\b|unknown|unrecogni[sz]ed|\bundefined\b|\b404\b", re.I
)
_OTHER_TROUBLE = lazy_pattern(
    r"permission|denied|forbidden|not (?:authori[sz]ed|allowed|permitted)|unauthori[sz]ed|expired|\b(?:401|403|409|423|429)\b"
    r"|\b(?:taken|held|booked|reserved|occupied|busy|locked|full|closed|frozen)\b|in use|already|conflict|overlap|quota"
    r"|no space|limit|too (?:many|large|long)|exceed|time[d ]?-?out|refused|rejected|read-only",
    re.IGNORECASE,
)
"""Errors about a thing that is known, whose name is therefore right."""
_NAMES_ROOM, _SHORT_STEP, _STATED_STEP = 70, 120, 140
_LEAST_LINE, _LEAST_ADVICE, _MOST_OF_LINE = 16, 4, 0.7
_FILLER = lazy_pattern(
    r"self\.|(?i:assert|expect)|(?:type|input_type|input_value|loc|ctx|code)=|\w+=\d+$|(?i:y/n|yes/no|input_(?:type|value)$)"
    r"|\w*_url$|[\w.@-]+:[\w.-]+/[\w.-]+\.git$|(?:\w+\.)?docs?\.|[\w.-]+/(?:docs?|help|errors?|wiki)/|errors\.pydantic|\.\./"
)
"""Names in an error that are not the subject: a check's functions, a validator's own members, answers to a question, the
address of a repository or of documentation."""
_PERSON_AT = lazy_pattern(r"\w[\w.+-]*@[A-Za-z][\w.-]*")
"""An account or a mail address: somebody to ask, and nothing to look at."""
_INTERPRETS = lazy_pattern(r"(?:python|node|ruby|perl|php|bash|sh|zsh|npx|npm|uv|java|ssh|docker)[\d.]*$")
_PROSE = lazy_pattern(r"^[^{}\[\]]*\b[a-z]+ [a-z]+ [a-z]+ [a-z]+\b")
"""A line that says something, unlike the data of an answer."""
_OF_RULE = lazy_pattern(r"[A-Za-z][._-][A-Za-z]|[A-Z]{3}")
"""A name of a tool, a role or a code in such a line."""
_WORD = lazy_pattern(r"\w{3,40}")
_BROAD = frozenset(("unknown", "knownError", "statedReason", "notFound"))
"""Kinds that rest only on the words of an error. For these, the rest of the record comes first."""
_STATED = frozenset(("knownError", "statedReason"))
"""Kinds among these whose error says what to do. That comes first, unless it is long."""
_OBSTACLES = frozenset(("rateLimited", "resourceHeld", "waitingOnLock", "callHangs", "limitExceeded", "pollingFrozen"))
"""Kinds with an external cause. What the user named in that respect may be a way around."""
_MOST_REASON, _REASONS, _LOOKS, _LEAST_SHOWN, _NEW_WORDS, _SHOWN_NAMES, _QUOTED = 200, 2, 2, 90, 3, 5, 130
_QUOTED_SPAN = lazy_pattern(r"`([^`\n]+)`")
LOOK_AGAIN = "Look again at what you have not looked at since your last changes"  # any line that bears on the failure is better
_BEGIN, _UNKNOWN = "Begin with what the ", "Not known why "
_SHOWN_STEP = "Begin with what is quoted above: none of the calls has used it."
_QUOTED_STEP = "First go by what is quoted above"
_LIKELY = 0.5
"""Minimum relevance of a record that shares no rare word with a failure, if a cause is known."""
_OF_ERROR = 3
"""Number of sentences that come first: what the record offers instead, the words of the error, and its members."""


class CauseExplanation(NamedTuple):
    """Why calls fail and what to do, in parts. A field describes other records in sentences; a prompt shows their lines.

    Attributes:
        found: the diagnosis of a failure class, or the contrast, with all the quotes.
        causes: sentences after its cause, each with the id of the record that it describes, or None.
        before: steps before the look at other records.
        related_lines: the lines of other records.
        after: steps after that look.
        later: the step of ``found`` comes first.
        quotes: lines of possibly related records, if the cause is too certain to describe them.
        error: the most telling lines of the failing call, if the cause rests only on its words.
        says: what says these lines: the call, or a log that was read about it.
    """

    found: Diagnosis
    causes: Sequence[tuple[str, str | None]] = ()
    before: Sequence[str] = ()
    related_lines: Sequence[RelatedLine] = ()
    after: Sequence[str] = ()
    later: bool = True
    quotes: Sequence[Quote] = ()
    error: Quote | None = None
    says: str = "It"

    @property
    def diagnosis(self) -> Diagnosis:
        """The diagnosis with as many of the sentences as fit."""
        steps = [*self.before, _describe_look(self.related_lines, later=self.later), *self.after]
        return self.found.model_copy(update={"cause": self._cause(()), "next_step": self._step(steps)})

    def texts_without(self, shown: Collection[str | None]) -> tuple[str, str]:
        """Return cause and step for a reader who sees the lines of these records. Neither describes them again."""
        quoted = [each for each in self.related_lines if each.key in shown]
        if quoted and self.found.kind == "unknown":  # names of further records would only lead away from the quotes
            shown = {*shown, *(each.key for each in self.related_lines if not each.by_user)}
        hidden = [each for each in self.related_lines if each.key not in shown]
        cause = self._cause(shown)
        after = [each for each in self.after if not (each.startswith(_BEGIN) and _quoted_spans(each) <= _quoted_spans(cause))]
        step = self._step([*self.before, _describe_look(hidden, later=self.later), *after])
        again = [
            each for each in sentences_in(cause) if each.startswith(USER_SAID) and _quoted_spans(each) <= _quoted_spans(step)
        ]
        least = _LIKELY if self.found.kind == "unknown" else RULE_RELEVANCE
        rules = [each for each in quoted if each.relevance >= least and _PROSE.search(each.line)]
        if rules and not any(self.before):
            names = [name for each in rules for name in each.names if _OF_RULE.search(name)][:_LOOKS]
            begin = f"{_QUOTED_STEP}{f' ({join_names(names)})' if names else ''}, where it fits the task."
            step = _join_sentences([begin, *(each for each in sentences_in(step) if not each.startswith((LOOK_AGAIN, _BEGIN)))])
        return " ".join(each for each in sentences_in(cause) if each not in again), step or _SHOWN_STEP

    def minimum_length(self, shown: Collection[str | None]) -> int:
        """Return the length of the cause and of the sentences on the error, without sentences on records that are shown."""
        of_error = self.causes[:_OF_ERROR]
        return len(self.found.cause) + sum(
            len(text) + 1 for text, entry in of_error if text and (not entry or entry not in shown)
        )

    def _cause(self, shown: Collection[str | None]) -> str:
        """Return the cause with the sentences that fit. A long sentence is cut if enough of it remains."""
        cause = self.found.cause
        for each, entry in self.causes:
            room = MOST_CAUSE - len(cause) - 2
            known = " names " in each and _quoted_spans(each) <= _quoted_spans(cause)
            if not each or known or (entry is not None and entry in shown):
                continue
            if len(each) <= room:
                cause += f" {each}"
            elif each.endswith("`.") and room > max(len(each) // 2, _LEAST_SHOWN):
                cause += f" {each[: room - 4].rstrip('`')}…`."
        return cause

    def _step(self, steps: Sequence[str]) -> str:
        """Return the step with the other steps that fit."""
        if self.later:
            return _join_sentences([self.found.next_step, *steps])
        own = sentences_in(self.found.next_step)
        # A person's words on it, and what is free instead, come before the general remedy.
        spoken = [each for each in steps if each.startswith((AS_SAID, FREE_INSTEAD))]
        if self.found.kind == "unknown":  # what the record offers instead comes before the general look
            spoken = [each for each in steps if each in (*self.before, *spoken)]
        rest = [each for each in steps if each not in spoken]
        stated = self.found.kind in _STATED
        # The error's advice comes before the names in the error and the names from the user.
        names = [each for each in rest if stated and each.startswith((_BEGIN, "Give the call "))]
        rest = [each for each in rest if each not in names]
        if len(own[0]) <= (_STATED_STEP if stated else _SHORT_STEP):
            return _join_sentences([*spoken, own[0], *rest, *own[1:], *names], own[0])
        return _join_sentences([*spoken, *rest, *own, *names], own[0])


def gather_explanation(evidence: Evidence, found: Diagnosis, steps: Sequence[EntryView] = ()) -> CauseExplanation:
    """Return a diagnosis with the error's own words and, if it is not certain, with what else the record says.

    Args:
        evidence: the session.
        found: the diagnosis so far.
        steps: the calls that it is about; the failing ones by default.
    """
    about = _list_other_forms(evidence, list(steps or evidence.failing_calls or evidence.repeated_calls))
    if not about:
        return CauseExplanation(found)
    about.sort(key=lambda each: each.id not in _cited(found))  # the calls that the cause quotes come first
    entry, said = about[0], evidence.text(about[0])
    # Of an answer that refuses nothing, no member says more than the answer itself, which is quoted.
    details = _describe_details(evidence, entry, found) if evidence.has_failed(entry) else ""
    defined = [*find_definitions(evidence, about), *find_rules_on_values(evidence, about)]
    described = {each.entry for each in defined}
    related = [*defined, *_list_related_lines(evidence, about, found, beside=described)]
    if found.kind == "unknown":  # these lines replace a quote of the whole answer
        found = found.model_copy(update={"evidence": tuple(each for each in found.evidence if each.entry not in described)})
    others = [each for each in related if each.entry not in _cited(found)]
    if found.confidence == "high":  # other records would only hide a known cause
        around = _find_way_around(evidence, about, found, others) if found.kind in _OBSTACLES else WayAround("", "", ())
        return _explain_sure_cause(evidence, about, found, details, around)._replace(quotes=_choose_quotes(related))
    # Other forms of the call do not speak for its log.
    related, texts = others, reasons(evidence, about if evidence.log_of(entry) is None else about[:1], _MOST_REASON)
    # If the error says what to do, other records may be quoted, but nobody is sent to look at them.
    looks = [each for each in related if each.of_failure or each.by_user or found.kind not in _STATED]
    found, other = _choose_alternative(evidence, about, found, texts)
    person = (
        None if other.step and found.kind == "unknown" else find_sentence_of_person(evidence, entry, find_topic(said), found)
    )
    spoken = [person] if person is not None else []
    named = None if person or not evidence.has_failed(entry) else find_named_by_user(evidence, about, found)
    lines = _describe_reasons(texts, found, evidence.name_speaker(entry))
    # The list that shows what is free has more names, which are not.
    looks = [each for each in looks if not other.step.startswith(FREE_INSTEAD) or each.source not in other.step]
    shown = [(each.sentence, each.key) for each in looks if each.names or each.by_user]
    shared = [(each.sentence, each.key) for each in related if not each.names and not each.by_user]
    named = None if named is not None and _quoted_spans(named.step) & _quoted_spans(other.step) else named
    # A successful answer that names somebody, such as the assignee of a ticket, refuses nothing.
    holder = _describe_holder_step(entry, said) if evidence.has_failed(entry) else ""
    rest = [_describe_earlier_error(evidence, entry), *(each.cause for each in spoken)]
    later = found.kind not in _BROAD
    shows = next((each for each in about if gives_reason(evidence.text(each))), entry)  # of several forms, one may say why
    verbatim = next(iter(reasons(evidence, [shows], MOST_ERROR)), "").split(" ⏎ ")
    error = None if later or not verbatim[0] else evidence.quote(shows, "\n".join(verbatim))
    return CauseExplanation(
        _add_quotes(found, [quote for each in spoken for quote in each.quotes], related),
        [
            (other.cause, None), ((lines or [""])[0], entry.id if error is None else error.entry), (details, None),
            *((each, None) for each in rest), *shown, *((each, None) for each in lines[1:]),
            (named.cause if named else "", None), *shared,
        ],
        [other.step or holder or _find_most_similar_name(evidence, about, related), *(each.step for each in spoken)],
        looks,
        [named.step if named else "", *_list_offers(evidence, about, texts, found)],
        later=later,
        error=error, says=evidence.name_speaker(shows),
    )  # fmt: skip


def _describe_details(evidence: Evidence, entry: EntryView, found: Diagnosis) -> str:
    """Return the members of an error that no sentence has yet, and what the error offers, if nobody tried it."""
    return error_details(entry, evidence.text(entry), f"{found.cause}\n{found.next_step}", evidence.was_tried)


def _choose_alternative(
    evidence: Evidence, about: Sequence[EntryView], found: Diagnosis, texts: Sequence[str]
) -> tuple[Diagnosis, Alternative]:
    """Return what the record offers instead, and the diagnosis beside it.

    The diagnosis does not call the cause unknown if what is said beside it tells what is wrong.
    """
    other = next(alternatives(evidence, about), Alternative("", ""))
    stated = other.cause or (not command_of(about[0]) and any(map(states_reason, "".join(texts[:1]).split(" ⏎ "))))
    if stated and found.cause.startswith(_UNKNOWN) and evidence.has_failed(about[0]):
        found = found.model_copy(update={"cause": capital(found.cause.removeprefix(_UNKNOWN))})
    # A step that names something, such as a near name, is worth more than advice for any such error.
    if other.alone and (found.kind in ("unknown", "statedReason") or not _quoted_spans(found.next_step)):
        found, other = found.model_copy(update={"next_step": other.step}), other._replace(step="")
    return found, other


def _cited(found: Diagnosis) -> set[str]:
    return {quote.entry for quote in found.evidence if quote.entry is not None}


def _explain_sure_cause(
    evidence: Evidence, about: Sequence[EntryView], found: Diagnosis, details: str, around: WayAround
) -> CauseExplanation:
    """Return a known cause with the members of its error and a way around it."""
    says, texts = evidence.name_speaker(about[0]), reasons(evidence, about, _MOST_REASON)
    own = _describe_reasons(texts, found, says)[:1] if found.kind in _OBSTACLES else []
    causes = [(each, None) for each in (details, *own, around.cause)]
    # A way that the user named comes before other remedies.
    if around.step.startswith("Go by "):
        found = found.model_copy(update={"next_step": clip(f"{around.step} Else: {found.next_step}", MOST_STEP)})
        around = around._replace(step="")
    return CauseExplanation(_add_quotes(found, around.quotes, ()), causes, [around.step])


def _list_related_lines(
    evidence: Evidence, steps: Sequence[EntryView], found: Diagnosis, beside: Collection[str | None]
) -> list[RelatedLine]:
    """Return the other records. If a cause is known, records that share only a common word with the failure are left out.

    ``beside``: the records that describe what the calls name. Beside them, only what is likely to help counts.
    """
    related = [each for each in find_related_lines(evidence, steps) if each.entry is None or each.entry not in beside]
    if beside:
        related = [each for each in related if each.relevance > _LIKELY]
    if steps[0].status == "open":  # an open call is no error that a person's words could be about
        return [each for each in related if not each.by_user or each.relevance > _LIKELY]
    if found.kind == "unknown":
        return related
    telling = [each for each in related if each.of_failure or each.by_user]
    return telling or [each for each in related if each.relevance > _LIKELY]


def _add_quotes(found: Diagnosis, spoken: Sequence[Quote], related: Sequence[RelatedLine]) -> Diagnosis:
    """Return a diagnosis with more quotes, the most telling ones first.

    Without a known cause, the last step that brought something new comes last.
    """
    seen = _choose_quotes(related)
    own = found.evidence
    first = (*own[:1], *seen, *own[1:]) if found.kind == "unknown" else (*own, *seen)
    return found.model_copy(update={"evidence": (*spoken, *first)[:6]})


def _choose_quotes(related: Sequence[RelatedLine]) -> list[Quote]:
    """Return the lines of records, those of records with names first."""
    return [each.quote for each in _sort_by_names(related) if each.quote is not None]


def _quoted_spans(text: str) -> set[str]:
    """Return the quotes in backticks."""
    return set(_QUOTED_SPAN.findall(text))


def _find_way_around(
    evidence: Evidence, steps: Sequence[EntryView], found: Diagnosis, related: Sequence[RelatedLine]
) -> WayAround:
    """Return what the user or another record names that may be a way around an external cause."""
    if (way := find_named_by_user(evidence, steps, found, OTHER_WAY)) is not None:
        return way
    shown = [each for each in related[:1] if each.names and each.of_failure]
    return WayAround(shown[0].sentence if shown else "", _describe_look(shown, later=True), ())


def _describe_earlier_error(evidence: Evidence, entry: EntryView) -> str:
    """Say that the same error occurred before the agent's first change, so that its changes have not touched the cause."""
    own = [each for each in evidence.edits if each.agent == entry.agent and each.index < entry.index]
    line = telling_line(evidence, entry) if evidence.has_failed(entry) else ""
    if not own or len(line) < _LEAST_LINE or not is_telling(line):
        return ""
    for other in evidence.recent:
        if other.index >= own[0].index:
            return ""
        if evidence.has_failed(other) and line in evidence.text(other):
            changes = f"none of your {len(own)} changes" if len(own) > 1 else "your change has not"
            return f"The same error stood there{clock(other.ts)}, before your first change: {changes} touched its cause."
    return ""


def _find_most_similar_name(evidence: Evidence, steps: Sequence[EntryView], related: Sequence[RelatedLine]) -> str:
    """Return advice to try the name of another record that is most similar to a refused name in the calls."""
    line = telling_line(evidence, steps[0])
    misses = _MISSES.search(line) is not None
    # The name of a thing that is taken or closed to the call is right.
    if not evidence.has_failed(steps[0]) or (not misses and _OTHER_TROUBLE.search(blanks_for_underscores(line))):
        return ""
    misses = misses or next(unknown_names(line), None) is not None
    asked = "\n".join(call_input(step) for step in steps)
    refused = [name for name in find_names(line) if name in asked]
    found = [
        (likeness(bad, name), bad, name, each.source)
        for bad in refused for each in related for name in each.names
        # `USER=x` only assigns the refused name.
        if name not in asked and " " not in name and not each.by_user and not name.endswith(f"={bad}")
        # Another number is no misspelling, but may be the one that exists.
        and (misses or _DIGITS.sub("", name) != _DIGITS.sub("", bad))
    ]  # fmt: skip
    alike, bad, name, source = max(found, default=(0.0, "", "", ""))
    if alike < (_ALIKE if misses else _MISSPELT):
        return ""
    return f"See whether {code(name, 80)} is meant, which {_CALL.sub(_CUT, source)} names, in place of {code(bad, 80)}."


def _describe_holder_step(entry: EntryView, said: str) -> str:
    """Return the step to ask the holder of the wanted thing, or to wait for its release, from a structured answer's members."""
    members = error_members(entry, said)
    who = next((value for name, value in members if _HOLDER.search(name)), "")
    until = next((value for name, value in members if _UNTIL.search(name)), "")
    if not who and not until:
        return ""
    ask = f"It is {code(who, 40)} that has it: ask that one" if who else ""
    wait = f"{'or wait' if ask else 'Wait'} until {code(until, 40)}" if until else ""
    return f"{' '.join(each for each in (ask, wait) if each)}; take another task meanwhile."


def _list_other_forms(evidence: Evidence, steps: list[EntryView]) -> list[EntryView]:
    """Return calls with nearby failing calls of the same program, because another form may say more."""
    if not steps:
        return []
    keys = {call_key(step) for step in steps}
    for entry in reversed(evidence.tail):
        same = entry.agent == steps[0].agent and _find_program(entry) == _find_program(steps[0])
        if same and call_key(entry) not in keys and evidence.has_failed(entry):
            keys.add(call_key(entry))
            steps.append(entry)
    return steps


def _find_program(entry: EntryView) -> str:
    """Return the program of a call; for an interpreter, with the script that it runs."""
    program = program_name(entry)
    parts = [words for words in split_command(command_of(entry)) if words[0].rpartition("/")[2] == program]
    plain = [word for word in parts[-1][1:] if not word.startswith("-")] if parts else []
    return " ".join([program, *plain[:1]]) if _INTERPRETS.match(program) else program


def _join_sentences(parts: Sequence[str], essential: str = "") -> str:
    """Return the first sentences that fit, among them the essential one, to which those after it may refer."""
    room = MOST_STEP - len(essential)
    step = ""
    for each in parts:
        if each and (each == essential or len(step) + len(each) + 1 < room):
            room += len(essential) if each == essential else 0
            step += f"{each} "
    return step.strip()


def _describe_reasons(texts: Sequence[str], found: Diagnosis, head: str) -> list[str]:
    """Return what the calls say about their failure, as sentences, without what the cause says already."""
    cause_words = set(_WORD.findall(found.cause))
    new: list[str] = []
    for text in texts:
        words = set(_WORD.findall(text))
        first = not new and (found.kind == "unknown" or len(words - cause_words) >= _NEW_WORDS or not cause_words & words)
        if first or len(words - cause_words) > len(words) / 2:
            new.append(text)
        cause_words |= words
    quoted = [quotable_lines(text.split(" ⏎ ")).replace(".`", "`") for text in new[:_REASONS]]  # prose may be an order
    return [f"{head} {'also ' if place else ''}says {words}." for place, words in enumerate(each for each in quoted if each)]


def _list_offers(evidence: Evidence, steps: Sequence[EntryView], texts: Sequence[str], found: Diagnosis) -> Iterator[str]:
    """Yield what the error offers, advises or names that no call has tried, in names and usual words of errors."""
    asked = "\n".join(call_input(step) for step in steps)
    said = evidence.text(steps[0])
    offer = next((each for each in list_offers(said) if each not in found.next_step and not evidence.was_tried(each)), "")
    if offer:
        yield f"The error offers {code(offer, 90)}: see whether it fits the task."
    # A fragment from the middle of a line is no advice.
    advice = next(
        (
            words
            for text in texts
            for line in text.split(" ⏎ ")
            if is_advice(line) and len(words := quotable_words(line)) >= _MOST_OF_LINE * len(line)
        ),
        "",
    )
    if len(advice.split()) >= _LEAST_ADVICE and "…" not in advice and advice.strip("`") not in found.next_step:
        yield f"It advises {advice}."
    told = f"{found.cause}\n{found.next_step}\n{steps[0].action}"
    names = [
        name for text in texts[:1] for name in find_names(text)
        if name not in asked and name not in told and not _FILLER.match(name) and not name.isupper()
        and not _PERSON_AT.fullmatch(name) and f"{name}[" not in text
    ]  # fmt: skip
    names = [name for name in names if not any(name != other and name.endswith(f".{other}") for other in names)]
    if names and not found.next_step.startswith(("Read ", "Go by ", "Stop ", "Ask the user", "Do not ")):
        what = "error" if evidence.has_failed(steps[0]) else "answer"
        yield f"{_BEGIN}{what} names: {join_names(names, 4)}."


def _describe_look(related: Sequence[RelatedLine], *, later: bool) -> str:
    """Return where to look first, or after a step, with the names found there. Very many names would say little."""
    said = [f"Keep to what the user said: {code(each.line, _QUOTED)}." for each in related if each.binds][:1]
    related = _sort_by_names(each for each in related if not each.by_user and (each.names or not later))
    parts: list[str] = []
    for each in related[:_LOOKS]:
        names = list(each.names[:_SHOWN_NAMES]) if len(each.names) <= MOST_NAMES else []
        while len(names) > 1 and sum(map(len, names)) > _NAMES_ROOM:
            names.pop()
        parts.append(_CALL.sub(_CUT, each.source) + (f" ({join_names(names)})" if names else ""))
    looks = [f"{'See also' if later else 'Look first at'} {', and '.join(parts)}."] if parts else []
    return " ".join([*said, *looks])


def _sort_by_names(related: Iterable[RelatedLine]) -> list[RelatedLine]:
    return sorted(related, key=lambda each: not each.names)
