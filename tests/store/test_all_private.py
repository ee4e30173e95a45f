"""What is written is for its owner alone, and no secret of a known shape is written at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxmgr.store import Store, open_store
from ctxmgr.types.plain_records import build
from tests.builders import at, entry, event, result, write

SECRETS = ("ghp_" + "4a7B9c" * 6, "AKIA" + "4A7B9C2D" * 2, "sk-ant-api03-" + "4a7B9c2D5e8F_-" * 7)


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    """Set the mask under which files are made."""
    before = os.umask(request.param)
    yield
    os.umask(before)


def _modes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mode & 0o777 for path in folder.rglob("*")}


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("name", ["history.db", "history.jsonl"])
def test_files_and_folders_are_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Whatever the umask, every new file has mode 0600 and every new folder 0700, side files and index included."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "made" / "cache" / "deep"))
    store = open_store(str(tmp_path / "made" / "one" / "two" / name), create=True)
    write(store, "s", ["Bash:ls", "> hello"])

    modes = _modes(tmp_path / "made")
    folders = {place for place in modes if (tmp_path / "made" / place).is_dir()}
    assert len(modes) - len(folders) >= 2
    assert {modes[place] for place in folders} == {0o700}
    assert {mode for place, mode in modes.items() if place not in folders} == {0o600}
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o700
    store.close()


def test_an_existing_folder_keeps_its_mode(tmp_path: Path) -> None:
    """A folder that was there before is not ours to change."""
    (tmp_path / "there").mkdir()
    (tmp_path / "there").chmod(0o750)

    open_store(str(tmp_path / "there" / "history.db"), create=True).close()

    assert (tmp_path / "there").stat().st_mode & 0o777 == 0o750


def _everywhere(text: str) -> list[dict[str, object]]:
    return [
        build("session", "s", at(0), process="p", workflow=text, meta={text: text}),
        entry("s", 0, "Bash", {"command": f"login {text}", text: [text]}, agent=f"agent {text}", task=text),
        result("s", 0, [f"token={text}"], status="error", error={"type": "E", "message": f"bad {text}"}),
        event("s", 0, "message", {"text": f"use {text} now"}),
        build("note", "s", at(1), id="n", entries=["s-e0000"], content=f"see {text}", tags=[text], author=text),
        build("snapshot", "s", at(1), id="p", entries=[], summary=text, reasoning=text, hash="x"),
        build("telemetry", "s", at(1), anything=text),
    ]


def _bytes_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("secret", SECRETS, ids=["github", "aws", "anthropic"])
def test_secrets_reach_no_file(store: Store, tmp_path: Path, secret: str) -> None:
    """A secret in any field of any record stands in no file: not in the store, its side files or its index."""
    store.append(_everywhere(secret))
    secret_part = secret[8:18].encode()

    written = _bytes_below(tmp_path)
    assert b"[masked:" in written
    assert secret_part not in written
    store.append(_everywhere(secret))
    assert store.append(_everywhere(secret)).added == 0
    store.close()
    assert secret_part not in _bytes_below(tmp_path)


def test_masking_can_be_turned_off(store_path: Path) -> None:
    """Asked for, text is written as it is."""
    store = open_store(str(store_path), create=True, masked=False)
    store.append([entry("s", 0, given=SECRETS[0])])

    assert [record["input"] for record in store.sessions.records(None)] == [SECRETS[0]]
    store.close()
