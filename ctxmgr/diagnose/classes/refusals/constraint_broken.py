"""A user's constraint is broken again and again: a forbidden action is tried, or a protected file is changed."""

from __future__ import annotations

import json
import re
from itertools import takewhile

from ctxmgr.diagnose.evidence import Evidence, Message, call_input, clock, may_change
from ctxmgr.diagnose.evidence.calls import (
    call_phrase,
    command_of,
    edited_paths,
    list_changes,
    patched_paths,
    path_of,
    split_command,
    tool_phrase,
    written_content,
)
from ctxmgr.diagnose.evidence.messages import ALLOWS, forbids, user_sentences
from ctxmgr.diagnose.evidence.texts import capital, code, join_names, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.finding import Diagnosis
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
_SUFFICES = lazy_pattern(
    r"\b(?:is|are) (?:enough|sufficient|fine|good enough|what we)\b|\b(?:suffices?|will do|does it|works)\b"
)
_ELSEWHERE = lazy_pattern(r"\b(?:of (?:its|their) own|(?:a|the) new (?:\w+ )?\w+|another \w+|next (?:free )?number)\b")
_SOURCE = lazy_pattern(r"\b(?:made|generated|built) (?:from|by)\b")
_WRITES = lazy_pattern(r"\b(?:rm|mv|sed -i|tee|truncate|git (?:add|rm|mv))\b|>")
_MANAGERS = word_set(
    "git npm pnpm yarn pip pip3 python python3 uv poetry apt apt-get brew cargo gem go docker kubectl helm terraform gh"
)
_ANY = frozenset(
    ("", "anything", "any", "new", "more", "other", "packages", "dependencies", "yet", "until", "before", "without", "to")
)
_DENIES = lazy_pattern(r"\b(?:not|never|no|nor|without|n['’]t|don['’]?t|stop|avoid|leave|again)\b|n['’]t\b", re.IGNORECASE)
_MADE = lazy_pattern(
    r"(?:generated|made|built|derived|compiled|rendered|created)(?: automatically)? (?:from|by|with|using) "
    r"[`'\"]?(?:the )?([\w./@-]{2,80})(?: (?:by|with|using|from) [`'\"]?([\w./@-]{2,80}))?"
    r"|(?:source|input|template|schema)\s?: [`'\"]?([\w./-]{2,80}\.\w{1,8})",
    re.IGNORECASE,
)
_BY = lazy_pattern(r"\w+(?: automatically)? (?:by|with|using)\b")
_PACKAGES = lazy_pattern(r"\b(?:dependenc\w+|packages?|librar(?:y|ies)|install\w*|modules?)\b", re.IGNORECASE)
_INSTALLS = lazy_pattern(
    r"\b(?:pip3?|uv|uv pip|poetry|pipenv|npm|pnpm|yarn|bun|cargo|gem|composer|apt|apt-get|brew|dnf|yum|conda|go"
    r"|dotnet)(?: -\S+)* (?:install|add|i|get|require)(?: -\S+)* (?!-r\b|\.(?:\s|$))[\w@./\[\]-]{2,60}"
)
_LEAST_TIMES, _LEAST_LIMIT = 2, 2
"""Times that a constraint is broken, and a number that is no article."""


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return which words of the user the loop violates."""
    for message, sentence in user_sentences(evidence):
        over = _list_over_limit(evidence, sentence)
        if over is not None:
            return _diagnose_over_limit(evidence, message, sentence, *over)
        kept = _diagnose_kept_place(evidence, message, sentence)
        if kept is not None:
            return kept
        if not forbids(sentence) or _was_withdrawn(evidence, message, sentence):
            continue
        # Changes first, because a protected file may also be part of a forbidden command.
        breaking = _list_forbidden_changes(evidence, sentence) or _list_forbidden_calls(evidence, sentence)
        # A single violation may be a slip. A constraint that the user withdrew does not count.
        if len(breaking) >= _LEAST_TIMES:
            return _explain_violation(evidence, message, sentence, breaking)
    return None


_STAYS = lazy_pattern(
    r"\b(?:stays?|remains?|(?:be|is|are|was|were) (?:left|kept)|keep|leave)\b[^.;:!?\n]{0,60}?"
    r"\b(?:as (?:it is|they are|is)|unchanged|untouched|unmodified|byte for byte)\b|\b(?:is|are) (?:frozen|immutable)\b",
    re.IGNORECASE,
)
"""Ways in which people say that something must not change."""
_RECORDS = lazy_pattern(r"\bgit (?:-\S+ )*(?:commit|push|merge)\b")
_BY_RULE = lazy_pattern(
    r"refus|reject|declin|denied|beyond|not allowed|may not|must not|forbid|protected|frozen|policy|owner|permi",
    re.IGNORECASE,
)
_LISTS_CHANGED = lazy_pattern(r"\bgit (?:-\S+ )*(?:status|diff|show|commit|log)\b")
_CHANGED = lazy_pattern(r"^(?:[ MADRCU]{1,2} (?:\S+ -> )?(\S+)| (\S+) +\| +\d+ [+-]*)$", re.MULTILINE)
_UNDOES = lazy_pattern(r"\bgit (?:-\S+ )*(?:checkout|restore|reset --hard|stash)\b")
_NUMBERED = lazy_pattern(r"(?<![\w.-])(\d{2,8})([_-][\w.-]{1,60})")
_MOST_PATHS = 3


def _diagnose_kept_place(evidence: Evidence, message: Message, sentence: str) -> Diagnosis | None:
    """Say that calls change files in a place which has to stay as it is in the user's words."""
    stays = _STAYS.search(sentence)
    # The place stands before the words that protect it, or within them.
    places = _PATH.findall(sentence[: stays.end()]) if stays and not sentence.endswith("?") else []
    if not places or _was_withdrawn(evidence, message, sentence):
        return None
    place = places[-1]
    breaking = [entry for entry in evidence.loop if _changes_path(entry, place) and not _makes_new_file(evidence, entry)]
    if len(breaking) < _LEAST_TIMES:
        return _diagnose_commit(evidence, message, sentence, place)
    found = _explain_violation(evidence, message, sentence, breaking)
    if _find_way(message, sentence) is None:
        return found
    free, added = _find_next_number(evidence, place), _added_text(breaking[-1])
    more = f" The next free number there is {code(free, 20)}." if free else ""
    more += f" What your last edit adds belongs there: {code(added, 110)}." if added else ""
    return found.model_copy(update={"next_step": f"{found.next_step}{more}"})


