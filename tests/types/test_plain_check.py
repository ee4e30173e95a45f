"""Shapes take plainly right values by themselves: what pydantic takes, as pydantic takes it, and nothing else."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ctxmgr.types
from ctxmgr.types.base import Shape
from ctxmgr.types.plain_check import MISSING, field_annotations

SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    str: st.sampled_from(["x", "INTROSPECT", "2026-01-22T10:00:00Z"]), int: st.integers(0, 50), bool: st.booleans(),
    float: st.floats(0, 50) | st.integers(0, 50), Any: st.sampled_from(["x", 1, None]), NoneType: st.none(),
}  # fmt: skip


def _shapes(root: type[Shape]) -> list[type[Shape]]:
    return [root, *(found for below in root.__subclasses__() for found in _shapes(below))]


for _module in pkgutil.iter_modules(ctxmgr.types.__path__):
    import_module(f"ctxmgr.types.{_module.name}")
SHAPES = sorted({shape for shape in _shapes(Shape) if shape.model_fields}, key=lambda shape: shape.__qualname__)


ODD: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**53 + 1, 10**400, "", " ", "x", "1", "true", "\ud800", b"x"]),
    st.floats(),
    st.lists(st.sampled_from(["x", 1, None]), max_size=2),
    st.dictionaries(st.sampled_from(["x", "id"]), st.integers()),
    st.tuples(st.text(max_size=1)),
)


def _plain(annotation: Any) -> st.SearchStrategy[Any]:
    """Return values that a field of this type plainly takes."""
    kind, parts = get_origin(annotation), get_args(annotation)
    if annotation in SIMPLE:
        return SIMPLE[annotation]
    if kind is Literal:
        return st.sampled_from(parts)
    if kind is Annotated:
        return _plain(parts[0])
    if kind in (Union, UnionType):
        return st.one_of(*(_plain(part) for part in parts))
    if kind in (list, tuple):
        return st.lists(_plain(parts[0]), max_size=1)
    if kind is dict:
        return st.dictionaries(_plain(parts[0]), _plain(parts[1]), max_size=1)
    if isinstance(annotation, type) and issubclass(annotation, Shape):
        return st.deferred(lambda: _tables(annotation, whole=False))
    return ODD


@cache
def _tables(shape: type[Shape], *, whole: bool) -> st.SearchStrategy[dict[str, Any]]:
    """Return tables of a shape; of one inside another (not ``whole``) only what is required is given."""
    fields = field_annotations(shape)
    required = {name: _plain(fields[name]) for name, field in shape.model_fields.items() if field.default is MISSING}
    others = {name: _plain(each) for name, each in fields.items() if whole and name not in required}
    return st.fixed_dictionaries(required, optional=cast("dict[str, Any]", others))


def _outcome(shape: type[Shape], work: Any) -> tuple[str, Any]:
    try:
        made = work()
    except ValueError as error:
        return "refused", type(error).__name__
    return "taken", (repr({name: made.__dict__[name] for name in shape.model_fields}), made.model_fields_set)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__qualname__)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_shape_takes_what_pydantic_takes(shape: type[Shape], data: st.DataObject) -> None:
    """Right values, and right ones with one odd value or name among them, come out alike by both ways."""
    values = dict(data.draw(_tables(shape, whole=True)))
    if data.draw(st.booleans()):
        name = data.draw(
            st.sampled_from([*shape.model_fields, *(field.alias for field in shape.model_fields.values()), "unknown"])
        )
        values[str(name)] = data.draw(ODD)

    ours, theirs = (
        _outcome(shape, lambda: shape(**values)),
        _outcome(shape, lambda: shape.pydantic_model().model_validate(values)),
    )

    assert ours[0] == theirs[0]
    if ours[0] == "taken":
        assert ours[1] == theirs[1]
