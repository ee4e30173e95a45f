"""Arguments are refused by a schema; the answer says what it wants, and the call shows what it was given."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from ctxmgr.diagnose.calls import command_of, fields_of, tool
from ctxmgr.diagnose.counterparts import likeness, nearest_of
from ctxmgr.diagnose.error_texts import offered_names
from ctxmgr.diagnose.evidence import Evidence, given
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.texts import code, listed, nearest, plain_name, spaced
from ctxmgr.types.diagnosis import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "schemaRefused"

_WORD = r"[`'\"]?(-{0,2}[A-Za-z_][\w.-]{0,60})[`'\"]?"
_WANTED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_WORD} is a required (?:property|argument|parameter|field)",
        r"(?:missing|must have|needs|lacks)(?: the)?(?: \d+)? ?required (?:keyword-only |positional )?(?:propert(?:y|ies)"
        rf"|arguments?|param(?:eter)?s?|fields?|keys?)\s?:?\s?{_WORD}",
        rf"required (?:property|argument|parameter|field|param) {_WORD}",
        r"[`'\"](-{0,2}[A-Za-z_][\w.-]{0,60})[`'\"]:? (?:is|are) required(?![\w ]*by)",
        r"(?:^|\n|error: )(-{0,2}[A-Za-z_][\w.-]{0,60}): (?:is )?required\b",
        rf"(?:the following arguments are required): {_WORD}",
        rf"(?:^|\n){_WORD}\n\s+field required",
        r"\"loc\":\s*\[[^\]]{0,120}\"([A-Za-z_]\w{0,60})\"\],?[^}]{0,80}?(?:required|missing)",
        r"\"path\":\s*\[[^\]]{0,120}\"([A-Za-z_]\w{0,60})\"\],?[^}]{0,80}?required",
        rf"missing (?:field|parameter|argument|property|value for) {_WORD}",
    )
)
_UNWANTED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\(?{_WORD} was unexpected",
        rf"unexpected (?:keyword argument|property|argument|field|key|option|parameter):? {_WORD}",
        rf"unrecogni[sz]ed (?:arguments?|options?|keys?(?:\(s\))?)(?: in object)?:? {_WORD}",
        rf"(?:unknown|invalid|no such) (?:option|argument|flag|field|property|parameter):? {_WORD}",
        r"(?:additional|extra|unknown|unexpected) (?:propert(?:y|ies)|inputs?|fields?|keys?|arguments?"
        rf"|parameters?) [^\n]{{0,40}}?\(?{_WORD}",
        rf"(?:^|\n){_WORD}\n\s+extra inputs are not permitted",
    )
)
_TYPE = re.compile(
    rf"{_WORD}:? (?:must be|should be|is not of type|expected) (?:an? |of type |type )?[`'\"]?(string|integer|number|boolean"
    r"|array|object|list|null)"
    rf"|(?:^|\n){_WORD}\n\s+input should be (?:an? )?(?:valid )?(string|integer|number|boolean|array|object|list)",
    re.IGNORECASE,
)
_ONE_OF = re.compile(
    r"(?:['\"]?([\w./-]{1,60})['\"]? is not one of|must be one of|expected one of|valid values(?: are)?"
    r"|invalid enum value\. expected)\s*:?\s*\[?\(?((?:['\"`]?[\w./-]{1,60}['\"`]?(?:, | \| |, or | or )?){2,20})",
    re.IGNORECASE,
)
_RECEIVED = re.compile(r"received ['\"]([\w./-]{1,60})")
_KEY = re.compile(r"[\"']([A-Za-z_]\w{0,60})[\"']\s*:|(?:^|\s)(--[a-z][\w-]{0,40})(?=[\s=]|$)|[?&]([A-Za-z_]\w{0,60})=")
_OPTION = re.compile(r"(?<![\w-])(--[a-z][\w-]{1,40})")
_NO_NAMES = frozenset(("the", "a", "an", "this", "that", "field", "argument", "property", "value", "which", "it", "body", "is"))


class _Asked(NamedTuple):
    wanted: list[str]
    unwanted: list[str]
    given: list[str]
    offered: list[str]


def applies(evidence: Evidence) -> Diagnosis | None:
    """Return what the schema wants in place of what was given."""
    for entry in evidence.refusals():
        said = evidence.text(entry)[:12_000].replace('\\"', '"')
        asked = _asked(entry, said)
        if asked.wanted or asked.unwanted:
            found = _told(evidence, entry, asked)
            if found is not None:
                return found
        found = _value(evidence, entry, said)
        if found is not None:
            return found
    return None


def _asked(entry: EntryView, said: str) -> _Asked:
    given = _given(entry)
    wanted = [name for name in _all(_WANTED, said) if name not in given]
    unwanted = [name for name in _all(_UNWANTED, said) if name in given]
    offered = [option for option in dict.fromkeys(_OPTION.findall(said)) if option not in unwanted]
    return _Asked(wanted, unwanted, given, offered)


def _all(patterns: Iterable[re.Pattern[str]], said: str) -> list[str]:
    found = [name for pattern in patterns for name in pattern.findall(said)]
    fair = [name for name in found if name.lower() not in _NO_NAMES and plain_name(name.lstrip("-"))]
    return list(dict.fromkeys(fair))[:8]


def _given(entry: EntryView) -> list[str]:
    command = command_of(entry)
    if command:
        return list(dict.fromkeys(next(name for name in groups if name) for groups in _KEY.findall(command)))
    names: list[str] = []
    waiting: list[Any] = [entry.input]
    while waiting and len(names) < 200:
        item = waiting.pop(0)
        if isinstance(item, dict):
            fields = cast("dict[str, Any]", item)
            names += list(fields)
            waiting += fields.values()
        elif isinstance(item, list):
            waiting += cast("list[Any]", item)[:50]
    return list(dict.fromkeys(names))


def _told(evidence: Evidence, entry: EntryView, asked: _Asked) -> Diagnosis | None:
    free = asked.unwanted or asked.given
    pairs: list[tuple[str, str]] = []
    lacking: list[str] = []
    for name in asked.wanted:
        near = _like(name, [each for each in free if each not in [old for old, _ in pairs]])
        if near is None:
            lacking.append(name)
        else:
            pairs.append((near, name))
    for name in asked.unwanted:
        near = nearest(name, asked.offered, 0.6) if name.startswith("--") and name not in [old for old, _ in pairs] else None
        if near is not None:
            pairs.append((name, near))
    if not pairs and not lacking:
        return _not_taken(evidence, entry, asked)
    call = code(command_of(entry), 70) if command_of(entry) else f"The {tool(entry)} call"
    wants = [new for _, new in pairs] + lacking
    cause = f"{call} is refused: it wants {listed(wants)}"
    cause += (
        (f", and you gave {listed([old for old, _ in pairs])}.")
        if pairs
        else (f", and you gave {listed(asked.given[:6])}.")
        if asked.given
        else "."
    )
    swaps = [f"{code(new, 40)} in place of {code(old, 40)}" for old, new in pairs]
    parts = [f"with {' and '.join(swaps[:6])}"] if swaps else []
    parts += [f"{'and ' if swaps else 'with '}{listed(lacking)} added"] if lacking else []
    step = f"Make the same call {' '.join(parts)}."
    if lacking:
        step += " Take the values from the task; ask the user for one that nothing names."
    return diagnosis(
        KIND, cause, step, evidence.quote(entry), check="The answer must no longer name these arguments.",
        confidence="high" if pairs and not lacking else "medium",
    )  # fmt: skip


def _not_taken(evidence: Evidence, entry: EntryView, asked: _Asked) -> Diagnosis | None:
    """Say which argument the schema does not take, and which it names."""
    names = [name for name in offered_names(evidence.text(entry)[:4_000]) if name not in asked.unwanted]
    if not asked.unwanted or not (names or asked.offered):
        return None
    call = code(command_of(entry), 70) if command_of(entry) else f"The {tool(entry)} call"
    wrong, takes = asked.unwanted[0], names or asked.offered
    near = nearest_of(wrong, takes, 0.65)
    cause = f"{call} is refused: it does not take {code(wrong, 40)}. The answer names {listed(takes, 8)}."
    step = (
        f"Make the same call with {code(near, 40)} in place of {code(wrong, 40)}."
        if near
        else f"Make the same call without {code(wrong, 40)}, or give its value to the one of {listed(takes, 8)} that "
        "it belongs to."
    )
    return diagnosis(
        KIND, cause, step, evidence.quote(entry), check="The answer must no longer name these arguments.", confidence="medium"
    )


def _like(name: str, given: list[str]) -> str | None:
    plain = {_letters(each): each for each in given}
    if _letters(name) in plain:
        return plain[_letters(name)]
    return nearest(name, given, 0.62)


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name)).casefold()


def _value(evidence: Evidence, entry: EntryView, said: str) -> Diagnosis | None:
    """Return which value has the wrong type, or is none of those that are allowed."""
    names = _given(entry)
    match = _TYPE.search(said)
    name = (match.group(1) or match.group(3)) if match else ""
    if match and name in names:
        kind = (match.group(2) or match.group(4)).lower()
        value = fields_of(entry).get(name)
        shown = f", and you gave {code(json.dumps(value, ensure_ascii=False)[:80], 60)}" if name in fields_of(entry) else ""
        cause = f"The call is refused: {code(name, 40)} must be of type {kind}{shown}."
        like = _converted(value, kind)
        step = (
            f"Make the same call with {code(name, 40)} as {kind}{f', as in {code(like, 60)}' if like else ''}; keep "
            "the other arguments as they are."
        )
        return diagnosis(KIND, cause, step, evidence.quote(entry))
    allowed = _ONE_OF.search(said)
    if allowed is None or command_of(entry):
        return _chosen(evidence, entry, said) or _form(evidence, entry, said) or _bounded(evidence, entry, said)
    options = [
        word for word in re.findall(r"[\w./-]{1,60}", allowed.group(2)) if word not in ("or", "received") and plain_name(word)
    ]
    values = {value: key for key, value in fields_of(entry).items() if isinstance(value, str) and len(value) <= 60}
    named = [allowed.group(1), *_RECEIVED.findall(said)]
    like = (each for each in values if each not in options and nearest(each, options, 0.6))
    wrong = next((each for each in named if each in values), None) or next(like, None)
    if wrong is None or wrong in options or len(options) < 2:
        return _chosen(evidence, entry, said) or _form(evidence, entry, said) or _bounded(evidence, entry, said)
    near = nearest(wrong, options, 0.6)
    cause = f"The call is refused: {code(values[wrong], 40)} is {code(wrong, 60)}, and only {listed(options)} are allowed."
    step = (
        (f"Make the same call with {code(values[wrong], 40)} set to {code(near, 60)}.")
        if near
        else "Choose the allowed value that fits the task."
    )
    return diagnosis(KIND, cause, step, evidence.quote(entry))


_REFUSES = re.compile(
    r"not (?:one )?of|must be (?:one )?of|one of|invalid (?:value|choice|argument|option|parameter|enum)|not a "
    r"valid|unsupported|not allowed|expected (?:one|either)"
    r"|allowed values|valid (?:values|choices|options)|permitted values|unknown (?:value|variant)",
    re.IGNORECASE,
)
_VALUE = re.compile(r"[`'\"]([^`'\"\n]{1,60})[`'\"]|(?<=[=: ])([\w.+-]{2,60})")
_FIELD = re.compile(
    r"[\"']?(?:field|param(?:eter)?|property|argument|attribute|key|path"
    r"|loc)[\"']?\s?[:=]?\s?[\"'`\[]{1,2}([A-Za-z_-][\w.-]{0,40})[\"'`]"
    r"|(?:for|of) (?:[a-z]{2,12} ){0,2}[`'\"]?(-{1,2}[a-z][\w-]{1,40}|[a-z][\w.]{1,40})[`'\"]?(?=[:,. ]|$)",
    re.IGNORECASE,
)
_FORMS = re.compile(
    r"(?:in (?:the )?(?:form(?:at)?|pattern)|(?:expected|required|valid|correct|date|time) format|format(?: must "
    r"be| is|:| of)|match(?:es)?(?: the)? (?:pattern|format|regex)|formatted (?:as|like)"
    r"|(?:is )?not (?:in |an? )?(?:valid |well-formed )?|must (?:look like|be (?:an? |in |of the form |formatted "
    r"as )?)|should (?:look like|be (?:an? |in )?)|expects?|expected|wants)"
    r"\s?(?:to be|is|as|like|an?|the|form(?:at)?|of)?\W{0,4}"
    r"(?P<form>[YMDHhmsdyS]{2,4}(?:[-/.:T ]{0,2}[YMDHhmsdyS]{1,4}){1,6}Z?|ISO[ -]?8601[\w ]{0,12}|RFC ?3339|E\.164"
    r"|\^[^\s\"']{3,60}\$|UUID\w{0,2}|base64|kebab-case|snake_case|camelCase|lower ?case|upper ?case"
    r"|(?:an? )?(?:integer|number|whole number|string|array|list|object|boolean|date|timestamp|positive \w{3,10}"
    r"|non-?negative \w{3,10})(?: of [a-z]{3,12})?)",
    re.IGNORECASE,
)
_LARGEST = re.compile(
    r"(?:at most|no more than|maximum(?: of| is|:)?|must be (?:<=?|less than(?: or equal to)?|below|under)"
    r"|max(?:imum)?[ _]?(?:length|size|value|items)?\W{1,3}|exceeds(?: the)?(?: maximum| limit)?(?: of)?|greater "
    r"than)\s?(\d[\d.,]{0,12})",
    re.IGNORECASE,
)


def _converted(value: Any, kind: str) -> str | None:
    """Return a value in the type that is wanted, as JSON, where that is plain."""
    if not isinstance(value, str) or len(value) > _SHORT:
        return None
    if kind in ("array", "list"):
        return json.dumps([part.strip() for part in value.strip("[]").split(",") if part.strip()], ensure_ascii=False)
    if kind in ("integer", "number") and re.fullmatch(r"-?\d+(?:\.\d+)?", value.strip()):
        return value.strip()
    if kind == "boolean" and value.strip().lower() in ("true", "false", "yes", "no"):
        return "true" if value.strip().lower() in ("true", "yes") else "false"
    return None


_SHORT = 100


def _bounded(evidence: Evidence, entry: EntryView, said: str) -> Diagnosis | None:
    """Return which number is larger than the answer allows."""
    match = _LARGEST.search(spaced(said[:4_000]))
    if match is None:
        return None
    most = match.group(1).rstrip(".,")
    names = [name for name in _given(entry) if _stands(name, said[:4_000])]
    name = next(iter(names), None)
    value = fields_of(entry).get(name) if name is not None else None
    value = value if isinstance(value, int | float | str) else _valued(entry, name)
    if name is None or value is None or len(str(value)) > _SHORT:
        return None
    shown = code(command_of(entry), 70) if command_of(entry) else f"The {tool(entry)} call"
    size = code(str(value), 40) if not isinstance(value, str) or value.isdigit() else f"{len(value)} characters"
    cause = f"{shown} is refused: {code(name, 40)} may be at most {most}, and you gave {size}."
    return diagnosis(
        KIND,
        cause,
        f"Make the same call with {code(name, 40)} at {most} or less, and ask for the rest in further calls if you need it.",
        evidence.quote(entry),
    )


def _chosen(evidence: Evidence, entry: EntryView, said: str) -> Diagnosis | None:
    """Return which value of a call is none of those that its answer allows."""
    if not _REFUSES.search(spaced(said[:4_000])):
        return None
    options = offered_names(said[:4_000])
    call = given(entry)
    field = next(
        (
            key
            for key in _given(entry)
            if len(key) > 1
            and re.search(
                rf"(?<![\w-]){re.escape(key)}\w{{0,8}}[`'\"]?:? (?:must|should|has to|is not (?:one|a valid|valid"
                r"|in)|is invalid|invalid|needs)",
                said[:4_000],
            )
        ),
        None,
    )
    field = field or _abbreviated(entry, said)
    own = fields_of(entry).get(field) if field is not None else None
    if len(options) > 1 and isinstance(own, str) and own not in options and len(own) <= _SHORT:
        near = nearest_of(own, options, 0.6)
        cause = (
            f"The {tool(entry)} call is refused: {code(field or '', 40)} is {code(own, 60)}, and only "
            f"{listed(options, 8)} are allowed."
        )
        step = (
            f"Make the same call with {code(field or '', 40)} set to "
            f"{code(near, 60) if near else f'the one of {listed(options, 8)} that fits the task'}."
        )
        return diagnosis(
            KIND,
            cause,
            step,
            evidence.quote(entry),
            check="The answer must no longer name this argument.",
            confidence="high" if near else "medium",
        )
    if len(options) < 2 or not call:
        return None
    named = [one or other for one, other in _VALUE.findall(said[:4_000])]
    in_call = [
        word
        for word in dict.fromkeys(named)
        if word not in options and _stands(word, call) and plain_name(word) and word.casefold() not in _NO_NAMES
    ]
    keys = set(_given(entry))
    wrong = max(
        (word for word in in_call if word not in keys),
        key=lambda each: max(likeness(each, option) for option in options),
        default=None,
    )
    if wrong is None or any(_stands(option, call) and option == wrong for option in options):
        return None
    near = nearest_of(wrong, options, 0.6)
    field = next(
        (name for pair in _FIELD.findall(said[:4_000]) for name in pair if name and name != wrong and _stands(name, call)), None
    )
    what = f"{code(field, 40)} is {code(wrong, 60)}" if field else f"it was given {code(wrong, 60)}"
    shown = code(command_of(entry), 70) if command_of(entry) else f"The {tool(entry)} call"
    cause = f"{shown} is refused: {what}, and only {listed(options, 8)} are allowed."
    place = (
        f"{code(field, 40)} set to {code(near, 60)}"
        if field and near
        else f"{code(near or '', 60)} in place of {code(wrong, 60)}"
    )
    step = (
        f"Make the same call with {place}."
        if near
        else f"Make the same call with the one of {listed(options, 8)} that fits the task in place of {code(wrong, 60)}."
    )
    return diagnosis(
        KIND,
        cause,
        step,
        evidence.quote(entry),
        check="The answer must no longer name this value.",
        confidence="high" if near else "medium",
    )


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def _dated(value: str, form: str) -> str | None:
    """Return a date in the form YYYY-MM-DD, where that is wanted and the date can be read in one way only."""
    if re.sub(r"[^ymd]", "", form.lower()) != "yyyymmdd" or "-" not in form:
        return None
    month = next((number for number, name in enumerate(_MONTHS, 1) if re.search(rf"\b{name}", value, re.IGNORECASE)), None)
    numbers = re.findall(r"\d+", value)
    year = next((each for each in numbers if len(each) == 4), None)
    rest = [int(each) for each in numbers if len(each) < 3]
    if year is None or not rest:
        return None
    if month is None and len(rest) == 2 and "." in value:
        month, rest = rest[1], rest[:1]
    if month is None and len(rest) == 2 and (rest[0] > 12) != (rest[1] > 12):
        month, rest = min(rest), [max(rest)]
    return f"{year}-{month:02}-{rest[0]:02}" if month and len(rest) == 1 and month <= 12 and 0 < rest[0] <= 31 else None


def _abbreviated(entry: EntryView, said: str) -> str | None:
    """Return the name in a call that is a short form of the one which its answer names."""
    named = re.search(r"\b([a-z][\w]{3,40})[`'\"]?:? (?:must|should) be", said[:4_000])
    if named is None or named.group(1) in _given(entry):
        return None
    return next(
        (
            key
            for key in fields_of(entry)
            if len(key) > 1 and key[0] == named.group(1)[0] and re.search(".*".join(map(re.escape, key)), named.group(1))
        ),
        None,
    )


def _form(evidence: Evidence, entry: EntryView, said: str) -> Diagnosis | None:
    """Return in which form a value is wanted, where the answer names the form and a field or value of the call."""
    for match in sorted(_FORMS.finditer(said[:4_000]), key=lambda each: each.group("form").isalpha()):
        line = said[said.rfind("\n", 0, match.start()) + 1 :].split("\n")[0]
        fields = fields_of(entry) if not command_of(entry) else {}
        keys = [key for key in _given(entry) if _stands(key, line)]
        near = said[max(0, match.start() - 200) : match.end() + 200]
        key = keys[0] if keys else next((each for each in _given(entry) if len(each) > 2 and _stands(each, near)), None)
        value = next(
            (
                one
                for one, _ in _VALUE.findall(near)
                if one and _stands(one, given(entry)) and one != key and one not in _given(entry)
            ),
            None,
        )
        if key is None and value is None:
            continue
        own = fields.get(key) if key is not None else None
        value = (
            value
            or (
                json.dumps(own, ensure_ascii=False)[:60].strip('"')
                if own not in (None, "") and not isinstance(own, dict | list)
                else None
            )
            or _valued(entry, key)
        )
        shown = code(command_of(entry), 70) if command_of(entry) else f"The {tool(entry)} call"
        form = match.group("form")
        what = f"{code(key, 40)}" if key else code(value or "", 60)
        has = f", and you gave {code(value, 60)}" if value and key else ""
        cause = f"{shown} is refused: {what} must be in the form {code(form, 40)}{has}."
        written = _dated(value or "", form)
        step = (
            f"Make the same call with {what} in the form "
            f"{code(form, 40)}{f', {code(written, 40)}' if written else ''}; keep the other arguments as they are."
        )
        return diagnosis(KIND, cause, step, evidence.quote(entry), check="The answer must no longer name this argument.")
    return None


def _valued(entry: EntryView, key: str | None) -> str | None:
    """Return the value that a command gives to a name."""
    match = (
        re.search(rf"{re.escape(key)}[\"']?\s?[:= ]\s?(?:[\"']([^\"'\n]{{1,60}})[\"']|([^\"'\s,&}}]{{1,60}}))", given(entry))
        if key
        else None
    )
    value = (match.group(1) or match.group(2)) if match else ""
    return value if value and re.fullmatch(r"[\w .,:/+@-]{1,60}", value) else None


def _stands(word: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None
