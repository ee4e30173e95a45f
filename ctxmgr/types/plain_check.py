"""Take values that are exactly what a shape declares, without pydantic.

Only what pydantic would take, and as it would take it, is taken here: whatever is not plainly right, from a number written
as text to an unknown name, is left to the shape's model, which reads it or says what is wrong.
"""

from __future__ import annotations

import sys
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, cast, get_args, get_origin

from ctxmgr.types.fields import MISSING, FieldLimits, FieldTable, TextMark

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    Take = Callable[[Any], Any]
    """Returns the value that a field holds for what it is given, or raises `NotPlain`."""

_EXACT_FLOAT = 2**53


class NotPlain(Exception):  # noqa: N818 -- no error: pydantic decides
    """A value that is not exactly what is declared."""


class _Plan:
    """How the values of a shape are taken: of each name, ours or the wire's, the field and what takes its value."""

    __slots__ = ("defaults", "excluded", "names", "required")

    def __init__(self, shape: type[FieldTable]) -> None:
        self.names: dict[str, tuple[str, Take]] = {}
        self.defaults = {name: field for name, field in shape.model_fields.items() if field.default is not MISSING}
        self.required = [name for name in shape.model_fields if name not in self.defaults]
        self.excluded: set[str] = set()
        for name, annotation in annotations_of(shape).items():
            found = name, _taker(annotation, exact=False)
            if any(isinstance(part, FieldLimits) and part.exclude for part in getattr(annotation, "__metadata__", ())):
                self.excluded.add(name)
            self.names[name] = self.names[shape.model_fields[name].alias] = found


_plans: dict[type[FieldTable], _Plan] = {}


def _plan(shape: type[FieldTable]) -> _Plan:
    found = _plans.get(shape)
    if found is None:
        found = _plans[shape] = _Plan(shape)
    return found


def annotations_of(shape: type[FieldTable]) -> dict[str, Any]:
    """Return what each field is declared to hold; the names are looked up in the module of the declaration."""
    return {name: eval(field.annotation, vars(sys.modules[field.module])) for name, field in shape.model_fields.items()}


def values_of(shape: type[FieldTable], given: dict[str, Any]) -> dict[str, Any] | None:
    """Return the value of every field in the order of declaration, or None where pydantic has to look."""
    plan = _plan(shape)
    found: dict[str, Any] = {}
    try:
        renamed = shape.model_renamed(given)
        for name, value in renamed.items():
            known = plan.names.get(name)
            if known is None:
                if shape.ignores_unknown:
                    continue
                return None
            field, take = known
            if field in found:
                return None
            found[field] = take(value)
    except (NotPlain, ValueError, RecursionError):
        return None
    for name in plan.required:
        if name not in found:
            return None
    if len(found) < len(shape.model_fields):
        for name, field in plan.defaults.items():
            if name not in found:
                found[name] = field.new_default()
    return {name: found[name] for name in shape.model_fields}


def _taker(annotation: Any, *, exact: bool) -> Take:
    """Return what takes values of a declared type; ``exact`` changes none, as inside a choice of several types."""
    if annotation is Any:
        return _same
    if annotation in _SIMPLE:
        return _take_float if annotation is float and not exact else _SIMPLE[annotation]
    if isinstance(annotation, type) and issubclass(annotation, FieldTable):
        return _shape_taker(annotation, exact=exact)
    kind, parts = get_origin(annotation), get_args(annotation)
    if kind is Literal and all(type(part) is str for part in parts):
        return _choice_taker(frozenset(parts))
    if kind is Annotated:
        return _limited(parts[0], parts[1:], exact=exact)
    if kind is Union or kind is UnionType:
        return _union_taker(parts, exact=exact)
    if kind is list:
        return _list_taker(_taker(parts[0], exact=exact), list, exact=exact)
    if kind is tuple and len(parts) == 2 and parts[1] is Ellipsis:
        return _list_taker(_taker(parts[0], exact=exact), tuple, exact=exact)
    if kind is dict:
        return _dict_taker(_taker(parts[0], exact=exact), _taker(parts[1], exact=exact))
    return _leave


def _same(value: Any) -> Any:
    return value


def _leave(value: Any) -> Any:
    raise NotPlain


def _exactly(kind: type) -> Take:
    def take(value: Any) -> Any:
        if type(value) is not kind:
            raise NotPlain
        return value

    return take


_take_text, _take_exact_float = _exactly(str), _exactly(float)


