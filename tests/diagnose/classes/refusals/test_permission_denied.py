"""What to do about a refusal that no permission can lift."""

from __future__ import annotations

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import Call, Said, evidence, failed, read, require_told


def test_a_rule_of_the_user_comes_before_a_question() -> None:
    """What the user said may be used alone is told, with an answer that has it."""
    search = Call("web_search", {"q": "heat pumps"}, {"results": [{"title": "IDAE informe 2025"}, {"title": "AFEC"}]})
    drafts = [
        Call("submit_draft", {"text": f"{number} were sold (AFEC)."}, "Rejected by reviewer: source not allowed.", "denied")
        for number in (189, 176, 185)
    ]
    told = diagnose(evidence(Said("Write one paragraph. Only figures from public bodies (IDAE, Eurostat)."), search, *drafts))

    assert told is not None
    assert "Only figures from public bodies" in told.cause
    assert "`IDAE`" in told.next_step


def test_a_refusal_by_the_user_is_an_answer() -> None:
    """Nobody is sent to ask whether it may be done after the user has said no."""
    call = Call("Bash", {"command": "npm publish"}, "The user rejected this tool call.", "denied")
    told = diagnose(evidence(Said("Release it."), call, call, call))

    assert told is not None
    assert "the user has refused this call" in told.cause
    assert "ask the user whether" not in told.next_step


_FULL = failed("gsutil cp a.csv gs://exch-9/inbox/a.csv", "AccessException: 403 Forbidden: inbox/a.csv is denied by policy")


def test_the_way_that_another_agent_named_comes_before_rights() -> None:
    """Its message is about the refused place, and names one that no call has used, with what belongs to it."""
    told = Said("They fill inbox/ themselves now. Senders may write to drops/ours only, with the tag from-us.", "broker")
    require_told(
        evidence(Said("Send a.csv to the partner."), told, *[_FULL] * 3), "permissionDenied",
        ["Broker said", "drops/ours"], ["`drops/ours` and `from-us`", "without changing any rights"],
    )  # fmt: skip


def test_a_message_about_another_place_permits_nothing() -> None:
    """What it names was said of something else."""
    told = Said("The printer is in room B-2. Senders may write to drops/ours only.", "broker")
    found = diagnose(evidence(Said("Send a.csv to the partner."), told, *[_FULL] * 3))

    assert found is None or "drops/ours" not in found.next_step


def test_the_name_most_like_the_refused_one_is_the_first_of_a_note() -> None:
    """A table that was made for others is told before its schema, and the refused one with its schema."""
    note = read("docs/db.md", "Tables in hr are not given out. Everyone else uses `pub`: staff_public has all staff by name.")
    refused = Call("query", {"sql": "select name from hr.staff"}, "permission denied for table staff", "error")
    require_told(evidence(note, *[refused] * 3), "permissionDenied", ["`hr.staff`"], ["of `staff_public` and `pub`"])
