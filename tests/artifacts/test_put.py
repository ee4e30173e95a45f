"""Putting: one or many at once, by their hash, one version for each change and none without one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.errors import CtxmgrError, InvalidInput, NotFound
from ctxmgr.store import Store, open_store
from ctxmgr.store.project_session import VERSION
from ctxmgr.types.artifact import NewArtifact, NewDependency, PutRequest
from tests.artifacts.putting import get, put, put_one, tree


@pytest.mark.requirement("003-S1", "003-S3", "003-S4")
def test_many_are_put_at_once(artifacts: ArtifactStore, folder: Path) -> None:
    """Several artifacts make one version; the answer names it, and id, path and tokens of each."""
    done = put(artifacts, "requirements_gatherer", requirements_yaml="goal: ship\n", requirements_md="# Goal\n\nShip it.\n")

    assert (done.version, done.changed, done.id) == (1, True, None)
    assert [(item.name, item.type, item.tokens, item.counter) for item in done.artifacts] == [
        ("requirements.yaml", "yaml", 4, "estimate"), ("requirements.md", "markdown", 5, "estimate"),
    ]  # fmt: skip
    assert done.artifacts[0].path == "artifacts/v1/requirements_gatherer/requirements.yaml"
    assert (folder.parent / done.artifacts[0].path).read_text() == "goal: ship\n"
    assert tree(folder / "current") == tree(folder / "v1")
    assert os.readlink(folder / "current") == "v1"


@pytest.mark.requirement("003-S2")
def test_unchanged_content_makes_no_version(artifacts: ArtifactStore, store: Store, folder: Path) -> None:
    """The same bytes put again change nothing, and answer the id and the version that are there."""
    first = put(artifacts, "arch", a_yaml="a: 1\n")

    again = put(artifacts, "arch", a_yaml="a: 1\n")

    assert (again.changed, again.version, again.id) == (False, 1, first.id)
    assert [row.number for row in store.artifacts.versions()] == [1]
    assert not (folder / "v2").exists()
    assert len(store.shared.events(VERSION)) == 1


@pytest.mark.requirement("003-S3")
def test_a_version_shows_what_its_parent_showed_and_what_is_new(artifacts: ArtifactStore, folder: Path) -> None:
    """Each version's folder holds everything as of then, whoever it belongs to."""
    put(artifacts, "arch", a_yaml="a: 1\n", b_yaml="b: 1\n")
    put(artifacts, "data", s_yaml="s: 1\n")
    put(artifacts, "arch", a_yaml="a: 2\n")

    assert tree(folder / "v1") == {"arch/a.yaml": "a: 1\n", "arch/b.yaml": "b: 1\n"}
    assert tree(folder / "v3") == {"arch/a.yaml": "a: 2\n", "arch/b.yaml": "b: 1\n", "data/s.yaml": "s: 1\n"}


def test_only_what_changed_is_new(artifacts: ArtifactStore, store: Store) -> None:
    """Of several put together those as they were keep their id and the version they appeared in."""
    first = put(artifacts, "arch", a_yaml="a: 1\n", b_yaml="b: 1\n")
    second = put(artifacts, "arch", a_yaml="a: 1\n", b_yaml="b: 2\n")

    assert [item.version for item in second.artifacts] == [1, 2]
    assert second.artifacts[0].id == first.artifacts[0].id
    assert store.engine.query("SELECT count(*) FROM artifact WHERE version = 2") == [(1,)]


@pytest.mark.only_files
def test_the_same_store_gives_the_same_ids(store_path: Path) -> None:
    """Ids follow from owner, name, version and content, whoever makes them."""
    ids: list[str | None] = []
    for place in ("one", "two"):
        path = store_path.parent / place / store_path.name
        store = open_store(str(path), create=True)
        ids.append(put_one(ArtifactStore(store), "arch", "a.yaml", "a: 1\n").id)
        store.close()

    assert ids[0] == ids[1] is not None


@pytest.mark.requirement("003-S1")
def test_what_is_said_of_an_artifact_stays_until_something_else_is_said(artifacts: ArtifactStore) -> None:
    """A put that says nothing of description, type and dependencies keeps them; saying something new makes a version."""
    put(artifacts, "arch", base_md="# base\n")
    needs = [NewDependency(agent="arch", name="base.md", type="reference")]
    put_one(artifacts, "arch", "plan", "one", type="json", description="the plan", dependencies=needs)
    done = put_one(artifacts, "arch", "plan", "two")
    said = put_one(artifacts, "arch", "plan", "two", description="another plan")

    (kept,) = done.artifacts
    assert (kept.type, kept.description, kept.version) == ("json", "the plan", 3)
    assert [(item.name, item.type) for item in kept.dependencies] == [("base.md", "reference")]
    assert (said.changed, said.version, said.artifacts[0].description) == (True, 4, "another plan")
    assert put_one(artifacts, "arch", "plan", "two", description="").artifacts[0].description is None


