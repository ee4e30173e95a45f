"""What every importer promises, held against every format of the registry and every sample in its folder.

A new format needs a folder ``fixtures/formats/<name>`` with samples and ``TRUTH.json``: for each file what it truly holds.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from ctxmgr.detect.replay import session_observations
from ctxmgr.history.formats import IMPORTERS, read_head, recognise_format
from ctxmgr.importers.base import Importer
from ctxmgr.log.codec import Record, encode
from ctxmgr.types.finding import find_verdict
from ctxmgr.types.import_report import FileCount
from ctxmgr.types.record import check
from tests.builders import detect

LOGS = Path(__file__).parents[2] / "fixtures"
PACKERS = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}
BINARY = {".db", ".sqlite", ".eval"}
ODD: list[Any] = [None, True, -1, 10**400, 1e308, "", "x" * 300, "\ud800\0\u202e", [], [[]], [None, 5, {}], {}, {"type": []}]
ROUNDS = 40
IN_FOLDERS = ("openhands", "opencode-files")
"""Formats whose session is a folder of files: one of these alone holds none."""


def _folder(importer: Importer) -> Path:
    """Return where a format's samples are; the oldest two have a folder, and tests, of their own."""
    return LOGS / ("logs" if importer.name in ("claude-code", "codex") else "formats") / importer.name


def _truths() -> Iterator[Any]:
    for importer in IMPORTERS:
        for name, truth in json.loads((_folder(importer) / "TRUTH.json").read_text()).items():
            if "verdict" in truth or importer.name not in ("claude-code", "codex"):
                yield pytest.param(importer, _folder(importer) / name, truth, id=f"{importer.name}-{name[:40]}")


SAMPLES = list(_truths())
TEXTS = [sample for sample in SAMPLES if sample.values[1].is_file() and sample.values[1].suffix not in BINARY]
each_sample = pytest.mark.parametrize(("importer", "path", "truth"), SAMPLES)
each_text = pytest.mark.parametrize(("importer", "path", "truth"), TEXTS)


def read(importer: Importer, path: Path) -> tuple[list[Record], list[FileCount]]:
    """Return the checked records of the session in a file, and the counts of its files."""
    counts: list[FileCount] = []
    files = [path, *importer.companions(path)]
    records = [record for group in importer.groups(files) for record in importer.read(group, counts)]
    for record in records:
        encode(check(record))
    names = [f"{record['kind']} {record.get('id') or record.get('entry')}" for record in records if record["kind"] != "session"]
    assert len(names) == len(set(names))
    known = {record["id"] for record in records if record["kind"] == "entry"}
    assert {record["entry"] for record in records if record["kind"] == "result"} <= known
    return records, counts


def lines_of(records: list[Record]) -> set[bytes]:
    """Return records as they are stored, those of the session itself left out: its title comes late."""
    return {encode(record) for record in records if record["kind"] not in ("session", "sessionEnd")}


@each_sample
def test_a_sample_is_recognised_by_its_content(importer: Importer, path: Path, truth: dict[str, Any]) -> None:
    """No other format claims it first."""
    del truth
    assert recognise_format(path, read_head(path)) == importer.name


