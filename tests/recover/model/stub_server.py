"""A stub server on 127.0.0.1 that speaks the chat completions dialect over real HTTP, well or badly.

Its "model" is a script: a list of lines as in `asking`, said one after the other, the last one again and again. It is no
language model and proves nothing about one; it proves what goes over the wire and what becomes of every fault.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import threading
from collections.abc import Generator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Line = dict[str, Any] | tuple[str, dict[str, Any]] | str
FAULTS = (
    "silent", "limited", "broken", "unauthorised", "unknown-model", "html", "bad-arguments", "no-choices", "cut-off",
    "uncounted", "redirect", "packed", "endless", "not-json", "huge-header", "wrong-types", "closes", "no-temperature",
)  # fmt: skip


class StubServer:
    """One server.

    Attributes:
        url: what ``--base-url`` is given.
        requests: the bodies of the requests so far.
        headers: their headers.
        released: set when the test is over, so that what was held back ends.
    """

    def __init__(self, lines: Sequence[Line], fault: str | None = None) -> None:
        self.lines = lines
        self.fault = fault
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.asked = threading.Event()
        self.released = threading.Event()
        handler = type("Handler", (_Handler,), {"stub": self})
        self.http = _Quiet(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"

    def said(self) -> dict[str, Any]:
        """Return the message for the newest request."""
        line = self.lines[min(len(self.requests), len(self.lines)) - 1]
        if isinstance(line, str):
            return {"role": "assistant", "content": line}
        name, given = line if isinstance(line, tuple) else ("continue_workflow", line)
        arguments = '{"target": "cod' if self.fault == "bad-arguments" else json.dumps(given)
        call = {"id": f"call_{len(self.requests)}", "type": "function", "function": {"name": name, "arguments": arguments}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}


@contextlib.contextmanager
def serving(lines: Sequence[Line], fault: str | None = None) -> Generator[StubServer]:
    """Serve until the block ends."""
    stub = StubServer(lines, fault)
    thread = threading.Thread(target=stub.http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        stub.released.set()
        stub.http.shutdown()
        stub.http.server_close()
        thread.join()


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of connections that the other side dropped."""


class _Handler(BaseHTTPRequestHandler):
    stub: StubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""

    def do_POST(self) -> None:
        stub = self.stub
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        stub.requests.append(json.loads(body))
        stub.headers.append({name.lower(): value for name, value in self.headers.items()})
        stub.asked.set()
        with contextlib.suppress(OSError):  # the other side may be gone
            getattr(self, "_" + (stub.fault or "well").replace("-", "_"), self._well)()

    def _well(self) -> None:
        self._send(200, self._completion())

    _bad_arguments = _well

    def _completion(self, finish: str | None = None) -> dict[str, Any]:
        message = self.stub.said()
        reason = finish or ("tool_calls" if message.get("tool_calls") else "stop")
        done: dict[str, Any] = {
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1_769_076_000, "model": "stub",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        }  # fmt: skip
        if self.stub.fault != "uncounted":
            done["usage"] = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        return done

    def _silent(self) -> None:
        self.stub.released.wait(60)

    def _limited(self) -> None:
        self._send(429, {"error": {"message": "slow down"}}, {"retry-after": "30"})

    def _broken(self) -> None:
        self._send(500, {"error": {"message": "boom\x1b[31m"}})

    def _unauthorised(self) -> None:
        self._send(401, {"error": {"message": "bad key", "code": "invalid_api_key"}})

    def _no_temperature(self) -> None:
        """Refuse a temperature as models that reason do; a request without one is answered."""
        if "temperature" not in self.stub.requests[-1]:
            return self._well()
        told = {"message": "Unsupported value: 'temperature' does not support 0.0 with this model.", "param": "temperature"}
        return self._send(400, {"error": told})

    def _unknown_model(self) -> None:
        self._send(404, {"error": {"message": "no such model", "code": "model_not_found"}})

    def _html(self) -> None:
        self._bytes(200, b"<html><body>Log in \x1b[2J</body></html>", {"content-type": "text/html"})

    def _not_json(self) -> None:
        self._bytes(200, b'{"choices": [', {"content-type": "application/json"})

    def _no_choices(self) -> None:
        self._send(200, {**self._completion(), "choices": []})

    def _wrong_types(self) -> None:
        self._send(
            200, {"id": 7, "choices": [{"message": {"content": ["x"], "tool_calls": "none"}, "index": "a"}], "usage": []}
        )

    def _cut_off(self) -> None:
        done = self._completion("length")
        call = done["choices"][0]["message"].get("tool_calls")
        if call:
            call[0]["function"]["arguments"] = call[0]["function"]["arguments"][:20]
        self._send(200, done)

    def _uncounted(self) -> None:
        self._send(200, self._completion())

    def _redirect(self) -> None:
        self._bytes(307, b"", {"location": "http://127.0.0.1:9/elsewhere"})

    def _packed(self) -> None:
        packed = gzip.compress(json.dumps(self._completion()).encode())
        self._bytes(200, packed, {"content-type": "application/json", "content-encoding": "gzip"})

    def _endless(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("connection", "close")
        self.end_headers()
        while not self.stub.released.is_set():
            self.wfile.write(b" " * 1_000_000)

    def _huge_header(self) -> None:
        self._bytes(200, b"{}", {"x-long": "x" * 1_000_000})

    def _closes(self) -> None:
        self.close_connection = True

    def _send(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self._bytes(status, json.dumps(body).encode(), {"content-type": "application/json", **(headers or {})})

    def _bytes(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
