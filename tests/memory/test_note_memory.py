"""The memory on the store: the battery with its own ranking and with another one, and what is its own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ctxmgr.errors import InvalidInput, NoHistory
from ctxmgr.memory.candidates import Candidates, Memory
from ctxmgr.memory.note_memory import EmbeddedMemory, retain_record
from ctxmgr.store import Store
from ctxmgr.types.memory import MEMORY_SESSION, Episode, RecallRequest, ReflectRequest, RetainRequest
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import AddNoteRequest
from ctxmgr.workspace import Workspace
from tests.builders import at, write
from tests.memory.battery import MemoryBattery


class TestEmbeddedMemory(MemoryBattery):
    """The memory as it comes."""

    def make(self, store: Store) -> Memory:
        return EmbeddedMemory(store)


class _Neighbours:
    """Ranks by the share of three-letter pieces in common, as one by vectors would: no word has to be the same."""

    def rank(self, query: str, episodes: Sequence[Episode]) -> list[tuple[Episode, float]]:
        wanted = self._pieces(query)
        near = [(each, len(wanted & self._pieces(each.text)) / len(wanted)) for each in episodes]
        return sorted(near, key=lambda pair: -pair[1])

    @staticmethod
    def _pieces(text: str) -> set[str]:
        return {text[place : place + 3].lower() for place in range(max(1, len(text) - 2))}


class TestAnotherRanker(MemoryBattery):
    """The same battery with candidates put in order by something that is no word search."""

    def make(self, store: Store) -> Memory:
        return EmbeddedMemory(store, ranker=_Neighbours())


def _recall(store: Store, query: str, **more: object) -> list[str]:
    request = RecallRequest.model_validate({"query": query, **more})
    return [each.text for each in EmbeddedMemory(store).recall(request).episodes]


def _retain(store: Store, text: str, **more: object) -> Episode:
    return EmbeddedMemory(store).retain(RetainRequest.model_validate({"text": text, **more})).episode


def test_candidates_may_come_from_elsewhere(store: Store) -> None:
    """A finder of one's own decides what is recalled, so that a search by vectors needs no words in common."""
    write(store, "s", ["Bash:ls"])
    kept = _retain(store, "the database is slow")

    class Nearest:
        def find(self, request: RecallRequest) -> Candidates:
            return Candidates([kept])

    class Fixed:
        def rank(self, query: str, episodes: Sequence[Episode]) -> list[tuple[Episode, float]]:
            return [(each, 1.0) for each in episodes]

    memory = EmbeddedMemory(store, finder=Nearest(), ranker=Fixed())
    assert [each.id for each in memory.recall(RecallRequest(query="postgres latency")).episodes] == [kept.id]


def test_a_record_can_be_written_with_others(store: Store) -> None:
    """An episode's record is made without writing, so that a recovery writes it together with its continuation."""
    write(store, "s", ["Bash:ls"])
    key = store.sessions.key("s")
    record = retain_record(store, key, RetainRequest(text="deploy by rsync", entry_indices=[-1], author="context-manager"))

    assert _recall(store, "rsync") == []
    store.append([record, build("continuation", "s", at(9), id="c1")])
    assert _recall(store, "rsync") == ["deploy by rsync"]
    assert (record["kind"], record["entries"], record["tags"]) == ("note", ["s-e0000"], ["memory"])
    assert retain_record(store, None, RetainRequest(text="x"))["session"] == MEMORY_SESSION


def test_plain_notes_are_recalled_on_request_alone(store: Store) -> None:
    """Notes that are no episodes stay out of recall unless they are asked for."""
    write(store, "s", ["Bash:ls"])
    Workspace.open(store.location).add_note(AddNoteRequest(entry_indices=[0], content="deploy looked odd", tags=["routing"]))
    _retain(store, "deploy by rsync")

    assert _recall(store, "deploy") == ["deploy by rsync"]
    assert set(_recall(store, "deploy", notes=True)) == {"deploy by rsync", "deploy looked odd"}
    assert _recall(store, "deploy", notes=True, tags=["ROUTING"]) == ["deploy looked odd"]


def test_an_episode_is_superseded_by_the_beginning_of_its_id(store: Store) -> None:
    """The id of what is replaced may be cut as far as it stays clear; what is not clear is refused."""
    write(store, "s", ["Bash:ls"])
    store.append([
        build("note", "s", at(number), id=name, entries=[], content="deploy by ftp", tags=["memory"])
        for number, name in enumerate(("aa1", "aa2", "b1"))
    ])  # fmt: skip

    assert _retain(store, "deploy by scp", supersedes="b").supersedes == "b1"
    with pytest.raises(InvalidInput, match="2 notes have an id like 'aa'"):
        _retain(store, "deploy by scp", supersedes="aa")
    assert _recall(store, "deploy") == ["deploy by scp", "deploy by ftp", "deploy by ftp"]


