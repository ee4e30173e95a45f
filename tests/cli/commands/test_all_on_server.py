"""Every command on a store on a server: the answers are those that a local database gives."""

from __future__ import annotations

import json
import os
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxmgr.log.codec import encode
from ctxmgr.log.ids import now
from ctxmgr.store import open_store
from ctxmgr.store.engine.postgresql_schema import LATEST
from tests import postgresql_server
from tests.builders import at, entry, entry_id, event, result, steps, write
from tests.frontends import invoke
from tests.store.divided import Divided

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("sessions",), ("list",), ("list", "-n", "2", "--offset", "1", "-r"), ("list", "--kind", "all"),
    ("list", "--status", "error"),
    ("trace", "Bash"), ("search", "parser"), ("search", "a", "--all-sessions"), ("show", "loop@1"), ("show", "loop@99"),
    ("messages",), ("detect",), ("detect", "--all-sessions"), ("recover", "--session", "loop", "--no-llm"),
    ("request", "--type", "introspect", "--from", "coder", "--reason", "r", "--goal", "g", "--session", "loop", "--no-llm"),
    ("note", "add", "1", "2", "-m", "the same", "-t", "tag", "--session", "loop"), ("note", "list"), ("note", "search", "same"),
    ("snapshot", "create", "1", "--summary", "s", "--reasoning", "r", "--session", "loop"), ("snapshot", "list"),
    ("context", "set", "colour", "blue", "--create"), ("context", "get"), ("access", "load", "default"), ("access", "list"),
    ("execution", "record", "coder", "started", "--task", "t"), ("execution", "list"),
    ("memory", "retain", "remember this", "--entry", "loop@1"), ("memory", "recall", "remember"),
    ("verify",), ("index",), ("search", "parser", "--all-sessions"), ("list", "--as", "coder"),
    ("search", "parser", "--as", "coder"),
    ("context", "need", "list"), ("version", "list"), ("artifact", "list"), ("context", "assemble", "coder"),
    ("artifact", "put", __file__, "--agent", "coder", "-m", "one"), ("artifact", "put", __file__, "--agent", "coder"),
    ("artifact", "put", postgresql_server.__file__, "--agent", "coder", "--name", "test_all_on_server.py"),
    ("artifact", "get", "coder/test_all_on_server.py", "--version", "1"), ("artifact", "get", "coder/nothing.py"),
    ("artifact", "list"), ("artifact", "list", "--as", "tester"), ("artifact", "log", "coder/test_all_on_server.py"),
    ("artifact", "diff", "coder/test_all_on_server.py"), ("version", "create", "-m", "three"),
    ("version", "rollback", "1", "--reason", "r"), ("version", "list"), ("context", "need", "add", "coder", "coder/*"),
    ("context", "assemble", "coder", "--max-tokens", "2000", "--plan"), ("context", "assemble", "coder", "--plan"),
    ("version", "prune", "--keep-versions", "1", "--keep-days", "0"), ("artifact", "list"),
)  # fmt: skip
"""Commands in an order, for some of them write."""

SUMS: tuple[tuple[str, ...], ...] = (
    ("stats",), ("stats", "--by", "agent"), ("stats", "--by", "day", "--session", "loop"), ("sql", "--views"),
    ("sql", "SELECT count(*) AS n FROM entries; "), ("stats", "--status", "error", "--since", "2020-01-01"),
    ("sql", "SELECT session, idx, action, status, error FROM entries WHERE idx >= ? ORDER BY 1, 2", "--value", "1"),
    ("sql", "SELECT kind, count, first FROM findings"), ("sql", "SELECT idx FROM entries ORDER BY session, idx", "-n", "2"),
    ("sql", "SELECT session, last, failed FROM sessions ORDER BY 1", "--as", "coder"), ("sql", "DELETE FROM entries"),
    ("sql", ""), ("sql", "SELECT 1; SELECT 2"), ("sql", "SELECT day, input_tokens FROM usage_by_day WHERE responses > 99"),
)  # fmt: skip
"""Commands that ask with SQL, spelled as a database and a server both take it."""

