"""A fact that the record shows and the call goes against: the fact is told."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.classes.statements import record_fact
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import Call, bash, evidence, failed, require_told

THRICE = 3


SAID: list[tuple[str, Evidence, list[str], list[str]]] = [
    (
        "a port that is published as another",
        evidence(
            bash("docker compose ps", "db Up 0.0.0.0:5544->5432/tcp"),
            *[failed("psql -h localhost -p 5432", "connection to server at localhost, port 5432 failed: Connection refused")]
            * THRICE,
        ),
        ["`5544`"],
        ["port 5544"],
    ),
]


@pytest.mark.parametrize(("known", "cause", "step"), [each[1:] for each in SAID], ids=[each[0] for each in SAID])
def test_a_cause_is_known_in_other_words(known: Evidence, cause: list[str], step: list[str]) -> None:
    """Cause and next step are named as well where another client or tool tells them."""
    require_told(known, record_fact.KIND, cause, step)


MODULE = failed("systemctl start till", "Error: The module 'a.node'\nwas compiled against a different Node.js version.")
UNIT = "[Service]\nExecStart=/opt/node22/bin/node dist/main.js"
SHELL = bash("bash -lc 'which node'", "/home/deploy/.nvm/versions/node/v20.18.0/bin/node")


def test_a_module_for_another_node_than_that_of_the_service() -> None:
    """The unit names the node that runs it, and the shell shows the other one."""
    require_told(
        evidence(bash("systemctl cat till", UNIT), SHELL, *[MODULE] * THRICE),
        record_fact.KIND,
        ["`/opt/node22/bin`", "of nvm"],
        ["`PATH=/opt/node22/bin:$PATH npm rebuild`"],
    )


@pytest.mark.parametrize(
    ("unit", "shell"),
    [(UNIT, bash("which node", "/usr/bin/node")), (UNIT.replace("/opt/node22", "/srv/.nvm/versions/node/v22.1.0"), SHELL)],
)
def test_one_node_or_one_that_nobody_shows_is_no_fact(unit: str, shell: Call) -> None:
    """The words of the error remain."""
    assert record_fact.diagnose(evidence(bash("systemctl cat till", unit), shell, *[MODULE] * THRICE)) is None
