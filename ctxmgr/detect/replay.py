"""Turn the records of one session into observations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from ctxmgr.log.codec import EVENT_ALIASES
from ctxmgr.log.fast_json import text_or_empty, text_or_none
from ctxmgr.log.ids import parse_time
from ctxmgr.types.finding import Observation

RecordFields = tuple[Any, ...]
"""The fields of one record that detection needs, by position: first `_ENTRY`, `_RESULT` or `_EVENT`, then those of that kind.

It is a plain tuple, because a second process passes it on while this one judges.
"""

_ENTRY, _RESULT, _EVENT = range(3)


def session_observations(
    records: Iterable[Mapping[str, Any]],
    index: int = 0,
    earlier: Sequence[tuple[int, Mapping[str, Any]]] = (),
    *,
    distinct: bool = False,
) -> Iterator[Observation]:
    """Yield the observations of one session's records, in the order of the log.

    An entry with its result is a start followed by a finish. Nothing is yielded for records that are no step of the run
    (notes, snapshots), for a second record of the same entry, and for results of missing entries. A stored continuation is an
    event of type ``continuation``, the beginning of a process one of type ``session``. Never raises: fields of the wrong type
    count as absent.

    Args:
        records: records of log format 1.
        index: index of the first entry among them, if they are only the end of a session.
        earlier: in that case, the earlier entries that are still open, each with its index.
        distinct: no entry and no result comes twice, as in a store. Then only open entries are remembered, not the
            ids of all entries.
    """
    known = [(place, _entry_fields(record.get)) for place, record in earlier]
    return row_observations(map(record_fields, records), index, known, distinct=distinct)


def _earlier_start(seq: int, place: int, fields: RecordFields) -> Observation:
    """Return the start of an entry that stands before the first record which is read now: ``seq`` is below 0."""
    _, name, session, process, agent, at, turn, step, parent, action, input_type, given, limit, meta, task, _, _, _, _ = fields
    return Observation(
        "start", seq, name, session, place, process, agent, at, turn, step, parent, action, input_type, given, None, None, None,
        None, limit, None, None, meta, task,
    )  # fmt: skip


def row_observations(
    rows: Iterable[RecordFields | None],
    index: int = 0,
    earlier: Sequence[tuple[int, RecordFields]] = (),
    *,
    distinct: bool = False,
) -> Iterator[Observation]:
    """Yield observations as `session_observations` does, from the `record_fields` of each record, in the same order."""
    opened = [_earlier_start(2 * place - 2 * index, place, fields) for place, fields in earlier]
    yield from opened
    starts = {start.id: start for start in opened}
    known = set(starts)
    seq = -2  # each record takes two places, because an entry with its result is a start and a finish
    for row in rows:
        seq += 2
        if row is None:
            continue
        kind = row[0]
        if kind == _ENTRY:
            (
                _, name, session, process, agent, at, turn, step, parent, action, input_type, given, limit, meta, task,
                status, output, error, took,
            ) = row  # fmt: skip
            if not name or name in known:
                continue
            if not distinct:
                known.add(name)
            start = Observation(
                "start", seq, name, session, index, process, agent, at, turn, step, parent, action, input_type, given, None,
                None, None, None, limit, None, None, meta, task,
            )  # fmt: skip
            yield start
            if status is None:
                starts[name] = start
            else:
                yield Observation(
                    "finish", seq + 1, name, session, index, process, agent, at, turn, step, parent, action, input_type, given,
                    status, output, error, took, limit, None, None, meta, task,
                )  # fmt: skip
            index += 1
        elif kind == _RESULT:
            opened = starts.pop(row[1], None)
            if opened is not None:
                yield _finish(opened, row, seq)
        else:
            _, what, name, session, process, agent, at, label, data = row
            yield Observation(
                what, seq, name, session, None, process, agent, at, None, None, None, "", None, None, None, None, None, None,
                None, label, data,
            )  # fmt: skip


def record_fields(record: Mapping[str, Any]) -> RecordFields | None:
    """Return the fields of a record that detection needs; None for a record that it does not need."""
    get = record.get
    kind = get("kind")
    if kind == "entry":
        return _entry_fields(get)
    if kind == "result":
        return _RESULT, text_or_empty(get("entry")), parse_time(get("ts")), *_result_fields(get)
    if kind == "event":
        name = get("type")
        if name == "usage":
            return None  # token counts: nobody did or said anything
        name = text_or_empty(name)
        what, label, data = "event", EVENT_ALIASES.get(name, name), get("data")
    elif kind == "session":
        what, label, data = "event", "session", None
    elif kind in ("continuation", "sessionEnd"):
        what, label = "end" if kind == "sessionEnd" else "event", EVENT_ALIASES.get(kind, kind)
        data = _event_data(record, kind)
    else:
        return None
    return (
        _EVENT, what, text_or_empty(get("id")), text_or_empty(get("session")), text_or_none(get("process")),
        text_or_none(get("agent")), parse_time(get("ts")), label, data,
    )  # fmt: skip


def _entry_fields(get: Callable[[str], Any]) -> RecordFields:
    name, session, process, agent, action = get("id"), get("session"), get("process"), get("agent"), get("action")
    status = get("status")
    return (
        _ENTRY,
        name if isinstance(name, str) else "",
        session if isinstance(session, str) else "",
        process if isinstance(process, str) else None,
        agent if isinstance(agent, str) else None,
        parse_time(get("ts")), _label(get("turn")), _label(get("step")), text_or_none(get("parent")),
        action if isinstance(action, str) else "",
        text_or_none(get("inputType")), get("input"), _number(get("timeoutMs")), get("meta"), text_or_none(get("task")),
        *(_result_fields(get) if isinstance(status, str) else _OPEN),
    )  # fmt: skip


_OPEN: RecordFields = (None, None, None, None)


def _result_fields(get: Callable[[str], Any]) -> RecordFields:
    error: object = get("error")
    problem = cast("dict[str, Any]", error) if isinstance(error, dict) else None
    return text_or_none(get("status")), get("output"), problem, _number(get("durationMs"))


# Fields are passed by position: passing them by name would double the cost of everything else.


def _finish(start: Observation, result: RecordFields, seq: int) -> Observation:
    _, _, at, status, output, error, took = result
    return Observation(
        "finish", seq, start.id, start.session, start.index, start.process, start.agent, start.at if at is None else at,
        start.turn, start.step, start.parent, start.action, start.input_type, start.input, status, output, error, took,
        start.timeout_ms, None, None, start.meta, start.task,
    )  # fmt: skip


def _event_data(record: Mapping[str, Any], kind: str) -> object:
    """Return the outcome of a ``sessionEnd``, or the identities that a continuation answers and whether an agent asked."""
    if kind == "sessionEnd":
        return record.get("outcome")
    patterns = [record.get("loop"), record.get("stall")]
    answers = [cast("dict[str, Any]", item).get("identity") for item in patterns if isinstance(item, dict)]
    return {"answers": answers, "asked": record.get("source", "stuckHandler") != "stuckHandler"}


def _label(value: object) -> str | int | None:
    return value if isinstance(value, str | int) else None


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