_CHANGING = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|20\d\d-\d\d-\d\dT[0-9:.]+Z|[0-9a-f]{16,64}|ctx-[0-9a-z]+"
)


def filled(location: str, odd: str = "Odd\ud800") -> None:
    """Fill a store with a session that goes in circles and one that does not, with an odd action."""
    store = open_store(location, create=True)
    store.append(
        [
            {"v": 1, "kind": "session", "session": "loop", "process": "p", "workflow": "w", "ts": "2026-01-22T10:00:00Z"},
            *steps("loop", ["!Bash:make parser -> error in parser.c"] * 5),
            {
                "v": 1,
                "kind": "event",
                "session": "loop",
                "id": "m",
                "type": "message",
                "agent": "coder",
                "data": {"text": "a\0b"},
            },
            *steps("fine", ["Read:a", "Edit:b", "Bash:c"]),
            entry("fine", 99, odd, {"ünï": "\u0130stanbul", "n": 1e300}),
        ]
    )
    store.close()


def asked(location: str, *command: str) -> tuple[int, Any]:
    """Return exit code and envelope of a command, without what is never twice the same."""
    ran = invoke([*command, "--store", location, "--json"])
    assert ran.exception is None or isinstance(ran.exception, SystemExit), (command, ran.exception)
    text = ran.stdout.replace(json.dumps(location)[1:-1], "STORE").replace(location, "STORE").replace("'STORE'", "STORE")
    names: dict[str, str] = {}
    return ran.exit_code, json.loads(_CHANGING.sub(lambda found: names.setdefault(found.group(), f"<{len(names)}>"), text))


@pytest.mark.slow
def test_every_command_answers_as_on_a_database(tmp_path: Path, server_url: str) -> None:
    """Reading, noting, judging, recovering and asking as an agent give the same answers, also one after the other."""
    local = str(tmp_path / "history.db")
    for location in (local, server_url):
        filled(location)
    for command in COMMANDS:
        here, there = asked(local, *command), asked(server_url, *command)
        if command == ("verify",):  # no machine keeps an anchor of a server's store
            for _, envelope in (here, there):
                envelope["data"].update(checked=None, unchecked=None)
        assert there == here, command


@pytest.mark.parametrize("command", SUMS)
def test_sums_and_queries_answer_as_on_a_database(tmp_path: Path, server_url: str, command: tuple[str, ...]) -> None:
    """What is asked with SQL that both understand has the same answer, with code and words of refusal."""
    local = str(tmp_path / "history.db")
    for location in (local, server_url):
        filled(location, odd="Odd")
    (code, here), (coded, there) = asked(local, *command), asked(server_url, *command)
    for envelope in (here, there):
        if envelope["error"] is not None:
            envelope["error"].update(message=None, hint=None)
    assert (coded, there) == (code, here)


@pytest.mark.slow
def test_sums_and_queries_answer_the_same_behind_a_pooler(pooled: str, server_url: str) -> None:
    """A pooler that gives each transaction another connection changes no answer, no code and no word of refusal."""
    filled(pooled, odd="Odd")
    for command in SUMS:
        assert asked(pooled, *command) == asked(server_url, *command), command


texts = st.text(st.sampled_from("aB1 %_\\\"'\n\t\0é\u0130ß\u0301\ufdd0\U0010ffff\ud800"), min_size=1, max_size=6)
"""Texts of what a store, a server, JSON or a search could take for something else."""

drawn = st.lists(
    st.tuples(st.sampled_from(["a", "b", "ä\0"]), st.sampled_from(["open", "ok", "error", "late", "said", "noted"]), texts),
    min_size=1, max_size=40,
)  # fmt: skip


def history(steps_: list[tuple[str, str, str]]) -> list[dict[str, Any]]:
    """Return the records of sessions that go on side by side."""
    records: list[dict[str, Any]] = []
    for number, (session, kind, text) in enumerate(steps_):
        if kind == "said":
            records.append(event(session, number, "message", {"text": text}, agent=text))
        elif kind == "noted":
            records.append({"v": 1, "kind": "note", "session": session, "ts": at(number), "id": f"{session}-n{number}",
                            "entries": [entry_id(session, max(0, number - 1))], "content": text, "tags": [text]})  # fmt: skip
        else:
            done = {"status": kind, "output": text} if kind in ("ok", "error") else {}
            records.append(entry(session, number, f"Act{number % 3}", {"text": text}, **done))
            records += [result(session, number, {"said": text})] if kind == "late" else []
    return records


