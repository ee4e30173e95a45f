"""A module or interpreter is missing although the record names the environment that has it."""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxmgr.diagnose.errors.refusals import last_match
from ctxmgr.diagnose.evidence import Evidence, clock, program_name
from ctxmgr.diagnose.evidence.calls import command_of, path_of
from ctxmgr.diagnose.evidence.messages import forbids
from ctxmgr.diagnose.evidence.texts import code, find_line, first_group
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis, Quote
from ctxmgr.types.view import EntryView

KIND: str = "environmentMissing"

_MISSING = lazy_pattern(
    r"(?:ModuleNotFoundError: |ImportError: )?No module named '?([\w.]{1,80})'?"
    r"|(?:^|[\s:])(pytest|python[\d.]*|pip[\d.]*|ruff|mypy|flask|django-admin|uvicorn|alembic|celery|tox"
    r"|black): (?:command )?not found|env: ['‘]?(python[\d.]*|node)['’]?: No such file"
)
# `.venv/bin/python`, `env/bin/pytest`, `../venv-3.11/bin/pip3.11`
_BIN = (
    r"(?:[\w.~-]{1,40}/){0,8}\.?(?:virtual)?v?env[\w.-]{0,30}/(?:[\w.-]{1,40}/){0,2}bin/(?:python(?:\d+(?:\.\d+)?)?|pytest|pip(?:\d+(?:\.\d+)?)?"
    r"|activate|[a-z]\w{1,20})"
)
_ENVIRONMENT = lazy_pattern(
    rf"(?<![\w./-])(/?{_BIN})(?![\w/-])|\b((?:uv|poetry|pipenv|hatch|pixi|rye) run)\b"
    rf"|\b((?:conda|(?:micro)?mamba) (?:activate|run -n) [\w.-]{{1,40}})\b"
)
_PYTHON = lazy_pattern(r"(?<![\w./-])(python(?:\d+(?:\.\d+)?)?|pytest|pip(?:\d+(?:\.\d+)?)?)(?=\s|$)")

_WHICH = lazy_pattern(r"\b(?:which|command -v|type -p|where|whereis)\b")


class NamedEnvironment(NamedTuple):
    """An environment, the source that named it (None: recorded output), and the quote from there."""

    text: str
    by: str | None
    quote: Quote
    rank: int


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return the environment in the record that has the missing module."""
    for entry in evidence.failing_calls:
        command = command_of(entry)
        match = last_match(_MISSING, evidence.text(entry)[-8_000:]) if command else None
        if match is None:
            continue
        missing = first_group(match)
        # other_folder and other_installation handle the project's own modules.
        if _is_project_module(evidence, missing):
            continue
        named = find_environment(evidence, entry, command)
        if named is not None:
            return _explain_environment(evidence, entry, command, missing, named)
    return None


def _is_project_module(evidence: Evidence, module: str) -> bool:
    """Whether the module is the project's own. Then no environment has it, and the folder is wrong."""
    top = re.escape(module.partition(".")[0])
    own = re.compile(rf"(?:^|/){top}(?:\.py$|/)")
    return any(own.search(evidence.relative_path(path)) for entry in evidence.recent if (path := path_of(entry)))


def _explain_environment(
    evidence: Evidence, entry: EntryView, command: str, missing: str, named: NamedEnvironment
) -> Diagnosis:
    cause = f"{evidence.describe_failure(entry, 90)}: {code(missing, 60)} is not there for the interpreter it runs with. "
    corrected = _correct_command(command, named.text)
    if named.by is None:
        cause += f"The output of {named.quote.source} names another environment: {code(named.text, 100)}."
        step = f"The output says {code(named.text, 100)}; if you trust it, run your command with that environment."
        confidence = "medium"
    else:
        cause += f"{named.by} {code(named.text, 100)}."
        step = f"Run {code(corrected, 160)}." if corrected else f"Run the command in that environment, {code(named.text, 100)}."
        confidence = "high"
    check = f"The message about {code(missing, 60)} must be gone."
    return diagnosis(
        KIND, cause, step, evidence.quote(entry, find_line(evidence.text(entry), missing)), named.quote, check=check,
        confidence="high" if confidence == "high" else "medium",
    )  # fmt: skip


def find_environment(evidence: Evidence, entry: EntryView, command: str) -> NamedEnvironment | None:
    """Return the environment with the most reliable source: a person, a call that worked, or recorded output."""
    failed = {found for each in evidence.failing_calls for found in _list_environments(command_of(each))}
    for message in reversed(evidence.user_texts):
        for text in _list_environments(message.text):
            sentence = next((each for each in re.split(r"(?<=[.!?])\s|\n", message.text) if text in each), "")
            # An environment that the user forbids, or that failed already, is no remedy.
            if text not in failed and text not in command and not forbids(sentence):
                return NamedEnvironment(
                    text, f"The user named the environment{clock(message.at)}:", evidence.quote_message(message), 0
                )
    output: NamedEnvironment | None = None
    own = _find_program_folders(evidence, entry)
    for other in evidence.latest_before(entry.index):
        # Only a call that worked shows that an environment is in use.
        if other.status != "ok":
            continue
        ran = command_of(other)
        for text in _list_environments(ran):
            # pip runs in an environment, but is none.
            if text not in failed and not text.endswith("/pip"):
                by = f"Your {code(ran, 80)} worked{clock(other.ts)} with"
                return NamedEnvironment(text, by, evidence.quote(other, ran), 1)
        if output is None:
            said = evidence.text(other)
            output = next(
                (
                    NamedEnvironment(text, None, evidence.quote(other, find_line(said, text)), 2)
                    for text in _list_environments(said)
                    # The environment in the program's own folder lacks the module.
                    if text not in failed and text not in command and text.rpartition("/")[0] not in own
                ),
                None,
            )
    return output


def _find_program_folders(evidence: Evidence, entry: EntryView) -> set[str]:
    """Return the folders in which a look-up found the failing program. Their environment is the one in use."""
    program = program_name(entry)
    lines = [
        line.strip()
        for other in evidence.latest_before(entry.index)
        if _WHICH.search(command_of(other))
        for line in evidence.text(other).split("\n")
    ]
    return {line.rpartition("/")[0] for line in lines if line.endswith(f"/{program}")}


def _list_environments(text: str) -> list[str]:
    # Most texts name no environment, and the pattern is slow.
    if "env" not in text and " run" not in text and "conda" not in text and "mamba" not in text:
        return []
    found = [first_group(match) for match in _ENVIRONMENT.finditer(text[:20_000])]
    fair = [each for each in found if not each.endswith(("/activate", "/pip"))] or found
    return sorted(fair, key=lambda each: "/bin/python" not in each)


def _correct_command(command: str, environment: str) -> str | None:
    """Return the command as the environment would run it, or None if that can't be told."""
    match = _PYTHON.search(command)
    # The command runs no interpreter whose path could be replaced.
    if match is None:
        return None
    program = match.group(1)
    if environment.endswith("/activate"):
        return f"source {environment} && {command}"
    if "/bin/" in environment:
        folder = environment.rpartition("/")[0]
        own = environment if environment.rpartition("/")[2].rstrip("0123456789.") == program.rstrip("0123456789.") else None
        return f"{command[: match.start()]}{own or f'{folder}/{program}'}{command[match.end() :]}"
    if environment.startswith("conda activate"):
        return f"{environment} && {command}"
    return f"{command[: match.start()]}{environment} {command[match.start() :]}"
