"""Lists and logs of artifacts: filtered, in pages, and empty where nothing is."""

from __future__ import annotations

import pytest

from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.errors import NotFound
from ctxmgr.types.artifact import (
    ArtifactLogRequest,
    ListArtifactsRequest,
)
from tests.artifacts.putting import back, get, put


def test_nothing_is_found_where_nothing_is(artifacts: ArtifactStore) -> None:
    """A store without artifacts answers not found, an empty list, and no fault."""
    with pytest.raises(NotFound):
        get(artifacts, "arch/a.md")
    assert artifacts.list(ListArtifactsRequest()).status == "empty"
    assert artifacts.versions() == []


def test_a_list_is_filtered_and_paged(artifacts: ArtifactStore) -> None:
    """The list of a version is ordered by owner and name, narrowed by owner and type, and comes in pages."""
    put(artifacts, "b", z_md="# z\n", a_yaml="a: 1\n")
    put(artifacts, "a", c_yaml="c: 1\n")

    def names(**asked: object) -> list[str]:
        found = artifacts.list(ListArtifactsRequest.model_validate(asked))
        return [f"{item.agent}/{item.name}" for item in found.artifacts]

    assert names() == ["a/c.yaml", "b/a.yaml", "b/z.md"]
    assert names(version=1) == ["b/a.yaml", "b/z.md"]
    assert names(agent="b", type="yaml") == ["b/a.yaml"]
    page = artifacts.list(ListArtifactsRequest(offset=1, limit=1)).page
    assert (names(offset=1, limit=1), page.total, page.next_offset) == (["b/a.yaml"], 3, 2)
    with pytest.raises(NotFound):
        names(version=9)


def test_the_log_has_every_content(artifacts: ArtifactStore) -> None:
    """The log of an artifact lists all it ever was, newest first, past a rollback too."""
    for number in (1, 2):
        put(artifacts, "arch", a_yaml=f"a: {number}\n")
    back(artifacts, 1)
    put(artifacts, "arch", a_yaml="a: 3\n")

    rows = artifacts.log(ArtifactLogRequest(agent="arch", name="a.yaml")).artifacts
    assert [row.version for row in rows] == [3, 2, 1]
    with pytest.raises(NotFound):
        artifacts.log(ArtifactLogRequest(agent="arch", name="b.yaml"))
