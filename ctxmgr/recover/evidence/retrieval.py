"""Search the whole history for what a request or problem mentions.

The search is lexical and deterministic. A word counts more if fewer records hold it, and words close together count more
than words apart. A later record wins over an earlier one that it may have replaced.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeGuard

from ctxmgr.base.light_dataclass import dataclass, field, replace
from ctxmgr.diagnose.evidence.calls import command_of, fields_of
from ctxmgr.diagnose.evidence.messages import is_inserted
from ctxmgr.recover.evidence.excerpts import Clause, Passage, Row, Scale, SoughtWords, Term, Text, best_passage, record_text
from ctxmgr.recover.evidence.history_reader import changes_something, explains, program, same_call, texts, words
from ctxmgr.recover.evidence.quotes import answer_text, flat
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.text.tokens import stem
from ctxmgr.types.route import is_context_manager
from ctxmgr.types.view import EntryView, EventView

_MOST_ROWS = 40
_MOST_SEARCHES = 24
_FEW_SEARCHES = 5
_LARGE = 10_000
"""Entries above which fewer searches are made, since each reads more: history must not slow a recovery down (SC-004)."""
_ENOUGH, _LITTLE = 0.45, 0.3
"""Shares of a question's weight from which a record answers it. The smaller one needs words too heavy for a chance match."""
_BESIDE = 0.25
"""Factor on words of the other clauses. Of two answers to one clause, the one with more of these words comes first."""
_CHANCE, _LEAST = 1.15, 3.0
"""Weight of common words above which a match is hardly chance: this times the weight of the rarest words, at least `_LEAST`."""
_RARE = 0.4
"""Share of the rarest words' weight from which a word counts as rare."""
_NO_WORDS = ("usage", "stuck", "compaction", "heartbeat")
"""Types of events that programs record about a run. Nobody says anything in them."""
_MORE = 2
"""Number of uncertain records given besides the certain ones."""
_WORTH = 0.4
"""Share of `_chance_limit` above which an uncertain record is worth giving."""
_GENERIC = 0.3
"""Share of their weight that the words of `_PLAIN_WORDS` keep."""
_PLAIN_WORDS = word_set(
    "error exist file path fail command exit code line message type output input result run call test update use string name "
    "value new old text content create read write open get set list found find invalid unexpected expected return argument "
    "option unable could try traceback recent last module server client request response status data user"
)
_PLAIN = frozenset(map(stem, _PLAIN_WORDS))
"""Stems of words that occur in any error and any input. They say little about the subject of a problem."""


class Finder(Protocol):
    """Finds rows by a text, in a session or in related sessions."""

    def find(self, text: str, most: int, /) -> list[Row]:
        """Return up to ``most`` of the newest rows that contain a text, oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class RetrievedRecord:
    """A record that is relevant to a query.

    Attributes:
        row: the entry, or the message.
        excerpt: verbatim text around the match.
        cover: share of the query that it covers, by weight, 0 to 1.
        sure: whether it covers enough to count as an answer.
        replaces: indexes of entries whose answer it replaces; -1 for a message.
        met: the words of the query that it contains.
    """

    row: Row
    excerpt: str
    cover: float
    sure: bool
    replaces: tuple[int, ...] = ()
    met: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The records found, oldest first; the clauses that no record answers; ids of records whose answer was replaced."""

    found: list[RetrievedRecord]
    unanswered: list[str]
    replaced: set[str] = field(default_factory=set[str])


@dataclass(frozen=True, slots=True)
class Pool:
    """The records to compare, by id, with their texts."""

    rows: Mapping[str, Row]
    texts: Mapping[str, Text]
    scale: Scale


