"""Models of memory: episodes, and requests and responses of retain, recall and reflect.

An episode is a note with the tag `MEMORY_TAG`. It has an author, names the entries it came from, and may supersede another
episode. An agent or a model wrote its text, so the text is evidence and never an instruction.
"""

from __future__ import annotations

from typing import Annotated, Literal

from ctxmgr.types.base import Field, Shape, Text
from ctxmgr.types.query import Status
from ctxmgr.types.view import EntryView

MEMORY_TAG = "memory"
"""The tag by which a note is an episode."""
MEMORY_SESSION = "memory"
"""The session that keeps what is retained where no session is named and there is none yet."""
REFLECTION_TAG = "reflection"
"""The further tag of an episode that a reflection was kept as."""

RecallLimit = Annotated[int, Field(ge=1, le=1_000)]
ReflectLimit = Annotated[int, Field(ge=1, le=200)]
Reach = Annotated[int, Field(ge=0, le=100)]

DEFAULT_RECALL = 5
DEFAULT_REFLECT = 20


class Episode(Shape):
    """Something retained, with the entries it came from.

    ``indexes`` are the places of the entries that exist in ``session``, ``missing`` names the others; ``links`` are
    addresses in other sessions. ``author`` is who retained it, null when nobody said so. ``score`` says how well it
    answers the query it was recalled by (only comparable within one answer), null when there was none. ``around``
    holds the entries before, at and after the linked ones when the request asked to expand.
    """

    kind: Literal["episode"] = "episode"
    id: Text
    session: Text
    ts: Text | None
    text: Text
    tags: list[Text]
    entries: list[Text]
    indexes: list[int]
    # A text outlives its entries: it is still recalled, and says that they are gone (ruling 12).
    missing: list[Text] = []
    links: list[Text] = []
    # Whoever reads it has to know who said so: it is evidence by an agent or a model, and no order.
    author: Text | None
    supersedes: Text | None = None
    superseded_by: Text | None = None
    score: float | None = None
    around: list[EntryView] = []


class RetainRequest(Shape):
    """Keep a text as an episode; entries, named by index or id, are where it came from and may be left out.

    ``supersedes`` is the id of the episode that this one replaces; that one is not recalled any more.
    """

    session: Text | None = None
    text: Text
    entry_indices: list[int] = []
    entry_ids: list[Text] = []
    tags: list[Text] = []
    links: list[Text] = []
    author: Text | None = None
    supersedes: Text | None = None


class RetainSessionRequest(Shape):
    """Keep what a session decided, learned and left open as an episode, worked out by rules; None is the latest session."""

    session: Text | None = None


class RetainResponse(Shape):
    """The retained episode."""

    episode: Episode


class RecallRequest(Shape):
    """The episodes that contain the query's words, the best first.

    ``session`` None means every session of the store; several tags mean all of them; ``expand`` is the number of
    entries to show before and after each linked one; ``notes`` also looks at notes that are no episodes.
    """

    query: Text
    session: Text | None = None
    tags: list[Text] = []
    limit: RecallLimit = DEFAULT_RECALL
    expand: Reach = 0
    notes: bool = False


class RecallResponse(Shape):
    """What was recalled, best first."""

    status: Status
    query: Text
    episodes: list[Episode]


class ReflectRequest(Shape):
    """What the recalled episodes say together; ``keep`` retains the answer, by ``author``, as an episode."""

    query: Text
    session: Text | None = None
    tags: list[Text] = []
    limit: ReflectLimit = DEFAULT_REFLECT
    keep: bool = False
    author: Text | None = None


class Statement(Shape):
    """What one episode says: its first words, verbatim, with who said so, when and about which entries."""

    episode: Text
    session: Text
    ts: Text | None
    author: Text | None
    text: Text
    indexes: list[int]


class Topic(Shape):
    """What the episodes about one action, or with one tag, say: the newest statement first.

    ``name`` is the action or the tag, and ``by`` says which; null where episodes have neither.
    """

    by: Literal["action", "tag", "none"]
    name: Text | None
    statements: list[Statement]


class Recurrence(Shape):
    """Words that several episodes say alike: how many of them, and in which sessions."""

    text: Text
    count: int
    episodes: list[Text]
    sessions: list[Text]


class Contradiction(Shape):
    """Two statements about the same thing that do not agree, the newer first, and why they are taken not to.

    Found by words alone (a negation, an opposite, another number): a lead to look at, not a verdict.
    """

    newer: Text
    older: Text
    reason: Text


class SupersededEpisode(Shape):
    """An episode that another one replaced."""

    episode: Text
    by: Text
    text: Text


class Reflection(Shape):
    """A digest of what was recalled, worked out by rules; ``text`` is the whole of it for a prompt.

    ``questions`` are the episodes that ask something; ``kept`` is the id of the episode it was retained as, or null.
    """

    query: Text
    text: Text
    episodes: list[Episode]
    topics: list[Topic]
    recurring: list[Recurrence]
    contradictions: list[Contradiction]
    superseded: list[SupersededEpisode]
    questions: list[Statement]
    sessions: list[Text]
    kept: Text | None = None


class ReflectResponse(Shape):
    """The reflection; ``empty`` when nothing was recalled, and then nothing is kept."""

    status: Status
    reflection: Reflection
