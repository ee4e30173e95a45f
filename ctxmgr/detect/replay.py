"""Turn the records of one session into observations, in log order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from ctxmgr.ids import parse_time
from ctxmgr.types.observation import Observation
from ctxmgr.wire import EVENT_ALIASES


def observations_of(
    records: Iterable[Mapping[str, Any]], index: int = 0, earlier: Sequence[tuple[int, Mapping[str, Any]]] = ()
) -> Iterator[Observation]:
    """Yield what happened, in the order of the log.

    Where the records are only the end of a session, ``index`` is that of the first entry among them and ``earlier`` holds
    the entries before it that are still open, each with its index.

    An entry that carries its result is a start followed by a finish. Records that belong to no step of the run (notes,
    snapshots), a second record of the same entry, and results of entries that are not there yield nothing. A stored
    continuation is an event of type ``continuation``. Never raises: fields of the wrong type count as absent.
    """
    starts: dict[str, Observation] = {}
    finished: set[str] = set()
    for place, record in earlier:
        start = _start(record, 2 * place - 2 * index, place)
        starts[start.id] = start
        yield start
    for place, record in enumerate(records):
        kind = record.get("kind")
        seq = 2 * place
        if kind == "entry":
            start = _start(record, seq, index)
            if not start.id or start.id in starts:
                continue
            starts[start.id] = start
            index += 1
            yield start
            if isinstance(record.get("status"), str):
                finished.add(start.id)
                yield _finish(start, record, seq + 1)
        elif kind == "result":
            begun = starts.get(_text(record.get("entry")))
            if begun is not None and begun.id not in finished:
                finished.add(begun.id)
                yield _finish(begun, record, seq)
        elif kind == "event" and record.get("type") == "usage":
            continue  # bookkeeping of tokens: nobody did or said anything
        elif kind in ("event", "continuation", "sessionEnd"):
            yield _event(record, str(kind), seq)


def _start(record: Mapping[str, Any], seq: int, index: int) -> Observation:
    return Observation(
        kind="start",
        seq=seq,
        id=_text(record.get("id")),
        session=_text(record.get("session")),
        index=index,
        process=_optional(record.get("process")),
        agent=_optional(record.get("agent")),
        at=parse_time(record.get("ts")),
        turn=_label(record.get("turn")),
        step=_label(record.get("step")),
        parent=_optional(record.get("parent")),
        action=_text(record.get("action")),
        input_type=_optional(record.get("inputType")),
        input=record.get("input"),
        timeout_ms=_number(record.get("timeoutMs")),
        meta=record.get("meta"),
        task=_optional(record.get("task")),
    )


def _finish(start: Observation, record: Mapping[str, Any], seq: int) -> Observation:
    error = record.get("error")
    at = parse_time(record.get("ts"))
    return Observation(
        kind="finish",
        seq=seq,
        id=start.id,
        session=start.session,
        index=start.index,
        process=start.process,
        agent=start.agent,
        at=start.at if at is None else at,
        turn=start.turn,
        step=start.step,
        parent=start.parent,
        action=start.action,
        input_type=start.input_type,
        input=start.input,
        status=_optional(record.get("status")),
        output=record.get("output"),
        error=cast("dict[str, Any]", error) if isinstance(error, dict) else None,
        duration_ms=_number(record.get("durationMs")),
        timeout_ms=start.timeout_ms,
        meta=start.meta,
        task=start.task,
    )


def _event(record: Mapping[str, Any], kind: str, seq: int) -> Observation:
    name = _text(record.get("type")) if kind == "event" else kind
    return Observation(
        kind="end" if kind == "sessionEnd" else "event",
        seq=seq,
        id=_text(record.get("id")),
        session=_text(record.get("session")),
        process=_optional(record.get("process")),
        agent=_optional(record.get("agent")),
        at=parse_time(record.get("ts")),
        type=EVENT_ALIASES.get(name, name),
        data=_data(record, kind),
    )


def _data(record: Mapping[str, Any], kind: str) -> object:
    """Return what an event says: of a stored continuation, which loop or stall it answers."""
    if kind == "sessionEnd":
        return record.get("outcome")
    if kind != "continuation":
        return record.get("data")
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
