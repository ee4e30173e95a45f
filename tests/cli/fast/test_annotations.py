"""What the fast path writes is what typer's way would write, to the byte, and so is all that it says."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ctxmgr.access import guard
from ctxmgr.cli import record_input
from ctxmgr.cli.fast import dispatch
from ctxmgr.cli.fast.rows import WRITES
from ctxmgr.cli.fast.table import TABLE
from ctxmgr.errors import CtxmgrError
from ctxmgr.history.query import tools
from ctxmgr.log import ids
from ctxmgr.store import open_store
from ctxmgr.store.engine.disposable_files import BESIDE
from tests import builders as b
from tests.cli.console import lines
from tests.cli.paths import Ended, make_stores, run_by
from tests.log.test_mask_prefilter import SECRET

STORES = ("history.db", "empty.db", "log.jsonl", "damaged.db")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the stores that every command line gets copies of."""
    folder = tmp_path_factory.mktemp("written")
    make_stores(folder)
    return folder


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the whole store be the one that is meant, in whichever folder."""
    monkeypatch.setenv("CTXMGR_STORE", "history.db")


class _Given(io.TextIOWrapper):
    """What stands on stdin; ``terminal`` makes it a person who types."""

    def __init__(self, given: bytes, *, terminal: bool) -> None:
        super().__init__(io.BytesIO(given), encoding="utf-8")
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


class Both:
    """Runs command lines by both ways, each on its own copies of the stores."""

    def __init__(self, stores: Path, place: Path) -> None:
        self._stores = stores
        self._place = place
        self._number = count()

    def __call__(self, words: list[str], given: bytes = b"", *, terminal: bool = False) -> Ended:
        """Demand that both ways end and write alike; return how the fast path's ended."""
        by_quick, left = self._alone(words, dispatch.answer_command, given, terminal=terminal)
        by_typer, expected = self._alone(words, lambda _: None, given, terminal=terminal)
        assert by_quick[:3] == by_typer[:3], words
        assert left == expected, words
        return by_quick

    def _alone(
        self, words: list[str], answered: Callable[[list[str]], int | None], given: bytes, *, terminal: bool
    ) -> tuple[Ended, dict[str, Any]]:
        place = self._place / str(next(self._number))
        place.mkdir(parents=True)
        for name in STORES:
            shutil.copyfile(self._stores / name, place / name)
        minted = count()
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(place)
            for module in (ids, record_input, guard):
                patch.setattr(module, "new_id", lambda: f"minted-{next(minted)}")
            for module in (ids, guard):
                patch.setattr(module, "now", lambda: "2026-01-23T00:00:00.000000Z")
            patch.setattr(sys, "stdin", _Given(given, terminal=terminal))
            ended = run_by(words, answered, terminal=terminal)
        files = [found for found in sorted(place.rglob("*")) if found.is_file() and found.parent.name != BESIDE]
        left = {str(found.relative_to(place)): _held(found) for found in files}
        shutil.rmtree(place)
        return ended, left


def _held(place: Path) -> Any:
    """Return what a store holds: a log its bytes, a database its records and what was derived from them."""
    if place.suffix != ".db":
        return place.read_bytes()
    try:
        with closing(open_store(str(place), readonly=True)) as store:
            return [
                store.engine.query(f"SELECT * FROM {table}")
                for table in ("session", "record", "entry", "event", "note_entry", "note_tag", "superseded")
            ]
    except CtxmgrError as error:
        return error.message.replace(str(place), "")


@pytest.fixture
def both(stores: Path, tmp_path: Path) -> Both:
    """Return what runs a command line by both ways."""
    return Both(stores, tmp_path)


