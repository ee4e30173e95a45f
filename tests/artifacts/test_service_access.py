"""Access: a denied read is a missing one to the last byte, a denied write tells nothing, and all of it is logged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.errors import CtxmgrError, Denied, NotFound
from ctxmgr.store import Store
from ctxmgr.store.project_session import ACCESS
from ctxmgr.types.artifact import (
    ArtifactLogRequest,
    CreateVersionRequest,
    DiffRequest,
    GetRequest,
    ListArtifactsRequest,
    NewDependency,
    PruneRequest,
    Retention,
)
from tests.artifacts.conftest import As
from tests.artifacts.putting import back, get, put, put_one, text
from tests.conftest import Allow

READS: dict[str, Callable[[ArtifactStore, str], Any]] = {
    "get": lambda artifacts, name: get(artifacts, f"secret/{name}"),
    "get as of a version": lambda artifacts, name: get(artifacts, f"secret/{name}", 1),
    "get from the past": lambda artifacts, name: get(artifacts, f"secret/{name}", 99),
    "log": lambda artifacts, name: artifacts.log(ArtifactLogRequest(agent="secret", name=name)),
    "diff": lambda artifacts, name: artifacts.diff(DiffRequest(agent="secret", name=name)),
    "diff between": lambda artifacts, name: artifacts.diff(
        DiffRequest(agent="secret", name=name, from_version=1, to_version=2)
    ),
    "depend": lambda artifacts, name: put_one(
        artifacts, "spy", "x.md", dependencies=[NewDependency(agent="secret", name=name)]
    ),
}  # fmt: skip


def _said(work: Callable[[], object]) -> tuple[str, str, str | None]:
    try:
        work()
    except CtxmgrError as error:
        return error.kind, error.message, error.hint
    raise AssertionError("nothing was refused")


@pytest.mark.requirement("003-S6")
@pytest.mark.parametrize("read", READS)
def test_a_denied_read_is_a_missing_one(artifacts: ArtifactStore, allow: Allow, asking: As, read: str) -> None:
    """What may not be read is answered with the very words for what is not there, whichever way it is asked for."""
    put(artifacts, "secret", plan_md="# one\n")
    put(artifacts, "secret", plan_md="# two\n")
    allow("spy", "artifact", "self", "write")
    allow("spy", "artifact", "public/*", "read")

    denied = _said(lambda: READS[read](asking("spy"), "plan.md"))
    missing = _said(lambda: READS[read](asking("spy"), "gone.md"))

    assert denied[0] == "notFound"
    assert denied == tuple(part.replace("gone.md", "plan.md") if part else part for part in missing)


def test_an_id_that_may_not_be_read_is_unknown(artifacts: ArtifactStore, allow: Allow, asking: As) -> None:
    """The id of a hidden artifact, whole or in part, is answered like one of nothing."""
    hidden = put(artifacts, "secret", plan_md="# one\n").id
    assert hidden is not None
    allow("spy", "artifact", "self", "write")

    for identity in (hidden, hidden[:10]):
        _, message, hint = _said(lambda identity=identity: asking("spy").get(GetRequest(id=identity)))
        other = _said(lambda: asking("spy").get(GetRequest(id="art_ffffffffffffffff")))
        assert (message.replace(identity, "art_ffffffffffffffff"), hint) == other[1:]


@pytest.mark.requirement("003-S7")
def test_suggestions_name_only_what_may_be_read(artifacts: ArtifactStore, allow: Allow, asking: As) -> None:
    """A hidden artifact is not suggested, however similar its name."""
    put(artifacts, "team", plan_md="# plan\n", plans_md="# hidden\n")
    allow("spy", "artifact", "team/plan.md", "read")

    assert _said(lambda: get(asking("spy"), "team/plan.m"))[2] == "did you mean team/plan.md?"
    assert _said(lambda: get(artifacts, "team/plan.m"))[2] == "did you mean team/plan.md, team/plans.md?"


def test_lists_counts_and_pages_hold_only_what_may_be_read(artifacts: ArtifactStore, allow: Allow, asking: As) -> None:
    """A list, its total and a version's counts know nothing of what is hidden."""
    put(artifacts, "team", a_md="a\n", b_md="b\n", c_md="c\n")
    put_one(artifacts, "team", "d.md", dependencies=[NewDependency(agent="team", name="a.md")])
    for name in ("b.md", "d.md"):
        allow("spy", "artifact", f"team/{name}", "read")

    found = asking("spy").list(ListArtifactsRequest(limit=1))
    assert ([item.name for item in found.artifacts], found.page.total, found.page.has_more) == (["b.md"], 2, True)
    assert get(asking("spy"), "team/d.md").artifact.dependencies == []
    assert [(view.version, view.artifacts, view.changed) for view in asking("spy").versions()] == [(1, 1, 1), (2, 2, 1)]
    assert asking("nobody").list(ListArtifactsRequest()).artifacts == []
    assert asking("nobody").versions() == []


