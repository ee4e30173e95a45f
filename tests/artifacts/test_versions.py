"""Versions: made on request, rolled back with a reason, undone, numbered upwards, and `current` always leading to one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ctxmgr.access.guard import AccessGuard
from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.errors import InvalidInput, NotFound
from ctxmgr.store import Store
from ctxmgr.store.project_session import VERSION
from ctxmgr.types.artifact import CreateVersionRequest, PruneRequest, RollbackRequest
from ctxmgr.workspace import Workspace
from tests.artifacts.putting import back, put, text, tree
from tests.conftest import Allow


@pytest.mark.requirement("003-V1")
def test_a_version_is_made_on_request(artifacts: ArtifactStore, folder: Path) -> None:
    """A version made on request holds what the current one holds, and says what it is, who made it, when, and from which."""
    put(artifacts, "arch", a_yaml="a: 1\n")

    done = artifacts.create_version(CreateVersionRequest(description="after the security review"))

    assert (done.version, done.previous_version, done.path) == (2, 1, "artifacts/v2/")
    assert tree(folder / "v2") == tree(folder / "v1")
    view = artifacts.versions()[-1]
    assert (view.op, view.description, view.created_by, view.parent) == ("create", "after the security review", "operator", 1)
    assert (view.current, view.artifacts, view.changed, view.created_at is not None) == (True, 1, 0, True)


def test_there_is_no_version_before_the_first_artifact(artifacts: ArtifactStore) -> None:
    """Without an artifact there is nothing to make a version of, nor to go back to."""
    with pytest.raises(NotFound, match="no version yet"):
        artifacts.create_version(CreateVersionRequest(description="early"))
    with pytest.raises(NotFound):
        back(artifacts, 1)


@pytest.mark.requirement("003-V2")
def test_a_rollback_makes_an_earlier_version_current_and_is_undone_by_another(
    artifacts: ArtifactStore, store: Store, folder: Path
) -> None:  # fmt: skip
    """A rollback moves `current` with its reason recorded, loses nothing, and is undone by rolling back again."""
    put(artifacts, "arch", a_yaml="a: 1\n")
    put(artifacts, "arch", a_yaml="a: 2\n", b_yaml="b: 2\n")

    done = artifacts.rollback(RollbackRequest(version=1, reason="broke the parser"))

    assert (done.current_version, done.rolled_back_from, done.reason) == (1, 2, "broke the parser")
    assert (text(artifacts, "arch/a.yaml"), os.readlink(folder / "current")) == ("a: 1\n", "v1")
    with pytest.raises(NotFound):
        text(artifacts, "arch/b.yaml")
    recorded = store.shared.events(VERSION)[-1]["data"]
    assert (recorded["op"], recorded["version"], recorded["from"]) == ("rollback", 1, 2)
    assert recorded["description"] == "broke the parser"
    back(artifacts, 2)
    assert (text(artifacts, "arch/a.yaml"), text(artifacts, "arch/b.yaml")) == ("a: 2\n", "b: 2\n")
    assert [(view.version, view.op) for view in artifacts.versions()] == [(1, "put"), (2, "put")]


@pytest.mark.requirement("003-V3")
def test_numbers_only_go_up(artifacts: ArtifactStore, folder: Path) -> None:
    """After a rollback the next version is the highest number plus one, its parent the version that was current."""
    put(artifacts, "arch", a_yaml="a: 1\n", b_yaml="b: 1\n")
    put(artifacts, "arch", a_yaml="a: 2\n")
    back(artifacts, 1)

    done = put(artifacts, "arch", b_yaml="b: 3\n")

    assert done.version == 3
    assert [(view.version, view.parent) for view in artifacts.versions()] == [(1, None), (2, 1), (3, 1)]
    assert tree(folder / "current") == {"arch/a.yaml": "a: 1\n", "arch/b.yaml": "b: 3\n"}


def test_the_same_content_after_a_rollback_is_new_again(artifacts: ArtifactStore) -> None:
    """What a rollback took away can be put once more: it is compared with what is current, not with what ever was."""
    put(artifacts, "arch", a_yaml="a: 1\n")
    second = put(artifacts, "arch", a_yaml="a: 2\n")
    back(artifacts, 1)

    third = put(artifacts, "arch", a_yaml="a: 2\n")

    assert (third.changed, third.version) == (True, 3)
    assert third.id != second.id


@pytest.mark.parametrize("reason", ["", "  ", "x" * 10_001, "\0"])
def test_a_rollback_needs_a_reason(artifacts: ArtifactStore, reason: str) -> None:
    """Without a reason, or with one that is none, nothing is rolled back."""
    put(artifacts, "arch", a_yaml="a: 1\n")
    put(artifacts, "arch", a_yaml="a: 2\n")

    with pytest.raises(InvalidInput):
        artifacts.rollback(RollbackRequest(version=1, reason=reason))
    assert text(artifacts, "arch/a.yaml") == "a: 2\n"


def test_an_impossible_rollback_changes_nothing(artifacts: ArtifactStore) -> None:
    """A version that is not there is not found, the current one is refused."""
    put(artifacts, "arch", a_yaml="a: 1\n")

    with pytest.raises(NotFound, match="no version 7"):
        back(artifacts, 7)
    with pytest.raises(InvalidInput, match="is the current one"):
        back(artifacts, 1)
    assert [view.version for view in artifacts.versions()] == [1]


_FOLLOW = """
import os, sys
folder, faults = sys.argv[1], 0
sys.stdout.write("ready\\n"); sys.stdout.flush()
while not os.path.exists(folder + "/enough"):
    seen = os.open(folder + "/current", os.O_RDONLY)
    files = [os.open(f"arch/{name}.yaml", os.O_RDONLY, dir_fd=seen) for name in "ab"]
    faults += [os.read(file, 9) for file in files] not in ([b"a: 1\\n", b"b: 1\\n"], [b"a: 2\\n", b"b: 2\\n"])
    for file in (seen, *files):
        os.close(file)
