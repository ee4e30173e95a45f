"""``export`` and ``verify``: history leaves whole and comes back the same, and damage is found and reported."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.store import open_store
from tests import builders as b
from tests.cli.console import lines, make_history, records, run
from tests.conftest import STORE_FILES


@pytest.fixture
def history(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let every command find the small history of `console.records`, in a database or a log."""
    make_history(store_path)
    monkeypatch.setenv("CTXMGR_STORE", str(store_path))
    return store_path


def exported(*filters: str) -> list[dict[str, Any]]:
    """Return the records that an export prints, without their sums."""
    found = [json.loads(line) for line in run("export", *(filters or ("--all-sessions",))).out.splitlines()]
    return [{key: value for key, value in record.items() if key != "sum"} for record in found]


def test_export_holds_every_record(history: Path) -> None:
    """An export is the history, record for record in its order; of one session when one is named, else of the latest."""
    assert exported() == records()
    assert exported("--session", "looping") == [record for record in records() if record["session"] == "looping"]
    assert exported("--session", "heal") == [record for record in records() if record["session"] == "healthy"]


@pytest.mark.parametrize("target", sorted(STORE_FILES.values()))
def test_export_and_import_are_inverse(history: Path, tmp_path: Path, target: str) -> None:
    """What was exported and imported again, into whichever kind of store, is exported to the same bytes."""
    first, other, second = tmp_path / "first.jsonl", tmp_path / f"other-{target}", tmp_path / "second.jsonl"
    ran = run("export", "--all-sessions", "-o", str(first))

    assert (ran.code, ran.out, ran.err) == (0, "", f"{len(records())} records written to {first}\n")
    report = run("import", str(first), "--store", str(other), "--json").envelope["data"]
    assert (report["added"], report["entries"], report["openCalls"]) == (len(records()), 10, 1)
    run("export", "--all-sessions", "-o", str(second), "--store", str(other))
    assert first.read_bytes() == second.read_bytes()


def test_an_import_names_the_store_for_what_comes_next(history: Path, tmp_path: Path) -> None:
    """Where the user named a store, the commands that are offered read the same one."""
    log, store = tmp_path / "first.jsonl", tmp_path / "my runs.db"
    run("export", "--all-sessions", "-o", str(log))
    named, usual = run("import", str(log), "--store", str(store)).err, run("import", str(log)).err

    assert f"See them: ctxmgr sessions --store '{store}'\n" in named
    assert f"ctxmgr detect --all-sessions --store '{store}'\n" in named
    assert "See them: ctxmgr sessions\n" in usual


def test_the_row_of_a_file_says_how_many_sessions_it_holds(tmp_path: Path) -> None:
    """The counts of a log with several sessions do not stand beside the name of one of them."""
    both, store = tmp_path / "both.jsonl", str(tmp_path / "runs.db")
    both.write_text(lines(*b.steps("first", ["Read:a"]), *b.steps("second", ["Read:a", "Read:b"])), encoding="utf-8")
    shown = run("import", str(both), "--store", store)

    assert "2 sessions  ctxmgr 1" in shown.out
    assert "first" not in shown.out.splitlines()[1].split("  ")
    again = run("import", str(both), "--store", str(tmp_path / "other.db"), "--json").envelope["data"]["files"]
    assert [(row["session"], row["sessions"]) for row in again] == [("first", 2)]


def test_an_export_is_read_in_place(history: Path, tmp_path: Path) -> None:
    """A ``.jsonl`` log is a store: every answer about it is the one about the store it came from, and it stays as it is."""
    log = tmp_path / "export.jsonl"
    run("export", "--all-sessions", "-o", str(log))
    before = log.read_bytes()
    for command in (("sessions",), ("list", "--kind", "all"), ("search", "make"), ("detect", "--all-sessions"), ("messages",)):
        there, here = run(*command, "--json", "--store", str(log)), run(*command, "--json")
        further = [f"{line} --store {log}" for line in here.envelope["next"]]
        assert (there.code, there.envelope) == (here.code, here.envelope | {"next": further})

    assert log.read_bytes() == before
    data = run("verify", "--json", "--store", str(log)).envelope["data"]
    assert (data["records"], data["damaged"]) == (len(records()), [])
    assert data["unchecked"] == []


