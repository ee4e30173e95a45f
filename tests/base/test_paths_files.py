"""Files of a project are opened as what they must be, and nothing is written through a link that a project can hold."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxmgr.base.paths import (
    is_inside,
    make_private_folder,
    open_regular,
    read_regular,
    require_no_link,
    require_plain_database,
)
from ctxmgr.errors import CtxmgrError, StorageFailed
from ctxmgr.log.journal import Journal
from ctxmgr.recorder import Recorder
from ctxmgr.recover.routes import parse_table, read_table
from ctxmgr.store import open_store
from tests.cli.console import run

PRECIOUS = "precious\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty project beside a folder that nothing may be written to; no variable names a store."""
    monkeypatch.delenv("CTXMGR_STORE")
    folder, outside = tmp_path / "project", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "file").write_text(PRECIOUS, "utf-8")
    monkeypatch.chdir(folder)
    return folder


def _untouched(outside: Path) -> bool:
    return os.listdir(outside) == ["file"] and (outside / "file").read_text("utf-8") == PRECIOUS


def test_only_regular_files_are_opened(project: Path) -> None:
    """Pipes, devices, folders and what is too large are refused at once; a link where links are not followed."""
    os.mkfifo(project / "pipe")
    (project / "zero").symlink_to("/dev/zero")
    (project / "link").symlink_to(project.parent / "outside" / "file")

    for place in ("pipe", "zero", "."):
        with pytest.raises(OSError, match="not a regular file"):
            open_regular(project / place)
    assert read_regular(project / "link", 100) == PRECIOUS.encode()
    with pytest.raises(OSError, match="no link is followed"):
        read_regular(project / "link", 100, follow=False)
    with pytest.raises(OSError, match="larger than 3 bytes"):
        read_regular(project / "link", 3)


INSIDE = {"a": True, "a/../b": True, "in/a": True, "..": False, "../project-x/a": False, ".": False, "out/a": False, "/": False}


@pytest.mark.parametrize(("path", "inside"), INSIDE.items())
def test_inside_is_meant_of_names_and_links(path: str, inside: bool, project: Path) -> None:
    """A path is inside a folder by its parts and by where its links lead, whatever the folder itself is reached by."""
    (project / "real").mkdir()
    (project / "in").symlink_to("real")
    (project / "out").symlink_to(project.parent / "outside")
    above = project.parent / "above"
    above.symlink_to(project)

    assert (is_inside(str(project), path), is_inside(str(above), path)) == (inside, inside)


def test_links_above_a_project_are_followed(project: Path) -> None:
    """A home or a project that is itself reached through a link works as ever."""
    above = project.parent / "above"
    above.symlink_to(project)
    os.chdir(above)

    require_no_link(str(above / ".ctxmgr" / "history.db"), writing=True)
    open_store(str(above / ".ctxmgr" / "history.db"), create=True).close()
    with Recorder(str(above / "runs" / "x.jsonl")) as recorder:
        recorder.entry("a", "look", {})
    assert run("goal", "start", "G").code == 0
    assert sorted(os.listdir(project)) == [".agent_context", ".ctxmgr", "runs"]


WRITES: dict[str, tuple[str, ...]] = {
    "goal start": ("goal", "start", "G"),
    "goal resume": ("goal", "resume"),
    "record": ("record",),
    "note add": ("note", "add", "0", "-m", "x"),
    "memory retain": ("memory", "retain", "x"),
    "artifact put": ("artifact", "put", "content", "--agent", "a", "--name", "x.md"),
    "access allow": ("access", "allow", "a", "context_key", "x"),
    "list": ("list",),
    "index": ("index",),
}
RECORD = '{"v":1,"kind":"session","session":"s","ts":"2026-01-21T00:00:00Z","process":"p"}\n'


def _plant_folder(name: str) -> Callable[[Path, Path], None]:
    return lambda project, outside: (project / name).symlink_to(outside)


def _plant_file(name: str) -> Callable[[Path, Path], None]:
    def plant(project: Path, outside: Path) -> None:
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).symlink_to(outside / "file")

    return plant


def _plant_new(name: str) -> Callable[[Path, Path], None]:
    def plant(project: Path, outside: Path) -> None:
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).symlink_to(outside / "new")

    return plant


PLANTED = {
    **{f"{name} is a link to a folder": _plant_folder(name) for name in (".agent_context", ".ctxmgr")},
    **{
        f"{name} is a link to a {what}": plant(name)
        for name in (
            ".agent_context/history.jsonl", ".agent_context/state.json", ".agent_context/state.json.tmp", ".agent_context/lock",
            ".agent_context/gate", ".agent_context/loops.json", ".agent_context/state.prev.json", ".ctxmgr/history.db",
            ".ctxmgr/history.db-wal", ".ctxmgr/history.db-shm", ".ctxmgr/history.db-journal", ".ctxmgr/artifacts",
        )
        for what, plant in (("file", _plant_file), ("new file", _plant_new))
    },
}  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED)
def test_nothing_is_written_through_a_planted_link(planted: str, project: Path) -> None:
    """Whatever of our names a project holds as a link: what lies outside is as it was, and nothing new is there."""
    outside = project.parent / "outside"
    PLANTED[planted](project, outside)
    (project / "content").write_text("x", "utf-8")
    for words in WRITES.values():
        run(*words, given=RECORD)

    assert _untouched(outside)


