"""Calls that end well and say the same again and again: what the record shows beside them is the cause."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.classes.statements import record_fact
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import Call, bash, edit, evidence, failed, read

ZERO = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.00s"
KEEPS = "CREATE TRIGGER keep AFTER UPDATE ON grade BEGIN UPDATE grade SET mark = OLD.mark WHERE id = OLD.id; END;"
CLEAN = "On branch main\nnothing to commit, working tree clean"

FACTS: list[tuple[str, list[str], Evidence]] = [
    (
        "a folder stands in the place of a target",
        ["a folder `test`", ".PHONY: test"],
        evidence(bash("ls -F", "Makefile\ntest/"), *[bash("make test", "make: 'test' is up to date.")] * 3, found=False),
    ),
    (
        "a feature is off",
        ["the feature `metric`", "cargo test --features metric wind_chill"],
        evidence(
            read("src/a.rs", '#[cfg(all(test, feature = "metric"))]\nmod tests {\n    #[test]\n    fn wind_chill() {}\n}'),
            *[bash("cargo test -q wind_chill", f"\nrunning 0 tests\n\n{ZERO}")] * 3,
            found=False,
        ),
    ),
    (
        "a build tag is missing",
        ["the build tag `integration`", "-tags integration"],
        evidence(
            read("db_test.go", "//go:build integration\n\npackage db\n\nfunc TestOpen(t *testing.T) {}"),
            *[bash("go test -run TestOpen ./db", "testing: warning: no tests to run\nPASS")] * 3,
            found=False,
        ),
    ),
    (
        "the settings leave the marker out",
        ["addopts", "pytest -m MARKER"],
        evidence(
            bash("cat pytest.ini", "[pytest]\naddopts = -q -m 'not slow'"),
            *[failed("pytest tests/test_c.py", "1 deselected in 0.02s")] * 3,
        ),
    ),
    (
        "a default namespace",
        ["`data.xml` declares a default namespace", "{*}NAME"],
        evidence(
            bash("head -1 data.xml", '<dataset xmlns="urn:aero:5.1" cycle="1">'),
            *[bash("python3 elev.py data.xml", "0 aerodromes")] * 3,
            found=False,
        ),
    ),
    (
        "a trigger that puts the old value back",
        ["the trigger `keep`", "leave the trigger as it is"],
        evidence(
            bash("sqlite3 s.db .schema", KEEPS),
            *[bash('sqlite3 s.db "update grade set mark = 5; select mark from grade"', "3")] * 3,
            found=False,
        ),
    ),
    (
        "trial runs by default",
        ["`simulate` is on by default", "`simulate: false`"],
        evidence(
            Call("toolHelp", {"tool": "send"}, "send(list, [simulate])\n  simulate  boolean, default true"),
            *[Call("progress", {"job": 4}, '{"state": "done", "delivered": 0}')] * 3,
            found=False,
        ),
    ),
    (
        "a mark of the index",
        ["skip-worktree", "git update-index --no-skip-worktree config/a.toml"],
        evidence(
            edit("config/a.toml", "1", "2"),
            bash("git ls-files -v", "S config/a.toml\nH b.toml"),
            *[failed("git commit -am two", CLEAN)] * 3,
        ),
    ),
    (
        "a mark that a script sets",
        ["assume-unchanged", "git update-index --no-assume-unchanged config/a.toml"],
        evidence(
            bash("cat setup.sh", "git update-index --assume-unchanged config/a.toml"),
            edit("config/a.toml", "1", "2"),
            *[failed("git commit -am two", CLEAN)] * 3,
        ),
    ),
    (
        "an older version is staged",
        ["`bl.csv` is staged in an older version", "git add bl.csv"],
        evidence(
            bash("git status -s", "AM bl.csv"), *[failed("git commit -m two", "pre-commit: bl.csv: 1 line without a code")] * 3
        ),
    ),
    (
        "two spellings of one letter",
        ["NFD", "unicodedata.normalize"],
        evidence(
            bash("ls objects", "Mu\u0308nze.txt"),
            *[failed("python3 b.py", "FileNotFoundError: [Errno 2] No such file or directory: 'objects/M\u00fcnze.txt'")] * 3,
        ),
    ),
    (
        "one guard in two headers",
        ["the same include guard `DRIVER_H`", "a guard of its own"],
        evidence(
            read("valve.h", "#ifndef DRIVER_H\n#define DRIVER_H\ntypedef struct { int v; } valve_t;\n#endif"),
            read("pump.h", "#ifndef DRIVER_H\n#define DRIVER_H\ntypedef struct { int p; } pump_t;\n#endif"),
            *[failed("make", "main.c:9:5: error: unknown type name ‘pump_t’")] * 3,
        ),
    ),
]


@pytest.mark.parametrize(("words", "known"), [each[1:] for each in FACTS], ids=[each[0] for each in FACTS])
def test_the_record_shows_the_cause(words: list[str], known: Evidence) -> None:
    """Cause and step name what was shown, and how it is undone."""
    found = record_fact.diagnose(known)

    assert found is not None
    said = f"{found.cause} {found.next_step}"
    assert [word for word in words if word not in said] == []
