"""A log, an entry of it, or a folder of logs in the place of a session."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ctxmgr.base.paths import SIDE_FILES
from tests.builders import entry, result, steps
from tests.cli.console import lines, make_history, run

DEMO = Path(__file__).parents[3] / "fixtures/demo/claude-code/projects/-home-dev-invoice-tool"
LOOPING = next(DEMO.glob("7e999fd2*.jsonl"))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder that holds a log of our own, a healthy one, and another agent's log with a loop."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.jsonl").write_text(lines(*steps("own", ["Read:a", "Read:b", "Read:c"])))
    shutil.copy(LOOPING, tmp_path / "claude.jsonl")
    return tmp_path


def test_notes_and_snapshots_on_entries_of_a_log() -> None:
    """The log is the store: it gets the record, and the default store none."""
    noted = run("note", "add", "own.jsonl@1", "own.jsonl@-1", "-m", "look", "--json")
    assert (noted.code, noted.envelope["data"]["indexes"]) == (0, [1, 2])
    bundled = run("snapshot", "create", "own.jsonl@0", "--summary", "s", "--json")
    assert bundled.envelope["data"]["entries"] == ["own-e0000"]
    told = run("note", "list", "--store", "own.jsonl", "--json").envelope["data"]
    assert [note["content"] for note in told] == ["look"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("own.jsonl", "'own.jsonl' names no entry"),
        ("claude.jsonl@3", "claude.jsonl is a log of Claude Code, which ctxmgr only reads"),
        ("gone.jsonl@3", "no file at gone.jsonl"),
        ("own.jsonl@9", "Index out of bounds"),
    ],
)
def test_what_no_note_can_be_put_on(target: str, message: str) -> None:
    """Each is said for what it is, and nothing is written."""
    ran = run("note", "add", target, "-m", "x")
    assert ran.code in (2, 3)
    assert message in ran.err
    assert run("note", "list", "--store", "own.jsonl", "--json").envelope["data"] == []


@pytest.mark.parametrize("command", ["check", "detect", "list", "recover", "verify", "report"])
def test_a_log_is_not_read_from_stdin(command: str) -> None:
    """A log is read more than once; the refusal says so, and what to do. A file of that name is read."""
    refused = run(command, "-", given="{}")
    Path("-").write_bytes(Path("own.jsonl").read_bytes())

    assert refused.code == 2
    assert "a log can't be read from stdin" in refused.err
    assert "save it first" in refused.err
    assert "stdin" not in run(command, "-").err


def test_a_list_begins_at_an_entry() -> None:
    """Of a log read in place, and of a session; by both parsers."""
    for form in ("json", "table"):
        assert "own-e0000" not in run("list", "own.jsonl@1", "--format", form).out
    rows = run("list", "claude.jsonl@3", "--limit", "2", "--json").envelope["data"]
    assert [row["index"] for row in rows] == [3, 4]


@pytest.mark.parametrize("more", [["--status", "ok"], ["-r"], ["--offset", "1"], ["--kind", "all"]])
@pytest.mark.parametrize("form", ["json", "table"])
def test_an_address_is_no_place_among_chosen_rows(more: list[str], form: str) -> None:
    """An index means nothing where rows are filtered or turned round, and that is said instead of guessed."""
    ran = run("list", "own.jsonl@1", *more, "--format", form)
    assert ran.code == 2
    assert "can't be combined" in ran.out + ran.err
    assert run("list", "own.jsonl@last").code == 2


def test_every_log_of_a_folder_is_judged(folder: Path) -> None:
    """Each by itself, in the order of their names; what was passed over is listed and counted; no store is made."""
    (folder / "notes.jsonl").write_text("no log\n")
    (folder / "sub").mkdir()
    (folder / "sub/more.jsonl").write_text(lines(*steps("more", ["Read:a"])))
    ran = run("detect", ".", "--json")
    assert (ran.code, ran.envelope["status"]) == (10, "partial")
    assert {row["session"]: row["verdict"] for row in ran.envelope["data"]} == {
        "7e999fd2-d31f-46eb-9632-55e969fb3852": "loop", "more": "healthy", "own": "healthy",
    }  # fmt: skip
    warnings = ran.envelope["warnings"]
    assert any(line.startswith("not read:") and "notes.jsonl" in line for line in warnings)
    assert warnings[-1] == "judged: 3 logs; not read: 1 files"
    assert ran.envelope["next"] == [
        f"ctxmgr recover --session 7e999fd2-d31f-46eb-9632-55e969fb3852 --store {folder}/claude.jsonl"
    ]
    shown = run("detect", "./")
    assert shown.code == 10
    assert f"--store {folder}/claude.jsonl" in shown.out
    assert "not read: 1 files" in shown.err
    assert not (folder / ".ctxmgr").exists()


def test_a_folder_is_no_green_unless_all_of_it_was_read(folder: Path) -> None:
    """A healthy folder exits 0, one with a file that could not be read 8, and one with nothing readable 2."""
    (folder / "claude.jsonl").unlink()
    assert run("detect", ".").code == 0
    (folder / "notes.jsonl").write_text("no log\n")
    assert run("detect", ".").code == 8
    assert run("detect", ".", "--exit-zero").code == 0
    (folder / "own.jsonl").unlink()
    for form in ("json", "table"):
        assert run("detect", ".", "--format", form).code == 2
    (folder / "notes.jsonl").unlink()
    assert run("detect", ".").code == 2


@pytest.mark.cases(1)
@pytest.mark.parametrize("command", ["detect", "check"])
def test_logs_under_odd_names_are_judged_and_all_else_is_named(command: str, folder: Path) -> None:
    """What a file is called decides nothing: a renamed log is read, and notes are told to be none."""
    (folder / "claude.jsonl").rename(folder / "claude.old")
    (folder / "notes.txt").write_text("look at this\n")
    ran = run(command, "./", "--json")
    assert (ran.code, len(ran.envelope["data"])) == (10, 2)
    assert [line for line in ran.envelope["warnings"] if line.startswith("no logs: ")] == [f"no logs: {folder}/notes.txt"]
    assert f"no logs: {folder}/notes.txt" in run(command, "./").err


@pytest.mark.cases(1)
@pytest.mark.parametrize("command", ["detect", "check"])
def test_what_sqlite_keeps_beside_a_store_is_part_of_it(command: str, folder: Path) -> None:
    """A folder is told of in the same words before and after its store was read, which leaves side files there."""
    make_history(folder / "store.db")
    for side in SIDE_FILES:
        (folder / f"alone.db{side}").write_bytes(b"no database stands beside this")
    first, again = run(command, ".", "--json"), run(command, ".", "--json")
    assert (folder / "store.db-wal").exists()
    others = ", ".join(sorted(f"{folder}/alone.db{side}" for side in SIDE_FILES))
    for ran in (first, again):
        assert [line for line in ran.envelope["warnings"] if line.startswith("no logs: ")] == [f"no logs: {others}"]


def test_a_log_of_which_no_record_is_known_is_no_green(folder: Path) -> None:
    """A later version of an agent may write what nobody here knows: the file alone ends with 8, and `check` with 2."""
    line = '{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"of_tomorrow","id":%d}}\n'
    (folder / "later.jsonl").write_text("".join(line % number for number in range(4)))
    alone = run("detect", "later.jsonl")
    assert (alone.code, "no record of a known kind" in alone.out) == (8, True)
    assert run("detect", "later.jsonl", "--exit-zero").code == 0
    checked = run("check", "later.jsonl")
    assert (checked.code, "no record of a known kind" in checked.err) == (2, True)


def test_a_folder_is_no_store() -> None:
    """Its logs are judged or imported, not listed as one history; that is said."""
    Path("logs").mkdir()
    ran = run("sessions", "--store", "logs")
    assert (ran.code, "logs is a folder" in ran.err) == (2, True)


def test_a_folder_is_judged_as_a_whole() -> None:
    """One session of it can't be chosen, and a session with the name of a folder is still a session."""
    ran = run("detect", ".", "--session", "own")
    assert (ran.code, "leave --session" in ran.err) == (2, True)
    make_history(Path("history.db"), entry("logs", 0), result("logs", 0))
    Path("logs").mkdir()
    assert run("detect", "logs", "--store", "history.db").code == 0


