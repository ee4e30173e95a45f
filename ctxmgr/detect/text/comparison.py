"""Compare messages and calls: which are nearly the same, and which messages end a conversation or wait for the agent."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, cast

from ctxmgr.detect.text.fingerprints import CURSOR_KEYS, MAX_TEXT, canonical
from ctxmgr.log.fast_json import json_object
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.finding import Observation

MESSAGES = frozenset({"message", "agent_message"})
THOUGHTS = frozenset({"thought", "reasoning", "agent_thought"})
CHUNKS = frozenset({"agent_message_chunk", "agent_thought_chunk"})

_LABELS = frozenset({"observation", "thought", "action", "action input", "final answer"})
"""Words left of a "Thought, Action, Observation" answer that was cut off at a label. They are nobody's own words."""

_MAX_LABEL = max(map(len, _LABELS))

_TEXT_KEYS = ("text", "content", "message", "delta", "chunk", "thought", "output")
# Kana, Han and Thai.
_UNSPACED = lazy_pattern(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]")
_WORD = lazy_pattern(r"[^\W\d_]{2,}|\d+(?:\.\d+)?")
_STUB = lazy_pattern(r"^\s*[<\[(]\s*([0-9]{1,9}) (?:characters|chars)\b[^<>]{0,80}[>\])]\s*$")
_STUB_HINT = " char"
_MAY_BE_STUB = lazy_pattern(r"[0-9] char")
_latest: tuple[Observation | None, str | None] = (None, None)
"""The last event and its text, because several detectors in a row ask for the text of the same event."""
_COMPARED_OPENING = 64
# Words without a meaning of their own, and phrases that announce steps.
_EMPTY_WORDS = word_set(
    "the an and or but if then so to of in on at by for from with into as is are was be been am will would shall should can "
    "could may might must do does did done have has had it its this that these those there here we you me my your our us he "
    "she they them am going go let lets please now next just also again first second start starting started begin beginning "
    "step steps order comes come came want wants need needs ll ve re what which how when where why well ok okay sure yes no"
)


def event_text(event: Observation) -> str | None:
    """Return the words of an event; None if it holds no text, which differs from an empty text."""
    global _latest
    known, text = _latest
    if known is event:
        return text
    data: object = event.data
    if type(data) is dict and type(said := cast("dict[str, Any]", data).get(_TEXT_KEYS[0])) is str:
        text = _drop_label(said)  # the form of most events
    else:
        text = _find_text(cast("object", data), 0)
    _latest = event, text
    return text


def _drop_label(text: str) -> str | None:
    text = text[:MAX_TEXT]
    bare = text.strip(" *#:\n")
    return None if len(bare) <= _MAX_LABEL and bare.lower() in _LABELS else text


def _find_text(data: object, depth: int) -> str | None:
    if isinstance(data, str):
        return _drop_label(data)
    if depth > 3:  # the deepest real form is a message of content blocks
        return None
    if isinstance(data, dict):
        fields = cast("dict[str, Any]", data)
        for key in _TEXT_KEYS:
            if key in fields:
                return _find_text(fields[key], depth + 1)
        return None
    if isinstance(data, list):
        parts = [_find_text(part, depth + 1) for part in cast("list[Any]", data)[:64]]
        known = [part for part in parts if part is not None]
        return "".join(known) if known else None
    return None


def plain(text: str) -> str:
    """Return a text in lower case and with single spaces."""
    return " ".join(text[:MAX_TEXT].lower().split())


def gist(text: str) -> frozenset[str]:
    """Return the stems of the words that carry a text's meaning, and its numbers."""
    from ctxmgr.text.tokens import stem  # loaded here: most runs compare no messages

    words = set(_WORD.findall(text[:4000].lower()))
    unspaced = [word for word in words if len(word) > 1 and _UNSPACED.search(word)]
    if unspaced:  # a script without spaces: use pairs of characters as words
        words -= set(unspaced)
        words |= {word[place : place + 2] for word in unspaced for place in range(len(word) - 1)}
    return frozenset(map(stem, words - _EMPTY_WORDS))


