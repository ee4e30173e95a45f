"""The hook as a client starts it: silent while all is well, and telling at the third round, whatever it is fed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.clients import CLIENTS, MAX_ANSWER_CHARS, SessionFile, read_rows, state_folder, state_paths
from ctxmgr.live import installation
from ctxmgr.live.event_answer import Rounds
from tests.cli.console import run
from tests.live.scene import LOOP, SILENT, batch, before, calls_of, command, hooked, settings, write_log

FAILED = "Exit code 1\nImportError: No module named 'calc'"
LOOPING = [("cat calc.txt", "nothing"), *[("python3 -m unittest test_calc", FAILED)] * 9]


def _grown(path: Path, count: int) -> list[dict[str, Any]]:
    """Write the first calls of the looping run as the client's log, and return all that were made."""
    return write_log(path, LOOPING[:count])


@pytest.mark.requirement("LV-told", "AC-3-live", "R-06")
def test_a_loop_is_told_after_its_third_round_and_not_before(tmp_path: Path) -> None:
    """The third identical failure is answered with the prompt that `recover --prompt` gives, in the client's shape."""
    log = tmp_path / "s.jsonl"
    said = [hooked("claude-code", batch(_grown(log, count)[-1], log)) for count in range(1, 6)]

    assert [bool(each.out) for each in said] == [False, False, False, True, False]
    answer = json.loads(said[3].out)["hookSpecificOutput"]
    assert set(answer) == {"hookEventName", "additionalContext"}
    assert answer["hookEventName"] == "PostToolBatch"
    assert answer["additionalContext"].startswith("[ctxmgr] You are going in circles: 3 times the same call")
    assert "Next step:" in answer["additionalContext"][:2000]
    assert len(answer["additionalContext"]) <= MAX_ANSWER_CHARS < 9_000


@pytest.mark.slow
def test_a_recorded_run_is_told_its_cause() -> None:
    """A real run of three calls in turn is told why its edit can't work, and what would."""
    calls = list(calls_of(LOOP))
    said = [hooked("claude-code", batch(call, LOOP)).context for call in calls]

    first = next(place for place, text in enumerate(said) if text)
    assert len([text for text in said if text]) <= 3
    assert "is not in the file" in said[first][:900]
    assert all(not text for text in said[:first])


@pytest.mark.slow
@pytest.mark.requirement("LV-silent")
def test_a_healthy_run_is_told_nothing(tmp_path: Path) -> None:
    """Fifty varied calls, each before and after: not one byte."""
    log = tmp_path / "s.jsonl"
    words = ("invoice", "parser", "ledger", "router", "mailer")
    calls = write_log(
        log, [(f"grep -n {word} {'xy' * n}.py", f"line of {word} {'z' * n}") for n in range(10) for word in words]
    )

    assert len(calls) == 50
    for call in calls:
        assert hooked("claude-code", before(call, log)) == SILENT
        assert hooked("claude-code", batch(call, log)) == SILENT


@pytest.mark.slow
@pytest.mark.requirement("LV-silent")
def test_polling_is_told_nothing(tmp_path: Path) -> None:
    """A build that comes along is watched as often as its agent likes; so is one that the detectors grant patience."""
    log = tmp_path / "s.jsonl"
    calls = write_log(log, [("gh run watch", f"{n * 9} % of the jobs are done") for n in range(12)])
    assert [hooked("claude-code", batch(call, log)) for call in calls] == [SILENT] * len(calls)

    rounds = Rounds("claude-code", "s", "")
    rounds.read()
    assert any(row[0] == "n" for row in rounds.rows), "the detectors were asked, and saw no loop"


def test_the_word_of_a_person_ends_it(tmp_path: Path) -> None:
    """Two rounds, a word of a person, and another round are no loop."""
    log = tmp_path / "s.jsonl"
    calls = _grown(log, 4)
    for call in calls[1:3]:
        hooked("claude-code", batch(call, log))
    prompt = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "Go on.", "transcript_path": str(log)}

    assert hooked("claude-code", prompt) == SILENT
    assert hooked("claude-code", batch(calls[3], log)) == SILENT


