"""All commands inside checkouts that somebody else wrote: no command run, no file written outside, nothing connected to."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ctxmgr.cli import COMMANDS
from tests.hostile_repo.planting import WORLDS

HERE = Path(__file__).parent
KEYS = ("OPENAI_API_KEY", "CTXMGR_API_KEY", "ANTHROPIC_API_KEY")

LINES: list[list[str]] = [
    list[str](line.split())
    for line in """
    doctor
    prompt agent
    sessions --json
    sessions
    detect --exit-zero
    detect --json --store run.jsonl
    recover --force
    recover --force --routes routes.toml --transcript transcript.json
    recover --force --goal . --store run.jsonl
    request --type introspect --from coder --reason lost --goal x --draft coder=@schema.json
    list --json
    list --kind all
    list --store run.jsonl --json
    trace --json
    search ls --json
    show @0 --json
    messages --json
    note add 0 -m x
    note list --json
    snapshot create 0 --summary x
    snapshot list --json
    memory retain x
    memory recall x
    memory reflect x
    artifact put content --agent a --name x.md
    artifact get a/x.md -o out
    artifact list
    artifact log a/x.md
    artifact diff a/x.md
    version create -m x
    version list
    version rollback 1
    version prune --keep 1
    context set k 1 --as a
    context set k 1
    context get
    context need add a a/x.md
    context assemble a --task-context task.yaml
    context why a/x.md
    execution list
    access allow a artifact a/x.md
    access load rules.toml
    access test rules.toml
    access list
    goal resume
    goal probe check
    goal probe list
    goal start G --from plan.md --yes
    goal start G
    goal next
    goal record Bash ls
    goal add y
    goal say hello
    goal brief
    goal tree
    goal compare
    goal recover
    goal recover --plan
    goal resume --take-over
    record
    receive --max-body 0
    record --store run.jsonl
    record --store logs/new.jsonl
    import
    import .
    import run.jsonl --store new.db
    export -o exported.jsonl
    export -o out
    verify
    verify --store run.jsonl
    index
    watch run.jsonl
    check .
    check run.jsonl --format github --report checked
    report run.jsonl -o run.html
    report --all-sessions -o pages
    browse run.jsonl
    formats
    install --list
    install claude-code --scope project --dry-run --client-version 2.1.330
    uninstall claude-code --scope project
    hook claude-code
    mcp --read-only
    trust --show
    trust --list
    trust --revoke
    config list
    config explain store
    completion bash
    stats
    sql SELECT+1
    ship run.jsonl --store shipped.db
    ship --status
    store migrate
    store init
    store grant alice --team one --reader
    store revoke alice
    store teams
    tap
    schema exits
    demo
    """.strip().splitlines()
]


def _contents(folder: Path) -> dict[str, str]:
    """Return every file and link below a folder with a digest of it."""
    found: dict[str, str] = {}
    for above, folders, names in os.walk(folder):
        for name in (*folders, *names):
            place = Path(above) / name
            kept = os.readlink(place) if place.is_symlink() else place.read_bytes() if place.is_file() else b""
            found[str(place.relative_to(folder))] = hashlib.sha256(os.fsencode(kept)).hexdigest()
    return found


class Machine:
    """A home, a checkout, and a place outside of both that the tricks aim at."""

    def __init__(self, folder: Path) -> None:
        self.home, self.checkout, self.outside = folder / "home", folder / "checkout", folder / "outside"
        self.temporary = folder / "tmp"
        for each in (self.home, self.checkout, self.outside, self.temporary, self.home / ".local" / "state"):
            each.mkdir(parents=True)
        (self.outside / "file").write_text("precious\n", "utf-8")
        self.log = folder / "trace"

    def run(self, lines: list[list[str]], folder: Path | None = None) -> list[int]:
        """Run the command lines in the checkout under the tracer; return their exit codes."""
        script = self.log.with_suffix(".json")
        script.write_text(json.dumps(lines), "utf-8")
        cache, state = self.home / ".cache", self.home / ".local" / "state"
        environment = {
            "HOME": str(self.home), "PATH": os.environ["PATH"], "TMPDIR": str(self.temporary), "LANG": "C.UTF-8",
            "PYTHONPATH": str(HERE / "tracer"), "CTXMGR_TRACE": str(self.log), "PYTHONDONTWRITEBYTECODE": "1",
            "CTXMGR_TRACE_ALLOWED": f"{self.checkout}:{cache}:{state}:{self.temporary}",
            "CTXMGR_TRACE_OUTSIDE": str(self.outside),
            **dict.fromkeys(KEYS, "sk-secret"),
        }  # fmt: skip
        cache.mkdir(exist_ok=True)
        ran = subprocess.run(
            [sys.executable, str(HERE / "driver.py"), str(script)], cwd=folder or self.checkout, env=environment,
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    def seen(self) -> list[list[str]]:
        """Return what the tracer logged."""
        return [json.loads(line) for line in self.log.read_text("utf-8").splitlines()]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return an empty machine."""
    return Machine(tmp_path)


