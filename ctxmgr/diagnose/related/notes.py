"""Find what notes that were read say about a failing call: READMEs, runbooks, comments, pages of a wiki.

`diagnose_note` finds the paragraph about a name in an error. `find_way_in_note` finds what a note names instead of the
refused place, account, host or setting. The prose of a note is shown with its source, and never becomes a next step: a step
repeats only names from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ctxmgr.diagnose.errors.lines import telling_line
from ctxmgr.diagnose.errors.refusals import unknown_names
from ctxmgr.diagnose.evidence import Evidence, call_input
from ctxmgr.diagnose.evidence.calls import call_phrase, command_of, list_changes, path_of
from ctxmgr.diagnose.evidence.files import is_file_name
from ctxmgr.diagnose.evidence.messages import forbids
from ctxmgr.diagnose.evidence.nearest_names import find_nearest_recorded
from ctxmgr.diagnose.evidence.texts import ORDERS, capital, code, contains_word, join_names, plain_name, strip_line_numbers
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.related.related_lines import COMMON, find_names, quotable_parts
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.finding import Diagnosis, Quote
from ctxmgr.types.view import EntryView

_NOTES = lazy_pattern(
    r"(?:README|CONTRIBUTING|HACKING|INSTALL|DEVELOP\w*|DEPLOY\w*|AGENTS|CLAUDE|GEMINI|NOTES?|RUNBOOK|HOWTO|FAQ|ADR|CHANGELOG"
    r"|DECISIONS?|CONVENTIONS?|POLICY|ONBOARDING|GLOSSARY|WIKI)\b"
    r"|(?i:\.(?:md|rst|adoc|org)\b|\b(?:docs?|wiki|handbook|runbooks?)/)"
)
_TELLS = lazy_pattern(
    r"(?i)wiki|help|guide|handbook|polic|rules|manual|runbook|convention|page|article|kb|docs?(?:_|\b)|note|memo"
)
"""Tools that show notes."""
_COMMENT = lazy_pattern(r"^\s*(?:#|//|--|;|<!--|/?\*)+\s?(.{12,300})$")
_BREAK = lazy_pattern(r"\s*(?:[-*+•] |\d{1,2}[.)] |#{1,4} |\||>|$)")
_SENTENCE = lazy_pattern(r"(?<=[.!?;])\s+(?=\S)")
_NAME = lazy_pattern(r"[\w@][\w.@/+-]{1,60}\w")
_ERROR_NAME = lazy_pattern(r"[`'\"‘“]([\w@][\w.@/+:-]{1,60})[`'\"’”]|(?<![\w.])(\d{2}(?:\.\d{1,3}){0,2})(?![\w.:])")
_PROSE = lazy_pattern(r"[A-Za-z]{2,}")
_DULL = word_set(
    "error errors failed failure cannot could found find file files line module modules package command tool name with from "
    "that this have been were which when into your make sure also just like some them does not for the and are was "
    "has can but all "
    "you only here there must should usage option options list possible value type call calls test tests code main index src "
    "lib bin home user work opt usr local srv var app python node bash shell"
)
_MOST_ERROR = 500
_LEAST_NOTE, _MOST_NOTE, _WORDS, _MAX_NAMES, _GAP, _ON_TOPIC = 24, 260, 4, 5, 3, 4
_WEIGHT_RARE, _WEIGHT_COMMON, _LEAST_RANK, _MOST_HOLDERS = 2.0, 1.0, 2.0, 3


class _Note(NamedTuple):
    text: str
    entry: EntryView
    rank: float


def diagnose_note(kind: str, evidence: Evidence, entry: EntryView, name: str = "") -> Diagnosis | None:
    """Return the note about the names that a failing call uses in vain, or about ``name``; None if there is none."""
    names, parts = _list_subjects(evidence, entry, name)
    tried = _list_tried(evidence, entry)
    word_counts = {each: sum(each in evidence.text(one).casefold() for one in evidence.recent if one.status == "ok"
                             and not evidence.has_failed(one)) for each in names}  # fmt: skip
    best: _Note | None = None
    for other in evidence.latest_before(entry.index):
        # A note that another agent read is not known to this agent.
        if not evidence.has_succeeded(other) or other.agent != entry.agent:
            continue
        for text in _list_paragraphs(evidence, other):
            folded = set(_NAME.findall(text.casefold()))
            words = folded | {piece for each in folded for piece in re.split(r"[/.-]", each)}
            rank = sum(
                # A name in few outputs says more than a name that occurs everywhere.
                _WEIGHT_RARE if word_counts[each] <= _MOST_HOLDERS else _WEIGHT_COMMON
                for each in names if each in words or (len(each) > 4 and each in text.casefold())
            )  # fmt: skip
            own = [each for each in parts if each in words]
            rank += (
                _WEIGHT_RARE
                if own and any(own[0] in each.casefold() and forbids(each) for each in _SENTENCE.split(text))
                else len(own)
            )
            # A single weak word may occur in any paragraph, and what only says what was tried says nothing new.
            if rank >= _LEAST_RANK and (best is None or rank > best.rank) and _rank_way(text, tried):
                best = _Note(text, other, rank)
    return None if best is None else _explain_note(kind, evidence, entry, best, [*names, *parts])


def _list_subjects(evidence: Evidence, entry: EntryView, name: str) -> tuple[list[str], list[str]]:
    """Return the names that a call's error is about, and the parts of the names in the call itself."""
    said = evidence.text(entry)[:8_000]
    line = telling_line(evidence, entry) or said[-300:]
    unknown = [name] if name else [each.name for each in unknown_names(said)][:3]
    if not name and any(
        each in call_input(entry) and find_nearest_recorded(evidence, each, entry) is not None for each in unknown[:2]
    ):
        return [], []  # notes are not about almost correct names
    quoted = [one or other for one, other in _ERROR_NAME.findall(line)]
    names = [
        each.casefold().strip("/.")
        for each in [*unknown, *quoted, *find_names(f"{line}\n{said[-_MOST_ERROR:]}")]
        if plain_name(each)
    ]
    project = {evidence.folder.rpartition("/")[2].casefold(), *re.findall(r"/([\w.-]+)/", f"{evidence.folder}/")}
    sure = [each for each in dict.fromkeys(names) if _is_topic(evidence, entry, each) and each not in project]
    own = re.split(r"[\s/'\"=,;()]+", call_input(entry)[:2_000].casefold()) if command_of(entry) else []
    # Plain words in a call are weak, because they say what is done, not what fails.
    weak = [each for each in own if len(each) > 3 and each.replace("-", "").replace("_", "").isalpha() and each not in _DULL]
    numbers = [each for each in names if each.replace(".", "").isdigit()]
    topics = [each[:5] for each in re.findall(r"[a-z]{5,}", line.casefold()) if each not in _DULL]
    return sure, [each for each in dict.fromkeys([*weak, *numbers]) if each not in sure and each not in topics]


