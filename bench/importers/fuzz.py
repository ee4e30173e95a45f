"""Damage the samples in every way that disks, crashes and strangers do, and read them.

Two things must never happen: a fault of the importer, or the loss of a call that stands in an intact part of the log. What a
log holds without its damaged part is the measure: each of those calls must be found, with its result.
"""

from __future__ import annotations

import gzip
import json
import random
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from bench.importers.logs import DATABASES, FIXTURES, samples
from ctxmgr.errors import CtxmgrError
from ctxmgr.history.formats import read_head, recognise_format
from ctxmgr.importers.base import Importer
from ctxmgr.log.codec import Record, encode
from ctxmgr.types.import_report import FileCount
from ctxmgr.types.record import check

LONGEST = 20.0
"""Seconds after which reading one of these small files counts as a fault."""

ODD: tuple[Any, ...] = (
    None, True, -1, 10**400, 1e308, "", "x" * 300, "\ud800\0\u202e", [], [[]], [None, 5, {}], {}, {"type": []}, "9" * 40,
)  # fmt: skip
_STRANGERS = (b"\0" * 4096, b"garbage " * 20, b'{"type": "of tomorrow", "n": 1}', b"[1, 2]", b"\xff" * 50, b"null")
_NOISE = (b"\0" * 64, b"\xff\xfe\xfd", b'{"', b"}}]]", b"\n", b"\r\n\r\n", b"\\", b'"', b"\x1b[2J", b"[" * 300, b"1e999")


@dataclass(slots=True)
class Tally:
    """What came of it.

    Attributes:
        faults, losses: one line each, with what is needed to do it again.
    """

    files: Counter[str] = field(default_factory=lambda: Counter[str]())
    compared: int = 0
    faults: list[str] = field(default_factory=lambda: list[str]())
    losses: list[str] = field(default_factory=lambda: list[str]())

    def shown(self) -> str:
        """Return the result for people."""
        kinds = ", ".join(f"{name} {count:,}" for name, count in sorted(self.files.items()))
        told = "".join(f"\n  {line}" for line in [*self.faults, *self.losses][:20])
        return (
            f"{self.files.total():,} damaged files ({kinds})\n{self.compared:,} compared with what they hold without the damage"
            f"\ninternal faults: {len(self.faults)}\nintact entries lost: {len(self.losses)} files{told}"
        )


def fuzz(files: int, seed: int, seconds: float | None = None, only: str | None = None) -> Tally:
    """Damage and read so many files, each by a seed of its own; at most for so long."""
    tally, began = Tally(), time.monotonic()
    chosen = [(importer, path) for importer, path in samples() if only in (None, importer.name)]
    with tempfile.TemporaryDirectory() as folder:
        for number in range(files):
            if seconds is not None and time.monotonic() - began > seconds:
                break
            importer, path = chosen[number % len(chosen)]
            _once(importer, path, f"{seed}.{number}", Path(folder), tally)
    return tally


def _once(importer: Importer, path: Path, seed: str, folder: Path, tally: Tally) -> None:
    chance = random.Random(seed)
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    target = chance.choice([file for file in files if file.is_file()])
    place = folder / path.relative_to(FIXTURES).parent / path.name
    for file in files:
        if file.is_file():
            copy = place / file.relative_to(path) if path.is_dir() else place
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
    damaged = place / target.relative_to(path) if path.is_dir() else place
    data = target.read_bytes()
    binary = target.suffix in DATABASES
    ways = (_bytes_changed, _cut, _noisy) if binary else WAYS
    way = chance.choice(ways)
    tally.files[importer.name] += 1
    what = f"{importer.name} {path.name[-40:]} {way.__name__.strip('_')} seed {seed}"
    changed, intact = way(data, chance)
    damaged.write_bytes(changed)
    found = _read(importer, place, what, tally)
    if found is None or intact is None:
        return
    damaged.write_bytes(intact)
    expected = _read(importer, place, what, tally)
    if expected is None:
        return
    tally.compared += 1
    lost = expected - found
    calls = Counter(json.dumps(json.loads(call) | {"output": None}, sort_keys=True) for call in found.elements())
    lost = Counter({call: count for call, count in lost.items() if calls[call] < count})  # found, and answered as well
    if lost:
        tally.losses.append(f"{what}: {sum(lost.values())} lost, as {next(iter(lost))[:150]}")


def _read(importer: Importer, path: Path, what: str, tally: Tally) -> Counter[str] | None:
    """Return the calls of a log with their results; None after a fault."""
    began = time.monotonic()
    try:
        first = next(file for file in sorted(path.rglob("*")) if file.is_file()) if path.is_dir() else path
        recognise_format(first, read_head(first))
        counts: list[FileCount] = []
        records = [
            record for group in importer.groups([path, *importer.companions(path)]) for record in importer.read(group, counts)
        ]
        calls = _calls(records)
    except (OSError, CtxmgrError) as error:
        if isinstance(error, CtxmgrError):
            tally.faults.append(f"{what}: {error.message}")
        return None
    except Exception:
        tally.faults.append(f"{what}: {traceback.format_exc(limit=-2)}")
        return None
    if time.monotonic() - began > LONGEST:
        tally.faults.append(f"{what}: took {time.monotonic() - began:.0f} s")
    return calls


def _calls(records: Sequence[Record]) -> Counter[str]:
    for record in records:
        encode(check(record))
    results = {record["entry"]: record for record in records if record["kind"] == "result"}
    calls: Counter[str] = Counter()
    for record in records:
        if record["kind"] == "entry":
            result = results.get(record["id"], {})
            shown = {"action": record["action"], "input": record.get("input"), "output": result.get("output")}
            calls[json.dumps(shown, sort_keys=True)] += 1
    return calls


