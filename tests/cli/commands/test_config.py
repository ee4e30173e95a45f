"""``config``: what is set, by whom, where, and what there is to set."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from ctxmgr.config import SETTINGS
from ctxmgr.detect.settings import DetectSettings
from tests.cli.console import run


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let settings come from files of this test alone: a project's, and a user's."""
    for name in ("CTXMGR_STORE", "CTXMGR_MODEL", "CTXMGR_ALLOW_COMMANDS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "ctxmgr").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def _set(place: Path) -> None:
    (place / "work" / "ctxmgr.toml").write_text("[detect]\nrepeat_rounds = 5\n[live]\nmode = 'deny'\n", "utf-8")
    (place / "home" / "ctxmgr" / "config.toml").write_text("[recover]\nattempts = 4\n[live]\nmode = 'watch'\n", "utf-8")


def _told(name: str) -> tuple[object, str, str | None]:
    row = run("config", "get", name, "--json").envelope["data"]
    return row["value"], row["origin"], None if row["file"] is None else Path(row["file"]).name


def test_each_value_says_who_set_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project's file comes before the user's, the environment before both; what nobody set is built in."""
    _set(place)
    assert _told("live.mode") == ("deny", "project", "ctxmgr.toml")
    assert _told("recover.attempts") == (4, "user", "config.toml")
    assert _told("detect.repeat_rounds") == (5, "project", "ctxmgr.toml")
    assert _told("detect.cycle_rounds") == (3, "built-in", None)
    assert _told("recover.model") == (None, "built-in", None)
    monkeypatch.setenv("CTXMGR_MODEL", "ollama:qwen3")
    assert _told("recover.model") == ("ollama:qwen3", "environment", None)
    assert run("config", "get", "live.mode").out == "deny\n"
    assert run("config", "get", "store").out == ""


def test_every_setting_is_listed_and_explained(place: Path) -> None:
    """The list has all settings, of the thresholds those that are set; the explanation has every one, with words on it."""
    _set(place)
    listed = [row["name"] for row in run("config", "list", "--json").envelope["data"]]
    assert set(listed) == {*SETTINGS, "detect.repeat_rounds"} - {"detect"}

    explained = run("config", "explain", "--json").envelope["data"]
    thresholds = {f"detect.{each.name}" for each in fields(DetectSettings) if each.init}
    assert {row["name"] for row in explained} == thresholds | SETTINGS.keys() - {"detect"}
    assert [row["name"] for row in explained if len(row["about"]) < 10] == []


def test_files_are_named_whether_or_not_they_are_there(place: Path) -> None:
    """``path`` names where settings may stand, and which of these places hold any."""
    rows = run("config", "path", "--json").envelope["data"]
    assert [(Path(row["path"]).name, row["kind"], row["holds"]) for row in rows] == [
        ("ctxmgr.toml", "project", False), ("config.toml", "user", False),
    ]  # fmt: skip
    _set(place)
    assert [row["holds"] for row in run("config", "path", "--json").envelope["data"]] == [True, True]


def test_an_unknown_setting_is_not_found() -> None:
    """Another name is told with those that there are."""
    for name in ("nosuch", "detect", "detect.nosuch"):
        ran = run("config", "get", name, "--json")
        assert (ran.code, ran.envelope["error"]["kind"]) == (3, "notFound")
        assert "live.mode" in ran.envelope["error"]["hint"]


def test_what_a_project_may_not_set_does_not_hold(place: Path) -> None:
    """A grant in a project's own file is no value here either, until the user trusts that file."""
    (place / "work" / "ctxmgr.toml").write_text("[recover.model]\nname = 'openai:x'\n", "utf-8")

    assert _told("recover.model") == (None, "built-in", None)
    assert "only you may grant it" in run("config", "explain", "recover.model").out


def test_a_file_that_is_there_and_not_read_is_not_called_absent(place: Path) -> None:
    """Of the files of a project only the nearest counts; one in a folder above it is there all the same."""
    (place / "ctxmgr.toml").write_text("[detect]\nrepeat_rounds = 6\n", "utf-8")
    (place / "work" / "ctxmgr.toml").write_text("[detect]\nrepeat_rounds = 5\n", "utf-8")
    shown = run("config", "path").out.splitlines()

    assert f"{place / 'work' / 'ctxmgr.toml'}  project" in shown
    assert f"{place / 'ctxmgr.toml'}  project, not read" in shown
    assert f"{place / 'home' / 'ctxmgr' / 'config.toml'}  user, not there" in shown
