"""The pydantic model of a shape: it has the shape's limits, names and hooks, and is made once."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import TypeAdapter, ValidationError

from ctxmgr.types.base import Shape, Text
from ctxmgr.types.plain_check import Field
from ctxmgr.types.pydantic_model import build_model


class Inner(Shape):
    """A part."""

    size: Annotated[int, Field(ge=1, le=3)] = 1


class Outer(Shape):
    """A shape with a limit in each place where one may stand."""

    part_name: Text
    parts: list[Inner] = []  # noqa: RUF012 -- copied for each instance
    sizes: dict[str, Annotated[int, Field(le=3)]] = {}  # noqa: RUF012
    either: Annotated[Text, Field(max_length=2)] | None = None

    @classmethod
    def model_rename(cls, given: Any) -> Any:
        """Take another name of the first field."""
        return {"partName" if name == "called" else name: value for name, value in given.items()}

    def model_check(self) -> None:
        """Refuse one name."""
        if self.part_name == "none":
            raise ValueError("no name")


def test_it_is_made_once() -> None:
    """Making one takes far longer than using it."""
    assert build_model(Outer) is build_model(Outer) is Outer.pydantic_model()


@pytest.mark.parametrize(
    "change",
    [
        {"parts": [{"size": 4}]}, {"parts": [{"size": "x"}]}, {"sizes": {"a": 4}}, {"either": "xxx"}, {"partName": "none"},
        {"unknown": 1}, {"parts": [{"other": 1}]}, {"partName": None},
    ],
)  # fmt: skip
def test_limits_and_hooks_hold(change: dict[str, Any]) -> None:
    """However deep they stand, and whatever the shape refuses itself."""
    with pytest.raises(ValidationError):
        build_model(Outer).model_validate({"partName": "a", **change})


def test_a_shape_inside_is_a_shape() -> None:
    """Made of a table, or taken as it is; names of the hook count."""
    made: Any = build_model(Outer).model_validate({"called": "a", "parts": [{"size": 2}, Inner(size=3)]})

    assert [type(part) for part in made.parts] == [Inner, Inner]
    assert TypeAdapter(list[Outer]).validate_python([{"part_name": "b"}])[0] == Outer(part_name="b")
    schema = build_model(Outer).model_json_schema()
    assert schema["properties"]["sizes"]["additionalProperties"]["maximum"] == 3
    assert schema["required"] == ["partName"]
