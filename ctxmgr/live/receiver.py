"""Receive OTLP as JSON: an HTTP endpoint with limits on body, connections, memory and time, and the recorder of its exports.

Threads serve the connections, but they only read and answer. The thread that runs `Receiver.run` records everything. A program
gets its answer after its export was written. `TelemetryRecorder` reads an export with the importer that reads such exports
from files.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import queue
import socket
import threading
import time
import zlib
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from ctxmgr.errors import Busy, CtxmgrError, InvalidInput, StorageFailed
from ctxmgr.history.ingest import append_foreign
from ctxmgr.importers.base import Log
from ctxmgr.importers.otlp import OTLP, SpanReader, is_export
from ctxmgr.log.codec import Record
from ctxmgr.store import Store
from ctxmgr.types.import_report import FileCount

PATHS = ("/v1/traces", "/v1/logs")
# Each connection may have a body of the largest size, so this limits the memory.
MAX_CONNECTIONS = 8
MAX_SECONDS = 30.0
"""Time limit of a whole request: reading, recording, answering."""

_CHUNK = 1 << 16
_IDLE = 5.0  # seconds without an export after which new records are indexed
_PROTOCOL = "set OTEL_EXPORTER_OTLP_PROTOCOL=http/json"
# A page can make its own name resolve to this machine (DNS rebinding). The browser then sends that name as Host.
_LOCAL = ("localhost", "127.0.0.1", "::1")

Take = Callable[[dict[str, Any]], int]
"""Function that records an export; see `TelemetryRecorder.take`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Largest size in bytes of a request's body, both compressed and uncompressed."""

    body: int = 16 << 20


class _RefusedError(Exception):
    """A request is refused, with a status and a sentence for its sender."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server at this address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Receiver:
    """The server, its threads, and the queue to the thread that records.

    Attributes:
        refused: the number of refused requests by status.
    """

    def __init__(self, host: str, port: int, *, token: str | None = None, limits: Limits | None = None) -> None:
        """Listen.

        Args:
            host: the address to listen on. An address that other machines can reach needs a token.
            port: the port to listen on; 0 for any free port.
            token: the bearer token that programs must send.
            limits: the limits of a request.

        Raises:
            InvalidInput: the address needs a token, is invalid, or is in use.
        """
        if token is None and not is_loopback(host):
            raise InvalidInput(f"other machines reach {host}, so a token is needed", "set CTXMGR_RECEIVE_TOKEN")
        self.token, self.limits, self.guards_host = token, limits or Limits(), token is None
        self.refused: dict[int, int] = {}
        # As many bodies as connections can wait, so memory is limited however slow the store is.
        self._work: queue.Queue[tuple[bytes, Future[None]]] = queue.Queue(MAX_CONNECTIONS)
        self._ending = threading.Event()
        self._seats = threading.BoundedSemaphore(MAX_CONNECTIONS)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET

        class Server(ThreadingHTTPServer):
            address_family = family
            # A client that never ends its request must not keep this program from ending.
            daemon_threads = True
            # The library's default of five would refuse some of many programs that start together.
            request_queue_size = 64
            receiver = self

            def process_request(self, request: Any, client_address: Any) -> None:
                """Serve a connection when a seat is free. Others wait in the system's queue."""
                if not self.receiver.seat():
                    self.shutdown_request(request)
                    return
                super().process_request(request, client_address)

            def process_request_thread(self, request: Any, client_address: Any) -> None:
                """Serve a connection within the time limit."""
                # The socket's own timeout applies to each read. A client that sends single bytes would never exceed it.
                alarm = threading.Timer(MAX_SECONDS, _cut, (request,))
                alarm.daemon = True
                alarm.start()
                try:
                    super().process_request_thread(request, client_address)
                finally:
                    alarm.cancel()
                    self.receiver.leave()

            def handle_error(self, request: Any, client_address: Any) -> None:
                """Print nothing if a client has disconnected."""

        try:
            self._server = Server((host, port), _Handler)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise InvalidInput(f"can't listen on {host} port {port}: {why}", "name another with --port") from None
        shown = f"[{host}]" if ":" in host else host
        self.address = f"http://{shown}:{self._server.server_address[1]}"

    def seat(self) -> bool:
        """Wait for a free seat. Return whether there was one in time."""
        if not self._seats.acquire(timeout=MAX_SECONDS):
            return False
        is_ending = self._ending.is_set()
        # `_finish` waits for every seat, and nobody would free this one.
        if is_ending:
            self.leave()
        return not is_ending

    def leave(self) -> None:
        """Free a seat."""
        self._seats.release()

    def stop(self) -> None:
        """Accept no more requests. `run` ends after the accepted ones are recorded. A signal handler may call this."""
        self._ending.set()

    def run(self, take: Take, idle: Callable[[], object]) -> None:
        """Receive and record until `stop` is called.

        Args:
            take: function that records an export.
            idle: called after new records, when no export has come for a while.
        """
        serving = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
        serving.start()
        last: float | None = None
        while not self._ending.is_set():
            if self._next(take, 0.2):
                last = time.monotonic()
            elif last is not None and time.monotonic() - last > _IDLE:
                idle()
                last = None
        # `shutdown` waits for the serving loop, which may itself wait for a seat that only `_finish` frees.
        threading.Thread(target=self._server.shutdown, daemon=True).start()
        self._finish(take)
        self._server.socket.close()

    def _finish(self, take: Take) -> None:
        """Record the remaining exports until all serving threads have ended, that is, until this thread has every seat."""
        until, free = time.monotonic() + MAX_SECONDS, 0
        while free < MAX_CONNECTIONS and time.monotonic() < until:
            if not self._next(take, 0.05) and self._seats.acquire(blocking=False):
                free += 1
        # Record exports of threads that waited too long and gave up, too.
        while self._next(take, 0.05):
            continue

    def _next(self, take: Take, patience: float) -> bool:
        try:
            body, done = self._work.get(timeout=patience)
        except queue.Empty:
            return False
        try:
            value: object = json.loads(body)
            if not isinstance(value, dict):
                raise InvalidInput("this is no JSON object", "send an OTLP export")
            take(cast("dict[str, Any]", value))
        except (ValueError, RecursionError):  # 400, after which exporters do not retry
            done.set_exception(_RefusedError(400, "the body is no JSON\n"))
        except (StorageFailed, Busy) as error:  # 503, after which exporters wait and retry
            done.set_exception(_RefusedError(503, f"{error.message}; send it again later\n"))
        except CtxmgrError as error:
            done.set_exception(_RefusedError(400, f"{error.message}\n"))
        except Exception:  # no export may stop the server
            done.set_exception(_RefusedError(500, "a fault in ctxmgr itself\n"))
        else:
            done.set_result(None)
        return True

    def record(self, body: bytes) -> None:
        """Queue a body and wait until it is recorded.

        Raises:
            _RefusedError: the body was not recorded.
        """
        done: Future[None] = Future()
        try:
            self._work.put((body, done), timeout=MAX_SECONDS)
            done.result(timeout=MAX_SECONDS)
        except (queue.Full, TimeoutError):
            raise _RefusedError(503, "too busy; send it again later\n") from None


