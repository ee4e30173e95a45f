"""The input of an answer, gathered once: every step from the choice of an agent to the gate reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.types.finding import Finding
from ctxmgr.types.route import ContextRequest, Fact

if TYPE_CHECKING:  # the packages named here read it, so it only knows their types
    from ctxmgr.recover.earlier_answers import KnownFacts
    from ctxmgr.recover.evidence.history_reader import HistoryReader
    from ctxmgr.recover.evidence.related import RelatedReader
    from ctxmgr.recover.routing.routes import RoutingTable


@dataclass(frozen=True, slots=True)
class Case:
    """One request, what is wrong, and what the answer may read and choose.

    Attributes:
        reader: reads the session.
        related: reads the related sessions and memory; None where this session alone is read.
        request: what is asked for, and by whom.
        finding: the loop or stall that is answered, if any.
        side: other unresolved findings of the session; they are mentioned, and their steps do not count as progress.
        table: who may be sent what.
        to: the agent that is to continue; None to choose one.
        attempt: number of answers to this problem, this one included.
        known_facts: agent -> what it has already, to leave that out; None to tell everything.
        outside_facts: facts from outside of this history, told first.
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
