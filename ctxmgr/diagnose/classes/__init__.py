"""The registry of failure classes: one class a module, in packages by what goes wrong.

A class is a module with a ``KIND`` and ``applies(evidence)`` (see `ctxmgr.diagnose.interface`); one line in `CLASSES` adds
it. The module has the name of its kind, except `edits.check_unaffected` with the kind `testUnaffected`. If no class applies,
`ctxmgr.diagnose.contrast` answers, with the kind `unknown`.

| What goes wrong | Module | Kind in JSON |
|---|---|---|
| An edit is refused: its old text is not in the file, not unique, unread | `edits.wrong_edit_target` | `wrongEditTarget` |
| The error points at another file than the one that is changed | `edits.error_elsewhere` | `errorElsewhere` |
| A check does not see the edits: other file, stale build, cached result | `edits.check_unaffected` | `testUnaffected` |
| The running program was loaded, built or installed before the edits | `edits.edits_not_used` | `editsNotUsed` |
| The edited file is made from, copied to, or overridden by another | `edits.made_elsewhere` | `madeElsewhere` |
| Two agents or tools undo each other's edits | `edits.undone_by_other` | `undoneByOther` |
| A script, target or sub-command that the manifest does not have | `names.unknown_name` | `unknownName` |
| A remote, branch, table, column or host that is not known | `names.unknown_reference` | `unknownReference` |
| Any other name that a tool does not know | `names.not_found` | `notFound` |
| The name exists in another namespace, database, folder or account | `names.exists_elsewhere` | `existsElsewhere` |
| A file is looked for in the wrong place | `names.wrong_place` | `wrongPlace` |
| A search looks in the wrong place | `names.search_elsewhere` | `searchElsewhere` |
| An invisible character | `names.hidden_character` | `hiddenCharacter` |
| A module is missing that an environment of the record has | `environment.environment_missing` | `environmentMissing` |
| The module is installed for another interpreter or folder | `environment.other_installation` | `otherInstallation` |
| The program runs in the wrong folder | `environment.other_folder` | `otherFolder` |
| A tool or command is missing | `environment.tool_missing` | `toolMissing` |
| What one call set in its shell is gone in the next | `environment.shell_state` | `shellState` |
| The same call worked with another folder, option or value | `environment.worked_elsewhere` | `workedElsewhere` |
| A schema refuses the arguments | `refusals.schema_refused` | `schemaRefused` |
| The call asks for more than a limit allows | `refusals.limit_exceeded` | `limitExceeded` |
| Rate limit | `refusals.rate_limited` | `rateLimited` |
| Authentication expired or refused | `refusals.authentication_refused` | `authenticationRefused` |
| Permission denied although a permitted way was named | `refusals.permission_denied` | `permissionDenied` |
| A constraint of the user is broken again and again | `refusals.constraint_broken` | `constraintBroken` |
| A port or other resource is taken | `waiting.resource_held` | `resourceHeld` |
| The call waits for a lock that the record shows | `waiting.waiting_on_lock` | `waitingOnLock` |
| The call waits for a file or process that the record shows | `waiting.waiting_on_process` | `waitingOnProcess` |
| A call hangs in anything else | `waiting.call_hangs` | `callHangs` |
| The polled state can't change any more | `waiting.polling_frozen` | `pollingFrozen` |
| The awaited work can't begin | `waiting.cannot_begin` | `cannotBegin` |
| Agents wait for each other, two or a ring | `waiting.mutual_wait` | `mutualWait` |
| The work waits for a person's approval or answer | `waiting.waits_for_person` | `waitsForPerson` |
| The question was decided before, in this session or another one | `context.decided_before` | `decidedBefore` |
| Context was lost at a compaction | `context.context_lost` | `contextLost` |
| An output is cut, and read again | `context.output_cut` | `outputCut` |
| Monologue or chanting | `context.monologue` | `monologue` |
| The project's notes name the option, folder or runner | `statements.documented_way` | `documentedWay` |
| A note that was read mentions the failure | `statements.noted_way` | `notedWay` |
| A file's own content explains the error | `statements.record_fact` | `recordFact` |
| A widely known error of a tool | `statements.known_error` | `knownError` |
| The tool itself says why; asked last | `statements.stated_reason` | `statedReason` |
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
    hidden_character,
    not_found,
    search_elsewhere,
    unknown_name,
    unknown_reference,
    wrong_place,
)
from ctxmgr.diagnose.classes.refusals import (
    authentication_refused,
    constraint_broken,
    limit_exceeded,
    permission_denied,
    rate_limited,
    schema_refused,
)
from ctxmgr.diagnose.classes.statements import documented_way, known_error, noted_way, record_fact, stated_reason
from ctxmgr.diagnose.classes.waiting import (
    call_hangs,
    cannot_begin,
    mutual_wait,
    polling_frozen,
    resource_held,
    waiting_on_lock,
    waiting_on_process,
    waits_for_person,
)
from ctxmgr.diagnose.interface import FailureClass

CLASSES: tuple[FailureClass, ...] = (
    wrong_edit_target,
    record_fact,
    hidden_character,
    shell_state,
    other_folder,
    other_installation,
    exists_elsewhere,
    worked_elsewhere,
    unknown_name,
    unknown_reference,
    environment_missing,
    documented_way,
    resource_held,
    waiting_on_lock,
    limit_exceeded,
    rate_limited,
    authentication_refused,
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
    waiting_on_process,
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
"""All failure classes, the most precise first. If two apply, the earlier one answers."""