@pytest.mark.slow
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(drawn, texts)
def test_any_history_answers_the_same_everywhere(
    tmp_path_factory: pytest.TempPathFactory, steps_: list[tuple[str, str, str]], needle: str
) -> None:
    """From a log to a database, a server and a log again all is byte for byte, and every reading tool answers the same."""
    folder, records = tmp_path_factory.mktemp("any"), history(steps_)
    log, local, back = (str(folder / name) for name in ("a.jsonl", "history.db", "b.jsonl"))
    Path(log).write_bytes(b"".join(encode(each) + b"\n" for each in records))
    server = postgresql_server.fresh_database(os.environ.get("PYTEST_XDIST_WORKER", "alone"))
    for source, target in ((log, local), (local, server)):
        lines = b"".join(encode(each) + b"\n" for each in contents(source))
        assert invoke(["record", "--store", target], given=lines).exit_code == 0
    Path(back).write_bytes(b"".join(encode(each) + b"\n" for each in contents(server)))
    assert Path(back).read_bytes() == Path(log).read_bytes()
    for command in (
        ("sessions",), ("list", "--kind", "all", "-n", "7", "--offset", "3"), ("list", "--status", "error"),
        ("list", "--agent", "coder"), ("trace", "Act1"), ("search", needle, "--all-sessions"), ("search", needle),
        ("messages",), ("show", "@0"), ("note", "list"), ("note", "search", needle),
        ("detect", "--all-sessions", "--now", at(99)),
    ):  # fmt: skip
        assert asked(server, *command) == asked(local, *command), command


def contents(location: str) -> list[dict[str, Any]]:
    """Return the records of a store, in their order, without sums."""
    with closing(open_store(location, readonly=True)) as store:
        return list(store.sessions.records(None))


