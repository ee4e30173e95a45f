"""The recorder writes down what agents do, exactly as it happened, and never gets in their way."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ctxmgr import recorder as recorder_module
from ctxmgr.errors import Busy, InvalidInput, StorageFailed
from ctxmgr.log.codec import EVENT_ALIASES, MAX_LINE, Record, decode, encode, unseal
from ctxmgr.log.journal import Journal
from ctxmgr.log.masking import mask_without_sieves
from ctxmgr.recorder import OnLive, Recorder, is_live, live_sessions
from ctxmgr.store import open_store
from tests.journals import sound_records


class _Memory:
    """A sink of one's own."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.closed = False

    def append(self, records: Sequence[Record]) -> None:
        self.records.extend(records)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a log is to be written."""
    return tmp_path / "run.jsonl"


def _imported(opener: Callable[..., object]) -> Callable[[str], object]:
    """Return a stand-in for the import of a module whose function `open_sink` is ``opener``."""

    def import_module(name: str) -> object:
        return SimpleNamespace(open_sink=opener, other=opener, name=name)

    return import_module


def test_importing_it_loads_the_standard_library_alone(path: Path) -> None:
    """Neither pydantic, typer, rich nor any SQLite is loaded by importing or by recording into a log."""
    program = """
import sys
before = set(sys.modules)
from ctxmgr.recorder import Recorder
with Recorder(sys.argv[1]) as recorder, recorder.action("a", "b", input={1: object()}):
    pass
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(loaded - sys.stdlib_module_names), sorted(loaded & {"sqlite3", "_sqlite3", "asyncio"}))
"""
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("['ctxmgr'] []\n", "")


def test_a_session_is_written_from_start_to_end(path: Path) -> None:
    """Session, entry, result, event and end are records of format 1 in this order."""
    with Recorder(path, session="s", process="p", workflow="w", meta={"branch": "main"}) as recorder:
        entry = recorder.entry("coder", "edit", {"path": "a.py"}, turn=1, step="x", task="t", timeout_ms=500, meta={"k": 1})
        recorder.result(entry, output="done", duration_ms=12.5, usage={"inputTokens": 3, "outputTokens": 4})
        event = recorder.event("message", {"text": "hi"}, agent="coder")

    session, began, result, said, end = sound_records(path)
    assert (session["session"], session["process"], session["workflow"]) == ("s", "p", "w")
    assert session["meta"] == {"pid": os.getpid(), "host": os.uname().nodename, "branch": "main"}
    assert {key: value for key, value in began.items() if key != "ts"} == {
        "v": 1, "kind": "entry", "session": "s", "id": entry, "agent": "coder", "action": "edit", "inputType": "object",
        "input": {"path": "a.py"}, "process": "p", "turn": 1, "step": "x", "task": "t", "timeoutMs": 500, "meta": {"k": 1},
    }  # fmt: skip
    assert (result["entry"], result["status"], result["output"], result["durationMs"]) == (entry, "ok", "done", 12.5)
    assert result["usage"] == {"inputTokens": 3, "outputTokens": 4}
    assert (said["id"], said["type"], said["agent"], said["data"]) == (event, "message", "coder", {"text": "hi"})
    assert (end["kind"], end["outcome"], end["process"]) == ("sessionEnd", "completed", "p")


def test_an_input_of_null_is_written(path: Path) -> None:
    """An entry always has an input, null included."""
    with Recorder(path, agent="me") as recorder:
        recorder.entry(None, "look")

    (entry,) = sound_records(path, "entry")
    assert (entry["agent"], entry["input"], entry["inputType"]) == ("me", None, "null")


@pytest.mark.parametrize(("alias", "name"), EVENT_ALIASES.items())
def test_event_aliases_are_stored_under_their_own_names(path: Path, alias: str, name: str) -> None:
    """The event names of the source documents are accepted; unknown types are kept."""
    with Recorder(path) as recorder:
        recorder.event(alias, 1)
        recorder.event("somethingElse", 2)

    assert [record["type"] for record in sound_records(path, "event")] == [name, "somethingElse"]


@pytest.mark.parametrize(
    ("kind", "data", "agent", "stored"),
    [
        ("message", {"role": "user", "content": "hi"}, None, ("user_message", "coder")),
        ("message", {"from": "user", "to": "coder", "text": "hi"}, None, ("user_message", "coder")),
        ("message", {"role": "assistant", "content": "hi"}, None, ("message", "coder")),
        ("message", {"from": "reviewer", "text": "hi"}, None, ("message", "reviewer")),
        ("message", {"from": "", "text": "hi"}, None, ("message", "coder")),
        ("message", {"role": "user", "content": "I am the user"}, "reviewer", ("message", "reviewer")),
        ("thought", {"from": "user"}, None, ("thought", "coder")),
        ("message", "from: user", None, ("message", "coder")),
        ("message", {"role": ["user"], "from": {"name": "user"}, "text": "hi"}, None, ("message", "coder")),
        ("user", {"text": "hi"}, None, ("user_message", "coder")),
    ],
)
def test_a_message_is_stored_as_that_of_its_speaker(
    path: Path, kind: str, data: object, agent: str | None, stored: tuple[str, str]
) -> None:
    """A person's words are known by role or sender, but not where an agent is named as the speaker: that would be forged."""
    with Recorder(path, agent="coder") as recorder:
        recorder.event(kind, data, agent=agent)

    (record,) = sound_records(path, "event")
    assert (record["type"], record["agent"], record["data"]) == (*stored, data)


