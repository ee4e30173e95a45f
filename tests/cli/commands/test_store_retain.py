"""``store retain``, ``restore`` and ``archived``: from the command line, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxmgr.store import open_store
from tests.frontends import invoke
from tests.store.archive.test_retention import story


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
    assert "1: no end of it was recorded" in said
    assert "old: 9 records in" in ask("store", "archived")[1]
    assert json.loads(ask("list", "--store", "kept", "--json")[1])["data"][0]["session"] == "old"
    assert ask("list", "--session", "old")[0] == 2
    assert ask("note", "add", "@0", "-m", "x", "--store", "kept")[0] == 2
    assert "1 session: 9 records taken back" in ask("store", "restore", "kept")[1]
    assert ask("list", "--session", "old")[0] == 0


@pytest.mark.parametrize("age", ["soon", "2100-01-01T00:00:00Z", ""])
def test_an_age_that_is_none_is_refused(age: str, place: Path) -> None:
    """Nothing is done where it is not clear what is to be kept."""
    assert ask("store", "retain", "--keep", age, "--archive", "kept")[0] == 2
    assert not (place.parent / "kept").exists()


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
