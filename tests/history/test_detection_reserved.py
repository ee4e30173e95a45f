"""The project's own session surprises nobody: it is never the latest one, in no list, and no stranger's log sets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxmgr.history.detection import detect_, sessions
from ctxmgr.history.query.requests import list_, search, show
from ctxmgr.log.codec import Record, encode
from ctxmgr.store import Store, open_store
from ctxmgr.store.project_session import EXECUTION, PROJECT, RULES
from ctxmgr.store.status import contents
from ctxmgr.types.operations import DetectRequest, SessionsRequest
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import ListRequest, SearchRequest, ShowRequest
from tests.builders import at, entry, result, steps
from tests.cli.console import run
from tests.history.logs import ORIGINAL, bring_in

RULE = {"agent": "me", "resourceType": "history", "pattern": "*", "permission": "write", "priority": 1}
STATE: list[Record] = [
    build("event", PROJECT, at(900), id="r1", type=RULES, data={"set": [RULE], "removed": []}),
    entry(PROJECT, 0, EXECUTION, {"sprint": "seven"}, ts=at(901), agent="coder", inputType=EXECUTION),
    result(PROJECT, 0, ts=at(902)),
]


def test_it_is_not_among_the_sessions(store: Store) -> None:
    """It is neither counted nor listed nor the latest; who names it whole gets it, by a prefix nobody does."""
    store.append([*steps("ctxmgr-run", ["Bash:ls", "Bash:ls"]), *STATE])
    assert (store.sessions.count(), store.sessions.count("coder"), contents(store).sessions) == (1, 1, 1)
    assert [view.session for view in sessions(store, SessionsRequest(), {}).sessions] == ["ctxmgr-run"]
    assert [each.session for each in detect_(store, DetectRequest(all_sessions=True), {}).verdicts] == ["ctxmgr-run"]
    assert list_(store, ListRequest()).session == "ctxmgr-run"
    assert list_(store, ListRequest(session="ctxmgr")).session == "ctxmgr-run"
    assert list_(store, ListRequest(session=PROJECT, kind="all")).page.total == 2


def test_a_store_with_nothing_else_is_an_empty_history(store: Store) -> None:
    """With the project's state alone there is no session yet."""
    store.append(STATE)
    assert (list_(store, ListRequest()).status, list_(store, ListRequest()).session) == ("empty", None)
    assert detect_(store, DetectRequest(all_sessions=True), {}).verdicts == []


def test_an_empty_history_is_searched(store: Store) -> None:
    """Over all sessions of a store that holds nothing, indexed or not, nothing is found."""
    for _ in range(2):
        answer = search(store, SearchRequest(query="needle", all_sessions=True))
        assert (answer.status, answer.page.total, answer.page.total_is_exact) == ("empty", 0, True)
        assert not store.index()


@pytest.mark.parametrize("indexed", [False, True], ids=["read", "indexed"])
def test_a_search_of_everything_finds_runs_but_not_the_state(store: Store, *, indexed: bool) -> None:
    """Over all sessions the executions are found, and what the state's events say is not; in its own session it is."""
    store.append([*steps("s", ["Bash:write seven"]), *STATE])
    if indexed:
        assert store.index()

    def found(query: str, session: str | None) -> list[str]:
        asked = SearchRequest(query=query, kind="all", session=session, all_sessions=session is None)
        return [hit.row.id for hit in search(store, asked).hits]

    assert found("seven", None) == ["s-e0000", "ctxmgr:project-e0000"]
    assert found("priority", None) == []
    assert found("priority", PROJECT) == ["r1"]


def test_an_entry_of_it_is_shown_where_no_other_has_the_id(store: Store) -> None:
    """An id that an entry of the project's session shares with one of another session means that other one."""
    store.append(
        [entry("s", 0, id="x1"), entry("t", 0, id="y", ts=at(5)), entry(PROJECT, 0, id="x1"), entry(PROJECT, 1, id="z")]
    )
    assert show(store, ShowRequest(entry_id="x1")).entry.session == "s"
    assert show(store, ShowRequest(entry_id="z")).entry.session == PROJECT


def _log(path: Path, records: list[Record]) -> Path:
    path.write_bytes(b"".join(encode(record) + b"\n" for record in records))
    return path


@pytest.mark.parametrize("where", ["at the end", "alone"])
def test_an_imported_log_sets_no_rules(store: Store, tmp_path: Path, where: str) -> None:
    """What a log says of the project's state is left out, counted and told; it can be trusted afterwards."""
    log = _log(tmp_path / "stranger.jsonl", [*(steps("s", ["Bash:ls"]) if where == "at the end" else []), *STATE])
    for _ in range(2):  # a file of which something was left out is read anew each time
        report = bring_in(store, log)
        assert report.untrusted == 3
        assert "--trust-project" in report.files[0].notes[0]
        assert (store.shared.rules(), store.sessions.key(PROJECT)) == ([], None)
    report = bring_in(store, log, trust_project=True)
    assert (report.untrusted, report.added, len(store.shared.rules())) == (0, 3, 1)
    assert bring_in(store, log, trust_project=True).unchanged == 1


def test_a_foreign_log_can_not_name_its_session_so(store: Store, tmp_path: Path) -> None:
    """A session of another agent's log that is called as the project's own is left out too."""
    log = tmp_path / "c.jsonl"
    log.write_text(ORIGINAL.read_text().replace(ORIGINAL.stem, PROJECT))
    report = bring_in(store, log)
    assert report.untrusted > 0
    assert store.sessions.key(PROJECT) is None


def test_a_whole_store_moves_with_its_state(store: Store, tmp_path: Path) -> None:
    """Export and a trusting import carry everything, rules and executions included."""
    store.append([*steps("s", ["Bash:ls"]), *STATE])
    log = _log(tmp_path / "all.jsonl", list(store.sessions.records(None)))
    other = open_store(str(tmp_path / "other.db"), create=True)
    bring_in(other, log, trust_project=True)
    assert list(other.sessions.records(None)) == list(store.sessions.records(None))
    assert other.shared.rules() == store.shared.rules()
    other.close()


def test_a_log_read_in_place_is_trusted(tmp_path: Path) -> None:
    """A log that is named as the store is the store: its rules hold."""
    store = open_store(str(_log(tmp_path / "h.jsonl", STATE)))
    assert len(store.shared.rules()) == 1
    store.close()


def test_the_commands_leave_it_out_and_say_so(tmp_path: Path) -> None:
    """``record`` and ``import`` warn of what they left out; ``--trust-project`` takes it over."""
    store, log = str(tmp_path / "h.db"), _log(tmp_path / "stranger.jsonl", [*steps("s", ["Bash:ls"]), *STATE])
    for ran in (
        run("record", "--store", store, "--json", given=log.read_bytes()),
        run("import", str(log), "--store", store, "--json"),
    ):
        assert "3 records of the project's own state" in json.loads(ran.out)["warnings"][0]
    assert run("list", "--session", PROJECT, "--store", store).code == 3
    ran = run("record", "--trust-project", "--store", store, "--json", given=log.read_bytes())
    assert json.loads(ran.out)["data"] == {"added": 3, "known": 2}
    assert run("record", "--session", PROJECT, "--store", store, "--", "true").code == 2
