"""Store what identifies an action in bounded space: its key, arguments and outcome."""

from __future__ import annotations

from typing import Any, cast

from ctxmgr.detect.text.fingerprints import MAX_TEXT, blur, canonical, one_line
from ctxmgr.log.codec import fingerprint
from ctxmgr.log.json_value import describe, plain
from ctxmgr.types.record import ResultStatus

MAX_WHOLE_CHARS = 1_200
"""Characters of canonical JSON up to which arguments or a result are kept as they are."""

_TEXT, _HEAD = 500, 320
_OK = frozenset({"success", "ok", "succeeded", "done", "passed", "pass"})
_BAD = frozenset({"error", "failure", "failed", "fail"})
_OTHERS: dict[str, ResultStatus] = {"denied": "denied", "interrupted": "interrupted"}


def key_of(action: str, args: object) -> str:
    """Return what is equal for the same action with the same arguments, whatever the order of their keys."""
    return fingerprint([action, canonical(args)])


def reduced(value: object) -> Any:
    """Return the value, or where it is long its beginning with a fingerprint of the whole: equal values stay equal."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _text(value)
    whole = canonical(value)
    if whole is not None and len(whole) <= MAX_WHOLE_CHARS:
        return value
    if isinstance(value, dict) and len(cast("dict[Any, Any]", value)) <= 16:
        fields = {str(name)[:100]: _member(item) for name, item in cast("dict[Any, object]", value).items()}
        if len(canonical(fields) or "") <= 2 * MAX_WHOLE_CHARS:
            return fields
    return {"tooLarge": len(whole or ""), "fingerprint": fingerprint(cast("object", value)), "head": (whole or "")[:_HEAD]}


def _member(item: object) -> Any:
    return _text(item) if isinstance(item, str) else reduced(item)


def _text(text: str) -> str:
    if len(text) <= _TEXT:
        return text
    whole = blur(text) if len(text) <= MAX_TEXT else text  # beyond that a blurred text is told apart in one process only
    return f"{text[:_HEAD]}… [{len(text)} characters, {fingerprint(whole)}]"


def is_shortened(text: str) -> bool:
    """Whether a text is one that `reduced` cut."""
    return len(text) > _HEAD and text[_HEAD : _HEAD + 3] == "… ["


def outcome(result: object, status: ResultStatus | None = None) -> tuple[ResultStatus, Any, dict[str, Any] | None]:
    """Return what a caller gave as the result of an action as status, output and error of a record.

    ``success``, ``error`` and ``error: what it said`` name the status; exceptions and objects with an ``error`` are
    errors; anything else is an output. An explicit ``status`` comes first.
    """
    if isinstance(result, BaseException):
        return status or "error", None, {"type": type(result).__name__, "message": describe(result)}
    value: Any = plain(result)
    if isinstance(value, str):
        word, colon, rest = value.partition(":")
        said = word.strip().lower() if len(word) < 20 else ""
        if said in _BAD and (colon or not rest):
            message = rest.strip()
            return status or "error", None, {"message": message} if message else None
        if not colon and said in _OTHERS:
            return status or _OTHERS[said], None, None
        if not colon and said in _OK:
            return status or "ok", None, None
        return status or "ok", value, None
    given = cast("object", value)
    if isinstance(given, dict):
        fields = cast("dict[str, Any]", given)
        if error := fields.get("error"):
            body = cast("dict[str, Any]", error) if isinstance(error, dict) else {"message": plain_line(error)}
            return (
                status or "error",
                fields,
                {name: plain_line(body[name]) for name in ("type", "message") if name in body},
            )
    return status or "ok", cast("Any", given), None


def outcome_text(status: str, output: object, error: object, width: int = 120) -> str:
    """Return an outcome in a few words: ``success``, or ``error: what it said``, or what came back, on one line."""
    message = cast("dict[str, object]", error).get("message") if isinstance(error, dict) else None
    if status == "ok":
        return plain_line(output, width) if output not in (None, "", {}, []) else "success"
    said = plain_line(message if message is not None else output, width) if (message or output) else ""
    return f"{status}: {said}" if said else status


def plain_line(value: object, width: int = 200) -> str:
    """Return any recorded value as one printable line of at most ``width`` characters."""
    if width <= 0 or value is None:
        return ""
    text = value if isinstance(value, str) else canonical(value) or type(value).__name__
    return one_line(text, width)
