"""What the table of known errors promises: a row answers the text it is for, none answers healthy outputs, all end in time."""

from __future__ import annotations

import re
import time
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from ctxmgr.diagnose import contrast, diagnose
from ctxmgr.diagnose.classes import CLASSES
from ctxmgr.diagnose.errors import table as error_table
from ctxmgr.diagnose.errors.table import ErrorRow, error_rows, known_error, known_success
from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.diagnose.evidence.texts import text_of
from ctxmgr.diagnose.interface import MOST_CAUSE, MOST_STEP
from ctxmgr.store import open_store
from tests.diagnose.build import Call, bash, evidence, failed
from tests.history.logs import LOGS, bring_in, content

ROWS = [row for row in error_rows() if "\nexample = " in row.source]
FIELDS = {"key", "said", "call", "means", "step", "late", "ok", "fails", "example", "command"}
HEALTHY = [
    "On branch main\nYour branch is up to date with 'origin/main'.\n\nnothing to commit, working tree clean",
    "To github.com:acme/shop.git\n   3f2a91c..9a8b7c6  main -> main\nbranch 'main' set up to track 'origin/main'.",
    "Updating 3f2a91c..9a8b7c6\nFast-forward\n src/cart.py | 12 ++++++------\n 1 file changed, 6 insertions(+), 6 deletions(-)",
    "added 212 packages, and audited 213 packages in 4s\n\n31 packages are looking for funding\n\nfound 0 vulnerabilities",
    "> shop@1.4.0 build\n> tsc -p .\n\n✓ 41 modules transformed.\ndist/index.js  12.1 kB │ gzip: 4.2 kB\n✓ built in 1.21s",
    " PASS  src/cart.test.ts\n\nTest Suites: 1 passed, 1 total\n"
    "Tests:       4 passed, 4 total\nSnapshots:   0 total\nTime:        1.2 s",
    "============ test session starts ============\n"
    "collected 41 items\n\ntests/test_cart.py ......  [100%]\n==== 41 passed in 1.2s ====",
    "Successfully installed flask-3.0.0 werkzeug-3.0.1\n[notice] A new release of pip is available: 24.0 -> 25.1",
    "Success: no issues found in 41 source files\nAll checks passed!\n41 files left unchanged.",
    "Operations to perform:\n  Apply all migrations: admin, auth, shop\nRunning migrations:\n  Applying shop.0002_price... OK",
    "   Compiling shop v0.1.0 (/home/dev/shop)\n    Finished `dev` profile [unoptimized + debuginfo] target(s) in 3.21s\n"
    "test result: ok. 9 passed",
    "ok  \tgithub.com/acme/shop/cart\t0.012s\n?   \tgithub.com/acme/shop\t[no test files]",
    "[INFO] BUILD SUCCESS\n[INFO] Total time:  4.2 s\nBUILD SUCCESSFUL in 3s\n7 actionable tasks: 7 executed",
    "#9 exporting to image\n#9 naming to docker.io/library/shop:latest done\n"
    " Container shop-db-1  Healthy\n Container shop-web-1  Started",
    "NAME       READY   STATUS    RESTARTS   AGE\nweb-7d9c   1/1     Running   0          2m\ndeployment.apps/web configured",
    "Plan: 1 to add, 0 to change, 0 to destroy.\nApply complete! Resources: 1 added, 0 changed, 0 destroyed.",
    "PLAY RECAP ****\nweb1 : ok=9 changed=2 unreachable=0 failed=0 skipped=1",
    "● shop.service - Shop\n     Loaded: loaded (/etc/systemd/system/shop.service; enabled)\n"
    "     Active: active (running) since Mon",
    ' id | name\n----+------\n  1 | cart\n(1 row)\n\n{"ok":true,"channel":"C1","ts":"1.2"}\n{"acknowledged":true}\nPONG',
    "HTTP/2 200\ncontent-type: application/json\nx-ratelimit-remaining: 4999\n\n{\"status\":\"healthy\",\"errors\":[]}",
    "total 12\ndrwxr-xr-x 2 dev dev 4096 Nov 23 03:00 src\n"
    "-rw-r--r-- 1 dev dev  120 Nov 23 03:00 error_table.py\n0 errors, 0 warnings",
    "Filesystem      Size  Used Avail Use% Mounted on\n"
    "/dev/sda1        40G   12G   28G  30% /\nPython 3.11.7\nv20.11.0\ngcc 12.2.0",
]  # fmt: skip
UNITS = [" ", "a", "a ", "'", "/", "a/", "1", "\n", "a\n", "(", '"', ": ", "error: ", "-"]


def looping(row: ErrorRow) -> Evidence:
    """Return evidence of the example's command, failing three times with its text."""
    call = failed(row.fields.get("command", "./run-it"), row.fields["example"])
    return evidence(call, call, call)