@pytest.mark.parametrize("name", ["history.db-wal", "history.db-shm", "history.db-journal", "history.db"])
def test_nothing_is_written_beside_a_store_that_is_there(name: str, project: Path) -> None:
    """A store that is there, and is read only, is no way out either."""
    outside, folder = project.parent / "outside", project / ".ctxmgr"
    assert run("record", given=RECORD).code == 0
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(outside / "file")

    assert (run("list").code, run("record", given=RECORD).code) == (5, 5)
    assert _untouched(outside)


def test_a_journal_that_names_another_file_is_refused(project: Path) -> None:
    """Played back, it would have SQLite delete the file that it names."""
    path = project / "h.db"
    open_store(str(path), create=True).close()
    require_plain_database(str(path))
    Path(f"{path}-journal").write_bytes(b"x" * 40 + bytes.fromhex("d9d505f920a163d7"))

    with pytest.raises(CtxmgrError, match="names another file"):
        open_store(str(path))


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.live"])
def test_a_recorder_follows_no_link(name: str, project: Path) -> None:
    """Neither the log nor the folder that marks who is live is written through a link."""
    outside = project.parent / "outside"
    (project / name).symlink_to(outside if name.endswith(".live") else outside / "file")

    with pytest.raises(CtxmgrError), Recorder("run.jsonl") as recorder:
        recorder.entry("a", "look", {})
    assert _untouched(outside)


def test_a_relative_path_does_not_leave_the_folder_through_a_link(project: Path) -> None:
    """A planted folder link leads no log out; named by the real place it may lie anywhere."""
    outside = project.parent / "outside"
    (project / "logs").symlink_to(outside)

    with pytest.raises(StorageFailed, match="name the place itself"):
        Journal("logs/run.jsonl").close()
    with pytest.raises(CtxmgrError, match="name the place itself"):
        open_store("logs/run.db", create=True)
    assert _untouched(outside)
    Journal(str(project / "logs" / "run.jsonl")).close()
    Journal("../outside/other.jsonl").close()
    assert sorted(os.listdir(outside)) == ["file", "other.jsonl", "run.jsonl"]


def test_an_artifact_is_not_written_through_a_link(project: Path) -> None:
    """``-o FILE`` replaces a file, never what a link points at."""
    (project / "content").write_text("x", "utf-8")
    assert run("artifact", "put", "content", "--agent", "a", "--name", "x.md").code == 0
    (project / "out").symlink_to(project.parent / "outside" / "file")

    assert run("artifact", "get", "a/x.md", "-o", "out").code == 2
    assert _untouched(project.parent / "outside")


@pytest.mark.parametrize("odd", ["pipe", "zero", "deep.json", "large"])
def test_a_schema_that_is_no_schema_is_refused_at_once(odd: str, project: Path) -> None:
    """A pipe, an endless device, endless nesting and a huge file end with a usage error; so does a table of routes."""
    os.mkfifo(project / "pipe")
    (project / "zero").symlink_to("/dev/zero")
    (project / "deep.json").write_text('{"a":' + "[" * 100_000, "utf-8")
    with (project / "large").open("wb") as stream:
        stream.truncate(1 << 40)

    with pytest.raises(CtxmgrError, match=r"regular|nested|larger"):
        parse_table({"coder": {"schema": odd}}, project, "here")
    with pytest.raises(CtxmgrError, match=r"regular|nested|larger"):
        read_table(project / odd)
    (project / "ctxmgr.toml").write_text(f'[recover.routes.coder]\nschema = "{odd}"\n', "utf-8")
    assert run("record", given=RECORD).code == 0
    assert "routes" in run("doctor").out


def test_a_projects_schema_lies_in_the_project(project: Path) -> None:
    """An untrusted file names no schema outside of its folder; a trusted one may."""
    (project.parent / "outside" / "schema.json").write_text('{"type": "object"}', "utf-8")
    (project / "ctxmgr.toml").write_text('[recover.routes.coder]\nschema = "../outside/schema.json"\n', "utf-8")

    assert "lies outside" in run("doctor").out
    assert run("trust").code == 0
    assert "lies outside" not in run("doctor").out


@pytest.mark.parametrize("name", ["history.jsonl", "state.json", "loops.json", "state.prev.json", "lock"])
def test_a_pipe_among_a_goals_files_hangs_nothing(name: str, project: Path) -> None:
    """Each file of a goal may be a pipe by now: it is refused or set aside, and nobody waits for a writer."""
    assert run("goal", "start", "G").code == 0
    place = project / ".agent_context" / name
    place.unlink(missing_ok=True)
    os.mkfifo(place)

    for words in (("tree",), ("resume",), ("add", "x"), ("brief",), ("recover", "--plan"), ("compare",)):
        run("goal", *words)
    shutil.rmtree(project / ".agent_context")


def test_a_relative_folder_is_made_with_its_parents(project: Path) -> None:
    """The parts of a relative path are made as those of an absolute one are."""
    assert make_private_folder(os.path.join("x", "y")) == ["x", os.path.join("x", "y")]
    assert (project / "x" / "y").stat().st_mode & 0o777 == 0o700
    assert make_private_folder("") == []
