"""What goes wrong while something is put: odd sources, full disks, two writers at once, damaged logs."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.artifacts.blobs import PIECE
from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.artifacts.version_folders import audit
from ctxmgr.errors import CtxmgrError, InvalidInput, NotFound, StorageFailed
from ctxmgr.store import Store, open_store
from ctxmgr.types.artifact import NewArtifact, PutRequest
from tests.artifacts.putting import put, put_one, text, tree

ROOT = Path(__file__).parents[2]


def _put_file(artifacts: ArtifactStore, path: Path, name: str = "a.md") -> None:
    artifacts.put(PutRequest(agent="arch", artifacts=[NewArtifact(name=name, path=str(path))]))


_SOURCES: dict[str, tuple[Callable[[Path], object], type[CtxmgrError]]] = {
    "missing": (os.fspath, NotFound),
    "fifo": (os.mkfifo, InvalidInput),
    "folder": (Path.mkdir, InvalidInput),
    "device": (lambda path: path.symlink_to("/dev/null"), InvalidInput),
    "loop": (lambda path: path.symlink_to(path), StorageFailed),
    "dangling": (lambda path: path.symlink_to("gone"), NotFound),
}


@pytest.mark.parametrize("kind", _SOURCES)
def test_what_is_no_file_is_refused(artifacts: ArtifactStore, store: Store, tmp_path: Path, kind: str) -> None:
    """A source that is not there, or is no regular file, is refused without waiting for it; nothing is stored."""
    make, error = _SOURCES[kind]
    source = tmp_path / "source"
    make(source)

    with pytest.raises(error):
        _put_file(artifacts, source)
    assert store.artifacts.current() is None


def test_a_source_may_be_a_link(artifacts: ArtifactStore, tmp_path: Path) -> None:
    """A user's own link to a file is followed: the artifact is what it leads to."""
    (tmp_path / "real.md").write_text("# real\n")
    (tmp_path / "link.md").symlink_to("real.md")

    _put_file(artifacts, tmp_path / "link.md")

    assert text(artifacts, "arch/a.md") == "# real\n"


