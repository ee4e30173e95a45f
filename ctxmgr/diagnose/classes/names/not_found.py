"""A call names something of any kind that its tool does not know. The tool or the record has the nearest name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ctxmgr.diagnose.errors.refusals import Unknown, meant_names, offered_names, unknown_names
from ctxmgr.diagnose.evidence import Evidence, call_input, clock, may_change
from ctxmgr.diagnose.evidence.calls import call_phrase, command_of, fields_of, tool_phrase
from ctxmgr.diagnose.evidence.items import answers, find_listing, topic_words
from ctxmgr.diagnose.evidence.messages import user_sentences
from ctxmgr.diagnose.evidence.nearest_names import Counterpart, find_nearest_offered, find_nearest_recorded, likeness
from ctxmgr.diagnose.evidence.texts import capital, code, contains_word, find_line, join_names, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.finding import Diagnosis, Quote
from ctxmgr.types.view import EntryView

KIND: str = "notFound"

_LISTS = (
    (r"\bgit\b", "`git branch -a` and `git remote -v`"),
    (r"\bkubectl\b", "`kubectl get` without a name, in all namespaces (`-A`)"),
    (r"\bdocker compose|docker-compose\b", "`docker compose config --services`"),
    (r"\bdocker|podman\b", "`docker ps -a` or `docker images`"),
    (r"\bnpm|pnpm|yarn|bun\b", "package.json"),
    (r"\bmake\b", "the Makefile"),
    (r"\bninja\b", "`ninja -t targets all`"),
    (r"\bcargo\b", "Cargo.toml and `cargo metadata --no-deps`"),
    (r"\bsqlite3\b", "`.schema`"),
    (r"\bpsql\b", r"`\d`"),
    (r"\bmysql\b", "`SHOW TABLES` and `DESCRIBE`"),
    (r"\bgradlew?\b", "`gradle tasks --all`"),
    (r"\bterraform\b", "`terraform state list`"),
    (r"\bhelm\b", "`helm list -A` and `helm repo list`"),
    (r"\bsystemctl\b", "`systemctl list-units --all`"),
    (r"\baws\b", "the `list` or `describe` form of that command"),
    (r"\bgcloud\b", "the `list` form of that command"),
    (r"\bcurl|wget|http\b", "the address one level higher"),
)
"""How to list the names that a program knows."""
_ABOUT_FILES = lazy_pattern(r"no such file|file or directory|ENOENT|in file\b|old_str|command not found", re.IGNORECASE)
_NO_NOUN = word_set("error errors fatal warning value string match matches got response data result results server")


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return the unknown name, and the nearest known one."""
    for entry in evidence.refusals():
        said = evidence.text(entry)
        asked = f"{call_input(entry)}\n{_recently_written_text(evidence, entry)}"
        for unknown in unknown_names(said):
            if _is_given(unknown, asked, said):
                # A list shows what is beside each name, which says more than similarity.
                found = _diagnose_listed_names(evidence, entry, unknown) or _diagnose_unknown_name(
                    evidence, entry, unknown, said
                )
                if found is not None:
                    return found
        if (found := _diagnose_suggestion(evidence, entry, said)) is not None:
            return found
    return None


_SURELY_ALIKE = 0.8
"""Likeness of a sure name."""


def _diagnose_suggestion(evidence: Evidence, entry: EntryView, said: str) -> Diagnosis | None:
    """Assume that the word of the call most similar to the tool's suggestion was meant."""
    meant = meant_names(said)
    words = [
        word
        for word in dict.fromkeys(re.findall(r"[\w.:@-]{2,60}", call_input(entry)[:4_000]))
        # A word that the message does not repeat is not the refused one.
        if word in said and word not in meant and plain_name(word)
    ]
    pairs = [(likeness(word, name), word, name) for word in words for name in meant]
    best = max(pairs, default=None)
    return (
        _diagnose_unknown_name(evidence, entry, Unknown(best[1], "", 0), said)
        if best is not None and best[0] >= _LEAST_ALIKE
        else None
    )


_LEAST_ALIKE = 0.6


def _recently_written_text(evidence: Evidence, entry: EntryView) -> str:
    """Return what the agent itself wrote recently. A name in it is as much the agent's own as a name in the call."""
    own = [
        each
        # Text that a command wrote is in the command, which is read anyway.
        for each in evidence.tail
        if each.index < entry.index
        and each.agent == entry.agent
        and each.status == "ok"
        and may_change(each)
        and not command_of(each)
    ]
    return "\n".join(call_input(each)[:4_000] for each in own[-_MOST_EDITS:])


_MOST_EDITS = 8


def _is_given(unknown: Unknown, asked: str, said: str) -> bool:
    """Whether the call passed that name as a value. Options and files are other matters."""
    name = unknown.name
    line = said[said.rfind("\n", 0, unknown.start) + 1 :].split("\n")[0]
    # An option, or a text with spaces, is a matter of the schema, not of names.
    return (
        plain_name(name)
        and not _ABOUT_FILES.search(line)
        and contains_word(name, asked)
        and unknown.name.casefold() not in _NO_NOUN
    )


