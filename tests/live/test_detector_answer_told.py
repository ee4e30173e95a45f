"""What an agent and a person are told of a loop: step by step, within what a client takes, and nothing that steers anything."""

from __future__ import annotations

import fcntl
import gc
import json
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from ctxmgr.clients import MAX_ANSWER_CHARS, Event, parse_event
from ctxmgr.config import Config
from ctxmgr.live import detector_answer
from ctxmgr.live.detector_answer import (
    AGAIN,
    REFUSED,
    REFUSED_FOR_GOOD,
    WAITED,
    answer_event,
    hang_text,
    notifier_command,
    notify_person,
    step_text,
)
from ctxmgr.live.event_answer import Rounds, call_rows
from tests.live.scene import batch, settings, write_log

PROMPT = "[ctxmgr] You are going in circles: 3 times the same call.\nNext step: read the file."


@pytest.fixture
def circling(tmp_path: Path) -> Generator[bytes]:
    """Yield the event after the third identical failure, of which the hook has counted all three."""
    log = tmp_path / "s.jsonl"
    calls = write_log(log, [("make", "Exit code 2\nmake: *** No rule to make target 'all'")] * 3)
    rounds = Rounds("claude-code", "s", "")
    for call in calls:
        rounds.append(*call_rows(told_event(call, log)))
    yield json.dumps(batch(calls[-1], log)).encode()
    gc.enable()  # the hook ends before there is garbage; the process of the tests does not


def told_event(call: dict[str, Any], log: Path) -> Event:
    """Return an event after a call, as the hook reads it."""
    found = parse_event("claude-code", json.dumps(batch(call, log)).encode())
    assert found is not None
    return found[1]


def rows() -> list[list[str]]:
    """Return what the hook has noted of the session."""
    rounds = Rounds("claude-code", "s", "")
    rounds.read()
    return rounds.rows


def unseen(*_: object) -> None:
    """See no loop, as the detectors may."""


def asked(*_: object) -> NoReturn:
    """Fail the test: nobody may ask."""
    raise AssertionError("it was asked")


def absent(*_: object) -> list[str]:
    """Name a notifier that is not there."""
    return ["/nonexistent/notify"]


@pytest.mark.requirement("LV-told")
def test_a_confirmed_loop_is_told_and_noted(circling: bytes) -> None:
    """The answer is the prompt in the client's shape; that it was told is noted, and its text kept for a refusal."""
    answer = json.loads(answer_event("claude-code", circling))["hookSpecificOutput"]["additionalContext"]

    assert answer.startswith("[ctxmgr] You are going in circles: 3 times the same call")
    assert Path(Rounds("claude-code", "s", "").reason).read_text("utf-8") == answer
    assert [row[:2] for row in rows() if row[0] in "nt"] == [["t", "1"]]
    assert answer_event("claude-code", circling) == b"", "the count starts anew"


@pytest.mark.requirement("LV-ladder")
def test_a_call_is_refused_from_the_second_time_on_where_the_user_wants_that(circling: bytes) -> None:
    """The first time nothing is refused; the second time the call that goes in circles is, once."""
    settings('[live]\nmode = "deny"\n')
    counted = [row for row in rows() if row[0] == "c"]
    answer_event("claude-code", circling)
    assert [row for row in rows() if row[0] == "d"] == []

    Rounds("claude-code", "s", "").append(*counted)
    second = json.loads(answer_event("claude-code", circling))["hookSpecificOutput"]["additionalContext"]
    assert second.startswith(f"[ctxmgr] {AGAIN} {REFUSED} You are going in circles")
    assert [row for row in rows() if row[0] in "ds"] == [["d", counted[-1][2]]]


