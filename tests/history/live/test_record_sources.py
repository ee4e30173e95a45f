"""Where records come from while they are written: nothing is read twice without need, and rotation is survived."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import InvalidInput
from ctxmgr.history.formats import IMPORTERS
from ctxmgr.history.live import record_sources
from ctxmgr.history.live.record_sources import Follower, ForeignLog, LogSource, LogTail, Source, StoreTail
from ctxmgr.log.codec import Record
from ctxmgr.log.journal import Journal
from ctxmgr.store import Store, open_store
from tests import builders as b
from tests.history.live_world import clock_at, follower, told

FIXTURES = Path(__file__).parents[3] / "fixtures" / "demo"
CLAUDE = FIXTURES / "claude-code/projects/-home-dev-invoice-tool/7e999fd2-d31f-46eb-9632-55e969fb3852.jsonl"


def _appended(path: Path, records: Iterable[Record]) -> None:
    with Journal(path) as journal:
        journal.append(list(records))


def test_a_growing_log_is_read_on(tmp_path: Path) -> None:
    """Each look reads only the lines completed since the last one; a line that is still being written waits."""
    log = tmp_path / "run.jsonl"
    tail = LogTail(log)
    assert tail.poll() is None
    _appended(log, b.steps("s", ["Read:a -> text"]))
    got = [len(list(batch.records)) for _ in range(2) if (batch := tail.poll())]
    line = json.dumps(b.entry("s", 1)).encode() + b"\n"
    with log.open("ab") as stream:
        stream.write(line[:40])
        stream.flush()
        assert tail.poll() is None
        stream.write(line[40:])
    batch = tail.poll()

    assert got == [2]
    assert batch is not None
    assert [record["id"] for record in batch.records] == ["s-e0001"]


def test_damage_is_passed_over(tmp_path: Path) -> None:
    """Lines that hold no record cost nothing but themselves."""
    log = tmp_path / "run.jsonl"
    _appended(log, b.steps("s", ["Bash:ls -> same"] * 2))
    watched = follower(LogTail(log), clock_at(3))
    watched.tick()
    with log.open("ab") as stream:
        stream.write(b'\0\0\0\n{"v":1,"kind":"entry",\n[1]\n\xff\xfe\n')
    watched.tick()
    _appended(log, b.steps("s", ["Bash:ls -> same"], start=2))

    assert told(watched.tick()) == [("raised", "repetition")]


@pytest.mark.parametrize("way", ["renamed", "truncated", "removed", "rewritten"])
def test_rotation_is_survived(tmp_path: Path, way: str) -> None:
    """A log that is renamed, cut, removed or written over is followed on: a loop across the cut is found, none told twice."""
    log = tmp_path / "run.jsonl"
    _appended(log, [*b.steps("s", [*["Read:a -> same"] * 3, *["Bash:ls -> same"] * 2])])
    watched = follower(LogTail(log), clock_at(5))
    looks = [told(watched.tick())]
    before = log.read_bytes()
    if way == "renamed":
        log.rename(tmp_path / "run.1.jsonl")
    elif way == "truncated":
        os.truncate(log, 0)
    elif way == "removed":
        log.unlink()
    looks.append(told(watched.tick()))
    if way == "rewritten":
        log.write_bytes(before.replace(b"-e0000", b"-e9000"))
    _appended(log, b.steps("s", ["Bash:ls -> same"] * 2, start=5))
    looks.append(told(watched.tick()))

    assert looks[:2] == [[("raised", "repetition")], []]
    assert ("raised", "repetition") in looks[2]
    assert told(watched.tick()) == []


def test_a_log_may_hold_one_wanted_session(tmp_path: Path) -> None:
    """Named, one session of a log is followed and the others are not."""
    log = tmp_path / "run.jsonl"
    _appended(log, [*b.steps("s", ["Bash:ls -> same"] * 3), *b.steps("other", ["Bash:ls -> same"] * 3)])

    assert [sight.session for sight in follower(LogTail(log, "s"), clock_at(3)).tick()] == ["s"]


def test_a_store_is_read_on(tmp_path: Path) -> None:
    """Each look at a store reads what was appended to the session since; the latest session is followed when none is named."""
    place = tmp_path / "history.db"
    writing = open_store(str(place), create=True)
    writing.append(b.steps("old", ["Bash:ls -> same"] * 3))
    reading = open_store(str(place), readonly=True)
    named, latest = StoreTail(reading, reading.sessions.key("old")), StoreTail(reading)
    watched = follower(latest, clock_at(4))
    first = told(watched.tick())
    writing.append(b.steps("new", ["Read:a -> text"], ts=b.at(100)))

    assert first == [("raised", "repetition")]
    assert [[len(list(batch.records)) for batch in [named.poll()] if batch] for _ in range(2)] == [[6], [0]]
    assert told(watched.tick()) == []
    assert watched.counts() == {"old": 3, "new": 1}
    writing.close()
    reading.close()


def test_a_foreign_log_is_read_again_when_it_changes(tmp_path: Path) -> None:
    """A growing log of another agent is read anew when it changed, at most once in the given time; nothing is told twice."""
    lines = CLAUDE.read_bytes().splitlines(keepends=True)
    log, time = tmp_path / CLAUDE.name, [0.0]
    log.write_bytes(b"".join(lines[: len(lines) // 3]))
    source = LogSource(log, every=5, clock=lambda: time[0])
    watched = Follower(source, {}, clock_at(-1e8))
    looks: list[list[tuple[str, str]]] = [told(watched.tick())]
    log.write_bytes(b"".join(lines))
    looks.append(told(watched.tick()))
    time[0] += 5
    looks.append(told(watched.tick()))
    time[0] += 5
    looks.append(told(watched.tick()))

    assert looks == [[], [], [("raised", "cycle")], []]
    assert watched.counts() == {CLAUDE.stem: sum(1 for line in lines if b'"type":"tool_use"' in line)}


def test_reading_a_large_log_leaves_time_for_other_work() -> None:
    """A foreign log that takes ten seconds to read is not read again for forty."""
    time = [0.0]

    class Slow:
        name = title = "slow"

        def companions(self, path: Path) -> list[Path]:
            return []

        def groups(self, paths: Iterable[Path]) -> list[list[Path]]:
            return [list(paths)]

        def read(self, group: Any, counts: Any) -> Iterable[Record]:
            reads.append(time[0])
            time[0] += 10
            return []

    reads: list[float] = []
    source: Any = ForeignLog(Slow(), CLAUDE, 1, lambda: time[0])  # pyright: ignore[reportArgumentType]
    for _ in range(2):
        for batch in [source.poll()]:
            assert list(batch.records) == []
        source._state = []
        time[0] += 39.9
        assert source.poll() is None
        time[0] += 0.2

    assert reads == [0.0, pytest.approx(50.1)]


def test_a_foreign_log_that_goes_away_is_waited_for(tmp_path: Path) -> None:
    """While the file is gone nothing is told, neither that its loop is over nor anew when it comes back."""
    log = tmp_path / CLAUDE.name
    shutil.copy(CLAUDE, log)
    watched = Follower(LogSource(log, every=1e-9), {}, clock_at(-1e8))
    looks = [told(watched.tick())]
    kept = log.rename(tmp_path / "kept")
    looks.append(told(watched.tick()))
    kept.rename(log)
    looks.append(told(watched.tick()))

    assert looks == [[("raised", "cycle")], [], []]


def test_the_format_is_told_by_the_content(tmp_path: Path) -> None:
    """A log that is empty or in its first line waits; one of no known format is refused."""
    log = tmp_path / "run.jsonl"
    source = LogSource(log)
    looks = [source.poll()]
    log.write_bytes(b"")
    looks.append(source.poll())
    log.write_bytes(b'{"foo"')
    looks.append(source.poll())
    assert looks == [None, None, None]
    log.write_bytes(b'{"foo": 1}\n')
    with pytest.raises(InvalidInput, match="not a log of a known format"):
        source.poll()
    log.write_bytes(b"\0\0damage\n")
    _appended(log, b.steps("s", ["Read:a -> text"]))
    batch = source.poll()

    assert batch is not None
    assert len(list(batch.records)) == 2
    assert record_sources.IMPORTERS is IMPORTERS


def test_the_log_of_a_store_is_followed_in_place(store: Store) -> None:
    """Both kinds of store can be followed while they are written to through their own door."""
    is_log = store.location.endswith(".jsonl")
    source: Source = LogTail(Path(store.location)) if is_log else StoreTail(store)
    watched = follower(source, clock_at(3))
    looks: list[list[tuple[str, str]]] = []
    for number in range(3):
        store.append(b.steps("s", ["Bash:ls -> same"], start=number))
        looks.append(told(watched.tick()))

    assert looks == [[], [], [("raised", "repetition")]]
