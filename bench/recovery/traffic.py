"""Write down the records of a made-up run: who called what, what came back, what was said, at what time."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from ctxmgr.log.codec import Record
from ctxmgr.types.plain_records import build

_START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


class Traffic:
    """One growing session.

    Attributes:
        rng: the source of everything that varies.
        session: its name.
        records: what was recorded so far, the session record first.
        agents: the ordinary agents of the run, for noise and for choosing bystanders.
    """

    def __init__(self, rng: random.Random, family: str, seed: int, agents: list[str]) -> None:
        self.rng = rng
        self.session = f"{family}-{seed}"
        self.agents = agents
        self._clock = _START + timedelta(seconds=rng.randrange(86_400 * 20))
        self._number = 0
        self.records: list[Record] = [build("session", self.session, self.now(), workflow=family)]

    def now(self) -> str:
        """Return the time of the run, RFC 3339."""
        return self._clock.isoformat().replace("+00:00", "Z")

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._clock += timedelta(seconds=seconds)

    def call(
        self,
        agent: str,
        action: str,
        given: Any = None,
        output: Any = None,
        *,
        error: str | None = None,
        parent: str | None = None,
        open_: bool = False,
        timeout_ms: float | None = None,
        task: str | None = None,
        quick: bool = False,
    ) -> str:
        """Record an action and its result, or its failure, or (``open_``) no end at all; return the id of the entry.

        ``quick``: hardly any time lies before it, as when an agent asks the same again at once.
        """
        self.wait(self.rng.uniform(0.3, 1) if quick else self.rng.uniform(2, 15))
        name = self._name("toolu")
        begun = build(
            "entry", self.session, self.now(), id=name, agent=agent, action=action, input={} if given is None else given,
            parent=parent, timeoutMs=timeout_ms, task=task,
        )  # fmt: skip
        self.records.append(begun)
        if not open_:
            self.close(name, output, error=error, quick=quick)
        return name

    def close(self, entry: str, output: Any = None, *, error: str | None = None, quick: bool = False) -> None:
        """Record how an open action ended, a little later."""
        seconds = self.rng.uniform(0.1, 0.5) if quick else self.rng.uniform(0.2, 4)
        self.wait(seconds)
        failed = None if error is None else {"type": "ToolError", "message": error}
        self.records.append(
            build(
                "result",
                self.session,
                self.now(),
                entry=entry,
                status="ok" if error is None else "error",
                output=output,
                error=failed,
                durationMs=round(seconds * 1000),
            )
        )

    def user(self, text: str) -> str:
        """Record what a person said; return the id of the event."""
        return self._event("user_message", None, {"text": text})

    def say(self, agent: str, text: str) -> str:
        """Record what an agent said; return the id of the event."""
        return self._event("message", agent, {"text": text})

    def think(self, agent: str, text: str) -> str:
        """Record what an agent thought; return the id of the event."""
        return self._event("thought", agent, {"text": text})

    def compact(self, agent: str, summary: str) -> str:
        """Record that an agent's context was compacted to a summary; return the id of the event."""
        return self._event("compaction", agent, {"text": summary})

    def later(self, body: Callable[[Traffic, int], object]) -> Callable[[int], list[Record]]:
        """Return a maker of what happens after attempt N, for ``Case.again``: the same for the same N, however often asked."""
        frozen = copy.deepcopy(self)

        def again(attempt: int) -> list[Record]:
            run = copy.deepcopy(frozen)
            run.rng = random.Random(f"{run.session}/{attempt}")
            run.wait(120 * attempt)
            body(run, attempt)
            return run.records[len(frozen.records) :]

        return again

    def _event(self, type_: str, agent: str | None, data: Any) -> str:
        self.wait(self.rng.uniform(0.5, 4))
        name = self._name("msg")
        self.records.append(build("event", self.session, self.now(), id=name, type=type_, agent=agent, data=data))
        return name

    def _name(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}_{self._number:03}{self.rng.getrandbits(40):010x}"
