"""Logs that grow between two imports: however they are cut, the history is the one of a single import."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxmgr.store import Store, open_store
from tests.history.logs import ORIGINAL, ROLLOUT, bring_in, content, entries

LOGS = {"claude-code": ORIGINAL, "codex": ROLLOUT}


def _told(store: Store) -> dict[str, Any]:
    """Return what must be equal: entries with statuses, everything said, and the sessions' own figures."""
    events = [(record["type"], record["id"], record.get("data")) for record in content(store) if record["kind"] == "event"]
    sessions = [
        (view.session, view.entries, view.open, view.failed, view.events, view.usage)
        for _, view in store.sessions.page(0, None)
    ]
    return {"entries": entries(store), "events": sorted(events, key=str), "sessions": sessions}


def _grown(folder: Path, log: Path, cuts: list[int], *, companions: bool = False) -> Store:
    lines = log.read_bytes().splitlines(keepends=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    copy = folder / log.name
    if companions:
        shutil.copytree(log.parent / log.stem, folder / log.stem)
    store = open_store(str(folder / "store.db"), create=True)
    for cut in [*sorted({min(cut, len(lines)) for cut in cuts} - {0}), len(lines)]:
        copy.write_bytes(b"".join(lines[:cut]))
        bring_in(store, folder)
    return store


@pytest.mark.slow
@pytest.mark.parametrize("form", sorted(LOGS))
@given(cuts=st.lists(st.integers(1, 120), min_size=1, max_size=4))
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_grown_log_equals_a_whole_one(form: str, cuts: list[int], tmp_path: Path) -> None:
    """A log that is imported again and again while it grows gives the entries, statuses and counts of one import."""
    grown, whole = _grown(tmp_path / "grown", LOGS[form], cuts), _grown(tmp_path / "whole", LOGS[form], [])

    assert _told(grown) == _told(whole)
    grown.close()
    whole.close()


def test_sub_agents_of_a_growing_log_are_read_once(tmp_path: Path) -> None:
    """A session whose sub-agent's log is there before its own is whole has in the end the same entries, each once."""
    grown = _grown(tmp_path / "grown", ORIGINAL, [1, 30, 50], companions=True)
    whole = _grown(tmp_path / "whole", ORIGINAL, [], companions=True)

    assert sorted(entries(grown)) == sorted(entries(whole))
    assert len(entries(whole)) == 10


def test_an_open_call_is_closed_by_what_comes_later(tmp_path: Path) -> None:
    """A call whose result is not written yet is open, and gets its result with the next import."""
    lines = ROLLOUT.read_bytes().splitlines(keepends=True)
    statuses = [
        [status for _, _, status in entries(_grown(tmp_path / "one", ROLLOUT, [cut])) if status == "open"]
        for cut in (len(lines) // 2, len(lines))
    ]
    store = open_store(str(tmp_path / "store.db"), create=True)
    copy = tmp_path / ROLLOUT.name
    seen: list[int] = []
    for cut in range(1, len(lines) + 1):
        copy.write_bytes(b"".join(lines[:cut]))
        report = bring_in(store, copy)
        seen.append(sum(status == "open" for _, _, status in entries(store)))
        assert report.open_calls == seen[-1]

    assert max(seen) >= 1
    assert seen[-1] == 0
    assert statuses[1] == []
