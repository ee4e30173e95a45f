"""A setting that an earlier call made in its shell is gone, because each call has a shell of its own."""

from __future__ import annotations

import re

from ctxmgr.diagnose.evidence import MOST_CURRENT, Evidence
from ctxmgr.diagnose.evidence.calls import command_of
from ctxmgr.diagnose.evidence.texts import code
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "shellState"

_SETS = lazy_pattern(
    r"^\s*(?:export\s+(?P<variable>[A-Za-z_]\w{1,60})=|(?:source|\.)\s+\S|nvm use\b|conda activate\b|workon\b"
    r"|alias (?P<alias>\w{1,40})="
    r"|eval\s|asdf shell\b|pyenv shell\b|module load\b|(?:set|setx)\s+(?P<other>[A-Za-z_]\w{1,60})[= ])"
)
_LACKS = lazy_pattern(
    r"KeyError|not set|unset|undefined|unbound|missing|required|not found|No module named|not defined|must be set|is empty"
    r"|None",
    re.IGNORECASE,
)


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return what a separate call has set, and how the failing call can get it."""
    for entry in evidence.failing_calls:
        command, said = command_of(entry), evidence.text(entry)[-6_000:]
        if not command or not _LACKS.search(said):
            continue
        for other in evidence.latest_before(entry.index, MOST_CURRENT):
            match = _SETS.match(command_of(other))
            # Settings of another agent were never meant for this call.
            if match is None or other.status != "ok" or _does_more_than_set(command_of(other)) or other.agent != entry.agent:
                continue
            name = match.group("variable") or match.group("alias") or match.group("other")
            named = name is not None and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", said) is not None
            activates = name is None and re.search(r"No module named|not found|not set", said, re.IGNORECASE) is not None
            # Otherwise, the failing call sets it itself.
            if (named or activates) and command_of(other).strip() not in command:
                return _explain_lost_setting(evidence, entry, other, name)
    return _diagnose_replaced_variables(evidence) if evidence.failing_calls or evidence.repeated_calls else None


# Only an unquoted mark: after `<<'EOF'` the shell replaces nothing.
_HEREDOC = lazy_pattern(r"<<-?\s?([A-Za-z_]\w{0,20})\b[^\n]*\n(.*?)(?:\n\s*\1\b|\Z)", re.DOTALL)
_VARIABLE = lazy_pattern(r"(?<!\\)\$\{?([A-Za-z_]\w{0,40})\}?")


def _diagnose_replaced_variables(evidence: Evidence) -> Diagnosis | None:
    """Say that the shell has replaced the variables in an unquoted text, as the result shows."""
    shown = [(each, evidence.text(each)[-_MOST_SHOWN:]) for each in reversed(evidence.tail)]
    for entry in reversed(evidence.tail):
        for mark, text in _HEREDOC.findall(command_of(entry)):
            for line in text.split("\n"):
                name = _VARIABLE.search(line)
                bare = " ".join(_VARIABLE.sub("", line).split())
                # Short lines occur by chance. A variable that the command sets is meant to be replaced.
                if name is None or len(bare) < _LEAST_LINE or f"{name.group(1)}=" in command_of(entry):
                    continue
                other = next(
                    # The line appears only without its variable, so the shell has replaced the variable.
                    (each for each, said in shown if bare in " ".join(said.split()) and line.strip() not in said),
                    None,
                )
                if other is not None:
                    return _explain_replaced_variables(evidence, entry, mark, name.group(0), line.strip(), other)
    return None


_MOST_SHOWN, _LEAST_LINE = 6_000, 8
"""Last characters of a result in which a line is searched for, and characters of a line that no other has by chance."""


def _explain_replaced_variables(
    evidence: Evidence, entry: EntryView, mark: str, variable: str, line: str, other: EntryView
) -> Diagnosis:
    source = evidence.source(other)
    cause = (
        f"{code(command_of(entry), 70)} gives its text unquoted (`<<{mark}`), so the shell replaces {code(variable, 40)} by"
        f" nothing before the text is written: {source} shows {code(line, 70)} without it."
    )
    step = f"Quote the mark, so that nothing is replaced: `<<'{mark}'` (or write `\\{variable}`, or use your edit tool)."
    return diagnosis(
        KIND, cause, step, evidence.quote(entry, command_of(entry)), evidence.quote(other),
        check=f"The file must hold {code(variable, 40)}.",
    )  # fmt: skip


def _does_more_than_set(command: str) -> bool:
    """Whether a command does more than set something. Then its setting was for that purpose."""
    return re.search(r"&&|;\s*\S|\n\s*\S|\|\|", command.strip().rstrip(";")) is not None and not re.fullmatch(
        r"(?:\s*export\s+\w+=\S*\s*(?:&&|;)?)+", command
    )


def _explain_lost_setting(evidence: Evidence, entry: EntryView, other: EntryView, name: str | None) -> Diagnosis:
    what = code(name, 60) if name else f"what {code(command_of(other), 60)} sets"
    cause = (
        f"{evidence.describe_failure(entry, 80)}: {what} is not there for it. It was "
        "set by a call of"
        f" its own, {code(command_of(other), 90)}, and is lost with that: each call has its own shell."
    )
    step = f"Set it in the same call: {code(f'{command_of(other).strip().rstrip(chr(59))} && {command_of(entry)}', 170)}."
    return diagnosis(
        KIND, cause, step, evidence.quote(entry), evidence.quote(other, command_of(other)),
        check="The call must no longer miss it.",
    )  # fmt: skip
