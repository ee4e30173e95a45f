"""The declaration of a field, and the table of fields that a shape is made of."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

Json = Any
"""Any JSON value: what agents record is theirs to shape."""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")
    return value


class TextMark:
    """Says that lone surrogates may pass, which real logs contain and pydantic's ``str`` refuses."""

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
        return self.default.copy() if type(self.default) in (list, dict) else self.default


class ComputedField(property):
    """A property that is told on the wire behind the fields."""


def camel_case(name: str) -> str:
    """Return the wire name of a field."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


class FieldTable:
    """A class whose annotations are its fields.

    A subclass may say ``ignores_unknown = True`` (else an unknown name is refused) and ``needs_all = True`` (defaults other
    than None do not stand in for what is missing in a table), rename what it is given in `model_renamed`, and refuse a whole
    or derive parts of it in `model_checked`.
    """

    __slots__ = ("__dict__", "__weakref__", "model_fields_set")

    model_fields: ClassVar[dict[str, ShapeField]] = {}
    model_computed: ClassVar[tuple[str, ...]] = ()
    ignores_unknown: ClassVar[bool] = False
    needs_all: ClassVar[bool] = False
    model_fields_set: set[str]

    def __init_subclass__(cls) -> None:
        fields = dict(cls.model_fields)
        for name, annotation in vars(cls).get("__annotations__", {}).items():
            if not annotation.startswith("ClassVar"):
                fields[name] = ShapeField(name, annotation, cls.__module__, cls.__dict__.get(name, MISSING))
        cls.model_fields = fields
        cls.model_computed += tuple(name for name, value in cls.__dict__.items() if isinstance(value, ComputedField))

    @classmethod
    def model_renamed(cls, given: Any) -> Any:
        """Return what was given, under the names of the fields.

        Raises:
            ValueError: that can't be said.
        """
        return given

    def model_checked(self) -> None:
        """Refuse what no single field shows.

        Raises:
            ValueError: the parts don't fit together.
        """

    @classmethod
    def model_made(cls, values: dict[str, Any], given: set[str]) -> Self:
        """Return the shape with these values, every field among them, which are known to be right."""
        made = cls.__new__(cls)
        object.__setattr__(made, "__dict__", values)
        object.__setattr__(made, "model_fields_set", given)
        return made
