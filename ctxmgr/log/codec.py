"""Encode and decode one record of log format 1: its bytes, its limits and its checksum chain.

A line is ASCII JSON without blanks. ASCII escapes keep line separators, lone surrogates and terminal control bytes out
of the file; NaN and infinities are refused (design section 4). The module uses the standard library only. A program that
writes one record loads little of it: the interpreter's own scanner, encoder and hash.
"""

from __future__ import annotations

import sys

from ctxmgr.errors import InvalidInput
from ctxmgr.log.fast_json import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from json import JSONDecoder
    from typing import Any, NoReturn

    Record = dict[str, Any]
    """A record of the log: camelCase keys, ``v`` and ``kind`` first, unknown keys kept."""

    _Chunks = Callable[[object, int], Iterable[str]]

    decoder: JSONDecoder
    """Decodes JSON by the rules of this format: NaN and infinities, however they are spelled, are errors."""
else:
    Record = dict

MAX_LINE = 16 * 1024 * 1024
"""Largest length of a line in bytes. Longer content belongs into an artifact, to which a record refers by its hash."""

MAX_DEPTH = 256
"""Deepest accepted nesting. A reader must be able to decode each line, however deep its own call stack already is."""

EVENT_ALIASES = {
    "NodeStreamDeltaEvent": "agent_message_chunk",
    "NodeThoughtDeltaEvent": "agent_thought_chunk",
    "ToolCallEvent": "tool_call",
    **dict.fromkeys(("user", "human", "user_input", "human_message"), "user_message"),
    **dict.fromkeys(("assistant", "assistant_message", "agent_message"), "message"),
    "thinking": "thought",
}
"""Names of events and the types they are stored as: those of the source documents (spec 000, US7), and common ones."""

_PEOPLE = ("user", "human")  # no set: a value that is looked up may be a list


def event_origin(kind: str, data: object, agent: str | None) -> tuple[str, str | None]:
    """Return the type under which an event is stored, and who it is from.

    Many programs record what a person said as ``message`` with ``{"role": "user"}`` or ``{"from": "user"}``. That is a
    ``user_message``, unless an agent is named as its speaker. Who another message is ``from`` is its speaker.

    Args:
        kind: the given type.
        data: the event's content.
        agent: the agent that is named as its speaker, or None.
    """
    kind = EVENT_ALIASES.get(kind, kind)
    if kind == "message" and agent is None and isinstance(data, dict):
        fields = cast("dict[str, object]", data)
        speaker = fields.get("from")
        if fields.get("role") in _PEOPLE or speaker in _PEOPLE:
            return "user_message", None
        if isinstance(speaker, str) and speaker:
            return kind, speaker
    return kind, agent


_DELETE = 0x7F  # the only ASCII character that the standard library escapes and orjson does not
_MAX_LEVELS, _MAX_CONTAINERS = 8, 64  # beyond these, checking a value takes longer than encoding it
_LEAVES = frozenset({str, int, float, bool, type(None)})
_SUM_MEMBER = b',"sum":"'
_SUM_TAIL = len(_SUM_MEMBER) + 16 + 2


def _native_json() -> Any:
    """Return the module with the interpreter's C scanner and encoder, or None if there is none; then `json` is used."""
    try:
        import _json
    except ImportError:
        return None
    parts: Any = _json
    return parts if hasattr(parts, "make_encoder") and hasattr(parts, "make_scanner") else None


_native: Any = _native_json()


def _library_encoder() -> Any:
    import json

    return json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _no_json(value: object) -> NoReturn:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _chunk_encoder() -> _Chunks:
    """Return an encoder in C that is created once; that of the library would be created for every record."""
    if _native is None:
        return cast("_Chunks", _library_encoder().iterencode)
    return _native.make_encoder({}, _no_json, _native.encode_basestring_ascii, None, ":", ",", False, False, False)


_chunks = _chunk_encoder()


def use_loaded_encoder() -> None:
    """If the program has loaded orjson itself, use it for values that it encodes exactly as this module does.

    This function does not import it, because that takes longer than recording a thousand entries.
    """
    global _faster
    dumps = cast("Callable[[object], bytes] | None", getattr(sys.modules.get("orjson"), "dumps", None))
    # Try it on every ASCII character: another version may escape differently, and checksums are over these bytes.
    _faster = dumps if dumps is not None and dumps(_SAMPLE) == "".join(_chunks(_SAMPLE, 0)).encode("ascii") else None