def _diagnose_listed_names(evidence: Evidence, entry: EntryView, unknown: Unknown) -> Diagnosis | None:
    """Say which names a recorded list has, with what is beside each, if no call used one of the likely ones."""
    name = unknown.name
    field = next((key for key, value in fields_of(entry).items() if value == name), "")
    listing = find_listing(evidence, entry, field, name, unknown.noun) if field and not command_of(entry) else None
    if listing is None:
        return None
    tried_names = [
        # Names that failed already are not the right one.
        str(fields_of(each).get(field))
        for each in evidence.recent
        if each.action == entry.action and evidence.has_failed(each)
    ]
    others = [
        each for each in listing.siblings(topic_words(evidence, entry), *tried_names)
        if each.rank >= _LEAST_RANK and _is_same_kind(name, each.name)
    ]  # fmt: skip
    # The name is in the list, so it is refused for another reason.
    if not others or name in {row[listing.column] for row in listing.rows}:
        return None
    best = [each for each in others if each.rank >= others[0].rank - _MARGIN][:_MOST_SHOWN]
    refused = join_names(dict.fromkeys(reversed(tried_names)), 4)
    cause = f"The {tool_phrase(entry)} call can't work: {evidence.source(listing.entry)} has no {refused}. It has "
    cause += f"{', '.join(each.description for each in others[:_MOST_SHOWN])}."
    step = f"Make the same call with {code(field, 40)} {' or '.join(each.description for each in best)}"
    step += "." if len(best) == 1 else ", whichever the task is about."
    return diagnosis(
        KIND, cause, step, evidence.quote(listing.entry), evidence.quote(entry),
        check="The answer must no longer name the missing one.", confidence="high" if len(best) == 1 else "medium",
    )  # fmt: skip


_LEAST_RANK, _MARGIN, _MOST_SHOWN = 0.6, 0.12, 3
"""Rank of a listed name that may be meant, its lead over one that is not, and names that are shown."""
_NUMBERED = lazy_pattern(r"([A-Za-z]+[-_#]?)\d{2,}")


def _is_same_kind(name: str, other: str) -> bool:
    """Whether two names may be of one kind. Numbers with different letters before them are not: `P1015` and `L1001`."""
    first, second = _NUMBERED.fullmatch(name), _NUMBERED.fullmatch(other)
    return first is None or second is None or first.group(1) == second.group(1)


def _diagnose_unknown_name(evidence: Evidence, entry: EntryView, unknown: Unknown, said: str) -> Diagnosis | None:
    name = unknown.name
    noun = unknown.noun if unknown.noun and unknown.noun not in _NO_NOUN and len(unknown.noun) < 40 else "such name as"
    call = call_phrase(entry, 90)
    cause = (
        f"{call} can't work: {'it names' if name in call_input(entry) else 'what you wrote names'} {code(name, 60)}, and "
        f"there is no {_singular(noun.split()[-1]) if noun != 'such name as' else 'such name'} there."
    )
    offered = [each for each in offered_names(said) if each != name]
    near = find_nearest_offered(name, offered)
    recorded = find_nearest_recorded(evidence, name, entry)
    # The record's name is used if it is more similar than the tool's suggestion.
    if recorded is not None and (near is None or recorded.name == near or recorded.alike > likeness(name, near)):
        return _diagnose_recorded_name(evidence, entry, cause, name, recorded)
    quote = evidence.quote(entry)
    check = "The answer must no longer name the missing one."
    bare = near.rpartition(".")[2] if near is not None else ""
    # SQL folds capitals unless a name is quoted, so an equal name with capitals must be quoted.
    if (
        bare
        and (bare != name or (bare != bare.casefold() and bare.casefold() in said))
        and bare.casefold() == name.casefold()
        and re.search(r"\bselect\b|\bfrom\b", call_input(entry), re.IGNORECASE)
    ):
        cause += (
            f" The answer offers {code(bare, 60)}: names without quotes are folded to lower case, so that this one is not met."
        )
        return diagnosis(KIND, cause, f'Put the name into double quotes, `"{bare}"`, and every other name with capitals too.',
                         quote, check=check)  # fmt: skip
    if near is not None:
        step = f"Make the same call with {code(near, 60)}, the nearest of the names that the answer offers."
        return diagnosis(KIND, f"{cause} The answer offers {code(near, 60)}.", step, quote, check=check)
    # If no name is near, naming one would be a guess.
    if len(offered) > 1:
        step = f"Make the call with the one of {join_names(offered, 8)} that the task is about; ask the user if none is."
        return diagnosis(
            KIND, f"{cause} The answer offers {join_names(offered, 8)}.", step, quote, check=check, confidence="medium"
        )
    return _diagnose_unlisted_name(evidence, entry, cause, name)


def _singular(noun: str) -> str:
    """Return "workflow" for "workflows", and "alias", "status" and "address" as they are."""
    return re.sub(r"(?<=[^saiu])s$", "", noun)


