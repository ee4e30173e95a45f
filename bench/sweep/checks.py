"""What a folder holds, told without ids and times, and what is wrong with it."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.sweep.commands import GOAL, STORES, environment
from bench.sweep.injection import run

GOAL_FOLDER = ".agent_context"


@dataclass(frozen=True, slots=True)
class Found:
    """What a folder holds and what is wrong with it.

    Attributes:
        state: records by kind, entries in their order, versions with their artifacts, the goal; empty before there is any.
        faults: what ``verify`` finds wrong, files of listed versions that are missing or have other bytes, or that it can't
            be read at all.
        leftovers: files of the artifact folder that nothing lists, or that disagree with the history. A change that was cut
            short may leave them; one that succeeded may not.
    """

    state: dict[str, Any]
    faults: list[str]
    leftovers: list[str]


def look(folder: Path, store: str) -> Found:
    """Return what there is in a folder; ``store``: its kind, of `STORES` or `GOAL`."""
    ended = run(lambda: _look(folder, store), folder, environment(folder, store))
    if ended.code:
        return Found({}, [f"unreadable: {ended.err.strip()[-400:]}"], [])
    return Found(**json.loads(ended.out))


def _look(folder: Path, store: str) -> int:
    history = folder / GOAL_FOLDER / "history.jsonl" if store == GOAL else folder / STORES[store]
    state: dict[str, Any] = _goal(folder / GOAL_FOLDER) if store == GOAL else {}
    faults: list[str] = []
    leftovers: list[str] = []
    if history.exists():
        with closing(import_module("ctxmgr.store").open_store(str(history), readonly=True)) as opened:
            # A torn last line was never acknowledged, and is read past.
            faults += [f"verify: {item.kind} {item.reason}" for item in opened.examine().damaged if "torn" not in item.reason]
            if store != GOAL:
                state = _state(opened)
                leftovers = _audit(opened, faults)
    json.dump({"state": state, "faults": faults, "leftovers": leftovers}, sys.stdout)
    return 0


def _goal(folder: Path) -> dict[str, Any]:
    if not folder.exists():
        return {}
    for name in ("state.json", "state.prev.json", "loops.json"):
        if (folder / name).exists():
            json.loads((folder / name).read_bytes())  # a whole document at every time
    try:
        state = import_module("ctxmgr.goals").Goals(folder).state()
    except import_module("ctxmgr.errors").CtxmgrError as error:
        if error.kind not in ("notFound", "noHistory"):
            raise
        return {}
    tree = {each.id: each.status for task in state.goal.tasks for each in (task, *task.subtasks)}
    return {"tree": tree, "current": state.current, "active": state.active, "actions": state.actions_total}


def _state(store: Any) -> dict[str, Any]:
    records = list(store.sessions.records(None))
    kinds = Counter(str(record["kind"]) for record in records)
    entries = [record["id"] for record in records if record["kind"] == "entry"]
    versions = [
        [row.number, sorted([kept.name, kept.hash[:12]] for kept in store.artifacts.state(row.number))]
        for row in store.artifacts.versions()
    ]
    state = {"kinds": dict(kinds), "entries": entries, "versions": versions, "current": store.artifacts.current()}
    return state if any(state.values()) else {}


def _audit(store: Any, faults: list[str]) -> list[str]:
    """Return what lies in the artifact folder without need; what is missing there is added to ``faults``."""
    place = Path(store.location).with_name("artifacts")
    if not place.exists():
        return []
    left: list[str] = []
    for fault in import_module("ctxmgr.artifacts.version_folders").audit(store):
        # Where `current` leads is set right by the next change.
        (left if fault.what.endswith("/current") else faults).append(f"{fault.what} {fault.reason}")
    known = {f"v{row.number}" for row in store.artifacts.versions()} | {".lock", ".store", ".reserve", "objects", "current"}
    left += [f"{name} was left" for name in os.listdir(place) if name not in known]
    objects = {each.parent.name + each.name for each in (place / "objects").rglob("*") if each.is_file()}
    return left + [f"object {name} was left" for name in objects - store.artifacts.hashes()]
