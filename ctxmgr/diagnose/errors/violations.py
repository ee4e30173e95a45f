"""Read what any validator says about a call: each place that it refuses, and what it wants there.

Validators share one form: a path and a message. Pydantic puts them on two lines, Zod, Ajv and web frameworks into objects,
AWS and Kubernetes into one sentence. Only names, types and allowed values are read; no other words
are passed on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, cast

from ctxmgr.diagnose.evidence.items import find_json, find_objects
from ctxmgr.diagnose.evidence.texts import plain_name
from ctxmgr.text.patterns import lazy_pattern

Kind = Literal["required", "unexpected", "type", "choice", "form"]

_MOST, _MOST_TEXT = 8, 12_000
_PATH_KEYS = ("path", "loc", "instancePath", "dataPath", "field", "pointer", "param", "property", "argument", "attribute")
_MESSAGE_KEYS = ("message", "msg", "error", "reason", "detail", "description", "code")
_NAME = r"[A-Za-z_][\w-]{0,60}"
_TYPES = {
    "str": "string", "string": "string", "int": "integer", "integer": "integer", "int32": "integer", "int64": "integer",
    "number": "number", "float": "number", "double": "number", "decimal": "number", "bool": "boolean", "boolean": "boolean",
    "list": "array", "array": "array", "tuple": "array", "sequence": "array", "slice": "array", "dict": "object",
    "object": "object", "map": "object", "dictionary": "object", "mapping": "object", "record": "object", "date": "date",
    "datetime": "datetime", "i32": "integer", "i64": "integer", "u32": "integer", "u64": "integer", "f64": "number",
}  # fmt: skip
# Two lines of pydantic: `user.age`, and below it `  Input should be a valid integer`
_PYDANTIC = lazy_pattern(rf"^({_NAME}(?:\.[\w-]{{1,60}}){{0,8}})\n {{2,4}}(\S[^\n]{{3,300}})", re.MULTILINE)
_SENTENCES = tuple(
    lazy_pattern(pattern, re.MULTILINE)
    for pattern in (
        r"(?P<message>Unknown parameter) in (?P<parent>[\w.\[\]]{1,160}): \"(?P<name>[\w-]{1,60})\""
        r"(?P<rest>, must be one of:[^\n]{1,600})",
        r"(?P<message>Missing required parameter) in (?P<parent>[\w.\[\]]{1,160}): \"(?P<name>[\w-]{1,60})\"",
        r"(?P<message>Invalid type) for parameter (?P<path>[\w.\[\]]{1,160}), value:[^\n]{0,300}?"
        r"valid types:(?P<rest>[^\n]{1,120})",
        r"[*-]? ?(?P<path>[a-z]\w{0,40}(?:\.[\w-]{1,60}|\[\d{1,4}\]"
        r"|\[\w{1,30}\]){1,9}): (?P<message>(?:Unsupported value|Invalid value|Required value|Forbidden"
        r"|Duplicate value)[^\n]{0,300})",
        r"argument (?P<path>-{1,2}[\w-]{1,60})(?:/-\S{1,60})?: (?P<message>invalid choice: '[^'\n]{1,60}') "
        r"\((?P<rest>choose from [^\n)]{1,400})",
        r"(?P<message>Invalid value) for '(?P<path>-{1,2}[\w-]{1,60})'[^\n:]{0,60}: "
        r"(?P<rest>'[^'\n]{1,60}' is not one of [^\n]{1,400})",
        r"(?P<message>unknown field) \\?\"(?P<path>[\w.\[\]-]{1,120})\\?\"",
        rf"(?P<message>[Uu]nknown (?:field|variant)) `(?P<path>{_NAME})`,? (?P<rest>expected [^\n]{{1,300}})",
        rf"(?P<message>[Mm]issing field) `(?P<path>{_NAME})`",
        r"cannot unmarshal (?P<message>\w{2,12} into Go struct field) (?:\w+\.)?(?P<path>[\w.-]{1,120})"
        r" of type (?P<rest>[\w.\[\]*]{2,40})",
        r"(?P<message>Unknown name) \"(?P<name>[\w-]{1,60})\"(?: at '(?P<parent>[\w.\[\]]{1,120})')?: Cannot find field",
        r"(?P<message>Invalid value) at '(?P<path>[\w.\[\]]{1,120})' \((?P<rest>[\w.]{2,60})\)",
        # Python's jsonschema names no path.
        r"(?:(?<![\w/.])(?P<path>/?[A-Za-z_][\w./\[\]-]{0,120}): )?(?P<message>[\"'](?P<name>[^\"'\n]{1,60})[\"']"
        r" does not match(?: pattern| regex)? [\"']\^[^\n\"']{2,80}[\"'])",
    )
)
_REQUIRED = lazy_pattern(
    r"\brequired\b|\bmissing\b|can't be blank|may not be (?:null|blank)|must (?:be (?:set|present|provided|specified)"
    r"|not be empty)"
    r"|received undefined",
    re.IGNORECASE,
)
_UNEXPECTED = lazy_pattern(
    r"unrecogni[sz]ed key|unknown (?:parameter|field|name|key|property|argument)|was unexpected|extra (?:inputs?|fields?)"
    r"|(?:additional|extra) propert\w+|not (?:permitted|a (?:known|valid) (?:field|property|parameter))",
    re.IGNORECASE,
)
_CHOICE = lazy_pattern(
    r"one of|choose from|supported values|allowed values|valid values|valid choice|invalid enum|expected (?=[`'\"])"
    r"|should be (?=['\"])",
    re.IGNORECASE,
)
_OPTION = lazy_pattern(r"[`'\"]([\w./+-]{1,60})[`'\"]")
_BARE = lazy_pattern(
    r"(?:one of:?|choose from|values(?: are)?:?) ?[\[(]?((?:[\w./+-]{1,60}(?:, ?| \| | or |$)){2,30})", re.IGNORECASE
)
_FORM = lazy_pattern(
    r"(?:pattern|regex|format|in the form|does not match)\b[^\n'\"`/^]{0,20}(?:['\"`/]([^\n'\"`]{2,80})['\"`/]|(\^\S{2,80}\$))",
    re.IGNORECASE,
)
_HAD = lazy_pattern(
    r"(?:value:? |received |got |choice: )[`'\"]([^`'\"\n]{1,60})|^[`'\"]([^`'\"\n]{1,60})[`'\"] does not match"
)
# Other digits (`²`) are no number for `int`, and nothing has more members.
_POSITION = lazy_pattern(r"[0-9]{1,9}")
_DATED = lazy_pattern(r"\b([YMD]{2,4}[-/.][YMD]{2,4}[-/.][YMD]{2,4})\b")
_TYPE = lazy_pattern(
    r"(?:must be|should be|expected|expects|not of type|of type|valid types?:?|to be|not a valid)(?: an?| of type"
    r"| type|:)? ?(?:valid |<class )?[`'\"]?"
    rf"({'|'.join(sorted(_TYPES, key=len, reverse=True))})\b",
    re.IGNORECASE,
)


class Violation(NamedTuple):
    """One place of a call that a validator refuses.

    Attributes:
        path: the names and positions that lead to it, outermost first.
        wants: a type ("integer"), or the form that a value must have; "" if unknown.
        options: the allowed values, or the known names instead of an unexpected one.
        had: the value that was given according to the answer.
    """

    path: tuple[str | int, ...]
    kind: Kind
    wants: str = ""
    options: tuple[str, ...] = ()
    had: str = ""

    @property
    def name(self) -> str:
        """The innermost name."""
        return next((part for part in reversed(self.path) if isinstance(part, str)), "")

    @property
    def readable_path(self) -> str:
        """The path as a person would write it."""
        return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path).lstrip(".")


def find_violations(result: Any, text: str) -> list[Violation]:
    """Return the violations in a result, in its order, each place once; empty if it comes from no validator.

    Args:
        result: the error or output as recorded, of any shape.
        text: the same as text.
    """
    found: dict[tuple[str | int, ...], Violation] = {}
    # JSON that is a text within JSON has escaped quotes.
    bare = text[:_MOST_TEXT].replace('\\"', '"')
    for each in (
        *_list_object_violations(result),
        *(one for value in find_json(text[:_MOST_TEXT]) for one in _list_object_violations(value)),
        *_list_text_violations(bare),
    ):
        # A path that is no name does not come from a validator.
        if each.name and all(plain_name(str(part).lstrip("-")) for part in each.path):
            found.setdefault(each.path, each)
    return list(found.values())[:_MOST]


def _list_object_violations(value: Any) -> Iterator[Violation]:
    for fields in find_objects(value):
        message = " ".join(str(fields[key])[:300] for key in _MESSAGE_KEYS if isinstance(fields.get(key), str))
        path = next((path for key in _PATH_KEYS if (path := _join_path(fields.get(key)))), ())
        keys = fields.get("keys")
        # Zod lists unknown keys beside the path.
        if isinstance(keys, list) and _UNEXPECTED.search(message.replace("_", " ")):
            yield from (Violation((*path, str(key)), "unexpected") for key in cast("list[Any]", keys)[:6])
            continue
        if not path:
            yield from _list_field_violations(fields)
            continue
        params = fields.get("params")
        more = {**fields, **cast("dict[str, Any]", params)} if isinstance(params, dict) else fields
        if isinstance(lacks := more.get("missingProperty"), str):
            yield Violation((*path, lacks), "required")
            continue
        violation = _violation(path, message, "", _listed_options(more))
        expected = more.get("expected")
        kind = _TYPES.get(str(expected).lower(), "")
        # Zod has a separate member for the expected type.
        if violation is not None and kind and violation.kind in ("required", "type"):
            violation = violation._replace(wants=kind)
        if violation is not None:
            yield violation


def _listed_options(fields: dict[str, Any]) -> tuple[str, ...]:
    for key in ("options", "allowed", "allowedValues", "enum", "choices", "values", "validValues"):
        value = fields.get(key)
        if isinstance(value, list) and value and all(isinstance(each, str | int) for each in cast("list[Any]", value)):
            return tuple(str(each)[:60] for each in cast("list[Any]", value)[:20])
    return ()


def _list_field_violations(fields: dict[str, Any]) -> Iterator[Violation]:
    """Yield the violations in an object whose keys are the fields: `{"errors": {"start": ["is required"]}}`."""
    for key in ("errors", "fieldErrors", "field_errors", "detail", "details", "validation"):
        inner = fields.get(key)
        if isinstance(inner, dict):
            for name, said in cast("dict[str, Any]", inner).items():
                texts = cast("list[Any]", said) if isinstance(said, list) else [said]
                violation = _violation(
                    _join_path(name), " ".join(str(each)[:200] for each in texts[:3] if isinstance(each, str)), "", ()
                )
                if violation is not None:
                    yield violation


def _list_text_violations(text: str) -> Iterator[Violation]:
    for match in _PYDANTIC.finditer(text):
        violation = _violation(_join_path(match.group(1)), re.split(r" \[type=", match.group(2))[0], "", ())
        if violation is not None:
            yield violation
    for pattern in _SENTENCES:
        for match in pattern.finditer(text):
            groups = match.groupdict()
            path = _join_path(groups.get("path") or "") or (
                *_join_path(groups.get("parent") or ""),
                *_join_path(groups.get("name") or ""),
            )
            violation = _violation(path, match.group("message"), groups.get("rest") or "", ())
            if violation is not None:
                yield violation


def _violation(path: tuple[str | int, ...], message: str, rest: str, options: tuple[str, ...]) -> Violation | None:
    """Return the violation in a message about a place, or None if it is not a validator's message."""
    said = f"{message} {rest}".replace("_", " ") if not rest else f"{message}{rest}"
    # Without a place, any message would be a violation.
    if not path:
        return None
    kind = _TYPE.search(said)
    type_ = _TYPES[kind.group(1).lower()] if kind else ""
    # Codes have underscores: `unrecognized_keys`.
    if _UNEXPECTED.search(message.replace("_", " ")):
        return Violation(path, "unexpected", "", options or _options(rest))
    if _REQUIRED.search(message):
        return Violation(path, "required", type_)
    had = (found.group(1) or found.group(2)) if (found := _HAD.search(said)) else ""
    options = options or (_options(rest or said) if _CHOICE.search(said) else ())
    options = tuple(each for each in options if each != had)
    # A single option is mostly the type's own name.
    if len(options) > 1:
        return Violation(path, "choice", "", options, had)
    form = _FORM.search(message) or _DATED.search(message)
    if form is not None:
        return Violation(path, "form", next(group for group in form.groups() if group), (), had)
    # Go names the type only after the place.
    if not type_ and rest:
        type_ = _TYPES.get(re.sub(r"^[\[\]*]+", "", rest).lower(), "array" if rest.startswith("[]") else "")
    dated = {"date": "YYYY-MM-DD", "datetime": "YYYY-MM-DDThh:mm:ssZ"}.get(type_)
    return Violation(path, "form", dated) if dated else Violation(path, "type", type_) if type_ else None


