"""Names that took the place of others: who says so, and when nothing is said."""

from __future__ import annotations

import pytest

from tests.diagnose.build import Call, Said, bash, failed
from tests.diagnose.related.test_alternatives import THRICE, answer, refused

BIND = refused("bind", {"quote": "FQ-60412"}, "snapshot is not bindable")


@pytest.mark.parametrize(
    ("said", "newer"),
    [
        ("I re-rated it: FQ-60412 is closed, its successor FQ-60498 has 38 PLN.", "FQ-60498"),
        ("We moved you to FQ-60498. The earlier offer is withdrawn.", "FQ-60498"),
        ("FQ-60412 was replaced by ABC-7, which is open.", "ABC-7"),
        ("FQ-60498 is for another customer.", ""),
        ("FQ-60498 and FQ-60412 have the same price.", ""),
        ("AC-7719 has replaced its loss history.", ""),
    ],
)
def test_what_took_the_place_of_a_name_is_told(said: str, newer: str) -> None:
    """Another agent says it: by both names, or by a name of the same form beside words of a change."""
    told = answer(Said(said, "underwriter"), *BIND)

    assert ("the place of `FQ-60412`" in told.cause) == bool(newer)
    assert not newer or told.next_step.startswith(f"Make the call with `{newer}` in place of `FQ-60412`")


@pytest.mark.parametrize(
    ("listed", "newer"),
    [
        (
            '{"services": [{"code": "OL2-STG", "label": "Plus (was: OL-PLUS)"}, {"code": "OL2-X", "label": "(was: OL-X)"}]}',
            "OL2-STG",
        ),
        ('{"code": "OL-PLUS", "superseded_by": "OL2-STG"}', "OL2-STG"),
        ("OL-PLUS -> OL2-STG\nOL-X -> OL2-X", "OL2-STG"),
        ('{"services": [{"code": "OL2-STG", "label": "Plus"}, {"code": "OL-PLUS", "label": "Basic"}]}', ""),
        ("OL-PLUS costs 3, OL2-STG costs 5", ""),
    ],
)
def test_an_answer_that_shows_both_names_is_read(listed: str, newer: str) -> None:
    """In an object, in a member that is made for it, or on a line."""
    told = answer(Call("list_services", {}, listed), *refused("book", {"service": "OL-PLUS"}, "422 not in tariff"))

    assert ("`OL2-STG`, as what took the place of `OL-PLUS`" in told.cause) == bool(newer)


def test_a_newer_name_that_was_tried_is_no_advice() -> None:
    """The call has failed with it too."""
    told = answer(
        Said("FQ-60412 is closed, its successor is FQ-60498.", "underwriter"),
        Call("bind", {"quote": "FQ-60498"}, "snapshot is not bindable", "error"),
        *BIND,
    )

    assert "in place of" not in told.next_step


def test_the_own_guess_of_an_agent_is_no_news() -> None:
    """Only what others say counts."""
    told = answer(Said("Perhaps FQ-60412 is closed, and its successor is FQ-60498.", "main"), *BIND)

    assert "FQ-60498" not in told.next_step


def test_a_command_gets_the_newer_host() -> None:
    """Both names stand in one sentence; a name of the same form alone says nothing about a command."""
    failing = [failed("psql -h db-old.internal -c 'select 1'", "could not connect to server")] * THRICE

    assert (
        "`db-3.internal` in place of `db-old.internal`"
        in answer(bash("cat NOTES", "db-old.internal is now db-3.internal"), *failing).next_step
    )
    assert "in place of" not in answer(bash("cat NOTES", "db-9.internal is closed now"), *failing).next_step


@pytest.mark.parametrize(
    ("said", "newer"),
    [
        ("MSKU-77 has another owner. The PIN sent on Monday is void, new release PIN 902318.", "902318"),
        ("For MSKU-77 the new PIN is 902318.", "902318"),
        ("For TGHU-12 the new PIN is 902318.", ""),  # another container
        ("MSKU-77: the new gate code is 902318.", ""),  # another value
        ("MSKU-77: new PIN 9023.", ""),  # another form
    ],
)
def test_the_new_value_of_an_argument_is_told(said: str, newer: str) -> None:
    """It is called by the argument's name, has its form, and belongs to what the call names."""
    given = {"container": "MSKU-77", "releasePin": "447120"}
    told = answer(Said(said, "mailbot"), *refused("book", given, "cannot be booked with this release"))

    assert ("as the new `releasePin`" in told.cause) == bool(newer)
    assert not newer or told.next_step.startswith(f"Make the call with `{newer}` in place of `447120`.")
