"""Find the other records about a failure: those that share its rare words, from any agent and any tool.

A record also counts if it only shares a number or a name with such a record: the id of a process or of a session.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import fsum, log1p
from typing import NamedTuple

from ctxmgr.diagnose.errors.lines import addresses_reader, is_error_word, is_telling, reasons, telling_line
from ctxmgr.diagnose.errors.table import find_topic
from ctxmgr.diagnose.evidence import Evidence, Message, call_input, call_key, may_change, program_name
from ctxmgr.diagnose.evidence.calls import command_of, list_changes
from ctxmgr.diagnose.evidence.messages import BINDS, split_sentences
from ctxmgr.diagnose.evidence.texts import ORDERS, clean, clip, code, join_names, plain_name
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
PRESCRIBES = lazy_pattern(
    r"\b(?:use|take|put|move|write|run|go|log in|connect|ask|call|read|look|set|instead|only"
    r"|is (?:for|in|at|on|under|now|called)"
    r"|are (?:for|in|at|on|under|now)|lives?|lies?|moved to|renamed|replaced by|belongs?|allowed|may|must|should|needs?"
    r"|works? with)\b",
    re.IGNORECASE,
)
_MOST_RECORDS = 300
"""Maximum entries of the session, entries of related ones, and messages that are compared. How rare a word is depends on it."""
_MOST_TEXT, _MOST_LINES, _MOST_LINE, _MOST_SHOWN = 6_000, 160, 200, 170
"""Characters of a record that are read, its lines, the characters of a line, and those that a quote shows."""
_LEAST_LINE, _WEIGHT_OF_USER = 16, 0.7
"""Characters of an error's line that tell it from others, and the factor for the user's words."""
_DOCUMENT = lazy_pattern(
    r"(?i)readme|contributing|agents\.md|claude\.md|polic(?:y|ies)|guide|runbook|handbook|manual|rules|notes|docs?/|adr|faq|how_?to|wiki"
    r"|onboarding|conventions|deploy\.|access\.|\.md\b|\.rst\b|help\b"
)
"""Names of documents that explain. They say how to do a thing more often than other records."""
_DOCUMENTED, _NOTHING_NEW = 0.5, 0.5
_TOLD_LINES, _QUOTED_LINES, _CALL = 4, 4, 120
MOST_NAMES = 10
"""Names in a line, from which on they are a listing."""
MOST_SOURCE = 70
"""Characters of a source that a prompt shows early."""
_WEIGHT_ELSEWHERE, _LEAST_SHARED, _WEIGHT_OF_NAMES, _WEIGHT_OF_RULES = 0.4, 0.1, 0.3, 0.3
"""Factor for words outside of the best line; the weight of shared words from which new names and prescriptions count."""
_LEAST_RANK, _PART_OF_BEST, _SURE_RANK, _MOST_FOUND = 0.5, 0.2, 2, 3
"""A record counts from this rank, and from this part of the best one's, which counts up to a limit; the most records."""
_LEAST_HOLDERS, _STEM_LENGTH, _WEIGHT_OF_NUMBER = 3, 5, 2.0
"""Records that may hold a word that counts, or a quarter of all; characters of a stem; the number of a document or ticket."""
_OF_LINE, _NEW, _UNUSED, _OF_OTHER, _FAR = 0.3, 0.4, 0.6, 0.9, 9
"""What decides how early a line is shown: see `_Search.score`."""
_SAYS_NOTHING = frozenset(("pwd", "umask", "nproc", "clear"))
"""Commands whose answers matter for no failure."""
_RARE, _RARE_NAME = 0.2, 0.1
"""Minimum weight of a rare word, and of a rare name: a word of the answer in two records, a name in five."""
_YEAR = lazy_pattern(r"(?:19|20)\d\d")
_SAYS_LITTLE = lazy_pattern(r"\d{1,3}|asser\w*|expec\w*|optio\w*")
"""Short numbers, and usual words of checks and usage texts."""
_OTHER_AGENT, _FAR_WORD, _HOP, _TOPIC, _SAME_PROGRAM, _MOST_OF_PROGRAM = 0.4, 0.5, 0.7, 0.5, 0.35, 6


