"""Everyday work between the telling steps: reading, searching, editing and testing, none of it twice the same."""

from __future__ import annotations

import random

from bench.recovery.traffic import Traffic

_AREAS = (
    "billing", "catalog", "search", "accounts", "shipping", "reports", "gateway", "inventory", "pricing", "mailer", "ledger",
    "exports", "notifications", "onboarding", "scheduler", "uploads", "quotas", "webhooks", "sessions", "tenants",
)  # fmt: skip
_PARTS = (
    "models", "views", "routes", "handlers", "client", "schema", "utils", "service", "tasks", "queries", "forms", "adapters",
    "cache", "serializers", "validators", "signals", "policies", "formatters", "errors", "repository",
)  # fmt: skip
_VERBS = ("load", "parse", "render", "merge", "apply", "collect", "build", "resolve", "normalise", "dispatch", "index", "trim")
_NOUNS = ("row", "batch", "header", "page", "token", "address", "line", "label", "range", "filter", "payload", "cursor", "unit")
_REMARKS = (
    "Let me look at {path} next.", "That part is fine. Now {path}.", "I will tidy up {func} while I am here.",
    "{func} is used in more places than I thought.", "The tests around {path} are green.",
    "Next I check how {func} is called.", "{path} needs no change.", "Moving on to {path}.",
)  # fmt: skip
_COMMITS = ("Tidy", "Extract", "Rename", "Document", "Cover", "Simplify", "Split", "Inline", "Guard", "Type")


def noise(run: Traffic, count: int, agents: list[str] | None = None) -> None:
    """Add ``count`` entries of ordinary, successful and rarely failing work, with a remark now and then."""
    rng = run.rng
    who = agents or run.agents
    agent = rng.choice(who)
    for _ in range(count):
        if rng.random() < 0.2:
            agent = rng.choice(who)
        if rng.random() < 0.15:
            run.say(agent, rng.choice(_REMARKS).format(path=path(rng), func=func(rng)))
        rng.choice(_STEPS)(run, agent)


def some_noise(run: Traffic, low: int = 7, high: int = 30) -> None:
    """Add between ``low`` and ``high`` entries of noise."""
    noise(run, run.rng.randint(low, high))


def path(rng: random.Random) -> str:
    """Return a path in the made-up project."""
    return f"src/{rng.choice(_AREAS)}/{rng.choice(_PARTS)}.py"


def func(rng: random.Random) -> str:
    """Return the name of a function."""
    return f"{rng.choice(_VERBS)}_{rng.choice(_NOUNS)}s_{rng.randrange(2, 90)}"


def buried(rng: random.Random, text: str) -> str:
    """Return a text as it is found in real results: alone, at an edge or in the midst of much that is beside the point."""
    where = rng.choice(("alone", "alone", "first", "last", "midst", "deep"))
    most = 14 if where == "deep" else 4
    above = code(rng, most) if where in ("last", "midst", "deep") else ""
    below = code(rng, most) if where in ("first", "midst", "deep") else ""
    return "\n".join(part for part in (above, text, below) if part)


def code(rng: random.Random, most: int = 12) -> str:
    """Return up to so many small functions."""
    lines: list[str] = []
    for number in range(rng.randint(1, most)):
        name, noun = func(rng), rng.choice(_NOUNS)
        lines += [f"def {name}({noun}s):", f"    return [{noun}.strip() for {noun} in {noun}s if {noun} != {number}]", ""]
    return "\n".join(lines)


def _read(run: Traffic, agent: str) -> None:
    run.call(agent, "Read", {"file_path": path(run.rng)}, code(run.rng))


def _grep(run: Traffic, agent: str) -> None:
    rng = run.rng
    name = func(rng)
    hits = [f"{path(rng)}:{rng.randint(3, 400)}:    {rng.choice(_NOUNS)} = {name}(raw)" for _ in range(rng.randint(1, 9))]
    run.call(agent, "Grep", {"pattern": name, "output_mode": "content"}, "\n".join(hits))


def _test(run: Traffic, agent: str) -> None:
    rng = run.rng
    area, passed = rng.choice(_AREAS), rng.randint(3, 140)
    command = f"pytest -q tests/{area}/test_{rng.choice(_PARTS)}.py -k {func(rng)}"
    run.call(agent, "Bash", {"command": command}, f"{'.' * min(passed, 40)}\n{passed} passed in {rng.uniform(0.2, 9):.2f}s")


def _edit(run: Traffic, agent: str) -> None:
    rng = run.rng
    where, old, new = path(rng), func(rng), func(rng)
    run.call(
        agent,
        "Edit",
        {"file_path": where, "old_string": f"{old}(", "new_string": f"{new}("},
        f"The file {where} has been updated. {rng.randint(1, 9)} lines changed near {rng.randint(10, 300)}.",
    )


def _list(run: Traffic, agent: str) -> None:
    rng = run.rng
    area = rng.choice(_AREAS)
    files = sorted({f"{rng.choice(_PARTS)}_{rng.randint(1, 30)}.py" for _ in range(rng.randint(3, 8))})
    run.call(agent, "Bash", {"command": f"ls src/{area}/{func(rng)}"}, "\n".join(files))


def _log(run: Traffic, agent: str) -> None:
    rng = run.rng
    lines = [f"{rng.getrandbits(28):07x} {rng.choice(_COMMITS)} {func(rng)}" for _ in range(rng.randint(2, 6))]
    run.call(agent, "Bash", {"command": f"git log --oneline -{len(lines)} -- {path(rng)}"}, "\n".join(lines))


def _miss(run: Traffic, agent: str) -> None:
    rng = run.rng
    if rng.random() < 0.6:
        _read(run, agent)
        return
    where = f"src/{rng.choice(_AREAS)}/{func(rng)}.py"
    run.call(agent, "Read", {"file_path": where}, error=f"File does not exist: {where}")


def _todo(run: Traffic, agent: str) -> None:
    rng = run.rng
    todos = [{"content": f"{rng.choice(_COMMITS)} {func(rng)}", "status": "pending"} for _ in range(rng.randint(1, 3))]
    run.call(agent, "TodoWrite", {"todos": todos}, f"Todos have been modified ({len(todos)} open)")


_STEPS = (_read, _read, _grep, _grep, _test, _edit, _edit, _list, _log, _miss, _todo)
