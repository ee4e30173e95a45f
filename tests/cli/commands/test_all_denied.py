"""What an agent may not read is not there: every command answers to the byte as over a store that never held it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ctxmgr.log.codec import Record
from ctxmgr.store import open_store
from ctxmgr.store.read_query import NAMES
from ctxmgr.types.plain_records import build
from tests.frontends import invoke

_CHANGING = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"), "<id>"),
    (re.compile(r"20\d\d-\d\d-\d\dT[\d:.]+(Z|\+00:00)"), "<time>"),
)
_SECRET = "mole"

READS: tuple[tuple[str, ...], ...] = (
    ("list",), ("list", "--kind", "all"), ("list", "--session", "s1"), ("list", "--session", "s2"), ("list", "--agent", "mole"),
    ("list", "--limit", "1"), ("list", "--offset", "1"), ("list", "--newest-first"), ("trace",), ("trace", "--agent", "mole"),
    ("trace", "Dig"), ("search", "tunnel"), ("search", "o", "--all-sessions"), ("search", "o", "--limit", "1"),
    ("show", "s1@0"), ("show", "s1@1"), ("show", "s1@2"), ("show", "s1@-1"), ("show", "s1@9"), ("show", "m1"), ("show", "m9"),
    ("messages",), ("messages", "s1@1"), ("messages", "m1"), ("note", "list", "--all-sessions"), ("note", "search", "tunnel"),
    ("snapshot", "list", "--session", "s1"), ("snapshot", "show", "snap-m", "--session", "s1"), ("snapshot", "show", "snap-x"),
    ("sessions",), ("sessions", "--agent", "mole"), ("detect", "--all-sessions", "--exit-zero"), ("detect", "--session", "s2"),
    ("recover", "--plan", "--session", "s1"), ("recover", "--plan", "--session", "s2"), ("memory", "recall", "tunnel"),
    ("memory", "reflect", "tunnel"), ("export", "--all-sessions"), ("export", "--session", "s2"), ("execution", "list"),
    ("execution", "list", "--agent", "mole"), ("artifact", "list"), ("artifact", "get", "mole/tunnel.md"),
    ("artifact", "get", "mole/other.md"), ("artifact", "get", "reader/plan.md"), ("artifact", "log", "mole/tunnel.md"),
    ("artifact", "log", "mole/other.md"), ("artifact", "diff", "mole/tunnel.md"), ("artifact", "diff", "mole/other.md"),
    ("artifact", "get", "mole/tunnel.md", "--version", "1"), ("artifact", "get", "reader/plam.md"),
    ("artifact", "list", "--agent", "mole"), ("version", "list"), ("context", "get"), ("context", "get", "mole/key"),
    ("context", "get", "mole/kex"), ("context", "request", "reader", "mole/tunnel.md", "reader/plan.md"),
    ("context", "request", "reader", "mole/tunnel.md"), ("context", "request", "reader", "mole/other.md"),
    ("context", "assemble", "reader", "--plan"), ("context", "assemble", "reader", "--plan", "--with", "mole/tunnel.md"),
    ("context", "assemble", "reader", "--plan", "--with", "entry:m1"), ("context", "why", "mole/tunnel.md"),
    ("stats",), ("stats", "--by", "agent"), ("stats", "--by", "session"), ("stats", "s2"),
    *(("sql", f"SELECT * FROM {name}") for name in NAMES), *(("sql", f"SELECT count(*) FROM {name}") for name in NAMES),
    ("sql", "SELECT count(*) FROM record"), ("sql", "SELECT count(*) FROM session"), ("sql", "SELECT max(rowid) FROM record"),
    ("sql", "SELECT value FROM state"), ("sql", "SELECT rowid FROM entries"), ("sql", "SELECT * FROM waiting"),
    ("sql", "SELECT name FROM sqlite_master"), ("sql", "SELECT seq FROM event"), ("sql", "SELECT * FROM search_term"),
    ("sql", "SELECT max(number) FROM milestone"), ("sql", "SELECT * FROM entries ORDER BY rowid DESC"),
    ("list", "--session", "s"), ("list", "--session", "p2"), ("list", "--process", "p2"), ("show", "m"), ("show", "e"),
    ("search", "tunnel", "--kind", "all", "--all-sessions"), ("search", "m1", "--all-sessions"), ("note", "show", "n1"),
    ("note", "list", "--tag", "memory", "--all-sessions"), ("snapshot", "show", "snap"), ("snapshot", "show", "snap-q"),
    ("recover", "--last", "--session", "s1"), ("show", "c1"), ("messages", "--session", "s2"), ("verify",),
    ("detect", "--explain", "m1"), ("detect", "--explain", "1", "--session", "s1"), ("goal", "list"),
    ("sessions", "--limit", "1"),
)  # fmt: skip
"""Every command that reads, asked for what is hidden, for what is not there, and for what may be read."""


def _entry(session: str, identity: str, agent: str, action: str, text: str) -> list[Record]:
    return [
        build("entry", session, "2026-01-01T00:00:00Z", id=identity, agent=agent, action=action, input={"text": text}),
        build("result", session, "2026-01-01T00:00:01Z", entry=identity, status="ok", output=f"{text} done"),
    ]


def _told(secret: bool) -> dict[str, str]:
    """Return what a session says of itself: also in the words of a person and of all that was said."""
    return {"cwd": "/w", **({"title": "dig a tunnel", "summary": "a tunnel was dug"} if secret else {})}


def _records(secret: bool) -> list[Record]:
    links = ["r2", "m1"] if secret else ["r2"]
    bundle = {"summary": "tunnel", "reasoning": "", "hash": "0"}
    cause = {"evidence": [{"entry": "m1", "text": "tunnel"}]}
    rows: list[tuple[bool, list[Record]]] = [
        (False, [build("session", "s1", "2026-01-01T00:00:00Z", process="p1", meta=_told(secret))]),
        (False, _entry("s1", "r1", "reader", "Read", "one")),
        (True, _entry("s1", "m1", _SECRET, "Dig", "tunnel one")),
        (True, [build("event", "s1", None, id="e1", type="message", agent=_SECRET, data={"text": "tunnel talk"})]),
        (False, _entry("s1", "r2", "reader", "Read", "two")),
        (True, _entry("s1", "m2", _SECRET, "Dig", "tunnel two")),
        (True, [build("note", "s1", None, id="n1", entries=["m1"], content="tunnel note", tags=["memory"])]),
        (True, [build("note", "s1", None, id="n2", entries=["m1", "r1"], content="tunnel both", tags=["memory"])]),
        (False, [build("note", "s1", None, id="n3", entries=["r1"], content="a plain note", tags=["memory"])]),
        (False, [build("note", "s1", None, id="n4", entries=["r1"], content="linked", links=links)]),
        (True, [build("event", "s1", None, id="u1", type="user_message", data={"text": "dig the tunnel"})]),
        (True, [{**build("snapshot", "s1", None, id="snap-q", entries=["r1"], **bundle), "sources": ["u1"]}]),
        (True, [build("continuation", "s1", None, id="c1", target="reader", context={"prompt": "tunnel"}, diagnosis=cause)]),
        (True, [build("snapshot", "s1", None, id="snap-m", entries=["m1"], summary="tunnel", reasoning="", hash="0")]),
        (True, [build("session", "s2", None, process="p2", meta={"title": "tunnel"})]),
        *((True, _entry("s2", f"l{number}", _SECRET, "Dig", "again")) for number in range(6)),
    ]
    return [record for hidden, group in rows if secret or not hidden for record in group]


def _run(place: Path, *words: str, agent: str | None = "reader") -> tuple[int, str, str]:
    asking = () if agent is None else ("--as", agent)
    done = invoke([*words, *asking, "--store", str(place)])
    texts = [done.stdout.replace(str(place), "<store>"), done.stderr.replace(str(place), "<store>")]
    for pattern, sign in _CHANGING:
        texts = [pattern.sub(sign, text) for text in texts]
    return done.exit_code, texts[0], texts[1]


def _world(folder: Path, *, secret: bool) -> Path:
    folder.mkdir()
    place = folder / "history.db"
    store = open_store(str(place), create=True)
    store.append(_records(secret))
    store.close()
    (folder / "tunnel.md").write_text("# Tunnel\n\nIt goes west.\n", encoding="utf-8")
    (folder / "plan.md").write_text("# Plan\n\nRead all.\n", encoding="utf-8")
    commands: list[tuple[str, ...]] = [
        ("artifact", "put", str(folder / "plan.md"), "--agent", "base"),
        ("artifact", "put", str(folder / "tunnel.md"), "--agent", _SECRET) if secret else ("version", "create", "x"),
        ("artifact", "put", str(folder / "plan.md"), "--agent", "reader"),
        ("context", "set", "current_sprint", "S1"),
        ("access", "allow", "reader", "history", "self"),
        ("access", "allow", "reader", "artifact", "self"),
        ("access", "allow", "reader", "context", "project/*"),
        ("context", "need", "add", "reader", "mole/*", "--need", "if_exists"),
        ("context", "need", "add", "reader", "reader/*", "--need", "required"),
    ]
    if secret:
        commands += [
            ("context", "set", "mole/key", "west", "--create"),
            ("execution", "record", _SECRET, "started", "--id", "run-m"),
            ("execution", "record", _SECRET, "completed", "--id", "run-m"),
        ]
    for words in commands:
        code, out, err = _run(place, *words, agent=None)
        assert code == 0, (words, out, err)
    return place


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Make the same store twice: with what the reader may not see, and without it ever having been there."""
    folder = tmp_path_factory.mktemp("denied")
    return _world(folder / "with", secret=True), _world(folder / "without", secret=False)


