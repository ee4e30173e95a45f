"""One recovery with a hostile model, from the seed to what came of it."""

from __future__ import annotations

import shutil
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from bench.hostile.model import Hostile
from bench.hostile.scene import Scene, leases, raw, scene, written
from bench.hostile.verdict import ACCEPTED, Ended, faults, misdeed
from ctxmgr.errors import CtxmgrError
from ctxmgr.log.codec import encode
from ctxmgr.recover.model.consultation import consultant
from ctxmgr.types.operations import ModelRequest
from ctxmgr.types.route import Continuation

MOST_REQUESTS = 12
SLOW_SECONDS = 0.3
PATIENT_SECONDS = 60.0
"""Wall clock of a run that is not about being slow: more than it takes on a busy machine."""

REASONS = (
    ("refused", "its answers were refused by the gate"), ("no answer within", "no answer in time"),
    ("it made more tool calls", "a limit was reached"), ("never answered in the form", "no valid answer"),
    ("is needed", "its answer read like an order"), ("limit of", "a limit was reached"),
    ("a limit was reached", "a limit was reached"), ("characters long", "its answer was too long"),
    ("could not be given", "its answer could not be given"), ("no valid answer", "no valid answer"),
    ("broke off", "it raised an error"), ("the server", "it raised an error"), ("no answer in time", "it raised an error"),
    ("quota", "it raised an error"), ("HTTP", "it raised an error"),
    ("no entry to choose", "there was no entry to choose from"),
)  # fmt: skip
"""Words of a failure, and what it is counted as; the first that fit."""


@dataclass(slots=True)
class Outcome:
    """What came of one run.

    Attributes:
        ended: ``model``, ``rules…`` (the model was not asked, or agreed), ``fallback: …`` or ``error: …``.
        faults: what must not be; empty when all is well.
        delimiters: of the fences that the model saw.
        tried, accepted: answers of right form that must not count, see ``verdict.misdeed``.
        size: bytes of the continuation.
    """

    number: int
    kind: str
    asked: str
    mode: str
    mood: str
    ended: str = ""
    faults: list[str] = field(default_factory=list[str])
    delimiters: set[str] = field(default_factory=set[str])
    acts: Counter[str] = field(default_factory=Counter[str])
    size: int = 0
    written: Counter[str] = field(default_factory=Counter[str])
    seconds: float = 0.0
    tried: Counter[str] = field(default_factory=Counter[str])
    accepted: Counter[str] = field(default_factory=Counter[str])


def run(seed: int, number: int, mood: str | None = None) -> Outcome:
    """Make a scene and a model out of the seed and a number, recover, and judge what came of it.

    With a mood, the model is of that one and gets the tools.
    """
    rng = Random(f"{seed}:{number}")
    folder = Path(tempfile.mkdtemp(prefix="ctxmgr-hostile-")) if rng.random() < 0.1 else None
    try:
        staged = scene(rng, folder)
        try:
            return _recovered(rng, staged, number, mood)
        finally:
            staged.store.close()
    finally:
        if folder is not None:
            shutil.rmtree(folder)


def _recovered(rng: Random, staged: Scene, number: int, mood: str | None) -> Outcome:
    mode = "lead" if rng.random() < 0.2 and mood is None else "tools"
    slow = rng.random() < 0.01 and mood is None
    hostile = Hostile(rng, staged, mode, slow=slow, mood=mood)
    calls, tokens = rng.choice([None, None, 0, 1, 5, 40]), rng.choice([None, None, None, 1_000, 4_000])
    wanted = ModelRequest(
        name="stub:hostile", mode="lead" if mode == "lead" else "tools", max_tool_calls=calls, max_tokens=tokens,
        seconds=SLOW_SECONDS if slow else PATIENT_SECONDS,
    )  # fmt: skip
    outcome = Outcome(number, staged.kind, staged.asked, mode, hostile.mood)
    store = staged.store
    rules, refused, _ = _tried(lambda: staged.recovery().plan()[1])
    before, own, held, log = raw(store), len(written(store, staged.key, 0)), leases(store), _bytes(staged)
    started = time.monotonic()
    consult = consultant(store, wanted, {}, {}, None, model=hostile.model())
    answer, error, broken = _tried(lambda: staged.recovery(consult).answer())
    outcome.seconds = time.monotonic() - started
    if slow:
        _wait(hostile)
    ended = Ended(rules, refused, answer, error, before, raw(store), written(store, staged.key, own))
    limits = (MOST_REQUESTS, 24 if calls is None else calls, 60_000 if tokens is None else tokens)
    outcome.faults = faults(staged, ended, hostile.heard, limits)
    outcome.faults += [broken] if broken else []
    if leases(store) != held:
        outcome.faults.append("the lease was not given back")
    if staged.path is not None and staged.path.suffix == ".jsonl" and not _bytes(staged).startswith(log):
        outcome.faults.append("bytes of the log were changed")
    if slow and outcome.seconds > SLOW_SECONDS + 5:
        outcome.faults.append(f"it took {outcome.seconds:.1f} s")
    outcome.ended = _name(answer, error)
    outcome.size = 0 if answer is None else len(encode(answer.to_json()))
    outcome.delimiters, outcome.acts = hostile.heard.delimiters, hostile.heard.acts
    if rules is not None:
        kinds = (misdeed(said, said.get("target"), rules) for said in hostile.heard.answers)
        outcome.tried.update(kind for kind in kinds if kind is not None)
        outcome.accepted.update(fault[len(ACCEPTED) :] for fault in outcome.faults if fault.startswith(ACCEPTED))
    outcome.written = Counter(str(record["kind"]) for record in ended.records)
    return outcome


def _tried(answer: Callable[[], Continuation]) -> tuple[Continuation | None, str | None, str]:
    """Return the answer, or the kind of the error, and what was raised that never should be."""
    try:
        return answer(), None, ""
    except CtxmgrError as error:
        return None, f"{error.kind}: {error.message}"[:200], ""
    except Exception as error:  # this is what the runs are there to find
        place = traceback.extract_tb(error.__traceback__)[-1]
        return None, None, f"{type(error).__name__} was raised in {Path(place.filename).name}:{place.lineno}: {error}"[:300]


def _bytes(staged: Scene) -> bytes:
    return b"" if staged.path is None or staged.path.suffix != ".jsonl" else staged.path.read_bytes()


def _wait(hostile: Hostile) -> None:
    """Wait until the model is not at work any more, so that what it does too late is seen as well."""
    until = time.monotonic() + 3
    while hostile.heard.busy and time.monotonic() < until:
        time.sleep(0.02)


def _name(answer: Continuation | None, error: str | None) -> str:
    if answer is None:
        return f"error: {(error or 'of another type').partition(':')[0]}"
    use: Any = answer.model
    if use is None:
        return "rules"
    if use.failure is None:
        return "model" if answer.by == "model" else "rules, as the model found no entry either"
    return "fallback: " + next((name for part, name in REASONS if part in use.failure), f"other: {use.failure[:60]}")
