"""``mcp``: serve the tools to agents that speak the Model Context Protocol."""

from __future__ import annotations

import os
import secrets
import sys
from typing import Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.envelope import say
from ctxmgr.cli.invocation import current_agent
from ctxmgr.cli.output import Shown, fail
from ctxmgr.errors import InvalidInput

TOKEN = "CTXMGR_MCP_TOKEN"
"""Environment variable of the token that HTTP clients must send."""


def mcp(
    http: Annotated[
        int | None, typer.Option("--http", metavar="PORT", help="Serve HTTP on 127.0.0.1 instead of stdin and stdout.")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Record nothing: no notes, no answers.")] = False,
    store: o.Store = None,
) -> None:
    """Serve the history to an agent over the Model Context Protocol: is this run stuck, what to do next, what was tried.

    It speaks over stdin and stdout. With --http it listens on this machine alone, and a client must send the token of
    CTXMGR_MCP_TOKEN as a bearer token; without that variable a new token is made and printed to stderr. With --as the
    access rules of that agent hold. Needs the mcp extra: pip install 'ctxmgr-cli[mcp]'.

    Examples:
      ctxmgr mcp
      ctxmgr mcp --store run.jsonl --read-only
      ctxmgr mcp --http 8765 --as reviewer
    """
    try:
        from ctxmgr.mcp_server.server import build_server, serve_http
    except ImportError:
        fail("mcp", Shown(), InvalidInput("mcp needs the mcp extra", "pip install 'ctxmgr-cli[mcp]'"))
    from ctxmgr.mcp_server.tools import Tools

    server = build_server(Tools(store, current_agent(), read_only))
    if http is None:
        if sys.stdin.isatty():
            say("ctxmgr: waiting for a client on stdin; an agent starts this command itself. Ctrl-C ends it.")
        server.run("stdio")
        return
    token = os.environ.get(TOKEN) or secrets.token_urlsafe(24)
    say(f"ctxmgr: http://127.0.0.1:{http}/mcp" + ("" if os.environ.get(TOKEN) else f", bearer token {token}"))
    serve_http(server, http, token)