def _options(said: str) -> tuple[str, ...]:
    quoted = _OPTION.findall(said[max(0, (found.start() if (found := _CHOICE.search(said)) else 0)) :])
    bare = _BARE.search(said)
    words = quoted or (re.findall(r"[\w./+-]{1,60}", bare.group(1)) if bare else [])
    return tuple(dict.fromkeys(word for word in words if word not in ("or", "and", "received")))[:40]


def _join_path(value: Any) -> tuple[str | int, ...]:
    """Return a path that is given as a list or as a text: `body.items[0].sku`, `/items/0/sku`."""
    if isinstance(value, str):
        value = [part for part in re.split(r"[./\[\]]+", value.strip("`'\"# ")[:200]) if part]
        value = [int(part) if _POSITION.fullmatch(part) else part for part in value]
    if not isinstance(value, list):
        return ()
    parts = [part for part in cast("list[Any]", value)[:12] if isinstance(part, str | int) and not isinstance(part, bool)]
    # The parts of a request are no names in the call.
    if parts and parts[0] in ("body", "query", "params", "$", "input", "arguments") and len(parts) > 1:
        parts = parts[1:]
    return (
        tuple(parts)
        if all(isinstance(part, int) or re.fullmatch(r"-{0,2}[A-Za-z_][\w-]{0,60}", part) for part in parts)
        else ()
    )