sys.exit(faults)
"""


def test_current_is_there_at_every_moment(artifacts: ArtifactStore, folder: Path) -> None:
    """Whoever follows `current` while versions change always finds a whole one."""
    put(artifacts, "arch", a_yaml="a: 1\n", b_yaml="b: 1\n")
    put(artifacts, "arch", a_yaml="a: 2\n", b_yaml="b: 2\n")
    with subprocess.Popen([sys.executable, "-c", _FOLLOW, str(folder)], stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        reader.stdout.readline()
        for number in range(60):
            back(artifacts, 1 + number % 2)
        (folder / "enough").touch()
        assert reader.wait(60) == 0


@pytest.mark.requirement("003-V2")
def test_rollbacks_are_listed_with_their_reasons(artifacts: ArtifactStore) -> None:
    """Each version tells of the rollbacks that made it current again: from where, by whom, when and why."""
    put(artifacts, "arch", a_yaml="a: 1\n")
    put(artifacts, "arch", a_yaml="a: 2\n")
    artifacts.rollback(RollbackRequest(version=1, reason="broke the parser", author="boss"))
    back(artifacts, 2)

    first, second = artifacts.versions()
    assert [(made.from_version, made.by, made.reason) for made in first.rollbacks] == [(2, "boss", "broke the parser")]
    assert [made.from_version for made in second.rollbacks] == [1]
    assert first.rollbacks[0].at is not None


@pytest.mark.requirement("R-16")
def test_an_agent_is_told_of_rollbacks_between_versions_that_it_sees(
    artifacts: ArtifactStore, store: Store, allow: Allow
) -> None:
    """A rollback to or from a version of which everything is hidden says nothing to the agent, its reason least of all."""
    put(artifacts, "arch", a_yaml="a: 1\n")
    put(artifacts, "arch", a_yaml="a: 2\n")
    put(artifacts, "cpa", b_yaml="b: 1\n")
    back(artifacts, 1)
    artifacts.rollback(RollbackRequest(version=3, reason="the tax file is needed"))
    allow("dev", "artifact", "arch/*")

    seen = ArtifactStore(store, AccessGuard(store, "dev")).versions()
    assert [made.reason for view in seen for made in view.rollbacks] == []
    artifacts.rollback(RollbackRequest(version=2, reason="hidden too"))
    artifacts.rollback(RollbackRequest(version=1, reason="a is wrong"))
    seen = ArtifactStore(store, AccessGuard(store, "dev")).versions()
    assert [made.reason for view in seen for made in view.rollbacks] == ["a is wrong"]


def test_where_nothing_is_kept_there_is_no_version(tmp_path: Path) -> None:
    """In a folder without a store, versions are missing, as in a store without any, and no file is made."""
    with Workspace.open(folder=tmp_path, environment={}) as workspace:
        with pytest.raises(NotFound, match="no version 1"):
            back(workspace.artifacts, 1)
        with pytest.raises(NotFound, match="there is no version yet"):
            workspace.artifacts.create_version(CreateVersionRequest(description="early"))
        assert workspace.artifacts.prune(PruneRequest()).removed == []
    assert list(tmp_path.iterdir()) == []
