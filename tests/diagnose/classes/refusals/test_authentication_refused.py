"""A refusal of who asks: what to give is told, whichever service refuses."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.classes.refusals import authentication_refused
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import Call, Said, evidence, failed, require_told

THRICE = 3


SAID: list[tuple[str, Evidence, list[str], list[str]]] = [
    (
        "a variable holds the key",
        evidence(
            Said("For the API use $STAGING_API_KEY."),
            *[Call("fetch", {"url": "/x"}, "Invalid API key provided", "error")] * THRICE,
        ),
        ["STAGING_API_KEY"],
        ["STAGING_API_KEY"],
    ),
    (
        "a key for ssh",
        evidence(
            Said("Use the key ~/.ssh/deploy for the server."),
            *[failed("ssh dev@10.0.0.5", "dev@10.0.0.5: Permission denied (publickey).")] * THRICE,
        ),
        ["~/.ssh/deploy"],
        ["~/.ssh/deploy"],
    ),
    (
        "a file with a new certificate",
        evidence(
            Said("The client certificate ends today; Ana left a new one for you under /opt/pki/agent-2.pem."),
            *[failed("etcdctl get /a", "rpc error: code = Unauthenticated desc = not authenticated")] * THRICE,
        ),
        ["certificate"],
        ["`/opt/pki/agent-2.pem`"],
    ),
    (
        "a way to log in",
        evidence(Said("Log in with: aws sso login"), *[failed("aws s3 ls", "An error occurred (ExpiredToken)")] * THRICE),
        ["aws sso login"],
        ["aws sso login"],
    ),
]


@pytest.mark.parametrize(("known", "cause", "step"), [each[1:] for each in SAID], ids=[each[0] for each in SAID])
def test_a_cause_is_known_in_other_words(known: Evidence, cause: list[str], step: list[str]) -> None:
    """Cause and next step are named as well where another client or tool tells them."""
    require_told(known, authentication_refused.KIND, cause, step)
