"""What recording one entry costs: against one bare write of the same bytes, and against loggers and tracers.

    python bench/recorder.py [--json] [--rounds N]

All rows take turns in batches within one run, so that a busy machine slows all of them. ``x write`` is, first, the ratio
of the medians of single calls; then the median of the ratios of CPU time, batch by batch, which counts what the kernel
does now and then (a new page of the file) and the clock around each call. Peers are measured where they can be imported,
as their documentation sets them up for a file of JSON lines. ``orjson`` is used by our own rows where it says so. Last
comes masking at its worst.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from ctxmgr import ids, journal, wire
from ctxmgr.journal import Journal
from ctxmgr.masking import mask
from ctxmgr.recorder import Recorder
from ctxmgr.wire import Record, chain, encode, seal

_BATCH = 50
_HOSTILE = 2_000_000  # bytes
_UNITS = (
    "_", "-", ".", "A", "S", "k", "AIza", "eyJ", "eyJ-", "eyJaaaaaa.", "sk-", "ghp_", "xoxb-", "token=", "api_key", "password=",
    "://a:", "bearer ", "authorization: ", "-----BEGIN PRIVATE KEY-----", "\\\\", "\\n", "@", "test_", "secret_key ",
)  # fmt: skip

Call = Callable[[], object]
Rows = dict[str, Call | str]
"""Name of a row to what is measured, or to why it can't be."""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    parser.add_argument("--rounds", type=int, default=100, help=f"batches of {_BATCH} calls of each row")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = {**_measured(Path(folder), options.rounds), "hostileMask": _hostile()}
    if options.json:
        print(json.dumps(figures))
        return 0
    print(
        f"one entry of {figures['bytes']:,} bytes, {options.rounds} rounds of {_BATCH} calls; load {os.getloadavg()[0]:.1f}\n"
    )
    print(f"{'':42}{'p50 µs':>8}{'p99 µs':>8}{'x write':>9}{'CPU µs':>9}{'x write':>9}")
    for name, row in figures["rows"].items():
        if isinstance(row, str):
            print(f"{name:42}{row:>16}")
        else:
            print(f"{name:42}{row['p50']:>8.2f}{row['p99']:>8.2f}{row['ratio']:>9.2f}{row['cpu']:>9.2f}{row['cpuRatio']:>9.2f}")
    worst = figures["hostileMask"]
    print(f"\nmasking {_HOSTILE // 1_000_000} MB of {worst['unit']!r}: {worst['ms']} ms, {worst['ratio']} x a plain scan")
    return 0


def _entry() -> Record:
    """Return an entry of about one kilobyte whose text is a piece of a program, as most of what agents write."""
    text = Path(json.decoder.__file__).read_text(encoding="utf-8")[3_000:3_700]
    return {
        "v": 1, "kind": "entry", "session": ids.new_id(), "ts": ids.now(), "id": ids.new_id(), "agent": "coder",
        "action": "edit", "inputType": "object", "input": {"path": "src/main.py", "text": text}, "process": ids.new_id(),
    }  # fmt: skip


def _measured(folder: Path, rounds: int) -> dict[str, Any]:
    record = _entry()
    body = encode(record)
    line = seal(body, chain("", body)) + b"\n"
    rows = {**_floors(folder, record, line), **_parts(record, body), **_ours(folder, record), **_peers(folder, record)}
    calls = {name: call for name, call in rows.items() if not isinstance(call, str)}
    for call in calls.values():
        for _ in range(_BATCH):
            call()
    each: dict[str, list[int]] = {name: [] for name in calls}
    cpu: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    for _ in range(rounds):
        random.shuffle(order)
        for name in order:
            call, times = calls[name], each[name]
            _settings.get(call, _PLAIN).put_in_place()
            used = time.thread_time_ns()
            for _ in range(_BATCH):
                began = time.perf_counter_ns()
                call()
                times.append(time.perf_counter_ns() - began)
            cpu[name].append((time.thread_time_ns() - used) / _BATCH)
    floor = _median(each["bare os.write"]), cpu["bare os.write"]
    measured = {name: row if isinstance(row, str) else _summary(each[name], cpu[name], *floor) for name, row in rows.items()}
    return {"bytes": len(line), "rows": measured}


def _median(times: list[int]) -> float:
    return statistics.median(times) / 1e3


