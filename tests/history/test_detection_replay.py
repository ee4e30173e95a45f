"""A session is replayed alike by one process and with a second one that reads ahead, whatever becomes of that."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from ctxmgr.detect.replay import session_observations
from ctxmgr.errors import StorageFailed
from ctxmgr.history import detection
from ctxmgr.log.codec import Record
from ctxmgr.store import Store, open_store, worker_process
from ctxmgr.store.engine.disposable_files import BESIDE
from ctxmgr.store.worker_process import ProcessLost
from ctxmgr.types.finding import Observation
from tests.builders import entry, event, result

SESSION = "s"


@pytest.fixture(autouse=True)
def _two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every session be a long one, in small stretches, and a second process be of use whatever machine this is."""
    monkeypatch.delenv("CTXMGR_PROCESSES", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", {0: {0, 1}}.get, raising=False)
    monkeypatch.setattr(detection, "_MIN_FOR_SECOND_PROCESS", 0)
    monkeypatch.setattr(worker_process, "_ROWS", 7)


def records() -> list[Record]:
    """Return a session of every kind of record, with values that plain data must bring over as they are."""
    odd: list[Any] = [None, "", "\ud800 \u0000 é", 2**70, -1.5e300, True, [], {"a": [{"b": [None]}]}, "x" * 70_000]
    made: list[Record] = []
    for number, value in enumerate(odd * 3):
        made.append(entry(SESSION, number, "Read", {"value": value}, step=number // 2, turn="t", process="p"))
        if number % 4:
            made.append(result(SESSION, number, value, status="error" if number % 3 else "ok"))
        made.append(event(SESSION, number, "usage" if number % 5 == 0 else "message", {"text": str(number)}, after=number))
    made.append(entry(SESSION, 99, "Bash", "ls", status="ok", output="a.txt", durationMs=3))
    made.append({"v": 1, "kind": "continuation", "session": SESSION, "id": "c", "loop": {"identity": "i"}})
    made.append({"v": 1, "kind": "sessionEnd", "session": SESSION, "outcome": "completed"})
    return made


@pytest.fixture(params=["database", "log"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Open the session in a database, and in a log that is read in place."""
    path = str(tmp_path / ("history.db" if request.param == "database" else "log.jsonl"))
    if request.param == "log":
        Path(path).touch()
    opened = open_store(path, create=True)
    opened.append(records())
    yield opened
    opened.close()


def key_of(store: Store) -> int:
    """Return the key of the session."""
    key = store.sessions.key(SESSION)
    assert key is not None
    return key


def expected(store: Store) -> list[Observation]:
    """Return what happened, read record by record in this process."""
    return list(session_observations(store.sessions.records(key_of(store), detection.KINDS), distinct=True))


class Ending:
    """A second process that is lost behind so many stretches."""

    def __init__(self, stretches: int, happenings: Iterator[Any]) -> None:
        self._left = stretches
        self._happenings = happenings

    def __next__(self) -> Any:
        if not self._left:
            raise ProcessLost("it is gone")
        self._left -= 1
        return next(self._happenings)

    def __enter__(self) -> Ending:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass


def lose(monkeypatch: pytest.MonkeyPatch, stretches: int) -> None:
    """Let the second process be lost behind so many stretches."""

    def begin(function: str, place: tuple[str, ...], key: int) -> Ending:
        assert function == "ctxmgr.history.detection:read_ahead"
        return Ending(stretches, detection.read_ahead(place, key))

    monkeypatch.setattr(detection, "run_in_second_process", begin)


@pytest.mark.cases(1)
def test_a_second_process_tells_what_one_would(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every observation is the same in every field, and nothing is read here."""
    wanted = expected(store)

    def refuse(*_: object) -> Iterator[None]:
        raise AssertionError("read here")

    monkeypatch.setattr(detection, "_read_here", refuse)
    assert list(detection.replay(store, key_of(store))) == wanted
    assert len(wanted) > 50


def test_a_short_session_is_replayed_by_one_process(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting another one would take longer."""
    monkeypatch.setattr(detection, "_MIN_FOR_SECOND_PROCESS", 1_000)
    monkeypatch.setattr(detection, "run_in_second_process", None)
    assert list(detection.replay(store, key_of(store))) == expected(store)


@pytest.mark.parametrize("stretches", [0, 1, 3])
def test_what_is_lost_is_read_here(store: Store, monkeypatch: pytest.MonkeyPatch, stretches: int) -> None:
    """Whenever the second process ends before its work does, nothing is missing and nothing comes twice."""
    lose(monkeypatch, stretches)
    assert list(detection.replay(store, key_of(store))) == expected(store)


def test_places_of_another_index_are_no_place_to_go_on_from(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that was made anew between has other places: what is missing can't be told."""
    lose(monkeypatch, 1)
    monkeypatch.setattr(detection, "creation_mark", {store.engine: "later"}.get)
    with pytest.raises(StorageFailed, match="was replaced"):
        list(detection.replay(store, key_of(store)))


def test_the_second_process_reads_no_other_index(store: Store) -> None:
    """One that was made anew since is refused there."""
    place = worker_process.find_place(store.engine, store.location)
    assert place is not None
    with pytest.raises(StorageFailed, match="made anew"):
        list(detection.read_ahead(place._replace(born="earlier"), key_of(store)))


def test_the_second_process_reads_no_other_log(tmp_path: Path) -> None:
    """A log that is another file by then is refused there, before anything of it is told."""
    path = tmp_path / "log.jsonl"
    path.touch()
    with closing(open_store(str(path))) as opened:
        opened.append(records())
        place, key = worker_process.find_place(opened.engine, opened.location), key_of(opened)
        assert place is not None
        path.write_bytes(path.read_bytes().replace(b"completed", b"cancelled"))
        with pytest.raises(StorageFailed, match="was replaced"):
            next(detection.read_ahead(place, key))


def test_a_store_in_memory_is_read_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else can see it."""
    monkeypatch.setattr("ctxmgr.store.engine.disposable_files._folders", list[str])
    path = str(tmp_path / "log.jsonl")
    Path(path).touch()
    (tmp_path / BESIDE).touch()
    with closing(open_store(path)) as opened:
        opened.append(records())
        assert worker_process.find_place(opened.engine, opened.location) is None
        assert list(detection.replay(opened, key_of(opened))) == expected(opened)
