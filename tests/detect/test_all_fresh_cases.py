"""Cases that were written from descriptions of the patterns, by somebody who had not seen the rules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.detect.settings import DetectSettings
from ctxmgr.history.backtest import DetectorRun, try_session
from ctxmgr.types.plain_records import build
from tests.builders import at

CASES = {
    case["id"]: case
    for line in (Path(__file__).parent / "fresh_cases.jsonl").read_text(encoding="utf-8").splitlines()
    for case in [json.loads(line)]
}
NOT_FOUND = {
    "fresh-p-hung-never-started",  # a run that never did anything is not for the detectors of loops
    "fresh-c-s01-consent-overlay-returns",  # rounds with fresh references, and other steps in some of them
    "fresh-c-s02-rollout-restart-crashloop",  # the name of a new pod in each round
    "fresh-c-s08-journal-post-reverse",  # new numbers in what is posted and taken back
    "fresh-c-s09-game-room-circuit",  # numbers that rise and mean nothing, without trouble told
    "fresh-c-s10-mobile-tap-jitter",  # a short random id on each screen
    "fresh-c-s24-runbook-ten-checks",  # rounds of ten with other steps in some of them
    "fresh-c-s26-replan-delegate-fail",  # plans in other words and with other numbers; a warning
    "fresh-c-s28-flasher-loops-beside-reader",  # a time-out that is tried again every eight seconds
}
"""What is not found yet, and why."""
FALSE_ALARMS = {"fresh-c-h25-i2c-scan-nacks"}
"""A scan in which each answer is the same failure looks like a loop."""
_EVENTS = {
    "chunk": "agent_message_chunk", "user": "user_message", "condensation": "compaction", "reasoning": "thought",
}  # fmt: skip
_META = ("thought", "exit_code", "unknown_tool", "output_identity")
_STATUS = {"success": "ok", "error": "error", "denied": "denied"}


def _result(entry: Mapping[str, Any]) -> dict[str, Any]:
    said = entry.get("output")
    result: dict[str, Any] = {"status": "error" if entry.get("timed_out") else _STATUS[entry.get("status", "success")]}
    if said is not None:
        result["output"] = said
    if entry.get("status") == "error":
        result["error"] = {"type": "error", "message": said if isinstance(said, str) else json.dumps(said)}
    return result


def _records(case: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    calls: dict[str, str] = {}
    yield build("session", case["id"], at(0), process="p1")
    for place, entry in enumerate(case["entries"]):
        name, kind, when = f"r{place}", entry["kind"], at(entry.get("t", 0))
        if kind == "action":
            fields: dict[str, Any] = {} if entry.get("status") == "pending" else _result(entry)
            meta = {key: entry[key] for key in _META if key in entry}
            fields |= {"meta": meta} if meta else {}
            fields |= {name: entry[name] for name in ("step", "timeoutMs") if name in entry}
            calls[entry.get("call_id", name)] = name
            yield build(
                "entry", case["id"], when, id=name, agent=entry.get("agent", "agent"), action=entry["action"],
                input=entry.get("input"), process=entry.get("run", "p1"), **fields,
            )  # fmt: skip
        elif kind == "observation" and entry.get("call_id") in calls:
            yield build("result", case["id"], when, entry=calls[entry["call_id"]], **_result(entry))
        elif kind != "null":
            told = {key: value for key, value in entry.items() if key not in ("kind", "agent", "t")}
            spoken = kind in ("message", "thought", "nudge", *_EVENTS) and kind != "condensation"
            data = {"text": entry["output"]} if spoken and isinstance(entry.get("output"), str) else told
            yield build("event", case["id"], when, id=name, type=_EVENTS.get(kind, kind), agent=entry.get("agent"), data=data)


def _tried(case: Mapping[str, Any]) -> DetectorRun:
    return try_session(_records(case), DetectSettings(), case.get("now"))


@pytest.mark.parametrize("name", sorted(name for name, case in CASES.items() if not case["loop"] and name not in FALSE_ALARMS))
def test_what_is_honest_raises_no_alarm(name: str) -> None:
    """Not at any time, or where a loop was left not at the end."""
    trial = _tried(CASES[name])
    assert (trial.standing if CASES[name].get("final") else trial.alarms) == [], CASES[name]["why"]


@pytest.mark.parametrize("name", sorted(name for name, case in CASES.items() if case["loop"] is True and name not in NOT_FOUND))
def test_what_goes_round_is_found(name: str) -> None:
    """A loop, or a stall, and not only a suspicion, but where that is all the case asks for."""
    trial = _tried(CASES[name])
    assert trial.alarms != [] or (CASES[name].get("warn") and trial.warned), CASES[name]["why"]


def test_there_are_enough_of_both() -> None:
    """The figures mean something: of 124 loops at most nine are not found, of 118 honest ones at most one alarms."""
    loops = [case for case in CASES.values() if case["loop"]]
    assert (len(loops), len(CASES) - len(loops)) == (124, 118)
    assert len(NOT_FOUND) <= 9
    assert len(FALSE_ALARMS) <= 1
