"""A setting that an earlier call made in its shell is gone, because each call has a shell of its own."""

from __future__ import annotations

import re

from ctxmgr.diagnose.evidence import MOST_CURRENT, Evidence
from ctxmgr.diagnose.evidence.calls import command_of
from ctxmgr.diagnose.evidence.messages import split_sentences
from ctxmgr.diagnose.evidence.texts import capital, code, contains_word, join_names
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis, Quote
from ctxmgr.types.view import EntryView

KIND: str = "shellState"

_SETS = lazy_pattern(
    r"^\s*(?:(?:export|declare\s+-\w*x\w*|typeset\s+-x)\s+[A-Za-z_]\w{1,60}=|(?:source|\.)\s+\S|nvm use\b|conda activate\b"
    r"|workon\b|alias \w{1,40}="
    r"|eval\s|asdf shell\b|pyenv shell\b|module load\b|(?:set|setx)\s+(?P<other>[A-Za-z_]\w{1,60})[= ])"
)
_LACKS = lazy_pattern(
    r"KeyError|not set|unset|undefined|unbound|missing|required|not found|No module named|not defined|must be set|is empty"
    r"|None|not configured|no value|needs?\b|please (?:set|define|export)|environment variable|env var",
    re.IGNORECASE,
)


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return what a separate call has set, and how the failing call can get it."""
    for entry in evidence.failing_calls:
        command, said = command_of(entry), evidence.text(entry)[-6_000:]
        if not command or not _LACKS.search(said):
            continue
        for other in evidence.latest_before(entry.index, MOST_CURRENT):
            setting = _find_setting(evidence, other)
            # Settings of another agent were never meant for this call.
            if not setting or other.status != "ok" or other.agent != entry.agent:
                continue
            names = [name for name in _list_names(evidence, other, setting) if contains_word(name, said)]
            activates = not _ASSIGNS.search(setting) and re.search(r"No module named|not found|not set", said, re.IGNORECASE)
            # Otherwise, the failing call sets it itself.
            if (names or activates) and setting not in command and not _is_kept(evidence, other, names):
                return _explain_lost_setting(evidence, entry, other, setting, names)
    return _diagnose_replaced_variables(evidence) if evidence.failing_calls or evidence.repeated_calls else None


_ASSIGNS = lazy_pattern(r"^(?:(?:export|declare|typeset|alias|setx?)\s[^=]*=|export\s)")
_BESIDE = lazy_pattern(r"^(?:echo\b|printf\b|true$|:$|set [-+]a$|set [-+]o allexport$|cd\b)")
_JOINED = lazy_pattern(r"\s*(?:&&|;|\n)\s*")
_NAMES = lazy_pattern(r"(?:^|[\s;])(?:export\s+|declare\s+-\w+\s+|typeset\s+-\w+\s+|alias\s+)?([A-Za-z_]\w{1,60})=")
_SOURCED = lazy_pattern(r"(?:^|[\s;&])(?:source|\.)\s+([\w./~-]{1,200})")
_OF_SHELL = lazy_pattern(
    r"(?i)\b(?:calls?|commands?|invocations?|runs?)\b[^.]{0,60}\b(?:own|new|fresh|separate|another) (?:process|shell|session"
    r"|subshell)|\b(?:does not|do not|doesn't|don't|not|never|nothing|no)\b[^.]{0,60}\b(?:persist\w*|carr(?:y|ied) over|kept"
    r"|preserved|survive\w*|seen by the next|shared between)\b"
    r"|\b(?:own|new|fresh|separate) (?:process|shell|subshell) (?:for|per|of) (?:each|every)"
)
"""Words of a tool's description that say that each call has a shell of its own."""


def _find_setting(evidence: Evidence, entry: EntryView) -> str:
    """Return the part of a command that sets something in its shell, if it does nothing else; else ""."""
    command = command_of(entry).strip().rstrip(";")
    parts = [part for part in _JOINED.split(command) if part]
    sets = [part for part in parts if _SETS.match(part)]
    if not sets or "||" in command or not all(part in sets or _BESIDE.match(part) for part in parts):
        return ""
    # What stands beside it belongs to it if it decides how it sets: `set -a; source env.sh; set +a`.
    return command if any(part.startswith("set ") for part in parts) and parts != sets else " && ".join(sets)


def _list_names(evidence: Evidence, entry: EntryView, setting: str) -> list[str]:
    """Return the names that a command sets, also by the files that it reads."""
    found = list(_NAMES.findall(setting))
    found += [match["other"] for match in [_SETS.match(setting)] if match is not None and match["other"]]
    for path in _SOURCED.findall(setting):
        content = evidence.last_content(path, entry.index)
        found += [name for line in content.lines[:400] for name in _NAMES.findall(line)] if content is not None else []
    return list(dict.fromkeys(found))


def _is_kept(evidence: Evidence, setter: EntryView, names: list[str]) -> bool:
    """Whether a later call of its own shows that the shell keeps what was set: it prints one of the variables."""
    for each in evidence.recent:
        command = command_of(each)
        if each.index > setter.index and each.status == "ok" and not _SETS.search(command):
            for name in names:
                printed = re.search(rf"^{re.escape(name)}=\S", evidence.text(each)[:4_000], re.MULTILINE)
                echoed = re.fullmatch(rf"echo \"?\$\{{?{re.escape(name)}\}}?\"?", command.strip())
                if (printed and re.search(r"\b(?:env|printenv|export -p|set)\b", command)) or (
                    echoed and evidence.text(each).strip()
                ):
                    return True
    return False


def _find_rule(evidence: Evidence) -> Quote | None:
    """Return the sentence of a message or a tool's description which says that each call has a shell of its own."""
    for message in evidence.messages:
        for sentence in split_sentences(message.text) if message.by != "agent" else ():
            if _OF_SHELL.search(sentence):
                return evidence.quote_message(message, sentence)
    return None


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


def _explain_lost_setting(evidence: Evidence, entry: EntryView, other: EntryView, setting: str, names: list[str]) -> Diagnosis:
    what = join_names(names, 3) if names else f"what {code(setting, 60)} sets"
    rule = _find_rule(evidence)
    said = "" if rule is None else f" {capital(rule.source)} says so: {code(rule.text, 110)}."
    many = len(names) > 1
    lost = "are not there for it. They were set" if many else "is not there for it. It was set"
    cause = (
        f"{evidence.describe_failure(entry, 80)}: {what} {lost} by a call of its own, {code(command_of(other), 90)}, and"
        f" {'are' if many else 'is'} lost with that: each call has its own shell.{said}"
    )
    step = f"Set it in the same call: {code(f'{setting} && {command_of(entry)}', 170)}."
    quotes = [evidence.quote(entry), evidence.quote(other, command_of(other)), *([] if rule is None else [rule])]
    return diagnosis(KIND, cause, step, *quotes, check="The call must no longer miss it.")