@dataclass(frozen=True, slots=True)
class Scope:
    """The records to search, and those that do not count.

    Attributes:
        recent: entries already read, to compare beside those that a search finds.
        without: ids of records that do not count: the trouble itself, and the task, which is given anyway.
        own: ids of the asking agent's last entries. They are the situation of its question, not an answer.
        total: number of entries of the session.
        vain: results of `same_call` for calls made in vain.
        programs: results of `program` for the commands of the trouble. Another form of one that worked is a way out.
        searched: results of the searches made so far.
        onset, stuck: messages of this agent from this entry on belong to the trouble.
    """

    recent: Sequence[Row] = ()
    without: Collection[str] = ()
    own: Collection[str] = ()
    total: int = 0
    vain: Collection[str] = ()
    onset: int | None = None
    stuck: str | None = None
    programs: Collection[tuple[str, ...]] = ()
    searched: dict[str, list[Row]] = field(default_factory=dict[str, list[Row]])

    def counts(self, row: Row) -> bool:
        """Whether a record counts."""
        if row.id in self.without:
            return False
        if isinstance(row, EntryView):
            return not is_context_manager(row.agent) and (not self.vain or same_call(row) not in self.vain)
        if is_inserted(row.data) or row.type in _NO_WORDS or _is_block(words(row.data)):
            return False
        late = self.onset is not None and row.after is not None and row.after >= self.onset - 1
        return not (late and row.agent is not None and row.agent == self.stuck)


def seek(reader: Finder, wanted: Sequence[Clause], most: int, scope: Scope | None = None) -> Retrieval:
    """Return up to ``most`` records about the clauses of a request, and the clauses that no record answers."""
    scope = scope or Scope()
    if not wanted:
        return Retrieval([], [])
    pool = _collect_pool(reader, wanted, scope)
    best: dict[str, RetrievedRecord] = {}
    open_: list[Clause] = []
    answered = False
    dropped: set[str] = set()
    for clause in wanted:
        around = [term for other in wanted if other is not clause for term in other.terms]
        ranked, gone = _rank(clause, around, pool, scope.own)
        dropped |= gone
        for found in ranked[:most]:
            if found.row.id not in best or best[found.row.id].cover < found.cover:
                best[found.row.id] = found
        if clause.asks and any(found.sure for found in ranked):
            answered = True
        elif clause.asks:
            open_.append(clause)
    kept = sorted(best.values(), key=lambda found: (found.sure, found.cover, log_position(found.row)))
    kept = [found for found in kept if found.row.id not in dropped][-most:]
    # Beside an answered question, an open clause of a single word is only a manner of speaking.
    unanswered = [clause.text for clause in open_ if not answered or (len(clause.terms) > 1 and not clause.implied)]
    return Retrieval(sorted(kept, key=lambda found: log_position(found.row)), unanswered, dropped)


def seek_around(reader: Finder, trouble: Sequence[tuple[Clause, float]], most: int, scope: Scope) -> Retrieval:
    """Return up to ``most`` records that share the most words with a trouble. Each part of the trouble has a weight."""
    pool = _collect_pool(reader, [clause for clause, _ in trouble], scope)
    wanted: dict[str, Mapping[str, float]] = {}
    for clause, share in sorted(trouble, key=lambda part: -part[1]):
        for word, sought in pool.scale.matches(clause.terms).items():
            if word not in wanted and not (word.isdigit() and len(word) < 3):
                part = share * (_GENERIC if word in _PLAIN else 1.0)
                wanted[word] = {form: weight * part for form, weight in sought.items()}
    found: list[RetrievedRecord] = []
    for name, row in pool.rows.items():
        passage = best_passage(pool.texts[name], wanted)
        if passage.weight > 0:
            sure = _exceeds_chance(row, passage, wanted, scope, pool.scale)
            found.append(RetrievedRecord(row, passage.excerpt, passage.weight, sure, met=passage.met))
    told = [(each.row, each.excerpt, each.met if each.sure or isinstance(each.row, EventView) else ()) for each in found]
    old = superseded_records(told)
    ranked = [_add_replaced(each, old) for each in found if each.row.id not in old]
    ranked.sort(key=lambda each: (each.sure, round(each.cover, 1), log_position(each.row)))
    sure = sum(each.sure for each in ranked)
    few = max(_MORE, sum(each.sure or each.cover >= _WORTH * _chance_limit(pool.scale) for each in ranked))
    kept = ranked[-min(most, few, sure + _MORE if sure else most) :]
    return Retrieval(sorted(kept, key=lambda each: log_position(each.row)), [], set(old))


def _chance_limit(scale: Scale) -> float:
    return max(_LEAST, _CHANCE * scale.rarest)


