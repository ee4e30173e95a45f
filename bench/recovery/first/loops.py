"""The wrong path again and again, alone or in rounds of two or three steps; what works stands earlier in the history."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from bench.recovery.case import Ask, Case, Need
from bench.recovery.first.cast import crew
from bench.recovery.noise import buried, some_noise
from bench.recovery.traffic import Traffic

Step = tuple[str, dict[str, Any], str, bool]
"""Action, input, what comes back, and whether that is an error."""


class Wrong(NamedTuple):
    """A round of steps that gets nowhere, and the look-up that showed the way; ``{name}`` varies."""

    goal: str
    steps: tuple[Step, ...]
    action: str
    given: dict[str, str]
    shows: str
    need: str


_NAMES = ("atlas", "birch", "cobalt", "dune", "ember", "fjord")


def _bash(command: str, back: str, *, failed: bool = True) -> Step:
    return "Bash", {"command": command}, back, failed


def _edit(path: str, old: str, new: str) -> Step:
    return "Edit", {"file_path": path, "old_string": old, "new_string": new}, f"The file {path} has been updated.", False


SINGLE = (
    Wrong(
        "Run the database migrations.",
        (
            _bash(
                "alembic -c alembic.ini upgrade head",
                "FAILED: No config file 'alembic.ini' found, or file has no '[alembic]' section",
            ),
        ),
        "Bash",
        {"command": "find . -name '*.ini'"},
        "./setup.ini\n./services/{name}/db/alembic.ini\n./tox.ini",
        "services/{name}/db/alembic.ini",
    ),
    Wrong(
        "Start the development stack.",
        (_bash("docker-compose up -d", "bash: docker-compose: command not found"),),
        "Bash",
        {"command": "docker compose -p {name} up -d cache"},
        "Container {name}-cache-1  Started",
        "docker compose -p {name}",
    ),
    Wrong(
        "Install the dependencies and build.",
        (_bash("npm ci", "npm error code EUSAGE: The `npm ci` command can only install with an existing package-lock.json"),),
        "Read",
        {"file_path": "CONTRIBUTING.md"},
        "Dependencies are managed with pnpm; npm does not work here.\npnpm install --filter {name}",
        "pnpm install --filter {name}",
    ),
    Wrong(
        "Fetch the nightly export.",
        (("WebFetch", {"url": "http://exports.internal/latest.csv"}, "Request failed with status code 404", True),),
        "WebFetch",
        {"url": "http://exports.internal/"},
        "Index of /\nlatest/{name}.csv.gz\nmanifest.json",
        "latest/{name}.csv.gz",
    ),
    Wrong(
        "Get the integration tests to pass.",
        (_bash("pytest tests/integration -q", "E   KeyError: 'TEST_DATABASE_URL'\n1 error in 0.31s"),),
        "Read",
        {"file_path": ".github/workflows/ci.yml"},
        "env:\n  TEST_DATABASE_URL: postgres://ci@db/{name}\nsteps:\n  - checkout",
        "postgres://ci@db/{name}",
    ),
    Wrong(
        "Publish the package to the private index.",
        (_bash("twine upload dist/*", "HTTPError: 403 Forbidden from https://upload.pypi.org/legacy/"),),
        "Bash",
        {"command": "cat ~/.pypirc"},
        "[distutils]\nindex-servers = {name}-private\n[{name}-private]\nrepository = https://pkgs.internal",
        "{name}-private",
    ),
)
ROUNDS = (
    Wrong(
        "Calls to the gateway must be accepted again.",
        (
            _edit("src/gateway/client.py", "headers = {}", "headers = {'Authorization': token}"),
            _bash("pytest tests/gateway -q", "E   AssertionError: 401 != 200: signature header is missing\n1 failed in 1.02s"),
            _bash("git checkout src/gateway/client.py", "Updated 1 path from the index", failed=False),
        ),
        "Read",
        {"file_path": "docs/gateway.md"},
        "Every call carries a signature in the header X-{name}-Signature, computed over the body.",
        "X-{name}-Signature",
    ),
    Wrong(
        "The image must build again.",
        (
            _edit("Dockerfile", "FROM python:3.12-slim", "FROM python:3.12"),
            _bash("docker build -t shop .", "psycopg2/psycopg.h:35: fatal error: libpq-fe.h: No such file or directory"),
            _edit("Dockerfile", "FROM python:3.12", "FROM python:3.12-slim"),
        ),
        "Grep",
        {"pattern": "libpq", "path": "ops"},
        "ops/images/{name}.Dockerfile:7:RUN apt-get install -y libpq-dev",
        "ops/images/{name}.Dockerfile",
    ),
    Wrong(
        "Bring the migration through.",
        (
            _edit("db/V12__prices.sql", "numeric(10,2)", "numeric(12,2)"),
            _bash("flyway migrate", "ERROR: Validate failed: Migration checksum mismatch for migration version 12"),
        ),
        "Read",
        {"file_path": "docs/runbook-db.md"},
        "When an applied migration was edited: flyway repair -configFiles={name}.conf, then migrate.",
        "flyway repair -configFiles={name}.conf",
    ),
    Wrong(
        "Rebase the branch and push it.",
        (
            _bash(
                "git rebase origin/main", "CONFLICT (content): Merge conflict in src/cart.py\nerror: could not apply 3f2c1aa"
            ),
            _bash("git rebase --abort", "", failed=False),
        ),
        "Bash",
        {"command": "cat docs/branching.md"},
        "While main is frozen, rebase on release/{name}; main is rewritten every night.",
        "release/{name}",
    ),
    Wrong(
        "Make the type checker happy.",
        (
            _edit("src/cart/total.py", "def total(items):", "def total(items: list[Item]) -> int:"),
            _bash("mypy src", 'src/cart/total.py:14: error: Incompatible return value type (got "Decimal", expected "int")'),
            _edit("src/cart/total.py", "def total(items: list[Item]) -> int:", "def total(items):"),
        ),
        "Grep",
        {"pattern": "Money", "path": "src/types"},
        "src/types/{name}.py:3:Money = NewType('Money', Decimal)  # all totals of the cart",
        "src/types/{name}.py",
    ),
)
VARIED = (
    (
        "Upload the report.",
        "An error occurred (AccessDenied) when calling the PutObject operation",
        (
            "aws s3 cp out.pdf s3://reports/",
            "aws s3 cp out.pdf s3://reports/today/",
            "aws s3 sync out s3://reports/out",
            "aws s3api put-object --bucket reports --key out.pdf",
            "aws s3 mv out.pdf s3://reports/",
        ),
        "AccessDenied: writing to s3://reports needs the role {name}-publisher (assume it with aws sts assume-role)",
        "{name}-publisher",
    ),
    (
        "Restore the dump.",
        "FATAL: remaining connection slots are reserved for superusers",
        (
            "pg_restore -d shop dump.bin",
            "pg_restore -j 4 -d shop dump.bin",
            "psql shop -c 'select 1'",
            "pg_restore -h db -d shop dump.bin",
            "psql -h db shop -f dump.sql",
        ),
        "FATAL: connection slots are used up; maintenance goes through the pool {name}-maint on port 6433",
        "{name}-maint",
    ),
    (
        "Deploy the branch to the test cluster.",
        "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress",
        (
            "helm upgrade shop ./chart",
            "helm upgrade --install shop ./chart",
            "helm upgrade shop ./chart --force",
            "helm upgrade shop ./chart --atomic",
            "helm upgrade shop ./chart --wait",
        ),
        "Error: release shop is pending; the lock is released with helm rollback {name}-shop 0",
        "helm rollback {name}-shop",
    ),
)


def wrong_path(rng: random.Random, seed: int) -> Case:
    """Return a case in which one call fails in the same way; an earlier result shows what would work."""
    return _loop(rng, seed, "wrong-path", SINGLE)


def wrong_rounds(rng: random.Random, seed: int) -> Case:
    """Return a case of two or three steps in a circle; an earlier result shows what would end it."""
    return _loop(rng, seed, "wrong-rounds", ROUNDS)


def _loop(rng: random.Random, seed: int, family: str, wrongs: Sequence[Wrong]) -> Case:
    planner, finder, coder = crew(rng, 3)
    run = Traffic(rng, family, seed, [planner, finder, coder])
    wrong, answered = wrongs[(seed // 3 + seed) % len(wrongs)], seed % 3 != 2
    name = f"{rng.choice(_NAMES)}{rng.randint(2, 99)}"
    run.user(wrong.goal)
    some_noise(run, 6, 35)
    cites = frozenset[str]()
    if answered:
        given = {field: text.format(name=name) for field, text in wrong.given.items()}
        found = run.call(rng.choice((finder, coder)), wrong.action, given, buried(rng, wrong.shows.format(name=name)))
        cites = frozenset({found})
    some_noise(run, 5, 40)
    rounds = rng.randint(3, 6)

    def circle(more: Traffic, attempt: int) -> None:
        for _ in range(3 if attempt else rounds):
            for action, given, back, failed in wrong.steps:
                more.call(coder, action, given, None if failed else back, error=back if failed else None, quick=True)

    circle(run, 0)
    return Case(
        family=family, seed=seed, kind="loop", session=run.session, records=run.records, ask=Ask(),
        targets=frozenset({coder, planner}), needs=(Need((wrong.need.format(name=name),)),), answered=answered, cites=cites,
        again=run.later(circle),
    )  # fmt: skip


def error_elsewhere(rng: random.Random, seed: int) -> Case:
    """Return a case of one error whatever is tried; an error that another agent met long before names the way out."""
    planner, finder, coder = crew(rng, 3)
    run = Traffic(rng, "error-elsewhere", seed, [planner, finder, coder])
    # Thirds of answers and of subjects must not fall together.
    goal, error, forms, earlier, need = VARIED[(seed // 3 + seed) % len(VARIED)]
    name, answered = f"{rng.choice(_NAMES)}{rng.randint(2, 99)}", seed % 3 != 2
    run.user(goal)
    some_noise(run, 8, 30)
    cites = frozenset[str]()
    if answered:
        found = run.call(
            finder,
            "Bash",
            {"command": f"./scripts/preflight.sh --dry-run {rng.randint(1, 9)}"},
            error=earlier.format(name=name),
        )
        cites = frozenset({found})
    some_noise(run, 8, 40)

    def tries(more: Traffic, attempt: int) -> None:
        for command in more.rng.sample(forms, 4 if attempt else 5):
            more.call(coder, "Bash", {"command": command}, error=error, quick=True)

    tries(run, 0)
    return Case(
        family="error-elsewhere", seed=seed, kind="loop", session=run.session, records=run.records, ask=Ask(),
        targets=frozenset({coder, planner}), needs=(Need((need.format(name=name),)),), answered=answered, cites=cites,
        again=run.later(tries),
    )  # fmt: skip
