"""Which model is asked, from what, and what is said of where the history would go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.base.light_dataclass import replace
from ctxmgr.errors import InvalidInput
from ctxmgr.recover.model.config import ModelChoice, chosen, describe, resolve
from ctxmgr.types.operations import ModelRequest

LOCAL = "http://127.0.0.1:11434/v1"


def _resolved(flag: str | None = None, **given_: Any) -> ModelChoice:
    known: dict[str, Any] = {"base_url": None, "mode": None, "environment": {}, "table": {}}
    choice = resolve(flag, **{**known, **given_})
    assert choice is not None
    return choice


def test_the_flag_comes_first() -> None:
    """A flag outweighs the environment, and that the configuration."""
    environment, table = {"CTXMGR_MODEL": "openai:second"}, {"name": "openai:third"}

    assert _resolved("openai:first", environment=environment, table=table).name == "openai:first"
    assert _resolved(environment=environment, table=table).name == "openai:second"
    assert _resolved(table=table).name == "openai:third"


@pytest.mark.parametrize("environment", [{}, {"OPENAI_API_KEY": "sk-1", "ANTHROPIC_API_KEY": "sk-2"}, {"CTXMGR_MODEL": ""}])
def test_a_key_chooses_nothing(environment: Mapping[str, str]) -> None:
    """Without a named model there is none, whatever keys lie in the environment."""
    assert resolve(None, None, None, environment, {}) is None


@pytest.mark.parametrize("off", ["none", "None", " NONE "])
def test_none_turns_the_model_off(off: str) -> None:
    """The word none ends the search, also before a model that is named less strongly."""
    assert resolve(off, LOCAL, None, {"CTXMGR_MODEL": "openai:x"}, {"name": "openai:y"}) is None
    assert resolve(None, None, None, {"CTXMGR_MODEL": off}, {"name": "openai:y"}) is None


def test_the_configuration_sets_everything() -> None:
    """The table's settings arrive in the choice."""
    table = {
        "name": "small",
        "base_url": LOCAL + "/",
        "mode": "lead",
        "timeout": 12.5,
        "max_tokens": 5_000,
        "max_tool_calls": 3,
    }

    choice = _resolved(table=table)

    assert choice == ModelChoice(name="small", base_url=LOCAL, mode="lead", seconds=12.5, max_tokens=5_000, max_tool_calls=3)


def test_an_address_belongs_to_its_name() -> None:
    """A provider named by a flag is not looked for at the configuration's address; a bare name can only be meant for it."""
    table = {"name": "small", "base_url": LOCAL}

    assert _resolved("anthropic:claude", table=table).base_url is None
    assert _resolved("other", table=table).base_url == LOCAL
    assert _resolved("other", base_url="http://127.0.0.1:1/v1", table=table).base_url == "http://127.0.0.1:1/v1"
    assert _resolved(base_url="http://127.0.0.1:1/v1", table=table).base_url == "http://127.0.0.1:1/v1"


@pytest.mark.parametrize(
    ("name", "model"),
    [("openai:gpt", "gpt"), ("openai-chat:gpt", "gpt"), ("ollama:qwen:7b", "qwen:7b"), ("qwen:7b", "qwen:7b"), ("m", "m")],
)
def test_a_server_gets_the_name_it_knows(name: str, model: str) -> None:
    """With an address the provider falls away; a colon inside a model's own name stays."""
    assert _resolved(name, base_url=LOCAL).name == model


@pytest.mark.parametrize("name", ["ollama:mistral:7b", "openai:anthropic:x", "tiny"])
def test_a_limit_of_a_call_changes_nothing_else(name: str) -> None:
    """With a limit of its own a call asks the same model at the same address, whatever the server calls it."""
    plain = chosen(ModelRequest(name=name, base_url=LOCAL), {}, {"max_tokens": 2_000})
    bounded = chosen(ModelRequest(name=name, base_url=LOCAL, seconds=5, max_tool_calls=3), {}, {"max_tokens": 2_000})

    assert plain is not None
    assert bounded == replace(plain, seconds=5.0, max_tool_calls=3)


def test_a_key_goes_only_where_it_belongs() -> None:
    """A named server gets its own key; OpenAI's only when its dialect was named with it. It is never shown."""
    environment = {"OPENAI_API_KEY": "sk-openai", "CTXMGR_API_KEY": "sk-own"}

    assert _resolved("m", base_url=LOCAL, environment=environment).api_key == "sk-own"
    assert _resolved("m", base_url=LOCAL, environment={"OPENAI_API_KEY": "sk-openai"}).api_key is None
    assert _resolved("openai:m", base_url=LOCAL, environment={"OPENAI_API_KEY": "sk-openai"}).api_key is None
    for server in ("https://api.openai.com/v1", "https://eu.api.openai.com/v1"):
        assert _resolved("openai:m", base_url=server, environment={"OPENAI_API_KEY": "sk-openai"}).api_key == "sk-openai"
    for server in (
        "http://api.openai.com/v1",
        "https://api.openai.com.evil.org/v1",
        "https://evilopenai.com",
        "https://127.0.0.1",
    ):
        assert _resolved("openai:m", base_url=server, environment={"OPENAI_API_KEY": "sk-openai"}).api_key is None