def test_the_doctor_looks_at_another_agents_log() -> None:
    """It is read in place, and nothing is wrong with it because it is not of our own format."""
    ran = run("doctor", "--store", "claude.jsonl", "--json")
    rows = {row["name"]: row for row in ran.envelope["data"]}
    assert ran.code == 0
    assert rows["store.contents"]["finding"].startswith("a log of Claude Code, read in place; sessions: 1, entries: 33,")
    assert rows["store.damage"]["level"] == "ok"
    Path("bad.jsonl").write_text("no log\n")
    assert run("doctor", "--store", "bad.jsonl").code != 0


def test_a_growing_log_leaves_one_index(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index of the log as it was is of no use any more; those of other logs stay."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    content = LOOPING.read_bytes().splitlines(keepends=True)
    other = folder / "other.jsonl"
    shutil.copy(LOOPING, other)
    run("list", "other.jsonl")
    for length in (10, 30, len(content)):
        (folder / "claude.jsonl").write_bytes(b"".join(content[:length]))
        assert run("list", "claude.jsonl").code == 0
    kept = list((folder / "cache/ctxmgr/index").glob("foreign-*.db"))
    assert len(kept) == 2
    assert run("list", "other.jsonl", "--json").code == 0
    assert sorted(kept) == sorted((folder / "cache/ctxmgr/index").glob("foreign-*.db"))
