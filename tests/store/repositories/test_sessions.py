"""Sessions: what is said of one, which is the latest, pages of them, and prefixes of their ids."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from ctxmgr.errors import Damaged, InvalidInput
from ctxmgr.log.ids import parse_time
from ctxmgr.store import Store, open_store
from ctxmgr.store.archive.retention import archived_sessions
from ctxmgr.types.plain_records import build
from tests.builders import at, entry, event, key_of, result, steps, write


def test_a_session_is_described_by_its_records(store: Store) -> None:
    """A session's row tells workflow, source, title, agents in order of appearance, counts, times, and outcome."""
    store.append([
        build("session", "s", at(0), process="p", workflow="invoice", source={"importer": "x"}, meta={"title": "Fix it"}),
        *steps("s", ["Bash:ls", "!Read:a", "?Edit:b", "> hello"], agent="Writer"),
        entry("s", 3, status="denied", agent="reviewer"),
        entry("s", 4, status="interrupted", agent="WRITER"),
        build("note", "s", at(90), id="n", entries=["s-e0000"], content="note"),
        build("sessionEnd", "s", at(60), outcome="failed", process="p"),
    ])  # fmt: skip

    view = store.sessions.view(key_of(store, "s"))
    assert (view.session, view.workflow, view.source, view.title) == ("s", "invoice", {"importer": "x"}, "Fix it")
    assert view.agents == ["Writer", "reviewer"]
    assert (view.entries, view.open, view.failed, view.events, view.notes) == (5, 1, 3, 1, 1)
    assert (view.started, view.last, view.outcome) == (at(0), at(60), "failed")  # the note came later, and goes on with nothing
    assert [(process.process, process.started, process.outcome) for process in view.processes] == [("p", at(0), "failed")]


def test_tokens_are_summed_once(store: Store) -> None:
    """Tokens of API responses, results and finished entries are added up; what is no number is left out."""
    store.append([
        event("s", 0, "usage", {"inputTokens": 100, "outputTokens": 10}),
        event("s", 1, "usage", {"inputTokens": True, "outputTokens": "7"}),
        event("s", 2, "usage", ["no", "object"]),
        event("s", 3, "message", {"inputTokens": 5_000}),
        entry("s", 0), result("s", 0, {"usage": {"inputTokens": 9_000}}, usage={"inputTokens": 20, "outputTokens": 2}),
        entry("s", 1, status="ok", usage={"inputTokens": 3, "outputTokens": 1}),
        entry("s", 2, given={"usage": {"inputTokens": 9_000}}),
    ])  # fmt: skip

    assert store.sessions.usage(key_of(store, "s")) == {"inputTokens": 123, "outputTokens": 13}


def test_the_latest_session_is_the_one_with_the_latest_record(store: Store) -> None:
    """The latest session is told by time, among untimed ones by what was written last; timed ones come first."""
    assert store.sessions.latest() is None
    store.append([build("entry", "untimed", None, id="e", agent="a", action="x")])
    assert store.sessions.name(store.sessions.latest() or 0) == "untimed"
    store.append([entry("old", 1), entry("new", 50), entry("old", 2), entry("middle", 10)])
    store.append([build("entry", "also untimed", None, id="e", agent="a", action="x")])

    assert store.sessions.name(store.sessions.latest() or 0) == "new"
    names = [view.session for _, view in store.sessions.page(0, None)]
    assert names == ["new", "middle", "old", "also untimed", "untimed"]
    assert [view.session for _, view in store.sessions.page(1, 2)] == names[1:3]
    assert store.sessions.last_moment(key_of(store, "new")) == parse_time(at(50))


def test_sessions_are_paged_by_agent(store: Store) -> None:
    """Of sessions with an agent, in any case of letters, the page and the count agree."""
    for number in range(5):
        write(store, f"s{number}", ["Bash:ls"], agent="Ärger" if number % 2 else "other")

    assert [view.session for _, view in store.sessions.page(0, None, "äRGER")] == ["s3", "s1"]
    assert (store.sessions.count("ÄRGER"), store.sessions.count("nobody"), store.sessions.count()) == (2, 0, 5)


def test_prefixes_of_sessions(store: Store) -> None:
    """A session is found by its whole id first, then by a prefix that fits one only; the empty text fits none."""
    store.append([entry(session, 0) for session in ("ab", "abc", "abd", "x%_", "x\U0010fffd")])

    assert store.sessions.name(key_of(store, "ab")) == "ab"
    assert store.sessions.name(key_of(store, "abc")) == "abc"
    assert store.sessions.name(key_of(store, "x%")) == "x%_"
    assert [store.sessions.key(text) for text in ("", "b", "%", "_", "AB")] == [None] * 5
    for text in ("a", "x"):
        with pytest.raises(InvalidInput, match="several session ids"):
            store.sessions.key(text)


@pytest.mark.parametrize("told", ["{", "[]", '{"archive": 5}', ""])
def test_an_altered_mark_of_an_archived_session_is_damage(tmp_path: Path, told: str) -> None:
    """Where it was archived can't be told then; it is not taken for a session that never was."""
    with closing(open_store(str(tmp_path / "h.db"), create=True)) as store:
        store.engine.execute("INSERT INTO state (name, value) VALUES ('archived:s', :told)", {"told": told})
        with pytest.raises(Damaged, match="'s' was archived"):
            store.sessions.key("s")
        with pytest.raises(Damaged, match="'s' was archived"):
            archived_sessions(store)


@pytest.mark.parametrize("column", ["meta = '{'", "source = '{'", "meta = '5'", "last = 1e300, first = -1e300"])
def test_an_altered_row_hides_no_session(tmp_path: Path, column: str) -> None:
    """What can't be read of a session is left out; all are listed."""
    with closing(open_store(str(tmp_path / "h.db"), create=True)) as store:
        for name in ("a", "b"):
            store.append([build("session", name, at(0), process="p", source={"importer": "x"}, meta={"title": name})])
        store.engine.execute(f"UPDATE session SET {column} WHERE id = 'a'")

        shown = {view.session: view for _, view in store.sessions.page(0, None)}
        assert (shown["a"].title is None) == ("meta" in column)
        assert (shown["a"].source is None) == ("source" in column)
        assert (shown["a"].last is None) == ("last" in column)
        assert shown["b"].title == "b"
        assert store.sessions.head(key_of(store, "a"))[0] in (None, "a")
