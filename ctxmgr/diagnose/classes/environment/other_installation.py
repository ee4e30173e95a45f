"""A missing module is installed, but for another interpreter or environment."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxmgr.diagnose.errors.refusals import last_match
from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.diagnose.evidence.calls import command_of
from ctxmgr.diagnose.evidence.texts import code
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "otherInstallation"

_MISSING = lazy_pattern(r"No module named '?([\w.]{1,80})'?")
_INSTALLS = lazy_pattern(
    r"\b(?:pip3?(?:\.\d+)?|uv pip|conda|poetry)\b[^|;&]{0,80}\b(?:install|add|show|--version|list)\b|\bpip3? --version"
)
# The place where pip installs: `/usr/lib/python3.11/`, `(python 3.11)`, or the name of a wheel, `cp311-cp311`
_INTO = lazy_pattern(r"/python(\d\.\d{1,2})/|\(python (\d\.\d{1,2})\)|\bcp(\d)(\d{1,2})-cp\d|(/[\w./-]{1,80})/lib/python")
_RUNS = lazy_pattern(
    r"\b(python(\d\.\d{1,2}))\b|File \"[^\"\n]{0,120}?/python(\d\.\d{1,2})/|(?:^|[\s;&])((?:[\w./~-]{1,80}/)python[\d.]*)\s"
)
_ENVIRONMENT = lazy_pattern(
    r"(?:^|[\s;&|])(?:(?:source|\.)\s+)?([\w./~-]{1,80})/bin/(?:activate|pip[\d.]*|python[\d.]*)(?=[\s;&|]|$)"
)
_SYSTEM = ("/usr", "/usr/local", "")
_ELSEWHERE = lazy_pattern(r"\b(?:uv|poetry|pipenv|hatch|pdm|conda|tox|nox|docker|podman|ssh|kubectl)\b")
"""Programs that choose an environment themselves, so that the command does not show which one."""
_RUN = lazy_pattern(r"(^|[;&|]\s*)(?:/usr/(?:local/)?bin/)?python[\d.]*(?=\s)")


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return for which interpreter the module was installed, and which one runs."""
    for entry in evidence.failing_calls:
        missing = last_match(_MISSING, evidence.text(entry)[-6_000:])
        if missing is None:
            continue
        name = missing.group(1)
        runs = _read_version(_RUNS.search(f"{command_of(entry)}\n{evidence.text(entry)[:6_000]}"))
        found = _diagnose_environment(evidence, entry, name) or _diagnose_other_version(evidence, entry, name, runs)
        if found is not None:
            return found
    return None


def _list_installs(evidence: Evidence, entry: EntryView) -> Iterator[EntryView]:
    """Yield the calls that installed something: those before a failing call, the latest first, then those after it."""
    behind = [each for each in evidence.recent if each.index > entry.index]
    for other in [*evidence.latest_before(entry.index), *behind]:
        if other.status == "ok" and _INSTALLS.search(command_of(other)):
            yield other


def _diagnose_other_version(evidence: Evidence, entry: EntryView, name: str, runs: str | None) -> Diagnosis | None:
    """Say that it was installed for another version of Python. An installation for the same version would not explain it."""
    for other in _list_installs(evidence, entry) if runs is not None else ():
        into = _read_version(_INTO.search(evidence.text(other)[:8_000]))
        if into not in (None, runs):
            return _explain_other_version(evidence, entry, name, str(runs), str(into), other)
    return None


def _diagnose_environment(evidence: Evidence, entry: EntryView, name: str) -> Diagnosis | None:
    """Say that a virtual environment has it, while the failing call runs a Python outside of it."""
    call, top = command_of(entry), name.partition(".")[0].casefold()
    runs = _find_used_environment(call)
    # An activated shell may live on, so that its environment runs the call.
    activated = any(command_of(each).endswith("bin/activate") for each in evidence.recent)
    if _ELSEWHERE.search(call) or (activated and not runs):
        return None
    for other in _list_installs(evidence, entry):
        into = _find_used_environment(command_of(other))
        listing = re.sub(r"[-.]", "_", f"{command_of(other)}\n{evidence.text(other)[:8_000]}".casefold())
        if into not in (*_SYSTEM, runs) and re.search(rf"(?<![a-z\d]){re.escape(top)}(?![a-z\d])", listing):
            return _explain_environment(evidence, entry, name, into, other)
    return None


def _explain_environment(evidence: Evidence, entry: EntryView, name: str, into: str, other: EntryView) -> Diagnosis:
    call = command_of(entry)
    inside = _RUN.sub(rf"\g<1>{into}/bin/python", call, count=1)
    step = f"Run it with the Python that has it: {code(inside, 120)}."
    if inside == call:
        step = f"Run it in that environment: {code(f'. {into}/bin/activate && {call}', 140)}."
    cause = (
        f"{evidence.describe_failure(entry, 80)}: {code(name, 50)} is installed in the environment "
        f"{code(into, 60)} ({code(command_of(other), 60)}), and the Python that runs the call does not look there."
    )
    return diagnosis(
        KIND, cause, step, evidence.quote(entry), evidence.quote(other),
        check=f"The message about {code(name, 50)} must be gone.",
    )  # fmt: skip


def _find_used_environment(command: str) -> str:
    """Return the last environment whose Python or pip a command uses, or "" if it names none."""
    return next((match.group(1) for match in reversed(list(_ENVIRONMENT.finditer(command)))), "")


def _read_version(match: re.Match[str] | None) -> str | None:
    if match is None:
        return None
    groups = [group for group in match.groups() if group]
    text = ".".join(groups) if len(groups) == 2 and all(group.isdigit() for group in groups) else groups[-1]
    return text if re.fullmatch(r"\d\.\d{1,2}", text) else None


def _explain_other_version(
    evidence: Evidence, entry: EntryView, name: str, runs: str, into: str, other: EntryView
) -> Diagnosis:
    command = code(command_of(other), 60)
    cause = (
        f"{evidence.describe_failure(entry, 80)}: it runs with Python {runs}, which "
        "has no"
        f" {code(name, 50)}. {command} installs for Python {into}, another interpreter."
    )
    package = re.search(r"install\s+(?:-\S+\s+)*([\w.\[\]=<>~-]{1,60})", command_of(other))
    what = package.group(1) if package else name
    step = f"Install it with the very interpreter that runs it: {code(f'python{runs} -m pip install {what}', 100)}."
    return diagnosis(
        KIND, cause, step, evidence.quote(entry), evidence.quote(other),
        check=f"The message about {code(name, 50)} must be gone.",
    )  # fmt: skip
