"""The examples of spec 003 as they stand there, under the default template: asked by its agents, with its values."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.console import run

Ask = Callable[..., Any]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Return what runs a command line in an empty folder with the default template in force; it returns the data."""
    monkeypatch.chdir(tmp_path)
    store = str(tmp_path / ".ctxmgr" / "history.db")

    def asked(*words: str, code: int = 0) -> Any:
        ran = run(*words, "--store", store, "--json")
        assert ran.code == code, (words, ran.out, ran.err)
        return json.loads(ran.out)["data"] if code == 0 else json.loads(ran.out)["error"]

    asked("access", "load", "default")
    return asked


def _put(ask: Ask, path: str, text: str, *more: str) -> Any:
    Path("content").write_text(text, encoding="utf-8")
    agent = path.partition("/")[0]
    return ask("artifact", "put", "content", "--name", path.partition("/")[2], "--agent", agent, "--as", agent, *more)


def _two_versions(ask: Ask) -> None:
    _put(ask, "requirements_gatherer/requirements.yaml", "needs: [a]\n", "--description", "Structured requirements")
    _put(ask, "system_architect/architecture.yaml", "parts: [a, b]\n")


@pytest.mark.requirement("003-X1", "003-V1")
def test_create_version(ask: Ask) -> None:
    """operation: create_version; description: "Updated architecture after security review"; created_by: "system_architect"."""
    _two_versions(ask)
    done = ask("version", "create", "Updated architecture after security review", "--as", "system_architect")

    assert (done["version"], done["previousVersion"], done["path"]) == (3, 2, "artifacts/v3/")
    assert ask("version", "list")[-1]["createdBy"] == "system_architect"
    ask("version", "create", "by hand", "--by", "system_architect")
    assert ask("version", "list")[-1]["createdBy"] == "system_architect"
    ask("version", "create", "x", "--as", "system_architect", "--by", "project_manager", code=4)
    ask("version", "create", "x", "--as", "parser_developer", code=4)


@pytest.mark.requirement("003-X1", "003-V2")
def test_rollback_version(ask: Ask) -> None:
    """operation: rollback_version; target_version: 2; reason: "Architecture changes broke parser"; by project_manager."""
    _two_versions(ask)
    _put(ask, "system_architect/architecture.yaml", "parts: [c]\n")
    reason = ("--reason", "Architecture changes broke parser")
    assert ask("version", "rollback", "2", *reason, "--as", "data_architect", code=4)["kind"] == "denied"
    assert ask("version", "rollback", "1", *reason, "--as", "staff_engineer_rust", code=4)["kind"] == "denied"
    done = ask("version", "rollback", "2", *reason, "--as", "project_manager")

    assert (done["currentVersion"], done["rolledBackFrom"]) == (2, 3)
    assert ask("artifact", "get", "system_architect/architecture.yaml")["content"] == "parts: [a, b]\n"
    assert {row["key"]: row["value"] for row in ask("context", "get")}["context_version"] == 2
    done = ask("version", "rollback", "3", "--reason", "undo", "--by", "project_manager")
    assert done["currentVersion"] == 3


@pytest.mark.requirement("003-X1", "003-A7")
def test_the_template_lets_nobody_prune_or_take_back_what_is_not_its_own(ask: Ask) -> None:
    """The architect may number a state; to take back what another one made, or to remove it, it may not."""
    _two_versions(ask)
    _put(ask, "requirements_gatherer/requirements.yaml", "needs: [b]\n")
    ask("version", "rollback", "2", "--reason", "mine", "--as", "system_architect", code=4)
    ask("version", "prune", "--keep-versions", "1", "--keep-days", "0", "--as", "system_architect", code=4)


@pytest.mark.requirement("003-X1", "003-C1", "003-X2")
def test_the_default_keys_and_update_context(ask: Ask) -> None:
    """INSERT INTO project_context: project_name, current_sprint, current_phase; update_context by project_manager."""
    keys = {row["key"]: (row["value"], row["type"], row["description"], row["updatedBy"]) for row in ask("context", "get")}
    assert keys == {
        "project_name": ("", "string", "Project name", "system"),
        "current_sprint": ("", "string", "Active sprint ID", "system"),
        "current_phase": ("development", "string", "Current phase", "system"),
    }
    ask("context", "set", "current_sprint", "S1-08", "--as", "project_manager")
    done = ask("context", "set", "current_sprint", "S1-09", "--as", "project_manager")["updated"]
    assert [(row["key"], row["oldValue"], row["newValue"]) for row in done] == [("current_sprint", "S1-08", "S1-09")]
    ask("access", "load", "default")
    assert {row["key"]: row["value"] for row in ask("context", "get")}["current_sprint"] == "S1-09"


