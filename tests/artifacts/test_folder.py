"""The folder: whose it is, who may look into it, and that no link in it leads anywhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.artifacts.version_folders import audit
from ctxmgr.errors import Busy, Damaged, StorageFailed
from ctxmgr.store import Store, open_store
from tests.artifacts.putting import back, object_of, put, text, tree


def test_it_lies_beside_the_store_and_is_private(artifacts: ArtifactStore, store_path: Path, folder: Path) -> None:
    """The folder names the store that it belongs to; only its owner may look into it, whatever the umask."""
    before = os.umask(0)
    try:
        put(artifacts, "arch", a_yaml="a: 1\n")
    finally:
        os.umask(before)

    assert (folder / ".store").read_text() == f"{store_path.name}\n"
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            allowed = 0o700 if path.is_dir() else 0o600
            assert stat.S_IMODE(path.stat().st_mode) & ~allowed == 0, path


def test_two_stores_in_one_place_keep_apart(artifacts: ArtifactStore, store_path: Path, folder: Path) -> None:
    """A second store beside the first has a folder of its own, named after it."""
    put(artifacts, "arch", a_yaml="first: 1\n")
    other = open_store(str(store_path.with_name("other.db")), create=True)
    done = put(ArtifactStore(other), "arch", a_yaml="second: 1\n")

    assert done.path == "other.db.artifacts/v1/arch/a.yaml"
    assert (folder.parent / done.path).read_text() == "second: 1\n"
    assert text(artifacts, "arch/a.yaml") == "first: 1\n"
    assert audit(other) == []
    other.close()


@pytest.mark.parametrize("there", ["folder", "file"])
def test_somebody_else_s_artifacts_are_left_alone(
    artifacts: ArtifactStore, store_path: Path, folder: Path, there: str
) -> None:  # fmt: skip
    """A folder or file of that name that is not the store's stays untouched."""
    if there == "folder":
        folder.mkdir()
        (folder / "mine.txt").write_text("mine")
    else:
        folder.write_text("mine")

    done = put(artifacts, "arch", a_yaml="a: 1\n")

    assert done.path == f"{store_path.name}.artifacts/v1/arch/a.yaml"
    assert (list(folder.iterdir()) == [folder / "mine.txt"]) if there == "folder" else folder.read_text() == "mine"


def test_a_store_is_the_same_through_a_link(artifacts: ArtifactStore, store_path: Path, tmp_path: Path) -> None:
    """A log that is opened through a link has the artifacts that lie beside the log; a database behind a link is refused."""
    put(artifacts, "arch", a_yaml="a: 1\n")
    (tmp_path / "far").mkdir()
    link = tmp_path / "far" / f"link{store_path.suffix}"
    link.symlink_to(store_path)

    if store_path.suffix != ".jsonl":
        with pytest.raises(Damaged, match="nothing is read or written through it"):
            open_store(str(link))
        return
    other = open_store(str(link))
    assert text(ArtifactStore(other), "arch/a.yaml") == "a: 1\n"
    other.close()


@pytest.mark.parametrize("part", ["artifacts", "artifacts/objects", "shard", "artifacts/.lock"])
def test_a_link_in_place_of_a_part_is_refused(artifacts: ArtifactStore, folder: Path, tmp_path: Path, part: str) -> None:
    """Nothing is written or read through a link that stands where the folder, or something in it, belongs."""
    put(artifacts, "arch", a_yaml="a: 1\n")
    place = object_of(folder, "a: 2\n").parent if part == "shard" else folder.parent / part
    outside = tmp_path / "outside"
    outside.mkdir()
    if place.is_dir():
        os.rename(place, tmp_path / "moved")
    elif place.exists():
        place.unlink()
    place.symlink_to(outside / "target" if part.endswith(".lock") else outside)

    with pytest.raises((Damaged, StorageFailed)):
        put(artifacts, "arch", a_yaml="a: 2\n")
    if part == "artifacts":
        with pytest.raises(Damaged):
            text(artifacts, "arch/a.yaml")
    assert list(outside.iterdir()) == []


