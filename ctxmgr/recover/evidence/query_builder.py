"""Build the search for a request or a problem, and run it on the session and on related sessions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from ctxmgr.base.light_dataclass import dataclass, replace
from ctxmgr.diagnose.evidence.calls import command_of
from ctxmgr.recover.evidence.excerpts import Clause, Row, clauses, key_terms, stated_needs
from ctxmgr.recover.evidence.history_reader import (
    FAILED,
    HistoryReader,
    SpokenMessage,
    changes_something,
    program,
    same_call,
    texts,
    words,
)
from ctxmgr.recover.evidence.quotes import answer_text, quote_text, short_call
from ctxmgr.recover.evidence.related import MOST_TOLD, RelatedReader, RelatedRecord
from ctxmgr.recover.evidence.retrieval import Retrieval, RetrievedRecord, Scope, merge, seek, seek_around, states_answer
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.route import ContextRequest
from ctxmgr.types.view import EntryView

MOST = 6
_MOST_LEADS = 4
_MOST_WORDS = 24
_MOST_STEPS, _MOST_OWN, _MOST_SENT = 6, 3, 2
_TOLD, _MOST_READ = 500, 20_000
_MOST_NAMING, _SHORTEST_NAME = 20, 4
_MOST_STATING = 60
_ASKS_PLACE = lazy_pattern(r"(?i)^\W*(?:(?:in|on|at) )?(?:where|which (?:line|file|place))\b")
_CODE_NAME = lazy_pattern(r"\b(?:[A-Z][A-Z0-9_]{2,60}|[a-z]\w{0,60}_\w{1,60}|[a-z]\w{0,60}[A-Z]\w{0,60})\b")
_WORD = lazy_pattern(r"\w+")
_FILE = lazy_pattern(r"[^.]\.[A-Za-z]\w{0,7}$")
_TASK, _SAID, _SUBJECT = 0.8, 0.6, 0.7
"""Weights of words found only in the task, in the agent's last message, or in the changes under review."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The facts about a loop or stall before the history is searched; see `Brief`.

    Attributes:
        members: ids of all its entries.
        stuck: the stuck agent, if it is a single one.
        last: the last message or thought of that agent.
    """

    rounds: Sequence[EntryView]
    between: Sequence[EntryView]
    members: set[str]
    onset: int
    stuck: str | None
    task: SpokenMessage | None
    last: SpokenMessage | None

    @property
    def steps(self) -> list[EntryView]:
        """The calls whose words are searched for."""
        return [*self.rounds[-_MOST_STEPS:], *self.between]


def _request_clauses(request: ContextRequest) -> list[Clause]:
    wanted = clauses(request.reason, ask=request.type == "INTROSPECT_AGENT_CONTEXT")
    if request.source == "reviewMerge":  # a reviewer or merger sees the changes; its question is about the reasons behind them
        wanted = [replace(clause, reason=clause.reason or clause.asks) for clause in wanted]
    return wanted + clauses(request.goal, request.additional_context)


def search_request(
    reader: HistoryReader, request: ContextRequest, recent: Sequence[EntryView], task: SpokenMessage | None
) -> Retrieval:
    """Return the records of the session about the subject of a request."""
    introspects, reviews = request.type == "INTROSPECT_AGENT_CONTEXT", request.source == "reviewMerge"
    wanted = _request_clauses(request)
    mine = reader.newest(_MOST_OWN, agent=request.requester)
    met = [entry for entry in recent if entry.agent == request.requester and entry.status in FAILED]
    sent = [entry for entry in recent if str(request.requester) in texts(entry.input)]
    known = {entry.id for entry in [*mine, *met, *sent]}
    scope = Scope(recent, set() if task is None else set(task.events), known, reader.total())
    found = seek(reader, wanted, MOST, scope)
    if not introspects:
        # The goal is an instruction to the next agent, not a question to the history (ruling 26). Look up only what the goal
        # explicitly says that somebody needs to know; without a record of it, it counts as unanswered.
        needs = clauses(*stated_needs(request.goal), ask=True)
        missed = _add_statements(reader, seek(reader, needs, MOST, scope)) if needs else Retrieval([], [])
        missing = [text for text in missed.unanswered if not _is_mentioned(reader, text, request.goal)]
        return replace(merge(found, missed, MOST, answers=False), unanswered=missing)
    found = _add_own_lines(_add_statements(reader, found), mine)
    if not reviews and not found.unanswered:
        return found
    subject = [(clause, 1.0 if clause.asks else _TASK) for clause in wanted]
    if reviews:
        subject += [(part, _SUBJECT) for part in _reviewed_clauses(wanted, sent[-_MOST_SENT:], mine)]
    near = seek_around(reader, subject, MOST if reviews else _MOST_LEADS, replace(scope, without={*scope.without, *known}))
    return merge(found, near, MOST + 2, answers=reviews)


def _add_own_lines(sought: Retrieval, mine: Sequence[EntryView]) -> Retrieval:
    """Return the records, with the requester's own ones that show the line of a name for which a question asks."""
    told, left = list[RetrievedRecord](), list[str]()
    for text in sought.unanswered:
        names = _CODE_NAME.findall(text) if _ASKS_PLACE.search(text) else []
        lines = ((row, line) for row in mine for line in answer_text(row)[:_MOST_READ].splitlines())
        shown = ((row, line) for row, line in lines if {*names} <= {*_WORD.findall(line)})
        if names and (own := next(shown, None)) is not None:
            told.append(RetrievedRecord(own[0], own[1], 1.0, sure=True))
        else:
            left.append(text)
    return replace(sought, found=[*sought.found, *told], unanswered=left) if told else sought


