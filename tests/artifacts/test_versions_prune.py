"""Retention: what stays and why, what goes with its bytes, and that a dry run touches nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.artifacts.version_folders import audit
from ctxmgr.errors import NotFound
from ctxmgr.log.ids import format_time, new_id, now
from ctxmgr.store import Store
from ctxmgr.store.project_session import PACKAGE, PROJECT, PRUNED
from ctxmgr.types.artifact import ArtifactLogRequest, PruneRequest, PruneResult, Retention
from ctxmgr.types.plain_records import build
from tests.artifacts.putting import back, get, object_of, put, text, tree

DAY = 86_400


def _prune(artifacts: ArtifactStore, *, dry_run: bool = False, **retention: object) -> PruneResult:
    asked: dict[str, object] = {"keep_versions": 1, "keep_days": 0, "always_keep": [], **retention}
    return artifacts.prune(PruneRequest(retention=Retention.model_validate(asked), dry_run=dry_run))


def _versions(artifacts: ArtifactStore) -> list[int]:
    return [view.version for view in artifacts.versions()]


@pytest.fixture
def five(artifacts: ArtifactStore) -> ArtifactStore:
    """Return a store with five versions; only one artifact changes in each."""
    for number in range(1, 6):
        put(artifacts, "arch", a_yaml=f"a: {number}\n", same_md="# same\n")
    return artifacts


@pytest.mark.requirement("003-V4")
def test_old_versions_go_with_the_bytes_that_only_they_show(five: ArtifactStore, store: Store, folder: Path) -> None:
    """Versions that nothing keeps are removed, and with them the bytes that no other version shows; the others are whole."""
    done = _prune(five, keep_versions=2)

    assert (done.removed, done.files, done.bytes) == ([1, 2, 3], 3, 15)
    assert _versions(five) == [4, 5]
    assert [object_of(folder, f"a: {number}\n").exists() for number in range(1, 6)] == [False] * 3 + [True] * 2
    assert [text(five, "arch/a.yaml", version) for version in (4, 5)] == ["a: 4\n", "a: 5\n"]
    assert tree(folder / "v4") == {"arch/a.yaml": "a: 4\n", "arch/same.md": "# same\n"}
    assert audit(store) == []
    with pytest.raises(NotFound):
        get(five, "arch/a.yaml", 2)
    assert [row.version for row in five.log(ArtifactLogRequest(agent="arch", name="a.yaml")).artifacts] == [5, 4]


@pytest.mark.requirement("003-V4")
def test_a_dry_run_says_the_same_and_removes_nothing(five: ArtifactStore, store: Store, folder: Path) -> None:
    """What a dry run announces is what pruning then does; itself it changes nothing, in the history neither."""
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name not in (".lock", ".reserve")}

    told = _prune(five, dry_run=True, keep_versions=2)

    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name not in (".lock", ".reserve")} == before
    assert store.shared.events(PRUNED) == []
    assert _prune(five, keep_versions=2).model_copy(update={"dry_run": True}) == told


@pytest.mark.requirement("003-V4", "003-V5")
def test_every_reason_keeps_a_version(five: ArtifactStore, store: Store) -> None:
    """The current one, pinned ones, those always kept and the newest stay, each with its reason."""
    two = get(five, "arch/a.yaml", 2).artifact.id
    package = {"agent": "coder", "items": [{"id": two, "type": "artifact"}]}
    store.append([build("event", PROJECT, now(), id="pack-1", type=PACKAGE, agent="coder", data=package)])
    back(five, 3)

    done = _prune(five, always_keep=[1, 99])

    assert done.removed == [4]
    assert {item.version: item.reason for item in done.kept} == {
        1: "always kept", 2: "pinned by package pack-1", 3: "current", 5: "among the newest 1",
    }  # fmt: skip
    assert [view.pinned for view in five.versions()] == [[], ["package pack-1"], [], []]


@pytest.mark.requirement("003-V5")
@pytest.mark.parametrize("kind", ["snapshot", "continuation"])
def test_what_a_record_names_is_pinned(five: ArtifactStore, store: Store, kind: str) -> None:
    """An artifact whose id stands in a snapshot or a continuation keeps its version."""
    two = get(five, "arch/a.yaml", 2).artifact.id
    snapshot: dict[str, object] = {"entries": [], "summary": f"built on {two}", "reasoning": "r", "hash": "0"}
    fields: dict[str, object] = snapshot if kind == "snapshot" else {"why": two}
    store.append([build(kind, "s", now(), id=new_id(), **fields)])

    _prune(five)

    assert _versions(five) == [2, 5]
    assert text(five, "arch/a.yaml", 2) == "a: 2\n"


@pytest.mark.requirement("003-V4")
def test_young_versions_stay(artifacts: ArtifactStore, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version younger than the days named stays, whatever its number; so does one from the future."""
    for number in range(1, 5):
        put(artifacts, "arch", a_yaml=f"a: {number}\n")
    present = store.clock()

    monkeypatch.setattr(store, "clock", lambda: present + 29 * DAY)
    assert _prune(artifacts, keep_days=30).removed == []
    monkeypatch.setattr(store, "clock", lambda: present - 9 * DAY)
    assert _prune(artifacts, keep_days=0).removed == []
    monkeypatch.setattr(store, "clock", lambda: present + 31 * DAY)
    assert _prune(artifacts, keep_days=30).removed == [1, 2, 3]


