"""Which recorded name was meant by one that was named in vain: of its kind, not tried yet, and said by whom."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.diagnose.evidence.nearest_names import (
    Counterpart,
    find_nearest_offered,
    find_nearest_recorded,
    likeness,
    shares_only_ending,
)
from tests.diagnose.build import Call, Said, bash, evidence, failed

ERROR = "error: no such branch: releese-2024"


def nearest(*steps: Call | Said, name: str = "releese-2024", error: str = ERROR, given: str = "") -> Counterpart | None:
    """Return what these steps have in place of a name that a command then names in vain, three times."""
    known: Evidence = evidence(*steps, *[failed(given or f"git switch {name}", error)] * 3)
    return find_nearest_recorded(known, name, known.failing_calls[-1])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("customer_id", "customerId"), ("payments", "payment"), ("staging", "stg"), ("stg-db", "staging-db"),
        ("get_user", "fetch_user"), ("prod", "production"), ("invoice_total", "total_invoice"), ("custmer", "customer"),
    ],
)  # fmt: skip
def test_names_of_one_thing_are_alike(one: str, other: str) -> None:
    """Another way to write it, a part left out, a short form, the parts turned round, a letter missing; either way round."""
    assert likeness(one, other) >= 0.7
    assert likeness(other, one) >= 0.7


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("customer_id", "customer_id"), ("./a.py", "a.py"), ("client-pod", "postgres"), ("orders", "orders.py"),
        ("8101", "port"), ("abc", ""), ("api", "application-programming-interface"),
    ],
)  # fmt: skip
def test_names_of_another_shape_are_not(one: str, other: str) -> None:
    """The same name is no other one; a file is no table, a number no word, and a long text no short name."""
    assert likeness(one, other) < 0.6


def test_the_one_that_is_most_alike_is_chosen() -> None:
    """Of names on offer the nearest; none where all are far, or where there is nothing but the name itself."""
    assert find_nearest_offered("custmer_id", ["order_id", "customer_id", "customer_name"]) == "customer_id"
    assert find_nearest_offered("zebra", ["customer_id"]) is None
    assert find_nearest_offered("b.py", ["b.py"]) is None
    assert find_nearest_offered("b.py", []) is None


def test_a_listed_name_is_told_with_where_it_is_listed() -> None:
    """The answer of a list has it: its line is quoted, and nobody has used it."""
    found = nearest(bash("git branch -a", "  main\n  release-2024\n  docs"))

    assert found is not None
    assert (found.name, found.by_user, found.given) == ("release-2024", False, False)
    assert "`git branch -a`" in found.source
    assert found.quote.text.strip() == "release-2024"


def test_the_word_of_a_person_stands_above_what_is_shown() -> None:
    """A name that the user wrote counts more than a like one of a list; a plain word of a sentence is no name."""
    said = nearest(Said("Work on release_2024, please."), bash("git branch -a", "  main\n  releases-2024"))
    plain, quoted = (
        nearest(Said(f"Deploy to {word} now."), name="stagin", error="no such place: stagin", given="deploy stagin")
        for word in ("staging", "`staging`")
    )

    assert said is not None
    assert (said.name, said.by_user, said.source.startswith("the user")) == ("release_2024", True, True)
    assert plain is None
    assert quoted is not None
    assert quoted.name == "staging"


def test_a_name_that_a_call_used_is_told_as_used() -> None:
    """It worked with that name: the command is the quote."""
    found = nearest(bash("git switch release-2024", "Switched to branch"))

    assert found is not None
    assert (found.name, found.given) == ("release-2024", True)
    assert found.quote.text == "git switch release-2024"


def test_what_was_tried_with_the_same_end_is_not_offered() -> None:
    """Of two like names the one that failed alike is passed over."""
    listed = bash("git branch -a", "  release-2024\n  releases-2024")
    both = nearest(listed)
    again = nearest(listed, given="git switch releese-2024 || git switch release-2024")

    assert both is not None
    assert again is not None
    assert (both.name, again.name) == ("release-2024", "releases-2024")


def test_the_nearest_of_several_is_told() -> None:
    """Wherever it stands among them."""
    for words in ("order_in, later order_inbox", "order_inbox, later order_in"):
        found = nearest(bash("cat notes", words), name="ordr_in", error="no such queue: ordr_in", given="drain ordr_in")
        assert found is not None
        assert found.name == "order_in"


def test_another_number_is_another_thing() -> None:
    """However alike two names are, one with other digits is not what was meant."""
    assert nearest(bash("git branch -a", "  main\n  release-2023")) is None


def test_a_failing_call_and_a_later_one_say_nothing() -> None:
    """Only what went well, and before, shows what is there."""
    assert nearest(failed("git switch release-2024", "fatal: not a git repository")) is None
    known = evidence(*[failed("git switch releese-2024", ERROR)] * 3, bash("git branch -a", "  release-2024"), loop=3)
    assert find_nearest_recorded(known, "releese-2024", known.entries[0]) is None


def test_a_table_is_no_column() -> None:
    """Where a column is unknown a name behind FROM is none."""
    shown = bash("cat q.sql", "select 1 from customer_refs join orders on true")
    error = "ERROR: column customer_ref does not exist"

    assert nearest(shown, name="customer_ref", error=error, given="psql -c 'select customer_ref'") is None
    assert nearest(shown, name="customer_ref", error="no such table: customer_ref", given="psql -c x customer_ref") is not None


@pytest.mark.parametrize(
    ("one", "other", "only_ending"),
    [
        ("delivered_at", "booked_at", True), ("deliveredAt", "booked_at", True), ("user_id", "order_id", True),
        ("is_active", "is_paid", True), ("first_name", "last_name", True), ("start_date", "due_date", True),
        ("delivered_at", "delivery_at", False), ("created_at", "create_at", False), ("cust_id", "customer_id", False),
        ("qty_id", "quantity_id", False), ("order_items", "invoice_items", False),
        ("customr", "customer", False), ("id", "user_id", False), ("userid", "user_id", False),
    ],
)  # fmt: skip
def test_a_small_word_in_common_makes_no_name_alike(one: str, other: str, only_ending: bool) -> None:
    """`_at`, `_id` and `is_` are part of many names; forms of the other words, and short forms, are alike."""
    assert shares_only_ending(one, other) is shares_only_ending(other, one) is only_ending
