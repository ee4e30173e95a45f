"""An action is written when it begins and when it ends, however it ends."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.recorder import Recorder
from tests.journals import sound_records


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a log is to be written."""
    return tmp_path / "run.jsonl"


def test_the_entry_is_written_before_the_action_runs(path: Path) -> None:
    """Inside the action its entry is in the log and has no result: a killed action stays open."""
    with Recorder(path) as recorder, recorder.action("a", "b") as step:
        assert [record["id"] for record in sound_records(path, "entry")] == [step.id]
        assert sound_records(path, "result") == []
        step.output = 1

    assert [record["output"] for record in sound_records(path, "result")] == [1]


def _outcome(path: Path) -> dict[str, Any]:
    (result,) = sound_records(path, "result")
    return {key: result[key] for key in ("status", "error", "output", "usage") if key in result}


def test_results_say_how_it_ended(path: Path, tmp_path: Path) -> None:
    """Success, failure and denial are set by the action; usage travels along; the duration is not negative."""
    with Recorder(path) as recorder, recorder.action("a", "b") as step:
        step.output, step.usage = [1], {"inputTokens": 2}
    assert _outcome(path) == {"status": "ok", "output": [1], "usage": {"inputTokens": 2}}
    assert sound_records(path, "result")[0]["durationMs"] >= 0

    with Recorder(tmp_path / "2.jsonl") as recorder, recorder.action("a", "b") as step:
        step.fail("no such file", "NotFound")
    assert _outcome(tmp_path / "2.jsonl") == {"status": "error", "error": {"type": "NotFound", "message": "no such file"}}

    with Recorder(tmp_path / "3.jsonl") as recorder, recorder.action("a", "b") as step:
        step.deny("not allowed")
    assert _outcome(tmp_path / "3.jsonl") == {"status": "denied", "error": {"type": "Denied", "message": "not allowed"}}


@pytest.mark.parametrize(
    ("error", "status", "outcome"),
    [
        (ValueError("bad"), "error", "failed"),
        (KeyboardInterrupt(), "interrupted", "cancelled"),
        (SystemExit(1), "interrupted", "cancelled"),
        (asyncio.CancelledError("stop"), "interrupted", "cancelled"),
    ],
)
def test_an_exception_is_recorded_and_goes_on(path: Path, error: BaseException, status: str, outcome: str) -> None:
    """Errors and interruptions are told apart, and the exception reaches the caller unchanged."""
    with pytest.raises(type(error)) as caught, Recorder(path) as recorder, recorder.action("a", "b"):
        raise error

    assert caught.value is error
    (result,) = sound_records(path, "result")
    assert (result["status"], result["error"]["type"]) == (status, type(error).__name__)
    assert [record["outcome"] for record in sound_records(path, "sessionEnd")] == [outcome]


def test_actions_within_actions_know_their_parent(path: Path, tmp_path: Path) -> None:
    """Nested actions and events get the surrounding entry; siblings, other threads and other sessions do not."""
    other = tmp_path / "other.jsonl"
    with Recorder(path) as recorder, Recorder(other) as elsewhere:
        with recorder.action("a", "outer") as outer:
            with recorder.action("a", "inner") as inner:
                recorder.event("thought", "hm")
            second = recorder.entry("a", "sibling")
            elsewhere.entry("a", "foreign")
            thread = threading.Thread(target=recorder.entry, args=("a", "thread"))
            thread.start()
            thread.join()
        after = recorder.entry("a", "after")

    parents = {record["id"]: record.get("parent") for record in sound_records(path, "entry")}
    assert (parents[outer.id], parents[inner.id], parents[second], parents[after]) == (None, outer.id, outer.id, None)
    assert [record.get("parent") for record in sound_records(path, "entry") if record["action"] == "thread"] == [None]
    assert "parent" not in sound_records(other, "entry")[0]
    assert sound_records(path, "event")[0]["entry"] == inner.id


def test_concurrent_tasks_keep_their_own_parents(path: Path) -> None:
    """In `async with`, tasks that run at the same time do not become each other's children."""

    async def work(recorder: Recorder, name: str) -> tuple[str, str]:
        async with recorder.action("a", name) as outer:
            await asyncio.sleep(0)
            async with recorder.action("a", name) as inner:
                await asyncio.sleep(0)
        return outer.id, inner.id

    async def both(recorder: Recorder) -> list[tuple[str, str]]:
        return await asyncio.gather(*(work(recorder, name) for name in ("x", "y", "z")))

    with Recorder(path) as recorder:
        pairs = asyncio.run(both(recorder))

    parents = {record["id"]: record.get("parent") for record in sound_records(path, "entry")}
    assert parents == {entry: parent for outer, inner in pairs for entry, parent in ((outer, None), (inner, outer))}


def test_a_cancelled_task_is_interrupted(path: Path) -> None:
    """Cancelling a task in the middle of an action leaves one whole result that says so."""

    async def main(recorder: Recorder) -> None:
        started = asyncio.Event()

        async def work() -> None:
            async with recorder.action("a", "wait"):
                started.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with Recorder(path) as recorder:
        asyncio.run(main(recorder))

    assert [record["status"] for record in sound_records(path, "result")] == ["interrupted"]
