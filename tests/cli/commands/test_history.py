"""``sql`` and ``stats``: their answers in every format, what is said of what was cut, and what an agent sees."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from ctxmgr.store import open_store
from ctxmgr.store.project_session import ACCESS
from tests import builders as b
from tests.cli.console import make_history, run

pytestmark = pytest.mark.usefixtures("history")

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
def used(tmp_path: Path) -> str:
    """Return a log of two days, two models and two agents in which answers used tokens."""
    place = str(tmp_path / "used.jsonl")
    day = 86_400
    records = [
        b.build("session", "u", b.at(0), process="p"),
        *(b.entry("u", n, action, step="m1", meta={"model": "big"}) for n, action in enumerate(("Read", "Read", "Bash"))),
        b.event("u", 0, "usage", {"inputTokens": 90, "outputTokens": 30, "model": "big", "responseId": "m1"}, agent="coder"),
        {**b.entry("u", 3, "Bash", agent="tester", step="m2", meta={"model": "small"}), "ts": b.at(day)},
        b.event("u", 1, "usage", {"inputTokens": 5, "model": "small", "responseId": "m2"}, agent="tester", after=day),
        b.event("u", 2, "usage", {"outputTokens": 7, "model": "small", "responseId": "m3"}, agent="tester", after=day),
        b.build("result", "u", b.at(1), entry=b.entry_id("u", 0), status="ok", durationMs=1500),
        b.build("result", "u", b.at(1), entry=b.entry_id("u", 2), status="error", durationMs=500, error={"message": "no"}),
    ]  # fmt: skip
    store = open_store(place, create=True)
    store.append(records)
    store.close()
    return place


def _stats(*arguments: str) -> dict[str | None, tuple[object, ...]]:
    rows = run("stats", *arguments, "--json").envelope["data"]
    names = ("calls", "failed", "open", "inputTokens", "outputTokens", "seconds")
    return {row["key"]: tuple(row[name] for name in names) for row in rows}


def test_stats_add_up_by_whatever_is_asked_for(used: str) -> None:
    """Calls, failures, open calls, tokens and time by each key; the tokens of an answer are shared among its calls."""
    assert _stats(used) == {
        "Bash": (2, 1, 1, 35, 10, 0.5), "Read": (2, 0, 1, 60, 20, 1.5), None: (0, 0, 0, None, 7, None),
    }  # fmt: skip
    assert _stats(used, "--by", "model") == {"big": (3, 1, 1, 90, 30, 2.0), "small": (1, 0, 1, 5, 7, None)}
    assert _stats(used, "--by", "agent") == {"coder": (3, 1, 1, 90, 30, 2.0), "tester": (1, 0, 1, 5, 7, None)}
    assert _stats(used, "--by", "day") == {"2026-01-22": (3, 1, 1, 90, 30, 2.0), "2026-01-23": (1, 0, 1, 5, 7, None)}
    assert _stats(used, "--by", "session") == {"u": (4, 1, 2, 95, 37, 2.0)}
    assert {key: row[0] for key, row in _stats(used, "--by", "status").items()} == {"ok": 1, "error": 1, "open": 2, None: 0}


def test_stats_are_narrowed_by_filters(used: str) -> None:
    """A filter counts the calls that pass, and of a shared answer their share of the tokens alone."""
    assert _stats(used, "--action", "read") == {"Read": (2, 0, 1, 60, 20, 1.5)}
    assert _stats(used, "--status", "error") == {"Bash": (1, 1, 0, 30, 10, 0.5)}
    assert _stats(used, "--model", "SMALL", "--by", "model") == {"small": (1, 0, 1, 5, 7, None)}
    assert _stats(used, "--agent", "tester", "--by", "agent") == {"tester": (1, 0, 1, 5, 7, None)}
    assert _stats(used, "--since", "2026-01-23T00:00:00Z", "--by", "day") == {"2026-01-23": (1, 0, 1, 5, 7, None)}
    assert run("stats", used, "--action", "nosuch", "--json").envelope["status"] == "empty"


def test_stats_of_a_store_are_of_all_sessions_or_of_one() -> None:
    """Without a session all are counted; the total says what the rows add up to."""
    assert sum(row[0] for row in _stats("--by", "session").values() if isinstance(row[0], int)) == 10
    assert _stats("healthy", "--by", "session") == {"healthy": (3, 1, 0, None, None, None)}
    assert run("stats", "--by", "nosuch").code == 2
    assert run("stats", "nosuch").code == 3


def test_stats_have_bars_for_people_alone(used: str) -> None:
    """In a pipe there are bare numbers and no bar; CSV has a row for each key."""
    assert "━" not in run("stats", used).out
    assert [row["calls"] for row in csv.DictReader(run("stats", used, "--format", "csv").out.splitlines())] == ["2", "2", "0"]


QUERY = "SELECT idx, action, status FROM entries WHERE session = 'healthy' ORDER BY idx"
ROWS = [(0, "Read", "ok"), (1, "Bash", "error"), (2, "Bash", "ok")]


def test_a_query_is_answered_in_every_format() -> None:
    """The same rows as a table, JSON, NDJSON, Markdown, CSV and TSV, the columns in the order of the query."""
    whole = run("sql", QUERY, "--json").envelope
    assert [tuple(row.values()) for row in whole["data"]] == ROWS
    assert (whole["status"], whole["page"]["hasMore"], whole["warnings"]) == ("ok", False, [])
    assert [tuple(json.loads(line).values()) for line in run("sql", QUERY, "--format", "ndjson").out.splitlines()] == ROWS
    assert run("sql", QUERY).out.splitlines()[1].split() == ["0", "Read", "ok"]
    assert run("sql", QUERY, "--format", "csv").out == "idx,action,status\n0,Read,ok\n1,Bash,error\n2,Bash,ok\n"
    assert run("sql", QUERY, "--format", "tsv").out.splitlines()[2] == "1\tBash\terror"
    assert run("sql", QUERY, "--format", "md").out.splitlines()[:3] == ["| idx | action | status |", "| ---: | --- | --- |",
                                                                         "| 0 | Read | ok |"]  # fmt: skip


def test_a_query_without_rows_still_has_columns() -> None:
    """CSV and TSV begin with the names of the columns, whether or not there is a row."""
    ran = run("sql", "SELECT idx, action FROM entries WHERE 0", "--format", "csv")

    assert (ran.code, ran.out) == (0, "idx,action\n")
    assert run("sql", "SELECT idx FROM entries WHERE 0", "--json").envelope["status"] == "empty"


def test_what_is_cut_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows beyond the limit and a query that took too long are told on stderr and in the envelope; the latter ends with 8."""
    ran = run("sql", QUERY, "--limit", "2")
    assert (ran.code, len(ran.out.splitlines())) == (0, 3)
    assert "only the first 2 rows are shown" in ran.err
    whole = run("sql", QUERY, "--limit", "2", "--json").envelope
    assert (whole["page"]["hasMore"], len(whole["warnings"])) == (True, 1)

    stopped = run("sql", ENDLESS, "--time-limit", "0.2")
    assert (stopped.code, stopped.out) == (8, "")
    assert "took longer than 0.2 s" in stopped.err
    assert run("sql", ENDLESS, "--time-limit", "0.2", "--json").envelope["status"] == "partial"


