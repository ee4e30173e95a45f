"""Lists of messages as a log."""

from __future__ import annotations

import json
from pathlib import Path

from ctxmgr.importers.message_list import MESSAGE_LIST
from ctxmgr.types.import_report import FileCount


def test_a_call_in_a_member_that_no_message_has_is_counted(tmp_path: Path) -> None:
    """Lines with a role and content are messages; what a member ``tool`` beside them holds is not lost without a word."""
    path = tmp_path / "a.jsonl"
    lines = (
        '{"role":"user","content":"go"}',
        '{"role":"assistant","content":"I look.","tool":{"name":"Bash","input":{"command":"ls"}}}',
        '{"role":"tool","tool":"Bash","content":"a.py"}',
    )
    path.write_text("\n".join(lines), encoding="utf-8")
    counts: list[FileCount] = []
    list(MESSAGE_LIST.read([path], counts))

    assert counts[0].unknown == {"assistant message with a member tool": 1}


def test_a_program_that_plays_the_person_says_what_the_person_wants(tmp_path: Path) -> None:
    """Its words are marked as a program's, which resets no evidence of a loop, and as the user's; its signs are nobody's."""
    said = ["I lost my bag.", "Thanks. ###STOP###", "###STOP###"]
    traj = [{"role": "user", "content": each} for each in said]
    path = tmp_path / "runs.json"
    path.write_text(json.dumps([{"task_id": 1, "reward": 1.0, "traj": traj}]), encoding="utf-8")
    heard = [each["data"] for each in MESSAGE_LIST.read([path], []) if each.get("type") == "user_message"]

    assert [each["text"] for each in heard] == said
    assert [each.get("synthetic") for each in heard] == [True, True, True]
    assert [each.get("simulated") for each in heard] == [True, True, None]
