"""The same cause in the words of other clients, languages and tools."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import Evidence, diagnose
from tests.diagnose.build import Call, Said, bash, edit, evidence, failed, read

THRICE = 3
PATCH = "*** Begin Patch\n*** Update File: shop/cart.py\n@@\n-total = 1\n+total = 2\n*** End Patch"
CART = "import tax\n\ntotal = 0"

SAID: list[tuple[str, Evidence, str, list[str], list[str]]] = [
    (
        "codex patch",
        evidence(
            Call("exec_command", {"cmd": "cat shop/cart.py"}, CART),
            *[
                Call(
                    "apply_patch",
                    PATCH,
                    "apply_patch verification failed: Failed to find expected lines in shop/cart.py",
                    "error",
                )
            ]
            * THRICE,
        ),
        "wrongEditTarget",
        ["`total = 1`", "Line 3 is `total = 0`"],
        ["line 3"],
    ),
    (
        "patch in a shell",
        evidence(
            bash("sed -n '1,3p' shop/cart.py", CART),
            *[Call("shell", {"command": ["apply_patch", PATCH]}, "Failed to find expected lines", "error")] * THRICE,
        ),
        "wrongEditTarget",
        ["Line 3"],
        ["line 3"],
    ),
    (
        "str_replace editor",
        evidence(
            Call(
                "str_replace_based_edit_tool",
                {"command": "view", "path": "shop/cart.py"},
                "     1\timport tax\n     2\t\n     3\ttotal = 0",
            ),
            *[
                Call(
                    "str_replace_based_edit_tool",
                    {"command": "str_replace", "path": "shop/cart.py", "old_str": ("total = 1"), "new_str": "total = 2"},
                    "No replacement was performed, old_str `total = 1` did not appear verbatim in shop/cart.py.",
                    "error",
                )
            ]
            * THRICE,
        ),
        "wrongEditTarget",
        ["its old_str `total = 1`", "Line 3"],
        ["line 3"],
    ),
    (
        "several edits in one",
        evidence(
            read("shop/cart.py", CART),
            *[
                Call(
                    "MultiEdit",
                    {
                        "file_path": "shop/cart.py",
                        "edits": [
                            {"old_string": "import tax", "new_string": ("import taxes")},
                            {"old_string": "total = 1", "new_string": "total = 2"},
                        ],
                    },
                    "String to replace not found in file.",
                    "error",
                )
            ]
            * THRICE,
        ),
        "wrongEditTarget",
        ["total = 1", "Line 3"],
        ["line 3"],
    ),
    (
        "must be read first",
        evidence(
            *[edit("shop/cart.py", "total = 0", "total = 1", "File has not been read yet. Read it first before writing to it.")]
            * THRICE
        ),
        "wrongEditTarget",
        ["until you read the file"],
        ["Read"],
    ),
    (
        "the text is in another file",
        evidence(
            read("shop/cart.py", CART),
            read("shop/tax.py", "RATE_OF_TAX = 0.19\nROUNDING = 2"),
            *[edit("shop/cart.py", "RATE_OF_TAX = 0.19", "RATE_OF_TAX = 0.07", "String to replace not found in file.")]
            * THRICE,
        ),
        "wrongEditTarget",
        ["shop/tax.py", "line 1"],
        ["shop/tax.py"],
    ),
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
        "poetry",
        evidence(Said("Run it with poetry run, as always."), *[failed("python -m pytest", "No module named pytest")] * THRICE),
        "environmentMissing",
        ["poetry run"],
        ["poetry run python -m pytest"],
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
        "minutes and seconds",
        evidence(*[Call("fetch", {"url": "/x"}, "Rate limit reached, please try again in 2m30s.", "error")] * THRICE),
        "rateLimited",
        ["150 seconds"],
        ["150 seconds"],
    ),
    (
        "a variable holds the key",
        evidence(
            Said("For the API use $STAGING_API_KEY."),
            *[Call("fetch", {"url": "/x"}, "Invalid API key provided", "error")] * THRICE,
        ),
        "authenticationRefused",
        ["STAGING_API_KEY"],
        ["STAGING_API_KEY"],
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
        "done, and still polled",
        evidence(*[bash("gh run view 7", "status: completed")] * 5),
        "pollingFrozen",
        ["completed"],
        ["go on"],
    ),
    (
        "a command's output is cut",
        evidence(*[bash("cat build.log", "a\nb\n... [4812 lines truncated] ...")] * THRICE),
        "outputCut",
        ["4812 lines truncated"],
        ["grep"],
    ),
    (
        "tail follows",
        evidence(Call("Bash", {"command": "tail -f app.log"}, None, "open"), kind="hung", severity="hung"),
        "callHangs",
        ["tail -f"],
        ["without the option that follows"],
    ),
    (
        "npm init",
        evidence(Call("Bash", {"command": "npm init"}, None, "open"), kind="hung", severity="hung"),
        "callHangs",
        ["npm init"],
        ["-y"],
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
        "a key for ssh",
        evidence(
            Said("Use the key ~/.ssh/deploy for the server."),
            *[failed("ssh dev@10.0.0.5", "dev@10.0.0.5: Permission denied (publickey).")] * THRICE,
        ),
        "authenticationRefused",
        ["~/.ssh/deploy"],
        ["~/.ssh/deploy"],
    ),
    (
        "a way to log in",
        evidence(Said("Log in with: aws sso login"), *[failed("aws s3 ls", "An error occurred (ExpiredToken)")] * THRICE),
        "authenticationRefused",
        ["aws sso login"],
        ["aws sso login"],
    ),
    (
        "a quota that is used up",
        evidence(*[Call("ask", {"q": "x"}, "Error code: 429 - {'code': 'insufficient_quota'}", "error")] * THRICE),
        "rateLimited",
        ["used up"],
        ["Tell the user"],
    ),
    (
        "terraform names the holder",
        evidence(*[failed("terraform apply", "Error acquiring the state lock\nLock Info:\n  Who: anna@laptop")] * THRICE),
        "waitingOnLock",
        ["anna@laptop"],
        ["Wait until", "ask the user"],
    ),
    (
        "tsc",
        evidence(
            edit("src/a.ts", "1", "2"),
            failed("npx tsc", "src/b.ts(12,5): error TS2322: Type 'string' is not assignable."),
            edit("src/a.ts", "2", "3"),
            failed("npx tsc", "src/b.ts(12,5): error TS2322: Type 'string' is not assignable."),
            loop=4,
        ),
        "errorElsewhere",
        ["src/b.ts", "line 12"],
        ["src/b.ts"],
    ),
    (
        "only one folder",
        evidence(Said("Only change files in src/."), *[edit("tests/test_a.py", "a", "b")] * THRICE),
        "constraintBroken",
        ["Only change files in src/."],
        ["Leave that alone"],
    ),
    (
        "a prompt that was stopped",
        evidence(
            *[failed("npm init", "Press ^C to quit.\npackage name: (shop)\n\ncommand timed out after 120 seconds")] * THRICE
        ),
        "callHangs",
        ["did not return by itself", "asks questions"],
        ["`-y`"],
    ),
    (
        "the answer behind a receipt",
        evidence(
            Call("ask_user", {"question": "Which port shall I use, 80 or 81?"}, "sent"),
            Said("81, please."),
            *[Call("ask_user", {"question": "Which port shall I use, 80 or 81?"}, "was answered already", "error")] * THRICE,
        ),
        "decidedBefore",
        ["81, please."],
        ["81, please."],
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
        "a port that is published as another",
        evidence(
            bash("docker compose ps", "db Up 0.0.0.0:5544->5432/tcp"),
            *[failed("psql -h localhost -p 5432", "connection to server at localhost, port 5432 failed: Connection refused")]
            * THRICE,
        ),
        "recordFact",
        ["`5544`"],
        ["port 5544"],
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
    found = diagnose(known)

    assert found is not None
    assert found.kind == kind, found.cause
    assert [word for word in cause if word not in found.cause] == [], found.cause
    assert [word for word in step if word not in found.next_step] == [], found.next_step


def test_another_session_of_the_project_has_the_answer() -> None:
    """A question that was answered in a related session is not asked again."""
    asked = {"question": "Which database should I use, PostgreSQL or SQLite?"}
    earlier = evidence(Call("AskUserQuestion", asked, "SQLite", "ok")).entries
    now = evidence(*[Call("AskUserQuestion", asked, "The user is away.", "error")] * THRICE)
    found = diagnose(Evidence(now.entries, now.finding, now.messages, earlier))

    assert found is not None
    assert found.kind == "decidedBefore"
    assert "another session" in found.cause
