"""A check that accepts values that are exactly what a shape declares, without loading pydantic.

It accepts only what pydantic would accept in the same way. Every other value, such as a number written as text or an unknown
name, goes to the pydantic model of the shape, which reads it or says what is wrong. Files of our own
(`ctxmgr.types.base.StoredShape`) are only read here.
"""

from __future__ import annotations

import sys
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, Union, cast, get_args, get_origin

from ctxmgr.types.plain_records import MAX_EXACT_INTEGER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    Take = Callable[[Any], Any]
    """Returns the value that a field holds for what it is given, or raises `NotPlain`."""


class NotPlain(Exception):  # noqa: N818 -- no error: pydantic decides
    """Raised for a value that is not exactly as declared; its text says which, e.g. ``percent is no number``.

    Attributes:
        kind: what it should have been: ``text``, ``number``, ``list``, ``object``; "" for anything else.
        said: the text, "" until the shape is known that the value is of.
    """

    def __init__(self, kind: str = "") -> None:
        self.kind, self.said = kind, ""

    def place(self, name: str, owner: str) -> None:
        """Name the member that holds the value, unless a level further inside has named one."""
        if not self.said:
            is_part = self.kind not in ("", "object")
            self.said = f"{name} is no {self.kind}" if is_part else f"no {self.kind or owner}"

    def __str__(self) -> str:
        return self.said


class _Plan:
    """The fields of a shape, compiled once: name, wire name and the function that accepts a value.

    Attributes:
        members: (name, wire name, taker, field if it may be absent else None), in the order of declaration.
        written: (name, wire name) of the fields that `dump_values` writes.
        renames: whether the shape renames what it is given.
    """

    __slots__ = ("members", "renames", "written")

    def __init__(self, shape: type[FieldTable]) -> None:
        self.members: list[tuple[str, str, Take, ShapeField | None]] = []
        self.written: list[tuple[str, str]] = []
        self.renames = shape.model_rename.__func__ is not FieldTable.model_rename.__func__
        for name, annotation in field_annotations(shape).items():
            field = shape.model_fields[name]
            # A file of ours is written in full, so a missing member is damage, unless None stands for its absence.
            needed = field.default is MISSING or (shape.needs_all and field.default is not None)
            self.members.append((name, field.alias, _taker(annotation, exact=False), None if needed else field))
            if not any(isinstance(part, FieldLimits) and part.exclude for part in getattr(annotation, "__metadata__", ())):
                self.written.append((name, field.alias))


# Compiled at the first value: a command uses few of the shapes that its modules declare.
_plan_cache: dict[type[FieldTable], _Plan] = {}


def _plan(shape: type[FieldTable]) -> _Plan:
    found = _plan_cache.get(shape)
    if found is None:
        found = _plan_cache[shape] = _Plan(shape)
    return found


def field_annotations(shape: type[FieldTable]) -> dict[str, Any]:
    """Return the declared type of each field; its names are looked up in the module of the declaration."""
    # Texts of our own source, which `from __future__ import annotations` left unevaluated.
    return {name: eval(field.annotation, vars(sys.modules[field.module])) for name, field in shape.model_fields.items()}


def take_plain_values(shape: type[FieldTable], given: dict[str, Any]) -> tuple[dict[str, Any], set[str]] | None:
    """Return what `take_values` returns, or None where pydantic has to look."""
    try:
        return take_values(shape, given)
    except (NotPlain, ValueError, RecursionError):
        return None