@pytest.mark.requirement("003-S8")
def test_dependencies_name_what_stood_there(artifacts: ArtifactStore) -> None:
    """A dependency keeps the id that stood under its name, of the same put too; asked again unchanged it makes no version."""
    base = put(artifacts, "req", r_yaml="r: 1\n")
    items = [
        NewArtifact(name="a.md", content="# a\n", dependencies=[NewDependency(agent="req", name="r.yaml")]),
        NewArtifact(name="b.md", content="# b\n", dependencies=[NewDependency(agent="arch", name="a.md", type="optional")]),
    ]
    done = artifacts.put(PutRequest(agent="arch", artifacts=items))

    first, second = done.artifacts
    assert [(item.id, item.type) for item in first.dependencies] == [(base.id, "required")]
    assert [(item.id, item.type) for item in second.dependencies] == [(first.id, "optional")]
    assert artifacts.put(PutRequest(agent="arch", artifacts=items)).changed is False


@pytest.mark.requirement("003-S8")
@pytest.mark.parametrize(
    ("needs", "error"),
    [([("arch", "a.md")], InvalidInput), ([("req", "gone.md")], NotFound), ([("arch", "old.md")] * 2, InvalidInput)],
)  # fmt: skip
def test_impossible_dependencies_are_refused(
    artifacts: ArtifactStore, needs: list[tuple[str, str]], error: type[CtxmgrError]
) -> None:  # fmt: skip
    """An artifact depends neither on itself, nor on what is not there, nor twice on the same; nothing is stored then."""
    put(artifacts, "arch", old_md="# old\n")
    named = [NewDependency(agent=agent, name=name) for agent, name in needs]

    with pytest.raises(error):
        put_one(artifacts, "arch", "a.md", dependencies=named)

    with pytest.raises(NotFound):
        get(artifacts, "arch/a.md")


def test_types_follow_from_name_and_content_or_are_named(artifacts: ArtifactStore) -> None:
    """The type is told from the name, else from the content; a known word names it, an unknown one is refused."""
    done = put(artifacts, "arch", a_py="x = 1\n", b_json="{}", c="# Heading\n\ntext\n", d_txt="hello")
    assert [item.type for item in done.artifacts] == ["python", "json", "markdown", "text"]
    assert put_one(artifacts, "arch", "e", type="yml").artifacts[0].type == "yaml"
    with pytest.raises(InvalidInput, match="no artifact type"):
        put_one(artifacts, "arch", "f", type="poem")


@pytest.mark.parametrize(
    "items",
    [
        [NewArtifact(name="a", content="1"), NewArtifact(name="a", content="2")],
        [NewArtifact(name="a")],
        [NewArtifact(name="a", content="1", path="x")],
        [NewArtifact(name="a", path="-")],
        [NewArtifact(name="a", content="1", description="x" * 10_001)],
        [NewArtifact(name="a", content="1", description="\ud800")],
        [NewArtifact(name="a", content="\ud800")],
    ],
)
def test_odd_requests_are_refused_whole(artifacts: ArtifactStore, store: Store, items: list[NewArtifact]) -> None:
    """A name given twice, no content or two, a stream that is not there, texts that are none: nothing is stored."""
    with pytest.raises(InvalidInput):
        artifacts.put(PutRequest(agent="arch", artifacts=[NewArtifact(name="first", content="fine"), *items]))

    assert store.artifacts.current() is None


def test_a_batch_is_stored_whole(artifacts: ArtifactStore, folder: Path) -> None:
    """Forty artifacts put at once are all there, each with its bytes, in one version."""
    items = [NewArtifact(name=f"part/{number}.txt", content=f"part {number}\n") for number in range(40)]
    done = artifacts.put(PutRequest(agent="arch", artifacts=items))

    assert done.version == 1
    assert tree(folder / "v1") == {f"arch/part/{number}.txt": f"part {number}\n" for number in range(40)}


def test_metadata_are_events_of_the_one_history(artifacts: ArtifactStore, store_path: Path, tmp_path: Path) -> None:
    """A history that is read again from its records alone knows the same artifacts and versions."""
    put(artifacts, "arch", a_yaml="a: 1\n")
    put(artifacts, "arch", a_yaml="a: 2\n")
    first = open_store(str(store_path))
    second = open_store(str(tmp_path / "second.db"), create=True)
    second.append(list(first.sessions.records(None)))

    assert second.artifacts.versions() == first.artifacts.versions()
    assert second.artifacts.state(2) == first.artifacts.state(2)
    first.close()
    second.close()
