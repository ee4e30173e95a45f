"""Check values against the printed schemas, with a validator that knows the whole language."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator


def faults(value: Any, schema: dict[str, Any]) -> list[str]:
    """Return where a value breaks a schema, the schema itself being checked first."""
    Draft202012Validator.check_schema(schema)
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(value)]
