"""Another agent's log where it lies: read, judged, and followed when it changes, with nothing written beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxmgr.history.detection import judge_now
from ctxmgr.history.open_history import open_history
from tests.history.test_formats import FORMATS, KEPT


@pytest.mark.parametrize("sample", [name for name in KEPT if (FORMATS / name).is_file()])
def test_a_log_is_judged_where_it_lies(sample: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``detect FILE`` reads a log of any format in place and finds the loop in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    truth = json.loads((FORMATS / sample.split("/")[0] / "TRUTH.json").read_text())[sample.split("/", 1)[1]]
    store, _ = open_history(str(FORMATS / sample), explicit=True, readonly=True)
    key = store.sessions.latest()
    assert key is not None
    assert judge_now(store, key, {}, None).verdict == truth["verdict"]
    store.close()
