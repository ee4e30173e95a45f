"""Read from an error text of any tool what it refuses, and what it wants or offers instead.

A validator refuses places of a call (`find_violations`). Validators share one form: a path and a message. Pydantic puts them
on two lines, Zod, Ajv and web frameworks into objects, AWS and Kubernetes into one sentence.

Other tools do not know a name (`unknown_names`). They share a few grammars: "no such X: Y", "X 'Y' not found", "cannot find
Y", "'Y' is not one of A, B", "did you mean Z".

Only names, types and allowed values are read. The words around them are never passed on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, cast

from ctxmgr.diagnose.evidence.items import find_json, find_objects
from ctxmgr.diagnose.evidence.texts import first_group, plain_name
from ctxmgr.text.patterns import lazy_pattern, word_set

Kind = Literal["required", "unexpected", "type", "choice", "form"]

_MOST_VIOLATIONS, _MOST_TEXT = 8, 12_000
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
    return list(found.values())[:_MOST_VIOLATIONS]


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
        violation = _read_violation(path, message, "", _find_listed_options(more))
        expected = more.get("expected")
        kind = _TYPES.get(str(expected).lower(), "")
        # Zod has a separate member for the expected type.
        if violation is not None and kind and violation.kind in ("required", "type"):
            violation = violation._replace(wants=kind)
        if violation is not None:
            yield violation


def _find_listed_options(fields: dict[str, Any]) -> tuple[str, ...]:
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
                violation = _read_violation(
                    _join_path(name), " ".join(str(each)[:200] for each in texts[:3] if isinstance(each, str)), "", ()
                )
                if violation is not None:
                    yield violation


def _list_text_violations(text: str) -> Iterator[Violation]:
    for match in _PYDANTIC.finditer(text):
        violation = _read_violation(_join_path(match.group(1)), re.split(r" \[type=", match.group(2))[0], "", ())
        if violation is not None:
            yield violation
    for pattern in _SENTENCES:
        for match in pattern.finditer(text):
            groups = match.groupdict()
            path = _join_path(groups.get("path") or "") or (
                *_join_path(groups.get("parent") or ""),
                *_join_path(groups.get("name") or ""),
            )
            violation = _read_violation(path, match.group("message"), groups.get("rest") or "", ())
            if violation is not None:
                yield violation


def _read_violation(path: tuple[str | int, ...], message: str, rest: str, options: tuple[str, ...]) -> Violation | None:
    """Return the violation in a message about a place, or None if it is not a validator's message."""
    said = f"{message} {rest}".replace("_", " ") if not rest else f"{message}{rest}"
    # Without a place, any message would be a violation.
    if not path:
        return None
    kind = _TYPE.search(said)
    type_ = _TYPES[kind.group(1).lower()] if kind else ""
    # Codes have underscores: `unrecognized_keys`.
    if _UNEXPECTED.search(message.replace("_", " ")):
        return Violation(path, "unexpected", "", options or _find_options(rest))
    if _REQUIRED.search(message):
        return Violation(path, "required", type_)
    had = (found.group(1) or found.group(2)) if (found := _HAD.search(said)) else ""
    options = options or (_find_options(rest or said) if _CHOICE.search(said) else ())
    options = tuple(each for each in options if each != had)
    # A single option is mostly the type's own name.
    if len(options) > 1:
        return Violation(path, "choice", "", options, had)
    form = _FORM.search(message) or _DATED.search(message)
    if form is not None:
        return Violation(path, "form", first_group(form), (), had)
    # Go names the type only after the place.
    if not type_ and rest:
        type_ = _TYPES.get(re.sub(r"^[\[\]*]+", "", rest).lower(), "array" if rest.startswith("[]") else "")
    dated = {"date": "YYYY-MM-DD", "datetime": "YYYY-MM-DDThh:mm:ssZ"}.get(type_)
    return Violation(path, "form", dated) if dated else Violation(path, "type", type_) if type_ else None


def _find_options(said: str) -> tuple[str, ...]:
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


