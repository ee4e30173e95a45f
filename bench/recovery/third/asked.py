"""Agents that ask for a value which one row of the history holds, named by its key or described by what else it holds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from bench.recovery.case import Ask, Case, Family, Need
from bench.recovery.first.cast import crew
from bench.recovery.first.lost import reason_for
from bench.recovery.third.rows import Row, of, rows
from bench.recovery.traffic import Traffic

_AROUND = (6, 30)
"""Entries of background before the fact, and as many after it."""


class Kind(NamedTuple):
    """The action whose rows hold a fact, their trade, the question and the value that answers it, templates of `fill`."""

    action: str
    trade: str
    question: str
    value: str


_ORDER, _USER, _TRIP, _PRODUCT = "get_order_details", "get_user_details", "get_reservation_details", "get_product_details"

KEYED = (
    Kind(_ORDER, "shop", "the street to which order {order_id} is sent", "{address[address1]}"),
    Kind(_TRIP, "airline", "how reservation {reservation_id} was paid", "{payment_history[0][payment_id]}"),
    Kind(_ORDER, "shop", "which payment method was used for order {order_id}", "{payment_history[0][payment_method_id]}"),
    Kind(_USER, "airline", "the date of birth of {user_id}", "{dob}"),
    Kind(_USER, "shop", "the e-mail address of {user_id}", "{email}"),
    Kind(_TRIP, "airline", "the number of the first flight of reservation {reservation_id}", "{flights[0][flight_number]}"),
)
DESCRIBED = (
    Kind(_ORDER, "shop", "the number of the order in which {who} bought a {items[0][name]}", "{order_id}"),
    Kind(_TRIP, "airline", "the code of the booking of {who} from {origin} to {destination}", "{reservation_id}"),
    Kind(_PRODUCT, "shop", "the item id of the {name} with {options}", "{item_id}"),
    Kind(_USER, "airline", "the user id of the customer at {address[address1]} in {address[city]}", "{user_id}"),
    Kind(_USER, "shop", "under which id the customer who lives in {address[address1]} is kept", "{user_id}"),
)
COMMON = (
    Kind(_ORDER, "shop", "the number of the {status} order with a {items[0][name]} for {address[city]}", "{order_id}"),
    Kind(_TRIP, "airline", "the code of the {cabin} trip from {origin} on {flights[0][date]}", "{reservation_id}"),
    Kind(_USER, "airline", "the user id of {name[first_name]}, a {membership} member in {address[city]}", "{user_id}"),
    Kind(_USER, "shop", "the user id of {name[first_name]} in {address[city]}", "{user_id}"),
)
"""Described by words that stand in many rows; only one has them all."""


def fill(template: str, row: Row) -> str:
    """Return a template with the fields of a row; of a product, those of one of its variants too."""
    fields = row.found
    if "variants" in fields:
        variant = list(fields["variants"].values())[len(fields["name"]) % len(fields["variants"])]
        fields |= {"item_id": variant["item_id"], "options": ", ".join(variant["options"].values())}
    return template.format(**fields, who=_name(fields.get("user_id", "")))


def _name(user: str) -> str:
    """Return a customer's name, read off the user id."""
    return " ".join(part.capitalize() for part in user.split("_")[:2])


def choose(rng: random.Random, action: str, trade: str) -> Row:
    """Return a row of an action of a trade."""
    return rng.choice([row for row in of(action) if row.trade == trade])


class Background:
    """The other rows of a trade, none of which holds one of some values, in an order drawn by lot; each is used once."""

    def __init__(self, run: Traffic, trade: str, without: Sequence[str], agents: Sequence[str]) -> None:
        self._run = run
        self._agents = agents
        self._left = [row for row in rows() if row.trade == trade and not any(row.holds(value) for value in without)]
        run.rng.shuffle(self._left)

    def work(self, low: int, high: int, agents: Sequence[str] = ()) -> None:
        """Record between ``low`` and ``high`` rows, done by these agents or by all, in turns of some length."""
        who = agents or self._agents
        agent = self._run.rng.choice(who)
        for _ in range(self._run.rng.randint(low, high)):
            if self._run.rng.random() < 0.25:
                agent = self._run.rng.choice(who)
            play(self._run, agent, self._left.pop())


