"""``schema``: the schemas it prints are the ones that real answers follow, checked by rules of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from ctxmgr.cli.fast.table import TABLE
from ctxmgr.types.record_models import MODELS
from tests.cli.console import lines, records, run
from tests.cli.json_schema import faults

pytestmark = pytest.mark.usefixtures("history")

ANSWERS: list[tuple[str, tuple[str, ...]]] = [
    ("sessions", ()), ("sessions", ("--no-judge",)), ("list", ("--kind", "all")), ("trace", ()), ("show", ("@1",)),
    ("search", ("a",)), ("messages", ()), ("note add", ("0", "-m", "x", "-t", "y", "--link", "@0")), ("note list", ()),
    ("note search", ("flaky",)), ("snapshot create", ("0", "1", "--summary", "x")), ("snapshot list", ()),
    ("snapshot show", ("SNAPSHOT",)), ("detect", ("--all-sessions",)), ("recover", ("-s", "looping")),
    ("recover", ("-s", "hung", "--plan")), ("import", ("LOG",)), ("record", ()), ("verify", ()), ("index", ()),
    ("doctor", ()), ("formats", ()),
    ("access allow", ("dev", "artifact", "*")), ("access list", ()), ("access log", ()), ("access test", ("default",)),
    ("access check", ("dev", "read", "artifact", "a/b")), ("access explain", ("dev", "read", "artifact", "a/b")),
    ("context set", ("current_sprint", "S1")), ("context get", ()), ("context log", ()),
    ("execution record", ("dev", "failed", "--error", "x")), ("execution list", ()), ("version list", ()),
    ("context need add", ("dev", "arch/*", "--need", "optional")), ("context assemble", ("dev", "--with", "arch/none.md")),
    ("request", ("--type", "proceed", "--from", "coder", "--to", "other", "--reason", "x", "--goal", "y")),
]  # fmt: skip


BEFORE: dict[str, tuple[tuple[str, ...], ...]] = {
    "access list": (("access", "allow", "dev", "artifact", "*"),),
    "access log": (("context", "get", "nothing", "--as", "dev"),),
    "context get": (("context", "set", "current_sprint", "S1"),),
    "context log": (("context", "set", "current_sprint", "S1"),),
    "execution list": (("execution", "record", "dev", "started"),),
    "version list": (("artifact", "put", __file__, "--agent", "dev"),),
}
"""What has to be there for a command to have an answer."""


def schema_of(name: str) -> dict[str, Any]:
    """Return the schema of a command's answer."""
    return run("schema", *name.split()).envelope["data"]["row"]


@pytest.mark.cases(1)
@pytest.mark.parametrize(("name", "options"), ANSWERS, ids=[f"{name} {' '.join(options)}" for name, options in ANSWERS])
def test_answers_follow_their_schema(name: str, options: tuple[str, ...], tmp_path: Path) -> None:
    """The data of every command's answer, and the envelope around it, follow the schemas that are printed for them."""
    log = tmp_path / "more.jsonl"
    log.write_text(lines({**records()[-1], "session": "more"}), encoding="utf-8")
    snapshot = run("snapshot", "create", "0", "--summary", "x", "--json").envelope["data"]["id"]
    given = [{"SNAPSHOT": snapshot, "LOG": str(log)}.get(option, option) for option in options]
    for words in BEFORE.get(name, ()):
        run(*words)
    envelope = run(*name.split(), *given, "--json", given=lines(records()[0]) if name == "record" else None).envelope
    rows = cast("list[Any]", envelope["data"] if isinstance(envelope["data"], list) else [envelope["data"]])
    row, outer = schema_of(name), schema_of("envelope")

    assert rows
    assert [fault for item in rows for fault in faults(item, row)] == []
    assert faults(envelope, outer) == []


def test_errors_follow_the_envelope() -> None:
    """An error's envelope follows the same schema."""
    outer = schema_of("envelope")

    assert faults(run("show", "@99", "--json").envelope, outer) == []
    assert faults({"schema": "ctxmgr/1"}, outer) == [
        "$: 'command' is a required property", "$: 'status' is a required property",
    ]  # fmt: skip


def test_records_follow_their_schema() -> None:
    """``schema record`` prints a schema for each kind of record, and exported records follow it."""
    kinds = run("schema", "record").envelope["data"]["records"]

    assert set(kinds) == set(MODELS)
    assert [fault for record in records() for fault in faults(record, kinds[record["kind"]])] == []
    assert faults({"v": 1, "kind": "event", "session": "s", "id": ""}, kinds["event"]) != []


def test_every_answer_has_a_schema() -> None:
    """Each command that answers in JSON is named by ``schema``, and requests have schemas of their own."""
    names = run("schema").envelope["data"]

    assert {name for name, _ in ANSWERS} <= set(names)
    assert {name for name in TABLE if name.split()[0] in ("access", "context", "execution")} <= set(names)
    for name in names:
        answer = run("schema", *name.split()).envelope
        assert (answer["status"], bool(answer["data"])) == ("ok", True)
    assert run("schema", "list").envelope["data"]["request"]["properties"]["newestFirst"]["type"] == "boolean"


def test_what_has_no_schema() -> None:
    """A name without a schema is not found, and the hint lists the names there are."""
    ran = run("schema", "note", "eat", "--json")

    assert (ran.code, ran.envelope["error"]["message"]) == (3, "no schema for 'note eat'")
    assert "note add" in ran.envelope["error"]["hint"]
    assert run("schema", "list", "--jq", ".data.row.properties.kind").code == 0
