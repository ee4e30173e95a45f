"""A rule is silent where a record has its words, but not what they mean: words alone choose no cause and no step."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import contrast, diagnose
from ctxmgr.types.finding import Diagnosis
from tests.diagnose.build import Call, Said, bash, evidence, failed


def answer(*steps: Call | Said) -> Diagnosis:
    """Return what is said of these steps."""
    known = evidence(*steps)
    told = diagnose(known) or contrast(known)
    assert told is not None
    return told


def refused(action: str, message: str, **given: object) -> list[Call]:
    """Return a call that a service refuses three times."""
    return [Call(action, given, f"Error: {message}", "error")] * 3


def test_a_gift_certificate_is_none_of_tls() -> None:
    """The word alone names no authority and no server to look at."""
    told = answer(
        Said("Book it."), *refused("book_trip", "Not enough balance in payment method certificate_7473", flight="HAT1")
    )

    assert "--cacert" not in told.next_step
    assert "openssl" not in told.next_step


def test_a_refused_tls_certificate_is_still_looked_at() -> None:
    """What says that a certificate can't be verified gets a step about it."""
    told = answer(
        Said("Fetch it."), *refused("fetch_page", "failed to verify certificate: x509: bad name", url="https://a.example")
    )

    assert "certificate" in told.cause + told.next_step


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("That's the only one with a layover under 4 hours?", "refused"),
        ("Take one with a layover under 4 hours.", "Payment method certificate_1 not found"),
    ],
)
def test_a_question_or_another_error_is_about_no_limit(sentence: str, message: str) -> None:
    """A question sets no limit, and an error about a missing thing is about no amount."""
    told = answer(Said(sentence), *refused("book_trip", message, amount=259))

    assert told.kind != "constraintBroken"


def test_a_split_answer_is_to_be_quoted() -> None:
    """An answer with blanks and no quotes came in pieces: it is not called wrong."""
    told = answer(Said("Solve it."), *[bash("submit flag{People always win}", "Wrong flag!")] * 4)

    assert "single quotes" in told.next_step
    assert "Do not give that answer again" not in told.next_step


def test_an_answer_that_was_accepted_later_is_not_forbidden() -> None:
    """Another form of the call had another answer, so that nothing is said of the old one."""
    found = diagnose(evidence(Said("Solve it."), *[bash("submit 'abc'", "Wrong flag!")] * 4, bash("submit 'abd'", "accepted")))

    assert found is None or "judged wrong" not in found.cause


def test_the_old_value_is_not_offered_as_the_new_one() -> None:
    """What the user wants replaced is no value for the call; a count that does not match asks for all the things."""
    told = answer(
        Said("My user ID is anya_garcia_5901. Change the passenger name from Mei Lee to Mei Garcia on my reservation."),
        *refused(
            "update_reservation_passengers", "Number of passengers does not match", reservation_id="3RK2T9",
            passengers=[{"first_name": "Mei", "last_name": "Garcia"}],
        ),
    )  # fmt: skip

    assert "Mei Lee" not in told.next_step
    assert "anya_garcia_5901" not in told.next_step
    assert "send all of its passengers" in told.next_step


def test_the_last_digits_of_a_made_up_name_are_found() -> None:
    """A card that is named by its last four digits is told with the name that the record has for it."""
    user = '{"payment_methods": {"credit_card_9074831": {"last_four": "7334", "id": "credit_card_9074831"}}}'
    told = answer(
        Said("Book it with my card."), Call("get_user", {"user": "u1"}, user),
        *refused("book_trip", "Payment method credit_card_7334 not found", payment="credit_card_7334"),
    )  # fmt: skip

    assert "`credit_card_9074831`" in told.next_step
    assert "holds no name like it" not in told.cause


def test_a_name_that_the_user_gave_is_not_called_absent() -> None:
    """The record has the name, as that of something else."""
    told = answer(
        Said("My user ID is ethan_martin_2396."),
        *refused("get_reservation", "Reservation ethan_martin_2396 not found", reservation="ethan_martin_2396"),
    )

    assert "my user ID is ethan_martin_2396".casefold() in told.cause.casefold()
    assert "holds no name like it" not in told.cause


