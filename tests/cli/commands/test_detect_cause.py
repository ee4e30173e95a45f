"""``detect`` names the cause beside a finding: to people in words, to programs as ``diagnosis``."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.console import run
from tests.cli.paths import both

FIXTURES = Path(__file__).parents[3] / "fixtures"
STUCK = FIXTURES / "diagnose" / "make-no-target.jsonl"
UNKNOWN = FIXTURES / "diagnose" / "near-assertion-in-test.jsonl"
HEALTHY = FIXTURES / "diagnose" / "near-healthy.jsonl"
CAUSE = "Makefile has no target `integration-test`. It has `integration-tests`, the nearest name."


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lie in a folder with copies of the logs: an index may be kept beside them."""
    for log in (STUCK, UNKNOWN, HEALTHY):
        shutil.copy(log, tmp_path / log.name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_people_read_cause_and_next_step(logs: Path) -> None:
    """The cause stands first, then the step and what to check."""
    ran = run("detect", STUCK.name)
    told = " ".join(ran.out.split())

    assert ran.code == 10
    assert CAUSE in told
    assert "next step Run `make integration-tests` instead." in told
    assert told.index("cause") < told.index("next step") < told.index("check") < told.index("last progress")


def test_programs_get_the_diagnosis(logs: Path) -> None:
    """Its shape is pinned; quotes name entries of the session."""
    (finding,) = run("detect", STUCK.name, "--json").envelope["data"][0]["findings"]
    found = finding["diagnosis"]

    assert list(found) == ["kind", "cause", "evidence", "nextStep", "check", "confidence"]
    assert (found["kind"], found["confidence"]) == ("unknownName", "high")
    assert CAUSE in found["cause"]
    assert found["nextStep"] == "Run `make integration-tests` instead."
    listed = {row["id"] for row in run("list", STUCK.name, "--json").envelope["data"]}
    assert found["evidence"]
    assert {quote["entry"] for quote in found["evidence"]} <= listed


def test_an_unknown_cause_is_told_as_that_and_what_is_over_has_none(logs: Path) -> None:
    """Where the record shows no cause the look that tells most stands there; where a person has spoken since, it is null."""
    (unknown,) = run("detect", UNKNOWN.name, "--json").envelope["data"][0]["findings"]
    last = json.loads(STUCK.read_text(encoding="utf-8").splitlines()[-1])
    words = {"v": 1, "kind": "event", "session": last["session"], "ts": last["ts"], "id": "w", "type": "user_message"}
    with (logs / STUCK.name).open("a", encoding="utf-8") as log:
        log.write(json.dumps({**words, "agent": "user", "data": {"text": "Stop, I will look."}}) + "\n")
    (over,) = run("detect", STUCK.name, "--json").envelope["data"][0]["findings"]

    assert (unknown["diagnosis"]["kind"], unknown["diagnosis"]["confidence"]) == ("unknown", "low")
    assert "Not known why" in unknown["diagnosis"]["cause"]
    assert unknown["diagnosis"]["nextStep"].startswith("Read `test_calc.py` around line 7")
    assert "likely cause" not in run("detect", UNKNOWN.name).out
    assert over["resolved"] == "user"
    assert over["diagnosis"] is None


@pytest.mark.parametrize("log", [STUCK.name, UNKNOWN.name, HEALTHY.name])
def test_the_quick_path_says_the_same(log: str, logs: Path) -> None:
    """The fast path and the other answer byte for byte the same."""
    assert both(["detect", log, "--json", "--exit-zero"]).was_quick


@pytest.mark.parametrize(("log", "loaded"), [(HEALTHY.name, False), (STUCK.name, True)])
def test_healthy_sessions_load_no_diagnosis(log: str, loaded: bool, logs: Path) -> None:
    """Only what lasts is diagnosed, and only then are the failure classes loaded."""
    code = (
        "import sys\nsys.argv = ['ctxmgr', 'detect', sys.argv[1], '--json', '--exit-zero']\nfrom ctxmgr.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\nsys.stderr.write(str('ctxmgr.diagnose.classes' in sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code, log], capture_output=True, text=True, check=False)

    assert ran.stderr.splitlines()[-1].endswith(str(loaded))