def _makes_new_file(evidence: Evidence, entry: EntryView) -> bool:
    """Whether a call writes a whole file that no earlier record names."""
    names = [path.rpartition("/")[2] for path in edited_paths(entry)]
    return written_content(entry) is not None and not any(
        name in evidence.text(other) for other in evidence.entries_before(entry.index) for name in names
    )


def _find_next_number(evidence: Evidence, place: str) -> str:
    """Return the number after the greatest one of the files in a folder, in as many digits; "" if they have no numbers."""
    bare = place.rstrip("/*.")
    for entry in reversed(evidence.recent):
        if entry.status == "ok" and bare in call_input(entry) and not edited_paths(entry):
            numbers = [number for number, _ in _NUMBERED.findall(evidence.text(entry)[:4_000])]
            widths = {len(number) for number in numbers}
            # Numbers of several widths are no series, and longer ones are mostly dates.
            if len(numbers) >= _LEAST_TIMES and len(widths) == 1 and widths <= {2, 3, 4, 5}:
                return str(int(max(numbers)) + 1).zfill(widths.pop())
    return ""


def _added_text(entry: EntryView) -> str:
    """Return what an edit adds to its file, without what stood there; "" if it replaces something else."""
    changes = list_changes(entry)
    if len(changes) != 1:
        return ""
    old, new = changes[0].old, changes[0].new
    start = _common_length(old, new)
    end = _common_length(old[start:][::-1], new[start:][::-1])
    return " ".join(new[start : len(new) - end].split())


