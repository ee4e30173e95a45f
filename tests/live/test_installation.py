"""Installing and undoing: the rest of a client's settings stays byte for byte as it was."""

from __future__ import annotations

import json
import os
import shlex
import stat
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.clients import CLIENTS, client
from ctxmgr.errors import InvalidInput, StorageFailed
from ctxmgr.live import installation
from ctxmgr.live.json_text import blank_comments, insert_items
from tests.cli.console import run
from tests.live.settings import install, settings_path, uninstall

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

pytestmark = pytest.mark.usefixtures("empty_project")


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
    path = settings_path(name)
    path.write_bytes(text.encode())
    path.chmod(0o640)

    install(name)
    after = path.read_bytes().decode()
    for keys, item in asked.entries(installation.hook_command(asked)):
        assert item in _read(after)[keys[0]][keys[1]]
    assert _without_ours(_read(after)) == _without_ours(_read(text))
    letters = iter(after)
    assert all(letter in letters for letter in text), "something was added, and nothing taken away or moved"
    assert ("\r\n" in after) == ("\r\n" in text)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640

    assert not install(name).is_needed
    uninstall(name)
    assert path.read_bytes() == text.encode()


@pytest.mark.requirement("LV-install")
@pytest.mark.parametrize("written", ["5", "null", '{"a": 1}', '"words"', "[5, null]"])
def test_other_events_may_hold_anything(written: str) -> None:
    """What people wrote beside our events is left as it is, of whatever type it is."""
    path = settings_path("claude-code")
    path.write_text(f'{{"hooks": {{"Foo": {written}}}}}\n')

    install("claude-code")
    assert not install("claude-code").is_needed
    assert _read(path.read_text())["hooks"]["Foo"] == json.loads(written)
    uninstall("claude-code")
    assert path.read_text() == f'{{"hooks": {{"Foo": {written}}}}}\n'


@pytest.mark.requirement("LV-install")
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if SHAPES[shape].strip()])
def test_what_was_written_meanwhile_stays(shape: str) -> None:
    """A setting that somebody adds after the installation stays when it is undone; only what is ours goes."""
    path = settings_path("claude-code")
    path.write_bytes(SHAPES[shape].encode())
    install("claude-code")
    edited = insert_items(path.read_bytes().decode(), [(("added",), "later")], comments=False)
    path.write_bytes(edited.encode())

    uninstall("claude-code")

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
    path = settings_path(name)
    path.write_bytes(BROKEN[broken])

    with pytest.raises(InvalidInput) as caught:
        install(name)

    assert str(path) in caught.value.message or "list" in caught.value.message
    assert path.read_bytes() == BROKEN[broken]


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_without_settings_has_none_again(name: str) -> None:
    """Where there was no file there is none afterwards; the one that was made is the user's alone."""
    path = settings_path(name)
    install(name)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "ctxmgr/live/hook.py" in path.read_text()

    uninstall(name)
    assert not path.exists()
    uninstall(name)
    assert not path.exists()


@pytest.mark.parametrize(("new", "old"), [("python", "python2"), ("ctxmgr/live/hook.py", "ctxmgr/hook.py")])
def test_a_newer_installation_replaces_an_older_one(new: str, old: str) -> None:
    """A hook of another interpreter or at an earlier place is replaced, not doubled; undone, the file is as before."""
    path = settings_path("claude-code")
    path.write_text('{\n  "model": "opus"\n}\n')
    install("claude-code")
    path.write_text(path.read_text().replace(new, old))

    install("claude-code")
    assert path.read_text().count("ctxmgr/live/hook.py") == path.read_text().count("hook.py") == 5
    uninstall("claude-code")
    assert _read(path.read_text()) == {"model": "opus"}


def test_a_link_is_kept_and_its_target_written(tmp_path: Path) -> None:
    """Settings that lie in a folder of dotfiles stay a link; a project's link out of the project is refused."""
    target = tmp_path / "dotfiles.json"
    target.write_text("{}\n")
    path = settings_path("claude-code")
    path.symlink_to(target)
    install("claude-code")
    assert path.is_symlink()
    assert "ctxmgr/live/hook.py" in target.read_text()

    place = tmp_path / "project"
    place.mkdir()
    os.chdir(place)
    inner = settings_path("claude-code", "project")
    inner.symlink_to(target)
    with pytest.raises(InvalidInput, match="leads out of the project"):
        install("claude-code", "project")


def test_a_file_that_changes_meanwhile_is_left_alone() -> None:
    """What the client writes between reading and writing is not lost."""
    path = settings_path("claude-code")
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
    assert not settings_path("claude-code").exists()


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


def test_paths_with_blanks_are_read_back_whole(tmp_path: Path) -> None:
    """Doctor looks whether the program and the hook are still there: as words of their own, and in one command line."""
    settings = tmp_path / "settings.json"
    program, hook = "/home/a b/.venv/bin/python", "/home/a b/ctxmgr/live/hook.py"
    settings.write_text(json.dumps({"command": program, "args": ["-I", hook, "claude-code"]}), encoding="utf-8")
    assert set(installation.find_hook_commands(str(settings))) == {program, hook}
    settings.write_text(json.dumps({"command": shlex.join([program, "-I", hook, "codex"])}), encoding="utf-8")
    assert set(installation.find_hook_commands(str(settings))) == {program, hook}
