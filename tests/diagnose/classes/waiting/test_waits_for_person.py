"""Whose decision is missing, and whose is not."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import contrast, diagnose
from tests.diagnose.build import Call, bash, evidence, require_told


def test_whoever_a_ticket_is_assigned_to_decides_nothing() -> None:
    """An open ticket that a rule opens again waits for nobody's decision; the rule is named."""
    history = {"items": [{"by": "rule-bot", "change": "Closed -> Open", "rule": "R-14 parent follows children"}]}
    look = Call("ticket.get", {"key": "HELP-2080"}, {"key": "HELP-2080", "status": "Open", "assignee": "deskbot"})
    close = Call("ticket.close", {"key": "HELP-2080"}, {"ok": True})
    known = evidence(look, close, look, Call("ticket.history", {"key": "HELP-2080"}, history), close, look, found=False)
    told = contrast(known)

    assert diagnose(known) is None
    assert told is not None
    assert "`R-14`" in told.next_step
    assert "ask that one" not in told.next_step


WAITS = Call("release.get", {"id": "REL-77"}, {"id": "REL-77", "state": "AWAITING_APPROVAL", "approver": "mia.berg"})
ASKED = {"to": "@mia.berg", "text": "REL-77 needs you."}


@pytest.mark.parametrize(
    ("before", "name"),
    [
        ([Call("team.get", {"name": "core"}, {"owner": "Core", "approvers": ["mia.berg", "tom.ek"]})], "`tom.ek`"),
        ([Call("team.get", {"name": "core"}, {"approvers": ["mia.berg"], "backup": "ana.lind"})], "`ana.lind`"),
        ([], "`mia.berg` is absent"),
    ],
)
def test_who_may_decide_in_place_of_an_absent_person(before: list[Call], name: str) -> None:
    """An automatic reply shows that the approver is absent, and a list names another one."""
    reply = Call("chat.send", ASKED, {"delivered": True, "autoReply": "I am on parental leave until May."})
    known = evidence(*before, reply, *[WAITS] * 5)

    require_told(known, "waitsForPerson", ["`mia.berg`, who is absent: `on parental leave until May`"], [name])


def test_an_automatic_reply_names_who_stands_in() -> None:
    """The reply itself names the other person."""
    reply = Call("chat.send", ASKED, {"delivered": True, "autoReply": "I am on leave until May. Tom Ek covers for me."})

    require_told(evidence(reply, *[WAITS] * 5), "waitsForPerson", ["`mia.berg`, who is absent"], ["`Tom Ek`"])


def test_whoever_is_present_is_asked() -> None:
    """A present approver is asked, whoever else is listed."""
    team = Call("team.get", {"name": "core"}, {"approvers": ["mia.berg", "tom.ek"]})
    here = Call("team.person", {"id": "mia.berg"}, {"id": "mia.berg", "status": "online"})
    away = Call("team.person", {"id": "tom.ek"}, {"id": "tom.ek", "status": "away"})

    require_told(evidence(team, here, away, *[WAITS] * 5), "waitsForPerson", [], ["Tell `mia.berg`"])


def test_a_directory_names_who_is_there_meanwhile() -> None:
    """A waiting request names nobody; a rule names the person, and the directory whoever stands in."""
    rule = Call("rule.get", {"id": "print"}, {"text": "A print run needs a sign-off. Requests go to L. Brandt."})
    entry = {"name": "L. Brandt", "status": "on leave until 4 May", "during": "S. Okoro, room 12"}
    look = Call("request.get", {"request": "pr-9"}, {"request": "pr-9", "state": "waiting", "answers": []})
    known = evidence(rule, Call("people.get", {"name": "L. Brandt"}, entry), *[look] * 4)

    require_told(known, "waitsForPerson", ["`L. Brandt`, who is absent"], ["Tell `S. Okoro`"])


PENDING = Call("pr.get", {"id": "PR-88"}, {"id": "PR-88", "state": "pending_approval", "approver": "Kim Lo"})


@pytest.mark.parametrize(
    "listed",
    [
        Call("svc.get", {"name": "pay"}, {"owners": [{"name": "Kim Lo"}, {"name": "Ravi Sen"}]}),
        Call("wiki.read", {"page": "Rules"}, "Changes of payments are approved by Kim Lo or Ravi Sen.\nOther: Jo May."),
        bash("cat REVIEWERS", "api: Kim Lo, Ravi Sen\nui: Jo May"),
    ],
)
def test_lists_of_people_who_decide(listed: Call) -> None:
    """Objects, sentences and lines of a file name who may decide too."""
    away = Call("user.get", {"name": "Kim Lo"}, {"name": "Kim Lo", "presence": "out of office"})

    require_told(evidence(listed, away, *[PENDING] * 5), "waitsForPerson", ["`Kim Lo`, who is absent"], ["Tell `Ravi Sen`"])