def _is_topic(evidence: Evidence, entry: EntryView, name: str) -> bool:
    """Whether a note can be about a name in an error: it is no number, no path of the agent's own, no file of the call."""
    if (
        name.isdigit()
        or name in _DULL
        or len(name) <= _MOST_SHORT_NAME
        # Every note may name the project's own folder.
        or ("/" in name and name.startswith((".", "~", evidence.folder or ".")))
    ):
        return False
    return not ((is_file_name(name) or "/" in name) and name in call_input(entry).casefold())


_MOST_SHORT_NAME = 2


def _list_paragraphs(evidence: Evidence, other: EntryView) -> Iterator[str]:
    """Yield the prose in an output: the paragraphs of a note, or the comments of any other file."""
    text = _answer_text(evidence.text(other)[:20_000])
    command = command_of(other)
    note = _NOTES.search(f"{path_of(other) or ''} {command}") is not None or (
        not command and _TELLS.search(other.action) is not None
    )
    lines: list[str] = []
    for raw in [*text.split("\n"), ""]:
        line = strip_line_numbers(raw)
        comment = _COMMENT.match(line)
        shown = comment.group(1) if comment is not None and not note else line if note else ""
        # In a note, each list item and heading is a separate paragraph.
        if ((_BREAK.match(line) or " " not in line.strip()) and lines) or (not shown and lines):
            yield from _join_prose(lines)
            lines = []
        if " " in shown.strip():
            lines.append(shown.strip())


def _answer_text(text: str) -> str:
    """Return the text of an answer; of a structured one its texts, each as a separate paragraph."""
    # In JSON, only long texts are prose.
    if text[:1] not in "{[":
        return text
    return "\n\n".join(_VALUE.findall(text)).replace("\\n", "\n")


_VALUE = lazy_pattern(r":\s?\"((?:[^\"\\]|\\.){24,2000})\"")


