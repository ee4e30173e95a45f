"""The input of an answer, gathered once. Every step from the choice of an agent to the gate reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.types.finding import Finding
from ctxmgr.types.route import ContextRequest, Fact

if TYPE_CHECKING:  # these packages import `Case`, so it may import only their types
    from ctxmgr.recover.earlier_answers import KnownFacts
    from ctxmgr.recover.evidence.history_reader import HistoryReader
    from ctxmgr.recover.evidence.related import RelatedReader
    from ctxmgr.recover.routing.routes import RoutingTable


@dataclass(frozen=True, slots=True)
class Case:
    """One request, what is wrong, and what the answer may read and choose.

    Attributes:
        reader: reads the session.
        related: reads related sessions and memory; None to read this session alone.
        request: the question or task, and its requester.
        finding: the loop or stall to answer, if any.
        side: other unresolved findings of the session. They are mentioned, and their steps do not count as progress.
        table: which agent may be sent what.
        to: the agent that has to continue; None to choose one.
        attempt: number of answers to this problem, including this one.
        known_facts: agent -> facts it already has, to leave them out; None to give all facts.
        outside_facts: facts from outside of this history, given first.
    """

    reader: HistoryReader
    related: RelatedReader | None
    request: ContextRequest
    finding: Finding | None
    side: Sequence[Finding]
    table: RoutingTable
    to: str | None
    attempt: int
    known_facts: Callable[[str], KnownFacts] | None
    outside_facts: tuple[Fact, ...]
