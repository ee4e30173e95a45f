"""The import driver: what is found, what is read again, what is left out, and that its report adds up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import InvalidInput
from ctxmgr.history import ingest, own_log
from ctxmgr.history.ingest import import_logs
from ctxmgr.log import codec
from ctxmgr.store import Store, open_store
from ctxmgr.store.search.index import mark
from tests import builders as b
from tests.cli.console import lines, process, run
from tests.history.logs import (
    CLAUDE,
    CODEX,
    FORK,
    LOGS,
    ORIGINAL,
    ROLLOUT,
    bring_in,
    by_session,
    content,
    entries,
    fresh,
    home,
    truths,
)  # fmt: skip

KNOWN_OF_CLAUDE = {
    "tool_calls": "tool_calls", "tool_names": "tool_names", "tool_errors": "failed_calls", "open_tool_calls": "open_calls",
    "assistant_text_blocks": "messages", "thinking_blocks": "thoughts", "api_responses": "api_responses",
}  # fmt: skip
KNOWN_OF_CODEX = {
    "version": "version", "toolCalls": "tool_names", "failed": "failed_calls", "open": "open_calls", "messages": "messages",
    "thoughts": "thoughts", "userMessages": "user_messages", "responses": "api_responses", "usage": "usage",
}  # fmt: skip


@pytest.mark.parametrize(("path", "truth"), [pytest.param(*one, id=one[0].name[:24]) for one in truths()])
def test_every_recorded_log_is_counted_exactly(path: Path, truth: dict[str, Any], tmp_path: Path) -> None:
    """The report of a file equals what is known of it in every figure: calls, failures, messages, tokens."""
    report = bring_in(fresh(tmp_path), path)
    file = next(file for file in report.files if file.path == str(path))
    said = file.user_messages + file.harness_messages

    if "tool_calls" in truth:
        assert {name: getattr(file, place) for name, place in KNOWN_OF_CLAUDE.items()} == {
            name: truth[name] for name in KNOWN_OF_CLAUDE
        }
        tokens = (file.usage.get("inputTokens", 0), file.usage.get("outputTokens", 0))
        assert (said, *tokens) == (truth["user_string_messages"], truth["input_tokens"], truth["output_tokens"])
    else:
        assert {name: getattr(file, place) for name, place in KNOWN_OF_CODEX.items()} == {
            name: truth[name] for name in KNOWN_OF_CODEX
        }
        assert said == truth["roleUserMessages"]
    assert (report.not_understood, report.damaged, file.unknown) == (0, 0, {})


def test_the_report_adds_up(store: Store) -> None:
    """Totals are the sums over the files, what was read is added, known or a double, and the store holds what was added."""
    report = bring_in(store, LOGS)
    calls = Counter[str]()
    for file in report.files:
        calls.update(file.tool_names)
    read = [file for file in report.files if file.skipped is None]

    assert {file.format for file in read} == {"claude-code", "codex"}
    assert len(report.files) - len(read) == report.skipped
    assert report.records == sum(file.records for file in report.files)
    assert report.entries == sum(file.tool_calls for file in report.files) == calls.total()
    assert report.open_calls == sum(file.open_calls for file in report.files) == 1
    assert (report.known, report.changed, report.unchanged) == (0, 0, 0)
    assert report.added == len(content(store))
    assert set(report.sessions) >= set(by_session(store))
    assert len({file.path for file in read}) == len(read) == 26


def test_a_second_run_reads_nothing(store: Store) -> None:
    """Unchanged files are not read again; touched or copied ones are, and everything in them is known."""
    first = bring_in(store, LOGS)
    before = content(store)
    again = bring_in(store, LOGS)

    assert (again.unchanged, again.records, again.added) == (len(first.files) - first.skipped, 0, 0)
    assert [file.path for file in again.files] == [file.path for file in first.files if file.skipped]
    assert content(store) == before


def test_a_touched_file_adds_nothing(store: Store, tmp_path: Path) -> None:
    """A file that only got a new time, and a copy in another folder, hold nothing new; a renamed one tells of its name."""
    log, renamed = tmp_path / ROLLOUT.name, tmp_path / "renamed.jsonl"
    for place in (log, renamed):
        shutil.copy(ROLLOUT, place)
    first = bring_in(store, log)
    found = entries(store)
    os.utime(log, (1, 1))
    for report in (bring_in(store, log), bring_in(store, ROLLOUT)):
        assert (report.added, report.known, report.changed, report.unchanged) == (0, first.added, 0, 0)

    report = bring_in(store, renamed)
    assert (report.added, report.known + report.changed, entries(store)) == (1, first.added - 1, found)


def test_a_file_is_known_from_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered of a file does not depend on the folder that ctxmgr is run in."""
    store = fresh(tmp_path)
    monkeypatch.chdir(CODEX)
    bring_in(store, Path(ROLLOUT.name))
    monkeypatch.chdir(tmp_path)

    assert bring_in(store, ROLLOUT).unchanged == 1
    assert [path for path, *_ in store.imported.sources("01a1ffcb-7903-7542-a69f-9a2a9fc965c5")] == [str(ROLLOUT)]