def play(run: Traffic, agent: str, row: Row) -> str:
    """Record a row as done by an agent; return the id of the entry."""
    return run.call(agent, row.action, row.given, row.came)


def asked(family: str, kinds: Sequence[Kind], *, around: tuple[int, int] = _AROUND, review: bool = False) -> Family:
    """Return a family: an agent asks for what one row holds, with so many rows before and after it."""

    def made(rng: random.Random, seed: int) -> Case:
        kind = kinds[(seed // 3 + seed) % len(kinds)]
        fact = choose(rng, kind.action, kind.trade)
        question = fill(kind.question, fact)
        alike = [row for row in of(kind.action) if row.trade == kind.trade and fill(kind.question, row) == question]
        without = [fill(kind.value, row) for row in alike]
        return _request(
            rng, family, seed, question, fill(kind.value, fact), [fact], without=without, around=around, review=review
        )

    return made


def other_row(rng: random.Random, seed: int) -> Case:
    """Return a case in which the row of the key is there and does not hold the value; the row of its customer does."""
    action, trade, value, asks = (
        (_ORDER, "shop", "{email}", "the e-mail address of whoever placed order {order_id}"),
        (_TRIP, "airline", "{dob}", "the date of birth of whoever booked reservation {reservation_id}"),
    )[(seed // 3 + seed) % 2]
    customers = {row.given["user_id"]: row for row in of(_USER) if row.trade == trade}
    keyed = rng.choice([row for row in of(action) if row.found["user_id"] in customers])
    fact = customers[keyed.found["user_id"]]
    sought = fill(value, fact)
    return _request(rng, "real-other-row", seed, fill(asks, keyed), sought, [fact], without=[sought], decoy=keyed)


def replaced(rng: random.Random, seed: int) -> Case:
    """Return a case in which an address was looked up and changed later; only the later one holds."""
    orders = {row.given["order_id"]: row for row in of(_ORDER)}
    changes = [row for row in of("modify_pending_order_address") if row.given["order_id"] in orders]
    street = "{address[address1]}"
    pairs = [(orders[new.given["order_id"]], new) for new in changes]
    old, new = rng.choice([pair for pair in pairs if fill(street, pair[0]) != fill(street, pair[1])])
    question, stale, sought = fill(KEYED[0].question, new), fill(street, old), fill(street, new)
    return _request(rng, "real-replaced", seed, question, sought, [old, new], without=[stale, sought], stale=stale)


def _request(
    rng: random.Random, family: str, seed: int, question: str, value: str, facts: Sequence[Row], *, without: Sequence[str],
    around: tuple[int, int] = _AROUND, review: bool = False, decoy: Row | None = None, stale: str | None = None,
) -> Case:  # fmt: skip
    """Return a case in which an agent asks; without an answer none of ``facts`` is there, the last of which holds it."""
    planner, finder, worker, reviewer = crew(rng, 4)
    asker, answered = reviewer if review else worker, seed % 3 != 2
    run = Traffic(rng, family, seed, [planner, finder])
    run.user("Work through the open cases of today, one after the other.")
    background = Background(run, facts[0].trade, without, (planner, finder))
    background.work(*around)
    found = ""
    for fact in facts if answered else ():
        found = play(run, finder, fact)
        background.work(*around)
    if decoy is not None:
        play(run, planner, decoy)
    background.work(*around)
    background.work(2, 6, [asker])
    ask = Ask(
        type="INTROSPECT_AGENT_CONTEXT", requester=asker, reason=reason_for(rng, question), goal="answer the customer",
        review=review,
    )  # fmt: skip
    return Case(
        family=family, seed=seed, kind="review" if review else "request", session=run.session, records=run.records, ask=ask,
        targets=frozenset({asker}), needs=(Need((value,)),), answered=answered,
        stale=(stale,) if stale and answered else (), cites=frozenset({found}) if answered else frozenset(),
        again=run.later(lambda more, attempt: more.say(asker, f"I still do not know it ({attempt}).")),
    )  # fmt: skip