def test_links_in_a_version_are_never_followed(artifacts: ArtifactStore, folder: Path, tmp_path: Path) -> None:
    """Somebody's links in a version's folder are removed with it, and what they lead to stays."""
    from ctxmgr.types.artifact import PruneRequest, Retention

    put(artifacts, "arch", a_yaml="a: 1\n")
    put(artifacts, "arch", a_yaml="a: 2\n")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("keep")
    (folder / "v1" / "arch" / "link").symlink_to(tmp_path / "precious")
    (folder / "v1" / "other").symlink_to(tmp_path / "precious", target_is_directory=True)

    artifacts.prune(PruneRequest(retention=Retention(keep_versions=1, keep_days=0, always_keep=[])))

    assert not (folder / "v1").exists()
    assert (tmp_path / "precious" / "file").read_text() == "keep"


def test_a_version_s_number_in_foreign_hands_is_taken_back(artifacts: ArtifactStore, folder: Path) -> None:
    """A folder that stands where the next version belongs, and that no version lists, makes way."""
    put(artifacts, "arch", a_yaml="a: 1\n")
    (folder / "v2" / "arch").mkdir(parents=True)
    (folder / "v2" / "arch" / "stray.txt").write_text("stray")

    assert put(artifacts, "arch", a_yaml="a: 2\n").version == 2
    assert tree(folder / "v2") == {"arch/a.yaml": "a: 2\n"}


@pytest.mark.parametrize("lost", ["current", "v1", "v2", "both"])
def test_a_view_that_was_lost_is_laid_out_again(artifacts: ArtifactStore, store: Store, folder: Path, lost: str) -> None:
    """The next change brings back what somebody removed of the versions' folders or of `current`."""
    put(artifacts, "arch", a_yaml="a: 1\n")
    put(artifacts, "arch", a_yaml="a: 2\n")
    for name in ("v1", "v2") if lost == "both" else (lost,):
        os.rename(folder / name, folder.parent / f"gone-{name}")
    assert audit(store) != []

    put(artifacts, "arch", b_yaml="b: 1\n")

    assert audit(store) == []
    assert tree(folder / "v1") == {"arch/a.yaml": "a: 1\n"}


def test_current_in_place_of_a_link_is_told_of(artifacts: ArtifactStore, folder: Path) -> None:
    """A folder where the link belongs is not removed by force; the change is made and the fault is told."""
    put(artifacts, "arch", a_yaml="a: 1\n")
    (folder / "current").unlink()
    (folder / "current" / "inner").mkdir(parents=True)

    with pytest.raises((StorageFailed, Damaged)):
        put(artifacts, "arch", a_yaml="a: 2\n")
    assert (folder / "current" / "inner").is_dir()


def test_a_writer_waits_for_another_one_and_gives_up_in_the_end(artifacts: ArtifactStore, store: Store) -> None:
    """While one writer holds the folder, another one waits its time and then says that it is busy."""
    from ctxmgr.artifacts.put import write_access

    put(artifacts, "arch", a_yaml="a: 1\n")
    put(artifacts, "arch", a_yaml="a: 2\n")
    with write_access(store), pytest.raises(Busy), write_access(store, timeout=0.01):
        pass
    back(artifacts, 1)


def test_a_store_opened_for_reading_takes_nothing(artifacts: ArtifactStore, store_path: Path) -> None:
    """A read-only store reads artifacts and refuses to change them."""
    put(artifacts, "arch", a_yaml="a: 1\n")
    store = open_store(str(store_path), readonly=True)

    assert text(ArtifactStore(store), "arch/a.yaml") == "a: 1\n"
    with pytest.raises(StorageFailed):
        put(ArtifactStore(store), "arch", a_yaml="a: 2\n")
    store.close()
