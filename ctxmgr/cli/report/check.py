"""Judge logs for a build, and write the results in formats that build systems read.

The formats are Markdown, GitHub annotations, JUnit XML and SARIF 2.1.0.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ctxmgr.cli.address import require_files
from ctxmgr.cli.detection import NOTHING_READ
from ctxmgr.cli.envelope import IndexProgress, JudgeProgress
from ctxmgr.cli.terminal import search_progress, with_progress
from ctxmgr.cli.text_formats import escape_markdown
from ctxmgr.cli.views.layout import plural
from ctxmgr.cli.views.safe_text import safe
from ctxmgr.errors import CtxmgrError, InvalidInput, NoHistory
from ctxmgr.history.detection import NOTHING_KNOWN
from ctxmgr.history.ingest import find_logs
from ctxmgr.types.finding import Finding, SessionVerdict
from ctxmgr.types.operations import DetectRequest, DetectResponse, RecoverRequest
from ctxmgr.types.route import Continuation
from ctxmgr.workspace import Workspace

SEVERITIES = ("loop", "hung", "warn")
FAIL_ON = ("loop", "hung")
"""Severities that fail a check by default. ``warn`` adds to them: who fails on a suspicion fails on what is sure."""

_MIN_GROUPED = 3
"""Minimum number of logs with the same note for which the note is shown once, with the number of logs."""

Listener = Callable[["CheckedSession", Workspace, DetectResponse, SessionVerdict], None]
"""Called for each session while its log is open, with the checked session, the workspace, the findings and the verdict."""


@dataclass(frozen=True, slots=True)
class CheckedSession:
    """The result for one session of a log.

    Attributes:
        log: path of the log, as named or found; that of the store if no log is named.
        lasting: unresolved findings, those that fail the check first.
        failed: whether any of them has a severity that fails the check.
        continuation: the answer of `recover` by rules, for a session that failed.
    """

    log: str
    session: str
    verdict: str
    summary: str
    lasting: list[Finding]
    failed: bool
    continuation: Continuation | None = None

    @property
    def cause(self) -> str:
        """The cause of the trouble, or an empty text."""
        diagnosis = self.continuation and self.continuation.diagnosis
        return diagnosis.cause if diagnosis else ""

    @property
    def next_step(self) -> str:
        """The next step, or an empty text."""
        diagnosis = self.continuation and self.continuation.diagnosis
        return diagnosis.next_step if diagnosis else ""

    def to_json(self) -> dict[str, Any]:
        """Return the session as a row of the answer."""
        return {
            "log": self.log, "session": self.session, "verdict": self.verdict, "summary": self.summary, "failed": self.failed,
            "cause": self.cause or None, "nextStep": self.next_step or None,
            "prompt": self.continuation.prompt if self.continuation else None,
            "findings": [finding.to_json() for finding in self.lasting],
        }  # fmt: skip


@dataclass(slots=True)
class CheckResult:
    """The results of a check.

    Attributes:
        sessions: all judged sessions, in the order of the logs.
        passed_over: (path, reason) of files and sessions that could not be read.
        others: remarks on files in the folders that are no logs.
        notes: (path and session, note) on faults of logs that were read, such as damage or missing times.
        fail_on: severities that fail the check.
    """

    sessions: list[CheckedSession] = field(default_factory=list[CheckedSession])
    passed_over: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    others: list[str] = field(default_factory=list[str])
    notes: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    fail_on: frozenset[str] = frozenset(FAIL_ON)

    @property
    def remarks(self) -> list[str]:
        """The notes as sentences. A note that several logs share is given once, with their number."""
        places: dict[str, list[str]] = {}
        for place, note in self.notes:
            places.setdefault(note, []).append(place)
        return [
            line
            for note, found in places.items()
            for line in (
                [f"{place}: {note}" for place in found] if len(found) < _MIN_GROUPED else [f"{len(found)} logs: {note}"]
            )
        ]

    @property
    def failed_sessions(self) -> list[CheckedSession]:
        """The sessions that fail the check."""
        return [session for session in self.sessions if session.failed]

    @property
    def calm(self) -> str:
        """How many sessions do not fail the check, and whether anything was found in them; "" if all of them fail."""
        calm = [session for session in self.sessions if not session.failed]
        found = sum(bool(session.lasting) for session in calm)
        if found:
            which = "" if found == len(calm) else f"{found:,} of them "
            return f"{plural(len(calm), 'session')} passed, {which}with findings that --fail-on leaves out"
        ended = [session for session in calm if session.summary != session.verdict]
        if ended:
            # Healthy is said only where nothing is wrong (ruling 28).
            which = f": {ended[0].summary}" if len(calm) == 1 else f", {len(ended):,} of them not without trouble"
            return f"{plural(len(calm), 'session')} passed{which}"
        return f"{plural(len(calm), 'session')} without trouble" if calm else ""

    @property
    def severities(self) -> set[str]:
        """The found severities that fail the check."""
        return {finding.severity for session in self.failed_sessions for finding in session.lasting} & self.fail_on


def check_logs(
    paths: Sequence[Path], store: str | None, fail_on: Sequence[str], listener: Listener | None = None
) -> CheckResult:
    """Judge every session of the logs at ``paths``, or of a store if no path is named. Folders are searched for logs.

    Each log is read in place and separately, so sessions of the same name in two logs are two sessions. Nothing is recorded.

    Args:
        paths: logs, folders of logs, or stores (``.db``).
        store: the store to judge if ``paths`` is empty; None for the nearest one.
        fail_on: severities of unresolved findings that fail the check.
        listener: see `Listener`.

    Raises:
        InvalidInput: a severity is unknown or none is given, or nothing at the paths can be read.
        NoHistory: the store has no session.
        NotFound, StorageFailed: a path does not exist or can't be read.
    """
    if unknown := [name for name in fail_on if name not in SEVERITIES]:
        raise InvalidInput(f"unknown severity {unknown[0]!r}", f"severities: {', '.join(SEVERITIES)}")
    if not fail_on:
        raise InvalidInput("no severity is named that fails the check", f"severities: {', '.join(SEVERITIES)}")
    result = CheckResult(fail_on=frozenset(fail_on).union(FAIL_ON if "warn" in fail_on else ()))
    if not paths:
        _judge(result, store, listener)
        # "Healthy" must not be said if nothing was judged (ruling 28).
        if not result.sessions:
            raise NoHistory(hint=NOTHING_READ)
        return result
    require_files([str(path) for path in paths])
    # A store is judged as one log. It is not searched for logs.
    stores = [path for path in paths if path.suffix == ".db"]
    there = find_logs([path for path in paths if path not in stores], search_progress())
    result.passed_over = [(each.path, each.skipped or "") for each in there.passed]
    result.others = there.others.notes
    for log in with_progress([*stores, *there.logs]):
        try:
            _judge(result, str(log), listener)
        except CtxmgrError as error:
            if [log] == list(paths):  # the user named this log alone, so failing to read it is an error
                raise
            result.passed_over.append((str(log), error.message.removeprefix(f"{log}: ")))
    if not result.sessions:
        reasons = "".join(f"\n  {path}: {why}" for path, why in result.passed_over[:5])
        raise InvalidInput(f"nothing was read, so nothing was judged{reasons}", "name a log, a folder of logs, or a store")
    return result


def _judge(result: CheckResult, log: str | None, listener: Listener | None) -> None:
    """Judge every session of one log. A log that fails on the way adds no session."""
    sessions: list[CheckedSession] = []
    with Workspace.open(log, readonly=True, scratch=True, progress=IndexProgress()) as workspace:
        found = workspace.detect(DetectRequest(all_sessions=True), JudgeProgress())
        place = log or workspace.store.location
        for verdict in found.verdicts:
            if NOTHING_KNOWN in verdict.notes:
                result.passed_over.append((place, f"session {verdict.session}: {NOTHING_KNOWN}"))
                continue
            lasting = [finding for finding in verdict.findings if finding.resolved is None]
            # Those that fail the check come first, because a build system may show only the first finding.
            lasting.sort(key=lambda finding: finding.severity not in result.fail_on)
            failed = any(finding.severity in result.fail_on for finding in lasting)
            continuation = _continuation(workspace, verdict.session) if failed else None
            session = CheckedSession(place, verdict.session, verdict.verdict, verdict.summary, lasting, failed, continuation)
            if listener is not None:
                listener(session, workspace, found, verdict)
            sessions.append(session)
        unread = workspace.store.unread_parts()
        result.passed_over += [(place, part) for part in unread]
        if not unread and not found.verdicts and log is not None:
            damage = workspace.store.damage()
            result.passed_over.append(
                (place, f"no record of it can be read: {damage[0].reason}" if damage else "it holds no session")
            )
    # Add the sessions only after the whole log is judged: half of one would count as a healthy run.
    result.sessions += sessions
    result.notes += [(place, note) for note in workspace.warnings if note not in unread]
    for note in found.notes:
        session = next((each.session for each in found.verdicts if note.startswith(f"{each.session}: ")), "")
        text = note.removeprefix(f"{session}: ")
        result.notes.append((f"{place}: {session}" if len(found.verdicts) > 1 else place, text))


def _continuation(workspace: Workspace, session: str) -> Continuation | None:
    """Return the answer by rules. An error there gives None, because it must not stop the check."""
    try:
        return workspace.recover(RecoverRequest(session=session, plan=True, force=True)).continuation
    except CtxmgrError:
        return None


SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
"""Name of the schema in a SARIF file (SARIF 2.1.0, section 3.13.3). Nothing is fetched from this address."""

_LEVELS = {"loop": "error", "hung": "error", "warn": "warning"}

_HEALTHY_NAMED = 20
"""Maximum number of healthy sessions that the Markdown summary names. Further ones are counted."""


def headline(result: CheckResult) -> str:
    """Return the outcome in one line."""
    failed, all_ = len(result.failed_sessions), len(result.sessions)
    left = sum(not each.failed and any(finding.severity in FAIL_ON for finding in each.lasting) for each in result.sessions)
    if failed:
        return f"{failed:,} of {plural(all_, 'session')} stuck" + (
            f", {left:,} more stuck that --fail-on leaves out" if left else ""
        )
    return f"{plural(all_, 'session')}, " + (f"{left:,} stuck that --fail-on leaves out" if left else "none stuck")


def markdown(result: CheckResult) -> str:
    """Return a summary for a pull request: the stuck sessions with causes and next steps, and the number of the others."""
    lines = [f"## ctxmgr: {headline(result)}", ""]
    for session in result.failed_sessions:
        lines += _markdown_session(session)
    calm = [session for session in result.sessions if not session.failed]
    if calm:
        lines += [f"<details><summary>{result.calm}</summary>", ""]
        lines += [f"- {_code(relative_path(each.log))}: {_plain(each.summary)}" for each in calm[:_HEALTHY_NAMED]]
        lines += [f"- and {len(calm) - _HEALTHY_NAMED:,} more"] if len(calm) > _HEALTHY_NAMED else []
        lines += ["", "</details>", ""]
    if result.passed_over:
        lines += [f"**Not read: {len(result.passed_over):,}**", ""]
        lines += [f"- {_code(relative_path(path))}: {_plain(reason)}" for path, reason in result.passed_over[:_HEALTHY_NAMED]]
        lines += [""]
    return "\n".join(lines)


def _markdown_session(session: CheckedSession) -> Iterator[str]:
    yield f"### {session.verdict}: {_code(relative_path(session.log))}"
    yield ""
    for finding in session.lasting:
        yield f"- {_plain(finding.reason)}"
    yield ""
    if session.cause:
        yield f"**Cause** {_plain(session.cause)}"
        yield ""
    if session.next_step:
        yield f"**Next step** {_plain(session.next_step)}"
        yield ""
    if session.continuation is not None:
        yield f"<details><summary>Text for {_plain(session.continuation.target)}</summary>"
        yield ""
        yield from _fence(session.continuation.prompt)
        yield ""
        yield "</details>"
        yield ""


def _plain(text: str) -> str:
    """Return recorded text as one line of Markdown without markup, links or mentions.

    Text between two backticks is shown as code. If the backticks do not pair, they are ordinary characters.
    """
    shown = safe(text).replace("\u23ce", " ")
    parts = shown.split("`")
    if len(parts) % 2 == 0:
        return escape_markdown(" ".join(shown.split()))
    return "".join(_code(part) if number % 2 and part.strip() else escape_markdown(part) for number, part in enumerate(parts))


def _code(text: str) -> str:
    """Return recorded text as inline code, fenced by more backticks than the text contains."""
    shown = " ".join(safe(text).split())
    fence = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _fence(text: str) -> list[str]:
    shown = safe(text, keep_lines=True)
    fence = "`" * max(max(map(len, re.findall("`+", shown)), default=0) + 1, 3)
    return [f"{fence}text", shown, fence]


def github(result: CheckResult) -> str:
    """Return workflow commands for GitHub Actions, which shows one annotation per unresolved finding."""
    lines: list[str] = []
    for session in result.failed_sessions:
        advice = " ".join(part for part in (session.cause, session.next_step and f"Next step: {session.next_step}") if part)
        for finding in session.lasting:
            text = f"{finding.reason}. {advice}" if advice else finding.reason
            lines.append(
                f"::{_LEVELS[finding.severity]} file={_property(relative_path(session.log))},"
                f"title={_property(f'ctxmgr {finding.kind}')}::{_data(text)}"
            )
    # A warning instead of an error, because an unread file fails the check only by its exit code.
    lines += [f"::warning file={_property(relative_path(path))},title=ctxmgr::{_data(why)}" for path, why in result.passed_over]
    return "\n".join([*lines, f"ctxmgr: {headline(result)}", ""])


def _data(text: str) -> str:
    """Return text escaped for a workflow command. A line end would end the command and could start another."""
    return safe(text, keep_lines=True).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def relative_path(path: str) -> str:
    """Return a path below the working folder as a relative path, as build systems expect. Other paths stay as they are."""
    # GitHub links annotations to files of the repository. An absolute path of the build machine means nothing there.
    below = os.path.relpath(path) if os.path.isabs(path) else os.path.normpath(path)
    return path if below.startswith(os.pardir) else below.replace(os.sep, "/")


def junit(result: CheckResult) -> str:
    """Return JUnit XML with one suite: a case per session, a failure per stuck session, an error per unread file."""
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(root, "testsuite", {
        "name": "ctxmgr", "tests": str(len(result.sessions) + len(result.passed_over)),
        "failures": str(len(result.failed_sessions)), "errors": str(len(result.passed_over)), "skipped": "0",
    })  # fmt: skip
    for session in result.sessions:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": safe(relative_path(session.log)), "name": safe(session.session)}
        )
        if session.failed:
            reasons = [finding.reason for finding in session.lasting]
            failure = ElementTree.SubElement(case, "failure", {"type": session.verdict, "message": safe("; ".join(reasons))})
            failure.text = safe(session.continuation.prompt if session.continuation else "\n".join(reasons), keep_lines=True)
    for path, why in result.passed_over:
        case = ElementTree.SubElement(suite, "testcase", {"classname": safe(relative_path(path)), "name": "read"})
        ElementTree.SubElement(case, "error", {"type": "notRead", "message": safe(why)})
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def sarif(result: CheckResult) -> dict[str, Any]:
    """Return a SARIF 2.1.0 log with a rule per kind of finding and a result per unresolved finding."""
    from ctxmgr import __version__

    found = [(session, finding) for session in result.sessions for finding in session.lasting]
    kinds = sorted({finding.kind for _, finding in found})
    driver = {
        "name": "ctxmgr", "version": __version__,
        "rules": [{"id": kind, "shortDescription": {"text": f"An agent's run is stuck: {kind}"}} for kind in kinds],
    }  # fmt: skip
    notes = [{"level": "warning", "message": {"text": safe(f"{path}: {why}")}} for path, why in result.passed_over]
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
        "results": [_result(session, finding, kinds) for session, finding in found],
    }
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(session: CheckedSession, finding: Finding, kinds: list[str]) -> dict[str, Any]:
    parts = [finding.reason, session.cause, session.next_step and f"Next step: {session.next_step}"]
    return {
        "ruleId": finding.kind, "ruleIndex": kinds.index(finding.kind), "level": _LEVELS[finding.severity],
        "message": {"text": safe("\n".join(part for part in parts if part), keep_lines=True)},
        "locations": [{
            "physicalLocation": {"artifactLocation": {"uri": _uri(session.log)}},
            "logicalLocations": [{"name": safe(session.session), "kind": "session"}],
        }],
        # Viewers recognise a finding by this in the next run, even if lines and times have changed.
        "partialFingerprints": {"identity/v1": str(finding.evidence.get("identity", finding.id))},
    }  # fmt: skip


def _uri(path: str) -> str:
    from urllib.parse import quote

    place = quote(relative_path(path), errors="surrogateescape")
    return f"file://{place}" if os.path.isabs(place) else place
