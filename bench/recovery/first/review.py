"""Review and merge agents: what they were given was filtered too much, they are done, or two sides disagree."""

from __future__ import annotations

import random
from typing import NamedTuple

from bench.recovery.case import Ask, Case, Need
from bench.recovery.first.cast import crew
from bench.recovery.first.lost import asks_again
from bench.recovery.noise import buried, noise, some_noise
from bench.recovery.traffic import Traffic


class Doubt(NamedTuple):
    """A change under review, why it was made as others saw it, and how the reviewer asks; ``{n}`` varies."""

    file: str
    change: tuple[str, str]
    action: str
    given: dict[str, str]
    shows: str
    need: str
    questions: tuple[str, str]


DOUBTS = (
    Doubt(
        "src/cart/totals.py",
        ("round(total, 2)", "total.quantize(CENT)"),
        "Bash",
        {"command": "pytest tests/cart/test_totals.py -q"},
        "E   AssertionError: Decimal('{n}.005') rounds to {n}.00, expected {n}.01\n1 failed",
        "{n}.005",
        ("why round was replaced in totals.py", "what was wrong with the old way of cutting off cents"),
    ),
    Doubt(
        "src/search/query.py",
        ("LIMIT 1000", "LIMIT 200"),
        "Bash",
        {"command": "python bench/query.py"},
        "limit 1000: p95 {n}00 ms\nlimit 200: p95 48 ms",
        "{n}00 ms",
        ("the measurement behind the LIMIT in query.py", "how slow it was before the number of hits was cut"),
    ),
    Doubt(
        "src/mailer/client.py",
        ("retries=5", "retries=0"),
        "Read",
        {"file_path": "docs/incidents/mail.md"},
        "Incident {n}: retries in the mailer client sent each reminder up to five times.",
        "Incident {n}",
        (
            "which incident led to retries=0 in the mailer client",
            "what happened in production that made us give up on trying again",
        ),
    ),
    Doubt(
        "src/uploads/policy.py",
        ("MAX_MB = 100", "MAX_MB = 25"),
        "WebFetch",
        {"url": "https://docs.edge.example/limits"},
        "Request bodies over {n} MB are rejected at the edge.",
        "{n} MB",
        ("the reason for MAX_MB in the upload policy", "which limit outside of our code forced smaller files"),
    ),
    Doubt(
        "src/tenants/cache.py",
        ("ttl=3600", "ttl=60"),
        "Grep",
        {"pattern": "rotate", "path": "src/tenants"},
        "src/tenants/keys.py:{n}: keys rotate every 90 seconds",
        "keys.py:{n}",
        ("where the rotation behind ttl=60 is coded", "what in the code makes a long life of cached tenants wrong"),
    ),
)


