"""What people forbid, allow and decide, told from what only sounds so."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.evidence.messages import (
    ALLOWS,
    BINDS,
    find_task_words,
    forbids,
    is_forbidden,
    split_sentences,
    user_sentences,
)
from tests.diagnose.build import Said, bash, evidence


@pytest.mark.parametrize(
    "sentence",
    [
        "Never touch the lock file.", "Do not edit generated code.", "You must not push.", "Don’t use sudo.",
        "prod.env is off limits.", "Leave the fixtures as they are.", "Change anything except api.py.", "no new dependencies",
        "Keep away from the payments folder.", "You may not delete it.",
    ],
)  # fmt: skip
def test_what_forbids_is_known_in_many_words(sentence: str) -> None:
    """In commands, in rules, and in what is put out of reach."""
    assert forbids(sentence) is not None


@pytest.mark.parametrize(
    "sentence",
    [
        "Why do you never run the tests?", "If you do not find it, ask.", "Don't forget to run the tests.",
        "You don't need to ask.", "Not only the parser fails.", "Never mind the warnings.", "Run the tests.",
        "When it doesn't work, tell me.",
    ],
)  # fmt: skip
def test_what_only_sounds_so_forbids_nothing(sentence: str) -> None:
    """Questions, conditions and reminders."""
    assert forbids(sentence) is None


def test_the_part_with_the_name_decides() -> None:
    """A sentence may forbid one thing and allow another; what it says to do instead is not forbidden."""
    assert is_forbidden("Never delete a.py, but b.py may go", ["a.py"])
    assert not is_forbidden("Never delete a.py, but b.py may go", ["b.py"])
    assert not is_forbidden("Never delete files, use trash/ instead", ["trash/"])
    assert is_forbidden("Do not use requests", ["requests"])
    assert not is_forbidden("Only change a.py", ["a.py"])


def test_a_text_is_taken_apart_at_its_ends() -> None:
    """A dot within a name or a number ends nothing; a line, a question and a semicolon do."""
    assert split_sentences("Keep api.v2.json as it is. Use 3.11!\nWhy? Ask first; then go on") == [
        "Keep api.v2.json as it is.",
        "Use 3.11!",
        "Why?",
        "Ask first;",
        "then go on",
    ]
    assert split_sentences("ok\n\n- a\n") == []


def test_the_newest_words_of_people_come_first_and_agents_have_none() -> None:
    """What an agent says is no word of a person."""
    known = evidence(Said("Use tabs. Ask me."), bash("ls"), Said("I will use blanks.", "main"), Said("Use blanks now."))

    assert [text for _, text in user_sentences(known)] == ["Use blanks now.", "Use tabs.", "Ask me."]


def test_the_words_of_the_task_are_the_users() -> None:
    """A text of an agent speaks of the task where it has the user's words, in the user's spelling; names of agents are none."""
    known = evidence(Said("Round the Invoices as VAT demands, reviewer."), bash("ls")._replace(agent="reviewer"))

    assert find_task_words(known, "the invoice and the vat of reviewer are rounded") == ["Invoices"]
    assert find_task_words(known, "VAT, then invoices") == ["VAT", "Invoices"]
    assert find_task_words(known, "something else entirely") == []


def test_rules_are_told_from_wishes() -> None:
    """What binds says how; what allows says where to."""
    assert BINDS.search("We agreed to use tabs")
    assert not BINDS.search("Fix the parser")
    assert ALLOWS.search("move them to trash/")
    assert not ALLOWS.search("the parser fails")
