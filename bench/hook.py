"""Measure what a hook costs: a call in which all is well, and one that tells an agent of its loop.

    python bench/hook.py --calls 200

The healthy call is started in turn with a Python that does nothing, so that both meet the same load; what counts is their ratio
(goal: at most 1.6, at the median and at the 95th percentile). The telling one reads a Claude Code log of 10,000 calls (goal:
at most one second). One that takes longer than the hook's patience, as on a very busy machine, is counted and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ctxmgr.clients.claude_code import CLIENT
from ctxmgr.live.installation import hook_command

ENTRIES = 10_000
FAILED = "Exit code 1\nImportError: No module named 'calc'"
_WORDS = ["invoice", "parser", "ledger", "router", "mailer", "report", "worker", "server", "client", "folder"]


def _log(path: Path) -> None:
    """Write a session of varied calls that ends in three identical failures."""
    chance = random.Random(1)
    shared = {"sessionId": "s", "version": "2.1.330", "cwd": str(path.parent), "isSidechain": False, "userType": "external"}
    with path.open("w", encoding="utf-8") as stream:
        opening = {"type": "user", "message": {"role": "user", "content": "Make the tests pass."}}
        stream.write(
            json.dumps({**shared, "uuid": "u", "parentUuid": None, "timestamp": "2026-01-21T10:00:00Z", **opening}) + "\n"
        )
        above = "u"
        for number in range(ENTRIES):
            loop = number >= ENTRIES - 3
            words = " ".join(chance.choices(_WORDS, k=20))
            command = "python3 -m unittest test_calc" if loop else f"grep -rn {chance.choice(_WORDS)}_{number} src"
            moment = time.strftime("2026-01-21T%H:%M:%SZ", time.gmtime(36_000 + 4 * number))
            call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": command}}
            result = {"type": "tool_result", "tool_use_id": call["id"], "is_error": loop, "content": FAILED if loop else words}
            said = {"role": "assistant", "id": f"m{number}", "type": "message", "model": "m", "content": [call]}
            for kind, message in (("assistant", said), ("user", {"role": "user", "content": [result]})):
                row = {**shared, "uuid": f"{kind}{number}", "parentUuid": above, "timestamp": moment, "type": kind}
                stream.write(json.dumps({**row, "message": message}) + "\n")
                above = f"{kind}{number}"


def _event(log: Path, command: str, result: str, session: str) -> bytes:
    call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "t", "tool_response": result}
    event = {"session_id": session, "transcript_path": str(log), "cwd": str(log.parent), "hook_event_name": "PostToolBatch"}
    return json.dumps({**event, "tool_calls": [call]}).encode()


def _took(command: list[str], given: bytes, environment: dict[str, str]) -> tuple[float, float, bytes]:
    """Return the seconds that a command took, those that processors worked for it, and what it said."""
    start, worked = time.perf_counter(), _worked()
    ran = subprocess.run(command, input=given, capture_output=True, check=True, env=environment)
    return time.perf_counter() - start, _worked() - worked, ran.stdout


def _worked() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _told(name: str, seconds: list[float]) -> list[float]:
    cuts = [min(seconds), statistics.median(seconds), statistics.quantiles(seconds, n=20)[18]]
    print(f"{name:22} least {1000 * cuts[0]:7.1f} ms   median {1000 * cuts[1]:7.1f} ms   p95 {1000 * cuts[2]:7.1f} ms")
    return cuts


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--tellings", type=int, default=5)
    asked = parser.parse_args()
    hook, alone = hook_command(CLIENT), [sys.executable, "-I", "-S", "-c", "pass"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_STATE_HOME": folder, "XDG_CONFIG_HOME": folder, "CTXMGR_WATCH": "off"}
        log = Path(folder) / "s.jsonl"
        _log(log)
        bare: list[float] = []
        healthy: list[float] = []
        worked: dict[bool, list[float]] = {False: [], True: []}
        for number in range(asked.calls):
            given = _event(log, f"show {'xyz' * (number % 40)} {number * 'k'}", "line " * (number % 300), "healthy")
            for command, seconds in ((alone, bare), (hook, healthy)):
                took, work, said = _took(command, given, environment)
                assert not said
                seconds.append(took)
                worked[command is hook].append(work)
        first, second = _told("Python alone", bare), _told("hook, all is well", healthy)
        ratios = "   ".join(f"{name} {b / a:.2f}" for name, a, b in zip(("least", "median", "p95"), first, second, strict=True))
        print(f"{'ratio':22} {ratios}")
        own = {name: statistics.median(seconds) for name, seconds in worked.items()}
        print(
            f"{'ratio of work':22} median {own[True] / own[False]:.2f}, in processor time, which a busy machine changes least"
        )
        _measure_tellings(hook, log, asked.tellings, environment)


def _measure_tellings(hook: list[str], log: Path, count: int, environment: dict[str, str]) -> None:
    telling: list[float] = []
    worked: list[float] = []
    for number in range(count):
        given = _event(log, "python3 -m unittest test_calc", FAILED, f"loop {number}")
        took = [_took(hook, given, environment) for _ in range(3)]
        assert not took[0][2], "told after one round"
        assert not took[1][2], "told after two rounds"
        if took[2][2]:
            telling.append(took[2][0])
            worked.append(took[2][1])
    if len(telling) < count:
        print(f"{count - len(telling)} of {count} tellings took longer than the hook's patience and were given up")
    if not telling:
        sys.exit("nothing was told, so there is no time of it: measure again on a machine that is less busy")
    print(f"{'hook that tells, work':22} least {min(worked):.2f} s   median {statistics.median(worked):.2f} s")
    print(
        f"{'hook that tells':22} least {min(telling):.2f} s   median {statistics.median(telling):.2f} s, of {ENTRIES:,} calls"
    )


if __name__ == "__main__":
    main()
