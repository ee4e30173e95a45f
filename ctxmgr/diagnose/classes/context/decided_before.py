"""The agent asks a question that a person has answered before, in this session or in another one of the project."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import NamedTuple

from ctxmgr.detect.text import vocabulary
from ctxmgr.diagnose.evidence import Evidence, Message, call_input, clock, may_change
from ctxmgr.diagnose.evidence.calls import command_of, edited_paths, fields_of, list_changes, path_of, question_of
from ctxmgr.diagnose.evidence.items import list_items
from ctxmgr.diagnose.evidence.texts import (
    LINE_NUMBER,
    ORDERS,
    blanks_for_underscores,
    code,
    join_names,
    strip_line_numbers,
    text_of,
)
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.finding import Diagnosis, Quote
from ctxmgr.types.view import EntryView

KIND: str = "decidedBefore"

_QUESTION = lazy_pattern(r"[^.!?\n]{6,300}\?")
_WORD = lazy_pattern(r"\w{2,}")
_LEAST_ALIKE, _MOST_MESSAGES = 0.72, 40
"""Similarity of two forms of one question, and last messages of agents that are read."""
_MOST_RELATED = 400
"""Number of newest entries of other sessions in which an answer is searched for."""


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return the earlier answer."""
    for asked, index, times in _list_questions(evidence):
        answered = _find_earlier_answer(evidence, asked, index) or _find_related_answer(evidence, asked)
        if answered is not None:
            return _diagnose_repeated_question(evidence, asked, times, *answered)
    return _diagnose_repeated_weighing(evidence)


def _list_questions(evidence: Evidence) -> list[tuple[str, int, int]]:
    """Return the repeated questions to a person in the loop, each with the index of the first one and its count."""
    found: dict[str, tuple[str, int, int]] = {}
    for entry in evidence.loop:
        if vocabulary.asks_human(entry.action):
            text = question_of(entry)
            key = _normalize(text)
            first = found.pop(key, (text, entry.index, 0))
            # An answered question was not asked in vain.
            if entry.status != "ok" or _is_unanswered(evidence, entry):
                found[key] = (first[0], first[1], first[2] + 1)
    if evidence.finding is not None and evidence.finding.kind == "monologue":
        start = evidence.onset
        for message in evidence.messages[-_MOST_MESSAGES:]:
            if message.by == "agent" and (message.after is None or message.after >= start - 1):
                for text in _QUESTION.findall(message.text)[-1:]:
                    key = _normalize(text)
                    first = found.get(key, (text.strip(), message.after or 0, 0))
                    found[key] = (first[0], first[1], first[2] + 1)
    # Anybody may ask a question once before it is answered.
    return [each for each in reversed(found.values()) if each[2] > 1 and each[0]]


_NO_ANSWER = lazy_pattern(
    r"\A[^\n]{0,80}\b(?:answered|replied|responded|received)\"?\s?[:=]\s?(?:false|no)\b"
    r"|\A[^\n]{0,80}\b(?:answer|reply|response)\"?\s?[:=]\s?(?:null|none)\b"
    r"|\A[^\n]{0,60}\b(?:no (?:answer|reply|response)|not (?:available|reachable|answered)|unavailable|unanswered"
    r"|timed? ?out)\b",
    re.IGNORECASE,
)
_MOST_NO_ANSWER = 300
"""Maximum characters of a result that says that nobody answered."""


def _is_unanswered(evidence: Evidence, entry: EntryView) -> bool:
    """Whether the result of a question says that nobody answered it."""
    said = evidence.text(entry).strip()
    return len(said) <= _MOST_NO_ANSWER and _NO_ANSWER.search(said) is not None


