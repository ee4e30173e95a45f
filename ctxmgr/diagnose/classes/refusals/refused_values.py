"""Values of a call that its tool refuses: outdated, not allowed, or in another form or type."""

from __future__ import annotations

import re
from typing import Any, cast

from ctxmgr.diagnose.errors.refusals import offered_names
from ctxmgr.diagnose.errors.wanted_values import convert_value, iso_date
from ctxmgr.diagnose.evidence import Evidence, call_input
from ctxmgr.diagnose.evidence.calls import call_phrase, command_of, fields_of, tool_phrase
from ctxmgr.diagnose.evidence.nearest_names import find_nearest_offered, likeness
from ctxmgr.diagnose.evidence.texts import blanks_for_underscores, code, contains_word, join_names, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

_KIND = "schemaRefused"
NO_NAMES = frozenset(
    ["the", "a", "an", "this", "that", "field", "argument", "property", "value", "which", "it", "body", "is", "error", "fatal"]
)
"""Words in the position of a field's name in an error that name no field."""
_LONGEST_VALUE = 100
"""Characters of a value that can be at fault, and is no text."""
_KEY = lazy_pattern(r"[\"']([A-Za-z_]\w{0,60})[\"']\s*:|(?:^|\s)(--[a-z][\w-]{0,40})(?=[\s=]|$)|[?&]([A-Za-z_]\w{0,60})=")
_REFUSES = lazy_pattern(
    r"not (?:one )?of|must be (?:one )?of|one of|invalid (?:value|choice|argument|option|parameter|enum)|not a "
    r"valid|unsupported|not allowed|expected (?:one|either)"
    r"|allowed values|valid (?:values|choices|options)|permitted values|unknown (?:value|variant)",
    re.IGNORECASE,
)
_VALUE = lazy_pattern(r"[`'\"]([^`'\"\n]{1,60})[`'\"]|(?<=[=: ])([\w.+-]{2,60})")
_FIELD = lazy_pattern(
    r"[\"']?(?:field|param(?:eter)?|property|argument|attribute|key|path"
    r"|loc)[\"']?\s?[:=]?\s?[\"'`\[]{1,2}([A-Za-z_-][\w.-]{0,40})[\"'`]"
    r"|(?:for|of) (?:[a-z]{2,12} ){0,2}[`'\"]?(-{1,2}[a-z][\w-]{1,40}|[a-z][\w.]{1,40})[`'\"]?(?=[:,. ]|$)",
    re.IGNORECASE,
)
_FORMS = lazy_pattern(
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


def diagnose_refused_value(evidence: Evidence, entry: EntryView, said: str) -> Diagnosis | None:
    """Return which value of a call its answer refuses, and what it wants instead."""
    return (
        _diagnose_outdated_version(evidence, entry, said)
        or _diagnose_disallowed_value(evidence, entry, said)
        or _diagnose_form(evidence, entry, said)
    )


_CONFLICT = lazy_pattern(
    r"conflict|stale|outdated|out of date|modified|precondition|changed since|newer|mismatch|\b(?:409|412)\b", re.IGNORECASE
)
_REVISION = lazy_pattern(r"version|revision|rev|etag|sha|seq|generation|lock_?version|base|parent", re.IGNORECASE)


def _diagnose_outdated_version(evidence: Evidence, entry: EntryView, said: str) -> Diagnosis | None:
    """Say that a call relies on a version of something that is no longer the newest."""
    head = said[:4_000]
    # A version is at fault only if the answer mentions a conflict.
    if not _CONFLICT.search(head):
        return None
    for name, value in fields_of(entry).items():
        own = str(value)
        # A long value is a text, not a version.
        if not _REVISION.search(name) or not isinstance(value, int | str) or len(own) > _LONGEST_VALUE or not plain_name(own):
            continue
        newer = _find_other_version(name, own, head)
        if newer is None or isinstance(value, bool):
            continue
        shown = (each for each in evidence.entries_before(entry.index) if each.status == "ok" and name in evidence.text(each))
        source = next((evidence.source(each) for each in shown if contains_word(own, evidence.text(each))), "")
        cause = (
            f"The {tool_phrase(entry)} call rests on {code(name, 40)} "
            f"{code(own, 40)}{f', from {source}' if source else ''}, and the"
            f" answer says that it is {code(newer, 40)} by now: somebody changed it in between."
        )
        again = f"Make {source} again" if source else "Read it anew"
        step = (
            f"{again}, put your change on top of what it shows now, and send it once with {code(name, 40)} {code(newer, 40)}."
        )
        check = "The answer must no longer speak of a conflict, and what others wrote must still be there."
        return diagnosis(_KIND, cause, step, evidence.quote(entry), check=check)
    return None


def _find_other_version(name: str, own: str, said: str) -> str | None:
    """Return a number other than the call's own that follows the name of its version."""
    word = re.escape(re.split(r"[_-]", name)[-1])
    other = rf"(?!{re.escape(own)}\b)(\d{{1,12}})\b"
    match = re.search(rf"(?<!\w){word}[\"']?(?: is|:| =|=|,)? ?(?:now |at )?[\"']?{other}", said, re.IGNORECASE)
    return match.group(1) if match else None


def argument_names(entry: EntryView) -> list[str]:
    """Return the names of a call's arguments; for a command, its options, query fields and JSON keys."""
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


def _diagnose_disallowed_value(evidence: Evidence, entry: EntryView, said: str) -> Diagnosis | None:
    """Return which value of a call is not among those that its answer allows."""
    if not _REFUSES.search(blanks_for_underscores(said[:4_000])):
        return None
    options = offered_names(said[:4_000])
    # A single option is an example.
    return _diagnose_quoted_value(evidence, entry, said, options) if len(options) >= _LEAST_OPTIONS else None


_LEAST_OPTIONS = 2


def _diagnose_quoted_value(evidence: Evidence, entry: EntryView, said: str, options: list[str]) -> Diagnosis | None:
    """Judge the value that the answer quotes and the call has."""
    call, keys = call_input(entry), set(argument_names(entry))
    quoted = dict.fromkeys(one or other for one, other in _VALUE.findall(said[:4_000]))
    # A word that the call does not have is the answer's own.
    values = [
        word for word in quoted if word not in options and word not in keys and contains_word(word, call) and plain_name(word)
    ]
    values = [word for word in values if word.casefold() not in NO_NAMES]
    wrong = max(values, key=lambda each: max(likeness(each, option) for option in options), default=None)
    if wrong is None:
        return None
    near = find_nearest_offered(wrong, options, 0.6)
    fields = (name for pair in _FIELD.findall(said[:4_000]) for name in pair if name and name != wrong)
    field = next((name for name in fields if contains_word(name, call)), None)
    what = f"{code(field, 40)} is {code(wrong, 60)}" if field else f"it was given {code(wrong, 60)}"
    shown = call_phrase(entry, 70)
    cause = f"{shown} is refused: {what}, and only {join_names(options, 8)} are allowed."
    value = code(near, 60) if near else f"the one of {join_names(options, 8)} that fits the task"
    place = f"{code(field, 40)} set to {value}" if field and near else f"{value} in place of {code(wrong, 60)}"
    step = f"Make the same call with {place}."
    return diagnosis(
        _KIND, cause, step, evidence.quote(entry), check="The answer must no longer name this value.",
        confidence="high" if near else "medium",
    )  # fmt: skip


def _diagnose_form(evidence: Evidence, entry: EntryView, said: str) -> Diagnosis | None:
    """Return the wanted form of a value, if the answer names the form and a field or value of the call."""
    for match in sorted(_FORMS.finditer(said[:4_000]), key=lambda each: each.group("form").isalpha()):
        key, value = _find_argument(entry, said, match)
        if key is None and value is None:
            continue
        shown = call_phrase(entry, 70)
        form = match.group("form")
        what = code(key or value or "", 60)
        kind = form.split()[-1].lower()
        typed = kind in _TYPES
        of = f"of type {kind}" if typed else f"in the form {code(form, 40)}"
        written = convert_value(value, kind) if typed else iso_date(value or "", form)
        has = f", and you gave {code(value, 60)}" if value and key else ""
        example = None if written or typed else _EXAMPLE.match(said, match.end())
        like = f", {code(written, 40)}" if written else f", as in {code(example.group(1), 40)}" if example else ""
        cause = f"{shown} is refused: {what} must be {of}{has}."
        step = f"Make the same call with {what} {of}{like}; keep the other arguments as they are."
        return diagnosis(_KIND, cause, step, evidence.quote(entry), check="The answer must no longer name this argument.")
    return None


# `RFC 3339 date-time with offset, for example 2026-01-31T09:00:00+01:00`
_EXAMPLE = lazy_pattern(
    r"[^\n\"{}]{0,60}?(?:for example|for instance|e\.g\.|such as|example:?|like)[ :,]{1,3}[`'(]?"
    r"(?=[^\s\"]{0,30}\d)([\w.:+/-]{4,40}[\w])"
)
_TYPES = frozenset(("array", "list", "integer", "number", "string", "object", "boolean"))


def _find_argument(entry: EntryView, said: str, match: re.Match[str]) -> tuple[str | None, str | None]:
    """Return the argument whose form the answer demands, and its value, as far as the answer names them."""
    line = said[said.rfind("\n", 0, match.start()) + 1 :].split("\n")[0]
    near = said[max(0, match.start() - 200) : match.end() + 200]
    names = argument_names(entry)
    key = next((each for each in names if contains_word(each, line)), None)
    key = key or next((each for each in names if len(each) > 2 and contains_word(each, near)), None)
    quoted = (
        one
        for one, _ in _VALUE.findall(near)
        if one and one != key and one not in names and contains_word(one, call_input(entry))
    )
    own = fields_of(entry).get(key) if key is not None and not command_of(entry) else None
    plain = str(own)[:60] if isinstance(own, str | int | float) and own != "" else None
    return key, next(quoted, None) or plain or _find_option_value(entry, key)


def _find_option_value(entry: EntryView, key: str | None) -> str | None:
    """Return the value that a command assigns to a name."""
    match = (
        re.search(
            rf"{re.escape(key)}[\"']?\s?[:= ]\s?(?:[\"']([^\"'\n]{{1,60}})[\"']|([^\"'\s,&}}]{{1,60}}))", call_input(entry)
        )
        if key
        else None
    )
    value = (match.group(1) or match.group(2)) if match else ""
    return value if value and re.fullmatch(r"[\w .,:/+@-]{1,60}", value) else None