def test_a_simulated_user_is_not_sent_to_its_own_words() -> None:
    """The words of the agent that fails are no orders to it."""
    call = Call("add_item", {"item": "M1", "mods": "[]"}, "Error: bad modifier list", "error", agent="user")
    told = answer(Said("Use the modifier list SIDE-SALAD for the item."), call, call, call)

    assert "user said" not in told.cause + told.next_step


def test_what_the_user_does_not_know_binds_nobody() -> None:
    """The words "not sure" hold one that binds, and say nothing of how to do it."""
    look = Call("get_reservation", {"id": "4OG6T3"}, '{"origin": "BOS", "destination": "LAS"}')
    told = answer(Said("I'm not sure about the date, but please check my reservation from BOS to MAD."), look, look, look)

    assert "Keep to what the user said" not in told.next_step
    assert "Do it as the user said" not in told.next_step


def test_a_phone_has_no_worker() -> None:
    """Where no call shows a machine, nobody is sent to its processes and logs."""
    test = Call("run_speed_test", {}, "No Connection.")
    told = answer(Said("Mend the phone."), test, Call("toggle_data", {}, "Data is on."), test, test)

    assert "worker" not in told.next_step


def test_a_small_word_is_no_name_of_a_library() -> None:
    """The name stands after "named"."""
    told = answer(Said("Deploy."), *[failed("gh workflow run deploy-staging.yml",
                                            "could not find any workflows named deploy-staging.yml")] * 3)  # fmt: skip

    assert "`any`" not in told.cause
    assert "`deploy-staging.yml`, and there is no workflow" in told.cause


def test_another_search_of_the_same_tool_is_no_place() -> None:
    """An answer that repeats its query does not hold what is searched."""
    none = Call("search.pubmed", {"query": "sublingual peanut"}, "No results found")
    told = answer(
        Said("Find trials."), Call("search.pubmed", {"query": "sublingual mite"}, "query: sublingual\nresults: sublingual"),
        none, none, none,
    )  # fmt: skip

    assert told.kind != "searchElsewhere"


def test_a_script_misses_a_command_that_an_environment_has() -> None:
    """Dash names script and line first; the document names the environment with all programs."""
    note = bash("cat docs/machine.md", "# Machine\n\nAll is in the micromamba env `carto`: `micromamba run -n carto CMD`.")
    told = answer(Said("Make it."), note, *[failed("sh tools/x.sh dem.tif", "tools/x.sh: 3: gdaldem: not found")] * 3)

    assert told.kind == "toolMissing"
    assert "`micromamba run -n carto sh tools/x.sh dem.tif`" in told.next_step


def test_the_failed_line_says_more_than_the_count() -> None:
    """Of pytest's summary the line with the reason is quoted."""
    said = "FAILED tests/test_core.py::test_today - AssertionError: assert 2025 == 2026\n1 failed, 7 passed in 0.20s"
    told = answer(Said("Mend it."), *[failed("pytest -q", said)] * 3)

    assert "test_today - AssertionError" in told.cause


def test_a_permitted_role_that_a_refused_call_used_is_no_way_out() -> None:
    """The newest form of the call lacks the role, an earlier one had it."""
    denied = [Call("copy", {"role": role, "table": "t"}, "permission denied", "denied") for role in ("etl_export", "admin")]
    told = answer(Said("Use the role etl-export."), *denied, *denied)

    assert "the permitted way" not in told.next_step


def test_a_line_of_the_same_file_is_no_other_place() -> None:
    """The number behind a file's name makes it no other name."""
    seen = bash("grep -rn retries uploader", "uploader/client.go:44: retries := 3")
    told = answer(
        Said("Mend it."), seen, *[failed("govet uploader/client.go", "vet: uploader/client.go not found in package")] * 3
    )

    assert "in place of `uploader/client.go`" not in told.next_step
