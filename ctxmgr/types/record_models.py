"""What each kind of record of log format 1 must hold; the models only check, and are loaded where a record is not plain."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from ctxmgr.errors import InvalidInput
from ctxmgr.log.codec import Record
from ctxmgr.types.base import Json, Text
from ctxmgr.types.record import ResultStatus


class _Kind(BaseModel):
    # Unknown keys are not looked at here: they pass through with the record itself.
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", defer_build=True)
    v: Annotated[int, Field(strict=True, ge=1, le=1)]
    kind: Annotated[Text, Field(min_length=1)]
    session: Annotated[Text, Field(min_length=1)]
    ts: Text | None = None


class _Session(_Kind):
    process: Text | None = None
    workflow: Text | None = None
    source: Json = None
    meta: Json = None


class _ErrorBody(BaseModel):
    model_config = ConfigDict(extra="ignore", defer_build=True)
    type: Text | None = None
    message: Text | None = None


class _Entry(_Kind):
    id: Annotated[Text, Field(min_length=1)]
    agent: Text
    action: Text
    input_type: Text | None = None
    input: Json = None
    process: Text | None = None
    turn: Text | int | None = None
    step: Text | int | None = None
    parent: Text | None = None
    task: Text | None = None
    timeout_ms: float | None = None
    status: ResultStatus | None = None
    output: Json = None
    error: _ErrorBody | None = None
    duration_ms: float | None = None


class _Result(_Kind):
    entry: Annotated[Text, Field(min_length=1)]
    status: ResultStatus
    output: Json = None
    error: _ErrorBody | None = None
    duration_ms: float | None = None
    usage: Json = None


class _Event(_Kind):
    id: Annotated[Text, Field(min_length=1)]
    type: Annotated[Text, Field(min_length=1)]
    entry: Text | None = None
    agent: Text | None = None
    data: Json = None


class _Note(_Kind):
    id: Annotated[Text, Field(min_length=1)]
    entries: list[Text]
    content: Annotated[Text, Field(min_length=1)]
    tags: list[Text] = []
    author: Text | None = None
    supersedes: Text | None = None


class _Snapshot(_Kind):
    id: Annotated[Text, Field(min_length=1)]
    entries: list[Text]
    summary: Text
    reasoning: Text
    hash: Text


class _Continuation(_Kind):
    id: Annotated[Text, Field(min_length=1)]


class _SessionEnd(_Kind):
    outcome: Literal["completed", "failed", "cancelled"]
    process: Text | None = None


MODELS: dict[str, type[_Kind]] = {
    "session": _Session,
    "entry": _Entry,
    "result": _Result,
    "event": _Event,
    "note": _Note,
    "snapshot": _Snapshot,
    "continuation": _Continuation,
    "sessionEnd": _SessionEnd,
}


def check_whole(record: Record) -> Record:
    """Return what `ctxmgr.types.record_check.check` returns, which asks here about what is not plainly in order.

    Raises:
        InvalidInput: naming the first field that is missing or wrong.
    """
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
