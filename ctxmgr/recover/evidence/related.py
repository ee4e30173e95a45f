"""Search related sessions of the store, and memory, for what the session itself does not hold (ruling 25).

Each record from elsewhere is given with its origin. It is used only if it surely concerns the subject, or if the same
trouble was met and overcome there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.detect.text import fingerprints, vocabulary
from ctxmgr.diagnose.evidence.calls import command_of
from ctxmgr.diagnose.evidence.texts import capital
from ctxmgr.history.session_evidence import RelatedSession, newest_entries, related_sessions
from ctxmgr.log.codec import fingerprint
from ctxmgr.log.ids import parse_time
from ctxmgr.memory.episodes import AUTHOR
from ctxmgr.recover.evidence.excerpts import Row
from ctxmgr.recover.evidence.history_reader import FAILED, HistoryReader, is_bookkeeping, same_call
from ctxmgr.recover.evidence.quotes import answer_text, clip_middle, display_name
from ctxmgr.store import Store
from ctxmgr.types.memory import MEMORY_TAG
from ctxmgr.types.view import EntryView, EventView, NoteView

MOST_TOLD = 3
_SESSIONS, _REMEMBERED = 8, 40
"""Maximum related sessions whose entries are read, and maximum related sessions whose memory is read."""
_ENTRIES, _SAID, _HITS, _MEMORIES = 60, 30, 10, 60
_MOST_SEARCHES = 6
_STEP = 10**8
"""Distance between the indexes of consecutive sessions when their rows are ordered together. No session has as many entries."""
_LEAST_ERROR = 12
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RelatedRecord:
    """A record of another session, or of memory.

    Attributes:
        row: the row as recorded there; an episode of memory is given as a message.
        excerpt: its text around the match; "" for all of it.
        source: its origin, in words for an agent.
        where: its origin for a page, with the session's id.
    """

    row: Row
    excerpt: str
    source: str
    where: str


class RelatedReader:
    """Reads the sessions related to one session. Every answer is bounded, whatever the store holds.

    Its rows have indexes of their own, which order the rows of all sessions together. `describe` returns the recorded ones.

    Args:
        store: the store as the requester may see it, without what the requester may not read.
        session: the id of the session that is recovered.
    """

    def __init__(self, store: Store, session: str) -> None:
        self._store = store
        self._session = session
        self._rows: dict[str, tuple[Row, RelatedSession | None]] = {}
        self._searches = 0

    @cached_property
    def _related_sessions(self) -> list[RelatedSession]:
        return related_sessions(self._store, self._session, _REMEMBERED)

    @cached_property
    def _readers(self) -> list[tuple[RelatedSession, HistoryReader]]:
        """The latest related sessions, oldest first, each with its reader, which withholds text that reads like an order."""
        latest = reversed(self._related_sessions[:_SESSIONS])
        return [(each, HistoryReader(self._store, each.session)) for each in latest]

    @property
    def sessions(self) -> list[str]:
        """Ids of the sessions that are read, the latest first."""
        return [each.session for each in self._related_sessions[:_SESSIONS]]

    @property
    def withheld(self) -> set[str]:
        """Ids of rows that read like orders. Their texts are withheld."""
        return {name for _, reader in self._readers for name in reader.withheld}

    @cached_property
    def mark(self) -> str:
        """A mark that stays equal until something is added to the related sessions or their memory."""
        notes = [self._store.annotations.notes(each.key, [MEMORY_TAG], None, 0, 0)[1] for each in self._related_sessions]
        return fingerprint([[each.session, each.entries] for each in self._related_sessions] + notes)[:12]

    @cached_property
    def entries(self) -> list[EntryView]:
        """The newest entries of each session with their recorded indexes, oldest session first."""
        return [entry for _, of_one in self._entries for entry in of_one]

    @cached_property
    def _entries(self) -> list[tuple[RelatedSession, list[EntryView]]]:
        found: list[tuple[RelatedSession, list[EntryView]]] = []
        for session, reader in self._readers:
            entries = newest_entries(self._store, session.session, _ENTRIES)
            copies = self._find_copies(entries)
            found.append((session, [reader.clean(entry) for entry in entries if entry.id not in copies]))
        return found

    def _find_copies(self, rows: Sequence[Row]) -> set[str]:
        """Return the ids of rows that this session has too: a session that was forked or continued begins with its records."""
        own = self._store.sessions.key(self._session)
        return set() if own is None else self._store.annotations.known_ids(own, [row.id for row in rows])

    @cached_property
    def rows(self) -> list[Row]:
        """The rows to compare: the newest entries and messages of each session, and the memories."""
        found: list[Row] = []
        for place, ((session, entries), (_, reader)) in enumerate(zip(self._entries, self._readers, strict=True), start=1):
            found += [self._place_row(entry, session, place) for entry in entries]
            heard = reader.heard(_SAID)
            copies = self._find_copies(heard)
            found += [self._place_row(event, session, place) for event in heard if event.id not in copies]
        return [*found, *(self._place_row(event, session, 0) for event, session in self._memories())]

    def find(self, text: str, most: int) -> list[Row]:
        """Return rows of longer sessions that contain a text; `rows` has messages and memories already."""
        found: list[Row] = []
        if self._searches < _MOST_SEARCHES:
            self._searches += 1
            for place, (session, reader) in enumerate(self._readers, start=1):
                hits = reader.search(text, min(most, _HITS)) if session.entries > _ENTRIES else []
                found += [self._place_row(entry, session, place) for entry in hits]
        return found

    def describe(self, row: Row, excerpt: str = "", *, cure: bool = False) -> RelatedRecord:
        """Return a row with its origin in words. ``cure``: it ended the same trouble there."""
        known, session = self._rows.get(row.id, (row, None))
        day = _day(known.ts)
        if known.kind == "event" and known.type == MEMORY_TAG:
            source = f"Remembered{day}" + (f", by {display_name(known.agent)}" if known.agent else "")
            return RelatedRecord(known, excerpt, source, f"remembered{day} (session {clip_middle(known.session, 80)})")
        bond = "project" if session is None else session.bond
        place = f"in {'an earlier' if session is None or session.earlier else 'another'} session of this {bond}"
        when = day and f",{day}"
        what = "the same call failed in the same way, and worked after this" if cure else ""
        source = f"{capital(place)}{when}{what and ', '}{what}"
        where = f"{place}, {clip_middle(known.session, 80)}{when}{what and ': '}{what}"
        return RelatedRecord(known, excerpt, source, where)

    def cures(self, steps: Sequence[EntryView]) -> list[RelatedRecord]:
        """Return the steps that ended the trouble in the latest session that met the same failure and overcame it."""
        for step in (each for each in steps if each.status in FAILED):
            for session, entries in reversed(self._entries):
                if found := _cure(step, entries):
                    self._rows.update({entry.id: (entry, session) for entry in found})
                    return [self.describe(entry, cure=True) for entry in found]
        return []

    def entry(self, name: str) -> EntryView | None:
        """Return an entry that was read here, with its recorded index, or None. Text that reads like an order is withheld."""
        row = self._rows.get(name, (None, None))[0]
        return row if isinstance(row, EntryView) else None

    def may_tell(self, session: str) -> bool:
        """Whether a session's memories may be used: it is this session, or related to it."""
        return session == self._session or any(each.session == session for each in self._related_sessions)

    def read(self, row: Row, session: str) -> Row:
        """Return a row that a tool read from a related session, without text that reads like an order. It is citable now."""
        known, reader = next(pair for pair in self._readers if pair[0].session == session)
        shown = reader.clean(row) if isinstance(row, EntryView) else reader.heard_one(row)
        self._rows.setdefault(row.id, (shown, known))
        return shown

    def knows(self, ids: Iterable[str]) -> set[str]:
        """Return the given ids that were read here."""
        return {name for name in ids if name in self._rows}

    def _memories(self) -> list[tuple[EventView, RelatedSession | None]]:
        """Return the memories of this session and of related ones, as messages. This session's own episode would repeat it."""
        own = self._store.sessions.key(self._session)
        places = [(each.key, each) for each in reversed(self._related_sessions)]
        found: list[tuple[EventView, RelatedSession | None]] = []
        for key, session in [*places, *([] if own is None else [(own, None)])]:
            total = self._store.annotations.notes(key, [MEMORY_TAG], None, 0, 0)[1]
            notes = self._store.annotations.notes(key, [MEMORY_TAG], None, max(0, total - _MEMORIES), _MEMORIES)[0]
            reader = HistoryReader(self._store, self._session)
            held = [note for note in notes if note.superseded_by is None and (session is not None or note.author != AUTHOR)]
            found += [(reader.heard_one(_message(note)), session) for note in held]
        return found[-_MEMORIES:]

    def _place_row(self, row: Row, session: RelatedSession | None, place: int) -> Row:
        self._rows.setdefault(row.id, (row, session))
        if isinstance(row, EntryView):
            return row.model_copy(update={"index": place * _STEP + row.index})
        return row.model_copy(update={"after": place * _STEP + (row.after or 0)})


