"""Compare the arguments of a refused call with what the record says of them.

A sum is that of one of several, less is left than the call takes, a value is of another kind or is not among those that an
answer lists. Of a call whose arguments say nothing more, it is told which have no value, whom to ask for another one, and
what the record names that no call has looked up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

from ctxmgr.diagnose.errors.lines import telling_line
from ctxmgr.diagnose.evidence import Evidence, call_input, may_change
from ctxmgr.diagnose.evidence.calls import command_of, fields_of, only_looks, path_of, tool_phrase
from ctxmgr.diagnose.evidence.items import find_objects
from ctxmgr.diagnose.evidence.pages import Rest, describe_next_page, find_unread_pages
from ctxmgr.diagnose.evidence.texts import capital, code, join_names, plain_name
from ctxmgr.diagnose.related.definitions import IDENTIFIER, find_kind, list_subjects, list_values
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.view import EntryView


class Alternative(NamedTuple):
    """The cause and the step, as sentences. ``alone``: the step takes the place of advice that any such error gets."""

    cause: str
    step: str
    alone: bool = False


_WANTED = lazy_pattern(
    r"(?i)\b(?:total|price|due|owed|expected|required|sum|amount)\b[^\n\d]{0,30}?(\d(?:[\d,]*\d)?(?:\.\d+)?)(?!\w)"
    r"[^\n\d]{1,20}?\b(?:but|paid|got|given|received|sent|provided)\b[^\n\d]{0,30}?(\d(?:[\d,]*\d)?(?:\.\d+)?)(?!\w)"
)
"""The sum that is wanted, and the one that was given."""
_TOO_LITTLE = lazy_pattern(r"(?i)not enough|insufficient|too (?:low|little|few)|exceeds?\b|over(?:draft|drawn)|balance")
_GONE = lazy_pattern(r"(?i)not found|does not exist|no longer|already (?:used|redeemed|spent)|used up|no such")
_KIND_WORD = lazy_pattern(r"[a-z]{2,}")
_NO_KIND = frozenset(("id", "number", "no", "code", "name", "value", "key", "is", "the"))
"""Words for an identifier that do not say of what."""
_PERSONAL = word_set(
    "phone mobile cell telephone email mail zip postal postcode name address birth birthday passport card handle nickname"
)
"""Words for what identifies a person, and no other thing."""
_LISTED = lazy_pattern(
    r"(?:[`'\"][\w .-]{2,40}[`'\"](?:, |,? (?:or|and|o|u|y|oder|und|ou|et|e) )){1,9}[`'\"][\w .-]{2,40}[`'\"]"
)
_OPTION = lazy_pattern(r"[`'\"]([\w .-]{2,40})[`'\"]")
_MOST_TEXT, _MOST_NAMED = 6_000, 4
_NO_VALUE = lazy_pattern(
    r"NoneType|NullPointer|NilClass|\bnil pointer|\bof (?:null|undefined)\b|(?i:must not be (?:none|null|empty))"
)
"""How a program speaks that met no value where it wanted one."""
_NOT_KNOWN = lazy_pattern(
    r"(?i)not (?:be )?found|no such|(?:does not|doesn't|do not) exist|unknown|nicht gefunden|introuvable|no existe"
    r"|no (?:se )?(?:ha )?encontr|n[ãa]o (?:existe|encontrad)"
)
_REFERS = lazy_pattern(r"(?i)(?:^|_)ids?$|[a-z]Ids?$")
"""The name of a member whose value names another thing."""
_CONTACT = lazy_pattern(
    r"(?<![\w.-])(?:\+?\d{2,4}(?:[ -]\d{2,5}){1,4}(?<!\d{4}-\d\d-\d\d)|[\w.+-]{1,60}@[\w-]{1,40}\.[\w.]{2,20}\w)(?![\w-])"
)
_CONTACT_NAME = lazy_pattern(r"(?i)phone|mobile|e-?mail")
"""A phone number or a mail address, and the name of a member that holds one."""
_AMOUNT = lazy_pattern(r"\d{1,12}(?:\.\d{1,6})?")
_COUNTS = lazy_pattern(
    r"(?i)\b(?:counts?|totals?|sums?|difference|differs?|mismatch\w*|do(?:es)? not (?:agree|match|add up)|incomplete)\b"
)
_LEAST_SHOWN, _MOST_UNREAD, _TWO = 3, 3, 2


def compare_arguments(evidence: Evidence, steps: Sequence[EntryView]) -> Iterator[Alternative]:
    """Yield what the record says of arguments that a tool refused, the surest first."""
    # A command has no named arguments, and its output may be anything; an answer that refuses nothing needs no other ones.
    if not evidence.has_failed(steps[0]) or command_of(steps[0]):
        return
    for find in (
        _find_multiple, _find_less_left, _find_other_kind, _find_offered_choice, _find_spent, _find_listed_instead,
        _find_missing_values,
    ):  # fmt: skip
        if (found := find(evidence, steps)) is not None:
            yield found


def find_last_resorts(evidence: Evidence, steps: Sequence[EntryView]) -> Iterator[Alternative]:
    """Yield what can be done where nothing else is known: ask the user for another value, look up what is named."""
    if command_of(steps[0]):
        return
    failed = evidence.has_failed(steps[0])
    for find in (
        _find_used_up,
        _find_unread_page,
        *([_find_wrong_by_user] if failed else [_find_namesake, _find_other_owner, _find_not_looked_up]),
    ):
        if (found := find(evidence, steps)) is not None:
            yield found


def _find_missing_values(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return the arguments without a value, if the tool stumbles over one that has none."""
    names = [name for name, value in fields_of(steps[0]).items() if value is None and plain_name(name)]
    if not names or not _NO_VALUE.search(evidence.text(steps[0])[:_MOST_TEXT]):
        return None
    shown = join_names(names, 4)
    return Alternative(
        f"The call gives no value for {shown}, and the tool stumbles over one that is missing.",
        f"Leave {shown} out, or give an empty text; ask the user for what has to be known.",
        alone=True,
    )


