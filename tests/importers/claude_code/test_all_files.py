"""Which files are Claude Code's, where they lie, and which of them belong together."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.importers.claude_code import CLAUDE_CODE
from ctxmgr.types.import_report import FileCount

FIXTURES = Path(__file__).parents[3] / "fixtures" / "logs"
LOGS = FIXTURES / "claude-code"
NEW, OLD = LOGS / "live_2.1.330" / "project", LOGS / "live_2.0.32" / "project"
MAIN, FORK = NEW / "a081ebf7-ed87-4cc2-94fb-b8817e5c810f.jsonl", NEW / "69f5953a-2790-4cee-af95-04fe8f0211ea.jsonl"
CHILD = MAIN.with_suffix("") / "subagents" / "agent-a4c827275cb659351.jsonl"
BESIDE = OLD / "3482b1fd-ce13-47ab-a20a-42201cf2c3ce.jsonl"
UUID = "0d5c8a6e-1111-4222-8333-944445555666"


def _sniff(*records: Any) -> bool:
    return CLAUDE_CODE.sniff(Path("x"), b"\n".join(json.dumps(record).encode() for record in records))


def _record(kind: str = "user", **fields: Any) -> dict[str, Any]:
    return {
        "parentUuid": None, "isSidechain": False, "type": kind, "uuid": "u", "sessionId": UUID,
        "timestamp": "2026-11-21T10:00:00.000Z", "message": {"role": kind, "content": "hello"},
    } | fields  # fmt: skip


@pytest.mark.parametrize("path", sorted(LOGS.rglob("*.jsonl")), ids=lambda path: str(path.relative_to(LOGS))[:40])
def test_real_logs_are_recognised(path: Path) -> None:
    """Transcripts, sub-agents' logs and streams of every era are recognised by their first 64 KiB."""
    assert CLAUDE_CODE.sniff(path, path.read_bytes()[: 1 << 16])


def test_a_damaged_or_huge_beginning_is_recognised() -> None:
    """A torn first line, NULs, a mark in front or a first line longer than the head do not hide a transcript."""
    line = json.dumps(_record(), separators=(",", ":")).encode()
    sniff = CLAUDE_CODE.sniff
    assert sniff(Path("x"), b'{"type":"us\n' + line)
    assert sniff(Path("x"), b"\0" * 100 + line)
    assert sniff(Path("x"), b"\xef\xbb\xbf" + line + b"\r\n")
    huge = json.dumps(_record(message={"content": "x" * 70_000}, type="user"), separators=(",", ":")).encode()
    early = b'{"parentUuid":null,"isSidechain":false,"sessionId":"' + UUID.encode() + b'",' + huge[40:]
    assert sniff(Path("x"), early[: 1 << 16])


def test_state_lines_and_journals_alone_are_recognised() -> None:
    """A file that holds nothing but the program's state, or a workflow's journal, is recognised too."""
    assert _sniff({"type": "summary", "summary": "x", "leafUuid": UUID})
    assert _sniff({"type": "mode", "mode": "normal", "sessionId": UUID}, {"type": "tag", "tag": "x", "sessionId": UUID})
    assert _sniff({"type": "started", "key": "k", "agentId": "a1"})


