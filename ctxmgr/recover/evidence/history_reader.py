"""Read and annotate one session through the history tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.detect.text import fingerprints, vocabulary
from ctxmgr.diagnose.evidence.calls import command_of, fields_of
from ctxmgr.diagnose.evidence.messages import PEOPLE, STREAMED, is_inserted, starts_agent
from ctxmgr.history.query import tools
from ctxmgr.log.codec import fingerprint
from ctxmgr.recover.evidence.quotes import flat
from ctxmgr.recover.injection import suspicion
from ctxmgr.store import Store
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.memory import MEMORY_TAG
from ctxmgr.types.route import CONTEXT_MANAGER
from ctxmgr.types.view import EntryView, EventView, NoteView

_SAID = 60
"""Maximum message events read to put the latest messages together."""

_JUDGED = 200_000
"""Characters of each part of a row that are judged. Quotes from a longer part come from within them, or from its end."""


@dataclass(frozen=True, slots=True)
class HistoryReader:
    """What the context manager sees of one session. Every answer is bounded for any length of history."""

    store: Store
    session: str
    withheld: dict[str, str] = field(default_factory=lambda: dict[str, str]())
    """Ids of rows that read like instructions -> the reason. Their texts are withheld from the next agent (P-MODEL)."""
    cleared: set[str] = field(default_factory=set[str])
    """Ids of entries that were judged and need not be withheld."""
    searched: dict[tuple[str, int], list[EntryView]] = field(default_factory=dict[tuple[str, int], list[EntryView]])
    """Results of `search`, so that the same search is not made twice."""

    def ask(self, tool: Callable[..., Any], **asked: Any) -> Any:
        """Return the answer of a history tool, not cleaned; without ``session`` it is asked about this one."""
        return tool(self.store, self.store.queries, tools.PlainRequest(**{"session": self.session, **asked}))

    def entry(self, entry_id: str) -> EntryView | None:
        """Return an entry, or None if it is gone; a fact that rests on a missing entry is labelled unknown."""
        return next(iter(self.entries([entry_id])), None)

    def entries(self, ids: Sequence[str]) -> list[EntryView]:
        """Return the entries that exist among the given ids, in the given order."""
        key = self.store.sessions.key(self.session)
        found = {} if key is None else self.store.queries.entries_by_ids(key, ids)
        return [self.clean(found[entry_id]) for entry_id in ids if entry_id in found]

    def known_ids(self, ids: Sequence[str]) -> set[str]:
        """Return the given ids for which the session has a record: an entry or a message."""
        key = self.store.sessions.key(self.session)
        return set() if key is None else self.store.annotations.known_ids(key, ids)

    def newest(self, limit: int, *, status: Sequence[str] = (), **wanted: str | None) -> list[EntryView]:
        """Return the newest entries, newest first; of an ``agent``, an ``action`` or an ``input_type`` if it is given."""
        named = {name: [value] for name, value in wanted.items() if value is not None}
        found = self.ask(tools.list_, kind="entry", limit=limit, newest_first=True, status=status, **named)
        return [self.clean(row) for row in found.rows]

    def total(self) -> int:
        """Return the number of entries."""
        return self.ask(tools.list_, kind="entry", limit=1).total

    def entries_before(self, index: int, most: int) -> list[EntryView]:
        """Return up to ``most`` entries before an index, oldest first."""
        start = max(0, index - most)
        if index <= start:
            return []
        return [self.clean(row) for row in self.ask(tools.list_, kind="entry", offset=start, limit=index - start).rows]

    def notes(self, start: int = 0) -> list[NoteView]:
        """Return the notes that were added to entries from an index on, oldest first, without our own and what memory holds."""
        key, notes = self.store.sessions.key(self.session), self.store.annotations.notes
        total = notes(key, (), None, 0, 1)[1]
        return [
            row for row in notes(key, (), None, max(0, total - _SAID), _SAID)[0]
            if row.author != CONTEXT_MANAGER and MEMORY_TAG not in row.tags and row.superseded_by is None
            and max(row.indexes, default=-1) >= start and suspicion(row.content[:_JUDGED]) is None
        ]  # fmt: skip

    def first_words(self) -> SpokenMessage | None:
        """Return the first message of a person in the session."""
        return next(iter(sayings(self._events(PEOPLE, _SAID, newest_first=False), PEOPLE)), None)

    def own_task(self, agent: str, launcher: EntryView | None) -> SpokenMessage | None:
        """Return the words with which another agent started this one; None if they are not recorded."""
        starts = (each for each in self._events(("nudge",), _SAID, newest_first=False) if each.agent == agent)
        told = [(each.id, words(self.heard_one(each).data)) for each in starts if starts_agent(each.data)]
        told += [] if launcher is None else [(launcher.id, fields_of(launcher).get("prompt"))]
        found = [SpokenMessage("nudge", agent, None, [text], [name]) for name, text in told if text and isinstance(text, str)]
        return next(iter(found), None)

    def latest_words(self, most: int = 3) -> list[SpokenMessage]:
        """Return the newest messages of people, oldest first."""
        return sayings(reversed(self._events(PEOPLE, _SAID, newest_first=True)), PEOPLE)[-most:]

    def _events(self, types: Sequence[str], most: int, *, newest_first: bool) -> list[EventView]:
        return self.ask(tools.list_, kind="event", event_type=types, limit=most, newest_first=newest_first).rows

    def heard(self, most: int = 200) -> list[EventView]:
        """Return the newest messages of people and agents, oldest first, preceded by the first message of a person."""
        rows = self._events((*PEOPLE, *AGENTS, "compaction", "waiting", "interrupt"), most, newest_first=True)
        newest = [self.heard_one(row) for row in reversed(rows)]
        first = [row for row in self._events(PEOPLE, 1, newest_first=False) if row.id not in {each.id for each in newest}]
        return [*first, *newest]

    def streamed(self) -> list[EventView]:
        """Return the newest events that show what open calls have printed so far, oldest first."""
        return [self.heard_one(row) for row in reversed(self._events(STREAMED, 50, newest_first=True))]

    def last_messages(self, entry: EntryView) -> list[SpokenMessage]:
        """Return the last two messages or thoughts of agents on the way to an entry."""
        total = self.ask(tools.messages, entry_id=entry.id, limit=1).total
        found = self.ask(tools.messages, entry_id=entry.id, limit=_SAID, offset=max(0, total - _SAID))
        return sayings([self.heard_one(event) for event in found.rows], AGENTS)[-2:]

    def search(self, text: str, most: int) -> list[EntryView]:
        """Return the newest entries that contain a text, oldest first."""
        if (text, most) not in self.searched:
            rows = self.ask(tools.search_last, query=text, max_results=most, kind="entry")
            self.searched[text, most] = list(map(self.clean, rows))
        return self.searched[text, most]

    def find(self, text: str, most: int) -> list[EntryView | EventView]:
        """Return the newest rows, entries and messages, that contain a text, oldest first."""
        rows = self.ask(tools.search_last, query=text, max_results=most, kind="all")
        return [self.clean(row) if isinstance(row, EntryView) else self.heard_one(row) for row in rows]

    def clean(self, entry: EntryView) -> EntryView:
        """Return an entry without parts that read like instructions, so that later quotes can't pass them on."""
        if entry.id in self.cleared:
            return entry
        reasons: dict[str, str] = {}
        for part in ("input", "output", "error"):
            value = getattr(entry, part)
            if value not in (None, "", {}, []) and (why := suspicion(flat(value, _JUDGED))) is not None:
                reasons[part] = why
        if not reasons:
            self.cleared.add(entry.id)
            return entry
        self.withheld[entry.id] = next(iter(reasons.values()))
        return entry.model_copy(update={part: f"[withheld: it {why}]" for part, why in reasons.items()})

    def heard_one(self, event: EventView) -> EventView:
        """Return a message without text that reads like instructions. A person's message stays: it is meant to be followed."""
        why = None if event.type in PEOPLE else suspicion(flat(event.data, _JUDGED))
        if why is None:
            return event
        self.withheld[event.id] = why
        return event.model_copy(update={"data": {"text": f"[withheld: it {why}]"}})


