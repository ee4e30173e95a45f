"""A model on 127.0.0.1 for real clients: it asks for one shell command after another until it reads a word of ctxmgr.

``python scripted_model.py COMMANDS FOLDER``: the commands as a JSON list; every request's body is kept in the folder, in
order. The port is printed when it listens. It speaks Anthropic's Messages and OpenAI's Responses, by the streams of
``fixtures/make_runs/fake_model.py``, which stands beside it on the path, OpenAI's chat completions, and Gemini's API. A
command is waited for as long as the client allows, and where Codex says that it still runs, waited for again.
"""

from __future__ import annotations

import itertools
import json
import re
import secrets
import sys
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any, cast

MARK = "[ctxmgr] "
MOVED_ON = "I was told, and go another way."
DONE = "That was all."
SHELLS = ("bash", "run_shell_command", "shell")
_LONGEST_WAIT = 600
_RUNNING = re.compile(r"running with session ID (\d+)")


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

    def do_GET(self) -> None:
        """Name the models."""
        listed = [{"id": "scripted-model", "object": "model"}]
        self._whole({"object": "list", "data": listed})

    def do_POST(self) -> None:
        """Keep the request, and answer it as a stream of server-sent events."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        given: dict[str, Any] = json.loads(body)
        if "GenerateContent" in self.path or "generateContent" in self.path:
            self._gemini(given, body)
        elif self.path.endswith("/chat/completions"):
            self._chat(given, body)
        else:
            self._named(given, body)

    def _keep(self, body: bytes) -> None:
        model = cast("Model", self.server)
        (model.folder / f"{next(model.numbers):03}.json").write_bytes(body)

    def _next(self, given: dict[str, Any], spoken: list[Any], results: int, tools: list[dict[str, Any]]) -> tuple[str, Any]:
        """Return what is said, or a call of the client's shell with the fields that it requires."""
        text, calls = cast("Model", self.server).step(json.dumps(spoken, ensure_ascii=False), results)
        shell = next((each for each in tools if each.get("name") in SHELLS), None)
        if not calls or shell is None:
            return text or DONE, None
        schema: dict[str, Any] = shell.get("parameters") or shell.get("parametersJsonSchema") or {}
        fields: dict[str, Any] = {name: _filler(schema["properties"][name]) for name in schema.get("required", [])}
        if "initial_wait" in schema["properties"]:
            fields["initial_wait"] = _LONGEST_WAIT
        return "", (shell["name"], {**fields, "command": calls[0][1]})

    def _chat(self, given: dict[str, Any], body: bytes) -> None:
        spoken: list[Any] = given["messages"]
        listed: list[dict[str, Any]] = given.get("tools") or []
        tools: list[dict[str, Any]] = [each.get("function", {}) for each in listed]
        if tools:  # a request for a title has none
            self._keep(body)
        text, call = self._next(given, spoken, sum(each.get("role") == "tool" for each in spoken), tools)
        name = secrets.token_hex(8)
        delta: dict[str, Any] = {"role": "assistant", "content": text}
        if call is not None:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            delta["tool_calls"] = [{"index": 0, "id": f"call_{name}", "type": "function", "function": function}]
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        shared = {"id": f"c{name}", "object": "chat.completion.chunk", "created": 1, "model": "scripted-model"}
        end = "stop" if call is None else "tool_calls"
        if not given.get("stream"):
            choice = {"index": 0, "message": delta, "finish_reason": end}
            self._whole({**shared, "object": "chat.completion", "choices": [choice], "usage": usage})
            return
        first = {**shared, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        over: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": end}
        last: dict[str, Any] = {**shared, "choices": [over], "usage": usage}
        self._stream(f"data: {json.dumps(each)}\n\n" for each in (first, last))
        self.wfile.write(b"data: [DONE]\n\n")

    def _gemini(self, given: dict[str, Any], body: bytes) -> None:
        spoken: list[Any] = given["contents"]
        groups: list[dict[str, Any]] = given.get("tools") or []
        tools: list[dict[str, Any]] = [each for group in groups for each in group.get("functionDeclarations", [])]
        if tools:
            self._keep(body)
        results = sum("functionResponse" in part for turn in spoken for part in turn["parts"])
        text, call = self._next(given, spoken, results, tools)
        part: dict[str, Any] = {"text": text} if call is None else {"functionCall": {"name": call[0], "args": call[1]}}
        answer = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 9, "candidatesTokenCount": 9, "totalTokenCount": 18}
        whole = {"candidates": [answer], "usageMetadata": usage, "modelVersion": "scripted-model"}
        if "stream" in self.path:
            self._stream([f"data: {json.dumps(whole)}\n\n"])
        else:
            self._whole(whole)

    def _whole(self, answer: dict[str, Any]) -> None:
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, lines: Iterable[str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for line in lines:
            self.wfile.write(line.encode())

    def _named(self, given: dict[str, Any], body: bytes) -> None:
        fake: Any = import_module("fake_model")
        model = cast("Model", self.server)
        spoken: list[Any] = given.get("messages") or given.get("input") or []
        self._keep(body)
        text = json.dumps([spoken, given.get("system"), given.get("instructions")], ensure_ascii=False)
        results = text.count('"tool_use_id"') + sum(str(each.get("type")).endswith("_call_output") for each in spoken)
        results -= sum(each.get("name") == "write_stdin" for each in spoken)
        step, name, size = model.step(text, results), secrets.token_hex(8), len(body) // 4
        running = _RUNNING.search(str(spoken[-1].get("output"))) if MARK not in text else None
        stream: Iterator[dict[str, Any]]
        if "messages" in given:
            stream = fake.claude_stream(step, name, "", size)
        elif running is not None:
            stream = _polling(int(running[1]), name)
        else:
            stream = fake.codex_stream(step, name, size)
        self._stream(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in stream)


def _polling(session: int, name: str) -> Iterator[dict[str, Any]]:
    """Yield the Responses events that wait for what still runs in Codex."""
    given = json.dumps({"session_id": session, "chars": "", "yield_time_ms": 300_000})
    item = {"type": "function_call", "name": "write_stdin", "call_id": f"call_{name}", "arguments": given}
    usage = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}
    yield {"type": "response.created", "response": {"id": f"resp_{name}"}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {"id": f"resp_{name}", "output": [item], "usage": usage}}


def _filler(schema: dict[str, Any]) -> Any:
    """Return a value that a tool's schema takes."""
    known: dict[str, Any] = {
        "string": "a step",
        "boolean": False,
        "integer": 30_000,
        "number": 30_000,
        "array": [],
        "object": {},
    }
    return schema["enum"][0] if "enum" in schema else known.get(str(schema.get("type")).lower(), "a step")


if __name__ == "__main__":
    server = Model(json.loads(sys.argv[1]), Path(sys.argv[2]))
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()