def are_alike(one: frozenset[str], two: frozenset[str]) -> bool:
    """Whether two gists say the same: they share most words and every number."""
    shared = len(one & two)
    # Fewer than three shared words are chance. A different number ("file 3 of 9") may be the news.
    if shared < 3 or shared < 0.6 * len(one | two):
        return False
    return not any(word[0].isdecimal() for word in one ^ two)


def text_length(text: str) -> int:
    """Return the number of characters of a text. A stub counts with the length of the text that it replaces."""
    stub = _STUB.match(text[:200]) if _STUB_HINT in text else None
    return int(stub[1]) if stub else len(text)


def may_hold_stub(text: str) -> bool:
    """Whether any part of a text may be a stub, which counts for more than its length."""
    return _STUB_HINT in text and _MAY_BE_STUB.search(text) is not None


class MessageText:
    """The text of an event. It equals another one with the same words; its normal forms are computed on demand.

    Most messages are never compared, because the agent acts before it speaks again.

    Attributes:
        event: the event.
        text: the text as recorded.
    """

    __slots__ = ("_gist", "_plain", "event", "text")

    def __init__(self, event: Observation, text: str) -> None:
        self.event = event
        self.text = text
        self._plain: str | None = None
        self._gist: frozenset[str] | None = None

    @property
    def plain(self) -> str:
        """The text in lower case and with single spaces."""
        if self._plain is None:
            self._plain = plain(self.text)
        return self._plain

    @property
    def gist(self) -> frozenset[str]:
        """The stems of the words that carry its meaning, and its numbers."""
        if self._gist is None:
            self._gist = gist(self.text)
        return self._gist

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MessageText):
            return NotImplemented
        if self.text == other.text:
            return True
        return _may_equal(self.text, other.text) and self.plain == other.plain

    def __hash__(self) -> int:
        return hash(self.plain)


def _may_equal(one: str, two: str) -> bool:
    """Whether the beginnings of two texts have the same words, as far as a short look shows."""
    # Without the last word, which may be cut off.
    mine, theirs = (text[:_COMPARED_OPENING].lower().split()[:-1] for text in (one, two))
    return all(map(str.__eq__, mine, theirs))


_MAX_CLOSING_CHARS = 500
"""Characters up to which a message can be a farewell. The author of a longer one has something to say."""
_COMMAND = lazy_pattern(r"\s*(?:<command-name>)?/?(?:exit|quit|logout|bye)(?:</command-name>)?[\s.!]*\Z", re.IGNORECASE)
_TOKEN = lazy_pattern(r"#{2,}\s*(?:STOP|END|DONE|TRANSFER|OUT-OF-SCOPE|TERMINATE|EXIT)\s*#{2,}\s*\Z")
"""The mark with which a harness that plays the person ends a conversation."""
_SENTENCE = lazy_pattern(r"[.!;\n\u2014]+")
_PLAIN_WORD = lazy_pattern(r"[a-z]+(?:'[a-z]+)?")
_CLOSING = lazy_pattern(
    r"\b(?:thanks|thank you|thx|cheers|bye|goodbye|good night|take care|that's (?:all|it|everything)|that is all|"
    r"all set|i'm done|we're done|nothing else|no further|appreciate|have a (?:great|good|nice|wonderful|lovely)|you too)\b"
)
_ASKS = word_set(
    "please can could would should shall must need want let lets let's yes yeah yep sure go start continue proceed "
    "resume next then also but however except still instead before after until once when if what which who why where how "
    "fix add make do try run write check test build use change update remove rename create show tell give send find explain "
    "finish implement apply commit push don't another wait"
)


def is_farewell(text: str) -> bool:
    """Whether a person who says this after the agent's answer expects nothing more.

    That is a command to leave, a harness's closing mark, or thanks and goodbyes without a question, an order or an agreement.
    In doubt it is no farewell, so silence after it counts as a stall.
    """
    if _COMMAND.match(text) or _TOKEN.search(text):
        return True
    if len(text) > _MAX_CLOSING_CHARS or "?" in text:
        return False
    lower = text.lower().replace("\u2019", "'")
    if _CLOSING.search(lower) is None:
        return False
    parts = [part for part in _SENTENCE.split(lower) if part.strip()]
    # "Thanks for that. The login page is white." begins as a farewell and ends with news.
    return _CLOSING.search(parts[-1]) is not None and not any(
        word in _ASKS for part in parts for word in _PLAIN_WORD.findall(_CLOSING.sub(" ", part))
    )


