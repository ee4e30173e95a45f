# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
"""Stores that break one promise each: what a battery for stores is worth is how many of them it catches.

Each mutant changes a class of the store through a `pytest.MonkeyPatch`, at a public method, as a store of somebody else might
be wrong: records are lost, changed, doubled or put in another order, reports lie, reads leave out or add rows, two writers
do not see each other.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ctxmgr.errors import Conflict, InvalidInput
from ctxmgr.log.codec import Record
from ctxmgr.store import Store, open_store
from ctxmgr.store.repositories.annotations import Annotations
from ctxmgr.store.repositories.queries import Queries
from ctxmgr.store.repositories.sessions import Sessions
from ctxmgr.store.write.append import AppendResult

Patch = pytest.MonkeyPatch
Batch = list[Record]


def _written(change: Callable[[Batch], Sequence[Record]]) -> Callable[[Patch], None]:
    """Return a mutant that writes other records than those it was given, and says what would be right for these."""

    def mutate(patch: Patch) -> None:
        append = Store.append

        def changed(self: Store, records: Any, **options: Any) -> AppendResult:
            given = list(records)
            report = append(self, change([dict(record) for record in given]), **options)
            report.added += len(given) - report.added - report.known - report.changed
            return report

        patch.setattr(Store, "append", changed)

    return mutate


def _texts(change: Callable[[str], str]) -> Callable[[Patch], None]:
    """Return a mutant that changes every text inside of what was recorded, but no id."""

    def changed(value: Any) -> Any:
        if isinstance(value, str):
            return change(value)
        if isinstance(value, list):
            return [changed(each) for each in value]
        if isinstance(value, dict):
            return {key: changed(each) for key, each in value.items()}
        return value

    names = ("input", "output", "error", "content", "data", "summary")
    return _written(lambda batch: [{key: changed(v) if key in names else v for key, v in each.items()} for each in batch])


def _numbers(change: Callable[[Any], Any]) -> Callable[[Patch], None]:
    def changed(value: Any) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return change(value)
        if isinstance(value, dict):
            return {key: changed(each) for key, each in value.items()}
        return value

    names = ("input", "output", "meta", "data")
    return _written(lambda batch: [{key: changed(v) if key in names else v for key, v in each.items()} for each in batch])


def _without(*kinds: str) -> Callable[[Patch], None]:
    return _written(lambda batch: [each for each in batch if each["kind"] not in kinds])


def _fields(name: str, change: Callable[[Any], Any]) -> Callable[[Patch], None]:
    return _written(lambda batch: [{**each, name: change(each[name])} if name in each else each for each in batch])


def _reported(change: Callable[[AppendResult], None]) -> Callable[[Patch], None]:
    def mutate(patch: Patch) -> None:
        append = Store.append

        def changed(self: Store, records: Any, **options: Any) -> AppendResult:
            report = append(self, records, **options)
            change(report)
            return report

        patch.setattr(Store, "append", changed)

    return mutate


def _appended(replace: Callable[[Callable[..., AppendResult], Store, Batch, dict[str, Any]], AppendResult]
              ) -> Callable[[Patch], None]:  # fmt: skip
    def mutate(patch: Patch) -> None:
        append = Store.append
        patch.setattr(Store, "append", lambda self, records, **options: replace(append, self, list(records), options))

    return mutate


def _read(owner: type, name: str, change: Callable[..., Any]) -> Callable[[Patch], None]:
    """Return a mutant whose read answers what ``change(original, self, *args, **named)`` makes of it."""

    def mutate(patch: Patch) -> None:
        original = getattr(owner, name)
        patch.setattr(owner, name, lambda self, *args, **named: change(original, self, *args, **named))

    return mutate


def _views(change: Callable[[list[Any]], list[Any]]) -> Callable[[Patch], None]:
    """Return a mutant that lists other entries than it has."""

    def changed(entries: Any, self: Any, *args: Any, **named: Any) -> Any:
        rows, total, exact = entries(self, *args, **named)
        return change(list(rows)), total, exact

    return _read(Queries, "entries", changed)


def _view(**changes: Callable[[Any], Any]) -> Callable[[Patch], None]:
    """Return a mutant whose entries show another value in a field."""

    def changed(rows: list[Any]) -> list[Any]:
        return [row.model_copy(update={name: change(getattr(row, name)) for name, change in changes.items()}) for row in rows]

    return _views(changed)


def _filter(name: str, value: Callable[[Any], Any]) -> Callable[[Patch], None]:
    """Return a mutant that takes a filter for another one."""

    def changed(entries: Any, self: Any, key: int, filters: Any, *args: Any, **named: Any) -> Any:
        return entries(self, key, filters.model_copy(update={name: value(getattr(filters, name))}), *args, **named)

    return _read(Queries, "entries", changed)


def _paged(change: Callable[[int, int | None], tuple[int, int | None]]) -> Callable[[Patch], None]:
    def changed(entries: Any, self: Any, key: int, filters: Any, offset: int, limit: int | None, **named: Any) -> Any:
        return entries(self, key, filters, *change(offset, limit), **named)

    return _read(Queries, "entries", changed)


def _totals(change: Callable[[list[Any], int], int]) -> Callable[[Patch], None]:
    def changed(entries: Any, self: Any, *args: Any, **named: Any) -> Any:
        rows, total, exact = entries(self, *args, **named)
        return rows, change(rows, total), exact

    return _read(Queries, "entries", changed)


def _searched(change: Callable[..., Any]) -> Callable[[Patch], None]:
    return _read(Queries, "search", change)


def _search_hits(keep: Callable[[Any, str, str], bool]) -> Callable[[Patch], None]:
    """Return a mutant that finds less; ``keep(row, field, query)``."""

    def changed(search: Any, self: Any, key: Any, filters: Any, kind: Any, query: str, *args: Any, **named: Any) -> Any:
        found, _, exact = search(self, key, filters, kind, query, *args, **named)
        kept = [hit for hit in found if keep(hit[0], hit[1], query)]
        return kept, len(kept), exact

    return _searched(changed)


def _one_by_one(append: Any, store: Store, batch: Batch, options: dict[str, Any]) -> AppendResult:
    report = AppendResult()
    for record in batch:
        report.plus(append(store, [record], **options))
    return report


def _forgiving(append: Any, store: Store, batch: Batch, options: dict[str, Any]) -> AppendResult:
    try:
        return append(store, batch, **options)
    except InvalidInput:
        report = AppendResult()
        for record in batch:
            try:
                report.plus(append(store, [record], **options))
            except InvalidInput:
                continue
        return report


def _silent_conflict(append: Any, store: Store, batch: Batch, options: dict[str, Any]) -> AppendResult:
    try:
        return append(store, batch, **options)
    except Conflict:
        return AppendResult(changed=1)


def _loose_equality(append: Any, store: Store, batch: Batch, options: dict[str, Any]) -> AppendResult:
    known = {record["id"]: record for record in store.sessions.records(None) if "id" in record}
    return append(store, [each for each in batch if known.get(each.get("id", "")) != each], **options)


def _mutate_twice(append: Any, store: Store, batch: Batch, options: dict[str, Any]) -> AppendResult:
    report = append(store, batch, **options)
    if report.known:
        again = [{**record, "id": f"{record['id']}-again"} for record in batch if record["kind"] == "entry"]
        append(store, again, **options)
    return report


def _memory(patch: Patch) -> None:
    """Keep the last record of each append in memory, where another handle does not see it."""
    append = Store.append
    waiting: dict[int, Record] = {}

    def changed(self: Store, records: Any, **options: Any) -> AppendResult:
        batch = [*([waiting.pop(id(self))] if id(self) in waiting else []), *records]
        if len(batch) < 2:
            return append(self, batch, **options)
        report = append(self, batch[:-1], **options)
        waiting[id(self)] = batch[-1]
        report.added += 1
        return report

    patch.setattr(Store, "append", changed)


def _stale(patch: Patch) -> None:
    """Answer lists of entries from what the first one of a handle found."""
    entries = Queries.entries
    kept: dict[tuple[int, int], int] = {}

    def changed(self: Queries, key: int, filters: Any, offset: int, limit: int | None, **named: Any) -> Any:
        rows, total, exact = entries(self, key, filters, offset, limit, **named)
        seen = kept.setdefault((id(self), key), total)
        return rows[: max(0, seen - offset)], min(total, seen), exact

    patch.setattr(Queries, "entries", changed)


def _own_numbers(patch: Patch) -> None:
    """Let each handle number the entries that it wrote itself."""
    append = Store.append
    own: dict[str, set[str]] = {}

    def appended(self: Store, records: Any, **options: Any) -> AppendResult:
        batch = list(records)
        own.setdefault(str(id(self)), set()).update(str(each["id"]) for each in batch if each["kind"] == "entry")
        return append(self, batch, **options)

    entries = Queries.entries

    def listed(self: Queries, key: int, filters: Any, *args: Any, **named: Any) -> Any:
        rows, total, exact = entries(self, key, filters, *args, **named)
        numbers: dict[str, int] = {}
        shown: list[Any] = []
        for row in rows:
            writer = next((name for name, ids in own.items() if row.id in ids), "")
            shown.append(row.model_copy(update={"index": numbers.setdefault(writer, 0)}))
            numbers[writer] += 1
        return shown, total, exact

    patch.setattr(Store, "append", appended)
    patch.setattr(Queries, "entries", listed)


def _last_writer_wins(patch: Patch) -> None:
    """Let a handle that was opened earlier write over what another one has written since."""
    append = Store.append
    written: dict[str, int] = {}

    def changed(self: Store, records: Any, **options: Any) -> AppendResult:
        batch = list(records)
        count = len(list(self.sessions.records(None)))
        seen = self.__dict__.setdefault("_seen", count)
        if count != seen and written.get(self.location) not in (None, id(self)):
            return AppendResult(added=len(batch))
        report = append(self, batch, **options)
        self.__dict__["_seen"] = len(list(self.sessions.records(None)))
        written[self.location] = id(self)
        return report

    patch.setattr(Store, "append", changed)


def _writes_when_reading(patch: Patch) -> None:
    append = Store.append

    def changed(self: Store, records: Any, **options: Any) -> AppendResult:
        if not self.readonly:
            return append(self, records, **options)
        with_writing = open_store(self.location)
        try:
            return with_writing.append(records, **options)
        finally:
            with_writing.close()

    patch.setattr(Store, "append", changed)


def _composed(value: str) -> str:
    return unicodedata.normalize("NFC", value)


def _without_nulls(value: Any) -> Any:
    return {key: each for key, each in value.items() if each is not None} if isinstance(value, dict) else value


def _claim_all(report: AppendResult) -> None:
    report.added, report.known = report.added + report.known, 0


_KINDS = ("session", "entry", "result", "event", "note", "snapshot", "continuation", "sessionEnd")

MUTANTS: dict[str, Callable[[Patch], None]] = {
    # What is written
    "the last record of a batch is lost": _written(lambda batch: batch[:-1] if len(batch) > 1 else batch),
    "the first record of a batch is lost": _written(lambda batch: batch[1:] if len(batch) > 1 else batch),
    "a batch is cut at a hundred records": _written(lambda batch: batch[:100]),
    "results are lost": _without("result"),
    "events are lost": _without("event"),
    "notes are lost": _without("note"),
    "snapshots are lost": _without("snapshot"),
    "continuations are lost": _without("continuation"),
    "ends of sessions are lost": _without("sessionEnd"),
    "kinds of tomorrow are lost": _written(lambda batch: [each for each in batch if each["kind"] in _KINDS]),
    "keys of its own are lost": _written(lambda batch: [{k: v for k, v in each.items() if "own" not in k} for each in batch]),
    "fields that are null are lost": _written(
        lambda batch: [{k: v for k, v in each.items() if v is not None} for each in batch]
    ),
    "nested nulls are lost": _written(lambda batch: [{k: _without_nulls(v) for k, v in each.items()} for each in batch]),
    "long texts are cut": _texts(lambda text: text[:1_000]),
    "very long texts are cut": _texts(lambda text: text[:100_000]),
    "NUL ends a text": _texts(lambda text: text.partition("\0")[0]),
    "lone surrogates are replaced": _texts(lambda text: text.encode("utf-8", "replace").decode()),
    "texts are composed": _texts(_composed),
    "texts are stripped": _texts(str.strip),
    "line ends are made one": _texts(lambda text: text.replace("\r\n", "\n")),
    "control characters are taken out": _texts(lambda text: "".join(each for each in text if each >= " ")),
    "big numbers become floats": _numbers(lambda number: float(number) if abs(number) > 2**53 else number),
    "small floats become zero": _numbers(lambda number: 0.0 if 0 < abs(number) < 1e-300 else number),
    "whole floats become integers": _numbers(
        lambda number: int(number) if isinstance(number, float) and number.is_integer() else number
    ),
    "agents are lowered": _fields("agent", lambda agent: agent.lower() if isinstance(agent, str) else agent),
    "ids are lowered": _fields("id", lambda identity: str(identity).lower()),
    "records are sorted by their time": _written(lambda batch: sorted(batch, key=lambda each: str(each.get("ts")))),
    "a batch is written backwards": _written(lambda batch: batch[::-1]),
    "records are grouped by session": _written(lambda batch: sorted(batch, key=lambda each: str(each["session"]))),
    "errors lose their message": _fields("error", lambda error: {**error, "message": ""} if isinstance(error, dict) else error),
    "denied is stored as error": _fields("status", lambda status: "error" if status == "denied" else status),
    "tags are lost": _fields("tags", lambda _: []),
    # What it says of writing
    "everything is said to be added": _reported(_claim_all),
    "nothing is said to be known": _reported(lambda report: setattr(report, "known", 0)),
    "no change is told": _reported(lambda report: setattr(report, "changed", 0)),
    "a known record is stored again": _appended(_mutate_twice),
    "a batch is written one by one": _appended(_one_by_one),
    "what is wrong in a batch is left out": _appended(_forgiving),
    "a conflict is passed over": _appended(_silent_conflict),
    "a conflict is always kept out": _appended(lambda append, store, batch, _: append(store, batch, on_conflict="keep")),
    "a conflict is always raised": _appended(lambda append, store, batch, _: append(store, batch)),
    "values that Python calls equal are equal": _appended(_loose_equality),
    # More than one handle
    "the last record stays in memory": _memory,
    "a list is kept in memory": _stale,
    "each writer numbers for itself": _own_numbers,
    "the last writer wins": _last_writer_wins,
    "a store for reading writes": _writes_when_reading,
    # What is read
    "indexes begin with one": _view(index=lambda index: index + 1),
    "outputs are lost": _view(output=lambda _: None),
    "inputs are shown as text": _view(input=str),
    "an open call is shown as done": _view(status=lambda status: "ok" if status == "open" else status),
    "a failure is shown as done": _view(status=lambda status: "ok" if status == "error" else status),
    "errors are not shown": _view(error=lambda _: None),
    "notes are not shown": _view(notes=lambda _: []),
    "the last entry is not listed": _views(lambda rows: rows[:-1]),
    "entries are listed backwards": _views(lambda rows: rows[::-1]),
    "a page begins one late": _paged(lambda offset, limit: (offset + 1, limit)),
    "a page is one short": _paged(lambda offset, limit: (offset, limit and max(1, limit - 1))),
    "the total is that of the page": _totals(lambda rows, _: len(rows)),
    "the total counts one too many": _totals(lambda _, total: total + 1),
    "the newest come first never": _read(
        Queries, "entries", lambda entries, self, *args, newest_first=False, **named: entries(self, *args, **named)
    ),
    "the filter of actions is ignored": _filter("action", lambda _: []),
    "the filter of agents is ignored": _filter("agent", lambda _: []),
    "the filter of results is ignored": _filter("status", lambda _: []),
    "the filter of time is ignored": _filter("since", lambda _: None),
    "only the first of several actions counts": _filter("action", lambda names: names[:1]),
    "search leaves out inputs": _search_hits(lambda _, field, __: not field.startswith("input")),
    "search leaves out outputs": _search_hits(lambda _, field, __: not field.startswith("output")),
    "search leaves out errors": _search_hits(lambda _, field, __: not field.startswith("error")),
    "search leaves out events": _search_hits(lambda row, _, __: row.kind != "event"),
    "search heeds case": _search_hits(lambda row, _, query: query in str(row.to_json())),
    "search takes punctuation for nothing": _searched(
        lambda search, self, key, filters, kind, query, *args, **named: search(
            self, key, filters, kind, query.replace("_", " ").replace("%", " "), *args, **named
        )
    ),
    "search looks into every session": _searched(
        lambda search, self, _, filters, *args, **named: search(
            self, None, filters.model_copy(update={"session": None}), *args, **named
        )
    ),
    "search finds one row at most": _searched(
        lambda search, self, *args, **named: (lambda found: (found[0][:1], min(1, found[1]), found[2]))(
            search(self, *args, **named)
        )
    ),
    "an entry is found one further": _read(Queries, "find_entry", lambda at, self, key, index: at(self, key, index + 1)),
    "an id is found by no case": _read(
        Queries, "entry_by_id", lambda by_id, self, key, identity: by_id(self, key, identity.lower())
    ),
    "messages leave out the last": _read(
        Queries, "messages", lambda messages, self, *args, **named: (lambda found: (found[0][:-1], found[1]))(
            messages(self, *args, **named)
        ),
    ),
    "messages forget whose they are": _read(
        Queries, "messages", lambda messages, self, key, _, *args, **named: messages(self, key, None, *args, **named)
    ),
    "sessions are known whatever their case": _read(
        Sessions, "key", lambda key, self, session: key(self, session) or key(self, session.lower())
    ),
    "a session counts too few entries": _read(Sessions, "entry_count", lambda count, self, key: max(0, count(self, key) - 1)),
    "records of one session are those of all": _read(
        Sessions, "records", lambda records, self, _, *args, **named: records(self, None, *args, **named)
    ),
    "records leave out the last": _read(
        Sessions, "records", lambda records, self, *args, **named: iter(list(records(self, *args, **named))[:-1])
    ),
    "the list of notes is cut": _read(
        Annotations, "note_page", lambda notes, self, *args, **named: (lambda found: (found[0][:1], *found[1:]))(
            notes(self, *args, **named)
        ),
    ),
    "verify counts no records": _read(Store, "verify", lambda verify, self: (0, verify(self)[1])),
}  # fmt: skip