def test_versions_of_hidden_changes_say_nothing(artifacts: ArtifactStore, allow: Allow, asking: As) -> None:
    """Of a version whose changes are all hidden an agent sees neither description nor author, and only if it is current."""
    put(artifacts, "team", a_md="a\n")
    put(artifacts, "secret", x_md="x\n")
    artifacts.create_version(CreateVersionRequest(description="about the secret"))
    allow("spy", "artifact", "team/*", "read")
    allow("chief", "artifact", "*", "read")

    seen = {view.version: (view.description, view.created_by, view.artifacts) for view in asking("spy").versions()}
    assert seen == {1: (None, "team", 1), 3: (None, None, 1)}
    assert [view.description for view in asking("chief").versions()] == [None, None, "about the secret"]


def test_a_path_tells_nothing_of_hidden_names(artifacts: ArtifactStore, allow: Allow, asking: As) -> None:
    """The path in an answer is the same whether or not a hidden artifact has a name like it."""
    put(artifacts, "team", readme_md="a\n", README_md="b\n")
    allow("spy", "artifact", "team/readme.md", "read")

    assert "~" in get(artifacts, "team/readme.md").artifact.path
    assert get(asking("spy"), "team/readme.md").artifact.path == "artifacts/v1/team/readme.md"


@pytest.mark.requirement("003-S6")
def test_a_denied_write_is_the_same_whether_it_is_there_or_not(artifacts: ArtifactStore, allow: Allow, asking: As) -> None:
    """Writing what one may not write is denied in the same words, and nothing is stored."""
    put(artifacts, "team", plan_md="# one\n")
    allow("spy", "artifact", "self", "write")

    there = _said(lambda: put_one(asking("spy"), "team", "plan.md", "# mine\n"))
    missing = _said(lambda: put_one(asking("spy"), "team", "gone.md", "# mine\n"))

    assert there[0] == "denied"
    assert there == tuple(part.replace("gone.md", "plan.md") if part else part for part in missing)
    assert text(artifacts, "team/plan.md") == "# one\n"
    assert put_one(asking("spy"), "spy", "own.md").changed


@pytest.mark.requirement("003-S6", "003-V1")
def test_versions_are_changed_by_whoever_may_write_what_changes(artifacts: ArtifactStore, allow: Allow, asking: As) -> None:
    """Making, rolling back and pruning versions needs the right to write the context's version and all that changes."""
    put(artifacts, "team", a_md="1\n")
    put(artifacts, "team", a_md="2\n")
    prune = PruneRequest(retention=Retention(keep_versions=1, keep_days=0, always_keep=[]))
    changes: list[Callable[[ArtifactStore], object]] = [
        lambda view: view.create_version(CreateVersionRequest(description="mine")),
        lambda view: back(view, 1), lambda view: back(view, 77), lambda view: view.prune(prune),
    ]  # fmt: skip
    for change in changes:
        with pytest.raises(Denied):
            change(asking("lead"))
    allow("lead", "context", "*", "write")
    assert asking("lead").create_version(CreateVersionRequest(description="mine")).version == 3
    with pytest.raises(Denied):
        back(asking("lead"), 1)
    with pytest.raises(Denied):
        asking("lead").prune(prune)
    allow("lead", "artifact", "team/*", "write")
    back(asking("lead"), 1)
    assert artifacts.versions()[2].created_by == "lead"


@pytest.mark.requirement("003-S7")
def test_every_access_of_an_agent_is_logged(artifacts: ArtifactStore, store: Store, allow: Allow, asking: As) -> None:
    """What an agent read, what it was denied and what it did not find is in the history, with its name."""
    put(artifacts, "team", a_md="a\n")
    put(artifacts, "secret", b_md="b\n")
    allow("spy", "artifact", "team/*", "read")

    get(asking("spy"), "team/a.md")
    for path in ("secret/b.md", "team/gone.md"):
        with pytest.raises(NotFound):
            get(asking("spy"), path)
    with pytest.raises(Denied):
        put_one(asking("spy"), "team", "a.md")

    logged = [record["data"] for record in store.shared.events(ACCESS)]
    assert [(row["command"], row["permission"], row["grantedCount"], row["deniedCount"]) for row in logged] == [
        ("artifact get", "read", 1, 0), ("artifact get", "read", 0, 1), ("artifact get", "read", 0, 1),
        ("artifact put", "write", 0, 1),
    ]  # fmt: skip
    assert {row["agent"] for row in logged} == {"spy"}
