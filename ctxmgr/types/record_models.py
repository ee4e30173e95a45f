"""Pydantic models of the records of log format 1, loaded only to check a record that `types.record` does not accept."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.alias_generators import to_camel, to_snake

from ctxmgr.errors import InvalidInput
from ctxmgr.log.codec import Record
from ctxmgr.log.record_schema import OUTCOMES, RECORDS, STATUSES
from ctxmgr.log.record_schema import Field as RecordField
from ctxmgr.types.base import Json, Text


class _Kind(BaseModel):
    # Unknown keys are not looked at here: they pass through with the record itself.
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", defer_build=True)
    v: Annotated[int, Field(strict=True, ge=1, le=1)]
    kind: Annotated[Text, Field(min_length=1)]
    session: Annotated[Text, Field(min_length=1)]
    ts: Text | None = None


class _ErrorBody(BaseModel):
    model_config = ConfigDict(extra="ignore", defer_build=True)
    type: Text | None = None
    message: Text | None = None


_TYPES: dict[str, Any] = {
    "text": Text, "texts": list[Text], "count": Text | int, "number": float, "json": Json, "status": Literal[STATUSES],
    "outcome": Literal[OUTCOMES], "error": _ErrorBody,
}  # fmt: skip


def _declare(field: RecordField) -> tuple[Any, Any]:
    """Return the type and the default of a model's field."""
    kind: Any = Annotated[Text, Field(min_length=1)] if field.filled else _TYPES[field.holds]
    if field.required:
        return kind, ...
    return (kind, []) if field.holds == "texts" else (kind if field.holds == "json" else kind | None, None)


def _model(kind: str) -> type[_Kind]:
    fields: dict[str, Any] = {to_snake(name): _declare(field) for name, field in RECORDS[kind].items()}
    return create_model(f"_{kind[0].upper()}{kind[1:]}", __base__=_Kind, **fields)


MODELS: dict[str, type[_Kind]] = {kind: _model(kind) for kind in RECORDS}


def check_whole(record: Record) -> Record:
    """Check a record by its model, for `ctxmgr.types.record.check`, and return it.

    Raises:
        InvalidInput: naming the first field that is missing or wrong.
    """
    # A kind of a later version is kept as it is: only what all kinds have is checked.
    model = MODELS.get(str(record.get("kind")), _Kind)
    try:
        model.model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(
            f"not a record of log format 1: {place}: {first['msg']}", "see 'ctxmgr schema record' for the fields"
        ) from None
    return record
