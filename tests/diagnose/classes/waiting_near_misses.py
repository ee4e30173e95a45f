"""What only looks like a wait with a known cause."""

from __future__ import annotations

from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import Call, Said, bash, evidence, failed, read

POLL = '{"id": 7, "state": "running", "reason": "copying"}'
QUEUES = bash("queues", '[{"queue": "a-2", "paused": true}, {"queue": "b-1", "paused": false}]')


def hung(*steps: Call | Said) -> Evidence:
    """Return the evidence of a call that does not return."""
    return evidence(*steps, kind="hung", severity="hung")


WAITING: list[tuple[str, str, Evidence]] = [
    (
        "resourceHeld",
        "nothing listens on the port",
        evidence(
            bash("python3 -m http.server 8000 &"),
            *[failed("curl -s localhost:8000", "curl: (7) Failed to connect to localhost port 8000")] * 3,
        ),
    ),
    (
        "waitingOnLock",
        "a manifest is called lock",
        hung(
            bash("ls", "package-lock.json\nbuild.py"),
            read("build.py", "import json\nLOCK = 'package-lock.json'\nwhile LOCK:\n    pass"),
            Call("Bash", {"command": "python3 build.py"}, None, "open"),
        ),
    ),
    (
        "waitingOnLock",
        "the program only mentions a lock",
        hung(
            read("sync.py", "LOCK = 'data/sync.lock'\nprint(LOCK)"), Call("Bash", {"command": "python3 sync.py"}, None, "open")
        ),
    ),
    (
        "mutualWait",
        "only one of the two waits",
        evidence(
            *[
                Call("send_message", {"to": "builder", "text": "I am waiting for your draft."}, "sent", agent="planner"),
                Call("send_message", {"to": "planner", "text": "Here is draft three."}, "sent", agent="builder"),
            ]
            * 3,
            loop=6,
        ),
    ),
    (
        "waitsForPerson",
        "the user has answered",
        evidence(
            Said("May I delete the backups?", "main"),
            Said("Yes, delete them."),
            *[bash("cat approval.txt", "pending approval of the release")] * 2,
            bash("ls", "a"),
            loop=1,
        ),
    ),
    ("waitsForPerson", "the job runs", evidence(*[bash("curl -s http://127.0.0.1/jobs/7", POLL)] * 6)),
    ("cannotBegin", "another queue is switched off", evidence(QUEUES, *[bash("jobs show b-1", '{"state": "queued"}')] * 5)),
    ("pollingFrozen", "it still runs", evidence(*[bash("curl -s http://127.0.0.1/jobs/7", POLL)] * 6)),
    ("pollingFrozen", "a service may come back", evidence(*[bash("curl http://127.0.0.1/up", '{"status": "error"}')] * 6)),
    (
        "waitingOnProcess",
        "a loop that ends when a file is gone waits for a lock",
        hung(
            bash("nohup make build > build.log 2>&1 &", "[1] 77"),
            bash("cat build.log", "make: *** [Makefile:3: build] Error 1\nbuild failed"),
            bash("while [ -f build.lock ]; do sleep 1; done", status="open"),
        ),
    ),
    (
        "waitingOnProcess",
        "the failed job was started again, and the newest look shows it at work",
        hung(
            bash("nohup make build > build.log 2>&1 &", "[1] 77"),
            bash("cat build.log", "build failed: no compiler"),
            bash("cat build.log", "compiling 3 of 9"),
            bash("until [ -f dist/app ]; do sleep 1; done", status="open"),
        ),
    ),
    (
        "waitingOnProcess",
        "nobody started a process of that number",
        hung(bash("make &", "[1] 77"), bash("tail --pid=9001 -f /dev/null", status="open")),
    ),
    (
        "callHangs",
        "the message is given",
        hung(Call("Bash", {"command": "git commit -am 'Fix'"}, None, "open")),
    ),
    (
        "callHangs",
        "the input is given",
        hung(
            read("setup.py", "name = input('Name: ')"), Call("Bash", {"command": "echo shop | python3 setup.py"}, None, "open")
        ),
    ),
    (
        "callHangs",
        "the server runs in the background",
        hung(Call("Bash", {"command": "python3 -m http.server 8000 &"}, None, "open")),
    ),
]
