"""A continuation as a whole: everything cited exists, nothing is told twice, and its size is that of the prompt."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ctxmgr.store import Store
from ctxmgr.types.query import ListRequest
from ctxmgr.types.route import Continuation
from tests.recover.runs import again, ask, chain, hung, launched, looped, recover, varied, workspace


def cited(found: Continuation) -> set[str]:
    """Return every id that the continuation cites."""
    parts = [*found.context.facts, *found.do_not_repeat, *found.alternatives]
    ids = {name for part in parts for name in part.entries}
    for pattern in (found.loop, found.stall):
        if pattern is not None:
            ids |= {*pattern.members, *(name for name in (pattern.start, pattern.last_progress) if name)}
    return ids


def known(store: Store, session: str) -> set[str]:
    """Return the ids of all entries and events of a session."""
    listed = workspace(store).list(ListRequest(session=session, kind="all", limit=10_000)).rows
    return {row.id for row in listed}


@pytest.mark.cases(1)
@pytest.mark.requirement("SC-006", "US9-3", "AC-1")
@pytest.mark.parametrize("records", [looped("s"), hung("s"), varied("s"), launched("s"), chain("s")])
def test_everything_cited_exists(store: Store, records: list[dict[str, Any]]) -> None:
    """Whatever is cited is an entry or event of the session, and facts without evidence are marked."""
    store.append(records)
    for found in (recover(store, force=True), ask(store, requester="planner")):
        assert set[str]() < cited(found) <= known(store, "s")
        assert all(fact.entries for fact in found.context.facts)


def test_the_requesters_words(store: Store) -> None:
    """What the requester adds stands in the context, quoted."""
    store.append(chain())
    found = ask(store, additional_context='only the "parser" part')

    assert '> only the "parser" part' in found.context.prompt
    assert r'"only the \"parser\" part"' in found.context.brief


@pytest.mark.requirement("US9-3")
@pytest.mark.parametrize("records", [looped("s"), hung("s"), varied("s"), chain("s")])
def test_the_size_is_that_of_the_prompt(store: Store, records: list[dict[str, Any]]) -> None:
    """``tokenCount`` counts exactly the text that the branch carries; the brief for a model holds every part."""
    store.append(records)
    found = recover(store, force=True)
    wire = found.to_json()
    text = wire["returnTo"][wire["target"]]["context"]
    context = wire["context"]

    assert context["tokenCount"] == math.ceil(len(text) / 4)
    assert context["counter"] == "chars/4"
    parts = [context["summary"], *(fact["text"] for fact in context["facts"]), *(part["text"] for part in context["sections"])]
    assert text == found.prompt == context["prompt"]
    assert all(part in found.context.brief for part in [*parts, *(lead["text"] for lead in wire["alternatives"])])


def test_nothing_is_told_twice(store: Store) -> None:
    """No fact stands twice, and the sections hold no entry that a fact has told."""
    store.append(looped())
    context = recover(store).context
    told = [name for fact in context.facts for name in fact.entries]

    assert len({fact.whole for fact in context.facts}) == len(context.facts)
    assert len(told) == len(set(told))
    assert "@4 " not in "".join(section.text for section in context.sections)


def test_the_second_answer_says_that_it_is_one(store: Store) -> None:
    """The second answer to one loop tells that the first did not end it, and advises to ask a person."""
    store.append(looped())
    first, second = recover(store), again(store)

    assert "answer 2" not in first.context.summary
    assert "answer 2" in second.context.summary
    assert "person" in second.alternatives[-1].text
