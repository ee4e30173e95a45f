"""The index of what an agent sees: it grows, follows the rules and the history, and can be lost at any moment."""

from __future__ import annotations

import os
import signal
import stat
import time
from contextlib import closing
from pathlib import Path

import pytest

from ctxmgr.errors import InvalidInput
from ctxmgr.history.query.filtered_store import FilteredStore
from ctxmgr.log.codec import Record
from ctxmgr.store import open_store
from ctxmgr.types.plain_records import build
from tests.builders import entry, result, steps
from tests.history.seen_world import ME, answers, rules, seen_of, seen_part, written
from tests.store.workers import run_together, start

OWN = rules(("self", "write"))
ALL = rules(("*", "write"))

MIXED = [
    *steps("s", ["Bash:ls", "> look", "Read:a"], agent="me"),
    *steps("s", ["Bash:secret", "Bash:rm -> gone"], agent="hidden", start=10, events=10),
    entry("s", 20, agent="me"),
]


def _ids(store: FilteredStore) -> list[str]:
    return [str(record.get("id", record.get("entry"))) for record in store.sessions.records(None)]


def _index_files() -> list[Path]:
    return sorted(Path(os.environ["XDG_CACHE_HOME"]).rglob("*-*.db"))


def test_growing_copies_only_what_is_new(store_path: Path) -> None:
    """Behind 10,000 entries one more is looked at alone, and nothing at all when nothing came."""
    many = [record for number in range(10_000) for record in (entry("s", number, agent=["me", "hidden"][number % 2]),)]
    written(store_path, many)
    with seen_of(store_path, OWN) as seen:
        assert (seen.looked_at, seen.copied, seen.hidden) == (10_000, 5_000, 5_000)
    written(store_path, [entry("s", 10_000, agent="me"), entry("s", 10_001, agent="hidden")])
    with seen_of(store_path, OWN) as seen:
        assert (seen.looked_at, seen.copied, seen.hidden) == (2, 1, 5_001)
        assert seen.sessions.entry_count(seen.sessions.key("s") or 0) == 5_001
    with seen_of(store_path, OWN) as seen:
        assert (seen.looked_at, seen.copied, seen.hidden) == (0, 0, 5_001)


def test_an_open_store_catches_up_when_asked(store_path: Path) -> None:
    """What another process writes is seen after catching up."""
    written(store_path, MIXED)
    with seen_of(store_path, OWN) as seen:
        written(store_path, [entry("s", 21, agent="me"), entry("s", 22, agent="hidden")])
        seen.catch_up()
        assert (seen.looked_at, seen.copied) == (2, 1)
        assert _ids(seen)[-1] == "s-e0021"


LATE: dict[str, list[Record]] = {
    "a result": [result("s", 5), entry("s", 6, agent="me"), entry("s", 5, agent="me")],
    "a note": [
        entry("s", 1, agent="me"), build("note", "s", None, id="n", entries=["s-e0001", "s-e0002"], content="x"),
        build("note", "s", None, id="m", entries=["s-e0001"], content="y", supersedes="n"), entry("s", 2, agent="me"),
    ],
    "a snapshot": [build("snapshot", "s", None, id="n", entries=["s-e0002"], summary="x", reasoning="", hash=""),
                   entry("s", 1, agent="me"), entry("s", 2, agent="me")],
    "an event": [entry("s", 1, agent="me"), build("event", "s", None, id="v", type="message", entry="s-e0002", data={}),
                 entry("s", 3, agent="me"), entry("s", 2, agent="me")],
    "a session's end": [build("session", "s", None, process="p"), build("sessionEnd", "s", None, outcome="failed", process="p"),
                        entry("s", 1, agent="me", process="q"), build("session", "s", None, process="r")],
    "a chain of notes that closes": [
        entry("s", 1, agent="me"), build("note", "s", None, id="n", entries=["s-e0001"], content="x", supersedes="m"),
        build("note", "s", None, id="m", entries=["s-e0001"], content="y", supersedes="n"),
    ],
    "a note before the one that it supersedes, both before their entry": [
        entry("s", 1, agent="me"), build("note", "s", None, id="n", entries=["s-e0002"], content="x", supersedes="m"),
        build("note", "s", None, id="m", entries=["s-e0002"], content="y"), entry("s", 2, agent="me"),
    ],
}  # fmt: skip


@pytest.mark.cases(1)
@pytest.mark.parametrize("case", sorted(LATE))
def test_what_comes_before_what_it_names_is_seen_when_that_has_come(store_path: Path, tmp_path: Path, case: str) -> None:
    """Written and looked at one by one, or at once, the answers are those of the history without the hidden."""
    records = [entry("s", 90, agent="hidden"), *LATE[case], entry("s", 91, agent="hidden")]
    for record in records:
        with seen_of(written(store_path, [record]), OWN):
            pass
    expected = written(tmp_path / f"expected-{store_path.name}", seen_part(records, OWN))
    with closing(open_store(str(expected))) as part, seen_of(store_path, OWN) as seen:
        assert seen.looked_at == 0
        assert answers(seen) == answers(part)


