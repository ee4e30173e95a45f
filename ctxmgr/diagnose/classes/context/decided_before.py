"""The agent asks a question that a person has answered before, in this session or in another one of the project."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from ctxmgr.detect.text import vocabulary
from ctxmgr.diagnose.evidence import Evidence, Message, call_input, clock, may_change
from ctxmgr.diagnose.evidence.calls import command_of, edited_paths, fields_of, list_changes, path_of
from ctxmgr.diagnose.evidence.texts import ORDERS, code, join_names, strip_line_numbers, text_of
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.finding import Diagnosis, Quote
from ctxmgr.types.view import EntryView

KIND: str = "decidedBefore"

_QUESTION = lazy_pattern(r"[^.!?\n]{6,300}\?")
_WORD = lazy_pattern(r"\w{2,}")
_ALIKE = 0.72
_MOST = 40


def applies(evidence: Evidence) -> Diagnosis | None:
    """Return the earlier answer."""
    for asked, index, times in _questions(evidence):
        answered = _answer(evidence, asked, index) or _find_related_answer(evidence, asked)
        if answered is not None:
            question, answer, quote_from = answered
            return _diagnose_repeated_question(evidence, asked, times, question, answer, quote_from)
    return _diagnose_repeated_weighing(evidence)


def _questions(evidence: Evidence) -> list[tuple[str, int, int]]:
    """Return the repeated questions to a person in the loop, each with the index of the first one and its count."""
    found: dict[str, tuple[str, int, int]] = {}
    for entry in evidence.loop:
        # An answered question was not asked in vain.
        if vocabulary.asks_human(entry.action) and entry.status != "ok":
            text = _asked_text(entry)
            key = _normalize(text)
            first = found.get(key, (text, entry.index, 0))
            found[key] = (first[0], first[1], first[2] + 1)
    if evidence.finding is not None and evidence.finding.kind == "monologue":
        start = evidence.onset
        for message in evidence.messages[-_MOST:]:
            if message.by == "agent" and (message.after is None or message.after >= start - 1):
                for text in _QUESTION.findall(message.text)[-1:]:
                    key = _normalize(text)
                    first = found.get(key, (text.strip(), message.after or 0, 0))
                    found[key] = (first[0], first[1], first[2] + 1)
    # Anybody may ask a question once before it is answered.
    return [each for each in reversed(found.values()) if each[2] > 1 and each[0]]


def _asked_text(entry: EntryView) -> str:
    fields = fields_of(entry)
    return (
        text_of(fields.get("questions") or fields.get("question") or fields.get("message") or entry.input, 1_000)
        .split("\n")[0]
        .strip()
    )


def _answer(evidence: Evidence, asked: str, index: int) -> tuple[str, Message | EntryView, str] | None:
    """Return an earlier question with the same meaning, and the answer of a person that followed it."""
    open_: str | None = None
    found: tuple[str, Message | EntryView, str] | None = None
    for message in evidence.messages:
        # A message after the question is no earlier answer.
        if message.after is not None and message.after >= index:
            break
        if message.by == "agent":
            like = next(
                (text.strip() for text in reversed(_QUESTION.findall(message.text)) if _is_same_question(text, asked)), None
            )
            open_ = like or open_
        elif message.by == "user" and open_ is not None:
            found = (open_, message, message.text)
            open_ = None
    for entry in evidence.recent:
        if (
            entry.index < index
            and entry.status == "ok"
            and vocabulary.asks_human(entry.action)
            and _is_same_question(_asked_text(entry), asked)
        ):
            found = _find_reply(evidence, entry, index) or (_asked_text(entry), entry, evidence.text(entry))
    return found


def _find_reply(evidence: Evidence, asking: EntryView, until: int) -> tuple[str, Message, str] | None:
    """Return what a person said right after a call that asks, if the call's own result is no answer."""
    # Some tools only confirm that the question was sent. The answer comes as a message.
    reply = next((m for m in evidence.user_texts if m.after is not None and asking.index <= m.after < until), None)
    return (_asked_text(asking), reply, reply.text) if reply and len(evidence.text(asking)) < _RECEIPT else None


_RECEIPT = 40
"""Maximum characters of a result that only confirms that the question was sent."""


def _find_related_answer(evidence: Evidence, asked: str) -> tuple[str, Message | EntryView, str] | None:
    # For other sessions, only the calls are available, not the messages.
    for entry in reversed(evidence.related[-400:]):
        if entry.status == "ok" and vocabulary.asks_human(entry.action) and _is_same_question(_asked_text(entry), asked):
            return _asked_text(entry), entry, text_of(entry.output, 2_000)
    return None