FAILED = ("error", "denied")
"""Statuses of failed calls. A call that a person interrupted has not failed."""
AGENTS = ("message", "agent_message_chunk", "thought", "agent_thought_chunk")
_KEYS = ("text", "content", "message", "summary")
_MOST_BLOCKS = 200
_ENDINGS = (
    "c|cc|cfg|conf|cpp|cs|css|csv|env|ex|exs|go|gradle|h|hpp|hs|html|ini|ipynb|java|js|json|jsx|kt|lock|log|lua|md|mjs|ml|"
    "mod|php|pl|properties|proto|py|pyi|r|rb|rs|rst|scala|scss|sh|sql|svelte|swift|tf|toml|ts|tsx|txt|vue|xml|yaml|yml"
)
PATH = lazy_pattern(
    rf"(?<![\w/.:~-])((?:~|\.{{1,2}})?/?(?:[\w.@+-]{{1,60}}/){{0,12}}[\w.@+-]{{1,80}}\.(?:{_ENDINGS}))(?![\w/])"
)
"""A file name in an error message. The repetitions are bounded, so that no text can make the search slow."""


@dataclass(slots=True)
class SpokenMessage:
    """One message, put together from the events that carried it."""

    type: str
    agent: str | None
    after: int | None
    parts: list[str] = field(default_factory=list[str])
    events: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """The message, verbatim."""
        return "".join(self.parts)

    @property
    def is_thought(self) -> bool:
        """Whether the message is a thought, not said to anybody."""
        return "thought" in self.type