def _take_str(value: Any) -> Any:
    if type(value) is not str:
        raise NotPlain
    if not value.isascii():
        value.encode()  # a lone surrogate is refused; a ValueError too
    return value


def _take_float(value: Any) -> Any:
    if type(value) is int and -_EXACT_FLOAT < value < _EXACT_FLOAT:
        return float(value)
    return _take_exact_float(value)


_SIMPLE: dict[Any, Take] = {
    str: _take_str, int: _exactly(int), bool: _exactly(bool), float: _take_exact_float, None: _exactly(NoneType),
    NoneType: _exactly(NoneType),
}  # fmt: skip


def _shape_taker(shape: type[FieldTable], *, exact: bool) -> Take:
    def take(value: Any) -> Any:
        if isinstance(value, shape):
            return value
        if exact or type(value) is not dict:
            raise NotPlain
        given = cast("dict[str, Any]", value)
        values = values_of(shape, given)
        if values is None:
            raise NotPlain
        made = shape.model_made(values, shape.named(given))
        made.model_checked()
        return made

    return take


def _choice_taker(choices: frozenset[str]) -> Take:
    def take(value: Any) -> Any:
        if type(value) is not str or value not in choices:
            raise NotPlain
        return value

    return take


def _union_taker(parts: tuple[Any, ...], *, exact: bool) -> Take:
    others = [part for part in parts if part is not NoneType]
    takers = [_taker(part, exact=exact or len(others) > 1) for part in others]
    optional = len(others) < len(parts)

    def take(value: Any) -> Any:
        if value is None and optional:
            return None
        for each in takers[:-1]:
            try:
                return each(value)
            except NotPlain:
                continue
        return takers[-1](value)

    return take


def _list_taker(inner: Take, made: Any, *, exact: bool) -> Take:
    kinds = (made,) if exact else (list, tuple)

    def take(value: Any) -> Any:
        if type(value) not in kinds:
            raise NotPlain
        return made([inner(item) for item in value])

    return take


def _dict_taker(name: Take, inner: Take) -> Take:
    def take(value: Any) -> Any:
        if type(value) is not dict:
            raise NotPlain
        items = cast("dict[Any, Any]", value)
        return {name(key): inner(item) for key, item in items.items()}

    return take


def _limited(kind: Any, marks: tuple[Any, ...], *, exact: bool) -> Take:
    """Return what takes values within limits."""
    inner = _taker(kind, exact=exact)
    limits: dict[str, int] = {}
    for mark in marks:
        if isinstance(mark, TextMark):
            inner = _take_text
        elif isinstance(mark, FieldLimits) and mark.limits.keys() <= {"ge", "le", "min_length", "max_length"}:
            limits |= mark.limits
        else:
            return _leave
    if not limits:
        return inner
    low, high = limits.get("ge"), limits.get("le")
    shortest, longest = limits.get("min_length", 0), limits.get("max_length")

    def take(value: Any) -> Any:
        found = inner(value)
        if (low is not None and not found >= low) or (high is not None and not found <= high):
            raise NotPlain
        if (shortest or longest is not None) and not shortest <= len(found) <= (len(found) if longest is None else longest):
            raise NotPlain
        return found

    return take


def dumped(shape: FieldTable, *, by_alias: bool, exclude: Collection[str], exclude_none: bool) -> dict[str, Any]:
    """Return the plain values of a shape, as pydantic's ``model_dump`` does."""
    kind = type(shape)
    fields, excluded = kind.model_fields, _plan(kind).excluded
    found: dict[str, Any] = {}
    for name, value in shape.__dict__.items():
        field = fields.get(name)
        if field is not None and name not in excluded and name not in exclude and not (exclude_none and value is None):
            found[field.alias if by_alias else name] = _plain(value, by_alias, exclude_none)
    for name in kind.model_computed:
        if name not in exclude:
            found[name] = _plain(getattr(shape, name), by_alias, exclude_none)
    return found


def _plain(value: Any, by_alias: bool, exclude_none: bool) -> Any:
    kind = cast("Any", type(value))
    if kind in _WHOLE:
        return value
    if kind is list:
        return [_plain(item, by_alias, exclude_none) for item in value]
    if kind is dict:
        return {key: _plain(item, by_alias, exclude_none) for key, item in value.items() if not (exclude_none and item is None)}
    if kind is tuple:
        return tuple(_plain(item, by_alias, exclude_none) for item in value)
    if isinstance(value, FieldTable):
        return dumped(value, by_alias=by_alias, exclude=(), exclude_none=exclude_none)
    return value


_WHOLE = frozenset({str, int, float, bool, NoneType})
