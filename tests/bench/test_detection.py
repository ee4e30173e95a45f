"""The benchmark's readers and groups, on small runs of each data set's shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.detection.groups import exact_loops, repeated
from bench.detection.hang import cuts, gaps
from bench.detection.hyper_agent import collapse, hyper_agent
from bench.detection.runs import Run
from bench.detection.swe_agent import swe_agent
from bench.detection.tau import agentrx, tau2, tau_bench

TOOL = (
    "HyperAgent_t-1 - INFO - Inner-Navigator-Assistant's Response: Thought: look\n```python\nresult = open_file._run({})\n```"
)
START = ["HyperAgent_t-1 - INFO - Initialized HyperAgent instance t-1"]
MADE = ["HyperAgent_t-1 - INFO - Initialized tools"]
PLAN = ["HyperAgent_t-1 - INFO - Planner's Response: Thought: go", "", "Intern Name: Codebase Navigator", "Subgoal: find it"]
BACK = ["HyperAgent_t-1 - INFO - Navigator->Planner: here", "it is"]


def _write(place: Path, value: object) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(value), encoding="utf-8")


def _call(name: str, given: Any, call: str) -> dict[str, Any]:
    return {"id": call, "name": name, "arguments": given, "requestor": "assistant"}


def _chat(*answers: str, stamp: str | None = "2026-01-22T10:00:{:02}") -> list[dict[str, Any]]:
    """Return a chat in which one look-up gets these answers, one after the other."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "rules"}, {"role": "user", "content": "help"}]
    for number, answer in enumerate(answers):
        messages.append({"role": "assistant", "content": None, "tool_calls": [_call("look", {"a": 1, "b": 2}, f"c{number}")]})
        messages.append({"role": "tool", "id": f"c{number}", "content": answer, "error": answer == "no"})
    messages.append({"role": "assistant", "content": "done"})
    if stamp:
        for number, message in enumerate(messages):
            message["timestamp"] = stamp.format(number)
    return messages


def _tau2(folder: Path, *answers: str, reward: float = 1.0) -> Run:
    simulation = {"messages": _chat(*answers), "reward_info": {"reward": reward}, "termination_reason": "user_stop"}
    _write(folder / "tau2_official" / "f.json", {"simulations": [simulation]})
    return next(iter(tau2(folder)))


def test_tau2_calls_keep_arguments_results_and_times(tmp_path: Path) -> None:
    """A call is an entry, its message the result; the customer's words are synthetic user messages."""
    run = _tau2(tmp_path, "no", "42", reward=0.0)
    assert (run.name, run.success, run.ended) == ("tau2_official/f#0", False, "user_stop")
    shape = [(record["kind"], record.get("type") or record.get("action") or record.get("status")) for record in run.records]
    assert shape == [
        ("event", "user_message"), ("entry", "look"), ("result", "error"), ("entry", "look"), ("result", "ok"),
        ("event", "message"),
    ]  # fmt: skip
    assert run.records[0]["data"] == {"text": "help", "synthetic": True}
    assert run.records[1]["input"] == {"a": 1, "b": 2}
    assert (run.records[4]["entry"], run.records[4]["output"]) == (run.records[3]["id"], "42")
    assert run.records[1]["ts"] == "2026-01-22T10:00:02Z"


def test_openai_style_runs_are_read_alike(tmp_path: Path) -> None:
    """tau-bench and AgentRx name calls under ``function`` and hold arguments as text; they have no times."""
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
    chat = [
        {"role": "user", "content": "help"}, {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "Error: no"},
    ]  # fmt: skip
    _write(tmp_path / "taubench" / "gpt-4o-airline.json", [{"reward": 0.0, "traj": chat}])
    _write(tmp_path / "agentrx" / "tau_retail" / "tau_dataset_full.json", [{"reward": 1.0, "traj": chat}])
    for run, success in ((next(tau_bench(tmp_path)), False), (next(agentrx(tmp_path)), True)):
        assert run.success is success
        assert [record.get("input") for record in run.records] == [None, {"a": 1}, None]
        assert (run.records[2]["status"], run.records[2]["entry"]) == ("error", run.records[1]["id"])
        assert {record["ts"] for record in run.records} == {None}


@pytest.mark.parametrize(
    ("answers", "group", "loops"),
    [(["1", "1", "1"], "unchanging", 1), (["1", "2", "1"], "changing", 1), (["1", "1"], None, 0), ([], None, 0)],
)
def test_groups_count_calls_and_results(answers: list[str], group: str | None, loops: int, tmp_path: Path) -> None:
    """Three equal calls are a repeated call, and in a row an exact loop; the results name the group."""
    run = _tau2(tmp_path, *answers)
    assert repeated(run) == group
    assert len(exact_loops(run)) == loops