def _find_earlier_answer(evidence: Evidence, asked: str, index: int) -> tuple[Message | EntryView, str] | None:
    """Return the answer of a person to an earlier question with the same meaning, and its words."""
    is_open = False
    found: tuple[Message | EntryView, str] | None = None
    for message in evidence.messages:
        # A message after the question is no earlier answer.
        if message.after is not None and message.after >= index:
            break
        if message.by == "agent":
            is_open = is_open or any(_is_same_question(text, asked) for text in _QUESTION.findall(message.text))
        elif message.by == "user" and is_open:
            found = message, message.text
            is_open = False
    for entry in evidence.recent:
        if (
            entry.index < index
            and entry.status == "ok"
            and not _is_unanswered(evidence, entry)
            and vocabulary.asks_human(entry.action)
            and _is_same_question(question_of(entry), asked)
        ):
            found = _find_reply(evidence, entry, index) or (entry, evidence.text(entry))
    return found


def _find_reply(evidence: Evidence, asking: EntryView, until: int) -> tuple[Message, str] | None:
    """Return what a person said right after a call that asks, if the call's own result is no answer."""
    # Some tools only confirm that the question was sent. The answer comes as a message.
    reply = next((m for m in evidence.user_texts if m.after is not None and asking.index <= m.after < until), None)
    return (reply, reply.text) if reply and len(evidence.text(asking)) < _RECEIPT else None


_RECEIPT = 40
"""Maximum characters of a result that only confirms that the question was sent."""


def _find_related_answer(evidence: Evidence, asked: str) -> tuple[Message | EntryView, str] | None:
    # For other sessions, only the calls are available, not the messages.
    for entry in reversed(evidence.related[-_MOST_RELATED:]):
        if entry.status == "ok" and vocabulary.asks_human(entry.action) and _is_same_question(question_of(entry), asked):
            return entry, text_of(entry.output, 2_000)
    return None


def _diagnose_repeated_question(
    evidence: Evidence, asked: str, times: int, answer: Message | EntryView, said: str
) -> Diagnosis:
    here = isinstance(answer, Message)
    when = clock(answer.at if isinstance(answer, Message) else answer.ts)
    where = "" if here or answer in evidence.recent else " in another session of this project"
    words = said.strip().split("\n")[0]
    cause = f"You asked {times} times {code(asked, 110)}, and it was answered{when}{where}: {code(words, 150)}."
    step = (
        f"Take that answer, {code(words, 120)}, as the decision and go on with the task."
        if here
        else ("Take that answer as the decision and go on with the task; do not ask again.")
    )
    quote = evidence.quote_message(answer) if isinstance(answer, Message) else evidence.quote(answer, said)
    return diagnosis(KIND, cause, step, quote, check="Ask again only if something new speaks against the answer.")


def _normalize(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))[:300]


def _is_same_question(one: str, other: str) -> bool:
    first, second = _normalize(one), _normalize(other)
    return bool(first and second) and difflib.SequenceMatcher(None, first, second, autojunk=False).ratio() >= _LEAST_ALIKE


