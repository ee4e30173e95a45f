"""Where no cause is known: what changed since the same call last worked, or that it never did."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.contrast import KIND, contrast, explain_contrast
from tests.diagnose.build import Call, Said, bash, edit, evidence, failed, read

BROKEN = failed("python tool.py", "zorg: 17 glims lost")


def told(*calls: Call) -> str:
    """Return cause and next step, which must be told."""
    found = contrast(evidence(*calls, loop=3))
    assert found is not None
    assert found.kind == KIND
    assert found.cause
    assert found.evidence
    return f"{found.cause}\n{found.next_step}"


def test_what_changed_since_it_worked_is_named() -> None:
    """The change is a place to look at."""
    text = told(bash("python tool.py", "fine"), edit("zeta.py", "a", "b"), *[BROKEN] * 3)

    assert "It worked" in text
    assert "zeta.py" in text
    assert "no change is recorded since" in told(bash("python tool.py", "fine"), *[BROKEN] * 3)


def test_what_never_worked_is_said_to_be_so() -> None:
    """Nothing of an earlier success is made up."""
    text = told(bash("ls", "tool.py"), *[BROKEN] * 3)

    assert "zorg" in text
    assert "It worked" not in text


def test_a_file_that_the_error_names_and_nobody_read_is_the_next_look() -> None:
    """A file that was read is none."""
    error = failed("python tool.py", 'File "core/glim.py", line 17, in lose\nzorg: lost')
    assert "core/glim.py" in told(*[error] * 3).partition("\n")[2]
    assert "core/glim.py" not in told(read("core/glim.py", "x\n" * 20), *[error] * 3).partition("\n")[2]


def test_without_a_finding_nothing_is_said() -> None:
    """Nor of a record that is empty."""
    assert contrast(evidence(bash("ls", "a"), found=False)) is None
    assert contrast(evidence(found=False)) is None


def test_edits_that_changed_nothing_are_counted() -> None:
    """Without a finding too, nobody is told that nothing was changed."""
    edits = [edit("tool.py", f"glims = {number}", f"glims = {number + 1}") for number in range(3)]
    check = failed("pytest tests", "zorg: 17 glims lost")
    for found in (True, False):
        known = contrast(evidence(check, *(step for each in edits for step in (each, check)), found=found))
        assert known is not None
        assert "after 3 changes of `tool.py`" in known.cause


SAME, UNCHANGED = Call("can_send_mms", {}, "Your app cannot send MMS messages."), "nothing was changed"


@pytest.mark.parametrize(
    ("between", "unchanged"),
    [
        (Call("get_mms_settings", {}, "on"), True),
        (bash("cat app.conf", "mms: on"), True),
        (Call("Edit", {"file_path": "a", "old_string": "b", "new_string": "c"}, "not found", "error"), True),
        (Call("toggle_wifi_calling", {}, "Wi-Fi calling OFF"), False),
        (Call("refuel_data", {"gb": 2}, "added 2.0 GB"), False),
        (Call("zorgify", {}, "done"), False),
        (bash("python fix.py", "done"), False),
        (Said("I have switched it off and on."), False),
    ],
    ids=lambda each: getattr(each, "action", getattr(each, "who", "")),
)
def test_that_nothing_was_changed_is_said_only_where_no_call_may_have(between: Call | Said, unchanged: bool) -> None:
    """Nobody can tell what a tool of an unknown name does, nor what a person did."""
    known = evidence(*[step for _ in range(5) for step in (between, SAME)])
    found = contrast(known)

    assert found is not None
    assert (UNCHANGED in found.cause) == unchanged


def test_what_may_have_changed_something_since_it_worked_is_named() -> None:
    """A program that ran in between may have changed anything."""
    text = told(bash("python tool.py", "fine"), bash("./migrate.sh", "ok"), *[BROKEN] * 3)

    assert "no change is recorded" not in text
    assert "migrate.sh" in text


def test_a_flaky_call_is_not_said_to_be_so_with_nothing_changed() -> None:
    """Where a program ran between its runs, the record does not show that."""
    good, bad, other = bash("pytest -q", "3 passed"), failed("pytest -q", "1 failed"), bash("./seed.sh", "ok")
    steps = [good, bad, good, bad, good, bad]

    assert "nothing else changed" in told(*steps)
    assert "nothing else changed" not in told(*(step for each in steps for step in (other, each)))


@pytest.mark.parametrize("said", ["zorg: data/x.csv does not exist", "FEHLER: Datei 'data/x.csv' nicht gefunden"])
def test_a_file_that_is_missing_is_not_to_be_read(said: str) -> None:
    """The error says that it is not there."""
    assert "Read `data/x.csv`" not in told(*[failed("./tool", said)] * 3)
    assert "Read `core/x.csv`" in told(*[failed("./tool", f"{said}\ncore/x.csv:4: see there")] * 3)


def test_of_several_open_calls_the_cause_is_about_the_one_that_the_finding_names() -> None:
    """Headline and cause speak of one call, the oldest."""
    known = evidence(
        Call("WebSearch", {"query": "one"}, None, "open"), Call("Artifact", {"title": "two"}, None, "open"),
        loop=2, kind="hung", severity="hung",
    )  # fmt: skip
    found = contrast(known)
    assert found is not None
    assert "WebSearch" in found.cause
    assert "Artifact" not in found.cause


def test_what_a_record_says_of_a_silent_call_is_quoted() -> None:
    """A call waits for an answer, and a document that was read earlier names it. The record says what it waits for."""
    document = "- zorgctl asks which column was renamed. Run it as `expect -f tools/answer.exp OLD NEW`."
    hung = bash("zorgctl push", status="open")
    known = evidence(read("CONTRIBUTING.md", document), bash("ls", "a b c"), hung, loop=1, severity="hung")

    found = explain_contrast(known)

    assert found is not None
    assert "does not say what it waits for" not in found.diagnosis.cause
    assert any("tools/answer.exp" in each.text for each in found.diagnosis.evidence)


def test_a_silent_call_that_no_record_names_is_said_to_be_unexplained() -> None:
    """Nobody is sent to records that do not bear on it."""
    found = contrast(evidence(bash("ls", "a b c"), bash("zorgctl push", status="open"), loop=1, severity="hung"))

    assert found is not None
    assert "does not say what it waits for" in found.cause


@pytest.mark.parametrize(
    "call",
    [bash("rg --files", "", "open"), Call("WebSearch", {"query": "pulls"}, None, "open"), bash("sleep 20", "", "open")],
    ids=["listing", "search", "pause"],
)
def test_a_look_that_does_not_return_is_made_again(call: Call) -> None:
    """It changes nothing: neither is its effect to be found out, nor its process to be examined."""
    found = contrast(evidence(call, kind="hung", severity="hung"))

    assert found is not None
    assert found.next_step.startswith("Make the call again with a time limit: it changes nothing.")
    assert "took effect" not in found.next_step
    assert "a row" not in str(found.check)


def test_of_a_call_with_an_effect_that_does_not_return_the_effect_is_named() -> None:
    """Of a patch, that is its files."""
    patch = "*** Begin Patch\n*** Update File: internal/codex.go\n*** Update File: internal/codex_test.go\n*** End Patch"
    found = contrast(evidence(Call("apply_patch", {"patch": patch}, None, "open"), kind="hung", severity="hung"))

    assert found is not None
    assert "took effect before you do anything again: read `internal/codex.go` and `internal/codex_test.go`;" in found.next_step


def test_several_arguments_are_quoted_with_their_names() -> None:
    """Values alone do not show what they are."""
    found = contrast(evidence(Call("write_stdin", {"chars": "yes", "session_id": "sess-42"}, None, "open"), severity="hung"))

    assert found is not None
    assert found.evidence[0].text == "chars: yes, session_id: sess-42"


def test_what_was_changed_without_effect_is_named() -> None:
    """An agent that reads it does not do the same again."""
    test = Call("run_speed_test", {}, "Speed test: no connection.")
    done = [Call("set_network_mode", {"mode": "5g"}, "set"), test, Call("disconnect_vpn", {}, "disconnected"), test]
    found = contrast(evidence(test, *done, loop=1))

    assert found is not None
    assert "answers the same each time, also after `set_network_mode` and `disconnect_vpn`" in found.cause


def test_many_changes_without_effect_are_counted() -> None:
    """The latest ones are named; the others would fill the prompt."""
    test = Call("run_speed_test", {}, "Speed test: no connection.")
    changes = [Call(f"set_{name}", {}, "set") for name in ("apn", "mode", "roaming", "airplane", "saver")]
    found = contrast(evidence(test, *(each for change in changes for each in (change, test)), loop=1))

    assert found is not None
    assert "also after `set_roaming`, `set_airplane`, `set_saver` and 2 other changes" in found.cause


def test_in_a_run_without_trouble_a_list_with_an_unread_rest_is_worth_a_look() -> None:
    """Nothing fails, but the answers came from a part of a list."""
    page = Call("list_rows", {"month": 7}, '{"items": [1], "has_more": true, "next": "p2"}')
    found = contrast(evidence(page, Call("match", {"rows": 1}, "24 left"), found=False))

    assert found is not None
    assert "holds only a part of the list" in found.cause
    assert "`p2`" in found.next_step
    assert contrast(evidence(Call("match", {"rows": 1}, "24 left"), found=False)) is None


@pytest.mark.parametrize(
    ("call", "awaited"),
    [
        (Call("wait", {"minutes": 10, "for": "answer of u-118"}, None, "open"), "answer of u-118"),
        (bash("inotifywait -t 3600 -e create data", status="open"), "inotifywait -t 3600"),
        (bash("sleep 3600", status="open"), "sleep 3600"),
    ],
)
def test_a_wait_that_lasts_as_long_as_told_is_no_mystery(call: Call, awaited: str) -> None:
    """Until when it waits is told, and no process is looked at."""
    found = contrast(evidence(bash("ls"), call, found=False))

    assert found is not None
    assert "waits as it was told" in found.cause
    assert awaited in found.cause
    assert "Not known why" not in found.cause
    assert "strace" not in found.next_step


def test_a_wait_that_lasts_longer_than_told_is_a_mystery() -> None:
    """Then nobody knows why, but until when it was to wait."""
    found = contrast(evidence(Call("wait", {"minutes": 2}, None, "open"), kind="hung", severity="hung"))

    assert found is not None
    assert "Not known why" in found.cause
    assert "was told to wait only until" in found.cause


def test_a_compiled_file_is_not_to_be_read() -> None:
    """A build names its objects, which nobody can read; a source that it names is another matter."""
    said = "ld -o build/app build/main.o build/crc.o\nthe result differs"
    objects = contrast(evidence(*[failed("./link.sh", said)] * 3))
    source = contrast(evidence(*[failed("./link.sh", f"{said} at src/crc.c:3")] * 3))

    assert objects is not None
    assert source is not None
    assert "Read `build" not in objects.next_step
    assert "Read `src/crc.c`" in source.next_step
