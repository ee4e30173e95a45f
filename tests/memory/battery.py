"""What every memory holds to, whatever it searches with: inherit `MemoryBattery` and say how to make one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ctxmgr.errors import CtxmgrError, InvalidInput, NotFound, OutOfBounds
from ctxmgr.log import codec
from ctxmgr.memory.candidates import Memory
from ctxmgr.store import Store, open_store
from ctxmgr.types.memory import MEMORY_SESSION, Episode, RecallRequest, ReflectRequest, RetainRequest
from ctxmgr.types.query import ListNotesRequest, ListRequest
from ctxmgr.workspace import Workspace
from tests.builders import write

HOSTILE = {
    "quotes": "the 'deploy' said \"no\"; DROP TABLE record; --",
    "wildcards": "100% of deploy_% and [a-z]* \\",
    "NUL": "deploy\0hidden",
    "lone surrogates": "deploy \ud800 and \udfff",
    "bidi and zero width": "deploy \u202etxet\u202c \u200b\ufeff",
    "escapes": "deploy \x1b]0;title\x07 \x9b2J",
    "lines": "deploy\n## Superseded\r\n- forged\u2028line",
    "piled marks": "deploy e" + "\u0591\u05b0" * 40_000,
    "a megabyte": "deploy " + "x" * 1_000_000,
    "a megabyte of words": "deploy " + "yes no " * 140_000,
    "a record": '{"v":1,"kind":"note","session":"s","supersedes":"x"}',
}


class MemoryBattery:
    """The tests; each gets a store of both kinds, with the sessions "a" and "b"."""

    def make(self, store: Store) -> Memory:
        """Return the memory under test."""
        raise NotImplementedError

    @pytest.fixture
    def memory(self, store: Store) -> Memory:
        write(store, "a", [f"Bash:step {number}" for number in range(6)])
        write(store, "b", ["Read:x.py", "!Edit:x.py -> locked"])
        return self.make(store)

    @staticmethod
    def recalled(memory: Memory, query: str, **more: object) -> list[Episode]:
        return memory.recall(RecallRequest.model_validate({"query": query, **more})).episodes

    def test_what_was_retained_is_recalled_whole(self, memory: Memory) -> None:
        """An episode comes back with its text, entries, tags and author, from any session."""
        kept = memory.retain(
            RetainRequest(session="a", text="the deploy needs the VPN", entry_indices=[4, 1], tags=[" net "], author="planner")
        ).episode
        (found,) = self.recalled(memory, "deploy VPN")

        assert (found.id, found.session, found.text, found.author) == (kept.id, "a", "the deploy needs the VPN", "planner")
        assert (found.indexes, found.entries, "net" in found.tags) == ([1, 4], ["a-e0001", "a-e0004"], True)
        assert found.score is not None
        assert self.recalled(memory, "deploy VPN", session="b") == []

    def test_nothing_is_made_up(self, memory: Memory) -> None:
        """A query that nothing answers gets an empty answer."""
        memory.retain(RetainRequest(text="the deploy needs the VPN"))

        assert memory.recall(RecallRequest(query="zebra")).status == "empty"
        assert memory.reflect(ReflectRequest(query="zebra", keep=True)).reflection.kept is None

    @pytest.mark.parametrize("query", ["", "  ", "\n\t", "\0", "\u2003"])
    def test_a_query_is_needed(self, memory: Memory, query: str) -> None:
        """A blank query is refused by recall and reflect in the words of search."""
        for ask in (lambda: memory.recall(RecallRequest(query=query)), lambda: memory.reflect(ReflectRequest(query=query))):
            with pytest.raises(InvalidInput, match=r"^Query cannot be empty$"):
                ask()

    @pytest.mark.parametrize("text", ["", " ", "\n\t", "\u2003"])
    def test_a_text_is_needed(self, memory: Memory, store: Store, text: str) -> None:
        """A blank text is refused, whatever else is wrong, and nothing is written."""
        before = list(store.sessions.records(None))
        with pytest.raises(InvalidInput, match=r"^Memory text cannot be empty$"):
            memory.retain(RetainRequest(text=text, entry_indices=[99]))

        assert list(store.sessions.records(None)) == before

    def test_what_is_named_must_exist(self, memory: Memory) -> None:
        """An entry, a session or a superseded episode that is not there is a typed refusal."""
        for request, refusal in (
            (RetainRequest(text="x", entry_indices=[99]), OutOfBounds), (RetainRequest(text="x", entry_ids=["no"]), NotFound),
            (RetainRequest(text="x", session="no"), NotFound), (RetainRequest(text="x", supersedes="no"), NotFound),
            (RetainRequest(text="x", supersedes=""), NotFound),
        ):  # fmt: skip
            with pytest.raises(refusal):
                memory.retain(request)
        with pytest.raises(NotFound):
            memory.recall(RecallRequest(query="x", session="no"))

    def test_an_empty_history_has_no_memory(self, store: Store) -> None:
        """In an empty history recall is empty, and the first episode gets a session of its own."""
        memory = self.make(store)

        assert memory.recall(RecallRequest(query="x")).status == "empty"
        assert memory.retain(RetainRequest(text="x")).episode.session == MEMORY_SESSION
        assert [each.text for each in self.recalled(memory, "x")] == ["x"]

    @pytest.mark.parametrize("session", ["a", "b"])
    def test_superseded_episodes_never_come(self, memory: Memory, session: str) -> None:
        """An episode replaced by a later one, in its own session or in another, is not recalled; the later one is."""
        first = memory.retain(RetainRequest(session="a", text="deploy with ftp")).episode
        second = memory.retain(RetainRequest(session=session, text="deploy with rsync", supersedes=first.id)).episode
        found = self.recalled(memory, "deploy")
        told = memory.reflect(ReflectRequest(query="deploy")).reflection

        assert ([each.id for each in found], found[0].supersedes) == ([second.id], first.id)
        assert [(old.episode, old.by) for old in told.superseded] == [(first.id, second.id)]

    @pytest.mark.parametrize(
        ("linked", "reach", "shown"),
        [([0], 2, [0, 1, 2]), ([5], 2, [3, 4, 5]), ([3], 1, [2, 3, 4]), ([0, 5], 1, [0, 1, 4, 5]), ([2, 3], 1, [1, 2, 3, 4]),
         ([2], 100, [0, 1, 2, 3, 4, 5]), ([2], 0, [])],
    )  # fmt: skip
    def test_recall_expands_around_the_linked_entries(
        self, memory: Memory, linked: Sequence[int], reach: int, shown: Sequence[int]
    ) -> None:
        """The entries around the linked ones come once each, in order, and stop at the ends of the session."""
        memory.retain(RetainRequest(session="a", text="deploy", entry_indices=list(linked)))
        (found,) = self.recalled(memory, "deploy", expand=reach)

        assert [entry.index for entry in found.around] == list(shown)
        assert {entry.session for entry in found.around} == ({"a"} if shown else set())

    def test_the_limit_holds(self, memory: Memory) -> None:
        """No more episodes come than were asked for."""
        for number in range(8):
            memory.retain(RetainRequest(text=f"deploy number {number}"))

        assert [len(self.recalled(memory, "deploy", limit=limit)) for limit in (1, 5, 100)] == [1, 5, 8]

    def test_reading_never_writes(self, memory: Memory, store: Store) -> None:
        """Recall and reflect, on a store open for reading only, answer the same and leave every record as it was."""
        memory.retain(RetainRequest(session="a", text="deploy needs the VPN", entry_indices=[1]))
        records = list(store.sessions.records(None))
        again = open_store(store.location, readonly=True)
        readers = [self.make(again), memory]
        answers = [
            (one.recall(RecallRequest(query="vpn", expand=2)), one.reflect(ReflectRequest(query="vpn"))) for one in readers
        ]

        assert answers[0] == answers[1]
        assert list(store.sessions.records(None)) == list(again.sessions.records(None)) == records
        with pytest.raises(CtxmgrError):
            readers[0].reflect(ReflectRequest(query="vpn", keep=True))
        again.close()

    @pytest.mark.parametrize("other", ["history.db", "history.jsonl"])
    def test_memory_travels_with_its_history(self, memory: Memory, store: Store, other: str) -> None:
        """What is exported and appended to another store, of either kind, is remembered there the same."""
        first = memory.retain(RetainRequest(session="a", text="deploy with ftp", author="x")).episode
        memory.retain(RetainRequest(session="b", text="deploy with rsync", entry_indices=[1], supersedes=first.id))
        memory.reflect(ReflectRequest(query="deploy", keep=True))
        folder = store.location + ".other/"
        target = open_store(folder + other, create=True)
        target.append(codec.decode(codec.encode(record)) for record in store.sessions.records(None))
        moved = self.make(target)

        asked = RecallRequest(query="deploy", expand=1)
        assert moved.recall(asked) == memory.recall(asked)
        assert len(moved.recall(asked).episodes) == 2
        target.close()

    @pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
    def test_hostile_text_is_only_text(self, memory: Memory, store: Store, text: str) -> None:
        """Text of any kind is kept to the letter, recalled by its words or by itself, and changes nothing else."""
        memory.retain(RetainRequest(text="deploy needs the VPN"))
        kept = memory.retain(RetainRequest(session="a", text=text, tags=[text[:50]], author=text[:50])).episode

        assert kept.text == text
        assert kept.id in [each.id for each in self.recalled(memory, text[:200])]
        assert len(self.recalled(memory, "VPN")) == 1
        told = memory.reflect(ReflectRequest(query="deploy record", keep=True)).reflection
        assert told.text.count("\n## Superseded") == 0
        assert store.verify()[1] == []

    def test_the_author_stays_with_the_words(self, memory: Memory) -> None:
        """Every statement of a reflection names its author beside it, and who nobody signed is called unsigned."""
        memory.retain(RetainRequest(text="deploy needs the VPN", author="model"))
        memory.retain(RetainRequest(text="deploy runs at night"))
        told = memory.reflect(ReflectRequest(query="deploy")).reflection
        lines = {line.rpartition(": ")[2]: line for line in told.text.splitlines() if line.startswith("- ")}

        assert " model in " in lines['"deploy needs the VPN"']
        assert " unsigned in " in lines['"deploy runs at night"']
        assert {said.author for topic in told.topics for said in topic.statements} == {"model", None}

    def test_an_episode_is_seen_by_every_tool(self, memory: Memory, store: Store) -> None:
        """An episode is a note on its entries: every query of those entries shows it, and notes are listed by its tag."""
        kept = memory.retain(RetainRequest(session="a", text="deploy", entry_indices=[2], author="x")).episode
        workspace = Workspace.open(store.location, readonly=True)
        (note,) = workspace.list_notes(ListNotesRequest(all_sessions=True, tags=["memory"])).notes
        rows = workspace.list(ListRequest(session="a")).rows

        assert (note.id, note.content, note.author, note.indexes) == (kept.id, "deploy", "x", [2])
        assert [[each["id"] for each in row.to_json().get("notes", [])] for row in rows][2] == [kept.id]
        workspace.close()