def _common_length(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _diagnose_commit(evidence: Evidence, message: Message, sentence: str, place: str) -> Diagnosis | None:
    """Say that a refused commit holds changed files in a place that must stay."""
    for entry in evidence.failing_calls:
        if not _RECORDS.search(command_of(entry)) or not _BY_RULE.search(evidence.text(entry)):
            continue
        shown = [(other, held) for other in evidence.recent if (held := _list_changed(evidence, other, place))]
        before = evidence.entries_before(shown[0][0].index) if shown else ()
        # What was changed before the agent's first change may be the user's own.
        if not any(edited_paths(each) or _WRITES.search(command_of(each)) for each in before if each.status == "ok"):
            continue
        other, held = shown[-1]
        if any(_UNDOES.search(command_of(each)) for each in evidence.recent if each.index > other.index):
            continue
        cause = (
            f"{call_phrase(entry, 70)} is refused while it holds changes of {join_names(held, _MOST_PATHS)}, as "
            f"{evidence.source(other)} shows. The user said{clock(message.at)}: {code(sentence, 160)}."
        )
        undo = f"git restore --staged --worktree {' '.join(held[:_MOST_PATHS])}"
        rest = f" and so for the other {len(held) - _MOST_PATHS}" if len(held) > _MOST_PATHS else ""
        step = (
            f"Restore what has to stay, {code(undo, 150)}{rest}, see with `git diff HEAD --stat` that it is gone from the "
            "changes, and make the call once with the rest."
        )
        return diagnosis(
            KIND, cause, step, evidence.quote_message(message, sentence), evidence.quote(other), evidence.quote(entry),
            check="`git diff HEAD --stat` may name none of these files.",
        )  # fmt: skip
    return None


def _list_changed(evidence: Evidence, entry: EntryView, place: str) -> list[str]:
    """Return the files in a place that a look with git shows as changed."""
    if not _LISTS_CHANGED.search(command_of(entry)):
        return []
    changed = [one or two for one, two in _CHANGED.findall(evidence.text(entry)[:8_000])]
    return [path for path in dict.fromkeys(changed) if plain_name(path) and _is_in_place(path, place)]


_AT_MOST = lazy_pattern(
    r"\b(?:at most|no more than|not more than|max(?:imum|\.)?(?: of)?|up to|under|below|less than|fewer than"
    r"|within|never (?:more than|over|above)"
    r"|not (?:over|above)|limit(?:ed)? (?:of|to|is)|stay (?:below"
    r"|under))\s+(?:\w{1,12} ){0,2}?(?P<number>\d[\d ,._]{0,12}k?)\s*(?P<unit>[A-Za-z%]{2,20})?",
    re.IGNORECASE,
)
# `1 000` and `1_000` are one number. Dates, versions and ports after a colon are none.
_NUMBER = lazy_pattern(r"(?<![\w.:/-])\d(?:[\d_,.]| (?=\d{3}\b)){0,12}(?![\w:/-])")


def _list_over_limit(evidence: Evidence, sentence: str) -> tuple[list[EntryView], list[str], str] | None:
    """Return the refused calls that exceed a limit of the user, their numbers, and the limit.

    A number counts if the refusal names it with the unit of the limit, or if all refused calls and no accepted one pass it.
    """
    match = _AT_MOST.search(sentence)
    limit = _parse_number(match.group("number")) if match else None
    # A limit of one is mostly an article, and a question sets none.
    if match is None or limit is None or limit < _LEAST_LIMIT or sentence.endswith("?"):
        return None
    unit = (match.group("unit") or "").casefold().rstrip("s")
    # "Set 16.5 °C, vents at most 10 %": the limit is of another thing.
    given = {_parse_number(number) for text in evidence.user_texts for number in _NUMBER.findall(text.text[:4_000])}
    over: list[tuple[EntryView, str]] = []
    for entry in evidence.failing_calls:
        said = evidence.text(entry)[:2_000]
        named = [
            number.group(0) for number in _NUMBER.finditer(said)
            # A number counts only with the unit of the user's limit.
            if unit and said[number.end() :].strip().casefold().startswith(unit)
            and (_parse_number(number.group(0)) or 0) > limit
        ]  # fmt: skip
        # A refusal that names something missing or malformed is about that, and about no amount.
        may_be_rule = entry.status in ("error", "denied") and not _OTHER_REASON.search(said)
        asked = [
            number for number in _NUMBER.findall(f"{call_input(entry)[:4_000]} {json.dumps(entry.input, default=str)[:4_000]}")
            # A number hundreds of times as large is an id.
            if may_be_rule and limit < (value := _parse_number(number) or 0) <= limit * _MOST_FACTOR and value not in given
        ]  # fmt: skip
        if named or asked:
            over.append((entry, named[0] if named else asked[-1]))
    # If most failures are about something else, the limit is not the trouble.
    if sum(max(1, evidence.times(entry)) for entry, _ in over) < _LEAST_TIMES or len(over) < len(evidence.failing_calls) / 2:
        return None
    return [entry for entry, _ in over], list(dict.fromkeys(number for _, number in over)), match.group("number").strip()


_OTHER_REASON = lazy_pattern(
    r"\bnot (?:be )?found\b|\bno such\b|\bdoes(?: not|n['’]t) exist\b|\bunknown\b|\bundefined\b|syntax error"
    r"|traceback|timed? ?out|\bmissing\b|\bmalformed\b|unrecogni[sz]ed|already exists",
    re.IGNORECASE,
)
_MOST_FACTOR = 100
"""How many times as large as a limit a number may be that is no id."""


def _parse_number(number: str) -> float | None:
    """Return the value of a written number, without spaces, commas and underscores between its digits."""
    bare = re.sub(r"[ ,_](?=\d{3}\b)", "", number.strip().rstrip(".,").rstrip("k"))
    try:
        return float(bare) * (1_000 if number.strip().endswith("k") else 1)
    except ValueError:
        return None


def _diagnose_over_limit(
    evidence: Evidence, message: Message, sentence: str, breaking: list[EntryView], numbers: list[str], limit: str
) -> Diagnosis:
    last = breaking[0]
    cause = (
        f"The user set a limit{clock(message.at)}: {code(sentence, 150)}. Your refused calls are over it, with"
        f" {join_names(numbers[:4])}."
    )
    step = (
        f"Make it once with at most {limit}, as the user set it; shorten or split what does not fit, and change nothing else."
    )
    return diagnosis(
        KIND, cause, step, evidence.quote_message(message, sentence), evidence.quote(last),
        check=f"Nothing may be over {limit}.",
    )  # fmt: skip


def _was_withdrawn(evidence: Evidence, message: Message, sentence: str) -> bool:
    """Whether the user later mentioned the same thing without forbidding it."""
    later = evidence.user_texts[evidence.user_texts.index(message) + 1 :]
    things = {*_PATH.findall(sentence), *(word for word in _VERBS.split() if word in sentence.casefold())}
    return any(thing in each.text and not _DENIES.search(each.text) for each in later for thing in things)


def _list_forbidden_changes(evidence: Evidence, sentence: str) -> list[EntryView]:
    """Return the calls of the loop that change a path that the sentence protects."""
    ban = forbids(sentence)
    # "touch only X" protects everything but X.
    if ban is None or not _TOUCH.search(sentence) or re.search(r"\b(?:only|except)\b", sentence[: ban.start()]):
        return []
    protected = _PATH.findall(sentence[ban.start() :])[:1]
    return [entry for entry in evidence.loop if any(_changes_path(entry, path) for path in protected)]


def _is_in_place(path: str, place: str) -> bool:
    bare = place.rstrip("/*.")
    return path == bare or path.endswith(f"/{bare}") or f"/{bare}/" in f"/{path}"


_MANIFESTS = (
    (
        "package.json",
        lazy_pattern(
            r"\bnpm (?:pkg (?:set|delete|fix)|version|(?:i|install|add|uninstall|remove) (?!-g)[@\w])|\b(?:yarn"
            r"|pnpm|bun) (?:add|remove)\b"
        ),
    ),
    ("Cargo.toml", lazy_pattern(r"\bcargo (?:add|remove|upgrade)\b")),
    ("pyproject.toml", lazy_pattern(r"\b(?:poetry|uv|pdm) (?:add|remove|version)\b")),
    ("go.mod", lazy_pattern(r"\bgo (?:get|mod (?:tidy|edit))\b")),
    ("composer.json", lazy_pattern(r"\bcomposer (?:require|remove)\b")),
    ("Gemfile", lazy_pattern(r"\bbundle (?:add|remove)\b")),
)
"""Commands that change a file without naming it."""


def _changes_path(entry: EntryView, protected: str) -> bool:
    if any(_is_in_place(path, protected) for path in edited_paths(entry)):
        return True
    command = command_of(entry)
    name = protected.rpartition("/")[2]
    # A package manager writes its manifest without naming it.
    if any(name == file and words.search(command) for file, words in _MANIFESTS):
        return True
    # A command that does not name the file can't be said to change it.
    if not command or re.search(rf"(?<![\w/-]){re.escape(protected.rstrip('/*.'))}(?![\w-])", command) is None:
        return False
    return may_change(entry) and _WRITES.search(command) is not None


def _list_forbidden_calls(evidence: Evidence, sentence: str) -> list[EntryView]:
    """Return the calls of the loop that run what the sentence forbids."""
    if _PACKAGES.search(sentence):
        added = [entry for entry in evidence.tail if _INSTALLS.search(command_of(entry))]
        # Packages are also added outside of the loop.
        if added:
            return added
    match = _ACT.search(sentence)
    if match is None:
        return []
    literal, verb, target = match.groups()
    return [entry for entry in evidence.loop if _runs_forbidden(evidence, entry, literal, verb, (target or "").rstrip(".,"))]


def _runs_forbidden(evidence: Evidence, entry: EntryView, literal: str | None, verb: str, target: str) -> bool:
    command = command_of(entry)
    if literal or not command:
        return bool(literal) and str(literal) in command
    words = verb.lower().split()
    # The verb must be a whole word of the command.
    if re.search(rf"(?:^|[\s;&|]){re.escape(words[-1])}(?=\s|$)", command) is None or words[0] not in command:
        return False
    if target.lower() in _ANY:
        return any(part[0] in _MANAGERS and words[-1] in part[1:5] for part in split_command(command))
    return re.search(rf"(?<![\w/-]){re.escape(target)}(?![\w-])", f"{command}\n{evidence.text(entry)[:2_000]}") is not None


def _explain_violation(evidence: Evidence, message: Message, sentence: str, breaking: list[EntryView]) -> Diagnosis:
    last = breaking[-1]
    what = (
        code(command_of(last), 80)
        if command_of(last)
        else (f"the {tool_phrase(last)} of {evidence.name(path_of(last) or (patched_paths(last) or ['it'])[0])}")
    )
    cause = (
        f"You break what the user said{clock(message.at)}: {code(sentence, 160)}. {capital(what)} goes against it,"
        f" {len(breaking)} times."
    )
    way = _find_way(message, sentence)
    made = _find_source_of_edited(evidence, breaking) if way is None or _SOURCE.search(way) else None
    if made is not None:
        content, source, maker = made
        shown = evidence.source(content)
        cause += f" {capital(shown)} says that it is made from {code(source, 60)}{f' by {code(maker, 60)}' if maker else ''}."
        step = (
            "Leave that file alone. Make the change in "
            f"{code(source, 60)}{f', and run {code(maker, 60)} again' if maker else ''}."
        )
        quotes = (evidence.quote_message(message, sentence), evidence.quote(last), evidence.quote(content))
        return diagnosis(KIND, cause, step, *quotes, check="The change must stand in the made file without an edit of yours.")
    step = (
        f"Leave that alone and go the way the user named: {code(way, 150)}."
        if way
        else (
            "Leave that alone. Reach the goal without it; if it can't be reached so, tell the user which constraint stands in"
            " the way and ask."
        )
    )
    return diagnosis(
        KIND, cause, step, evidence.quote_message(message, sentence), evidence.quote(last),
        check="No later call may touch what the user protected.", confidence="high",
    )  # fmt: skip


def _find_source_of_edited(evidence: Evidence, breaking: list[EntryView]) -> tuple[EntryView, str, str | None] | None:
    """Return the source and the generator of an edited file, if the file's text names an existing one."""
    for path in dict.fromkeys(path for entry in breaking for path in edited_paths(entry)):
        content = evidence.last_content(path, breaking[0].index) or evidence.last_content(path)
        match = next((match for line in (content.lines[:12] if content else ()) if (match := _MADE.search(line))), None)
        if content is None or match is None:
            continue
        names = [name.rstrip(".,") for name in match.groups() if name]
        if len(names) > 1 and _BY.match(match.group(0)):
            names.reverse()
        # A source that nobody has seen may not exist.
        real = [name for name in names if plain_name(name) and ("." in name or "/" in name) and _is_in_record(evidence, name)]
        if real:
            return content.entry, real[0], next(iter(real[1:]), None)
    return None


def _is_in_record(evidence: Evidence, name: str) -> bool:
    base = name.rpartition("/")[2]
    return any(
        base in evidence.text(entry) or base in call_input(entry) for entry in evidence.recent if not edited_paths(entry)
    )


def _find_way(message: Message, sentence: str) -> str | None:
    """Return what the user wants instead: from the same sentence after a comma, or from the next sentence."""
    rest = message.text[message.text.find(sentence) + len(sentence) :].strip()
    parts = [part.strip() for part in re.split(r",\s+|\s+-\s+|:\s+|\bbut\b", sentence)[1:]]
    parts += [rest.split("\n")[0].split(". ")[0]] if rest else []
    return next(
        (
            part
            for part in parts
            if len(part) > 6 and any(words.search(part) for words in (ALLOWS, _SOURCE, _SUFFICES, _ELSEWHERE))
        ),
        None,
    )