_WEIGHS = lazy_pattern(
    r"\b(?:compar\w+|weigh\w*|versus|vs\.?|or (?:should|stay|rather|better|maybe)|which (?:\w+ ){0,3}(?:to use"
    r"|is better|should|do you"
    r"|would|for|then)|decid\w+|choos\w+|not sure (?:which|whether)|on the other hand|alternatives?|candidates|options"
    r"|trade-?offs?|pros and cons|reconsider\w*|rethink\w*|option [ab12]|unsure|hard to (?:say|tell)|unclear"
    r"|fits? (?:best|better)"
    r"|(?:may|might|could|would) be (?:better|right|preferable|safer)|back to|then again|prefer\w*|is there a rule"
    r"|might be right)\b"
    r"|\b\w{1,40},? or \w{1,40}(?: [\w-]{1,40}){0,4}\?|\b(?:again|then)\?",
    re.IGNORECASE,
)
_SETTLED = lazy_pattern(
    r"\b(?:decided|decision|accepted|agreed|settled|chosen|we (?:chose|use|picked|went with|stay with|go with|take"
    r"|keep)|(?:has |have )?won\b|not to be (?:proposed|reopened|discussed|changed)|is final|no longer open"
    r"|approved|rejected|ruled out|signed off"
    r"|let['’]s (?:use|take|go with|keep)|use \w+|take \w+|go with|status: accepted|resolved:|verdict)\b"
    r"|^\W{0,4}(?:rule \d|[A-Z]{1,4}-?\d{1,4}\b)",
    re.IGNORECASE,
)
_POINTS = lazy_pattern(r"\?\s*\Z|\bdecisions\b[^.!?\n]{0,40}\b(?:are|stand|live|lie|kept|recorded|written)\b", re.IGNORECASE)
_NOT_TELLING = word_set(
    "before again more once first write code coding compare comparing weigh both type which with that this about into would "
    "should could sure start stay best better really think need want look option options use using change task there have then "
    "other than what when still here also they them from only just like "
)
_DOCUMENT = lazy_pattern(
    r"adr|decision|\.(?:md|rst|txt|adoc)\b|docs?/|rfc|notes?(?![a-z])|minutes|memory|wiki|knowledge|message|mail|issue"
    r"|ticket|comment|search|design|polic|rule|handbook|guide|brief|playbook",
    re.IGNORECASE,
)
_WEB = lazy_pattern(r"web|browse|fetch", re.IGNORECASE)
_ENDING = lazy_pattern(r"(?<=\w{3})(?:e?s|ed|ing)$")
_PROSE = lazy_pattern(r"\w+(?:[ ,;]+\w+){2}")
_REFUSED = lazy_pattern(r"\b(?:not|no|never|out|lost|loses?|rejected|dropped|worse|against)\b", re.IGNORECASE)
_TOKEN = lazy_pattern(r"[\w-]+(?:[./][\w-]+)*")
# Names by their form: `PostgreSQL`, `HTTP2`, `oauth2`, `rabbit_3`
_NAMED = lazy_pattern(r"[A-Z][\w-]*[A-Z0-9][\w-]*|[a-z]+[_-]?\d\w*")
_LEAST_STATEMENTS, _LEAST_RECURRING, _LEAST_SHARED, _MOST_STATEMENT = 3, 2, 3, 400
"""Statements that weigh something, times that a word recurs, words that a decision shares, characters of a statement."""


def _diagnose_repeated_weighing(evidence: Evidence) -> Diagnosis | None:
    """Say that a person, or a document that was read, has decided what the agents weigh again and again.

    Agents weigh options in messages, and in calls that ask, propose or object. The recurring words are the subject. A
    decision is a sentence of a person or a document that says so and holds these words.
    """
    stated = list(_list_statements(evidence))[-_MOST_MESSAGES:]
    said = [text for text in stated if _WEIGHS.search(text)]
    # Weighing something twice is ordinary care.
    if len(said) < _LEAST_STATEMENTS:
        return None
    counts: dict[str, int] = {}
    for text in stated:
        for word in _find_significant_words(text):
            counts[word] = counts.get(word, 0) + 1
    recurring = {word for word, count in counts.items() if count >= _LEAST_RECURRING}
    # If few words recur, more of them must be shared. Otherwise, any sentence on the topic would match.
    least = _LEAST_SHARED - 1 if len(recurring) > 1 else _LEAST_SHARED
    for message in reversed(evidence.user_texts):
        for sentence in re.findall(r"[^.!?\n]{3,300}[.!?]?", message.text[:8_000]):
            words = _find_significant_words(sentence)
            shared = words & recurring and len(words & counts.keys()) >= least - 1
            # A question, or the place of the decisions, may hold words of one, but decides nothing.
            if _SETTLED.search(sentence) and shared and not _POINTS.search(sentence):
                where = f"the user said{clock(message.at)}: {code(sentence.strip(), 150)}"
                step = f"what the user said as it stands, {code(sentence.strip(), 130)}"
                return _diagnose_decided(said, where, step, evidence.quote_message(message, sentence))
    return _diagnose_documented_decision(evidence, said, recurring, set(counts), least)


