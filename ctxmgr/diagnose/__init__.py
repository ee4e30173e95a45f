"""Why an agent's calls fail and what it can do next: rules over the record. Pure: no store, no clock.

Begin with `diagnose`. A failure class is a module with a ``KIND`` and ``applies(evidence)`` (see `interface`); it is added
by one line in `CLASSES`. `Evidence` is what they judge.

What tools say wherever they run is data, `known_errors.toml`, which `error_table` reads: a new error is a row there and no
module. `related_records` adds what holds for any tool: the lines of the error that say why (`error_lines`), other records
that share its rare words (`bearing_records`), what the user named, who holds it.
"""

from __future__ import annotations

from ctxmgr.diagnose import (
    authentication,
    call_hangs,
    cannot_begin,
    check_unaffected,
    constraint_broken,
    context_lost,
    decided_before,
    documented_way,
    edits_not_used,
    environment_missing,
    error_elsewhere,
    exists_elsewhere,
    hidden_characters,
    known_error,
    limit_exceeded,
    made_elsewhere,
    monologue,
    mutual_wait,
    not_found,
    noted_way,
    other_folder,
    other_installation,
    output_cut,
    permission_denied,
    polling_frozen,
    rate_limited,
    record_facts,
    resource_held,
    schema_refused,
    search_elsewhere,
    shell_state,
    stated_reason,
    tool_missing,
    undone_by_other,
    unknown_name,
    unknown_reference,
    waiting_on_lock,
    waits_for_person,
    worked_elsewhere,
    wrong_edit_target,
    wrong_place,
)
from ctxmgr.diagnose.contrast import contrast
from ctxmgr.diagnose.evidence import Evidence, Message, messages_of
from ctxmgr.diagnose.interface import FailureClass
from ctxmgr.diagnose.related_records import with_related
from ctxmgr.types.finding import Diagnosis, Quote

CLASSES: tuple[FailureClass, ...] = (
    wrong_edit_target,
    record_facts,
    hidden_characters,
    shell_state,
    other_folder,
    other_installation,
    exists_elsewhere,
    unknown_name,
    unknown_reference,
    environment_missing,
    worked_elsewhere,
    documented_way,
    resource_held,
    waiting_on_lock,
    limit_exceeded,
    rate_limited,
    authentication,
    schema_refused,
    tool_missing,
    noted_way,
    decided_before,
    undone_by_other,
    mutual_wait,
    waits_for_person,
    constraint_broken,
    permission_denied,
    made_elsewhere,
    check_unaffected,
    edits_not_used,
    error_elsewhere,
    call_hangs,
    known_error,
    wrong_place,
    search_elsewhere,
    not_found,
    cannot_begin,
    polling_frozen,
    output_cut,
    stated_reason,
    context_lost,
    monologue,
)
"""All failure classes, the most precise first: where two apply, the earlier one speaks."""


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return the most precise cause that the record supports, or None.

    None is an honest answer: `contrast` then tells what differs between the last step that brought something new
    and the repeated ones.
    """
    found = next((found for each in CLASSES if (found := each.applies(evidence)) is not None), None)
    return None if found is None else with_related(evidence, found)


__all__ = ["CLASSES", "Diagnosis", "Evidence", "FailureClass", "Message", "Quote", "contrast", "diagnose", "messages_of"]