@pytest.mark.parametrize("change", ["grows", "shrinks", "other"])
def test_a_source_that_changes_while_it_is_read_is_refused(
    artifacts: ArtifactStore, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:  # fmt: skip
    """Half of one content and half of another is never stored."""
    source = tmp_path / "source.txt"
    source.write_bytes(b"a" * (2 * PIECE))
    pread = os.pread

    def meddling(descriptor: int, size: int, place: int) -> bytes:
        piece = pread(descriptor, size, place)
        if place == 0 and size == PIECE and len(piece) == PIECE:
            content = {"grows": b"a" * (3 * PIECE), "shrinks": b"a" * PIECE, "other": b"b" * (2 * PIECE)}[change]
            source.write_bytes(content)
        return piece

    monkeypatch.setattr(os, "pread", meddling)
    with pytest.raises(StorageFailed, match="changed while it was read"):
        _put_file(artifacts, source)
    monkeypatch.undo()
    assert store.artifacts.current() is None


@pytest.mark.parametrize("call", ["write", "fsync", "rename", "link", "mkdir", "symlink", "pwrite"])
@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_a_full_disk_leaves_what_was(
    artifacts: ArtifactStore, store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch, call: str, after: int
) -> None:  # fmt: skip
    """When the system refuses any step half-way the error is typed, what was there is whole, and trying again succeeds."""
    put(artifacts, "arch", a_yaml="a: 1\n")
    real, left = getattr(os, call), after

    def failing(*arguments: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments, **options)

    monkeypatch.setattr(os, call, failing)
    with suppress(StorageFailed):  # anything else would be let out, and fail the test
        put(artifacts, "arch", a_yaml="a: 2\n", b_yaml="b: 1\n")
    monkeypatch.undo()

    assert tree(folder / "v1") == {"arch/a.yaml": "a: 1\n"}
    assert text(artifacts, "arch/a.yaml") in ("a: 1\n", "a: 2\n")
    put(artifacts, "arch", a_yaml="a: 2\n", b_yaml="b: 1\n")
    put(artifacts, "arch", c_yaml="c: 1\n")
    assert audit(store) == []
    assert tree(folder / "current") == {"arch/a.yaml": "a: 2\n", "arch/b.yaml": "b: 1\n", "arch/c.yaml": "c: 1\n"}


def test_a_refused_file_in_a_batch_stores_none(artifacts: ArtifactStore, store: Store, folder: Path, tmp_path: Path) -> None:
    """Of several files either all are stored or none, and the bytes of the others don't stay behind."""
    (tmp_path / "good.md").write_text("# good\n")
    items = [NewArtifact(name=name, path=str(tmp_path / name)) for name in ("good.md", "gone.md")]

    with pytest.raises(NotFound):
        artifacts.put(PutRequest(agent="arch", artifacts=items))

    assert store.artifacts.current() is None
    put(artifacts, "arch", a_yaml="a: 1\n")
    assert len([path for path in (folder / "objects").rglob("*") if path.is_file()]) == 1


def test_copies_stand_in_where_links_fail(
    artifacts: ArtifactStore, store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """On a file system without hard links, or with no more of them to give, a version holds copies."""
    put(artifacts, "arch", a_yaml="a: 1\n")

    def refused(*arguments: Any, **options: Any) -> None:
        raise OSError(errno.EMLINK, os.strerror(errno.EMLINK))

    monkeypatch.setattr(os, "link", refused)
    put(artifacts, "arch", b_yaml="b: 1\n")

    assert tree(folder / "v2") == {"arch/a.yaml": "a: 1\n", "arch/b.yaml": "b: 1\n"}
    assert (folder / "v2" / "arch" / "a.yaml").stat().st_nlink == 1
    assert audit(store) == []


_WRITER = """
import sys
from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.store import open_store
from tests.artifacts.putting import put_one
location, owner = sys.argv[1:]
sys.stdin.readline()
store = open_store(location, create=True)
for number in range(8):
    put_one(ArtifactStore(store), owner, f"{number}.md", f"{owner} {number}\\n")
    put_one(ArtifactStore(store), "both", "same.md", f"{owner} {number}\\n")
store.close()
"""


def test_two_writers_at_once_lose_nothing(store_path: Path, folder: Path) -> None:
    """Processes that put at the same time take turns: every artifact is there, and every version has one number."""
    command = [sys.executable, "-c", _WRITER, str(store_path)]
    writers = [subprocess.Popen([*command, f"agent{n}"], cwd=ROOT, stdin=subprocess.PIPE, text=True) for n in range(3)]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.close()
    assert [writer.wait(120) for writer in writers] == [0, 0, 0]

    store = open_store(str(store_path))
    numbers = [row.number for row in store.artifacts.versions()]
    assert numbers == list(range(1, 49))
    shown = tree(folder / "current")
    assert {f"agent{n}/{number}.md": f"agent{n} {number}\n" for n in range(3) for number in range(8)}.items() <= shown.items()
    assert audit(store) == []
    store.close()


def test_a_damaged_log_takes_no_bytes_with_it(tmp_path: Path) -> None:
    """While a log can't be read whole, nothing is removed that a lost record may have named; work goes on."""
    path = tmp_path / "history.jsonl"
    store = open_store(str(path), create=True)
    put(ArtifactStore(store), "arch", a_yaml="a: 1\n")
    put(ArtifactStore(store), "arch", a_yaml="a: 2\n")
    store.close()
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b'"kind":"event"', b'"kind":"ev\xff\x00nt"')
    path.write_bytes(b"\n".join(lines))

    damaged = open_store(str(path))
    assert damaged.artifacts.current() == 1
    put_one(ArtifactStore(damaged), "arch", "b.yaml", "b: 1\n")

    assert text(ArtifactStore(damaged), "arch/b.yaml") == "b: 1\n"
    folder = tmp_path / "artifacts"
    kept = [tree(place) for place in folder.glob(".unlisted-v2-*")]
    assert kept == [{"arch/a.yaml": "a: 2\n"}]
    damaged.close()


def test_a_view_with_other_bytes_of_the_same_size_is_a_fault(artifacts: ArtifactStore, store: Store, folder: Path) -> None:
    """What a version shows is compared byte for byte where it is not the object itself; a good copy is no fault."""
    put(artifacts, "arch", a_md="# a\n")
    shown = folder / "v1" / "arch" / "a.md"
    shown.unlink()
    shown.write_text("# a\n")
    assert audit(store) == []

    shown.write_text("# x\n")

    assert [(fault.what, fault.reason) for fault in audit(store)] == [("artifacts/v1/arch/a.md", "its bytes were changed")]
