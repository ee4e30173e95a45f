"""Derive the value that a validator wants from the call's input, the user's words, and the record.

A value has to match the validator's own pattern. A recorded pattern may be built to take forever (`^(a+)+$`), so `re` never
runs it. `matches_pattern` takes time that grows slowly with pattern and text, and supports only the usual parts: characters,
classes, and groups of alternatives without inner groups, each with a count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple, cast

from ctxmgr.diagnose.errors.refusals import Violation
from ctxmgr.diagnose.evidence import Evidence, call_input
from ctxmgr.diagnose.evidence.calls import command_of, fields_of
from ctxmgr.diagnose.evidence.items import answers, find_json
from ctxmgr.diagnose.evidence.nearest_names import find_nearest_offered
from ctxmgr.diagnose.evidence.texts import plain_name
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.view import EntryView

_UNITS: dict[str, tuple[str, float]] = {
    name: (dimension, factor)
    for dimension, factor, names in (
        ("time", 0.001, "ms milli millis milliseconds millisecond msec"),
        ("time", 1, "s sec secs second seconds"),
        ("time", 60, "min mins minute minutes"),
        ("time", 3600, "h hr hrs hour hours"),
        ("time", 86400, "d day days"),
        ("mass", 0.001, "mg milligrams"),
        ("mass", 1, "g gram grams gramme grammes"),
        ("mass", 1000, "kg kilo kilos kilogram kilograms"),
        ("mass", 1_000_000, "t tonne tonnes"),
        ("length", 1, "mm millimetres millimeters"),
        ("length", 10, "cm centimetres centimeters"),
        ("length", 1000, "m metre metres meter meters"),
        ("length", 1_000_000, "km kilometres kilometers"),
        ("size", 1, "b byte bytes"),
        ("size", 1024, "kb kib"),
        ("size", 1024**2, "mb mib"),
        ("size", 1024**3, "gb gib"),
        ("money", 1, "cent cents minor"),
        ("money", 100, "eur usd gbp chf euro euros dollar dollars € $ £"),
        ("share", 10, "percent percentage pct %"),
        ("share", 1, "permille promille ‰"),
    )
    for name in names.split()
}
# `1,200 kg`, `3.5 kg`, `2,5 kg`, `€ 20`: a comma before three digits groups thousands, else it is a decimal mark.
_QUANTITY = lazy_pattern(
    r"(?<![\w.,])(\d{1,3}(?:,\d{3})+|\d+(?:[.]\d+)?|\d+,\d{1,2})\s{0,2}([A-Za-z]{1,12}|[€$£%‰])(?![\w])|([€$£])\s?(\d+(?:\.\d{1,2})?)"
)
_PART = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_MOST_CORRECTED, _MOST_VALUE, _MOST_TEXT, _MOST_PARTS = 60, 100, 12_000, 12
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MISSING = object()
_WORD = lazy_pattern(r"[\w.@+-]{3,60}")
_FIXED = lazy_pattern(r"\^?[A-Za-z]{2}|\^?[A-Za-z]\\?[-_:/]")
_MOST_KNOWN = 4


class KnownValues(NamedTuple):
    """Recorded values that have a wanted form, the call that showed the first one, and how much of the call stands beside."""

    values: tuple[str, ...]
    entry: EntryView
    beside: int


def list_arguments(evidence: Evidence, entry: EntryView) -> Any:
    """Return the arguments of a call: its input, the JSON in its command, or the JSON in the file that the command reads."""
    command = command_of(entry)
    if not command:
        return entry.input
    inline = next(iter(find_json(command)), None)
    # JSON in the command itself precedes a file that the command may write.
    if inline is not None:
        return inline
    for word in re.findall(r"[\w./-]{1,120}\.json\b", command):
        seen = evidence.last_content(word.removeprefix("//"), entry.index)
        if (value := next(iter(find_json(seen.text)), None) if seen is not None else None) is not None:
            return value
    return fields_of(entry)


def find_value(value: Any, path: tuple[str | int, ...]) -> Any:
    """Return the value at a path, or `_MISSING`. Leading names that are not part of the call are skipped."""
    # Some validators begin a path with the body, the request or the model.
    for start in range(len(path)):
        found = value
        for part in path[start:]:
            if isinstance(found, dict) and part in found:
                found = cast("dict[str, Any]", found)[str(part)]
            elif isinstance(found, list) and isinstance(part, int) and 0 <= part < len(cast("list[Any]", found)):
                found = cast("list[Any]", found)[part]
            else:
                break
        else:
            return found
    return _MISSING


def given_value(given: Any, path: tuple[str | int, ...]) -> Any:
    """Return the value that a call has at a path, or None."""
    found = find_value(given, path)
    return None if found is _MISSING else found


def derive_value(evidence: Evidence, violation: Violation, given: Any) -> str:
    """Return the right value as JSON, or "" if the record does not show it."""
    own = given_value(given, violation.path)
    text = str(own) if isinstance(own, str | int | float) and not isinstance(own, bool) else ""
    if violation.kind == "choice":
        had = text or violation.had
        same = (each for each in violation.options if each.casefold() == had.casefold() != "")
        near = next(same, None) or find_nearest_offered(had, violation.options, 0.6)
        return json.dumps(near) if near else ""
    if violation.kind == "form":
        # Add a fixed part of the pattern before trying to read the text as a date.
        fit = _fit_pattern(violation.wants, text) or iso_date(text, violation.wants)
        return json.dumps(fit) if fit else ""
    # A unit in the name needs another number, while a mere type needs another spelling.
    if violation.wants in ("integer", "number", "") and (amount := _convert_amount(evidence, violation, text, given)):
        return amount
    return (convert_value(own, violation.wants) or "") if violation.wants and not isinstance(violation.path[-1], int) else ""


def convert_value(value: Any, kind: str) -> str | None:
    """Return a value converted to the wanted type, as JSON, if the conversion is obvious."""
    # A long text is no value with the wrong type.
    if not isinstance(value, str) or len(value) > _MOST_VALUE:
        return None
    if kind in ("array", "list"):
        parts = [part.strip().strip("'\"") for part in value.strip("[]").split(",")]
        return json.dumps([part for part in parts if part], ensure_ascii=False)
    if kind in ("integer", "number") and re.fullmatch(r"-?\d+(?:\.\d+)?", value.strip()):
        return value.strip()
    if kind == "boolean" and value.strip().lower() in ("true", "false", "yes", "no"):
        return "true" if value.strip().lower() in ("true", "yes") else "false"
    return None


def iso_date(value: str, form: str) -> str | None:
    """Return a date in the form YYYY-MM-DD, if this form is wanted and the date has only one possible reading."""
    # Only the order year, month, day is supported.
    if re.sub(r"[^ymd]", "", form.lower()) != "yyyymmdd" or "-" not in form:
        return None
    month = next((number for number, name in enumerate(_MONTHS, 1) if re.search(rf"\b{name}", value, re.IGNORECASE)), None)
    numbers = re.findall(r"\d+", value)
    year = next((each for each in numbers if len(each) == 4), None)
    rest = [int(each) for each in numbers if len(each) < 3]
    # Without a four-digit year, the order of the parts is unknown.
    if year is None or not rest:
        return None
    # In dates with dots, the day comes first.
    if month is None and len(rest) == 2 and "." in value:
        month, rest = rest[1], rest[:1]
    # Only a number above 12 distinguishes day and month.
    if month is None and len(rest) == 2 and (rest[0] > 12) != (rest[1] > 12):
        month, rest = min(rest), [max(rest)]
    return f"{year}-{month:02}-{rest[0]:02}" if month and len(rest) == 1 and month <= 12 and 0 < rest[0] <= 31 else None


def _fit_pattern(pattern: str, text: str) -> str:
    """Return a text with the fixed parts of a pattern added, if it matches then."""
    plain = re.sub(r"\\([-./_])", r"\1", pattern.strip("^$"))
    match = re.match(r"[\w/.-]*?(?=[\[\\(]|$)", plain)
    before = match.group(0) if match else ""
    parts = (each.group() for form in (r"\d+", r"[A-Za-z]+") for each in islice(re.finditer(form, text), _MOST_PARTS))
    # Try the whole text first, since a part of it may lack something.
    for core in dict.fromkeys((text, *parts, text.lower(), text.upper())):
        for try_ in (f"{before}{core}", core):
            if try_ != text and 0 < len(try_) <= _MOST_CORRECTED and matches_pattern(pattern, try_):
                return try_
    return ""


def _convert_amount(evidence: Evidence, violation: Violation, text: str, given: Any) -> str:
    """Return an amount in the unit of a name: converted from the call's own amount, else from the user's only one."""
    unit = find_unit(violation.name)
    if unit is None:
        return ""
    found = list(_list_quantities(text))
    if not found:
        parent = given_value(given, violation.path[:-1]) if len(violation.path) > 1 else given
        for key, value in cast("dict[str, Any]", parent).items() if isinstance(parent, dict) else ():
            other = find_unit(key)
            if other is not None and isinstance(value, int | float) and not isinstance(value, bool):
                found.append((float(value), *other))
            elif isinstance(value, str):
                found += _list_quantities(value)
    # A unit of another dimension measures something else.
    found = [each for each in found if each[1] == unit[0]]
    if not found:
        found = [each for message in evidence.user_texts for each in _list_quantities(message.text) if each[1] == unit[0]]
    amounts = {round(number * factor / unit[1], 6) for number, _, factor in found}
    # Of two amounts, it is unclear which one is meant.
    if len(amounts) != 1:
        return ""
    amount = amounts.pop()
    return str(int(amount)) if amount == int(amount) else str(amount) if violation.wants == "number" else ""


def convert_users_amount(evidence: Evidence, name: str, current: float) -> str:
    """Return the only other amount of the user in the unit of a name, as a whole number; "" if there is none or several."""
    unit = find_unit(name)
    found = [each for message in evidence.user_texts for each in _list_quantities(message.text)] if unit is not None else []
    amounts = {round(number * factor / unit[1], 6) for number, kind, factor in found if unit is not None and kind == unit[0]}
    others = amounts - {current}
    return str(int(amount)) if len(others) == 1 and (amount := others.pop()) == int(amount) else ""


def find_unit(name: str) -> tuple[str, float] | None:
    """Return the dimension and the size of the unit at the end of a name, such as `timeout_ms`, `grams` and `amountCents`."""
    parts = [part.casefold() for part in _PART.findall(name)]
    # A single letter is a name, not a unit.
    if not parts or parts[-1] not in _UNITS or (len(parts) == 1 and len(parts[0]) < 2):
        return None
    return _UNITS[parts[-1]]


def _list_quantities(text: str) -> Iterator[tuple[float, str, float]]:
    for match in _QUANTITY.finditer(text[:_MOST_TEXT]):
        number, unit = match.group(1) or match.group(4), (match.group(2) or match.group(3)).casefold()
        if unit in _UNITS:
            # A comma before three digits groups them, else it is the decimal mark.
            plain = number.replace(",", "") if re.search(r",\d{3}", number) else number.replace(",", ".")
            yield (float(plain), *_UNITS[unit])


def find_known_values(evidence: Evidence, entry: EntryView, violation: Violation) -> KnownValues | None:
    """Return the recorded values that match a pattern, and of these the ones beside most of what the refused calls name.

    A pattern without a fixed beginning may match anything, so then only values count that have the name of the refused one.
    """
    if violation.kind != "form":
        return None
    refused = (each for each in evidence.recent if each.action == entry.action and evidence.has_failed(each))
    asked = {word for each in refused for word in _WORD.findall(call_input(each))}
    found: dict[str, tuple[int, EntryView]] = {}
    for other, item in answers(evidence):
        if evidence.has_failed(other):
            continue
        around = set(_WORD.findall(item.around))
        plain = {name: value for name, value in item.fields.items() if not matches_pattern(violation.wants, value)}
        for name, value in item.fields.items():
            fits = _FIXED.match(violation.wants) or name == violation.name.casefold()
            if name not in plain and fits and value not in asked and plain_name(value):
                beside = around.union(*map(_WORD.findall, (name, *plain.values())))
                found.setdefault(value, (len(asked & beside), other))
    most = max((count for count, _ in found.values()), default=0)
    best = [value for value, (count, _) in found.items() if count == most]
    return KnownValues(tuple(best), found[best[0]][1], most) if 0 < len(best) <= _MOST_KNOWN else None


_MAX_PATTERN = 120
_ONE = r"\[\^?(?:\\[dDwWsS]|\\[^\w\s]|[^\\\[\]\n])+\]|\\[dDwWsS]|\\[^\w\s]|[^\\()\[\]{}*+?|^$\n]"
# A lazy count matches the same whole texts as a greedy one. A possessive count (`a++`) does not, so it is not supported.
_COUNT = r"(?:(?P<sign>[*+?])|\{(?P<least>[0-9]{1,3})(?P<comma>,(?P<most>[0-9]{1,3})?)?\})?\??(?![*+?{])"
_TOKEN = lazy_pattern(rf"(?:(?P<one>{_ONE})|\((?:\?:)?(?P<group>(?:{_ONE}|[*+?|]|\{{[0-9,]{{1,7}}\}})+)\)){_COUNT}")
# `re` warns about these within a class.
_DOUBLE = lazy_pattern(r"--|&&|~~|\|\|")
_SIGNS = {"*": (0, _MAX_PATTERN), "+": (1, _MAX_PATTERN), "?": (0, 1)}


class _Part(NamedTuple):
    """One part of a pattern and its count: a character, or one of the alternatives of a group."""

    one: re.Pattern[str] | None
    group: tuple[tuple[_Part, ...], ...]
    least: int
    most: int


def matches_pattern(pattern: str, text: str) -> bool:
    """Whether a pattern matches a whole text. False if either is too long, or the pattern has an unsupported part."""
    if max(len(pattern), len(text)) > _MAX_PATTERN:
        return False
    choices = _parse_choices(pattern.removeprefix("^").removesuffix("$"), grouped=False)
    return choices is not None and len(text) in _match_ends(choices, text, {0})


def _parse_choices(pattern: str, *, grouped: bool) -> tuple[tuple[_Part, ...], ...] | None:
    """Return the alternatives of a pattern, each as its parts. Only a group may have several."""
    choices: list[list[_Part]] = [[]]
    place = 0
    while place < len(pattern):
        if grouped and pattern[place] == "|":
            choices.append([])
            place += 1
            continue
        token = _TOKEN.match(pattern, place)
        part = _parse_token(token) if token is not None and not (grouped and token["group"]) else None
        if token is None or part is None:
            return None
        choices[-1].append(part)
        place = token.end()
    return tuple(map(tuple, choices))


def _parse_token(token: re.Match[str]) -> _Part | None:
    least, most = 1, 1
    if token["sign"]:
        least, most = _SIGNS[token["sign"]]
    elif token["least"]:
        least = int(token["least"])
        most = int(token["most"]) if token["most"] else _MAX_PATTERN if token["comma"] else least
    if token["group"]:
        group = _parse_choices(token["group"], grouped=True)
        return None if group is None else _Part(None, group, least, most)
    if _DOUBLE.search(token["one"]):
        return None
    try:
        return _Part(re.compile(token["one"]), (), least, most)
    # `[z-a]`
    except re.error:
        return None


def _match_ends(choices: tuple[tuple[_Part, ...], ...], text: str, starts: set[int]) -> set[int]:
    """Return the positions at which one of the alternatives may end if it begins at one of these."""
    found: set[int] = set()
    for parts in choices:
        places = starts
        for part in parts:
            places = _match_part_ends(part, text, places)
        found |= places
    return found


def _match_part_ends(part: _Part, text: str, starts: set[int]) -> set[int]:
    found = set(starts) if part.least == 0 else set[int]()
    places = starts
    # After as many rounds as there are characters, nothing is left or nothing changes.
    least = min(part.least, len(text) + 1)
    for count in range(1, min(part.most, len(text) + 1) + 1):
        if part.one is None:
            places = _match_ends(part.group, text, places)
        else:
            places = {place + 1 for place in places if place < len(text) and part.one.match(text[place])}
        if count >= least:
            # A position reached before leads nowhere new.
            places = places - found
            found |= places
        if not places:
            break
    return found
