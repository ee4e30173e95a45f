"""The fixture ``ctxmgr_guard``: a looping run fails its test with the text for the agent, a healthy one does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = """
import json
from pathlib import Path

def call(recorder, command, error=None):
    with recorder.action("coder", "Bash", input={"command": command}) as step:
        step.output = command
        if error:
            step.fail(error)

def test_healthy(ctxmgr_guard):
    for number in range(6):
        call(ctxmgr_guard.recorder, f"cat file{number}")

def test_loops(ctxmgr_guard):
    for _ in range(5):
        call(ctxmgr_guard.recorder, "make build", "missing separator")

def test_watched(ctxmgr_guard):
    ctxmgr_guard.watch(Path(__file__).with_name("run.jsonl"))

def test_records_nothing(ctxmgr_guard):
    assert not ctxmgr_guard.path.exists()
"""
LOOP = "".join(
    f'{{"v":1,"kind":"entry","session":"s","ts":"2026-01-22T10:00:0{number}Z","id":"e{number}","agent":"a","action":"Bash",'
    f'"input":"ls x","result":{{}}}}\n'
    f'{{"v":1,"kind":"result","session":"s","ts":"2026-01-22T10:00:0{number}.5Z","entry":"e{number}","status":"error",'
    '"error":{"type":"Exit","message":"no x"}}\n'
    for number in range(5)
)


def test_a_looping_run_fails_its_test(tmp_path: Path) -> None:
    """Of four tests the two whose runs loop fail, and say why and what next."""
    (tmp_path / "test_agent.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "run.jsonl").write_text(LOOP, encoding="utf-8")

    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", str(tmp_path)],
        capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False,
    )  # fmt: skip

    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "4 passed, 2 errors" in ended.stdout
    for name in ("test_loops", "test_watched"):
        assert f"ERROR test_agent.py::{name} - Failed: the agent's run is stuck (loop)" in ended.stdout
    assert "[ctxmgr] You are going in circles: 5 times" in ended.stdout
    assert "`make build`" in ended.stdout
    assert "Traceback" not in ended.stdout


def test_the_plugin_loads_nothing_of_the_project() -> None:
    """The module is loaded at every start of pytest, so it must not cost those who never ask for the fixture."""
    script = (
        "import sys, ctxmgr.integrations.pytest_plugin; "
        "print(sorted(name for name in sys.modules if name.startswith(('ctxmgr.', 'pydantic'))))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)

    assert ended.stdout.strip() == "['ctxmgr.integrations', 'ctxmgr.integrations.pytest_plugin']"
