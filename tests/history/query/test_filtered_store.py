"""What an agent sees of a history is that of one in which the records that it may not read were never written."""

from __future__ import annotations

import tempfile
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxmgr.log.codec import Record, encode
from ctxmgr.store import open_store
from tests.conftest import STORE_FILES
from tests.history.seen_world import GRANTS, answers, histories, rules, seen_of, seen_part, written

KINDS = sorted(STORE_FILES)


def _bytes(told: dict[str, Any]) -> dict[str, bytes]:
    return {name: encode({"": value}) for name, value in told.items()}


@pytest.mark.long
@pytest.mark.requirement("R-16")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("granted", sorted(GRANTS))
@given(data=st.data(), records=histories)
@settings(max_examples=12)
def test_every_answer_is_that_of_a_history_without_the_hidden(
    kind: str, granted: str, data: st.DataObject, records: list[Record]
) -> None:
    """Every reading tool answers with the same bytes, whether the index was built at once or grew with the history."""
    held = rules(*GRANTS[granted])
    cuts = sorted({0, len(records), *data.draw(st.lists(st.integers(0, len(records)), max_size=3))})
    with tempfile.TemporaryDirectory() as folder:
        whole, part = Path(folder, f"whole-{STORE_FILES[kind]}"), Path(folder, f"part-{STORE_FILES[kind]}")
        written(whole, [])
        for first, last in pairwise(cuts):
            written(whole, records[first:last])
            with seen_of(whole, held):
                pass
        written(part, seen_part(records, held))
        with closing(open_store(str(part))) as expected, seen_of(whole, held) as seen:
            assert _bytes(answers(seen)) == _bytes(answers(expected))
            assert seen.copied == 0
