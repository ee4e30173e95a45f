"""What is said about the store that is meant: which one and why, may it be used, is it damaged, would it be committed."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from ctxmgr.config import Config
from ctxmgr.history import health
from ctxmgr.history.health import check_store
from ctxmgr.store.engine.schema import LATEST
from ctxmgr.types.setup import Check
from tests.cli.console import make_history

NOWHERE: Mapping[str, str] = {}


def looked(
    location: Path | str | None, folder: Path, environment: Mapping[str, str] = NOWHERE, config: Config | None = None
) -> dict[str, Check]:
    """Return the checks of the store that is meant, by name."""
    named = None if location is None else str(location)
    return {check.name: check for check in check_store(named, folder, environment, config or Config())}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a project's folder with a store of its own."""
    (tmp_path / ".ctxmgr").mkdir(mode=0o700)
    make_history(tmp_path / ".ctxmgr" / "history.db")
    return tmp_path


def test_a_store_in_order(home: Path) -> None:
    """A private store outside of any work tree is told in numbers, and nothing is amiss."""
    found = looked(None, home / "deep" / "below")

    assert {name: check.level for name, check in found.items()} == dict.fromkeys(
        ("store.path", "store.contents", "store.damage", "store.permissions", "store.access", "store.space"), "ok"
    )
    assert found["store.contents"].detail | {"bytes": 0} == {
        "kind": "database", "sessions": 3, "entries": 10, "bytes": 0, "schema": LATEST, "knownSchema": LATEST,
        "origin": None,
    }  # fmt: skip
    assert int(str(found["store.contents"].detail["bytes"])) > 10_000


def test_what_chose_the_store_is_said(home: Path, tmp_path: Path) -> None:
    """An option comes before the environment, that before the configuration, that before the nearest store upwards."""
    other = str(make_history(tmp_path / "other.db"))
    config = Config(path=tmp_path / "ctxmgr.toml", store=other, origins={"store": "project"})
    reasons = [
        looked(other, home, {"CTXMGR_STORE": other}, config)["store.path"],
        looked(None, home, {"CTXMGR_STORE": other}, config)["store.path"],
        looked(None, home, {}, config)["store.path"],
        looked(None, home)["store.path"],
    ]

    assert [check.detail["why"] for check in reasons] == [
        "named by --store", "named by CTXMGR_STORE", f"named by {config.path}", "the nearest .ctxmgr/history.db upwards",
    ]  # fmt: skip
    assert [check.detail["path"] for check in reasons] == [other, other, other, str(home / ".ctxmgr" / "history.db")]


def test_no_store_yet_is_no_fault(tmp_path: Path) -> None:
    """Where nobody made or named a store, it is said how one is made; none is made by looking."""
    found = looked(None, tmp_path)

    assert {name: check.level for name, check in found.items()} == {"store.path": "info", "store.space": "ok"}
    assert "'ctxmgr import'" in str(found["store.path"].hint)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content", "check", "kind"),
    [
        ("gone.db", None, "store.path", "notFound"),
        ("gone.jsonl", None, "store.path", "notFound"),
        ("text.db", b"not a database, but long enough to be looked at as one" * 100, "store.contents", "damaged"),
        ("torn.jsonl", b'{"v":1,"kind":"eve', "store.damage", "damaged"),
    ],
)
def test_a_named_store_that_is_gone_or_damaged_fails(
    name: str, content: bytes | None, check: str, kind: str, tmp_path: Path
) -> None:
    """The failure has the kind of error that any other command would answer with, and says what to do."""
    if content is not None:
        (tmp_path / name).write_bytes(content)
    found = looked(tmp_path / name, tmp_path)[check]

    assert (found.level, found.kind) == ("fail", kind)
    assert found.hint


@pytest.mark.parametrize("name", ["", "a\0b", "mysql://host/db", "."])
def test_what_can_not_name_a_store_fails(name: str, tmp_path: Path) -> None:
    """An odd location is a failure with a reason, never a crash."""
    assert "fail" in {check.level for check in looked(name, tmp_path).values()}


