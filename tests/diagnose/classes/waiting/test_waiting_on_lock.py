"""Locks that another agent holds."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import Call, Said, bash, evidence, failed, read

LOCKED = failed("sqlite3 shop.db 'delete from cart'", "Error: database is locked")
OPEN = bash("flock /tmp/shop.lock make", status="open")


@pytest.mark.parametrize(
    ("begun", "calls"),
    [
        (bash("sqlite3 shop.db .dump &", "[1] 4711"), [LOCKED] * 3),
        (bash("flock /tmp/shop.lock sleep 900 &", "[1] 4711"), [OPEN]),
    ],
    ids=["refused", "waits"],
)
@pytest.mark.parametrize("agent", ["main", "builder", "not; a name"])
def test_only_its_own_holder_is_the_agents_to_end(begun: Call, calls: list[Call], agent: str) -> None:
    """What another agent started is told as that agent's, who is to be asked."""
    told = diagnose(evidence(begun._replace(agent=agent), *calls))

    assert told is not None
    assert told.kind == "waitingOnLock"
    own = agent == "main"
    name = "you" if own else "builder" if agent == "builder" else "another agent"
    assert ("You hold it yourself" in told.cause) == own
    assert (f"Ask {name} to end" in told.next_step) == (not own)
    assert own or f"{name} holds it" in told.cause


def test_the_job_that_runs_the_same_program_is_the_holder() -> None:
    """A job of its own whose lock is that of the program is to be ended, with the words of the user that allow it."""
    begun = bash("nohup flock target/debug/.cargo-lock sh fuzz.sh > fuzz.log 2>&1 & echo started $!", "started 30417")
    blocked = failed("cargo build", "    Blocking waiting for file lock on artifact directory")
    told = diagnose(evidence(Said("Build it. The fuzzer may be stopped whenever it is in the way."), begun, *[blocked] * 3))

    assert told is not None
    assert told.next_step.startswith("End process 30417")
    assert "The fuzzer may be stopped" in told.cause


def test_a_script_that_runs_the_same_program_is_the_holder() -> None:
    """The job's script was read, and runs the program whose lock is waited for."""
    begun = bash("sh soak.sh &", "[1] 4711")
    blocked = failed("cargo build", "    Blocking waiting for file lock on artifact directory")
    told = diagnose(evidence(read("soak.sh", "#!/bin/sh\nwhile true; do cargo run -q; done"), begun, *[blocked] * 3))

    assert told is not None
    assert told.next_step.startswith("End process 4711, `sh soak.sh &`")


@pytest.mark.parametrize("said", ["C-17 is leased by agent-mara until 2026-06-17T16:30:00Z", "C-17 is leased"])
def test_a_lease_has_no_process(said: str) -> None:
    """No process of this machine is looked for where a tool gives something out."""
    told = diagnose(evidence(*[Call("claim_card", {"id": "C-17"}, {"error": said}, "error")] * 3))

    assert told is not None
    assert "See who has it" in told.next_step
    assert "fuser" not in told.next_step


REPORT = 'file=var/report.pid\n[ -e $file ] && { echo "another job is in progress (pid $(cat $file))"; exit 4; }'
REFUSED = "report: another job is in progress (pid 5120)"


@pytest.mark.parametrize(
    ("shown", "is_gone"),
    [("    PID CMD", True), ("    PID CMD\n   5120 sh report.sh", False), ("cat: var/report.pid: Permission denied", False)],
)
def test_the_process_of_a_pid_file_that_the_script_names_is_gone(shown: str, is_gone: bool) -> None:
    """A look-up by the file counts like one by the number; a run that was refused as well holds nothing."""
    looked = bash("ps -p $(cat var/report.pid) -o pid,cmd", shown)
    again = bash("nohup sh report.sh; tail -1 report.log", REFUSED)
    run = failed("sh report.sh", REFUSED)
    told = diagnose(evidence(read("report.sh", REPORT), looked, run, again, run, run))

    assert told is not None
    assert told.kind == "waitingOnLock"
    assert ("`var/report.pid` is left over" in told.cause) == is_gone
    assert "You hold it yourself" not in told.cause


