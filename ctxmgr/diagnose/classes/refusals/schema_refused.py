"""A schema refuses the arguments. The answer says what it wants, and the call shows what it got."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from ctxmgr.diagnose.classes.refusals.described_values import diagnose_described_value
from ctxmgr.diagnose.classes.refusals.recorded_schema import diagnose_by_record
from ctxmgr.diagnose.classes.refusals.refused_values import NO_NAMES, argument_names, diagnose_refused_value
from ctxmgr.diagnose.errors.refusals import Violation, find_violations
from ctxmgr.diagnose.errors.wanted_values import (
    convert_value,
    derive_value,
    find_known_values,
    find_unit,
    given_value,
    list_arguments,
)
from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.diagnose.evidence.calls import call_phrase, command_of, fields_of
from ctxmgr.diagnose.evidence.items import find_objects
from ctxmgr.diagnose.evidence.nearest_names import find_nearest_offered
from ctxmgr.diagnose.evidence.texts import code, find_nearest, join_names, join_texts, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "schemaRefused"

_WORD = r"[`'\"]?(-{0,2}[A-Za-z_][\w.-]{0,60})[`'\"]?"
_WANTED = tuple(
    lazy_pattern(pattern, re.IGNORECASE)
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
    lazy_pattern(pattern, re.IGNORECASE)
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
_TYPE = lazy_pattern(
    rf"{_WORD}:? (?:must be|should be|is not of type|expected) (?:an? |of type |type )?[`'\"]?(string|integer|number|boolean"
    r"|array|object|list|null)"
    rf"|(?:^|\n){_WORD}\n\s+input should be (?:an? )?(?:valid )?(string|integer|number|boolean|array|object|list)",
    re.IGNORECASE,
)
_ONE_OF = lazy_pattern(
    r"(?:['\"]?([\w./-]{1,60})['\"]? is not one of|must be one of|expected one of|valid values(?: are)?"
    r"|invalid enum value\. expected)\s*:?\s*\[?\(?((?:['\"`]?[\w./-]{1,60}['\"`]?(?:, | \| |, or | or )?){2,20})",
    re.IGNORECASE,
)
_RAISED = lazy_pattern(r"\bTypeError: |\bpydantic\w*\.|validation errors? for [A-Z]\w+$", re.MULTILINE)
_RECEIVED = lazy_pattern(r"received ['\"]([\w./-]{1,60})")
_OPTION = lazy_pattern(r"(?<![\w-])(--[a-z][\w-]{1,40})")


class _Arguments(NamedTuple):
    wanted: list[str]
    unwanted: list[str]
    given: list[str]
    offered: list[str]


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return what the schema wants instead of what the call gave."""
    for entry in evidence.refusals():
        said = evidence.text(entry)[:12_000].replace('\\"', '"')
        # An error inside a program is no refusal of the command line that started it, unless data was given there.
        if command_of(entry) and "{" not in command_of(entry) and _RAISED.search(said):
            continue
        if (found := _diagnose_violations(evidence, entry)) is not None:
            return found
        asked = _compare_arguments(entry, said)
        if (asked.wanted or asked.unwanted) and (found := _diagnose_arguments(evidence, entry, asked)) is not None:
            return found
        for ask in (_diagnose_value, diagnose_by_record, diagnose_described_value):
            if (found := ask(evidence, entry, said)) is not None:
                return found
    return None


