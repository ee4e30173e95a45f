"""``export`` and ``verify``: history leaves whole and comes back the same, and damage is found and reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.store import open_store
from tests import builders as b
from tests.cli.console import make_history, records, run
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


def test_an_export_is_read_in_place(history: Path, tmp_path: Path) -> None:
    """A ``.jsonl`` log is a store: every answer about it is the one about the store it came from, and it stays as it is."""
    log = tmp_path / "export.jsonl"
    run("export", "--all-sessions", "-o", str(log))
    before = log.read_bytes()
    for command in (("sessions",), ("list", "--kind", "all"), ("search", "make"), ("detect", "--all-sessions"), ("messages",)):
        assert run(*command, "--json", "--store", str(log)) == run(*command, "--json")

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
