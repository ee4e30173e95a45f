"""A constraint of the user is broken again and again: what they forbade is tried, or what they protected is changed."""

from __future__ import annotations

import re

from ctxmgr.diagnose.calls import changes_of, command_of, parts_of, patched_paths, path_of, tool, written
from ctxmgr.diagnose.evidence import Evidence, Message, clock, may_change
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.spoken import ALLOWS, forbids, sentences
from ctxmgr.diagnose.texts import code
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.diagnosis import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "constraintBroken"

_TOUCH = lazy_pattern(
    r"\b(?:edit|change|touch|modify|write|delete|remove|move|rename|overwrite|alter|leave|format|commit|add|off[- ]limits"
    r"|hands off|alone)\w*\b",
    re.IGNORECASE,
)
_PATH = lazy_pattern(
    r"(?<![\w/])((?:[\w.@-]{1,60}/){1,8}[\w.@*-]{0,60}|[\w-]{1,60}\.(?:py|js|ts|tsx|go|rs|java|c|h|cpp|rb|php|md|txt|json|ya?ml"
    r"|toml|lock|sql|sh|cfg|ini|env|html|css))(?![\w/])"
)
_VERBS = "commit push merge deploy install delete drop reset restart publish release rebase force"
_ACT = lazy_pattern(
    r"(?:never|do not|don['’]t|must not|may not|should not)\s+(?:ever |again )?(?:run |use |call |execute "
    rf"|try to )?(?:`([^`\n]{{2,100}})`|((?:git |npm |pip |docker "
    rf"|kubectl )?(?:{_VERBS.replace(' ', '|')}))\b(?:\s+(?:anything\s+)?(?:directly\s+)?(?:to|on|into|from"
    rf"|with)?\s*(?:the\s+)?[`'\"]?([\w./-]{{2,60}}))?)",
    re.IGNORECASE,
)
_SOURCE = lazy_pattern(r"\b(?:made|generated|built) (?:from|by)\b")
_WRITES = lazy_pattern(r"\b(?:rm|mv|sed -i|tee|truncate|git (?:add|rm|mv))\b|>")
_ONLY = lazy_pattern(
    r"\bonly (?:change|edit|touch|modify|write|work)\b|\b(?:change|edit|touch|modify|work) (?:\w+ ){0,2}only (?:in|files"
    r"|inside)\b",
    re.IGNORECASE,
)
_MANAGERS = frozenset(
    (
        "git", "npm", "pnpm", "yarn", "pip", "pip3", "python", "python3", "uv", "poetry", "apt", "apt-get", "brew", "cargo",
        "gem", "go", "docker", "kubectl", "helm", "terraform", "gh",
    )
)  # fmt: skip
_ANY = frozenset(
    ("", "anything", "any", "new", "more", "other", "packages", "dependencies", "yet", "until", "before", "without", "to")
)
_LEAST = 2


def applies(evidence: Evidence) -> Diagnosis | None:
    """Return which words of the user the loop breaks."""
    for message, sentence in sentences(evidence):
        if forbids(sentence):
            breaking = _changing(evidence, sentence) or _acting(evidence, sentence)
        else:
            breaking = _outside(evidence, sentence)
        if len(breaking) >= _LEAST and not _taken_back(evidence, message, sentence):
            return _told(evidence, message, sentence, breaking)
    return None


def _taken_back(evidence: Evidence, message: Message, sentence: str) -> bool:
    """Whether the user spoke of the same thing later without forbidding it."""
    later = evidence.user_texts[evidence.user_texts.index(message) + 1 :]
    things = {*_PATH.findall(sentence), *(word for word in _VERBS.split() if word in sentence.casefold())}
    return any(thing in each.text and forbids(each.text) is None for each in later for thing in things)


def _changing(evidence: Evidence, sentence: str) -> list[EntryView]:
    """Return the calls of the loop that change a path which the sentence protects."""
    ban = forbids(sentence)
    if ban is None or not _TOUCH.search(sentence) or re.search(r"\b(?:only|except)\b", sentence[: ban.start()]):
        return []
    protected = _PATH.findall(sentence[ban.start() :])[:1]
    return [entry for entry in evidence.loop if any(_changes(entry, path) for path in protected)]