def test_without_a_path_it_finds_what_is_on_this_machine(tmp_path: Path) -> None:
    """Without a path every log below the home of each known agent is imported, sub-agents with their session."""
    place = home(tmp_path / "home")
    store = fresh(tmp_path)
    report = import_logs(store, None, home=place, environment={})

    found = {Path(file.path) for file in report.files}
    assert found == {path for path in place.rglob("*.jsonl") if not path.name.startswith("stream_json")}
    assert {"agent-a4c827275cb659351.jsonl", "agent-d3eee8ca.jsonl"} <= {path.name for path in found}
    assert import_logs(store, None, home=place, environment={}, only="codex").unchanged == 4
    assert import_logs(store, None, home=tmp_path / "nobody", environment={}).files == []


def test_the_environment_moves_a_home(tmp_path: Path) -> None:
    """CLAUDE_CONFIG_DIR and CODEX_HOME say where the agents keep their logs instead."""
    place = home(tmp_path / "home")
    moved = {"CLAUDE_CONFIG_DIR": str(place / ".claude"), "CODEX_HOME": str(place / ".codex")}

    assert len(import_logs(fresh(tmp_path), None, home=tmp_path, environment=moved).files) == 14


def test_one_format_can_be_chosen(tmp_path: Path) -> None:
    """``only`` reads the files of that format and no others; a named file of another one is refused."""
    store = fresh(tmp_path)

    assert {file.format for file in bring_in(store, LOGS, only="codex").files if file.skipped is None} == {"codex"}
    with pytest.raises(InvalidInput, match="there is no log in it"):
        bring_in(store, CLAUDE, only="codex")
    with pytest.raises(InvalidInput, match="a log of codex, not of claude-code"):
        bring_in(store, ROLLOUT, only="claude-code")
    with pytest.raises(InvalidInput, match="unknown log format 'word'"):
        bring_in(store, ROLLOUT, only="word")


def test_sub_agents_come_with_their_session(tmp_path: Path) -> None:
    """Naming a session's main log brings its sub-agents' logs along, as entries of the same session."""
    store = fresh(tmp_path)
    report = bring_in(store, ORIGINAL)

    assert [Path(file.path).name[:9] for file in report.files] == ["a081ebf7-", "agent-a4c"]
    assert set(by_session(store)) == {ORIGINAL.stem}
    agents = {record["agent"] for record in content(store) if record["kind"] == "entry"}
    assert len(agents) == 2


