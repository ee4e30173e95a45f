"""Which words of a record are names."""

from __future__ import annotations

import json

import pytest

from ctxmgr.diagnose.related.related_lines import find_names, find_related_lines
from tests.diagnose.build import Call, bash, evidence, failed, read


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("see https://npm.int.example/simple/ for it", ["npm.int.example/simple"]),
        ("-rw-r--r-- 1 dev dev 134 Nov 3 09:12 model.onnx", ["model.onnx"]),
        ("the shed is open", []),
        ("allowed: PUT; use --depth 3", ["PUT", "--depth"]),
    ],
    ids=["address", "listing", "words", "capitals"],
)
def test_names_are_what_no_sentence_is_made_of(text: str, names: list[str]) -> None:
    """Addresses lose their scheme; numbers, times and modes are no names."""
    assert find_names(text) == names


@pytest.mark.parametrize(("setting", "shown"), [('MODE="$WIDE" ', True), ("", False)], ids=["variable", "the same call"])
def test_a_variable_that_only_the_call_of_another_agent_sets_is_quoted(setting: str, shown: bool) -> None:
    """A key such as MODE is a word of errors elsewhere; before a command it is what the failing calls lack."""
    run = "spindle run weave --queue loom-west --format wide --output /srv/loom/weaves.txt"
    other = bash(f"{setting}{run}", "weave accepted by spindle")._replace(agent="scout")
    noise = [
        bash("nproc", "2"),
        bash("umask", "0022"),
        read("docs/style.md", "# Style\n\nFour blanks."),
        bash("uname -s", "Linux"),
    ]
    known = evidence(*noise, other, *noise, *[failed(f"{run} -v", "spindle: weave rejected, code 71")] * 3)
    (line,) = find_related_lines(known, known.failing_calls)

    assert line.quote is not None
    assert line.quote.text.startswith(f"$ {setting}{run}") is shown


def test_parts_of_a_line_are_quoted_as_they_stand_in_it() -> None:
    """An object of many members is chosen from in parts: their commas stay, and what is left out has a mark."""
    user = {
        "user_id": "noah_muller_9847", "name": {"first_name": "Noah", "last_name": "Muller"},
        "address": {"address1": "889 Hillcrest Drive", "address2": "Suite 254", "city": "Denver", "zip": "80216"},
        "payment_methods": {"gift_card_3481": {"source": "gift_card", "id": "gift_card_3481", "amount": 41}},
        "saved_passengers": [{"first_name": "Amelia", "last_name": "Ahmed", "dob": "1957-03-21"}],
        "membership": "silver", "reservations": ["SDZQKO", "4OG6T3", "ZQX1W2"],
    }  # fmt: skip
    said = json.dumps(user)
    refused = "Error: payment method gift_card_3482 not found for noah_muller_9847"
    book = Call("book_reservation", {"user_id": "noah_muller_9847", "payment": "gift_card_3482"}, refused, "error")
    known = evidence(Call("get_user_details", {"user_id": "noah_muller_9847"}, said), bash("nproc", "2"), *[book] * 3)
    quote = next(
        each.quote for each in find_related_lines(known, known.failing_calls) if each.quote and "noah" in each.quote.text
    )

    assert "…" in quote.text
    assert '", "' in quote.text
    parts = [part.strip() for part in quote.text.split("…")]
    assert [part for part in parts if part not in said] == []
    assert quote.text.startswith("… ") != said.startswith(parts[0] or "-")
