"""Records are found by rare words, near each other; what is out of date gives way; chance is told from knowledge."""

from __future__ import annotations

import pytest

from ctxmgr.recover.evidence.excerpts import clauses
from ctxmgr.recover.evidence.history_reader import HistoryReader
from ctxmgr.recover.evidence.retrieval import Retrieval, Scope, merge, seek, seek_around
from ctxmgr.store import Store
from ctxmgr.types.view import EntryView
from tests.recover.runs import call, said


def sought(store: Store, text: str, most: int = 6) -> Retrieval:
    """Return what a request with these words finds."""
    reader = HistoryReader(store, "s")
    return seek(reader, clauses(text, ask=True), most, Scope(reader.entries_before(reader.total(), 200), total=reader.total()))


def indexes(found: Retrieval) -> list[int]:
    """Return the indexes of the entries found."""
    return [each.row.index for each in found.found if isinstance(each.row, EntryView)]


def around(store: Store, text: str) -> Retrieval:
    """Return what has much in common with a trouble of these words."""
    reader = HistoryReader(store, "s")
    recent = reader.entries_before(reader.total(), 200)
    return seek_around(reader, [(clause, 1.0) for clause in clauses(text)], 6, Scope(recent, total=reader.total()))


@pytest.fixture
def history(store: Store) -> Store:
    """Return a store of twenty entries that all speak of invoices, seven of taxes, one of a rounding mode."""
    for number in range(20):
        about = "invoice" + (" with taxes" if number % 3 == 0 else "") + (" and ROUNDING_MODE" if number == 4 else "")
        store.append(call("s", number, "Read", {"file_path": f"f{number}"}, about))
    return store


@pytest.mark.requirement("US9-2")
def test_rare_words_count_more(history: Store) -> None:
    """With room for one entry it is the one with the rare word, regardless of case, though newer ones hold another."""
    assert indexes(sought(history, "taxes and rounding_mode", most=1)) == [4]


def test_words_that_are_everywhere_find_nothing(history: Store) -> None:
    """Words that fill any sentence, and no words, find nothing."""
    assert indexes(sought(history, "please continue with what the agent needs to know about this")) == []
    assert indexes(sought(history, "")) == []


def test_the_newest_of_many(history: Store) -> None:
    """Of entries that hold the same word the newest are taken, told in the order of the log."""
    assert indexes(sought(history, "taxes", most=2)) == [15, 18]


def test_words_of_the_same_meaning(history: Store) -> None:
    """Who asks for one word is answered by another of the same meaning, with less weight."""
    history.append(call("s", 20, "Bash", {"command": "show"}, "hostname of staging: heron"))

    assert indexes(sought(history, "which machine is staging")) == [20]


def test_what_is_not_there_is_said(history: Store) -> None:
    """A question whose words stand in no record is given back as unanswered, a question that is answered is not."""
    assert sought(history, "which courier delivers parcels").unanswered == ["which courier delivers parcels"]
    history.append(call("s", 20, "Read", {"file_path": "c"}, "parcels: the courier that delivers is Falcon"))
    assert sought(history, "which courier delivers parcels").unanswered == []


def test_each_part_of_a_question_is_answered(history: Store) -> None:
    """Of a question in two parts the one without an answer is named, and the other's answer is found."""
    found = sought(history, "Which ROUNDING_MODE is set? Which courier delivers parcels?")

    assert 4 in indexes(found)
    assert found.unanswered == ["Which courier delivers parcels?"]


def test_the_same_look_up_again(store: Store) -> None:
    """Of two results of the same call only the later is told, and it is said that it replaces the earlier."""
    for number, port in ((0, 8101), (1, 8202)):
        store.append(call("s", number, "Bash", {"command": "show checkout"}, f"checkout listens on port {port}"))
    found = sought(store, "on which port does checkout listen")

    assert indexes(found) == [1]
    assert found.found[0].replaces == (0,)
    assert len(found.replaced) == 1


def test_a_correction(store: Store) -> None:
    """A message that says that something has changed, and gives another value, replaces what was found before it."""
    store.append(call("s", 0, "Bash", {"command": "show"}, "checkout listens on port 8101"))
    store.append([said("s", 1, "checkout no longer does that: it listens on port 8202", after=0)])
    found = sought(store, "on which port does checkout listen")

    assert [each.row.kind for each in found.found] == ["event"]
    assert found.found[0].replaces == (0,)


def test_a_changed_file_corrects_nothing(store: Store) -> None:
    """That a file was updated is a receipt: it replaces nothing that was found out before."""
    store.append(call("s", 0, "Bash", {"command": "bench"}, "timeout of the balancer: 61 s"))
    edit = {"file_path": "balancer.toml", "old_string": "timeout = 0", "new_string": "timeout = 48"}
    store.append(call("s", 1, "Edit", edit, "The file balancer.toml has been updated."))

    assert 0 in indexes(sought(store, "the timeout of the balancer"))


def test_why_is_not_answered_by_the_change(history: Store) -> None:
    """A change shows what was done and not why; the words that it was committed with may."""
    edit = {"file_path": "http.toml", "old_string": "backlog = 0", "new_string": "backlog = 48"}
    history.append(call("s", 20, "Edit", edit, "The file http.toml has been updated."))
    assert sought(history, "why was backlog in http.toml changed").unanswered
    history.append(call("s", 21, "Bash", {"command": "git commit -m 'http.toml: backlog for slow partners'"}, "[main]"))
    assert not sought(history, "why was backlog in http.toml changed").unanswered


def test_the_value_is_in_the_excerpt(store: Store) -> None:
    """An excerpt holds whole lines around the words found, however much stands above and below them."""
    noise = "\n".join(f"def part_{number}(row): return row.strip()" for number in range(90))
    store.append(call("s", 0, "Read", {"file_path": "x"}, f"{noise}\nqueue of reminders: riverq42\n{noise}"))
    found = sought(store, "which queue takes reminders").found

    assert "queue of reminders: riverq42\n" in f"{found[0].excerpt}\n"


def test_what_is_hardly_chance(history: Store) -> None:
    """Two rare words in common with a trouble are hardly chance, one is."""
    history.append(call("s", 20, "Read", {"file_path": "d"}, "the freeze window ends on Monday", agent="scout"))
    history.append(call("s", 21, "Read", {"file_path": "e"}, "a window of the shop"))
    sure = {each.row.index for each in around(history, "denied: freeze window").found if each.sure and each.row.kind == "entry"}

    assert sure == {20}


def test_a_block_of_a_program_is_no_message(history: Store) -> None:
    """A message that is nothing but a block between tags was said by nobody, and is not found."""
    history.append([said("s", 1, "<environment><shell>freeze window</shell></environment>", after=19, type_="message")])

    assert not any(each.row.kind == "event" for each in around(history, "denied: freeze window").found)
    history.append([said("s", 2, "there is a freeze window", after=19, type_="message")])
    assert any(each.row.kind == "event" for each in around(history, "denied: freeze window").found)


def test_two_searches_make_one_answer(history: Store) -> None:
    """What two searches found is told once each, and the second answers only where it may."""
    asked, near = sought(history, "which courier has rounding_mode"), around(history, "ROUNDING_MODE")
    both = merge(asked, near, 8, answers=False)

    assert indexes(both).count(4) == 1
    assert both.unanswered == asked.unanswered
