"""What all answers share: formats, fields, jq, and that JSON is plain ASCII."""

from __future__ import annotations

import csv
import json
import re
import sys

import pytest

from tests.cli.console import run
from tests.cli.test_all_commands import ROWS

pytestmark = pytest.mark.usefixtures("history")


@pytest.mark.parametrize("command", [*ROWS, ("show", "@0"), ("verify",), ("schema", "list")], ids=" ".join)
def test_json_is_plain_ascii(command: tuple[str, ...]) -> None:
    """JSON output is one line of printable ASCII that parses, and nothing else is written anywhere."""
    run("record", "--session", "healthy", given='{"kind":"event","type":"message","data":"\\ud800 \\u007f é \\u001b[2J"}\n')
    ran = run(*command, "--json")

    assert re.fullmatch(r"[ -~]+\n", ran.out)
    assert json.loads(ran.out)["schema"] == "ctxmgr/1"
    assert ran.err == ""


def test_formats_show_the_same_rows() -> None:
    """NDJSON is the envelope's rows one a line; Markdown, CSV and a table show every one of them."""
    rows = run("list", "-s", "healthy", "--json").envelope["data"]
    ndjson = run("list", "-s", "healthy", "--format", "ndjson").out
    markdown = run("list", "-s", "healthy", "--format", "md").out.splitlines()
    table = run("list", "-s", "healthy").out.splitlines()

    assert [json.loads(line) for line in ndjson.splitlines()] == rows
    assert set(markdown[1]) <= set("|-: ")
    assert (len(markdown), len(table)) == (len(rows) + 2, len(rows) + 1)
    told = csv.DictReader(run("list", "-s", "healthy", "--format", "csv").out.splitlines())
    assert [row["index"] for row in told] == list("012")


@pytest.mark.parametrize("form", ["table", "ndjson", "md", "csv", "tsv"])
@pytest.mark.parametrize("fields", [(), ("--fields", "index,action")])
def test_a_part_of_a_list_says_in_a_pipe_that_there_is_more(form: str, fields: tuple[str, ...]) -> None:
    """On stderr, in every format that does not hold the page; a whole list says nothing of it."""
    ran = run("list", "-s", "healthy", "--limit", "2", "--format", form, *fields)

    assert "1 to 2 of 3; more: --offset 2\n" in ran.err
    assert "--offset" not in ran.out
    assert "more:" not in run("list", "-s", "healthy", "--limit", "3", "--format", form, *fields).err
    assert run("list", "-s", "healthy", "--limit", "2", "--json", *fields).err == ""


def test_fields_choose_what_is_shown() -> None:
    """``--fields`` keeps the named fields in the named order, in every format; a dot reaches into objects."""
    wish = ("show", "healthy@1", "--fields", "action,error.message,error.nothing")

    assert run(*wish, "--json").envelope["data"] == {"action": "Bash", "error.message": "boom", "error.nothing": None}
    assert run(*wish).out == "Bash\tboom\t\n"
    assert run(*wish, "--format", "ndjson").out == '{"action":"Bash","error.message":"boom","error.nothing":null}\n'
    assert run(*wish, "--format", "md").out.splitlines()[2] == "| Bash | boom |  |"


@pytest.mark.parametrize("form", ["table", "json", "ndjson", "md"])
def test_unknown_fields_are_refused(form: str) -> None:
    """A field that no row has is a fault of usage that names the fields there are."""
    ran = run("list", "--fields", "id,nosuch.x", "--format", form)

    assert ran.code == 2
    assert "no field 'nosuch.x'" in ran.out + ran.err
    assert "inputType" in ran.out + ran.err


def test_a_recorded_note_is_not_hidden_by_a_wrong_field() -> None:
    """When only the output options of a writing command are wrong, the answer says that the work is done."""
    ran = run("note", "add", "0", "-m", "kept", "--fields", "nosuch", "--json")

    assert ran.code == 2
    assert ran.envelope["error"]["hint"].startswith("the command itself is done")
    assert run("note", "list", "--json").envelope["page"]["total"] == 2


def test_jq_filters_the_envelope() -> None:
    """``--jq`` prints what the program makes of the envelope, one JSON value a line."""
    assert run("list", "-s", "healthy", "--jq", ".data[].action").out == '"Read"\n"Bash"\n"Bash"\n'
    assert run("list", "--jq", "empty").out == ""


def test_a_faulty_jq_program_stops_a_command_before_it_writes() -> None:
    """A jq program that does not compile is refused before anything is done; one that fails later is told as a fault."""
    ran = run("note", "add", "0", "-m", "x", "--jq", ".[")

    assert (ran.code, ran.envelope["error"]["kind"]) == (2, "invalid")
    assert run("note", "list", "--json").envelope["page"]["total"] == 1
    assert run("list", "--jq", ".data + 1").code == 2


def test_jq_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no jq package ``--jq`` says how to get it, and nothing else needs it."""
    monkeypatch.setitem(sys.modules, "jq", None)
    ran = run("list", "--jq", ".")

    assert (ran.code, ran.envelope["error"]["hint"]) == (2, "pip install jq")
    assert run("list", "--json").code == 0


def test_raw_prints_texts_without_quotes() -> None:
    """``-r`` beside ``--jq`` prints texts as they are and anything else as JSON; without ``--jq`` it is refused."""
    assert run("list", "-s", "healthy", "--jq", ".data[0] | .action, .index", "-r").out == "Read\n0\n"
    assert json.loads(run("list", "-s", "healthy", "--jq", ".data[0].action").out) == "Read"
    assert run("show", "@0", "-r", "--json").envelope["error"]["kind"] == "invalid"


def test_fields_reach_into_lists_and_say_what_is_not_there() -> None:
    """A number chooses from a list; a path that leads nowhere in any row is told."""
    ran = run("detect", "looping", "--exit-zero", "--fields", "session,findings.0.kind")
    assert (ran.out, ran.err) == ("looping\trepetition\n", "")
    ran = run("detect", "looping", "--exit-zero", "--fields", "findings.9.kind")
    assert (ran.out, ran.err) == ("\n", "ctxmgr: nothing has a field 'findings.9.kind': it is empty\n")
