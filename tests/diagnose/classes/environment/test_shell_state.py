"""A setting of one call is not there in the next."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from ctxmgr.diagnose.classes.environment.shell_state import KIND
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import Said, bash, evidence, failed, require_told

ENV = bash("cat env.sh", "export LEDGER_ENTITY=NL01\nexport LEDGER_PERIOD=2026-10")
CLOSE = [failed("python3 close.py", "close: not configured: LEDGER_ENTITY, LEDGER_PERIOD")] * 3


@pytest.mark.parametrize(
    ("setting", "kept"),
    [
        ("source env.sh", "source env.sh && python3"),
        ("source ./env.sh && echo sourced", "source ./env.sh && python3"),
        ("set -a; source env.sh; set +a", "set -a; source env.sh; set +a && python3"),
        ("export LEDGER_PERIOD=2026-10 LEDGER_ENTITY=NL01", "LEDGER_ENTITY=NL01 && python3"),
        ("declare -x LEDGER_ENTITY=NL01; declare -x LEDGER_PERIOD=2026-10", "&& python3"),
    ],
)
def test_what_a_call_of_its_own_has_set_is_lost(setting: str, kept: str) -> None:
    """Whatever sets it, the step sets it in the same call."""
    require_told(evidence(ENV, bash(setting), *CLOSE), KIND, ["LEDGER_ENTITY", "each call has its own shell"], [kept])


def test_the_words_of_the_user_on_the_shell_are_quoted() -> None:
    """A note that says so is quoted."""
    known = evidence(
        Said("Mind: every call is a process of its own, nothing set in one call persists."), ENV, bash("source env.sh"), *CLOSE
    )

    require_told(known, KIND, ["every call is a process of its own"], [])


@pytest.mark.parametrize(
    "known",
    [
        # The file sets something else.
        evidence(bash("cat env.sh", "export OTHER=1"), bash("source env.sh"), *CLOSE),
        # The command does more than to set it.
        evidence(ENV, bash("source env.sh && python3 check.py"), *CLOSE),
        # The shell keeps what was set, as a later call shows.
        evidence(ENV, bash("source env.sh"), bash("env | grep LEDGER", "LEDGER_ENTITY=NL01\nLEDGER_PERIOD=2026-10"), *CLOSE),
        # The failing call sets it itself.
        evidence(
            ENV, bash("source env.sh"), *[failed("source env.sh && python3 close.py", "not configured: LEDGER_ENTITY")] * 3
        ),
    ],
)
def test_other_settings_and_shells_that_keep_them_are_no_cause(known: Evidence) -> None:
    """Near misses of a lost setting."""
    found = diagnose(known)

    assert found is None or found.kind != KIND