class _Amount(NamedTuple):
    """A number in an answer: its name and value, what stands beside it to be added, and the identifiers of its object."""

    name: str
    value: float
    beside: float
    of: set[str]
    entry: EntryView


def _find_used_up(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return of what no less is used than its limit, according to the newest answers: ``data_used_gb`` and ``data_limit_gb``.

    Both stand in one object, or in two that have an identifier in common.
    """
    amounts = list(_list_amounts(evidence, steps[0]))
    limits = [each for each in amounts if "limit" in each.name]
    newest: dict[str, _Amount] = {}
    for each in amounts:
        if "used" in each.name and plain_name(each.name):
            newest.setdefault(each.name, each)
    for name, used in newest.items():
        limit = next((each for each in limits if each.name == name.replace("used", "limit") and each.of & used.of), None)
        later = [each for each in evidence.recent if each.index > used.entry.index and not only_looks(each)]
        changed = any(one in call_input(each) for each in later for one in used.of)
        if limit is not None and used.value - used.beside >= limit.value > 0 and not changed:
            return Alternative(
                f"{capital(evidence.source(used.entry))} shows {code(f'{name} {used.value:g}', 50)}, and"
                f" {code(limit.name, 50)} is only {code(f'{limit.value:g}', 20)}.",
                "See whether that limit stops it, and whether more can be added; tell the user first what it costs.",
            )
    return None


def _list_amounts(evidence: Evidence, step: EntryView) -> Iterator[_Amount]:
    """Yield the numbers in answers before a call whose name says that they are used or a limit, the newest answer first."""
    for entry in evidence.entries_before(step.index):
        text = evidence.text(entry)
        told = ("used" in text or "limit" in text) and evidence.has_succeeded(entry)
        for fields in find_objects(text) if told else ():
            ids = {value for value in fields.values() if isinstance(value, str) and IDENTIFIER.fullmatch(value)}
            numbers = {name: number for name, value in fields.items() if (number := _read_number(value)) is not None}
            for name, number in numbers.items():
                if "used" in name or "limit" in name:
                    # What was added to a limit counts too: `data_refueling_gb` beside `data_used_gb`.
                    ends = name.split("_")[0], name.split("_")[-1]
                    alike = [each for each in numbers if (each.split("_")[0], each.split("_")[-1]) == ends and each != name]
                    yield _Amount(name, number, sum(numbers[each] for each in alike if "limit" not in each), ids, entry)


def _read_number(value: Any) -> float | None:
    """Return a JSON value as a number, also one in a text; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    return float(value) if not isinstance(value, str) or _AMOUNT.fullmatch(value) else None


def describe_unread_page(evidence: Evidence, entry: EntryView, rest: Rest) -> Alternative:
    """Say that an answer is only the first part of a list, and how to ask for the rest."""
    shown = f" ({rest.sizes})" if rest.sizes else ""
    named = f", from {code(rest.token, 60)} on" if plain_name(rest.token) else ""
    return Alternative(
        f"{capital(evidence.source(entry))} holds only a part of the list{shown}: it says that there is more{named}, and no"
        " call has asked for that.",
        describe_next_page(entry, rest),
        alone=True,
    )


def _find_unread_page(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return the list of which only a part was read, if it is about what the call is about, or the call counts things."""
    own = {value for value in list_values(fields_of(steps[0])) if len(value) >= _LEAST_SHOWN and not value.isdigit()}
    pages = list(find_unread_pages(evidence, steps[0].index))
    about = [each for each in pages if any(value in call_input(each[0]) for value in own)]
    counts = evidence.has_failed(steps[0]) and _COUNTS.search(evidence.text(steps[0])[:_MOST_TEXT])
    page = next(iter(about or (pages if counts else [])), None)
    return None if page is None else describe_unread_page(evidence, *page)


def _find_wrong_by_user(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return which value of the user the tool does not know: another one is a guess, and only the user can tell."""
    line = telling_line(evidence, steps[0])
    # A file may be found elsewhere, without the user.
    values = list_values(fields_of(steps[0])) if path_of(steps[0]) is None else ()
    given = [value for value in values if plain_name(value) and len(value) >= _LEAST_SHOWN]
    wrong = [value for value in given if value in line and evidence.was_said_by_user(value)]
    if not wrong or not _NOT_KNOWN.search(line):
        return None
    name = code(wrong[0], 60)
    return Alternative(
        f"The user gave {name}, and the tool does not know it.",
        f"Tell the user that {name} is not found, and ask for the right one or for another way to find it; do not try others.",
        alone=True,
    )


def _find_namesake(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return that a change was made to one of two things of the same name, if a look shows no effect of it."""
    changes = [each for each in evidence.latest if not only_looks(each) and evidence.has_succeeded(each)]
    given = {
        value: change for change in reversed(changes[:_MOST_NAMED])
        for value in list_values([fields_of(change), *find_objects(evidence.text(change))]) if IDENTIFIER.fullmatch(value)
    }  # fmt: skip
    for entry in reversed(evidence.recent) if given else ():
        text = evidence.text(entry)
        names = any(value in text for value in given) and evidence.has_succeeded(entry)
        things = list(find_objects(text)) if names else []
        for thing in things:
            key = next((name for name, value in thing.items() if isinstance(value, str) and value in given), None)
            alike = [each for each in things if key in each and each.get("name") == thing.get("name", each)]
            other = next((each[key] for each in alike if each[key] != thing[key]), None) if key and len(alike) == _TWO else None
            if key is not None and isinstance(other, str) and plain_name(other):
                change, name = given[thing[key]], code(str(thing["name"]), 60)
                return Alternative(
                    f"{capital(evidence.source(entry))} lists {name} twice, as {code(thing[key], 40)} and as {code(other, 40)};"
                    f" {evidence.source(change)} is about the first.",
                    f"See which {name} is meant; if it is {code(other, 40)}, make the change there, and take this one back.",
                    alone=True,
                )
    return None


class _Contact(NamedTuple):
    """A phone number or a mail address in an answer: the thing that has it, the member that holds it, and the call."""

    thing: str
    name: str
    value: str
    entry: EntryView


def _find_other_owner(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return that what was looked up has another phone number than the user gave, or than a call asked for: it is another's."""
    looks = [each for each in evidence.latest_before(steps[0].index) if only_looks(each) and evidence.has_succeeded(each)]
    said = [each for message in evidence.user_texts for each in _CONTACT.findall(message.text)]
    asked = [value for each in looks for value in list_values(fields_of(each)) if _CONTACT.fullmatch(value)]
    wanted = {re.sub(r"\d", "9", each): each for each in (*asked, *said)}
    contacts = [each for look in looks for each in _list_contacts(evidence, look)] if wanted else []
    own = {mask_digits(each.thing) for each in contacts if each.value in wanted.values()}
    for each in contacts:
        given = wanted.get(re.sub(r"\d", "9", each.value), each.value)
        # Once the user's own one was looked up too, the other one may be what the task is about.
        if given != each.value and mask_digits(each.thing) not in own and each.thing in list_values(fields_of(each.entry)):
            found, shown = code(f"{each.name} {each.value}", 70), capital(evidence.source(each.entry))
            who = "the user named" if given in said else "a call asked for"
            return Alternative(
                f"{shown} shows {found} for {code(each.thing, 40)}; {who} {code(given, 60)}.",
                f"Look up the one that has {code(given, 60)}, and go on with that one.",
            )
    return None


def _list_contacts(evidence: Evidence, look: EntryView) -> Iterator[_Contact]:
    """Yield the phone numbers and mail addresses in an answer. The first member of an object names the thing."""
    for fields in find_objects(evidence.text(look)):
        thing = next(iter(fields.values()), None)
        for name, value in fields.items():
            holds = isinstance(value, str) and _CONTACT_NAME.search(name) and plain_name(name) and _CONTACT.fullmatch(value)
            if holds and isinstance(thing, str) and plain_name(thing):
                yield _Contact(thing, name, value, look)


def _find_not_looked_up(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return things that answers refer to and no call has named, of kinds that a look-up of this session takes."""
    # The look-up with the fewest arguments needs least beside the name.
    made = sorted(evidence.recent, key=lambda each: -len(fields_of(each)))
    made = [entry for entry in made if only_looks(entry) and evidence.has_succeeded(entry) and not command_of(entry)]
    looks = {
        mask_digits(value): entry for entry in made for value in list_values(fields_of(entry)) if IDENTIFIER.fullmatch(value)
    }
    any_kind = next((entry for entry in made if fields_of(entry).keys() == {"id"}), None)
    asked = "\n".join(call_input(entry) for entry in evidence.recent)
    unread: dict[str, EntryView] = {}
    for entry in evidence.latest_before(steps[0].index) if looks else ():
        for fields in find_objects(evidence.text(entry)) if evidence.has_succeeded(entry) else ():
            for name, value in fields.items():
                for each in list_values(value) if _REFERS.search(name) else ():
                    look = looks.get(mask_digits(each), any_kind if IDENTIFIER.fullmatch(each) else None)
                    # The id of an object that an answer shows whole needs no look-up.
                    shown = each == next(iter(fields.values())) and len(fields) >= _LEAST_SHOWN
                    if look is not None and each not in asked and plain_name(each) and not shown:
                        unread.setdefault(each, look)
    # Another one of what was looked up before is likelier meant than another kind of thing.
    names = sorted(unread, key=lambda each: mask_digits(each) not in looks)[:_MOST_UNREAD]
    if not names:
        return None
    them = "them" if len(names) > 1 else "it"
    return Alternative(
        "", f"Look up {join_names(names)} with {tool_phrase(unread[names[0]])}: no call has asked for {them} yet."
    )


def mask_digits(name: str) -> str:
    """Return the form of a name: each number in it as 9."""
    return re.sub(r"\d+", "9", name)


def _find_multiple(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return that the wanted sum is the given one times the length of a list in the call, such as that of its passengers."""
    if not (match := _WANTED.search(evidence.text(steps[0])[:_MOST_TEXT])):
        return None
    wanted, given = (float(each.replace(",", "")) for each in match.groups())
    times = wanted / given if given else 0
    fields = fields_of(steps[0])
    names = [name for name, value in fields.items() if isinstance(value, list) and 1 < times == len(cast("list[Any]", value))]
    if not names:
        return None
    return Alternative(
        f"{code(match[1], 20)} is {times:.0f} times {code(match[2], 20)}, and the call has {times:.0f} {join_names(names)}: "
        "the amount may be that of one of them.",
        f"Let the amounts come to {code(match[1], 20)}; ask the user first, if only {code(match[2], 20)} was agreed.",
    )


def _find_less_left(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return that a call takes more of something than the newest answer says there is of it."""
    said = evidence.text(steps[0])[:_MOST_TEXT]
    taken: dict[str, tuple[str, float]] = {}
    for own in find_objects(steps[0].input) if _TOO_LITTLE.search(said) else ():
        number = _only_number(own)
        name = next((value for value in own.values() if isinstance(value, str) and IDENTIFIER.fullmatch(value)), None)
        if number is not None and name is not None:
            taken[name] = number
    # If the answer names one of several, it is about that one.
    names = [name for name in taken if name in said] or list(taken)
    for name in names[:_MOST_NAMED]:
        left = _find_newest_number(evidence, steps[0], name)
        if left is not None and left[1] < taken[name][1]:
            member, number, entry = left
            return Alternative(
                f"The call has {code(f'{taken[name][0]} {taken[name][1]:g}', 60)} for {code(name, 60)}, and "
                f"{evidence.source(entry)} shows {code(f'{member} {number:g}', 60)} of it.",
                f"Take no more than {code(f'{number:g}', 20)} of {code(name, 60)}, and ask the user how to cover the rest.",
            )
    return None


def _find_newest_number(evidence: Evidence, step: EntryView, name: str) -> tuple[str, float, EntryView] | None:
    """Return the only number that the newest answer has in the object with this id, as (member, value, answer)."""
    for entry in evidence.latest_before(step.index):
        if name in evidence.text(entry) and evidence.has_succeeded(entry):
            held = next((each for each in find_objects(entry.output) if each.get("id") == name), None)
            if held is not None and (number := _only_number(held)) is not None:
                return *number, entry
    return None


def _only_number(fields: dict[str, Any]) -> tuple[str, float] | None:
    """Return the name and the value of the only number of an object."""
    numbers = [(name, float(value)) for name, value in fields.items() if type(value) in (int, float)]
    return numbers[0] if len(numbers) == 1 else None


def _find_other_kind(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return that the user gave a value under another name than the argument that has it: a phone number as a customer's id."""
    line = evidence.text(steps[0])[:_MOST_TEXT]
    for name, value in fields_of(steps[0]).items():
        if not isinstance(value, str) or not 3 < len(value) < 60 or value not in line:  # the answer names what it does not know
            continue
        argument = _kind_words(name)
        called = re.compile(
            rf"\bmy ((?:[A-Za-z]+ )?(?!is\b)[A-Za-z]+)(?: is| here is|:|,)? [`'\"*]{{0,3}}{re.escape(value)}(?!\w)",
            re.IGNORECASE,
        )
        for message in reversed(evidence.user_texts):
            match = called.search(message.text)
            words = _kind_words(match[1]) if match else set[str]()
            # A claim may well be a ticket, but a phone number is never one.
            if match and words & _PERSONAL and argument and words.isdisjoint(argument):
                return Alternative(
                    f"{code(value, 60)} is the user's {match[1].casefold()}, and the call gives it as {code(name, 40)}.",
                    f"Look for a call that takes the user's {match[1].casefold()}, or ask the user for {code(name, 40)}.",
                )
    return None


def _kind_words(text: str) -> set[str]:
    """Return the words of a name or a text that say what a value is of."""
    return set(_KIND_WORD.findall(text.casefold())) - _NO_KIND


def _find_offered_choice(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return the argument that the answer is about, if the answer lists values in quotes, and the argument has another one."""
    said = evidence.text(steps[0])[:_MOST_TEXT]
    listed = _LISTED.search(said)
    options = _OPTION.findall(listed[0]) if listed else []
    # The members of a structured error are no values to choose from, and its code neither.
    if any(re.search(rf"[`'\"]{re.escape(each)}[`'\"]\s*:|:\s*[`'\"]{re.escape(each)}[`'\"]", said) for each in options):
        return None
    if not all(plain_name(word) for option in options for word in option.split()):
        return None
    words = _kind_words(said)
    for name, value in fields_of(steps[0]).items():
        own = _kind_words(name)
        if options and isinstance(value, str) and value not in options and own and own <= words:
            choices = join_names(options)
            return Alternative(
                f"The answer offers {choices}, and the call gives {code(value, 40)} as {code(name, 40)}.",
                f"Give {code(name, 40)} the one of {choices} that the user wants; ask, if none fits.",
            )
    return None


def _find_spent(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return the call that worked with what is not found any more: a certificate that a booking used up."""
    said = evidence.text(steps[0])[:_MOST_TEXT]
    names = [each for each in IDENTIFIER.findall(said) if each in call_input(steps[0])] if _GONE.search(said) else []
    for other in evidence.entries_before(steps[0].index) if names else ():
        if names[0] in call_input(other) and evidence.has_succeeded(other) and may_change(other):
            return Alternative(
                f"{capital(evidence.source(other))} had {code(names[0], 60)} too, and worked: it may have used it up.",
                "See with a look-up whether it is still there; if not, take another one, and ask the user which.",
            )
    return None


def _find_listed_instead(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return what an answer lists under the kind of the thing that is not found: a customer's payment methods."""
    line = telling_line(evidence, steps[0])
    name = next(list_subjects(steps[0], line), "")
    kind = find_kind(line, name) if name in line else ""
    # Only what belongs to something else that the call names: other customers have other ones.
    owners = [each for each in list_values(fields_of(steps[0])) if IDENTIFIER.fullmatch(each) and each != name]
    for entry in evidence.entries_before(steps[0].index) if kind else ():
        shown = f"{call_input(entry)}\n{evidence.text(entry)}"
        if not evidence.has_succeeded(entry) or not any(each in shown for each in owners):
            continue
        for fields in find_objects(evidence.text(entry)):
            listed = fields.get(f"{kind}s", fields.get(kind))
            names = [each for each in _list_names_of(listed) if plain_name(each)]
            if names and name not in names:
                there = f"{capital(evidence.source(entry))} lists {code(f'{kind}s' if f'{kind}s' in fields else kind, 40)}:"
                return Alternative(
                    f"{there} {join_names(names, 6)}. {code(name, 60)} is not among them.",
                    f"Take one of {join_names(names, 6)} that the user agrees to; if none fits, tell the user which there are.",
                )
    return None


def _list_names_of(listed: Any) -> list[str]:
    """Return the names of things in a JSON value: the keys of objects in an object, or the ids of objects in a list."""
    if isinstance(listed, dict):
        members = cast("dict[str, Any]", listed)
        return list(members) if all(isinstance(each, dict) for each in members.values()) else []
    items = cast("list[Any]", listed) if isinstance(listed, list) else []
    ids = [cast("dict[str, Any]", each).get("id") if isinstance(each, dict) else each for each in items]
    return [each for each in ids if isinstance(each, str) and IDENTIFIER.fullmatch(each)]
