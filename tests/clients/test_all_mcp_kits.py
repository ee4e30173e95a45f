"""The server of tools against the protocol's own kits from npm: the Inspector, and the scenarios of the conformance suite."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.store import open_store
from tests import builders as b
from tests.clients.npm_cache import BIN, PATH, install

pytestmark = pytest.mark.clients

PACKAGES = ("@modelcontextprotocol/inspector@2.12.0", "@modelcontextprotocol/conformance@0.1.16")
SECONDS = 120
TOKEN = "0123456789abcdef"

CALLS: dict[str, dict[str, Any]] = {
    "stuck_check": {"session": "stuck"},
    "continuation": {"session": "stuck"},
    "tried_before": {"action": "Bash", "input": "make build", "session": "stuck"},
    "history_search": {"query": "separator"},
    "history_list": {"session": "stuck", "limit": 2},
    "history_show": {"index": -1, "session": "stuck"},
    "history_trace": {"action": "Bash", "session": "stuck"},
    "history_messages": {"session": "stuck"},
    "context_request": {"type": "introspect", "agent": "main", "reason": "lost", "goal": "a green build", "session": "stuck"},
    "note_add": {"entries": "[1]", "text": "the tab is missing", "session": "stuck"},
    "memory_retain": {"text": "make wants a tab", "session": "stuck"},
    "memory_recall": {"query": "tab"},
}
SCENARIOS = (
    "server-initialize", "ping", "tools-list", "tools-call-error", "resources-list", "prompts-list",
    "server-sse-multiple-streams", "dns-rebinding-protection",
)  # fmt: skip
"""Those that ask for nothing but the protocol. The others want tools, resources and prompts of fixed names, or what is optional
and not offered: levels of a log, completion, subscriptions, sampling, elicitation."""

SERVE = """
import sys, uvicorn
from ctxmgr.mcp_server.server import LOOPBACK, build_server
from ctxmgr.mcp_server.tools import Tools
app = build_server(Tools(sys.argv[1])).streamable_http_app(host=LOOPBACK)
uvicorn.run(app, host=LOOPBACK, port=0, log_level="info")
"""
"""Without the token: the suite can't send one."""


@pytest.fixture(scope="session", autouse=True)
def _installed() -> None:
    install(PACKAGES, ("mcp-inspector", "conformance"))


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Return the path of a store with a looping session."""
    path = str(tmp_path / "history.db")
    with closing(open_store(path, create=True)) as opened:
        opened.append(b.steps("stuck", ["> Make it green.", *["!Bash:make build -> missing separator on line 7"] * 4]))
    return path


@contextmanager
def _served(command: list[str], address: str, **environment: str) -> Generator[str]:
    """Start a server and yield its URL, which it says on stderr."""
    own = {**os.environ, **environment}
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=own) as server:
        try:
            assert server.stderr is not None
            found = next(match for line in server.stderr if (match := re.search(address, line)))
            yield found[0]
        finally:
            server.kill()


def _inspect(*arguments: str) -> Any:
    command = [str(BIN / "mcp-inspector"), "--cli", *arguments, "--connect-timeout", str(1000 * SECONDS)]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=SECONDS, env={**os.environ, "PATH": PATH}
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return json.loads(ran.stdout)


def test_the_inspector_calls_every_tool(store: str) -> None:
    """Each tool is listed and answers the Inspector over stdio with content of its schema, and so do resources and prompts."""
    server = (sys.executable, "-m", "ctxmgr", "mcp", "--store", store)
    listed = [tool["name"] for tool in _inspect(*server, "--method", "tools/list")["tools"]]
    assert sorted(listed) == sorted(CALLS)

    for name, given in CALLS.items():
        words = [f"{key}={value}" for key, value in given.items()]
        answer = _inspect(*server, "--method", "tools/call", "--tool-name", name, "--tool-arg", *words)
        answer = answer.get("result", answer)
        assert (name, answer.get("isError", False), bool(answer["structuredContent"])) == (name, False, True)

    templates = _inspect(*server, "--method", "resources/templates/list")["resourceTemplates"]
    assert {each["name"] for each in templates} == {"session", "entry", "continuation"}
    assert {each["name"] for each in _inspect(*server, "--method", "prompts/list")["prompts"]} == {"continue", "handoff"}


def test_the_inspector_needs_the_token_over_http(store: str) -> None:
    """The command itself, on a port of this machine: with the token it answers."""
    command = [sys.executable, "-m", "ctxmgr", "mcp", "--store", store, "--http", "18766"]
    with _served(command, r"http://127\.0\.0\.1:\d+/mcp", CTXMGR_MCP_TOKEN=TOKEN) as url:
        time.sleep(2)
        given = ("--transport", "http", "--header", f"Authorization: Bearer {TOKEN}", "--method", "tools/list")
        assert len(_inspect(url, *given)["tools"]) == len(CALLS)
        with pytest.raises(AssertionError):
            _inspect(url, "--transport", "http", "--method", "tools/list")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenarios_of_the_conformance_suite_pass(scenario: str, store: str, tmp_path: Path) -> None:
    """What the protocol asks of any server."""
    with _served([sys.executable, "-c", SERVE, store], r"http://127\.0\.0\.1:\d+") as url:
        command = [
            str(BIN / "conformance"),
            "server",
            "--url",
            f"{url}/mcp",
            "--scenario",
            scenario,
            "-o",
            str(tmp_path / "out"),
        ]
        ran = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=SECONDS, env={**os.environ, "PATH": PATH}
        )
    assert ran.returncode == 0, ran.stdout