def test_a_query_is_refused_with_what_there_is() -> None:
    """What can't be read is a fault of usage that names the views; a file in the place of the query is told as that."""
    for query in ("DELETE FROM entry", "SELECT value FROM state", "SELEC", ""):
        ran = run("sql", query, "--json")
        assert (ran.code, ran.envelope["error"]["kind"]) == (2, "invalid")
    assert "usage_by_day" in run("sql", "SELECT * FROM nosuch").err
    assert "is a file" in run("sql", "run.jsonl").err
    assert run("sql").code == 2


def test_values_and_stdin(used: str) -> None:
    """``--value`` stands in the place of a mark, ``-`` reads the query from stdin, and a log stands in place of the store."""
    assert run("sql", "SELECT ? AS a", "--value", "' OR 1", "--format", "csv").out == "a\n' OR 1\n"
    assert run("sql", "-", used, "--format", "csv", given="SELECT count(*) AS n FROM entries\n").out == "n\n4\n"
    assert run("sql", "SELECT count(*) AS n FROM sessions", "--store", used, "--format", "csv").out == "n\n1\n"


def test_findings_are_those_of_detect() -> None:
    """A query of the findings finds what ``detect`` finds, at the same places."""
    found = run("sql", "SELECT session, kind, count, first, last FROM findings", "--json").envelope["data"]
    told = [
        (each["session"], finding["kind"], finding["count"], *map(finding["evidence"]["indexes"].get, ("first", "last")))
        for each in run("detect", "--all-sessions", "--exit-zero", "--json").envelope["data"]
        for finding in each["findings"]
    ]  # fmt: skip

    assert told
    assert [tuple(row.values()) for row in found] == told