def _join_prose(lines: Sequence[str]) -> Iterator[str]:
    text = " ".join(lines).strip("#*-> ")
    if (
        len(text) >= _LEAST_NOTE
        and _SPEAKS.search(text)
        # Code and data are not prose, whatever words they contain.
        and text[0] not in "{[<\"'"
        and len(_PROSE.findall(text)) >= _WORDS
        and not ORDERS.search(text)
    ):
        yield text


_SPEAKS = lazy_pattern(
    r"\b(?i:is|are|was|the|a|an|for|to|in|on|of|with|by|not|no|use|run|only|from|and|when|must|never|see|at|as|here|now)\b"
)


_WAY = lazy_pattern(
    r"\b(?:read-?only|by hand|only|(?:merge|pull) requests?|use[ds]?|instead|through|via|with(?:out)?|must|may|can|should|never"
    r"|nobody|nothing|not|no|cannot|ask|needs?|requires?|allow\w*|permitted|lives?|lies?|moved|belongs?|locked|closed|from|if"
    r"|unless|when|because|since|before|after|first|is|are|was|were|has|have)\b|n['’]t\b",
    re.IGNORECASE,
)
"""Words that say how things are, who may do something, how or where, and not only what is to be done."""
_TOLD = lazy_pattern(
    r"\b(?:read-?only|by hand|only|(?:merge|pull) requests?|use[ds]?|instead|through|via|with|must|may|never|nobody|ask"
    r"|allow\w*|permitted|lives?|lies?|moved)\b",
    re.IGNORECASE,
)
_SPECIAL = lazy_pattern(r"[\d._/@=:-]")
_DATE = lazy_pattern(r"[\d.:/T-]+Z?")
_LABEL = lazy_pattern(r"[A-Z]{1,4}[-.]?\d{1,4}")


def _list_tried(evidence: Evidence, entry: EntryView) -> str:
    """Return what the failing calls were given, with the error of one of them, in lower case."""
    return "\n".join([evidence.text(entry)[:_MOST_TEXT], *map(call_input, evidence.failing_calls)]).casefold()


def _list_untried(text: str, tried: str) -> list[str]:
    """Return what a text names and no failing call nor its error has: ids, paths and tools before words in capitals."""
    names = [name for name in quotable_parts(text) if name.casefold() not in tried]
    return sorted(names, key=lambda name: _SPECIAL.search(name) is None)


def _rank_way(text: str, tried: str) -> int:
    """Return how much a text says on how or where to do what failed; 0 if it only says what was tried."""
    # The number of a rule is no way.
    names = [name for name in _list_untried(text, tried) if _SPECIAL.search(name) and not _LABEL.fullmatch(name)]
    return 2 * len(names) + len(_TOLD.findall(text)) + (_WAY.search(text) is not None)


def _cut_to_way(text: str, topics: Sequence[str], tried: str) -> str:
    """Return the sentences of a paragraph that say most on a way, with the first one on a topic, as many as fit."""
    if len(text) <= _MOST_NOTE:
        return text
    sentences = [each for each in _SENTENCE.split(text) if each]
    first = next((at for topic in topics for at, each in enumerate(sentences) if contains_word(topic, each.casefold())), 0)
    chosen, room = set[int](), _MOST_NOTE
    for place in sorted(
        range(len(sentences)), key=lambda at: (-_rank_way(sentences[at], tried) - _ON_TOPIC * (at == first), at)
    ):
        if len(sentences[place]) + _GAP <= room:
            chosen.add(place)
            room -= len(sentences[place]) + _GAP
    if not chosen:
        return f"{sentences[first][:_MOST_NOTE].rpartition(' ')[0]} …"
    shown = [sentences[place] if place - 1 in chosen or not place else f"… {sentences[place]}" for place in sorted(chosen)]
    return " ".join(shown).removeprefix("… ")


def _explain_note(kind: str, evidence: Evidence, entry: EntryView, note: _Note, topics: Sequence[str]) -> Diagnosis | None:
    tried = _list_tried(evidence, entry)
    shown = _cut_to_way(note.text, topics, tried)
    given_text = "\n".join(call_input(each) for each in evidence.failing_calls).casefold()
    # All names in the note were tried, so it says nothing new.
    if all(word in given_text for word in _NAME.findall(shown.casefold()) if word not in _DULL):
        return None
    cause = f"{failure_text(evidence, entry)} {capital(evidence.source(note.entry))} says of it: {code(shown, _MOST_NOTE)}."
    # The rule whose number the error has is known.
    names = [name for name in _list_untried(shown, given_text) if name.casefold() not in tried or not _LABEL.fullmatch(name)]
    names = [name for name in names if not _DATE.fullmatch(name)][:_MAX_NAMES]
    holds = f" ({join_names(names)})" if names else ""
    step = f"Look again at that note{holds}, and go by it where it fits the task."
    return diagnosis(
        kind, cause, step, evidence.quote(note.entry, note.text), evidence.quote(entry),
        check="What that call was to do must be done.", confidence="medium",
    )  # fmt: skip


