"""Installing and undoing: the rest of a client's settings stays byte for byte as it was."""

from __future__ import annotations

import json
import os
import shlex
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.clients import CLIENTS, client
from ctxmgr.errors import InvalidInput, StorageFailed
from ctxmgr.live import installation
from ctxmgr.live.json_text import blank_comments, insert_items
from tests.cli.console import process, run

OTHER = '{"type": "command", "command": "notify-send done"}'
SHAPES: dict[str, str] = {
    "empty file": "",
    "blank file": "\n\n",
    "empty object": "{}",
    "empty object, line end": "{}\n",
    "empty object, open": "{\n}\n",
    "compact": '{"model":"opus","env":{"A":"1"}}',
    "one line": '{ "model": "opus" }\n',
    "two spaces": '{\n  "model": "opus",\n  "permissions": {\n    "allow": ["Bash(ls:*)"]\n  }\n}\n',
    "four spaces": '{\n    "model": "opus"\n}\n',
    "tabs": '{\n\t"model": "opus",\n\t"hooks": {}\n}\n',
    "no line end": '{\n  "model": "opus"\n}',
    "CRLF": '{\r\n  "model": "opus",\r\n  "env": {\r\n    "A": "1"\r\n  }\r\n}\r\n',
    "unicode": '{\n  "name": "Zoë \\u00e9 日本 🙂",\n  "b": "\\ud83d\\ude42"\n}\n',
    "byte order mark": '\ufeff{\n  "model": "opus"\n}\n',
    "other hooks": '{\n  "hooks": {\n    "PostToolUse": [\n      {"matcher": "Edit", "hooks": ['
    + OTHER
    + "]}\n    ]\n  }\n}\n",
    "same events": '{"hooks": {"PostToolBatch": [{"hooks": [' + OTHER + ']}], "PreToolUse": []}, "model": "opus"}\n',
    "empty lists": '{\n  "hooks": {\n    "PreToolUse": [],\n    "PostToolUse": [\n    ]\n  },\n  "z": 1\n}\n',
    "brackets in texts": '{\n  "a": "}]{[",\n  "b": "\\"},{",\n  "c": "// no comment /* at all */"\n}\n',
    "odd layout": '{"a"\n:\n1\n,"hooks"  :  {  "Stop":[ ]  }   }   \n\n',
    "numbers": '{\n  "a": -1.50e+10,\n  "b": [true, false, null],\n  "c": {"d": [[], {}]}\n}\n',
    "many lines of hooks": '{\n  "hooks": {\n'
    + ",\n".join(f'    "E{n}": [{{"hooks": [{OTHER}]}}]' for n in range(9))
    + "\n  }\n}\n",
}
COMMENTED: dict[str, str] = {
    "comments": '// mine\n{\n  "a": 1, // one\n  /* two */ "hooks": { // here\n  }\n}\n// end\n',
    "comment behind the last": '{\n  "a": {"b": 1} // last\n}\n',
}
BROKEN: dict[str, bytes] = {
    "cut off": b'{"a": 1',
    "trailing comma": b'{"a": 1,}',
    "a list": b"[]",
    "a text": b'"settings"',
    "not UTF-8": b'{"a": "\xff"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "two documents": b"{}\n{}\n",
    "hooks are a list": b'{"hooks": []}',
    "an event is an object": b'{"hooks": {"PreToolUse": {}, "AfterTool": {}}}',
    "one key twice": b'{"hooks": {}, "hooks": {}}',
    "too deep": b'{"a":' + b"[" * 500 + b"]" * 500 + b"}",
    "comments where none may be": b'// mine\n{"a": 1}\n',
}
SHARED = ("claude-code", "codex", "gemini")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty project."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _path(name: str, scope: installation.Scope = "user") -> Path:
    asked = client(name)
    assert asked is not None
    path = asked.settings_file(scope, os.getcwd(), os.environ)
    assert path is not None
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    return Path(path)


def _install(name: str, scope: installation.Scope = "user") -> installation.Change:
    asked = client(name)
    assert asked is not None
    change = installation.plan_installation(asked, scope, Path.cwd(), os.environ)
    if change.needed:
        installation.apply(change)
    return change


def _uninstall(name: str, scope: installation.Scope = "user") -> None:
    asked = client(name)
    assert asked is not None
    installation.apply(installation.plan_removal(asked, scope, Path.cwd(), os.environ), undo=True)


