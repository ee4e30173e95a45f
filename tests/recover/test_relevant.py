"""A request finds the entries that hold its own words: the rare ones count, the common ones do not."""

from __future__ import annotations

import pytest

from ctxmgr.recover.desk import Desk
from ctxmgr.recover.relevant import relevant
from ctxmgr.store import Store
from ctxmgr.types.route import ContextRequest
from tests.recover.runs import call


def found(store: Store, text: str, most: int = 6) -> list[int]:
    """Return the indexes of the entries that a request with this goal finds."""
    request = ContextRequest(
        session="s", type="INTROSPECT_AGENT_CONTEXT", source="agentRequest", requester="coder", reason="-", goal=text
    )
    return [entry.index for entry in relevant(Desk(store, "s"), request, most)]


@pytest.fixture
def history(store: Store) -> Store:
    """Return a store of twenty entries that all speak of invoices, seven of tax, one of rounding."""
    for number in range(20):
        about = "invoice" + (" with taxes" if number % 3 == 0 else "") + (" and ROUNDING_MODE" if number == 4 else "")
        store.append(call("s", number, "Read", {"file_path": f"f{number}"}, about))
    return store


@pytest.mark.requirement("US9-2")
def test_rare_words_count_more(history: Store) -> None:
    """With room for one entry it is the one with the rare word, regardless of case, though newer ones hold another."""
    assert found(history, "taxes and rounding_mode", most=1) == [4]
    assert found(history, "taxes and rounding_mode", most=3) == [4, 15, 18]


def test_words_that_are_everywhere_find_nothing(history: Store) -> None:
    """A word that more than half of the entries hold, and words that fill any sentence, find nothing."""
    assert found(history, "invoice") == []
    assert found(history, "please continue with what the agent needs to know about this") == []
    assert found(history, "") == []


def test_the_newest_of_many(history: Store) -> None:
    """Of entries that hold the same word the newest are taken, told in the order of the log."""
    assert found(history, "taxes", most=2) == [15, 18]
