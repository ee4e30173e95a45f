"""Waiting in vain: a poll that will never change, a call that never returns, attempts that fail ever higher up."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import NamedTuple

from bench.recovery.case import Ask, Case, Need
from bench.recovery.first.cast import crew
from bench.recovery.noise import buried, some_noise
from bench.recovery.traffic import Traffic


class Poll(NamedTuple):
    """A question whose answer stays, and what the history knows that makes asking pointless; ``{old}`` and ``{new}`` vary."""

    goal: str
    asks: str
    answer: str
    knows: str
    shows: str
    need: str


POLLS = (
    Poll(
        "Wait for CI, then tag the release.",
        "gh run view {old} --json status,conclusion",
        '{{"conclusion":"","status":"queued"}}',
        "gh run list --branch main --limit 3",
        "{new}  main  in_progress  ci  (restarted)\n{old}  main  queued  ci  (replaced by {new})",
        "{new}",
    ),
    Poll(
        "Ship the image once it is scanned.",
        "scanctl status --job {old}",
        "job {old}: state=waiting progress=0",
        "scanctl queues",
        "queue default: paused\nqueue fast: accepting, submit with --queue fast-{new}",
        "fast-{new}",
    ),
    Poll(
        "Load the partner file when it arrives.",
        "aws s3 ls s3://inbox/partner/{old}/",
        "",
        "cat docs/partners.md",
        "Since February the partner delivers to s3://inbox-eu/partner-{new}/ instead.",
        "partner-{new}",
    ),
    Poll(
        "Merge the pull request when the review is there.",
        "gh pr view {old} --json reviewDecision",
        '{{"reviewDecision":"REVIEW_REQUIRED"}}',
        "gh api repos/acme/shop/codeowners/errors",
        "src/payments/* has one owner: @pay-team-{new}; no review was requested from them",
        "pay-team-{new}",
    ),
)


def frozen_poll(rng: random.Random, seed: int) -> Case:
    """Return a case of asking the same again and again; an earlier result says why nothing will come and where it will."""
    planner, finder, coder = crew(rng, 3)
    run = Traffic(rng, "frozen-poll", seed, [planner, finder, coder])
    poll, answered = POLLS[(seed // 3 + seed) % len(POLLS)], seed % 3 != 2
    names = {"old": str(rng.randint(10_000, 49_999)), "new": str(rng.randint(50_000, 99_999))}
    run.user(poll.goal)
    some_noise(run, 6, 35)
    cites = frozenset[str]()
    if answered:
        shows = buried(rng, poll.shows.format(**names))
        cites = frozenset({run.call(rng.choice((finder, planner)), "Bash", {"command": poll.knows.format(**names)}, shows)})
    some_noise(run, 5, 30)
    rounds = rng.randint(12, 20)

    def ask(more: Traffic, attempt: int) -> None:
        for _ in range(10 if attempt else rounds):
            more.call(coder, "Bash", {"command": poll.asks.format(**names)}, poll.answer.format(**names), quick=True)

    ask(run, 0)
    return Case(
        family="frozen-poll", seed=seed, kind="loop", session=run.session, records=run.records, ask=Ask(),
        targets=frozenset({coder, planner}), needs=(Need((poll.need.format(**names),)),), answered=answered, cites=cites,
        again=run.later(ask),
    )  # fmt: skip


class Hang(NamedTuple):
    """A call that does not return, and an earlier one that tells how it would; ``{name}`` varies."""

    goal: str
    hangs: str
    worked: str
    shows: str
    need: str


HANGS = (
    Hang(
        "Apply the infrastructure change.",
        "terraform apply",
        "terraform apply -input=false -auto-approve -var-file={name}.tfvars",
        "Apply complete! Resources: 3 added, 0 changed, 0 destroyed.",
        "-var-file={name}.tfvars",
    ),
    Hang(
        "Start the app and check the health page.",
        "npm run dev",
        "npm run build && npx serve --port 41{name} dist &",
        "Serving! Local: http://localhost:41{name}",
        "--port 41{name}",
    ),
    Hang(
        "Refresh the materialised views.",
        "psql shop -c 'refresh materialized view sales'",
        "cat docs/views.md",
        "sales takes locks for hours; use: refresh materialized view concurrently sales_{name}",
        "concurrently sales_{name}",
    ),
    Hang(
        "Push the branch.",
        "git push origin feature/cart",
        "git -c core.sshCommand='ssh -i ~/.ssh/bot_{name} -o BatchMode=yes' push origin docs/fix",
        "To github.com:acme/shop.git\n * [new branch]      docs/fix -> docs/fix",
        ".ssh/bot_{name}",
    ),
    Hang(
        "Run the end to end tests.",
        "npx playwright test",
        "cat e2e/README.md",
        "On this machine the report server blocks at the end: CI_{name}=1 npx playwright test --reporter=line",
        "CI_{name}=1",
    ),
)


def hung_call(rng: random.Random, seed: int) -> Case:
    """Return a case of a call without an end; an earlier step shows the form that returns."""
    planner, finder, coder = crew(rng, 3)
    run = Traffic(rng, "hung-call", seed, [planner, finder, coder])
    hang, answered = HANGS[(seed // 3 + seed) % len(HANGS)], seed % 3 != 2
    name = str(rng.randint(11, 98))
    run.user(hang.goal)
    some_noise(run, 6, 35)
    cites = frozenset[str]()
    if answered:
        found = run.call(
            rng.choice((finder, coder)),
            "Bash",
            {"command": hang.worked.format(name=name)},
            buried(rng, hang.shows.format(name=name)),
        )
        cites = frozenset({found})
    some_noise(run, 5, 35)
    limit = rng.choice((None, 120_000, 600_000))
    run.call(coder, "Bash", {"command": hang.hangs}, open_=True, timeout_ms=limit)
    then = datetime.fromisoformat(run.now()) + timedelta(minutes=rng.randint(25, 180))
    return Case(
        family="hung-call", seed=seed, kind="stall", session=run.session, records=run.records,
        ask=Ask(now=then.isoformat().replace("+00:00", "Z")), targets=frozenset({coder, planner}),
        needs=(Need((hang.need.format(name=name),)),), answered=answered, cites=cites,
    )  # fmt: skip


class Climb(NamedTuple):
    """A task whose subtasks fail, each attempt in another form; and what would have to be done first."""

    goal: str
    part: str
    attempts: tuple[tuple[str, str], ...]
    action: str
    given: dict[str, str]
    shows: str
    need: str


CLIMBS = (
    Climb(
        "Roll the new version out.",
        "rollout/canary",
        (
            ("kubectl rollout restart deploy/shop -n canary", 'error: deployments.apps "shop" is forbidden'),
            ("kubectl set image deploy/shop shop=shop:2 -n canary", 'error: deployments.apps "shop" is forbidden'),
            (
                "kubectl apply -f canary.yaml",
                "Error from server (Forbidden): admission webhook denied the request: freeze window",
            ),
            (
                "kubectl apply -f canary.yaml --force",
                "Error from server (Forbidden): account deploy-bot is suspended after repeated denials",
            ),
        ),
        "Read",
        {"file_path": "docs/freeze.md"},
        "During a freeze window only changes with the annotation freeze-exempt={name} are admitted.",
        "freeze-exempt={name}",
    ),
    Climb(
        "Move the data to the new cluster.",
        "move/orders",
        (
            ("pg_dump orders | psql new", 'ERROR: relation "orders" already exists'),
            ("pg_dump -c orders | psql new", "ERROR: cannot drop table orders because other objects depend on it"),
            ("psql new -c 'drop table orders cascade'", "ERROR: must be owner of table orders"),
            ("psql new -c 'reassign owned by app to mover'", 'FATAL: password authentication failed for user "mover"'),
        ),
        "Bash",
        {"command": "cat ops/move/README"},
        "Tables are moved with logical replication: publication pub_{name}, never with pg_dump.",
        "pub_{name}",
    ),
    Climb(
        "Renew the certificate of the shop.",
        "cert/shop",
        (
            ("certbot renew --cert-name shop", "Challenge failed for domain shop.example: 404 on http-01"),
            ("certbot certonly --standalone -d shop.example", "Problem binding to port 80: Could not bind"),
            (
                "certbot certonly --webroot -w /srv/www -d shop.example",
                "Challenge failed for domain shop.example: 404 on http-01",
            ),
            (
                "certbot certonly --manual -d shop.example",
                "Error creating new order :: too many failed authorizations recently",
            ),
        ),
        "Grep",
        {"pattern": "acme", "path": "ops/dns"},
        "ops/dns/zones.yml:12: acme: dns-01 through provider plugin dns-{name}",
        "dns-{name}",
    ),
)


def climbing_failure(rng: random.Random, seed: int) -> Case:
    """Return a case of a subtask that fails in one form after the other, ever more seriously."""
    planner, finder, coder = crew(rng, 3)
    run = Traffic(rng, "climbing-failure", seed, [planner, finder, coder])
    climb, answered = CLIMBS[(seed // 3 + seed) % len(CLIMBS)], seed % 3 != 2
    name = f"{rng.choice(('kestrel', 'lynx', 'marten', 'newt'))}{rng.randint(2, 99)}"
    run.user(climb.goal)
    some_noise(run, 6, 35)
    cites = frozenset[str]()
    if answered:
        cites = frozenset(
            {run.call(rng.choice((finder, planner)), climb.action, climb.given, buried(rng, climb.shows.format(name=name)))}
        )
    some_noise(run, 5, 30)

    def climbs(more: Traffic, attempt: int) -> None:
        for command, error in climb.attempts[2:] if attempt else climb.attempts:
            more.call(coder, "Bash", {"command": command}, error=error, task=climb.part)

    climbs(run, 0)
    return Case(
        family="climbing-failure", seed=seed, kind="loop", session=run.session, records=run.records, ask=Ask(),
        targets=frozenset({coder, planner}), needs=(Need((climb.need.format(name=name),)),), answered=answered, cites=cites,
        again=run.later(climbs),
    )  # fmt: skip