@pytest.mark.parametrize("words", READS, ids=" ".join)
@pytest.mark.parametrize("form", ["--json", None])
@pytest.mark.requirement("R-16", "003-A5")
def test_a_hidden_thing_reads_as_one_that_never_was(
    worlds: tuple[Path, Path], words: tuple[str, ...], form: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Output, talk and exit code are the same over both stores, and neither speaks of what is hidden."""
    monkeypatch.chdir(tmp_path)
    asked = words if form is None or words[0] == "export" else (*words, form)

    with_it, without = (_run(place, *asked) for place in worlds)

    assert with_it == without
    told = "".join(word for word in words if "mole" not in word and "tunnel" not in word)
    if told == "".join(words):
        assert _SECRET not in with_it[1] + with_it[2]
        assert "unnel" not in with_it[1] + with_it[2]


@pytest.mark.requirement("003-A14")
def test_every_denial_is_in_the_log(worlds: tuple[Path, Path]) -> None:
    """Asking for what is hidden leaves an event that says who asked for what by which command."""
    before = open_store(str(worlds[0]))
    count = len(before.shared.events("project_access"))
    before.close()

    for words in (("artifact", "get", "mole/tunnel.md"), ("show", "m1"), ("context", "get", "mole/key")):
        assert _run(worlds[0], *words)[0] == 3

    after = open_store(str(worlds[0]))
    told = [record["data"] for record in after.shared.events("project_access")][count:]
    after.close()
    assert [(data["agent"], data["command"], bool(data["failed"] or data["denied"])) for data in told] == [
        ("reader", "artifact get", True), ("reader", "show", True), ("reader", "context get", True),
    ]  # fmt: skip


def test_the_operator_sees_what_is_hidden_from_the_reader(worlds: tuple[Path, Path]) -> None:
    """The two stores do differ, and the reader's own part is there: nothing above holds for want of content."""
    for words, own in (
        (("list", "--session", "s1"), "Read"), (("artifact", "list"), "plan.md"), (("search", "o", "--all-sessions"), "one"),
        (("context", "get"), "S1"), (("note", "list", "--all-sessions"), "a plain note"),
    ):  # fmt: skip
        assert _run(worlds[0], *words, agent=None) != _run(worlds[1], *words, agent=None)
        assert own in _run(worlds[0], *words)[1]


@pytest.mark.parametrize("agent", ["*", "self", "user", "project", "", "a\nb"])
@pytest.mark.parametrize("there", [True, False])
def test_names_that_are_no_agents_cant_ask(
    worlds: tuple[Path, Path], agent: str, there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a name that rules mean something else by nobody asks, whether there is a store or not."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CTXMGR_STORE", str(worlds[0]) if there else "")

    done = invoke(["list", "--json", "--as", agent])

    assert done.exit_code == 2
    assert '"kind":"invalid"' in done.stdout
