"""A model on 127.0.0.1 for real clients: it asks for one shell command after another until it reads a word of ctxmgr.

``python scripted_model.py COMMANDS FOLDER``: the commands as a JSON list; every request's body is kept in the folder, in
order. The port is printed when it listens. It speaks Anthropic's Messages and OpenAI's Responses, by the streams of
``fixtures/make_runs/fake_model.py``, which stands beside it on the path.
"""

from __future__ import annotations

import itertools
import json
import secrets
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any, cast

MARK = "[ctxmgr] "
MOVED_ON = "I was told, and go another way."
DONE = "That was all."


class Model(ThreadingHTTPServer):
    """What the clients talk to."""

    daemon_threads = True

    def __init__(self, commands: list[str], folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.commands = commands
        self.folder = folder
        self.numbers = itertools.count(1)

    def step(self, spoken: str, results: int) -> tuple[str, tuple[tuple[str, ...], ...]]:
        """Return what is said, and the calls that are asked for."""
        if MARK in spoken:
            return MOVED_ON, ()
        if results >= len(self.commands):
            return DONE, ()
        return "", (("run", self.commands[results], "a step"),)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the standard library
        """Say nothing."""

    def do_POST(self) -> None:
        """Keep the request, and answer it as a stream of server-sent events."""
        fake: Any = import_module("fake_model")
        model = cast("Model", self.server)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        given: dict[str, Any] = json.loads(body)
        spoken: list[Any] = given.get("messages") or given.get("input") or []
        (model.folder / f"{next(model.numbers):03}.json").write_bytes(body)
        text = json.dumps([spoken, given.get("system"), given.get("instructions")], ensure_ascii=False)
        results = text.count('"tool_use_id"') + sum(str(each.get("type")).endswith("_call_output") for each in spoken)
        step, name, size = model.step(text, results), secrets.token_hex(8), len(body) // 4
        claude = "messages" in given
        stream: Iterator[dict[str, Any]] = (
            fake.claude_stream(step, name, "", size) if claude else fake.codex_stream(step, name, size)
        )
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in stream:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())


if __name__ == "__main__":
    server = Model(json.loads(sys.argv[1]), Path(sys.argv[2]))
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()
