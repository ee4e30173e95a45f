"""The server itself: it answers as OpenAI-compatible servers do, and ends with the block that runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.llm.server import Server

pytestmark = pytest.mark.llm

_ASK = """
import sys
from bench.llm.histories import HISTORIES
from bench.llm.probe import lead, tool_call
from bench.llm.server import Server
server = Server(sys.argv[1], sys.argv[2], 0, 0.0)
assert lead(server, HISTORIES[0]).form
assert tool_call(server, HISTORIES[0]).seconds > 0
"""

_ROOT = Path(__file__).parents[2]


def test_a_schema_holds(server: Server) -> None:
    """An answer that a JSON schema constrains follows it, and tools may be offered."""
    ran = subprocess.run(
        [sys.executable, "-c", _ASK, server.base_url, server.model], cwd=_ROOT, capture_output=True, text=True, check=False
    )

    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_server_listens_on_this_machine_alone(server: Server) -> None:
    """The address is the loopback's, and the process is alive while it is used."""
    assert server.base_url.startswith("http://127.0.0.1:")
    os.kill(server.pid, 0)
