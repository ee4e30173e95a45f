"""``note`` and ``memory`` through the command line: as text, as JSON and on a terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ctxmgr.cli.commands.annotations import show_episodes, show_reflection
from ctxmgr.store import open_store
from ctxmgr.types.memory import Episode, Reflection
from tests.cli import view_samples as s
from tests.cli.console import process, run

pytestmark = pytest.mark.usefixtures("history")


def _kept(*arguments: str) -> str:
    ran = run("memory", "retain", *arguments, "--json")
    assert (ran.code, ran.err) == (0, "")
    return str(ran.envelope["data"]["id"])


@pytest.mark.parametrize("part", ["retain", "recall", "reflect"])
def test_every_part_explains_itself_with_examples(part: str) -> None:
    """The help of each part shows examples that begin with it."""
    ran = run("memory", part, "--help")

    assert ran.code == 0
    assert re.search(rf"\n +ctxmgr memory {part} ", ran.out.partition("Examples:")[2])


def test_what_is_retained_is_recalled_with_what_was_around_it() -> None:
    """An episode comes back with its entries, author and tags, expanded as far as asked for."""
    name = _kept("Shipping needs make twice", "--entry", "healthy@1", "-e", "healthy@2", "-t", "release", "--author", "bo")
    ran = run("memory", "recall", "ships", "--expand", "1", "--limit", "3", "--json")
    (row,) = ran.envelope["data"]

    assert (row["id"], row["session"], row["indexes"], row["author"]) == (name, "healthy", [1, 2], "bo")
    assert row["tags"] == ["memory", "release"]
    assert [entry["index"] for entry in row["around"]] == [0, 1, 2]
    assert Episode.model_validate(row).to_json() == row


def test_the_text_may_come_in_three_ways() -> None:
    """The text is an argument, an option or stdin; two at once are refused, none counts as empty."""
    _kept("deploy one")
    _kept("-m", "deploy two")
    read = run("memory", "retain", "-", given="deploy three\n")

    assert read.code == 0
    found = run("memory", "recall", "deploy", "--json").envelope["data"]
    assert {row["text"] for row in found} == {"deploy one", "deploy two", "deploy three"}
    assert run("memory", "retain", "a", "-m", "b").code == 2
    assert run("memory", "retain").err.splitlines()[0] == "ctxmgr: Memory text cannot be empty"


FAULTS = [
    (("recall", ""), 2, "invalid", "Query cannot be empty"),
    (("reflect", " "), 2, "invalid", "Query cannot be empty"),
    (("recall", "x", "--limit", "0"), 2, "invalid", "--limit must be at least 1"),
    (("recall", "x", "--expand", "-1"), 2, "invalid", "--expand must be at least 0"),
    (("recall", "x", "--session", "nosuch"), 3, "notFound", "no session 'nosuch'"),
    (("retain", "x", "--entry", "99"), 3, "outOfBounds", "Index out of bounds"),
    (("retain", "x", "--supersedes", "nosuch"), 3, "notFound", "no episode 'nosuch' to supersede"),
]


@pytest.mark.parametrize(("arguments", "code", "kind", "message"), FAULTS, ids=[" ".join(fault[0]) for fault in FAULTS])
def test_faults_have_one_code_and_two_forms(arguments: tuple[str, ...], code: int, kind: str, message: str) -> None:
    """A fault has the exit codes and kinds of the other commands, on stderr or in the envelope."""
    text, told = run("memory", *arguments), run("memory", *arguments, "--json")

    assert (text.code, told.code, text.out, told.err) == (code, code, "", "")
    assert told.envelope["error"]["kind"] == kind
    assert told.envelope["error"]["message"].startswith(message)
    assert text.err.startswith(f"ctxmgr: {message}")


def test_superseding_by_a_short_id() -> None:
    """The short id that a table shows is enough to replace an episode, and the old one is gone from recall."""
    name = _kept("deploy by ftp")
    _kept("deploy by rsync", "--supersedes", name, "--session", "looping")

    assert [row["text"] for row in run("memory", "recall", "deploy", "--json").envelope["data"]] == ["deploy by rsync"]
    told = run("memory", "reflect", "deploy", "--json").envelope["data"]["superseded"]
    assert [(old["episode"], old["text"]) for old in told] == [(name, "deploy by ftp")]


def test_reflecting_writes_only_when_asked_to(history: Path) -> None:
    """``reflect`` leaves the store as it is; with ``--keep`` it adds one note, and says which."""
    _kept("deploy works", "--author", "bo")
    _kept("deploy fails", "--author", "cy")
    before = history.read_bytes()
    told = run("memory", "reflect", "deploy", "--json").envelope["data"]

    assert Reflection.model_validate(told).to_json() == told
    assert (told["kept"], len(told["contradictions"]), history.read_bytes() == before) == (None, 1, True)
    kept = run("memory", "reflect", "deploy", "--keep", "--author", "bo", "--json").envelope["data"]["kept"]
    store = open_store(str(history), readonly=True)
    (found, total) = store.annotations.notes(None, ["reflection"], None, 0, 5)
    assert ([(note.id, note.author) for note in found], total) == ([(kept, "bo")], 1)
    store.close()


def test_nothing_found_is_no_fault() -> None:
    """An empty answer is an empty list with exit code 0, and a hint on stderr for people."""
    ran, text = run("memory", "recall", "zebra", "--json"), run("memory", "recall", "zebra")

    assert (ran.code, ran.envelope["status"], ran.envelope["data"]) == (0, "empty", [])
    assert (text.code, text.out) == (0, "")
    assert text.err.startswith("Memory holds nothing about that.")
    assert run("memory", "reflect", "zebra", "--json").envelope["status"] == "empty"


def test_in_a_pipe_every_episode_is_a_row() -> None:
    """Text in a pipe is one row an episode with its whole text, nothing cut and nothing that steers a terminal."""
    long = "deploy " + "word " * 100 + "\x1b[2J\u202e"
    _kept(long, "--author", "bo")
    ran = run("memory", "recall", "deploy")
    head, row = ran.out.splitlines()

    assert head.split() == ["ID", "SCORE", "SESSION", "ENTRIES", "TIME", "AUTHOR", "TAGS", "TEXT"]
    assert ("word " * 100).strip() in row
    assert "\\x1b[2J\\u202e" in row
    shown = run("memory", "reflect", "deploy").out
    assert "\x1b" not in shown
    assert "bo" in shown


def test_on_a_terminal_an_episode_is_read_at_a_glance() -> None:
    """Who said it, where and when stands above the text; long texts are cut, links stand below."""
    long = s.episode(
        "\n".join(f"line {n}" for n in range(12)), author=None, supersedes="m0", links=["other@4"], missing=["e77"]
    )
    around = s.episode(around=[s.entry(3, "Bash", {"command": "make deploy"}, "error")])

    assert s.draw(lambda out: show_episodes(out, [long])).splitlines() == [
        "✎ m1  nightly @3-4  #deploy  unsigned  2026-01-22 11:00:00",
        *(f"    line {n}" for n in range(8)),
        "    … 4 more lines",
        "    supersedes m0",
        "    links other@4",
        "    missing e77",
    ]
    told = s.draw(lambda out: show_episodes(out, [around])).splitlines()
    assert told[:2] == ["✎ m1  nightly @3-4  #deploy  ann  2026-01-22 11:00:00", "    the deploy needs the VPN"]
    assert told[3].split() == ["3", "builder", "Bash", "✗", "error", "make", "deploy"]


def test_a_reflection_names_each_part() -> None:
    """Statements stand under their topic with who said them; what recurs, conflicts, was replaced or is asked follows."""
    text = s.draw(lambda out: show_reflection(out, s.reflection()), width=120)

    assert text.startswith("── memory  deploy  2 episodes, 1 session")
    for part in (
        "the deploy needs the VPN  ann  2026-01-22 11:00:00  nightly @3", "the deploy works without the VPN  unsigned",
        "without a topic", "Said more than once", "2× needs the VPN  in 1 session", "Does not seem to agree", "one denies it",
        "newer  the deploy needs the VPN", "older  the deploy works without the VPN", "Superseded", "deploy by ftp",
        "Still asked", "kept as m7",
    ):  # fmt: skip
        assert part in text
    bare = s.draw(lambda out: show_reflection(out, s.reflection(recurring=[], contradictions=[], superseded=[], questions=[])))
    assert not any(part in bare for part in ("Said more", "agree", "Superseded", "Still asked"))


def test_without_an_option_for_the_text_a_session_tells_it_itself() -> None:
    """``memory retain --session`` alone keeps what the session did as an episode; an entry beside it asks for a text."""
    kept = run("memory", "retain", "--session", "healthy", "--json").envelope["data"]

    assert kept["session"] == "healthy"
    assert kept["text"].strip()
    asked = run("memory", "retain", "--session", "healthy", "--entry", "1")
    assert (asked.code, asked.err.splitlines()[0]) == (2, "ctxmgr: Memory text cannot be empty")


@pytest.mark.requirement("FR-012", "FR-022", "FR-024")
def test_notes_are_listed_and_searched_as_text() -> None:
    """``note list`` and ``note search`` show the same rows to people; a tag chooses among them."""
    assert run("note", "add", "healthy@2", "-m", "it broke here", "-t", "routing", "--author", "bo").code == 0
    listed, found = run("note", "list", "--session", "healthy"), run("note", "search", "broke", "--session", "healthy")

    assert (listed.code, found.code) == (0, 0)
    assert "flaky" in listed.out
    assert "it broke here" in listed.out
    assert "flaky" not in found.out
    assert "it broke here" in found.out
    tagged = run("note", "list", "--session", "healthy", "-t", "diagnostic")
    assert "flaky" in tagged.out
    assert "it broke here" not in tagged.out


def test_memory_of_a_log_file_is_kept_in_the_log(tmp_path: Path) -> None:
    """In a ``.jsonl`` history an episode is one more line, and a new process recalls it."""
    log = tmp_path / "run.jsonl"
    exported = run("export", "--all-sessions", "--output", str(log))
    assert exported.code == 0
    lines = log.read_bytes().count(b"\n")
    _kept("deploy by rsync", "--store", str(log), "--session", "healthy")

    assert log.read_bytes().count(b"\n") == lines + 1
    ran = process("memory", "recall", "deployed", "--store", str(log), "--json")
    assert [row["text"] for row in ran.envelope["data"]] == ["deploy by rsync"]


def test_the_first_memory_of_a_project_is_kept(empty_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of the help works in an empty folder: the store is made there, and the text is recalled."""
    monkeypatch.delenv("CTXMGR_STORE", raising=False)
    kept = run("memory", "retain", "deploys need the VPN", "--json")

    assert (kept.code, kept.envelope["data"]["session"]) == (0, "memory")
    assert (empty_project / ".ctxmgr" / "history.db").exists()
    assert "VPN" in run("memory", "recall", "deploy").out
