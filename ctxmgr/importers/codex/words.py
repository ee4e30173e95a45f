"""Messages with the role of a user or developer: find out whether a person or the program wrote them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ctxmgr.importers.codex.head import harness_origin, looks_generated
from ctxmgr.importers.codex.thread import PASSTHROUGH, Item, Thread
from ctxmgr.importers.values import images, mapping, sequence, spoken, text, texts

_UNNAMED: frozenset[str | None] = frozenset((None, "unknown"))


@dataclass(slots=True)
class _Held:
    """A message of role user whose writer is not known yet, or one that waits behind such a message."""

    item: Item
    event_id: str
    words: str
    pictures: int = 0
    origin: str | None = None
    confirmed: bool = False
    counted: bool = True
    role: str = "user"

    @property
    def open(self) -> bool:
        return self.origin is None and not self.confirmed


@dataclass(slots=True)
class Words:
    """Messages of role user and developer.

    New logs name the writer of each part. In others an event (``user_message``, ``UserMessage``) confirms what a person
    wrote, right after the item or before it; an unnamed text waits for it until the conversation goes on. Logs without
    such events are judged by how the text begins. The decision never depends on where a growing file ends today.
    """

    thread: Thread
    held: list[_Held] = field(default_factory=lambda: list[_Held]())
    announced: list[_Held] = field(default_factory=lambda: list[_Held]())
    confirmed_before: bool = False
    named_before: bool = False
    guessing: bool = False

    def item(self, item: Item) -> None:
        """Take a message item of role user, developer or system."""
        event_id = self.thread.claimed(item, item.payload.get("id"))
        if event_id is None:
            return
        content: object = item.payload.get("content")
        role = text(item.payload.get("role")) or "user"
        by_person, by_harness, origin = _by_provenance(item.payload) if role == "user" else ([], texts(content), None)
        words = spoken(content)
        message = _Held(item, event_id, words, images(content), role=role)
        if by_person or by_harness:
            self.named_before = self.named_before or role == "user"
            if by_person:
                message.words, message.confirmed = "\n".join(by_person), True
            if by_harness and not by_person:
                message.origin = origin or harness_origin(words) or ("developer" if role != "user" else "harness")
            self._queue(message)
            if by_person and by_harness:
                rest = _Held(item, f"{event_id}:harness", "\n".join(by_harness), origin=origin or "harness")
                rest.counted = False
                self._queue(rest)
            return
        message.origin = harness_origin(words) or ("developer" if role != "user" else None)
        if message.open:
            waiting = next((held for held in self.announced if held.words.strip() == words.strip()), None)
            if waiting is not None:
                self.announced.remove(waiting)
                message.confirmed = True
            elif item.bare:
                message.origin = "unnamed" if looks_generated(words) else None
                message.confirmed = message.origin is None
            elif self.thread.heard(words):
                return
        self._queue(message)

    def event(self, item: Item, words: str, pictures: int, event_id: object = None) -> None:
        """Take an event that says what a person wrote."""
        if self.named_before or harness_origin(words):
            return
        self.confirmed_before = True
        for held in [held for held in self.held if held.open]:
            if words.strip() in held.words or held.pictures or pictures:
                held.confirmed = True
                break
        else:
            message = _Held(item, self.thread.own_id(), words, pictures, confirmed=True)
            if self.thread.items_seen:
                self.announced.append(message)
            else:
                self.thread.said(words)
                self._record(message)
            return
        if not any(held.open for held in self.held):
            self._flush()

    @property
    def undecided(self) -> bool:
        """Whether there is anything to settle."""
        return bool(self.held or self.announced)

    def settle(self) -> None:
        """Decide what is still open: the conversation has gone on."""
        if not self.undecided:
            return
        for held in self.held:
            if held.open:
                self.guessing = self.guessing or not self.confirmed_before
                if self.confirmed_before or looks_generated(held.words):
                    held.origin = "unnamed"
        self._flush()
        announced, self.announced = self.announced, []
        for message in announced:
            self._record(message)

    def finish(self) -> None:
        """End of file: decide only where growth of the file could not change the decision."""
        if self.guessing and not self.confirmed_before:
            self.settle()

    def _queue(self, message: _Held) -> None:
        """Emit the message now, unless an undecided one stands before it or it is undecided itself."""
        if not self.held and not message.open:
            self._record(message)
            return
        self.held.append(message)
        if not any(held.open for held in self.held):
            self._flush()

    def _flush(self) -> None:
        held, self.held = self.held, []
        for message in held:
            self._record(message)

    def _record(self, message: _Held) -> None:
        thread, origin = self.thread, message.origin
        data: dict[str, Any] = {"text": message.words}
        if origin is None and thread.head.sub_agent:
            origin = "parentAgent"
        if message.counted and message.role == "user":
            if origin is None:
                thread.count.user_messages += 1
            else:
                thread.count.harness_messages += 1
        if message.pictures:
            data["images"] = message.pictures
        if origin in (None, "parentAgent"):
            thread.user_turn = message.event_id
            thread.name_turn(thread.turn_id)
            thread.rounds.append([])
            self.thread.turn_began()
        if origin is None:
            thread.event("user_message", data, message.item.at, message.event_id)
        else:
            thread.event("nudge", {**data, "origin": origin, "role": message.role}, message.item.at, message.event_id)


def _by_provenance(payload: dict[str, Any]) -> tuple[list[str], list[str], str | None]:
    """Split a message's texts by named writer: (a person's, the harness's, what the harness part is)."""
    passed = mapping(payload.get(PASSTHROUGH))
    parts = sequence(passed.get("content_item_metadata"))
    marks = [text(mapping(mapping(part).get("provenance")).get("type")) for part in parts]
    if not _UNNAMED.issuperset(marks):
        return _split(sequence(payload.get("content")), marks, passed)
    return [], [], None


def _split(content: list[Any], marks: list[str | None], passed: dict[str, Any]) -> tuple[list[str], list[str], str | None]:
    by_person: list[str] = []
    by_harness: list[str] = []
    for place, part in enumerate(content):
        mark = marks[place] if place < len(marks) else None
        words = spoken([part])
        if mark in _UNNAMED:
            mark = "harness" if harness_origin(words) else "user"
        (by_person if mark == "user" else by_harness).append(words)
    kinds = [text(kind) for kind in sequence(passed.get("content_item_kinds"))]
    origin = next((kind for kind in kinds if kind and not kind.startswith("user.") and kind != "unknown"), None)
    return by_person, by_harness, origin
