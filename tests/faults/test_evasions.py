"""Ways around the guards that got through when they were first tried, each by what it was tried on."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from ctxmgr.base import paths
from ctxmgr.cli.fast import rows
from ctxmgr.config import load_config
from ctxmgr.errors import Damaged, InvalidInput
from ctxmgr.history.open_history import open_history, require_record
from ctxmgr.log import anchor
from ctxmgr.store import open_store
from ctxmgr.store.engine.sqlite import SqliteEngine
from ctxmgr.workspace import Workspace
from tests import builders as b
from tests.cli.console import run

SECRET = "ghp_" + "a1B2" * 9

TABLES = {
    "status": "UPDATE entry SET status = 'ok', result = NULL WHERE idx = 3",
    "action": "UPDATE entry SET action = 'Other' WHERE idx = 3",
    "agent": "UPDATE entry SET agent = 'somebody' WHERE idx = 3",
    "result of another": "UPDATE entry SET result = (SELECT result FROM entry WHERE idx = 1) WHERE idx = 2",
    "row gone": "DELETE FROM entry WHERE idx = 5",
    "fewer entries": "UPDATE session SET entries = 3",
    "renamed session": "UPDATE session SET id = 'other'",
    "time": "UPDATE record SET ts = ts + 31536000",
    "kind": "UPDATE record SET kind = 'event' WHERE seq = 5",
    "id": "UPDATE record SET id = 'zzz' WHERE seq = 5",
    "tag": "INSERT INTO note_tag (session, tag, note) VALUES (1, 'approved', 1)",
    "rule": "INSERT INTO access_rule (agent, resource, pattern, permission, priority) VALUES ('eve', 'a', '*', 'write', 9)",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder to work in, with a home of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def _log(place: Path, text: bytes | None = None) -> Path:
    lines = "".join(json.dumps(record) + "\n" for record in b.steps("s", ["Bash:ls -> same"] * 6))
    place.write_bytes(lines.encode() if text is None else text)
    return place


@pytest.mark.parametrize("change", TABLES)
def test_tables_that_do_not_follow_from_the_records_are_told(change: str, home: Path) -> None:
    """Sums cover the records alone; a table that says otherwise would answer every query (S4)."""
    place = str(home / "history.db")
    with closing(open_store(place, create=True)) as store:
        store.append(b.steps("s", ["Bash:ls -> same"] * 6))
        assert store.examine().damaged == []
        with store.engine.transaction():
            store.engine.execute(TABLES[change])

    with closing(open_store(place, readonly=True)) as store:
        assert {item.kind for item in store.examine().damaged} == {"altered"}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("CREATE TRIGGER quiet AFTER INSERT ON record BEGIN DELETE FROM entry WHERE idx = 0; END", "inserted"),
        ("CREATE VIEW artifacts AS SELECT 'fine' AS name", "altered"),
    ],
)
def test_programs_in_a_database_are_told(change: str, kind: str, home: Path) -> None:
    """A trigger changes what is written from now on, a view of ours what is read, and no sum tells (S4)."""
    place = str(home / "history.db")
    with closing(open_store(place, create=True)) as store:
        store.append(b.steps("s", ["Bash:ls -> same"] * 6))
        with store.engine.transaction():
            store.engine.execute("CREATE VIEW my_own AS SELECT count(*) AS n FROM entry")
        assert store.examine().damaged == []
        with store.engine.transaction():
            if kind == "altered":
                store.engine.execute("DROP VIEW artifacts")
            store.engine.execute(change)

    with closing(open_store(place, readonly=True)) as store:
        assert [item.kind for item in store.examine().damaged] == [kind]
    assert run("verify", place).code == 5


def test_a_link_to_a_log_makes_no_folder_where_it_leads(home: Path) -> None:
    """A checkout that holds a link, or a folder that is one, would choose where its reader writes an index (S7)."""
    outside = home.parent / "outside"
    (outside / "logs").mkdir(parents=True)
    _log(outside / "logs" / "run.jsonl")
    (home / "run.jsonl").symlink_to(outside / "logs" / "run.jsonl")
    (home / "logs").symlink_to(outside / "logs")
    before = sorted(outside.rglob("*"))

    for named in ("run.jsonl", "logs/run.jsonl", str(home / "run.jsonl")):
        assert run("list", named, "--status", "ok").out.count("Bash") == 6
    assert run("check", ".").code == 10
    assert sorted(outside.rglob("*")) == before


def test_a_relative_home_is_no_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With HOME=. a checkout would hold the user's settings, the trust and the anchors (S1)."""
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "here")
    monkeypatch.setenv("HOME", ".")

    assert os.path.isabs(paths.user_file(os.environ))
    assert os.path.isabs(anchor.anchor_folder())
    assert not Path(anchor.anchor_folder()).is_relative_to(home)