def sayings(events: Iterable[EventView], types: tuple[str, ...]) -> list[SpokenMessage]:
    """Return the messages of these types in order, without text that a program inserted in a person's name."""
    found: list[SpokenMessage] = []
    for event in events:
        if event.type not in types or is_inserted(event.data):
            continue
        last, own = found[-1] if found else None, (event.type, event.agent, event.after)
        if last is None or not event.type.endswith("_chunk") or (last.type, last.agent, last.after) != own:
            found.append(SpokenMessage(*own))
        found[-1].parts.append(words(event.data))
        found[-1].events.append(event.id)
    return [saying for saying in found if saying.text.strip()]


def words(data: Any) -> str:
    """Return the text of an event's data, or of its blocks; "" if it has none."""
    if isinstance(data, str):
        return data
    if isinstance(data, dict):
        fields = cast("dict[str, Any]", data)
        return next((text for text in (_blocks(fields.get(name)) for name in _KEYS) if text), "")
    return _blocks(data)


def _blocks(value: Any) -> str:
    """Return the text of a string, of a block, or of a list of both."""
    blocks = cast("list[Any]", value)[:_MOST_BLOCKS] if isinstance(value, list) else [value]
    texts = [cast("dict[str, Any]", block).get("text") if isinstance(block, dict) else block for block in blocks]
    return "\n".join(text for text in texts if isinstance(text, str) and text)


BOOKKEEPING = fingerprints.word_set(
    "todowrite todoread todo updateplan plan taskcreate taskupdate tasklist taskget exitplanmode enterplanmode think "
    "sequentialthinking skill setmode notebook memory reportprogress"
)
"""Actions for an agent's own bookkeeping. They neither change anything nor try another way."""

_LAUNCHERS = fingerprints.word_set(
    "python python3 node npm npx pnpm yarn bun uv uvx poetry pipenv pip pip3 make just go cargo docker kubectl git gh sh bash "
    "zsh env sudo time timeout nice xargs cd java ruby bundle php perl dotnet mvn gradle aws gcloud az terraform"
)
_WORDS = ("message", "body", "description", "summary", "reason", "rationale", "comment", "text", "prompt", "title")
_MESSAGES = (" -m ", " -m'", ' -m"', "-am ", "--message", "--body", "--title", "--comment")


def same_call(entry: EntryView) -> str:
    """Return a key that is equal for calls with the same action and input, whoever makes them (ruling 7)."""
    return fingerprint([entry.action, fingerprints.canonical(entry.input)])


def changes_something(entry: EntryView) -> bool:
    """Whether an action changes files or the like. A command is judged by the program it runs."""
    if is_bookkeeping(entry.action):
        return False
    fields, command = fields_of(entry), command_of(entry)
    # A field named "command" that holds no command is the verb of an editing tool.
    names = ("action", "operation") if command else ("action", "operation", "command")
    verb = next((value for name in names if isinstance(value := fields.get(name), str)), "")
    return vocabulary.classify(entry.action, verb, command) == "mutation"


def explains(entry: EntryView) -> bool:
    """Whether an action can say why something is as it is: any look-up, or a change with words, such as a commit."""
    if not changes_something(entry):
        return True
    fields = fields_of(entry)
    return any(isinstance(fields.get(name), str) for name in _WORDS) or any(mark in command_of(entry) for mark in _MESSAGES)


def is_bookkeeping(action: str) -> bool:
    """Whether an action only keeps the agent's own books, asks a person or ends the work."""
    plain = "".join(char for char in action[:80].lower() if char.isalpha())
    return plain in BOOKKEEPING or vocabulary.asks_human(action) or vocabulary.finishes(action)


def texts(value: Any, *, names: bool = True) -> Iterator[str]:
    """Yield every text in a JSON value, at any depth; with ``names`` also the keys."""
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            fields = cast("dict[str, Any]", item)
            waiting += [*(fields if names else ()), *fields.values()]
        elif isinstance(item, list):
            waiting += cast("list[Any]", item)


def program(command: str) -> list[str]:
    """Return the words that name what a command runs: the program, and what a launcher launches."""
    words = command[:2_000].split()
    found = words[:1]
    if found and found[0].rpartition("/")[2] in _LAUNCHERS:
        for word in words[1:]:
            found.append(word)
            if not word.startswith("-"):
                break
    return found