@pytest.mark.slow
@pytest.mark.requirement("LV-ladder")
def test_the_ladder_ends_with_a_person(tmp_path: Path) -> None:
    """Told, then refused once, then refused for good while the user's own command calls somebody; a person lifts it."""
    noticed = tmp_path / "noticed"
    writing = f"import sys; open({str(noticed)!r}, 'w').write(sys.stdin.read())"
    settings(f'[live]\nmode = "deny"\nexec = ["{sys.executable}", "-c", "{writing}"]\n')
    log, heard, refusals = tmp_path / "s.jsonl", list[str](), list[int]()
    call = _grown(log, 1)[-1]
    for count in range(1, 11):
        call = _grown(log, count)[-1]
        if refused := hooked("claude-code", before(call, log)).out:
            decision = json.loads(refused)["hookSpecificOutput"]
            assert decision["permissionDecision"] == "deny"
            assert decision["permissionDecisionReason"].startswith("[ctxmgr] ")
            refusals.append(count)
        heard.append(hooked("claude-code", batch(call, log)).context)

    told = {place + 1: text for place, text in enumerate(heard) if text}
    assert list(told) == [4, 7, 10]
    assert "You were told this before" in told[7]
    assert told[10].startswith("[ctxmgr] Stop here.")
    assert refusals == [8]
    prompt = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "Try it once more."}
    assert json.loads(hooked("claude-code", before(call, log)).out)["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert hooked("claude-code", prompt) == SILENT
    assert hooked("claude-code", before(call, log)) == SILENT
    _wait_for(noticed)
    first, _, rest = noticed.read_text().partition("\n\nIt was told:\n")
    assert first.startswith(f"Claude Code in {tmp_path.name}: an agent goes in circles after it was told twice")
    assert rest.startswith("[ctxmgr] Stop here.")
    assert rest.endswith("\n")


def _wait_for(path: Path) -> None:
    waiting = (
        "import os, sys, time\nend = time.monotonic() + 30\n"
        "while not (os.path.exists(sys.argv[1]) and os.path.getsize(sys.argv[1])) and time.monotonic() < end: pass"
    )
    subprocess.run([sys.executable, "-c", waiting, path], check=True, timeout=60)


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "text",
    [
        '[live]\nmode = "watch"\n',
        '[live]\nquiet_kinds = ["repetition", "errorRepetition"]\n',
        '[live]\nquiet_actions = ["Bash"]\n',
    ],
)
def test_what_is_left_alone_is_told_nothing(text: str, tmp_path: Path) -> None:
    """Settings keep the hook quiet: altogether, for kinds of findings, and for actions."""
    settings(text)
    log = tmp_path / "s.jsonl"

    for count in range(1, 6):
        assert hooked("claude-code", batch(_grown(log, count)[-1], log)) == SILENT


def test_the_end_of_a_session_leaves_only_what_others_need(tmp_path: Path) -> None:
    """Its files go, those of its sub-agents too; its waits stay for an import, and the number of tellings for `doctor`."""
    log, ended = tmp_path / "s.jsonl", {"session_id": "s", "hook_event_name": "SessionEnd"}
    for count in range(1, 5):
        hooked("claude-code", batch(_grown(log, count)[-1], log))
    hooked("claude-code", {**batch(_grown(log, 4)[-1], log), "agent_id": "a1"})
    hooked("claude-code", batch(_grown(log, 4)[-1], log, session="other"))
    others = {path for path in state_paths("claude-code") if path.startswith(Rounds("claude-code", "other", "").path)}
    assert len(state_paths("claude-code", "s")) == 4

    last, told = installation.last_hook_call("claude-code")
    assert hooked("claude-code", ended) == SILENT
    assert {*state_paths("claude-code")} == {*others, os.path.join(state_folder(), "claude-code-ended")}
    assert last is not None
    assert (installation.last_hook_call("claude-code")[1], told) == (1, 1)

    hooked("claude-code", batch(_grown(log, 4)[-1], log))
    hooked("claude-code", {"session_id": "s", "hook_event_name": "Notification", "notification_type": "permission_prompt"})
    assert hooked("claude-code", ended) == SILENT
    assert state_paths("claude-code", "s") == [SessionFile("claude-code", "s").path]
    assert [row["kind"] for row in read_rows(SessionFile("claude-code", "s").path)] == ["session", "event", "sessionEnd"]


def test_one_run_is_switched_off(tmp_path: Path) -> None:
    """``CTXMGR_LIVE=off`` leaves not even a file."""
    log = tmp_path / "s.jsonl"
    for call in _grown(log, 6):
        assert hooked("claude-code", batch(call, log), CTXMGR_LIVE="off") == SILENT

    assert not os.path.exists(state_folder())


HUGE = json.dumps({"session_id": "s", "hook_event_name": "PostToolBatch", "tool_calls": [{"tool_response": "x" * 9_000_000}]})
GARBAGE: dict[str, bytes] = {
    "empty": b"",
    "text": b"garbage",
    "binary": bytes(range(256)) * 50,
    "half": b'{"session_id": "s", "hook_event_name": "PostToo',
    "list": b"[1, 2]",
    "null": b"null",
    "deep": b'{"a":' * 100_000,
    "surrogates": b'{"session_id": "\\ud800", "hook_event_name": "PostToolBatch", "tool_calls": [{"tool_name": "\\ud800"}]}',
    "odd types": b'{"session_id": 7, "hook_event_name": ["PostToolBatch"], "tool_calls": {"a": 1}}',
    "odd calls": b'{"session_id": "s", "hook_event_name": "PostToolBatch", "tool_calls": [null, 5, {"tool_input": NaN}]}',
    "no event": b'{"session_id": "s"}',
    "huge": HUGE.encode(),
    "larger": b"x" * 40_000_000,
}
BULKY = ("huge", "larger")
"""Read the same way for every client."""


@pytest.mark.requirement("LV-open")
@pytest.mark.parametrize(
    ("client", "name"),
    [
        *((client, name) for client in (*CLIENTS, "nobody", "../x") for name in GARBAGE if name not in BULKY),
        *(("claude-code", name) for name in BULKY),
    ],
)
def test_whatever_it_is_fed_it_ends_well_and_says_nothing(client: str, name: str) -> None:
    """No input of any client makes the hook fail or talk."""
    assert hooked(client, GARBAGE[name]) == SILENT