def _cure(step: EntryView, entries: Sequence[EntryView]) -> list[EntryView]:
    """Return the last successful changes between the latest such failure and the success of the same call after it."""
    core = fingerprints.error_core(answer_text(step)[-4_000:])
    failed: EntryView | None = None
    between: list[EntryView] = []
    found: list[EntryView] = []
    for entry in entries:
        if entry.status in FAILED:
            if same_call(entry) == same_call(step) or (
                entry.action == step.action
                and len(core) >= _LEAST_ERROR
                and fingerprints.error_core(answer_text(entry)[-4_000:]) == core
            ):
                failed, between = entry, []
        elif failed is not None and entry.status == "ok":
            if same_call(entry) == same_call(failed):
                found = between[-2:] or found
                failed = None
            elif _acts(entry):
                between.append(entry)
    return found


def _acts(entry: EntryView) -> bool:
    """Whether an action may have changed something. A look-up ends no trouble."""
    done = vocabulary.classify(entry.action, "", command_of(entry))
    return done in ("mutation", "other") and not is_bookkeeping(entry.action)


def _message(note: NoteView) -> EventView:
    return EventView(
        id=note.id, session=note.session, ts=note.ts, type=MEMORY_TAG, agent=note.author, entry=None, after=None,
        data={"text": note.content},
    )  # fmt: skip


def _day(ts: str | None) -> str:
    """Return the day of a record as words, `` on 21 November``, or ""."""
    if ts is None or parse_time(ts) is None or not (ts[5:7] + ts[8:10]).isdigit():
        return ""
    return f" on {int(ts[8:10])} {_MONTHS[int(ts[5:7]) - 1]}"