def test_a_file_names_the_key_of_its_server() -> None:
    """A server that a file names gets the key that is named beside it, none that was set for another server."""
    environment = {"CTXMGR_API_KEY": "sk-own", "MINE": "sk-mine"}
    table = {"name": "m", "base_url": LOCAL}

    assert _resolved(table=table, environment=environment).api_key is None
    assert _resolved(table={**table, "key_variable": "MINE"}, environment=environment).api_key == "sk-mine"
    assert _resolved(table={**table, "key_variable": "CTXMGR_API_KEY"}, environment=environment).api_key == "sk-own"
    elsewhere = {**environment, "CTXMGR_BASE_URL": "http://127.0.0.1:9/v1"}
    taken = _resolved(table={**table, "key_variable": "MINE"}, environment=elsewhere)  # the environment's server, and its key
    assert (taken.base_url, taken.api_key) == ("http://127.0.0.1:9/v1", "sk-own")
    assert _resolved("m", base_url=LOCAL, environment=elsewhere).api_key is None
    assert _resolved("m", base_url="http://127.0.0.1:9/other", environment=elsewhere).api_key == "sk-own"
    for wrong in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "A B", "", 5):
        with pytest.raises(InvalidInput):
            _resolved(table={**table, "key_variable": wrong}, environment={"OPENAI_API_KEY": "sk-openai"})
    assert "sk-own" not in repr(_resolved("m", base_url=LOCAL, environment=environment))


@pytest.mark.parametrize(
    ("flag", "given_", "said"),
    [
        ("gpt-5", {}, "which provider"),
        ("openai:", {}, "no model"),
        ("openai:", {"base_url": LOCAL}, "no name"),
        ("two words:x", {}, "no name of a model"),
        ("openai:x\n", {"mode": "loud"}, "no mode"),
        (None, {"base_url": LOCAL}, "no model is named"),
        ("m", {"base_url": "127.0.0.1:80"}, "no address"),
        ("m", {"base_url": "ftp://127.0.0.1"}, "no address"),
        ("m", {"base_url": "http://[::1"}, "no address"),
        ("m", {"base_url": "http://h:99999999"}, "no address"),
        ("m", {"base_url": "http://me:secret@h/v1"}, "credentials"),
        ("m", {"base_url": "https://evil.example%2f.openai.com/v1"}, "no address"),
        ("m", {"base_url": "https://evil.example\\.openai.com/v1"}, "no address"),
        ("m", {"base_url": "https://evil.example;.openai.com/v1"}, "no address"),
        ("m", {"base_url": "https://evil.example%00.openai.com/v1"}, "no address"),
        ("m", {"base_url": "http://h/v1?key=secret"}, "more than an address"),
        ("anthropic:m", {"base_url": LOCAL}, "dialect"),
        ("m", {"table": {"nome": "x"}}, "no setting"),
        ("m", {"table": {"name": 7}}, "must be text"),
        ("m", {"table": {"timeout": True}}, "must be a number"),
        ("m", {"table": {"timeout": float("nan")}}, "must be a number"),
        ("m", {"table": {"max_tokens": 10}}, "whole number"),
        ("m", {"table": {"max_tool_calls": 1.5}}, "whole number"),
    ],
)
def test_what_cannot_be_used_is_refused(flag: str | None, given_: dict[str, Any], said: str) -> None:
    """A refusal says what is wrong and what to do, and gives no secret away."""
    with pytest.raises(InvalidInput, match=said) as refused:
        _resolved(flag, **given_)

    assert refused.value.hint
    assert "secret" not in refused.value.message


@pytest.mark.parametrize(
    ("choice", "environment", "host", "leaves", "encrypted"),
    [
        (ModelChoice("m", LOCAL), {}, "127.0.0.1:11434", False, False),
        (ModelChoice("m", LOCAL), {"HTTP_PROXY": "http://p"}, "127.0.0.1:11434", False, False),
        (ModelChoice("m", "http://[::1]:8/v1"), {}, "::1:8", False, False),
        (ModelChoice("m", "https://localhost/v1"), {}, "localhost", False, True),
        (ModelChoice("m", "http://10.0.0.7/v1"), {}, "10.0.0.7", True, False),
        (ModelChoice("m", "https://localhost.example.com/v1"), {}, "localhost.example.com", True, True),
        (ModelChoice("anthropic:c"), {}, None, True, True),
        (ModelChoice("ollama:c"), {"OLLAMA_BASE_URL": LOCAL}, "127.0.0.1:11434", False, False),
        (ModelChoice("ollama:c"), {"OLLAMA_BASE_URL": LOCAL, "http_proxy": "http://p"}, "127.0.0.1:11434", True, False),
        (ModelChoice("openai-chat:c"), {"OPENAI_BASE_URL": "https://gate/v1"}, "gate", True, True),
    ],
)
def test_it_says_where_the_history_goes(
    choice: ModelChoice, environment: Mapping[str, str], host: str | None, leaves: bool, encrypted: bool
) -> None:
    """The destination names the host, and whether the history leaves this machine, encrypted or not."""
    found = describe(choice, environment)

    assert (found.host, found.leaves, found.encrypted) == (host, leaves, encrypted)
    assert ("leaves" in found.text) == leaves
    assert ("unencrypted" in found.text) == (leaves and not encrypted)


@given(st.text(), st.none() | st.text(), st.none() | st.text())
def test_any_text_is_used_or_refused(name: str, base_url: str | None, mode: str | None) -> None:
    """No name, address or mode does anything but give a choice, none, or a refusal."""
    try:
        choice = resolve(name, base_url, mode, {}, {})
    except InvalidInput:
        return
    assert choice is None or describe(choice, {}).text.isprintable()
