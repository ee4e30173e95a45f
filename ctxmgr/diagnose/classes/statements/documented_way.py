"""A command lacks an option, a variable or a runner that the project's own notes show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ctxmgr.diagnose.errors.refusals import unknown_names
from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.diagnose.evidence.calls import command_of, path_of, split_command
from ctxmgr.diagnose.evidence.messages import forbids
from ctxmgr.diagnose.evidence.texts import LINE_NUMBER, capital, code, find_line, join_names, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.finding import Diagnosis, Quote
from ctxmgr.types.view import EntryView

KIND: str = "documentedWay"

_LACKS = lazy_pattern(
    r"can(?:not|['’]t)(?: be)? (?:locate|find|load|resolve|open|import)|cannot be found|could not (?:find|locate"
    r"|load|resolve|open)|no module named|module not found|not found|no such file"
    r"|is not set|must be set|unset|undefined|not defined|missing|not installed|unable to (?:find|locate|resolve"
    r"|load)|no package|not (?:a|in a|inside) \w+ (?:repository|project|workspace|directory)"
    r"|fatal error: [\w./-]+: No such|ClassNotFoundException|NoClassDefFound|unresolved import|KeyError|LoadError"
    r"|cannot open shared object|not available|required",
    re.IGNORECASE,
)
_DOCS = lazy_pattern(
    r"(?:README|CONTRIBUTING|HACKING|INSTALL|DEVELOP\w*|AGENTS|CLAUDE|NOTES|RUNBOOK|Makefile|justfile"
    r"|package\.json|tox\.ini|noxfile)|\.(?:md|rst|txt|adoc)\b|\bdocs?/",
    re.IGNORECASE,
)
_INLINE = lazy_pattern(r"`([^`\n]{4,90})`")
_BLOCK = lazy_pattern(rf"^(?:{LINE_NUMBER} {{0,8}}(?:\$ )?| {{4,8}}|\t|\$ |> )(\S[^\n]{{3,88}})$", re.MULTILINE)
# Only words, options and variables: quotes, pipes and `$(...)` on a page by an unknown author could run more than is visible.
_SAFE = lazy_pattern(
    r"(?:[A-Z][A-Z0-9_]{1,30}=[\w./:@+,-]{0,60} )*[A-Za-z.][\w./@+-]{0,60}(?: [\w./=:@+,%{}\[\]*-]{1,60}){0,8}"
)
_NEVER = word_set(
    "curl wget sh bash zsh sudo rm eval chmod chown dd mkfs kill ssh scp nc git docker kubectl aws gcloud open echo cat ls cd"
)


class _Way(NamedTuple):
    """A command that a note names. ``added`` are its words that no failing call has."""

    command: str
    added: list[str]
    source: str
    quote: Quote
    by_user: bool


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return which documented command the failing call lacks."""
    for entry in evidence.failing_calls:
        command = command_of(entry)
        said = evidence.text(entry)[:8_000]
        # A note says how to get what is missing, not how to repair a test.
        if not command or not _LACKS.search(said):
            continue
        missing = list(dict.fromkeys(each.name for each in unknown_names(said) if plain_name(each.name)))[:2]
        way = _find_way(evidence, entry, command)
        if way is not None:
            return _explain_way(evidence, entry, missing, way)
    return None


def _explain_way(evidence: Evidence, entry: EntryView, missing: list[str], way: _Way) -> Diagnosis:
    lack = f": it does not find {join_names(missing)}" if missing else ""
    cause = (
        f"{evidence.describe_failure(entry, 90)}{lack}. "
        f"{capital(way.source)} names another way, {code(way.command, 90)}, with "
        f"{join_names(way.added, 3)}, which you have not tried."
    )
    step = (
        f"Run it the way the user said: {code(way.command, 90)}."
        if way.by_user
        else f"That note says {code(way.command, 90)}; if you trust it, run your command that way, with "
        f"{join_names(way.added, 3)}. Install nothing before that."
    )
    return diagnosis(
        KIND, cause, step, evidence.quote(entry), way.quote,
        check="What was missing must be found; only then judge the rest of the output.",
    )  # fmt: skip


def _find_way(evidence: Evidence, entry: EntryView, command: str) -> _Way | None:
    """Return the command of a note that is similar to a failing one and has words that no call of the session had."""
    commands = "\n".join(command_of(each) for each in evidence.recent)
    for text, source, quote, by_user in _list_notes(evidence, entry):
        for each in _list_commands(text):
            # A note may show a command as one not to run.
            if forbids(find_line(text, each, "")) is not None:
                continue
            added = _find_added_words(each, command, commands)
            if added:
                return _Way(each, added, source, quote, by_user)
    return None


def _list_commands(text: str) -> Iterator[str]:
    """Yield the commands in a note that run a single program and are not dangerous."""
    for pattern in (_BLOCK, _INLINE):
        for match in pattern.finditer(text[:20_000]):
            each = match.group(1).strip()
            words = split_command(each)
            if (
                _SAFE.fullmatch(each)
                and words
                # A note's command that fetches, deletes or needs privileges is never passed on.
                and words[0][0] not in _NEVER
                and len(words) == 1
                and (len(words[0]) > 1 or "=" in each)
            ):
                yield each


def _find_added_words(documented: str, command: str, tried: str) -> list[str]:
    """Return the words of a documented command that no call has had, if it is a form of the failing command."""
    theirs = documented.split()
    own = [words for words in split_command(command) if words]
    heads = {words[0].rpartition("/")[2] for words in own}
    arguments = {word for words in own for word in words[1:] if not word.startswith("-")}
    head = next((word for word in theirs if "=" not in word), theirs[0])
    rest = [word for word in theirs[theirs.index(head) + 1 :] if not word.startswith("-")]
    shared = any(_is_within(word, each) for word in rest for each in arguments)
    same = head.rpartition("/")[2] in heads and (not rest or shared or not arguments or rest[0] in arguments)
    wraps = any(word in heads for word in rest) and shared
    # A documented command for another program or other files does not help.
    if not (same or wraps or (shared and len(rest) > 0)):
        return []
    return [word for word in theirs if (word.startswith("-") or "=" in word or (wraps and word == head)) and word not in tried]


def _is_within(place: str, word: str) -> bool:
    return len(place) > 1 and (
        word == place or (place.endswith("/") and word.startswith(place)) or word.startswith(f"{place}/")
    )


def _list_notes(evidence: Evidence, entry: EntryView) -> Iterator[tuple[str, str, Quote, bool]]:
    for message in reversed(evidence.user_texts):
        yield message.text, "the user", evidence.quote_message(message), True
    for other in evidence.latest_before(entry.index):
        # Only notes and manifests speak for the project. Any other output may be a stranger's.
        if other.status == "ok" and _DOCS.search(f"{path_of(other) or ''} {command_of(other)}"):
            text = evidence.text(other)
            yield text, evidence.source(other), evidence.quote(other, text[:300]), False
