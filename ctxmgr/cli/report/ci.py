"""A check in the words of build systems: Markdown, GitHub annotations, JUnit XML, SARIF 2.1.0."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from ctxmgr.cli.report.check import CheckedSession, CheckResult
from ctxmgr.cli.views.formatting import plural
from ctxmgr.cli.views.safe_text import safe
from ctxmgr.types.finding import Finding

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
"""What a SARIF file names as its schema (SARIF 2.1.0, section 3.13.3); nothing is fetched from it."""

_LEVELS = {"loop": "error", "hung": "error", "warn": "warning"}
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|!~&$])")
_LINKED = re.compile(r"(@|://|www\.)")

_HEALTHY_NAMED = 20
"""Sessions without trouble that the Markdown summary names; more are counted."""


def headline(result: CheckResult) -> str:
    """Return the outcome in one line."""
    failed, all_ = len(result.failed), len(result.sessions)
    return f"{failed:,} of {plural(all_, 'session')} stuck" if failed else f"{plural(all_, 'session')}, none stuck"


def markdown(result: CheckResult) -> str:
    """Return a summary that a person reads in a pull request: what is stuck, why, what to do, and the rest as a count."""
    lines = [f"## ctxmgr: {headline(result)}", ""]
    for session in result.failed:
        lines += _markdown_session(session)
    calm = [session for session in result.sessions if not session.failed]
    if calm:
        lines += ["<details><summary>" + plural(len(calm), "session") + " without trouble</summary>", ""]
        lines += [f"- {_code(relative(each.log))}: {_plain(each.summary)}" for each in calm[:_HEALTHY_NAMED]]
        lines += [f"- and {len(calm) - _HEALTHY_NAMED:,} more"] if len(calm) > _HEALTHY_NAMED else []
        lines += ["", "</details>", ""]
    if result.passed_over:
        lines += [f"**Not read: {len(result.passed_over):,}**", ""]
        lines += [f"- {_code(relative(path))}: {_plain(reason)}" for path, reason in result.passed_over[:_HEALTHY_NAMED]]
        lines += [""]
    return "\n".join(lines)


def _markdown_session(session: CheckedSession) -> Iterator[str]:
    yield f"### {session.verdict}: {_code(relative(session.log))}"
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
        yield from _fenced(session.continuation.prompt)
        yield ""
        yield "</details>"
        yield ""


def _plain(text: str) -> str:
    """Return recorded text as Markdown that shows it as it is, in one line: no markup, link or mention of its own.

    What stands between two backticks is shown as code; where they don't pair, they are characters like all others.
    """
    shown = safe(text).replace("\u23ce", " ")
    parts = shown.split("`")
    if len(parts) % 2 == 0:
        return _escaped(" ".join(shown.split()))
    return "".join(_code(part) if number % 2 and part.strip() else _escaped(part) for number, part in enumerate(parts))


def _escaped(text: str) -> str:
    shown = _MARKUP.sub(r"\\\1", text)
    # An empty comment shows as nothing and keeps "@name" from being a mention and an address from being a link.
    return _LINKED.sub(r"\1<!-- -->", shown)


def _code(text: str) -> str:
    """Return recorded text as code in a line, fenced by more backticks than it holds."""
    shown = " ".join(safe(text).split())
    fence = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _fenced(text: str) -> list[str]:
    shown = safe(text, keep_lines=True)
    fence = "`" * max(max(map(len, re.findall("`+", shown)), default=0) + 1, 3)
    return [f"{fence}text", shown, fence]


def github(result: CheckResult) -> str:
    """Return workflow commands that GitHub Actions shows as annotations, one for each unresolved finding."""
    lines: list[str] = []
    for session in result.failed:
        told = " ".join(part for part in (session.cause, session.next_step and f"Next step: {session.next_step}") if part)
        for finding in session.lasting:
            text = f"{finding.reason}. {told}" if told else finding.reason
            lines.append(
                f"::{_LEVELS[finding.severity]} file={_property(relative(session.log))},"
                f"title={_property(f'ctxmgr {finding.kind}')}::{_data(text)}"
            )
    lines += [f"::warning file={_property(relative(path))},title=ctxmgr::{_data(why)}" for path, why in result.passed_over]
    return "\n".join([*lines, f"ctxmgr: {headline(result)}", ""])


def _data(text: str) -> str:
    """Return text as a workflow command holds it; a line end would end the command and could begin another."""
    return safe(text, keep_lines=True).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def relative(path: str) -> str:
    """Return a path below the working folder relative to it, as build systems want it; any other as it is."""
    below = os.path.relpath(path) if os.path.isabs(path) else os.path.normpath(path)
    return path if below.startswith(os.pardir) else below.replace(os.sep, "/")


def junit(result: CheckResult) -> str:
    """Return JUnit XML: a suite, a case for each session, a failure for each that is stuck, an error for what was not read."""
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(root, "testsuite", {
        "name": "ctxmgr", "tests": str(len(result.sessions) + len(result.passed_over)), "failures": str(len(result.failed)),
        "errors": str(len(result.passed_over)), "skipped": "0",
    })  # fmt: skip
    for session in result.sessions:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": safe(relative(session.log)), "name": safe(session.session)}
        )
        if session.failed:
            reasons = [finding.reason for finding in session.lasting]
            failure = ElementTree.SubElement(case, "failure", {"type": session.verdict, "message": safe("; ".join(reasons))})
            failure.text = safe(session.continuation.prompt if session.continuation else "\n".join(reasons), keep_lines=True)
    for path, why in result.passed_over:
        case = ElementTree.SubElement(suite, "testcase", {"classname": safe(relative(path)), "name": "read"})
        ElementTree.SubElement(case, "error", {"type": "notRead", "message": safe(why)})
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def sarif(result: CheckResult) -> dict[str, Any]:
    """Return a SARIF 2.1.0 log: a rule for each kind of finding, a result for each unresolved finding."""
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
    told = [finding.reason, session.cause, session.next_step and f"Next step: {session.next_step}"]
    return {
        "ruleId": finding.kind, "ruleIndex": kinds.index(finding.kind), "level": _LEVELS[finding.severity],
        "message": {"text": safe("\n".join(part for part in told if part), keep_lines=True)},
        "locations": [{
            "physicalLocation": {"artifactLocation": {"uri": _uri(session.log)}},
            "logicalLocations": [{"name": safe(session.session), "kind": "session"}],
        }],
        "partialFingerprints": {"identity/v1": str(finding.evidence.get("identity", finding.id))},
    }  # fmt: skip


def _uri(path: str) -> str:
    from urllib.parse import quote

    place = quote(relative(path), errors="surrogateescape")
    return f"file://{place}" if os.path.isabs(place) else place
