"""``report``: its answer as JSON."""

from __future__ import annotations

from pathlib import Path

from tests.cli.console import make_history, run


def test_the_index_is_of_no_session(tmp_path: Path) -> None:
    """Each page is of a session and bears its verdict; the index leads to them."""
    place = make_history(tmp_path / "h.db")
    ran = run("report", "--all-sessions", "-o", str(tmp_path / "out"), "--store", str(place), "--json")
    *pages, index = ran.envelope["data"]

    assert index == {"file": str(tmp_path / "out" / "index.html"), "session": None, "verdict": None}
    assert len({page["session"] for page in pages}) == len(pages) > 1
    assert all(page["verdict"] for page in pages)