def failure_text(evidence: Evidence, entry: EntryView) -> str:
    """Return a sentence that says which call fails, with the most telling line of its output."""
    line = telling_line(evidence, entry)
    return f"{call_phrase(entry, 80)} fails{f', {code(line, 90)}' if line and not ORDERS.search(line) else ''}."


_UNIT = lazy_pattern(r"\n\s*\n|\n(?=\s*(?:[-*#]|\d{1,2}[.)])\s)")
_SAYS = lazy_pattern(
    r"\b(?:go(?:es)? (?:to|into|in|through|via|over)|push(?:es)? to|use|put|belongs?|only|instead|needs? no"
    r"|without|take|write to"
    r"|log ?in|via|through|ask|must|should|submit|drop|place|store|save|moved|now|new|rotated|renewed|lies?|is in|are in"
    r"|writable|allowed|permitted|everybody|everyone|anyone|may|can)\b",
    re.IGNORECASE,
)
_STEM = lazy_pattern(r"[A-Za-z]{3,30}")
_PLACE = lazy_pattern(r"(?<![\w/.<-])[~.]{0,2}/?(?:[\w.@-]{1,60}/){1,8}[\w.@-]{0,60}")
_NAMES = (
    lazy_pattern(r"`([^`\n]{2,90})`"),
    lazy_pattern(r"(?<![\w$])([A-Z][A-Z0-9_]{2,30}=\$?[\w./~@:-]{1,60}|--[a-z][\w-]{2,40}(?:[= ][\w./~-]{1,40})?)"),
    lazy_pattern(
        r"\b(?:remote|branch|host|alias|profile|account|role|group|queue|channel|project|user|proxy|mirror|bucket"
        r"|database|schema"
        r"|key|cluster|registry|namespace|service|server|workspace|tenant)s?(?: named| called"
        r"|:)? ['\"]?([a-z][\w.@-]{2,40})['\"]?(?=[\s.,;:)]|$)"
    ),
    lazy_pattern(
        r"(?<![\w/.@$=-])((?:[~.]{0,2}/)?(?:[\w.@-]{1,60}/){1,8}[\w.@-]{0,60}|[\w.-]{1,40}@[\w.-]{2,60}(?::[\w./-]{1,80})?)"
    ),
    lazy_pattern(r"(?<![\w/.$-])(\$?[A-Z][A-Z0-9]{1,30}_[A-Z0-9_]{2,40})\b"),
    lazy_pattern(r"(?<![\w/.$(-])([a-z][a-z0-9]{1,30}(?:\.[a-z][a-z0-9]{1,30})?(?:_[a-z0-9]{2,30}){1,4})(?![\w/(])"),
)
_NO_NAME = word_set(
    "and the that this for with from not are was were has have only which where when who its their your our may"
    " must can should "
    "will instead name names of is it be by to in on at as or if so no remote branch host alias profile account"
    " role group queue "
    "channel project user proxy mirrors bucket database schema key cluster registry namespace service server workspace tenant "
    "column columns row rows field fields number numbers use uses"
)
_CLOSED = lazy_pattern(
    r"\b(?:noexec|read-only|nobody \w+ \w+|belongs? to (?:the )?\w+|needs? no \w+|(?:takes?|accepts?"
    r"|allows?) no \w+|data only|closed|protected"
    r"|switched off|frozen|reserved|no longer \w+)\b",
    re.IGNORECASE,
)
_HARM = lazy_pattern(r"\b(?:rm|sudo|curl|wget|eval|chmod|chown|--force|--no-verify|--hard)\b|[|;&]")
_MOST_TEXT, _MOST_UNIT, _LEAST_SHARED, _MAX_TOLD = 12_000, 700, 2, 3


class NotedWay(NamedTuple):
    """What a note names instead of the refused thing.

    Attributes:
        names: plain names that no failing call has; first those after the word that says what is allowed.
        closed: the words that say what is not allowed, as a quote, or "".
        source: the origin of the note in words, as the beginning of a sentence.
        quote: the note.
    """

    names: list[str]
    closed: str
    source: str
    quote: Quote

    @property
    def joined_names(self) -> str:
        """The names in words."""
        return join_names(self.names[:_MAX_TOLD])

    @property
    def exclusion(self) -> str:
        """What is not allowed according to the note, as a part of a sentence."""
        return f" says {self.closed} and" if self.closed else ""


