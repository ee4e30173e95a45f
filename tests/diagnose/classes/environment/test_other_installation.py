"""A module that is installed where the failing call does not look: in a virtual environment."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.classes.environment.other_installation import diagnose
from tests.diagnose.build import Call, bash, evidence, failed

MISSING = "ModuleNotFoundError: No module named 'my_ledger'"
DONE = "Installing collected packages: my-ledger\nSuccessfully installed my-ledger-1.2"


def told(install: str, run: str, *before: Call, said: str = DONE) -> str:
    """Return the next step where something was installed and a call fails; empty where nothing is said."""
    found = diagnose(evidence(*before, bash(install, said), *[failed(run, MISSING)] * 4))
    return "" if found is None else f"{found.cause}\n{found.next_step}"


@pytest.mark.parametrize(
    ("install", "run", "step"),
    [
        (".venv/bin/pip install my-ledger", "python report.py", "`.venv/bin/python report.py`"),
        (".venv/bin/python -m pip install my-ledger", "/usr/bin/python3 -m report", "`.venv/bin/python -m report`"),
        ("source env/bin/activate && pip install -r requirements.txt", "python3.11 a.py", "`env/bin/python a.py`"),
        ("/opt/tools/bin/pip3 install my-ledger", "cd src && python a.py", "`cd src && /opt/tools/bin/python a.py`"),
        (".venv/bin/pip install my-ledger", "pytest -q", "`. .venv/bin/activate && pytest -q`"),
        (".venv/bin/pip install my-ledger", "other/bin/python a.py", "`. .venv/bin/activate && other/bin/python a.py`"),
    ],
)
def test_a_call_outside_of_the_environment_is_told_how_to_run_inside(install: str, run: str, step: str) -> None:
    """The command itself is named, with the environment's Python or within the environment."""
    said = told(install, run)

    assert "installed in the environment" in said
    assert said.endswith(f"{step}.")


@pytest.mark.parametrize(
    ("install", "run", "said"),
    [
        (".venv/bin/pip install my-ledger", ".venv/bin/python report.py", DONE),
        ("pip install my-ledger", "python report.py", DONE),
        ("/usr/bin/pip3 install my-ledger", "python3 report.py", DONE),
        (".venv/bin/pip install other", "python report.py", "Successfully installed other-1.2 ledger-2"),
        (".venv/bin/pip install my-ledger", "uv run report.py", DONE),
        (".venv/bin/pip install my-ledger", "docker run image python report.py", DONE),
    ],
)
def test_what_the_environment_does_not_explain_is_left_alone(install: str, run: str, said: str) -> None:
    """The same environment, none, another package, and tools that choose an environment themselves."""
    assert "installed in the environment" not in told(install, run, said=said)


def test_a_shell_that_was_activated_may_still_be() -> None:
    """Shells of some agents live on between calls, so the environment may be the very one that runs the call."""
    assert "installed in the environment" not in told(
        ".venv/bin/pip install my-ledger", "python report.py", bash("source .venv/bin/activate")
    )
