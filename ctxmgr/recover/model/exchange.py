"""The question to a model and its answer as plain data; the names in it for agents and entries; the budget of a model."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.recover.evidence.history_reader import HistoryReader
from ctxmgr.recover.evidence.quotes import quote_text
from ctxmgr.recover.evidence.related import RelatedReader
from ctxmgr.recover.model.config import ModelChoice
from ctxmgr.types.memory import RetainRequest
from ctxmgr.types.model_proposal import Proposal
from ctxmgr.types.query import AddNoteRequest, CreateSnapshotRequest
from ctxmgr.types.route import ContextRequest, ModelUse, is_context_manager
from ctxmgr.types.view import EntryView, EventView

if TYPE_CHECKING:  # `messages` imports this module
    from ctxmgr.recover.model.messages import Fence

# Below these limits the model gets no more tools: a late answer is lost, a less informed one is not.
_WIND_UP_SECONDS, _WIND_UP_SHARE = 6.0, 0.25
_WIND_UP_CHARACTERS = 600
_WIND_UP_TOKENS = 0.75


class BudgetError(Exception):
    """A limit is reached, so the consultation ends. The message names the limit."""


class Budget:
    """Counts the use of a model's limits.

    Attributes:
        requests: number of requests sent to the model.
        tool_calls: number of tool calls by the model, including refused ones.
        tokens: tokens used so far, estimated if the server does not report them.
        input_tokens, output_tokens: as the server counts them.
        characters: characters that tools may still return.
        closed: the consultation is over. A tool that still runs must not write anything any more.
    """

    def __init__(self, choice: ModelChoice, clock: Callable[[], float] = time.monotonic) -> None:
        self._choice = choice
        self._clock = clock
        self._lock = threading.Lock()
        self._started: float | None = None
        self.requests = 0
        self.tool_calls = 0
        self.tokens = self.input_tokens = self.output_tokens = 0
        self.characters = choice.max_characters
        self.closed = False

    @property
    def began(self) -> bool:
        """Whether the first request was sent. The time counts from then on, without the import of the model's library."""
        return self._started is not None

    @property
    def spent(self) -> float:
        """Seconds since the first request."""
        return 0.0 if self._started is None else self._clock() - self._started

    @property
    def left(self) -> float:
        """Seconds until the end, never negative."""
        return max(0.0, self._choice.seconds - self.spent)

    def request(self) -> None:
        """Count a request to the model before it is sent.

        Raises:
            BudgetError: too many requests, or the tokens are used up.
        """
        if self.requests >= self._choice.max_requests:
            raise BudgetError(f"the limit of {self._choice.max_requests} requests was reached without an answer")
        self.require_tokens()
        self.requests += 1
        if self._started is None:
            self._started = self._clock()

    def require_tokens(self) -> None:
        """Check that tokens are left.

        Raises:
            BudgetError: they are used up.
        """
        if self.tokens > self._choice.max_tokens:
            raise BudgetError(f"the limit of {self._choice.max_tokens:,} tokens was reached without an answer")

    def call(self) -> bool:
        """Count a tool call, and return whether it is within the limit."""
        with self._lock:
            self.tool_calls += 1
            return self.tool_calls <= self._choice.max_tool_calls

    def tell(self, characters: int) -> None:
        """Count characters that a tool returned."""
        with self._lock:
            self.characters = max(0, self.characters - characters)

    @property
    def is_low(self) -> bool:
        """Whether the model should answer now instead of reading on."""
        choice = self._choice
        return (
            self.requests >= choice.max_requests - 2
            or self.tool_calls >= choice.max_tool_calls
            or self.characters < _WIND_UP_CHARACTERS
            or self.tokens > choice.max_tokens * _WIND_UP_TOKENS
            or self.left < min(_WIND_UP_SECONDS, choice.seconds * _WIND_UP_SHARE)
        )


PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_PLACE = re.compile(r"@?(-?[0-9]{1,12})")
_MOST_PROBLEMS = 4


def aliases(agents: Sequence[str]) -> dict[str, str]:
    """Return alias -> name of every agent, in the same order. The model uses the aliases.

    Recorded names are hostile. Only names of letters, digits and ``_.-`` are their own alias.
    """
    taken = {agent for agent in agents if PLAIN.fullmatch(agent)}
    named: dict[str, str] = {}
    for agent in dict.fromkeys(agents):
        alias, number = agent, len(named) + 1
        if agent not in taken:
            while (alias := f"agent-{number}") in taken or alias in named:
                number += 1
        named[alias] = agent
    return named


def parse_place(text: str) -> int | None:
    """Return the index in a reference such as ``@12`` or ``-1``, or None if it must be an id."""
    found = _PLACE.fullmatch(text.strip())
    return int(found[1]) if found else None


