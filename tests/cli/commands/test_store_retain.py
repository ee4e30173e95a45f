"""``store retain``, ``restore`` and ``archived``: from the command line, for people and for programs."""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ctxmgr.errors import StorageFailed
from ctxmgr.store import administer, open_store
from ctxmgr.store.archive import retention
from tests.frontends import invoke
from tests.store.archive.test_retention import story
from tests.store.divided import Divided


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a store of which one session is old, and name it."""
    place = tmp_path / "history.db"
    store = open_store(str(place), create=True)
    store.append(story("old", age=4000))
    store.append(story("open", age=3000, ended=False))
    store.append(story("last", age=-3000))
    store.close()
    monkeypatch.setenv("CTXMGR_STORE", str(place))
    monkeypatch.chdir(tmp_path)
    return place


def ask(*arguments: str) -> tuple[int, str]:
    """Run a command; return its exit code and what it said."""
    ended = invoke(arguments)
    return ended.exit_code, ended.output


def test_the_whole_way(place: Path) -> None:
    """What would be done, what was done, where it is, a question to the archive, and the way back."""
    dry = json.loads(ask("store", "retain", "--keep", "30d", "--archive", "kept", "--dry-run", "--json")[1])
    assert (dry["data"]["sessions"], dry["data"]["files"]) == (["old"], [])
    assert not (place.parent / "kept").exists()

    code, said = ask("store", "retain", "--keep", "30d", "--archive", "kept")
    assert code == 0
    assert "1 session archived: 9 records" in said
    assert "1 session of that age stays because no end was recorded; --abandoned AGE moves such ones too" in said
    assert "old: 9 records in" in ask("store", "archived")[1]
    assert json.loads(ask("list", "--store", "kept", "--json")[1])["data"][0]["session"] == "old"
    assert ask("list", "--session", "old")[0] == 2
    assert ask("note", "add", "@0", "-m", "x", "--store", "kept")[0] == 2
    assert "1 session: 9 records taken back" in ask("store", "restore", "kept")[1]
    assert ask("list", "--session", "old")[0] == 0


@pytest.mark.parametrize("age", ["soon", "2100-01-01T00:00:00Z", "", "30"])
def test_an_age_that_is_none_is_refused(age: str, place: Path) -> None:
    """Nothing is done where it is not clear what is to be kept."""
    code, said = ask("store", "retain", "--keep", age, "--archive", "kept")
    assert (code, f"{age!r} is no age\n  e.g. 30d, 12h" in said) == (2, True)
    assert not (place.parent / "kept").exists()


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_a_place_that_is_none_is_refused_when_nothing_is_to_be_moved(dry: tuple[str, ...], place: Path, bucket: str) -> None:
    """A wrong bucket, a name that no bucket has, and a file in the place of a folder are told at once, not when it counts."""
    for archive, code, message in (
        (bucket.replace("history", "another"), 5, "NoSuchBucket"),
        ("s3://b/x", 2, "the name of the bucket 'b' is too short\n  it has 3 to 63 signs"),
        ("history.db/kept", 5, "history.db is no folder"),
    ):
        ended, said = ask("store", "retain", "--keep", "9000d", "--archive", archive, *dry)
        assert (ended, message in said) == (code, True), said
    assert ask("store", "retain", "--keep", "9000d", "--archive", "kept", *dry)[0] == 0
    assert not Path("kept").exists()


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_a_missing_package_is_told_when_nothing_is_to_be_moved(
    dry: tuple[str, ...], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without DuckDB no archive is ever written, so that is told at once."""
    monkeypatch.setitem(sys.modules, "duckdb", None)
    code, said = ask("store", "retain", "--keep", "9000d", "--archive", "kept", *dry)
    assert (code, "archives need DuckDB" in said) == (2, True)


def test_only_a_keeper_retains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer is told so before a file is written, with the command that makes a keeper of it, in its own team."""
    monkeypatch.chdir(tmp_path)
    made = Divided(os.environ.get("PYTEST_XDIST_WORKER", "alone"))
    role = made.roles["alice"]
    with closing(administer(made.url("owner"))) as owner:
        owner.init()
        owner.grant(role, "team one")
    with closing(made.open("alice")) as store:
        store.append(story("old", age=4000))
    retain = ("store", "retain", "--keep", "30d", "--archive", "kept", "--store", made.url("alice"))
    for dry in ((), ("--dry-run",)):
        code, said = ask(*retain, *dry)
        assert (code, f"the role {role} may not remove what was archived" in said) == (4, True), said
        assert f"'ctxmgr store grant {role} --team 'team one' --keeper'" in said
    assert not Path("kept").exists()

    granted = ask("store", "grant", role, "--team", "team one", "--keeper", "--store", made.url("owner"))[1]
    assert granted == f"{role} reads, writes and archives the history of the team team one\n"
    assert f"team one: {role} (keeper)" in ask("store", "teams", "--store", made.url("owner"))[1]
    assert "1 session archived: 9 records\n" in ask(*retain)[1]


def test_a_file_that_an_earlier_run_wrote_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a run ended between writing and removing, the next one says in which file the sessions are."""

    def fails(*_given: object) -> None:
        raise StorageFailed("it is away")

    with monkeypatch.context() as patched:
        patched.setattr(retention, "_remove", fails)
        assert ask("store", "retain", "--keep", "30d", "--archive", "kept")[0] == 5
    (written,) = Path("kept").rglob("*.parquet")
    said = ask("store", "retain", "--keep", "30d", "--archive", "kept")[1]
    assert f"1 session archived: 9 records\n  {written.resolve()}\n" in said


def test_a_bucket_is_an_archive(place: Path, bucket: str) -> None:
    """What ended moves into a bucket, and is read and taken back from there; another kind of URL is refused."""
    code, said = ask("store", "retain", "--keep", "30d", "--archive", "gs://bucket/kept")
    assert (code, "s3://" in said) == (2, True)
    code, said = ask("store", "retain", "--keep", "30d", "--archive", bucket, "--json")
    moved = json.loads(said)["data"]["sessions"]
    assert (code, bool(moved)) == (0, True)
    code, said = ask("list", "--store", bucket, "--session", moved[0], "--json")
    assert (code, bool(json.loads(said)["data"])) == (0, True)
    assert ask("verify", "--store", bucket)[0] == 0
    assert ask("note", "add", "@0", "-m", "x", "--store", bucket)[0] == 2
    assert ask("store", "restore", bucket)[0] == 0
