"""Outputs that are cut."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import Call, bash, evidence, require_told


@pytest.mark.parametrize(
    ("shown", "start"), [("first ,lines shown", "in parts"), ("first 1,200 lines shown", "from line 1201 on")]
)
def test_a_notice_without_a_number_names_no_line(shown: str, start: str) -> None:
    """A comma alone is no number of lines."""
    call = Call("Read", {"file_path": "app.py"}, f"import os\n[output truncated: {shown}]")
    told = diagnose(evidence(call, call, call))

    assert told is not None
    assert told.kind == "outputCut"
    assert start in told.next_step


CUT = "09:00 start\n09:01 load\n[output truncated: 51200 characters not shown]"
SEARCH = bash("rg -n 'Panic|load' app/worker.log", "2:09:01 load\n702:Panic in queue seven\n811:exit status 2")


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (Call("view_file", {"path": "/home/dev/shop/app/worker.log"}, CUT), "offset 697"),
        (bash("cat app/worker.log", CUT), "`sed -n '697,737p' app/worker.log`"),
    ],
)
def test_the_line_that_a_search_found_is_where_to_read_on(call: Call, part: str) -> None:
    """A search that gave the number of a line beyond the cut tells from where to read; a line that is shown does not."""
    require_told(evidence(SEARCH, call, call, call), "outputCut", ["cut at the same place"], [part, "line 702"])


def test_a_search_may_answer_in_json() -> None:
    """Tools that search answer with the number of the line as a value."""
    hits = {"matches": [{"file": "app/worker.log", "lineNumber": 702, "text": "Panic in queue seven"}]}
    look = Call("search_file", {"path": "app/worker.log", "query": "Panic"}, hits)
    call = Call("view_file", {"path": "app/worker.log"}, CUT)

    require_told(evidence(look, call, call, call), "outputCut", [], ["offset 697", "line 702"])


def test_a_search_of_another_file_names_no_line() -> None:
    """The number is of the file that was searched."""
    call = Call("view_file", {"path": "app/other.log"}, CUT)
    told = diagnose(evidence(SEARCH, call, call, call))

    assert told is not None
    assert "702" not in told.next_step
