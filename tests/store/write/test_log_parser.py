"""A log as blocks of rows: ordinary lines are read quickly, hostile ones make the rows that they make when read one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.log import reader
from ctxmgr.log.reader import Line
from ctxmgr.store import log_rows
from ctxmgr.store.write import log_parser
from tests.store.bulk_logs import OTHERS, Rows, hostile, indexed_rows, ordinary, sealed


def test_ordinary_lines_are_read_quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line of a journal goes the way of those that are read one by one, but those of rare kinds and of the project."""
    bodies = [ordinary(number) for number in range(900)]
    path = tmp_path / "h.jsonl"
    path.write_bytes(sealed([*bodies, OTHERS[0], *OTHERS[-10:]])[0])
    slowly: list[bytes] = []

    def records_of(raw: bytes, *rest: Any) -> Iterator[Line]:
        slowly.append(raw)
        return reader.read_records(raw, *rest)

    monkeypatch.setattr(log_rows, "_BLOCKS_FROM_BYTES", 0)
    monkeypatch.setattr(log_parser, "read_records", records_of)
    assert len(indexed_rows(path)["line"]) == 901
    assert len(slowly) == 11


@pytest.mark.cases(1)
@pytest.mark.parametrize("together", [300, 2_000, 1 << 20])
def test_hostile_lines_have_the_same_rows(both: Callable[..., tuple[Rows, Rows]], together: int) -> None:
    """All hostile lines in one log, each with a sum that follows, between ordinary ones."""
    bodies = [body for number, one in enumerate(hostile()) for body in (one, ordinary(number))]

    fast, slow = both(sealed(bodies)[0], together=together)

    assert fast == slow
    assert len(fast["damage"]) > 50


@pytest.mark.parametrize("first", range(0, len(hostile()), 32))
def test_a_few_hostile_lines_have_the_same_rows(both: Callable[..., tuple[Rows, Rows]], first: int) -> None:
    """Few of them at a time among ordinary ones, so that what others do hides nothing."""
    few = hostile()[first : first + 32]
    bodies = [body for number, one in enumerate(few) for body in (*map(ordinary, range(3 * number, 3 * number + 3)), one)]

    fast, slow = both(sealed(bodies)[0])

    assert fast == slow
