"""Names: which are refused, and that every other gets a path of its own on any file system."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.artifacts.folder import MAX_NAME, check_names, name_paths, view_paths
from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.errors import InvalidInput
from ctxmgr.store.engine.disposable_files import BESIDE
from tests.artifacts.putting import get, put_one, text

REFUSED = [
    "", ".", "..", "../x", "a/../b", "a/..", "a/./b", "/etc/passwd", "a//b", "a/", "//", "nul\0l", "line\nend", "tab\tb",
    "\x1b[31m", "\x85", "half\ud800", "x" * (MAX_NAME + 1), "é" * 128, "\u2028", "ghp_" + "a1B2" * 9,
]  # fmt: skip
ACCEPTED = [
    "current", "CON", "con.txt", "aux", "-rf", "a b", "src/main.py", ".hidden", "..hidden", "a\\..\\b", "100%", "a~b", "*", "?",
    "x" * MAX_NAME, "é", "e\u0301", "README.md", "readme.md", "v1", "objects", "dot.", "blank ", "\u202egnp.exe", "a:b", "|",
    "%2E%2E", "art_0123456789abcdef", "café/naïve.md", "a'b\"c", "$(rm)", "`x`", "-", "--", "~", "~/x", "%", "😀",
]  # fmt: skip


@pytest.mark.parametrize("name", REFUSED, ids=ascii)
def test_bad_names_are_refused(artifacts: ArtifactStore, folder: Path, name: str) -> None:
    """A name that leads elsewhere, hides something or can't be shown is refused before anything is made."""
    with pytest.raises(InvalidInput):
        put_one(artifacts, "arch", name)

    assert not folder.exists()


@pytest.mark.parametrize("owner", ["", "*", "self", "a/b", "a\nb", "a\0b", "x" * 256, "\ud800"], ids=ascii)
def test_bad_owners_are_refused(artifacts: ArtifactStore, folder: Path, owner: str) -> None:
    """An owner that rules mean something else by, or that can't be told from a path, is refused."""
    with pytest.raises(InvalidInput):
        put_one(artifacts, owner, "a.md")

    assert not folder.exists()


def test_odd_names_live_side_by_side(artifacts: ArtifactStore, folder: Path) -> None:
    """Every other name is kept apart from all others, read back under exactly its own, and lies inside its version."""
    for name in ACCEPTED:
        put_one(artifacts, "arch", name, f"content of {name}\n")

    assert [text(artifacts, f"arch/{name}") for name in ACCEPTED] == [f"content of {name}\n" for name in ACCEPTED]
    paths = {name: folder.parent / get(artifacts, f"arch/{name}").artifact.path for name in ACCEPTED}
    assert all(path.read_text("utf-8") == f"content of {name}\n" for name, path in paths.items())
    assert {item.name for item in folder.parent.iterdir()} <= {"artifacts", BESIDE, *(f"history.{end}" for end in _ENDS)}


_ENDS = ("db", "db-wal", "db-shm", "jsonl", "lock", "jsonl.lock")


@pytest.mark.parametrize("owner", [".", "..", "current", "CON", "objects", ".store", "a b.", "%", "-rf", "v1"])
def test_odd_owners_stay_inside_their_version(artifacts: ArtifactStore, folder: Path, owner: str) -> None:
    """An owner whose name means something to a file system still has its artifacts where they belong."""
    put_one(artifacts, owner, "a.md", "mine\n")

    path = folder.parent / get(artifacts, f"{owner}/a.md").artifact.path
    assert path.resolve().is_relative_to(folder.resolve() / "v1")
    assert path.read_text() == "mine\n"


_LETTERS = st.sampled_from(
    [*"aAbBsSkK ~%./\\-éÉßſıİ~%:*", "e\u0301", "\u212a", "\u00e9", "con", "CON", "nul", "ﬀ", "\u200d", "x" * 90]
)
_NAMES = st.lists(_LETTERS, min_size=1, max_size=6).map("".join)


def _usable(name: str) -> bool:
    try:
        check_names("arch", name)
    except InvalidInput:
        return False
    return True


def _compared(path: str) -> str:
    """Return what a file system compares that knows neither case nor forms of Unicode, and drops dots and blanks at an end."""
    parts = unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold()).split("/")
    return "/".join(part.rstrip(" .") for part in parts)


@given(st.sets(st.tuples(st.sampled_from(["arch", "ARCH", "Arch.", "é", "e\u0301"]), _NAMES.filter(_usable)), max_size=30))
def test_paths_are_injective(names: set[tuple[str, str]]) -> None:
    """Different artifacts have different paths even where case, forms of Unicode and ends of names do not tell.

    No path is the folder of another one, no part is longer than a file system takes, and none means a folder above.
    """
    paths = view_paths(names)

    compared = {key: _compared(path) for key, path in paths.items()}
    assert set(paths) == names
    assert len(set(compared.values())) == len(names)
    folders = {path[:place] for path in compared.values() for place, letter in enumerate(path) if letter == "/"}
    assert not folders & set(compared.values())
    for path in paths.values():
        assert all(part and part not in (".", "..") and len(os.fsencode(part)) <= 255 for part in path.split("/"))
        assert not any(part.partition(".")[0].rstrip(" ").upper() in ("CON", "NUL") for part in path.split("/"))


@given(st.lists(_NAMES.filter(_usable), max_size=12, unique=True))
def test_a_name_keeps_its_path_whatever_the_order(names: list[str]) -> None:
    """The same names get the same paths in any order, and plain ones among themselves are left as they are."""
    assert name_paths(names) == name_paths(names[::-1])
    alone = {name: name_paths([name])[name] for name in names}
    if len({_compared(path) for path in alone.values()}) == len(names) and not any("/" in name for name in names):
        assert name_paths(names) == alone


@given(st.lists(st.one_of(st.text(max_size=300), st.text("a/%é.", min_size=80, max_size=900)), max_size=8, unique=True))
def test_any_text_has_a_path(names: list[str]) -> None:
    """Names that no put would take, as a foreign history may hold them, still get paths inside the folder."""
    paths = view_paths([(name, name) for name in names])

    assert len(set(paths.values())) == len(names)
    for path in paths.values():
        assert all(part and part not in (".", "..") and "\0" not in part for part in path.split("/"))
        assert all(len(os.fsencode(part)) <= 255 for part in path.split("/"))