def words_of(row: ErrorRow) -> str:
    """Return the longest part of what the row means that no slot changes."""
    return max(re.split(r"\{[^{}]*\}", row.meaning), key=len).strip()


@pytest.mark.parametrize("row", [row for row in ROWS if row.fails], ids=lambda row: row.key[0])
def test_a_row_answers_its_example(row: ErrorRow) -> None:
    """The row, and none before it, says what the example means, with every slot filled and within its bounds."""
    known = looping(row)
    found = error_table.known_error("known", known, late=False) or error_table.known_error("known", known, late=True)

    assert found is not None
    assert words_of(row)[:120] in found.cause
    assert not re.search(r"\{\w+[|}]", f"{found.cause} {found.next_step}")
    assert len(found.cause) < MOST_CAUSE
    assert len(found.next_step) < MOST_STEP


BY_CLASS = {
    "throttlingexception": "rateLimited",
    "secondary rate limit": "rateLimited",
    "you have exhausted": "rateLimited",
    "already exists in this window": "rateLimited",
    "inputvalidationerror": "schemaRefused",
    "no rule to make target": "unknownName",
    "err_pnpm_no_script": "unknownName",
    "a server is already running": "waitingOnLock",
    "remote port forwarding failed": "resourceHeld",
}
"""Examples of which a class of failure knows more than the row: what it says is as true."""


@pytest.mark.parametrize("row", [row for row in ROWS if row.fails], ids=lambda row: row.key[0])
def test_no_class_says_something_else_of_an_example(row: ErrorRow) -> None:
    """Classes are asked before the table: one that takes the words of another failure for its own would say something false."""
    known = looping(row)
    found = next((found for each in CLASSES if (found := each.diagnose(known)) is not None), None)

    said = "" if found is None else found.cause
    assert words_of(row)[:60] in said or found is None or found.kind == BY_CLASS.get(row.key[0]), said


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("rateLimited", "write /home/dev/a.bin: Disk quota exceeded"),
        ("rateLimited", "RecursionError: maximum recursion limit reached"),
        ("rateLimited", "FATAL: connection limit was reached"),
        ("rateLimited", "bench: 2.1x slowdown against the base"),
        ("waitsForPerson", "E: The repository 'http://deb.example.org bookworm InRelease' is not signed."),
        ("outputCut", "ERROR 1265 (01000): Data truncated for column 'price' at row 3"),
        ("schemaRefused", "error: required: node >= 20"),
    ],
)
def test_a_class_leaves_words_that_mean_something_else(kind: str, said: str) -> None:
    """Words that a class looks for stand in other errors, too."""
    call = failed("./run-it", said)

    assert kind not in {found.kind for each in CLASSES if (found := each.diagnose(evidence(call, call, call))) is not None}


def test_a_page_that_is_gone_is_told_whatever_fetches_it() -> None:
    """Clients word the status in several ways."""
    for said in (
        "Request failed with status code 404",
        "HTTP 404 Not Found",
        "curl: (22) The requested URL returned error: 404",
    ):
        call = Call("WebFetch", {"url": "https://docs.example.org/retry"}, said, "error")
        found = diagnose(evidence(call, call, call))

        assert found is not None
        assert "the server has nothing at `/retry` (404)" in found.cause


@pytest.mark.parametrize("row", [row for row in ROWS if row.ok], ids=lambda row: row.fields["command"][:30])
def test_a_row_of_successes_answers_one_that_is_repeated(row: ErrorRow) -> None:
    """What the example says counts where the calls end well, too, from the third time on."""
    call = bash(row.fields["command"], row.fields["example"])

    found = known_success("known", evidence(call, call, call, found=False))

    assert found is not None
    assert words_of(row)[:120] in found.cause
    assert "says the same 3 times" in found.cause
    assert known_success("known", evidence(call, call, found=False)) is None


def test_a_row_of_successes_names_its_tool() -> None:
    """A success that any tool may have is no trouble."""
    assert [row.key for row in ROWS if row.ok and row.caller is None] == []


def test_every_row_of_a_domain_has_its_fields() -> None:
    """What the folder holds is whole TOML, goes through the loader as it is, and no row of it goes untested."""
    loaded = [row.fields for row in ROWS]
    folder = files("ctxmgr.diagnose.errors").joinpath("known_errors")
    read = [
        row
        for each in sorted(folder.iterdir(), key=lambda e: (e.name != "traps.toml", e.name))
        if each.name != "general.toml"  # the tests of the classes cover its rows, which give no example
        for row in tomllib.loads(each.read_text("utf-8"))["error"]
    ]

    assert loaded == read
    for row in read:
        assert set(row) <= FIELDS, row["means"]
        assert row["key"], row["means"]
        assert all(key == key.casefold() for key in row["key"]), row["key"]


