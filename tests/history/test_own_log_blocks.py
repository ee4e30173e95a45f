"""A log of our own format that is taken over in blocks is stored as when it is read line by line, and counted alike."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxmgr.errors import InvalidInput
from ctxmgr.history import own_log
from ctxmgr.history.ingest import import_logs
from ctxmgr.log.reader import read, read_records
from ctxmgr.recorder import Recorder
from ctxmgr.store import Store, open_store
from ctxmgr.store.write import log_parser
from ctxmgr.store.write.append import prepare_line
from ctxmgr.types.record import check
from tests import builders as b
from tests.frontends import invoke
from tests.store.bulk_logs import OTHERS, hostile, ordinary, sealed
from tests.store.workers import ROOT

Found = dict[str, Any]
Compared = Callable[..., tuple[Found, Found]]
_NEVER = 1 << 60
_SECRET = b'{"v":1,"kind":"entry","session":"s","id":"k%d","agent":"a","action":"b","input":"password = hunter2hunter2"}'
_KILLED = """
import os, signal, sys
from pathlib import Path
from ctxmgr.history import own_log
from ctxmgr.history.ingest import import_logs
from ctxmgr.store.write import log_parser as gather; from ctxmgr.store import open_store
from ctxmgr.store.write.bulk import BulkWriter
own_log._MIN_BLOCK_BYTES, own_log._BLOCKS, gather._READ = 0, 3, 1_500
write, written = BulkWriter.write, []
def write_and_die(writer, block):
    written.append(write(writer, block))
    if len(written) == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    return written[-1]
BulkWriter.write = write_and_die
store = open_store(sys.argv[2], create=True)
import_logs(store, [Path(sys.argv[1])], home=Path(sys.argv[1]).parent, environment={})
"""


def _rows(store: Store) -> Found:
    names = [str(row[0]) for row in store.engine.query("SELECT name FROM sqlite_master WHERE type = 'table'")]
    left_out = ("_sqlite_migrations", "imported", "state")
    return {
        name: sorted(map(repr, store.engine.query(f"SELECT * FROM {name}")))
        for name in names
        if name not in left_out and not name.startswith("search")
    }


def _ignore(offset: int, length: int, reason: str) -> None:
    del offset, length, reason


def _is_storable(body: bytes) -> bool:
    """Whether a line is a record that can be stored, or none: one that can't be makes an import begin anew."""
    raw = sealed([body])[0].rstrip(b"\n")
    try:
        for line in read_records(raw, 0, len(raw) + 1, "", _ignore, lambda: None):
            check(line.record)
            prepare_line(line, masked=True)
    except InvalidInput:
        return False
    return True


_STORABLE = [body for body in hostile() if _is_storable(body)]


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Compared:
    """Return what imports a log in blocks and line by line; it may grow in between."""

    def run(*pieces: bytes, together: int = 700, before: Sequence[Any] = (), masked: bool = True, trust: bool = False) -> Any:
        found: list[Found] = []
        for least in (0, _NEVER):
            monkeypatch.setattr(own_log, "_MIN_BLOCK_BYTES", least)
            monkeypatch.setattr(log_parser, "_READ", together)
            path, place = tmp_path / "h.jsonl", tmp_path / f"{least}.db"
            for suffix in ("", "-wal", "-shm"):
                Path(f"{place}{suffix}").unlink(missing_ok=True)
            store = open_store(str(place), create=True, masked=masked)
            store.append(before)
            whole, reports = b"", list[Any]()
            for piece in pieces:
                whole += piece
                path.write_bytes(whole)
                reports.append(import_logs(store, [path], home=tmp_path, environment={}, trust_project=trust).to_json())
            rows = _rows(store)
            rows["reports"] = reports
            rows["verified"] = store.verify()
            found.append(rows)
            store.close()
        return found[0], found[1]

    return run