def test_sessions_of_one_process_are_named_in_the_order_of_the_log(store_path: Path, tmp_path: Path) -> None:
    """Which of two sessions had something to be seen first is not told by the order in which an error names them."""
    began = [build("session", name, None, process="p0") for name in ("s1", "s2")]
    records = [*began, entry("s1", 1, agent="hidden"), entry("s2", 2, agent="me"), entry("s1", 3, agent="me")]
    expected = written(tmp_path / f"expected-{store_path.name}", seen_part(records, OWN))
    with closing(open_store(str(expected))) as part, seen_of(written(store_path, records), OWN) as seen:
        assert seen.sessions.of_process("p0") == part.sessions.of_process("p0") == ["s1", "s2"]
        assert answers(seen) == answers(part)


def test_a_late_entry_that_is_hidden_keeps_hidden_what_waited_for_it(store_path: Path) -> None:
    """A result and a note that came before their entry stay hidden when that is another agent's."""
    note = build("note", "s", None, id="n", entries=["s-e0005"], content="x")
    written(store_path, [entry("s", 1, agent="me"), result("s", 5), note])
    with seen_of(store_path, OWN) as seen:
        assert _ids(seen) == ["s-e0001"]
    written(store_path, [entry("s", 5, agent="hidden"), entry("s", 6, agent="me")])
    with seen_of(store_path, OWN) as seen:
        assert _ids(seen) == ["s-e0001", "s-e0006"]


def test_changed_rules_are_in_force_at_once(store_path: Path) -> None:
    """Rules that grant more show more, and those that grant less show less, in the same history."""
    written(store_path, MIXED)
    for held, agents in ((OWN, ["me"]), (ALL, ["me", "hidden"]), (rules(), []), (OWN, ["me"])):
        with seen_of(store_path, held) as seen:
            key = seen.sessions.key("s")
            assert (seen.sessions.agents(key) if key else []) == agents
            assert (key is None) == (not agents)


def test_indexes_of_rules_long_out_of_force_go_away(store_path: Path) -> None:
    """Making a new index takes away those of the same agent that nobody used for a week, and no other agent's."""
    written(store_path, MIXED)
    for agent, held in ((ME, OWN), (ME, ALL), ("friend", ALL)):
        with seen_of(store_path, held, agent):
            pass
    assert len(_index_files()) == 3
    old = time.time() - 8 * 86_400
    for place in _index_files():
        os.utime(place, (old, old))
    with seen_of(store_path, rules(("self", "read"))):
        pass
    assert len(_index_files()) == 2


def test_agents_have_indexes_of_their_own_that_only_their_owner_reads(store_path: Path) -> None:
    """Each agent's index is a file of mode 0600 whose name tells neither the agent nor the path."""
    written(store_path, MIXED)
    for agent in (ME, "hidden", "a/../b"):
        with seen_of(store_path, rules(("self", "read"), agent=agent), agent) as seen:
            assert len(_ids(seen)) == {ME: 5, "hidden": 4}.get(agent, 0)
    assert len(_index_files()) == 3
    assert {stat.S_IMODE(place.stat().st_mode) for place in _index_files()} == {0o600}
    assert all(len(place.name) == 32 + 1 + 16 + 3 for place in _index_files())


@pytest.mark.parametrize("agent", ["*", "self", "", "a\0b", "x" * 256])
def test_nobody_is_called_what_means_something_else(store_path: Path, agent: str) -> None:
    """A name that rules use otherwise, or that can't be one, is refused."""
    source = open_store(str(written(store_path, MIXED)))
    with pytest.raises(InvalidInput), closing(source):
        FilteredStore(source, agent, ALL)


def test_a_history_that_is_another_one_is_read_anew(store_path: Path, tmp_path: Path) -> None:
    """When another history lies at the same path, or it lost its end, the index is made anew."""
    other = written(tmp_path / f"other-{store_path.name}", [entry("t", number, agent="me") for number in range(9)])
    written(store_path, MIXED)
    with seen_of(store_path, OWN) as seen:
        assert seen.sessions.key("t") is None
    other.replace(store_path)
    with seen_of(store_path, OWN) as seen:
        assert (seen.sessions.count(), seen.sessions.key("s"), len(_ids(seen))) == (1, None, 9)
    store_path.unlink()
    written(store_path, MIXED[:1])
    with seen_of(store_path, OWN) as seen:
        assert _ids(seen) == ["s-e0000"]