def test_the_views_are_listed() -> None:
    """``--views`` names each view with its columns, for people and programs."""
    rows = run("sql", "--views", "--json").envelope["data"]

    assert {row["view"] for row in rows} > {"sessions", "entries", "findings", "usage_by_day", "artifacts"}
    assert next(row["columns"] for row in rows if row["view"] == "entries")[:2] == ["session", "idx"]
    assert "usage_by_day" in run("sql", "--views").out


def test_hostile_text_steers_neither_a_terminal_nor_a_spreadsheet(tmp_path: Path) -> None:
    """Escapes are shown as text in every format, and a text that a spreadsheet would compute is none to it any more."""
    place = str(tmp_path / "hostile.db")
    store = open_store(place, create=True)
    store.append(b.steps("h", ["Bash:=cmd|' /C calc'!A0 -> \x1b]0;owned\x07\n-1+1", "Bash:x -> -1.5"]))
    store.close()
    query = "SELECT input, output FROM entries ORDER BY idx"
    for form in ("table", "csv", "tsv", "md", "json", "ndjson"):
        assert not set(run("sql", query, "--store", place, "--format", form).out) & {"\x1b", "\x07"}
    rows = list(csv.reader(run("sql", query, "--store", place, "--format", "csv").out.splitlines(keepends=True)))
    assert rows[1][0].startswith("'=cmd|")
    assert rows[2][1] == "-1.5"
    assert json.loads(run("sql", query, "--store", place, "--format", "ndjson").out.splitlines()[0])["output"].startswith(
        "\x1b]0;"
    )


def test_an_agent_sees_its_own_alone() -> None:
    """With ``--as`` a query and the sums hold what the agent may read, and the look is logged."""
    assert run("access", "allow", "coder", "history", "coder/*").code == 0

    def of(agent: str) -> tuple[object, ...]:
        told = run("sql", "SELECT agent, count(*) AS n FROM entries GROUP BY 1", "--as", agent, "--json").envelope["data"]
        return [tuple(row.values()) for row in told], {
            key: row[0] for key, row in _stats("--as", agent, "--by", "agent").items()
        }

    assert of("coder") == ([("coder", 5)], {"coder": 5})
    assert of("stranger") == ([], {})
    logged = run("list", "-s", "ctxmgr:project", "--kind", "event", "--event-type", ACCESS, "--json", "-n", "100").envelope[
        "data"
    ]
    assert [event["data"]["command"] for event in logged] == ["sql", "stats"] * 2


def test_a_range_that_ends_before_it_begins_is_refused(tmp_path: Path) -> None:
    """Nobody must look for filters that are too narrow."""
    store = str(make_history(tmp_path / "h.db"))
    ended = run("list", "--store", store, "--since", "5m", "--until", "10m")
    assert (ended.code, "--until lies before --since" in ended.err) == (2, True)
    assert run("list", "--store", store, "--since", "10m", "--until", "5m").code == 0
