"""The bytes of artifacts: kept once by their hash, measured piece by piece, searched for secrets, and back in their place."""

from __future__ import annotations

import hashlib
import io
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.artifacts.version_folders import audit
from ctxmgr.store import Store
from ctxmgr.types.artifact import GetRequest, NewArtifact, PutRequest
from tests.artifacts.putting import get, meddle, object_of, put, put_one, text, tree
from tests.artifacts.test_put_faults import ROOT


@pytest.mark.requirement("003-S2")
def test_content_is_kept_by_its_hash(artifacts: ArtifactStore, folder: Path) -> None:
    """The same content under two names lies there once, under its SHA-256, and nobody may write it."""
    done = put(artifacts, "arch", a_yaml="same: true\n", b_yaml="same: true\n")

    assert {item.hash for item in done.artifacts} == {hashlib.sha256(b"same: true\n").hexdigest()}
    (stored,) = [path for path in (folder / "objects").rglob("*") if path.is_file()]
    assert stored == object_of(folder, "same: true\n")
    assert stat.S_IMODE(stored.stat().st_mode) == 0o400
    assert stored.stat().st_nlink == 3


def test_bytes_that_are_no_text_are_kept_exactly(artifacts: ArtifactStore) -> None:
    """Binary content comes back as base64, with the same bytes, and counts as binary."""
    content = bytes(range(256)) * 5
    item = NewArtifact(name="model.bin", path="-")
    done = artifacts.put(PutRequest(agent="ml", artifacts=[item]), io.BytesIO(content))

    view, opened = artifacts.open(GetRequest(agent="ml", name="model.bin"))
    with opened:
        assert opened.read() == content
    assert (view.type, view.size) == ("binary", 1280)
    assert get(artifacts, "ml/model.bin").encoding == "base64"
    assert done.artifacts[0].hash == hashlib.sha256(content).hexdigest()


def test_a_letter_cut_in_two_by_the_stream_is_still_text(artifacts: ArtifactStore) -> None:
    """Text is recognised whatever pieces it comes in, and its characters are counted, not its bytes."""
    content = "a" * (2**20 - 1) + "é" * 1000
    put_one(artifacts, "arch", "a.txt", content)

    view = get(artifacts, "arch/a.txt").artifact
    assert (view.type, view.tokens) == ("text", (len(content) + 3) // 4)


def test_a_secret_is_kept_and_told_of(artifacts: ArtifactStore) -> None:
    """Content that looks like a secret stays exactly as it is, with a warning that names the artifact."""
    secret = "token = ghp_" + "a1B2" * 9 + "\n"
    put_one(artifacts, "arch", "env.txt", secret)

    assert text(artifacts, "arch/env.txt") == secret
    assert artifacts.warnings == ["env.txt holds what looks like a secret (key in line 1); it is kept exactly as it is"]


_HUGE = """
import resource, sys
from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.store import open_store
from ctxmgr.types.artifact import GetRequest, NewArtifact, PutRequest
location, source, target = sys.argv[1:]
store = open_store(location, create=True)
artifacts = ArtifactStore(store)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
artifacts.put(PutRequest(agent="big", artifacts=[NewArtifact(name="huge.bin", path=source)]))
view, content = artifacts.open(GetRequest(agent="big", name="huge.bin"))
with content, open(target, "wb") as stream:
    content.copy_to(stream.write)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
sys.stdout.write(f"{view.size} {grown}")
"""


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """A file of 64 MB is put and read with less than 40 MB more than before, and comes out as it went in."""
    source, target = tmp_path / "huge.bin", tmp_path / "out.bin"
    with source.open("wb") as stream:
        stream.write(b"text before the hole")
        stream.truncate(64 * 2**20)

    arguments = [str(tmp_path / "history.db"), str(source), str(target)]
    ran = subprocess.run([sys.executable, "-c", _HUGE, *arguments], cwd=ROOT, capture_output=True, text=True, check=True)

    size, grown = map(int, ran.stdout.split())
    assert size == 64 * 2**20 == target.stat().st_size
    assert grown < 40 * 1024
    assert subprocess.run(["cmp", str(source), str(target)], check=False).returncode == 0


@pytest.mark.parametrize("lost", [True, False])
def test_putting_the_same_again_mends_what_shows_it(artifacts: ArtifactStore, store: Store, folder: Path, lost: bool) -> None:
    """An object that was changed or removed behind the store's back comes back with its content, and so do its views."""
    put(artifacts, "arch", a_md="# a\n", b_md="# b\n")
    if lost:
        object_of(folder, "# a\n").unlink()
        (folder / "v1" / "arch" / "a.md").unlink()
    else:
        meddle(object_of(folder, "# a\n"), b"# x\n")
    assert audit(store) != []

    put(artifacts, "arch", a_md="# a\n")

    assert audit(store) == []
    assert tree(folder / "v1") == {"arch/a.md": "# a\n", "arch/b.md": "# b\n"}


def test_putting_it_again_repairs_what_was_changed(artifacts: ArtifactStore, store: Store, folder: Path) -> None:
    """The same content put again brings damaged bytes back, without a new version."""
    put(artifacts, "arch", a_yaml="a: 1\n")
    meddle(object_of(folder, "a: 1\n"), b"a: 9\n")

    assert put(artifacts, "arch", a_yaml="a: 1\n").changed is False

    assert text(artifacts, "arch/a.yaml") == "a: 1\n"
    assert store.artifacts.current() == 1
