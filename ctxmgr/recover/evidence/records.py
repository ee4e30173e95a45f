"""Read single records: what an action does, and what a message says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from ctxmgr.detect.text import fingerprints, vocabulary
from ctxmgr.light_dataclass import dataclass, field
from ctxmgr.log.codec import fingerprint
from ctxmgr.recover.evidence.quotes import command_of
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.view import EntryView, EventView

PEOPLE = ("user_message", "user_message_chunk")
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
"""A file as an error names it. Bounded repetitions, so that no text can make it slow."""


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
        """Whether it was thought and not said."""
        return "thought" in self.type


def sayings(events: Iterable[EventView], types: tuple[str, ...]) -> list[SpokenMessage]:
    """Return the messages of these types in order; what a program said in a person's place is left out."""
    found: list[SpokenMessage] = []
    for event in events:
        if event.type not in types or is_synthetic(event.data):
            continue
        last = found[-1] if found else None
        goes_on = (
            last is not None
            and event.type.endswith("_chunk")
            and (last.type, last.agent, last.after) == (event.type, event.agent, event.after)
        )
        saying = last if goes_on and last is not None else SpokenMessage(event.type, event.agent, event.after)
        if saying is not last:
            found.append(saying)
        saying.parts.append(words(event.data))
        saying.events.append(event.id)
    return [saying for saying in found if saying.text.strip()]


def words(data: Any) -> str:
    """Return what an event's data says: its text, or the texts of its blocks; "" when it says nothing."""
    if isinstance(data, str):
        return data
    if isinstance(data, dict):
        fields = cast("dict[str, Any]", data)
        return next((text for text in (_blocks(fields.get(name)) for name in _KEYS) if text), "")
    return _blocks(data)


def _blocks(value: Any) -> str:
    """Return a text, a block with a text, or a list of either, as text."""
    blocks = cast("list[Any]", value)[:_MOST_BLOCKS] if isinstance(value, list) else [value]
    texts = [cast("dict[str, Any]", block).get("text") if isinstance(block, dict) else block for block in blocks]
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def is_synthetic(data: Any) -> bool:
    """Whether a program wrote what stands in a person's place."""
    return isinstance(data, dict) and cast("dict[str, Any]", data).get("synthetic") is True


BOOKKEEPING = fingerprints.word_set(
    "todowrite todoread todo updateplan plan taskcreate taskupdate tasklist taskget exitplanmode enterplanmode think "
    "sequentialthinking skill setmode notebook memory reportprogress"
)
"""Actions by which an agent keeps its own books: neither a change of the world nor another way to go."""

_LAUNCHERS = fingerprints.word_set(
    "python python3 node npm npx pnpm yarn bun uv uvx poetry pipenv pip pip3 make just go cargo docker kubectl git gh sh bash "
    "zsh env sudo time timeout nice xargs cd java ruby bundle php perl dotnet mvn gradle aws gcloud az terraform"
)
_WORDS = ("message", "body", "description", "summary", "reason", "rationale", "comment", "text", "prompt", "title")
_MESSAGES = (" -m ", " -m'", ' -m"', "-am ", "--message", "--body", "--title", "--comment")


def same_call(entry: EntryView) -> str:
    """Return what is equal for entries that ask the same, whoever asks."""
    return fingerprint([entry.action, entry.input])


def changes_something(entry: EntryView) -> bool:
    """Whether an action changes files or the like; commands are judged by what they run."""
    if is_bookkeeping(entry.action):
        return False
    fields = cast("dict[str, Any]", entry.input) if isinstance(entry.input, dict) else {}
    verb = next((value for name in ("action", "operation") if isinstance(value := fields.get(name), str)), "")
    return vocabulary.classify(entry.action, verb, command_of(entry)) == "mutation"


def explains(entry: EntryView) -> bool:
    """Whether an action can say why something is as it is: a look-up, or a change that carries words, as a commit does."""
    if not changes_something(entry):
        return True
    fields = cast("dict[str, Any]", entry.input) if isinstance(entry.input, dict) else {}
    if any(isinstance(fields.get(name), str) for name in _WORDS):
        return True
    return any(mark in command_of(entry) for mark in _MESSAGES)


def is_bookkeeping(action: str) -> bool:
    """Whether an action only keeps the agent's own books, asks a person or ends the work."""
    plain = "".join(char for char in action[:80].lower() if char.isalpha())
    return plain in BOOKKEEPING or vocabulary.asks_human(action) or vocabulary.finishes(action)


def texts(value: Any, *, names: bool = True) -> Iterator[str]:
    """Yield every text in a JSON value, with ``names`` keys too, however deep."""
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
    """Return the words that say what a command runs: the program, after a launcher also what it launches."""
    words = command[:2_000].split()
    found = words[:1]
    if found and found[0].rpartition("/")[2] in _LAUNCHERS:
        for word in words[1:]:
            found.append(word)
            if not word.startswith("-"):
                break
    return found
