"""What is said about the routing table that a recovery would go by."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.config import Config, load_config
from ctxmgr.recover.routes import check_routes


def test_no_table_is_fine() -> None:
    """Without a table the routes are read off each history."""
    check = check_routes(Config())

    assert (check.level, check.detail) == ("info", {"path": None, "agents": 0})


@pytest.mark.parametrize("beside", [True, False])
def test_the_table_in_force_is_named(beside: bool, tmp_path: Path) -> None:
    """A table in the configuration or in a file of its own is read, and its agents are counted."""
    if beside:
        (tmp_path / "ctxmgr.toml").write_text('[recover]\nroutes = "routes.toml"\n', encoding="utf-8")
        (tmp_path / "routes.toml").write_text('[coder]\n[reviewer]\nrole = "review"\n', encoding="utf-8")
    else:
        (tmp_path / "ctxmgr.toml").write_text(
            '[recover.routes.coder]\n[recover.routes.reviewer]\nrole = "review"\n', encoding="utf-8"
        )
    check = check_routes(load_config(tmp_path))

    assert (check.level, check.detail["agents"]) == ("ok", 2)
    assert check.detail["path"] == str(tmp_path / ("routes.toml" if beside else "ctxmgr.toml"))


@pytest.mark.parametrize("text", ['routes = "gone.toml"', "routes = { coder = { role = 7 } }"])
def test_a_table_that_can_not_be_used_fails(text: str, tmp_path: Path) -> None:
    """A file that is gone and a field of the wrong type fail as a recovery would."""
    (tmp_path / "ctxmgr.toml").write_text(f"[recover]\n{text}\n", encoding="utf-8")
    check = check_routes(load_config(tmp_path))

    assert check.level == "fail"
    assert check.kind in ("invalid", "notFound")
