"""What the user said or named: a way around, a value that no call has, how to do something."""

from __future__ import annotations

from ctxmgr.diagnose import contrast, diagnose
from ctxmgr.types.finding import Diagnosis
from tests.diagnose.build import Call, Said, bash, edit, evidence, failed


def answer(*steps: Call | Said) -> Diagnosis:
    """Return what is said of these steps."""
    known = evidence(*steps)
    told = diagnose(known) or contrast(known)
    assert told is not None
    return told


def test_a_value_that_the_user_named_and_no_call_has_is_told() -> None:
    """The user's own name of a file is missing in every form of the call."""
    told = answer(Said("Print the totals of report.json."), *[failed("jq '.totals'", "no result after 2 minutes")] * 3)

    assert "`report.json`" in told.cause
    assert "`report.json`" in told.next_step


def test_the_way_that_the_user_named_comes_first() -> None:
    """Before a wait stands the mirror that the user named."""
    limit = failed(
        "docker build -t registry.local/shop .", "ERROR: toomanyrequests: You have reached your pull rate limit for the image"
    )
    told = answer(Said("Build the image. We have a mirror too: mirror.registry.local/library/."), *[limit] * 3)

    assert told.next_step.startswith("Go by `mirror.registry.local/library`")


def test_a_unit_and_what_was_used_already_are_not_lacking() -> None:
    """A unit of measure is no value, and a file that was edited is not what a later call lacks."""
    said = Said("How many kWh does the site use? Add the field 'yield' to src/form.js of the site.")
    told = answer(said, edit("src/form.js", "a", "b"), *[failed("sitectl sum", "sitectl: site sum rejected, code 71")] * 3)

    assert "kWh" not in told.next_step
    assert "form.js" not in told.next_step


def test_the_user_s_sentence_on_the_error_s_topic_comes_first() -> None:
    """A sentence whose names the agent has used already says nothing new, and one of the topic precedes others."""
    task = Said("Copy the weekly report to stock-2. Put the report into box_a. The new passwords are for box_b, by the way.")
    done = Call("Write", {"file_path": "stock-2/report", "content": "x"}, "written")
    told = answer(task, done, *[failed("stockctl report sync", "authentication error 17: report refused")] * 3)

    assert "box_b" in told.cause + told.next_step
    assert "stock-2" not in told.next_step


def test_what_was_asked_for_and_written_since_is_done() -> None:
    """The other file that the user asked for stands, so it is no next step."""
    said = Said("Write the report. Also: costs.sql had no tolls, please add them as a second column, it needs them.")
    written = bash("cat > reports/costs.sql <<'E'\nselect toll from trip;\nE\nsqlite3 fleet.db < reports/costs.sql", "12")
    told = answer(said, written, *[failed("sqlite3 fleet.db 'select km from trip'", "Error: no such column: km")] * 3)

    assert "costs.sql" not in told.next_step
