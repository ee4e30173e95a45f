"""What passes a tap is recorded and watched: waits for a permission, and a store that refuses some of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from ctxmgr.config import Config
from ctxmgr.errors import Busy, CtxmgrError, InvalidInput
from ctxmgr.live.tap import FROM_CLIENT
from ctxmgr.live.tap_recorder import TapRecorder
from ctxmgr.log.codec import Record
from ctxmgr.store import Store, open_store
from tests.live.scene import messages


def _recorder(folder: Path, clock: Callable[[], float], told: list[str]) -> TapRecorder:
    return TapRecorder(open_store(str(folder / "h.db"), create=True), Config(), None, told.append, clock)


def test_a_wait_for_a_permission_is_no_hang(tmp_path: Path) -> None:
    """An hour before a person allows it is no stall; an hour after that is one."""
    moment, told = [time.time()], list[str]()
    recorder = _recorder(tmp_path, lambda: moment[0], told)
    call = {"toolCallId": "c", "kind": "execute", "rawInput": {"command": "x"}}
    asks = {"id": 9, "method": "session/request_permission", "params": {"sessionId": "s", "toolCall": call}}
    said: list[tuple[bytes, dict[str, Any]]] = [
        (b"c", {"id": 1, "method": "session/prompt", "params": {"sessionId": "s", "prompt": []}}),
        (b"a", asks),
    ]
    for sender, message in said:
        recorder.take(sender, moment[0], json.dumps(message).encode() + b"\n")
    moment[0] += 3600
    recorder.look()
    assert told == []

    answer = json.dumps({"id": 9, "result": {"outcome": {"outcome": "selected"}}}).encode()
    recorder.take(FROM_CLIENT, moment[0], answer + b"\n")
    moment[0] += 3600
    recorder.look()
    assert [line for line in told if "hung" in line]


class _RefusingStore:
    """A store that refuses a batch and its first record for good, and the second once."""

    def __init__(self) -> None:
        self.kept: list[Record] = []
        self._answers: list[CtxmgrError] = [InvalidInput("odd"), InvalidInput("odd"), Busy("held")]

    def append(self, records: list[Record], *, on_conflict: str) -> None:
        """Refuse as long as there is an error for it, else keep."""
        assert on_conflict == "keep"
        if self._answers:
            raise self._answers.pop(0)
        self.kept += records


def test_a_store_that_is_locked_amid_a_bad_batch_gets_the_rest_later() -> None:
    """Only the record that can't be stored is lost; the others wait for the lock to end."""
    store = _RefusingStore()
    recorder = TapRecorder(cast("Store", store), Config(), None, list[str]().append)
    recorder.take(FROM_CLIENT, time.time(), b"".join(messages("one", "two", "three")))
    recorder.look()
    assert (store.kept, recorder.lost) == ([], 1)
    recorder.look()
    assert len(store.kept) >= 3
    assert recorder.lost == 1