@each_sample
def test_a_sample_holds_what_it_truly_holds(importer: Importer, path: Path, truth: dict[str, Any]) -> None:
    """Calls by name, results, open calls, what was said and the tokens are exact, and nothing was not understood."""
    records, counts = read(importer, path)
    names: dict[str, int] = {}
    usage: dict[str, int] = {}
    for count in counts:
        for name, number in count.tool_calls.items():
            names[name] = names.get(name, 0) + number
        for name, number in count.usage.items():
            usage[name] = usage.get(name, 0) + number
    found = {
        "toolCalls": names, "open": sum(count.open for count in counts), "failed": sum(count.failed for count in counts),
        "messages": sum(count.messages for count in counts), "thoughts": sum(count.thoughts for count in counts),
        "userMessages": sum(count.user_messages for count in counts),
        "responses": sum(count.responses for count in counts), "usage": {name: usage.get(name) for name in truth["usage"]},
    }  # fmt: skip
    assert found == {name: truth[name] for name in found}
    assert {name: number for count in counts for name, number in count.unknown.items()} == truth.get("unknown", {})
    assert [damage for count in counts for damage in count.damaged] == []
    entries = [record for record in records if record["kind"] == "entry"]
    results = [record for record in records if record["kind"] == "result"]
    assert (len(entries), len(entries) - len(results)) == (sum(names.values()), found["open"])
    assert sorted({str(record["agent"]) for record in entries}) == truth.get("agents", ["main"] if entries else [])
    ended = Counter(str(record["status"]) for record in results)
    told = Counter(str(record["type"]) for record in records if record["kind"] == "event")
    assert ended == truth.get("statuses", ended)
    assert {name: told[name] for name in truth.get("events", {})} == truth.get("events", {})


@each_sample
def test_a_sample_is_judged_as_it_should_be(importer: Importer, path: Path, truth: dict[str, Any]) -> None:
    """The loop that the client truly ran in is found, and nothing in a healthy log."""
    records, _ = read(importer, path)
    sessions = {record["session"] for record in records}
    found = [detect(session_observations([r for r in records if r["session"] == session])) for session in sessions]
    assert {find_verdict(findings) for findings in found} == {truth["verdict"]}


@each_sample
def test_reading_twice_yields_the_same_bytes(importer: Importer, path: Path, truth: dict[str, Any]) -> None:
    """Nothing depends on the clock, on chance or on the order of a set."""
    del truth
    assert [encode(record) for record in read(importer, path)[0]] == [encode(record) for record in read(importer, path)[0]]


@each_text
def test_a_shorter_form_yields_nothing_else(importer: Importer, path: Path, truth: dict[str, Any], tmp_path: Path) -> None:
    """A log that grows yields the records again that it yielded before, and more."""
    del truth
    whole = lines_of(read(importer, path)[0])
    shorter = tmp_path / path.relative_to(LOGS).parent / path.name
    shorter.parent.mkdir(parents=True)
    told: set[bytes] = set()
    for part in _shorter(path):
        shorter.write_bytes(part)
        lines = lines_of(read(importer, shorter)[0])
        assert lines <= whole
        told |= lines
    assert told or importer.name in IN_FOLDERS