def _list_statements(evidence: Evidence) -> Iterator[str]:
    """Yield what agents said since a person last spoke, and the sentences in their calls, in order."""
    last_by_user = max((place for place, message in enumerate(evidence.messages) if message.by == "user"), default=-1)
    since = evidence.messages[last_by_user].after if last_by_user >= 0 else None
    yield from (message.text for message in evidence.messages[last_by_user + 1 :] if message.by == "agent")
    for entry in evidence.tail:
        # The user's last words answer all sentences before them.
        asks = vocabulary.asks_human(entry.action) and _PERMISSION.search(question_of(entry)) is not None
        if entry.index > (-1 if since is None else since) and not (asks or command_of(entry) or edited_paths(entry)):
            values = fields_of(entry).values()
            yield from (
                value for value in values if isinstance(value, str) and len(value) <= _MOST_STATEMENT and _PROSE.search(value)
            )


class _Decision(NamedTuple):
    """A line of a document, or an item of a list, that says what was decided.

    Attributes:
        value: what was decided, where a member of the item says it alone.
    """

    entry: EntryView
    line: str
    value: str = ""


def _diagnose_documented_decision(
    evidence: Evidence, said: list[str], recurring: set[str], all_words: set[str], least: int
) -> Diagnosis | None:
    found = _find_decision(evidence, recurring, all_words, least)
    # An agent that follows the decision weighs something else.
    last = next((_written_text(each).casefold() for each in reversed(evidence.recent) if may_change(each)), "")
    names = _find_decision_names(found.line, all_words) if found is not None else []
    if found is None or (names and all(name.casefold() in last for name in names)):
        return None
    return _diagnose_decided(said, *_describe_decision(evidence, found, names))


_PERMISSION = lazy_pattern(
    r"\b(?:may|can|could) (?:i|we)\b|\b(?:approv\w*|permission|permit\w*|allow\w*|go ahead|proceed|confirm\w*"
    r"|consent|sign[- ]?off|ok(?:ay)? to)\b",
    re.IGNORECASE,
)


def _find_decision(
    evidence: Evidence, about: frozenset[str] | set[str], words: frozenset[str] | set[str], least: int
) -> _Decision | None:
    """Return the decision with most of the words, at least so many of them, and one that it must be about."""
    best: tuple[int, _Decision] | None = None
    for each in _list_decisions(evidence):
        own = _find_significant_words(each.line)
        shared = len(own & words)
        if own & about and shared >= least and (best is None or shared > best[0]):
            best = (shared, each)
    return None if best is None else best[1]


def _describe_decision(evidence: Evidence, found: _Decision, names: list[str]) -> tuple[str, str, Quote]:
    """Return where a decision stands, what is to be taken, and the quote."""
    entry, line, value = found
    source = evidence.source(entry)
    # If the line could be an order, only its place is shown.
    hidden = ORDERS.search(line) is not None
    where = f"{source} holds the decision{'' if hidden else f': {code(_strip_markers(line), 170)}'}"
    place = code(evidence.name(path_of(entry) or ""), 80) if path_of(entry) else source
    named = code(value, 80) if _VALUE.fullmatch(value) and not hidden else join_names(names, 4)
    return (
        where,
        f"the decision of {place} as it stands{f', {named}' if named else ''}",
        evidence.quote(entry, value or line[:300]),
    )


def _written_text(entry: EntryView) -> str:
    return "\n".join(change.new for change in list_changes(entry)) or call_input(entry)


