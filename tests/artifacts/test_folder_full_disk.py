"""On a full disk artifacts can still be read, and old versions pruned, so that space comes back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ctxmgr.artifacts.folder import Folder, release_reserve
from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.store import Store, open_store
from ctxmgr.types.artifact import NewArtifact, PutRequest

_SCRIPT = """
set -e
mount -t tmpfs -o size=6m tmpfs "$1"
export HOME="$1" XDG_STATE_HOME="$1/state" XDG_CACHE_HOME="$1/cache" PYTHONDONTWRITEBYTECODE=1
for number in 1 2 3 4; do
  head -c 200000 /dev/urandom > "$1/a.bin"
  "$2" -m ctxmgr artifact put "$1/a.bin" --name a.bin --agent arch --store "$1/$3" > /dev/null
done
set +e
cat /dev/zero > "$1/fill" 2> /dev/null
prune="version prune --keep-versions 1 --keep-days 0"
for words in "artifact list" "artifact get arch/a.bin -o $4" "version list" "list" "$prune"; do
  "$2" -m ctxmgr $words --store "$1/$3" > /dev/null; echo $?
done
stat -f -c %f "$1"
"$2" -m ctxmgr artifact put "$2" --name b --agent arch --store "$1/$3" > /dev/null 2>&1 || true
"$2" -m ctxmgr verify --store "$1/$3" > /dev/null; echo $?
"""


def put(store: Store, *contents: tuple[str, str]) -> None:
    """Put texts under names of one agent."""
    items = [NewArtifact(name=name, content=text) for name, text in contents]
    ArtifactStore(store).put(PutRequest(agent="arch", artifacts=items))


def _test_it(kind: str, tmp_path: Path) -> list[str]:
    root = tmp_path / "root"
    root.mkdir()
    line = ["unshare", "-m", "bash", "-c", _SCRIPT, "bash", str(root), sys.executable, f"history.{kind}", str(tmp_path / "out")]
    return subprocess.run(line, capture_output=True, text=True, check=False).stdout.split()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["db", "jsonl"])
def test_space_can_be_freed_on_a_full_disk(kind: str, tmp_path: Path) -> None:
    """With not a byte left, artifacts are listed and copied out elsewhere, and a prune frees its blocks; all is sound."""
    if os.geteuid() != 0:
        pytest.skip("a file system of its own needs root")
    *codes, free, verified = _test_it(kind, tmp_path)

    assert codes == ["0"] * 5
    assert int(free) * 4096 > 300_000  # two old versions of 200,000 bytes
    assert verified == "0"
    assert (tmp_path / "out").stat().st_size == 200_000


def test_space_is_held_back_once_there_are_artifacts(tmp_path: Path) -> None:
    """A writer holds back a megabyte for the day when the disk is full, privately; giving it back twice is harmless."""
    place = str(tmp_path / "history.db")
    store = open_store(place, create=True)
    assert not release_reserve(place)
    put(store, ("a.md", "# A\n"))
    reserve = tmp_path / "artifacts" / ".reserve"

    assert reserve.stat().st_blocks * 512 >= 1 << 20
    assert reserve.stat().st_mode & 0o777 == 0o600
    assert release_reserve(place)
    assert not release_reserve(place)
    put(store, ("a.md", "# B\n"))
    assert reserve.exists()
    store.close()


def test_where_nothing_can_be_held_back_nothing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is too full to hold space back still takes the artifact."""

    def refuse(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    place = str(tmp_path / "history.db")
    store = open_store(place, create=True)
    put(store, ("a.md", "# A\n"))
    store.close()

    assert not (tmp_path / "artifacts" / ".reserve").exists()
    with Folder(place, create=False) as folder:
        assert not folder.release_reserve()
