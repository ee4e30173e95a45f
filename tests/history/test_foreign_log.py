"""Another agent's log where it lies: read, judged, and followed when it changes, with nothing written beside it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import InvalidInput, NotFound, StorageFailed
from ctxmgr.history import foreign_log
from ctxmgr.history.detection import judge_now
from ctxmgr.history.foreign_log import ForeignStore, foreign_importer, open_foreign
from ctxmgr.history.ingest import import_session
from ctxmgr.history.open_history import open_history
from ctxmgr.log import codec
from tests.builders import entry
from tests.history.test_formats import FORMATS, KEPT


@pytest.mark.parametrize("sample", [name for name in KEPT if (FORMATS / name).is_file()])
def test_a_log_is_judged_where_it_lies(sample: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``detect FILE`` reads a log of any format in place and finds the loop in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    truth = json.loads((FORMATS / sample.split("/")[0] / "TRUTH.json").read_text())[sample.split("/", 1)[1]]
    store, _ = open_history(str(FORMATS / sample), explicit=True, readonly=True)
    key = store.sessions.latest()
    assert key is not None
    assert judge_now(store, key, {}, None).verdict == truth["verdict"]
    store.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a copy of a log of another agent, alone in its folder."""
    folder = tmp_path / "logs"
    folder.mkdir()
    return Path(shutil.copy(FORMATS / "pi" / "looping.jsonl", folder))


def opened(log: Path, *, scratch: bool = False) -> ForeignStore:
    """Open a log of another agent."""
    importer = foreign_importer(str(log))
    assert importer is not None
    return open_foreign(str(log), importer, scratch=scratch)


def test_an_unchanged_log_is_read_once(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed one is read anew; nothing is written beside it, and nothing can be recorded."""
    read: list[str] = []
    entries = 0

    def noted(*given: Any) -> None:
        read.append("read")
        import_session(*given)

    monkeypatch.setattr(foreign_log, "import_session", noted)
    for _ in range(2):
        store = opened(log)
        entries = store.sessions.entry_count(1)
        assert store.readonly
        with pytest.raises(StorageFailed):
            store.append([entry("s", 1)])
        store.close()
    assert (read, [path.name for path in log.parent.iterdir()]) == (["read"], [log.name])

    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
    store = opened(log)
    assert (len(read), store.sessions.entry_count(1) < entries) == (2, True)
    assert (store.damage() != [], store.unread()) == (True, 0)
    store.close()


def test_what_is_tried_on_a_log_is_gone_with_the_store(log: Path) -> None:
    """Scratch takes records, and no other reader sees them."""
    scratch = opened(log, scratch=True)
    before = scratch.sessions.count()
    scratch.append([entry("mine", 0)])
    assert scratch.sessions.count() == before + 1
    scratch.close()
    other = opened(log)
    assert other.sessions.count() == before
    other.close()


@pytest.mark.parametrize("content", [b"just words\n", b'{"theme": "dark"}\n', b""])
def test_what_is_no_log_has_no_importer(content: bytes, tmp_path: Path) -> None:
    """It is refused by what it looks like; our own log has none either, and is no fault."""
    odd = tmp_path / "odd.jsonl"
    odd.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"odd\.jsonl"):
        foreign_importer(str(odd))
    odd.write_bytes(codec.encode(entry("s", 0)) + b"\n")
    assert foreign_importer(str(odd)) is None


def test_a_log_that_is_gone_is_not_found(log: Path) -> None:
    """By its path, and not as a fault."""
    importer = foreign_importer(str(log))
    assert importer is not None
    log.unlink()
    with pytest.raises(NotFound, match="no log at"):
        open_foreign(str(log), importer)


def test_what_was_not_understood_is_told_and_never_called_healthy(log: Path) -> None:
    """Records of another program, glued to the log, are named; a few unknown ones in a hundred are no news."""
    whole = log.read_bytes()
    stranger = b'{"type":"strange_note","text":"x"}\n'
    log.write_bytes(whole + stranger * (whole.count(b"\n") // 2))
    store, warnings = open_history(str(log), explicit=True, readonly=True)
    key = store.sessions.latest()
    assert key is not None
    assert (len(store.gaps()), store.unread(), warnings, store.unread_parts()) == (1, 0, store.gaps(), store.gaps())
    assert "of type 'strange_note'" in warnings[0]
    assert "a part of the log was not understood" in judge_now(store, key, {}, None).notes
    store.close()

    log.write_bytes(whole)
    store, warnings = open_history(str(log), explicit=True, readonly=True)
    assert (store.gaps(), warnings) == ([], [])
    store.close()


def test_a_torn_last_line_is_incomplete_and_not_damaged(log: Path) -> None:
    """It may still be written; damage before it is called damage."""
    whole = log.read_bytes()
    for content, beginning in ((whole[:-20], "incomplete: "), (b"{x\n" + whole, "damaged: ")):
        log.write_bytes(content)
        store, warnings = open_history(str(log), explicit=True, readonly=True)
        store.close()
        assert [line.startswith(beginning) for line in warnings] == [True]