_faster: Callable[[object], bytes] | None = None
# Without DEL, for which each line is checked.
_SAMPLE: Record = {"text": "".join(map(chr, range(127))), "list": [0, -1, 2**63 - 1, True, False, None, {}, []]}
_SAME_TYPES = frozenset({str, int, bool, type(None)})
"""Types that orjson encodes in the same way. Not float: orjson writes 1e16 for 1e+16 and null for NaN."""


def _is_written_alike(value: object) -> bool:
    """Whether a value is small, not deep, and made of JSON's own types without floats."""
    if type(value) is dict and _SAME_TYPES.issuperset(map(type, cast("dict[object, object]", value).values())):
        return True  # the input of most tools
    level: list[object] = [value]
    for _ in range(_MAX_LEVELS):
        below: list[object] = []
        for item in level:
            if type(item) is dict:
                members = cast("dict[object, object]", item).values()
            elif type(item) is list:
                members = cast("list[object]", item)
            elif type(item) in _SAME_TYPES:
                continue
            else:
                return False
            if not _SAME_TYPES.issuperset(map(type, members)):
                below.extend(member for member in members if type(member) not in _SAME_TYPES)
        if not below:
            return True
        if len(below) > _MAX_CONTAINERS:
            return False
        level = below
    return False


def _text(value: object) -> str:
    global _chunks
    try:
        return "".join(_chunks(value, 0))
    except (TypeError, ValueError, KeyError, RecursionError):
        # After an error the shared encoder still remembers the containers that it was in, and another thread may be using it.
        # So replace it, and let a new one decide.
        _chunks = _chunk_encoder()
        return _library_encoder().encode(value)


def encode(record: Record) -> bytes:
    """Return the record as one line without its line end.

    Raises:
        InvalidInput: a value is not JSON (NaN, an infinity, a set, a cycle), is nested too deep, or is too long.
    """
    return encode_value(record, 0)


