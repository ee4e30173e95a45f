"""Where settings come from, and which store is meant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.base.paths import STORE
from ctxmgr.config import STORE_VARIABLE, Config, find_store, load_config
from ctxmgr.errors import InvalidInput


def _write(place: Path, text: str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    return place


def test_without_a_file_there_are_the_defaults(tmp_path: Path) -> None:
    """A folder without any configuration above it has the defaults."""
    assert load_config(tmp_path) == Config()


def test_settings_are_read(tmp_path: Path) -> None:
    """The file of the folder gives store, detection and attempts; the store is relative to the file."""
    place = _write(tmp_path / "ctxmgr.toml", 'store = "runs/h.db"\n[detect]\nthreshold = 4\n[recover]\nattempts = 3\n')

    config = load_config(tmp_path)

    assert (config.path, config.store, config.detect, config.attempts) == (
        place,
        str(tmp_path / "runs/h.db"),
        {"threshold": 4},
        3,
    )


def test_a_project_file_may_hold_them(tmp_path: Path) -> None:
    """The table ``tool.ctxmgr`` of pyproject.toml counts; an absolute store inside of the project stays as it is."""
    place = _write(tmp_path / "pyproject.toml", f'[project]\nname = "x"\n[tool.ctxmgr]\nstore = "{tmp_path}/data/h.db"\n')

    assert load_config(tmp_path) == Config(path=place, store=f"{tmp_path}/data/h.db")


def test_the_nearest_file_counts(tmp_path: Path) -> None:
    """The nearest folder upwards that has settings gives them all; our own file goes before the project's."""
    _write(tmp_path / "ctxmgr.toml", 'store = "outer.db"\n')
    _write(tmp_path / "a/pyproject.toml", "[tool.other]\nx = 1\n")
    _write(tmp_path / "b/pyproject.toml", '[tool.ctxmgr]\nstore = "project.db"\n')
    _write(tmp_path / "c/pyproject.toml", '[tool.ctxmgr]\nstore = "project.db"\n')
    _write(tmp_path / "c/ctxmgr.toml", "[recover]\nattempts = 1\n")
    for name in ("a/deep", "b/deep", "c/deep"):
        (tmp_path / name).mkdir()

    assert load_config(tmp_path / "a/deep").store == str(tmp_path / "outer.db")
    assert load_config(tmp_path / "b/deep").store == str(tmp_path / "b/project.db")
    assert (load_config(tmp_path / "c/deep").store, load_config(tmp_path / "c/deep").attempts) == (None, 1)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("store = 5", "store must be text"),
        ("stores = 'x'", "unknown setting 'stores'"),
        ("detect = 5", "must be tables"),
        ("recover = []", "must be tables"),
        ("[recover]\nattempts = 0", "recover.attempts"),
        ("[recover]\nattempts = true", "recover.attempts"),
        ("[recover]\nattempts = 1.5", "recover.attempts"),
        ("[recover]\nattempts = '2'", "recover.attempts"),
        ("live = 5", "must be tables"),
        ("[live]\nmode = 'loud'", "live.mode must be advise, deny or watch"),
        ("[live]\nquiet_kinds = 'cycle'", "live.quiet_kinds"),
        ("[live]\nexec = 'true'", "live.exec"),
        ("[live]\nexec = [1]", "live.exec"),
        ("this is no TOML", "ctxmgr.toml"),
        ("a = 1\na = 2", "ctxmgr.toml"),
    ],
)
def test_wrong_settings_are_named(tmp_path: Path, text: str, named: str) -> None:
    """A setting that is unknown or wrong is an input error that names file and setting."""
    _write(tmp_path / "ctxmgr.toml", text)

    with pytest.raises(InvalidInput, match=named) as caught:
        load_config(tmp_path)

    assert str(tmp_path / "ctxmgr.toml") in caught.value.message
    assert caught.value.hint


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 in our file are an input error; in somebody else's project file they are not ours."""
    (tmp_path / "pyproject.toml").write_bytes(b"\xff\xfe")
    assert load_config(tmp_path) == Config()

    (tmp_path / "ctxmgr.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput):
        load_config(tmp_path)


@pytest.mark.parametrize("text", ["broken", "tool = 5", "[tool]\nctxmgr = 5", "[tool]\nctxmgr = ['x']", ""])
def test_a_project_file_without_our_table_is_passed_by(tmp_path: Path, text: str) -> None:
    """Somebody else's project file, broken or not, is none of ours."""
    _write(tmp_path / "pyproject.toml", text)

    assert load_config(tmp_path) == Config()


def test_a_folder_of_that_name_is_no_file(tmp_path: Path) -> None:
    """Folders and pipes with the name of a configuration file are passed by."""
    (tmp_path / "ctxmgr.toml").mkdir()
    os.mkfifo(tmp_path / "pyproject.toml")

    assert load_config(tmp_path) == Config()


def test_which_store_is_meant(tmp_path: Path) -> None:
    """The environment goes before the configuration, that before the nearest store upwards, that before a new one here."""
    here = tmp_path / "a" / "b"
    here.mkdir(parents=True)
    configured = Config(store="/data/h.db")
    assert find_store(here, {STORE_VARIABLE: "env.db"}, configured) == ("env.db", True)
    assert find_store(here, {STORE_VARIABLE: ""}, configured) == ("/data/h.db", True)
    assert find_store(here, {}, configured) == ("/data/h.db", True)
    assert find_store(here, {}, Config()) == (str(here / STORE), False)

    _write(tmp_path / STORE, "")
    assert find_store(here, {}, Config()) == (str(tmp_path / STORE), False)
    (tmp_path / "a" / STORE).mkdir(parents=True)  # a folder is no store
    assert find_store(here, {}, Config()) == (str(tmp_path / STORE), False)
    _write(here / STORE, "")
    assert find_store(here, {}, Config()) == (str(here / STORE), False)


@pytest.mark.parametrize(
    ("kind", "evidence", "is_quiet"),
    [
        ("hung", {"openCalls": [{"action": "build"}]}, True),
        ("hung", {"openCalls": [{"action": "build"}, {"action": "Bash"}]}, False),
        ("cycle", {"steps": [{"action": "build"}, {"action": "Bash"}]}, False),
        ("cycle", {"steps": [{"action": "build"}]}, True),
        ("hung", {"openCalls": []}, False),
        ("monologue", {"steps": [{"action": "Bash"}]}, True),
    ],
)
def test_a_quiet_action_silences_what_is_about_nothing_else(kind: str, evidence: dict[str, Any], is_quiet: bool) -> None:
    """A hang or loop is told as long as one action of it is none of the quiet ones; of a quiet kind none is."""
    config = Config(live_quiet=(frozenset({"monologue"}), frozenset({"build", "wait"})))
    assert config.is_quiet(kind, evidence) == is_quiet
