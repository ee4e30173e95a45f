"""Things that one agent of a project found out and another one needs, in the forms in which they are found."""

from __future__ import annotations

import random
from typing import NamedTuple


class Topic(NamedTuple):
    """A fact and how it shows.

    ``value`` is filled in and must be read. The questions go from the fact's own words to a paraphrase.

    Attributes:
        action, given, seen: the look-up that showed it, and its result.
        told: the same in an agent's message.
        ordered: the same in what an agent wrote or handed over, as the input of an action.
        failed: the same in an error that the value explains.
        decoy: close by in subject, and no answer.
        value: a pattern; ``#`` stands for two digits.
    """

    action: str
    given: dict[str, str]
    seen: str
    told: str
    ordered: str
    failed: str
    decoy: str
    questions: tuple[str, str, str]
    goal: str
    value: str


TOPICS = (
    Topic(
        "Bash",
        {"command": "cat deploy/staging.env"},
        "STAGING_HOST={value}\nSTAGING_USER=deployer\nREGION=eu-west-1",
        "Ops wrote back: STAGING_HOST is {value} since the move, the user stays deployer.",
        "Deploy notes\nSTAGING_HOST: {value}\nSTAGING_USER: deployer",
        "ssh: connect to STAGING_HOST {value} port 22: Connection refused",
        "STAGING_USER=changeme\nREGION=changeme",
        ("the value of STAGING_HOST", "which host staging is deployed to", "where the pre-production machine can be reached"),
        "write the deploy job",
        "stg-heron-##.internal",
    ),
    Topic(
        "WebFetch",
        {"url": "https://docs.payline.example/limits"},
        "Rate limits. A merchant may send {value} requests per minute; beyond that the API answers 429.",
        "Payline support says we may send {value} requests per minute and merchant.",
        "Payline client: throttle. A merchant may send {value} requests per minute.",
        "429 Too Many Requests: merchant limit is {value} requests per minute",
        "Payline status: all systems operational, no incidents this week",
        (
            "the rate limit of the Payline API in requests per minute",
            "how many requests a merchant may send to Payline",
            "how fast we may call the payment provider",
        ),
        "set the throttle of the payment client",
        "7##",
    ),
    Topic(
        "Bash",
        {"command": "psql -c '\\d invoices'"},
        "Table invoices\n id uuid\n {value} numeric(12,2) not null\n issued_on date",
        "By the way, in the table invoices the numeric column is called {value}.",
        "select id, {value} from invoices where issued_on > now() - interval '30 days'",
        "ERROR: column invoices.total does not exist. HINT: Perhaps you meant the column invoices.{value}",
        "Table customers\n id uuid\n name text not null\n since date",
        (
            "the columns of the table invoices",
            "which numeric column invoices has",
            "under what name the amount of a bill is stored",
        ),
        "write the query for the revenue report",
        "net_total_##",
    ),
    Topic(
        "Read",
        {"file_path": "docs/adr/0014-background-jobs.md"},
        "# ADR 14: background jobs\nDecision: background jobs go through {value}.\nStatus: accepted",
        "We settled ADR 14 on the call: background jobs go through {value}.",
        "# ADR 14: background jobs\nDecision: {value} carries all background jobs.",
        "ImportError: background jobs need {value} (ADR 14); install it first",
        "# ADR 9: logging\nDecision: logs are structured.\nStatus: accepted",
        ("the decision of ADR 14", "what was decided on for background jobs", "what we agreed to use for asynchronous work"),
        "add the job that sends reminders",
        "riverq##",
    ),
    Topic(
        "Bash",
        {"command": "kubectl get svc -n shop"},
        "NAME      TYPE       PORT(S)\ncheckout  ClusterIP  {value}/TCP",
        "checkout listens on port {value} in the cluster, I just looked.",
        "service: checkout\nport: {value}\nprobe: /healthz",
        "dial tcp checkout.shop.svc:{value}: connect: connection refused",
        "NAME          READY  STATUS   RESTARTS\ncatalog-7d9  1/1    Running  0",
        (
            "the port of the checkout service",
            "on which port checkout listens in the cluster",
            "what number the health check has to connect to",
        ),
        "write the probe for checkout",
        "84##",
    ),
    Topic(
        "Grep",
        {"pattern": "FEATURE_", "path": "src/flags"},
        'src/flags/registry.py:41:    FEATURE_GIFT_CARDS = "{value}"',
        "For the record, FEATURE_GIFT_CARDS maps to {value} in the flag service.",
        'flags.enable("{value}")  # FEATURE_GIFT_CARDS',
        "FlagError: FEATURE_GIFT_CARDS resolves to {value}, which is switched off",
        "src/flags/cleanup.md: flags older than a year are removed",
        ("the name behind FEATURE_GIFT_CARDS", "what the gift card feature flag is called", "which switch turns vouchers on"),
        "turn gift cards on for the pilot shop",
        "gift-cards-v##",
    ),
    Topic(
        "Read",
        {"file_path": "infra/terraform/backend.tf"},
        'terraform {{\n  backend "s3" {{\n    bucket = "{value}"\n  }}\n}}',
        "The terraform state lives in the bucket {value}.",
        "aws s3 ls s3://{value}/  # terraform state bucket",
        "Error: Failed to get existing workspaces: S3 bucket {value} is locked",
        'variable "region" {\n  default = "eu-central-1"\n}',
        (
            "the bucket of the terraform backend",
            "which S3 bucket holds the terraform state",
            "where infrastructure state is kept remotely",
        ),
        "import the new queue into the infrastructure code",
        "acme-tfstate-##",
    ),
    Topic(
        "Bash",
        {"command": "git log -1 --format=%B release"},
        "Release branch cut.\n\nChangelog entries go to changes/{value}.",
        "Reminder from the release team: changelog entries go to changes/{value}.",
        "cat >> changes/{value}  # changelog entry",
        "check-changelog: no entry found in changes/{value}",
        "CHANGELOG policy: one line for each change, in the past tense",
        ("where changelog entries go", "which file in changes/ takes the changelog entry", "where I have to announce the fix"),
        "fix the rounding error and announce it",
        "2026-q##.md",
    ),
    Topic(
        "WebFetch",
        {"url": "https://wiki.acme.example/oncall"},
        "Escalation\nDatabase incidents: page {value}\nNetwork incidents: page noc",
        "I checked the wiki: for database incidents page {value}.",
        "Incident template\ndatabase: page {value}",
        "pagerduty: schedule {value} for database incidents has no one on call tonight",
        "Incident reviews take place on Thursdays",
        (
            "whom to page for database incidents",
            "the on-call schedule for the database",
            "who gets woken up when Postgres dies",
        ),
        "wire the alert for replication lag",
        "dba-rota-##",
    ),
    Topic(
        "Bash",
        {"command": "python -c 'import models; print(models.DEFAULT)'"},
        "DEFAULT model checkpoint: {value}",
        "The default model checkpoint is {value}; eval was run with it.",
        "model:\n  checkpoint: {value}\n  batch: 16",
        "FileNotFoundError: model checkpoint {value} is not in the cache",
        "batch size 16, learning rate 2e-5, warmup 200 steps",
        ("the default model checkpoint", "which checkpoint the evaluation used", "what weights we score with by default"),
        "rerun the benchmark",
        "ranker-s-0##",
    ),
)


def value_of(rng: random.Random, topic: Topic) -> str:
    """Return a value for the topic."""
    return topic.value.replace("##", str(rng.randint(11, 98)))


def topic_of(seed: int) -> tuple[Topic, str]:
    """Return the topic of a seed and one of its questions; neighbouring seeds differ in both."""
    topic = TOPICS[seed % len(TOPICS)]
    return topic, topic.questions[(seed // len(TOPICS) + seed) % len(topic.questions)]
