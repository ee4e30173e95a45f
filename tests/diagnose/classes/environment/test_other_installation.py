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


SATISFIED = "Requirement already satisfied: my-ledger in /usr/lib/python3/dist-packages (1.2)"


@pytest.mark.parametrize(
    ("install", "said", "run", "words"),
    [
        ("pip install my-ledger", SATISFIED, "pytest -q", ["`/usr/lib/python3/dist-packages`", "`PYTHON -m pytest`"]),
        ("pip install my-ledger", DONE, "make test", ["pip is of another interpreter", "`PYTHON -m pip install my_ledger`"]),
        ("pip install my-ledger", "ERROR: No matching distribution found for my-ledger", "pytest -q", []),
        ("pip install my-ledger --target vendor", DONE, "pytest -q", []),
        ("pip install my-ledger-tools", "Successfully installed my-ledger-tools-1.2", "pytest -q", []),
        ("pip install my-ledger", DONE, "tox -e py311", []),
    ],
)
def test_what_pip_has_and_the_call_has_not_points_to_a_second_interpreter(
    install: str, said: str, run: str, words: list[str]
) -> None:
    """Pip's own words show it, and those alone; a program that chooses an environment itself is another matter."""
    text = told(install, run, said=said)

    assert bool(text) == bool(words)
    assert [each for each in words if each not in text] == []


def test_what_was_removed_since_is_not_installed() -> None:
    """The last word of pip counts."""
    assert diagnose(evidence(bash("pip install my-ledger", DONE), bash("pip uninstall -y my-ledger", "ok"),
                             *[failed("pytest -q", MISSING)] * 4)) is None  # fmt: skip


def test_a_python_under_which_the_program_works_has_the_module() -> None:
    """What passed shows more than pip's word; what failed too shows nothing."""
    steps = [bash("pip install my-ledger", SATISFIED), *[failed("pytest -q", MISSING)] * 4]
    found = diagnose(evidence(*steps, bash("python3 -m pytest -q tests", "12 passed"), loop=5))
    mended = diagnose(evidence(*steps, bash("pip install x", DONE), bash("python3 -m pytest", "12 passed"), loop=6))
    other = diagnose(evidence(*steps, failed("python3 -m pytest -q tests", "Segmentation fault"), loop=5))

    assert found is not None
    assert "Use `python3 -m pytest` in the place of `pytest`" in found.next_step
    assert "in the place of" not in (mended.next_step if mended is not None else "")
    assert other is not None
    assert "pip is of another interpreter" in other.cause