def _diagnose_violations(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Return each place that a validator names, with its correct value."""
    given = list_arguments(evidence, entry)
    names = list(dict.fromkeys([*argument_names(entry), *(name for fields in find_objects(given) for name in fields)]))
    result: list[Any] = [each for each in (entry.error, entry.output) if isinstance(each, dict | list)]
    sentences = [_locate_violation(each, given) for each in find_violations(result, evidence.text(entry))]
    refused = [each for each in sentences if _is_of_call(each, given, names, command_of(entry))][:_MOST_PLACES]
    free = [each.name for each in refused if each.kind == "unexpected"] or names
    parts = [(each, *_describe_fix(evidence, entry, each, given, free)) for each in refused]
    if not parts:
        return None
    cause = f"{call_phrase(entry, 70)} is refused: {'; '.join(_describe_demand(each, given) for each, _, _ in parts)}."
    # Names that are only not allowed need no value, so one sentence can say what to give.
    if all(each.kind == "unexpected" and (each.options or sure) for each, _, sure in parts):
        cause += f" Give {join_texts([step for _, step, _ in parts])}."
    replaced = " ".join(step for _, step, _ in parts)
    texts = [
        step
        for each, step, _ in parts
        # A name replaced by another is mentioned with the other one.
        if each.kind != "unexpected" or f"in place of {code(each.name, 40)}" not in replaced.replace(step, "")
    ]
    step = f"Make the same call with {join_texts(texts)}; keep the other arguments as they are."
    # A value that the record does not hold would be a guess.
    if any(each.kind == "required" and not sure for each, _, sure in parts):
        step += " Take a value that nothing names from the task, or ask the user."
    return diagnosis(
        KIND, cause, step, evidence.quote(entry), check="The answer must no longer name these places.",
        confidence="high" if all(sure for _, _, sure in parts) else "medium",
    )  # fmt: skip


_MOST_PLACES = 5
_GIVES_FILE = lazy_pattern(
    r"(?:\s-f|--file(?:name)?|--values|--config|--from-file|file://|[=@])\s?=?[\w./-]{1,120}\.(?:ya?ml|json|toml)\b"
)


def _locate_violation(violation: Violation, given: object) -> Violation:
    """Return a violation with the name of its argument, if the answer names only the value."""
    # If the validator names the place, the values don't matter.
    if violation.kind not in ("choice", "form") or given_value(given, violation.path) is not None:
        return violation
    keys = [
        name for fields in find_objects(given) for name, value in fields.items() if value in (violation.name, violation.had)
    ]
    # A value that occurs twice does not identify its place.
    return violation._replace(path=(keys[0],)) if len(keys) == 1 else violation


def _is_of_call(violation: Violation, given: object, names: list[str], command: str) -> bool:
    """Whether a violation belongs to the call, and not to something that its answer shows."""
    # The call passes a file to its tool, and the places are in that file.
    if len(violation.path) > 1 and _GIVES_FILE.search(command):
        return True
    if violation.kind == "required":
        # A required name is missing by definition, but its parent belongs to the call.
        parents = [part for part in violation.path[:-1] if isinstance(part, str)]
        return given_value(given, violation.path) is None and (not parents or parents[-1] in names)
    return violation.name in names


def _describe_demand(violation: Violation, given: object) -> str:
    place = code(violation.readable_path, 60)
    own = given_value(given, violation.path)
    has = f" and is {code(json.dumps(own, ensure_ascii=False)[:100], 50)}" if own is not None else ""
    if isinstance(own, str) and violation.kind == "type":
        has += ", a string"
    if violation.kind == "required":
        return f"it wants {place}{f' ({violation.wants})' if violation.wants else ''}, which is not there"
    if violation.kind == "unexpected":
        return f"it does not take {place}"
    if violation.kind == "choice":
        return f"{place} must be one of {join_names(violation.options)}{has}"
    form = f"in the form {code(violation.wants, 50)}" if violation.kind == "form" else f"of type {violation.wants}"
    return f"{place} must be {form}{has}"


def _describe_fix(
    evidence: Evidence, entry: EntryView, violation: Violation, given: object, free: list[str]
) -> tuple[str, bool]:
    """Return in words what to give at a place, and whether the record says so."""
    place = code(violation.readable_path, 60)
    if violation.kind == "unexpected":
        return _describe_replacement(violation)
    near = _find_similar_name(violation.name, free) if violation.kind == "required" else None
    # Another unit needs another value, not only another name.
    if near is not None and find_unit(near) == find_unit(violation.name):
        return f"{place} in place of {code(near, 40)}", True
    value = derive_value(evidence, violation, given)
    typed = f" ({violation.wants})" if violation.wants and violation.kind != "form" else ""
    if value:
        return f"{place} as {code(value, 60)}{typed}", True
    known = find_known_values(evidence, entry, violation)
    if known is not None:
        values, source = known.values, evidence.source(known.entry)
        if len(values) == 1:
            return f"{place} as {code(values[0], 60)}, which {source} shows", known.beside > 0
        return f"{place} set to the one of {join_names(values)} that fits the task, as {source} shows them", False
    if violation.kind == "required":
        return f"{place} added{typed}", False
    if violation.kind == "choice":
        return f"{place} set to the one of {join_names(violation.options)} that fits the task", False
    return (
        f"{place} {f'in the form {code(violation.wants, 50)}' if violation.kind == 'form' else f'of type {violation.wants}'}",
        False,
    )


def _describe_replacement(violation: Violation) -> tuple[str, bool]:
    """Return what to give instead of a name that is not allowed."""
    own = code(violation.name, 40)
    near = find_nearest_offered(violation.name, violation.options, 0.65)
    if near is not None:
        return f"{code(near, 40)} in place of {own}", True
    takes = f"the one of {join_names(violation.options, 12)} that is meant" if violation.options else ""
    return f"{takes or 'the name that its schema or help has'} in place of {own}", False


def _compare_arguments(entry: EntryView, said: str) -> _Arguments:
    given = argument_names(entry)
    # A name in the call is not missing, whatever the sentence says.
    missing_names = [name for name in _list_names(_WANTED, said) if name not in given]
    unwanted = [name for name in _list_names(_UNWANTED, said) if name in given]
    offered = [option for option in dict.fromkeys(_OPTION.findall(said)) if option not in unwanted]
    return _Arguments(missing_names, unwanted, given, offered)


def _list_names(patterns: Iterable[re.Pattern[str]], said: str) -> list[str]:
    found = [name for pattern in patterns for name in pattern.findall(said)]
    fair = [name for name in found if name.lower() not in NO_NAMES and plain_name(name.lstrip("-"))]
    return list(dict.fromkeys(fair))[:8]


def _diagnose_arguments(evidence: Evidence, entry: EntryView, asked: _Arguments) -> Diagnosis | None:
    free = asked.unwanted or asked.given
    pairs: list[tuple[str, str]] = []
    lacking: list[str] = []
    for name in asked.wanted:
        near = _find_similar_name(name, [each for each in free if each not in [old for old, _ in pairs]])
        # A wanted name that is similar to no given one must be added.
        if near is None:
            lacking.append(name)
        else:
            pairs.append((near, name))
    for name in asked.unwanted:
        near = (
            find_nearest(name, asked.offered, 0.6) if name.startswith("--") and name not in [old for old, _ in pairs] else None
        )
        if near is not None:
            pairs.append((name, near))
    if not pairs and not lacking:
        return None
    call = call_phrase(entry, 70)
    wants = [new for _, new in pairs] + lacking
    cause = f"{call} is refused: it wants {join_names(wants)}"
    cause += (
        (f", and you gave {join_names([old for old, _ in pairs])}.")
        if pairs
        else (f", and you gave {join_names(asked.given[:6])}.")
        if asked.given
        else "."
    )
    swaps = [f"{code(new, 40)} in place of {code(old, 40)}" for old, new in pairs]
    parts = [f"with {' and '.join(swaps[:6])}"] if swaps else []
    parts += [f"{'and ' if swaps else 'with '}{join_names(lacking)} added"] if lacking else []
    step = f"Make the same call {' '.join(parts)}."
    if lacking:
        step += " Take the values from the task; ask the user for one that nothing names."
    return diagnosis(
        KIND, cause, step, evidence.quote(entry), check="The answer must no longer name these arguments.",
        confidence="high" if pairs and not lacking else "medium",
    )  # fmt: skip


def _find_similar_name(name: str, given: list[str]) -> str | None:
    plain = {_letters(each): each for each in given}
    if _letters(name) in plain:
        return plain[_letters(name)]
    return find_nearest(name, given, 0.62)


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name)).casefold()


# Python's jsonschema names the field only in the path of the failed rule.
_VALIDATED = lazy_pattern(
    r"is not of type '(\w+)'[\s\S]{0,80}?validating 'type' in schema(?:\['\w{1,40}'\]){0,8}?\['properties'\]\['(\w{1,60})'\]"
)
_REQUIRED = lazy_pattern(r"'required': \[((?:'[\w.-]{1,40}'(?:, )?){1,8})\]")


def _diagnose_type(evidence: Evidence, entry: EntryView, name: str, kind: str, needs: re.Match[str] | None) -> Diagnosis:
    """Say which type an argument must have, and what its items must have."""
    value = fields_of(entry).get(name)
    shown = f", and you gave {code(json.dumps(value, ensure_ascii=False)[:80], 60)}" if name in fields_of(entry) else ""
    was = " as a string" if isinstance(value, str) and shown else ""
    members = join_names(re.findall(r"[\w.-]+", needs.group(1))) if needs else ""
    of = f" of objects, each with {members}" if members and kind == "array" else f" with {members}" if members else ""
    cause = f"The call is refused: {code(name, 40)} must be of type {kind}{of}{shown}{was}."
    like = "" if of else convert_value(value, kind)
    step = (
        f"Make the same call with {code(name, 40)} as {kind}{of}{f', as in {code(like, 60)}' if like else ''}; keep the other"
        " arguments as they are."
    )
    return diagnosis(KIND, cause, step, evidence.quote(entry))


def _diagnose_value(evidence: Evidence, entry: EntryView, said: str) -> Diagnosis | None:
    """Return which value has the wrong type, or is not among the allowed ones."""
    names = argument_names(entry)
    failed = _VALIDATED.search(said)
    # A type counts only for an argument that the call has.
    if failed is not None and failed.group(2) in names:
        return _diagnose_type(evidence, entry, failed.group(2), failed.group(1).lower(), _REQUIRED.search(said))
    match = _TYPE.search(said)
    name = (match.group(1) or match.group(3)) if match else ""
    if match and name in names:
        return _diagnose_type(evidence, entry, name, (match.group(2) or match.group(4)).lower(), None)
    allowed = _ONE_OF.search(said)
    # Values in a command have no names, so they are judged by the answer's quotes.
    if allowed is None or command_of(entry):
        return diagnose_refused_value(evidence, entry, said)
    options = [
        word for word in re.findall(r"[\w./-]{1,60}", allowed.group(2)) if word not in ("or", "received") and plain_name(word)
    ]
    values = {value: key for key, value in fields_of(entry).items() if isinstance(value, str) and len(value) <= 60}
    named = [allowed.group(1), *_RECEIVED.findall(said)]
    like = (each for each in values if each not in options and find_nearest(each, options, 0.6))
    wrong = next((each for each in named if each in values), None) or next(like, None)
    # A single option is an example.
    if wrong is None or wrong in options or len(options) < 2:
        return diagnose_refused_value(evidence, entry, said)
    near = find_nearest(wrong, options, 0.6)
    cause = f"The call is refused: {code(values[wrong], 40)} is {code(wrong, 60)}, and only {join_names(options)} are allowed."
    step = (
        (f"Make the same call with {code(values[wrong], 40)} set to {code(near, 60)}.")
        if near
        else f"Make the same call with {code(values[wrong], 40)} set to the allowed value that fits the task, one of "
        f"{join_names(options)}; keep the other arguments as they are."
    )
    return diagnosis(KIND, cause, step, evidence.quote(entry))
