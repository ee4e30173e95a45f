"""Signs of life of a recorder on a server: one thread gives them, and none that fails is told as a failure of records."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from ctxmgr.errors import StorageFailed
from ctxmgr.store import server_store
from ctxmgr.store.server_store import LivenessThread


class _Unreachable:
    """An engine whose server is away until it is said to be there."""

    def __init__(self) -> None:
        self.away = True
        self.told: list[list[dict[str, Any]]] = []
        self.heard = threading.Event()

    def clock(self) -> float:
        if self.away:
            raise StorageFailed("the server is away")
        return 0.0

    def many(self, sql: str, rows: list[dict[str, Any]]) -> None:
        del sql
        self.told.append(rows)
        self.heard.set()

    def execute(self, sql: str, values: dict[str, Any]) -> None:
        del sql, values


def _liveness(monkeypatch: pytest.MonkeyPatch, lock: threading.Lock) -> tuple[_Unreachable, LivenessThread]:
    monkeypatch.setattr(server_store, "_BEAT_SECONDS", 0.01)
    engine = _Unreachable()
    return engine, LivenessThread(cast("Any", engine), lock)


def test_a_first_sign_of_life_that_fails_is_given_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that are committed are not told as a failure, and the thread goes on trying."""
    lock = threading.Lock()
    engine, heart = _liveness(monkeypatch, lock)
    with lock:
        heart.hear([{"v": 1, "kind": "session", "session": "s", "process": "p"}])
    engine.away = False
    assert engine.heard.wait(20)
    with lock:
        heart.stop()
    assert [row["session"] for row in engine.told[0]] == ["s"]


def test_sessions_one_after_the_other_share_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink gives all its signs of life from one thread, however often it has no session in between."""
    lock = threading.Lock()
    engine, heart = _liveness(monkeypatch, lock)
    engine.away = False
    before = threading.active_count()
    for number in range(5):
        with lock:
            heart.hear([{"v": 1, "kind": "session", "session": f"s{number}", "process": "p"}])
            heart.hear([{"v": 1, "kind": "sessionEnd", "session": f"s{number}", "process": "p"}])
    assert threading.active_count() <= before + 1
    with lock:
        heart.stop()
