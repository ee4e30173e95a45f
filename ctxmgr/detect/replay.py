"""Turn the records of one session into observations, in log order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from ctxmgr.ids import parse_time
from ctxmgr.types.observation import Observation
from ctxmgr.wire import EVENT_ALIASES


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
    continuation is an event of type ``continuation``. Never raises: fields of the wrong type count as absent.
    """
    starts: dict[str, Observation] = {}
    known: set[str] = set()
    for place, record in earlier:
        start = _start(record, 2 * place - 2 * index, place)
        starts[start.id] = start
        known.add(start.id)
        yield start
    for place, record in enumerate(records):
        kind = record.get("kind")
        seq = 2 * place
        if kind == "entry":
            start = _start(record, seq, index)
            if not start.id or start.id in known:
                continue
            if not distinct:
                known.add(start.id)
            index += 1
            yield start
            if isinstance(record.get("status"), str):
                yield _finish(start, record, seq + 1, start.at)
            else:
                starts[start.id] = start
        elif kind == "result":
            begun = starts.pop(_text(record.get("entry")), None)
            if begun is not None:
                yield _finish(begun, record, seq, parse_time(record.get("ts")))
        elif kind == "event" and record.get("type") == "usage":
            continue  # bookkeeping of tokens: nobody did or said anything
        elif kind in ("event", "continuation", "sessionEnd"):
            yield _event(record, str(kind), seq)


# The fields of an observation are given by place: by name costs as much again as all of the rest.


def _start(record: Mapping[str, Any], seq: int, index: int) -> Observation:
    get = record.get
    return Observation(
        "start", seq, _text(get("id")), _text(get("session")), index, _optional(get("process")), _optional(get("agent")),
        parse_time(get("ts")), _label(get("turn")), _label(get("step")), _optional(get("parent")), _text(get("action")),
        _optional(get("inputType")), get("input"), None, None, None, None, _number(get("timeoutMs")), None, None, get("meta"),
        _optional(get("task")),
    )  # fmt: skip


def _finish(start: Observation, record: Mapping[str, Any], seq: int, at: float | None) -> Observation:
    get = record.get
    error = get("error")
    return Observation(
        "finish", seq, start.id, start.session, start.index, start.process, start.agent, start.at if at is None else at,
        start.turn, start.step, start.parent, start.action, start.input_type, start.input, _optional(get("status")),
        get("output"), cast("dict[str, Any]", error) if isinstance(error, dict) else None, _number(get("durationMs")),
        start.timeout_ms, None, None, start.meta, start.task,
    )  # fmt: skip


def _event(record: Mapping[str, Any], kind: str, seq: int) -> Observation:
    get = record.get
    name = _text(get("type")) if kind == "event" else kind
    return Observation(
        "end" if kind == "sessionEnd" else "event", seq, _text(get("id")), _text(get("session")), None,
        _optional(get("process")), _optional(get("agent")), parse_time(get("ts")), None, None, None, "", None, None, None, None,
        None, None, None, EVENT_ALIASES.get(name, name), get("data") if kind == "event" else _data(record, kind),
    )  # fmt: skip


def _data(record: Mapping[str, Any], kind: str) -> object:
    """Return how a process ended, or of a stored continuation which loop or stall it answers."""
    if kind == "sessionEnd":
        return record.get("outcome")
    patterns = [record.get("loop"), record.get("stall")]
    return {"answers": [cast("dict[str, Any]", item).get("identity") for item in patterns if isinstance(item, dict)]}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _optional(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _label(value: object) -> str | int | None:
    return value if isinstance(value, str | int) else None


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
