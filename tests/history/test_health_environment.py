"""What ctxmgr stands on: versions, configuration, cache, extras, and the logs of other tools."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import NoReturn

import pytest

from ctxmgr import __version__
from ctxmgr.config import Config
from ctxmgr.errors import Damaged
from ctxmgr.history import health as surroundings
from ctxmgr.history.health import check_cache, check_config, check_extras, check_logs, check_program
from ctxmgr.store.status import Library


def test_versions_are_told() -> None:
    """ctxmgr, Python and SQLite are named with their versions."""
    program, sqlite = check_program()

    assert program.finding.startswith(f"{__version__} on Python 3.")
    assert (sqlite.level, sqlite.detail["sound"]) == ("ok", True)


def test_an_unsound_sqlite_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that may corrupt a store fails as every store would, with what to install."""
    fault = Damaged("the SQLite library 3.40.1 has the WAL-reset bug", "install pysqlite3")
    monkeypatch.setattr(surroundings, "library", lambda: Library("sqlite3", "3.40.1", fault))
    _, sqlite = check_program()

    assert (sqlite.level, sqlite.kind, sqlite.hint) == ("fail", "damaged", "install pysqlite3")


def test_no_configuration_is_fine(tmp_path: Path) -> None:
    """Without a file the defaults hold."""
    config, check = check_config(tmp_path)

    assert (config, check.level, check.detail["path"]) == (Config(), "info", None)


def test_the_configuration_in_force_is_named(tmp_path: Path) -> None:
    """A valid file is named with its path, and its settings hold."""
    place = tmp_path / "ctxmgr.toml"
    place.write_text('store = "x.db"\n[detect]\nrepeat_rounds = 4\n', encoding="utf-8")
    config, check = check_config(tmp_path / "below")

    assert (check.level, check.detail["path"]) == ("ok", str(place))
    assert config.store == str(tmp_path / "x.db")


@pytest.mark.parametrize("text", ["stroe = 1\n", "[detect]\nrepeat_rounds = 'x'\n", "[detect]\nodd = 1\n", "no toml"])
def test_a_faulty_configuration_fails(text: str, tmp_path: Path) -> None:
    """An unknown setting, a wrong value and a broken file fail with the kind that other commands answer with."""
    (tmp_path / "ctxmgr.toml").write_text(text, encoding="utf-8")
    _, check = check_config(tmp_path)

    assert (check.level, check.kind) == ("fail", "invalid")
    assert check.hint


def test_extras_are_looked_up_without_loading_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """An extra that is there has a version; one that is not says how to get it."""
    assert {check.name: check.level for check in check_extras()}["extra.jq"] == "ok"

    def missing(name: str) -> NoReturn:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(surroundings, "version", missing)
    assert [check.hint for check in check_extras()] == [
        "pip install 'ctxmgr-cli[jq]'", "pip install 'ctxmgr-cli[zstd]'", "pip install 'ctxmgr-cli[postgresql]'",
        "pip install 'ctxmgr-cli[archive]'", "pip install 'ctxmgr-cli[s3]'", "pip install 'ctxmgr-cli[llm]'",
    ]  # fmt: skip


def test_the_cache_is_measured(tmp_path: Path) -> None:
    """The indexes of logs are counted with their size; a cache that is not there yet is not made."""
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert check_cache(environment, tmp_path).level == "info"
    assert list(tmp_path.iterdir()) == []

    folder = tmp_path / "cache" / "ctxmgr" / "index"
    folder.mkdir(parents=True)
    (folder / "a.db").write_bytes(b"12345")
    (folder / "a.db-wal").write_bytes(b"123")
    found = check_cache(environment, tmp_path)
    assert found.detail == {"path": str(folder), "indexes": 1, "bytes": 8}
    assert "deleted at any time" in str(found.hint)


def test_a_cache_that_is_no_folder_is_warned_of(tmp_path: Path) -> None:
    """Something else in the place of the cache is a warning: logs can be read without it."""
    (tmp_path / ".cache" / "ctxmgr").mkdir(parents=True)
    (tmp_path / ".cache" / "ctxmgr" / "index").write_text("", encoding="ascii")

    assert check_cache({}, tmp_path).level == "warn"


def test_logs_of_other_tools_are_counted(tmp_path: Path) -> None:
    """The logs that could be imported are counted by format, and none is opened."""
    assert check_logs({}, tmp_path).finding == "none of other tools found"

    folder = tmp_path / ".claude" / "projects" / "-home-dev"
    folder.mkdir(parents=True)
    log = folder / "7e999fd2-d31f-46eb-9632-55e969fb3852.jsonl"
    log.write_bytes(b"\xff")
    log.chmod(0)
    found = check_logs({}, tmp_path)
    assert found.finding == "1 of claude-code"
    assert found.detail["claude-code"] == 1
    assert sum(found.detail.values()) == 1