def _exceeds_chance(row: Row, passage: Passage, wanted: SoughtWords, scope: Scope, scale: Scale) -> bool:
    """Whether a record has too much in common with a trouble for a chance match."""
    if passage.weight < _chance_limit(scale) or row.id in scope.own:
        return False
    telling = [word for word in passage.met if word not in _PLAIN]
    rare = sum(max(wanted[word].values()) >= _RARE * scale.rarest for word in telling)
    if isinstance(row, EventView):
        return rare > 0 and len(telling) > 1
    if changes_something(row) and not command_of(row) and not explains(row):
        return False  # a changed file shows no way out
    another_form = row.status == "ok" and tuple(program(command_of(row))) in scope.programs
    return rare > 0 and (len(telling) > 1 or another_form)


def merge(first: Retrieval, second: Retrieval, most: int, *, answers: bool) -> Retrieval:
    """Return the result of two searches without duplicates. ``answers``: a sure record of the second is an answer too."""
    known = {found.row.id for found in first.found}
    more = sorted((each for each in second.found if each.row.id not in known), key=lambda each: (each.sure, each.cover))
    kept = [*first.found, *more[-max(0, most - len(first.found)) :]] if most > len(first.found) else first.found
    answered = answers and any(each.sure for each in second.found)
    gone = first.replaced | second.replaced
    kept = sorted((each for each in kept if each.row.id not in gone), key=lambda each: log_position(each.row))
    return Retrieval(kept, [] if answered else first.unanswered, gone)


def _collect_pool(reader: Finder, wanted: Sequence[Clause], scope: Scope) -> Pool:
    """Return the records to compare. A search made before for the same scope is not repeated."""
    hits = scope.searched
    budget = _FEW_SEARCHES if scope.total > _LARGE else _MOST_SEARCHES
    budget += len(hits) and budget // 3  # the second search has words of its own
    for clause in sorted(wanted, key=lambda clause: not clause.asks):
        for form in (form for term in clause.terms for form in term.forms):
            if form not in hits and len(hits) < budget:
                hits[form] = reader.find(form, _MOST_ROWS)
    all_rows: Iterable[Row] = [*scope.recent, *(row for found in hits.values() for row in found)]
    rows = {row.id: row for row in all_rows if scope.counts(row) and not _is_echo(row, wanted)}
    texts = {name: record_text(row) for name, row in rows.items()}
    return Pool(rows, texts, Scale(list(texts.values())))


def _is_echo(row: Row, wanted: Sequence[Clause]) -> bool:
    """Whether an action only repeats a question: its input has the question's words."""
    given = "\n".join(texts(row.input)).casefold() if isinstance(row, EntryView) else ""
    return any(len(clause.terms) > 1 and clause.text.casefold() in given for clause in wanted)


def _rank(clause: Clause, around: Sequence[Term], pool: Pool, own: Collection[str]) -> tuple[list[RetrievedRecord], set[str]]:
    """Return the records about a clause, best first, and the ids of records that a later one replaces."""
    wanted = pool.scale.matches(clause.terms)
    beside = {word: sought for word, sought in pool.scale.matches(around).items() if word not in wanted}
    whole = sum(pool.scale.weight(word) for word in wanted)
    found: list[RetrievedRecord] = []
    for name, row in pool.rows.items():
        passage = best_passage(pool.texts[name], wanted)
        if not whole or not passage.met:
            continue
        share = passage.weight / whole
        much = share >= _ENOUGH or (share >= _LITTLE and share * whole >= _chance_limit(pool.scale))
        enough = much and (len(passage.met) > 1 or len(wanted) == 1)
        apt = not clause.reason or isinstance(row, EventView) or explains(row)  # a change shows what was done, but not why
        sure = enough and name not in own and apt
        also = best_passage(pool.texts[name], beside).weight / whole
        found.append(RetrievedRecord(row, passage.excerpt, share + _BESIDE * min(also, 1.0), sure, met=passage.met))
    old = superseded_records([(each.row, each.excerpt, each.met) for each in found])
    ranked = [_add_replaced(each, old) for each in found if each.row.id not in old]
    ranked.sort(key=lambda each: (each.sure, round(each.cover, 2), log_position(each.row)), reverse=True)
    return ranked, set(old)


def _add_replaced(found: RetrievedRecord, old: Mapping[str, SupersededRecord]) -> RetrievedRecord:
    return replace(found, replaces=tuple(sorted(each.index for each in old.values() if each.by == found.row.id)))