def take_values(shape: type[FieldTable], given: dict[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """Return the value of every field in the order of declaration, and the names of those that were given.

    Raises:
        NotPlain: saying which value is not exactly what is declared. ValueError: a hook of the shape refused.
    """
    plan = _plan(shape)
    renamed = shape.model_rename(given) if plan.renames else given
    values: dict[str, Any] = {}
    absent: list[str] = []
    alias = ""
    try:
        for name, alias, take, field in plan.members:
            if alias in renamed:
                values[name] = take(renamed[alias])
            elif name in renamed:
                values[name] = take(renamed[name])
            elif field is not None:
                values[name] = field.new_default()
                absent.append(name)
            else:
                take(None)  # raises with the kind of value that is missing
                raise NotPlain
    except NotPlain as fault:
        fault.place(alias, shape.__name__.removesuffix("View").lower())
        raise
    # Every name that was given must have been used. Names are not compared one by one: this runs for each shape.
    if len(values) - len(absent) != len(renamed) and (not shape.ignores_unknown or _has_duplicate_names(plan, renamed)):
        raise NotPlain
    return values, set(values).difference(absent)


def _has_duplicate_names(plan: _Plan, given: dict[str, Any]) -> bool:
    """Whether a field is given under both of its names."""
    return any(name != alias and name in given and alias in given for name, alias, *_ in plan.members)


def _taker(annotation: Any, *, exact: bool) -> Take:
    """Return the function that accepts values of a declared type.

    With ``exact`` it converts none: inside a union an int must not become a float if the other type is int.
    """
    if annotation is Any:
        return _same
    if annotation in _SIMPLE:
        return _take_float if annotation is float and not exact else _SIMPLE[annotation]
    # Types that are not known below are left to pydantic, which knows them all.
    if isinstance(annotation, type) and issubclass(annotation, FieldTable):
        return _shape_taker(annotation, exact=exact)
    kind, parts = get_origin(annotation), get_args(annotation)
    if kind is Literal and all(type(part) is str for part in parts):
        return _choice_taker(frozenset(parts))
    if kind is Annotated:
        return _limited_taker(parts[0], parts[1:], exact=exact)
    if kind is Union or kind is UnionType:
        return _union_taker(parts, exact=exact)
    if kind is list:
        return _list_taker(_taker(parts[0], exact=exact), list, exact=exact)
    if kind is tuple and len(parts) == 2 and parts[1] is Ellipsis:
        return _list_taker(_taker(parts[0], exact=exact), tuple, exact=exact)
    if kind is dict:
        return _dict_taker(_taker(parts[0], exact=exact), _taker(parts[1], exact=exact))
    return _leave_to_pydantic


def _same(value: Any) -> Any:
    return value


def _leave_to_pydantic(value: Any) -> Any:
    raise NotPlain


def _taker_of_type(kind: type) -> Take:
    def take(value: Any) -> Any:
        if type(value) is not kind:
            raise NotPlain(word)
        return value

    word = _WORDS.get(kind, "")
    return take


_WORDS: dict[type, str] = {str: "text", int: "number", float: "number"}
_take_text, _take_exact_float = _taker_of_type(str), _taker_of_type(float)


def _take_str(value: Any) -> Any:
    if type(value) is not str:
        raise NotPlain("text")
    if not value.isascii():
        value.encode()  # refuses a lone surrogate with a ValueError, as pydantic does
    return value


def _take_float(value: Any) -> Any:
    if type(value) is int and -MAX_EXACT_INTEGER < value < MAX_EXACT_INTEGER:
        return float(value)  # larger ones would lose digits, so pydantic decides
    return _take_exact_float(value)


_SIMPLE: dict[Any, Take] = {
    str: _take_str, int: _taker_of_type(int), bool: _taker_of_type(bool), float: _take_exact_float,
    None: _taker_of_type(NoneType), NoneType: _taker_of_type(NoneType),
}  # fmt: skip


def _shape_taker(shape: type[FieldTable], *, exact: bool) -> Take:
    def take(value: Any) -> Any:
        if isinstance(value, shape):
            return value
        if exact or type(value) is not dict:
            raise NotPlain("object")
        made = shape.model_from_values(*take_values(shape, cast("dict[str, Any]", value)))
        made.model_check()
        return made

    return take


def _choice_taker(choices: frozenset[str]) -> Take:
    def take(value: Any) -> Any:
        if type(value) is not str or value not in choices:
            raise NotPlain
        return value

    return take


def _union_taker(parts: tuple[Any, ...], *, exact: bool) -> Take:
    # "Text | None" converts as Text alone does; only a choice between several types must not convert.
    others = [part for part in parts if part is not NoneType]
    takers = [_taker(part, exact=exact or len(others) > 1) for part in others]
    first, last = takers[:-1], takers[-1]
    optional = len(others) < len(parts)

    def take(value: Any) -> Any:
        if value is None and optional:
            return None
        for take_one in first:
            try:
                return take_one(value)
            except NotPlain:
                continue
        return last(value)

    return take


def _list_taker(inner: Take, made: Any, *, exact: bool) -> Take:
    kinds = (made,) if exact else (list, tuple)

    def take(value: Any) -> Any:
        if type(value) not in kinds:
            raise NotPlain("list")
        return made([inner(item) for item in value])

    return take


def _dict_taker(name: Take, inner: Take) -> Take:
    def take(value: Any) -> Any:
        if type(value) is not dict:
            raise NotPlain("object")
        found: dict[Any, Any] = {}
        for key, item in cast("dict[Any, Any]", value).items():
            try:
                found[name(key)] = inner(item)
            except NotPlain as fault:
                fault.place(str(key), "value")
                raise
        return found

    return take


def _limited_taker(kind: Any, marks: tuple[Any, ...], *, exact: bool) -> Take:
    """Return the function that accepts values within limits; limits that are not known here are left to pydantic."""
    inner = _taker(kind, exact=exact)
    limits: dict[str, int] = {}
    for mark in marks:
        if isinstance(mark, TextMark):
            inner = _take_text
        elif isinstance(mark, FieldLimits) and mark.limits.keys() <= {"ge", "le", "min_length", "max_length"}:
            limits |= mark.limits
        else:
            return _leave_to_pydantic
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


def dump_values(shape: FieldTable, *, by_alias: bool, exclude: Collection[str], exclude_none: bool) -> dict[str, Any]:
    """Return the plain values of a shape, as pydantic's ``model_dump`` does."""
    kind, values = type(shape), shape.__dict__
    result: dict[str, Any] = {}
    for name, alias in _plan(kind).written:
        if name in values and name not in exclude:
            value = values[name]
            if value is not None or not exclude_none:
                result[alias if by_alias else name] = (
                    value if type(value) in _SCALARS else _plain(value, by_alias, exclude_none)
                )
    for name in kind.model_computed:
        if name not in exclude:
            result[name] = _plain(getattr(shape, name), by_alias, exclude_none)
    return result


def _plain(value: Any, by_alias: bool, exclude_none: bool) -> Any:
    kind = cast("Any", type(value))
    if kind in _SCALARS:
        return value
    if kind is list:
        return [_plain(item, by_alias, exclude_none) for item in value]
    if kind is dict:
        return {key: _plain(item, by_alias, exclude_none) for key, item in value.items() if not (exclude_none and item is None)}
    if kind is tuple:
        return tuple(_plain(item, by_alias, exclude_none) for item in value)
    if isinstance(value, FieldTable):
        return dump_values(value, by_alias=by_alias, exclude=(), exclude_none=exclude_none)
    return value


_SCALARS = frozenset({str, int, float, bool, NoneType})


Json = Any
"""Any JSON value: what agents record is theirs to shape."""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")
    return value


class TextMark:
    """Marks text that may hold lone surrogates, which real logs contain and pydantic's ``str`` refuses."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic import PlainValidator

        return PlainValidator(_text).__get_pydantic_core_schema__(source, handler)

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, str]:
        return {"type": "string"}


Text = Annotated[str, TextMark()]
"""Recorded text."""

MISSING: Any = object()
"""Stands for the default of a field that has none."""


class FieldLimits:
    """What a field is declared with beside its type; the names and their meaning are those of `pydantic.Field`."""

    __slots__ = ("alias", "default", "exclude", "limits")

    def __init__(self, default: Any, alias: str | None, exclude: bool, limits: dict[str, int]) -> None:
        self.default, self.alias, self.exclude, self.limits = default, alias, exclude, limits


def Field(default: Any = MISSING, *, alias: str | None = None, exclude: bool = False, **limits: int) -> Any:  # noqa: N802 -- as pydantic names it
    """Return what limits a field: ``ge``, ``le``, ``min_length``, ``max_length``, beside a default and an alias."""
    return FieldLimits(default, alias, exclude, limits)


class ShapeField:
    """One field of a shape: its annotation as it was written, where its names mean something, default and wire name."""

    __slots__ = ("alias", "annotation", "default", "module")

    def __init__(self, name: str, annotation: str, module: str, default: Any) -> None:
        limits = default if isinstance(default, FieldLimits) else None
        self.annotation, self.module = annotation, module
        self.default: Any = default if limits is None else limits.default
        self.alias = limits.alias if limits is not None and limits.alias is not None else camel_case(name)

    def new_default(self) -> Any:
        """Return the default, a list or table of its own where it is one."""
        return self.default.copy() if type(self.default) in (list, dict) else self.default  # never shared between shapes


class ComputedField(property):
    """A property that is written on the wire behind the fields."""


def camel_case(name: str) -> str:
    """Return the wire name of a field."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


class FieldTable:
    """A class whose annotations are its fields.

    A subclass may say ``ignores_unknown = True`` (else an unknown name is refused) and ``needs_all = True`` (defaults other
    than None do not stand in for what is missing in a table), rename what it is given in `model_rename`, and refuse a whole
    or derive parts of it in `model_check`.
    """

    # The fields alone in ``__dict__``: equality, hash and ``repr`` go by it, and which fields were given must not count.
    __slots__ = ("__dict__", "__weakref__", "model_fields_set")

    model_fields: ClassVar[dict[str, ShapeField]] = {}
    model_computed: ClassVar[tuple[str, ...]] = ()
    ignores_unknown: ClassVar[bool] = False
    needs_all: ClassVar[bool] = False
    model_fields_set: set[str]

    def __init_subclass__(cls) -> None:
        fields = dict(cls.model_fields)
        for name, annotation in vars(cls).get("__annotations__", {}).items():
            # Annotations are texts here, and class variables are no fields.
            if not annotation.startswith("ClassVar"):
                fields[name] = ShapeField(name, annotation, cls.__module__, cls.__dict__.get(name, MISSING))
        cls.model_fields = fields
        cls.model_computed += tuple(name for name, value in cls.__dict__.items() if isinstance(value, ComputedField))

    @classmethod
    def model_rename(cls, given: Any) -> Any:
        """Return what was given, under the names of the fields.

        Raises:
            ValueError: that can't be said.
        """
        return given

    def model_check(self) -> None:
        """Refuse what no single field shows.

        Raises:
            ValueError: the parts don't fit together.
        """

    @classmethod
    def model_from_values(cls, values: dict[str, Any], given: set[str]) -> Self:
        """Return the shape with these values, every field among them, which are known to be right."""
        made = cls.__new__(cls)
        object.__setattr__(made, "__dict__", values)
        object.__setattr__(made, "model_fields_set", given)
        return made