ADDED = [
    "note add 0 -m text", "note add @0 @-1 -m ' two ' -t A -t a --tag b -t ''",
    "note add healthy@1 --message=x --link healthy@0 --link @-1", "note add -m x -- 0", "note add - -m x",
    "note add - 2 -m x -s heal",
    "note add härte/ö@0 -m '' -m é\ud800", "note add 0 0 -m x",
    "note add healthy-e0001 --author ann --supersedes n1 -m x -s healthy", "note add 0 -m x --store log.jsonl -s heal",
    "note add log.jsonl@0 -m x -s heal", "note add log.jsonl@0 log.jsonl@-1 -m x -s heal",
    "snapshot create log.jsonl@1 @0 --summary s -s heal",
    "note add 0 -m --json", "note add 0 -m x -s p1", f"note add 0 -m {SECRET}", "snapshot create 0 --summary s",
    "snapshot create @1 @0 --summary s --reasoning r -s healthy", "snapshot create - --summary x",
    "snapshot create healthy@0 --summary s --reasoning=", "snapshot create 0 --summary s --store log.jsonl -s heal",
]  # fmt: skip
REFUSED = [
    "note add 0 -m ''", "note add 0 -m ' '", "note add @99 -m x", "note add nothing -m x", "note add '' -m x",
    "note add ' ' -m x", "note add healthy@0 looping@0 -m x", "note add healthy@0 -m x -s looping", "note add 0 -m x -s none",
    "note add 0 -m x -s ''", "note add 0 -m x --supersedes none", "note add 0 -m x --store empty.db",
    "note add 0 -m '' --store empty.db", "note add 0 -m x --store none.db", "note add 0 -m x --store damaged.db",
    "note add 0 -m x --store http://x", "note add h -m x -s healthy", "snapshot create 0 --summary ''",
    "snapshot create @99 --summary s", "snapshot create 0 --summary s --store empty.db", "snapshot create '' --summary s",
    "snapshot create 0 --summary s -s none",
]  # fmt: skip
HANDED = [
    "note add", "note add 0", "note add -m x", "note add -1 -m x", "note add 0 -mx",
    "note add 0 -m x --nosuch", "note add 0 -m x --limit 3",
    "snapshot create 0", "snapshot create", "snapshot create --summary s", "note add --help", "record --help",
    "record --limit 1", "record --mask=1",
]  # fmt: skip
CALLED = [
    "note add 0 -m", "note add 0 -m x --fields id", "note add 0 -m x --as ann", "record --fields added", "record --jq .data",
    "record --as ann",
]  # fmt: skip


@pytest.mark.parametrize("form", ["--json", "--format=ndjson"])
@pytest.mark.parametrize("text", [*ADDED, *REFUSED])
def test_annotating_by_the_quick_path_is_annotating(text: str, form: str, both: Both) -> None:
    """Notes, snapshots and refusals of the fast path are typer's: what is said, what is written, the exit code."""
    words = shlex.split(text)
    ended = both([*words[:2], form, *words[2:]], b"0 @-1\n@0\n")

    assert ended.was_quick
    assert (ended.code == 0) == (text in ADDED)


@pytest.mark.parametrize("text", HANDED)
def test_what_the_quick_path_does_not_know_is_typers(text: str, both: Both) -> None:
    """Faults of usage, and what the fast path does not serve, are handed on before anything is done."""
    words = shlex.split(text)

    assert not both([*words, "--json"]).was_quick


@pytest.mark.parametrize("text", CALLED)
def test_what_is_not_answered_from_rows_is_written_alike(text: str, both: Both) -> None:
    """The function of the command writes the same, whoever reads the words."""
    words = shlex.split(text)

    assert both([*words, "--json"]).was_quick