def test_notes_that_replace_each_other_hide_only_themselves(store: Store) -> None:
    """Foreign records that supersede themselves, one another or ids of other sessions can't hide what is not theirs."""
    write(store, "s", ["Bash:ls"])
    made = {"entries": [], "tags": ["memory"]}
    store.append([
        build("note", "s", at(1), id="n1", content="deploy one", supersedes="n1", **made),
        build("note", "s", at(2), id="n2", content="deploy two", supersedes="n3", **made),
        build("note", "s", at(3), id="n3", content="deploy three", supersedes="n2", **made),
        build("note", "t", at(4), id="n1", content="deploy other", supersedes="n1", **made),
        build("note", "t", at(5), id="n9", content="deploy nine", supersedes="n1", **made),
    ])  # fmt: skip

    assert set(_recall(store, "deploy")) == {"deploy one", "deploy nine"}


def test_a_kept_reflection_leads_back_to_its_sources(store: Store) -> None:
    """A reflection is kept as an episode by its keeper, linked to the entries of its sources in every session."""
    write(store, "a", ["Bash:make", "Bash:ship"])
    write(store, "b", ["Bash:make"])
    _retain(store, "the deploy timed out", session="a", entry_indices=[0, 1])
    _retain(store, "the deploy went through", session="b", entry_indices=[0])
    memory = EmbeddedMemory(store)
    kept = memory.reflect(ReflectRequest(query="deploy", keep=True, author="planner")).reflection
    found = {each.id: each for each in memory.recall(RecallRequest(query="deploy", expand=1)).episodes}[kept.kept or ""]

    assert (found.session, found.author, found.text) == ("b", "planner", kept.text)
    assert (found.tags, found.entries, found.links) == (["memory", "reflection"], ["b-e0000"], ["a-e0000", "a-e0001"])
    assert [(entry.session, entry.index) for entry in found.around] == [("b", 0), ("a", 0), ("a", 1)]


def test_keeping_again_replaces_and_never_feeds_on_itself(store: Store) -> None:
    """The same reflection is kept once, a changed one replaces it, another author's stays, and none is a source."""
    write(store, "s", ["Bash:make"])
    _retain(store, "the deploy timed out")
    memory = EmbeddedMemory(store)

    def kept(author: str | None = None) -> str | None:
        told = memory.reflect(ReflectRequest(query="deploy", keep=True, author=author)).reflection
        assert all("reflection" not in each.tags for each in told.episodes)
        return told.kept

    first, other = kept(), kept("planner")
    assert kept() == first != other
    _retain(store, "the deploy went through")
    second = kept()
    found = {each.id for each in memory.recall(RecallRequest(query="deploy", tags=["reflection"])).episodes}
    assert found == {second, other}
    assert second != first


def test_long_queries_that_begin_alike_are_others(store: Store) -> None:
    """A kept reflection is replaced by one on the whole same query alone."""
    write(store, "s", ["Bash:make"])
    _retain(store, "the deploy timed out")
    memory = EmbeddedMemory(store)
    queries = [f"deploy {'why ' * 100}{end}" for end in ("now", "then", "now")]
    kept = [memory.reflect(ReflectRequest(query=query, keep=True)).reflection.kept for query in queries]

    assert kept[0] == kept[2] != kept[1]
    assert {each.id for each in memory.recall(RecallRequest(query="deploy", tags=["reflection"])).episodes} == set(kept)


def test_a_first_memory_needs_no_run(store: Store) -> None:
    """In a store without a session an episode is kept in one for memory, which later ones join until there is a run."""
    first, second = _retain(store, "deploys need the VPN"), _retain(store, "the VPN is slow")
    write(store, "run", ["Bash:ls"])

    assert [first.session, second.session, _retain(store, "VPN again").session] == [MEMORY_SESSION, MEMORY_SESSION, "run"]
    assert sorted(_recall(store, "VPN")) == ["VPN again", "deploys need the VPN", "the VPN is slow"]


@pytest.mark.parametrize("more", [{"entry_indices": [0]}, {"links": ["@0"]}, {"supersedes": "x"}])
def test_what_a_first_memory_refers_to_has_to_be_there(store: Store, more: dict[str, object]) -> None:
    """Entries, links and former episodes are missing where there is no session at all."""
    with pytest.raises(NoHistory):
        _retain(store, "deploys need the VPN", **more)
    assert store.sessions.count() == 0
