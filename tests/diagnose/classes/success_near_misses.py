"""Calls that end well and say what a trap says too, in sessions where that is no trouble."""

from __future__ import annotations

from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import Call, bash, edit, evidence, failed, read

UP_TO_DATE = "make: 'app' is up to date."
NONE_RUN = "\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.00s"
THREE_RUN = "\nrunning 3 tests\n...\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out"
UPDATE = 'sqlite3 s.db "update grade set mark = 5 where id = 1; select count(*) from grade"'
LOGGED = (
    "CREATE TRIGGER log_mark AFTER UPDATE ON grade BEGIN INSERT INTO log VALUES (OLD.mark, NEW.mark); END;\n"
    "CREATE TRIGGER keep AFTER UPDATE ON term BEGIN UPDATE term SET closed = OLD.closed; END;"
)

SUCCESSES: list[tuple[str, str, Evidence]] = [
    (
        "knownError",
        "the build did its work in between",
        evidence(
            bash("make app", UP_TO_DATE),
            *[edit("app.c", "1", "2"), bash("make app", "cc -o app app.c"), bash("make app", UP_TO_DATE)] * 3,
            found=False,
        ),
    ),
    ("knownError", "it was said twice", evidence(*[bash("make app", UP_TO_DATE)] * 2, found=False)),
    (
        "knownError",
        "each time another target is done",
        evidence(*[bash(f"make {name}", f"make: '{name}' is up to date.") for name in ("app", "doc", "lib")], found=False),
    ),
    (
        "knownError",
        "the session went on with something else",
        evidence(
            *[bash("make app", UP_TO_DATE)] * 3,
            edit("app.c", "1", "2"),
            bash("./app", "2"),
            bash("git commit -qam two"),
            bash("git log --oneline -1", "3f2a91c two"),
            found=False,
        ),
    ),
    (
        "knownError",
        "a log that is read holds the words",
        evidence(*[bash("cat build.log", "make: 'app' is up to date.")] * 4, found=False),
    ),
    (
        "knownError",
        "the call crashes after it",
        evidence(*[failed("make app && ./app", f"{UP_TO_DATE}\nBus error")] * 3),
    ),
    (
        "knownError",
        "the pull brought something in between",
        evidence(
            *[bash("git pull", "Already up to date.")] * 2,
            bash("git pull", "Updating 3f2a91c..9a8b7c6\nFast-forward"),
            bash("git pull", "Already up to date."),
            found=False,
        ),
    ),
    (
        "knownError",
        "other agents pull, this one does not",
        evidence(*[bash("git pull", "Already up to date.")._replace(agent="other")] * 3, bash("ls", "a.py"), found=False),
    ),
    (
        "knownError",
        "a clean tree is looked at",
        evidence(*[bash("git status", "On branch main\nnothing to commit, working tree clean")] * 4, found=False),
    ),
    (
        "knownError",
        "the tests of a name are run, others are none of it",
        evidence(*[bash("cargo test cart", THREE_RUN)] * 3, bash("cargo test money", NONE_RUN), found=False),
    ),
    (
        "knownError",
        "the heredoc is quoted, or its names are meant for the calling shell",
        evidence(
            *[bash("cat > a.sh <<'EOF'\nfor r in 1 2; do echo $r; done\nEOF\nsh a.sh", "1\n2")] * 3,
            *[bash("cat > a.conf <<EOF\nhost = $HOST\nEOF\ncat a.conf", "host = db1")] * 3,
            found=False,
        ),
    ),
    (
        "knownError",
        "grep is told to take the expression as an extended one, or takes a plain word",
        evidence(*[bash("grep -cE 'a+b|c' n.txt", "0")] * 3, *[bash("grep -c 'abc' n.txt", "0")] * 3, found=False),
    ),
    (
        "knownError",
        "the trial run is followed by the real one",
        evidence(
            *[Call("send", {"list": 3, "dryRun": True}, {"accepted": True, "dryRun": True})] * 3,
            Call("send", {"list": 3, "dryRun": False}, {"accepted": True, "dryRun": False}),
            Call("status", {"list": 3}, {"sent": 41}),
            Call("report", {"list": 3}, {"sent": 41}),
            Call("close", {"list": 3}, {"closed": True}),
            found=False,
        ),
    ),
    (
        "recordFact",
        "the folder was made a target that is no file, since",
        evidence(
            bash("ls -F", "Makefile\ntest/\nsrc/"),
            edit("Makefile", "test:", ".PHONY: test\ntest:"),
            *[bash("make test", "make: 'test' is up to date.")] * 3,
            found=False,
        ),
    ),
    (
        "recordFact",
        "a rule of the Makefile has that name, and no folder",
        evidence(
            read("Makefile", "app:\n\tcc -o app app.c"),
            bash("cat Makefile", "app:\n\tcc -o app app.c"),
            *[bash("make app", UP_TO_DATE)] * 3,
            found=False,
        ),
    ),
    (
        "recordFact",
        "the mark was taken away since, or another file has it",
        evidence(
            bash("git ls-files -v", "S config/a.toml\nH config/b.toml"),
            edit("config/a.toml", "1", "2"),
            bash("git update-index --no-skip-worktree config/a.toml"),
            *[failed("git commit -am two", "nothing to commit, working tree clean")] * 3,
        ),
    ),
    (
        "recordFact",
        "the file with the mark was not edited",
        evidence(
            bash("git ls-files -v", "S config/a.toml\nH config/b.toml"),
            edit("config/b.toml", "1", "2"),
            *[failed("git commit -am two", "nothing to commit, working tree clean")] * 3,
        ),
    ),
    (
        "recordFact",
        "the older version was staged anew",
        evidence(
            bash("git status -s", "AM a.csv"),
            bash("git add a.csv"),
            *[failed("git commit -m two", "pre-commit: a.csv: 1 line without a code")] * 3,
        ),
    ),
    (
        "recordFact",
        "a check of the file finds no errors",
        evidence(
            bash("head -1 data.xml", '<dataset xmlns="urn:aero:5.1" cycle="1">'),
            *[bash("python3 validate.py data.xml", "0 errors")] * 4,
            found=False,
        ),
    ),
    (
        "recordFact",
        "the trigger only keeps a log, the one that puts back is another table's",
        evidence(bash("sqlite3 s.db .schema", LOGGED), *[bash(UPDATE, "12")] * 4, found=False),
    ),
    (
        "recordFact",
        "the real run was asked for",
        evidence(
            Call("toolHelp", {"tool": "send"}, "send(list, [simulate])\n  simulate  boolean, default true"),
            Call("send", {"list": 3, "simulate": False}, {"job": 4}),
            *[Call("progress", {"job": 4}, '{"state": "running", "delivered": 0}')] * 4,
            found=False,
        ),
    ),
    (
        "recordFact",
        "each header has a guard of its own",
        evidence(
            read("a.h", "#ifndef A_H\n#define A_H\ntypedef int a_t;\n#endif"),
            read("b.h", "#ifndef B_H\n#define B_H\ntypedef int b_t;\n#endif"),
            *[failed("make", "g.c:3:12: error: unknown type name ‘b_t’")] * 3,
        ),
    ),
]