@pytest.mark.parametrize("order", [(ORIGINAL, FORK), (FORK, ORIGINAL)])
def test_a_fork_in_one_run_holds_only_what_is_its_own(store: Store, order: tuple[Path, ...]) -> None:
    """Imported together, in whatever order, the original keeps its entries and results, the fork what came after."""
    report = bring_in(store, *order)
    found = by_session(store)

    assert [session for session, _, _ in entries(store)] == [ORIGINAL.stem] * 10
    assert {status for _, _, status in entries(store)} == {"ok", "error"}
    assert {record["kind"] for record in found[FORK.stem]} == {"session", "event"}
    assert [record["data"]["text"] for record in found[FORK.stem] if record.get("type") == "user_message"] == [
        "Forked: what else?"
    ]
    assert report.doubles == 30


@pytest.mark.parametrize("order", [(ORIGINAL, FORK), (FORK, ORIGINAL)])
def test_a_fork_in_two_runs_makes_no_doubles(store: Store, order: tuple[Path, ...]) -> None:
    """Imported one after the other, in whatever order, every call is there once, with its result, and stays so."""
    for path in (*order, *order):
        bring_in(store, path)
    found = entries(store)

    assert len(found) == len({entry for _, entry, _ in found}) == 10
    assert {status for _, _, status in found} == {"ok", "error"}
    results = [record for record in content(store) if record["kind"] == "result"]
    assert len(results) == 10


def test_a_file_that_goes_away_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that vanishes while its folder is imported is reported as skipped, and all others are imported."""
    place = home(tmp_path / "home")
    gone = next(place.rglob(FORK.name))
    read = type(open_store(str(tmp_path / "other.db"), create=True).imported).is_unchanged

    def vanishing(self: Any, path: Path, state: Any) -> bool:
        if path == gone:
            path.unlink()
        return read(self, path, state)

    store = fresh(tmp_path)
    monkeypatch.setattr(type(store.imported), "is_unchanged", vanishing)
    report = import_logs(store, None, home=place, environment={})

    assert [Path(file.path).name for file in report.files if file.skipped] == [gone.name]
    assert len(report.files) == 14
    assert FORK.stem not in by_session(store)


@pytest.mark.parametrize(("odd", "code"), [(1, 0), (2, 0), (3, 8)])
def test_more_than_two_per_cent_not_understood_is_partial(odd: int, code: int, tmp_path: Path) -> None:
    """Up to 2 % of records that are not understood an import is whole, beyond it partial: exit code 8; all is reported."""
    known = [b.event("s", number, "message") for number in range(100 - odd)]
    unknown = [b.build("odd", "s", None, id=str(number)) for number in range(odd)]
    (tmp_path / "log.jsonl").write_text(lines(*known, *unknown), encoding="utf-8")
    ran = run("import", str(tmp_path / "log.jsonl"), "--store", str(tmp_path / "store.db"), "--json")

    assert (ran.code, ran.envelope["status"]) == (code, "partial" if code else "ok")
    assert ran.envelope["data"]["unknown"] == {"odd": odd}
    assert ran.envelope["data"]["notUnderstood"] == odd / 100
    assert ran.envelope["data"]["added"] == 100


def test_secrets_of_imported_logs_are_masked(tmp_path: Path) -> None:
    """A secret of a known shape in an imported log never reaches the store, unless masking is turned off."""
    secret = b"ghp_" + b"a1B2" * 9
    log = tmp_path / ROLLOUT.name
    log.write_bytes(ROLLOUT.read_bytes().replace(b"Fix the typo", b"Fix " + secret))
    kept: list[bool] = []
    for number, mask in enumerate(("--mask", "--no-mask")):
        store = str(tmp_path / f"{number}.db")
        assert run("import", str(log), mask, "--store", store).code == 0
        kept.append(secret.decode() in run("export", "--all-sessions", "--store", store).out)
        assert run("import", str(log), mask, "--store", store, "--json").envelope["data"]["unchanged"] == 1

    assert kept == [False, True]


def test_what_is_imported_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an import the sessions are listed with their verdicts, and the one that was killed is found."""
    monkeypatch.setenv("CTXMGR_STORE", str(tmp_path / "store.db"))
    run("import", str(LOGS))
    verdicts = {row["session"]: row["verdict"] for row in run("sessions", "--limit", "99", "--json").envelope["data"]}
    found = run("detect", "--all-sessions", "--json")

    assert (found.code, len(verdicts)) == (11, 18)
    assert {row["session"]: row["verdict"] for row in found.envelope["data"]} == verdicts
    assert [name for name, verdict in verdicts.items() if verdict == "hung"] == ["5d069cb2-0346-4329-ac68-5c30c7b6fbd2"]


