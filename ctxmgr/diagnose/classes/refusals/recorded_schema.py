"""Arguments that do not fit what the record says of them: a description of the tool or entity, or the current object."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from ctxmgr.diagnose.errors.wanted_values import convert_users_amount, list_arguments
from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.diagnose.evidence.calls import call_phrase, command_of, fields_of, program_name
from ctxmgr.diagnose.evidence.items import find_objects
from ctxmgr.diagnose.evidence.texts import capital, code, find_nearest, join_names, plain_name, strip_line_numbers
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

_KIND = "schemaRefused"
_MISFITS = lazy_pattern(
    r"\b422\b|-32602|unprocessable|invalid (?:params?|parameters|arguments?|inputs?|payload|body|request)\b"
    r"|(?:does not|doesn['’]t|do not|did not|fails? to) (?:match|conform|fit|satisfy|validate)|\bschema\b"
    r"|validation ?(?:error|fail)|must match (?:exactly one|a|one)\b|\b(?:one|any|all)Of\b|malformed|bad request",
    re.IGNORECASE,
)
_TYPED = lazy_pattern(
    r"(?:str(?:ing)?|int(?:eger)?|number|float|double|decimal|bool(?:ean)?|array|list|object|dict|map|date|datetime|enum|uuid|text)"
    r"(?:\b.*)?$",
    re.IGNORECASE | re.DOTALL,
)
_PYTHON: dict[str, type | tuple[type, ...]] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict,
}  # fmt: skip
_MEMBERS = ("properties", "fields", "parameters", "arguments", "attributes", "columns", "inputs", "args")
_DESCRIBES = frozenset(
    ("type", "enum", "$ref", "anyOf", "oneOf", "allOf", "required", "format", "const", "items", "properties")
)
_LEAST_SHARED, _MOST_NAMES, _MOST_MEMBERS = 2, 4, 12
"""Names that an object shares with its description, names that a text lists, and members of a quoted object."""
_MOST_ERROR, _MOST_TEXT, _MOST_SHOWN = 2_000, 12_000, 130
"""Characters of an error and of an answer that are read, and of an object that is quoted."""


class _Description(NamedTuple):
    """What an answer says of the members of an object. ``closed``: other members are refused."""

    members: dict[str, Any]
    required: list[str]
    closed: bool


class _Misfit(NamedTuple):
    """How an object of a call differs from its description; each wrong value with what is wanted."""

    lacks: list[str]
    foreign: list[str]
    wrong: list[tuple[str, str]]


def diagnose_by_record(evidence: Evidence, entry: EntryView, said: str) -> Diagnosis | None:
    """Return how the arguments of a refused call differ from what an earlier answer says or shows of them."""
    if not _MISFITS.search(said[:_MOST_ERROR]):
        return None
    given = list_arguments(evidence, entry)
    return _diagnose_by_description(evidence, entry, given) or _diagnose_by_current(evidence, entry, said, given)


def _list_earlier_answers(evidence: Evidence, entry: EntryView) -> Iterator[EntryView]:
    """Return the successful calls before a call, newest first."""
    return filter(evidence.has_succeeded, evidence.latest_before(entry.index))


def _diagnose_by_description(evidence: Evidence, entry: EntryView, given: Any) -> Diagnosis | None:
    """Compare a call with the description that has most of its names."""
    best: tuple[int, EntryView, _Description, dict[str, Any]] | None = None
    objects = list(find_objects(given))[:_MOST_NAMES]
    for other in _list_earlier_answers(evidence, entry):
        for description in _list_descriptions(evidence, other, entry):
            for own in objects:
                shared = len(own.keys() & description.members.keys())
                fits = shared >= _LEAST_SHARED and 2 * shared >= len(own)
                if fits and (best is None or shared > best[0]):
                    best = shared, other, description, own
    if best is None:
        return None
    shared, source, description, own = best
    misfit = _compare(own, description)
    # What differs in more names than it shares describes something else.
    if misfit is None or max(len(misfit.lacks), len(misfit.foreign)) > shared:
        return None
    return _explain_description(evidence, entry, source, description, misfit)


def _list_shown_objects(entry: EntryView) -> Iterator[dict[str, Any]]:
    """Yield the objects in an answer, also in a file that is shown with numbered lines."""
    output: Any = entry.output
    yield from find_objects(strip_line_numbers(output[: 2 * _MOST_TEXT]) if isinstance(output, str) else output)


_OF_TOOL = ("inputSchema", "input_schema", "parameters", "args_schema", "schema")
"""Members of a tool's definition that hold its schema."""


def _list_descriptions(evidence: Evidence, entry: EntryView, call: EntryView) -> Iterator[_Description]:
    """Yield the descriptions in an answer, without those of other tools."""
    objects = list(_list_shown_objects(entry))
    others = {
        id(fields[key]) for fields in objects for key in _OF_TOOL
        if isinstance(fields.get(key), dict) and isinstance(name := fields.get("name"), str) and not _is_tool(call, name)
    }  # fmt: skip
    yield from filter(None, (_read_description(fields) for fields in objects if id(fields) not in others))


