"""Characters that cannot be seen, beside the name of a call."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import bash, evidence, failed


@pytest.mark.parametrize("name", ["TEAM_ATOM", "TEAM_ATOX", "MMM", "mirror"])
@pytest.mark.parametrize("sign", ["^M$", "\\r"])
def test_a_name_keeps_its_own_letters(name: str, sign: str) -> None:
    """The sign of a carriage return goes from a name's end, and no letter of the name with it."""
    shown = bash("cat -A teams.txt", f"{name}{sign}\n")
    call = failed(f"./run --team {name}", f"unknown team: {name}")
    told = diagnose(evidence(shown, call, call, call))

    assert told is not None
    assert told.kind == "hiddenCharacter"
    assert f"`{name}`" in told.cause
