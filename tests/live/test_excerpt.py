"""What is read of a long log: its beginning, what people said, and its end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxmgr.clients.codex import CLIENT as CODEX
from ctxmgr.clients.interface import AFTER, Call, Event
from ctxmgr.live.excerpt import excerpt


def _cut(log: Path, place: Path, unwritten: list[tuple[str, str]] | None = None) -> list[str]:
    place.mkdir()
    return Path(excerpt(str(log), str(place), unwritten or [])).read_text("utf-8").splitlines()


def test_a_short_log_is_read_whole_but_for_a_torn_end(tmp_path: Path) -> None:
    """Every whole line is there, in order, under the log's own name."""
    log = tmp_path / "s.jsonl"
    log.write_text('{"a": 1}\n{"b": 2}\n{"c": ')

    assert _cut(log, tmp_path / "to") == ['{"a": 1}', '{"b": 2}']
    assert (tmp_path / "to" / "s.jsonl").is_file()


@pytest.mark.parametrize("lines", [20_000, 700_000])
def test_of_a_long_log_the_ends_and_the_words_of_people_are_read(lines: int, tmp_path: Path) -> None:
    """However long it is, less than a megabyte of whole lines is left; of a very long one the words in the middle too are."""
    log = tmp_path / "s.jsonl"
    spoken = json.dumps({"type": "user", "message": {"role": "user", "content": "Never touch the lock file."}})
    with log.open("w") as stream:
        stream.write('{"first": true}\n')
        for number in range(lines):
            stream.write(spoken + "\n" if number == lines // 2 else json.dumps({"number": number, "text": "x" * 80}) + "\n")
        stream.write('{"last": true}\n')

    kept = _cut(log, tmp_path / "to")
    assert sum(map(len, kept)) < 1_000_000
    assert all(isinstance(json.loads(line), dict) for line in kept)
    assert (kept[0], kept[-1]) == ('{"first": true}', '{"last": true}')
    assert kept.count(spoken) == (log.stat().st_size < 64_000_000)
    numbers = [json.loads(line)["number"] for line in kept if '"number"' in line]
    assert numbers == sorted(set(numbers))


def test_a_result_that_is_not_written_yet_is_added_once(tmp_path: Path) -> None:
    """Codex writes the output of a call after its hooks; it is added where the call is there and its output is not."""
    log = tmp_path / "rollout.jsonl"
    call = json.dumps({"type": "response_item", "payload": {"type": "function_call", "call_id": "call_1"}})
    unwritten = CODEX.unwritten(Event(AFTER, "PostToolUse", "s", [Call("Bash", {}, "call_1", "done")]))
    log.write_text(call + "\n")
    added = _cut(log, tmp_path / "one", unwritten)
    assert json.loads(added[-1])["payload"] == {"type": "function_call_output", "call_id": "call_1", "output": "done"}

    log.write_text("\n".join(added) + "\n")
    assert _cut(log, tmp_path / "two", unwritten) == added
    log.write_text('{"type": "other"}\n')
    assert _cut(log, tmp_path / "three", unwritten) == ['{"type": "other"}']


@pytest.mark.parametrize("name", ["", "gone.jsonl", "folder"])
def test_what_is_no_file_is_refused(name: str, tmp_path: Path) -> None:
    """A folder, nothing, and what is not there are errors that the hook is silent about."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=r"."):
        excerpt(str(tmp_path / name) if name else "", str(tmp_path), [])
