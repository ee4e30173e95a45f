"""A continuation that is told again: to the byte what the recovery would say, until anything changes it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest

from ctxmgr.cli import recovery_cache
from ctxmgr.cli.fast import dispatch
from ctxmgr.recover import service
from ctxmgr.store import open_store
from tests.builders import at, build, entry, write
from tests.cli.paths import Ended, run_by

LOOP = ["Read:a", *["!Bash:make -> no rule to make it"] * 4]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a store with a stuck session that was answered, and another one; commands are started beside it."""
    path = tmp_path / "history.db"
    with closing(open_store(str(path), create=True)) as store:
        write(store, "other", ["Read:a", "Edit:b"])
        write(store, "s", LOOP)
    monkeypatch.chdir(tmp_path)
    assert by_command(path).code == 0
    return path


def by_command(path: Path, *words: str, terminal: bool = False) -> Ended:
    """Run the recovery by the command's own function."""
    return run_by(["recover", "-s", "s", *words, "--store", str(path)], lambda _: None, terminal=terminal)


def by_lane(path: Path, *words: str, terminal: bool = False) -> Ended:
    """Run the recovery as a command line does."""
    return run_by(["recover", "-s", "s", *words, "--store", str(path)], dispatch.answer_command, terminal=terminal)


@pytest.fixture
def refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no recovery begin."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a recovery began")

    monkeypatch.setattr(service, "Service", refuse)


@pytest.mark.cases(1)
@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("words", [
    (), ("--prompt",), ("--json",), ("--prompt", "--json"), ("--format", "ndjson"), ("--format", "md"),
    ("--fields", "continuation"), ("--jq", ".data"),
], ids=" ".join)  # fmt: skip
def test_it_is_told_to_the_byte(words: tuple[str, ...], terminal: bool, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Output, talk and exit code are those of the recovery, which is not begun again, for programs and people."""
    expected = by_command(place, *words, terminal=terminal)
    monkeypatch.setattr(service, "Service", None)
    told = by_lane(place, *words, terminal=terminal)
    assert told[:3] == expected[:3]
    assert (told.code, told.was_quick) == (0, True)
    assert b"no rule to make it" in told.out


@pytest.mark.cases(1)
@pytest.mark.usefixtures("refused")
@pytest.mark.parametrize("what", ["record", "note", "other session", "lease", "variable", "settings", "option", "target"])
def test_whatever_changes_the_answer_ends_it(what: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record anywhere in the store, a setting, an option, a variable that may name a model: then the recovery looks."""
    words: tuple[str, ...] = ()
    with closing(open_store(str(place))) as store:
        if what == "record":
            store.append([entry("s", 9)])
        elif what == "note":
            store.append([build("note", "s", at(90), id="n", entries=["s-e0000"], content="x", tags=[])])
        elif what == "other session":
            store.append([entry("other", 9)])
        elif what == "lease":
            assert store.leases.take("s", "holder", store.clock(), 60)
    if what == "variable":
        monkeypatch.setenv("CTXMGR_MODEL", "some-model")
    elif what == "settings":
        (place.parent / "ctxmgr.toml").write_text("[recover]\nattempts = 5\n")
    elif what == "option":
        words = ("--only-session",)
    elif what == "target":
        words = ("--to", "coder")
    assert by_lane(place, "--prompt", *words).code == 1


def test_an_answer_of_settings_is_kept_with_them(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a project's settings it is told again as long as they stay the same; a table of routes in a file is read anew."""
    settings = place.parent / "ctxmgr.toml"
    settings.write_text("[recover]\nattempts = 5\n")
    expected = by_command(place, "--json")
    with monkeypatch.context() as patch:
        patch.setattr(service, "Service", None)
        assert by_lane(place, "--json")[:3] == expected[:3]
    settings.write_text('[recover]\nroutes = "routes.toml"\n')
    (place.parent / "routes.toml").write_text("[agents.coder]\n")
    assert recovery_cache.find_settings() is None


def test_what_somebody_else_wrote_meanwhile_keeps_it_from_being_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that was added by another program while the recovery worked is no part of what it answers to."""
    path = tmp_path / "history.db"
    monkeypatch.chdir(tmp_path)
    with closing(open_store(str(path), create=True)) as store:
        write(store, "s", LOOP)
    stuck: Any = service.Service.answer_finding

    def interrupted(*given: object, **named: object) -> object:
        found = stuck(*given, **named)
        with closing(open_store(str(path))) as store:
            store.append([entry("s", 9)])
        return found

    with monkeypatch.context() as patch:
        patch.setattr(service.Service, "answer_finding", interrupted)
        assert by_command(path).code == 0
    monkeypatch.setattr(service, "Service", None)
    assert by_lane(path, "--prompt").code == 1


def test_a_store_that_is_not_there_is_told_by_the_command(tmp_path: Path) -> None:
    """Whatever is amiss has the words and the code of the recovery."""
    missing = tmp_path / "none.db"
    assert by_lane(missing, "--json")[:3] == by_command(missing, "--json")[:3]
