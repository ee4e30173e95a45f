"""Two agents hand one task back and forth, each waiting for what a third one knows."""

from __future__ import annotations

import random
from typing import NamedTuple

from bench.recovery.case import Ask, Case, Need
from bench.recovery.first.cast import crew
from bench.recovery.noise import buried, some_noise
from bench.recovery.traffic import Traffic


class Quarrel(NamedTuple):
    """What one sends, what the other answers each time, and what was found out before; ``{name}`` varies."""

    goal: str
    sends: str
    answers: str
    action: str
    given: dict[str, str]
    shows: str
    need: str


QUARRELS = (
    Quarrel(
        "Write the release notes and have them reviewed.",
        "Release notes are ready in CHANGELOG.md, please review.",
        "Rejected: the entry about the breaking change does not name its migration guide.",
        "Bash",
        {"command": "ls docs/migrations"},
        "2025-10-carts.md\n{name}-breaking-prices.md\nindex.md",
        "{name}-breaking-prices.md",
    ),
    Quarrel(
        "Fix the rounding bug and get it through review.",
        "The fix for the rounding bug is on branch fix/rounding, please have a look.",
        "I can't approve it: it has to say which rounding mode finance asked for.",
        "WebFetch",
        {"url": "https://wiki.acme.example/finance/rounding"},
        "Finance decided: amounts are rounded with mode {name} at the end of the invoice.",
        "mode {name}",
    ),
    Quarrel(
        "Agree on the payload of the order event.",
        "Order event v2 drafted: id, lines, total. Please confirm.",
        "Can't confirm without the field for the discount, and I do not know its name.",
        "Read",
        {"file_path": "contracts/order-v1.json"},
        '{{"id": "uuid", "lines": [], "total": "decimal", "disc_{name}": "decimal"}}',
        "disc_{name}",
    ),
    Quarrel(
        "Prepare the load test.",
        "The load test plan is finished, please sign it off.",
        "Not signed off: the peak to be reached is missing.",
        "Bash",
        {"command": "promql 'max_over_time(rps[90d])'"},
        '{{service="shop"}} {peak} requests/s at 2025-11-28T19:04Z',
        "{peak}",
    ),
    Quarrel(
        "Deliver the data extract.",
        "Extract uploaded to the share, ready for delivery.",
        "Returned: the extract must be encrypted with the key of the recipient, and none is given.",
        "Grep",
        {"pattern": "gpg", "path": "ops/partners"},
        "ops/partners/retail.yml:9: gpg_recipient: {name}@retail.example",
        "{name}@retail.example",
    ),
)
_NAMES = ("half-even", "quarter", "ledger", "falcon", "solstice", "harbour")


def back_and_forth(rng: random.Random, seed: int) -> Case:
    """Return a case of a task that goes to and fro; the missing piece is in a third agent's look-up."""
    planner, finder, writer, critic = crew(rng, 4)
    run = Traffic(rng, "back-and-forth", seed, [planner, finder, writer])
    quarrel, answered = QUARRELS[(seed // 3 + seed) % len(QUARRELS)], seed % 3 != 2
    names = {"name": f"{rng.choice(_NAMES)}-{rng.randint(2, 99)}", "peak": str(rng.randint(1_200, 9_800))}
    run.user(quarrel.goal)
    some_noise(run, 6, 35)
    cites = frozenset[str]()
    if answered:
        cites = frozenset({run.call(finder, quarrel.action, quarrel.given, buried(rng, quarrel.shows.format(**names)))})
    some_noise(run, 5, 30)
    rounds = rng.randint(4, 6)

    def quarrels(more: Traffic, attempt: int) -> None:
        for _ in range(3 if attempt else rounds):
            more.call(writer, "SendMessage", {"to": critic, "text": quarrel.sends}, "delivered")
            more.call(critic, "SendMessage", {"to": writer, "text": quarrel.answers}, "delivered")

    quarrels(run, 0)
    return Case(
        family="back-and-forth", seed=seed, kind="loop", session=run.session, records=run.records, ask=Ask(),
        targets=frozenset({writer, planner}), needs=(Need((quarrel.need.format(**names),)),), answered=answered, cites=cites,
        again=run.later(quarrels),
    )  # fmt: skip
