"""How much a question asks of the database: the number of statements grows with the answer's pages, not its rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ctxmgr.history.query.requests import list_, list_notes, messages, search, show, trace
from ctxmgr.store import Store, open_store
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import ListNotesRequest, ListRequest, MessagesRequest, SearchRequest, ShowRequest, TraceRequest
from tests.builders import at, entry, event, result
from tests.store.counting import counted

QUESTIONS: dict[str, Callable[[Store], object]] = {
    "trace": lambda store: trace(store, TraceRequest(action=["Bash"])),
    "list": lambda store: list_(store, ListRequest(offset=400, limit=500, status=["ok"])),
    "list all": lambda store: list_(store, ListRequest(kind="all", limit=500)),
    "search": lambda store: search(store, SearchRequest(query="word", max_results=500)),
    "show": lambda store: show(store, ShowRequest(index=999)),
    "messages": lambda store: messages(store, MessagesRequest(index=500)),
}


def _thousand(store: Store) -> None:
    store.append(
        record
        for number in range(1000)
        for record in (
            entry("s", number, given="a word"),
            result("s", number),
            event("s", number, "message", "a word", after=number),
        )
    )


@pytest.mark.cases(1)
@pytest.mark.requirement("SC-005")
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_a_thousand_entries_take_a_handful_of_statements(question: Callable[[Store], object]) -> None:
    """Over 1,000 entries each query tool needs at most a dozen statements, however many rows it shows."""
    opened = open_store(":memory:", create=True)
    _thousand(opened)
    watched, engine = counted(opened)

    question(watched)

    assert 0 < len(engine.statements) <= 14
    opened.close()


@pytest.mark.cases(1)
@pytest.mark.requirement("SC-005")
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_no_question_reads_a_whole_table_by_row(question: Callable[[Store], object]) -> None:
    """No statement of a query tool joins two whole tables: every inner step of its plan uses an index or a key."""
    opened = open_store(":memory:", create=True)
    _thousand(opened)
    watched, engine = counted(opened)
    question(watched)

    assert engine.statements != []
    for text, values in zip(engine.statements, engine.values, strict=True):
        plan = [str(row[3]) for row in opened.engine.query(f"EXPLAIN QUERY PLAN {text}", values)]
        # The list of what matched is no table: it holds nothing but answers.
        scans = [step for step in plan if step.startswith("SCAN") and "CONSTANT" not in step and step != "SCAN hit"]
        assert len(scans) <= 2, (text, plan)  # a search also reads the notes of its scope, once
        assert not any("AUTOMATIC" in step for step in plan), (text, plan)
    opened.close()


@pytest.mark.requirement("SC-005")
def test_many_notes_take_no_statement_each() -> None:
    """A page of entries with a note each takes as many statements as one with a single note."""
    counts: list[int] = []
    for number_of_notes in (1, 200):
        opened = open_store(":memory:", create=True)
        opened.append([entry("s", number) for number in range(200)])
        opened.append(
            build("note", "s", at(1), id=f"n{number}", entries=[f"s-e{number:04}"], content="c")
            for number in range(number_of_notes)
        )
        watched, engine = counted(opened)
        assert sum(len(view.notes) for view in trace(watched, TraceRequest()).entries) == number_of_notes
        assert list_notes(watched, ListNotesRequest(limit=500)).page.total == number_of_notes
        counts.append(len(engine.statements))
        opened.close()

    assert counts[1] <= counts[0] + 4
