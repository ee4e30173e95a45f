"""Why calls fail: the first failure class that the record supports answers."""

from __future__ import annotations

from collections.abc import Callable

from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.types.diagnosis import Diagnosis

CLASSES: tuple[Callable[[Evidence], Diagnosis | None], ...] = ()
"""The failure classes, the surest first."""


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return the cause that the record supports, or None."""
    return next((found for applies in CLASSES if (found := applies(evidence)) is not None), None)
