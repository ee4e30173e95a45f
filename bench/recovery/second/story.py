"""Write down a stuck workflow record by record, and name what its agents need."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, cast

from bench.recovery.case import Ask, Case, Kind, Need
from bench.recovery.second.background import WORKFLOWS, words
from bench.recovery.second.marks import fill
from bench.recovery.second.scene import Call, Said, Scene, Told
from ctxmgr.log.codec import Record
from ctxmgr.log.ids import format_time
from ctxmgr.types.plain_records import build

_FIRST_DAY = 1_767_600_000  # 2026-01-05T08:00:00Z
_DAY = 86_400
_SLOWEST = 7.0  # seconds that an ordinary action takes at most


class Story:
    """The log of one workflow while it is written."""

    def __init__(self, rng: random.Random, family: str, seed: int, domain: str) -> None:
        self.rng = rng
        self.family = family
        self.seed = seed
        self.domain = domain
        self.time = _FIRST_DAY + rng.randrange(40) * _DAY + rng.randrange(9 * 3600) + rng.random()
        self.session = f"{rng.choice(WORKFLOWS[domain])}-{rng.randrange(16**6):06x}"
        self.marks: dict[str, str] = {"n": str(rng.randrange(200, 9000)), "x": f"{rng.randrange(16**7):07x}"}
        self.cites: set[str] = set()
        self.apart = rng.random() < 0.5
        self.turn = 0
        self.process = ""
        self.records: list[Record] = []
        self._circle: list[Call] = []
        self._hanging: Call | None = None
        self._open = ""
        self.start()

    @property
    def now(self) -> str:
        """Present time of the story, RFC 3339."""
        return format_time(self.time)

    def start(self) -> None:
        """Begin a process: the first one, or another after the former died."""
        self.process = f"{self.rng.randrange(16**8):08x}"
        self.records.append(
            build("session", self.session, self.now, process=self.process, workflow=self.session.rpartition("-")[0])
        )

    def wait(self, low: float, high: float) -> None:
        """Let between ``low`` and ``high`` seconds pass."""
        self.time += self.rng.uniform(low, high)

    def act(self, agent: str, call: Call, *, opened: bool = False, limit: float | None = None) -> str:
        """Record an action and what came of it; ``opened``: nothing came yet. Returns the entry's id."""
        self.wait(2, 25)
        call = self._filled(call)
        lines = _lines(self, call._replace(agent=call.agent or agent), self.rng, self.time, opened=opened, limit=limit)
        self.records.extend(lines)
        self.time += call.seconds + _SLOWEST
        self.wait(0.2, 6)
        return cast("str", lines[0]["id"])

    def say(self, said: Said) -> str:
        """Record a message of an agent or of the person. Returns the event's id."""
        self.wait(1, 20)
        data = {"text": fill(said.text, self.marks)}
        if said.to:
            data["to"] = said.to
        return self._event("message" if said.agent else "user_message", said.agent or None, data)

    def think(self, agent: str, text: str) -> str:
        """Record a thought. Returns the event's id."""
        return self._event("thought", agent, {"text": fill(text, self.marks)})

    def compact(self, agent: str, summary: str) -> str:
        """Record that an agent's own conversation was cut down to a summary."""
        before = self.rng.randrange(150_000, 190_000)
        data = {"trigger": "auto", "preTokens": before, "summary": fill(summary, self.marks)}
        return self._event("compaction", agent, data)

    def tell(self, agent: str, told: Sequence[Told], *, cite: bool = False) -> None:
        """Record actions and messages in their order; ``cite``: a good continuation refers to those with the answer."""
        for item in told:
            if isinstance(item, Said):
                self.say(item)
            else:
                entry = self.act(agent, item)
                if cite and "<v>" in repr(item):
                    self.cites.add(entry)

    def noise(self, cast_: Sequence[str], count: int) -> None:
        """Let other work go on: ``count`` entries, now and then a remark."""
        for _ in range(count):
            agent = self.rng.choice(cast_)
            action, given, came = words(self.rng, self.domain)
            self.act(agent, Call(action, given, came))
            if self.rng.random() < 0.08:
                text = self.rng.choice(("Next one.", "Done with this part, moving on.", "As expected.", "Noted, continuing."))
                self.say(Said(text, agent))

    def circle(self, agent: str, steps: Sequence[Call], times: int) -> None:
        """Repeat steps; they are also what the agent does when help did not help."""
        self._circle = [step._replace(agent=step.agent or agent) for step in steps]
        for _ in range(times):
            for step in steps:
                self.act(agent, step)

    def hang(self, agent: str, call: Call, *, limit: float | None = None) -> None:
        """Begin a call that does not return, and let 20 to 90 minutes pass; tried anew, it hangs again."""
        self._hanging = call._replace(agent=agent)
        self._open = self.act(agent, call, opened=True, limit=limit)
        self.wait(1300, 5400)

    def again(self, attempt: int) -> list[Record]:
        """Return one more round of the circle, or the hung call given up, tried anew and hanging."""
        rng = random.Random(f"{self.session}:{attempt}")
        time = self.time + 3000 * (attempt - 1) + 60
        if self._hanging is not None:
            return self._hung_again(rng, time, attempt)
        lines: list[Record] = []
        for step in self._circle:
            time += rng.uniform(3, 20)
            lines.extend(_lines(self, self._filled(step), rng, time))
            time += step.seconds + _SLOWEST
        return lines

    def _hung_again(self, rng: random.Random, time: float, attempt: int) -> list[Record]:
        given_up = self._open if attempt == 1 else cast("str", self.again(attempt - 1)[1]["id"])
        ended = build("result", self.session, format_time(time), entry=given_up, status="interrupted")
        begun = _lines(self, self._filled(cast("Call", self._hanging)), rng, time + 5, opened=True)
        alive = identity(rng, time + 2400)
        beat = build(
            "event", self.session, format_time(time + 2400), id=alive, type="heartbeat", agent=begun[0]["agent"], data={}
        )
        return [ended, *begun, beat]

    def _filled(self, call: Call) -> Call:
        given, came = fill(call.input, self.marks), fill(call.output, self.marks)
        return call._replace(input=given, output=came, error=fill(call.error, self.marks))

    def case(self, kind: Kind, ask: Ask, targets: Sequence[str], needs: Sequence[str], **rest: Any) -> Case:
        """Close the story; without ``needs`` it has no answer."""
        marked = [Need((fill(need, self.marks),)) for need in needs]
        return Case(
            family=self.family,
            seed=self.seed,
            kind=kind,
            session=self.session,
            records=self.records,
            ask=ask,
            targets=frozenset(targets),
            needs=tuple(marked),
            never=tuple(fill(text, self.marks) for text in rest.get("never", ())),
            answered=bool(marked),
            cites=frozenset(self.cites) if marked else frozenset(),
            again=self.again,
        )

    def _event(self, kind: str, agent: str | None, data: Any) -> str:
        name = identity(self.rng, self.time)
        if kind == "user_message":
            self.turn += 1
        self.records.append(build("event", self.session, self.now, id=name, type=kind, agent=agent, data=data))
        return name