def test_many_faults_are_counted(tmp_path: Path) -> None:
    """Of many damaged ranges the first is shown, and that there are more."""
    place = tmp_path / "torn.jsonl"
    place.write_bytes(b'{"v":1,"kind":"event","session":"s","id":"a","type":"message"}\n' + b"odd\n{}\n" * 30)
    found = looked(place, tmp_path)["store.damage"]

    assert found.finding.startswith("at least 20 damaged: ")
    assert len(found.detail["faults"]) == 20


def test_a_store_that_others_may_read_is_warned_of(home: Path) -> None:
    """A mode that lets others in is named, with the command that takes it back."""
    (home / ".ctxmgr").chmod(0o755)
    found = looked(None, home)["store.permissions"]

    assert found.level == "warn"
    assert found.hint == f"chmod go= {home / '.ctxmgr'}"
    assert found.detail[str(home / ".ctxmgr")] == "0755"


def test_the_command_is_for_a_shell(tmp_path: Path) -> None:
    """A path with blanks is one word of it."""
    (tmp_path / "my files").mkdir()
    place = make_history(tmp_path / "my files" / "history.db")
    place.chmod(0o644)
    hint = looked(place, tmp_path)["store.permissions"].hint

    assert hint is not None
    assert str(place) in shlex.split(hint)


def test_a_folder_that_others_made_may_be_open(tmp_path: Path) -> None:
    """Of a store that lies among other files only its own mode counts."""
    place = make_history(tmp_path / "history.db")
    tmp_path.chmod(0o755)
    assert looked(place, tmp_path)["store.permissions"].level == "ok"

    place.chmod(0o640)
    assert looked(place, tmp_path)["store.permissions"].level == "warn"


@pytest.mark.parametrize(("refused", "level"), [(health.os.W_OK, "warn"), (health.os.R_OK, "fail")])
def test_what_the_system_forbids_is_said(refused: int, level: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that can't be written can still be inspected; one that can't be read is a failure."""

    def allowed(_path: object, mode: int) -> bool:
        return mode != refused

    monkeypatch.setattr(health.os, "access", allowed)

    assert looked(None, home)["store.access"].level == level


def _git(*arguments: str, folder: Path) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def test_a_history_that_git_would_commit_is_warned_of(home: Path) -> None:
    """In a work tree that does not ignore the store, the line for .gitignore is named; with it all is well."""
    _git("init", "--quiet", folder=home)
    found = looked(None, home)["store.git"]
    assert (found.level, found.hint) == ("warn", f"add .ctxmgr/ to {home / '.gitignore'}")

    (home / ".gitignore").write_text(".ctxmgr/\n", encoding="utf-8")
    assert looked(None, home)["store.git"].level == "ok"


def test_without_git_the_work_tree_is_only_mentioned(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where git is not installed, it is said that it could not be asked."""
    _git("init", "--quiet", folder=home)
    monkeypatch.setenv("PATH", str(home))

    assert looked(None, home)["store.git"].level == "info"


def test_a_program_named_by_the_repository_is_not_started(home: Path) -> None:
    """A repository whose settings name a program for watching files has no say in what runs."""
    _git("init", "--quiet", folder=home)
    started = home / "started"
    _git("config", "core.fsmonitor", f"touch {started}", folder=home)

    assert looked(None, home)["store.git"].level == "warn"
    assert not started.exists()


def test_little_space_is_warned_of(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A nearly full disk is a warning; one that can't be asked is none."""

    def little(_: object) -> SimpleNamespace:
        return SimpleNamespace(free=5_000_000)

    monkeypatch.setattr(shutil, "disk_usage", little)
    assert looked(None, home)["store.space"].finding == "only 5,000,000 bytes free"

    def refuse(_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(shutil, "disk_usage", refuse)
    assert looked(None, home)["store.space"].level == "info"
