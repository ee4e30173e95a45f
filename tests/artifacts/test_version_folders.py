"""A history that somebody else wrote: what it says of artifacts is read as data, and leads nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.artifacts.version_folders import audit
from ctxmgr.errors import CtxmgrError, Damaged
from ctxmgr.log.ids import new_id, now
from ctxmgr.store import Store
from ctxmgr.store.project_session import KEY, NEEDS, PROJECT, RULES, VERSION
from ctxmgr.types.artifact import GetRequest, ListArtifactsRequest, PruneRequest, Retention
from ctxmgr.types.plain_records import build
from tests.artifacts.putting import put


def _say(store: Store, **said: Any) -> None:
    artifact: dict[str, Any] = {
        "id": "art_0123456789abcdef", "agent": "arch", "name": "a.md", "type": "text", "hash": "0" * 64, "size": 4,
        "tokens": 1, "counter": "estimate",
    }  # fmt: skip
    version = said.pop("version", 1)
    data = {"op": "put", "version": version, "parent": None, "by": "mallory", "artifacts": [{**artifact, **said}]}
    store.append([build("event", PROJECT, now(), id=new_id(), type=VERSION, agent="mallory", data=data)])


@pytest.mark.parametrize(
    "digest",
    ["{victim}", "ab{victim}", "../../victim", "..", "", "ab", "ab/../../../victim", "0" * 63, "A" * 64, "\0" * 64, "é" * 64],
)
def test_a_hash_that_is_a_path_leads_nowhere(store: Store, artifacts: ArtifactStore, tmp_path: Path, digest: str) -> None:
    """What stands where a hash belongs is neither read, linked nor removed as a path."""
    victim = tmp_path / "victim"
    victim.write_text("keep")
    _say(store, hash=digest.replace("{victim}", str(victim)))
    ident = artifacts.list(ListArtifactsRequest()).artifacts[0].id

    with pytest.raises(Damaged):
        artifacts.get(GetRequest(id=ident))
    put(artifacts, "arch", a_md="mine\n")
    assert audit(store) != []
    artifacts.prune(PruneRequest(retention=Retention(keep_versions=1, keep_days=0, always_keep=[])))

    assert victim.read_text() == "keep"
    assert victim.stat().st_nlink == 1
    assert audit(store) == []


@pytest.mark.parametrize("name", ["../../x", "/abs", "", ".", "..", "a\nb", "a\0b", "x" * 5000, "a//b", "\x1b[31m"])
@pytest.mark.parametrize("part", ["agent", "name"])
def test_names_that_no_put_would_take_stay_inside(
    store: Store, artifacts: ArtifactStore, folder: Path, name: str, part: str
) -> None:  # fmt: skip
    """Odd names of a foreign history are listed, and laid out only inside their version's folder."""
    done = put(artifacts, "arch", real_md="real\n").artifacts[0]
    _say(store, **{part: name, "hash": done.hash, "size": done.size, "version": 2})
    put(artifacts, "arch", other_md="other\n")

    assert {path.name for path in folder.iterdir() if not path.name.startswith(".")} >= {"v1", "v2", "v3", "objects"}
    assert {path.name for path in folder.parent.iterdir() if path.name.startswith(("artifacts", "x"))} == {"artifacts"}
    assert audit(store) == []


@pytest.mark.parametrize("number", [2**62, 2**53, 0, -1, -(2**62)])
def test_odd_numbers_are_no_crash(store: Store, artifacts: ArtifactStore, number: int) -> None:
    """A version with a number that no put would give is read as it is; putting goes on, or says why it can't."""
    _say(store, version=number)

    assert len(artifacts.versions()) == 1
    try:
        assert put(artifacts, "arch", b_md="b\n").changed
    except CtxmgrError as error:
        assert isinstance(error, Damaged)  # noqa: PT017 - either is right, by the number


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (NEEDS, {"set": [{"agent": "a", "pattern": "b/*", "need": "urgent"}]}),
        (KEY, {"changes": [{"key": "k", "value": 1, "type": "float"}]}),
        (VERSION, {"op": "merge", "version": 1, "parent": None}),
        (VERSION, {"op": "put", "version": 1, "artifacts": [
            {"id": "i", "agent": "a", "name": "n", "type": "text", "hash": "0" * 64, "size": 1, "tokens": 1, "counter": "c",
             "dependencies": [{"id": "j", "agent": "a", "name": "m", "type": "soft"}]}]}),
        (RULES, {"set": [{"agent": "a", "resourceType": "artifact", "pattern": "*", "permission": "own"}]}),
    ],
)  # fmt: skip
def test_a_word_that_nobody_knows_changes_nothing(
    store: Store, artifacts: ArtifactStore, kind: str, data: dict[str, Any]
) -> None:
    """An event with an unknown need, type, operation or permission is kept as a record, and all that is read goes on."""
    store.append([build("event", PROJECT, now(), id=new_id(), type=kind, agent="mallory", data=data)])

    assert (store.shared.needs(), store.shared.context_keys(), store.shared.rules()) == ([], [], [])
    assert (artifacts.versions(), artifacts.list(ListArtifactsRequest()).artifacts) == ([], [])
    assert len(store.shared.events(kind)) == 1