def _is_tool(call: EntryView, name: str) -> bool:
    """Whether a name is that of a call's tool, with or without its server."""
    one, other = (re.sub(r"[\W_]+", "_", each[:120]).casefold() for each in (call.action, name))
    return one == other or one.endswith(f"_{other}") or other.endswith(f"_{one}")


def _read_description(fields: dict[str, Any]) -> _Description | None:
    """Return an object as a description of members: a JSON schema, or a list of fields with their types."""
    named: Any = next((fields[name] for name in _MEMBERS if isinstance(fields.get(name), dict | list) and fields[name]), None)
    if isinstance(named, list):
        rows = [cast("dict[str, Any]", each) for each in cast("list[Any]", named) if isinstance(each, dict)]
        named = {row["name"]: row for row in rows if isinstance(row.get("name"), str)}
    members = cast("dict[str, Any]", named) if isinstance(named, dict) else {}
    # The fields of a record have values, and no types.
    if not members or not all(map(_is_described, members.values())):
        return None
    listed = fields.get("required")
    required = [each for each in cast("list[Any]", listed) if isinstance(each, str)] if isinstance(listed, list) else []
    required += [name for name, each in members.items() if isinstance(each, dict) and each.get("required") is True]
    return _Description(members, [name for name in required if plain_name(name)], fields.get("additionalProperties") is False)


def _is_described(value: Any) -> bool:
    if isinstance(value, dict):
        return not _DESCRIBES.isdisjoint(cast("dict[str, Any]", value))
    return isinstance(value, str) and _TYPED.match(value) is not None


def _compare(own: dict[str, Any], description: _Description, within: str = "") -> _Misfit | None:
    """Return what does not fit in an object and the objects in it; None if all does."""
    lacks = [f"{within}{name}" for name in description.required if name not in own]
    foreign = [f"{within}{name}" for name in own if name not in description.members and plain_name(name)]
    wrong: list[tuple[str, str]] = []
    for name, value in own.items():
        if not isinstance(described := description.members.get(name), dict):
            continue
        about = cast("dict[str, Any]", described)
        wanted = _describe_wanted(about)
        if wanted and not _fits(value, about):
            wrong.append((f"{within}{name}", wanted))
        inner = _read_description(about) if isinstance(value, dict) and not within else None
        below = _compare(cast("dict[str, Any]", value), inner, f"{name}.") if inner is not None else None
        if below is not None:
            lacks, foreign, wrong = lacks + below.lacks, foreign + below.foreign, wrong + below.wrong
    # Where other members are taken, a foreign one is at fault only beside something else.
    return _Misfit(lacks, foreign, wrong) if lacks or wrong or (foreign and description.closed) else None


def _fits(value: Any, about: dict[str, Any]) -> bool:
    options = about.get("enum")
    if isinstance(options, list):
        return value in options
    kind = about.get("type")
    python = _PYTHON.get(kind) if isinstance(kind, str) else None
    return python is None or (isinstance(value, python) and (kind == "boolean" or not isinstance(value, bool)))


def _describe_wanted(about: Any) -> str:
    """Return the type and the allowed values of a member in words, "" if it has none."""
    fields = cast("dict[str, Any]", about) if isinstance(about, dict) else {}
    options = fields.get("enum")
    shown = (
        [str(each) for each in cast("list[Any]", options) if isinstance(each, str | int)] if isinstance(options, list) else []
    )
    kind = fields.get("type")
    parts = [kind] if isinstance(kind, str) and kind in _PYTHON else []
    parts += [f"one of {join_names(shown)}"] if shown and all(map(plain_name, shown)) else []
    return ", ".join(parts)


def _explain_description(
    evidence: Evidence, entry: EntryView, source: EntryView, description: _Description, misfit: _Misfit
) -> Diagnosis:
    where = evidence.source(source)
    lacks, foreign, wrong = misfit.lacks[:_MOST_NAMES], misfit.foreign[:_MOST_NAMES], misfit.wrong[:_MOST_NAMES]
    parts = [f"it lacks {join_names(lacks)}, required there"] if lacks else []
    parts += [f"it has {join_names(foreign)}, unknown there"] if foreign else []
    parts += [f"{code(name, 40)} must be {wanted}" for name, wanted in wrong]
    cause = f"{call_phrase(entry, 70)} does not fit what {where} says of its arguments: {'; '.join(parts)}."
    pairs = _pair_names(lacks, foreign)
    told = {name: _describe_wanted(description.members.get(name)) for name in lacks}
    with_type = {name: f"{code(name, 40)}{f' ({told[name]})' if told[name] else ''}" for name in lacks}
    steps = [f"{with_type[new]} in place of {code(old, 40)}" for new, old in pairs]
    steps += [f"{with_type[name]} added" for name in lacks if name not in dict(pairs)]
    steps += [f"{code(name, 40)} as {wanted}" for name, wanted in wrong]
    left = [name for name in foreign if name not in [old for _, old in pairs]]
    out = f"without {join_names(left)}" if left else ""
    with_ = f"with {' and '.join(steps)}" if steps else ""
    step = f"Make the same call {', and '.join(each for each in (with_, out) if each)}; keep the other arguments as they are."
    tool = entry.action.rpartition("__")[2]
    of_tool = not _find_subjects(entry).isdisjoint(_find_subjects(source)) or tool in evidence.text(source)
    return diagnosis(
        _KIND, cause, step, evidence.quote(source), evidence.quote(entry),
        check="The answer must no longer refuse the arguments.", confidence="high" if of_tool else "medium",
    )  # fmt: skip