def _reviewed_clauses(wanted: Sequence[Clause], sent: Sequence[EntryView], mine: Sequence[EntryView]) -> list[Clause]:
    """Return clauses from what the requester was sent and looked at: they name the subject in the words of the records."""
    parts = [_step_clause(step) for step in sent]
    names = {term.word.casefold() for clause in [*wanted, *parts] for term in clause.terms if term.strong}
    own = [_step_clause(step) for step in mine]
    return [*parts, *(part for part in own if any(term.word.casefold() in names for term in part.terms))]


def _step_clause(step: EntryView) -> Clause:
    return _make_clause(f"{_input_text(step)}\n{answer_text(step)[:_TOLD]}")


def related_answers(related: RelatedReader, request: ContextRequest, here: Retrieval) -> tuple[list[RelatedRecord], Retrieval]:
    """Return the answers of related sessions to a request; and the session's own, without questions answered there."""
    if not (rows := related.rows):
        return [], here
    found = seek(related, _request_clauses(request), MOST_TOLD, Scope(rows, total=len(rows)))
    told = [related.describe(each.row, each.excerpt) for each in _surest(found)]
    return told, replace(here, unanswered=[text for text in here.unanswered if text in found.unanswered])


def related_help(related: RelatedReader, trouble: Problem, here: Retrieval) -> tuple[list[RelatedRecord], Retrieval]:
    """Return what ended a trouble in related sessions, else what they say about it; and the session's own records."""
    rows = related.rows
    told = related.cures(trouble.rounds) if rows else []
    if rows and not told:
        parts = _problem_clauses(trouble)
        vain = frozenset(map(same_call, trouble.rounds))
        scope = Scope(rows, total=len(rows), vain=vain, programs=_programs(trouble.rounds))
        told = [related.describe(each.row, each.excerpt) for each in _surest(seek_around(related, parts, MOST_TOLD, scope))]
    return told, replace(here, unanswered=[]) if told else here


def _surest(found: Retrieval) -> list[RetrievedRecord]:
    return sorted((each for each in found.found if each.sure), key=lambda each: -each.cover)[:MOST_TOLD]


def _programs(steps: Iterable[EntryView]) -> set[tuple[str, ...]]:
    return {tuple(program(command)) for step in steps if (command := command_of(step))}


def _problem_clauses(trouble: Problem) -> list[tuple[Clause, float]]:
    """Return the parts of a trouble as clauses, each with its weight."""
    parts = [(_make_clause(f"{_input_text(step)}\n{answer_text(step)[-_TOLD:]}"), 1.0) for step in trouble.steps]
    for saying, share in ((trouble.task, _TASK), (trouble.last, _SAID)):
        said = [] if saying is None else clauses(saying.text[-_TOLD:])[-3:]
        parts += [(part, share) for part in said]
    return [part for part in parts if part[0].terms]