def test_the_default_keeps_ten_and_thirty_days_and_the_first(
    artifacts: ArtifactStore, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Unless said otherwise the newest ten, those of thirty days, and version 1 stay."""
    for number in range(1, 14):
        put(artifacts, "arch", a_yaml=f"a: {number}\n")
    present = store.clock()
    assert artifacts.prune(PruneRequest()).removed == []

    monkeypatch.setattr(store, "clock", lambda: present + 31 * DAY)
    assert artifacts.prune(PruneRequest()).removed == [2, 3]


def test_a_version_whose_time_is_not_known_stays(five: ArtifactStore, store: Store) -> None:
    """Where nobody knows how old a version is, it is not taken for old."""
    store.engine.execute("UPDATE version SET ts = NULL WHERE number = 2")

    assert _prune(five).removed == [1, 3, 4]


def test_numbers_are_never_used_again(five: ArtifactStore) -> None:
    """After pruning, the next version still gets the highest number ever plus one."""
    back(five, 2)
    _prune(five, always_keep=[])
    assert put(five, "arch", a_yaml="a: 9\n").version == 6
    back(five, 2)
    assert text(five, "arch/a.yaml") == "a: 2\n"


def test_a_pruned_version_can_not_come_back(five: ArtifactStore) -> None:
    """A rollback to a version that was pruned is answered like one to a version that never was."""
    _prune(five)
    with pytest.raises(NotFound, match="no version 1"):
        back(five, 1)


def test_a_state_outlives_the_versions_it_came_from(artifacts: ArtifactStore) -> None:
    """What appeared in a version that was pruned, and is still shown by a later one, stays readable."""
    put(artifacts, "arch", old_md="# old\n")
    put(artifacts, "arch", new_md="# new\n")
    put(artifacts, "arch", newer_md="# newer\n")

    assert _prune(artifacts).removed == [1, 2]

    assert text(artifacts, "arch/old.md") == "# old\n"
    view = get(artifacts, "arch/old.md").artifact
    assert (view.version, view.path) == (1, "artifacts/v3/arch/old.md")
    assert artifacts.log(ArtifactLogRequest(agent="arch", name="old.md")).artifacts[0].path == "artifacts/v3/arch/old.md"


def test_times_are_those_of_the_records(artifacts: ArtifactStore, store: Store) -> None:
    """A version is as old as its record says."""
    put(artifacts, "arch", a_yaml="a: 1\n")

    (version,) = artifacts.versions()
    assert version.created_at is not None
    assert version.created_at <= format_time(store.clock() + 1)
