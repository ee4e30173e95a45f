"""Check a value against a JSON Schema, as far as the printed schemas use the language; other keywords raise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

Schema = dict[str, Any]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "null": (type(None),), "array": (list,),
    "object": (dict,),
}  # fmt: skip
_SAYING = {"$defs", "title", "description", "default", "discriminator"}


def faults(value: Any, schema: Schema, root: Schema | None = None, place: str = "$") -> list[str]:
    """Return where a value breaks a schema; ``root`` is the schema that references start from."""
    root = schema if root is None else root
    found: list[str] = []
    for keyword, rule in schema.items():
        if keyword == "$ref":
            found += faults(value, _referred(str(rule), root), root, place)
        elif keyword in ("anyOf", "oneOf"):
            found += _any_of(value, rule, root, place)
        elif keyword in ("properties", "additionalProperties", "required"):
            named = cast("Schema", value) if isinstance(value, dict) else None
            found += [] if named is None else _object(keyword, named, rule, schema, root, place)
        elif keyword == "items":
            items = cast("list[Any]", value) if isinstance(value, list) else []
            for number, item in enumerate(items):
                found += faults(item, rule, root, f"{place}[{number}]")
        elif keyword not in _SAYING:
            found += _simple(keyword, value, rule, place)
    return found


def _referred(reference: str, root: Schema) -> Schema:
    target = root
    for part in reference.removeprefix("#/").split("/"):
        target = target[part]
    return target


def _any_of(value: Any, rule: list[Schema], root: Schema, place: str) -> list[str]:
    tried = [faults(value, option, root, place) for option in rule]
    return min(tried, key=len) if all(tried) else []


def _object(keyword: str, value: dict[str, Any], rule: Any, schema: Schema, root: Schema, place: str) -> Iterator[str]:
    if keyword == "required":
        yield from (f"{place}.{name} is missing" for name in rule if name not in value)
        return
    named = cast("Schema", schema.get("properties", {}))
    for name, item in value.items():
        if keyword == "properties" and name in named:
            yield from faults(item, named[name], root, f"{place}.{name}")
        elif keyword == "additionalProperties" and name not in named and rule is not True:
            yield from [f"{place}.{name} is not known"] if rule is False else faults(item, rule, root, f"{place}.{name}")


def _simple(keyword: str, value: Any, rule: Any, place: str) -> list[str]:
    holds = {
        "type": lambda: isinstance(value, _TYPES[rule]) and (rule == "boolean" or not isinstance(value, bool)),
        "const": lambda: value == rule,
        "enum": lambda: value in rule,
        "minimum": lambda: not isinstance(value, int | float) or value >= rule,
        "maximum": lambda: not isinstance(value, int | float) or value <= rule,
        "minLength": lambda: not isinstance(value, str) or len(value) >= rule,
    }[keyword]()
    return [] if holds else [f"{place}: {value!r:.80} breaks {keyword} {rule!r}"]
