"""A call that does not return: what it waits for is told, whichever client runs it."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from ctxmgr.diagnose.classes.waiting import call_hangs
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import Call, Said, bash, evidence, failed, read, require_told

THRICE = 3


SAID: list[tuple[str, Evidence, list[str], list[str]]] = [
    (
        "tail follows",
        evidence(Call("Bash", {"command": "tail -f app.log"}, None, "open"), kind="hung", severity="hung"),
        ["tail -f"],
        ["without the option that follows"],
    ),
    (
        "npm init",
        evidence(Call("Bash", {"command": "npm init"}, None, "open"), kind="hung", severity="hung"),
        ["npm init"],
        ["-y"],
    ),
    (
        "a prompt that was stopped",
        evidence(
            *[failed("npm init", "Press ^C to quit.\npackage name: (shop)\n\ncommand timed out after 120 seconds")] * THRICE
        ),
        ["did not return by itself", "asks questions"],
        ["`-y`"],
    ),
]


@pytest.mark.parametrize(("known", "cause", "step"), [each[1:] for each in SAID], ids=[each[0] for each in SAID])
def test_a_cause_is_known_in_other_words(known: Evidence, cause: list[str], step: list[str]) -> None:
    """Cause and next step are named as well where another client or tool tells them."""
    require_told(known, call_hangs.KIND, cause, step)


READS = Call("exec", {"cmd": "xz -dc /srv/in/stock.xz.part > stock.csv"}, None, "open", "loader")


@pytest.mark.parametrize(
    "words",
    [
        "The transfer of /srv/in/stock.xz.part stopped. I no longer write there, all is in /srv/in/full/stock-2.csv.",
        "No stock part comes through xz any more; take /srv/in/full/stock-2.csv instead.",
    ],
)
def test_what_another_agent_said_of_the_file_is_told(words: str) -> None:
    """Another agent, or a person, named the place that is used now; the call reads from the old one."""
    known = evidence(Said(words, "exporter"), READS, kind="hung", severity="hung")

    require_told(known, call_hangs.KIND, ["exporter", "stock.xz.part"], ["/srv/in/full/stock-2.csv", "exporter"])


@pytest.mark.parametrize(
    "said",
    [
        Said("I no longer write the price list, take /srv/in/full/prices.csv instead.", "exporter"),
        Said("I write /srv/in/stock.xz.part now, /srv/in/full/stock-2.csv follows tomorrow.", "exporter"),
        Said("I no longer need /srv/in/stock.xz.part, but /srv/in/full/stock-2.csv.", "loader"),
    ],
)
def test_words_on_something_else_name_no_other_place(said: Said) -> None:
    """Words on another file, of no move, or of the agent itself say nothing of the call."""
    found = diagnose(evidence(said, READS, kind="hung", severity="hung"))

    assert found is None or "stock-2.csv" not in found.next_step


@pytest.mark.parametrize(
    ("printed", "asks"),
    [
        ("Overwrite keys.txt? [y/N]", True),
        ("Release name [v12]:", True),
        ("copying layers 42 %", False),
        ("copying [=====>    ]", False),
        ("compiled [18/240]", False),
    ],
)
def test_the_output_so_far_may_end_in_a_prompt(printed: str, asks: bool) -> None:
    """A measure of progress asks nothing."""
    known = evidence(Call("Bash", {"command": "./pack.sh"}, None, "open"), Said(printed, "tool", "progress"), found=False)
    found = call_hangs.diagnose(known)

    assert (found is not None and "ends in a prompt" in found.cause) == asks


@pytest.mark.parametrize(
    ("before", "command", "why"),
    [
        ("mkfifo /tmp/ctl", "cat /tmp/ctl", "named pipe"),
        ("mkfifo /tmp/ctl", "echo go > /tmp/ctl", "named pipe"),
        ("ls", "cat > notes.txt", "given no file"),
        ("ls", "grep -n todo > found.txt", "given no file"),
    ],
)
def test_what_an_open_call_reads(before: str, command: str, why: str) -> None:
    """A named pipe waits for its other end, and the file that takes the output is none that is read."""
    told = diagnose(evidence(bash(before), bash(command, status="open"), severity="hung"))

    assert told is not None
    assert told.kind == "callHangs"
    assert why in told.cause


@pytest.mark.parametrize(
    ("command", "cause", "step"),
    [
        ("npm run dev", "runs until it is stopped", "in the background"),
        ("kubectl logs -f pod/api", "runs until it is stopped", "`kubectl logs pod/api`"),
        ("until test -S app.sock; do sleep 1; done", "repeats until", "set a limit"),
        ("python ask.py", "waits for input", "in advance"),
    ],
)
def test_a_call_that_its_client_stopped(command: str, cause: str, step: str) -> None:
    """What ends by no time limit is told as for an open call; a call that fails for its own reasons is none."""
    source = read("ask.py", "name = input('name? ')")
    stopped = failed(command, "Command timed out after 2m 0.0s")

    require_told(evidence(source, *[stopped] * THRICE), "callHangs", [cause], [step])

    broken = failed(command, "Error: connect ETIMEDOUT 10.0.0.4:443")
    told = diagnose(evidence(source, *[broken] * THRICE))
    assert told is None or told.kind != "callHangs"


@pytest.mark.parametrize(
    ("command", "said", "step"),
    [
        (
            "git commit",
            "error: Terminal is dumb, but EDITOR unset\nPlease supply the message using either -m",
            "Give the message",
        ),
        ("apt-get install nginx", "Do you want to continue? [Y/n] Abort.", "`-y`"),
        ("docker run -it app bash", "the input device is not a TTY", "without `-it`"),
    ],
)
def test_a_call_that_ended_because_nobody_was_there(command: str, said: str, step: str) -> None:
    """It did return, so there is nothing to stop, and it waited for nobody."""
    found = diagnose(evidence(*[failed(command, said)] * THRICE))

    assert found is not None
    assert found.kind == "callHangs"
    assert "return" not in f"{found.cause} {found.check}"
    assert "waits" not in found.cause
    assert step in found.next_step
    assert "Stop it" not in found.next_step


@pytest.mark.parametrize("before", [[], [bash("npm install", "added 4 packages")]], ids=["first", "again"])
def test_a_call_that_may_have_taken_effect_is_not_made_again_unseen(before: list[Call]) -> None:
    """The prompt forbids that, so the step must not ask for it."""
    found = call_hangs.diagnose(evidence(*before, bash("npm install", status="open"), kind="hung", severity="hung"))

    assert found is not None
    assert "see whether it took effect" in found.next_step
