"""What only looks like a cause: the same words in another role. Each class must be silent on its own near misses."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import CLASSES, diagnose
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import Call, Said, bash, edit, evidence, failed, read
from tests.diagnose.classes.success_near_misses import SUCCESSES
from tests.diagnose.classes.waiting_near_misses import WAITING

THRICE = 3
PRICES = "VAT = 0.19\n\n\ndef gross(net):\n    return net * (1 + VAT)"

NEAR: list[tuple[str, str, Evidence]] = [
    *WAITING,
    *SUCCESSES,
    (
        "hiddenCharacter",
        "the carriage returns are in another file than the one that fails",
        evidence(
            bash("cat -A notes.txt", "hello^M$\nworld^M$"),
            *[failed("python3 connect.py", "cannot resolve 'db.int': Name or service not known")] * THRICE,
        ),
    ),
    (
        "wrongEditTarget",
        "the text is in the file",
        evidence(
            read("a.py", PRICES), *[edit("a.py", "VAT = 0.19", "VAT = 0.07", "String to replace not found in file.")] * THRICE
        ),
    ),
    (
        "wrongEditTarget",
        "the disk is full",
        evidence(read("a.py", PRICES), *[edit("a.py", "VAT = 0.2", "VAT = 0.07", "ENOSPC: no space left on device")] * THRICE),
    ),
    (
        "wrongEditTarget",
        "only the end of the session is at hand",
        Evidence(
            [
                entry.model_copy(update={"index": entry.index + 500})
                for entry in evidence(
                    *[edit("a.py", "VAT = 0.2", "VAT = 0.07", "String to replace not found in file.")] * THRICE
                ).entries
            ]
        ),
    ),
    (
        "unknownName",
        "the file that a target needs is missing",
        evidence(
            read("Makefile", "all: gen.c\n\tgcc gen.c"),
            *[failed("make all", "make: *** No rule to make target 'gen.c', needed by 'all'.  Stop.")] * THRICE,
        ),
    ),
    (
        "unknownName",
        "another program misses another name",
        evidence(*[failed("npm run check", "> check\nsub: no such command: frobnicate")] * THRICE),
    ),
    (
        "unknownReference",
        "git add is given a file that is not there",
        evidence(
            bash("git branch", "* main\n  src/carts"),
            *[failed("git add src/cart.py", "fatal: pathspec 'src/cart.py' did not match any files")] * THRICE,
        ),
    ),
    (
        "unknownReference",
        "the column is one of another table",
        evidence(
            bash(
                "sqlite3 s.db .schema",
                "CREATE TABLE items (id integer, quantity integer);\nCREATE TABLE orders (id integer, placed text);",
            ),
            *[failed("sqlite3 s.db 'select quantiti from orders'", "Error: no such column: quantiti")] * THRICE,
        ),
    ),
    (
        "unknownReference",
        "no name is like the one asked for",
        evidence(
            bash("git branch -a", "* main\n  release"),
            *[failed("git checkout hotfix-77", "error: pathspec 'hotfix-77' did not match any file(s) known to git")] * THRICE,
        ),
    ),
    (
        "environmentMissing",
        "nobody names an environment",
        evidence(*[failed("python3 report.py", "ModuleNotFoundError: No module named 'ledger'")] * THRICE),
    ),
    (
        "environmentMissing",
        "the user forbids the environment",
        evidence(
            Said("Do not use .venv/bin/python, it is broken."),
            *[failed("python3 r.py", "ModuleNotFoundError: No module named 'ledger'")] * THRICE,
        ),
    ),
    (
        "environmentMissing",
        "the module is the project's own",
        evidence(
            Said("Use .venv/bin/python."),
            read("/home/dev/shop/ledger/rules.py", "A = 1"),
            *[failed("python3 tools/r.py", "ModuleNotFoundError: No module named 'ledger'")] * THRICE,
        ),
    ),
    (
        "environmentMissing",
        "the environment was used and lacks it too",
        evidence(
            Said("Use .venv/bin/python."),
            *[failed(".venv/bin/python r.py", "ModuleNotFoundError: No module named 'ledger'")] * THRICE,
        ),
    ),
    (
        "madeElsewhere",
        "the file beside it is one that the program does not read",
        evidence(
            read("app.py", "import json\nprint(json.load(open('settings.json'))['level'])"),
            *[edit("settings.json", "info", "debug"), bash("python3 app.py", "level warning")] * THRICE,
        ),
    ),
    (
        "limitExceeded",
        "the size is below the limit",
        evidence(*[failed("./post.sh", "error: text has 120 characters, the limit is 280, and the token is unknown")] * THRICE),
    ),
    (
        "limitExceeded",
        "a test is about limits",
        evidence(*[failed("pytest -q", "E  AssertionError: text has 312 characters, the limit is 280")] * THRICE),
    ),
    (
        "rateLimited",
        "a test is about limits",
        evidence(*[failed("pytest -q", "E  assert 200 == 429\nE  AssertionError: Too Many Requests expected")] * THRICE),
    ),
    (
        "authenticationRefused",
        "a test is about logging in",
        evidence(*[failed("pytest tests/test_login.py", "E  AssertionError: assert 200 == 401 (Unauthorized)")] * THRICE),
    ),
    (
        "authenticationRefused",
        "the path is not there",
        evidence(*[failed("curl -fsS http://127.0.0.1:1/x", "curl: (22) The requested URL returned error: 404")] * THRICE),
    ),
    (
        "authenticationRefused",
        "a certificate of the server has expired",
        evidence(
            *[failed("curl -fsS https://127.0.0.1/x", "curl: (60) SSL certificate problem: certificate has expired")] * THRICE
        ),
    ),
    (
        "schemaRefused",
        "a build step is required",
        evidence(*[Call("run", {"step": "deploy"}, "a reboot is required before the deploy", "error")] * THRICE),
    ),
    (
        "toolMissing",
        "a key is not found",
        evidence(*[failed("python3 get.py --key colour", "colour: not found in settings")] * THRICE),
    ),
    (
        "decidedBefore",
        "the earlier question was another one",
        evidence(
            Said("Which colour should the button have, red or blue?", "main"),
            Said("Blue."),
            bash("ls"),
            *[Call("AskUserQuestion", {"question": "May I delete the old backups?"}, "no answer", "error")] * THRICE,
        ),
    ),
    (
        "constraintBroken",
        "the sentence is no ban",
        evidence(Said("Don't forget to edit config.py."), *[edit("config.py", "a", "b")] * THRICE),
    ),
    (
        "constraintBroken",
        "a condition",
        evidence(Said("If you do not change config.py, nothing works."), *[edit("config.py", "a", "b")] * THRICE),
    ),
    (
        "constraintBroken",
        "the ban was taken back",
        evidence(Said("Do not edit config.py."), Said("All right, change config.py."), *[edit("config.py", "a", "b")] * THRICE),
    ),
    (
        "constraintBroken",
        "another file of the folder is protected",
        evidence(Said("Do not edit generated/api.py."), *[edit("src/api.py", "a", "b")] * THRICE),
    ),
    (
        "constraintBroken",
        "an agent forbade it",
        evidence(Said("Go on."), Said("Do not edit config.py.", "other"), *[edit("config.py", "a", "b")] * THRICE),
    ),
    (
        "permissionDenied",
        "a test is about permissions",
        evidence(*[failed("pytest -q", "E  PermissionError: [Errno 13] Permission denied: '/x'")] * THRICE),
    ),
    (
        "testUnaffected",
        "the outcome changes",
        evidence(
            failed("pytest -q", "1 failed: a"),
            edit("a.py", "1", "2"),
            edit("a.py", "2", "3"),
            failed("pytest -q", "1 failed: b"),
            loop=1,
        ),
    ),
    (
        "testUnaffected",
        "git says that a branch is up to date",
        evidence(
            bash("git status", "Your branch is up to date.\nmodified: a.py"),
            edit("a.py", "1", "2"),
            edit("a.py", "2", "3"),
            bash("git status", "Your branch is up to date.\nmodified: a.py"),
            loop=1,
        ),
    ),
    (
        "testUnaffected",
        "it was built again",
        evidence(
            bash("gcc -o app main.c"),
            failed("./app", "41"),
            edit("main.c", "1", "2"),
            bash("gcc -o app main.c"),
            edit("main.h", "2", "3"),
            bash("gcc -o app main.c"),
            failed("./app", "41"),
            loop=1,
        ),
    ),
    (
        "errorElsewhere",
        "a file asks for another one that is not there",
        evidence(
            *[
                edit("Dockerfile", "a", "b"),
                edit("Dockerfile", "b", "a"),
                failed("docker build .", "psycopg2/psycopg.h:35: fatal error: libpq-fe.h: No such file or directory"),
            ]
            * 2,
            loop=6,
        ),
    ),
    (
        "errorElsewhere",
        "an assertion in a test",
        evidence(
            *[
                edit("shop/cart.py", "a", "b"),
                edit("shop/cart.py", "b", "a"),
                failed(
                    "python3 -m unittest", 'File "/home/dev/shop/tests/test_x.py", line 3, in test_x\nAssertionError: 1 != 2'
                ),
            ]
            * 2,
            loop=6,
        ),
    ),
    (
        "errorElsewhere",
        "the changed file calls the other one",
        evidence(
            *[
                edit("shop/cart.py", "a", "b"),
                edit("shop/cart.py", "b", "a"),
                failed(
                    "python3 run.py", 'File "shop/cart.py", line 3, in total\nFile "shop/tax.py", line 9, in rate\nKeyError: 1'
                ),
            ]
            * 2,
            loop=6,
        ),
    ),
    (
        "wrongPlace",
        "the file was there before",
        evidence(
            read("conf/app.yaml", "a: 1"),
            read("old/conf/app.yaml", "a: 2"),
            *[failed("cat conf/app.yaml", "cat: conf/app.yaml: No such file or directory")] * THRICE,
        ),
    ),
    (
        "wrongPlace",
        "a text is not found in a file",
        evidence(
            bash("find .", "./lib/prices.py"),
            *[edit("prices.py", "x = 1", "x = 2", "String to replace not found in file.")] * THRICE,
        ),
    ),
    (
        "wrongPlace",
        "a common name is in many places",
        evidence(
            bash("find .", "./a/README.md\n./b/README.md"),
            *[failed("cat c/README.md", "cat: c/README.md: No such file or directory")] * THRICE,
        ),
    ),
    (
        "outputCut",
        "the source that is read speaks of it",
        evidence(*[read("cut.py", "def cut(text):\n    return '[truncated]' if len(text) > 9 else text")] * THRICE),
    ),
    (
        "contextLost",
        "nothing was known before",
        evidence(
            bash("ls"),
            Said("Summary: a rename.", "main", "compaction"),
            *[read("a.py", "A = 1"), read("b.py", "B = 1")] * THRICE,
            loop=6,
        ),
    ),
    (
        "monologue",
        "calls are made between the words",
        evidence(Said("I will look at it.", "main"), bash("ls"), Said("I will look at it.", "main"), bash("pwd")),
    ),
    (
        "constraintBroken",
        "the edits are where they may be",
        evidence(Said("Only change files in src/."), *[edit("/home/dev/shop/src/a.py", "a", "b")] * THRICE),
    ),
    (
        "notFound",
        "the name is not the call's own",
        evidence(
            bash("ls", "colours.csv"),
            *[failed("python3 load.py --file a.csv", "error: unknown colour 'gren' in row 7")] * THRICE,
        ),
    ),
    (
        "notFound",
        "a test is about names",
        evidence(*[failed("pytest -q", "E  LookupError: unknown branch 'pytest'")] * THRICE),
    ),
    (
        "notFound",
        "a page answers that it is not there, and the record knows no address like it",
        evidence(
            read("docs/api.md", "GET /v1/customers/{id}"),
            *[bash("curl -s -w '\\n%{http_code}' http://127.0.0.1:8000/health/deep", "not found\n404")] * THRICE,
        ),
    ),
    (
        "documentedWay",
        "the notes are about another command",
        evidence(
            read("README.md", "Build with\n\n    make --jobs=4 all"),
            *[failed("perl t/money.t", "Can't locate Ledger/Money.pm in @INC")] * THRICE,
        ),
    ),
    (
        "documentedWay",
        "the notes name an order with a pipe",
        evidence(
            read("README.md", "If it fails run\n\n    perl -Ilib t/money.t | sh"),
            *[failed("perl t/money.t", "Can't locate Ledger/Money.pm in @INC")] * THRICE,
        ),
    ),
    (
        "documentedWay",
        "what the notes say was tried",
        evidence(
            read("README.md", "Run\n\n    perl -Ilib t/money.t"),
            failed("perl -Ilib t/money.t", "Can't locate Ledger/Money.pm in @INC"),
            *[failed("perl t/money.t", "Can't locate Ledger/Money.pm in @INC")] * THRICE,
        ),
    ),
    (
        "searchElsewhere",
        "the place that is searched holds the file",
        evidence(
            bash("grep -rn RATE src", "src/tax.py:3:RATE = 1"),
            *[Call("Grep", {"pattern": "RATE_LIMIT", "path": "src"}, "No matches found")] * THRICE,
        ),
    ),
    (
        "searchElsewhere",
        "nothing has it",
        evidence(bash("ls", "a.py"), *[Call("Grep", {"pattern": "RATE_LIMIT", "path": "src"}, "No matches found")] * THRICE),
    ),
    (
        "statedReason",
        "a log that is read speaks of it",
        evidence(*[bash("cat server.log", "10:01 write failed: no space left on device")] * THRICE),
    ),
    (
        "statedReason",
        "a test is about it",
        evidence(*[failed("pytest -q tests/test_disk.py", "E  OSError: no space left on device")] * THRICE),
    ),
    (
        "statedReason",
        "a key of a program is missing, and no variable of the environment",
        evidence(*[failed("python3 run.py", "KeyError: 'standard'")] * THRICE),
    ),
    (
        "workedElsewhere",
        "the test itself fails",
        evidence(bash("cd api && npm test", "ok"), *[failed("npm test", "1 failing: wants 3, got 4")] * THRICE),
    ),
    (
        "workedElsewhere",
        "the user named the new value",
        evidence(
            Said("Then look at account 4410-21."),
            Call("get_account", {"id": "4410-12"}, {"name": "a"}),
            *[Call("get_account", {"id": "4410-21"}, "account not found", "error")] * THRICE,
        ),
    ),
    (
        "constraintBroken",
        "another thing is installed by another verb",
        evidence(Said("Do not install new packages."), *[failed("make install", "No rule")] * THRICE),
    ),
    (
        "knownError",
        "a log that is read holds the words",
        evidence(*[bash("cat build.log", "main.o: undefined reference to `sqrt'")] * THRICE),
    ),
    (
        "knownError",
        "it was met once, and worked then",
        evidence(failed("gcc a.c", "a.c: undefined reference to `sqrt'"), bash("gcc a.c -lm"), found=False),
    ),
    (
        "recordFact",
        "the pointer is another file's",
        evidence(
            bash("head -1 assets/other.bin", "version https://git-lfs.github.com/spec/v1"),
            *[failed("python3 load.py model.onnx", "cannot parse model.onnx")] * THRICE,
        ),
    ),
    (
        "shellState",
        "the variable was set in the same call",
        evidence(*[failed("export KEY=1 && python3 run.py", "KeyError: 'KEY'")] * THRICE),
    ),
    (
        "otherFolder",
        "the folder has its manifest, and the task names no other",
        evidence(
            read("/home/dev/shop/package.json", '{"scripts": {"test": "x"}}'),
            bash("ls vendor/tool", "vendor/tool/package.json"),
            *[failed("npm run build", 'npm error Missing script: "build"')] * THRICE,
        ),
    ),
    (
        "otherInstallation",
        "it was installed for the very interpreter",
        evidence(
            bash("python3.11 -m pip install pyyaml", "already satisfied in /usr/lib/python3.11/site-packages"),
            *[failed("python3.11 run.py", "ModuleNotFoundError: No module named 'yaml'")] * THRICE,
        ),
    ),
    (
        "existsElsewhere",
        "another program shows a name like it",
        evidence(
            bash("cat notes.txt", "orders"), *[failed("sqlite3 a.db 'select 1 from orders'", "no such table: orders")] * THRICE
        ),
    ),
    (
        "editsNotUsed",
        "it was built since",
        evidence(
            read("package.json", '{"scripts": {"start": "node dist/app.js"}}'),
            bash("npm start", "81"),
            edit("src/app.ts", "1", "2"),
            bash("npm run build"),
            bash("npm start", "81"),
            edit("src/app.ts", "2", "3"),
            bash("npm start", "81"),
        ),
    ),
    ("notedWay", "only code names it", evidence(bash("cat a.py", "import frob"), failed("python a.py", "no frob"))),
    (
        "undoneByOther",
        "two agents write files of their own",
        evidence(
            *[edit("a.py", "1", "2"), edit("b.py", "1", "2")._replace(agent="other")] * THRICE,
            found=False,
        ),
    ),
]


@pytest.mark.parametrize(("kind", "why", "known"), NEAR, ids=[f"{kind}: {why}" for kind, why, _ in NEAR])
def test_a_near_miss_is_no_cause(kind: str, why: str, known: Evidence) -> None:
    """The class is silent where the same words mean something else."""
    each = next(each for each in CLASSES if kind == each.KIND)

    found = each.diagnose(known)
    assert found is None, f"{why}, and yet {found.kind} says: {found.cause}"


def test_every_class_has_a_near_miss() -> None:
    """No class goes without."""
    odd = {each.KIND for each in CLASSES} ^ {kind for kind, _, _ in NEAR}

    assert not odd, f"add a row to NEAR, above: a record that looks alike and has another cause: {sorted(odd)}"


def test_what_is_said_of_a_near_miss_is_another_cause() -> None:
    """Whatever another class says of a near miss rests on quotes of its record; of some of them something is said."""
    said = [(kind, why, found) for kind, why, known in NEAR if (found := diagnose(known)) is not None]

    assert len(said) > len(NEAR) // 5
    assert [(why, found.kind) for kind, why, found in said if found.kind == kind or not found.evidence] == []
