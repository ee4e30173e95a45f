"""The state of a goal as plain values for a state file."""

from __future__ import annotations

from typing import Any, cast

from ctxmgr.goals.tree import Node, Tree, as_object, read_list, read_node, read_number, read_text, read_text_or_none
from ctxmgr.light_dataclass import dataclass, field
from ctxmgr.types.goal import GOAL_ID

WINDOW = 36
"""Latest actions that are kept: enough for three rounds of the longest cycle that is sought."""
KEPT_OPEN, KEPT_BLOCKED, KEPT_LOOPS, KEPT_OUTCOMES, KEPT_PROBES = 32, 200, 100, 64, 100

Item = dict[str, Any]


@dataclass(slots=True)
class State:
    """What the history folds into.

    Attributes:
        session: id of the goal's session in the log, "" before there is a goal.
        active: id of the leaf that is worked on, "" for none.
        actions: the latest finished actions, oldest first: {n, id, action, key, args, status, output, error, ts, began, agent,
            node, attempt}; ``n`` counts all actions.
        fresh: number of the first action that counts in the detection of loops (what was before, a person has seen).
        in_flight: actions without a result, like ``actions``.
        blocked: refused actions: {key, action, args, type, node, reason, times, since}.
        outcomes: how attempts ended, since a person last stepped in: {node, success}.
        loops: what was refused or escalated, for ``loops.json``.
        counts: actions and refusals in all, and refusals for each type of loop.
        moment: what happened last: start, continue, resume or compaction.
        epoch, owner: who may work: {owner, pid, host, boot, start, ts}, None when nobody holds it.
        last_ts: time of the last record.
        ignored: records of the history that could not be applied.
    """

    session: str = ""
    tree: Tree = field(default_factory=lambda: Tree(Node(GOAL_ID, "")))
    active: str = ""
    actions: list[Item] = field(default_factory=list[Item])
    fresh: int = 0
    in_flight: list[Item] = field(default_factory=list[Item])
    blocked: list[Item] = field(default_factory=list[Item])
    outcomes: list[Item] = field(default_factory=list[Item])
    loops: list[Item] = field(default_factory=list[Item])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    moment: str = "start"
    next_step: str | None = None
    probes: list[Item] = field(default_factory=list[Item])
    probe_state: list[Item] = field(default_factory=list[Item])
    epoch: int = 0
    owner: Item | None = None
    last_ts: str | None = None
    ignored: int = 0

    @property
    def goal(self) -> Node:
        """The root of the tree."""
        return self.tree.root

    @property
    def exists(self) -> bool:
        """Whether a goal was ever begun."""
        return bool(self.session)

    def current(self) -> Node | None:
        """Return the leaf that actions belong to: the active one, else the first that can be worked on."""
        active = self.tree.get(self.active)
        if active is not None and active.is_leaf and active.status in ("pending", "in_progress", "failed", "blocked"):
            return active
        return self.tree.first_open()

    def count(self, name: str) -> int:
        """Return a counter."""
        return self.counts.get(name, 0)

    def add(self, name: str) -> int:
        """Raise a counter by one and return it."""
        self.counts[name] = self.counts.get(name, 0) + 1
        return self.counts[name]

    def to_json(self) -> dict[str, Any]:
        """Return the members of the state file."""
        return {
            "session": self.session, "goal": self.tree.root.to_json(), "active": self.active, "actions": self.actions,
            "fresh": self.fresh, "inFlight": self.in_flight, "blockedActions": self.blocked, "outcomes": self.outcomes,
            "loops": self.loops, "counts": self.counts, "moment": self.moment, "nextStep": self.next_step,
            "probes": self.probes, "probeState": self.probe_state, "epoch": self.epoch, "owner": self.owner,
            "lastTs": self.last_ts, "ignored": self.ignored,
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: object) -> State:
        """Return the state that `to_json` described.

        Raises:
            ValueError: it describes none.
        """
        fields = as_object(data)
        owner = fields.get("owner")
        counts = as_object(fields.get("counts"))
        return cls(
            session=read_text(fields, "session"), tree=Tree(read_node(fields.get("goal"))), active=read_text(fields, "active"),
            actions=_items(fields, "actions"), fresh=read_number(fields, "fresh"), in_flight=_items(fields, "inFlight"),
            blocked=_items(fields, "blockedActions"), outcomes=_items(fields, "outcomes"), loops=_items(fields, "loops"),
            counts={name: read_number(counts, name) for name in counts}, moment=read_text(fields, "moment"),
            next_step=read_text_or_none(fields, "nextStep"), probes=_items(fields, "probes"),
            probe_state=_items(fields, "probeState"), epoch=read_number(fields, "epoch"),
            owner=None if owner is None else cast("Item", as_object(owner)), last_ts=read_text_or_none(fields, "lastTs"),
            ignored=read_number(fields, "ignored"),
        )  # fmt: skip


def _items(fields: dict[str, object], key: str) -> list[Item]:
    return [cast("Item", as_object(each)) for each in read_list(fields, key)]