# Each way returns the damaged bytes, and what the log holds without its damaged part where that can be said.


def _cut(data: bytes, chance: random.Random) -> tuple[bytes, bytes | None]:
    end = chance.randrange(1, len(data))
    lines = data[:end].split(b"\n")
    return data[:end], b"\n".join(lines[:-1]) + b"\n" if _is_lined(data) and len(lines) > 2 else None


def _torn_line(data: bytes, chance: random.Random) -> tuple[bytes, bytes | None]:
    """Tear a line: it loses its end, or its middle is overwritten."""
    if not _is_lined(data):
        return _torn_element(data, chance)
    lines = data.split(b"\n")
    at = chance.randrange(1, len(lines))
    line = lines[at]
    keep = line[: chance.randrange(len(line) + 1)] if len(line) > 1 else b""
    if chance.random() < 0.5 and len(line) > 4:
        keep = line[: len(line) // 2] + chance.choice((b"\0" * 64, b'{"', b'"')) + line[len(line) // 2 + 1 :]
    if _is_whole(keep):
        keep = keep[:-1]
    return b"\n".join([*lines[:at], keep, *lines[at + 1 :]]), b"\n".join([*lines[:at], *lines[at + 1 :]])


def _torn_element(data: bytes, chance: random.Random) -> tuple[bytes, bytes | None]:
    """Tear an element of a document's longest list: it loses its second half."""
    try:
        document = json.loads(data)
    except ValueError:
        return _bytes_changed(data, chance)
    holder = cast("dict[str, Any]", document if isinstance(document, dict) else {"": document})
    lists = [name for name, value in holder.items() if isinstance(value, list) and len(cast("list[Any]", value)) > 2]
    if not lists:
        return _bytes_changed(data, chance)
    name = max(lists, key=lambda name: len(json.dumps(holder[name])))
    items = [json.dumps(item) for item in holder[name]]
    at = chance.randrange(1, len(items))
    torn = items[at][: max(2, len(items[at]) // 2)]
    mark = "a place that no log holds"
    text = json.dumps(holder | {name: mark} if isinstance(document, dict) else mark)

    def with_items(held: list[str]) -> bytes:
        return text.replace(json.dumps(mark), f"[{', '.join(held)}]").encode()

    return with_items([*items[:at], torn, *items[at + 1 :]]), with_items([*items[:at], *items[at + 1 :]])


def _glued(data: bytes, chance: random.Random) -> tuple[bytes, bytes | None]:
    """Take away the line end between two lines."""
    if not _is_lined(data):
        return _bytes_changed(data, chance)
    lines = data.split(b"\n")
    at = chance.randrange(1, len(lines))
    return b"\n".join([*lines[: at - 1], lines[at - 1] + lines[at], *lines[at + 1 :]]), data


def _foreign_line(data: bytes, chance: random.Random) -> tuple[bytes, bytes | None]:
    """Put in a line that is none of the log's."""
    if not _is_lined(data):
        return _bytes_changed(data, chance)
    lines = data.split(b"\n")
    at = chance.randrange(1, len(lines))
    noise = chance.choice(_STRANGERS)
    return b"\n".join([*lines[:at], noise, *lines[at:]]), data


def _cut_short(data: bytes, chance: random.Random) -> tuple[bytes, bytes | None]:
    """Compress a log, and let it lose its end."""
    packed = gzip.compress(data, mtime=0)
    return packed[: chance.randrange(20, len(packed))], None


def _bytes_changed(data: bytes, chance: random.Random) -> tuple[bytes, bytes | None]:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(data))
        changed[at : at + chance.randint(1, 30)] = chance.randbytes(chance.randint(1, 30))
    return bytes(changed), None


def _noisy(data: bytes, chance: random.Random) -> tuple[bytes, bytes | None]:
    changed = data
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed))
        changed = changed[:at] + chance.choice(_NOISE) + changed[at:]
    return changed, None


def _shuffled(data: bytes, chance: random.Random) -> tuple[bytes, bytes | None]:
    """Put lines into another order, some of them twice."""
    lines = data.split(b"\n")
    for _ in range(chance.randint(1, 5)):
        a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines[a], lines[b] = lines[b], lines[a]
        if chance.random() < 0.3:
            lines.insert(a, lines[b])
    return b"\n".join(lines), None


def _odd_values(data: bytes, chance: random.Random) -> tuple[bytes, bytes | None]:
    """Give members other types than they should have."""
    try:
        return json.dumps(_spoiled(json.loads(data), chance)).encode(), None
    except ValueError:
        lines = data.split(b"\n")
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(lines))
        try:
            lines[at] = json.dumps(_spoiled(json.loads(lines[at]), chance)).encode()
        except ValueError:
            continue
    return b"\n".join(lines), None


def _spoiled(value: Any, chance: random.Random, depth: int = 0) -> Any:
    if depth < 8 and chance.random() < 0.9 and value:
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            key = chance.choice(sorted(fields))
            return {**fields, key: _spoiled(fields[key], chance, depth + 1)}
        if isinstance(value, list):
            items = cast("list[Any]", value)
            at = chance.randrange(len(items))
            return [*items[:at], _spoiled(items[at], chance, depth + 1), *items[at + 1 :]]
    return chance.choice(ODD)


WAYS: tuple[Callable[[bytes, random.Random], tuple[bytes, bytes | None]], ...] = (
    _cut, _torn_line, _torn_line, _glued, _foreign_line, _cut_short, _bytes_changed, _noisy, _shuffled, _odd_values,
)  # fmt: skip


def _is_lined(data: bytes) -> bool:
    lines = data.split(b"\n")
    return len(lines) > 3 and _is_whole(lines[0]) and _is_whole(lines[1])


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
