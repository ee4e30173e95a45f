"""Check ordinary records of format 1 without pydantic.

What is not obviously in order is left to the models of `ctxmgr.types.record_models`, which have the last word and say what is
wrong: loading them takes longer than writing ten thousand records.
"""

from __future__ import annotations

from ctxmgr.log.fast_json import cast

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than a whole query
if TYPE_CHECKING:
    from ctxmgr.log.codec import Record

_TEXT = frozenset({str})
_LIST = frozenset({list})
_OPTIONAL: frozenset[type] = frozenset({str, type(None)})
_COUNTED = frozenset({str, int, type(None)})
_NUMBER = frozenset({float, type(None)})
_PLAIN_NUMBER = 2**53  # of milliseconds: whole numbers beyond it may be too large for the models
_COMMON: dict[str, frozenset[type]] = {"kind": _TEXT, "session": _TEXT, "ts": _OPTIONAL}

# By kind: the types of the members that are looked at, which of them must be there, and which of these must hold a text.
_RULES: dict[str, tuple[dict[str, frozenset[type]], frozenset[str], tuple[str, ...]]] = {
    "entry": (
        {
            **_COMMON, "id": _TEXT, "agent": _TEXT, "action": _TEXT, "inputType": _OPTIONAL, "process": _OPTIONAL,
            "turn": _COUNTED, "step": _COUNTED, "parent": _OPTIONAL, "task": _OPTIONAL, "timeoutMs": _NUMBER,
            "durationMs": _NUMBER, "status": _OPTIONAL,
        },
        frozenset({"session", "id", "agent", "action"}),
        ("session", "id"),
    ),
    "result": (
        {**_COMMON, "entry": _TEXT, "status": _TEXT, "durationMs": _NUMBER},
        frozenset({"session", "entry", "status"}),
        ("session", "entry"),
    ),
    "event": (
        {**_COMMON, "id": _TEXT, "type": _TEXT, "entry": _OPTIONAL, "agent": _OPTIONAL},
        frozenset({"session", "id", "type"}),
        ("session", "id", "type"),
    ),
    "note": (
        {
            **_COMMON, "id": _TEXT, "entries": _LIST, "content": _TEXT, "tags": _LIST, "author": _OPTIONAL,
            "supersedes": _OPTIONAL,
        },
        frozenset({"session", "id", "entries", "content"}),
        ("session", "id", "content"),
    ),
    "snapshot": (
        {**_COMMON, "id": _TEXT, "entries": _LIST, "summary": _TEXT, "reasoning": _TEXT, "hash": _TEXT},
        frozenset({"session", "id", "entries", "summary", "reasoning", "hash"}),
        ("session", "id"),
    ),
    "continuation": ({**_COMMON, "id": _TEXT}, frozenset({"session", "id"}), ("session", "id")),
    "session": ({**_COMMON, "process": _OPTIONAL, "workflow": _OPTIONAL}, frozenset({"session"}), ("session",)),
    "sessionEnd": (
        {**_COMMON, "outcome": _TEXT, "process": _OPTIONAL}, frozenset({"session", "outcome"}), ("session",),
    ),
}  # fmt: skip
_STATUSES = frozenset({None, "ok", "error", "denied", "interrupted"})
_OUTCOMES = frozenset({"completed", "failed", "cancelled"})


def check(record: Record) -> Record:
    """Return the record itself when it follows format 1; unknown kinds need only ``v``, ``kind`` and ``session``.

    Raises:
        InvalidInput: naming the first field that is missing or wrong.
    """
    if is_plain(record):
        return record
    from ctxmgr.types.record_models import check_whole

    return check_whole(record)


def is_plain(record: Record) -> bool:
    """Whether a record of a kind that has rules here follows format 1 beyond doubt; False says nothing."""
    version, kind = record.get("v"), record.get("kind")
    rules = _RULES.get(kind) if type(kind) is str else None
    if rules is None or type(version) is not int or version != 1:
        return False
    types, needed, filled = rules
    if not needed <= record.keys():
        return False
    known = types.get
    for name, value in record.items():
        allowed = known(name)
        if allowed is not None and type(value) not in allowed:
            if allowed is _NUMBER and type(value) is int and abs(value) < _PLAIN_NUMBER:
                continue
            return False
    for name in filled:
        if not record[name]:
            return False
    if kind in ("entry", "result"):
        return record.get("status") in _STATUSES and is_plain_error(record.get("error"))
    if kind == "sessionEnd":
        return record["outcome"] in _OUTCOMES
    return kind not in ("note", "snapshot") or (_is_plain_list(record["entries"]) and _is_plain_list(record.get("tags", [])))


def _is_plain_list(value: object) -> bool:
    return type(value) is list and _TEXT.issuperset(map(type, cast("list[object]", value)))


def is_plain_error(value: object) -> bool:
    """Whether the error of an entry or a result follows format 1 beyond doubt; False says nothing."""
    if value is None:
        return True
    if type(value) is not dict:
        return False
    error = cast("dict[str, object]", value)
    return type(error.get("type")) in _OPTIONAL and type(error.get("message")) in _OPTIONAL
