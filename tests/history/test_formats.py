"""Logs of every format where they lie: found on a machine, told apart in one folder, forced by name, read in place."""

from __future__ import annotations

import gzip
import json
import lzma
import shutil
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ctxmgr.errors import InvalidInput
from ctxmgr.history.formats import IMPORTERS, format_views
from ctxmgr.history.ingest import import_logs
from ctxmgr.store import Store, open_store

FORMATS = Path(__file__).parents[2] / "fixtures" / "formats"
UUID = "01a203d1-8438-7a50-ba56-5cb0349d5187"
KEPT = {
    "pi/looping.jsonl": f".pi/agent/sessions/--p--/2026-11-22T15-13-12-248Z_{UUID}.jsonl",
    "copilot/looping.jsonl": f".copilot/session-state/{UUID}/events.jsonl",
    "gemini/looping.jsonl": ".gemini/tmp/proj/chats/session-2026-11-22T15-11-90c9adeb.jsonl",
    "gemini/live_0.10.0.json": ".gemini/tmp/old/chats/session-2026-11-21T20-39-82a30b0f.json",
    "qwen/looping.jsonl": f".qwen/projects/-p-/chats/{UUID}.jsonl",
    "opencode/looping.db": ".local/share/opencode/opencode.db",
    "cline/looping.messages.json": ".cline/data/sessions/1_x/1_x.messages.json",
    "openhands/5c0f1a77e2b94d0f8a3d6b1c2e4f7a90": ".openhands/conversations/5c0f1a77e2b94d0f8a3d6b1c2e4f7a90",
}
"""Sample -> where its agent would keep it under the home folder."""


def machine(folder: Path) -> Path:
    """Lay out a home folder with one session of each agent that keeps its logs there."""
    for sample, place in KEPT.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        source = FORMATS / sample
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / place)
    return folder


def fresh(folder: Path, name: str = "store.db") -> Store:
    """Return a new store."""
    return open_store(str(folder / name), create=True)


def test_every_agent_on_a_machine_is_found(tmp_path: Path) -> None:
    """Without a path the logs of all agents are imported; a second time nothing is added."""
    home, store = machine(tmp_path / "home"), fresh(tmp_path)
    report = import_logs(store, None, home=home, environment={})
    assert {file.format for file in report.files} == {sample.split("/")[0] for sample in KEPT}
    assert (len(report.sessions), report.skipped, report.unknown, report.damaged) == (len(KEPT), 0, {}, 0)
    again = import_logs(store, None, home=home, environment={})
    assert (again.added, again.changed, again.unchanged) == (0, 0, len(report.files))


def test_formats_are_told_apart_in_one_folder(tmp_path: Path) -> None:
    """Names say nothing: logs of all formats, some compressed, lie in one folder under names of their own."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    expected: dict[str, str] = {}
    for place, importer in enumerate(item for item in IMPORTERS if (FORMATS / item.name).is_dir()):
        truth = json.loads((FORMATS / importer.name / "TRUTH.json").read_text())
        source = FORMATS / importer.name / next(iter(truth))
        name = f"log{place}{'.json' if source.suffix in ('.eval', '.traj') else source.suffix}"
        if place % 2 and source.suffix in (".json", ".jsonl", ".traj"):
            name += ".gz"
            (folder / name).write_bytes(gzip.compress(source.read_bytes()))
        else:
            shutil.copy(source, folder / name)
        expected[name] = importer.name
    (folder / "settings.json").write_text('{"theme": "dark"}')
    report = import_logs(fresh(tmp_path), [folder], home=tmp_path, environment={})
    assert {Path(file.path).name: file.format for file in report.files if not file.skipped} == expected
    assert (report.skipped, report.others) == (0, 1)


@pytest.mark.parametrize("name", ["log", "run.log", "run.jsonl.1", "run.txt", "run.old"])
def test_a_log_in_a_folder_is_found_whatever_it_is_called(name: str, tmp_path: Path) -> None:
    """A log of another agent, plain, packed or begun inside a line, is told from notes and settings by its content."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    sample = next(FORMATS / name for name in KEPT if name.startswith("pi/")).read_bytes()
    (folder / name).write_bytes(sample)
    (folder / f"packed-{name}").write_bytes(gzip.compress(sample))
    (folder / f"rotated-{name}").write_bytes(b'of a line"}\n' + sample)
    (folder / "notes.txt").write_text("[x] read the logs\n{ and the settings }\n")
    (folder / "settings").write_text('{"theme": "dark"}')
    (folder / "talk.odd").write_text('{"messages": []}')
    report = import_logs(fresh(tmp_path), [folder], home=tmp_path, environment={})
    read = {Path(file.path).name: file.format for file in report.files if not file.skipped}
    assert read == {name: "pi", f"packed-{name}": "pi", f"rotated-{name}": "pi"}
    assert [Path(file.path).name for file in report.files if file.skipped] == ["talk.odd"]
    assert (report.others, [Path(file).name for file in report.other_files]) == (2, ["notes.txt", "settings"])


def test_a_format_can_be_forced_on_what_nothing_proves(tmp_path: Path) -> None:
    """A named file that is of no known format is read as the one that was named; one of another format is refused."""
    odd = tmp_path / "odd.jsonl"
    odd.write_text('{"type":"note"}\n{"role":"user","content":"hi"}\n')
    other = tmp_path / "other.jsonl"
    other.write_text('{"type":"custom","id":"a","parentId":null}\n')
    store = fresh(tmp_path)
    with pytest.raises(InvalidInput):
        import_logs(store, [other], home=tmp_path, environment={})
    forced = import_logs(store, [other], home=tmp_path, environment={}, only="pi")
    assert [file.format for file in forced.files] == ["pi"]
    with pytest.raises(InvalidInput, match="a log of messages, not of pi"):
        import_logs(store, [odd], home=tmp_path, environment={}, only="pi")


def test_the_list_of_formats_is_that_of_the_importers() -> None:
    """A row each, derived from the registry, and one for the own format."""
    assert [view.name for view in format_views()] == ["ctxmgr", *(importer.name for importer in IMPORTERS)]
    assert {view.name for view in format_views() if not view.errors} == {"swe-agent", "atif"}


@pytest.mark.parametrize("packer", [bytes, gzip.compress, lzma.compress])
def test_an_archive_is_not_taken_for_one_log(packer: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """The logs in a tar archive would run into one another; it is said that it must be unpacked."""
    plain, archive = tmp_path / "plain.tar", tmp_path / "logs.log"
    with closing(tarfile.open(plain, "w:")) as packed:
        for name in KEPT:
            packed.add(FORMATS / name, name)
    archive.write_bytes(packer(plain.read_bytes()))
    with pytest.raises(InvalidInput, match="tar archive, which must be unpacked first"):
        import_logs(fresh(tmp_path), [archive], home=tmp_path, environment={})


def test_a_packed_database_is_told_to_be_unpacked(tmp_path: Path) -> None:
    """SQLite reads no compressed file, and nothing is written beside a log."""
    packed = tmp_path / "opencode.db.gz"
    packed.write_bytes(gzip.compress((FORMATS / "opencode/looping.db").read_bytes()))
    with pytest.raises(InvalidInput, match="SQLite database that is compressed and must be unpacked first"):
        import_logs(fresh(tmp_path), [packed], home=tmp_path, environment={})