def identity(rng: random.Random, time: float) -> str:
    """Return an id like those of the recorder: the time, then chance."""
    text = f"{int(time * 1000):012x}7{rng.randrange(16**3):03x}8{rng.randrange(16**15):015x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _lines(
    story: Story, call: Call, rng: random.Random, time: float, *, opened: bool = False, limit: float | None = None
) -> list[Record]:
    entry = build(
        "entry",
        story.session,
        format_time(time),
        id=identity(rng, time),
        agent=call.agent,
        action=call.action,
        inputType="object" if isinstance(call.input, dict) else "string",
        input=call.input,
        process=story.process,
        turn=story.turn or None,
        timeoutMs=limit,
    )
    if opened:
        return [entry]
    took = round(call.seconds * 1000 + rng.uniform(80, _SLOWEST * 1000))
    came: dict[str, Any] = {"status": "ok" if call.error is None else "error", "durationMs": took}
    if call.output is not None:
        came["output"] = call.output
    if call.error is not None:
        came["error"] = {"type": call.kind or "ToolError", "message": call.error}
    if story.apart:
        return [entry, build("result", story.session, format_time(time + took / 1000), entry=entry["id"], **came)]
    return [entry | came]


def begin(rng: random.Random, family: str, seed: int, scene: Scene) -> Story:
    """Open the story of a scene with its answer chosen and its task given."""
    story = Story(rng, family, seed, scene.domain)
    place = rng.randrange(len(scene.values))
    story.marks["v"] = scene.values[place]
    if scene.wrong:
        story.marks["w"] = scene.wrong[place % len(scene.wrong)]
    story.say(Said(scene.task))
    return story


def team(scene: Scene) -> tuple[str, ...]:
    """Return the agents of the background."""
    known = [item.agent for item in (*scene.fact, *scene.extra) if item.agent]
    return tuple(dict.fromkeys((*scene.cast, *known, scene.stuck)))