def test_what_another_user_planted_above_is_not_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below /tmp anybody may plant a store that takes everybody's history, or settings that hide every loop (S1, S17)."""
    _log(home / "run.jsonl")
    (home / "ctxmgr.toml").write_text("[detect]\nrepeat_rounds = 60\n")
    monkeypatch.delenv(paths.STORE_VARIABLE, raising=False)
    with Workspace.open(create=True) as workspace:
        workspace.store.append(b.steps("s", ["Bash:ls -> same"] * 6))
    inner = home / "mine"
    inner.mkdir()
    monkeypatch.chdir(inner)
    asked, me = os.stat, os.geteuid()

    def stat(path: str | os.PathLike[str] | int, **how: bool) -> os.stat_result:
        found = asked(path, **how)
        owner = me if str(path).startswith(str(inner)) else me + 7
        return os.stat_result((*found[:4], owner, *found[5:]))

    monkeypatch.setattr("ctxmgr.base.paths.os.geteuid", lambda: me)
    monkeypatch.setattr("ctxmgr.base.paths.os.stat", stat)

    assert list(paths.settings_files(str(inner))) == []
    (told,) = load_config(inner).warnings()
    assert told.startswith(f"{home / 'ctxmgr.toml'} belongs to another user: left out")
    assert rows._configured_store(str(inner)) == (None, [told])  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(InvalidInput, match="another user"):
        Workspace.open()
    with pytest.raises(InvalidInput, match="another user"):
        Workspace.open(create=True)


@pytest.mark.parametrize(
    ("name", "content"),
    [("run.zst", b"\x28\xb5\x2f\xfd" + b"\xff" * 40), ("run.jsonl.gz", None), ("page.html", b"<html><body>x</body></html>")],
)
def test_what_is_no_log_is_refused_by_every_reader(name: str, content: bytes | None, home: Path) -> None:
    """Damaged zstd, a compressed log of ours and a page are no empty history: every command ends with 2 (G1)."""
    own = _log(home / "run.jsonl").read_bytes()
    (home / name).write_bytes(gzip.compress(own) if content is None else content)

    for command in (["detect"], ["list"], ["recover"], ["verify"], ["check"], ["import"], ["watch", "--once"]):
        assert run(*command, name).code == 2, command
    for command in (["sessions"], ["trace", "Bash"], ["search", "ls"], ["export"]):
        assert run(*command, "--store", name).code == 2, command


def test_a_log_of_damage_alone_is_no_empty_history(home: Path) -> None:
    """Where nothing can be read a query does not answer that there is nothing (G1)."""
    torn = _log(home / "torn.jsonl", b'{"v":1,"kind":"entry","session":"s"')

    for command in (["detect"], ["list"], ["list", "--json"], ["verify"]):
        assert run(*command, torn.name).code == 5, command
    store, _ = open_history(str(torn), explicit=True, readonly=True)
    with closing(store), pytest.raises(Damaged, match="no record"):
        require_record(store)


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (
            b'{"parentUuid":null,"isSidechain":false,"type":"user","sessionId":"a","uuid":"u","version":"2","message":{"role":"user","content":"x"}}\n',
            2,
            "ctxmgr import run.jsonl",
        ),
        (b"just a page\n", 2, "plain text"),
        (b'{"v":1,"kind":"entry","session":\n{"v":1,"kind":"ent\n', 5, "ctxmgr verify"),
    ],
)
def test_what_holds_nothing_to_ship_is_said_to(content: bytes, code: int, said: str, home: Path) -> None:
    """Shipping a log of another program, a page or damage alone brings nothing, and does not end well (G1)."""
    (home / "run.jsonl").write_bytes(content)

    told = run("ship", "run.jsonl", "--store", "ship.db")
    assert (told.code, said in told.err) == (code, True), told.err
    assert run("ship", str(_log(home / "own.jsonl")), "--store", "ship.db").code == 0


