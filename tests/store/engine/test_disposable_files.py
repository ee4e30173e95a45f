"""Where the index of a log lies: beside it, where it can be and nobody is bothered, else in the user's cache folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxmgr.history.query.requests import list_
from ctxmgr.log import codec
from ctxmgr.store import open_store
from ctxmgr.store.engine.disposable_files import BESIDE
from ctxmgr.types.query import ListRequest
from tests.builders import steps

STORY = ["Bash:ls -> a.txt", "> look closer", "Read:a.txt -> first", "?Edit:a.txt"]


def _log(path: Path, story: list[str]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(codec.encode(record) + b"\n" for record in steps("a", story)))
    return path


def _answers(path: Path) -> object:
    store = open_store(str(path), readonly=True)
    answers = list_(store, ListRequest(kind="all", limit=500)).to_json()
    store.close()
    return answers


def _cache_folder() -> Path:
    return Path(os.environ["XDG_CACHE_HOME"]) / "ctxmgr" / "index"


def test_the_index_lies_in_one_folder_beside_the_log(tmp_path: Path) -> None:
    """Opening a log changes no byte of it and puts one folder next to it, which git, backups and others leave alone."""
    path = _log(tmp_path / "h.jsonl", STORY)
    before = path.read_bytes(), path.stat().st_mtime_ns
    beside = tmp_path / BESIDE

    open_store(str(path)).close()

    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert sorted(tmp_path.glob("*h*")) == [path]
    assert (beside / ".gitignore").read_text() == "*\n"
    assert (beside / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    assert len(list(beside.glob("*.db"))) == 1
    assert not _cache_folder().exists()


def test_marks_that_a_killed_process_did_not_write_are_written(tmp_path: Path) -> None:
    """A folder without marks gets them when the next index is opened."""
    path = _log(tmp_path / "h.jsonl", STORY)
    (tmp_path / BESIDE).mkdir(0o700)

    open_store(str(path)).close()
    assert sorted(place.name for place in (tmp_path / BESIDE).iterdir() if place.suffix != ".db") == [
        ".gitignore",
        "CACHEDIR.TAG",
    ]


def _blocked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del monkeypatch
    folder.write_text("a file, not a folder")


def _linked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del monkeypatch
    (folder.parent / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "elsewhere")


def _open_to_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del monkeypatch
    folder.mkdir()
    folder.chmod(0o777)


def _not_writable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = os.mkdir

    def refuse(path: str, *rest: int) -> None:
        if Path(path) == folder:
            raise PermissionError(13, "Permission denied", path)
        make(path, *rest)

    monkeypatch.setattr("os.mkdir", refuse)


@pytest.mark.parametrize("spoil", [_blocked, _linked, _open_to_others, _not_writable])
def test_the_index_lies_in_the_cache_folder_where_it_cant_lie_beside_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path, pytest.MonkeyPatch], None]
) -> None:
    """Where the folder beside a log can't be made, or is not the user's alone, the index lies in the cache folder."""
    path = _log(tmp_path / "h.jsonl", STORY)
    first = _answers(path)
    shutil.rmtree(tmp_path / BESIDE)
    spoil(tmp_path / BESIDE, monkeypatch)

    assert _answers(path) == first
    assert len(list(_cache_folder().glob("*.db"))) == 1
    assert not list(tmp_path.rglob(f"{BESIDE}/*.db"))
    assert not list((tmp_path / "elsewhere").glob("*"))


def test_nothing_is_left_beside_the_log_of_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads the log of another user leaves nothing there that the owner could not delete."""
    path = _log(tmp_path / "h.jsonl", STORY)
    mine = os.getuid()
    monkeypatch.setattr("os.getuid", lambda: mine + 1)

    _answers(path)

    assert not (tmp_path / BESIDE).exists()


def test_an_index_that_was_copied_along_with_a_log_is_not_believed(tmp_path: Path) -> None:
    """An index made elsewhere could say anything: it is left alone, and one of this log is made beside it."""
    other = _log(tmp_path / "a" / "h.jsonl", ["Bash:lie"] * 3)
    path = _log(tmp_path / "b" / "h.jsonl", STORY)
    first = _answers(path)
    _answers(other)
    shutil.rmtree(path.parent / BESIDE)
    shutil.copytree(other.parent / BESIDE, path.parent / BESIDE)

    assert _answers(path) == first
    assert len(list((path.parent / BESIDE).glob("*.db"))) == 2