def test_all_commands_are_tried() -> None:
    """No command is left out."""
    assert {words[0] for words in LINES} == set(COMMANDS)


@pytest.mark.slow
def test_the_tracer_sees_what_it_looks_for(machine: Machine) -> None:
    """A program, a file outside and a connection are each logged, and a file outside is seen by comparing too."""
    before = _contents(machine.outside)
    assert machine.run([["control"]]) == [0]

    assert {kind for kind, _, _ in machine.seen()} == {"command", "write", "connection"}
    assert _contents(machine.outside) != before


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_a_checkout_gets_nothing(world: str, machine: Machine) -> None:
    """Whatever a checkout holds: commands run 0, files written outside 0, connections 0, keys sent 0, nothing hangs."""
    WORLDS[world](machine.checkout, machine.outside)
    before = _contents(machine.outside)

    codes = machine.run(LINES)

    assert machine.seen() == []
    assert _contents(machine.outside) == before
    kept = [path for path in machine.home.rglob("*") if path.is_file() and not {".cache", "anchors", "ship"} & set(path.parts)]
    assert kept == []
    orderly = {0, *range(2, 9), 10, 11, 12, 20, 21, 22}
    assert [
        (words, code) for words, code in zip(LINES, codes, strict=True) if code not in orderly and words[0] != "watch"
    ] == []


@pytest.mark.slow
def test_what_the_user_grants_is_done(machine: Machine) -> None:
    """The same checkout, trusted: its commands run and its store is used, so that the tests above could have failed."""
    WORLDS["settings"](machine.checkout, machine.outside)
    environment = ["goal", "probe", "check"]

    codes = machine.run([["trust"], environment, ["record"]])

    assert codes == [0, 0, 0]
    assert (machine.outside / "pwned").is_file()
    assert (machine.outside / "store" / "history.db").is_file()
    assert {kind for kind, _, _ in machine.seen()} >= {"command", "write"}


@pytest.mark.slow
def test_a_probe_that_is_pulled_after_the_trust_does_not_run(machine: Machine, tmp_path: Path) -> None:
    """The settings are trusted as they are; what a pull brings into the goal's files is not."""
    WORLDS["settings"](machine.checkout, machine.outside)
    assert machine.run([["trust"], ["goal", "probe", "check"]]) == [0, 0]
    (machine.outside / "pwned").unlink()
    other = Machine(tmp_path / "other") if (tmp_path / "other").mkdir() is None else None
    assert other is not None
    WORLDS["settings"](other.checkout, machine.outside)
    (other.checkout / "check.sh").write_text('#!/bin/sh\nenv > "$1" #\n', "utf-8")
    shutil.copytree(other.checkout, machine.checkout, dirs_exist_ok=True, ignore=shutil.ignore_patterns("ctxmgr.toml", "pipe"))
    machine.run([["goal", "probe", "add", "later", "--", "touch", str(machine.outside / "later")]])
    machine.log.unlink()

    machine.run([["goal", "resume"], ["goal", "probe", "check"]])

    assert "check.sh" not in machine.log.read_text("utf-8")
    assert not (machine.outside / "later").exists()
