"""The OTLP endpoint: who may send, what is refused and with which words, limits, and an end that loses nothing."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import Busy, InvalidInput
from ctxmgr.live import receiver as module
from ctxmgr.live.receiver import MAX_CONNECTIONS, Limits, Receiver
from ctxmgr.types.operations import DetectRequest
from ctxmgr.workspace import Workspace

EXPORT = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [{
    "timeUnixNano": "1795360393000000000", "attributes": [
        {"key": "event.name", "value": {"stringValue": "codex.user_prompt"}}, {"key": "prompt", "value": {"stringValue": "hi"}},
        {"key": "conversation.id", "value": {"stringValue": "s-1"}},
    ],
}]}]}]}).encode()  # fmt: skip
SAMPLE = Path(__file__).parents[2] / "fixtures" / "formats" / "otlp" / "codex_logs.jsonl"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(autouse=True)
def _loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this machine be reached, and nothing else."""
    plain: Callable[[socket.socket, Any], None] = vars(socket.socket.__mro__[1])["connect"]

    def near(self: socket.socket, address: Any) -> None:
        assert address[0] in ("127.0.0.1", "::1")
        plain(self, address)

    monkeypatch.setattr(socket.socket, "connect", near)

    def address(host: str, port: int, *_: object, **__: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]

    monkeypatch.setattr(socket, "getaddrinfo", address)


@contextmanager
def serving(take: Callable[[dict[str, Any]], int], seats: int = 2, **how: Any) -> Generator[Receiver]:
    """Run a receiver in a thread for as long as the block lasts; at its end it waits a moment for each of its seats."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_CONNECTIONS", seats)
        receiver = Receiver("127.0.0.1", 0, **how)
        running = threading.Thread(target=receiver.run, args=(take, lambda: None))
        running.start()
        try:
            yield receiver
        finally:
            receiver.stop()
            running.join(30)
            assert not running.is_alive()


def asked(receiver: Receiver, path: str, body: bytes | None, headers: dict[str, str], method: str = "POST") -> tuple[int, str]:
    """Return status and body of an answer."""
    host, _, port = receiver.address.removeprefix("http://").rpartition(":")
    connection = HTTPConnection(host, int(port), timeout=20)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode()
    connection.close()
    return found


def test_an_export_is_answered_when_it_is_recorded() -> None:
    """Both paths, plain, compressed and in chunks."""
    taken: list[dict[str, Any]] = []
    with serving(lambda export: taken.append(export) or 1) as receiver:
        for path, body, headers in (
            ("/v1/logs", EXPORT, JSON),
            ("/v1/traces/", gzip.compress(EXPORT), {**JSON, "Content-Encoding": "gzip"}),
            ("/v1/logs", EXPORT, {"Content-Type": "application/json; charset=utf-8"}),
        ):
            assert asked(receiver, path, body, headers) == (200, '{"partialSuccess":{}}')
        host, _, port = receiver.address.removeprefix("http://").rpartition(":")
        connection = HTTPConnection(host, int(port), timeout=20)
        connection.request("POST", "/v1/logs", iter([EXPORT[:9], EXPORT[9:]]), JSON, encode_chunked=True)
        assert connection.getresponse().status == 200
    assert taken == [json.loads(EXPORT)] * 4


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "words"),
    [
        ("/v1/traces", b"\n\x0f", {"Content-Type": "application/x-protobuf"}, 415, "OTEL_EXPORTER_OTLP_PROTOCOL=http/json"),
        ("/v1/traces", EXPORT, {}, 415, "no content type"),
        ("/v1/logs", EXPORT, {**JSON, "Content-Encoding": "zstd"}, 415, "gzip alone"),
        ("/v1/metrics", EXPORT, JSON, 404, "OTEL_METRICS_EXPORTER=none"),
        ("/v1/profiles", EXPORT, JSON, 404, "/v1/traces"),
        ("/v1/logs", b"{", JSON, 400, "no JSON"),
        ("/v1/logs", b"[" * 3_900, JSON, 400, "no JSON"),
        ("/v1/logs", b"[]", JSON, 400, "no JSON object"),
        ("/v1/logs", gzip.compress(EXPORT)[:-9], {**JSON, "Content-Encoding": "gzip"}, 400, "too early"),
        ("/v1/logs", b"xx", {**JSON, "Content-Encoding": "gzip"}, 400, "no gzip"),
        ("/v1/logs", b" " * 5_000, JSON, 413, "smaller batches"),
        ("/v1/logs", gzip.compress(b" " * 5_000_000), {**JSON, "Content-Encoding": "gzip"}, 413, "smaller batches"),
        ("/v1/logs", EXPORT, {**JSON, "Origin": "http://example.org"}, 403, "browser"),
        ("/v1/logs", EXPORT, {**JSON, "Host": "example.org"}, 403, "example.org"),
    ],
)
def test_what_is_not_received_is_refused_in_words(
    path: str, body: bytes, headers: dict[str, str], status: int, words: str
) -> None:
    """Each answer says what to do instead; nothing is recorded, and the next one is served."""
    with serving(lambda _: pytest.fail("nothing is to be recorded"), limits=Limits(4_000)) as receiver:
        code, said = asked(receiver, path, body, headers)
        assert (code, words in said) == (status, True), said
        assert receiver.refused == {status: 1}
        assert asked(receiver, "/", None, {}, "GET")[0] == 405


def test_other_machines_need_a_token() -> None:
    """Without one it does not listen beyond this machine; with one nobody is heard who does not send it."""
    with pytest.raises(InvalidInput, match="token"):
        Receiver("0.0.0.0", 0)
    with serving(lambda _: 1, token="s3cret") as receiver:
        assert asked(receiver, "/v1/logs", EXPORT, JSON)[0] == 401
        assert asked(receiver, "/v1/logs", EXPORT, {**JSON, "Authorization": "Bearer s3cre"})[0] == 401
        assert asked(receiver, "/v1/logs", EXPORT, {**JSON, "Authorization": "Bearer s3cret", "Host": "box"})[0] == 200


def test_an_address_that_is_taken_is_an_error_that_says_so() -> None:
    """It names the option that helps."""
    with serving(lambda _: 1) as receiver, pytest.raises(InvalidInput) as error:
        Receiver("127.0.0.1", int(receiver.address.rpartition(":")[2]))
    assert "--port" in (error.value.hint or "")


def test_a_program_is_told_to_send_again_what_was_not_written() -> None:
    """A busy store and a fault of ours are answered, and the next export is served."""
    faults: list[Exception] = [Busy("another process writes"), RuntimeError("a fault")]

    def take(_: dict[str, Any]) -> int:
        if faults:
            raise faults.pop(0)
        return 1

    with serving(take) as receiver:
        assert [asked(receiver, "/v1/logs", EXPORT, JSON)[0] for _ in range(3)] == [503, 500, 200]


@pytest.mark.slow
def test_who_sends_slowly_or_nothing_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection is cut after its time, however it goes on; more of them than there are seats wait their turn."""
    monkeypatch.setattr(module, "MAX_SECONDS", 4.0)
    with serving(lambda _: 1, MAX_CONNECTIONS) as receiver:
        port = int(receiver.address.rpartition(":")[2])
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(module.MAX_CONNECTIONS)]
        silent[0].sendall(b"POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n")
        assert asked(receiver, "/v1/logs", EXPORT, JSON)[0] == 200
        for each in silent:
            each.close()


