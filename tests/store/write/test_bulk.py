"""A log that is indexed in blocks has the rows that it has when it is read line by line, whatever stands in it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxmgr.store import log_store, worker_process
from ctxmgr.store.write import log_parser
from tests.store.bulk_logs import Rows, hostile, ordinary, sealed

_ODD = (b"\r\n", b"\0" * 900, b'{"v":1,"kind":"en', b'{"v":1,"kind":"odd","session":"s"}\n', b"\n", b" ")


@pytest.mark.cases(1)
@pytest.mark.parametrize("together", [100, 700, 5_000, 1 << 20])
def test_an_ordinary_log_has_the_same_rows(both: Callable[..., tuple[Rows, Rows]], together: int) -> None:
    """Entries, results and events of several sessions, in blocks of any size."""
    bodies = [ordinary(number, (b"s", b"s", b"t")[number // 7 % 3]) for number in range(900)]

    fast, slow = both(sealed(bodies)[0], together=together)

    assert fast == slow
    assert len(fast["line"]) == 900
    assert len(fast["milestone"]) > 10


@pytest.mark.slow
def test_a_second_process_reads_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, both: Callable[..., tuple[Rows, Rows]]
) -> None:
    """What a second process reads ahead is written down as what is read here, in slices of any size."""
    monkeypatch.setattr(log_parser, "_SECOND_PROCESS_FROM", 0)
    monkeypatch.setattr(log_store, "_SLICE", 2)
    bodies = [body for number in range(9_000) for body in [ordinary(number), *hostile()[number : number + 1]]]

    fast, slow = both(sealed(bodies)[0])

    assert fast == slow


@pytest.mark.parametrize("whole", [0, 1, 3])
def test_a_lost_process_costs_nothing(
    monkeypatch: pytest.MonkeyPatch, both: Callable[..., tuple[Rows, Rows]], whole: int
) -> None:
    """The rest of a log is read here when the second process ends before its time."""
    asked: list[tuple[object, ...]] = []

    @contextmanager
    def ending(function: str, *given: Any) -> Generator[Iterator[Any]]:
        def some() -> Iterator[Any]:
            yield from islice(log_parser.blocks(*given), whole)
            raise worker_process.ProcessLost("it was killed")

        asked.append((function, *given))
        yield some()

    monkeypatch.setattr(log_parser, "_SECOND_PROCESS_FROM", 0)
    monkeypatch.setattr(worker_process, "run_in_second_process", ending)
    fast, slow = both(sealed([ordinary(number) for number in range(50)])[0])

    assert fast == slow
    assert [item[0] for item in asked] == ["ctxmgr.store.write.log_parser:blocks"]


def test_results_far_from_their_entries_are_joined(both: Callable[..., tuple[Rows, Rows]]) -> None:
    """Results blocks behind their entries, or before them, of the session or of another one with the same ids."""
    entries = [b'{"v":1,"kind":"entry","session":"%b","id":"f%d","agent":"a","action":"b"}' % (s, n)
               for s in (b"s", b"t") for n in range(40)]  # fmt: skip
    results = [b'{"v":1,"kind":"result","session":"%b","entry":"f%d","status":"%b"}' % (s, n, status)
               for s, status in ((b"t", b"error"), (b"s", b"ok")) for n in range(3, 50, 2)]  # fmt: skip
    bodies = [*results[:30], *map(ordinary, range(50)), *entries, *map(ordinary, range(50, 99)), *results[30:]]

    fast, slow = both(sealed(bodies)[0], together=500)

    assert fast == slow
    assert sum("'error'" in row for row in fast["entry"]) == 19


@pytest.mark.long
@given(data=st.data())
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_log_has_the_same_rows(both: Callable[..., tuple[Rows, Rows]], data: st.DataObject) -> None:
    """Logs of any lines, sealed, unsealed, torn, wrongly sealed and repeated, that grow and are read in any blocks."""
    bodies = st.one_of(
        st.builds(ordinary, st.integers(0, 60), st.sampled_from([b"s", b"t"])),
        st.sampled_from(hostile()),
    )
    pieces: list[bytes] = []
    total = ""
    for _ in range(data.draw(st.integers(1, 3))):
        piece, total = sealed(data.draw(st.lists(bodies, max_size=25)), total)
        lines = piece.splitlines(keepends=True)
        for at in data.draw(st.lists(st.integers(0, len(lines)), max_size=3)):
            odd = data.draw(
                st.sampled_from(
                    [b"\r\n", b"\0" * 900, b'{"v":1,"kind":"en', b'{"v":1,"kind":"odd","session":"s"}\n', b"\n", b" "]
                )
            )
            lines.insert(at, odd)
        if lines and data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(lines) - 1))
            lines.insert(at, data.draw(st.sampled_from([lines[at], lines[0], lines[at].replace(b'"a"', b'"z"')])))
        pieces.append(b"".join(lines))
    pieces[-1] = pieces[-1][: len(pieces[-1]) - data.draw(st.integers(0, 40))]

    fast, slow = both(*pieces, together=data.draw(st.sampled_from([64, 500, 4_000, 1 << 20])))

    assert fast == slow