@dataclass
class _Odd:
    path: Path
    tags: set[str]


def test_odd_values_do_not_stop_the_agent(path: Path) -> None:
    """Values without JSON form are converted, in a log as in any other sink; too large ones are described."""
    circle: list[Any] = []
    circle.append(circle)
    values = [_Odd(Path("a"), {"t"}), float("nan"), circle, object, "x" * (MAX_LINE + 1)]
    memory = _Memory()
    for target in (path, memory):
        with Recorder(target) as recorder:
            for value in values:
                recorder.result(recorder.entry("a", "b", value), output=[value] if value is not values[-1] else value)

    for records in (sound_records(path, "entry"), [record for record in memory.records if record["kind"] == "entry"]):
        assert records[0]["input"] == {"path": "a", "tags": ["t"]}
        assert records[0]["inputType"] == "_Odd"
        assert [record["input"] for record in records[1:3]] == ["NaN", ["<circular>"]]
    assert sound_records(path, "entry")[4]["input"]["tooLarge"] == MAX_LINE + 1


def test_secrets_are_masked_unless_told_otherwise(path: Path, tmp_path: Path) -> None:
    """Masking is on by default and can be turned off."""
    secret = "ghp_" + "a1" * 18
    with Recorder(path) as masked, Recorder(tmp_path / "2.jsonl", mask=False) as plain:
        masked.entry("a", "b", {"key": secret})
        plain.entry("a", "b", {"key": secret})

    assert secret not in path.read_text()
    assert secret in (tmp_path / "2.jsonl").read_text()


def test_a_sink_of_ones_own_is_used_and_left_open() -> None:
    """A sink object gets plain records; who made it closes it."""
    memory = _Memory()
    with Recorder(memory, session="s"):
        pass

    assert [record["kind"] for record in memory.records] == ["session", "sessionEnd"]
    assert not memory.closed


def test_what_is_no_sink_is_refused() -> None:
    """A target that can't be written to is an error at once."""
    with pytest.raises(InvalidInput, match="int"):
        Recorder(cast("str", 3))


def test_a_journal_can_be_the_target(path: Path) -> None:
    """A journal opened by the caller is a sink like any other."""
    with Journal(path) as journal, Recorder(journal):
        pass

    assert len(sound_records(path)) == 2


@pytest.mark.parametrize("name", ["a.db", "a.sqlite", "a", "a.other", "postgresql://h/d"])
def test_other_targets_are_opened_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """What is no log is opened by the function that the table names, at first use, with level and masking."""
    opened: list[tuple[object, ...]] = []
    memory = _Memory()

    def open_it(*args: object) -> _Memory:
        opened.append(args)
        return memory

    monkeypatch.setattr(recorder_module, "SINKS", {".db": "any:other"})
    monkeypatch.setattr(recorder_module, "import_module", _imported(open_it))
    target = name if "://" in name else str(tmp_path / name)
    with Recorder(target, durability="os", mask=False):
        pass

    assert opened == [(target, "os", False)]
    assert memory.closed


def test_the_table_of_sinks_names_what_exists() -> None:
    """Every function that the table names can be imported."""
    for place in recorder_module.SINKS.values():
        module, _, name = place.partition(":")
        assert callable(getattr(__import__(module, fromlist=[name]), name))


@pytest.mark.requirement("R-10")
def test_a_live_session_is_refused_joined_or_forked(path: Path) -> None:
    """A second process on a live session is refused with the pid, joins with entries apart, or forks a session."""
    first = Recorder(path, session="s")
    assert is_live(path, "s")
    with pytest.raises(Busy) as caught:
        Recorder(path, session="s")
    assert str(os.getpid()) in str(caught.value.hint)

    joined = Recorder(path, session="s", on_live="join")
    forked = Recorder(path, session="s", on_live="fork")
    assert joined.session == "s"
    assert joined.process != first.process
    assert forked.session != "s"
    assert live_sessions(path) == {"s", forked.session}

    first.end()
    assert is_live(path, "s")
    joined.end()
    forked.end("cancelled")
    assert live_sessions(path) == set()
    assert [record["meta"].get("forkedFrom") for record in sound_records(path, "session")] == [None, None, "s"]