# Fields with a new value in each call that do not change the question.
VOLATILE_KEYS = (
    word_set(
        "attempt attempts attemptNumber attempt_number retry retries retryCount retry_count try tries counter iteration seq "
        "sequence nonce salt requestId request_id traceId trace_id callId call_id correlationId correlation_id "
        "idempotencyKey idempotency_key timestamp ts now cacheBuster cache_buster cb random rand "
        "explanation justification rationale reasoning thought intent"
    )
    | CURSOR_KEYS
)
COMMAND_KEYS = ("command", "cmd", "script")
PATH_KEYS = word_set(
    "path relative_path relative_file_path file file_path filePath filepath filename file_name dir "
    "directory folder cwd absolute_path"
)
_TARGET_KEYS = PATH_KEYS | word_set("url uri target to id name key table repo resource")
# Endings without any effect on a command: ``|| true``, ``2>&1``, a final semicolon.
_NO_EFFECT = lazy_pattern(r"(?:\s*(?:&&|\|\||;)\s*(?:true|:)|\s*2>\s*&1|\s*2>\s*/dev/null|\s*;)+\s*$")
# A # within quotes starts no comment, so a # with a quote after it is kept.
_REMARK = lazy_pattern(r"\s#\s[^\n'\"]*$")
_QUOTED = lazy_pattern(r"^(['\"])([\w./:@%+=,-]+)\1$")
_NUMBER = lazy_pattern(r"(?<![\w.])-?[0-9]+(?:\.[0-9]+)?(?![\w.])")
_WHOLE = lazy_pattern(r"(?<![\w.])[0-9]{1,12}(?![\w.])")
# ``sed -n 10,20p file`` reads a range of lines in a shell.
_SED = lazy_pattern(r"\bsed -n ['\"]?([0-9]+),([0-9]+)p['\"]? ([^\s|;&]+)")
_MAX_LINES = 10_000_000


class Span(NamedTuple):
    """Lines ``first`` to ``last`` (both included) of something."""

    target: str
    first: int
    last: int


def plain_command(command: str) -> str:
    """Return a shell command without ineffective parts: spaces, comments, ``&& true``, ``./``, trailing slashes, quotes."""
    words = _NO_EFFECT.sub("", _REMARK.sub("", command[:4000])).split()
    return " ".join(_plain_path(_QUOTED.sub(r"\2", word)) for word in words)


def _plain_path(word: str) -> str:
    while word.startswith("./") and len(word) > 2:
        word = word[2:]
    return word.rstrip("/") or word


# What stands before the program that a command runs, and parts of a command that only prepare another one.
_LAUNCHER = lazy_pattern(
    r"(?:(?:sudo|time|nohup|npx|bunx|uvx|(?:uv|poetry|pipenv|pdm|hatch|rye) run|env|\w+=\S*|python[\d.]* -m|py -m)\s+)+"
)
_PREPARES = word_set("cd pushd export source . set unset echo")
_QUOTING = lazy_pattern(r"[\\'\"]")
_PARTS = lazy_pattern(r"&&|\|\||;")
_PATCHED = lazy_pattern(r"^\*\*\* (?:Update|Add|Delete) File: (.{1,500}?)\s*$", re.MULTILINE)
_SERVER = lazy_pattern(r"[a-z]{2,10}://([^/?#\s]{1,300})")
# Options that only look, or leave a part out.
_LOOKS = word_set(
    "--help --version -h -V --dry-run -n --just-print --collect-only --co --list --list-tests --listTests --no-run --whatif "
    "-k --last-failed --lf --testNamePattern --grep --filter"
)
_NAMES_A_THING = lazy_pattern(r"\S*[/.:]\S*")


