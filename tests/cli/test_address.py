"""Name entries on the command line: every spelling, and what is no address."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.cli.address import parse
from ctxmgr.errors import InvalidInput
from tests.cli.console import run

pytestmark = pytest.mark.usefixtures("history")


@pytest.mark.requirement("FR-010", "C-show")
@pytest.mark.parametrize(
    ("address", "entry"),
    [
        ("healthy@1", "healthy-e0001"),
        ("healthy@-1", "healthy-e0002"),
        ("healthy@last", "healthy-e0002"),
        ("heal@0", "healthy-e0000"),
        ("@1", "healthy-e0001"),
        ("@-3", "healthy-e0000"),
        ("@last", "healthy-e0002"),
        ("2", "healthy-e0002"),
        ("healthy-e0001", "healthy-e0001"),
    ],
)
def test_every_spelling_of_an_entry(address: str, entry: str) -> None:
    """An entry is named by session and place, by place alone, from the end, or by its id; a session by a prefix too."""
    assert run("show", address, "--json").envelope["data"]["id"] == entry


def test_a_name_that_is_no_session_may_be_meant_as_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder is read where it is spelled as one, and the error says how; of a mistyped file it says that it is not there."""
    (tmp_path / "logs").mkdir()
    monkeypatch.chdir(tmp_path)
    hints = {name: run("detect", name, "--json").envelope["error"]["hint"] for name in ("logs", "run.jsnl", "nosuch")}

    assert hints == {
        "logs": "'ctxmgr sessions' lists them; for the folder of this name write ./logs",
        "run.jsnl": "'ctxmgr sessions' lists them; there is no file of this name either",
        "nosuch": "'ctxmgr sessions' lists them",
    }


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("healthy@3",), 3, "Index out of bounds"),
        (("healthy@-4",), 3, "Index out of bounds"),
        (("@999999999999999",), 3, "Index out of bounds"),
        (("nosuch@0",), 3, "no session 'nosuch'"),
        (("h@0",), 2, "several session ids start with 'h'"),
        (("healthy-e",), 2, "3 or more"),
        (("",), 2, "an empty address"),
        (("  ",), 2, "an empty address"),
        (("healthy@0", "-s", "hung"), 2, "'healthy@0' and --session 'hung' name different sessions"),
        (("@1.5",), 3, "no entry '@1.5'"),
        (("@99999999999999999999",), 3, "no entry"),
    ],
)
def test_what_names_no_entry(arguments: tuple[str, ...], code: int, message: str) -> None:
    """An address that names nothing, too much, or two sessions says so."""
    ran = run("show", *arguments, "--json")

    assert (ran.code, ran.envelope["error"]["message"][: len(message)]) == (code, message)


def test_an_unambiguous_prefix_of_an_id_is_enough() -> None:
    """The beginning of an entry's id names it when no other id of the session begins so."""
    run(
        "record",
        given='{"kind":"entry","session":"one","id":"abcdef-1","agent":"a","action":"x","ts":"2026-01-23T00:00:00Z"}\n',
    )

    assert run("show", "abc", "--json").envelope["data"]["id"] == "abcdef-1"


def test_addresses_come_from_stdin() -> None:
    """A dash stands for the addresses on stdin, so that one command's ids go straight into the next."""
    ids = run("list", "-s", "healthy", "--fields", "id").out
    note = run("note", "add", "-", "-m", "all of them", "-s", "healthy", "--json", given=ids).envelope["data"]
    mixed = run("note", "add", "-", "0", "-m", "more", "--json", given="healthy@1 @last\n").envelope["data"]

    assert (note["indexes"], mixed["indexes"]) == ([0, 1, 2], [0, 1, 2])
    assert run("note", "add", "-", "-m", "none", given="").code == 2


def test_a_note_stays_in_one_session() -> None:
    """Addresses of two sessions in one note are refused, and nothing is recorded."""
    ran = run("note", "add", "healthy@0", "hung@0", "-m", "x", "--json")

    assert (ran.code, ran.envelope["error"]["message"]) == (2, "the addresses lie in different sessions")
    assert run("note", "list", "--all-sessions", "--json").envelope["page"]["total"] == 1


@given(st.text(max_size=30))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    """Whatever is typed either is taken as an address or refused as invalid input; nothing else happens."""
    try:
        found = parse(text)
    except InvalidInput:
        assert not text.strip()
    else:
        assert (found.index is None) != (found.entry_id is None)
