"""Why an agent's calls fail and what it can do next: rules over the record. Pure: no store, no clock.

Begin with `diagnose`. A failure class is a module with a ``KIND`` and ``applies(evidence)`` (see `interface`); it is added
by one line in `CLASSES`. `Evidence` is what they judge.
"""

from __future__ import annotations

from ctxmgr.diagnose import (
    authentication,
    environment_missing,
    error_elsewhere,
    rate_limited,
    resource_held,
    tool_missing,
    unknown_name,
    unknown_reference,
    waiting_on_lock,
    wrong_edit_target,
    wrong_place,
)
from ctxmgr.diagnose.evidence import Evidence, Message, messages_of
from ctxmgr.diagnose.interface import FailureClass
from ctxmgr.types.diagnosis import Diagnosis, Quote

CLASSES: tuple[FailureClass, ...] = (
    wrong_edit_target,
    unknown_name,
    environment_missing,
    unknown_reference,
    resource_held,
    waiting_on_lock,
    rate_limited,
    authentication,
    error_elsewhere,
    wrong_place,
    tool_missing,
)
"""All failure classes, the most precise first: where two apply, the earlier one speaks."""


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return the most precise cause that the record supports, or None.

    None is an honest answer: ``contrast.contrast`` then tells what differs between the last step that brought something new
    and the repeated ones.
    """
    return next((found for each in CLASSES if (found := each.applies(evidence)) is not None), None)


__all__ = ["CLASSES", "Diagnosis", "Evidence", "FailureClass", "Message", "Quote", "diagnose", "messages_of"]