def test_the_command_records_live_and_ends_in_order_with_nothing_lost(tmp_path: Path) -> None:
    """What was answered is in the store while it runs, and after SIGTERM; detect sees the loop at once."""
    store = tmp_path / "history.db"
    running = subprocess.Popen(
        [sys.executable, "-m", "ctxmgr", "receive", "--port", "0", "--store", str(store), "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ),
    )  # fmt: skip
    assert running.stderr is not None
    port = int(running.stderr.readline().split(b" at http://127.0.0.1:")[1].split()[0])
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    for line in SAMPLE.read_bytes().splitlines():
        connection.request("POST", "/v1/logs", line, JSON)
        assert connection.getresponse().read() == b'{"partialSuccess":{}}'
        connection.close()
    with Workspace.open(str(store), readonly=True) as workspace:
        assert workspace.detect(DetectRequest()).verdicts[0].verdict == "loop"
    running.send_signal(signal.SIGTERM)
    out, _ = running.communicate(timeout=30)
    answer = json.loads(out)
    assert (running.returncode, answer["status"], answer["data"]["exports"]) == (0, "ok", 5)
    with Workspace.open(str(store), readonly=True) as workspace:
        assert len(list(workspace.store.sessions.records(None))) == answer["data"]["added"]


def test_a_request_under_way_is_recorded_when_the_end_comes() -> None:
    """Whoever was let in is served before the receiver ends."""
    taken: list[dict[str, Any]] = []
    receiver = Receiver("127.0.0.1", 0)

    def take(export: dict[str, Any]) -> int:
        taken.append(export)
        return 1

    running = threading.Thread(target=receiver.run, args=(take, list[None]))
    running.start()
    port = int(receiver.address.rpartition(":")[2])
    client = socket.create_connection(("127.0.0.1", port))
    head = (
        f"POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(EXPORT)}\r\n\r\n"
    )
    client.sendall(head.encode() + EXPORT[:20])
    time.sleep(0.5)
    receiver.stop()
    time.sleep(0.3)
    client.sendall(EXPORT[20:])
    assert client.recv(1000).startswith(b"HTTP/1.0 200")
    running.join(30)
    client.close()
    assert len(taken) == 1


def test_a_seat_that_comes_free_at_the_end_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waited for a connection when the end came gets none, and leaves every seat free."""
    receiver = Receiver("127.0.0.1", 0)
    receiver.stop()
    assert [receiver.seat() for _ in range(MAX_CONNECTIONS)] == [False] * MAX_CONNECTIONS
    monkeypatch.setattr(module, "MAX_SECONDS", 3_600)

    def take(export: dict[str, Any]) -> int:
        return len(export)

    running = threading.Thread(target=receiver.run, args=(take, list[None]), daemon=True)
    running.start()
    running.join(20)
    assert not running.is_alive()
