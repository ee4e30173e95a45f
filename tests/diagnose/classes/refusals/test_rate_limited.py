"""A service that takes no more requests: when it takes the next one is told."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.classes.refusals import rate_limited
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import Call, bash, evidence, failed, read, require_told

THRICE = 3


SAID: list[tuple[str, Evidence, list[str], list[str]]] = [
    (
        "minutes and seconds",
        evidence(*[Call("fetch", {"url": "/x"}, "Rate limit reached, please try again in 2m30s.", "error")] * THRICE),
        ["150 seconds"],
        ["150 seconds"],
    ),
    (
        "a quota that is used up",
        evidence(*[Call("ask", {"q": "x"}, "Error code: 429 - {'code': 'insufficient_quota'}", "error")] * THRICE),
        ["used up"],
        ["Tell the user"],
    ),
]


@pytest.mark.parametrize(("known", "cause", "step"), [each[1:] for each in SAID], ids=[each[0] for each in SAID])
def test_a_cause_is_known_in_other_words(known: Evidence, cause: list[str], step: list[str]) -> None:
    """Cause and next step are named as well where another client or tool tells them."""
    require_told(known, rate_limited.KIND, cause, step)


API = """GET /v2/geocode?q=    10 calls per hour
POST /v2/geocode/batch  up to 500 places, 5 calls per hour
GET /v2/usage           free
"""
ASK = "curl -s 'http://maps.test:8080/v2/geocode?q=Lund'"
REFUSED = failed(ASK, "HTTP/1.1 429 Too Many Requests\nRetry-After: 3000")


def test_another_endpoint_takes_many_at_once() -> None:
    """The description that was read names it beside the refused one."""
    docs = bash("curl -s http://maps.test:8080/help", API)

    require_told(
        evidence(docs, *[REFUSED] * THRICE),
        "rateLimited",
        ["`/v2/geocode/batch`", "500 places"],
        ["one call to `/v2/geocode/batch`"],
    )


def test_an_endpoint_for_one_thing_or_one_that_was_used_is_no_other_way() -> None:
    """An unrelated endpoint is not named, and one that was called is known."""
    docs = bash("curl -s http://maps.test:8080/help", API)
    used = bash("curl -s -d @all.json http://maps.test:8080/v2/geocode/batch", "[]")
    told = rate_limited.diagnose(evidence(docs, used, *[REFUSED] * THRICE))

    assert told is not None
    assert "/v2/" not in told.cause
    assert told.next_step.startswith("Wait 3000 seconds")


SPEC = """paths:
  /v1/contacts/{id}:
    get:
      summary: One contact, 60 calls per hour
  /v1/contacts/batch:
    post:
      summary: Reads 500 contacts at once
"""
TABLE = "| `GET /v1/contacts/{id}` | 60 per hour |\n| `POST /v1/contacts:batchGet` | 500 ids per call |"


@pytest.mark.parametrize(("docs", "path"), [(SPEC, "/v1/contacts/batch"), (TABLE, "/v1/contacts:batchGet")])
def test_a_description_with_forms_of_paths(docs: str, path: str) -> None:
    """The refused path is a form of one in the description."""
    call = failed("curl -s https://crm.test/v1/contacts/81", "429 Too Many Requests")

    require_told(evidence(read("api.yaml", docs), *[call] * THRICE), "rateLimited", ["500"], [f"one call to `{path}`"])