def _outside(evidence: Evidence, sentence: str) -> list[EntryView]:
    """Return the edits of the loop outside of the one place to which a sentence confines them."""
    only = _ONLY.search(sentence)
    places = _PATH.findall(sentence[only.start() :]) if only else []
    if not places:
        return []
    edits = [(entry, _edited(entry)) for entry in evidence.loop if entry.status != "denied"]
    return [entry for entry, paths in edits if paths and not any(_lies_in(path, place) for path in paths for place in places)]


def _edited(entry: EntryView) -> list[str]:
    own = path_of(entry)
    return [own] if own and (changes_of(entry) or written(entry) is not None) else patched_paths(entry)


def _lies_in(path: str, place: str) -> bool:
    bare = place.rstrip("/*.")
    return path == bare or path.endswith(f"/{bare}") or f"/{bare}/" in f"/{path}"


def _changes(entry: EntryView, protected: str) -> bool:
    if entry.status == "denied":
        return False
    if any(_lies_in(path, protected) for path in _edited(entry)):
        return True
    command = command_of(entry)
    if not command or re.search(rf"(?<![\w/-]){re.escape(protected.rstrip('/*.'))}(?![\w-])", command) is None:
        return False
    return may_change(entry) and _WRITES.search(command) is not None


def _acting(evidence: Evidence, sentence: str) -> list[EntryView]:
    """Return the calls of the loop that run what the sentence forbids."""
    match = _ACT.search(sentence)
    if match is None:
        return []
    literal, verb, target = match.groups()
    return [entry for entry in evidence.loop if _runs(evidence, entry, literal, verb, (target or "").rstrip(".,"))]


def _runs(evidence: Evidence, entry: EntryView, literal: str | None, verb: str, target: str) -> bool:
    command = command_of(entry)
    if literal or not command:
        return bool(literal) and str(literal) in command
    words = verb.lower().split()
    if re.search(rf"(?:^|[\s;&|]){re.escape(words[-1])}(?=\s|$)", command) is None or words[0] not in command:
        return False
    if target.lower() in _ANY:
        return any(part[0] in _MANAGERS and words[-1] in part[1:5] for part in parts_of(command))
    return re.search(rf"(?<![\w/-]){re.escape(target)}(?![\w-])", f"{command}\n{evidence.text(entry)[:2_000]}") is not None


def _told(evidence: Evidence, message: Message, sentence: str, breaking: list[EntryView]) -> Diagnosis:
    last = breaking[-1]
    what = (
        code(command_of(last), 80)
        if command_of(last)
        else (f"the {tool(last)} of {evidence.name(path_of(last) or (patched_paths(last) or ['it'])[0])}")
    )
    cause = (
        f"You break what the user said{clock(message.at)}: {code(sentence, 160)}. {what[:1].upper()}{what[1:]} goes against it,"
        f" {len(breaking)} times."
    )
    way = _way(message, sentence)
    step = (
        f"Leave that alone and go the way the user named: {code(way, 150)}."
        if way
        else (
            "Leave that alone. Reach the goal without it; if it can't be reached so, tell the user which constraint stands in"
            " the way and ask."
        )
    )
    return diagnosis(
        KIND, cause, step, evidence.quote_of(message, sentence), evidence.quote(last),
        check="No later call may touch what the user protected.", confidence="high",
    )  # fmt: skip


def _way(message: Message, sentence: str) -> str | None:
    """Return what the user said is to be done in its place: in the same sentence behind a comma, or in the next one."""
    rest = message.text[message.text.find(sentence) + len(sentence) :].strip()
    parts = [part.strip() for part in re.split(r",\s+|\s+-\s+|:\s+|\bbut\b", sentence)[1:]]
    parts += [rest.split("\n")[0].split(". ")[0]] if rest else []
    return next((part for part in parts if len(part) > 6 and (ALLOWS.search(part) or _SOURCE.search(part))), None)