def tries_again(start: Observation, failed: Observation, command: str, failed_command: str) -> bool:
    """Whether a call tries with other arguments what a failed call of the same action tried.

    Calls of a path are about one file: the same, or one of that name elsewhere; those of addresses about one server. Of two
    commands, the program and the things that it is run on are the same, and only options differ. Other calls share a value, if
    they have several. The rest may be what was wrong before.

    Args:
        start: the call.
        failed: the failed call.
        command: the shell command of the call ("" if it has none).
        failed_command: that of the failed call.
    """
    if start.action != failed.action or _things(start, command) != (things := _things(failed, failed_command)):
        return False
    if command or failed_command:
        return _PATCHED.search(failed_command) is not None or _runs_again(command, failed_command)
    fields, known = json_object(start.input), json_object(failed.input)
    return bool(things) or len(known) < 2 or any(key in fields and fields[key] == value for key, value in known.items())


def _things(start: Observation, command: str) -> set[str]:
    """Return the names of files and servers that a call names in its fields, or in a patch anywhere in its input."""
    fields = json_object(start.input)
    texts = [value for key, value in fields.items() if key not in COMMAND_KEYS and isinstance(value, str)]
    found = {_file_name(value) for key, value in fields.items() if key in PATH_KEYS and isinstance(value, str)}
    found |= {address[1].lower() for text in texts if (address := _SERVER.match(text)) is not None}
    patches = [command, *texts, start.input if isinstance(start.input, str) else ""]
    return found | {_file_name(path) for text in patches for path in _PATCHED.findall(text)}


def _file_name(path: str) -> str:
    return _plain_path(path.strip()).replace("\\", "/").rpartition("/")[2]


def _runs_again(command: str, failed: str) -> bool:
    if _bare(command) == _bare(failed):
        return True
    parts = _program_calls(failed)
    if not parts or "<<" in failed:  # the words of a whole script don't say what it is run on
        return False
    # The last part is what failed, or what the others prepare.
    wanted = [word for word in parts[-1] if word[0] != "-"]
    for words in _program_calls(command):
        if not _LOOKS.isdisjoint(word.partition("=")[0] for word in words if word not in parts[-1]):
            continue
        bare = [word for word in words if word[0] != "-"]
        # `-m "a text"` gives the same call a text. What names a file or a test is run in the place of the whole.
        plain = [
            word
            for place, word in enumerate(words)
            if word[0] != "-" and (not place or words[place - 1][0] != "-" or _NAMES_A_THING.fullmatch(word))
        ]
        if wanted in (bare, plain):
            return True
    return False


def _bare(command: str) -> str:
    """Return a command without the signs that only say where one of its words ends."""
    return " ".join(_QUOTING.sub("", command).split())


def _program_calls(command: str) -> list[list[str]]:
    """Return the words of each program that a command runs, without what only prepares it or reads its output."""
    import shlex  # loaded here: few loops end in a command that succeeds

    found: list[list[str]] = []
    for part in _PARTS.split(plain_command(command)):
        text = part.partition("|")[0].strip()
        launcher = _LAUNCHER.match(text)
        text = text[launcher.end() :] if launcher else text
        try:
            words = [word for word in shlex.split(text) if word]
        except ValueError:  # a quotation mark without its partner
            words = text.split()
        if words and words[0] not in _PREPARES:
            found.append(words)
    return found


def near_key(start: Observation) -> Hashable:
    """Return a key that is equal for calls that differ only in volatile or cosmetic parts; None if the input is not JSON."""
    text = canonical(_drop_volatile(start.input, 0))
    return None if text is None else (start.action, text)


def drift_key(start: Observation) -> Hashable:
    """Return a key that is equal for calls that differ only in such parts and in numbers; None without numbers."""
    near = _drop_volatile(start.input, 0)
    masked = _mask_numbers(near, 0)
    text = canonical(masked)
    return None if text is None or text == canonical(near) else (start.action, text)


def counts_up(starts: Sequence[Observation]) -> bool:
    """Whether calls that differ only in numbers count up by one: seed 1, seed 2, seed 3."""
    numbers = [[int(each) for each in _WHOLE.findall(canonical(start.input) or "")] for start in starts]
    if len({len(each) for each in numbers}) != 1:
        return False
    places = [list(place) for place in zip(*numbers, strict=True)]
    moving = [place for place in places if len(set(place)) > 1]
    return bool(moving) and all(later - earlier == 1 for place in moving for earlier, later in pairwise(place))


