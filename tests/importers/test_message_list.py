"""Lists of messages as a log."""

from __future__ import annotations

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
