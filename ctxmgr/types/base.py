"""The base classes of all shapes: `Shape` (frozen) for what crosses a boundary, `StoredShape` (mutable) for files of our own.

Both have camelCase names on the wire. A shape is declared like a pydantic model and means the same. But pydantic takes longer
to load than most commands take to run. So a value that is exactly what its field declares is accepted at once
(`ctxmgr.types.plain_check`). For any other value, and for a JSON Schema, the pydantic model of the shape is built
(`ctxmgr.types.pydantic_model`), and its verdict counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, cast, dataclass_transform

from ctxmgr.types.plain_check import (
    MISSING,
    ComputedField,
    Field,
    FieldTable,
    Json,
    NotPlain,
    Text,
    dump_values,
    take_plain_values,
    take_values,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from pydantic import BaseModel

__all__ = ["ComputedField", "Field", "Json", "Shape", "StoredShape", "Text", "fault_words", "first_fault"]


def first_fault(error: ValueError) -> dict[str, Any]:
    """Return pydantic's first error: ``loc``, ``msg`` and ``input``."""
    errors: list[dict[str, Any]] = cast("Any", error).errors(include_url=False)
    return errors[0]


def fault_words(fault: Mapping[str, Any]) -> str:
    """Return what is wrong with a value in plain words, to be put behind its name: " must be …", " is missing" or ": …"."""
    limits: Mapping[str, int] = fault.get("ctx") or {}
    if "min_length" in limits:
        least = limits["min_length"]
        return " must not be empty" if least == 1 else f" must have at least {least:,} {_unit(fault)}"
    if "max_length" in limits:
        return f" must have at most {limits['max_length']:,} {_unit(fault)}, and has {len(fault['input']):,}"
    if fault.get("type") == "missing":
        return " is missing"
    # "Input should be greater than or equal to 1" is pydantic's way to say "must be at least 1".
    said = str(fault["msg"]).replace("greater than or equal to", "at least").replace("less than or equal to", "at most")
    said = said.removeprefix("Value error, ").replace("Input should be ", "must be ", 1)
    return f" {said}" if said.startswith("must ") else f": {said}"


def _unit(fault: Mapping[str, Any]) -> str:
    return "characters" if isinstance(fault["input"], str) else "items"


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field,))
class Shape(FieldTable):
    """Base of requests, responses and views.

    Raises:
        ValidationError: pydantic's, when made from what its fields don't admit.
    """

    def __init__(self, **given: Any) -> None:
        taken = take_plain_values(type(self), given)
        if taken is not None:
            self._fill(*taken)
        # A hook's own ValueError becomes pydantic's ValidationError this way, with the same text for every caller.
        if taken is None or not self._is_right():
            self._fill(*self._validate(given))

    @classmethod
    def _validate(cls, given: object, *, strict: bool | None = None) -> tuple[dict[str, Any], set[str]]:
        """Return the values of the fields as pydantic reads them, and the names of those that were given."""
        model = cls.pydantic_model().model_validate(given, strict=strict)
        return dict(model.__dict__), model.model_fields_set

    def _fill(self, values: dict[str, Any], given: set[str]) -> None:
        object.__setattr__(self, "__dict__", values)
        object.__setattr__(self, "model_fields_set", given)

    def _is_right(self) -> bool:
        try:
            self.model_check()
        except ValueError:
            return False
        return True

    @classmethod
    def pydantic_model(cls) -> type[BaseModel]:
        """Return the pydantic model of the shape."""
        from ctxmgr.types.pydantic_model import build_model

        return build_model(cls)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from ctxmgr.types.pydantic_model import build_core_schema

        return build_core_schema(cls, handler)

    @classmethod
    def model_validate(cls, given: Any, *, strict: bool | None = None) -> Self:
        """Return the shape of a table, by names of fields or wire names; a shape of this kind is returned as it is."""
        if isinstance(given, cls):  # frozen, so it can be shared
            return given
        table = cast("object", given)
        # Names that are no text can't be arguments; pydantic says what is wrong with them.
        if type(table) is dict and not strict and all(type(name) is str for name in cast("dict[Any, Any]", table)):
            return cls(**cast("dict[str, Any]", table))
        return cls.model_from_values(*cls._validate(cast("object", given), strict=strict))

    @classmethod
    def model_construct(cls, **values: Any) -> Self:
        """Return a shape with these values unchecked, defaults for the others."""
        found = dict[str, Any]()
        for name, field in cls.model_fields.items():
            if name in values:
                found[name] = values[name]
            elif field.default is not MISSING:
                found[name] = field.new_default()
        return cls.model_from_values(found, set(values))

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Self:
        """Return the shape of a table in JSON."""
        import json

        return cls.model_validate(json.loads(text))

    @classmethod
    def model_json_schema(cls, *, by_alias: bool = True, mode: Any = "validation") -> dict[str, Any]:
        """Return the JSON Schema of the shape."""
        return cls.pydantic_model().model_json_schema(by_alias=by_alias, mode=mode)

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self:
        """Return a copy with some values changed, unchecked."""
        changed = dict(update or {})
        return type(self).model_from_values({**self.__dict__, **changed}, self.model_fields_set | changed.keys())

    def model_dump(
        self, *, mode: str = "python", by_alias: bool = True, exclude: Collection[str] = (), exclude_none: bool = False
    ) -> dict[str, Any]:
        """Return plain values, those of computed fields behind the others."""
        return dump_values(self, by_alias=by_alias, exclude=exclude, exclude_none=exclude_none)

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
        # What a frozen model of pydantic raises, so that callers meet one kind of error.
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
        # Past the checks: the values passed them when they were made.
        return type(self).model_from_values, (self.__dict__, self.model_fields_set)


@dataclass_transform(kw_only_default=True, field_specifiers=(Field,))
class StoredShape(FieldTable):
    """Base of what only a file of ours holds: it may be changed, and is written in the order of its fields.

    What it is made of is not checked; what is read from a file is, without pydantic. Members that it does not know are left
    out. A field may hold shapes.
    """

    ignores_unknown = True
    needs_all = True

    def __init__(self, **values: Any) -> None:
        own, fields = self.__dict__, self.model_fields
        own.update(values)
        # State is read and written at every step of an agent, mostly whole: then there is nothing to fill in.
        if len(own) < len(fields):
            own.update((name, field.new_default()) for name, field in fields.items() if name not in own)
        self.model_check()

    @classmethod
    def from_json(cls, data: object) -> Self:
        """Return the object that `to_json` wrote.

        Raises:
            ValueError: saying which member is missing or wrong.
        """
        if not isinstance(data, dict):
            raise ValueError("no object")
        try:
            made = cls.model_from_values(*take_values(cls, cast("dict[str, Any]", data)))
        except NotPlain as fault:
            raise ValueError(str(fault)) from None
        made.model_check()
        return made

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values with camelCase keys."""
        return dump_values(self, by_alias=True, exclude=(), exclude_none=False)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some values changed."""
        return type(self)(**{**self.__dict__, **changes})
