"""Pull in what artifacts depend on: transitively, each once, as strongly as the strongest chain of dependencies says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ctxmgr.store.artifacts import ArtifactRow, DependencyRow
from ctxmgr.types.package import Need

STRENGTH: dict[str, int] = {"required": 0, "optional": 1, "if_exists": 1, "reference": 2}
_LEVELS: tuple[Need, ...] = ("required", "optional", "reference")


@dataclass(frozen=True, slots=True)
class Pulled:
    """An artifact that another one depends on, how strongly, and with the priority of the one that asks for it."""

    row: ArtifactRow
    need: Need
    priority: int
    because: str


def depending(
    asked: Sequence[tuple[ArtifactRow, Need, int]],
    dependencies: Callable[[str], Sequence[DependencyRow]],
    find: Callable[[str, str], ArtifactRow | None],
) -> list[Pulled]:
    """Return what the artifacts depend on and is not asked for as strongly already.

    A chain is as strong as its weakest link: what a reference requires is a reference.

    Args:
        asked: artifacts with the need for each and its priority.
        dependencies: what the artifact with an id depends on.
        find: returns an artifact by owner and name, None for what is not there.
    """
    best: dict[str, int] = {}
    pulled: dict[str, Pulled] = {}
    waiting: list[list[tuple[ArtifactRow, int]]] = [[], [], []]
    for row, need, priority in sorted(asked, key=lambda one: (one[2], one[0].agent, one[0].name, one[0].version)):
        level = STRENGTH[need]
        best[row.id] = min(level, best.get(row.id, level))
        waiting[level].append((row, priority))
    done: set[str] = set()
    for level, queue in enumerate(waiting):
        for row, priority in queue:  # grows while it is walked
            if row.id in done or best[row.id] < level:
                continue
            done.add(row.id)
            for link in dependencies(row.id):
                reached = max(level, STRENGTH.get(link.type, 2))
                target = find(link.agent, link.name)
                if target is None or best.get(target.id, len(_LEVELS)) <= reached:
                    continue
                best[target.id] = reached
                pulled[target.id] = Pulled(target, _LEVELS[reached], priority, f"{row.agent}/{row.name} depends on it")
                waiting[reached].append((target, priority))
    return list(pulled.values())
