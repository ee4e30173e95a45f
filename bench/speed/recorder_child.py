"""Record one entry in every way, in one process with the peers' libraries; prints what each took as JSON.

    python -m bench.speed.recorder_child FOLDER ROUNDS BURST

All rows take turns in batches within one run, so that a busy machine slows all of them. Peers are set up as their
documentation does it for a file of JSON lines. ``orjson`` is hidden from ours but where a row says otherwise.
"""

from __future__ import annotations

import json
import logging
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from ctxmgr.log import codec, ids, journal
from ctxmgr.log.codec import Record, chain, encode, seal
from ctxmgr.log.masking import mask
from ctxmgr.log.reader import read
from ctxmgr.recorder import Recorder

BARE, OURS, LOGGING, SPAN = "bare os.write", "Recorder.entry", "logging, JSON", "OpenTelemetry span"
WITH = " + orjson"
PART = "part: "
_BATCH = 50
_HOSTILE = 2_000_000  # bytes
_UNITS = (
    "_", "-", ".", "A", "S", "k", "AIza", "eyJ", "eyJ-", "eyJaaaaaa.", "sk-", "ghp_", "xoxb-", "token=", "api_key", "password=",
    "://a:", "bearer ", "authorization: ", "-----BEGIN PRIVATE KEY-----", "\\\\", "\\n", "@", "test_", "secret_key ",
)  # fmt: skip
"""Of what texts are made that would slow a careless masker down."""

NEITHER = ", neither"
_BARE_OF = {"mask": ", no mask", "chain": ", no chain", "both": NEITHER}

Call = Callable[[], object]
Calls = dict[str, Call | str]
"""Name of a row to what is measured, or to why it can't be."""


def main() -> int:
    """Measure and print."""
    folder, rounds, burst = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    record = _entry()
    body = encode(record)
    line = seal(body, chain("", body)) + b"\n"
    calls: Calls = {**_floors(folder, line), **_parts(record, body), **_ours(folder, record), **_peers(folder, record)}
    figures: dict[str, Any] = {
        "bytes": len(line),
        "times": _times({name: call for name, call in calls.items() if not isinstance(call, str)}, rounds),
        "missing": {name: call for name, call in calls.items() if isinstance(call, str)},
    }
    figures["mask"] = _hostile()
    figures["burst"] = {"ours": _burst(folder, burst), "OpenTelemetry": _spans(folder, burst)}
    sys.stdout.write(json.dumps(figures))
    return 0


def _entry() -> Record:
    """Return an entry of about one kilobyte whose text is a piece of a program, as most of what agents write."""
    text = Path(json.decoder.__file__).read_text(encoding="utf-8")[3_000:3_700]
    return {
        "v": 1, "kind": "entry", "session": ids.new_id(), "ts": ids.now(), "id": ids.new_id(), "agent": "coder",
        "action": "edit", "inputType": "object", "input": {"path": "src/main.py", "text": text}, "process": ids.new_id(),
    }  # fmt: skip


