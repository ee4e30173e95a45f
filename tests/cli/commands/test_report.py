"""``report``: its answer as JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.console import make_history, run


def test_the_index_is_of_no_session(tmp_path: Path) -> None:
    """Each page is of a session and bears its verdict; the index leads to them."""
    place = make_history(tmp_path / "h.db")
    ran = run("report", "--all-sessions", "-o", str(tmp_path / "out"), "--store", str(place), "--json")
    *pages, index = ran.envelope["data"]

    assert index == {"file": str(tmp_path / "out" / "index.html"), "session": None, "verdict": None}
    assert len({page["session"] for page in pages}) == len(pages) > 1
    assert all(page["verdict"] for page in pages)


def test_a_dash_is_stdout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with other programs, it names no file; and nothing is imported from stdin."""
    monkeypatch.chdir(tmp_path)
    store = str(make_history(tmp_path / "h.db"))
    page, log = run("report", "--store", store, "-o", "-"), run("export", "--store", store, "-o", "-")
    assert (page.out[:15].lower(), log.out.startswith('{"v":1')) == ("<!doctype html>", True)
    ended = run("import", "-")
    assert (ended.code, "a log can't be read from stdin" in ended.err) == (2, True)
    assert not (tmp_path / "-").exists()