def _pair_names(lacks: list[str], foreign: list[str]) -> list[tuple[str, str]]:
    """Return each missing name with the foreign one that stands in its place."""
    if len(lacks) == len(foreign) == 1:
        return [(lacks[0], foreign[0])]
    near = [(name, find_nearest(name, foreign, 0.62)) for name in lacks]
    return [(name, other) for name, other in near if other is not None]


class _Current(NamedTuple):
    """An accepted value under a name, the call that shows it, and how much of the refused call stands beside it."""

    value: dict[str, Any]
    entry: EntryView
    shared: int
    same: bool


def _diagnose_by_current(evidence: Evidence, entry: EntryView, said: str, given: Any) -> Diagnosis | None:
    """Compare the object at the place that an answer refuses with the accepted one that the record shows under that name."""
    own = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    for name, value in own.items():
        if not plain_name(name) or not re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", said[:_MOST_ERROR]):
            continue
        current = _find_current(evidence, entry, name, own)
        lacks = [each for each in current.value if not isinstance(value, dict) or each not in value] if current else []
        if current is not None and lacks:
            return _explain_current(evidence, entry, name, current, lacks)
    return None


def _find_current(evidence: Evidence, entry: EntryView, name: str, own: dict[str, Any]) -> _Current | None:
    """Return the object under a name that stands beside most of a call's values, in an answer or an accepted call."""
    keys = {(each, str(value)) for each, value in own.items() if isinstance(value, str | int) and len(str(value)) > 1}
    found: list[_Current] = []
    for other in _list_earlier_answers(evidence, entry):
        asked = {(each, str(value)) for each, value in fields_of(other).items() if isinstance(value, str | int)}
        accepted = find_objects(other.input) if other.action == entry.action else ()
        for fields in (*_list_shown_objects(other), *accepted):
            value = fields.get(name)
            if isinstance(value, dict) and value and not _is_schema(cast("dict[str, Any]", value)):
                beside = {(each, str(one)) for each, one in fields.items() if isinstance(one, str | int)}
                found.append(_Current(value, other, len(keys & (asked | beside)), bool(keys & beside)))
    return max(found, key=lambda each: (each.same, each.shared, each.entry.index), default=None)


def _is_schema(value: dict[str, Any]) -> bool:
    return str(value.get("type")) in _PYTHON or not (_DESCRIBES - {"type", "required", "items", "format"}).isdisjoint(value)


def _quotable(value: Any) -> Any:
    """Return a recorded value without its prose, which may be an order."""
    if isinstance(value, dict):
        fields = list(cast("dict[str, Any]", value).items())[:_MOST_MEMBERS]
        return {name: _quotable(each) for name, each in fields if plain_name(name)}
    if isinstance(value, list):
        return [_quotable(each) for each in cast("list[Any]", value)[:2]]
    return value if not isinstance(value, str) or plain_name(value) else "…"


def _explain_current(evidence: Evidence, entry: EntryView, name: str, current: _Current, lacks: list[str]) -> Diagnosis:
    source = evidence.source(current.entry)
    plain = _quotable(current.value)
    whose = "the present one" if current.same else "one that is accepted"
    cause = (
        f"{call_phrase(entry, 70)} is refused: {code(name, 40)} has another form. {capital(source)} shows {whose}, "
        f"{code(json.dumps(plain, ensure_ascii=False), _MOST_SHOWN)}; yours lacks {join_names(lacks, _MOST_NAMES)}."
    )
    changed = {
        each: int(amount) for each, one in plain.items()
        if isinstance(one, int) and not isinstance(one, bool) and (amount := convert_users_amount(evidence, each, one))
    }  # fmt: skip
    form = code(json.dumps(plain | changed, ensure_ascii=False), _MOST_SHOWN)
    step = f"Make the same call with {code(name, 40)} in that form, {form}"
    if changed:
        step += f": {join_names(changed)} from what the user named, everything else as it was."
    else:
        step += ", and change in it only the value that the task names, in the unit of that form."
    return diagnosis(
        _KIND, cause, step, evidence.quote(current.entry), evidence.quote(entry),
        check="The answer must no longer refuse this place.", confidence="high" if current.same else "medium",
    )  # fmt: skip


_PART = lazy_pattern(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}(?![a-z])")
_VERBS = word_set(
    "get list create update set delete remove read find search describe add new post put patch query tool call show fetch mcp"
    " write send make edit change open close start stop run check api server"
)


def _find_subjects(entry: EntryView) -> set[str]:
    """Return what a call is about by its name: the program, or the words of the tool's name without its verb."""
    if command_of(entry):
        return {program_name(entry)}
    return {word.casefold().rstrip("s") for word in _PART.findall(entry.action[:80])} - _VERBS