class RelatedLine(NamedTuple):
    """A record about a failure.

    Attributes:
        rank: the sum of the weights of its shared words; a word in few records weighs more.
        source: its agent and its call, in words.
        line: its line about the failure, or "".
        names: names in that line that no failing call has.
        quote: its most telling lines; None for a person's words, which the sentence repeats.
        shared: names in the whole record that the failing calls, or other records about the failure, have too.
        entry: id of the entry, or None for a message.
        of_failure: it shares a rare word of the error, or a name in the calls.
    """

    rank: float
    source: str
    line: str
    names: Sequence[str]
    entry: str | None
    shared: Sequence[str] = ()
    by_user: bool = False
    quote: Quote | None = None
    of_failure: bool = True

    @property
    def binds(self) -> bool:
        """Whether a person says how to do something."""
        return self.by_user and BINDS.search(self.line) is not None

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
    """A record to compare, its weight apart from its words, and its words that the calls have too.

    ``number`` counts records from the newest one, separately for entries and messages. ``asked`` are the words of the call
    itself. ``explains``: the record is a document.
    """

    number: int
    place: EntryView | Message
    said: str
    extra: float
    words: set[str]
    units: list[_Unit]
    asked: set[str]
    explains: bool


class _Unit(NamedTuple):
    """A line or a sentence of a record, its words, and its weight apart from the words shared with the calls.

    ``news``: its weight for a name that the calls lack, or that no call of the agent has used.
    """

    text: str
    words: set[str]
    extra: float
    news: float = 0.0


def find_related_lines(evidence: Evidence, steps: Sequence[EntryView]) -> list[RelatedLine]:
    """Return the records about calls, the most telling one first.

    Args:
        evidence: the session.
        steps: calls that fail, or that get the same answer again and again.
    """
    if not steps:
        return []
    search = _Search(evidence, steps)
    found: list[RelatedLine] = []
    best = 0.0
    while search.records and len(found) < _MOST_FOUND:
        rank, record = search.take_best()
        if rank < max(_LEAST_RANK, _PART_OF_BEST * min(best, _SURE_RANK)):
            break
        best = best or rank
        record = search.take_newest(record)
        line = _describe_record(evidence, record, rank, search)
        if line is not None:
            found.append(line)
            search.follow(line.line, tells=line.of_failure)
    return found


