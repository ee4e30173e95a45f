"""Logs of our own format are imported whole, and known by their records."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.console import run
from tests.history.logs import LOGS, bring_in, content, entries, fresh


def test_our_own_logs_are_a_format(tmp_path: Path) -> None:
    """An exported log is imported whole with all its sessions, and its calls, failures and open ones are counted."""
    first, second = fresh(tmp_path), fresh(tmp_path, "second.db")
    bring_in(first, LOGS)
    log = tmp_path / "log.jsonl"
    run("export", "--all-sessions", "--store", first.location, "-o", str(log))
    report = bring_in(second, log)

    assert content(second) == content(first)
    assert (report.added, report.entries, report.open_calls, report.files[0].format) == (len(content(first)), 73, 1, "ctxmgr")
    assert report.files[0].failed_calls == sum(status not in ("ok", "open") for _, _, status in entries(first))


@pytest.mark.parametrize(
    "line",
    [
        b'{"v":1,"kind":"event","session":"s","id":"a","type":"message"}',
        b'{"kind": "event", "session": "s", "id": "a", "type": "message", "v": 1}',
        b'\0\0\0\n\n{"v":1,"kind":"event","session":"s","id":"a","type":"message"}',
        b'{"v":1,"kind":"ent\n{"v":1,"kind":"event","session":"s","id":"a","type":"message"}',
        b'\xff\xfe rubbish\n{"v":1,"kind":"event","session":"s","id":"a","type":"message"}',
    ],
)
def test_our_own_logs_are_known_by_their_records(line: bytes, tmp_path: Path) -> None:
    """A log of our format is recognised whoever wrote it, and behind a damaged beginning."""
    log = tmp_path / "log.jsonl"
    log.write_bytes(line + b"\n")

    assert bring_in(fresh(tmp_path), log).added == 1