@pytest.mark.parametrize(
    "records",
    [
        [],
        [{"type": "user", "message": {"content": "hi"}, "timestamp": "2026-01-01T00:00:00Z", "sessionId": UUID}],
        [
            {"type": "summary", "summary": "x", "leafUuid": "u6", "sessionId": "s"},
            {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s", "message": {"content": "hi"}},
        ],
        [{"type": "mode", "sessionId": UUID}, {"type": "user", "message": {"content": "hi"}}],
        [{"type": "session_meta", "timestamp": "2026-01-01T00:00:00Z", "payload": {"id": UUID}}],
        [{"v": 1, "kind": "session", "session": UUID}],
        [{"type": "result", "ok": True}, {"type": "system"}, {"type": ["user"]}, [1], "x", None],
        [{"loglines": "none"}],
    ],
)
def test_lookalikes_are_refused(records: list[Any]) -> None:
    """Simplified logs, other agents' logs and our own format are not taken for Claude Code's."""
    assert not _sniff(*records)


def test_other_agents_logs_are_refused() -> None:
    """No Codex rollout is taken for a transcript."""
    others = sorted((FIXTURES / "codex").rglob("*.jsonl"))
    assert not [path for path in others if CLAUDE_CODE.sniff(path, path.read_bytes()[: 1 << 16])]


def test_transcripts_are_found_where_they_are_kept(tmp_path: Path) -> None:
    """Transcripts are found under the home folder, or where the environment says; nothing else is."""
    for root in (tmp_path / "home" / ".claude", tmp_path / "other"):
        project = root / "projects" / "-home-me-x"
        (project / UUID / "subagents").mkdir(parents=True)
        (project / UUID / "tool-results").mkdir()
        for name in (f"{UUID}.jsonl", "notes.txt", f"{UUID}/subagents/agent-1.jsonl", f"{UUID}/tool-results/a.jsonl"):
            (project / name).write_text("{}")
    importer, home = CLAUDE_CODE, tmp_path / "home"
    names = [f"{UUID}.jsonl", f"{UUID}/subagents/agent-1.jsonl"]
    for environment, root in (({}, home / ".claude"), ({"CLAUDE_CONFIG_DIR": str(tmp_path / "other")}, tmp_path / "other")):
        found = list(importer.discover(home, environment))
        assert found == [root / "projects" / "-home-me-x" / name for name in names]
    assert list(importer.discover(tmp_path / "nowhere", {})) == []


def test_companions_are_the_sub_agents_logs() -> None:
    """A session's sub-agents are found beside its log and in its folder; a sub-agent's log has none."""
    importer = CLAUDE_CODE
    assert importer.companions(MAIN) == [CHILD]
    assert importer.companions(BESIDE) == sorted(OLD.glob("agent-*.jsonl"))
    assert importer.companions(FORK) == []
    assert importer.companions(CHILD) == []
    assert importer.companions(OLD / "missing.jsonl") == []


def test_files_are_grouped_by_session() -> None:
    """Main logs come first in their groups, forks behind their originals, however the files are listed."""
    paths = sorted((path for path in LOGS.rglob("*.jsonl") if "stream" not in path.name), reverse=True)
    groups = CLAUDE_CODE.groups(paths)
    assert sorted(path for group in groups for path in group) == sorted(paths)
    assert [MAIN, CHILD] in groups
    assert [BESIDE, *sorted(OLD.glob("agent-*.jsonl"))] in groups
    assert groups.index([MAIN, CHILD]) < groups.index([FORK])
    assert CLAUDE_CODE.groups([CHILD]) == [[CHILD]]
    assert CLAUDE_CODE.groups([OLD / "missing.jsonl"]) == [[OLD / "missing.jsonl"]]


def test_a_stream_does_not_repeat_its_transcript() -> None:
    """Read together with its transcript, a stream-json log is counted but gives no records; alone it does."""
    transcript = next((LOGS / "live_1.0.37" / "project").glob("*.jsonl"))
    stream = LOGS / "live_1.0.37" / "stream_json_stdout.jsonl"
    importer = CLAUDE_CODE
    assert importer.groups([stream, transcript]) == [[transcript, stream]]
    assert importer.groups([stream]) == [[stream]]
    counts: list[FileCount] = []
    assert list(importer.read([transcript, stream], counts)) == list(importer.read([transcript], []))
    assert sum(counts[1].tool_calls.values()) == 10
    assert counts[1].notes == [f"the same session as {transcript.name}; counted, not recorded again"]


def test_a_resumed_copy_comes_behind_its_original(tmp_path: Path) -> None:
    """Where a copy does not say what it was copied from, the log that ended earlier comes first."""
    original, copy = tmp_path / "b.jsonl", tmp_path / "a.jsonl"
    lines = [json.dumps(_record(sessionId=name), separators=(",", ":")) for name in ("one", "two")]
    original.write_text(lines[0])
    copy.write_text(lines[1] + "\n" + json.dumps(_record(uuid="v", timestamp="2026-11-21T11:00:00.000Z")).replace(" ", ""))
    assert CLAUDE_CODE.groups([copy, original]) == [[original], [copy]]


def test_workflow_agents_belong_to_their_session(tmp_path: Path) -> None:
    """The logs of a workflow's agents, and its journal, are read with the session that ran it."""
    project = tmp_path / "p"
    run = project / UUID / "subagents" / "workflows" / "wf_1"
    run.mkdir(parents=True)
    main, agent, journal = project / f"{UUID}.jsonl", run / "agent-77aa.jsonl", run / "journal.jsonl"
    main.write_text(json.dumps(_record()))
    tool: dict[str, Any] = {"type": "tool_use", "id": "t", "name": "Grep", "input": {}}
    agent.write_text(
        json.dumps(_record("user", isSidechain=True, agentId="77aa", uuid="a"))
        + "\n"
        + json.dumps(_record("assistant", isSidechain=True, agentId="77aa", uuid="b", message={"content": [tool]}))
    )
    agent.with_name("agent-77aa.meta.json").write_text('{"agentType": "reviewer"}')
    journal.write_text('{"type":"started","key":"k","agentId":"77aa"}\n{"type":"result","key":"k","agentId":"77aa"}\n')
    importer = CLAUDE_CODE
    assert importer.companions(main) == [agent, journal]
    assert importer.groups([journal, agent, main]) == [[main, agent, journal]]
    counts: list[FileCount] = []
    records = list(importer.read([main, agent, journal], counts))
    assert [record["agent"] for record in records if record["kind"] == "entry"] == ["reviewer-77aa"]
    assert [count.records for count in counts] == [1, 2, 2]
    assert {count.session for count in counts} == {UUID}


@pytest.mark.parametrize("meta", ["[]", "{", '{"agentType": 7, "toolUseId": []}', '{"agentType": ""}', "\0"])
def test_an_odd_note_beside_a_sub_agent_is_ignored(tmp_path: Path, meta: str) -> None:
    """A sub-agent whose meta file is missing or odd is still named by its id."""
    copy = tmp_path / CHILD.name
    shutil.copyfile(CHILD, copy)
    copy.with_name(f"{copy.stem}.meta.json").write_text(meta)
    counts: list[FileCount] = []
    list(CLAUDE_CODE.read([copy], counts))
    assert counts[0].agent == "agent-a4c82727"


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    """A pipe or a folder raises OSError instead of blocking."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "missing"):
        with pytest.raises(OSError, match=r"regular file|directory"):
            list(CLAUDE_CODE.read([path], []))


def test_an_empty_file_gives_nothing(tmp_path: Path) -> None:
    """A file without any byte gives no record, and counts of zero."""
    empty = tmp_path / f"{UUID}.jsonl"
    empty.touch()
    counts: list[FileCount] = []
    assert list(CLAUDE_CODE.read([empty], counts)) == []
    assert (counts[0].records, counts[0].session, counts[0].damaged) == (0, UUID, [])
    assert list(CLAUDE_CODE.read([], counts)) == []
