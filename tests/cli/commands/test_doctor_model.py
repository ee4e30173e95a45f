"""What is said about the model before it is asked: which, by whose choice, where it is, and what it would read."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.cli.commands import doctor
from ctxmgr.cli.commands.doctor import check_model
from ctxmgr.types.setup import Check

SECRET = "sk-very-secret-0123456789"
CONFIG = Path("ctxmgr.toml")


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the extra count as installed, whether it is or not."""

    def found(name: str) -> ModuleSpec:
        return ModuleSpec(name, None)

    monkeypatch.setattr(doctor, "find_spec", found)


def told(
    flag: str | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    base_url: str | None = None,
    mode: str | None = None,
    table: Mapping[str, Any] | None = None,
) -> dict[str, Check]:
    """Return the checks of the model, by name."""
    checks = check_model(flag, base_url, mode, environment or {}, table or {}, CONFIG)
    return {check.name: check for check in checks}


def test_without_a_model_nothing_leaves_this_machine() -> None:
    """Nothing named means the rules alone, and that is in order."""
    (check,) = told().values()

    assert (check.level, check.detail["model"]) == ("ok", None)
    assert check.finding == "none: recovery goes by rules only; nothing leaves this machine"


def test_a_key_alone_chooses_no_model() -> None:
    """Keys in the environment are named, never shown, and change nothing."""
    found = told(environment={"OPENAI_API_KEY": SECRET, "ANTHROPIC_API_KEY": SECRET, "EMPTY_API_KEY": ""})

    assert found["model"].detail["model"] is None
    assert found["model.keys"].detail == {"names": ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"]}
    assert found["model.keys"].finding.endswith("a key alone never chooses a model")
    assert SECRET not in str(found)


@pytest.mark.parametrize(
    ("flag", "environment", "table", "by"),
    [
        ("openai:a", {"CTXMGR_MODEL": "openai:b"}, {"name": "openai:c"}, "--model"),
        (None, {"CTXMGR_MODEL": "openai:b"}, {"name": "openai:c"}, "CTXMGR_MODEL"),
        (None, {}, {"name": "openai:c"}, str(CONFIG)),
    ],
)
def test_what_chose_the_model_is_said(flag: str | None, environment: dict[str, str], table: dict[str, str], by: str) -> None:
    """The option comes before the environment, that before the configuration file."""
    detail = told(flag, environment, table=table)["model"].detail

    assert detail["chosenBy"] == by
    assert detail["model"] == {"--model": "a", "CTXMGR_MODEL": "b"}.get(by, "c")


@pytest.mark.parametrize(
    ("base_url", "leaves", "level"),
    [
        ("http://127.0.0.1:8080/v1", False, "ok"), ("http://localhost:8080/v1", False, "ok"),
        ("https://models.example/v1", True, "ok"), ("http://models.example/v1", True, "warn"),
    ],
)  # fmt: skip
def test_where_the_history_would_go_is_said(base_url: str, leaves: bool, level: str) -> None:
    """The host is named, whether it is this machine, and unencrypted ways out are warned of."""
    check = told("small", {"CTXMGR_API_KEY": SECRET}, base_url=base_url)["model"]

    assert (check.detail["leavesMachine"], check.level) == (leaves, level)
    assert base_url.split("/")[2] in check.finding
    assert check.detail["keySet"] is True
    assert SECRET not in str(check)


@pytest.mark.parametrize(("mode", "words"), [("tools", "in at most 12 requests"), ("lead", "one question")])
def test_what_would_be_sent_is_said(mode: str, words: str) -> None:
    """The most that a recovery would send is told in characters, for each way of asking."""
    check = told("small", base_url="http://127.0.0.1:1/v1", mode=mode)["model.sent"]

    assert "up to 24,000 characters" in check.finding
    assert words in check.finding
    assert check.detail["mode"] == mode


def test_a_model_without_its_extra_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is named but can't be asked fails as a recovery would, with the command that installs it."""

    def absent(_: str) -> None:
        return None

    monkeypatch.setattr(doctor, "find_spec", absent)
    check = told("openai:a")["model.extra"]

    assert (check.level, check.kind, check.hint) == ("fail", "invalid", "pip install 'ctxmgr-cli[llm]'")
    assert "model.extra" not in told()


def test_a_choice_that_can_not_be_used_fails() -> None:
    """A name without a provider or a server is a failure of usage, not a crash."""
    (check,) = told("small").values()

    assert (check.name, check.level, check.kind) == ("model", "fail", "invalid")
