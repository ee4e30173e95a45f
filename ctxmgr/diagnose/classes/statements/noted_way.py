"""A call fails, and a note that was read is about the failure: a README, a runbook, a comment, an exported variable."""

from __future__ import annotations

import re

from ctxmgr.diagnose.evidence import Evidence, program_name
from ctxmgr.diagnose.evidence.calls import command_of
from ctxmgr.diagnose.evidence.texts import LINE_NUMBER, capital, code, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.related.notes import diagnose_note, failure_text
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "notedWay"

_MOST_CALLS = 3
# `export A=b`, a Dockerfile's `ENV A=b`, `set A=b` in Windows, `$env:A=b` in PowerShell
_EXPORT = lazy_pattern(
    rf"^(?:{LINE_NUMBER}|\s{{0,6}})(?:export |ENV |set |\$env:)?([A-Z][A-Z0-9_]{{2,30}})=[\"']?([\w./:@+-]{{2,120}})",
    re.MULTILINE,
)
_OF_PROGRAM = {
    "node": "NODE_", "npm": "NPM_ NODE_", "npx": "NODE_", "psql": "PG", "pg_dump": "PG", "python": "PYTHON VIRTUAL_ENV",
    "java": "JAVA_ CLASSPATH", "javac": "JAVA_ CLASSPATH", "mvn": "JAVA_ MAVEN_", "gradle": "JAVA_ GRADLE_", "aws": "AWS_",
    "kubectl": "KUBE", "helm": "KUBE HELM_", "go": "GO", "perl": "PERL5LIB", "prove": "PERL5LIB", "docker": "DOCKER_",
    "mysql": "MYSQL_", "ruby": "RUBY GEM_ BUNDLE_", "bundle": "BUNDLE_ GEM_", "cargo": "CARGO_ RUST", "terraform": "TF_",
    "gcc": "CPATH C_INCLUDE_PATH", "pkg-config": "PKG_CONFIG_PATH", "lua": "LUA_PATH", "R": "R_LIBS", "gh": "GH_",
    "git": "GIT_", "ansible": "ANSIBLE_", "ansible-playbook": "ANSIBLE_", "vault": "VAULT_", "redis-cli": "REDIS", "php": "PHP",
}  # fmt: skip
"""Prefixes of the variables that a program reads."""
_LACKS = lazy_pattern(
    r"not find|can['’]?t (?:find|locate|open)|not found|no module|no such|unable to (?:find|locate)|not set|unset|refused"
    r"|could not|does not exist|credentials|denied|unauthori[sz]ed",
    re.IGNORECASE,
)
_OTHER = lazy_pattern(r"AssertionError|timed out|[?:\]] ?\Z")
"""Failed expectations of a check, and waits. No note explains these."""


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return the note that is about the failure of a call."""
    # A hung call has said nothing that a note could be about.
    if evidence.is_hung:
        return None
    for entry in evidence.failing_calls[:_MOST_CALLS]:
        if _OTHER.search(evidence.text(entry)[-4_000:]):
            continue
        if (found := _diagnose_exported_variable(evidence, entry) or diagnose_note(KIND, evidence, entry)) is not None:
            return found
    return None


def _diagnose_exported_variable(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Return the variable of the program that a project file sets and no call has."""
    program = program_name(entry).rstrip("0123456789.") if command_of(entry) else ""
    begins = tuple(_OF_PROGRAM.get(program, "").split())
    said = evidence.text(entry)[:8_000]
    # A program that reads variables may fail for any other reason.
    if not begins or not _LACKS.search(said):
        return None
    calls = "\n".join(command_of(each) for each in evidence.recent)
    for other in evidence.latest_before(entry.index):
        # An error repeats variables without setting them.
        if not evidence.has_succeeded(other):
            continue
        found = [(name, value) for name, value in _EXPORT.findall(evidence.text(other)[:20_000])
                 if name.startswith(begins) and f"{name}=" not in calls and plain_name(value)]  # fmt: skip
        if not found:
            continue
        variables = " ".join(f"{name}={value}" for name, value in found[:2])
        cause = (
            f"{failure_text(evidence, entry)} {capital(evidence.source(other))} sets {code(variables, 140)}, and no call of "
            "this session has it: a shell that reads no such file runs without."
        )
        better = re.sub(
            rf"(?<![\w./-]){re.escape(program_name(entry))}(?=\s)",
            lambda ran, variables=variables: f"{variables} {ran.group(0)}",
            command_of(entry),
            count=1,
        )
        step = f"Run it with that variable, if you trust the file: {code(better, 200)}."
        return diagnosis(
            KIND, cause, step, evidence.quote(other), evidence.quote(entry), check="The message must be gone.",
            confidence="medium",
        )  # fmt: skip
    return None
