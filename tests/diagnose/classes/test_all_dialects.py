"""The same cause in the words of other clients, languages and tools, of classes that have few such rows."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import Evidence
from tests.diagnose.build import Call, Said, bash, edit, evidence, failed, read, require_told

THRICE = 3
PATCH = "*** Begin Patch\n*** Update File: shop/cart.py\n@@\n-total = 1\n+total = 2\n*** End Patch"
CART = "import tax\n\ntotal = 0"

SAID: list[tuple[str, Evidence, str, list[str], list[str]]] = [
    (
        "yarn",
        evidence(
            read("package.json", '{"scripts": {"lint:all": "eslint .", "test:unit": "jest"}}'),
            *[failed("yarn test-unit", 'error Command "test-unit" not found.')] * THRICE,
        ),
        "unknownName",
        ["test:unit"],
        ["yarn test:unit"],
    ),
    (
        "nothing near: all names",
        evidence(
            read("package.json", '{"scripts": {"lint": "eslint .", "unit": "jest"}}'),
            *[failed("npm run deploy", 'npm error Missing script: "deploy"')] * THRICE,
        ),
        "unknownName",
        ["`lint` and `unit`"],
        ["ask the user"],
    ),
    (
        "git sub-command",
        evidence(
            *[
                failed(
                    "git comit -m x",
                    "git: 'comit' is not a git command. See 'git --help'.\n\nThe most similar command is\n\tcommit",
                )
            ]
            * THRICE
        ),
        "unknownName",
        ["commit"],
        ["git commit -m x"],
    ),
    (
        "docker service",
        evidence(
            read("compose.yaml", "services:\n  web-app:\n    image: a\n  database:\n    image: b"),
            *[failed("docker compose up webapp", "no such service: webapp")] * THRICE,
        ),
        "unknownName",
        ["web-app"],
        ["docker compose up web-app"],
    ),
    (
        "postgres table",
        evidence(
            bash("psql -c '\\dt'", " public | order_items | table | dev"),
            *[failed("psql -c 'select * from orderitems'", 'ERROR:  relation "orderitems" does not exist')] * THRICE,
        ),
        "unknownReference",
        ["order_items"],
        ["order_items"],
    ),
    (
        "postgres hint",
        evidence(
            *[
                failed(
                    "psql -c 'select colr from t'",
                    'ERROR:  column "colr" does not exist\nHINT:  Perhaps you meant to reference the column "t.color".',
                )
            ]
            * THRICE
        ),
        "unknownReference",
        ["color"],
        ["color"],
    ),
    (
        "push to a branch",
        evidence(
            bash("git status", "On branch feature/loyalty"),
            *[failed("git push origin feature/loyality", "error: src refspec feature/loyality does not match any")] * THRICE,
        ),
        "unknownReference",
        ["feature/loyalty"],
        ["git push origin feature/loyalty"],
    ),
    (
        "a host only an output names",
        evidence(
            bash("cat hosts.md", "The server is db7.shop.internal."),
            *[failed("ping -c1 db.shop.internal", "ping: unknown host db.shop.internal")] * THRICE,
        ),
        "unknownReference",
        ["db7.shop.internal"],
        ["if you trust it"],
    ),
    (
        "node port",
        evidence(
            bash("PORT=3000 npm start &", "ready on port 3000"),
            *[failed("PORT=3000 npm start", "Error: listen EADDRINUSE: address already in use :::3000")] * THRICE,
        ),
        "resourceHeld",
        ["port 3000", "You started"],
        ["3000"],
    ),
    (
        "docker port",
        evidence(
            *[failed("docker run -p 5432:5432 postgres", "Bind for 0.0.0.0:5432 failed: port is already allocated")] * THRICE
        ),
        "resourceHeld",
        ["5432"],
        ["ss -ltnp"],
    ),
    (
        "apt lock with a process",
        evidence(
            *[failed("apt-get install -y jq", "E: Could not get lock /var/lib/dpkg/lock. It is held by process 4711 (apt)")]
            * THRICE
        ),
        "waitingOnLock",
        ["4711"],
        ["ps -p 4711"],
    ),
    (
        "pydantic",
        evidence(
            *[
                Call(
                    "book",
                    {"customer": 7},
                    "1 validation error for Book\ncustomer_id\n  Field required [type=missing]",
                    "error",
                )
            ]
            * THRICE
        ),
        "schemaRefused",
        ["customer_id"],
        ["`customer_id` in place of `customer`"],
    ),
    (
        "a type",
        evidence(*[Call("book", {"count": "3"}, "count must be an integer", "error")] * THRICE),
        "schemaRefused",
        ["integer", "3"],
        ["count"],
    ),
    (
        "one of",
        evidence(*[Call("set", {"level": "hihg"}, "'hihg' is not one of ['low', 'medium', 'high']", "error")] * THRICE),
        "schemaRefused",
        ["hihg"],
        ["`high`"],
    ),
    (
        "an option",
        evidence(
            *[failed("tool --ouput a", "usage: tool [--output FILE] [--force]\ntool: error: unrecognized arguments: --ouput a")]
            * THRICE
        ),
        "schemaRefused",
        ["--output"],
        ["--output"],
    ),
    (
        "not executable",
        evidence(*[failed("./run.sh --all", "bash: ./run.sh: Permission denied")] * THRICE),
        "permissionDenied",
        ["no right to be executed"],
        ["sh ./run.sh --all"],
    ),
    (
        "denied by the user",
        evidence(
            Said("Work only in src/ and leave the rest."),
            *[Call("Write", {"file_path": "/etc/x", "content": "a"}, "The user denied this.", "denied")] * THRICE,
            kind="denied",
        ),
        "permissionDenied",
        ["src/"],
        ["src/"],
    ),
    (
        "go says cached",
        evidence(
            failed("go test ./... || true", "ok  shop (cached)"),
            edit("a.go", "1", "2"),
            edit("b.go", "2", "3"),
            failed("go test ./... || true", "ok  shop (cached)"),
            loop=1,
        ),
        "testUnaffected",
        ["(cached)"],
        ["-count=1"],
    ),
    (
        "no test ran",
        evidence(
            bash("pytest -k cart", "no tests ran in 0.01s"),
            edit("a.py", "1", "2"),
            edit("a.py", "2", "3"),
            bash("pytest -k cart", "no tests ran in 0.01s"),
            loop=1,
        ),
        "testUnaffected",
        ["no test"],
        ["collected"],
    ),
    (
        "a command's output is cut",
        evidence(*[bash("cat build.log", "a\nb\n... [4812 lines truncated] ...")] * THRICE),
        "outputCut",
        ["4812 lines truncated"],
        ["grep"],
    ),
    (
        "a question is open",
        evidence(Call("AskUserQuestion", {"question": "Delete the old data?"}, None, "open"), kind="hung", severity="hung"),
        "waitsForPerson",
        ["Delete the old data?"],
        ["Wait"],
    ),
    (
        "gradle",
        evidence(
            read("build.gradle", "task integrationTest {}"),
            *[failed("./gradlew integrationTests", "Task 'integrationTests' not found in root project 'shop'.")] * THRICE,
        ),
        "unknownName",
        ["integrationTest"],
        ["./gradlew integrationTest`"],
    ),
    (
        "mysql column",
        evidence(
            bash("mysql -e 'describe orders'", "Field\tType\nplaced_at\tdatetime"),
            *[failed("mysql -e 'select placedat from orders'", "ERROR 1054: Unknown column 'placedat' in 'field list'")]
            * THRICE,
        ),
        "unknownReference",
        ["placed_at"],
        ["placed_at"],
    ),
    (
        "terraform names the holder",
        evidence(*[failed("terraform apply", "Error acquiring the state lock\nLock Info:\n  Who: anna@laptop")] * THRICE),
        "waitingOnLock",
        ["anna@laptop"],
        ["Wait until", "ask the user"],
    ),
    (
        "a schema of Python",
        evidence(
            *[
                Call(
                    "book",
                    {"guests": "Ann, Bo"},
                    "'Ann, Bo' is not of type 'array'\n\nFailed validating 'type' in schema['properties']['guests']:\n"
                    "    {'items': {'required': ['name', 'born']}}",
                    "error",
                )
            ]
            * THRICE
        ),
        "schemaRefused",
        ["`guests` must be of type array"],
        ["`name` and `born`"],
    ),
    (
        "only the first lines",
        evidence(
            *[Call("Read", {"file_path": "a.py"}, "1\tx\n<note>file has 900 lines, only the first 500 were read.</note>")]
            * THRICE
        ),
        "outputCut",
        ["900 lines"],
        ["line 501"],
    ),
    (
        "the holder of a lock by its number",
        evidence(
            bash("nohup python3 import.py > import.log 2>&1 & echo $!", "8830"),
            bash("fuser jobs.db", "/srv/jobs.db: 8830"),
            *[failed("sqlite3 jobs.db 'delete from a'", "Error: database is locked")] * THRICE,
        ),
        "waitingOnLock",
        ["import.py", "8830"],
        ["import.py"],
    ),
    (
        "a package of another part of the project",
        evidence(
            bash("find . -type d -name fastq", "./packages/worker/node_modules/fastq"),
            *[failed("node tools/a.js", "Error: Cannot find module 'fastq'")] * THRICE,
        ),
        "existsElsewhere",
        ["packages/worker/node_modules"],
        ["`packages/worker`"],
    ),
    (
        "an enum",
        evidence(
            *[Call("set", {"state": "finished"}, "Invalid enum value. Expected 'open' | 'done', received 'finished'", "error")]
            * THRICE
        ),
        "schemaRefused",
        ["finished", "`open` and `done`"],
        ["allowed value"],
    ),
]


@pytest.mark.parametrize(("known", "kind", "cause", "step"), [each[1:] for each in SAID], ids=[each[0] for each in SAID])
def test_a_cause_is_known_in_other_words(known: Evidence, kind: str, cause: list[str], step: list[str]) -> None:
    """Cause and next step are named as well where another client or tool tells them."""
    require_told(known, kind, cause, step)
