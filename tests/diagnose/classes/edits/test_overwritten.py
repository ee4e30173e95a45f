"""Agents that take back each other's replacements, and values that another agent writes over."""

from __future__ import annotations

from typing import Any

from ctxmgr.diagnose import diagnose
from ctxmgr.types.finding import Diagnosis
from tests.diagnose.build import Call, Said, evidence

LIST = Call("file.read", {"path": "terms/list.csv"}, "avoid,use\nclient,Tenant\nfee,Charge", agent="keeper")
COMMENTS = Call("comments.list", {"doc": "lease"}, "#1 s1: it is no flat. Say Client.\n#2 s3: net 30", agent="editor")


def replaced(agent: str, old: str, new: str, said: str = "3 replaced", **more: Any) -> Call:
    """Return a replacement in a document by an agent."""
    return Call("doc.replace", {"doc": "lease", "find": old, "with": new, **more}, said, agent=agent)


def _undone(*steps: Call | Said) -> Diagnosis | None:
    told = diagnose(evidence(*steps, found=False))
    return told if told is not None and told.kind == "undoneByOther" else None


_TUG = [replaced("editor", "Tenant", "Client"), replaced("keeper", "Client", "Tenant", trigger="save")] * 2


def test_inverse_replacements_are_told_with_the_reason_of_each() -> None:
    """The comment and the row of the list stand against each other, and the list's file is named."""
    told = _undone(COMMENTS, LIST, *_TUG)

    assert told is not None
    assert "take back each other's replacement in `lease`, 3 times" in told.cause
    assert "`client,Tenant`" in told.cause
    assert "Say Client" in told.cause
    assert "`terms/list.csv`" in told.next_step


def test_inverse_replacements_without_a_reason_go_to_the_user() -> None:
    """If nothing tells why, the two or the user decide."""
    told = _undone(*_TUG)

    assert told is not None
    assert "else ask the user" in told.next_step


def test_replacements_that_take_nothing_back_are_no_conflict() -> None:
    """They are made once, by one agent, in other sections, with other words, or found nothing; a mail is no replacement."""
    once, back = _TUG[0], _TUG[1]
    mails = [Call("mail.send", {"thread": "7", "from": one, "to": other}, "sent", agent=one) for one, other in ("ab", "ba")] * 3
    apart = [replaced("editor", "Tenant", "Client", section=1), replaced("keeper", "Client", "Tenant", section=2)] * 2
    for steps in (
        [once, back],
        [replaced("editor", "a1", "b1"), replaced("editor", "b1", "a1")] * 2,
        apart,
        [once, replaced("keeper", "Customer", "Tenant")] * 2,
        [once, replaced("keeper", "Client", "Tenant", "0 replaced")] * 2,
        mails,
        [*_TUG, *[Call("doc.export", {"doc": "lease", "as": str(n)}, f"page {n}", agent="editor") for n in range(12)]],
    ):
        assert _undone(*steps) is None, steps


FEED = Said("I write every field without a hold: title, longText. To keep one, set a hold (pim.set_hold).", "feed")
RUN = Call("feed.run", {"supplier": "n"}, {"written": 45}, agent="feed")


def write(text: str = "Room for two", agent: str = "writer", item: str = "P-1") -> Call:
    """Return a call that writes the text of a product."""
    return Call("pim.update", {"id": item, "fields": {"longText": text}}, {"ok": True}, agent=agent)


def look(text: str, item: str = "P-1", agent: str = "writer") -> Call:
    """Return a look at the text of a product."""
    return Call("pim.get", {"id": item}, {"id": item, "longText": text, "stock": 3}, agent=agent)


_LOST = [look("2 pers tent"), write(), RUN, look("2 pers tent"), write()]


def test_a_value_that_another_agent_writes_over_is_told_with_what_keeps_it() -> None:
    """The look in between shows the old value again, and the other's message names the hold."""
    told = _undone(FEED, *_LOST)

    assert told is not None
    assert "`2 pers tent`" in told.cause
    assert "Feed said" in told.cause
    assert "`pim.set_hold`" in told.next_step
    assert "`longText` of `P-1`" in told.next_step


def test_a_value_that_another_agent_keeps_writing_itself_is_told() -> None:
    """Its own calls are seen, without any message."""
    told = _undone(*[write(), write("2 pers tent", "feed")] * 2, write())

    assert told is not None
    assert "wrote `2 pers tent` there" in told.cause
    assert "agree with feed who writes `longText` of `P-1`" in told.next_step


def test_a_value_that_is_written_again_for_other_reasons_is_no_conflict() -> None:
    """The message, the other's turn, the old value or the second write is missing, or the hold is set."""
    hold = Call("pim.set_hold", {"id": "P-1", "field": "longText"}, {"ok": True}, agent="writer")
    for steps in (
        _LOST,
        [FEED, *_LOST[:2], *_LOST[3:]],
        [FEED, look("2 pers tent"), write(), RUN, look("Room for two …"), write()],
        [FEED, look("2 pers tent"), write(), RUN, look("2 pers tent", "P-2"), write()],
        [FEED, write(), RUN, look("2 pers tent"), write()],
        [FEED, *_LOST[:-1], write("Room for two and a dog")],
        [FEED, *_LOST, hold],
        [Said("Prices are fresh, I sync them each hour.", "feed"), *_LOST],
        [write(), write("2 pers tent", "feed"), write()],
        [
            Call("t.set", {"id": "T-1", "status": each}, "ok", agent=who)
            for each, who in (("open", "a"), ("done", "b"), ("open", "a"))
        ],
    ):
        assert _undone(*steps) is None, steps