def _files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith("history.db-")}  # the database's side files


def test_export_never_overwrites(history: Path, tmp_path: Path) -> None:
    """An export to a file or folder that exists is refused; the file stays, and no part of a file is left."""
    place = tmp_path / "there.jsonl"
    place.write_text("mine", encoding="utf-8")
    (tmp_path / "there.jsonl.part").write_text("mine too", encoding="utf-8")
    before = _files(tmp_path)
    for target in (place, tmp_path):
        ran = run("export", "-o", str(target))
        assert (ran.code, ran.err) == (2, f"ctxmgr: {target} exists already\n  name a new file: export never overwrites\n")

    assert place.read_text(encoding="utf-8") == "mine"
    assert run("export", "-o", str(tmp_path / "no" / "x.jsonl")).code == 5
    assert run("export", "-o", str(place / "x.jsonl")).code == 5
    assert _files(tmp_path) == before
    run("export", "-o", str(tmp_path / "new.jsonl"))
    assert _files(tmp_path) == before | {"new.jsonl"}
    assert (tmp_path / "new.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("linkable", [True, False])
@pytest.mark.parametrize("sealed", [True, False])
def test_a_file_that_is_made_during_an_export_stays(
    history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linkable: bool, sealed: bool
) -> None:
    """Whether or not the file system has links."""
    place = tmp_path / "there.jsonl"
    sync = os.fsync

    def sync_late(descriptor: int) -> None:
        sync(descriptor)
        place.write_text("mine", encoding="utf-8")

    def no_link(*_: Any) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    if not linkable:
        monkeypatch.setattr(os, "link", no_link)
        assert run("export", "-o", str(tmp_path / "new.jsonl")).code == 0
        assert len((tmp_path / "new.jsonl").read_text(encoding="utf-8").splitlines()) > 1
    before = _files(tmp_path)
    monkeypatch.setattr(os, "fsync", sync_late)
    ran = run("export", "-o", str(place), *(() if sealed else ("--format", "messages")))
    assert (ran.code, ran.err) == (2, f"ctxmgr: {place} exists already\n  name a new file: export never overwrites\n")
    assert place.read_text(encoding="utf-8") == "mine"
    assert _files(tmp_path) == before | {"there.jsonl"}


def test_an_empty_history_is_an_empty_log(tmp_path: Path) -> None:
    """An export of nothing is an empty file, which is a readable log."""
    open_store(str(tmp_path / "empty.db"), create=True).close()
    ran = run("export", "--store", str(tmp_path / "empty.db"), "-o", str(tmp_path / "empty.jsonl"))

    assert (ran.code, (tmp_path / "empty.jsonl").read_bytes()) == (0, b"")
    assert run("list", "--store", str(tmp_path / "empty.jsonl"), "--json").envelope["status"] == "empty"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a sound log of twenty sealed records."""
    place = tmp_path / "log.jsonl"
    store = open_store(str(place), create=True)
    store.append([b.event("s", number, "message", f"number {number}") for number in range(20)])
    store.close()
    return place


def _cut(lines: list[bytes]) -> bytes:
    return b"".join(lines)[:-9]


def _removed(lines: list[bytes]) -> bytes:
    return b"".join([*lines[:4], *lines[5:]])


def _swapped(lines: list[bytes]) -> bytes:
    return b"".join([*lines[:4], lines[5], lines[4], *lines[6:]])


def _changed(lines: list[bytes]) -> bytes:
    return b"".join(lines).replace(b"number 7", b"number 8")


def _zeroed(lines: list[bytes]) -> bytes:
    return b"".join([*lines[:6], b"\0" * 4096, *lines[6:]])


def _glued(lines: list[bytes]) -> bytes:
    return b"".join([*lines[:6], lines[6][:40], *lines[7:]])


@pytest.mark.parametrize(
    ("damage", "left"), [(_cut, 19), (_removed, 19), (_swapped, 20), (_changed, 20), (_zeroed, 20), (_glued, 19)]
)
def test_verify_finds_every_kind_of_damage(log: Path, damage: Any, left: int) -> None:
    """A cut, removed, swapped, changed, overwritten or torn record is reported with its range: exit code 5."""
    log.write_bytes(damage(log.read_bytes().splitlines(keepends=True)))
    ran = run("verify", "--json", "--store", str(log))
    data = ran.envelope["data"]

    assert (ran.code, ran.envelope["status"], data["records"]) == (5, "partial", left)
    assert all(set(row) == {"kind", "offset", "length", "reason"} and row["length"] > 0 for row in data["damaged"])
    assert data["damaged"]
    text = run("verify", "--store", str(log))
    assert (text.code, text.out.splitlines()[0]) == (5, f"{left} records checked, {len(data['damaged'])} damaged ranges")


def test_reading_a_damaged_log_says_so(log: Path) -> None:
    """Whoever reads a damaged log hears of every range, as a warning beside the answer; the intact records are shown."""
    log.write_bytes(_glued(log.read_bytes().splitlines(keepends=True)))
    ran = run("list", "--kind", "event", "--json", "--store", str(log))

    assert (ran.code, ran.envelope["page"]["total"]) == (0, 19)
    assert ran.envelope["warnings"]
    assert all(warning.startswith("damaged: ") for warning in ran.envelope["warnings"])
    assert run("list", "--kind", "event", "--store", str(log)).err.startswith("ctxmgr: damaged: ")


def test_a_changed_record_of_a_database_is_found(tmp_path: Path) -> None:
    """A record changed behind the program's back breaks its store's chain of sums, and verify names it."""
    place = make_history(tmp_path / "history.db")
    store = open_store(str(place))
    store.engine.execute("UPDATE record SET body = replace(body, 'boom', 'fine')")
    store.close()
    ran = run("verify", "--json", "--store", str(place))

    assert (ran.code, len(ran.envelope["data"]["damaged"])) == (5, 1)
    assert "sum does not match" in ran.envelope["data"]["damaged"][0]["reason"]


CLAUDE = next((Path(__file__).parents[3] / "fixtures/demo/claude-code").rglob("7e999fd2*.jsonl"))


def test_an_import_says_what_it_passed_over(tmp_path: Path) -> None:
    """A folder without a log ends with 2 and leaves nothing behind; one in which not all could be read ends with 8."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "mixed").mkdir()
    store = tmp_path / "new" / "history.db"
    refused = run("import", str(tmp_path / "empty"), "--store", str(store), "--json")
    assert (refused.code, refused.envelope["error"]["kind"], store.parent.exists()) == (2, "invalid", False)

    shutil.copy(CLAUDE, tmp_path / "mixed")
    clean = run("import", str(tmp_path / "mixed"), "--store", str(store), "--json")
    assert (clean.code, clean.envelope["data"]["skipped"]) == (0, 0)
    (tmp_path / "mixed" / "other.jsonl").write_text('{"role":"user"}\n', "utf-8")
    ran = run("import", str(tmp_path / "mixed"), "--store", str(store), "--json")
    assert (ran.code, ran.envelope["status"], ran.envelope["data"]["skipped"]) == (8, "partial", 1)
    assert ran.envelope["warnings"] == ["passed over: 1 that can't be read as a log"]
    assert "other.jsonl" in run("import", str(tmp_path / "mixed"), "--store", str(store)).out


@pytest.mark.requirement("US1-1")
def test_a_foreign_log_is_read_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command about a session takes another agent's log; nothing is written beside it or in the project."""
    log = tmp_path / "logs" / "run.jsonl"
    log.parent.mkdir()
    shutil.copy(CLAUDE, log)
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.delenv("CTXMGR_STORE")
    imported = tmp_path / "imported.db"
    run("import", str(log), "--store", str(imported))
    for words in (["detect"], ["sessions"], ["list"], ["trace", "Bash"], ["search", "rounding"], ["messages"]):
        here = run(*words, str(log), "--json")
        assert (here.code, here.envelope["data"]) == _same(words, imported)
        assert run(*words, "--store", str(log), "--json") == here
    assert run("show", f"{log}@-1", "--json").envelope["data"]["index"] == 32
    verified = run("verify", str(log), "--json")
    data = verified.envelope["data"]
    assert (verified.code, data["records"], data["damaged"], data["checked"]) == (0, 145, [], [])
    assert "no sums" in data["unchecked"][0]

    assert (list(project.iterdir()), list(log.parent.iterdir())) == ([], [log])


def _same(words: list[str], store: Path) -> tuple[int, object]:
    ran = run(*words, "--store", str(store), "--json")
    return ran.code, ran.envelope["data"]


def test_a_foreign_log_that_grows_is_read_anew(tmp_path: Path) -> None:
    """The index follows the log: what was appended is there, what was cut is gone."""
    lines_ = CLAUDE.read_bytes().splitlines(keepends=True)
    log = tmp_path / "run.jsonl"
    seen: list[int] = []
    for share in (40, len(lines_), 40):
        log.write_bytes(b"".join(lines_[:share]))
        seen.append(run("list", str(log), "--json").envelope["page"]["total"])

    assert seen[0] == seen[2] < seen[1] == 33


def test_a_recovery_beside_a_foreign_log_records_nothing(tmp_path: Path) -> None:
    """Recovering answers, says that nothing was recorded, and answers the same again; what must write is refused."""
    log = tmp_path / "run.jsonl"
    shutil.copy(CLAUDE, log)
    for ran in [run("recover", str(log), "--no-llm", "--json") for _ in range(3)]:
        assert (ran.code, ran.envelope["data"]["continuation"]["target"]) == (0, "main")
        assert any("nothing was recorded" in warning for warning in ran.envelope["warnings"])
    planned = run("recover", str(log), "--plan", "--json").envelope["warnings"]
    assert not any("nothing was recorded" in warning for warning in planned)
    noted = run("note", "add", "0", "-m", "x", "--store", str(log), "--json")

    assert (noted.code, noted.envelope["error"]["kind"]) == (2, "invalid")
    assert log.read_bytes() == CLAUDE.read_bytes()


@pytest.mark.parametrize(("content", "looks"), [
    (b"\x89PNG\r\n", "a PNG image"), (b"hello\n", "plain text"), (b'{"a":1}\n{"a":2}\n', "JSON lines with the keys a"),
    (b'{\n "b": {}}', "a JSON document with the keys b"), (bytes(range(256)), "binary data"), (b'{"torn', "damaged JSON"),
])  # fmt: skip
@pytest.mark.parametrize("name", ["x.jsonl", "x.bin", "x"])
def test_a_file_of_no_known_format_is_refused(content: bytes, looks: str, name: str, tmp_path: Path) -> None:
    """It is an error of usage that names what the file looks like and what can be read; nothing is left beside it."""
    place = tmp_path / name
    place.write_bytes(content)
    for words in (["detect", "--store", str(place)], ["verify", str(place)], ["detect", f"{tmp_path}/./{name}"]):
        ran = run(*words, "--json")
        error = ran.envelope["error"]
        assert (ran.code, error["kind"]) == (2, "invalid")
        assert error["message"].endswith(f"looks like {looks}")
        assert "ctxmgr formats" in error["hint"]

    assert list(tmp_path.iterdir()) == [place]


def test_a_damaged_log_of_our_own_is_still_read(tmp_path: Path) -> None:
    """Damage at the beginning, or another name, does not hide the records behind it."""
    place = tmp_path / "run.log"
    place.write_bytes(b"\xff" * 200_000 + b"\n" + CLAUDE.parent.name.encode() + b"\n" + lines(*records()).encode())

    assert run("list", str(place), "--session", "healthy", "--json").envelope["page"]["total"] == 3
    assert run("verify", str(place), "--json").code == 5