def _without_ours(value: Any) -> Any:
    """Return settings without what is ours, and without what is empty because of that."""
    hooks = {
        event: kept
        for event, items in value.get("hooks", {}).items()
        if (kept := [item for item in items if "ctxmgr/live/hook.py" not in json.dumps(item)])
    }
    return {**{key: each for key, each in value.items() if key != "hooks"}, **({"hooks": hooks} if hooks else {})}


def _read(text: str) -> Any:
    return json.loads(blank_comments(text).removeprefix("\ufeff")) if text.strip() else {}


@pytest.mark.requirement("LV-install")
@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("shape", [*SHAPES, *COMMENTED])
def test_settings_of_every_shape_are_left_as_they_were(shape: str, name: str) -> None:
    """Installed, every hook is there and nothing else differs; installed again nothing changes; undone, every byte is back."""
    asked = client(name)
    assert asked is not None
    text = {**SHAPES, **COMMENTED}[shape]
    if shape in COMMENTED and not asked.comments:
        text = blank_comments(text)
    path = _path(name)
    path.write_bytes(text.encode())
    path.chmod(0o640)

    _install(name)
    after = path.read_bytes().decode()
    for keys, item in asked.entries(installation.hook_command(asked)):
        assert item in _read(after)[keys[0]][keys[1]]
    assert _without_ours(_read(after)) == _without_ours(_read(text))
    letters = iter(after)
    assert all(letter in letters for letter in text), "something was added, and nothing taken away or moved"
    assert ("\r\n" in after) == ("\r\n" in text)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640

    assert not _install(name).needed
    _uninstall(name)
    assert path.read_bytes() == text.encode()


@pytest.mark.requirement("LV-install")
@pytest.mark.parametrize("written", ["5", "null", '{"a": 1}', '"words"', "[5, null]"])
def test_other_events_may_hold_anything(written: str) -> None:
    """What people wrote beside our events is left as it is, of whatever type it is."""
    path = _path("claude-code")
    path.write_text(f'{{"hooks": {{"Foo": {written}}}}}\n')

    _install("claude-code")
    assert not _install("claude-code").needed
    assert _read(path.read_text())["hooks"]["Foo"] == json.loads(written)
    _uninstall("claude-code")
    assert path.read_text() == f'{{"hooks": {{"Foo": {written}}}}}\n'


@pytest.mark.requirement("LV-install")
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if SHAPES[shape].strip()])
def test_what_was_written_meanwhile_stays(shape: str) -> None:
    """A setting that somebody adds after the installation stays when it is undone; only what is ours goes."""
    path = _path("claude-code")
    path.write_bytes(SHAPES[shape].encode())
    _install("claude-code")
    edited = insert_items(path.read_bytes().decode(), [(("added",), "later")], comments=False)
    path.write_bytes(edited.encode())

    _uninstall("claude-code")

    assert b"ctxmgr/live/hook.py" not in path.read_bytes()
    left = _read(path.read_bytes().decode())
    assert left.pop("added") == ["later"]
    before = _read(SHAPES[shape])
    kept = {event: items for event, items in before.pop("hooks", {}).items() if items}
    assert {event: items for event, items in left.pop("hooks", {}).items() if items} == kept
    assert left == before


@pytest.mark.requirement("LV-install")
@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("broken", BROKEN)
def test_settings_that_can_not_be_read_are_refused_untouched(broken: str, name: str) -> None:
    """What the client itself could not read is named, and not a byte of it is changed."""
    if client(name) is not None and broken.startswith("comments"):
        name = "claude-code"
    path = _path(name)
    path.write_bytes(BROKEN[broken])

    with pytest.raises(InvalidInput) as caught:
        _install(name)

    assert str(path) in caught.value.message or "list" in caught.value.message
    assert path.read_bytes() == BROKEN[broken]


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_without_settings_has_none_again(name: str) -> None:
    """Where there was no file there is none afterwards; the one that was made is the user's alone."""
    path = _path(name)
    _install(name)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "ctxmgr/live/hook.py" in path.read_text()

    _uninstall(name)
    assert not path.exists()
    _uninstall(name)
    assert not path.exists()


