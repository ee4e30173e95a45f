"""A plug-in of Claude Code in one folder: what it holds, how it is undone, and not beside hooks in the settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.console import run
from tests.live.settings import install, settings_path, uninstall

pytestmark = pytest.mark.usefixtures("empty_project")


@pytest.mark.requirement("LV-install")
def test_the_plugin_holds_what_the_settings_would(empty_project: Path) -> None:
    """One folder: a marketplace, the same hooks, a server of tools, a command and a skill; made twice it stays as it is."""
    ran = run("install", "claude-code", "--plugin", "made", "--yes", "--client-version", "2.1.330", "--json")
    (row,) = ran.envelope["data"]
    install("claude-code")
    settings = json.loads(settings_path("claude-code").read_text())
    uninstall("claude-code")
    top = empty_project / "made"
    market = json.loads((top / ".claude-plugin" / "marketplace.json").read_text())
    plugin = top / market["plugins"][0]["source"]

    assert (row["scope"], row["installed"], row["changed"]) == ("plugin", True, True)
    assert "/plugin install ctxmgr@ctxmgr" in row["then"]
    assert (
        json.loads((plugin / ".claude-plugin" / "plugin.json").read_text())["name"] == market["plugins"][0]["name"] == "ctxmgr"
    )
    assert json.loads((plugin / "hooks" / "hooks.json").read_text())["hooks"] == settings["hooks"]
    assert json.loads((plugin / ".mcp.json").read_text())["mcpServers"]["ctxmgr"]["args"][-1] == "mcp"
    for text in (plugin / "commands" / "ctxmgr.md", plugin / "skills" / "continue-after-loop" / "SKILL.md"):
        assert text.read_text().startswith("---\n")
        assert "PROGRAM" not in text.read_text()
    again = run("install", "claude-code", "--plugin", "made", "--yes", "--client-version", "2.1.330", "--json")
    assert again.envelope["data"][0]["changed"] is False


@pytest.mark.requirement("LV-install")
def test_the_plugin_is_taken_away_without_what_is_not_ours(empty_project: Path) -> None:
    """A dry run writes nothing; undoing leaves other files and their folders; a file of somebody else is not replaced."""
    install = ("install", "claude-code", "--plugin", "made", "--client-version", "2.1.330")
    assert "+++" in run(*install, "--dry-run").out
    assert not (empty_project / "made").exists()
    assert run(*install, "--yes").code == 0
    mine = empty_project / "made" / "plugins" / "mine.txt"
    mine.write_text("mine")
    assert run("uninstall", "claude-code", "--plugin", "made", "--yes").code == 0
    assert [path for path in (empty_project / "made").rglob("*") if path.is_file()] == [mine]

    other = empty_project / "made" / ".claude-plugin" / "marketplace.json"
    other.parent.mkdir()
    other.write_text('{"name": "other"}')
    assert run(*install, "--yes").code == 2
    assert other.read_text() == '{"name": "other"}'
    assert run("install", "codex", "--plugin", "x", "--yes", "--client-version", "9").code == 2


def test_hooks_and_plugin_are_not_installed_both(empty_project: Path) -> None:
    """With both of them each call would count twice."""
    version = ("--yes", "--client-version", "2.1.330")
    assert run("install", "claude-code", *version).code == 0
    assert run("install", "claude-code", "--plugin", "made", *version).code == 2
    assert run("uninstall", "claude-code", "--yes").code == 0
    settings_path("claude-code").write_text('{"enabledPlugins": {"ctxmgr@ctxmgr": true}}')

    assert run("install", "claude-code", *version).code == 2
    doctor = run("doctor", "--json").envelope["data"]
    assert [row["detail"]["scopes"] for row in doctor if row["name"] == "hook.claude-code"] == [["plugin"]]
