"""What the tools must answer, worked out from the records alone, without a database and as simply as can be."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, cast

from ctxmgr.log.codec import Record
from ctxmgr.log.ids import parse_time
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import Filters
from tests.builders import at

Row = dict[str, Any]

AGENTS = ("coder", "Reviewer", "ÄGENT", "a'b")
ACTIONS = ("Bash", "Read", "readFile", "Straße", "50%_off", "[x]")
TYPES = ("Request", "CollectorRequest", "str", None)
PROCESSES = ("p1", "p1", "p10", "run-ä", None)
STATUSES = ("ok", "error", "denied", "interrupted", None)
EVENT_TYPES = ("message", "thought", "user_message", "custom", "Message")
WORDS = (
    "discovery", "DISCOVERY", "50%", "a_b", "it's", '"quoted"', "*", "**", "\\", "x\0hidden", "straße", "STRASSE",
    "İstanbul", "ﬁle", "e\u0301", "😀", ";--", "NEAR(", "{}", "-1", "\u2028", "--", "ab", "a", "", " ", "\t", "?",
)  # fmt: skip


def history(seed: int, count: int = 60, session: str = "s") -> list[Record]:
    """Return a random history: entries, inline and late results, results before entries, events, few timestamps odd."""
    chance = random.Random(seed)
    records: list[Record] = []
    for number in range(count):
        ts = chance.choice([at(number), at(number), at(number), at(chance.randrange(count)), None])
        process = PROCESSES[number % len(PROCESSES)]
        if chance.random() < 0.35:
            records.append(build(
                "event", session, ts, id=f"v{number}", type=chance.choice(EVENT_TYPES), agent=chance.choice([*AGENTS, None]),
                entry=chance.choice([f"e{chance.randrange(count)}", None]), data=_value(chance),
                process=process if number % 2 else None,
            ))  # fmt: skip
            continue
        status = chance.choice(STATUSES)
        task = chance.choice([None, "task 7"])
        outcome: Row = {} if status is None else {"status": status, "output": _value(chance)}
        if status == "error":
            outcome["error"] = {"type": "E", "message": chance.choice(WORDS)}
        inline = chance.random() < 0.2
        entry = build(
            "entry", session, ts, id=f"e{number}", agent=chance.choice(AGENTS), action=chance.choice(ACTIONS),
            inputType=chance.choice(TYPES), input=_value(chance), task=task, process=process, **outcome if inline else {},
        )  # fmt: skip
        late = [build("result", session, ts, entry=f"e{number}", **outcome)] if outcome and not inline else []
        records += [*late, entry] if chance.random() < 0.1 else [entry, *late]
    return records


def _value(chance: random.Random) -> Any:
    words = [chance.choice(WORDS) for _ in range(chance.randrange(3))]
    return chance.choice(
        [" ".join(words), words, {"text": " ".join(words), "n": [chance.randrange(200), 1.5, True, None]}, None]
    )


def fold(text: str) -> str:
    """Return the text as search compares it."""
    return text.casefold()


def texts(value: object) -> Iterator[str]:
    """Yield every text, key and number inside a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield key
            yield from texts(item)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from texts(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield repr(value)


class Oracle:
    """The rows of one session: entries with their outcomes, and events, in the order of the log."""

    def __init__(self, records: Sequence[Record]) -> None:
        results = {str(record["entry"]): record for record in reversed(records) if record["kind"] == "result"}
        self.rows: list[Row] = []
        entries: dict[str, Row] = {}
        for record in records:
            if record["kind"] not in ("entry", "event"):
                continue
            row = dict(record)
            if record["kind"] == "entry":
                done = record if "status" in record else results.get(str(record["id"]), {})
                row |= {name: done.get(name) for name in ("output", "error")}
                row |= {"status": done.get("status", "open"), "index": len(entries)}
                entries[str(record["id"])] = row
            self.rows.append(row)
        self.entries = entries

    def matching(self, filters: Filters, kind: str, query: str | None = None) -> list[str]:
        """Return the ids of the rows that pass every filter and contain the query."""
        found = [row for row in self.rows if kind in (row["kind"], "all") and self._passes(row, filters)]
        if query is not None:
            found = [row for row in found if any(fold(query) in fold(text) for text in self._searched(row))]
        return [str(row["id"]) for row in found]

    def _passes(self, row: Row, filters: Filters) -> bool:
        if filters.event_type and (row["kind"] != "event" or row["type"] not in filters.event_type):
            return False
        if filters.agent and fold(str(row.get("agent", ""))) not in map(fold, filters.agent):
            return False
        moment = parse_time(row.get("ts"))
        if filters.since is not None and (moment is None or moment < cast("float", parse_time(filters.since))):
            return False
        if filters.until is not None and (moment is None or moment >= cast("float", parse_time(filters.until))):
            return False
        if filters.process and not self._executed(row) & set(map(str, self._named(filters))):
            return False
        owner = row if row["kind"] == "entry" else self.entries.get(str(row.get("entry")), {})
        for name, wanted in (("action", filters.action), ("inputType", filters.input_type), ("status", filters.status)):
            if wanted and (name not in owner or fold(str(owner[name])) not in map(fold, wanted)):
                return False
        return True

    def _executed(self, row: Row) -> set[str]:
        """Return the processes that a row is of: its own one, and of an event that of its entry."""
        owner = self.entries.get(str(row.get("entry")), {}) if row["kind"] == "event" else {}
        return {str(each["process"]) for each in (row, owner) if each.get("process") is not None}

    def _named(self, filters: Filters) -> list[str]:
        """Return the processes of the session that are meant: with this id, else with one that begins so."""
        known = {str(row["process"]) for row in self.entries.values() if row.get("process") is not None}
        found: list[str] = []
        for name in filters.process:
            found += [name] if name in known else [each for each in known if name and each.startswith(name)]
        return found

    @staticmethod
    def _searched(row: Row) -> Iterator[str]:
        names = (
            ("action", "agent", "inputType", "input", "output", "error", "task")
            if row["kind"] == "entry"
            else ("type", "agent", "data")
        )
        for name in names:
            yield from texts(row.get(name))