def test_a_session_of_unknown_kinds_is_not_judged(home: Path) -> None:
    """What a later program wrote is no session without trouble: alone it ends with 2, among others with 8 (G1)."""
    (home / "logs").mkdir()
    text = b"".join(b'{"v":1,"kind":"step","session":"s","id":"%d"}\n' % number for number in range(2))
    (home / "logs" / "later.jsonl").write_bytes(text)

    assert run("check", "logs").code == 2
    assert run("check", "logs/later.jsonl").code == 2
    alone = run("detect", "logs/later.jsonl")
    assert (alone.code, "no record of a known kind" in alone.out) == (8, True)
    told = run("recover", "logs/later.jsonl")
    assert (told.code, "no record of a known kind" in told.err) == (3, True)  # 21 would say that nothing is wrong
    assert run("detect", "logs/").code == 2
    good = b.steps("s", ["Bash:ls -> same"])
    (home / "logs" / "good.jsonl").write_text("".join(json.dumps(record) + "\n" for record in good))
    told = run("check", "logs")
    assert (told.code, "session s: no record of a known kind" in told.err) == (8, True)
    told = run("detect", "logs/")
    assert (told.code, "session s: no record of a known kind" in told.err) == (8, True)


@pytest.mark.parametrize("name", ["run.jsonl.1", "run.jsonl.bak", "run.log", "run.LOG", "run.txt", "run"])
def test_a_log_of_ours_is_read_whatever_it_is_called(name: str, home: Path) -> None:
    """A rotated or renamed log that loops, beside one that is sound, is judged with its folder (G2)."""
    (home / "logs").mkdir()
    good = b.steps("z", ["Read:a -> 1", "Bash:b -> 2"])
    (home / "logs" / "good.jsonl").write_text("".join(json.dumps(record) + "\n" for record in good))
    assert run("check", "logs").code == 0
    _log(home / "logs" / name)

    assert run("check", "logs").code == 10


@pytest.mark.parametrize("name", ["run.jsonl.gz", "run.gz", "run.jsonl.1.gz", "run.jsonl.xz", "logs.tar.gz"])
def test_a_packed_log_in_a_folder_is_counted_as_not_read(name: str, home: Path) -> None:
    """A rotated log that loops, packed beside one that is sound: the folder does not end well (G2)."""
    (home / "logs").mkdir()
    _log(home / "logs" / "good.jsonl", b"".join(json.dumps(each).encode() + b"\n" for each in b.steps("z", ["Read:a -> 1"])))
    own = _log(home / "run.jsonl").read_bytes()
    packed = lzma.compress(own) if name.endswith("xz") else gzip.compress(_archived(own) if "tar" in name else own)
    (home / "logs" / name).write_bytes(packed)

    for command in (["check", "logs"], ["detect", "logs/"], ["import", "logs"]):
        told = run(*command)
        assert (told.code, name in told.out + told.err) == (8, True), command


def _archived(content: bytes) -> bytes:
    with io.BytesIO() as stream:
        with tarfile.open(fileobj=stream, mode="w") as archive:
            member = tarfile.TarInfo("run.jsonl")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        return stream.getvalue()


def test_an_empty_file_that_is_named_is_no_empty_history(home: Path) -> None:
    """Whoever names a log wants it read; a store that holds nothing yet still answers as empty (G1)."""
    (home / "run.jsonl").touch()

    for command in (
        ["list"],
        ["sessions"],
        ["stats"],
        ["export"],
        ["detect"],
        ["recover"],
        ["verify"],
        ["report", "-o", "r.html"],
    ):
        assert run(*command, "run.jsonl").code == 3, command
    assert run("import", "run.jsonl").code == 2
    assert run("list", "--store", "run.jsonl", "--json").envelope["status"] == "empty"


def test_an_import_that_brings_nothing_does_not_end_well(home: Path) -> None:
    """The first line of another program's log, and nothing else: read, and yet there is no session (G2)."""
    line = b'{"type":"file-history-snapshot","messageId":"a","snapshot":{},"isSnapshotUpdate":false}\n'
    (home / "run.jsonl").write_bytes(line)

    told = run("import", "run.jsonl", "--from", "claude-code")
    assert (told.code, "nothing in what was named could be read" in told.err) == (8, True)


