"""What is read of a long log: its beginning, what people said, its end, and a result that is not there yet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxmgr.clients import AFTER, Call, Event
from ctxmgr.clients.codex import CLIENT as CODEX
from ctxmgr.live.detector_answer import add_late_results, excerpt
from ctxmgr.types.operations import DetectRequest
from ctxmgr.types.query import ListRequest
from ctxmgr.workspace import Workspace
from tests.live.scene import write_log

FAILED = "Exit code 1\nRan 1 test in 0.00{n}s\nImportError: No module named 'calc'\n<shell {n} ended>"


def _cut(log: Path, place: Path, unwritten: list[tuple[str, str]] | None = None) -> list[str]:
    place.mkdir()
    return Path(excerpt(str(log), str(place), unwritten or [])).read_text("utf-8").splitlines()


def test_a_short_log_is_read_whole_but_for_a_torn_end(tmp_path: Path) -> None:
    """Every whole line is there, in order, under the log's own name."""
    log = tmp_path / "s.jsonl"
    log.write_text('{"a": 1}\n{"b": 2}\n{"c": ')

    assert _cut(log, tmp_path / "to") == ['{"a": 1}', '{"b": 2}']
    assert (tmp_path / "to" / "s.jsonl").is_file()


@pytest.mark.slow
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


def _verdict(log: Path, command: str, result: str, call_id: str = "") -> tuple[str, list[str]]:
    """Return the verdict and the states of the calls after a late result was added."""
    event = Event(AFTER, "after", "s", [Call("Bash", {"command": command}, call_id, result)])
    with Workspace.open(str(log), create=True, scratch=True) as workspace:
        add_late_results(workspace, event)
        states = [entry.status for entry in workspace.list(ListRequest()).entries]
        return workspace.detect(DetectRequest()).verdicts[0].verdict, states


@pytest.mark.requirement("LV-told")
@pytest.mark.parametrize("begun", [True, False])
def test_a_third_failure_that_the_log_does_not_hold_yet_is_counted(begun: bool, tmp_path: Path) -> None:
    """Whether the log has begun the call or not, its failure is the third with the same cause."""
    log = tmp_path / "s.jsonl"
    write_log(log, [("make", FAILED.format(n=n)) for n in range(2 + begun)])
    if begun:
        log.write_text("".join(log.read_text("utf-8").splitlines(keepends=True)[:-1]), "utf-8")

    assert _verdict(log, "make", FAILED.format(n=7)) == ("loop", ["error"] * 3)


def test_what_says_something_else_is_recorded_as_it_is(tmp_path: Path) -> None:
    """A call that ends otherwise this time is no round of the loop."""
    log = tmp_path / "s.jsonl"
    write_log(log, [("make", FAILED.format(n=n)) for n in range(2)])

    assert _verdict(log, "make", "all is built") == ("healthy", ["error", "error", "ok"])


def test_nothing_is_added_that_the_log_holds(tmp_path: Path) -> None:
    """A call with an id whose result is there, and one that the log never saw, change nothing."""
    log = tmp_path / "s.jsonl"
    write_log(log, [("make", FAILED.format(n=n)) for n in range(2)])

    assert _verdict(log, "make", FAILED.format(n=1), "toolu_1")[1] == ["error", "error"]
    assert _verdict(log, "other", "done")[1] == ["error", "error"]