def test_records_come_in_and_go_out_byte_for_byte(tmp_path: Path, server_url: str) -> None:
    """From a log to a database, to a server and to a log again every record is spelled as it was."""
    local, out = str(tmp_path / "history.db"), [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    filled(local)
    assert invoke(["export", "-o", str(out[0]), "--store", local]).exit_code == 0
    assert invoke(["record", "--store", server_url], given=out[0].read_bytes()).exit_code == 0
    assert invoke(["export", "-o", str(out[1]), "--store", server_url]).exit_code == 0
    assert out[1].read_bytes() == out[0].read_bytes()
    again = invoke(["record", "--store", server_url, "--json"], given=out[0].read_bytes())
    assert json.loads(again.stdout)["data"] == {"added": 0, "known": len(out[0].read_bytes().splitlines())}


def test_a_url_in_the_environment_or_in_ones_own_settings_is_used(
    tmp_path: Path, server_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CTXMGR_STORE and the user's own config.toml may name a server; a project's file may not."""
    filled(server_url)
    monkeypatch.setenv("CTXMGR_STORE", server_url)
    assert invoke(["show", "loop@1"]).exit_code == 0
    monkeypatch.delenv("CTXMGR_STORE")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ctxmgr.toml").write_text(f"store = {json.dumps(server_url)}\n")
    assert invoke(["show", "loop@1"]).exit_code == 3
    (tmp_path / "ctxmgr.toml").unlink()
    own = Path(monkeypatch_home()) / "ctxmgr" / "config.toml"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(f"store = {json.dumps(server_url)}\n")
    own.chmod(0o600)
    assert invoke(["show", "loop@1"]).exit_code == 0


def monkeypatch_home() -> str:
    """Return the folder of the user's own settings in this test."""
    import os

    return os.environ["XDG_CONFIG_HOME"]


def test_an_artifact_goes_to_a_server_and_comes_back(tmp_path: Path, server_url: str) -> None:
    """A file that was put is written out again byte for byte; `doctor` checks its bytes there."""
    (tmp_path / "x.bin").write_bytes(bytes(range(256)) * 9000)
    code, envelope = asked(server_url, "artifact", "put", str(tmp_path / "x.bin"), "--agent", "coder")
    assert (code, envelope["data"]["path"]) == (0, "artifacts/v1/coder/x.bin")
    assert asked(server_url, "artifact", "get", "coder/x.bin", "-o", str(tmp_path / "y.bin"))[0] == 0
    assert (tmp_path / "y.bin").read_bytes() == (tmp_path / "x.bin").read_bytes()
    (check,) = (each for each in asked(server_url, "doctor")[1]["data"] if each["name"] == "store.artifacts")
    assert (check["level"], check["finding"]) == ("ok", "versions: 1, every content verified")
    assert {path.name for path in tmp_path.iterdir()} >= {"x.bin", "y.bin"}
    assert not (tmp_path / "artifacts").exists()


SECRET_PLACES = (
    "postgresql://me:geheim@127.0.0.1:1/x", "postgresql://me:%67eheim@127.0.0.1:1/x?password=geheim",
    "postgresql://me:a/geheim@127.0.0.1:1/x", "postgresql://me:1?geheim@127.0.0.1:1/x", "postgresql://me:a#geheim@127.0.0.1:1/x",
    "postgresql://me:a@geheim/x@127.0.0.1:1/x", "postgresql://me:geh%zzgeheim@127.0.0.1:1/x",
    "postgresql+psycopg://me:geheim@127.0.0.1:1/x", "POSTGRESQL://me:geheim@127.0.0.1:1/x", "postgresql:me:geheim@db/x",
    "host=127.0.0.1 port=1 user=me password=geheim dbname=x", "user=me password = 'geheim' host=127.0.0.1",
    "jdbc:postgresql://db/x?user=me&password=geheim", "mysql://me:geheim@db/x",
)  # fmt: skip
"""Ways to name a server with a password, right and wrong."""


@pytest.mark.parametrize(
    "command",
    [("list",), ("doctor",), ("config",), ("ship", "run.jsonl"), ("ship", "--status"), ("record",), ("store", "init"),
     ("import", "run.jsonl"), ("note", "add", "1", "-m", "x"), ("verify", "--json"), ("sessions",)],
    ids=" ".join,
)  # fmt: skip
def test_no_password_is_ever_printed_or_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> None:
    """A location with a password is refused; nothing that is printed repeats it, and no file is named by it or holds it."""
    monkeypatch.chdir(tmp_path)
    write(open_store("run.jsonl", create=True), "s", ["Bash:a"])
    for place in SECRET_PLACES:
        ran = invoke([*command, "--store", place])
        monkeypatch.setenv("CTXMGR_STORE", place)
        named = invoke([*command])
        monkeypatch.delenv("CTXMGR_STORE")
        for each in (ran, named):
            assert "geheim" not in each.output, place
            assert each.exception is None or isinstance(each.exception, SystemExit), place
    for path in (*tmp_path.rglob("*"), *Path(os.environ["HOME"]).rglob("*")):
        assert "geheim" not in path.name
        assert not path.is_file() or b"geheim" not in path.read_bytes(), path


def test_doctor_tells_of_the_server_and_of_what_is_shipped(tmp_path: Path, server_url: str) -> None:
    """Version, user, encryption and clock of the server are told, and how far each log of this machine is."""
    log = tmp_path / "run.jsonl"
    filled(str(log))
    assert asked(server_url, "ship", str(log))[0] == 0
    code, envelope = asked(server_url, "doctor")
    found = {check["name"]: check for check in envelope["data"]}
    assert code == 0
    assert found["store.server"]["detail"]["trigrams"] is True
    assert found["store.server"]["detail"]["encrypted"] is None
    assert found["ship"]["detail"]["lag"] == 0


def test_shipping_to_itself_is_refused(tmp_path: Path) -> None:
    """A store is no source of itself."""
    filled(str(tmp_path / "a.db"))
    code, envelope = asked(str(tmp_path / "a.db"), "ship", str(tmp_path / "a.db"))
    assert (code, envelope["error"]["kind"]) == (2, "invalid")


def test_watching_a_server_follows_all_its_sessions(tmp_path: Path, server_url: str) -> None:
    """Without a session all that went on lately are followed, an empty store too; sharing them needs a server."""
    open_store(server_url, create=True).close()
    assert invoke(["watch", "--once", "--service", "--store", server_url]).exit_code == 0
    store = open_store(server_url)
    for name in ("a", "b"):
        store.append([entry(name, number, "Bash", {"command": "ls"}, ts=now()) for number in range(2)])
    store.close()
    ran = invoke(["watch", "--once", "--json", "--service", "--store", server_url])
    assert {json.loads(line)["session"] for line in ran.stdout.splitlines()} == {"a", "b"}
    filled(str(tmp_path / "a.db"))
    refused = invoke(["watch", "--once", "--service", "--store", str(tmp_path / "a.db")])
    assert (refused.exit_code, "--service needs a store on a server" in refused.stderr) == (2, True)


def told(location: str, *command: str) -> tuple[int, Any]:
    """Return exit code and envelope of a command about a store on a server."""
    ran = invoke([*command, "--store", location, "--json"])
    assert ran.exception is None or isinstance(ran.exception, SystemExit), (command, ran.exception)
    return ran.exit_code, json.loads(ran.stdout)


@pytest.mark.parametrize("command", [("sessions",), ("store", "teams"), ("store", "grant", "alice"), ("store", "migrate")])
def test_that_there_is_no_store_yet_is_told_in_one_way(command: tuple[str, ...]) -> None:
    """Whoever asks hears the same, and which command makes it."""
    code, envelope = told(Divided(os.environ.get("PYTEST_XDIST_WORKER", "alone")).url("owner"), *command)
    assert (code, envelope["error"]["kind"]) == (3, "notFound")
    assert "no store at" in envelope["error"]["message"]
    assert envelope["error"]["hint"] == "make it: ctxmgr store init --store URL; a first command that records does so too"


def test_an_owner_sets_up_teams_from_the_command_line() -> None:
    """Made, granted, listed and revoked: each says what it did, and the roles see what they were granted and no more."""
    made = Divided(os.environ.get("PYTEST_XDIST_WORKER", "alone"))
    owner, alice, bob = made.url("owner"), made.roles["alice"], made.roles["bob"]
    for before in (0, LATEST):
        code, answer = told(owner, "store", "init")
        assert (code, answer["data"]) == (0, {"before": before, "now": LATEST})
    code, first = told(owner, "store", "grant", alice, "--team", "one")
    assert (code, first["data"]) == (0, {"role": alice, "team": "one", "writes": True, "removes": False})
    assert "see nothing" in first["warnings"][0]
    code, refused = told(owner, "store", "grant", bob, "--team", "two", "--reader", "--keeper")
    assert (code, refused["error"]["kind"], refused["error"]["hint"]) == (2, "invalid", "leave out --reader or --keeper")
    code, second = told(owner, "store", "grant", bob, "--team", "two", "--reader")
    assert (code, second["data"], second["warnings"]) == (
        0, {"role": bob, "team": "two", "writes": False, "removes": False}, []
    )  # fmt: skip
    for role, refusal in ((alice, 0), (bob, 4)):
        url = made.url("alice" if role == alice else "bob")
        ran = invoke(["record", "--store", url], given=json.dumps(entry("s", 1, "Bash", {"command": "x"})) + "\n")
        assert ran.exit_code == refusal, ran.output
    assert [told(made.url(name), "sessions")[1]["data"] == [] for name in ("alice", "bob")] == [False, True]
    code, listed = told(owner, "store", "teams")
    assert [tuple(row.values()) for row in listed["data"]] == [
        ("default", None, None, None), ("one", alice, True, False), ("two", bob, False, False)
    ]  # fmt: skip
    shown = invoke(["store", "teams", "--store", owner])
    assert shown.stdout.splitlines() == ["default: no role", f"one: {alice} (writer)", f"two: {bob} (reader)"]
    assert told(owner, "store", "revoke", alice)[0] == 0
    assert told(made.url("alice"), "sessions")[1]["error"]["kind"] == "denied"
    assert told(made.url("bob"), "store", "teams")[1]["error"]["kind"] == "denied"
