"""Agents that make the same wrong call again and again; what it should hold stands in one row of the history."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from bench.recovery.case import Ask, Case, Family, Need
from bench.recovery.first.cast import crew
from bench.recovery.third.asked import Background, choose, fill, play
from bench.recovery.third.rows import Row
from bench.recovery.traffic import Traffic

Step = tuple[str, dict[str, Any], str]
"""Action, input, and the error that comes back, in the words of the tools of these runs; templates of `fill`."""


class Wrong(NamedTuple):
    """A wrong call: the action and trade of the row that has what it lacks, the task, the round, the values that would do.

    ``varied``: it is made with another zip code each time.
    """

    action: str
    trade: str
    task: str
    steps: tuple[Step, ...]
    values: Callable[[dict[str, Any]], Sequence[str]]
    varied: bool = False


def _paid(found: dict[str, Any]) -> list[str]:
    return [str(part.get("payment_method_id") or part["payment_id"]) for part in found["payment_history"]]


def _trips(found: dict[str, Any]) -> list[str]:
    return list(found["reservations"])


def _customer(found: dict[str, Any]) -> list[str]:
    return [found["user_id"], found["address"]["zip"]]


_NAMES = {"first_name": "{name[first_name]}", "last_name": "{name[last_name]}"}
_BY_ZIP: Step = ("find_user_id_by_name_zip", {**_NAMES, "zip": "10001"}, "Error: User not found")
_BY_MAIL: Step = (
    "find_user_id_by_email", {"email": "{name[first_name]}{name[last_name]}@example.com"}, "Error: User not found"
)  # fmt: skip
_NO_TRIP: Step = ("get_reservation_details", {"reservation_id": "{user_id}"}, "Error: Reservation {user_id} not found")
_NO_USER: Step = ("get_user_details", {"user_id": "{who}"}, "Error: User {who} not found")
_BAGS: Step = (
    "update_reservation_baggages",
    {"reservation_id": "{reservation_id}", "total_baggages": 4, "nonfree_baggages": 1, "payment_id": "credit_card_1"},
    "Error: Payment method not found",
)
_RETURN: Step = (
    "return_delivered_order_items",
    {"order_id": "{order_id}", "item_ids": ["{items[0][item_id]}"], "payment_method_id": "credit_card_0000000"},
    "Error: Payment method should be the original payment method",
)

_NAMELESS = Wrong(
    "get_user_details", "shop", "{name[first_name]} {name[last_name]} is on the phone and wants to know what is on the way.",
    (_BY_ZIP,), _customer,
)  # fmt: skip
_TRIP = Wrong("get_user_details", "airline", "Tell {user_id} what was booked.", (_NO_TRIP,), _trips)
SINGLE = (
    _NAMELESS,
    Wrong("get_reservation_details", "airline", "Add a bag to reservation {reservation_id}.", (_BAGS,), _paid),
    Wrong("get_order_details", "shop", "Take the {items[0][name]} of order {order_id} back.", (_RETURN,), _paid),
    _TRIP,
)
ROUNDS = (_NAMELESS._replace(steps=(_BY_MAIL, _BY_ZIP)), _TRIP._replace(steps=(_NO_TRIP, _NO_USER)))
TRIED = (_NAMELESS._replace(varied=True),)


def stuck(family: str, wrongs: Sequence[Wrong], *, around: tuple[int, int] = (6, 30)) -> Family:
    """Return a family: an agent makes a wrong call again and again, with so many rows before the right one and after it."""

    def made(rng: random.Random, seed: int) -> Case:
        planner, finder, worker = crew(rng, 3)
        run = Traffic(rng, family, seed, [planner, finder, worker])
        wrong, answered = wrongs[(seed // 3 + seed) % len(wrongs)], seed % 3 != 2
        fact = choose(rng, wrong.action, wrong.trade)
        while not wrong.values(fact.found):
            fact = choose(rng, wrong.action, wrong.trade)
        values, rounds = tuple(wrong.values(fact.found)), rng.randint(3, 6)
        run.user("Work through the open cases of today, one after the other.")
        background = Background(run, wrong.trade, values, (planner, finder, worker))
        background.work(*around)
        cites = frozenset({play(run, finder, fact)}) if answered else frozenset[str]()
        background.work(*around)
        run.user(fill(wrong.task, fact))

        def circle(more: Traffic, attempt: int) -> None:
            for _ in range(3 if attempt else rounds):
                for action, given, error in wrong.steps:
                    sent = _filled(given, fact)
                    if wrong.varied:
                        sent["zip"] = str(more.rng.randint(10_000, 99_999))
                    more.call(worker, action, sent, error=fill(error, fact), quick=True)

        circle(run, 0)
        return Case(
            family=family, seed=seed, kind="loop", session=run.session, records=run.records, ask=Ask(),
            targets=frozenset({worker, planner}), needs=(Need(values),), answered=answered, cites=cites,
            again=run.later(circle),
        )  # fmt: skip

    return made


def _filled(given: Any, row: Row) -> Any:
    """Return an input with its templates filled."""
    if isinstance(given, dict):
        return {field: _filled(value, row) for field, value in cast("dict[str, Any]", given).items()}
    if isinstance(given, list):
        return [_filled(value, row) for value in cast("list[Any]", given)]
    return fill(given, row) if isinstance(given, str) else given
