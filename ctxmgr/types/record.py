"""The kinds of record in log format 1, and a check of ordinary records without pydantic.

A record that is not obviously valid goes to the models of `ctxmgr.types.record_models`, which decide and say what is wrong.
Loading them takes longer than writing ten thousand records.
"""

from __future__ import annotations

from ctxmgr.log.fast_json import cast
from ctxmgr.log.record_schema import COMMON, OUTCOMES, RECORDS, STATUSES
from ctxmgr.types.plain_records import MAX_EXACT_INTEGER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxmgr.log.codec import Record

    _Rules = tuple[dict[str, frozenset[type]], frozenset[str], tuple[str, ...]]

KINDS = tuple(RECORDS)


_TEXT = frozenset({str})
_OPTIONAL: frozenset[type] = frozenset({str, type(None)})
_NUMBER = frozenset({float, type(None)})
_TYPES = {"texts": frozenset({list}), "count": frozenset({str, int, type(None)}), "number": _NUMBER}
_UNCHECKED = frozenset({"json", "error"})  # an error is looked at by itself
_STATUSES = frozenset({None, *STATUSES})
_OUTCOMES = frozenset(OUTCOMES)


def _rules(kind: str) -> _Rules:
    """Return, for a kind: the types of the fields that are checked, the required fields, the fields that must not be empty."""
    fields = {**COMMON, **RECORDS[kind]}
    return (
        {
            name: _TYPES.get(field.holds, _TEXT if field.required else _OPTIONAL)
            for name, field in fields.items()
            if field.holds not in _UNCHECKED
        },
        frozenset(name for name, field in fields.items() if field.required),
        tuple(name for name, field in fields.items() if field.filled),
    )


_RULES = {kind: _rules(kind) for kind in RECORDS}
_FIELDS = {kind: {"v", *COMMON, *fields} for kind, fields in RECORDS.items()}


def check(record: Record) -> Record:
    """Return the record itself when it follows format 1; unknown kinds need only ``v``, ``kind`` and ``session``.

    Raises:
        InvalidInput: naming the first field that is missing or wrong.
    """
    if is_plain(record):
        return record
    from ctxmgr.types.record_models import check_whole

    return check_whole(record)


_shapes: set[tuple[object, ...]] = set()
"""Kinds, fields and types of records whose fields all have the right types; most records of a program look alike."""
_MAX_SHAPES = 1000


def is_plain(record: Record) -> bool:
    """Whether a record of a kind that has rules here follows format 1 beyond doubt; False says nothing."""
    kind = record.get("kind")
    rules = _RULES.get(kind) if type(kind) is str else None
    if rules is None:
        return False
    shape = (kind, *record, *map(type, record.values()))
    if shape not in _shapes and not _has_right_types(record, rules, shape):
        return False
    if record["v"] != 1 or not all(map(record.__getitem__, rules[2])):
        return False
    if kind in ("entry", "result"):
        return record.get("status") in _STATUSES and is_plain_error(record.get("error"))
    if kind == "sessionEnd":
        return record["outcome"] in _OUTCOMES
    return kind not in ("note", "snapshot") or (_is_plain_list(record["entries"]) and _is_plain_list(record.get("tags", [])))


def _has_right_types(record: Record, rules: _Rules, shape: tuple[object, ...]) -> bool:
    """Whether a record has all required fields, and the known ones have the right types; remember its shape if so."""
    types, needed, _ = rules
    if type(record.get("v")) is not int or not needed <= record.keys():
        return False
    depends = False
    for name, value in record.items():  # unknown fields are kept as they are
        allowed = types.get(name)
        if allowed is not None and type(value) not in allowed:
            # bool is no int here: type() and not isinstance().
            if allowed is _NUMBER and type(value) is int and abs(value) < MAX_EXACT_INTEGER:  # larger ones the models judge
                depends = True
                continue
            return False
    # Not with unknown fields, whose names may be as many and as long as you please.
    if not depends and len(_shapes) < _MAX_SHAPES and record.keys() <= _FIELDS[str(record["kind"])]:
        _shapes.add(shape)
    return True


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
