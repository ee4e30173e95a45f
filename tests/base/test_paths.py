"""Where settings are looked for without machinery: the same file, and the same store, as the whole reader finds."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

import pytest

from ctxmgr.base import paths
from ctxmgr.config import load_config

SHARED = [
    '[project]\ndependencies = ["ctxmgr-cli>=0.1"]\n',
    '[tool.ctxmgr]\nstore = "a.db"\n',
    '[tool]\nctxmgr = { store = "a.db" }\n',
    '[tool]\nctxmgr.store = "a.db"\n',
    'tool.ctxmgr.store = "a.db"\n',
    '[ tool . "ctxmgr" ]\nstore = "a.db"\n',
    "[tool.'ctxmgr']\nstore = 'a.db'\n",
    'tool = { other = 1, ctxmgr = { store = "a.db" } }\n',
    "[tool\n",
    "x = '''\n[tool.ctxmgr]\n'''",
    '"tool"."ctxmgr" = { store = "a.db" }\n',
    "[tool.ctxmgr.detect]\nrepeat_rounds = 4\n",
    '  [tool]\n\t"ctxmgr" . store="a.db"',
    '[project.scripts]\nctxmgr = "x:y"\n',
    '[tool] # ours\nctxmgr.store = "a.db"\n',
    '[[tool.uv.index]]\nname = "ctxmgr"\n',
    '\r\n[tool.ctxmgr]\r\nstore = "a.db"\r\n',
]
OWN = [
    'store = "a.db"\n',
    '# c\n\nstore="a.db"',
    "store = 'a.db'\n",
    'store = "a\\u0062.db"\n',
    'store = """a.db"""\n',
    "",
    'store = "a.db"\r\n',
    "[detect]\nrepeat_rounds = 4\n",
    'store = "é.db"\n',
    '"store" = "a.db"\n',
    "# store\n",
]


@pytest.mark.parametrize("text", [*((paths.SHARED_FILE, text) for text in SHARED), *((paths.OWN_FILE, text) for text in OWN)])
def test_the_short_way_finds_what_the_long_way_finds(text: tuple[str, str], tmp_path: Path) -> None:
    """Whatever a file of settings looks like, the store that reads without a parser is that of the whole reader."""
    (tmp_path / text[0]).write_bytes(text[1].encode())
    found = [paths.read_store_setting(path) for path in paths.settings_files(str(tmp_path)) if path.startswith(str(tmp_path))]
    known = [answer for answer in found if answer is not None]

    expected = load_config(tmp_path)
    if expected.path is None:
        assert known == []
    else:
        assert known == [(True, expected.store)]


@pytest.mark.parametrize("text", SHARED)
def test_no_table_of_ours_is_overlooked(text: str, tmp_path: Path) -> None:
    """A shared file that holds our table is looked into; one that merely names us need not be."""
    (tmp_path / paths.SHARED_FILE).write_bytes(text.encode())
    try:
        holds = "ctxmgr" in tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError:
        holds = False

    assert not holds or str(tmp_path / paths.SHARED_FILE) in paths.settings_files(str(tmp_path))


def test_a_project_that_depends_on_us_costs_no_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a dependency on us nor a file that names just a store loads the parser of TOML."""
    monkeypatch.delitem(sys.modules, "tomllib")
    (tmp_path / paths.SHARED_FILE).write_text(SHARED[0], "utf-8")
    assert list(paths.settings_files(str(tmp_path))) == []
    (tmp_path / paths.OWN_FILE).write_text(OWN[0], "utf-8")
    assert paths.read_store_setting(str(tmp_path / paths.OWN_FILE)) == (True, str(tmp_path / "a.db"))
    assert "tomllib" not in sys.modules


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rights are those asked for, a link is replaced and not followed, and a failure leaves nothing behind."""
    target, other = tmp_path / "settings.json", tmp_path / "other"
    other.write_bytes(b"kept")
    target.symlink_to(other)

    paths.replace_file(target, b"new", mode=0o640, sync=True)

    assert (target.read_bytes(), target.is_symlink(), target.stat().st_mode & 0o777) == (b"new", False, 0o640)
    assert other.read_bytes() == b"kept"

    def refused(_one: object, _other: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refused)
    with pytest.raises(OSError, match="No space"):
        paths.replace_file(target, b"newer")
    assert target.read_bytes() == b"new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "settings.json"]


def test_a_signal_behind_the_replacement_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a signal raises when the draft has its name already reaches the caller, and no failure of the system instead."""
    replace = os.replace

    def interrupted(one: str, other: str) -> None:
        replace(one, other)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        paths.replace_file(tmp_path / "a", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