def _summary(times: list[int], cpu: list[float], floor: float, cpu_floor: list[float]) -> dict[str, float]:
    return {
        "p50": _median(times),
        "p99": sorted(times)[len(times) * 99 // 100] / 1e3,
        "ratio": round(_median(times) / floor, 2),
        "cpu": round(statistics.median(cpu) / 1e3, 2),
        "cpuRatio": round(statistics.median(mine / bare for mine, bare in zip(cpu, cpu_floor, strict=True)), 2),
    }


def _floors(folder: Path, record: Record, line: bytes) -> Rows:
    files = [os.open(folder / f"bare{number}", os.O_WRONLY | os.O_APPEND | os.O_CREAT) for number in range(3)]
    dumps = json.JSONEncoder(separators=(",", ":")).encode
    rows: Rows = {
        "bare os.write": lambda: os.write(files[0], line),
        "json + os.write": lambda: os.write(files[1], dumps(record).encode() + b"\n"),
    }
    orjson = _module("orjson")
    rows["orjson + os.write"] = (
        (lambda: os.write(files[2], orjson.dumps(record) + b"\n")) if orjson is not None else "not installed"
    )
    return rows


def _parts(record: Record, body: bytes) -> Rows:
    descriptor = os.open(os.devnull, os.O_WRONLY)

    def locked() -> None:
        journal.flock(descriptor, journal.LOCK_EX | journal.LOCK_NB)
        journal.flock(descriptor, journal.LOCK_UN)

    return {
        "part: encode": lambda: encode(record),
        "part: mask": lambda: mask(body),
        "part: chain and seal": lambda: seal(body, chain("0123456789abcdef", body)),
        "part: id and time": lambda: (ids.new_id(), ids.now()),
        "part: lock and unlock": locked,
    }


def _ours(folder: Path, record: Record) -> Rows:
    rows: Rows = {}
    for encoder in ("json", "orjson"):
        if encoder == "orjson" and _module("orjson") is None:
            rows["the same with orjson loaded"] = "not installed"
            continue
        for masked in (True, False):
            for chained in (True, False):
                name = f"{encoder}{'' if masked else ', no mask'}{'' if chained else ', no chain'}"
                log = Journal(folder / f"{name}.jsonl", mask=masked)
                recorder = Recorder(folder / f"{name}, recorder.jsonl", mask=masked)
                setting = _Setting(encoder, chained)
                rows[f"Journal.append, {name}"] = setting.of(lambda log=log: log.append((record,)))
                rows[f"Recorder.entry, {name}"] = setting.of(
                    lambda recorder=recorder: recorder.entry("coder", "edit", record["input"])
                )
    return rows


class _Setting:
    """The encoder and the chain of a row; put in place before its batch."""

    def __init__(self, encoder: str, chained: bool) -> None:
        self._encoder = encoder
        self._chained = chained

    def of(self, call: Call) -> Call:
        """Remember the setting of a call."""
        _settings[call] = self
        return call

    def put_in_place(self) -> None:
        """Let the next calls run like this."""
        loaded = sys.modules.pop("orjson", None)
        if self._encoder == "orjson" and loaded is not None:
            sys.modules["orjson"] = loaded
        wire.use_loaded_encoder()
        if loaded is not None:
            sys.modules["orjson"] = loaded
        setattr(journal, "chain", chain if self._chained else _no_chain)  # noqa: B010 -- another module's name


_settings: dict[Call, _Setting] = {}
_PLAIN = _Setting("json", True)


def _no_chain(previous: str, body: bytes) -> str:
    return "0123456789abcdef"


def _peers(folder: Path, record: Record) -> Rows:
    return {
        "stdlib logging, JSON formatter": _logging(folder, record),
        "structlog, JSON": _structlog(folder, record, fast=False),
        "structlog, orjson, bytes": _structlog(folder, record, fast=True),
        "loguru, serialize": _loguru(folder, record),
        "OpenTelemetry span, batch, caller side": _tracer(record),
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


def _tracer(record: Record) -> Call | str:
    sdk, exporting = _module("opentelemetry.sdk.trace"), _module("opentelemetry.sdk.trace.export")
    if sdk is None or exporting is None:
        return "not installed"

    class Nowhere(exporting.SpanExporter):
        def export(self, spans: Any) -> Any:
            return exporting.SpanExportResult.SUCCESS

    provider = sdk.TracerProvider()
    provider.add_span_processor(exporting.BatchSpanProcessor(Nowhere()))
    tracer = provider.get_tracer("bench")

    def span() -> None:
        with tracer.start_as_current_span("edit") as made:
            made.set_attribute("agent", "coder")
            made.set_attribute("input.path", record["input"]["path"])
            made.set_attribute("input.text", record["input"]["text"])

    return span


def _hostile() -> dict[str, Any]:
    """Return the slowest of many texts made to slow the masker down, against a plain scan of the same bytes."""
    worst: dict[str, Any] = {"ms": 0.0}
    for unit in _UNITS:
        line = b'{"a":"' + unit.encode() * (_HOSTILE // len(unit)) + b'"}'
        began = time.process_time()
        line.lower().count(b"no such text")
        scan = time.process_time() - began
        began = time.process_time()
        mask(line)
        took = time.process_time() - began
        if took * 1e3 > worst["ms"]:
            worst = {"unit": unit, "ms": round(took * 1e3, 1), "ratio": round(took / scan, 1)}
    return worst


if __name__ == "__main__":
    sys.exit(main())
