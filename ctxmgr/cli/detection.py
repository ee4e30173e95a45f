"""What ``detect`` finds with the detectors: in a store, and in every log of a folder."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal, NamedTuple

from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.cli.envelope import IndexProgress, JudgeProgress, group_notes, session_choice
from ctxmgr.cli.exits import VERDICTS, Exit
from ctxmgr.cli.requests import merge_settings, moment
from ctxmgr.cli.views.layout import session_command
from ctxmgr.errors import CtxmgrError, InvalidInput, NoHistory
from ctxmgr.history.detection import NOTHING_KNOWN
from ctxmgr.types.finding import SessionVerdict, find_verdict, verdict_summary
from ctxmgr.types.operations import DetectRequest, DetectResponse
from ctxmgr.types.view import EntryView
from ctxmgr.workspace import Workspace

NOTHING_READ = "nothing was read, so nothing was judged; name a log, or 'ctxmgr import' reads those on this machine"


class DetectionResult(NamedTuple):
    """The findings of the detectors, the verdicts to show, suggested next commands, and the exit code.

    ``unread`` says which parts of the log could not be judged.
    """

    found: DetectResponse
    verdicts: list[SessionVerdict]
    next: list[str]
    code: Exit
    unread: list[str]

    @property
    def status(self) -> Literal["ok", "empty", "partial"]:
        """The status of the envelope."""
        return "partial" if self.code is Exit.PARTIAL else self.found.status


def run_detection(
    workspace: Workspace,
    session: str | None,
    now: str | None,
    changes: list[str] | None,
    *,
    all_sessions: bool,
    ever: bool,
    exit_zero: bool,
    store: str | None,
) -> DetectionResult:
    """Judge one session or all, with ``changes`` (``--set``) over the configured settings.

    Raises:
        NoHistory: there is no session to judge.
        InvalidInput: a setting or the time is wrong.
        CtxmgrError: as `Workspace.detect`.
    """
    workspace.adjust(merge_settings(dict(workspace.config.detect), changes))
    request = DetectRequest(session=session, all_sessions=all_sessions, now=moment(now, time.time()))
    found = workspace.detect(request, JudgeProgress() if all_sessions else None)
    if not found.verdicts:
        raise NoHistory(hint=NOTHING_READ)
    verdicts = [_with_ended_findings(verdict, ever=ever) for verdict in found.verdicts]
    found.notes[:] = group_notes(found.notes)
    if not all_sessions:  # else each verdict names its session
        found.notes[:0] = session_choice(workspace.store, session, verdicts[0].session)
    every = find_verdict([finding for verdict in verdicts for finding in verdict.findings], ever=ever)
    stuck = [verdict.session for verdict in verdicts if verdict.verdict not in ("healthy", "warn")]
    # If no session is stuck, suggest one that could not be judged completely.
    stuck = stuck or [verdict.session for verdict in verdicts if verdict.notes]
    following = [session_command("recover", stuck[0], store)] if stuck else []
    # "Healthy" may only be said of records that were read (ruling 28). Damage or missing records make the answer partial.
    code, unread = VERDICTS[every], workspace.store.unread_parts()
    if code is Exit.OK and (unread or any(NOTHING_KNOWN in verdict.notes for verdict in verdicts)):
        code = Exit.PARTIAL
    return DetectionResult(found, verdicts, following, Exit.OK if exit_zero else code, unread)


def _with_ended_findings(verdict: SessionVerdict, *, ever: bool) -> SessionVerdict:
    if not ever:
        return verdict
    every = find_verdict(verdict.findings, ever=True)
    return verdict.model_copy(update={"verdict": every, "summary": verdict_summary(every, verdict.notes)})


_MAX_NAMED = 20
"""Maximum number of files to name. For the others only their number is given."""


@dataclass(slots=True)
class FolderFindings:
    """Results for the logs of a folder.

    Attributes:
        logs: verdicts by the path of the log.
        passed_over: (path, reason) of each file that looks like a log but could not be judged.
        others: remarks on files that are not logs.
        notes: remarks on the logs that were judged.
    """

    logs: dict[str, list[SessionVerdict]] = field(default_factory=dict[str, list[SessionVerdict]])
    entries: dict[str, EntryView] = field(default_factory=dict[str, EntryView])
    passed_over: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    others: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    next: list[str] = field(default_factory=list[str])
    code: Exit = Exit.OK

    @property
    def verdicts(self) -> list[SessionVerdict]:
        """All verdicts, in the order of the logs."""
        return [verdict for verdicts in self.logs.values() for verdict in verdicts]

    @property
    def warnings(self) -> list[str]:
        """Lines for a person that name the files that were not read, with reasons."""
        lines = [f"not read: {path}: {why}" for path, why in self.passed_over[:_MAX_NAMED]]
        if (more := len(self.passed_over) - _MAX_NAMED) > 0:
            lines.append(f"not read: {more} more files")
        if self.passed_over:
            lines.append(f"judged: {len(self.logs)} logs; not read: {len(self.passed_over)} files")
        return [*self.notes, *lines, *self.others]


def detect_in_folder(folder: str, now: str | None, changes: list[str] | None, *, ever: bool, exit_zero: bool) -> FolderFindings:
    """Judge every log in a folder as `run_detection` does.

    Raises:
        InvalidInput: no log in the folder could be read, or a setting or the time is wrong.
    """
    found = FolderFindings()
    from ctxmgr.cli.terminal import search_progress, with_progress
    from ctxmgr.config import load_config
    from ctxmgr.detect.settings import DetectSettings
    from ctxmgr.history.ingest import find_logs

    # Check the settings and the time once. Otherwise every log would be skipped as unreadable.
    DetectSettings.from_table(merge_settings(dict(load_config(Path.cwd()).detect), changes))
    moment(now, time.time())

    # Files that are not logs are reported apart from damaged logs, because only the latter make the answer partial.
    there = find_logs([Path(folder)], search_progress())
    found.passed_over = [(each.path, each.skipped or "") for each in there.passed]
    found.others = there.others.notes
    for log in with_progress(there.logs):
        try:
            with Workspace.open(str(log), readonly=True, progress=IndexProgress()) as workspace:
                done = run_detection(
                    workspace, None, now, changes, all_sessions=True, ever=ever, exit_zero=exit_zero, store=str(log)
                )
        except CtxmgrError as error:
            found.passed_over.append((str(log), error.message))
            continue
        judged = [verdict for verdict in done.verdicts if NOTHING_KNOWN not in verdict.notes]
        found.passed_over += [
            (str(log), f"session {verdict.session}: {NOTHING_KNOWN}") for verdict in done.verdicts if verdict not in judged
        ]
        found.passed_over += [(str(log), part) for part in done.unread]
        if not judged:
            continue
        found.logs[str(log)] = judged
        found.entries |= done.found.entries
        found.notes += [f"{log}: {note}" for note in (*workspace.warnings, *done.found.notes)]
        stuck = [verdict.session for verdict in judged if verdict.verdict not in ("healthy", "warn")]
        found.next += [session_command("recover", session, str(log)) for session in stuck][: 0 if found.next else 1]
    if not found.verdicts:
        reasons = "".join(f"\n  {path}: {why}" for path, why in found.passed_over[:5])
        raise InvalidInput(
            f"{folder}: no log in it could be read, so nothing was judged{reasons}", "name a log, or another folder"
        )
    every = find_verdict([finding for verdict in found.verdicts for finding in verdict.findings], ever=ever)
    if not exit_zero:
        found.code = VERDICTS[every]
        if found.code is Exit.OK and found.passed_over:
            found.code = Exit.PARTIAL
    return found