def find_way_in_note(evidence: Evidence, entry: EntryView, about: re.Pattern[str] | None = None) -> NotedWay | None:
    """Return what a note that was read names instead of what a call was refused, or None.

    Args:
        evidence: the session.
        entry: the refused call.
        about: words on the subject; a note with one of them needs to share less with the call.
    """
    steps = [each for each in evidence.failing_calls if each.agent == entry.agent]
    asked = "\n".join(command_of(step) or call_input(step) for step in [entry, *steps])
    said = evidence.text(entry)[:2_000]
    stems = _find_stems(f"{asked}\n{said}\n{entry.action.replace('_', ' ')}")
    places = {place.strip("/.") for place in _PLACE.findall(asked)}
    words = {word for word in re.split(r"[\W_]+", asked) if len(word) > _MAX_TOLD}
    parts = {part for place in places for part in place.split("/") if len(part) > _MAX_TOLD}
    best: tuple[float, NotedWay] | None = None
    for other in evidence.latest_before(entry.index):
        # The answer to an edit is the agent's own text.
        if not evidence.has_succeeded(other) or list_changes(other):
            continue
        for unit in _split_units(evidence.text(other)[:_MOST_TEXT]):
            verb = _SAYS.search(unit)
            shared = len(_find_stems(unit) & stems)
            same = any(contains_word(part, unit) for part in parts)
            rank = shared + 2 * same + (about is not None and about.search(unit) is not None)
            # A note must say what to do, not only mention the subject.
            if verb is None or rank < _LEAST_SHARED or (best is not None and rank <= best[0]):
                continue
            names = [
                name
                for name in _list_note_names(unit, verb.end())
                # A name that failed, or that the error itself has, is no other way.
                if name not in asked and name not in said and not _is_in_places(name, places)
            ]
            if names:
                # The name of a form of the refused thing says more than that of its place.
                names.sort(key=lambda name: words.isdisjoint(re.split(r"[\W_]+", name)))
                source = capital(evidence.source(other))
                best = (
                    rank,
                    NotedWay(
                        names,
                        join_names(dict.fromkeys(match.group(0) for match in _CLOSED.finditer(unit)), 2),
                        source,
                        evidence.quote(other, unit),
                    ),
                )
    return best[1] if best is not None else None


def _split_units(text: str) -> Iterator[str]:
    """Yield the paragraphs and list items of a text, each in one line. Long ones, and possible orders, are left out."""
    for unit in _UNIT.split(strip_line_numbers(text)):
        lines = unit.strip().split("\n")
        whole = " ".join(line.strip() for line in lines)
        # A wrapped paragraph is read as a whole, a list of values line by line.
        for each in [whole] if len(whole) <= _MOST_UNIT and (len(lines) == 1 or _is_prose(lines)) else lines:
            if len(each) <= _MOST_UNIT and not ORDERS.search(each):
                yield each.strip().replace("\\n", " ")


def _is_prose(lines: list[str]) -> bool:
    """Whether lines are a wrapped text, not a list of values or of whole messages."""
    whole = all(line.rstrip().endswith((".", "!", "?")) for line in lines)
    return not whole and sum(len(line.split()) for line in lines) > 4 * len(lines)


def _find_stems(text: str) -> set[str]:
    found = (word.casefold() for word in _STEM.findall(text[:6_000]))
    return {word[:6].rstrip("s") for word in found if word not in COMMON and word not in _NO_NAME}


def _list_note_names(unit: str, behind: int) -> list[str]:
    """Return the names in a note, those after a position first."""
    found: dict[str, int] = {}
    for pattern in _NAMES:
        for match in pattern.finditer(unit):
            name = match.group(1).split("<")[0].strip().rstrip(".,;:")
            plain = plain_name(name.replace("$", "").replace("--", "").replace(" ", "/"))
            if (
                len(name) > 2
                and plain
                and not _HARM.search(name)
                and name.casefold() not in _NO_NAME
                and " " not in name.split("=")[0].strip()
            ):
                found.setdefault(name, match.start())
    # The names after the verb are those to use.
    return sorted(found, key=lambda name: (found[name] < behind, found[name]))


def _is_in_places(name: str, places: set[str]) -> bool:
    bare = name.strip("/.")
    return any(place == bare or place.startswith(f"{bare}/") for place in places)