def _drop_volatile(value: object, depth: int) -> object:
    # Recorded inputs may be nested to any depth. Deeper parts are compared as they are.
    if isinstance(value, dict) and depth < 20:
        fields = cast("dict[Any, Any]", value)
        stable = {key: item for key, item in fields.items() if key not in VOLATILE_KEYS} or fields
        return {key: _normalize_field(key, item, depth) for key, item in stable.items()}
    if isinstance(value, list) and depth < 20:
        return cast("object", [_drop_volatile(item, depth + 1) for item in cast("list[Any]", value)])
    return " ".join(value.split()) if isinstance(value, str) else cast("object", value)


def _normalize_field(key: object, value: object, depth: int) -> object:
    if isinstance(value, str):
        if key in COMMAND_KEYS:
            return plain_command(value)
        if key in PATH_KEYS:
            return _plain_path(value.strip())
    return _drop_volatile(value, depth + 1)


def _mask_numbers(value: object, depth: int) -> object:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return "#"
    if isinstance(value, dict) and depth < 20:
        fields = cast("dict[Any, Any]", value)
        return {key: _drift_field(key, item, depth) for key, item in fields.items()}
    if isinstance(value, list) and depth < 20:
        return cast("object", [_mask_numbers(item, depth + 1) for item in cast("list[Any]", value)])
    return cast("object", value)


def _drift_field(key: object, value: object, depth: int) -> object:
    if isinstance(value, str) and (key in COMMAND_KEYS or value.isdecimal()) and key not in _TARGET_KEYS:
        return _NUMBER.sub("#", value)
    # Another number in a path or an id names another thing.
    return value if key in _TARGET_KEYS else _mask_numbers(value, depth + 1)


def call_target(start: Observation) -> str:
    """Return the target of a call: the path, address or name in its input ("" if there is none)."""
    if not isinstance(start.input, dict):
        return ""
    fields = cast("dict[Any, Any]", start.input)
    found = [str(value)[:500] for key, value in fields.items() if key in _TARGET_KEYS and isinstance(value, str | int)]
    return "\n".join(found)


def line_span(start: Observation) -> Span | None:
    """Return the target of a call and the lines of it that the call reads; None if it names no lines."""
    if not isinstance(start.input, dict):
        return _sed_span(start.input)
    fields = cast("dict[str, Any]", start.input)
    for key in COMMAND_KEYS:
        if key in fields:
            return _sed_span(fields[key])
    target = next((value for key, value in fields.items() if key in PATH_KEYS and isinstance(value, str)), None)
    return None if target is None else _field_span(target, fields)


def _field_span(target: str, fields: Mapping[str, Any]) -> Span | None:
    """Return the lines that the fields of a reading tool name: as a pair, as first and last, or as offset and number."""
    for key in ("view_range", "line_range", "range", "lines"):
        pair = fields.get(key)
        if isinstance(pair, list) and len(cast("list[Any]", pair)) == 2:
            return _make_span(target, *cast("list[Any]", pair))
    for first, last in (("start", "end"), ("start_line", "end_line"), ("startLine", "endLine"), ("line_start", "line_end"),
                        ("from", "to")):  # fmt: skip
        if first in fields and last in fields:
            return _make_span(target, fields[first], fields[last])
    offset, limit = fields.get("offset"), fields.get("limit")
    if _is_line(offset) and _is_line(limit):
        return _make_span(target, offset, cast("int", offset) + cast("int", limit) - 1)
    return None


def _sed_span(command: object) -> Span | None:
    if not isinstance(command, str):
        return None
    match = _SED.search(command[:4000])
    # `int` refuses a number of more than 4,300 digits, and a command may hold one.
    return _make_span(match[3], int(match[1][:9]), int(match[2][:9])) if match else None


def _make_span(target: str, first: object, last: object) -> Span | None:
    if not _is_line(first) or not _is_line(last):
        return None
    one, two = cast("int", first), cast("int", last)
    return Span(_plain_path(target.strip()[:500]), one, two) if one <= two else None


def _is_line(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_LINES
