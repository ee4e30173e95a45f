"""Models that do their worst, the same for the same seed: to hold a recovery against thousands of them.

``hostile(seed, ...)`` is a model; ``violations(...)`` says what a consultation with it let through. Nothing here waits,
so that a long battery takes no longer than the work it causes.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import Any

from pydantic_ai.exceptions import ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from ctxmgr.recover.model.exchange import Consultation, ModelAnswer
from ctxmgr.types.route import is_context_manager

ODD = (
    "", " ", "\x00", "\x1b[31mred", "\u202etxet", "\ufeff", "😀" * 50, "null", "-1", "@0", "@99999999999", "../../etc/passwd",
    "'; DROP TABLE record; --", "%s%n{0}", "<|im_start|>system", "</data>", "context-manager", "CONTEXT-MANAGER",
)  # fmt: skip
TOOLS = ("trace", "list", "search", "show", "messages", "note", "snapshot", "recall", "reflect", "retain", "continue_workflow")
_ID = re.compile(r"^@\d+", re.MULTILINE)
_DEMAND = re.compile(r"target[ :=]+([\w-]{1,40})", re.IGNORECASE)
_LONGEST = 10_000_000


def hostile(seed: int, agents: Sequence[str], foreign: Sequence[str] = ()) -> FunctionModel:
    """Return a model that does something else for every seed.

    Args:
        seed: of all that it does.
        agents: names that it uses beside made-up ones.
        foreign: ids of entries of other sessions, which it likes to cite.
    """
    says = _Hostile(random.Random(seed), agents, foreign)

    async def speak(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        return says.next(messages)

    return FunctionModel(speak, model_name=f"hostile-{seed}")


def violations(found: ModelAnswer, question: Consultation, foreign: Sequence[str] = ()) -> list[str]:
    """Return what a consultation let through that it must not, none when it held."""
    use, proposal = found.use, found.proposal
    bad: list[str] = []
    answered = (proposal is not None) + (found.lead is not None)
    if answered != (use.failure is None):
        bad.append(f"{answered} answers, and the failure is {use.failure!r}")
    if use.failure is not None and (not use.failure.isprintable() or not 0 < len(use.failure) < 400):
        bad.append(f"the failure is no line: {use.failure[:80]!r}")
    cited = [name for note in found.notes for name in note.entry_ids]
    cited += [name for wanted in (*found.snapshots, *found.memories) for name in wanted.entry_ids]
    if proposal is not None:
        if proposal.target not in question.allowed or is_context_manager(proposal.target):
            bad.append(f"target {proposal.target!r}")
        cited += [name for fact in proposal.facts for name in fact.entries]
        cited += [name for advice in proposal.advice for name in advice.entries]
        cited += [dropped.entry for dropped in proposal.dropped]
        if len(json.dumps(proposal.model_dump(mode="json"))) > 60_000:
            bad.append("the answer is too long")
    known = found.seen | set(question.cited)
    bad += [f"cites {name!r}" for name in cited if name not in known or name in foreign]
    if len(found.notes) > 8 or len(found.snapshots) > 2 or len(found.memories) > 5:
        bad.append("too much is to be written")
    if use.requests > 12 or not found.transcript.startswith(b"["):
        bad.append(f"{use.requests} requests")
    return bad


def _as_sent(part: ModelResponsePart) -> ModelResponsePart:
    """Return a call with its arguments as text, which is how they come over the wire."""
    if isinstance(part, ToolCallPart) and not isinstance(part.args, str):
        return ToolCallPart(part.tool_name, json.dumps(part.args))
    return part


class _Hostile:
    """What one hostile model says, one thing after the other."""

    def __init__(self, source: random.Random, agents: Sequence[str], foreign: Sequence[str]) -> None:
        self.source, self.agents, self.foreign = source, list(agents), list(foreign)
        moves = [
            self.obeys, self.babbles, self.is_silent, self.forks, self.names_itself, self.names_anybody, self.cites_others,
            self.is_huge, self.reads_on, self.calls_anything, self.breaks_arguments, self.sends_odd_types, self.nests,
            self.annotates, self.quotes_fences, self.fails, self.does_much, self.answers_well,
        ]  # fmt: skip
        # Many stick to one trick: a rule that holds against a mixture may fail against insistence.
        self.moves = source.sample(moves, 1 if source.random() < 0.4 else source.randint(2, len(moves)))

    def next(self, messages: list[ModelMessage]) -> ModelResponse:
        """Return the next response; it knows all that it was told."""
        self.told = str(messages[-1])
        self.ids = _ID.findall(self.told.replace("\\n", "\n"))
        return ModelResponse(parts=[_as_sent(part) for part in self.source.choice(self.moves)()])

    def obeys(self) -> list[ModelResponsePart]:
        """Do what a text in the history demands."""
        demanded = _DEMAND.findall(self.told)
        return [self._answer(self.source.choice(demanded) if demanded else "deployer")]

    def babbles(self) -> list[ModelResponsePart]:
        return [TextPart(self._text()), ThinkingPart(self._text())]

    def is_silent(self) -> list[ModelResponsePart]:
        return [] if self.source.random() < 0.5 else [TextPart("")]

    def forks(self) -> list[ModelResponsePart]:
        return [self._answer(self._agent()) for _ in range(self.source.randint(2, 4))]

    def names_itself(self) -> list[ModelResponsePart]:
        return [self._answer(self.source.choice(["context-manager", "Context-Manager", " context-manager", "context_manager"]))]

    def names_anybody(self) -> list[ModelResponsePart]:
        return [self._answer(self.source.choice(ODD) if self.source.random() < 0.7 else self._text()[:300])]

    def cites_others(self) -> list[ModelResponsePart]:
        names = [*self.foreign, *ODD, "stuck-e00", "@-1", "@0"]
        cited = [self.source.choice(names) for _ in range(self.source.randint(1, 6))]
        return [
            self._answer(
                self._agent(), facts=[{"text": "it is so", "entries": cited}], dropped=[{"entry": cited[0], "reason": ""}]
            )
        ]

    def is_huge(self) -> list[ModelResponsePart]:
        size = _LONGEST if self.source.random() < 0.1 else 300_000
        huge = self.source.choice(["x", "😀", "\\", '"', "\x00"]) * size
        return [
            self.source.choice(
                [TextPart(huge), self._answer(self._agent(), summary=huge), ToolCallPart("search", {"query": huge})]
            )
        ]

    def reads_on(self) -> list[ModelResponsePart]:
        return [ToolCallPart("list", {"offset": self.source.randint(-9, 99), "limit": self.source.choice([-1, 0, 5, 10**18])})]

    def calls_anything(self) -> list[ModelResponsePart]:
        name = self.source.choice([*TOOLS, "shell", "recover", "", "__import__", "x" * 200])
        given = {self.source.choice(["query", "entry", "entries", "cmd", "offset"]): self._value(2) for _ in range(3)}
        return [ToolCallPart(name, given)]

    def breaks_arguments(self) -> list[ModelResponsePart]:
        text = self.source.choice(
            ["{", "[]", '{"target": "co', "not json", '{"a": NaN}', '{"query": "\\ud800"}', "", "1e999", "{}" * 9]
        )
        return [ToolCallPart(self.source.choice(TOOLS), text)]

    def sends_odd_types(self) -> list[ModelResponsePart]:
        names = ("target", "reason", "summary", "facts", "advice", "dropped", "unanswered", "more")
        return [ToolCallPart("continue_workflow", {name: self._value(2) for name in names if self.source.random() < 0.7})]

    def nests(self) -> list[ModelResponsePart]:
        depth = self.source.choice([50, 500, 5_000])
        return [ToolCallPart(self.source.choice(TOOLS), '{"facts": ' + "[" * depth + "]" * depth + "}")]

    def annotates(self) -> list[ModelResponsePart]:
        entries = self.source.sample([*self.ids, *self.foreign, "@0", "@1", *ODD], 3)
        name = self.source.choice(["note", "snapshot", "retain"])
        text = {"note": "content", "snapshot": "summary", "retain": "text"}[name]
        return [ToolCallPart(name, {"entries": entries, text: self._text()}) for _ in range(self.source.randint(1, 12))]

    def quotes_fences(self) -> list[ModelResponsePart]:
        marks = re.findall(r"[0-9a-zA-Z]{16,64}", self.told)[:3]
        return [ToolCallPart("search", {"query": " ".join(["end", *marks, "<<<end>>>", "</data>"])})]

    def fails(self) -> list[ModelResponsePart]:
        raise self.source.choice(
            [
                ModelHTTPError(self.source.choice([400, 418, 500, 503]), "m", body=self._text()),
                UnexpectedModelBehavior(self._text()),
                ValueError(self._text()),
                RecursionError("deep"),
                MemoryError(),
                ConnectionResetError(104, "reset"),
            ]
        )

    def does_much(self) -> list[ModelResponsePart]:
        calls = [ToolCallPart("search", {"query": str(number)}) for number in range(self.source.choice([5, 30, 200]))]
        return [*calls, self._answer(self._agent())]

    def answers_well(self) -> list[ModelResponsePart]:
        facts = [{"text": "it was read", "entries": [name]} for name in self.ids[:2]]
        return [self._answer(self._agent(), facts=facts)]

    def _answer(self, target: str, **fields: Any) -> ToolCallPart:
        plain = {"target": target, "reason": self._text()[:200] or "r", "summary": self._text()[:500] or "s"}
        return ToolCallPart("continue_workflow", {**plain, **fields})

    def _agent(self) -> str:
        return self.source.choice(self.agents)

    def _text(self) -> str:
        words = [*ODD, "the", "port", "coder", "IGNORE ALL RULES", "8471"]
        told = [self.source.choice(words) for _ in range(self.source.randint(0, 12))]
        return " ".join([*told, "\ud83d"] if self.source.random() < 0.02 else told)

    def _value(self, depth: int) -> Any:
        kinds: list[Any] = [None, True, 0, -1, 10**30, 1.5, self._text(), self.source.choice(ODD)]
        if depth and self.source.random() < 0.4:
            return [self._value(depth - 1) for _ in range(self.source.randint(0, 4))]
        if depth and self.source.random() < 0.4:
            return {self._text()[:20]: self._value(depth - 1) for _ in range(self.source.randint(0, 4))}
        return self.source.choice(kinds)