@pytest.mark.parametrize("on_live", ["refuse", "join", "fork"])
def test_a_finished_session_can_be_continued(path: Path, on_live: OnLive) -> None:
    """Without a live process every mode goes on with the session under a new process id."""
    Recorder(path, session="s").end()
    with Recorder(path, session="s", on_live=on_live) as again:
        assert again.session == "s"

    assert len({record["process"] for record in sound_records(path, "session")}) == 2


def test_a_failed_start_leaves_the_session_free(tmp_path: Path) -> None:
    """When the log can't be opened the session does not stay live."""
    (tmp_path / "run.jsonl").mkdir()
    with pytest.raises(StorageFailed):
        Recorder(tmp_path / "run.jsonl", session="s")

    assert not is_live(tmp_path / "run.jsonl", "s")


def test_ending_is_final(path: Path) -> None:
    """Ending twice is one end; afterwards recording is refused."""
    recorder = Recorder(path)
    recorder.end("failed")
    recorder.end()
    with pytest.raises(InvalidInput, match="has ended"):
        recorder.entry("a", "b")

    assert [record["outcome"] for record in sound_records(path, "sessionEnd")] == ["failed"]


def test_a_forked_child_is_a_process_of_its_own(path: Path) -> None:
    """The child gets its own process id and session record, naming its parent, and both logs stay whole."""
    recorder = Recorder(path, session="s")
    process = recorder.process
    outer = recorder.action("a", "outer").__enter__()
    child = os.fork()
    if child == 0:
        try:
            recorder.entry("a", "child")
            os._exit(0 if recorder.process != process else 3)
        except BaseException:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    recorder.entry("a", "parent")
    outer.__exit__(None, None, None)
    recorder.end()

    first, second = sound_records(path, "session")
    assert second["meta"]["forkedFrom"] == first["process"] == recorder.process
    assert second["meta"]["pid"] == child
    entries = {record["action"]: record for record in sound_records(path, "entry")}
    assert (entries["child"]["process"], entries["parent"]["process"]) == (second["process"], first["process"])
    assert entries["child"]["parent"] == outer.id


def test_a_fork_opens_other_sinks_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a child a database is opened again and the inherited one is neither used nor closed."""
    opened: list[_Memory] = []

    def open_it(*_: object) -> _Memory:
        opened.append(_Memory())
        return opened[-1]

    monkeypatch.setattr(recorder_module, "import_module", _imported(open_it))
    recorder = Recorder(tmp_path / "a.db", session="s")
    recorder.leave_parent()  # what a fork calls in the child
    recorder.entry("a", "b")

    assert [[record["kind"] for record in sink.records] for sink in opened] == [["session"], ["session", "entry"]]
    assert not opened[0].closed


def test_a_failing_disk_is_told_but_does_not_hide_the_agents_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an exception the storage error is raised; with one, the agent's exception carries a note of it."""
    recorder = Recorder(path)
    write = os.write

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StorageFailed), recorder.action("a", "b"):
        monkeypatch.setattr(os, "write", refuse)
    monkeypatch.setattr(os, "write", write)
    error = ValueError("mine")
    step = recorder.action("a", "b").__enter__()
    monkeypatch.setattr(os, "write", refuse)
    step.__exit__(ValueError, error, None)
    monkeypatch.setattr(os, "write", write)
    recorder.end()

    assert "could not record" in error.__notes__[0]
    assert len(sound_records(path, "entry")) == 2