@pytest.mark.requirement("LV-silent")
def test_what_the_detectors_do_not_see_is_noted_as_no_loop(circling: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The count errs on the side of asking; a call that was looked at in vain is not asked about at each round."""
    monkeypatch.setattr(detector_answer, "confirmed_prompt", unseen)
    last = rows()[-1]

    assert answer_event("claude-code", circling) == b""
    assert rows()[-1] == ["n", last[1], last[3]]


@pytest.mark.requirement("LV-silent")
def test_settings_that_only_watch_do_not_ask(circling: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is not read, and not each further round starts this process."""
    settings('[live]\nmode = "watch"\n')
    last = rows()[-1]
    monkeypatch.setattr(detector_answer, "confirmed_prompt", asked)

    assert answer_event("claude-code", circling) == b""
    assert rows()[-1] == ["n", last[1], last[3]]
    assert answer_event("claude-code", circling) == b""
    assert [row[0] for row in rows()].count("n") == 1


def test_of_two_hooks_of_a_session_one_asks(circling: bytes) -> None:
    """Who finds another hook of the session at it says nothing, and the next one may ask."""
    with open(Rounds("claude-code", "s", "").path, "rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert answer_event("claude-code", circling) == b""
    assert answer_event("claude-code", circling) != b""


@pytest.mark.requirement("LV-ladder")
def test_each_step_begins_with_its_own_words() -> None:
    """Told plainly, told again, and stopped; our sign stands once, in front, and the prompt is there at every step."""
    steps = [step_text(PROMPT, number, refusing=False) for number in (1, 2, 3)]

    assert steps[0] == PROMPT
    assert steps[1].startswith(f"[ctxmgr] {AGAIN} You are going")
    assert REFUSED not in steps[1]
    assert steps[2].startswith("[ctxmgr] Stop here. You were told twice and it goes on")
    assert steps[2].partition("\n")[0].endswith("propose its next step, do not take it.")
    assert step_text(PROMPT, 3, refusing=True).partition("\n")[0].endswith(REFUSED_FOR_GOOD)
    assert [text.count("[ctxmgr]") for text in steps] == [1, 1, 1]
    assert all(text.endswith("Next step: read the file.") for text in steps)


def test_no_text_is_longer_than_a_client_takes() -> None:
    """A long prompt loses its end, not the words in front of it."""
    long = PROMPT + "x" * MAX_ANSWER_CHARS

    for text in (*(step_text(long, number, refusing=True) for number in (1, 2, 3)), hang_text(long)):
        assert len(text) == MAX_ANSWER_CHARS
        assert "You are going in circles" in text


@pytest.mark.requirement("LV-hang")
def test_what_was_noted_while_a_call_hung_says_so() -> None:
    """An agent that reads it after the call came back learns when it was written."""
    assert hang_text(PROMPT) == f"[ctxmgr] {WAITED} {PROMPT.removeprefix('[ctxmgr] ')}"


@pytest.mark.requirement("LV-ladder")
def test_a_person_is_told_the_text_and_the_session(tmp_path: Path) -> None:
    """The user's own command gets the whole text on stdin and the session in its environment, whatever it is called."""
    told = tmp_path / "told"
    script = f'printf "%s|" "$CTXMGR_SESSION" > {told}.part; cat >> {told}.part; mv {told}.part {told}'
    config = Config(live_exec=("sh", "-c", script), live_desktop=False)

    notify_person(config, "s\0\ud800" + "x" * 2_000, "an agent goes in circles", "the whole\ntext")

    until = time.monotonic() + 10
    while not told.exists() and time.monotonic() < until:
        time.sleep(0.01)
    session, _, text = told.read_text("utf-8").partition("|")
    assert (session, text) == ("s?" + "x" * 998, "the whole\ntext")


def test_a_command_that_is_not_there_keeps_nobody_from_going_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a missing notifier nor a missing command of the user's is a fault."""
    asked: list[object] = []

    def asked_for(*given: object) -> list[str]:
        asked.append(given)
        return absent()

    monkeypatch.setattr(detector_answer, "notifier_command", asked_for)

    notify_person(Config(live_exec=("/nonexistent/call",)), "s", "headline", "text")

    assert len(asked) == 1


def test_what_is_shown_on_a_desktop_is_one_harmless_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded text is one argument, without control letters and markup; without a desktop no notifier is called."""

    def found(name: str) -> str:
        return f"/usr/bin/{name}"

    monkeypatch.setattr("shutil.which", found)
    hostile = '-e <b>"; do shell script "x"\n\x1b[31m\u202eend' + "x" * 999

    linux = notifier_command(hostile, {"DISPLAY": ":0"}, "linux")
    mac = notifier_command(hostile, {}, "darwin")
    assert notifier_command(hostile, {}, "linux") is None
    assert linux is not None
    assert linux[:4] == ["/usr/bin/notify-send", "--app-name=ctxmgr", "--", "ctxmgr"]
    assert linux[4].startswith('-e &lt;b&gt;"; do shell script "x"[31mend')
    assert mac is not None
    assert (mac[-1], len(mac[-2])) == ("ctxmgr", 300)
    assert not any("shell" in word for word in mac[:-2])