def review_filtered(rng: random.Random, seed: int) -> Case:
    """Return a case of a reviewer that was shown the change and not the reason for it."""
    planner, finder, coder, reviewer = crew(rng, 4)
    run = Traffic(rng, "review-filtered", seed, [planner, finder, coder])
    doubt, answered = DOUBTS[(seed // 3 + seed) % len(DOUBTS)], seed % 3 != 2
    number = str(rng.randint(31, 98))
    run.user(f"Improve {doubt.file} and have the change reviewed.")
    some_noise(run, 5, 30)
    cites = frozenset[str]()
    if answered:
        cites = frozenset(
            {run.call(rng.choice((finder, coder)), doubt.action, doubt.given, buried(rng, doubt.shows.format(n=number)))}
        )
    some_noise(run, 3, 20)
    old, new = doubt.change
    run.call(
        coder,
        "Edit",
        {"file_path": doubt.file, "old_string": old, "new_string": new},
        f"The file {doubt.file} has been updated.",
    )
    some_noise(run, 4, 20)
    run.call(coder, "SendMessage", {"to": reviewer, "text": f"Please review: {doubt.file} now uses {new}"}, "delivered")
    run.call(reviewer, "Read", {"file_path": doubt.file}, f"...\n    {new}\n...")
    question = doubt.questions[seed % 2]
    return Case(
        family="review-filtered", seed=seed, kind="review", session=run.session, records=run.records,
        ask=Ask(type="INTROSPECT_AGENT_CONTEXT", requester=reviewer, review=True, goal="decide whether to approve the change",
                reason=f"the summary I was given is cut too short; I need to know {question}"),
        targets=frozenset({reviewer}), needs=(Need((doubt.need.format(n=number),)),), answered=answered, cites=cites,
        again=run.later(asks_again(reviewer)),
    )  # fmt: skip


def review_done(rng: random.Random, seed: int) -> Case:
    """Return a case of a review that is finished: whoever merges must learn what was approved, and where it goes."""
    planner, finder, coder, reviewer, merger = crew(rng, 5)
    run = Traffic(rng, "review-done", seed, [planner, finder, coder])
    branch, commit = (
        f"feature/{rng.choice(('cart', 'quota', 'export', 'login'))}-{rng.randint(100, 999)}",
        f"{rng.getrandbits(36):09x}",
    )
    base, answered = f"release/{rng.randint(3, 9)}.{rng.randint(0, 20)}", seed % 3 != 2
    run.user("Build the feature, review it, and merge what was approved.")
    some_noise(run, 4, 20)
    order = seed % 2 == 0
    if order:  # an earlier round shows who comes after the reviewer
        run.call(coder, "SendMessage", {"to": reviewer, "text": "first part is ready"}, "delivered")
        run.call(reviewer, "Read", {"file_path": "src/first_part.py"}, "def first(): ...")
        run.call(merger, "Bash", {"command": "git merge --no-ff feature/first-part"}, "Merge made by the 'ort' strategy.")
    some_noise(run, 6, 30)
    cites: set[str] = set()
    if answered:
        text = rng.choice(
            ("Merges of this sprint go to {base}.", "The target of all merges is {base}, main is closed.", "merge base: {base}")
        )
        cites.add(run.call(planner, "Read", {"file_path": "docs/sprint.md"}, buried(rng, text.format(base=base))))
    some_noise(run, 5, 20)
    run.call(
        coder, "Bash", {"command": f"git push origin {branch}"}, f"To acme/shop\n   8f1d2aa..{commit}  {branch} -> {branch}"
    )
    run.call(coder, "SendMessage", {"to": reviewer, "text": f"{branch} is ready for review"}, "delivered")
    run.call(reviewer, "Bash", {"command": f"git diff main...{branch} --stat"}, f" {rng.randint(2, 9)} files changed")
    cites.add(
        run.call(reviewer, "Write", {"file_path": "review.md", "content": f"Approved: {branch} at {commit}"}, "File created")
    )
    return Case(
        family="review-done", seed=seed, kind="review", session=run.session, records=run.records,
        ask=Ask(type="PROCEED", requester=reviewer, review=True, to=None if order else merger,
                reason="the review is finished", goal="merge the approved branch into the target branch of the sprint"),
        targets=frozenset({merger}), needs=(Need((commit,)), Need((base,))), answered=answered,
        cites=frozenset(cites), again=run.later(asks_again(reviewer)),
    )  # fmt: skip


class Clash(NamedTuple):
    """Two values for one line, each with a reason that its own agent knows; ``{a}`` and ``{b}`` vary."""

    file: str
    line: str
    ours: str
    theirs: str


CLASHES = (
    Clash(
        "config/http.toml",
        "timeout",
        "The slowest partner answers after {a} s (measured over a week).",
        "The load balancer closes connections after {b} s.",
    ),
    Clash(
        "src/pricing/rates.py",
        "VAT_REDUCED",
        "Ticket SHOP-{a}: books fall under the reduced rate.",
        "Ticket TAX-{b}: magazines do not, since January.",
    ),
    Clash(
        "schema/orders.sql",
        "customer_ref",
        "The import writes references of up to {a} characters.",
        "The index allows keys of at most {b} bytes.",
    ),
    Clash(
        "deploy/values.yaml",
        "replicas",
        "Load test: {a} pods are needed at noon.",
        "The quota of the namespace allows {b} pods.",
    ),
)


def merge_conflict(rng: random.Random, seed: int) -> Case:
    """Return a case of a merge that needs to know why either side changed the same line."""
    planner, finder, coder, reviewer, merger = crew(rng, 5)
    run = Traffic(rng, "merge-conflict", seed, [planner, finder, coder, reviewer])
    clash, answered = CLASHES[(seed // 3 + seed) % len(CLASHES)], seed % 3 != 2
    first, second = rng.sample(range(411, 999), 2)
    run.user("Merge the two feature branches.")
    some_noise(run, 5, 25)
    cites: set[str] = set()
    for agent, reason, value in ((coder, clash.ours, first), (finder, clash.theirs, second)):
        told = reason.format(a=value, b=value)
        if answered:
            cites.add(run.call(agent, "Read", {"file_path": f"notes/{agent}-{value}.md"}, buried(rng, told)))
        some_noise(run, 2, 6)
        change = {
            "file_path": clash.file,
            "old_string": f"{clash.line} = 0",
            "new_string": f"{clash.line} = {rng.randint(1, 99)}",
        }
        edit = run.call(agent, "Edit", change, f"The file {clash.file} has been updated.")
        if answered:
            cites.add(
                run.call(
                    agent, "Bash", {"command": f"git commit -am '{clash.line}: {told}'"}, f"[branch {edit[-7:]}] {clash.line}"
                )
            )
        some_noise(run, 4, 25)
    run.call(merger, "Bash", {"command": "git merge feature/b"}, error=f"CONFLICT (content): Merge conflict in {clash.file}")
    noise(run, rng.randint(0, 3), [merger])
    return Case(
        family="merge-conflict", seed=seed, kind="review", session=run.session, records=run.records,
        ask=Ask(type="INTROSPECT_AGENT_CONTEXT", requester=merger, review=True,
                goal="resolve the conflict so that both changes keep their point",
                reason=rng.choice((f"both branches changed {clash.line} in {clash.file} and I do not know why",
                                   f"conflict in {clash.file}: neither side told me its reasons for {clash.line}"))),
        targets=frozenset({merger}), needs=(Need((str(first),)), Need((str(second),))), answered=answered,
        again=run.later(asks_again(merger)),
    )  # fmt: skip
