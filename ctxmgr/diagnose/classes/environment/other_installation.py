"""A missing module exists: for another interpreter or environment, or in the project under another folder."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxmgr.diagnose.errors.refusals import last_match
from ctxmgr.diagnose.evidence import Evidence, program_name
from ctxmgr.diagnose.evidence.calls import command_of, path_of
from ctxmgr.diagnose.evidence.texts import code, plain_name
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
_PYTHON = lazy_pattern(r"(?<![\w./-])python(?=[\d.]*\s)")


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return for which interpreter the module was installed, and which one runs."""
    for entry in evidence.failing_calls:
        missing = last_match(_MISSING, evidence.text(entry)[-6_000:])
        if missing is None:
            continue
        name = missing.group(1)
        runs = _read_version(_RUNS.search(f"{command_of(entry)}\n{evidence.text(entry)[:6_000]}"))
        found = (
            _diagnose_environment(evidence, entry, name)
            or (_diagnose_project_module(evidence, entry, name) if runs is None else None)
            or _diagnose_other_version(evidence, entry, name, runs)
            or _diagnose_other_form(evidence, entry, name)
            or _diagnose_installed_before(evidence, entry, name)
        )
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


# "Requirement already satisfied: lxml>=5 in /usr/lib/python3/dist-packages (5.1)", "Successfully installed idna-3.7 lxml-5.1"
_HAS = (
    r"(?im)^(?:requirement already satisfied: {0}(?![\w.-])(?:.* in (?P<place>/[\w./+-]{{1,160}}))?"
    r"|successfully installed (?:.* )?{0}-\d)"
)
_WHICH_PYTHON = "`python -c 'import sys; print(sys.executable)'`"
_MODULES = ("pytest", "flask", "celery", "uvicorn", "gunicorn", "coverage", "mypy", "pylint", "alembic")
"""Programs that are modules, too, so that any Python that has them can run them."""
_MANAGES = lazy_pattern(r"\b(?:pip[\d.]*|uv|conda|mamba|poetry|pdm|pipenv)\b")
_OTHER_PLACE = lazy_pattern(r"\buninstall\b|\s(?:-t|--target|--prefix|--root)\b")


def _diagnose_other_form(evidence: Evidence, entry: EntryView, name: str) -> Diagnosis | None:
    """Say that the program works as a module of a Python, which has what the program's own interpreter lacks."""
    program = program_name(entry)
    form = re.compile(rf"\b(python[\d.]* -m {re.escape(program)})\b")
    for other in evidence.latest if program in _MODULES else ():
        match = form.search(command_of(other))
        if match is None or not evidence.has_succeeded(other):
            continue
        # What was installed or removed between the two calls explains the difference as well.
        first, last = sorted((entry.index, other.index))
        if any(first < each.index < last and _MANAGES.search(command_of(each)) for each in evidence.recent):
            continue
        cause = (
            f"{evidence.describe_failure(entry, 80)}: the Python that runs it has no {code(name, 50)}, and the one of "
            f"{evidence.source(other)} has it: that call works."
        )
        step = f"Use {code(match.group(1), 60)} in the place of {code(program, 40)}, with the same arguments."
        return diagnosis(
            KIND, cause, step, evidence.quote(other), evidence.quote(entry),
            check=f"The message about {code(name, 50)} must be gone.",
        )  # fmt: skip
    return None


def _diagnose_installed_before(evidence: Evidence, entry: EntryView, name: str) -> Diagnosis | None:
    """Say that pip has it, so that the failing call runs another interpreter than pip's."""
    # Of `lxml.html` the package may well be there. Some programs choose an environment themselves.
    if "." in name or _ELSEWHERE.search(command_of(entry)):
        return None
    has = re.compile(_HAS.format(re.escape(name).replace("_", "[_.-]")))
    for other in evidence.latest_before(entry.index):
        command = command_of(other)
        if "pip" in command and _OTHER_PLACE.search(command):
            return None
        match = has.search(evidence.text(other)) if evidence.has_succeeded(other) and _INSTALLS.search(command) else None
        if match is None:
            continue
        place = f" in {code(match.group('place'), 90)}" if match.group("place") else ""
        cause = (
            f"{evidence.describe_failure(entry, 80)}: the Python that runs it has no {code(name, 50)}, while "
            f"{evidence.source(other)} says that it is installed{place}. So pip is of another interpreter."
        )
        program = program_name(entry)
        own = program in _MODULES
        step = (
            "See both: `pip --version` names the Python of pip, "
            f"{f'`head -1 $(command -v {program})`' if own else _WHICH_PYTHON} the one that runs. Then run it with the "
            f"one that has it{f', `PYTHON -m {program}`' if own else ''}, or install it for the other, "
            f"{code(f'PYTHON -m pip install {name}', 80)}."
        )
        return diagnosis(
            KIND, cause, step, evidence.quote(entry), evidence.quote(other),
            check=f"The message about {code(name, 50)} must be gone.",
        )  # fmt: skip
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


def _diagnose_project_module(evidence: Evidence, entry: EntryView, name: str) -> Diagnosis | None:
    """Say that the module belongs to the project, while Python looks only in the script's own folder."""
    top = name.partition(".")[0]
    place = re.compile(rf"(?:(?P<root>[\w./@+-]{{1,120}})/)?{re.escape(top)}(?:\.py|/[\w./]{{1,80}})")
    script = re.search(r"python[\d.]*\s+((?:[\w.-]{1,40}/)+)([\w-]{1,60})\.py\b", command_of(entry))
    for other in evidence.latest_before(entry.index):
        path = evidence.relative_path(path_of(other) or "")
        match = place.fullmatch(path)
        if other.status != "ok" or match is None or not path.endswith(".py"):
            continue
        root = match.group("root") or "."
        # The path was set already, without success.
        if not plain_name(root) or f"PYTHONPATH={root}" in command_of(entry):
            return None
        cause = (
            f"{code(command_of(entry), 80)} fails: {code(top, 50)} is a package of the project itself, in {code(root, 60)}"
            f" ({code(path, 80)}), and Python looks beside the script and among what is installed alone."
        )
        step = (
            f"Name that folder for the call: {code(_PYTHON.sub(f'PYTHONPATH={root} python', command_of(entry), count=1), 120)}"
        )
        if script is not None and root == ".":
            module = f"{script.group(1).replace('/', '.')}{script.group(2)}".strip(".")
            step += f", or run it as a module from there, {code(f'python -m {module}', 60)}"
        return diagnosis(
            KIND, cause, f"{step}.", evidence.quote(entry), evidence.quote(other, path),
            check=f"The message about {code(name, 50)} must be gone.",
        )  # fmt: skip
    return None


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