@pytest.mark.cases(1)
@pytest.mark.requirement("LV-open")
@pytest.mark.parametrize(
    "log", ["", "/nonexistent/s.jsonl", "/dev/zero", "/dev/tty", "\0", "/proc/self/mem", "/etc", "a" * 9000]
)
def test_a_log_that_can_not_be_read_is_no_fault(log: str, tmp_path: Path) -> None:
    """A transcript that is missing, a device or no file at all leaves the run as it is."""
    event = batch(
        {"tool_name": "Bash", "tool_input": {"command": "test"}, "tool_use_id": "t", "tool_response": FAILED}, tmp_path
    )
    for _ in range(4):
        assert hooked("claude-code", {**event, "transcript_path": log}) == SILENT


@pytest.mark.cases(1)
@pytest.mark.requirement("LV-open")
@pytest.mark.parametrize("state", ["a file", "locked", "read-only", "full"])
def test_a_state_that_can_not_be_kept_is_no_fault(state: str, tmp_path: Path) -> None:
    """No place for the state, or one that somebody holds: the run goes on, untold."""
    log = tmp_path / "s.jsonl"
    calls = _grown(log, 5)
    base = tmp_path / "state"
    if state == "a file":
        base.write_text("")
    elif state == "read-only":
        base = Path("/proc")
    elif state == "full":
        base = Path("/dev/full")
    else:
        for call in calls[:3]:
            hooked("claude-code", batch(call, log), XDG_STATE_HOME=str(base))
        import fcntl

        (held,) = (path for path in (base / "ctxmgr" / "live").iterdir() if not path.suffix)
        with held.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            assert hooked("claude-code", batch(calls[3], log), XDG_STATE_HOME=str(base)) == SILENT
        return
    for call in calls:
        assert hooked("claude-code", batch(call, log), XDG_STATE_HOME=str(base)) == SILENT


@pytest.mark.requirement("LV-open")
def test_a_package_that_was_removed_leaves_hooks_that_do_nothing(tmp_path: Path) -> None:
    """Python's own code for a missing file, 2, would have Claude Code block every prompt of its user."""
    given = [word.replace("hook.py", "gone.py") for word in command("claude-code")]
    ran = subprocess.run(given, input=b"{}", capture_output=True, check=False)

    assert (ran.returncode, ran.stdout, ran.stderr) == SILENT


@pytest.mark.cases(1)
@pytest.mark.requirement("LV-open")
@pytest.mark.parametrize(
    ("text", "why"),
    [("this is no TOML", "config.toml: "), ('[live]\nmode = "foo"', "live.mode must be"), ("[detect]\nwindow = 1", "window")],
)
def test_settings_that_are_wrong_are_shown_to_the_user_alone(text: str, why: str, tmp_path: Path) -> None:
    """The agent goes on untold, and its user reads why, once until they speak."""
    settings(text)
    log = tmp_path / "s.jsonl"
    said = [hooked("claude-code", batch(_grown(log, count)[-1], log)) for count in range(1, 8)]

    assert [place for place, each in enumerate(said) if each != SILENT] == [3]
    assert [*json.loads(said[3].out)] == ["systemMessage"]
    assert json.loads(said[3].out)["systemMessage"].startswith("ctxmgr tells the agent nothing about a loop: ")
    assert why in json.loads(said[3].out)["systemMessage"]
    (row,) = [each for each in run("doctor", "--json").envelope["data"] if each["name"] == "config"]
    assert row["level"] == "fail"

    settings("")
    told = [hooked("claude-code", batch(_grown(log, count)[-1], log)).context for count in range(8, 11)]
    assert any(told), "mended settings hold at once"


def test_a_healthy_call_loads_the_standard_library_alone(tmp_path: Path) -> None:
    """Counting a call loads neither json nor regular expressions, and nothing from outside the standard library."""
    log = tmp_path / "s.jsonl"
    event = json.dumps(batch(_grown(log, 1)[0], log)).encode()
    hooked("claude-code", event)  # the first of a session makes its folder
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", *command("claude-code")[1:]], input=event, capture_output=True, check=True
    )
    loaded = {line.rpartition("|")[2].strip() for line in ran.stderr.decode().splitlines()}

    assert "ctxmgr.live.event_answer" in loaded
    root = Path(installation.package).parent
    files = [root.parent / f"{name.replace('.', '/')}.py" for name in loaded if name.startswith("ctxmgr.")]
    compiled = [root / place for place in installation.HOOK_PLACES]
    # A package has its `__init__`; what is compiled when the hook is installed is there, and holds all that a call loads.
    files = [file if file.exists() else file.with_suffix("") / "__init__.py" for file in files]
    assert all(place.exists() for place in compiled)
    assert [file for file in files if not any(file.is_relative_to(place) for place in compiled)] == []
    assert (
        loaded & {"json", "re", "enum", "typing", "site", "subprocess", "pydantic", "hashlib", "contextlib", "collections"}
        == set()
    )
