"""The rules that hold for every importer (see `ctxmgr.importers.base`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from itertools import zip_longest
from pathlib import Path

import pytest

from ctxmgr.importers.base import Importer
from ctxmgr.importers.log_files import HEAD_SIZE
from ctxmgr.log.codec import Record, encode
from ctxmgr.store import open_store
from ctxmgr.types.import_report import FileCount
from ctxmgr.types.record import check

_FOREIGN_HEADS = {
    "an empty file": b"",
    "random bytes": bytes(range(256)) * 8,
    "prose": b"# Notes\n\nNothing here is a log.\n",
    "a list": b"[1, 2, 3]\n",
    "objects of nobody": b'{"a": 1}\n{"b": 2}\n',
    "a log of ctxmgr": b'{"v":1,"kind":"session","session":"s","ts":"2026-01-22T10:00:00Z","process":"p"}\n',
}
_TEXT = b'{"type": "a kind that nobody has heard of", "payload": [1, 2, 3]}\n'
_CUTS = 12  # places at which a log is cut; every line of every log would take minutes
_CONTEXT_CHARS = 60  # shown on each side of the first difference


def assert_same_records(found: Iterable[Record], wanted: Iterable[Record]) -> None:
    """Fail at the first record whose JSON differs, and show the place.

    A plain ``assert`` of two lists makes pytest diff all their text, which takes hours for long values.
    """
    for number, pair in enumerate(zip_longest(found, wanted)):
        one, two = ("nothing" if record is None else encode(record).decode() for record in pair)
        if one != two:
            begin = max(next((at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), 0) - _CONTEXT_CHARS, 0)
            found_part, wanted_part = (text[begin : begin + 2 * _CONTEXT_CHARS] for text in (one, two))
            pytest.fail(f"record {number}, from character {begin}: {found_part!r} in place of {wanted_part!r}", pytrace=False)


class ImporterConformance:
    """The contract of every importer; a subclass names the importer and real logs of its format.

    Attributes:
        importer: the importer under test.
        logs: main logs of sessions, made by the real tool, with their companions where the tool puts them.
        is_lines: whether a log is a text file with one JSON value per line, so that it can be cut and damaged by lines.
    """

    importer: Importer
    logs: Sequence[Path]
    is_lines = True

    def records(self, path: Path) -> tuple[list[Record], list[FileCount]]:
        """Return the records of the session in a log, and the counts of each of its files."""
        counts: list[FileCount] = []
        group = [path, *self.importer.companions(path)]
        return list(self.importer.read(group, counts)), counts

    def test_it_has_a_name_and_logs(self) -> None:
        """It has logs to test with, and a name for ``--from``."""
        assert self.importer.name
        assert self.importer.title
        assert self.logs

    def test_it_knows_its_logs_by_their_content(self) -> None:
        """A log is recognised under any name in any folder, and nothing else is."""
        for path in self.logs:
            with path.open("rb") as stream:
                assert self.importer.sniff(path, stream.read(HEAD_SIZE)), path
        for what, head in _FOREIGN_HEADS.items():
            assert not self.importer.sniff(Path("somewhere/file.jsonl"), head), what

    def test_every_record_follows_format_1(self) -> None:
        """Each can be stored, no two share an id, the session's beginning comes first."""
        for path in self.logs:
            records, _ = self.records(path)
            assert records, path
            assert records[0]["kind"] == "session"
            for record in records:
                encode(check(record))
            names = Counter(_name(record) for record in records if record["kind"] not in ("session", "sessionEnd"))
            assert [name for name, times in names.items() if times > 1] == []

    def test_calls_and_results_are_joined(self) -> None:
        """A result follows its entry, and no entry has two."""
        for path in self.logs:
            open_, done = set[str](), set[str]()
            for record in self.records(path)[0]:
                if record["kind"] == "entry":
                    open_.add(record["id"])
                elif record["kind"] == "result":
                    assert record["entry"] in open_ - done, path
                    done.add(record["entry"])

    def test_every_file_is_counted(self) -> None:
        """Each file has its own counts, and these agree with the records."""
        for path in self.logs:
            records, counts = self.records(path)
            assert [count.path for count in counts] == [path, *self.importer.companions(path)]
            assert all(count.records for count in counts)
            assert sum(sum(count.tool_calls.values()) for count in counts) == sum(each["kind"] == "entry" for each in records)

    def test_reading_twice_yields_the_same_bytes(self) -> None:
        """An import is repeatable byte for byte."""
        for path in self.logs:
            first, second = (self.records(path)[0] for _ in range(2))
            assert_same_records(first, second)

    def test_importing_twice_stores_it_once(self, tmp_path: Path) -> None:
        """The store recognises every record by its id and its content."""
        for number, path in enumerate(self.logs):
            records, _ = self.records(path)
            with closing(open_store(str(tmp_path / f"{number}.db"), create=True)) as store:
                # Two records of one id and another content each would show here.
                assert store.append(records, on_conflict="keep").changed == 0
                again = store.append(records, on_conflict="keep")
                assert (again.added, again.changed) == (0, 0)

    def test_a_log_that_grows_never_contradicts_itself(self, tmp_path: Path) -> None:
        """A log cut after any line yields only records that the full log yields too, with the same content."""
        for path in self.logs if self.is_lines else ():
            full = {_name(record): encode(record) for record in self.records(path)[0]}
            lines = path.read_bytes().splitlines(keepends=True)
            cut = tmp_path / path.name
            # A sample of the cuts: a log of thousands of lines would be read thousands of times.
            for length in range(1, len(lines), max(1, len(lines) // _CUTS)):
                cut.write_bytes(b"".join(lines[:length]))
                for record in self.records(cut)[0]:
                    if record["kind"] != "session":
                        assert full.get(_name(record)) == encode(record), f"{path} after line {length}"

    def test_damage_is_counted_and_costs_only_itself(self, tmp_path: Path) -> None:
        """A torn last line, a line of bytes and an unknown type are counted; intact records are read."""
        for path in self.logs if self.is_lines else ():
            full = path.read_bytes()
            # Or the damage would belong to the last record, which then is not intact.
            full += b"" if full.endswith(b"\n") else b"\n"
            intact = _steps(self.records(self._copy(tmp_path, path, full))[0])
            for damage in (b'{"torn": ', b"\xff\xfe\x00\n"):
                records, counts = self.records(self._copy(tmp_path, path, full + damage))
                assert _steps(records) == intact
                assert sum(len(count.damaged) for count in counts) > 0, damage
            records, counts = self.records(self._copy(tmp_path, path, full + _TEXT))
            assert _steps(records) == intact
            assert sum(sum(count.unknown.values()) for count in counts) > 0

    @staticmethod
    def _copy(folder: Path, path: Path, content: bytes) -> Path:
        copy = folder / path.name
        copy.write_bytes(content)
        return copy

    def test_groups_hold_each_file_once(self) -> None:
        """Every file is in one group, and a session's main log comes first in its own."""
        files = [path for log in self.logs for path in (log, *self.importer.companions(log))]
        groups = self.importer.groups(files)
        assert sorted(path for group in groups for path in group) == sorted(set(files))
        for log in self.logs:
            own = next(group for group in groups if log in group)
            assert all(own.index(log) < own.index(each) for each in self.importer.companions(log))

    def test_a_machine_without_the_agent_has_no_logs(self, tmp_path: Path) -> None:
        """Nothing is found in an empty home, and nothing is created there."""
        assert list(self.importer.discover(tmp_path, {})) == []
        assert list(tmp_path.iterdir()) == []


def _steps(records: Sequence[Record]) -> list[bytes]:
    """Return the encoded records without the session's own, which may name the file and therefore differ."""
    return [encode(record) for record in records if record["kind"] != "session"]


def _name(record: Record) -> tuple[object, ...]:
    return record["kind"], record.get("id"), record.get("entry")
