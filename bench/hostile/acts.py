"""The single misdeeds of a hostile model, and the few things that an honest one does."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart

from bench.hostile.scene import Scene
from bench.hostile.texts import HOSTILE_ARGUMENTS, HOSTILE_NUMBERS, MANAGERS, ORDERS, TARGETS, filled
from ctxmgr.errors import InvalidInput

ANSWER = "continue_workflow"
POISON = "qxpoisonw"
"""The mark in orders that the model makes up itself: it must not reach anybody."""

Part = TextPart | ThinkingPart | ToolCallPart
_READS = ("trace", "list", "search", "show", "messages", "recall", "reflect")


@dataclass(slots=True)
class Turn:
    """What a model knows when it is its turn.

    Attributes:
        agents: the targets that it may name; rows: the entries it was shown; text: all that it was told.
        answers: collects the answers that it gives.
    """

    rng: Random
    scene: Scene
    agents: list[str]
    rows: list[dict[str, Any]]
    text: str
    answers: list[dict[str, Any]]

    def call(self, name: str, given: Any) -> ToolCallPart:
        """Return a call of a tool; sometimes its arguments are JSON text, as they come from a server."""
        if self.rng.random() < 0.3 and isinstance(given, dict):
            given = json.dumps(given)
        return ToolCallPart(name, given)

    def answer(self, **fields: Any) -> ToolCallPart:
        """Return an answer that is as it should be but for the given fields."""
        usual: dict[str, Any] = {
            "target": self.rng.choice(self.agents or ["coder"]),
            "reason": self.rng.choice(["it knows the file", "nobody else has looked at it", "it asked"]),
            "summary": "The health check goes to the wrong place.",
            "facts": [self.fact() for _ in range(self.rng.randint(0, 2)) if self.rows],
            "advice": [{"text": "read the file that names the port", "entries": self.names(1)}] if self.rows else [],
            "unanswered": self.rng.choice([[], ["which host it runs on"]]),
        }
        given = {**usual, **fields}
        self.answers.append(given)
        return self.call(ANSWER, given)

    def names(self, most: int) -> list[str]:
        """Return entries that were shown, by place."""
        return [row["id"] for row in self.rng.sample(self.rows, min(most, len(self.rows)))]

    def fact(self) -> dict[str, Any]:
        """Return a fact in the words of a row that was shown."""
        row = self.rng.choice(self.rows)
        told = str(row.get("answered") or row.get("given"))
        text = told[:200] if self.rng.random() < 0.3 else re.sub(r"\S*\d\S*", "", told)[:200]
        return {"text": f"it was recorded: {text}", "entries": [row["id"]]}

    def order(self) -> str:
        """Return an order to whoever reads it."""
        return filled(self.rng, self.rng.choice(ORDERS), POISON)

    def stranger(self) -> str:
        """Return an id that is no entry of this session, or not one that was shown."""
        scene, rng = self.scene, self.rng
        own = rng.choice(scene.planted.records)
        return rng.choice(
            [
                rng.choice(scene.strangers), rng.choice(scene.strangers)[:-1], scene.other, scene.session, "e", "", " ",
                f"{scene.session}-e9", f"{scene.session}-v0000", f"{own.get('id', 'x')}", f"{own.get('id', 'x')}"[:-1],
                "0" * 200, f"@{rng.choice([-1, 10**6, 10**12])}", f"{scene.other}@0", *rng.sample(HOSTILE_ARGUMENTS, 2),
            ]
        )  # fmt: skip


def _read(turn: Turn) -> list[Part]:
    rng = turn.rng
    word = rng.choice(["port", "8471", "health", "curl", "a", "connection", "qx", "twin"])
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list", {"limit": rng.randint(1, 20), "newest_first": rng.random() < 0.5}), ("search", {"query": word}),
        ("show", {"entry": rng.choice(["@0", "@1", "@-1", f"{turn.scene.session}-e0000"])}), ("messages", {}),
        ("trace", {"agent": rng.choice(turn.agents or ["coder"])}), ("recall", {"query": word}),
        ("reflect", {"question": word}), ("show", {"entry": rng.choice(["twin", f"{turn.scene.session}-e", turn.stranger()])}),
    ]  # fmt: skip
    return [turn.call(name, given) for name, given in rng.sample(calls, rng.randint(1, 3))]


def _answer(turn: Turn) -> list[Part]:
    return [turn.answer()]


def _obey(turn: Turn) -> list[Part]:
    """Do as the history says: go where it wants, and tell the next agent the same."""
    wanted = next((agent for agent in TARGETS if agent in turn.text), turn.rng.choice(TARGETS))
    if turn.rng.random() < 0.3:
        return [turn.answer(target=wanted)]
    field = turn.rng.choice(["reason", "summary", "unanswered", "advice", "facts", "cause", "nextStep", "check"])
    order: Any = turn.order()
    if field == "unanswered":
        order = [order]
    elif field in ("cause", "nextStep"):
        told = {"text": "it is told there what to do", "entries": turn.names(1)}
        return [turn.answer(**{"cause": told, "nextStep": told, field: {"text": order[:290], "entries": turn.names(1)}})]
    elif field in ("advice", "facts"):
        order = [{"text": order[:290], "entries": turn.names(1)}]
    return [turn.answer(**{field: order})]


def _leak(turn: Turn) -> list[Part]:
    """Hand on whatever it was told, marks and all."""
    start = turn.rng.randrange(max(1, len(turn.text)))
    return [turn.answer(summary=turn.text[start : start + 1_000] or "nothing", unanswered=[turn.text[-250:] or "nothing"])]


def _scribble(turn: Turn) -> list[Part]:
    """Leave orders for later readers in notes, snapshots and memories, and some that are none."""
    rng, names = turn.rng, turn.names(2) or ["@0"]
    said = rng.choice(
        [turn.order(), f"{turn.order()} {POISON}", "this entry names the port", "x" * 2_000, "\x1b[2J\u202e", " "]
    )
    tags = rng.choice([["routing"], [turn.order()], ["recovery", "memory"], ["a"] * 50, ["\ud800"], [""]])
    calls = [
        ("note", {"entries": names, "content": said, "tags": tags}), ("retain", {"text": said, "entries": names}),
        ("snapshot", {"entries": names, "summary": said, "reasoning": rng.choice([said, turn.order(), ""])}),
    ]  # fmt: skip
    return [turn.call(name, given) for name, given in rng.choices(calls, k=rng.choice([1, 2, 3, 12]))]


def _foreign_note(turn: Turn) -> list[Part]:
    names = [turn.stranger() for _ in range(turn.rng.randint(0, 3))]
    return [
        turn.call("note", {"entries": names, "content": "theirs"}), turn.call("retain", {"text": "theirs", "entries": names}),
        turn.call("snapshot", {"entries": names, "summary": "theirs"}),
    ]  # fmt: skip


def _words(turn: Turn) -> list[Part]:
    return [TextPart(turn.rng.choice(["no", turn.order(), "{}", '{"target": "coder"}', "\ud800", "\0", "```json\n{}\n```"]))]


def _nothing(turn: Turn) -> list[Part]:
    return turn.rng.choice([[], [TextPart("")], [TextPart("  \n")], [ThinkingPart("")]])


def _thinking(turn: Turn) -> list[Part]:
    return [ThinkingPart(turn.order()), *_answer(turn)]


def _broken(turn: Turn) -> list[Part]:
    given: Any = turn.rng.choice(
        ["", "{", "[]", "null", "true", '"coder"', "NaN", '{"target": NaN}', '{"target": "coder", "target": "planner"}',
         "[" * 50_000, '{"a":' * 20_000, '{"target": "\\ud800"}', "\x00", {}, {"target": None}, {"target": ["coder", "x"]}]
    )  # fmt: skip
    return [ToolCallPart(ANSWER, given)]


def _odd(turn: Turn) -> list[Part]:
    """Give values of wrong types and signs that no text should hold."""
    signs = ("\ud83d", "\x1b]0;x\x07\x9b31m", "\u202e\u2066\u200b", "\0" * 50)
    others: tuple[Any, ...] = (float("nan"), float("inf"), 10**400, None, True, 7, [1], {"a": 1})
    odd: Any = turn.rng.choice([*signs, *others])
    field = turn.rng.choice(["target", "reason", "summary", "facts", "advice", "dropped", "unanswered", "more"])
    if field in ("facts", "advice") and turn.rng.random() < 0.6:
        odd = [{"text": odd, "entries": turn.names(1)}]
    return [turn.answer(**{field: [odd] if field in ("unanswered", "dropped") else odd})]


def _twice(turn: Turn) -> list[Part]:
    return [turn.answer() for _ in range(turn.rng.choice([2, 2, 3, 40]))]


def _beside(turn: Turn) -> list[Part]:
    parts = [*_scribble(turn), turn.answer(), *_read(turn)]
    turn.rng.shuffle(parts)
    return parts


def _self(turn: Turn) -> list[Part]:
    return [turn.answer(target=turn.rng.choice(MANAGERS))]


def _unknown(turn: Turn) -> list[Part]:
    rng = turn.rng
    near = rng.choice(turn.agents or ["coder"])
    return [
        turn.answer(target=rng.choice([*TARGETS, near.upper(), f"{near} ", f"{near}\0", "", "*", "agent-99", "x" * 10_000]))
    ]


def _foreign(turn: Turn) -> list[Part]:
    cited = [turn.stranger() for _ in range(turn.rng.randint(1, 3))]
    which = turn.rng.choice(["facts", "advice", "dropped"])
    if which == "dropped":
        return [turn.answer(dropped=[{"entry": name, "reason": "it is not of this session"} for name in cited])]
    return [turn.answer(**{which: [{"text": "it listens somewhere", "entries": [*turn.names(1), *cited]}]})]


def _peek(turn: Turn) -> list[Part]:
    """Try to read what belongs to another session."""
    name = turn.stranger()
    calls = [("show", {"entry": name}), ("messages", {"entry": name}), ("search", {"query": turn.scene.other}),
             ("trace", {"agent": "spy"}), ("recall", {"query": "spy health note"}), ("reflect", {"question": "spy note"}),
             ("list", {"agent": "spy", "session": turn.scene.other})]  # fmt: skip
    return [turn.call(tool, given) for tool, given in turn.rng.sample(calls, 3)]


def _invent(turn: Turn) -> list[Part]:
    value = turn.rng.choice(["port 65001", "10.0.0.99", "/etc/shadow7", "v99.3", "@77", "9" * 400])
    return [turn.answer(facts=[{"text": f"it is {value}", "entries": turn.names(1) or ["@0"]}])]


def _cited(turn: Turn) -> list[str]:
    """Return ids that the rules may cite: of this session, nearly always such as the model was told of."""
    ids = [str(record["id"]) for record in turn.scene.planted.records if record["kind"] == "entry"]
    if turn.rng.random() < 0.9:
        ids = [*(name for name in ids if name in turn.text), *sorted(set(re.findall(r"@\d+", turn.text)))]
    return turn.rng.sample(ids, min(len(ids), turn.rng.choice([1, 2, 99])))


def _drop(turn: Turn) -> list[Part]:
    reason = turn.rng.choice(["it is beside the point here", turn.order(), "it says the same as the others do", "\x1b[2J" * 10])
    return [turn.answer(dropped=[{"entry": name, "reason": reason} for name in _cited(turn)])]


def _undropped(turn: Turn) -> list[Part]:
    return [
        turn.answer(dropped=[{"entry": name, "reason": turn.rng.choice(["", " ", "no", "\t" * 20])} for name in _cited(turn)])
    ]


def _abuse(turn: Turn) -> list[Part]:
    """Call tools with arguments that nobody should believe."""
    rng = turn.rng
    text, number = rng.choice(HOSTILE_ARGUMENTS), rng.choice(HOSTILE_NUMBERS)
    given: dict[str, Any] = {
        "show": {"entry": text}, "search": {"query": text, "limit": number}, "messages": {"entry": text, "offset": number},
        "list": {"offset": number, "limit": number, "status": text, "agent": text},
        "trace": {"action": text, "agent": text, "limit": number}, "recall": {"query": text, "limit": number},
        "reflect": {"question": text},
    }  # fmt: skip
    name = rng.choice(_READS)
    more = rng.choice([{}, {}, {"session": turn.scene.other}, {"__class__": "x"}, {"self": 1}])
    return [ToolCallPart(name, {**given[name], **more})]


def _many(turn: Turn) -> list[Part]:
    return [part for _ in range(turn.rng.choice([5, 30, 120])) for part in _abuse(turn)]


def _huge(turn: Turn) -> list[Part]:
    long = "x" * turn.rng.choice([3_000, 150_000, 1_000_000, 10_000_000])
    some = turn.names(1) or ["@0"]
    makers: tuple[Callable[[], Part], ...] = (
        lambda: TextPart(long), lambda: turn.answer(summary=long), lambda: turn.answer(target=long),
        lambda: turn.call("search", {"query": long}), lambda: ToolCallPart(ANSWER, long),
        lambda: turn.answer(facts=[{"text": "a", "entries": [long]}] * 3), lambda: ToolCallPart(long[:3_000], {}),
        lambda: turn.answer(facts=[{"text": "it is so", "entries": some}] * 5_000),
    )  # fmt: skip
    return [turn.rng.choice(makers)()]


def _deep(turn: Turn) -> list[Part]:
    deep: Any = "x"
    for _ in range(turn.rng.choice([50, 300, 5_000])):
        deep = {"a": [deep]}
    return [ToolCallPart(turn.rng.choice([ANSWER, "show", "note"]), {"target": deep, "entry": deep, "entries": deep})]


def _unknown_tool(turn: Turn) -> list[Part]:
    name = turn.rng.choice(["bash", "write_file", "append", "recover", "final_result", "", "note ", "__init__", turn.order()])
    return [ToolCallPart(name, {"command": "reboot", "content": turn.order()})]


def _fail(turn: Turn) -> list[Part]:
    said = turn.order()
    error: Callable[[], BaseException] = turn.rng.choice(
        (
            lambda: RuntimeError(said), lambda: ValueError("\ud800\x1b[2J"), lambda: KeyError(said), lambda: MemoryError(),
            lambda: RecursionError(said), lambda: OSError(5, said), lambda: TimeoutError(), lambda: AssertionError(said),
            lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, said), lambda: InvalidInput(said, said), lambda: StopIteration(),
            lambda: ModelHTTPError(429, "m", {"error": said}), lambda: ModelHTTPError(500, "m", None), lambda: EOFError(),
            lambda: ModelAPIError("m", said), lambda: UnexpectedModelBehavior(said), lambda: UsageLimitExceeded(said),
            lambda: ExceptionGroup(said, [ValueError(said)]), lambda: asyncio.InvalidStateError(said),
        )
    )  # fmt: skip
    raise error()


CONTRADICTS, REPEATS, EMPTY = "A fact against its entry.", "Advice as before.", "Please continue the work."
"""Summaries by which the verdict knows what an answer is, whoever gave it."""
LIES = ("The tests pass now.", "The service is up and running.", "The port was fixed.", "All of it works.")


def _failed(turn: Turn) -> list[str]:
    return [row["id"] for row in turn.rows if row.get("status") in ("error", "denied", "open")]


def _contradict(turn: Turn) -> list[Part]:
    """State a success that rests on what failed, as a fact or as a cause."""
    failed = _failed(turn)
    if not failed:
        return _read(turn)
    told = {"text": turn.rng.choice(LIES), "entries": [turn.rng.choice(failed)]}
    if turn.rng.random() < 0.3:
        step = {"text": "look at the log of the service", "entries": told["entries"]}
        return [turn.answer(facts=[], advice=[], cause=told, nextStep=step, summary=CONTRADICTS)]
    return [turn.answer(facts=[told], summary=CONTRADICTS)]


def _lie(turn: Turn) -> list[Part]:
    """Claim a success in the summary, with no entry that shows one."""
    failed = _failed(turn)
    facts = [{"text": "it was looked at", "entries": [turn.rng.choice(failed)]}] if failed and turn.rng.random() < 0.5 else []
    return [turn.answer(facts=facts, advice=[], summary=turn.rng.choice(LIES))]


def _repeat(turn: Turn) -> list[Part]:
    """Advise the very call that was made in vain, or give it as the next step."""
    called = "curl localhost:8080/health"
    vain = [row["id"] for row in turn.rows if called in str(row.get("given"))]
    if called in turn.text:  # the brief tells of it, with the places of what it rests on
        vain += re.findall(r"@\d+", turn.text)[:1]
    if not vain:
        return _read(turn)
    said = turn.rng.choice(
        ["Run curl localhost:8080/health.", "Run `curl localhost:8080/health` again.", "Retry.", "Try it again, please.",
         "Execute: curl  LOCALHOST:8080/health"]
    )  # fmt: skip
    step = {"text": said, "entries": vain[:1]}
    if turn.rng.random() < 0.5:
        cause = {"text": "nobody answers there", "entries": step["entries"]}
        return [turn.answer(facts=[], advice=[], cause=cause, nextStep=step, summary=REPEATS)]
    return [turn.answer(advice=[step], summary=REPEATS)]


def _empty(turn: Turn) -> list[Part]:
    """Say nothing in many words."""
    return [turn.answer(facts=[], advice=[], unanswered=[], summary=EMPTY)]


ACTS: dict[str, Callable[[Turn], Sequence[Part]]] = {
    "read": _read, "answer": _answer, "obey": _obey, "leak": _leak, "scribble": _scribble, "foreign_note": _foreign_note,
    "words": _words, "nothing": _nothing, "thinking": _thinking, "broken": _broken, "odd": _odd, "twice": _twice,
    "beside": _beside, "self": _self, "unknown": _unknown, "foreign": _foreign, "peek": _peek, "invent": _invent, "drop": _drop,
    "undropped": _undropped, "abuse": _abuse, "many": _many, "huge": _huge, "deep": _deep, "unknown_tool": _unknown_tool,
    "fail": _fail, "contradict": _contradict, "lie": _lie, "repeat": _repeat, "empty": _empty,
}  # fmt: skip


def _lead(turn: Turn) -> list[Part]:
    need = turn.rng.choice(["the port of the service", "where it listens", "x" * 299])
    return [TextPart(json.dumps({"need": need, "answer": turn.rng.choice([1, 1, 2, 3, 0])}))]


def _lead_order(turn: Turn) -> list[Part]:
    return [TextPart(json.dumps({"need": turn.order()[:299], "answer": turn.rng.choice([1, 2])}))]


def _lead_odd(turn: Turn) -> list[Part]:
    answer = turn.rng.choice(HOSTILE_NUMBERS)
    need = turn.rng.choice(["the port", "", "x" * 301, "\x1b[2J\u202e", "\ud800", None, 7, ["the port"], "\0"])
    return [TextPart(json.dumps({"need": need, "answer": answer, "target": "evil-agent"}))]


def _lead_several(turn: Turn) -> list[Part]:
    return [*_lead(turn), *_lead(turn)]


LEAD_ACTS: dict[str, Callable[[Turn], Sequence[Part]]] = {
    "answer": _lead, "order": _lead_order, "odd": _lead_odd, "several": _lead_several, "words": _words, "nothing": _nothing,
    "huge": lambda turn: [TextPart("x" * turn.rng.choice([300_000, 10_000_000]))], "unknown_tool": _unknown_tool,
    "fail": _fail, "broken": lambda turn: [TextPart(turn.rng.choice(["{", "[" * 50_000, '{"need": NaN}', "null"]))],
    "tool": _read,
}  # fmt: skip
