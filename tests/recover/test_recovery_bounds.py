"""What a recovery costs does not grow with the history: counted in queries, rows and checked models, not in seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.log.codec import Record
from ctxmgr.store import Store, open_store
from ctxmgr.store.engine.sqlite import SqliteEngine
from ctxmgr.types.base import Shape
from ctxmgr.types.finding import Finding
from ctxmgr.types.operations import DetectRequest
from ctxmgr.types.route import ContextRequest
from tests.builders import entry, event, result
from tests.recover.runs import again, looped, recover, workspace

Recover = Callable[[Store, ContextRequest, Finding | None], Any]


class Counter:
    """Statements run and rows read since it was made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.statements = 0
        self.rows = 0
        query, execute, stream = SqliteEngine.query, SqliteEngine.execute, SqliteEngine.stream

        def counted_query(engine: SqliteEngine, sql: str, values: Any = None) -> list[tuple[Any, ...]]:
            found = query(engine, sql, values)
            self.statements += 1
            self.rows += len(found)
            return found

        def counted_execute(engine: SqliteEngine, sql: str, values: Any = None) -> int:
            self.statements += 1
            return execute(engine, sql, values)

        def counted_stream(engine: SqliteEngine, sql: str, values: Any = None, at_once: int = 0) -> Iterator[tuple[Any, ...]]:
            if not at_once:
                raise AssertionError("a recovery read the whole log")
            self.statements += 1
            for row in stream(engine, sql, values, at_once):
                self.rows += 1
                yield row

        monkeypatch.setattr(SqliteEngine, "query", counted_query)
        monkeypatch.setattr(SqliteEngine, "execute", counted_execute)
        monkeypatch.setattr(SqliteEngine, "stream", counted_stream)


def work(session: str, start: int, count: int) -> list[Record]:
    """Return so many steps of work by seven agents, every tenth a failure that names a file, with words of people."""
    records: list[Record] = []
    for number in range(start, start + count):
        records.append(entry(session, number, "Bash", {"command": f"step {number}"}, agent=f"a{number % 7}"))
        error = {"message": f"src/m{number % 50}.py:3: broken"} if number % 10 == 0 else None
        records.append(result(session, number, f"out {number}", status="error" if error else "ok", error=error))
        if number % 100 == 0:
            records.append(event(session, number, "user_message", {"text": f"word {number}"}, agent="user", after=number))
    return records


def finding(members: list[str]) -> Finding:
    """Return a loop of these members."""
    known: dict[str, Any] = {
        "id": "f", "kind": "errorRepetition", "severity": "loop", "period": 1, "count": len(members), "first": members[0],
        "last": members[-1], "raised_at": members[2], "resolved": None, "members": members, "last_progress": None,
        "scope": {"agent": None, "process": None}, "confidence": 1, "reason": "r", "evidence": {"identity": "i"},
    }  # fmt: skip
    return Finding(**known)


def cost(
    store: Store, monkeypatch: pytest.MonkeyPatch, members: list[str], *, requester: str | None = None, session: str = "s"
) -> tuple[int, int]:
    """Return statements and rows of one recovery."""
    from ctxmgr.recover.recovery import Recovery

    asked = ContextRequest(
        session=session, type="INTROSPECT_AGENT_CONTEXT", source="agentRequest" if requester else "stuckHandler",
        requester=requester, reason="which rounding of step was chosen in src/m0.py", goal="go on with parsing",
    )  # fmt: skip
    with monkeypatch.context() as patch:
        counter = Counter(patch)
        key = store.sessions.key(session)
        assert key is not None, "the session is there"
        Recovery(store, key, asked, finding(members)).answer()
        return counter.statements, counter.rows


@pytest.mark.slow
@pytest.mark.requirement("SC-004")
@pytest.mark.parametrize("requester", [None, "a3"])
def test_cost_does_not_grow_with_the_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requester: str | None) -> None:
    """A recovery over 20,000 entries runs hardly more statements than over 1,000, and reads few rows."""
    costs: list[tuple[int, int]] = []
    for count in (1_000, 20_000):
        store = open_store(str(tmp_path / f"{count}.db"), create=True)
        store.append(work("s", 0, count))
        members = [f"s-e{number:04}" for number in range(count - 400, count, 10)]
        costs.append(cost(store, monkeypatch, members, requester=requester))
        store.close()
    (few, _), (many, rows) = costs

    assert many <= few + 100
    assert many < 1_000
    assert rows < 60_000


@pytest.mark.slow
@pytest.mark.requirement("SC-004")
def test_cost_does_not_grow_with_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a loop of thousands of entries a sample is read."""
    costs: list[int] = []
    for length in (1_000, 4_000):
        store = open_store(str(tmp_path / f"{length}.db"), create=True)
        store.append(work("s", 0, 4_000))
        members = [f"s-e{number:04}" for number in range(4_000 - length, 4_000)]
        costs.append(cost(store, monkeypatch, members, requester=None)[0])
        store.close()

    assert costs[1] <= costs[0] + 50


@pytest.mark.requirement("SC-004")
def test_cost_does_not_grow_with_what_an_error_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that names a thousand files is looked up for a few of them."""
    found: list[int] = []
    for files in (1, 1_000):
        store = open_store(str(tmp_path / f"{files}.db"), create=True)
        store.append(looped("s"))
        names = "\n".join(f"src/f{number}.py:1: broken" for number in range(files))
        for number in range(17, 22):
            store.append([entry("s", number, "Bash", {"command": "make"})])
            store.append([result("s", number, status="error", error={"message": names})])
        found.append(cost(store, monkeypatch, [f"s-e{number:04}" for number in range(17, 22)], requester=None)[0])
        store.close()

    assert found[1] <= found[0] + 250


def test_only_what_comes_in_and_goes_out_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model is made of a question that a recovery asks the history, nor of the answer, a page, a hit, a row or a note."""
    store = open_store(":memory:", create=True)
    store.append([*looped("earlier"), *looped("cycle", rounds=12)])
    checked: list[str] = []
    check = Shape.__init__

    def counted(shape: Shape, **given: Any) -> None:
        checked.append(type(shape).__name__)
        check(shape, **given)

    monkeypatch.setattr(Shape, "__init__", counted)
    given = [recover(store, session="cycle"), again(store, session="cycle")]  # the second one reads the notes of the first
    workspace(store).detect(DetectRequest(session="cycle"))
    store.close()

    assert all(each.context.facts and each.notes for each in given)
    parts = {"Quote", "Fact", "Section", "Alternative", "DoNotRepeat", "Pattern", "Context", "Diagnosis", "Scope", "Finding"}
    assert {name: checked.count(name) for name in checked if name not in parts} == {
        "RecoverRequest": 2, "RecoverResponse": 2, "DetectRequest": 1, "DetectResponse": 1, "SessionVerdict": 3,
        "ContextRequest": 2, "Continuation": 4,  # each continuation is made, and read back as it is recorded
    }  # fmt: skip