KILLED = """
import os, signal, sys
from pathlib import Path
from ctxmgr.history import ingest
from ctxmgr.store import open_store
left = int(sys.argv[3])
ours = ingest._drop_project_state
def dying(*given, **named):
    global left
    for record in ours(*given, **named):
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        yield record
ingest._drop_project_state = dying
ingest.import_logs(open_store(sys.argv[2], create=True), [Path(sys.argv[1])], home=Path("/nowhere"), environment={})
"""


@pytest.mark.parametrize("after", [60, 377])
def test_a_killed_import_is_simply_run_again(store_path: Path, tmp_path: Path, after: int) -> None:
    """An import killed at any record leaves whole sessions; the next run ends in the very store of an undisturbed one."""
    ended = subprocess.run([sys.executable, "-c", KILLED, LOGS, store_path, str(after)], check=False, timeout=60)
    assert ended.returncode == -9
    store, whole = open_store(str(store_path)), fresh(tmp_path, "whole.db")
    bring_in(whole, LOGS)
    expected = by_session(whole)
    for session, records in by_session(store).items():
        assert records == expected[session]

    bring_in(store, LOGS)
    assert (by_session(store), entries(store)) == (expected, entries(whole))
    assert bring_in(store, LOGS).unchanged == 26


def test_the_command_finds_a_home_too(tmp_path: Path) -> None:
    """``ctxmgr import`` without a path, as a process, imports the logs of its own user's home."""
    place = home(tmp_path / "home")
    ran = process("import", "--json", "--store", str(tmp_path / "store.db"), env={"HOME": str(place)})

    assert (ran.code, ran.err, len(ran.envelope["data"]["files"])) == (0, "", 14)


def test_a_long_log_of_our_own_is_written_in_parts_that_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt leaves a beginning of the log without gaps; run again, the rest is added and all of it searchable."""
    monkeypatch.setattr(ingest, "_PART", 10)
    monkeypatch.setattr(own_log, "_LINES_PER_REPORT", 1)
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(codec.encode(b.entry("s", number)) + b"\n" for number in range(45)))
    store = open_store(str(tmp_path / "h.db"), create=True)

    def interrupt(done: int, total: int, _: Path) -> None:
        assert total == path.stat().st_size
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_logs(store, [path], home=tmp_path, environment={}, progress=interrupt)
    kept = store.sessions.entry_count(1)
    report = import_logs(store, [path], home=tmp_path, environment={})

    assert kept == 20
    assert (report.added, report.known) == (25, 20)
    assert mark(store.engine) == 45
    store.close()


def test_parts_written_before_a_record_that_is_too_long_count_as_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a record has to be shortened the log is read again; what was written before is new with this import."""
    monkeypatch.setattr(ingest, "_PART", 2)
    path = tmp_path / "run.jsonl"
    odd = b'{"v":1,"kind":"entry","session":"s","id":"odd","agent":"a"}\n'
    path.write_bytes(b"".join(codec.encode(b.entry("s", number)) + b"\n" for number in range(5)) + odd)
    store = open_store(str(tmp_path / "h.db"), create=True)

    report = import_logs(store, [path], home=tmp_path, environment={})

    assert (report.added, report.known, report.changed) == (5, 0, 0)
    assert sum(report.unknown.values()) == 1
    store.close()