class _Search:
    """The words of calls, the other records, and how many of these hold each word."""

    def __init__(self, evidence: Evidence, steps: Sequence[EntryView]) -> None:
        asked = "\n".join(_requested_text(step) for step in steps)
        telling = evidence.text(steps[0])[-_MOST_LINE * 2 :]
        said = "\n".join(evidence.text(step)[-_MOST_TEXT:] for step in steps)
        weights = dict.fromkeys(_comparison_words(said), _FAR_WORD) | dict.fromkeys(
            _comparison_words(f"{asked}\n{steps[0].action}"), 1.0
        )
        weights |= dict.fromkeys(
            (word for word in _comparison_words(telling) if _NUMBER.fullmatch(word) and word not in asked), _WEIGHT_OF_NUMBER
        )
        self.known = f"{asked}\n{said}"
        own = (entry for entry in evidence.recent[-_MOST_RECORDS:] if entry.agent == steps[0].agent)
        self.used = "\n".join(map(call_input, own))
        # Plain words in the calls' input say what the calls do, not how they fail, so only names are used from there.
        error_words = _comparison_words("\n".join(reasons(evidence, steps, _MOST_TEXT // 10)))
        coded = [word for word in _comparison_words(asked) if _CODED.search(word)]
        named = {*coded, *(part for word in coded for part in _comparison_words(word.rstrip("/").rpartition("/")[2]))}
        self.telling = {
            word for word in (*error_words, *named) if not _SAYS_LITTLE.fullmatch(word) and not _YEAR.fullmatch(word)
        }
        self.telling -= _comparison_words(f"{steps[0].action} {program_name(steps[0])}")
        self.by_user = {name for message in evidence.user_texts for name in find_names(message.text[:_MOST_TEXT])}
        self.fails = evidence.has_failed(steps[0])
        line = telling_line(evidence, steps[0]).casefold()
        self.named = {word[:_STEM_LENGTH] for word in re.findall(r"[a-z]{5,}", line) if word not in COMMON}
        self.agent = steps[0].agent
        places = list(_list_places(evidence, steps))
        programs = Counter(program_name(place) for place, _, _ in places if isinstance(place, EntryView))
        self.program = program_name(steps[0]) if programs[program_name(steps[0])] <= _MOST_OF_PROGRAM else None
        self.topic = find_topic(said)
        self.records = [
            _Record(
                number,
                place,
                said,
                self._extra_score(place, asked, said),
                set(),
                [],
                _comparison_words(f"{_action(place)}\n{asked}"),
                _DOCUMENT.search(f"{_action(place)} {asked[:_MOST_LINE]}") is not None,
            )
            for number, (place, asked, said) in enumerate(places)
        ]
        for record, (place, asked, said) in zip(self.records, places, strict=True):
            folded = f"{_action(place)}\n{asked}\n{said}"
            if any(word in folded.casefold() for word in weights):
                record.words.update(_comparison_words(folded) & weights.keys())
                record.units.extend(self.split(place, said))
        self.held = Counter(word for record in self.records for word in record.words)
        common = max(_LEAST_HOLDERS, len(self.records) // 4)
        self.weights = {word: weight for word, weight in weights.items() if self.held[word] <= common}

    def _extra_score(self, place: EntryView | Message, asked: str, said: str) -> float:
        """Return the weight of a record apart from its words: for the same program, and for words of the error's topic."""
        same = isinstance(place, EntryView) and program_name(place) == self.program
        words = (
            {match.group(0).casefold() for match in self.topic.words.finditer(f"{asked[:_MOST_LINE]} {said}")}
            if self.topic
            else ()
        )
        return (_SAME_PROGRAM if same else 0.0) + _TOPIC * min(2, len(words))

    def weight(self, word: str) -> float:
        """Return the weight of a shared word: the fewer records hold it, the more it says."""
        return self.weights.get(word, 0.0) / max(self.held[word], 1)

    def shares(self, record: _Record) -> bool:
        """Whether a record has a rare word of the error or of the calls' names, or looks up what the error names."""
        # If nothing fails, there is no error whose words could be shared.
        words = record.words & self.telling
        if not self.fails or any(self.weight(word) >= (_RARE_NAME if _CODED.search(word) else _RARE) for word in words):
            return True
        # A look-up for what the error names: `kubectl config get-contexts`, if there is no such context.
        if not isinstance(place := record.place, EntryView):
            return False
        asks = set(re.findall(r"[a-z]{5,}", _requested_text(place).casefold())) - {program_name(place)}
        return any(word[:_STEM_LENGTH] in self.named for word in asks)

    def take_best(self) -> tuple[float, _Record]:
        """Remove and return the most telling record; of two equal ones, the newer one."""
        ranks = [self.rank(record) for record in self.records]
        others = [self._is_of_other(record) for record in self.records]
        ranks = [rank + _OTHER_AGENT * (rank > 0 and other) for rank, other in zip(ranks, others, strict=True)]
        scores = [
            self.score(record, rank) + _OF_OTHER * other if rank >= _LEAST_RANK else rank / _FAR
            for record, rank, other in zip(self.records, ranks, others, strict=True)
        ]
        at = scores.index(max(scores))
        return ranks[at], self.records.pop(at)

    def _is_of_other(self, record: _Record) -> bool:
        """Whether another agent made or said it, so that all of it is news."""
        place = record.place
        return (place.who if isinstance(place, Message) else place.agent) != self.agent

    def score(self, record: _Record, rank: float) -> float:
        """Return the score that decides how early a record is shown: how much it says, plus the score of its best line.

        A line with a name that the calls lack counts most. With that, 80 % instead of 71 % of the words that cause and next
        step need are in the first 350 characters (325 words of 206 stuck logs, each searched for among all lines of its log).
        """
        return log1p(rank) + max((self.line_score(unit) for unit in record.units), default=0.0)

    def line_score(self, unit: _Unit) -> float:
        """Return the score that decides how early a line is shown among those of its record."""
        return _OF_LINE * log1p(self.worth(unit)) + unit.news

    def rank(self, record: _Record) -> float:
        """Return how much a record says: mostly by its best line, less by its other lines."""
        if _is_by_user(record.place):
            return max((self.worth(unit) for unit in record.units), default=0.0) * _WEIGHT_OF_USER
        if not record.words and not record.extra:
            return 0.0
        best = max(record.units, key=self.worth, default=_Unit("", set(), 0.0))
        near = record.asked | best.words
        shared = fsum(self.weight(word) * (1.0 if word in near else _WEIGHT_ELSEWHERE) for word in record.words)
        written = _DOCUMENTED if record.words and record.explains else 0.0
        return record.extra + written + shared + (best.extra if self.worth(best) > best.extra else 0.0)

    def worth(self, unit: _Unit) -> float:
        """Return how much a line says: by the words that it shares and, if it shares any, by what it adds."""
        shared = fsum(map(self.weight, unit.words))
        return shared * (1.0 if unit.extra else _NOTHING_NEW) + unit.extra if shared > _LEAST_SHARED else shared

    def split(self, place: EntryView | Message, said: str) -> Iterator[_Unit]:
        """Yield the lines of a record; from a person's words only sentences that may be about a failure."""
        return self._sentences(said) if _is_by_user(place) else self._split_units(said)

    def _sentences(self, said: str) -> Iterator[_Unit]:
        """Yield a person's sentences that name something new or prescribe something. The rest says nothing about a failure."""
        for place, text in enumerate(split_sentences(said)):
            names = [name for name in find_names(text) if name not in self.known]
            if (names and place) or BINDS.search(text):
                yield _Unit(text, _comparison_words(text), _WEIGHT_OF_NAMES if names else 0.0, self._news(names))

    def _split_units(self, said: str) -> Iterator[_Unit]:
        for text in _split_into_pieces(said):
            names = [name for name in find_names(text) if name not in self.known]
            extra = (_WEIGHT_OF_NAMES if names else 0.0) + (_WEIGHT_OF_RULES if PRESCRIBES.search(text) else 0.0)
            yield _Unit(text, _comparison_words(text), extra, self._news(names))

    def _news(self, names: Sequence[str]) -> float:
        """Return the weight of names that the calls lack: more if no call of the agent has used one of them."""
        return (_NEW if all(name in self.used for name in names) else _UNUSED) if names else 0.0

    def take_newest(self, record: _Record) -> _Record:
        """Return the newest record from the same source that states a value, and remove the older ones."""
        if not _VALUE.search(record.said):
            return record
        same = [
            each for each in self.records
            if _source_of_value(each.place) == _source_of_value(record.place)
            and each.words & record.words and _VALUE.search(each.said)
        ]  # fmt: skip
        if _source_of_value(record.place) is None or not same:
            return record
        self.records = [each for each in self.records if not any(each is other for other in same)]
        return min([record, *same], key=lambda each: each.number)

    def follow(self, line: str, *, tells: bool) -> None:
        """Search also for the numbers and names of a line that was found. ``tells``: the line is about the failure."""
        for word in _comparison_words(line):
            if _CODED.search(word) and word not in self.weights:
                self.weights[word] = _HOP
                self.telling |= {word} if tells else set()
                for record in self.records:
                    given_word = isinstance(record.place, EntryView) and word in _requested_text(record.place).casefold()
                    if given_word or word in record.said.casefold():
                        record.words.add(word)
                        record.units.extend([] if record.units else self.split(record.place, record.said))
                        self.held[word] += 1


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
        if message.kind == "compaction" or message.by == "user" or (message.by == "agent" and message.who != steps[0].agent):
            yield message, "", message.text[:_MOST_TEXT]


def _describe_record(evidence: Evidence, record: _Record, rank: float, search: _Search) -> RelatedLine | None:
    """Return what a record says, or None if that is nothing."""
    units = record.units or list(search.split(record.place, record.said))
    if not units:
        return None
    whole = " ⏎ ".join(unit.text for unit in units)
    ordered = sorted(units, key=search.line_score, reverse=True)
    line = whole if len(whole) <= _MOST_SHOWN and not _is_by_user(record.place) else max(units, key=search.worth).text
    line_text = line if len(whole) <= _MOST_SHOWN else " ⏎ ".join(unit.text for unit in ordered[:_TOLD_LINES])
    names = [name for name in quotable_parts(line_text) if name not in search.known and not _is_known(name, search.known)]
    names.sort(key=lambda name: _COUNTED.fullmatch(name) is not None)
    place = record.place
    if isinstance(place, Message):
        source = clean(evidence.quote_message(place, line).source)
        return RelatedLine(rank, source, line, names, None, by_user=place.by == "user") if line else None
    if (not line or _EMPTY.fullmatch(line)) and (place.agent == evidence.agent or not may_change(place)):
        return None
    shared = [] if names else [name for name in find_names(whole[:_MOST_TEXT]) if name in search.known and _CODED.search(name)]
    best = sorted(_choose_lines(ordered), key=units.index)
    shown = [unit.text for unit in (units if len(whole) <= _MOST_SHOWN else best)]
    source = evidence.source(place)
    quote = evidence.quote(place, "\n".join([*_find_call_of_other(search, place, source), *shown]))
    # Names that the user mentioned and the calls lack make it relevant too.
    of_failure = search.shares(record) or not search.by_user.isdisjoint(names)
    return RelatedLine(rank, source, line, names, place.id, shared, quote=quote, of_failure=of_failure)


def _find_call_of_other(search: _Search, place: EntryView, source: str) -> list[str]:
    """Return the call of another agent if it has a name that neither the failing calls nor its source show.

    The decisive part may be in the call's input, such as a key or an address, and not in its output.
    """
    if place.agent == search.agent:
        return []
    given = " ".join(_requested_text(place).split())
    # A prompt cuts a longer source in its middle.
    seen = search.known if len(source) > MOST_SOURCE else f"{search.known}\n{source}"
    # A variable may be called by a word of errors, such as MODE or KEY, which is no name elsewhere
    names = [*find_names(given), *_VARIABLE.findall(command_of(place))]
    if all(name in seen for name in names):
        return []
    return [clip(f"$ {given}" if command_of(place) else f"{place.action} {given}", _CALL)]


def _choose_lines(units: Sequence[_Unit]) -> list[_Unit]:
    """Return the first lines, as many as fit into a quote."""
    chosen: list[_Unit] = []
    room = _MOST_SHOWN
    for unit in units:
        if chosen and (len(unit.text) > room or not unit.news or len(chosen) == _QUOTED_LINES):
            continue
        chosen.append(unit)
        room -= len(unit.text) + 1
    return chosen


def _action(place: EntryView | Message) -> str:
    return place.action if isinstance(place, EntryView) else ""


def _is_by_user(place: EntryView | Message) -> bool:
    return isinstance(place, Message) and place.by == "user"


def _is_known(member: str, known: str) -> bool:
    """Whether the calls' input or output has the value of a member already."""
    name, _, value = member.partition(" ")
    return bool(value) and name in known and value in known


def _split_into_pieces(said: str) -> Iterator[str]:
    """Yield the lines of a text; long lines as sentences or members. Orders and a client's lines around it are left out."""
    for row in said.split("\n")[:_MOST_LINES]:
        line = _NUMBERED.sub("", row).strip()
        if not line or ORDERS.search(row) or _HEADER.match(row):
            continue
        if len(line) <= _MOST_LINE:
            yield line
            continue
        piece = ""
        for part in _JOINT.split(line):
            if piece and len(piece) + len(part) > _MOST_LINE:
                yield piece[:_MOST_LINE]
                piece = ""
            piece = f"{piece} {part}".strip()
        if piece:
            yield piece[:_MOST_LINE]


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