class ShownNames:
    """The entries that a model has seen in full or by name, by id and by place."""

    def __init__(self, told: Sequence[str] = (), places: Mapping[str, int] | None = None) -> None:
        self.shown: set[str] = set()
        self._told = set(told)
        self._places = {("", index): name for name, index in (places or {}).items() if name in self._told}

    def add(self, entry_id: str, index: int, session: str = "") -> None:
        """Note that an entry was shown. ``session`` is the model's name for a related session."""
        self.shown.add(entry_id)
        self._places[session, index] = entry_id

    def find(self, reference: str) -> str | None:
        """Return the id of the entry that a model means, or None if it has not seen such an entry."""
        name = reference.strip()
        if name in self.shown or name in self._told:
            return name
        session, at, rest = name.partition("@")
        place = parse_place(at + rest if at else name)
        return None if place is None else self._places.get((session if at else "", place))


def settle_answer(answer: Proposal, agents: Mapping[str, str], seen: ShownNames) -> tuple[Proposal | None, list[str]]:
    """Return the answer in the session's own names, or None and its faults.

    An entry may be cited by its id or its place. An entry that the model has not seen is refused, whether it exists or not.
    """
    problems = [
        f"{quote_text(reference, 80)} was not shown to you: look at it first, or cite another"
        for reference in dict.fromkeys([*answer.cited, *(each.entry for each in answer.dropped)])
        if seen.find(reference) is None
    ]
    if answer.target not in agents:
        problems.insert(0, f"{quote_text(answer.target, 80)} is none of the agents that may continue")
    if problems:
        return None, problems[:_MOST_PROBLEMS]
    data: dict[str, Any] = answer.model_dump(by_alias=False)
    data["target"] = agents[answer.target]
    for item in (*data["facts"], *data["advice"], data["cause"], data["next_step"]):
        if item is not None:
            item["entries"] = list(dict.fromkeys(seen.find(name) for name in item["entries"]))
    for item in data["dropped"]:
        item["entry"] = seen.find(item["entry"])
    return Proposal.model_validate(data), []


class Remembering(Protocol):
    """The reading side of a memory. New memories that a model asks for are collected, not written."""

    def recall(self, query: str, limit: int) -> Sequence[Any]:
        """Return the memories on a query, best first, as JSON values or shapes."""
        ...

    def reflect(self, question: str) -> Any:
        """Return the joint answer of the memories to a question, as a JSON value or shape."""
        ...


@dataclass(frozen=True, slots=True)
class Consultation:
    """All that a model may know and do about one recovery.

    Attributes:
        reader: the tools, bound to the session; only its reading side is used.
        request: the question or task.
        allowed: the agents that the model may choose from; at least one.
        cited: ids of the entries that the rules' continuation rests on.
        brief: the findings of the rules, as text.
        fence: wraps all recorded text.
        suspicion: says why an entry or event reads like instructions to an agent, or None; such a row is shown marked.
        memory: None if there is none; its tools are not offered then.
        candidates: the entries that the narrow question chooses from, best first.
        places: indexes of the entries in ``cited``; the model refers to entries by them.
        trouble: what is wrong ("loop" or "hang"), else the kind of request ("introspect" or "proceed").
        related: reads the related sessions; None if only this session is read.
    """

    reader: HistoryReader
    request: ContextRequest
    allowed: Sequence[str]
    cited: Sequence[str]
    brief: str
    fence: Fence
    suspicion: Callable[[EntryView | EventView], str | None]
    memory: Remembering | None = None
    candidates: Sequence[EntryView] = ()
    places: Mapping[str, int] = field(default_factory=lambda: dict[str, int]())
    trouble: str = "loop"
    related: RelatedReader | None = None

    @property
    def targets(self) -> list[str]:
        """The allowed agents without the context manager, which is never a target."""
        return [agent for agent in self.allowed if not is_context_manager(agent)]

    @property
    def sessions(self) -> dict[str, str]:
        """The related sessions by the model's names for them, the latest first: ``s1``, ``s2``, ..."""
        known = () if self.related is None else self.related.sessions
        return {f"s{number}": session for number, session in enumerate(known, start=1)}


@dataclass(frozen=True, slots=True)
class LeadAnswer:
    """The answer to the narrow question: what is needed, and the id of the entry that may hold it, or None."""

    need: str
    entry: str | None


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The result of a consultation. Nothing of it is written anywhere, or used before it has passed the gate.

    Attributes:
        use: how the model took part; ``use.failure`` says why there is no answer.
        proposal: the answer of the tool mode, with target and entries in the session's own names.
        lead: the answer to the narrow question.
        notes, snapshots, memories: what the model asked to be written, in the order of its requests.
        seen: ids of the entries that the model was shown.
        transcript: the whole conversation as JSON (pydantic-ai's message format).
    """

    use: ModelUse
    proposal: Proposal | None = None
    lead: LeadAnswer | None = None
    notes: tuple[AddNoteRequest, ...] = ()
    snapshots: tuple[CreateSnapshotRequest, ...] = ()
    memories: tuple[RetainRequest, ...] = ()
    seen: frozenset[str] = frozenset()
    transcript: bytes = b"[]"
