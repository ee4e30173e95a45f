"""The registry of failure classes: a module each, in packages by what goes wrong.

A class is a module with a ``KIND`` and ``applies(evidence)`` (see `ctxmgr.diagnose.interface`); one line in `CLASSES` adds it.
"""

from __future__ import annotations

from ctxmgr.diagnose.classes.context import context_lost, decided_before, monologue, output_cut
from ctxmgr.diagnose.classes.edits import (
    check_unaffected,
    edits_not_used,
    error_elsewhere,
    made_elsewhere,
    undone_by_other,
    wrong_edit_target,
)
from ctxmgr.diagnose.classes.environment import (
    environment_missing,
    other_folder,
    other_installation,
    shell_state,
    tool_missing,
    worked_elsewhere,
)
from ctxmgr.diagnose.classes.names import (
    exists_elsewhere,
    hidden_characters,
    not_found,
    search_elsewhere,
    unknown_name,
    unknown_reference,
    wrong_place,
)
from ctxmgr.diagnose.classes.refusals import (
    authentication,
    constraint_broken,
    limit_exceeded,
    permission_denied,
    rate_limited,
    schema_refused,
)
from ctxmgr.diagnose.classes.statements import documented_way, known_error, noted_way, record_facts, stated_reason
from ctxmgr.diagnose.classes.waiting import (
    call_hangs,
    cannot_begin,
    mutual_wait,
    polling_frozen,
    resource_held,
    waiting_on_lock,
    waits_for_person,
)
from ctxmgr.diagnose.interface import FailureClass

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
