"""Finding artifacts: by id or by name, as of any version, and verified: what was changed behind the store is never served."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.artifacts.version_folders import audit
from ctxmgr.errors import Damaged, InvalidInput, NotFound
from ctxmgr.store import Store
from ctxmgr.types.artifact import (
    GetRequest,
    ListArtifactsRequest,
    PruneRequest,
    Retention,
)
from tests.artifacts.putting import get, meddle, object_of, put, put_one, text


@pytest.mark.requirement("003-S5")
def test_an_artifact_is_read_by_version(artifacts: ArtifactStore) -> None:
    """Without a version the current content is read, with one what that version shows."""
    for number in (1, 2, 3):
        put(artifacts, "arch", a_yaml=f"a: {number}\n", b_yaml="b: 1\n")

    assert [text(artifacts, "arch/a.yaml", version) for version in (None, 1, 2, 3)] == [f"a: {n}\n" for n in (3, 1, 2, 3)]
    shown = get(artifacts, "arch/b.yaml", 2).artifact
    assert (shown.version, shown.path) == (1, "artifacts/v2/arch/b.yaml")


@pytest.mark.requirement("003-S5")
def test_an_artifact_is_read_by_id(artifacts: ArtifactStore) -> None:
    """An id names one content for ever, whole or by an unambiguous start; an ambiguous one is refused."""
    first = put(artifacts, "arch", a_yaml="a: 1\n")
    put(artifacts, "arch", a_yaml="a: 2\n")
    assert first.id is not None

    assert artifacts.get(GetRequest(id=first.id)).content == "a: 1\n"
    assert artifacts.get(GetRequest(id=first.id[:14])).artifact.id == first.id
    for number in range(20):
        put_one(artifacts, "arch", f"{number}.md", f"{number}\n")
    starts = [row.id[:5] for row in artifacts.list(ListArtifactsRequest()).artifacts]
    with pytest.raises(InvalidInput, match="several artifact ids"):
        artifacts.get(GetRequest(id=max(starts, key=starts.count)))


@pytest.mark.parametrize("identity", ["art_", "art_zz", "art_0000000000000000", "art_%", "ghost", ""])
def test_an_unknown_id_is_not_found(artifacts: ArtifactStore, identity: str) -> None:
    """An id of nothing, or a text that is no id, is answered as not found."""
    put(artifacts, "arch", a_yaml="a: 1\n")

    with pytest.raises(NotFound):
        artifacts.get(GetRequest(id=identity))


@pytest.mark.requirement("003-S7")
def test_what_is_not_found_is_answered_with_similar_names(artifacts: ArtifactStore) -> None:
    """The hint names artifacts that are called nearly so, or the version in which it stands."""
    put(artifacts, "system_architect", architecture_yaml="a: 1\n", decisions_md="# d\n")
    put(artifacts, "system_architect", notes_md="later\n")

    with pytest.raises(NotFound) as caught:
        get(artifacts, "system-architect/architecture.yml")
    assert caught.value.hint == "did you mean system_architect/architecture.yaml?"
    with pytest.raises(NotFound) as caught:
        get(artifacts, "system_architect/notes.md", 1)
    assert caught.value.hint == "its latest content stands in version 2: --version 2"


@pytest.mark.parametrize("change", ["other", "longer", "gone", "link"])
def test_changed_bytes_are_never_served(artifacts: ArtifactStore, store: Store, folder: Path, change: str) -> None:
    """Bytes that were changed, or are gone, behind the store's back are found by their hash, told of, and not served."""
    put(artifacts, "arch", a_yaml="a: 1\n", b_yaml="b: 1\n")
    place = object_of(folder, "a: 1\n")
    if change in ("other", "longer"):
        meddle(place, b"a: 9\n" if change == "other" else b"a: 1\nmore\n")
    else:
        (folder / "v1" / "arch" / "a.yaml").unlink()
        place.unlink()
    if change == "link":
        place.symlink_to(folder / "v1" / "arch" / "b.yaml")

    with pytest.raises(Damaged, match=r"arch/a\.yaml of version 1"):
        get(artifacts, "arch/a.yaml")
    assert text(artifacts, "arch/b.yaml") == "b: 1\n"
    assert audit(store) != []


def test_an_intact_copy_in_a_version_is_served(artifacts: ArtifactStore, folder: Path) -> None:
    """An object that is gone is read from a version's folder, if the bytes there have the right hash."""
    put(artifacts, "arch", a_yaml="a: 1\n")
    object_of(folder, "a: 1\n").unlink()
    assert text(artifacts, "arch/a.yaml") == "a: 1\n"

    meddle(folder / "v1" / "arch" / "a.yaml", b"a: 9\n")
    with pytest.raises(Damaged):
        get(artifacts, "arch/a.yaml")


def test_bytes_that_are_gone_altogether_are_told_of(artifacts: ArtifactStore, store: Store, folder: Path) -> None:
    """A store whose artifacts folder was left behind still lists what there was, and says that the bytes are gone."""
    put(artifacts, "arch", a_yaml="a: 1\n")
    os.rename(folder, folder.with_name("elsewhere"))

    with pytest.raises(Damaged):
        get(artifacts, "arch/a.yaml")
    assert len(artifacts.list(ListArtifactsRequest()).artifacts) == 1
    assert [fault.reason for fault in audit(store)] == ["is gone, with every artifact in it"]
    assert put(artifacts, "arch", b_yaml="b: 1\n").version == 2
    assert text(artifacts, "arch/b.yaml") == "b: 1\n"


def test_a_version_that_is_not_there_is_named(artifacts: ArtifactStore) -> None:
    """Of a number that no version has, or a pruned one, that is what is said; of another, where the latest content stands."""
    for number in (1, 2, 3):
        put(artifacts, "arch", a_yaml=f"a: {number}\n")
    put(artifacts, "arch", b_yaml="b: 1\n")
    artifacts.prune(PruneRequest(retention=Retention(keep_versions=1, keep_days=0)))

    for number in (2, 99):
        with pytest.raises(NotFound, match=f"^no version {number}"):
            get(artifacts, "arch/a.yaml", number)
    with pytest.raises(NotFound, match="in version 1") as refused:
        get(artifacts, "arch/b.yaml", 1)
    assert refused.value.hint == "its latest content stands in version 4: --version 4"
