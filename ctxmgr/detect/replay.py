"""Turn the records of one session into observations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from ctxmgr.log.codec import EVENT_ALIASES
from ctxmgr.log.ids import parse_time
from ctxmgr.types.finding import Observation

Told = tuple[Any, ...]
"""What a record tells of what happened, as plain data: its kind in `_ENTRY`, `_RESULT`, `_EVENT` and the fields that count."""

_ENTRY, _RESULT, _EVENT = range(3)


def observations_of(
    records: Iterable[Mapping[str, Any]],
    index: int = 0,
    earlier: Sequence[tuple[int, Mapping[str, Any]]] = (),
    *,
    distinct: bool = False,
) -> Iterator[Observation]:
    """Yield what happened, in the order of the log.

    Where the records are only the end of a session, ``index`` is that of the first entry among them and ``earlier`` holds
    the entries before it that are still open, each with its index. Where they are ``distinct``, as in a store, no two of
    them are of one entry, or results of one; then only what is open is kept in mind, else every entry's id.

    An entry that carries its result is a start followed by a finish. Records that belong to no step of the run (notes,
    snapshots), a second record of the same entry, and results of entries that are not there yield nothing. A stored
    continuation is an event of type ``continuation``, the beginning of a process one of type ``session``. Never raises:
    fields of the wrong type count as absent.
    """
    known = [(place, _entry_fields(record.get)) for place, record in earlier]
    return observations_from(map(record_fields, records), index, known, distinct=distinct)


def observations_from(
    happenings: Iterable[Told | None], index: int = 0, earlier: Sequence[tuple[int, Told]] = (), *, distinct: bool = False
) -> Iterator[Observation]:
    """Yield what happened as `observations_of` does, from the `record_fields` of each record, in the same order."""
    starts: dict[str, Observation] = {}
    known: set[str] = set()
    for place, (_, name, session, *asked, limit, meta, task, _, _, _, _) in earlier:
        process, agent, at, turn, step, parent, action, input_type, given = asked
        start = starts[name] = Observation(
            "start", 2 * place - 2 * index, name, session, place, process, agent, at, turn, step, parent, action, input_type,
            given, None, None, None, None, limit, None, None, meta, task,
        )  # fmt: skip
        known.add(name)
        yield start
    seq = -2
    for happening in happenings:
        seq += 2
        if happening is None:
            continue
        kind = happening[0]
        if kind == _ENTRY:
            (
                _, name, session, process, agent, at, turn, step, parent, action, input_type, given, limit, meta, task,
                status, output, error, took,
            ) = happening  # fmt: skip
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
            begun = starts.pop(happening[1], None)
            if begun is not None:
                yield _finish(begun, happening, seq)
        else:
            _, what, name, session, process, agent, at, label, data = happening
            yield Observation(
                what, seq, name, session, None, process, agent, at, None, None, None, "", None, None, None, None, None, None,
                None, label, data,
            )  # fmt: skip


def record_fields(record: Mapping[str, Any]) -> Told | None:
    """Return what a record tells of what happened; None of one that tells nothing."""
    get = record.get
    kind = get("kind")
    if kind == "entry":
        return _entry_fields(get)
    if kind == "result":
        return _RESULT, _text(get("entry")), parse_time(get("ts")), *_result_fields(get)
    if kind == "event":
        name = get("type")
        if name == "usage":
            return None  # bookkeeping of tokens: nobody did or said anything
        name = _text(name)
        what, label, data = "event", EVENT_ALIASES.get(name, name), get("data")
    elif kind == "session":
        what, label, data = "event", "session", None
    elif kind in ("continuation", "sessionEnd"):
        what, label = "end" if kind == "sessionEnd" else "event", EVENT_ALIASES.get(kind, kind)
        data = _data(record, kind)
    else:
        return None
    return (
        _EVENT, what, _text(get("id")), _text(get("session")), _optional(get("process")), _optional(get("agent")),
        parse_time(get("ts")), label, data,
    )  # fmt: skip


def _entry_fields(get: Callable[[str], Any]) -> Told:
    name, session, process, agent, action = get("id"), get("session"), get("process"), get("agent"), get("action")
    status = get("status")
    return (
        _ENTRY,
        name if isinstance(name, str) else "",
        session if isinstance(session, str) else "",
        process if isinstance(process, str) else None,
        agent if isinstance(agent, str) else None,
        parse_time(get("ts")), _label(get("turn")), _label(get("step")), _optional(get("parent")),
        action if isinstance(action, str) else "",
        _optional(get("inputType")), get("input"), _number(get("timeoutMs")), get("meta"), _optional(get("task")),
        *(_result_fields(get) if isinstance(status, str) else _OPEN),
    )  # fmt: skip


_OPEN: Told = (None, None, None, None)


def _result_fields(get: Callable[[str], Any]) -> Told:
    error: object = get("error")
    problem = cast("dict[str, Any]", error) if isinstance(error, dict) else None
    return _optional(get("status")), get("output"), problem, _number(get("durationMs"))


# The fields of an observation are given by place: by name costs as much again as all of the rest.


def _finish(start: Observation, result: Told, seq: int) -> Observation:
    _, _, at, status, output, error, took = result
    return Observation(
        "finish", seq, start.id, start.session, start.index, start.process, start.agent, start.at if at is None else at,
        start.turn, start.step, start.parent, start.action, start.input_type, start.input, status, output, error, took,
        start.timeout_ms, None, None, start.meta, start.task,
    )  # fmt: skip


def _data(record: Mapping[str, Any], kind: str) -> object:
    """Return how a process ended, or of a stored continuation which loop or stall it answers."""
    if kind == "sessionEnd":
        return record.get("outcome")
    patterns = [record.get("loop"), record.get("stall")]
    answers = [cast("dict[str, Any]", item).get("identity") for item in patterns if isinstance(item, dict)]
    return {"answers": answers, "asked": record.get("source", "stuckHandler") != "stuckHandler"}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _optional(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _label(value: object) -> str | int | None:
    return value if isinstance(value, str | int) else None


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