_Q = r"[`'\"‘’“”«»]"
# A dot, a slash or a colon belongs to a name only inside it, since `app.py.` ends a sentence.
_MAYBE_QUOTED = rf"{_Q}?((?:[\w@~$%+-]|[./:](?=[\w@~/$*-])){{2,120}}){_Q}?"
_QUOTED = rf"{_Q}([^`'\"‘’“”«»\n]{{2,120}}){_Q}"
_LACKS = (
    r"(?:no such|unknown|undefined|unrecogni[sz]ed|non-?existent|unsupported|undeclared|unresolved|unexpected|no "
    r"matching|no|not a(?: valid| known)?|invalid)"
)
# A thing that is taken at present, or by somebody, is known.
_NOT_NOW = (
    r"(?!\s+(?:(?:on|from|at|between|until|before|for)\s+)?(?:(?:the )?(?:date|day|time)s?\W{1,2})?\d"
    r"|\s*[:;,(-]\s*(?:it is )?(?:overlaps|held|taken|booked|reserved|busy|in use|occupied))"
)
_ABSENT = (
    r"(?:(?:was |is |were |could |can |has )?(?:not|n't|n’t) (?:be )?(?:found|exist|defined|known|recogni[sz]ed"
    rf"|available{_NOT_NOW}|registered|declared|resolved|supported|located)"
    r"|(?:does|do|did)(?: not|n't|n’t) (?:exist|match any(?:thing)?|resolve|appear)|is (?:unknown|undefined"
    r"|missing|unrecogni[sz]ed)"
    rf"|is not (?:an? )?(?:known|valid|recogni[sz]ed|available{_NOT_NOW}|existing|configured)|isn't (?:an? )?(?:known|valid"
    # "deploy: unknown stage x" is what `deploy` says.
    r"|recogni[sz]ed)|not found|unknown(?! [a-z-]{2,24} \S))"
)
_FINDS = (
    r"(?:can(?:not|'t|’t| not)|could(?: not|n't|n’t)|unable to|failed to|did(?: not|n't)|doesn't|does not) (?:find"
    r"|locate|resolve|load|open|read|know|access|get|import|stat)"
)

