"""Errors: each kind is one word that programs read, and each says what to do next where it knows that."""

from __future__ import annotations

import re

import pytest

from ctxmgr import errors
from ctxmgr.cli.exits import Exit, find_exit
from ctxmgr.errors import CtxmgrError, DegenerateLoopError, HungError, candidates


def _all(root: type[CtxmgrError]) -> list[type[CtxmgrError]]:
    return [root, *(found for below in root.__subclasses__() for found in _all(below))]


KINDS = [each for each in _all(CtxmgrError) if each.__module__ == errors.__name__]

RAISED_IN_WORKFLOWS = (CtxmgrError, DegenerateLoopError, HungError)
"""The base, and what a guard raises in the program of a workflow: no command ends with one of them."""


def test_a_kind_is_the_name_of_one_error() -> None:
    """In camelCase; an error below another one has its kind."""
    kinds = [each.kind for each in KINDS if "kind" in vars(each)]

    assert len(KINDS) > 15
    assert len(set(kinds)) == len(kinds)
    assert all(re.fullmatch(r"[a-z]+[a-zA-Z]*", kind) for kind in kinds)


@pytest.mark.parametrize("kind", [each for each in KINDS if each not in RAISED_IN_WORKFLOWS], ids=lambda each: each.__name__)
def test_an_error_has_an_exit_code(kind: type[CtxmgrError]) -> None:
    """Every deliberate error ends a command with a code that is neither success nor that of a fault of the program."""
    assert find_exit(kind.kind) not in (Exit.OK, Exit.INTERNAL)


def test_only_what_may_pass_by_itself_is_retryable() -> None:
    """A busy store and a refusal of the system; whatever was asked wrongly stays wrong."""
    assert {each.__name__ for each in KINDS if each.retryable} == {"Busy", "StorageFailed"}


@pytest.mark.parametrize(
    ("names", "said"),
    [(["b", "a", "b"], "one of: b, a"), (map(str, range(5)), "one of: 0, 1, 2, 3, 4"),
     (map(str, range(6)), "one of: 0, 1, 2, 3, 4, and more")],
)  # fmt: skip
def test_candidates_are_each_named_once(names: list[str], said: str) -> None:
    """In their order; of many the first ones."""
    assert candidates(names) == said