def _is_block(text: str) -> bool:
    """Whether a message is only a tagged block that a program inserted, such as a client's reminder."""
    return text.lstrip()[:1] == "<" and text.rstrip()[-1:] == ">"


# A value as programs write it: it has a digit, a mark that joins words, or a capital within a word.
_VALUE = lazy_pattern(
    r"(?=[\w@/.:~+=-]{0,80}(?:\d|\w[_/:@=~+.-]\w|[a-z][A-Z]))(?:[\w~/@-][\w@/.:~+=-]{1,160})|\"[^\"\n]{2,80}\"|'[^'\n]{2,80}'"
)
_NOT_KNOWN = lazy_pattern(
    r"\b(?:forg[eo]t|(?:do|does|did)(?: not|n't) (?:know|remember|recall)|not sure|unsure|no idea|unclear|undecided|unknown|"
    r"t\.?b\.?[adc]|to be (?:decided|determined|announced|confirmed)|not (?:yet|been) (?:known|decided|settled|fixed|set|"
    r"assigned|agreed|published)|yet to be|still (?:open|pending|arguing|discussing|deciding|debating|waiting|looking)|"
    r"will (?:tell|announce|decide|settle|let \w+ know|come back)|wants? to (?:decide|settle|discuss|agree)|"
    r"(?:is|are|will be|gets?) \w{3,20} (?:when|once|as soon as|after) (?:the|it|they|this|that)|"
    r"next (?:week|month|quarter)|no longer (?:know|have))\b",
    re.IGNORECASE,
)


def states_answer(line: str, forms: Sequence[Sequence[str]], question: str) -> bool:
    """Whether a line has some form of every word of a question, and a value that the question does not have.

    A line that is a question itself, or says that something is not known, states nothing.
    """
    said = line.casefold()
    if not all(any(form in said for form in each) for each in forms):
        return False
    return not line.rstrip().endswith("?") and not _NOT_KNOWN.search(line) and _has_value(line, question.casefold())


def _has_value(text: str, known: str) -> bool:
    return any(value.group().strip("\"'.:/-").casefold() not in known for value in _VALUE.finditer(text))


_CHANGED = lazy_pattern(
    r"\b(?:correct(?:ion|ed)|chang(?:ed|es)|no longer|not any ?more|any ?more|instead|moved|rotated|replac(?:ed|es)|renamed|"
    r"switched|migrated|supersed\w+|obsolete|outdated|deprecated|retired|updated|overrul\w+|revised|withdrawn|revoked|"
    r"used to be|was wrong|is wrong|from now on|as of (?:now|today)|since (?:the|then|today|yesterday)|newly set|new value)\b",
    re.IGNORECASE,
)
_NEW_VALUE = lazy_pattern(r"[\w@./:+-]*\d[\w@./:+-]*|\w+(?:[-_./:@]\w+)+|[a-z]+[A-Z]\w+")
_NAMED = lazy_pattern(
    r"(?P<name>[A-Za-z][\w-]{1,30}(?: [\w-]{1,30}){0,4})(?::| is| =|=) ?(?P<value>[\w@./:+-]*[\w@/+-])", re.ASCII
)
"""A value after its name: "best checkpoint so far: step-7", "host = db2"."""
_PASSING = lazy_pattern(r" (?:so far|now|currently|still|at present|for now)$")
_PIECES = word_set("offset limit page line lines start end cursor skip from to range head tail view_range")
"""Names of arguments that choose a part of what is read."""
_SHARED = 0.6
_READ = 20_000


@dataclass(frozen=True, slots=True)
class SupersededRecord:
    """What replaced a record: the id of the later record (``by``); and the index of the replaced entry, -1 for a message."""

    by: str
    index: int


_MEMBER = lazy_pattern(r"\"(\w{1,60})\"\s?:")
_LEAST_MEMBERS = 4
Told = tuple[Row, str, Collection[str]]
"""A record, its words about the subject, and the search words that it contains."""


