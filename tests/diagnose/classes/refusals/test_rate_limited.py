"""A service that takes no more requests: when it takes the next one is told."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.classes.refusals import rate_limited
from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.log.ids import format_time
from tests.builders import START
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


def spaced(seconds: int, *calls: Call) -> Evidence:
    """Return calls of which each came that long after the one before."""
    known = evidence(*calls)
    entries = [each.model_copy(update={"ts": format_time(START + seconds * each.index)}) for each in known.entries]
    return Evidence(entries, known.finding, known.messages)


LIMITS = Call(
    "limits.show",
    {"project": "geo"},
    "limit               ceiling  used  refill\ngeocode.qps              10     0  every second\n"
    "geocode.items/day       250    50  08:00 UTC\nbatch_geocode.rows/day  9000     0  08:00 UTC",
)
DONE = Call("maps.geocode", {"offset": 0}, {"resolved": 99, "unresolved": 1})
SLOW = Call("maps.geocode", {"offset": 200}, "429 Too many requests for geocode. Please slow down.", "error")


def test_calls_far_apart_have_used_up_what_is_for_a_longer_time() -> None:
    """No rate per second or minute forbids a call after ten minutes; which quota it is, only the service knows."""
    require_told(
        spaced(600, *[SLOW] * THRICE),
        "rateLimited",
        ["600 seconds (10 minutes) after", "an hour or a day, is used up"],
        ["Look up what is left of the quota"],
    )


def test_the_quota_that_a_list_of_limits_has_for_the_call_is_named() -> None:
    """What was left there, the calls since have used; the list has another quota for the same work."""
    require_told(
        spaced(600, LIMITS, DONE, DONE, *[SLOW] * THRICE),
        "rateLimited",
        ["`geocode.items/day`: `250`, of which `50` were used then, and your calls since then have used the other 200."],
        ["no such call before `08:00 UTC`", "`batch_geocode.rows/day` does the work", "9000 left"],
    )


def test_units_that_do_not_add_up_are_not_counted() -> None:
    """The row of the list is told, and not how much of it the calls have used."""
    known = spaced(600, LIMITS, DONE, *[SLOW._replace(given={"offset": 100})] * THRICE)

    require_told(known, "rateLimited", ["`geocode.items/day`: `250`, of which `50` were used then."], ["08:00 UTC"])


@pytest.mark.parametrize(
    "known",
    [
        spaced(5, *[SLOW] * THRICE),
        spaced(600, *[SLOW._replace(output="429: 5 requests per minute are allowed, slow down")] * THRICE),
        spaced(600, *[SLOW._replace(output="429 Too Many Requests\nRetry-After: 3000")] * THRICE),
    ],
)
def test_a_rate_that_the_answer_or_the_pauses_show_is_no_used_quota(known: Evidence) -> None:
    """Calls close to each other, a rate per minute, and a wait that the answer names."""
    told = rate_limited.diagnose(known)

    assert told is not None
    assert "you ask too often" in told.cause
    assert told.next_step.startswith("Wait ")


def test_a_quota_that_has_something_left_after_a_refusal_is_not_the_used_one() -> None:
    """What the service shows after it has refused is no reason for the refusal."""
    told = rate_limited.diagnose(spaced(600, SLOW, LIMITS, *[SLOW] * THRICE))

    assert told is not None
    assert "geocode.items/day" not in told.cause
    assert "08:00" not in told.next_step
