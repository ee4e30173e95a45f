"""The base of all models (camelCase on the wire, frozen), and the envelope of JSON answers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PlainValidator, WithJsonSchema
from pydantic.alias_generators import to_camel

Json = Any
"""Any JSON value: what agents record is theirs to shape."""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")
    return value


Text = Annotated[str, PlainValidator(_text), WithJsonSchema({"type": "string"})]
"""Recorded text. Unlike pydantic's ``str`` it lets lone surrogates pass, which real logs contain."""


class Shape(BaseModel):
    """Base of requests, responses and views."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="forbid", serialize_by_alias=True, defer_build=True
    )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values with camelCase keys, absent values as null."""
        return self.model_dump(mode="python", by_alias=True)