@pytest.mark.requirement("003-X1", "003-E1", "003-E3")
def test_record_execution_and_query_history(ask: Ask) -> None:
    """operation: record_execution of parser_developer; operation: query_history by debugger: failed, S1-08, limit 10."""
    _two_versions(ask)
    ask(
        "execution", "record", "parser_developer", "completed", "--id", "exec_001", "--task", "T-S1-08-001", "--sprint",
        "S1-08", "--context-version", "2", "--input", "system_architect/architecture.yaml", "--input-tokens", "45000",
        "--output-tokens", "8500", "--started", "2024-03-12T10:00:00Z", "--completed", "2024-03-12T10:15:00Z",
    )  # fmt: skip
    failed = ask(
        "execution", "record", "parser_developer", "failed", "--id", "exec_005", "--task", "T-S1-08-003", "--sprint", "S1-08",
        "--error", "Parse error at line 45", "--started", "2024-03-12T14:00:00Z",
    )  # fmt: skip

    assert (failed["startedAt"], failed["completedAt"], failed["durationSeconds"]) == (
        "2024-03-12T14:00:00.000000Z",
        None,
        None,
    )
    found = ask(
        "execution", "list", "--agent", "parser_developer", "--status", "failed", "--sprint", "S1-08", "--limit", "10",
        "--as", "debugger",
    )  # fmt: skip
    assert [(row["id"], row["error"], row["taskId" if "taskId" in row else "task"]) for row in found] == [
        ("exec_005", "Parse error at line 45", "T-S1-08-003")
    ]


@pytest.mark.requirement("003-X3", "R-30")
def test_the_tables_of_the_specification_are_views(ask: Ask, tmp_path: Path) -> None:
    """Each table of its schema can be read with SQL, by the columns that it names; nothing can be written there."""
    test_record_execution_and_query_history(ask)
    _put(ask, "system_architect/notes.md", "# Notes\n\n" + "Words that go on and on. " * 200)
    ask("context", "need", "add", "debugger", "system_architect/notes.md", "--need", "reference", "--summary")
    ask("context", "assemble", "debugger", "--max-tokens", "2000")

    with closing(sqlite3.connect(tmp_path / ".ctxmgr" / "history.db")) as database:

        def rows(sql: str) -> list[Any]:
            return database.execute(sql).fetchall()

        assert rows("SELECT id, agent_id, task_id, sprint_id, status, context_version, input_token_count, output_token_count, "
                    "started_at, completed_at, duration_seconds, error_message FROM execution_history ORDER BY id") == [
            ("exec_001", "parser_developer", "T-S1-08-001", "S1-08", "completed", 2, 45000, 8500, "2024-03-12T10:00:00.000000Z",
             "2024-03-12T10:15:00.000Z", 900.0, None),
            ("exec_005", "parser_developer", "T-S1-08-003", "S1-08", "failed", 2, None, None,
             "2024-03-12T14:00:00.000000Z", None, None, "Parse error at line 45"),
        ]  # fmt: skip
        assert json.loads(rows("SELECT input_artifacts FROM execution_history WHERE id = 'exec_001'")[0][0])
        found = rows("SELECT agent_id, name, artifact_type, version, file_path, file_hash, token_count, created_at, "
                     "description FROM artifacts ORDER BY version")  # fmt: skip
        assert [row[:4] for row in found] == [
            ("requirements_gatherer", "requirements.yaml", "yaml", 1), ("system_architect", "architecture.yaml", "yaml", 2),
            ("system_architect", "notes.md", "markdown", 3),
        ]  # fmt: skip
        assert all((tmp_path / ".ctxmgr" / "artifacts" / row[4]).is_file() for row in found)
        assert rows("SELECT version, parent_version, created_by FROM context_versions ORDER BY version") == [
            (1, None, "requirements_gatherer"), (2, 1, "system_architect"), (3, 2, "system_architect"),
        ]  # fmt: skip
        assert rows("SELECT permission FROM access_control WHERE agent_id = 'project_manager' AND resource_type = 'context' "
                    "ORDER BY permission") == [("read",), ("write",)]  # fmt: skip
        assert [row[1] < 1 for row in rows("SELECT artifact_id, compression_ratio FROM context_summaries")] == [True]
        assert rows("SELECT value FROM project_context WHERE key = 'current_phase'") == [("development",)]
        assert rows("SELECT value FROM project_context WHERE key = 'context_version'") == [("3",)]
        assert rows("SELECT count(*) FROM artifact_dependencies") == [(0,)]
        assert rows("SELECT requirement_type FROM agent_context_requirements WHERE agent_id = 'code_reviewer'") != []
        for view in ("artifacts", "context_versions", "execution_history", "access_control", "context_summaries"):
            with pytest.raises(sqlite3.OperationalError):
                database.execute(f"DELETE FROM {view}")
