"""The pydantic model of a shape: it reads what `plain_check` does not accept, says what is wrong, and has the JSON Schema."""

from __future__ import annotations

from types import GenericAlias, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, computed_field, model_validator
from pydantic_core import core_schema

from ctxmgr.types.plain_check import MISSING, ComputedField, FieldLimits, FieldTable, field_annotations

# Kept, since building a model takes far longer than using it.
_models: dict[type[FieldTable], type[BaseModel]] = {}


def build_model(shape: type[FieldTable]) -> type[BaseModel]:
    """Return the model of a shape: its fields, names, limits and hooks; nested shapes stay shapes."""
    found = _models.get(shape)
    if found is None:
        found = _models[shape] = _build(shape)
    return found


def _build(shape: type[FieldTable]) -> type[BaseModel]:
    body: dict[str, Any] = {"__module__": shape.__module__, "__qualname__": shape.__qualname__, "__doc__": shape.__doc__}
    body["model_config"] = ConfigDict(
        populate_by_name=True, frozen=True, extra="ignore" if shape.ignores_unknown else "forbid", serialize_by_alias=True,
        defer_build=True,
    )  # fmt: skip
    body["__annotations__"] = {name: _with_pydantic_limits(annotation) for name, annotation in field_annotations(shape).items()}
    for name, field in shape.model_fields.items():
        body[name] = Field(alias=field.alias) if field.default is MISSING else Field(default=field.default, alias=field.alias)
    for name in shape.model_computed:
        hook: Any = next(base.__dict__[name] for base in shape.__mro__ if name in base.__dict__)
        assert isinstance(hook, ComputedField), "so it was collected"
        body[name] = computed_field(property(hook.fget))

    def rename(_: type[BaseModel], given: Any) -> Any:
        return shape.model_rename(given)

    def check(made: BaseModel) -> BaseModel:
        values: Any = made.__dict__  # what the shape derives is written into it
        shape.model_from_values(values, made.model_fields_set).model_check()
        return made

    hooks: Any = model_validator
    body["_rename"], body["_check"] = hooks(mode="before")(classmethod(rename)), hooks(mode="after")(check)
    make: Any = type(BaseModel)
    return make(shape.__name__, (BaseModel,), body)


def _with_pydantic_limits(annotation: Any) -> Any:
    """Return an annotation with pydantic's own limits in the place of ours."""
    kind, parts = get_origin(annotation), get_args(annotation)
    if kind is Annotated:
        return Annotated[(_with_pydantic_limits(parts[0]), *map(_limit, parts[1:]))]
    if kind is Union or kind is UnionType:
        return Union[tuple(map(_with_pydantic_limits, parts))]  # noqa: UP007 -- the parts are not written here
    if kind in (list, dict, tuple):
        return GenericAlias(kind, tuple(map(_with_pydantic_limits, parts)))
    return annotation


def _limit(mark: Any) -> Any:
    if not isinstance(mark, FieldLimits):
        return mark
    limits: dict[str, Any] = {**mark.limits, **({"exclude": True} if mark.exclude else {})}
    return Field(**limits)


def build_core_schema(shape: type[FieldTable], handler: Any) -> Any:
    """Return how pydantic reads a shape inside another, or inside anything else."""

    def read(value: Any, inner: Any) -> Any:
        # It was checked when it was made.
        if isinstance(value, shape):
            return value
        made: BaseModel = inner(value)
        return shape.model_from_values(dict(made.__dict__), made.model_fields_set)

    return core_schema.no_info_wrap_validator_function(read, handler(build_model(shape)))