def _list_decisions(evidence: Evidence) -> Iterator[_Decision]:
    """Yield what documents, notes and lists that were read say to be decided, the newest first."""
    for entry in evidence.latest:
        place = f"{entry.action} {path_of(entry) or ''} {command_of(entry)}"
        foreign = _WEB.search(entry.action) is not None or "://" in place
        if entry.status != "ok" or may_change(entry) or not _DOCUMENT.search(place) or foreign:
            continue
        text = evidence.text(entry)[:12_000]
        if text.lstrip()[:1] in ("{", "["):
            yield from _list_decided_items(entry, text)
            continue
        # The status of a record with a single one is that of all its lines.
        states = _STATUS.findall(text)
        accepted = len(states) == 1 and _SETTLED.search(states[0]) is not None and not _OPEN.search(states[0])
        lines = (line.strip() for line in text.split("\n"))
        yield from (_Decision(entry, line) for line in lines if _SETTLED.search(line) or (accepted and _PROSE.search(line)))


def _list_decided_items(entry: EntryView, text: str) -> Iterator[_Decision]:
    """Yield the items of a list of decisions that are not open."""
    for item in list_items(text):
        line = ", ".join(f"{name}: {value}" for name, value in item.fields.items() if value not in ("null", ""))
        value = next((value for name, value in item.fields.items() if _OUTCOME.fullmatch(name)), "")
        settled = _SETTLED.search(blanks_for_underscores(line)) is not None
        if settled and not _OPEN.fullmatch(value) and not _OPEN.fullmatch(item.fields.get("status", "")):
            yield _Decision(entry, line, value)


_STATUS = lazy_pattern(rf"^(?:{LINE_NUMBER})?\W{{0,6}}status\W{{1,6}}([^\n]{{2,80}})$", re.MULTILINE | re.IGNORECASE)
_OPEN = lazy_pattern(
    r"(?:open|null|none|false|pending|proposed|draft|undecided|not decided|tbd|superseded)\b[^\n]*", re.IGNORECASE
)
_VALUE = lazy_pattern(r"\w[\w .,()/+%'-]{0,79}")
# Members of an item that say what was decided
_OUTCOME = lazy_pattern(
    r"(?:decided|decision|outcome|resolution|ruling|choice|chosen|verdict|answer|result|value)", re.IGNORECASE
)


def _strip_markers(line: str) -> str:
    return strip_line_numbers(line).lstrip("-*> ")


def _find_decision_names(line: str, words: set[str]) -> list[str]:
    """Return the names of a decision: the weighed options in its first sentence, and whatever is written like a name."""
    sentence = re.split(r"(?<=[\w)])[.;](?=\s)", _strip_markers(line))[0]
    sentence = " ; ".join(part for part in re.split(r"[,;:]", sentence) if not _REFUSED.search(part))
    runs: list[list[str]] = [[]]
    for token in re.findall(r"[\w-]+(?:[./][\w-]+)*|;", sentence):
        if _find_significant_words(token) & words and not _SETTLED.fullmatch(token):
            runs[-1].append(token)
        else:
            runs += [[]] if not _NAMED.fullmatch(token) else [[token], []]
    found = [" ".join(run) for run in runs if run]
    return list(dict.fromkeys(name for name in found if len(name) > 1))[:4]


def _find_significant_words(text: str) -> frozenset[str]:
    return frozenset(
        _ENDING.sub("", word)
        for word in re.findall(r"[\w-]{3,40}", text[:4_000].casefold().replace("-", " - "))
        if word not in _NOT_TELLING and (len(word) > 3 or any(map(str.isdigit, word)))
    )


def _diagnose_decided(said: list[str], where: str, what: str, quote: Quote) -> Diagnosis:
    cause = f"The same is weighed {len(said)} times, last: {code(said[-1], 90)}. It is decided already: {where}."
    step = (
        f"Take {what}, compare no more, and make the next change of the task by it; if something new speaks against it, ask the"
        " user once."
    )
    return diagnosis(KIND, cause, step, quote, check="The next step must change something.", confidence="medium")