def _cut(request: socket.socket) -> None:
    """Close a connection that takes too long."""
    try:
        request.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


class _Handler(BaseHTTPRequestHandler):
    """Serves one request of a connection."""

    server_version, sys_version = "ctxmgr", ""
    # Seconds for one read of the socket. `MAX_SECONDS` applies to the whole request.
    timeout = 10.0

    @property
    def _receiver(self) -> Receiver:
        return cast("Any", self.server).receiver

    def do_POST(self) -> None:
        """Receive an export."""
        try:
            self._allow()
            body = self._body()
            self._receiver.record(body)
        except _RefusedError as refusal:
            self._receiver.refused[refusal.status] = self._receiver.refused.get(refusal.status, 0) + 1
            self._answer(refusal.status, "text/plain; charset=utf-8", refusal.words.encode())
        except (OSError, ValueError):  # the client has disconnected, or sent no valid request, so there is nobody to answer
            self.close_connection = True
        else:
            self._answer(200, "application/json", b'{"partialSuccess":{}}')

    def do_GET(self) -> None:
        """Answer 405 with a sentence that says what this server does."""
        words = f"ctxmgr receives OTLP here, by POST to {' and '.join(PATHS)}\n"
        self._answer(405, "text/plain; charset=utf-8", words.encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, the library's name
        """Print nothing, because a line for each request would hide the lines that a person should read."""

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        if status == 503:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _allow(self) -> None:
        """Refuse unauthorised senders, and requests that can't be read.

        Raises:
            _RefusedError: the request is refused; the error says what to do instead.
        """
        receiver = self._receiver
        if self.headers.get("Origin") is not None:  # only browsers send it, and no exporter runs in one
            raise _RefusedError(403, "pages in a browser may not send here\n")
        # The part before an "@" is a user's name: localhost@evil.example is not a name of this machine.
        host = self.headers.get("Host", "").rpartition("@")[2].lower()
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        # Any page can make its own name resolve to this machine (DNS rebinding). Only the Host header then shows that the
        # browser's request is not local.
        if receiver.guards_host and name not in _LOCAL:
            raise _RefusedError(403, f"{name or 'no host'} is not a name of this machine\n")
        if receiver.token is not None:
            given = self.headers.get("Authorization", "").removeprefix("Bearer ")
            # The duration of the comparison must not reveal how much of a guess is right.
            if not hmac.compare_digest(given.encode("utf-8", "replace"), receiver.token.encode()):
                raise _RefusedError(401, "a token is needed: OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20TOKEN\n")
        path = self.path.partition("?")[0].rstrip("/")
        if path == "/v1/metrics":
            raise _RefusedError(404, "metrics are not recorded: set OTEL_METRICS_EXPORTER=none\n")
        if path not in PATHS:
            raise _RefusedError(404, f"nothing is received here but {' and '.join(PATHS)}\n")
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise _RefusedError(415, f"{kind or 'no content type'}: only OTLP as JSON is received; {_PROTOCOL}\n")

    def _body(self) -> bytes:
        """Return the uncompressed body.

        Raises:
            _RefusedError: the body is too long, or can't be read.
        """
        limit = self._receiver.limits.body
        coding = self.headers.get("Content-Encoding", "identity").strip().lower()
        if coding not in ("identity", "gzip", "x-gzip"):
            raise _RefusedError(415, f"{coding}: bodies may be compressed with gzip alone\n")
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            body = self._chunks(limit)
        else:
            stated = self.headers.get("Content-Length", "")
            # `int` raises for numbers of more than 4,300 digits, which a header may contain.
            if not stated.isdecimal() or len(stated) > 15:
                raise _RefusedError(411, "the length of the body is not stated\n")
            if int(stated) > limit:
                raise _too_long(limit)
            body = self.rfile.read(int(stated))
            if len(body) < int(stated):
                raise _RefusedError(400, "the body ended too early\n")
        return body if coding == "identity" else _unzip(body, limit)

    def _chunks(self, limit: int) -> bytes:
        body = bytearray()
        while True:
            size = self.rfile.readline(_CHUNK).split(b";")[0].strip()
            try:
                # Nine hex digits are already 64 GiB.
                length = int(size, 16) if len(size) < 10 else limit + 1
            except ValueError:
                raise _RefusedError(400, "the body is not chunked as it says\n") from None
            if length < 0 or len(body) + length > limit:
                raise _too_long(limit)
            if length == 0:
                break
            part = self.rfile.read(length)
            if len(part) < length:
                raise _RefusedError(400, "the body ended too early\n")
            body += part
            self.rfile.readline(_CHUNK)
        while self.rfile.readline(_CHUNK).strip():  # trailers, up to an empty line
            continue
        return bytes(body)


def _too_long(limit: int) -> _RefusedError:
    return _RefusedError(413, f"a body of more than {limit:,} bytes is not received: let the program send smaller batches\n")


def _unzip(body: bytes, limit: int) -> bytes:
    # One byte over the limit is enough to detect a bomb without unpacking it. 16 makes zlib expect a gzip header.
    reader = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        found = reader.decompress(body, limit + 1)
    except zlib.error:
        raise _RefusedError(400, "the body is no gzip data\n") from None
    if len(found) > limit:
        raise _too_long(limit)
    if not reader.eof:
        raise _RefusedError(400, "the body ended too early\n")
    return found


MOST_REMEMBERED = 50_000
"""Maximum spans, and maximum other ids, that are remembered to recognise repeated or late ones."""


@dataclass(slots=True)
class ReceiveCounts:
    """Counts of received data: exports, spans and log records in them, and new records made from them."""

    exports: int = 0
    spans: int = 0
    records: int = 0


@dataclass(slots=True)
class TelemetryRecorder:
    """Turns exports into records of a store, one export after another.

    Spans may come in any order, in any number of exports, and more than once. Records that can't be written are kept and
    written with the next export. The program is asked to send its export again, and nothing counts twice.
    """

    store: Store
    received: ReceiveCounts = field(default_factory=ReceiveCounts)
    _log: Log = field(init=False)
    _reader: SpanReader = field(init=False)
    _waiting: list[Record] = field(default_factory=lambda: list[Record]())

    def __post_init__(self) -> None:
        place = Path(OTLP.name)
        self._log = Log(OTLP.name, place, FileCount(place))
        self._reader = SpanReader(self._log)

    def take(self, export: dict[str, Any]) -> int:
        """Record an export, and return the number of new records. They are written when this returns.

        Raises:
            InvalidInput: it is not an export of spans or log records.
            StorageFailed, Busy: nothing was written; the same export may be passed again.
        """
        if not is_export(export):
            raise InvalidInput("this is no OTLP export of traces or logs", "it needs resourceSpans or resourceLogs")
        added = self._write()
        self.received.spans += self._reader.read(export)
        self._reader.finish()
        self._waiting += self._log.take(live=True)
        self._reader.release_contents()
        added += self._write()
        self._reader.forget(MOST_REMEMBERED)
        self.received.exports += 1
        return added

    def _write(self) -> int:
        """Write the waiting records. Return the number of new ones."""
        log = self._log
        added = append_foreign(self.store, self._waiting, log.count).added if self._waiting else 0
        self._waiting.clear()
        log.turn_to(log.path, FileCount(log.path))
        self.received.records += added
        return added
