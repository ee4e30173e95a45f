"""The pages that are made from the program are current, the site has every page, and no page names what is not there."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest

from ctxmgr.cli import COMMANDS
from ctxmgr.detect.settings import DetectSettings
from tests.cli.console import run
from tests.made_pages import PAGES as MADE
from tests.readme import PAGES, ROOT


@pytest.mark.parametrize("path", MADE, ids=lambda path: path.name)
def test_what_is_made_is_current(path: Path) -> None:
    """Each page and the picture are what the program makes now: ``python -m tests.made_pages`` renews them."""
    assert path.read_text("utf-8") == MADE[path]()


def test_the_picture_loads_nothing() -> None:
    """The picture of the README names no address but that of its format, and runs no script."""
    text = (ROOT / "docs" / "assets" / "detect.svg").read_text("utf-8")

    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "<script" not in text
    assert "LOOP" in text


def test_every_threshold_is_explained() -> None:
    """The page of the settings says of each threshold what it means."""
    text = (ROOT / "docs" / "settings.md").read_text("utf-8")

    for name in DetectSettings.__dataclass_fields__:
        assert re.search(rf"\| `{name}` \| [^|]+ \| [^|]{{7,}} \|", text), name


def _pages(nav: list[Any]) -> list[str]:
    found: list[str] = []
    for item in nav:
        for below in item.values():
            found += _pages(cast("list[Any]", below)) if isinstance(below, list) else [below]
    return found


def test_every_page_is_in_the_site() -> None:
    """The navigation of the site leads to every page of docs/, once."""
    nav = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["nav"]

    assert sorted(_pages(nav)) == sorted(page.name for page in PAGES if page.parent.name == "docs")


@cache
def _help(*words: str) -> str:
    return run(*words, "--help").out


def _options(words: list[str]) -> set[str]:
    """Return the options of the command that words begin with, which may be a command of a group in a group."""
    path: list[str] = []
    for word in words:
        name = word.split("|")[0]
        if path and not re.search(rf"^  {re.escape(name)}(  |$)", _help(*path).partition("\nCommands:")[2], re.MULTILINE):
            break
        path.append(name)
    return set(re.findall(r"(?<![\w-])(--[a-z][a-z-]*|-[a-zA-Z])\b", _help(*path)))


def _command_lines(text: str) -> list[str]:
    """Return the command lines that a page tells of: in its text, and in its blocks for a shell."""
    told = re.findall(r"`(ctxmgr [^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    for block in re.findall(r"```(?:bash|console|sh|yaml)?\n(.*?)```", text, re.DOTALL):
        told += re.findall(r"^(?:\$ |\s*- (?:run: )?|\s*)(ctxmgr [^\n#|]+)", block, re.MULTILINE)
    return told


def test_command_lines_are_found_on_pages() -> None:
    """The page of the commands names each of them, and a shell's block is read as well as a sentence."""
    page = next(page for page in PAGES if page.name == "commands.md")

    assert len(_command_lines(page.read_text("utf-8"))) >= len(COMMANDS) / 2
    assert _command_lines("say `ctxmgr list` or\n```console\n$ ctxmgr show @3  # one\n```") == [
        "ctxmgr list",
        "ctxmgr show @3  ",
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_that_a_page_tells_of_are_there(page: Path) -> None:
    """Every command, part of a command and option that is named on a page is one that the program has."""
    for line in _command_lines(page.read_text("utf-8").replace("\\|", "|").replace("\\\n", " ")):
        words = re.sub(r"'[^']*'|\"[^\"]*\"", "TEXT", line.partition(" -- ")[0]).split()[1:]
        if not words or not re.fullmatch(r"[a-z][a-z|]*", words[0]):
            continue  # "ctxmgr --help", "ctxmgr COMMAND"
        for name in words[0].split("|"):
            assert name in COMMANDS or name == "help", line
        used = {word.partition("=")[0] for word in words[1:] if re.fullmatch(r"--[a-z][a-z-]*(=.*)?|-[a-zA-Z]", word)}
        assert used <= _options(words), line