def _times(calls: dict[str, Call], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Return, for each batch, the median of the single calls and the processor's time of one, in seconds."""
    for name, call in calls.items():
        _put_in_place(name)
        for _ in range(_BATCH):
            call()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    order = list(calls)
    for _ in range(rounds):
        random.shuffle(order)
        for name in order:
            call, single = calls[name], list[int]()
            _put_in_place(name)
            used = time.thread_time_ns()
            for _ in range(_BATCH):
                began = time.perf_counter_ns()
                call()
                single.append(time.perf_counter_ns() - began)
            used = time.thread_time_ns() - used
            times[name].append((statistics.median(single) / 1e9, used / _BATCH / 1e9))
    return times


def _put_in_place(name: str) -> None:
    """Let the next calls run as the name of their row says: the encoder, the chain of sums."""
    loaded = sys.modules.pop("orjson", None)
    if loaded is not None and WITH in name:
        sys.modules["orjson"] = loaded
    codec.use_loaded_encoder()
    if loaded is not None:
        sys.modules["orjson"] = loaded
    setattr(journal, "chain", _no_chain if name.endswith((_BARE_OF["chain"], _BARE_OF["both"])) else chain)  # noqa: B010 -- another module's name


def _no_chain(previous: str, body: bytes) -> str:
    return "0123456789abcdef"


def _floors(folder: Path, line: bytes) -> Calls:
    descriptor = os.open(folder / "bare", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    return {BARE: lambda: os.write(descriptor, line)}


def _parts(record: Record, body: bytes) -> Calls:
    """Return what an append is made of, each apart."""
    descriptor = os.open(os.devnull, os.O_WRONLY)

    def locked() -> None:
        journal.flock(descriptor, journal.LOCK_EX | journal.LOCK_NB)
        journal.flock(descriptor, journal.LOCK_UN)

    return {
        f"{PART}encode": lambda: encode(record),
        f"{PART}mask": lambda: mask(body),
        f"{PART}chain and seal": lambda: seal(body, chain("0123456789abcdef", body)),
        f"{PART}id and time": ids.new_id_and_time,
        f"{PART}lock and unlock": locked,
    }


def _hostile() -> dict[str, Any]:
    """Return the slowest of many texts made to slow the masker down, against a plain scan of the same bytes."""
    worst: dict[str, Any] = {"seconds": 0.0}
    for unit in _UNITS:
        line = b'{"a":"' + unit.encode() * (_HOSTILE // len(unit)) + b'"}'
        began = time.process_time()
        line.lower().count(b"no such text")
        scan = time.process_time() - began
        began = time.process_time()
        mask(line)
        took = time.process_time() - began
        if took > worst["seconds"]:
            worst = {"unit": unit, "seconds": took, "scan": scan}
    return worst


def _ours(folder: Path, record: Record) -> Calls:
    calls: Calls = {}
    for encoder in ("", WITH):
        for parts in ("", _BARE_OF["mask"], _BARE_OF["chain"], _BARE_OF["both"]):
            name = f"{OURS}{encoder}{parts}"
            if encoder and _module("orjson") is None:
                calls[name] = "orjson is not installed"
                continue
            recorder = Recorder(folder / f"{name}.jsonl", mask=parts not in (_BARE_OF["mask"], _BARE_OF["both"]))
            calls[name] = lambda recorder=recorder: recorder.entry("coder", "edit", record["input"])
    return calls


def _peers(folder: Path, record: Record) -> Calls:
    return {
        LOGGING: _logging(folder, record),
        "structlog, default JSON": _structlog(folder, record, fast=False),
        "structlog, orjson, bytes": _structlog(folder, record, fast=True),
        "loguru, serialize": _loguru(folder, record),
        SPAN: _tracer(record),
    }


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


def _logging(folder: Path, record: Record) -> Call:
    class Formatter(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            body = {"ts": self.formatTime(record), "level": record.levelname, "message": record.getMessage()}
            return json.dumps({**body, **record.__dict__["entry"]})

    handler = logging.FileHandler(folder / "logging.jsonl")
    handler.setFormatter(Formatter())
    logger = logging.Logger("bench")
    logger.addHandler(handler)
    return lambda: logger.info("entry", extra={"entry": record})


def _structlog(folder: Path, record: Record, *, fast: bool) -> Call | str:
    structlog, orjson = _module("structlog"), _module("orjson")
    if structlog is None or (fast and orjson is None):
        return "not installed"
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    if fast:
        render = structlog.processors.JSONRenderer(serializer=orjson.dumps)
        made = structlog.BytesLogger((folder / "structlog-fast.jsonl").open("wb"))
    else:
        render = structlog.processors.JSONRenderer()
        made = structlog.WriteLogger((folder / "structlog.jsonl").open("w"))
    logger = structlog.wrap_logger(made, processors=[structlog.processors.add_log_level, stamp, render])
    logger = logger.bind()
    return lambda: logger.info("entry", **record)


def _loguru(folder: Path, record: Record) -> Call | str:
    loguru = _module("loguru")
    if loguru is None:
        return "not installed"
    loguru.logger.remove()
    loguru.logger.add(folder / "loguru.jsonl", serialize=True)
    bound = loguru.logger.bind
    return lambda: bound(**record).info("entry")


def _provider(out: Any) -> Any:
    """Return a provider of tracers that exports in batches, as the SDK's own exporter writes lines; None without the SDK."""
    sdk, exporting = _module("opentelemetry.sdk.trace"), _module("opentelemetry.sdk.trace.export")
    if sdk is None or exporting is None:
        return None
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # it warns of what it drops; here that is counted

    class Nowhere(exporting.SpanExporter):
        def export(self, spans: Any) -> Any:
            return exporting.SpanExportResult.SUCCESS

    def line(span: Any) -> str:
        return span.to_json(indent=None) + "\n"

    lines = out and exporting.ConsoleSpanExporter(out=out, formatter=line)
    provider = sdk.TracerProvider()
    provider.add_span_processor(exporting.BatchSpanProcessor(lines or Nowhere()))
    return provider


def _tracer(record: Record) -> Call | str:
    provider = _provider(None)  # what the caller pays is in question, so that the exporter costs nothing
    return "not installed" if provider is None else _span(provider.get_tracer("bench"), record)


def _span(tracer: Any, record: Record) -> Call:
    def span() -> None:
        with tracer.start_as_current_span("edit") as made:
            made.set_attribute("agent", "coder")
            made.set_attribute("input.path", record["input"]["path"])
            made.set_attribute("input.text", record["input"]["text"])

    return span


def _burst(folder: Path, count: int) -> int:
    """Return how many of so many events, written without a pause, are missing afterwards."""
    path = folder / "burst.jsonl"
    with Recorder(path, agent="coder") as recorder:
        for number in range(count):
            recorder.event("message", {"text": "go on", "number": number})
    kept = {line.record["data"]["number"] for line in read(path) if line.record.get("type") == "message"}
    return count - len(kept)


def _spans(folder: Path, count: int) -> int | None:
    path = folder / "spans.jsonl"
    with path.open("w", encoding="utf-8") as out:
        provider = _provider(out)
        if provider is None:
            return None
        span = _span(provider.get_tracer("bench"), _entry())
        for _ in range(count):
            span()
        provider.shutdown()
    with path.open("rb") as lines:
        return count - sum(1 for _ in lines)


if __name__ == "__main__":
    sys.exit(main())
