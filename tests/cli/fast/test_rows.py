"""Commands that are answered from rows end as by typer, to the byte: output, talk and exit code."""

from __future__ import annotations

import shlex

import pytest

from tests.cli.paths import both

pytestmark = pytest.mark.usefixtures("here")

QUICK = [
    "list", "list --limit 1", "list -n 2 --offset 1", "list -r", "list --newest-first --kind all", "list --kind event",
    "list --event-type message", "list --event-type message --kind all --kind event", "list -s healthy", "list -s heal",
    "list --session=looping --agent WORKER", "list --action bash --action Read", "list --status error --status open",
    "list --input-type command", "list --since 2026-01-22T10:00:01Z", "list --since 2h", "list --until yesterday",
    "list --since 1w --until now", "list --offset 9007199254740992", "list --limit 100000", "list -s härte/ö",
    "list -s härte/ö --kind all", "list -s deep", "list --store empty.db", "list --store ./history.db",
    "list --store .//log.jsonl", "list --store log.jsonl -s healthy", "list --store torn.jsonl", "list -- ",
    "list --action ''", "list --action x --action=", "list --kind entry --kind=all", "trace", "trace Bash",
    "trace bash --action Read", "trace ''", "trace -- Bash", "trace --limit 1 Bash", "trace Bash -n 1",
    "trace --agent worker --status ok", "trace --store empty.db", "trace --offset 1", "trace -s hung", "trace --until 1d",
    "search a", "search A --all-sessions", "search -- --json", "search boom --kind entry", "search 'x' --max 1 --offset 1",
    "search STRASSE -s härte/ö", "search key -s härte/ö", "search ss --all-sessions", "search zzz", "search 1e300 -s härte/ö",
    "search same -n 2 -s looping", "search message --event-type message", "search ls --action bash --agent worker",
    "search a --store empty.db", "search a --since 2026-01-01 --until 2027-01-01T00:00:00+02:00", "search a --store log.jsonl",
    "show 0", "show @-1", "show @last", "show healthy@1", "show heal@0", "show looping-e0002", "show looping-e0002 -s looping",
    "show härte/ö@3", "show 2 -s härte/ö", "show -s hung 1", "show --full @0", "show deep@0",
    "show 1 --store log.jsonl -s heal", "messages", "messages @-1", "messages healthy@2", "messages -s härte/ö",
    "messages härte/ö@1", "messages -n 1 --offset 1", "messages --store empty.db", "messages healthy-e0001",
    "messages -s hung --offset 5", "note list", "note list -t DIAGNOSTIC --tag diagnostic", "note list -t none -s healthy",
    "note list --all-sessions -n 1", "note list -s härte/ö --offset 1", "note list --store empty.db", "snapshot list",
    "list healthy", "list log.jsonl", "list log.jsonl -s heal", "list -s log.jsonl", "list ./log.jsonl --store ./log.jsonl",
    "list history.db", "list claude.jsonl -n 2", "list --store claude.jsonl -n 2", "list claude.jsonl --kind all -n 3",
    "trace Bash claude.jsonl -n 1", "trace claude.jsonl Bash -n 1", "trace claude.jsonl -n 1", "trace Bash healthy",
    "search test claude.jsonl -n 2", "search a log.jsonl --all-sessions", "search a healthy", "show claude.jsonl@-1",
    "show log.jsonl@last", "show @0 -s claude.jsonl", "messages claude.jsonl@-1", "messages claude.jsonl -n 2",
    "messages -s claude.jsonl -n 2", "list own.log -n 2", "note list -s claude.jsonl", "snapshot list -s log.jsonl",
    "list claude.jsonl@3 -n 2", "list healthy@1", "list @1", "list log.jsonl@1 -s heal", "list @9",
    "search boom --store altered-shape.db", "snapshot list -s healthy -n 1 --offset 1", "snapshot list --store empty.db",
    "snapshot list --store log.jsonl -s heal",
]  # fmt: skip
"""Command lines that the fast path answers itself, well ended ones and refused ones."""

REFUSED = [
    "list -s ''", "list -s --json", "show log --store log.jsonl -s x", "show @99", "show @-99", "show nothing", "show ''",
    "show healthy@0 -s looping", "show @0 --store empty.db", "show x --store empty.db", "show @0 -s none", "list -s none",
    "list --since soon", "list --until ''", "search ''", "search ' '", "messages @99", "messages x",
    "messages @0 --store empty.db", "list --store none.db", "list --store none.jsonl", "list --store damaged.db",
    "list --store foreign.db", "list --store folder.db", "list --store folder.db/x.db", "list --store history.db/x",
    "list --store ''", "list --store http://x", "list --store /dev/null", "show h -s healthy", "list --store altered-body.db",
    "list --store altered-list.db", "list --store altered-shape.db", "list --store altered-nan.db",
    "list --store altered-status.db", "search 1, --store altered-body.db", "trace --since x -s none",
    "search x --since x -s none", "note list -s none", "snapshot list -s none", "note list --store altered-note.db",
    "snapshot list --store altered-snapshot.db", "note list --store none.db", "list none", "list none.jsonl",
    "list --store garbage.txt", "show garbage.txt@0", "show claude.jsonl", "show claude.jsonl@99", "list ./",
    "list healthy -s looping", "list log.jsonl --store history.db", "search x none.jsonl", "trace a b",
    "messages none.jsonl@1", "list -", "list -s garbage.txt", "note list -s garbage.txt",
]  # fmt: skip
"""Command lines that the fast path itself refuses, or that end with a verdict."""


@pytest.mark.parametrize("form", ["--json", "--format=ndjson", "--format json"])
@pytest.mark.parametrize("text", [*QUICK, *REFUSED])
def test_the_quick_path_answers_as_typer_does(text: str, form: str) -> None:
    """What the fast path answers, well or with a refusal, has typer's bytes on both streams and its exit code."""
    words = shlex.split(text)
    name = 2 if words[0] in ("note", "snapshot") else 1
    ended = both([*words[:name], *form.split(), *words[name:]])

    assert ended.was_quick
    assert (ended.code == 0) == (text in QUICK)