def superseded_records(told: Sequence[Told]) -> dict[str, SupersededRecord]:
    """Return id -> replacement of the records that a later record replaces.

    The later record is the same call with another result, or a more precise look-up with another value under the same name.
    Or it is about the same thing and more, as a change is, and gives all of it anew. Or it says that something has changed,
    has the same search words and another value. Or the same speaker says the same with another value.
    """
    ordered = sorted(told, key=lambda each: log_position(each[0]))
    found: dict[str, SupersededRecord] = {}
    newest: dict[str, EntryView] = {}
    for row, _, _ in reversed(ordered):
        if isinstance(row, EntryView) and row.status != "open" and row.input not in (None, "", {}, []):
            later = newest.setdefault(same_call(row), row) if row.status == "ok" else newest.get(same_call(row), row)
            if later is not row and (row.output, row.error) != (later.output, later.error):
                found[row.id] = SupersededRecord(later.id, row.index)
    for number, later in enumerate(ordered):
        for row, _, _ in ordered[:number]:
            if row.id not in found and (_is_better_lookup(row, later[0]) or _returns_all_anew(row, later[0])):
                found[row.id] = SupersededRecord(later[0].id, row.index)
        says = _CHANGED.search(later[1]) is not None
        for earlier in ordered[:number]:
            row = earlier[0]
            if row.id not in found and (says or _is_restated(earlier, later)) and _is_correction(earlier, later):
                found[row.id] = SupersededRecord(later[0].id, row.index if isinstance(row, EntryView) else -1)
    return found


def _is_better_lookup(row: Row, later: Row) -> TypeGuard[EntryView]:
    """Whether an agent repeated a look-up with more arguments, and found another value under the same name."""
    if not isinstance(row, EntryView) or not isinstance(later, EntryView) or row.status != "ok" or later.status != "ok":
        return False
    if (row.action, row.agent) != (later.action, later.agent) or changes_something(later):
        return False
    first, second = fields_of(row), fields_of(later)
    if not first or not isinstance(later.input, dict) or (first.keys() | second.keys()) & _PIECES:
        return False
    if any(second.get(name) != first[name] for name in first):
        return False
    old, new = _named_values(flat(row.output, _READ)), _named_values(flat(later.output, _READ))
    return any(name in new and new[name] != value for name, value in old.items())


def _returns_all_anew(row: Row, later: Row) -> TypeGuard[EntryView]:
    """Whether another call on the same thing, such as a change of it, returned all fields that a look-up had returned."""
    if not isinstance(row, EntryView) or not isinstance(later, EntryView) or (row.status, later.status) != ("ok", "ok"):
        return False
    first, second = fields_of(row), fields_of(later)
    if row.action == later.action or not first or not first.items() < second.items():
        return False
    old, new = (set(_MEMBER.findall(answer_text(each))) for each in (row, later))
    return len(old) >= _LEAST_MEMBERS and len(old - new) * 10 <= len(old)


def _is_restated(earlier: Told, later: Told) -> bool:
    """Whether a speaker says the same again, with another value."""
    row, other = earlier[0], later[0]
    if not isinstance(row, EventView) or not isinstance(other, EventView) or (row.agent, row.type) != (other.agent, other.type):
        return False
    met = set(earlier[2])
    return met <= set(later[2]) and bool(_values(flat(row.data, _READ)))


def _named_values(text: str) -> dict[str, str]:
    found = {_PASSING.sub("", hit["name"].casefold()): hit["value"].casefold() for hit in _NAMED.finditer(text)}
    return {name: value for name, value in found.items() if " " in name}  # a name of one word may belong to anything


def _is_correction(earlier: Told, later: Told) -> bool:
    row = later[0]
    if isinstance(row, EntryView) and (changes_something(row) or row.status != "ok"):
        return False  # the receipt of a change says nothing about the content
    if not earlier[2]:
        return False
    shared = len(set(earlier[2]) & set(later[2])) / len(set(earlier[2]))
    new = _values(later[1]) - _values(flat(_body(earlier[0]), _READ))
    return shared >= _SHARED and len(set(later[2])) > 1 and bool(new)


def _values(text: str) -> set[str]:
    return {value.strip(".:").casefold() for value in _NEW_VALUE.findall(text)}


def _body(row: Row) -> object:
    return row.data if isinstance(row, EventView) else [row.input, row.error, row.output]


def log_position(row: Row) -> int:
    """Return a record's position in the log. Entries and messages are comparable by it."""
    return 2 * row.index + 1 if isinstance(row, EntryView) else 2 * (row.after if row.after is not None else -1) + 2
