"""The answer of ``detect FOLDER``: every log in it is judged by itself, and what was passed over is listed and counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ctxmgr.cli.detection_answer import detected
from ctxmgr.cli.exits import VERDICTS, Exit
from ctxmgr.cli.views.one_line import session_command
from ctxmgr.errors import CtxmgrError, InvalidInput
from ctxmgr.history.ingest import find_logs
from ctxmgr.types.finding import SessionVerdict, verdict_of
from ctxmgr.types.view import EntryView
from ctxmgr.workspace import Workspace

_NAMED = 20
"""Files that are named one by one; of more only the number is told."""


@dataclass(slots=True)
class FolderFindings:
    """What was found in the logs of a folder.

    Attributes:
        logs: of each log that was judged its verdicts.
        passed_over: (path, reason) of each file that looks like a log and could not be judged.
        notes: of the logs that were judged.
    """

    logs: dict[str, list[SessionVerdict]] = field(default_factory=dict[str, list[SessionVerdict]])
    entries: dict[str, EntryView] = field(default_factory=dict[str, EntryView])
    passed_over: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    notes: list[str] = field(default_factory=list[str])
    next: list[str] = field(default_factory=list[str])
    code: Exit = Exit.OK

    @property
    def verdicts(self) -> list[SessionVerdict]:
        """All verdicts, in the order of the logs."""
        return [verdict for verdicts in self.logs.values() for verdict in verdicts]

    @property
    def warnings(self) -> list[str]:
        """What a person should hear about it."""
        told = [f"not read: {path}: {why}" for path, why in self.passed_over[:_NAMED]]
        if (more := len(self.passed_over) - _NAMED) > 0:
            told.append(f"not read: {more} more files")
        if self.passed_over:
            told.append(f"judged: {len(self.logs)} logs; not read: {len(self.passed_over)} files")
        return [*self.notes, *told]


def detected_in(folder: str, now: str | None, changes: list[str] | None, *, ever: bool, exit_zero: bool) -> FolderFindings:
    """Judge every log in a folder as `ctxmgr.cli.detection_answer.detected` does.

    Raises:
        InvalidInput: nothing in it could be read; a wrong setting or time.
    """
    found = FolderFindings()
    logs, passed = find_logs([Path(folder)])
    found.passed_over = [(each.path, each.skipped or "") for each in passed]
    for log in logs:
        try:
            with Workspace.open(str(log), readonly=True) as workspace:
                done = detected(
                    workspace, None, now, changes, all_sessions=True, ever=ever, exit_zero=exit_zero, store=str(log)
                )
        except CtxmgrError as error:
            found.passed_over.append((str(log), error.message))
            continue
        found.logs[str(log)] = done.verdicts
        found.entries |= done.found.entries
        found.notes += [f"{log}: {note}" for note in (*workspace.warnings, *done.found.notes)]
        stuck = [verdict.session for verdict in done.verdicts if verdict.verdict not in ("healthy", "warn")]
        found.next += [session_command("recover", session, str(log)) for session in stuck][: 0 if found.next else 1]
    if not found.verdicts:
        told = "".join(f"\n  {path}: {why}" for path, why in found.passed_over[:5])
        raise InvalidInput(
            f"{folder}: no log in it could be read, so nothing was judged{told}", "name a log, or another folder"
        )
    every = verdict_of([finding for verdict in found.verdicts for finding in verdict.findings], ever=ever)
    if not exit_zero:
        found.code = VERDICTS[every]
        if found.code is Exit.OK and found.passed_over:
            found.code = Exit.PARTIAL
    return found
