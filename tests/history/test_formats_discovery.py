"""Which files of a folder are logs, and how those that are none are told."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ctxmgr.errors import InvalidInput, NotFound
from tests.history.logs import ROLLOUT, bring_in, fresh


def test_what_is_no_log(tmp_path: Path) -> None:
    """What is of no known format is refused where it is all there is, and reported as passed over beside a log."""
    store = fresh(tmp_path, "store.db")
    (tmp_path / "logs").mkdir()
    notes, empty = tmp_path / "logs" / "notes.jsonl", tmp_path / "logs" / "empty.jsonl"
    notes.write_text('{"name":"user","content":"hello"}\n', encoding="utf-8")
    empty.touch()

    for path, reason in ((notes, "not a log of a known format"), (empty, "the file is empty")):
        with pytest.raises(InvalidInput, match=reason):
            bring_in(store, path)
    with pytest.raises(NotFound):
        bring_in(store, tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match="none of its 2 files"):
        bring_in(store, tmp_path / "logs")
    (tmp_path / "logs" / "nothing").mkdir()
    with pytest.raises(InvalidInput, match="no log in it"):
        bring_in(store, tmp_path / "logs" / "nothing")

    looks = "not a log of a known format; it looks like a JSON document with the keys name, content"
    report = bring_in(store, notes, ROLLOUT)
    assert {Path(file.path).name: file.skipped for file in report.files} == {"notes.jsonl": looks, ROLLOUT.name: None}


def test_what_is_passed_over_in_a_folder_is_told(tmp_path: Path) -> None:
    """Beside a log, files that look like logs are listed with what they look like; all else is counted, side files are not."""
    place = tmp_path / "logs"
    (place / "tool-results").mkdir(parents=True)
    shutil.copy(ROLLOUT, place)
    given = {
        "noise.jsonl": bytes(range(256)) * 9, "other.jsonl": b'{"role":"user"}\n{"role":"user"}\n',
        "talk.json": b'{"messages": []}', "package.json": b'{"name": "x"}', "image.png": b"\x89PNG", "agent-1.meta.json": b"{}",
        "tool-results/a.json": b'{"messages": []}',
    }  # fmt: skip
    for name, content_ in given.items():
        (place / name).write_bytes(content_)
    report = bring_in(fresh(tmp_path), place, tmp_path / "logs" / "tool-results")

    assert {Path(file.path).name: file.skipped for file in report.files if file.skipped} == {
        "noise.jsonl": "not a log of a known format; it looks like binary data",
        "other.jsonl": "not a log of a known format; it looks like JSON lines with the keys role",
        "talk.json": "not a log of a known format; it looks like a JSON document with the keys messages",
        "tool-results": "there is no log in it",
    }
    assert (report.skipped, report.others) == (4, 2)
    assert [Path(file).name for file in report.other_files] == ["image.png", "package.json"]
