"""``--set``: detection settings from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.cli.requests import build, merge_settings, parse_settings
from ctxmgr.errors import InvalidInput
from ctxmgr.store import Store
from ctxmgr.types.query import SearchRequest
from tests.builders import write
from tests.cli.console import make_history, run
from tests.doors import run_json


def test_options_become_a_table() -> None:
    """Numbers, lists, quoted names and single actions are spelled as in the configuration file."""
    found = parse_settings(
        ["repeat_rounds=4", 'pollers=["wait"]', 'actions."my tool".repeat_rounds=5', "actions.Bash.exempt=true"]
    )

    assert found == {
        "repeat_rounds": 4,
        "pollers": ["wait"],
        "actions": {"my tool": {"repeat_rounds": 5}, "Bash": {"exempt": True}},
    }


def test_options_come_before_the_file() -> None:
    """An option replaces the file's setting of its name and leaves the others, those of single actions included."""
    file = {"repeat_rounds": 3, "stall_seconds": 60, "actions": {"Bash": {"poller": True}}}

    assert merge_settings(file, ["repeat_rounds=4", "actions.Bash.repeat_rounds=9"]) == {
        "repeat_rounds": 4,
        "stall_seconds": 60,
        "actions": {"Bash": {"poller": True, "repeat_rounds": 9}},
    }
    assert file["repeat_rounds"] == 3


@pytest.mark.parametrize("odd", ["repeat_rounds", "=4", "repeat_rounds=", "a b=1", ""])
def test_what_is_no_setting_is_named(odd: str) -> None:
    """An option without a name or a value is refused, except that nothing at all sets nothing."""
    if odd == "":
        assert parse_settings([odd]) == {}
        return
    with pytest.raises(InvalidInput, match="is no setting"):
        parse_settings([odd])


def test_a_threshold_decides_what_is_found(store: Store) -> None:
    """Three identical rounds are a loop by default and none with a threshold of four."""
    write(store, "run", ["Bash:ls -> same"] * 3)
    where = ["--json", "--store", store.location]

    assert run_json(["detect", *where])[0] == 10
    assert run_json(["detect", "--set", "repeat_rounds=4", *where])[0] == 0
    code, envelope = run_json(["detect", "--set", "repeat_rounds=1", *where])
    assert (code, envelope["error"]["kind"]) == (2, "invalid")


@pytest.mark.parametrize("option", ["--max", "--limit", "-n"])
def test_a_fault_names_an_option_that_there_is(option: str, tmp_path: Path) -> None:
    """The field of a request may be spelled otherwise than the option that sets it."""
    ran = run("search", "x", option, "0", "--store", str(make_history(tmp_path / "h.db")))
    assert (ran.code, ran.err.splitlines()[0]) == (2, "ctxmgr: --limit: Input should be greater than or equal to 1")


def test_a_fault_of_an_argument_names_no_option() -> None:
    """An argument has no option to name."""
    with pytest.raises(InvalidInput, match=r"^the text: "):
        build(SearchRequest, query=["x"])
