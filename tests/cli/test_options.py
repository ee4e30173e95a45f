"""Options that commands share: those of output in the order of their table, and intervals that can be waited for."""

from __future__ import annotations

import pytest

from ctxmgr.cli import invocation, options
from ctxmgr.errors import InvalidInput


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf"), float("-inf")])
def test_an_interval_that_cannot_be_waited_for_is_refused(seconds: float) -> None:
    """A sleep of it would fail, or never end."""
    with pytest.raises(InvalidInput, match=r"--every .* is no time"):
        options.require_interval(seconds)


def test_an_interval_above_0_is_taken() -> None:
    """However short."""
    options.require_interval(0.001)


def test_each_option_of_output_is_declared_as_it_is_spelled() -> None:
    """Help and the fast path read the same spellings."""
    declared = {name: each.__metadata__[0].words for name, each in options.OUTPUT.items()}

    assert declared == {name: each.words for name, each in invocation.OUTPUT.items()}