@pytest.mark.parametrize(("new", "old"), [("python", "python2"), ("ctxmgr/live/hook.py", "ctxmgr/hook.py")])
def test_a_newer_installation_replaces_an_older_one(new: str, old: str) -> None:
    """A hook of another interpreter or at an earlier place is replaced, not doubled; undone, the file is as before."""
    path = _path("claude-code")
    path.write_text('{\n  "model": "opus"\n}\n')
    _install("claude-code")
    path.write_text(path.read_text().replace(new, old))

    _install("claude-code")
    assert path.read_text().count("ctxmgr/live/hook.py") == path.read_text().count("hook.py") == 5
    _uninstall("claude-code")
    assert _read(path.read_text()) == {"model": "opus"}


def test_a_link_is_kept_and_its_target_written(tmp_path: Path) -> None:
    """Settings that lie in a folder of dotfiles stay a link; a project's link out of the project is refused."""
    target = tmp_path / "dotfiles.json"
    target.write_text("{}\n")
    path = _path("claude-code")
    path.symlink_to(target)
    _install("claude-code")
    assert path.is_symlink()
    assert "ctxmgr/live/hook.py" in target.read_text()

    place = tmp_path / "project"
    place.mkdir()
    os.chdir(place)
    inner = _path("claude-code", "project")
    inner.symlink_to(target)
    with pytest.raises(InvalidInput, match="leads out of the project"):
        _install("claude-code", "project")


def test_a_file_that_changes_meanwhile_is_left_alone() -> None:
    """What the client writes between reading and writing is not lost."""
    path = _path("claude-code")
    path.write_text("{}\n")
    asked = client("claude-code")
    assert asked is not None
    change = installation.plan_installation(asked, "user", Path.cwd(), os.environ)
    path.write_text('{"model": "opus"}\n')

    with pytest.raises(StorageFailed, match="changed just now"):
        installation.apply(change)
    assert path.read_text() == '{"model": "opus"}\n'


@pytest.mark.parametrize("version", ["2.1.100", "1.0", "0"])
def test_an_old_client_is_refused(version: str) -> None:
    """An event that it does not know would switch all its hooks off."""
    ran = run("install", "claude-code", "--client-version", version, "--yes")
    assert (ran.code, "too old" in ran.err) == (2, True)
    assert not _path("claude-code").exists()


@pytest.mark.parametrize("version", ["abc", "v", "2.x"])
def test_what_is_no_version_is_refused(version: str) -> None:
    """A mistyped version is the user's fault, not one of ctxmgr."""
    ran = run("install", "claude-code", "--client-version", version, "--yes")
    assert (ran.code, ran.err.splitlines()[0]) == (2, f"ctxmgr: {version!r} is no version")


def test_without_a_home_nothing_is_installed_for_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty HOME makes "~" the root of the file system."""
    monkeypatch.setenv("HOME", "")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    ran = run("install", "claude-code", "--client-version", "2.1.330", "--dry-run")
    assert (ran.code, "HOME is empty" in ran.err) == (2, True)


def _client(folder: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    program = folder / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)


@pytest.mark.parametrize(("said", "code"), [("2.1.330 (Claude Code)", 0), ("2.0.1 (Claude Code)", 2), ("no idea", 2)])
def test_the_client_is_asked_for_its_version(said: str, code: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its command answers decides."""
    _client(folder, monkeypatch, said)
    assert run("install", "claude-code", "--yes", "--json").code == code


