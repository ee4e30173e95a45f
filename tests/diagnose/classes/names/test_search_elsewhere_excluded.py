"""Look-ups that find nothing: what the user said of the value that all of them name."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import Call, Said, bash, evidence, require_told

SAID = "Find the parcel of depot D-204. D-240 is only the training depot, the parcels lie in D-204."


def empty_lookups(depot: str = "D-240") -> list[Call]:
    """Return look-ups in different words, all of which find nothing."""
    return [
        bash(f"psql -c \"select * from parcels where depot = '{depot}'\"", "id | depot\n---+------\n(0 rows)"),
        bash(f"mysql -e \"select id from parcels where depot like '{depot}%'\"", "Empty set (0.00 sec)"),
        bash(f"sqlite3 p.db \"select count(*) from parcels where depot = '{depot}' or place = '{depot}'\"", "0"),
        Call("parcels.search", {"depot": depot}, {"hits": 0}),
    ]


def test_the_user_said_which_value_is_meant() -> None:
    """The look-ups have no command and no word in common except the value."""
    known = evidence(Said(SAID), *empty_lookups(), found=False)

    require_told(known, "searchElsewhere", ["All 4 look-ups", "`D-240`", "training depot"], ["`D-204` in place of `D-240`"])


def test_a_summary_that_leaves_it_out_is_named() -> None:
    """After a compaction, the agent does not have the user's words."""
    summary = Said("Find the parcel in the depot.", "program", "compaction")
    known = evidence(Said(SAID), bash("ls"), summary, *empty_lookups(), found=False)

    require_told(known, "searchElsewhere", ["summary of the compaction"], ["`D-204`"])


@pytest.mark.parametrize(
    "said",
    [
        "Look only into D-240, D-204 belongs to somebody else.",
        "Test D-240, then D-204.",
        "D-240 is not the depot, D-204 is not either.",
        "D-240 is only the training depot.",
        "D-240 is only the training depot, see D-204 or D-205.",
    ],
)
def test_words_that_do_not_say_which_value_is_meant(said: str) -> None:
    """Nothing is said of another value, or of more than one."""
    found = diagnose(evidence(Said(said), *empty_lookups(), found=False))

    assert found is None or "in place of" not in found.next_step


def test_a_value_that_was_asked_for_too_is_no_way() -> None:
    """The meant value finds nothing either."""
    found = diagnose(evidence(Said(SAID), *empty_lookups(), *empty_lookups("D-204")[:1], *empty_lookups(), found=False))

    assert found is None or "in place of" not in found.next_step