def test_an_open_call_says_in_its_output_so_far_that_it_waits() -> None:
    """Only the events behind the call have what it printed; its own job of the same program is the holder."""
    begun = bash("gradle build --offline > build.log 2>&1 & echo pid $!", "pid 3107")
    streamed = Said(
        "Timeout waiting to lock journal cache. It is currently in use by another Gradle instance.", "tool", "stream"
    )
    told = diagnose(evidence(begun, bash("gradle check", status="open"), streamed, found=False))

    assert told is not None
    assert told.kind == "waitingOnLock"
    assert "has not returned: it waits for a lock" in told.cause
    assert "process 3107" in told.next_step


def test_a_job_that_may_have_ended_is_no_sure_holder() -> None:
    """The index of git is locked only as long as a command runs, and nothing shows whether the job in the background does."""
    begun = bash("git fsck &", "Checking objects")
    blocked = failed("git stash", "fatal: Unable to create '/srv/app/.git/index.lock': File exists.")
    told = diagnose(evidence(begun, *[blocked] * 3))

    assert told is not None
    assert "git fsck" not in told.cause
    assert "ask the user" in told.next_step.casefold()


def test_a_holder_named_on_the_same_line_is_told() -> None:
    """A state that is kept elsewhere has no process here."""
    blocked = failed("terraform plan", "Error: state locked\nLock Info: ID 77 Who: bea@runner")
    told = diagnose(evidence(*[blocked] * 3))

    assert told is not None
    assert "Wait until `bea@runner`" in told.next_step
    assert "fuser" not in told.next_step


BLOCKED = failed("dvc repro --yes", "ERROR: Unable to acquire lock. Most likely another DVC process is running")


@pytest.mark.parametrize(
    ("log", "asks"),
    [
        ("stage 'fit' changed\nOverwrite model.bin? [y/N]", True),
        ("Enter passphrase for the store:", True),
        ("fit: still running ... [40s elapsed]", False),
        ("Continue? [y/N] y\nepoch 3 of 90", False),
    ],
)
def test_the_holder_waits_for_an_answer(log: str, asks: bool) -> None:
    """A job in the background whose log ends in a question is to be ended by its number; one that works is not said to ask."""
    begun = bash("nohup dvc repro > repro.log 2>&1 &", "[1] 6120")
    told = diagnose(evidence(begun, bash("tail -n 2 repro.log", log), BLOCKED, BLOCKED, BLOCKED))

    assert told is not None
    assert told.kind == "waitingOnLock"
    assert "6120" in told.next_step
    assert ("waits for an answer" in told.cause) == asks
    assert ("`--yes`" in told.next_step) == asks


@pytest.mark.parametrize(("command", "reads"), [("dvc repro | cat", False), ("dvc repro; cat", True)])
def test_a_program_that_reads_a_pipe_waits_for_nobody(command: str, reads: bool) -> None:
    """Only a program without a pipe before it reads what nobody types."""
    begun = Call("Bash", {"command": command, "run_in_background": True}, "started")
    told = diagnose(evidence(begun, BLOCKED, BLOCKED, BLOCKED))

    assert told is not None
    assert ("nobody types" in told.cause) == reads


def test_the_holder_waits_for_a_file() -> None:
    """What the log of the holder waits for is to be made, and the holder is not simply to be ended."""
    begun = bash("nohup dvc repro > repro.log 2>&1 &", "[1] 6120")
    log = bash("cat repro.log", "fit done\nholding the lock, waiting for out/checked.ok")
    told = diagnose(evidence(begun, log, BLOCKED, BLOCKED, BLOCKED))

    assert told is not None
    assert "waiting for out/checked.ok" in told.cause
    assert "See to `out/checked.ok`" in told.next_step
    assert "only if its work may be lost" in told.next_step