def session_help(reader: HistoryReader, trouble: Problem, recent: Sequence[EntryView]) -> Retrieval:
    """Return other records of the session about a trouble: about its errors and inputs, the task and the last message."""
    if not (parts := _problem_clauses(trouble)):
        return Retrieval([], [])
    vain = frozenset(map(same_call, trouble.steps))
    aside = {name for saying in (trouble.task, trouble.last) if saying is not None for name in saying.events}
    scope = Scope(
        recent, trouble.members | aside, total=reader.total(), vain=vain, onset=trouble.onset, stuck=trouble.stuck,
        programs=_programs(trouble.steps),
    )  # fmt: skip
    found = seek_around(reader, parts, MOST, scope)
    if any(each.sure for each in found.found) or not trouble.rounds:
        return found
    step = trouble.rounds[-1]
    if _was_read(reader, _input_text(step), trouble.members):
        return found  # a relevant file was read, so it can't be claimed that nothing says why the call fails
    return replace(found, unanswered=[_open_question(step)])


def _add_statements(reader: HistoryReader, sought: Retrieval) -> Retrieval:
    """Return a search's result, with the newest record of which a single line states an answer to each open question.

    This also looks at notes and at the entries around the question, before the answer says that no record holds something.
    """
    rows: dict[str, RetrievedRecord] = {}
    still: list[str] = []
    for text in sought.unanswered:
        terms = key_terms(text)
        longest = max((term.forms[0] for term in terms), key=len, default="")
        hits = reversed(reader.find(longest, _MOST_STATING)) if longest and (len(terms) > 1 or terms[0].strong) else ()
        forms = [term.forms for term in terms]
        stated = ((row, line) for row in hits for line in _record_lines(row) if states_answer(line, forms, text))
        row, line = next(stated, (None, ""))
        if row is None:
            still.append(text)
        else:
            rows[row.id] = RetrievedRecord(row, line[:_TOLD], 1.0, sure=True)
    others = [each for each in sought.found if each.row.id not in rows]
    return replace(sought, found=[*others, *rows.values()], unanswered=still)


def _is_mentioned(reader: HistoryReader, text: str, goal: str) -> bool:
    """Whether a record holds half of the search words of a need without merely repeating the goal."""
    wanted, whole = key_terms(text), {term.forms[0] for term in key_terms(goal, _MOST_WORDS)}
    rows = {row.id: row for term in wanted for form in term.forms for row in reader.find(form, _MOST_STATING)}
    for row in rows.values():
        action = row.action if isinstance(row, EntryView) else ""
        said = "\n".join([action, *_record_lines(row)]).casefold()
        held = [term for term in wanted if any(form in said for form in term.forms)]
        again = sum(form in said for form in whole)
        if 2 * len(held) >= len(wanted) and 2 * again < len(whole):
            return True
    return False


def _record_lines(row: Row) -> Iterator[str]:
    """Yield the lines of a record, including its notes. Names of arguments are left out."""
    if isinstance(row, EntryView):
        told = [*texts(row.input, names=False), answer_text(row), *(note.content for note in row.notes)]
    else:
        told = [words(row.data)]
    for text in told:
        yield from text.splitlines()


def _was_read(reader: HistoryReader, text: str, without: Collection[str]) -> bool:
    """Whether a file named in a text was read successfully by a record that counts."""
    for term in key_terms(text):
        name = term.word.rpartition("/")[2].strip("?!.,:;'\"")
        if term.strong and len(name) >= _SHORTEST_NAME and _FILE.search(name):
            found = (row for row in reader.find(name, _MOST_NAMING) if isinstance(row, EntryView) and row.id not in without)
            reads = (row for row in found if row.status == "ok" and not changes_something(row))
            if any(name in text for row in reads for text in texts(row.input, names=False)):
                return True
    return False


def _make_clause(text: str) -> Clause:
    return Clause(text, tuple(key_terms(text, _MOST_WORDS)), asks=False)


def _input_text(step: EntryView) -> str:
    """Return the values of an action's input, without the names of its arguments."""
    return "\n".join(texts(step.input, names=False))[:_TOLD]


def _open_question(step: EntryView) -> str:
    """Return what no record says, in the words of the trouble."""
    said = answer_text(step)
    if step.status == "open":
        return f"why {short_call(step)} does not return, and how it would"
    ended = f" than {quote_text(said[-200:], 200)}" if said.strip() else ""
    return f"what has to be done so that {short_call(step)} has another outcome{ended}"