@pytest.mark.parametrize("words", [["x"], ["--json", "x"], ["--", "x"], ["-"], [""], ["--", "", "--json"]])
def test_a_command_to_record_is_never_read_from_stdin(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a command is to be run its function runs it, or says that it can't."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CTXMGR_STORE", "history.db")

    assert dispatch.answer_command(["record", *words]) == 2


EVENT = {"kind": "event", "type": "ToolCallEvent", "session": "s"}
STDIN = {
    "nothing": b"",
    "blanks": b"\n \r\n\n",
    "one": lines(b.entry("s", 0, "Bash", {"command": "ls"})).encode(),
    "all kinds": lines(
        {**b.build("session", "s", b.at(0), process="p"), "meta": {"title": "t"}},
        *b.steps("s", ["> go", "Bash:ls -> a", "?Edit:x"]), EVENT,
        {"kind": "note", "session": "s", "entries": [b.entry_id("s", 0)], "content": "look", "tags": ["ß"]},
        {"kind": "snapshot", "session": "s", "entries": [], "summary": "", "reasoning": "", "hash": ""},
        {"kind": "novel", "session": "s", "id": "own"}, b.build("sessionEnd", "s", b.at(9), outcome="failed"),
    ).encode(),
    "no session": b'{"kind":"event","type":"x"}\n',
    "known": lines(*b.steps("healthy", ["> ship it"], process="p1", inputType="command")).encode() * 2,
    "conflict": lines(EVENT, b.entry("healthy", 0, "Other", None), EVENT).encode(),
    "a secret": lines({**EVENT, "data": {"token": SECRET}}).encode(),
    "the project's": lines({**EVENT, "session": "ctxmgr:project", "type": "project_context"}, EVENT).encode(),
    "not JSON": lines(EVENT).encode() + b"{nope\n" + lines(EVENT).encode(),
    "no object": b"[1]\n",
    "two on a line": b"{} {}\n",
    "torn": b'{"kind":"event","type":"x","session":"s"',
    "NaN": b'{"kind":"event","type":"x","session":"s","data":NaN}\n',
    "huge": b'{"kind":"event","type":"x","session":"s","data":1e999}\n',
    "digits": b'{"kind":"event","type":"x","session":"s","data":' + b"9" * 5000 + b"}\n",
    "deep": b'{"kind":"event","type":"x","session":"s","data":' + b"[" * 300 + b"]" * 300 + b"}\n",
    "too deep": b'{"kind":"event","type":"x","session":"s","data":' + b"[" * 99_999 + b"\n",
    "bytes": b'{"kind":"event","type":"x\xff","session":"s"}\n',
    "BOM": b'\xef\xbb\xbf{"kind":"event","type":"x","session":"s"}\n',
    "blanks around": b' \t{"kind":"event","type":"x","session":"s"} \r\n',
    "halves": b'{"kind":"event","type":"x","session":"s","data":"\\ud83d"}\n',
    "wrong field": lines({**EVENT, "agent": 7}).encode(),
    "missing field": lines({"kind": "entry", "session": "s"}).encode(),
    "version": lines({**EVENT, "v": 2}).encode(),
    "no kind": b'{"session":"s"}\n',
    "a sum": lines({**EVENT, "sum": "0" * 16}).encode(),
    "many": lines(*({**EVENT, "id": f"e{number}"} for number in range(450))).encode(),
}  # fmt: skip


@pytest.mark.parametrize("store", ["history.db", "log.jsonl", "new/made.db", "new/made.jsonl"])
@pytest.mark.parametrize("name", STDIN)
def test_recording_by_the_quick_path_is_recording(name: str, store: str, both: Both) -> None:
    """Records from stdin end in the same answer and the same history by both ways, whatever the lines hold."""
    ended = both(["record", *(["--json"] if store != "history.db" else []), "--store", store], STDIN[name])

    assert ended.was_quick


@pytest.mark.cases(1)
@pytest.mark.parametrize("options", [
    "--session s", "-s s --json", "--trust-project --format ndjson", "--no-mask --json", "--mask --no-mask", "--agent x --json",
    "--format table", "--format ndjson", "--json --", "--store empty.db", "--store damaged.db --json", "--store damaged.db",
    "--store '' --json", "--store http://x", "--store made/it.db --json",
])  # fmt: skip
def test_options_of_recording_mean_the_same(options: str, both: Both) -> None:
    """Every option of ``record`` without a command means the same to the fast path and to typer, in every form."""
    for name in ("no session", "the project's", "a secret", "not JSON"):
        assert both(["record", *shlex.split(options)], STDIN[name]).was_quick


def test_a_person_is_answered_alike(both: Both) -> None:
    """On a terminal the line for people and the envelope are the same by both; both say that they read."""
    assert both(["record"], STDIN["one"], terminal=True).was_quick
    ended = both(["record", "--json"], STDIN["one"], terminal=True)
    assert ended.was_quick
    assert b"Ctrl-D ends" in ended.err
    assert both(["note", "add", "0", "-m", "x", "--json"], terminal=True).was_quick
    assert both(["record", "--format", "md"], STDIN["one"]).was_quick


@pytest.mark.parametrize("words", [["note", "add", "@0", "-m", "x", "--json"], ["record", "--json"]])
def test_the_nearest_store_is_meant(words: list[str], both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody names a store a record makes one, and a note finds no history."""
    monkeypatch.setenv("CTXMGR_STORE", "")
    ended = both(words, STDIN["one"])

    assert (ended.code, ended.was_quick) == (0 if words == ["record", "--json"] else 3, True)


def test_an_interrupt_keeps_what_came_before(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt while stdin is read keeps the lines before it, by both ways."""
    real = record_input.read_lines

    def interrupted(*arguments: Any) -> Any:
        yield next(real(*arguments))
        raise KeyboardInterrupt

    monkeypatch.setattr(record_input, "read_lines", interrupted)
    ended = both(["record", "--json"], STDIN["one"])

    assert ended.code == 130


def test_a_fault_is_told_alike(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in the code that both share ends as one of kind ``internal``."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("recorded text")

    monkeypatch.setattr(record_input, "take", broken)
    monkeypatch.setattr(tools, "add_note", broken)
    for words in (["record", "--json"], ["note", "add", "0", "-m", "x", "--json"]):
        ended = both(words)
        assert (ended.code, json.loads(ended.out)["error"]["kind"]) == (1, "internal")
        assert b"recorded text" not in ended.out + ended.err


_VALUES: dict[str, list[str]] = {
    "session": ["healthy", "heal", "", "none", "härte/ö", "p1", "\udcff", "-x"],
    "store": ["history.db", "empty.db", "log.jsonl", "none.db", "damaged.db", "", "a://b", "./log.jsonl", "new.jsonl"],
    "format_": ["json", "ndjson", "table", "md", "x", ""],
    "supersedes": ["n1", "hn", "none", ""],
    "text": ["x", "", " ", "é", "\ud800", "a b", "--json", SECRET],
    "entries": ["0", "@-1", "healthy@1", "@9", "healthy-e0001", "härte/ö@0", "-", "", "--", "x"],
}
_REFUSED = ["--help", "-h", "--nosuch", "-x", "-mx", "--json=1"]
_SHIFTING = ["--", "-", "--jq", ".", "--as", "ann", "word"]


@st.composite
def _lines(draw: st.DrawFn) -> list[str]:
    """Draw a command line that writes, mostly one that the table knows every word of."""
    name = draw(st.sampled_from(sorted(WRITES)))
    command = dispatch.command_by_name(name)
    assert command is not None
    options = draw(st.lists(st.sampled_from(sorted(command["options"])), max_size=4))
    options += [next(option for option, (dest, _) in command["options"].items() if dest == needed)
                for needed in command["required"] if needed != "entries" and draw(st.integers(0, 7))]  # fmt: skip
    groups: list[list[str]] = []
    for option in options:
        dest, kind = command["options"][option]
        if kind in ("flag", "no flag"):
            groups.append([option])
            continue
        value = draw(st.sampled_from(_VALUES.get(dest, _VALUES["text"])))
        groups.append([f"{option}={value}"] if option.startswith("--") and draw(st.booleans()) else [option, value])
    if draw(st.integers(0, 3)):
        groups.insert(0, ["--json"])
    if command["many"] and name != "record":
        groups += [[word] for word in draw(st.lists(st.sampled_from(_VALUES["entries"]), max_size=3))]
    if name != "record":
        groups = [[word] for group in groups for word in group]
    if draw(st.integers(0, 9)) == 0:
        # `record` runs its arguments as a command, and two runs never take equally long. So no noise may push a value out
        # of its option's place there.
        noise = _REFUSED if name == "record" else [*_REFUSED, *_SHIFTING]
        groups.insert(draw(st.integers(0, len(groups))), [draw(st.sampled_from(noise))])
    return [*name.split(), *(word for group in groups for word in group)]


@settings(max_examples=200)
@given(_lines())
def test_no_drawn_line_runs_a_command(words: list[str]) -> None:
    """A line for ``record`` holds options alone: one with an argument would run it, and end differently each time."""
    if words[0] != "record":
        return
    command = dispatch.command_by_name("record")
    assert command is not None
    rest, known = iter(words[1:]), command["options"]
    for word in rest:
        option, attached, _ = word.partition("=")
        if not attached and option in known and known[option][1] not in ("flag", "no flag"):
            next(rest)
            continue
        assert word.startswith("-")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_lines(), st.sampled_from(sorted(STDIN)))
@example(["record", "--as", "x"], "a secret")  # refused by the access rules, which is logged
def test_any_command_line_writes_what_typer_would_write(both: Both, words: list[str], name: str) -> None:
    """Whatever options, values and stray words a command line is made of, both ways end alike and write alike."""
    both(words, STDIN[name])


def test_every_writing_command_is_one_of_the_table() -> None:
    """What is opened for writing is what writes, and only that makes a store."""
    assert sorted(TABLE.keys() & WRITES) == sorted(WRITES)
    assert os.environ["CTXMGR_STORE"] == "history.db"
