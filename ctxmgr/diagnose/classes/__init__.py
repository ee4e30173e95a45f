"""The registry of failure classes: one class a module, in packages by what goes wrong.

A class is a module with a ``KIND`` and ``diagnose(evidence)`` (see `ctxmgr.diagnose.interface`); one line in `CLASSES` adds
it. The module has the name of its kind, except `edits.check_unaffected` with the kind `testUnaffected`. If no class has a
diagnosis, `ctxmgr.diagnose.contrast` answers, with the kind `unknown`.

Limits that decide what a class finds have names. A bare slice of a text, such as ``[:8_000]``, bounds the time of an expression
on a long result, and one of a name or a list its room in a sentence.

| What goes wrong | Module | Kind in JSON |
|---|---|---|
| An edit is refused: its old text is not in the file, not unique, unread | `edits.wrong_edit_target` | `wrongEditTarget` |
| The error points at another file than the one that is changed | `edits.error_elsewhere` | `errorElsewhere` |
| A check misses edits (stale, cached, undone), or fails only after other tests | `edits.check_unaffected` | `testUnaffected` |
| The running program was loaded, built or installed before the edits | `edits.edits_not_used` | `editsNotUsed` |
| The edited file is made from, copied to, or overridden by another | `edits.made_elsewhere` | `madeElsewhere` |
| Two agents or tools undo each other's edits or other changes | `edits.undone_by_other` | `undoneByOther` |
| A script, target or sub-command that the manifest does not have | `names.unknown_name` | `unknownName` |
| A remote, branch, table, column or host that is not known | `names.unknown_reference` | `unknownReference` |
| Any other name that a tool does not know | `names.not_found` | `notFound` |
| The name exists in another namespace, database, folder or account | `names.exists_elsewhere` | `existsElsewhere` |
| A file is looked for in the wrong place | `names.wrong_place` | `wrongPlace` |
| A search looks in the wrong place | `names.search_elsewhere` | `searchElsewhere` |
| An invisible character | `names.hidden_character` | `hiddenCharacter` |
| A module is missing that an environment of the record has | `environment.environment_missing` | `environmentMissing` |
| The module is installed for another interpreter | `environment.other_installation` | `otherInstallation` |
| The program runs in the wrong folder | `environment.other_folder` | `otherFolder` |
| A tool or command is missing | `environment.tool_missing` | `toolMissing` |
| What one call set in its shell is gone in the next | `environment.shell_state` | `shellState` |
| The same call worked from another folder or with another option | `environment.worked_elsewhere` | `workedElsewhere` |
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
| The project's notes name the option or runner | `statements.documented_way` | `documentedWay` |
| A note that was read mentions the failure | `statements.noted_way` | `notedWay` |
| A file's own content explains the error | `statements.record_fact` | `recordFact` |
| A widely known error of a tool | `statements.known_error` | `knownError` |
| The tool itself says why; asked last | `statements.stated_reason` | `statedReason` |
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ctxmgr.diagnose.interface import FailureClass


class _Modules(Sequence[FailureClass]):
    """Modules of this package by name. Each is loaded when it is asked for, because the first diagnosis ends the search."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, place: Any) -> Any:
        return import_module(f"{__name__}.{self._names[place]}")


CLASSES: Sequence[FailureClass] = _Modules(
    "edits.wrong_edit_target",
    "statements.record_fact",
    "names.hidden_character",
    "environment.shell_state",
    "environment.other_folder",
    "environment.other_installation",
    "names.exists_elsewhere",
    "environment.worked_elsewhere",
    "names.unknown_name",
    "names.unknown_reference",
    "environment.environment_missing",
    "statements.documented_way",
    "waiting.resource_held",
    "waiting.waiting_on_lock",
    "refusals.limit_exceeded",
    "refusals.rate_limited",
    "refusals.authentication_refused",
    "refusals.schema_refused",
    "environment.tool_missing",
    "statements.noted_way",
    "context.decided_before",
    "edits.undone_by_other",
    "waiting.mutual_wait",
    "waiting.waits_for_person",
    "refusals.constraint_broken",
    "refusals.permission_denied",
    "edits.made_elsewhere",
    "edits.check_unaffected",
    "edits.edits_not_used",
    "edits.error_elsewhere",
    "waiting.waiting_on_process",
    "waiting.call_hangs",
    "statements.known_error",
    "names.wrong_place",
    "names.search_elsewhere",
    "names.not_found",
    "waiting.cannot_begin",
    "waiting.polling_frozen",
    "context.output_cut",
    "statements.stated_reason",
    "context.context_lost",
    "context.monologue",
)
"""All failure classes, the most precise first. If two apply, the earlier one answers."""