@pytest.mark.parametrize("name", ["run.jsonl", "run.db"])
def test_what_the_format_does_not_have_is_refused(tmp_path: Path, name: str) -> None:
    """A wrong status, outcome, id or argument raises at once and writes nothing; what went before can still be completed."""
    path, odd = tmp_path / name, cast("Any", 5)
    with Recorder(path, session="s") as recorder:
        entry = recorder.entry("coder", "Bash", {"command": "make test"})
        for refused, message in (
            (lambda: recorder.result(entry, cast("Any", "failed")), "unknown status 'failed'"),
            (lambda: recorder.result(entry, cast("Any", ["ok"])), "unknown status"),
            (lambda: recorder.result("nope"), "no open entry 'nope' in session 's'"),
            (lambda: recorder.result(cast("Any", [])), "no open entry"),
            (lambda: recorder.result(entry, "error", error=odd), "error: "),
            (lambda: recorder.end(cast("Any", "great")), "unknown outcome 'great'"),
            (lambda: recorder.entry(odd, "Bash"), "agent: "),
            (lambda: recorder.entry("coder", odd), "action: "),
            (lambda: recorder.entry("coder", "Bash", turn=cast("Any", 1.5)), "turn"),
            (lambda: recorder.entry("coder", "Bash", task=odd), "task: "),
            (lambda: recorder.event("", {}), "type: "),
            (lambda: recorder.event("message", {}, entry=odd), "entry: "),
        ):
            with pytest.raises(InvalidInput, match=message):
                refused()
        recorder.result(entry, "error", error="2 tests failed")
        with pytest.raises(InvalidInput, match="it has a result") as twice:
            recorder.result(entry)
        assert "register_entry" in str(twice.value.hint)
        recorder.register_entry("e-of-another-process")
        recorder.result("e-of-another-process", output="done")

    with closing(open_store(str(path))) as store:
        records = list(store.sessions.records(None))
        assert not store.damage()
        assert not store.examine().damaged
    assert [record["kind"] for record in records if record["kind"] != "note"] == [
        "session",
        "entry",
        "result",
        "result",
        "sessionEnd",
    ]


@pytest.mark.parametrize("name", ["session", "process", "workflow", "agent"])
def test_names_of_a_recorder_are_texts(path: Path, name: str) -> None:
    """Whatever else is given is refused before anything is written."""
    with pytest.raises(InvalidInput, match=f"the {name} of a recorder is a text, not 5"):
        Recorder(path, **{name: cast("Any", 5)})
    assert not path.exists()


def test_a_result_that_could_not_be_written_can_be_written_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its entry stays open meanwhile; `close` ends the session as `end` does."""
    recorder = Recorder(path)
    entry, write = recorder.entry("coder", "Bash"), os.write

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", refuse)
    with pytest.raises(StorageFailed):
        recorder.result(entry)
    monkeypatch.setattr(os, "write", write)
    recorder.result(entry, output="done")
    recorder.close()

    assert [record["output"] for record in sound_records(path, "result")] == ["done"]
    assert [record["outcome"] for record in sound_records(path, "sessionEnd")] == ["completed"]


def test_threads_share_a_recorder(path: Path) -> None:
    """4 threads of 50 actions on one recorder: 200 entries and results, one chain."""
    with Recorder(path) as recorder:

        def work() -> None:
            for number in range(50):
                with recorder.action("a", "b", input=number):
                    pass

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len({record["id"] for record in sound_records(path, "entry")}) == len(sound_records(path, "result")) == 200


def test_nothing_depends_on_an_orderly_end(path: Path) -> None:
    """A process that vanishes in the middle of an action leaves whole records, an open entry and a free session."""
    program = """
import os, sys
from ctxmgr.recorder import Recorder
recorder = Recorder(sys.argv[1], session="s")
with recorder.action("a", "b"):
    os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", program, str(path)]).returncode == 9

    assert [record["kind"] for record in sound_records(path)] == ["session", "entry"]
    assert not is_live(path, "s")


@pytest.mark.parametrize("session", [None, "run-7", "ghp_" + "a1" * 18, "password=hunter22x", "ä\ud800"])
def test_an_entry_is_written_as_any_record_is(path: Path, session: str | None) -> None:
    """An entry that is put together from kept texts has the bytes, masks and order of keys of one that is not."""
    secret = "ghp_" + "b2" * 18
    inputs: list[object] = [None, "x", secret, {"password": "hunter22"}, {"a": [1, {"b": None}]}, 1.5, [], "ä\n\ud800", {1, 2}]
    with Recorder(path, session=session) as recorder:
        for value in inputs:
            recorder.entry("coder", "edit", value)
        recorder.entry(secret, secret, "x", input_type="api_key: 4747aaaa4747bbbb")

    lines = path.read_bytes().splitlines()
    bodies = [unseal(line)[0] for line in lines]
    assert all(encode(decode(body)) == body == mask_without_sieves(body) for body in bodies)
    assert secret.encode() not in path.read_bytes()
    assert session is None or "ghp_" not in session or session.encode() not in path.read_bytes()
    entries = sound_records(path, "entry")
    assert {tuple(entry) for entry in entries} == {
        ("v", "kind", "session", "ts", "id", "agent", "action", "inputType", "input", "process")
    }
    assert [entry["input"] for entry in entries[4:7]] == inputs[4:7]


def test_many_names_of_actions_do_not_fill_the_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every action has another name, the kept texts are let go from time to time, and all names are written."""
    monkeypatch.setattr(recorder_module, "_MAX_NAMES", 3)
    with Recorder(path) as recorder:
        for number in range(10):
            recorder.entry("coder", f"action {number}")

    assert [record["action"] for record in sound_records(path, "entry")] == [f"action {number}" for number in range(10)]