@pytest.mark.cases(1)
@pytest.mark.parametrize("together", [100, 5_000, 1 << 20])
@pytest.mark.parametrize("before", [(), b.steps("s", ["Bash:ls"])], ids=["empty", "not empty"])
def test_an_ordinary_log_is_stored_alike(both: Compared, together: int, before: Sequence[Any]) -> None:
    """Entries, results and events of several sessions, whether their sums follow from what the store holds or not."""
    bodies = [ordinary(number, (b"s", b"s", b"t")[number // 7 % 3]) for number in range(300)]

    fast, slow = both(sealed(bodies)[0], together=together, before=before)

    assert fast == slow
    assert fast["verified"] == (300 + len(before), [])
    assert fast["reports"][0]["added"] == 300


@pytest.mark.parametrize("masked", [True, False])
def test_secrets_are_masked_alike(both: Compared, masked: bool) -> None:
    """A line with a secret is stored without it, and the sums go on from there."""
    bodies = [body for number in range(40) for body in (ordinary(number), *([_SECRET % number] if number % 9 == 4 else []))]

    fast, slow = both(sealed(bodies)[0], masked=masked)

    assert fast == slow
    assert fast["verified"] == (44, [])
    assert ("hunter2" in "".join(fast["record"])) is not masked


@pytest.mark.cases(1)
@pytest.mark.parametrize("trust", [True, False])
@pytest.mark.parametrize("first", range(0, len(_STORABLE), 64))
def test_hostile_lines_are_stored_alike(both: Compared, first: int, trust: bool) -> None:
    """Whatever can be stored, between ordinary lines, with the project's own state or without."""
    few = [*_STORABLE[first : first + 64], *OTHERS[-9:]]
    bodies = [body for number, one in enumerate(few) for body in (ordinary(number), one)]

    fast, slow = both(sealed(bodies)[0], trust=trust)

    assert fast == slow


def test_what_can_not_be_stored_is_left_out_alike(both: Compared) -> None:
    """A record that can't be stored makes the import begin anew, behind what it has written."""
    bodies = [body for number, one in enumerate(hostile()) for body in (ordinary(number), one)]

    fast, slow = both(sealed(bodies)[0], together=9_000)

    assert len(_STORABLE) < len(hostile())
    assert fast["reports"] == slow["reports"]
    for table in ("entry", "session", "usage", "milestone", "process"):
        assert fast[table] == slow[table]
    assert fast["verified"][1] == []


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_log_is_stored_alike(both: Compared, data: st.DataObject) -> None:
    """Logs of any lines that grow between two imports, with lines without a sum, torn ones, and some that come twice."""
    bodies = st.one_of(
        st.builds(ordinary, st.integers(0, 60), st.sampled_from([b"s", b"t"])),
        st.sampled_from(_STORABLE),
        st.sampled_from([_SECRET % number for number in range(6)]),
    )
    pieces, total = list[bytes](), ""
    for _ in range(data.draw(st.integers(1, 2))):
        piece, total = sealed(data.draw(st.lists(bodies, min_size=1, max_size=20)), total)
        lines = piece.splitlines(keepends=True)
        for at in data.draw(st.lists(st.integers(0, len(lines) - 1), max_size=3)):
            odd = [lines[at], lines[0], b"\n", b'{"v":1,"kind":"en\n', b'{"v":1,"kind":"odd","session":"s"}\n']
            lines.insert(at, data.draw(st.sampled_from(odd)))
        pieces.append(b"".join(lines))
    pieces[0] = sealed([ordinary(99)])[0] + pieces[0]

    fast, slow = both(*pieces, together=data.draw(st.sampled_from([64, 500, 1 << 20])))

    assert fast == slow


@pytest.mark.cases(1)
@pytest.mark.parametrize("at", [4, 6, 17])
def test_a_killed_import_in_blocks_is_simply_run_again(both: Compared, tmp_path: Path, at: int) -> None:
    """What was committed stays, a beginning of the log; run again, the rest is added."""
    data = sealed([ordinary(number, (b"s", b"t")[number // 9 % 2]) for number in range(300)])[0]
    path, place = tmp_path / "killed.jsonl", tmp_path / "killed.db"
    path.write_bytes(data)

    killed = subprocess.run([sys.executable, "-c", _KILLED, str(path), str(place), str(at)], cwd=ROOT, check=False)
    fast, slow = both(data)
    store = open_store(str(place))
    kept = int(store.engine.query("SELECT count(*) FROM record")[0][0])
    report = import_logs(store, [path], home=tmp_path, environment={})

    assert killed.returncode == -signal.SIGKILL
    assert 0 < kept < 300
    assert (report.added, report.known) == (300 - kept, kept)
    rows = _rows(store)
    assert rows == {name: fast[name] for name in rows} == {name: slow[name] for name in rows}
    assert store.verify() == (300, [])
    store.close()


@pytest.mark.parametrize("least", [0, _NEVER], ids=["in blocks", "line by line"])
def test_the_sums_of_a_recorder_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int) -> None:
    """Each record of a session keeps the sum that was recorded with it, whatever else the store holds, and goes out with it."""
    monkeypatch.setattr(own_log, "_MIN_BLOCK_BYTES", least)
    logs = [tmp_path / f"{name}.jsonl" for name in "abc"]
    for log in logs:
        with Recorder(log, session=log.stem) as recorder:
            for number in range(40):
                recorder.entry("a", "act", {"n": number})
    with closing(open_store(str(tmp_path / "h.db"), create=True)) as store:
        import_logs(store, logs, home=tmp_path, environment={})
        kept = [row[0] for row in store.engine.query("SELECT sum FROM record ORDER BY seq")]
        assert kept == [line.total for log in logs for line in read(str(log))]
        assert store.examine().damaged == []
    for log in logs:
        out = tmp_path / f"{log.stem}-out.jsonl"
        words = ["export", "--session", log.stem, "-o", str(out), "--store", str(tmp_path / "h.db")]
        assert invoke(words).exit_code == 0
        assert out.read_bytes() == log.read_bytes()
