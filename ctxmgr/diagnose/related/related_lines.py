"""Find the lines of other records about a failure, from any agent, person or tool.

`line_ranker` estimates from the features of each line how likely it names what an answer needs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple

from ctxmgr.diagnose.errors.lines import addresses_reader, is_error_word, is_telling, reasons, telling_line
from ctxmgr.diagnose.evidence import Evidence, Message, call_input, call_key, clock, may_change, program_name
from ctxmgr.diagnose.evidence.calls import command_of, list_changes
from ctxmgr.diagnose.evidence.messages import BINDS, split_sentences
from ctxmgr.diagnose.evidence.texts import ORDERS, agent_name, clean, clip, code, join_names, omission_mark, plain_name
from ctxmgr.diagnose.related.line_ranker import LineFeatures, relevance
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.finding import Quote
from ctxmgr.types.view import EntryView

_WORD = lazy_pattern(r"[^\W_][\w.@/:+-]{1,78}[\w]|[^\W_]{3,}")
_PART = lazy_pattern(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}(?![a-z])|\d{3,}")
_CODED = lazy_pattern(r"[\d_./:@-]")
_NAME = lazy_pattern(r"(?<![\w)*\]])[~.@/$-]{0,3}[\w][\w./:@%+=~-]{0,80}")
_SCHEME = lazy_pattern(r"\b[a-z]{2,10}://")
_CLOSING_TAG = lazy_pattern(r"</[A-Za-z][\w:-]{0,40}>?")
_VARIABLE = lazy_pattern(r"(?<![^\s;&|(])([A-Z][A-Z0-9_]{1,60})=(?=[^\s;&|])")
_VALUE = lazy_pattern(r"\d")
# The number before a line: Claude Code's `12→`, a tab as in `cat -n`, `12: `, `12| `
_NUMBERED = lazy_pattern(r"^\s{0,6}\d{1,5}(?:→|\t|[|:] | {2,})")
_SPAN = lazy_pattern(r"`([^`\n]{2,80})`")
_MEMBER = lazy_pattern(
    r"""(?:^|[{,\[(\s])["']?([A-Za-z_][\w.-]{1,30})["']?\s{0,2}[:=]\s{0,2}(?:["']([^"'\n]{1,60})["']|([\w./@:+-]{1,60})(?=\s*(?:[,}\])]|$)))"""
)
_DULL_MEMBER = lazy_pattern(
    r"(?i)apiVersion|kind|name|id|ok|status|type|title|message|text|body|description|version|date|from|to|subject|error|code"
)
_COUNTED = lazy_pattern(
    r"(?:[\w.-]+ )?(?:[\d.,:%+-]+|[0-9a-f]{7,40}|\d+[a-z]{1,2}(?:\d+[a-z]{1,2})?|\d{4}-\d\d-\d\d\S*|true|false|null)"
)
"""A number, a sum, a time or a switch. It says less than a name."""
_PLAIN_WORDS, _MOST_NAME = 6, 60
_HEADER = lazy_pattern(r"Here's the result of running")
_PERSON = lazy_pattern(r"(?<=[a-z,.:] )[A-Z][a-z]{1,20} [A-Z][a-z]{1,20}(?= [a-z])")
_DULL = lazy_pattern(
    r"/bin/(?:ba)?sh|/usr/bin/env|apiVersion|apps/v1|batch/v1|--help|-e?uo?|WARNING|HTTP(?:/[\d.]+)?|JSON|TO[D]O|FIX[M]E|X[X]X|PASS|PID|CMD|ELAPSED|\d{1,3}|[\d:.,+%-]{1,8}|[-+]\d{4}|[d-][rwx-]{9}|\d{1,2}:\d\d(?::\d\d)?|\d[\d.]*m?s?|0{2,}|\d+/\d+|[\w.]*(?:Error|Exception|Warning)|-\w|/\d+"
)
"""Words that look like names, but are numbers, times or modes."""
_EMPTY = lazy_pattern(r"[{\[\"':,\s}\]]*|\{(?:\"\w+\": ?(?:\"\"|0|true|null),?\s?)+\}")
_NUMBER = lazy_pattern(r"0\d{2,5}|[a-z]{1,8}-?\d{2,6}")
"""The number of a document, a rule or a ticket."""
_SPECIAL = lazy_pattern(r"\d|[_/.@:=~-]\w|[a-z][A-Z]|^[~/.-]+\w")
COMMON = word_set(
    "with that this from have been were will would could should there their then than when what which into your please make "
    "sure also just like some them they does error errors failed file files line command output code exit true false null "
    "none http https main home user dev usr local test tests run running"
)
"""Words that don't show what a text is about."""
_COMMON = COMMON | word_set(
    "and for the not are was has can but all you description traceback recent call last module self return import print "
    "echo head tail grep 2>&1 bin lib workspace usage info warning help log logs var etc src app web srv opt tmp cat exec "
    "node python bash shell git name type value get set new data main result status json version"
)
_JOINT = lazy_pattern(r"""(?<=[.!?;]) +|(?<=[}\]]), *(?=[{\["])|, (?="\w+":)""")
_MOST_RECORDS = 300
"""Maximum entries of the session, entries of related ones, and messages that are compared. How rare a word is depends on it."""
_MOST_TEXT, _MOST_LINES, _MOST_LINE, _MOST_SHOWN = 6_000, 160, 200, 220
"""Characters of a record that are read, its lines, the characters of a line, and those that a quote shows."""
_MOST_CANDIDATES = 2_000
"""Maximum lines that are ranked. Records with words of the calls come first, then the newest ones."""
_LEAST_OBJECT = 40
"""Characters from which an object of JSON is a piece by itself."""
_LEAST_LINE = 16
"""Characters of an error's line that tell it from others."""
_DOCUMENT = lazy_pattern(
    r"(?i)readme|contributing|agents\.md|claude\.md|polic(?:y|ies)|guide|runbook|handbook|manual|rules|notes|docs?/|adr|faq|how_?to|wiki"
    r"|onboarding|conventions|deploy\.|access\.|\.md\b|\.rst\b|help\b"
)
"""Names of documents that explain. They say how to do a thing more often than other records."""
_QUOTED_LINES, _CALL = 4, 120
MOST_NAMES = 10
"""Names in a line, from which on they are a listing."""
MOST_SOURCE = 70
"""Characters of a source that a prompt shows early."""
_LEAST_RELEVANCE, _MOST_FOUND = 0.1, 4
"""A line counts from this relevance. The most records."""
_LEAST_HOLDERS, _STEM_LENGTH, _WEIGHT_OF_NUMBER, _FAR_WORD = 3, 5, 2.0, 0.5
"""Records that may hold a word that counts, or a quarter of all; characters of a stem; the weights of the number of a
document or ticket, and of a word that only the output has. A word of the calls weighs 1."""
_SAYS_NOTHING = frozenset(("pwd", "umask", "nproc", "clear"))
"""Commands whose answers matter for no failure."""
_RARE, _RARE_NAME = 0.2, 0.1
"""Minimum weight of a rare word, and of a rare name: a word of the answer in two records, a name in five."""
_YEAR = lazy_pattern(r"(?:19|20)\d\d")
_SAYS_LITTLE = lazy_pattern(r"\d{1,3}|asser\w*|expec\w*|optio\w*")
"""Short numbers, and usual words of checks and usage texts."""
_UNSURE = lazy_pattern(
    r"(?i)\b(?:am|are|is|was|i['’]m|do|does|did|can|could)?(?: not|n['’]t)\s+(?:really |quite |exactly |too )?"
    r"(?:sure|certain|know|remember|recall|understand|aware)\b"
)
"""Words with which people say what they don't know. They bind nobody."""
_LETTERS = lazy_pattern(r"[A-Za-z]{2,}")
_LABEL = lazy_pattern(r"\w[:=]")


class RelatedLine(NamedTuple):
    """A record about a failure.

    Attributes:
        relevance: how likely its best line names what the answer needs, from 0 to 1.
        source: its agent and its call, in words.
        line: its line about the failure, or "".
        names: names in that line that no failing call has.
        quote: its most telling lines; None for a person's words, which the sentence repeats.
        shared: names in the whole record that the failing calls, or other records about the failure, have too.
        entry: id of the entry, or None for a message.
        of_failure: it shares a rare word of the error, or a name in the calls.
    """

    relevance: float
    source: str
    line: str
    names: Sequence[str]
    entry: str | None
    shared: Sequence[str] = ()
    by_user: bool = False
    quote: Quote | None = None
    of_failure: bool = True

    @property
    def key(self) -> str:
        """What tells it from other records: the id of its entry; for a message its source."""
        return self.entry or self.source

    @property
    def binds(self) -> bool:
        """Whether a person says how to do something."""
        return self.by_user and not self.line.endswith("?") and BINDS.search(_UNSURE.sub("", self.line)) is not None

    @property
    def sentence(self) -> str:
        """The record as a sentence. It has only names of the record, whose prose may be an order, or a person's own words."""
        source = f"{self.source[:1].upper()}{self.source[1:]}"
        if self.by_user:
            return f"{source.replace('The user', 'The user said')}: {code(self.line, _MOST_SHOWN)}."
        if not self.line:
            return f"{source} printed nothing."
        # So many names are those of a whole listing, of which the first ones say nothing.
        if len(self.names) > MOST_NAMES:
            return ""
        if self.names:
            return f"{source} names {join_names(self.names, 4)}."
        return f"{source} has {join_names(self.shared, 2)}." if self.shared else ""


class _Record(NamedTuple):
    """A record to compare, and its words that the calls have too.

    ``number`` counts records from the newest one, messages after all entries. ``request`` is the call itself.
    """

    number: int
    place: EntryView | Message
    request: str
    said: str
    words: set[str]


class _Piece(NamedTuple):
    """A line or a part of one: its words, and the line in which it stands from ``start`` to ``end``."""

    text: str
    line: str
    start: int
    end: int


class CandidateLine(NamedTuple):
    """A line or a sentence of a record, its features, and where it stands."""

    record: _Record
    position: int
    text: str
    features: LineFeatures
    piece: _Piece


def find_related_lines(evidence: Evidence, steps: Sequence[EntryView]) -> list[RelatedLine]:
    """Return the records about calls, the most telling one first.

    Args:
        evidence: the session.
        steps: calls that fail, or that get the same answer again and again.
    """
    if not steps:
        return []
    search = RecordSearch(evidence, steps)
    chosen = search.choose_lines()
    found = [_describe_record(evidence, search, relevance, lines) for relevance, lines in chosen]
    return [each for each in found if each is not None]


class RecordSearch:
    """The words of calls, the other records, and how many of these hold each word."""

    def __init__(self, evidence: Evidence, steps: Sequence[EntryView]) -> None:
        asked = "\n".join(_requested_text(step) for step in steps)
        telling = evidence.text(steps[0])[-_MOST_LINE * 2 :]
        said = "\n".join(evidence.text(step)[-_MOST_TEXT:] for step in steps)
        self.call_words = _comparison_words(f"{asked}\n{steps[0].action}")
        self.known = f"{asked}\n{said}"
        own = (entry for entry in evidence.recent[-_MOST_RECORDS:] if entry.agent == steps[0].agent)
        self.used = "\n".join(map(call_input, own))
        # Plain words in the calls' input say what the calls do, not how they fail, so only names are used from there.
        self.error_words = _comparison_words("\n".join(reasons(evidence, steps, _MOST_TEXT // 10)))
        coded = [word for word in _comparison_words(asked) if _CODED.search(word)]
        line = telling_line(evidence, steps[0]).casefold()
        # If the error names one of a tool's values, the other values are not what fails.
        if evidence.has_failed(steps[0]) and not command_of(steps[0]):
            coded = [word for word in coded if word in line] or coded
        named = {*coded, *(part for word in coded for part in _comparison_words(word.rstrip("/").rpartition("/")[2]))}
        self.telling = {
            word for word in (*self.error_words, *named) if not _SAYS_LITTLE.fullmatch(word) and not _YEAR.fullmatch(word)
        }
        self.telling -= _comparison_words(f"{steps[0].action} {program_name(steps[0])}")
        self.by_user = {name for message in evidence.user_texts for name in find_names(message.text[:_MOST_TEXT])}
        task = evidence.user_texts[0].text[:_MOST_TEXT] if evidence.user_texts else ""
        self.task_names, self.task_words = set(find_names(task)), _comparison_words(task)
        self.fails = evidence.has_failed(steps[0])
        self.named = {word[:_STEM_LENGTH] for word in re.findall(r"[a-z]{5,}", line) if word not in COMMON}
        self.agent = steps[0].agent
        weights = dict.fromkeys(_comparison_words(said), _FAR_WORD) | dict.fromkeys(self.call_words, 1.0)
        weights |= dict.fromkeys(
            (word for word in _comparison_words(telling) if _NUMBER.fullmatch(word) and word not in asked), _WEIGHT_OF_NUMBER
        )
        self.records = [
            _Record(number, place, request, text, self._shared_words(place, request, text, weights))
            for number, (place, request, text) in enumerate(_list_places(evidence, steps))
        ]
        self.held = Counter(word for record in self.records for word in record.words)
        common = max(_LEAST_HOLDERS, len(self.records) // 4)
        self.weights = {word: weight for word, weight in weights.items() if self.held[word] <= common}

    @staticmethod
    def _shared_words(place: EntryView | Message, request: str, said: str, weights: Mapping[str, float]) -> set[str]:
        text = f"{_action(place)}\n{request}\n{said}"
        folded = text.casefold()
        return _comparison_words(text) & weights.keys() if any(word in folded for word in weights) else set()

    def weight(self, words: Iterable[str]) -> float:
        """Return the weight of shared words: the fewer records hold one, the more it says."""
        return fsum(self.weights.get(word, 0.0) / max(self.held[word], 1) for word in words)

    def shares(self, record: _Record) -> bool:
        """Whether a record has a rare word of the error or of the calls' names, or looks up what the error names."""
        # If nothing fails, there is no error whose words could be shared.
        words = record.words & self.telling
        if not self.fails or any(self.weight([word]) >= (_RARE_NAME if _CODED.search(word) else _RARE) for word in words):
            return True
        # A look-up for what the error names: `kubectl config get-contexts`, if there is no such context.
        if not isinstance(place := record.place, EntryView):
            return False
        asks = set(re.findall(r"[a-z]{5,}", record.request.casefold())) - {program_name(place)}
        return any(word[:_STEM_LENGTH] in self.named for word in asks)

    def candidates(self) -> list[CandidateLine]:
        """Return the lines to rank, with their features."""
        found: list[CandidateLine] = []
        ordered = sorted(self.records, key=lambda each: (not each.words and isinstance(each.place, EntryView), each.number))
        for record in ordered:
            pieces = list(_split_record(record, self.agent, self.known))
            if len(found) + len(pieces) > _MOST_CANDIDATES:
                break
            of_record = self._record_features(record, len(pieces))
            for position, piece in enumerate(pieces):
                features = LineFeatures(**of_record, **self._text_features(piece.text), position=position)
                found.append(CandidateLine(record, position, piece.text, features, piece))
        return found

    def _record_features(self, record: _Record, lines: int) -> dict[str, Any]:
        """Return the features that all lines of a record share."""
        place = record.place
        by_user, is_message = _is_by_user(place), isinstance(place, Message)
        return {
            "lines": lines,
            "record_error_weight": self.weight(record.words & self.error_words),
            "record_call_weight": self.weight(record.words & self.call_words),
            "age": record.number,
            "relative_age": record.number / len(self.records),
            "by_user": by_user,
            "by_agent": is_message and not by_user,
            "by_other": (place.who if isinstance(place, Message) else place.agent) != self.agent,
            "is_document": _DOCUMENT.search(f"{_action(place)} {record.request[:_MOST_LINE]}") is not None,
        }

    def _text_features(self, text: str) -> dict[str, Any]:
        """Return the features of a line by its text alone."""
        names = [name for name in find_names(text) if name not in self.known]
        words, letters = _comparison_words(text), _LETTERS.findall(text)
        return {
            "characters": len(text),
            "words": len(letters),
            "letters": sum(map(len, letters)) / len(text),
            "has_digit": _VALUE.search(text) is not None,
            "has_path": "/" in text,
            "has_colon": _LABEL.search(text) is not None,
            "new_names": sum(name not in self.used for name in names),
            "task_names": sum(name in self.task_names for name in names),
            "task_words": len(words & self.task_words),
            "user_names": sum(name in self.by_user for name in names),
            "error_weight": self.weight(words & self.error_words),
            "call_weight": self.weight(words & self.call_words),
        }

    def choose_lines(self) -> list[tuple[float, list[CandidateLine]]]:
        """Return the most relevant lines by record, each group with the relevance of its first line, the best group first."""
        ranked = sorted(((relevance(line.features), line) for line in self.candidates()), key=lambda each: -each[0])
        groups: dict[int, tuple[float, list[CandidateLine]]] = {}
        seen: set[str] = set()
        for value, line in ranked:
            if value < _LEAST_RELEVANCE:
                break
            if line.text in seen:
                continue
            seen.add(line.text)
            number = line.record.number
            if number in groups:
                lines = groups[number][1]
                room = _MOST_SHOWN - sum(len(each.text) + 1 for each in lines)
                if len(lines) < _QUOTED_LINES and len(line.text) <= room:
                    lines.append(line)
            elif len(groups) < _MOST_FOUND and not self._is_outdated(line.record):
                groups[number] = value, [line]
        return list(groups.values())

    def _is_outdated(self, record: _Record) -> bool:
        """Whether a newer record from the same source states a value on the same subject."""
        source = _source_of_value(record.place)
        if source is None or not _VALUE.search(record.said):
            return False
        return any(
            each.number < record.number and _source_of_value(each.place) == source
            and each.words & record.words and _VALUE.search(each.said)
            for each in self.records
        )  # fmt: skip


def _split_record(record: _Record, agent: str | None, known: str) -> Iterator[_Piece]:
    """Yield the lines of a record; from a person its sentences; for a call of another agent than ``agent`` first the call.

    The call counts if it has a name that ``known`` lacks: the decisive part may be in its input, such as a key or an address.
    """
    place = record.place
    if isinstance(place, EntryView) and place.agent != agent:
        given = " ".join(record.request.split())
        # A variable may be called by a word of errors, such as MODE or KEY, which is no name elsewhere.
        if any(name not in known for name in [*find_names(given), *_VARIABLE.findall(command_of(place))]):
            yield _whole_line(clip(f"$ {given}" if command_of(place) else f"{place.action} {given}", _CALL))
    yield from map(_whole_line, split_sentences(record.said)) if _is_by_user(place) else _split_into_pieces(record.said)


def _whole_line(text: str) -> _Piece:
    return _Piece(text, text, 0, len(text))


def _source_of_value(place: EntryView | Message) -> tuple[str, str] | None:
    """Return who states a current value: a speaker, or a tool and its agent; None for a command or a look at a file."""
    if isinstance(place, Message):
        return "", place.who
    return None if command_of(place) or "/" in call_input(place) else (place.action, place.agent)


def _requested_text(entry: EntryView) -> str:
    """Return what a call asks for; for a command, without its client's description."""
    return command_of(entry) or call_input(entry)


def _list_places(evidence: Evidence, steps: Sequence[EntryView]) -> Iterator[tuple[EntryView | Message, str, str]]:
    """Yield the records to compare, each with its request and its text, the newest first."""
    keys = {call_key(step) for step in steps}
    first = min(step.index for step in steps)
    telling = telling_line(evidence, steps[0])
    telling = telling if is_telling(telling) and len(telling) >= _LEAST_LINE else ""
    for entry in [*reversed(evidence.recent[-_MOST_RECORDS:]), *reversed(evidence.related[-_MOST_RECORDS:])]:
        key = call_key(entry)
        if key in keys or not evidence.has_succeeded(entry) or command_of(entry).strip() in _SAYS_NOTHING:
            continue
        keys.add(key)
        if telling and telling in evidence.text(entry):
            continue  # the same failure, hidden by its command
        if entry.agent == steps[0].agent and may_change(entry) and (list_changes(entry) or entry.index > first):
            continue  # the agent's own attempts
        yield entry, _requested_text(entry), evidence.text(entry)[:_MOST_TEXT]
    for message in reversed(evidence.messages[-_MOST_RECORDS:]):
        if message.kind == "compaction" or (message.by in ("user", "agent") and message.who != steps[0].agent):
            yield message, "", message.text[:_MOST_TEXT]


def _describe_record(
    evidence: Evidence, search: RecordSearch, relevance: float, chosen: Sequence[CandidateLine]
) -> RelatedLine | None:
    """Return what the chosen lines of a record say, or None if that is nothing."""
    record, line = chosen[0].record, chosen[0].text
    place = record.place
    by_user = _is_by_user(place)
    whole = list(_split_record(record, search.agent, search.known))
    is_short = sum(len(each.text) for each in whole) + 3 * len(whole) <= _MOST_SHOWN and not by_user
    shown = _join_pieces(whole if is_short else [each.piece for each in sorted(chosen, key=lambda each: each.position)])
    line_text = line if by_user else " ⏎ ".join(each.text for each in (whole if is_short else chosen))
    names = [name for name in quotable_parts(line_text) if name not in search.known and not _is_known(name, search.known)]
    names.sort(key=lambda name: _COUNTED.fullmatch(name) is not None)
    # Names that the user mentioned and the calls lack make it relevant too.
    of_failure = search.shares(record) or not search.by_user.isdisjoint(names)
    if isinstance(place, Message):
        said = evidence.quote_message(place, shown)
        if by_user:
            return RelatedLine(relevance, clean(said.source), line, names, None, by_user=True, of_failure=of_failure)
        source = clean(f"what {agent_name(place.who, 60)} said{clock(place.at)}")
        quote = said.model_copy(update={"source": source})
        return RelatedLine(relevance, source, line, names, None, quote=quote, of_failure=of_failure)
    if _EMPTY.fullmatch(line) and (place.agent == evidence.agent or not may_change(place)):
        return None
    every = "\n".join(each.text for each in whole)
    shared = [] if names else [name for name in find_names(every) if name in search.known and _CODED.search(name)]
    source = evidence.source(place)
    quote = evidence.quote(place, shown)
    return RelatedLine(relevance, source, line, names, place.id, shared, quote=quote, of_failure=of_failure)


def _action(place: EntryView | Message) -> str:
    return place.action if isinstance(place, EntryView) else ""


def _is_by_user(place: EntryView | Message) -> bool:
    return isinstance(place, Message) and place.by == "user"


def _is_known(member: str, known: str) -> bool:
    """Whether the calls' input or output has the value of a member already."""
    name, _, value = member.partition(" ")
    return bool(value) and name in known and value in known


def _join_pieces(pieces: Sequence[_Piece]) -> str:
    """Return pieces as they stand in their lines, in their order, with a mark where a part of a line is left out."""
    rows: list[str] = []
    last: _Piece | None = None
    for each in pieces:
        text = each.line[each.start : each.end]
        if last is None or last.line is not each.line or each.start < last.end:
            rows.append(f"{'… ' if each.start else ''}{text}")
        else:
            between = each.line[last.end : each.start]
            rows[-1] = f"{rows[-1].removesuffix(' …')}{between if not between.strip(' ,') else omission_mark(between)}{text}"
        rows[-1] += " …" if each.end < len(each.line) else ""
        last = each
    return "\n".join(rows)


def _split_into_pieces(said: str) -> Iterator[_Piece]:
    """Yield the lines of a text; long lines as sentences or members. Orders and a client's lines around it are left out."""
    for row in said.split("\n")[:_MOST_LINES]:
        line = _NUMBERED.sub("", row).strip()
        if not line or ORDERS.search(row) or _HEADER.match(row):
            continue
        if len(line) <= _MOST_LINE:
            yield _whole_line(line)
            continue
        joints = [match.span() for match in _JOINT.finditer(line)]
        piece, start, end = "", 0, 0
        for begin, stop in zip([0, *(end for _, end in joints)], [*(start for start, _ in joints), len(line)], strict=True):
            # An object is a piece by itself: a balance says nothing beside the card before its own.
            is_whole = len(piece) >= _LEAST_OBJECT and piece.endswith(("}", "]"))
            if piece and (is_whole or len(piece) + stop - begin > _MOST_LINE):
                yield _cut_piece(piece, line, start, end)
                piece, start = "", begin
            piece, end = f"{piece} {line[begin:stop]}".strip(), stop
        if piece:
            yield _cut_piece(piece, line, start, end)


def _cut_piece(text: str, line: str, start: int, end: int) -> _Piece:
    return _Piece(text[:_MOST_LINE], line, start, end if len(text) <= _MOST_LINE else start + _MOST_LINE)


def quotable_parts(text: str) -> list[str]:
    """Return the parts of a line that may be repeated: its code spans, its members as "name value", then its names.

    A span or a value may be repeated if it is a name or a few plain words, and no request.
    """
    spans = [span for span in _SPAN.findall(text) if _is_plain(span)]
    members = [f"{name} {value}" for name, value in _list_members(text) if _is_plain(value)]
    quoted = " ".join([*spans, *members])
    return list(dict.fromkeys([*spans, *members, *(name for name in find_names(text) if name not in quoted)]))


def _list_members(text: str) -> Iterator[tuple[str, str]]:
    """Yield the members of a JSON, YAML or settings line with their values."""
    for name, quoted, bare in _MEMBER.findall(text):
        value = (quoted or bare).strip()
        if value and not _DULL_MEMBER.fullmatch(name):
            yield name, value


def _is_plain(text: str) -> bool:
    """Whether a text is a name or a few plain words, asks for nothing and does no harm."""
    words = text.split()
    return (
        0 < len(words) <= _PLAIN_WORDS and len(text) <= _MOST_NAME and not addresses_reader(text) and not ORDERS.search(text)
        and all(plain_name(word.lstrip("-").strip("()<>'\",;") or "-") for word in words)
    )  # fmt: skip


def find_names(text: str) -> list[str]:
    """Return the distinct names in a text, those of persons last: no words of a sentence, numbers, times or modes."""
    found = (name.rstrip("/.,:;=") for name in _NAME.findall(_CLOSING_TAG.sub(" ", _SCHEME.sub("", text))))
    names = (
        name for name in found
        if (_SPECIAL.search(name) or name.isupper()) and len(name) > 1 and plain_name(name.lstrip("-") or "-")
        and not _DULL.fullmatch(name) and not is_error_word(name)
    )  # fmt: skip
    return list(dict.fromkeys([*names, *_PERSON.findall(text)]))


def _comparison_words(text: str) -> set[str]:
    """Return the words of a text by which records are compared: names as they are, and the stems of their parts."""
    found: set[str] = set()
    for word in _WORD.findall(text):
        folded = word.casefold()
        if _CODED.search(word) and len(word) > 3:
            found.add(folded)
        for part in _PART.findall(word):
            stem = part.casefold()
            if stem not in _COMMON and not is_error_word(stem):
                found.add(stem[:_STEM_LENGTH].rstrip("s"))
    return found