def _diagnose_unlisted_name(evidence: Evidence, entry: EntryView, cause: str, name: str) -> Diagnosis | None:
    """Say how to find a name if neither the answer nor the record has one like it."""
    others = [each for each in evidence.failing_calls if each is not entry and each.action == entry.action]
    guessed = _list_codes(others, name)
    # A single occurrence in one form is an ordinary typing error. Several numbers of one kind were guessed.
    if evidence.times(entry) < 2 and not guessed and not any(name in call_input(each) for each in others):
        return None
    where = next((where for pattern, where in _LISTS if re.search(pattern, command_of(entry))), None)
    look = f"with {where}" if where else "with the call that lists or searches them"
    step = (
        f"See which names there are, {look}, and take the one that the task is about; if none is, ask the user which is meant."
    )
    if guessed:
        cause += f" {join_names(guessed, 3)} failed too."
        step = f"Do not try further numbers. {step}"
    used = _list_codes(
        [each for each in evidence.recent if each.action == entry.action and not evidence.has_failed(each)], name
    )
    if used:
        cause += f" The same call worked with {join_names(used)}."
        return diagnosis(KIND, cause, step, evidence.quote(entry), confidence="medium")
    told, way, quotes = _find_in_record(evidence, name)
    return diagnosis(KIND, f"{cause}{told}", f"{way}{step}", evidence.quote(entry), *quotes, confidence="medium")


_LAST_DIGITS = lazy_pattern(r"\d{4,}$")
_OTHER_KIND = "Look whether it is the name of another kind of thing. "
_MOST_SAID = 120


def _find_in_record(evidence: Evidence, name: str) -> tuple[str, str, list[Quote]]:
    """Return what the record has of an unknown name, as a sentence, a step and quotes: the name itself, or its last digits.

    A name that the record has is the name of something else: `anna_lee_12` may be a user, and no order. A made-up `card_7334`
    may mean the card whose last four digits are 7334.
    """
    for message, sentence in user_sentences(evidence):
        if contains_word(name, sentence):
            told = f" The user named it{clock(message.at)}: {code(sentence, _MOST_SAID)}."
            return told, _OTHER_KIND, [evidence.quote_message(message, sentence)]
    digits = _LAST_DIGITS.search(name)
    for entry, item in answers(evidence):
        if not evidence.has_succeeded(entry):
            continue
        for field, value in item.fields.items():
            if value == name:
                told = f" {capital(evidence.source(entry))} has it as {code(field, 40)}."
                return told, _OTHER_KIND, [evidence.quote(entry, find_line(evidence.text(entry), name))]
            other = next((each for each in (item.fields.get("id", ""), item.key) if each and each != value), "")
            if digits is not None and value == digits.group(0) and plain_name(other) and _is_like_name(name, other):
                told = f" {capital(evidence.source(entry))} has {code(value, 20)} as {code(field, 40)} of {code(other, 60)}."
                way = f"Make the same call with {code(other, 60)}, if that is the one that is meant. Else: "
                return told, way, [evidence.quote(entry, find_line(evidence.text(entry), other))]
    texts = [
        *(each.text for each in evidence.messages),
        *(evidence.text(each) for each in evidence.recent if evidence.has_succeeded(each)),
    ]
    held = any(name in text or (digits is not None and digits.group(0) in text) for text in texts)
    return ("" if held else " The record holds no name like it."), "", []


def _is_like_name(name: str, other: str) -> bool:
    """Whether two names with numbers have the same words before them: `credit_card_7334` and `credit_card_9074831`."""
    return re.sub(r"\d+$", "", name) == re.sub(r"\d+$", "", other)


def _list_codes(entries: Iterable[EntryView], name: str) -> list[str]:
    """Return the other numbers of a name's kind among the values of calls; empty if it is no number with letters before it."""
    values = [value for each in entries for value in fields_of(each).values() if isinstance(value, str)]
    return [
        each for each in dict.fromkeys(values)
        if each != name and _NUMBERED.fullmatch(each) and _NUMBERED.fullmatch(name) and _is_same_kind(name, each)
    ]  # fmt: skip


def _is_in_record(evidence: Evidence, name: str) -> bool:
    return any(contains_word(name, message.text) for message in evidence.user_texts) or any(
        contains_word(name, call_input(entry)) for entry in evidence.recent
    )


def _diagnose_recorded_name(evidence: Evidence, entry: EntryView, cause: str, name: str, found: Counterpart) -> Diagnosis:
    source = capital(found.source)
    cause += f" {source} {'said' if found.by_user else 'used' if found.given else 'shows'} {code(found.name, 60)}."
    step = f"Make the same call with {code(found.name, 60)} in place of {code(name, 60)}."
    # A name that only an output shows may be planted there.
    if not found.by_user and not found.given and not _is_in_record(evidence, found.name):
        step = (
            f"The output shows {code(found.name, 60)}; if that is what you need, make the call with it in place "
            f"of {code(name, 60)},"
            " else ask the user."
        )
    return diagnosis(
        KIND, cause, step, evidence.quote(entry), found.quote, check="The answer must no longer name the missing one.",
        confidence="high" if found.alike >= _SURELY_ALIKE else "medium",
    )  # fmt: skip