def test_a_log_changed_in_place_is_read_anew(tmp_path: Path) -> None:
    """A log whose first lines are others now, with the same end, is copied anew."""
    path = written(tmp_path / "h.jsonl", [entry("s", number, "Bash", "aaaa", agent="me") for number in range(3)])
    with seen_of(path, OWN):
        pass
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0].replace(b"aaaa", b"bbbb"), *lines[1:]]))
    with seen_of(path, OWN) as seen:
        assert [record["input"] for record in seen.sessions.records(None)] == ["bbbb", "aaaa", "aaaa"]


def test_the_index_can_be_lost(store_path: Path) -> None:
    """Without its index, or with one that is no database, the answers are the same."""
    written(store_path, MIXED)
    with seen_of(store_path, OWN) as seen:
        first = answers(seen)
    for spoilt in (None, b"no database" * 500):
        for place in _index_files():
            place.unlink() if spoilt is None else place.write_bytes(spoilt)
        with seen_of(store_path, OWN) as seen:
            assert answers(seen) == first


def test_nothing_writable_is_needed(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no cache folder can be made the index lives in memory, and the answers are the same."""
    written(store_path, MIXED)
    with seen_of(store_path, OWN) as seen:
        first = answers(seen)
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/nowhere")
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/dev/null/nowhere")
    with seen_of(store_path, OWN) as seen:
        assert seen.engine.query("PRAGMA database_list")[0][2] == ""
        assert answers(seen) == first


def test_an_index_that_fails_while_it_grows_is_replaced_by_one_in_memory(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the index, of whatever kind, costs no answer."""
    written(store_path, MIXED)
    with seen_of(store_path, OWN) as seen:
        first = answers(seen)
        seen.engine.execute("DROP TABLE waiting")
        seen.engine.execute("CREATE TABLE waiting (odd INTEGER)")
    written(store_path, [entry("s", 30, agent="hidden")])
    with seen_of(store_path, OWN) as seen:
        assert answers(seen) == first


def test_a_history_in_memory_has_no_index_on_disk() -> None:
    """A history in memory is looked at in memory: no index is left behind."""
    source = open_store(":memory:", create=True)
    source.append(MIXED)
    with closing(FilteredStore(source, ME, OWN)) as seen:
        assert len(_ids(seen)) == 5
    assert _index_files() == []


_PREPARE = """
import json, os, signal, sys
from ctxmgr.history.query.filtered_store import FilteredStore
from ctxmgr.history.query import visibility
from ctxmgr.store import open_store
from tests.builders import entry
from tests.history.seen_world import rules
location, arguments = sys.argv[1], json.loads(sys.argv[2])
held = rules(("self", "write"))
"""

_DIES = (
    _PREPARE
    + """
read = visibility.read
def dying(stored):
    if stored.place >= arguments:
        os.kill(os.getpid(), signal.SIGKILL)
    return read(stored)
visibility.read = dying
FilteredStore(open_store(location), "me", held)
"""
)
"""Dies after so many records were looked at."""

_TOGETHER = (
    _PREPARE
    + """
sys.stdout.write("ready\\n"); sys.stdout.flush(); sys.stdin.readline()
for number in range(arguments["count"]):
    store = FilteredStore(open_store(location), "me", held)
    store.append([entry("s", number, id=f"{arguments['name']}-{number}", agent="me")])
    mine = [record["id"] for record in store.sessions.records(None) if record["id"].startswith(arguments["name"])]
    assert mine == [f"{arguments['name']}-{each}" for each in range(number + 1)], mine
    store.close()
sys.stdout.write("done\\n")
"""
)
"""Opens, writes, and reads back what it wrote, by turns with others."""


@pytest.mark.cases(1)
@pytest.mark.parametrize("reached", [50, 250, 500])
def test_a_kill_while_the_index_grows_leaves_it_as_it_was(store_path: Path, reached: int) -> None:
    """After a kill in the middle of catching up the next one goes on from where the last whole one ended."""
    first = [entry("s", number, agent=["me", "hidden"][number % 2]) for number in range(40)]
    written(store_path, first)
    with seen_of(store_path, OWN) as seen:
        assert seen.copied == 20
    written(store_path, [entry("s", number, agent=["me", "hidden"][number % 2]) for number in range(40, 600)])
    worker = start(_DIES, store_path, reached)
    worker.communicate()
    assert worker.returncode == -signal.SIGKILL
    with seen_of(store_path, OWN) as seen:
        assert (seen.looked_at, seen.copied, len(_ids(seen))) == (560, 280, 300)


def test_processes_share_an_index(store_path: Path) -> None:
    """Two processes that write and look at once each see all that they wrote, and the index ends up whole."""
    written(store_path, [entry("s", 900, agent="hidden")])
    run_together(_TOGETHER, store_path, [{"name": name, "count": 12} for name in ("a", "b")])
    with seen_of(store_path, OWN) as seen:
        assert len(_ids(seen)) == 24
        assert (seen.looked_at, seen.hidden) == (0, 1)
        assert [row[0] for row in seen.engine.query("SELECT idx FROM entry ORDER BY seq")] == list(range(24))
