"""The base of all shapes: frozen, camelCase on the wire, checked by pydantic where a value is not plainly right.

A shape is declared like a pydantic model and means the same. But pydantic takes longer to load than most commands to run,
so a value that is exactly what its field is declared to hold is taken at once (`ctxmgr.types.plain_check`); for anything
else, and for a JSON Schema, the model of the shape is built (`ctxmgr.types.pydantic_model`), and what it says counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, cast, dataclass_transform

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from pydantic import BaseModel

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
        self.default = default if limits is None else limits.default
        self.alias = limits.alias if limits is not None and limits.alias is not None else camel_case(name)

    def new_default(self) -> Any:
        """Return the default, a list or table of its own where it is one."""
        return self.default.copy() if type(self.default) in (list, dict) else self.default


class ComputedField(property):
    """A property that is told on the wire behind the fields."""


def first_fault(error: ValueError) -> dict[str, Any]:
    """Return what pydantic found wrong first: ``loc``, ``msg`` and ``input``."""
    errors: list[dict[str, Any]] = cast("Any", error).errors(include_url=False)
    return errors[0]


def camel_case(name: str) -> str:
    """Return the wire name of a field."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field,))
class Shape:
    """Base of requests, responses and views.

    A subclass may say ``ignores_unknown = True`` (else an unknown name is refused), rename what it is given in `_renamed`,
    and refuse a whole or derive parts of it in `_checked`.

    Raises:
        ValidationError: pydantic's, when made from what its fields don't admit.
    """

    __slots__ = ("__dict__", "__weakref__", "model_fields_set")

    model_fields: ClassVar[dict[str, ShapeField]] = {}
    model_computed: ClassVar[tuple[str, ...]] = ()
    ignores_unknown: ClassVar[bool] = False
    model_fields_set: set[str]

    def __init_subclass__(cls) -> None:
        fields = dict(cls.model_fields)
        for name, annotation in vars(cls).get("__annotations__", {}).items():
            if not annotation.startswith("ClassVar"):
                fields[name] = ShapeField(name, annotation, cls.__module__, cls.__dict__.get(name, MISSING))
        cls.model_fields = fields
        cls.model_computed += tuple(name for name, value in cls.__dict__.items() if isinstance(value, ComputedField))

    def __init__(self, **given: Any) -> None:
        from ctxmgr.types.plain_check import values_of

        values = values_of(type(self), given)
        if values is not None:
            self._fill(values, self.named(given))
        if values is None or not self._is_right():
            self._fill(*self._modelled(given))

    @classmethod
    def _modelled(cls, given: object, *, strict: bool | None = None) -> tuple[dict[str, Any], set[str]]:
        """Return the values of the fields, and which were given, as pydantic reads them."""
        model = cls.pydantic_model().model_validate(given, strict=strict)
        return dict(model.__dict__), model.model_fields_set

    @classmethod
    def named(cls, given: Mapping[str, Any]) -> set[str]:
        """Return the fields that are given a value, under the names of spec 002 too."""
        names = cls._renamed(given)
        return {name for name, field in cls.model_fields.items() if name in names or field.alias in names}

    def _fill(self, values: dict[str, Any], given: set[str]) -> None:
        object.__setattr__(self, "__dict__", values)
        object.__setattr__(self, "model_fields_set", given)

    @classmethod
    def _renamed(cls, given: Any) -> Any:
        """Return what was given, under the names of the fields.

        Raises:
            ValueError: that can't be said.
        """
        return given

    def _checked(self) -> None:
        """Refuse what no single field shows.

        Raises:
            ValueError: the parts don't fit together.
        """

    def _is_right(self) -> bool:
        try:
            self._checked()
        except ValueError:
            return False
        return True

    @classmethod
    def pydantic_model(cls) -> type[BaseModel]:
        """Return the pydantic model of the shape."""
        from ctxmgr.types.pydantic_model import model_of

        return model_of(cls)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from ctxmgr.types.pydantic_model import core_schema_of

        return core_schema_of(cls, handler)

    @classmethod
    def model_validate(cls, given: Any, *, strict: bool | None = None) -> Self:
        """Return the shape of a table, by names of fields or wire names; a shape of this kind is returned as it is."""
        if isinstance(given, cls):
            return given
        if type(given) is dict and not strict and all(type(name) is str for name in given):
            return cls(**given)
        return cls.model_made(*cls._modelled(given, strict=strict))

    @classmethod
    def model_made(cls, values: dict[str, Any], given: set[str]) -> Self:
        """Return the shape with these values, every field among them, which are known to be right."""
        made = cls.__new__(cls)
        object.__setattr__(made, "__dict__", values)
        object.__setattr__(made, "model_fields_set", given)
        return made

    @classmethod
    def model_construct(cls, **values: Any) -> Self:
        """Return a shape with these values unchecked, defaults for the others."""
        found = dict[str, Any]()
        for name, field in cls.model_fields.items():
            if name in values:
                found[name] = values[name]
            elif field.default is not MISSING:
                found[name] = field.new_default()
        return cls.model_made(found, set(values))

    @classmethod
    def model_json_schema(cls, *, by_alias: bool = True, mode: Any = "validation") -> dict[str, Any]:
        """Return the JSON Schema of the shape."""
        return cls.pydantic_model().model_json_schema(by_alias=by_alias, mode=mode)

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self:
        """Return a copy with some values changed, unchecked."""
        changed = dict(update or {})
        return type(self).model_made({**self.__dict__, **changed}, self.model_fields_set | changed.keys())

    def model_dump(
        self, *, mode: str = "python", by_alias: bool = True, exclude: Collection[str] = (), exclude_none: bool = False
    ) -> dict[str, Any]:
        """Return plain values, those of computed fields behind the others."""
        from ctxmgr.types.plain_check import dumped

        return dumped(self, by_alias=by_alias, exclude=exclude, exclude_none=exclude_none)

    def model_dump_json(self) -> str:
        """Return the plain values as JSON text."""
        import json

        return json.dumps(self.model_dump(), separators=(",", ":"))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values with camelCase keys, absent values as null."""
        return self.model_dump()

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self.__dict__.items())

    def __setattr__(self, name: str, value: object) -> None:
        from pydantic_core import ValidationError

        raise ValidationError.from_exception_data(
            type(self).__name__, [{"type": "frozen_instance", "loc": (name,), "input": value}]
        )

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[Any, ...]]:
        return type(self).model_made, (self.__dict__, self.model_fields_set)
