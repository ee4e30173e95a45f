"""The sink of a recorder whose target is a store: what it writes is masked, whatever the target is called."""

from __future__ import annotations

from pathlib import Path

from ctxmgr.recorder import Recorder
from ctxmgr.store.recorder_sink import StoreSink, open_sink
from tests.builders import entry

SECRET = "ghp_" + "a1B2" * 9


def test_a_log_of_another_suffix_takes_entries_too(tmp_path: Path) -> None:
    """Through the sink of a database a log, which spells its records itself, gets them as well."""
    sink = StoreSink(str(tmp_path / "a.ndjson"), "process", True)
    with Recorder(sink, session="s") as recorder:
        recorder.result(recorder.entry("coder", "edit", SECRET), output=SECRET)
    sink.close()

    text = b"".join(path.read_bytes() for path in tmp_path.glob("a.ndjson"))
    assert b"[masked:github]" in text
    assert SECRET.encode() not in text


def test_the_sink_of_the_recorder_masks_too(store_path: Path, tmp_path: Path) -> None:
    """What the recorder writes through its sink is masked as well."""
    sink = open_sink(str(store_path))
    sink.append([entry("s", 0, given=f"login {SECRET}")])
    sink.close()

    assert SECRET.encode() not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
