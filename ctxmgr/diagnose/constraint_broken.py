"""A constraint of the user is broken again and again: what they forbade is tried, or what they protected is changed."""

from __future__ import annotations

import re

from ctxmgr.diagnose.calls import changes_of, command_of, patched_paths, path_of, tool, written
from ctxmgr.diagnose.evidence import Evidence, Message, clock, may_change
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.spoken import ALLOWS, forbids, sentences
from ctxmgr.diagnose.texts import code
from ctxmgr.types.diagnosis import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "constraintBroken"

_TOUCH = re.compile(
    r"\b(?:edit|change|touch|modify|write|delete|remove|move|rename|overwrite|alter|leave|format|commit|add"
    r"|off[- ]limits|hands off|alone)\w*\b",
    re.IGNORECASE,
)
_PATH = re.compile(
    r"(?<![\w/])((?:[\w.@-]{1,60}/){1,8}[\w.@*-]{0,60}|[\w-]{1,60}\.(?:py|js|ts|tsx|go|rs|java|c|h|cpp|rb|php"
    r"|md|txt|json|ya?ml|toml|lock|sql|sh|cfg|ini|env|html|css))(?![\w/])"
)
_VERBS = "commit push merge deploy install delete drop reset restart publish release rebase force"
_ACT = re.compile(
    rf"(?:never|do not|don['’]t|must not|may not|should not)\s+(?:ever |again )?(?:run |use |call |execute |try to )?"
    rf"(?:`([^`\n]{{2,100}})`|((?:git |npm |pip |docker "
    rf"|kubectl )?(?:{_VERBS.replace(' ', '|')}))\b(?:\s+(?:anything\s+)?(?:directly\s+)?(?:to|on|into|from"
    rf"|with)?\s*(?:the\s+)?[`'\"]?([\w./-]{{2,60}}))?)",
    re.IGNORECASE,
)
_LEAST = 2


def applies(evidence: Evidence) -> Diagnosis | None:
    """Return which words of the user the loop breaks."""
    for message, sentence in sentences(evidence):
        if not forbids(sentence):
            continue
        breaking = _changing(evidence, sentence) or _acting(evidence, sentence)
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
    if not _TOUCH.search(sentence):
        return []
    forbidden = forbids(sentence)
    start = forbidden.start() if forbidden else 0
    protected = [
        path
        for path in _PATH.findall(sentence[start:])[:1]
        if not re.search(
            r"\b(?:only"
            r"|except)\b",
            sentence[:start],
        )
    ]
    return [entry for entry in evidence.loop if any(_changes(entry, path) for path in protected)]


def _changes(entry: EntryView, protected: str) -> bool:
    if entry.status == "denied":
        return False
    bare = protected.rstrip("/*")
    own = path_of(entry)
    edited = [own] if own and (changes_of(entry) or written(entry) is not None) else patched_paths(entry)
    if any(path == bare or path.endswith(f"/{bare}") or f"/{bare}/" in f"/{path}" for path in edited):
        return True
    command = command_of(entry)
    named = re.search(rf"(?<![\w/-]){re.escape(bare)}(?![\w-])", command) if command else None
    return (
        named is not None
        and may_change(entry)
        and re.search(
            r"\b(?:rm|mv|sed -i|tee|truncate|git (?:add|rm|mv))\b"
            r"|>",
            command,
        )
        is not None
    )


def _acting(evidence: Evidence, sentence: str) -> list[EntryView]:
    """Return the calls of the loop that run what the sentence forbids."""
    match = _ACT.search(sentence)
    if match is None:
        return []
    literal, verb, target = match.groups()
    found: list[EntryView] = []
    for entry in evidence.loop:
        command = command_of(entry)
        if not command:
            continue
        if literal:
            hit = literal in command
        else:
            words = verb.lower().split()
            runs = re.search(
                rf"(?:^|[\s;&|]){re.escape(words[-1])}(?=\s"
                rf"|$)",
                command,
            ) is not None and (len(words) == 1 or words[0] in command)
            place = f"{command}\n{evidence.text(entry)[:2_000]}"
            hit = (
                runs and bool(target) and re.search(rf"(?<![\w/-]){re.escape(target.rstrip('.,'))}(?![\w-])", place) is not None
            )
        if hit:
            found.append(entry)
    return found


def _told(evidence: Evidence, message: Message, sentence: str, breaking: list[EntryView]) -> Diagnosis:
    last = breaking[-1]
    what = (
        code(command_of(last), 80)
        if command_of(last)
        else (f"the {tool(last)} of {evidence.name(path_of(last) or (patched_paths(last) or ['it'])[0])}")
    )
    cause = (
        f"You break what the user said{clock(message.at)}: {code(sentence, 160)}. {what[:1].upper()}{what[1:]} does just"
        f" that, {len(breaking)} times."
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
    return next(
        (
            part
            for part in parts
            if len(part) > 6
            and (
                ALLOWS.search(part)
                or re.search(
                    r"\b(?:made|generated"
                    r"|built) (?:from"
                    r"|by)\b",
                    part,
                )
            )
        ),
        None,
    )