def _diagnose_repeated_question(
    evidence: Evidence, asked: str, times: int, question: str, answer: Message | EntryView, said: str
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
    return bool(first and second) and difflib.SequenceMatcher(None, first, second, autojunk=False).ratio() >= _ALIKE


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
_WEB = lazy_pattern(r"web|browse|fetch|https?:", re.IGNORECASE)
_ENDING = lazy_pattern(r"(?<=\w{3})(?:e?s|ed|ing)$")
_PROSE = lazy_pattern(r"\w+(?:[ ,;]+\w+){2}")
_REFUSED = lazy_pattern(r"\b(?:not|no|never|out|lost|loses?|rejected|dropped|worse|against)\b", re.IGNORECASE)
_TOKEN = lazy_pattern(r"[\w-]+(?:[./][\w-]+)*")
# Names by their form: `PostgreSQL`, `HTTP2`, `oauth2`, `rabbit_3`
_NAMED = lazy_pattern(r"[A-Z][\w-]*[A-Z0-9][\w-]*|[a-z]+[_-]?\d\w*")
_THRICE, _TWICE, _MOST_ENTRIES, _LONGEST = 3, 2, 300, 400


def _diagnose_repeated_weighing(evidence: Evidence) -> Diagnosis | None:
    """Say that a person, or a document that was read, has decided what the agents weigh again and again.

    Agents weigh options in messages, and in calls that ask, propose or object. The recurring words are the subject. A
    decision is a sentence of a person or a document that says so and holds these words.
    """
    stated = list(_statements(evidence))[-_MOST:]
    said = [text for text in stated if _WEIGHS.search(text)]
    # Weighing something twice is ordinary care.
    if len(said) < _THRICE:
        return None
    counts: dict[str, int] = {}
    for text in stated:
        for word in _significant_words(text):
            counts[word] = counts.get(word, 0) + 1
    recurring = {word for word, count in counts.items() if count >= _TWICE}
    # If few words recur, more of them must be shared. Otherwise, any sentence on the topic would match.
    least = _TWICE if len(recurring) >= _TWICE else _THRICE
    for message in reversed(evidence.user_texts):
        for sentence in re.findall(r"[^.!?\n]{3,300}[.!?]?", message.text[:8_000]):
            words = _significant_words(sentence)
            shared = words & recurring and len(words & counts.keys()) >= least - 1
            # A question may hold words of a decision, but decides nothing.
            if _SETTLED.search(sentence) and shared and not sentence.strip().endswith("?"):
                where = f"the user said{clock(message.at)}: {code(sentence.strip(), 150)}"
                step = f"what the user said as it stands, {code(sentence.strip(), 130)}"
                return _diagnose_decided(said, where, step, evidence.quote_message(message, sentence))
    return _diagnose_documented_decision(evidence, said, recurring, set(counts), least)


def _statements(evidence: Evidence) -> Iterator[str]:
    """Yield what agents said since a person last spoke, and the sentences in their calls, in order."""
    last_by_user = max((place for place, message in enumerate(evidence.messages) if message.by == "user"), default=-1)
    since = evidence.messages[last_by_user].after if last_by_user >= 0 else None
    yield from (message.text for message in evidence.messages[last_by_user + 1 :] if message.by == "agent")
    for entry in evidence.tail:
        # The user's last words answer all sentences before them.
        if entry.index > (-1 if since is None else since) and not command_of(entry) and not edited_paths(entry):
            values = fields_of(entry).values()
            yield from (value for value in values if isinstance(value, str) and len(value) <= _LONGEST and _PROSE.search(value))


def _diagnose_documented_decision(
    evidence: Evidence, said: list[str], recurring: set[str], all_words: set[str], least: int
) -> Diagnosis | None:
    best: tuple[int, EntryView, str] | None = None
    for entry, line in _document_lines(evidence):
        words = _significant_words(line)
        shared = words & all_words
        if _SETTLED.search(line) and words & recurring and len(shared) >= least and (best is None or len(shared) > best[0]):
            best = (len(shared), entry, line.strip())
    if best is None:
        return None
    _, entry, line = best
    names = _decision_names(line, all_words)
    # An agent that follows the decision weighs something else.
    last = next((_written_text(each).casefold() for each in reversed(evidence.recent) if may_change(each)), "")
    if names and all(name.casefold() in last for name in names):
        return None  # it is followed already
    source = evidence.source(entry)
    # If the line could be an order, only its place is shown.
    shown = "" if ORDERS.search(line) else f": {code(_strip_markers(line), 170)}"
    where = f"{source} holds the decision{shown}"
    name = code(evidence.name(path_of(entry) or ""), 80) if path_of(entry) else source
    step = f"the decision of {name} as it stands{f', {join_names(names, 4)}' if names else ''}"
    return _diagnose_decided(said, where, step, evidence.quote(entry, line[:300]))


def _written_text(entry: EntryView) -> str:
    return "\n".join(change.new for change in list_changes(entry)) or call_input(entry)


def _document_lines(evidence: Evidence) -> Iterator[tuple[EntryView, str]]:
    """Yield the lines of the documents and notes that were read, the newest first."""
    for entry in list(reversed(evidence.recent))[:_MOST_ENTRIES]:
        place = f"{path_of(entry) or ''} {command_of(entry)} {entry.action}"
        if entry.status == "ok" and not may_change(entry) and _DOCUMENT.search(place) and not _WEB.search(place):
            yield from ((entry, line) for line in evidence.text(entry)[:12_000].split("\n"))


def _strip_markers(line: str) -> str:
    return strip_line_numbers(line).lstrip("-*> ")


def _decision_names(line: str, words: set[str]) -> list[str]:
    """Return the names of a decision: the weighed options in its first sentence, and whatever is written like a name."""
    sentence = re.split(r"(?<=[\w)])[.;](?=\s)", _strip_markers(line))[0]
    sentence = " ; ".join(part for part in re.split(r"[,;:]", sentence) if not _REFUSED.search(part))
    runs: list[list[str]] = [[]]
    for token in re.findall(r"[\w-]+(?:[./][\w-]+)*|;", sentence):
        if _significant_words(token) & words and not _SETTLED.fullmatch(token):
            runs[-1].append(token)
        else:
            runs += [[]] if not _NAMED.fullmatch(token) else [[token], []]
    found = [" ".join(run) for run in runs if run]
    return list(dict.fromkeys(name for name in found if len(name) > 1))[:4]


def _significant_words(text: str) -> frozenset[str]:
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