def _shorter(path: Path) -> Iterator[bytes]:
    """Yield shorter forms of a log: fewer lines, or a document with fewer elements in its lists."""
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    try:
        document = json.loads(data)
    except ValueError:
        for end in range(1, len(lines), max(1, len(lines) // 25)):
            yield b"".join(lines[:end])
            yield b"".join(lines[:end]) + lines[end][: len(lines[end]) // 2]
        return
    longest = max(_lists(document), key=len, default=list[Any]())
    whole = list(longest)
    for end in range(len(whole) // 2, len(whole)):
        longest[:] = whole[:end]
        yield json.dumps(document).encode()


def _lists(value: Any) -> Iterator[list[Any]]:
    """Yield the lists in a document that grow with it, at any depth; the attributes of a span are there with it."""
    if isinstance(value, list):
        yield cast("list[Any]", value)
        inner = cast("list[Any]", value)
    else:
        members = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        inner = [each for name, each in members.items() if name != "attributes"]
    for each in inner:
        yield from _lists(each)


@each_text
def test_a_torn_log_keeps_what_is_whole(importer: Importer, path: Path, truth: dict[str, Any], tmp_path: Path) -> None:
    """Cut anywhere, a log yields valid records, reports the damage, and no call is made up out of fragments."""
    del truth
    data = path.read_bytes()
    calls = {encode({"a": r["action"], "i": r.get("input")}) for r in read(importer, path)[0] if r["kind"] == "entry"}
    torn = tmp_path / path.relative_to(LOGS).parent / path.name
    torn.parent.mkdir(parents=True)
    for end in range(len(data) // 10, len(data) - 2, max(1, len(data) // 12)):
        torn.write_bytes(data[:end])
        records, counts = read(importer, torn)
        assert {encode({"a": r["action"], "i": r.get("input")}) for r in records if r["kind"] == "entry"} <= calls
        assert data[end - 1 : end] in b"\n" or data[end : end + 1] in b"\n" or any(count.damaged for count in counts)


@each_sample
def test_no_damaged_bytes_raise(importer: Importer, path: Path, truth: dict[str, Any], tmp_path: Path) -> None:
    """Random bytes over a real log never stop the reading, and never make a record that is none."""
    del truth
    for target in [path, *importer.companions(path)][:2]:
        data, chance = target.read_bytes(), random.Random(7)
        odd = tmp_path / path.relative_to(LOGS).parent / path.name
        odd.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(ROUNDS // 2):
            changed = bytearray(data)
            for _ in range(chance.randint(1, 6)):
                at = chance.randrange(len(data))
                changed[at : at + chance.randint(1, 30)] = chance.randbytes(chance.randint(1, 30))
            odd.write_bytes(changed)
            read(importer, odd)


@each_text
def test_no_odd_value_in_any_field_raises(importer: Importer, path: Path, truth: dict[str, Any], tmp_path: Path) -> None:
    """Whatever stands in a field, reading goes on and every record that comes out is a valid one."""
    del truth
    chance = random.Random(11)
    odd = tmp_path / path.relative_to(LOGS).parent / path.name
    odd.parent.mkdir(parents=True)
    text = path.read_text()
    try:
        values, lined = [json.loads(text)], False
    except ValueError:
        values, lined = [json.loads(line) for line in text.rstrip("\n").split("\n")], True
    for _ in range(ROUNDS):
        spoiled = [_spoiled(value, chance) if not lined or chance.random() < 0.4 else value for value in values]
        odd.write_text("\n".join(json.dumps(value) for value in spoiled) + "\n")
        importer.sniff(odd, odd.read_bytes()[:65536])
        read(importer, odd)


def _spoiled(value: Any, chance: random.Random, depth: int = 0) -> Any:
    """Replace one part of a value by an odd one, mostly deep inside."""
    if depth < 8 and chance.random() < 0.9 and value:
        if isinstance(value, dict):
            fields = dict(cast("dict[str, Any]", value))
            key = chance.choice(sorted(fields))
            return {**fields, key: _spoiled(fields[key], chance, depth + 1)}
        if isinstance(value, list):
            items = list(cast("list[Any]", value))
            at = chance.randrange(len(items))
            return [*items[:at], _spoiled(items[at], chance, depth + 1), *items[at + 1 :]]
    return chance.choice(ODD)


@each_text
def test_a_compressed_log_reads_as_the_plain_one(importer: Importer, path: Path, truth: dict[str, Any], tmp_path: Path) -> None:
    """The records do not change by a byte, so nothing is imported twice."""
    del truth
    plain = tmp_path / path.relative_to(LOGS).parent / path.name
    plain.parent.mkdir(parents=True)
    plain.write_bytes(path.read_bytes())
    whole = lines_of(read(importer, plain)[0])
    plain.unlink()
    for suffix, packer in PACKERS.items():
        packed = plain.with_name(f"{path.name}{suffix}")
        packed.write_bytes(packer(path.read_bytes()))
        assert recognise_format(packed, read_head(packed)) == importer.name
        assert lines_of(read(importer, packed)[0]) == whole
        packed.unlink()


def test_every_format_has_its_samples() -> None:
    """A format without samples is not read; one whose samples never loop or never end well is hardly tried."""
    assert [importer.name for importer in IMPORTERS if not (_folder(importer) / "TRUTH.json").exists()] == []


def test_the_formats_have_names_of_their_own() -> None:
    """Two formats of one name could not be told apart by ``--from``."""
    names = [importer.name for importer in IMPORTERS]
    assert len(names) == len(set(names))
    assert all(importer.title and isinstance(importer.coverage.calls, bool) for importer in IMPORTERS)
