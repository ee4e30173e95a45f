"""Sweep one command: hurt it at each of its points, and compare what is left with what it was before and is afterwards."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.sweep import checks
from bench.sweep.commands import COMMANDS, do, environment, load, prepare
from bench.sweep.crash_states import TRACED, History, changes, snapshot
from bench.sweep.injection import FAULTS, Ended, Point, hurt, points, traced

_DONE = (0, 10, 20)
"""Exit codes of a command that did its work: loops were found, a person is asked."""

_LEASED, _LEASE = 22, 60.0
"""Exit code of a recovery while another has the lease, and seconds after which it has none any more."""


_WHOLE = 1 << 26
"""Bytes of a text that a trace shows: all of them."""

_TORN_TAIL = "verify: unreadable"
"""What `verify` says of bytes that no acknowledged record was made of, such as zeros: they stay, and are told."""


@dataclass
class Outcome:
    """What the sweep of one command found.

    ``points``: system calls of the command that change its files. ``tried``: faults by kind. ``missed``: runs that did not get
    as far as the fault. ``unsaid``: the fault was met and the command had done its work, but ended as failed.
    """

    command: str
    store: str
    points: int = 0
    tried: Counter[str] = field(default_factory=lambda: Counter[str]())
    missed: list[str] = field(default_factory=lambda: list[str]())
    unsaid: list[str] = field(default_factory=lambda: list[str]())
    wrong: list[str] = field(default_factory=lambda: list[str]())


@dataclass(frozen=True, slots=True)
class _Expected:
    """What a folder holds before the command, after it and after it was run twice, and how the two runs ended."""

    before: dict[str, Any]
    after: dict[str, Any]
    twice: dict[str, Any]
    codes: tuple[int, int]


def sweep(name: str, store: str, folder: Path, *, most: int | None = None, kinds: tuple[str, ...] = tuple(FAULTS)) -> Outcome:
    """Sweep a command of `COMMANDS` on a kind of store.

    Args:
        name: of the command.
        store: a kind of `stores_of` the command.
        folder: an empty one to work in.
        most: try only about so many faults, spread evenly over points and kinds; else all.
        kinds: of fault.
    """
    ready = _prepared(name, store, folder)
    command, base, work, expected = COMMANDS[name], ready.base, ready.work, ready.expected
    _copy(base, work)
    _, found = points(command.work(), work, environment(work, store))
    outcome = Outcome(name, store, len(found))
    every = 1 if most is None else max(1, round(len(found) * len(kinds) / most))
    for number, point in enumerate(found):
        for shift, kind in enumerate(kinds):
            if (number + shift * (every // len(kinds))) % every == 0:
                _copy(base, work)
                _try(outcome, work, point, kind, expected)
    return outcome


def crash(name: str, store: str, folder: Path, *, most: int | None = None) -> Outcome:
    """Build each state in which a crash of the system may leave the files of a command, and let the program meet it.

    Args:
        name: of a command of `COMMANDS`.
        store: a kind of `stores_of` the command.
        folder: an empty one to work in.
        most: try only about so many states, spread evenly; else all.
    """
    ready = _prepared(name, store, folder)
    command, base, work = COMMANDS[name], ready.base, ready.work
    _copy(base, work)
    before = snapshot(base)
    _, trace = traced(command.work(), work, environment(work, store), TRACED, "-xx", "-s", str(_WHOLE))
    history = History(before, changes(trace, work, before))
    count, losses = history.losses(most)
    outcome = Outcome(name, store, count)
    for loss in losses:
        with tempfile.TemporaryDirectory(dir=folder) as built:
            history.build(loss, Path(built))
            _copy(Path(built), work)
        outcome.tried["crash"] += 1
        left = checks.look(work, store)
        wrong = [fault for fault in left.faults if not fault.startswith(_TORN_TAIL)]
        wrong += _wrong_left(left.state, ready.expected, partly=command.partly)
        again = _wrong_again(work, left.state, ready.expected, outcome)
        wrong += [fault for fault in again if not fault.startswith(f"again, {_TORN_TAIL}")]
        outcome.wrong += [f"{loss.cause}: {fault}" for fault in wrong]
    return outcome


@dataclass(frozen=True, slots=True)
class _Ready:
    """The folder before a command (``base``), the one to work in, and what is expected there."""

    base: Path
    work: Path
    expected: _Expected


def _prepared(name: str, store: str, folder: Path) -> _Ready:
    command = COMMANDS[name]
    base, work = folder / "base" / "work", folder / "work"
    # Histories and locks are known by their path, so the folder is made in the place where it is used.
    prepare(work, name, store)
    base.parent.mkdir()
    _copy(work, base)
    load(command.work(), work, store)
    _copy(base, work)
    before = checks.look(work, store)
    ended = do(work, store, command.words, command.stdin)
    if ended.code not in _DONE:
        raise RuntimeError(f"{name}: exit {ended.code}: {ended.err}")
    after = checks.look(work, store)
    again = do(work, store, command.words, command.stdin)
    twice = checks.look(work, store)
    if faults := before.faults + after.faults + after.leftovers + twice.faults:
        raise RuntimeError(f"{name}, undisturbed: {faults}")
    return _Ready(base, work, _Expected(before.state, after.state, twice.state, (ended.code, again.code)))


def _copy(source: Path, target: Path) -> None:
    """Make a folder what another one is. Folders that both have stay the same ones: an index is known by that of its own."""
    for place, folders, files in os.walk(target, topdown=False):
        inside = Path(place).relative_to(target)
        for name in [*files, *(name for name in folders if (Path(place) / name).is_symlink())]:
            (Path(place) / name).unlink()
        if not (source / inside).is_dir():
            os.rmdir(place)
    target.mkdir(exist_ok=True)
    subprocess.run(["cp", "-a", f"{source}/.", str(target)], check=True)  # it keeps hard links


def _try(outcome: Outcome, work: Path, point: Point, kind: str, expected: _Expected) -> None:
    command, store = COMMANDS[outcome.command], outcome.store
    where = f"{kind} at {point.call} {point.number} of {point.file}"
    ended = hurt(command.work(), work, environment(work, store), point, kind)
    outcome.tried[kind] += 1
    if not ended.met:
        outcome.missed.append(where)
    left = checks.look(work, store)
    wrong = left.faults or _wrong_left(left.state, expected, partly=command.partly)
    if kind != "kill":
        wrong += _wrong_words(ended)
        if ended.code == 0 and left.state not in (expected.after, expected.twice):
            wrong.append(f"it said that it was done, and left {_short(left.state)}")
        if ended.code not in _DONE and ended.met and left.state == expected.after != expected.before:
            outcome.unsaid.append(f"{where}: exit {ended.code}: {ended.err.strip()[:160]}")
    wrong += _wrong_again(work, left.state, expected, outcome)
    outcome.wrong += [f"{where}: {fault}" for fault in wrong]


def _wrong_left(left: dict[str, Any], expected: _Expected, *, partly: bool) -> list[str]:
    if left in (expected.before, expected.after):
        return []
    if partly:
        kept, whole = left.get("entries", []), expected.after.get("entries", [])
        if kept == whole[: len(kept)] and len(kept) >= len(expected.before.get("entries", [])):
            return []
    return [f"neither before nor after: {_short(left)}"]


def _wrong_words(ended: Ended) -> list[str]:
    """Return what is wrong with how a command told that the disk failed."""
    if ended.code < 0 or ended.code == 1 or "Traceback" in ended.err:
        return [f"exit {ended.code}: {ended.err.strip()[-300:]}"]
    if ended.code and not ended.err.strip() and not ended.out.strip():
        return [f"exit {ended.code} without a word"]
    return []


def _wrong_again(work: Path, left: dict[str, Any], expected: _Expected, outcome: Outcome) -> list[str]:
    """Return what is wrong with the command run again on a sound disk, and with what it leaves."""
    command = COMMANDS[outcome.command]
    again = do(work, outcome.store, command.words, command.stdin)
    if again.code == _LEASED:  # a recovery that was killed: the lease ends by itself
        outcome.tried["leased"] += 1
        again = do(work, outcome.store, command.words, command.stdin, later=_LEASE)
    found = checks.look(work, outcome.store)
    wrong = [f"again, {fault}" for fault in found.faults]
    if again.code not in expected.codes:
        return [*wrong, f"again: exit {again.code}: {again.err.strip()[:300]}"]
    if found.state not in (expected.after, expected.twice):
        wrong.append(f"again: {_short(left)} became {_short(found.state)}, wanted {_short(expected.after)}")
    return wrong + [f"again, {fault}" for fault in found.leftovers]


def _short(state: dict[str, Any]) -> str:
    shown = {name: f"{len(value)} of them" if name == "entries" else value for name, value in state.items()}
    return str(shown)[:300]
