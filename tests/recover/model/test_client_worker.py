"""The thread that holds a conversation: one job at a time, in order, and it can be left."""

from __future__ import annotations

import threading

import pytest

from ctxmgr.recover.model.client import Worker


def test_a_worker_takes_one_job_at_a_time_and_can_be_left() -> None:
    """Jobs run in their order in one thread; an ended worker takes none, and rests when all are done."""
    worker = Worker("test")
    seen: list[tuple[int, str]] = []

    def job(number: int) -> int:
        seen.append((number, threading.current_thread().name))
        if number == 2:
            raise ValueError(number)
        return number

    jobs = [worker.submit(job, number) for number in range(4)]
    worker.shutdown()

    assert worker.rests(30)
    assert seen == [(number, "test") for number in range(4)]
    assert [done.result() for done in jobs if done is not jobs[2]] == [0, 1, 3]
    with pytest.raises(ValueError, match="2"):
        jobs[2].result()
    with pytest.raises(RuntimeError, match="ended"):
        worker.submit(job, 5)
