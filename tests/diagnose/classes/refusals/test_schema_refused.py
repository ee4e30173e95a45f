"""What to give in place of an argument that is not taken."""

from __future__ import annotations

from tests.diagnose.build import Call, evidence, require_told


def test_a_name_that_is_not_taken_stands_in_place_of_the_wanted_one() -> None:
    """The answer names both, and they are alike."""
    refused = "'unitPrice' was unexpected; 'unit_price' is a required property"
    known = evidence(*[Call("shop_set", {"sku": "A-7", "unitPrice": 3}, refused, "error")] * 3)

    require_told(known, "schemaRefused", ["unit_price"], ["`unit_price` in place of `unitPrice`"])
