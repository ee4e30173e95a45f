"""What LangGraph's own savers write, while they have it open, is read: from SQLite's file, from PostgreSQL, and as its rows.

``make test-frameworks`` has the packages; elsewhere these tests are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.history.formats import IMPORTERS, read_head, recognise_format
from ctxmgr.history.ingest import import_logs
from ctxmgr.log.codec import Record
from ctxmgr.store import open_store
from ctxmgr.types.import_report import FileCount, FileReport

sqlite = pytest.importorskip("langgraph.checkpoint.sqlite")
postgresql = pytest.importorskip("langgraph.checkpoint.postgres")

ROUNDS = 3


def _graph(saver: Any) -> Any:
    """Return an agent that calls a tool which fails twice and answers then, and calls once more before it is interrupted."""
    messages, graphs = import_module("langchain_core.messages"), import_module("langgraph.graph")

    def agent(state: dict[str, Any]) -> dict[str, Any]:
        made = sum(message.type == "tool" for message in state["messages"])
        call = {"name": "search", "args": {"query": "calc"}, "id": f"call_{made}"}
        return {"messages": [messages.AIMessage("", tool_calls=[call])]}

    def tools(state: dict[str, Any]) -> dict[str, Any]:
        call = state["messages"][-1].tool_calls[0]
        found = call["id"] == f"call_{ROUNDS - 1}"
        words = "found" if found else "ImportError: No module named 'calc'"
        answer = messages.ToolMessage(words, tool_call_id=call["id"], status="success" if found else "error")
        return {"messages": [answer]}

    def onward(state: dict[str, Any]) -> str:
        return graphs.END if sum(message.type == "tool" for message in state["messages"]) > ROUNDS else "tools"

    graph = graphs.StateGraph(graphs.MessagesState)
    graph.add_node("agent", agent)
    graph.add_node("tools", tools)
    graph.add_edge(graphs.START, "agent")
    graph.add_conditional_edges("agent", onward, ["tools", graphs.END])
    graph.add_edge("tools", "agent")
    return graph.compile(checkpointer=saver, interrupt_before=["tools"])


def _run(saver: Any, thread: str) -> None:
    graph, where = _graph(saver), {"configurable": {"thread_id": thread}}
    graph.invoke({"messages": [("user", "Make the test pass.")]}, where)
    for _ in range(ROUNDS):
        graph.invoke(None, where)


def _read(path: Path) -> tuple[str, list[Record], FileCount]:
    name = recognise_format(path, read_head(path))
    importer = next(each for each in IMPORTERS if each.name == name)
    counts: list[FileCount] = []
    records = [record for group in importer.groups([path]) for record in importer.read(group, counts)]
    return str(name), records, counts[0]


def _holds(records: list[Record], count: FileCount | FileReport, thread: str) -> None:
    """Hold records to the task, each call with what came of it, and the call that the interrupted run never made."""
    assert {record["session"] for record in records} == {thread}
    calls = [record for record in records if record["kind"] == "entry"]
    assert [(call["action"], call["input"]) for call in calls] == [("search", {"query": "calc"})] * (ROUNDS + 1)
    results = {record["entry"]: record for record in records if record["kind"] == "result"}
    ended = [results[call["id"]]["status"] if call["id"] in results else "open" for call in calls]
    assert ended == ["error", "error", "ok", "open"]
    opened, failed = (count.open_calls, count.failed_calls) if isinstance(count, FileReport) else (count.open, count.failed)
    assert (opened, failed, count.user_messages, dict(count.unknown)) == (1, 2, 1, {})


def test_a_sqlite_saver_is_read_while_it_has_its_file_open(tmp_path: Path) -> None:
    """What still lies in the log beside the database is read too, and nothing is written there."""
    path = tmp_path / "checkpoints.sqlite"
    with sqlite.SqliteSaver.from_conn_string(str(path)) as saver:
        _run(saver, "thread-1")
        before = {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
        name, records, count = _read(path)
        assert {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == before
    assert name == "langgraph"
    _holds(records, count, "thread-1")
    assert all(record.get("ts") for record in records if record["kind"] in ("entry", "result"))


@contextmanager
def _postgresql_saver(address: str) -> Generator[Any]:
    with postgresql.PostgresSaver.from_conn_string(address) as saver:
        saver.setup()
        yield saver


def test_the_rows_of_a_postgresql_saver_are_read_as_they_are_exported(tmp_path: Path, server_url: str) -> None:
    """Rows as ``row_to_json`` gives them, in whatever order, tell each call of each thread once, as the database itself."""
    path = tmp_path / "writes.jsonl"
    with _postgresql_saver(server_url) as saver:
        for table in ("checkpoint_writes", "checkpoint_blobs", "checkpoints"):
            saver.conn.execute(f"DELETE FROM {table}")
        _run(saver, "thread-1")
        rows = saver.conn.execute("SELECT row_to_json(w) AS row FROM checkpoint_writes w ORDER BY md5(w::text)").fetchall()
        with closing(open_store(str(tmp_path / "store.db"), create=True)) as store:
            report = import_logs(store, [server_url], home=tmp_path, environment={})
            _holds(list(store.sessions.records(None)), report.files[0], "thread-1")
            assert import_logs(store, [server_url], home=tmp_path, environment={}).added == 0
    path.write_text("".join(json.dumps(row["row"]) + "\n" for row in rows))
    name, records, count = _read(path)
    assert name == "langgraph-rows"
    _holds(records, count, "thread-1")
