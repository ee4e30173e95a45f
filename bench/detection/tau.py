"""Read the runs of tau2, tau-bench and the retail runs of AgentRx: agents serving a simulated customer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.detection.runs import Run, Writer, arguments, dicts, load

TAU2 = ("tau2_official", "tau2_gemma")


def tau2(folder: Path) -> Iterator[Run]:
    """Yield the runs of the tau2 folders, by file and place."""
    for dataset in TAU2:
        for path in sorted((folder / dataset).glob("*.json")):
            source = load(path)
            domain = source.get("info", {}).get("environment_info", {}).get("domain_name", dataset)
            for place, simulation in enumerate(dicts(source.get("simulations"))):
                run = Run(f"{dataset}/{path.stem}#{place}", dataset, success=_reward(simulation.get("reward_info")) >= 1.0)
                run.task = f"{domain} {simulation.get('task_id')}"
                run.ended = str(simulation.get("termination_reason"))
                _convert(run, simulation.get("messages"))
                yield run


def tau_bench(folder: Path) -> Iterator[Run]:
    """Yield the runs of tau-bench."""
    yield from _trajectories(folder / "taubench" / "gpt-4o-airline.json", "taubench")


def agentrx(folder: Path) -> Iterator[Run]:
    """Yield the retail runs of AgentRx; its file of failed runs holds a part of the full one and is not read."""
    yield from _trajectories(folder / "agentrx" / "tau_retail" / "tau_dataset_full.json", "agentrx")


def _trajectories(path: Path, dataset: str) -> Iterator[Run]:
    for place, item in enumerate(dicts(load(path))):
        run = Run(f"{dataset}/{path.stem}#{place}", dataset, success=_reward(item) >= 1.0)
        run.task = f"{dataset} {item.get('task_id')}"
        _convert(run, item.get("traj"))
        yield run


def _reward(holder: object) -> float:
    for value in dicts([holder]):
        reward = value.get("reward")
        return float(reward) if isinstance(reward, int | float) else 0.0
    return 0.0


def _convert(run: Run, messages: object) -> None:
    """Write a chat as records.

    The customer is played by a program: its words are user messages marked as synthetic, so they set the agent to work
    and reset nothing. In tau2 it has tools of its own; it acts under the agent name "user".
    """
    writer = Writer(run)
    for place, message in enumerate(dicts(messages)):
        role = str(message.get("role"))
        at = _time(message.get("timestamp"))
        text = message.get("content")
        if role == "tool":
            _results(writer, message, at)
            continue
        if role not in ("assistant", "user"):
            continue
        calls = list(dicts(message.get("tool_calls")))
        if isinstance(text, str) and text:
            said: dict[str, Any] = {"text": text}
            if calls:
                writer.event("thought", role, said, at=at)
            elif role == "user":
                writer.event("user_message", role, said | {"synthetic": True}, at=at)
            else:
                writer.event("message", role, said, at=at)
        for call in calls:
            _call(writer, role, call, at, f"m{place}" if len(calls) > 1 else None)


def _call(writer: Writer, role: str, call: dict[str, Any], at: str | None, step: str | None) -> None:
    inner = next(dicts([call.get("function")]), call)
    given = arguments(inner.get("arguments"))
    writer.call(role, str(inner.get("name")), given, at=at, call=f"{role} {call.get('id')}", step=step)


def _results(writer: Writer, message: dict[str, Any], at: str | None) -> None:
    for part in list(dicts(message.get("tool_messages"))) or [message]:
        text = part.get("content")
        said = text if isinstance(text, str) else ""
        failed = part.get("error") is True or said.startswith("Error")
        name = f"{part.get('requestor') or 'assistant'} {part.get('id') or part.get('tool_call_id')}"
        writer.result(name, said, failed=failed, at=_time(part.get("timestamp")) or at)


def _time(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    return value if value.endswith("Z") or "+" in value else f"{value}Z"