def encode_value(value: object, depth: int) -> bytes:
    """Return a value of a record as ASCII JSON, encoded like `encode`.

    Args:
        value: any JSON value.
        depth: the number of containers around it in the record.

    Raises:
        InvalidInput: see `encode`.
    """
    shallow = _is_shallow(value)
    if _faster is not None and _is_written_alike(value):
        # orjson raises a TypeError for lone surrogates, integers of more than 64 bits and keys that are not texts.
        try:
            line = _faster(value)
            if line.isascii() and _DELETE not in line and len(line) <= MAX_LINE:
                return line
        except TypeError:
            pass
    try:
        text = _text(value)
    except (TypeError, ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise InvalidInput(
            f"record is not JSON: {reason}", "pass only text, numbers, lists, objects, true, false and null"
        ) from None
    if len(text) > MAX_LINE:
        raise _too_long(len(text))
    # A text this short can't be nested too deep, because each level takes a bracket.
    if not shallow and len(text) > MAX_DEPTH and is_deep(value, MAX_DEPTH - depth, text.count("[") + text.count("{")):
        raise InvalidInput("record is not JSON: nested too deep", f"the limit is {MAX_DEPTH} levels")
    return text.encode("ascii")


def _too_long(size: int) -> InvalidInput:
    return InvalidInput(
        f"record is {size:,} bytes long or longer; the limit is {MAX_LINE:,}",
        "record a reference to large content (a path and a hash) instead of the content",
    )


def _is_shallow(value: object) -> bool:
    """Whether a value has no containers, or only such that have none themselves.

    Raises:
        InvalidInput: a text that is found here is too long. To encode a text of 1 GB would take six times its size in memory.
    """
    shallow, level = True, cast("dict[object, object]", value).values() if type(value) is dict else (value,)
    for item in level:
        if type(item) is str:
            if len(item) > MAX_LINE:
                raise _too_long(len(item))
        elif type(item) is dict:
            for inner in cast("dict[object, object]", item).values():
                if type(inner) is str:
                    if len(inner) > MAX_LINE:
                        raise _too_long(len(inner))
                elif type(inner) not in _LEAVES:
                    shallow = False
        elif type(item) not in _LEAVES:
            shallow = False
    return shallow


def is_deep(value: object, limit: int, brackets: int) -> bool:
    """Whether a JSON value is nested deeper than ``limit``; ``brackets`` is the number of opening brackets in its text."""
    # Brackets within strings count too, so few brackets prove that the value is flat, but many prove nothing.
    if brackets <= limit:
        return False
    level: list[object] = [value]
    for _ in range(limit):
        below: list[object] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(cast("dict[str, object]", item).values())
            elif isinstance(item, (list, tuple)):
                below.extend(cast("list[object]", item))
        level = [item for item in below if isinstance(item, (dict, list, tuple))]
        if not level:
            return False
    return True


def decode(line: bytes) -> Record:
    """Return the record in ``line``.

    Raises:
        ValueError: the line is not UTF-8, is not one JSON object, contains NaN or an infinity, or is nested too deep.
    """
    try:
        value = _read(line.decode("utf-8"))
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return cast("Record", value)


_SPACE = " \t\n\r"


def _read(text: str) -> object:
    if _native is not None:
        bare = text.strip(_SPACE)
        try:
            value, end = _scan(bare, 0)
            if end == len(bare):
                return value
        # The library's decoder below reports the error and its position. SystemError: see `ctxmgr.log.fast_json`.
        except (StopIteration, ValueError, SystemError):
            pass
    return _library_decoder().decode(text)


def refuse_constant(name: str) -> NoReturn:
    """Raise ValueError for NaN and the infinities, which Python's JSON decoder accepts as numbers."""
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in _INFINITIES:
        raise ValueError(f"{text[:40]} is too large for a number")
    return number


_INFINITIES = (float("inf"), float("-inf"))


class _Strict:
    """The attributes of a decoder that the C scanner reads."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = staticmethod(_finite)
    parse_int = int
    parse_constant = staticmethod(refuse_constant)


_scan: Any = None if _native is None else _native.make_scanner(_Strict)


def _library_decoder() -> JSONDecoder:
    """Return the standard library's decoder with the rules of this format. It is created once."""
    found = globals().get("decoder")
    if found is None:
        import json

        found = globals()["decoder"] = json.JSONDecoder(parse_constant=refuse_constant, parse_float=_finite)
    return found


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Create the decoder at first use, because few programs need it."""
        if name == "decoder":
            return _library_decoder()
        raise AttributeError(f"module 'ctxmgr.log.codec' has no attribute {name!r}")


def chain(previous: str, body: bytes) -> str:
    """Return the checksum of ``body`` chained to ``previous`` ("" at the start): 16 hex digits of SHA-256."""
    return _sha256(previous.encode("ascii") + body).hexdigest()[:16]


def digest(data: bytes) -> str:
    """Return the SHA-256 of some bytes in 64 hex digits."""
    return str(_sha256(data).hexdigest())


_MAX_BUILT_IN_BYTES = 500_000  # for more bytes the slower built-in hash loses more time than importing hashlib takes
_hashed = 0
_built: Any = None


def _hash_few(data: bytes) -> Any:
    """Return a SHA-256 object of the interpreter's built-in module. After many bytes, import the faster hashlib."""
    global _sha256, _hashed, _built
    _hashed += len(data)
    sha: Any = None
    if _hashed <= _MAX_BUILT_IN_BYTES and "hashlib" not in sys.modules:
        sha = _built = _built or _built_in()
    if sha is None:
        from hashlib import sha256

        _sha256 = sha = sha256
    return sha(data)


def _built_in() -> Any:
    for name in ("_sha2", "_sha256"):  # of Python 3.12 and newer, of 3.11
        try:
            return __import__(name).sha256
        except (ImportError, AttributeError):
            continue
    return None


_sha256: Callable[[bytes], Any] = _hash_few


def seal(body: bytes, total: str, end: bytes = b"") -> bytes:
    """Return ``body`` (from `encode`, without a checksum) with its checksum as the last member, followed by ``end``."""
    return b"".join((body[:-1], _SUM_MEMBER, total.encode("ascii"), b'"}', end))


def unseal(line: bytes) -> tuple[bytes, str | None]:
    """Split a line into the bytes that its checksum covers, and the checksum; None if the line has none."""
    # By position, without parsing: the checksum is over the exact bytes, and our writer always puts it last.
    if line[-_SUM_TAIL:-18] == _SUM_MEMBER and line.endswith(b'"}'):
        return line[:-_SUM_TAIL] + b"}", line[-18:-2].decode("ascii", "replace")
    return line, None


def fingerprint(value: object) -> str:
    """Return 16 hex digits that are equal for equal JSON values, whatever the order of their keys.

    Values that are not JSON are compared by their type name. Never raises.
    """
    try:
        text = "".join(_sorted_chunks()(value, 0))
    except (TypeError, ValueError, RecursionError):
        # The fallback makes sure that this never raises, because a recorded value may contain anything.
        text = f"<{type(value).__name__}>"
    return _sha256(text.encode("ascii", "replace")).hexdigest()[:16]


def _sorted_chunks() -> _Chunks:
    if _native is not None:
        return _native.make_encoder({}, _name_of_type, _native.encode_basestring_ascii, None, ":", ",", True, False, True)
    import json

    return cast("_Chunks", json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_name_of_type).iterencode)


def _name_of_type(odd: object) -> str:
    return f"<{type(odd).__name__}>"