def test_the_command_shows_changes_and_lists(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dry run changes nothing, nobody is asked without a terminal, and the list tells what is there."""
    _client(folder, monkeypatch, "2.1.330")
    path = _path("claude-code")
    path.write_text('{\n  "model": "opus"\n}\n')

    dry = run("install", "claude-code", "--dry-run")
    assert '+    "PostToolBatch": [' in dry.out
    assert path.read_text() == '{\n  "model": "opus"\n}\n'
    assert process("install", "claude-code").code == 2
    done = run("install", "claude-code", "--yes", "--json").envelope["data"][0]
    assert (done["installed"], done["changed"], done["version"]) == (True, True, "2.1.330")
    rows = {(row["client"], row["scope"]): row["installed"] for row in run("install", "--list", "--json").envelope["data"]}
    assert [key for key, installed in rows.items() if installed] == [("claude-code", "user")]
    assert run("uninstall", "claude-code", "--yes", "--json").envelope["data"][0]["changed"]
    assert path.read_text() == '{\n  "model": "opus"\n}\n'


@pytest.mark.parametrize(
    "arguments", [("install",), ("install", "vim"), ("uninstall", "vim"), ("install", "codex", "--scope", "all")]
)
def test_what_is_not_known_is_named(arguments: tuple[str, ...]) -> None:
    """An unknown client or scope is a usage error that names the known ones."""
    ran = run(*arguments)
    assert ran.code == 2
    assert "codex" in ran.err or "project" in ran.err


KEYS = st.text(alphabet='ab"\\{}[],:/ \té', max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
WRITERS: list[Callable[[Any], str]] = [
    json.dumps,
    lambda value: json.dumps(value, indent="\t", ensure_ascii=False),
    lambda value: json.dumps(value, indent=3).replace("\n", "\r\n"),
]


@given(st.dictionaries(KEYS.filter(lambda key: key != "hooks"), VALUES, max_size=4), st.sampled_from(WRITERS))
def test_any_settings_get_the_item_and_keep_the_rest(value: dict[str, Any], write: Callable[[Any], str]) -> None:
    """Whatever JSON it is, the result is that value with the item in its list."""
    after = insert_items(write(value), [(("hooks", "E"), {"x": 1}), (("hooks", "E"), {"y": 2})], comments=False)

    assert json.loads(after) == {**value, "hooks": {"E": [{"x": 1}, {"y": 2}]}}


def test_paths_with_blanks_are_read_back_whole(tmp_path: Path) -> None:
    """Doctor looks whether the program and the hook are still there: as words of their own, and in one command line."""
    settings = tmp_path / "settings.json"
    program, hook = "/home/a b/.venv/bin/python", "/home/a b/ctxmgr/live/hook.py"
    settings.write_text(json.dumps({"command": program, "args": ["-I", hook, "claude-code"]}), encoding="utf-8")
    assert set(installation.commands_in(str(settings))) == {program, hook}
    settings.write_text(json.dumps({"command": shlex.join([program, "-I", hook, "codex"])}), encoding="utf-8")
    assert set(installation.commands_in(str(settings))) == {program, hook}


@pytest.mark.requirement("LV-install")
def test_the_plugin_holds_what_the_settings_would(folder: Path) -> None:
    """One folder: a marketplace, the same hooks, a server of tools, a command and a skill; made twice it stays as it is."""
    ran = process("install", "claude-code", "--plugin", "made", "--yes", "--client-version", "2.1.330", "--json")
    (row,) = ran.envelope["data"]
    _install("claude-code")
    settings = json.loads(_path("claude-code").read_text())
    _uninstall("claude-code")
    top = folder / "made"
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
    again = process("install", "claude-code", "--plugin", "made", "--yes", "--client-version", "2.1.330", "--json")
    assert again.envelope["data"][0]["changed"] is False


@pytest.mark.requirement("LV-install")
def test_the_plugin_is_taken_away_without_what_is_not_ours(folder: Path) -> None:
    """A dry run writes nothing; undoing leaves other files and their folders; a file of somebody else is not replaced."""
    install = ("install", "claude-code", "--plugin", "made", "--client-version", "2.1.330")
    assert "+++" in process(*install, "--dry-run").out
    assert not (folder / "made").exists()
    assert process(*install, "--yes").code == 0
    mine = folder / "made" / "plugins" / "mine.txt"
    mine.write_text("mine")
    assert process("uninstall", "claude-code", "--plugin", "made", "--yes").code == 0
    assert [path for path in (folder / "made").rglob("*") if path.is_file()] == [mine]

    other = folder / "made" / ".claude-plugin" / "marketplace.json"
    other.parent.mkdir()
    other.write_text('{"name": "other"}')
    assert process(*install, "--yes").code == 2
    assert other.read_text() == '{"name": "other"}'
    assert process("install", "codex", "--plugin", "x", "--yes", "--client-version", "9").code == 2


def test_hooks_and_plugin_are_not_installed_both(folder: Path) -> None:
    """With both of them each call would count twice."""
    version = ("--yes", "--client-version", "2.1.330")
    assert process("install", "claude-code", *version).code == 0
    assert process("install", "claude-code", "--plugin", "made", *version).code == 2
    assert process("uninstall", "claude-code", "--yes").code == 0
    _path("claude-code").write_text('{"enabledPlugins": {"ctxmgr@ctxmgr": true}}')

    assert process("install", "claude-code", *version).code == 2
    doctor = process("doctor", "--json").envelope["data"]
    assert [row["detail"]["scopes"] for row in doctor if row["name"] == "hook.claude-code"] == [["plugin"]]