def test_keys_and_order_of_a_row_need_no_reading_of_it() -> None:
    """What is taken from the text of a row is what TOML says of it."""
    rows = list(error_rows())
    assert all(any(flag in row.fields for row in rows) for flag in ("key", "late", "ok", "fails"))
    for row in rows:
        assert row.key == tuple(row.fields.get("key", ()))
        assert row.late == bool(row.fields.get("late", False))
        assert row.ok == bool(row.fields.get("ok", False))
        assert row.fails == bool(row.fields.get("fails", not row.ok))


@pytest.mark.parametrize("text", HEALTHY, ids=lambda text: text[:30])
def test_no_row_of_a_domain_answers_a_healthy_output(text: str) -> None:
    """Outputs of tools that did what they were asked meet none of the rows."""
    assert [row.key for row in ROWS if row.match(text, text.casefold(), "./run-it")] == []


def test_no_row_of_a_domain_answers_recorded_successes(tmp_path: Path) -> None:
    """Nor do the results of calls that went well in real logs."""
    store = open_store(str(tmp_path / "history.db"), create=True)
    bring_in(store, LOGS, LOGS.parent / "demo", LOGS.parent / "formats")
    texts = [
        text_of(each["output"]) for each in content(store) if each.get("status") == "ok" and each.get("output") is not None
    ]
    store.close()

    assert len(texts) > 100
    assert [(row.key, text) for text in texts for row in ROWS if row.match(text, text.casefold(), "./run-it")] == []


@pytest.mark.cases(1)
@pytest.mark.parametrize("unit", UNITS)
def test_hostile_text_costs_linear_time(unit: str) -> None:
    """Eight times the text behind the words of a row takes at most forty times as long, over all rows."""
    heads = [(row.pattern, row.fields["example"][:40]) for row in ROWS]

    def took(size: int) -> float:
        filler = unit * (size // len(unit))
        start = time.process_time()
        for pattern, head in heads:
            pattern.search(f"{head}{filler}")
        return time.process_time() - start

    assert took(16_000) <= 40 * took(2_000) + 0.05


def test_the_longer_statement_is_told() -> None:
    """`ENOSPC` within a sentence about watched files is about these, and not about the disk."""
    watch = "Error: ENOSPC: System limit for number of file watchers reached, watch '/home/dev/shop/src'\n  code: 'ENOSPC'"
    told = diagnose(evidence(*[failed("npm run dev", watch)] * 3))
    disk = diagnose(evidence(*[failed("cp a.bin /var/b.bin", "cp: error writing '/var/b.bin': No space left on device")] * 3))

    assert told is not None
    assert "inotify" in told.cause
    assert "the disk is not full" in told.cause
    assert disk is not None
    assert "no room left" in disk.cause


@pytest.mark.parametrize(
    ("call", "check"),
    [
        (bash("git pull", "Already up to date."), "The answer must be another one."),
        (
            failed("cp a.bin /var/b.bin", "cp: error writing '/var/b.bin': No space left on device"),
            "The quoted error must be gone.",
        ),
    ],
    ids=["no error", "error"],
)
def test_only_an_error_can_be_gone(call: Call, check: str) -> None:
    """Where a call works and says the same again, its answer must change."""
    told = diagnose(evidence(call, call, call))

    assert told is not None
    assert told.check == check


def test_an_error_that_was_seen_once_is_explained_as_no_cause_is_known() -> None:
    """No failure class speaks of it yet, but what differs is told with what its words mean."""
    known = evidence(failed("pytest -q gone_test.py", "ERROR: file or directory not found: gone_test.py"))
    told = contrast(known)

    assert diagnose(known) is None
    assert told is not None
    assert "pytest finds no file or test `gone_test.py`" in told.cause


SKEW = "make: Warning: File 'limits.h' has modification time 60 s in the future"


@pytest.mark.parametrize(
    ("said", "known"),
    [
        (f"{SKEW}\nmake: warning:  Clock skew detected.  Your build may be incomplete.\nmake: *** [test] Error 1", True),
        (f"{SKEW}\n./build/t\nFAIL 76.0 is ALARM: got 1, want 2\nmake: *** [test] Error 1", False),
        (f"{SKEW}\nc.c:3:2: error: expected ';' before 'return'\nmake: *** [c.o] Error 1", False),
        # The same words stand in the error as well.
        (
            "c.c:1:1: warning: 'optional' is only available with '-std=c++17'\n"
            "c.c:2:2: error: structured bindings only available with '-std=c++17'",
            True,
        ),
    ],
)
def test_a_warning_is_no_cause_where_something_else_fails(said: str, known: bool) -> None:
    """What calls itself a warning is only told if no other line says what failed."""
    found = known_error("knownError", evidence(*[failed("make test", said)] * 3), late=False)

    assert (found is not None) == known