def test_a_damaged_part_is_not_called_judged(home: Path) -> None:
    """A loop may have stood where nobody can read any more; a line that is still being written hides nothing (G1, G3)."""
    rows = [json.dumps(record).encode() + b"\n" for record in b.steps("s", [f"Read:{n} -> {n}" for n in range(40)])]
    done = [json.dumps(b.build("sessionEnd", "s", b.at(99), outcome="completed")).encode() + b"\n"]
    (home / "logs").mkdir()
    log = _log(home / "logs" / "run.jsonl", b"".join(rows[:20]) + b"#" * 60_000 + b"\n" + b"".join(rows[60:] + done))
    name = os.path.relpath(log)

    for _ in range(2):  # the second answer is from what was kept
        told = run("detect", name, "--json").envelope
        assert (told["status"], [row["verdict"] for row in told["data"]]) == ("partial", ["healthy"])
        assert run("detect", name).code == 8
    assert run("detect", name, "--exit-zero").code == 0
    assert (run("check", name).code, run("check", "logs").code, run("detect", "logs/").code) == (8, 8, 8)
    assert run("import", name).code == 8  # some sixty records are gone, though it is one range
    log.write_bytes(b"".join(rows[:-1]) + b"".join(done) + rows[-1][:30])
    assert (run("detect", name).code, run("check", name).code, run("detect", "logs/").code) == (0, 0, 0)


def test_a_lock_or_log_with_a_second_name_is_not_written(home: Path) -> None:
    """An archive can plant a hard link to a file beside which it is unpacked: nothing of ours changes that file (S7)."""
    precious = home / "precious"
    precious.write_text("precious\n")
    for name in (".agent_context/lock", ".agent_context/history.jsonl"):
        place = home / name
        place.parent.mkdir(exist_ok=True, mode=0o700)
        place.hardlink_to(precious)

    assert run("goal", "start", "G").code == 5
    before = _log(home / "other.jsonl").read_bytes()
    (home / "run.jsonl").hardlink_to(home / "other.jsonl")
    assert run("note", "add", "0", "-m", "x", "--store", "run.jsonl").code == 5
    assert (home / "other.jsonl").read_bytes() == before
    (home / ".agent_context" / "lock").unlink()
    told = run("goal", "start", "G")
    assert (told.code, "hard link" in told.err) == (5, True)
    assert precious.read_text() == "precious\n"


def test_a_key_that_is_a_secret_is_refused(home: Path) -> None:
    """It would be masked where it is recorded, and then name another value (S6)."""
    answer = run("context", "set", SECRET, '"x"', "--create")

    assert answer.code == 2
    assert SECRET not in answer.err + answer.out


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_errors_show_no_secret(form: tuple[str, ...], home: Path) -> None:
    """What is given on the command line may be a password, and builds keep what is shown."""
    for given in ("postgresql://bob:hunter22secret@db.internal/x", "mysql://h/x?password=hunter22secret"):
        answer = run("list", "--store", given, *form)
        assert answer.code == 2
        assert "hunter22" not in answer.err + answer.out
    assert SECRET not in (told := run("show", SECRET, *form)).err + told.out


def test_an_anchor_that_is_a_pipe_is_not_waited_for(home: Path) -> None:
    """It counts as none."""
    place = home / "history.jsonl"
    with closing(open_store(str(place), create=True)) as store:
        store.append([b.entry("s", 0)])
    Path(anchor.anchor_path(str(place))).unlink(missing_ok=True)
    Path(anchor.anchor_folder()).mkdir(parents=True, exist_ok=True)
    os.mkfifo(anchor.anchor_path(str(place)))

    assert anchor.load(str(place)) is None


def test_the_index_of_somebody_else_is_neither_believed_nor_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that lies beside a log in a checkout may say anything; one that another user owns is left alone."""
    log = _log(home / "run.jsonl")
    assert run("list", log.name, "--status", "ok").out.count("Bash") == 6
    for place in (home / ".ctxmgr-index").glob("*.db"):
        with closing(SqliteEngine(str(place), disposable=True)) as engine, engine.transaction():
            engine.execute("UPDATE entry SET status = 'denied'")
    assert "Bash" not in run("list", log.name, "--status", "ok").out  # one's own is believed
    with log.open("a") as stream:
        stream.write(json.dumps(b.entry("t", 99)) + "\n")
    before = {place.name: place.read_bytes() for place in (home / ".ctxmgr-index").iterdir()}
    me = os.getuid()
    monkeypatch.setattr("ctxmgr.store.engine.disposable_files.os.getuid", lambda: me + 7)

    shown = run("list", log.name, "-s", "s", "--status", "ok")

    assert shown.out.count("Bash") == 6
    assert {place.name: place.read_bytes() for place in (home / ".ctxmgr-index").iterdir()} == before
