"""Names of agents."""

from __future__ import annotations

import random

_CREWS = (
    ("planner", "researcher", "coder", "reviewer", "merger"),
    ("orchestrator", "discovery", "implementer", "critic", "integrator"),
    ("lead", "explorer", "builder", "qa", "release"),
    ("coordinator", "scout", "backend-dev", "code-review", "merge-bot"),
    ("main", "Explore", "general-purpose", "review", "merge"),
    ("pm-agent", "analyst", "engineer", "inspector", "joiner"),
)


def crew(rng: random.Random, count: int) -> tuple[str, ...]:
    """Return this many agents of one team: who plans, who finds out, who builds, who reviews, who merges."""
    return rng.choice(_CREWS)[:count]
