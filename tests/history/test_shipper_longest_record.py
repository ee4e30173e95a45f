"""The longest record that a line can hold arrives whole on a server, and what is longer is refused as it is here."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from ctxmgr.errors import InvalidInput
from ctxmgr.history.shipper import Service, Shipper
from ctxmgr.log.codec import MAX_LINE, Record, encode
from ctxmgr.store import open_store
from ctxmgr.types.query import Filters
from tests.builders import entry

pytestmark = pytest.mark.slow

_SUM = 27
"""Bytes that a log needs for the sum of a record."""


def long_entry(number: int, size: int) -> Record:
    """Return an entry whose line has so many bytes."""
    odd = "\0é😀"
    return entry("s", number, "Bash", odd + "x" * (size - len(encode(entry("s", number, "Bash", odd)))))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_longest_record_arrives_whole(tmp_path: Path, server_url: str, kind: str) -> None:
    """Appended or shipped, it is read, found by its place and verified; a byte more is refused, and nothing of it is kept."""
    place = server_url if kind == "postgresql" else str(tmp_path / "history.db")
    log = tmp_path / "run.jsonl"
    appended, shipped = long_entry(0, MAX_LINE), long_entry(1, MAX_LINE - _SUM)
    with closing(open_store(place, create=True)) as store:
        assert store.append([appended]).added == 1
    with closing(open_store(str(log), create=True)) as store:
        store.append([shipped])
    shipper = Shipper(str(log), place, place)
    with closing(Service([shipper], place)) as service:
        service.once()
    assert (shipper.progress.added, shipper.progress.refused, shipper.progress.lag) == (1, 0, 0)

    with closing(open_store(place)) as store:
        with pytest.raises(InvalidInput, match=f"record is {MAX_LINE + 1:,} bytes long or longer; the limit is {MAX_LINE:,}"):
            store.append([entry("s", 2), long_entry(3, MAX_LINE + 1)])
        assert list(store.sessions.records(None)) == [appended, shipped]
        assert [view.input for view in store.queries.entries(1, Filters(), 0, None)[0]] == [appended["input"], shipped["input"]]
        assert store.verify() == (2, [])