def test_another_move_of_the_agent_breaks_a_row() -> None:
    """A row is sought among one agent's moves: another agent's don't break it, its own message does."""
    run = Run("r", "d")
    for number, (agent, action) in enumerate(
        [("a", "x"), ("b", "y"), ("a", "x"), ("a", "x"), ("b", "y"), ("a", "z"), ("b", "y")]
    ):
        run.records.append({"kind": "entry", "id": f"r{number}", "agent": agent, "action": action, "input": {}})
    assert [row.names for row in exact_loops(run)] == [("r0", "r2", "r3"), ("r1", "r4", "r6")]


def _hyper(folder: Path, *starts: tuple[int, list[str]], repetition: str = "yes") -> None:
    """Write a log of starts, each entry as often as its start has handlers."""
    lines: list[str] = []
    for copies, entries in starts:
        for entry in ["\n".join(START), "\n".join(MADE), *entries]:
            lines += [line for _ in range(copies) for line in entry.split("\n")]
    note = {"options": {"Step repetition": repetition, "Trajectory restart": "yes"}}
    _write(folder / "mast_hyperagent_human" / "t-1_human.json", {"trajectory": lines, "note": note})


def test_hyperagent_copies_collapse_and_restarts_split(tmp_path: Path) -> None:
    """One start with two handlers logs all twice; its steps count once, and a real repetition stays."""
    work = ["\n".join(PLAN), TOOL.format('path="a.py", start=1'), TOOL.format('path="a.py", start=1'), "\n".join(BACK)]
    _hyper(tmp_path, (1, work), (2, work), (3, []))
    log = next(hyper_agent(tmp_path))
    assert (log.raw_steps, log.steps, len(log.parts)) == (12, 8, 2)
    one, two = ([{**record, "process": ""} for record in part.records] for part in log.parts)
    assert one == two
    entries = [(record["agent"], record["action"], record["input"]) for record in one if record["kind"] == "entry"]
    look = ("Inner-Navigator-Assistant", "open_file", {"path": "a.py", "start": 1})
    assert entries == [("Planner", "delegate", {"intern": "Codebase Navigator", "subgoal": "find it"}), look, look]
    assert [(record["entry"], record["output"]) for record in one if record["kind"] == "result"] == [("r1", "here\nit is")]
    assert log.parts[0].repetition is True


def test_hyperagent_doubled_log_reads_the_same(tmp_path: Path) -> None:
    """A log and the same log written by twice as many handlers are the same runs."""
    work = ["\n".join(PLAN), TOOL.format("patch=patch"), TOOL.format("patch=patch"), "\n".join(BACK)]
    _hyper(tmp_path, (1, work), (3, work))
    once, twice = next(hyper_agent(tmp_path)), next(hyper_agent(tmp_path, copies=2))
    assert [part.records for part in once.parts] == [part.records for part in twice.parts]
    assert twice.raw_steps == 2 * once.raw_steps
    assert once.parts[0].records[3]["input"] == {"code": "result = open_file._run(patch=patch)"}


def test_collapse_rounds_up() -> None:
    """A row that handlers did not write in full loses no step."""
    assert collapse(["a", "a", "a", "b", "a"], 2) == ["a", "a", "b", "a"]
    assert collapse(["a", "a"], 0) == ["a", "a"]


def test_swe_agent_steps_are_commands(tmp_path: Path) -> None:
    """Each step is the command's first word with all of it as input; a run without steps is none."""
    steps = [
        {"action": "open a.py\n", "observation": "text", "thought": "look"},
        {"action": "", "observation": "", "thought": ""},
    ]
    _write(tmp_path / "sweagent_traj" / "a.traj", {"trajectory": steps})
    _write(tmp_path / "sweagent_traj" / "b.traj", {"trajectory": []})
    (run,) = swe_agent(tmp_path)
    assert [record["kind"] for record in run.records] == ["event", "entry", "result"]
    assert (run.records[1]["action"], run.records[1]["input"]) == ("open", {"command": "open a.py"})


def test_gaps_and_cuts_are_counted_where_something_is_awaited(tmp_path: Path) -> None:
    """Gaps lie between steps; a cut is asked about after its limit, and only on the agents' side."""
    run = _tau2(tmp_path, "1", "2", "3")
    found = gaps([run])
    assert (found.all, found.over, found.claimed) == (4, 0, [])
    counted = cuts([run], seed=1)
    assert sum(cut.cuts for cut in counted.values()) == 5
    assert all(cut.found == cut.cuts and cut.early == 0 for name, cut in counted.items() if name != "customer")