_UNKNOWN = tuple(
    lazy_pattern(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b{_LACKS} (?P<noun>(?:[A-Za-z-]{{2,24}} ){{0,2}}[A-Za-z-]{{2,24}}?) ?(?:named|called|with (?:the "
        rf")?(?:name|id)|by the name(?: of)?|for|of|is|are|was)?[:=]? ?{_QUOTED.replace('(', '(?P<name>', 1)}",
        rf"\b{_LACKS} (?P<noun>(?:[A-Za-z-]{{2,24}} ){{0,2}}[A-Za-z-]{{2,24}}?)(?: (?:named|called|with (?:the "
        rf")?(?:name|id)|by the name(?: of)?))?[:=] ?{_MAYBE_QUOTED.replace('(', '(?P<name>', 1)}",
        rf"\b{_LACKS} (?P<noun>[a-z][a-z-]{{2,24}}) {_MAYBE_QUOTED.replace('(', '(?P<name>', 1)}(?=[\s.,;]|$)",
        rf"\b(?P<noun>(?:[A-Za-z-]{{2,24}} ){{0,1}}[A-Za-z-]{{2,24}})[:=]? "
        rf"{_QUOTED.replace('(', '(?P<name>', 1)}(?: \S{{1,40}}){{0,4}}? {_ABSENT}",
        rf"(?:^|[\s:]){_QUOTED.replace('(', '(?P<name>', 1)},? (?:\S{{1,40}} ){{0,4}}?{_ABSENT}",
        rf"\b(?P<noun>[a-z][a-z-]{{2,24}}) {_MAYBE_QUOTED.replace('(', '(?P<name>', 1)} {_ABSENT}",
        rf"(?:^|[\s:]){_MAYBE_QUOTED.replace('(', '(?P<name>', 1)}:? {_ABSENT}",
        rf"\b{_FINDS} (?:any |the |an? )?(?P<noun>(?:[a-z-]{{2,24}} ){{0,3}}?)(?:named |called |for |of "
        rf")?{_QUOTED.replace('(', '(?P<name>', 1)}",
        rf"\b{_FINDS} (?:any |the |an? )?(?P<noun>(?:[a-z-]{{2,24}} ){{0,2}}?)(?:named |called "
        rf")?{_MAYBE_QUOTED.replace('(', '(?P<name>', 1)}(?=[.,;:]|\s(?!(?:named|called) )|$)",
        rf"(?:^|[\s:]){_MAYBE_QUOTED.replace('(', '(?P<name>', 1)}: no such (?P<noun>[a-z-]{{2,24}}(?: or [a-z]{{2,20}})?)",
        r"\binstall the (?P<name>[\w:.@/-]{2,80}) (?P<noun>module|package|crate|gem|library)",
        rf"\bdon't know how to (?:make|build)(?P<noun> target| task)? {_MAYBE_QUOTED.replace('(', '(?P<name>', 1)}",
        rf"\b(?:name|key|attribute|id|ref)(?P<noun>)[:=] ?{_QUOTED.replace('(', '(?P<name>', 1)} "
        rf".{{0,30}}(?:unknown|not found)",
    )
)
_LIST = (
    r"\s{0,6}[\[({]?\s{0,2}(?P<list>(?:(?:[`'\"‘“]?[\w./:@+-]{1,80}[`'\"’”]?)(?:\s?[,|]\s?(?:or |and )?|\s(?:or|and)\s"
    r"|\n\s{1,12}[-*]?\s{0,2})?){1,24})"
)
_OFFERS = tuple(
    lazy_pattern(pattern + _LIST, re.IGNORECASE)
    for pattern in (
        r"\b(?:did you mean|(?:perhaps|maybe) you meant|you might want|most similar \w{2,20}|is similar|similar names? exists?)"
        r"(?: (?:to reference the|one of|these|this|instead|is|are|the|column|table|commands?|names?|targets?"
        r"|options?))*\s?[:?]?",
        r"\b(?:not (?:one |any )?of|must be (?:one |any )?of|(?:expected|should be|choose|chosen|pick|use|want"
        r"|got none) (?:either|one of|from|any of)|one of)"
        r"(?: (?:the following|these|the|values?|names?|following|allowed|enum))*\s?:?",
        r"\b(?:available|valid|allowed|known|supported|possible|permitted|accepted|existing|defined|registered"
        r"|expected|candidates?|options|choices|enum)"
        r"(?: [a-z]{2,20}){0,2}(?:\s?[:=]| (?:are|is|include):?)",
    )
)
_WORD = lazy_pattern(r"[\w@+-](?:[\w./:@+-]{0,80}[\w*-])?")
_SMALL = word_set(
    "a an the this that it is are was of in on at to for from by or and not no such file files directory be any one with "
    "name command you your mean use try see all new as its these those there here which what value values following instead "
    "did does do"
)
_MOST_READ = 8_000


class Unknown(NamedTuple):
    """A name that is not known according to a text. ``noun`` is the text's word for such a thing, or ""."""

    name: str
    noun: str
    start: int


def _readable_part(text: str) -> str:
    """Return the part of a text to read, with the quotes that JSON has escaped as plain ones."""
    return text[:_MOST_READ].replace('\\"', '"')


def unknown_names(text: str) -> Iterator[Unknown]:
    """Yield the names that are unknown, missing or not found according to a text, in the order of the patterns."""
    seen: set[str] = set()
    for pattern in _UNKNOWN:
        for match in pattern.finditer(_readable_part(text)):
            name = match.group("name").strip().rstrip(".,:;")
            noun = " ".join((match.groupdict().get("noun") or "").lower().split())
            # A small word means that the pattern has matched a sentence.
            if name not in seen and len(name) > 1 and name.casefold() not in _SMALL:
                seen.add(name)
                yield Unknown(name, " ".join(word for word in noun.split() if word not in _SMALL), match.start())


def meant_names(text: str) -> list[str]:
    """Return the names that were probably meant according to a text."""
    found = [word for match in _OFFERS[0].finditer(_readable_part(text)) for word in _WORD.findall(match.group("list"))]
    return list(dict.fromkeys(word for word in found if word.casefold() not in _SMALL and plain_name(word)))[:8]


def offered_names(text: str) -> list[str]:
    """Return the names that a text offers instead of a refused one, in its order."""
    found: list[str] = []
    for pattern in _OFFERS:
        for match in pattern.finditer(_readable_part(text)):
            found += [word for word in _WORD.findall(match.group("list")) if word.casefold() not in _SMALL and plain_name(word)]
    return list(dict.fromkeys(found))[:40]


_RAISED = lazy_pattern(r"^(?:\w+\.)*\w*(?:Error|Exception)\b(?=:|$)", re.MULTILINE)


def last_match(pattern: re.Pattern[str], said: str) -> re.Match[str] | None:
    """Return the last match of a pattern, or None if another exception follows it, since that one ends the call."""
    matches = list(pattern.finditer(said))
    if not matches:
        return None
    found = matches[-1]
    line = said.find("\n", found.end())
    return None if line >= 0 and _RAISED.search(said, line) else found
