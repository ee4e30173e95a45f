"""Quote recorded text as data.

Pages and records get JSON strings: printable, with escapes, and cut. Agents get the text itself with real line breaks, in a
fence that the text cannot close.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from typing import Any, TypeVar, cast

from ctxmgr.diagnose.evidence.calls import EDITOR_VERBS, command_of, fields_of, flat_text
from ctxmgr.diagnose.evidence.messages import BY_CLIENT, PEOPLE
from ctxmgr.diagnose.evidence.texts import clip_middle, clock, read_escapes, sentences_in, strip_escapes, strip_wrapper
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.view import EntryView, EventView

_Item = TypeVar("_Item")

EXCERPT = 400
CITABLE = 200
"""Longest id that is cited. Sources choose their ids; this limit keeps continuations small whatever they choose."""

QUOTED = lazy_pattern(r"`[^`]*`")
"""A quote within a sentence."""
_NAME = lazy_pattern(r"\w[\w.:/@+-]{0,79}")
_COMMANDS = ("command", "cmd", "script")
_ASIDE = frozenset({"description", "explanation", "justification", "timeout", "timeout_ms", "timeoutMs", "run_in_background"})
_TELLING = ("pattern", "query", "url", "file_path", "filePath", "path", "prompt", "name")
_EMPTY_MESSAGE = 40
"""Length up to which an error message ("exit code 1") says nothing without the output beside it."""
_HUGE = 2**63
_DEPTH = 5
_WIDTH = 12
_SHORTEST = 8
_LINE = 300


def quote_text(text: str, limit: int = EXCERPT) -> str:
    """Return text as one JSON string without unprintable characters, cut in the middle when longer than ``limit``."""
    cut = limit
    while True:
        written = _printable(json.dumps(clip_middle(text, cut), ensure_ascii=False))
        # Escapes make text longer. Cut text with many escapes further, so that the limit holds roughly.
        if len(written) <= limit + limit // 4 + 2 or cut <= _SHORTEST:
            return written
        cut //= 2


def one_line(text: str) -> str:
    """Return text of a server or model, which may be anything, as one printable line of at most 300 characters."""
    plain = " ".join(text.split())
    shown = quote_text(plain, _LINE)
    return clip_middle(plain, _LINE) if shown[1:-1] == plain else shown[1:-1].replace('\\"', '"')


def whole_sentences(text: str, limit: int) -> str:
    """Return the first sentences of a text that fit into ``limit``. If even the first is longer, it is cut."""
    kept = ""
    for sentence in sentences_in(text):
        if kept and len(kept) + len(sentence) + 1 > limit:
            # The cut may end within a clause or a bracket: close the sentence, and drop an open bracket.
            plain = QUOTED.sub(lambda code: "_" * len(code[0]), kept)
            opened = plain.rfind("(") if plain.count("(") > plain.count(")") else len(kept)
            kept = f"{kept[:opened].rstrip(' ;.')}."
            break
        kept = f"{kept} {sentence}".strip()
    return clip_middle(kept, limit)


def display_name(text: str) -> str:
    """Return the name of an agent or action: plain if it looks like a name, else quoted."""
    return text if _NAME.fullmatch(text) and text.isprintable() else quote_text(text, 80)


def shorten_value(value: Any, limit: int = EXCERPT, depth: int = _DEPTH) -> Any:
    """Return a JSON value with texts cut to ``limit``, and with fewer members if it is long or deep; still JSON."""
    if isinstance(value, str):
        return clip_middle(value, limit)
    if isinstance(value, int) and abs(value) >= _HUGE:
        return clip_middle(str(value), limit)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if depth == 0:
            return f"… {len(items)} items"
        kept: list[Any] = [shorten_value(item, limit, depth - 1) for item in items[:_WIDTH]]
        return [*kept, f"… {len(items) - _WIDTH} more"] if len(items) > _WIDTH else kept
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if depth == 0:
            return f"… {len(fields)} members"
        pairs = list(fields.items())[:_WIDTH]
        told = {clip_middle(str(name), 60): shorten_value(item, limit, depth - 1) for name, item in pairs}
        return {**told, "…": f"{len(fields) - _WIDTH} more"} if len(fields) > _WIDTH else told
    return value


def fit_value(value: Any, limit: int) -> Any:
    """Return a JSON value, reduced until it takes about ``limit`` characters."""
    for cut, depth in ((limit, _DEPTH), (limit // 2, _DEPTH), (limit // 4, 3), (limit // 8, 2), (_SHORTEST, 1)):
        short = shorten_value(value, max(cut, _SHORTEST), depth)
        if len(_printable(json.dumps(short, ensure_ascii=False))) <= limit + limit // 4:
            return short
    return shorten_value(value, _SHORTEST, 0)


def compact(value: Any, limit: int = EXCERPT) -> str:
    """Return any JSON value as printable JSON of about ``limit`` characters at most."""
    if isinstance(value, str):
        return quote_text(value, limit)
    return _printable(json.dumps(fit_value(value, limit), ensure_ascii=False))


def flat(value: Any, limit: int) -> str:
    """Return the texts, numbers and truth values of a JSON value as lines in order, each after its name, for search.

    Names are included even if their value is empty, because they are shown with it.
    """
    lines: list[str] = []
    room = limit
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting and room > 0:
        name, item = waiting.pop()
        text = ""
        if isinstance(item, dict):
            fields = cast("dict[str, Any]", item)
            waiting += reversed([(str(key), part) for key, part in fields.items()])
        elif isinstance(item, list) and item:
            waiting += reversed([(name, part) for part in cast("list[Any]", item)])
            continue
        elif isinstance(item, str):
            text = item[:room]
        elif isinstance(item, bool):
            text = "true" if item else "false"
        elif item is not None and not isinstance(item, list):
            text = str(item)[:200]
        if name or text:
            lines.append(f"{name[:room]}: {text}" if name else text)
            room -= len(lines[-1]) + 1
    return "\n".join(lines)


def brief_input(value: Any, limit: int = 160) -> str:
    """Return the most telling part of an action's input: a command, a single value, else all of it as JSON."""
    if value in (None, "", {}, []):
        return ""
    if not isinstance(value, dict):
        return compact(value, limit)
    fields = cast("dict[str, Any]", value)
    for name in _COMMANDS:
        given = fields.get(name)
        if isinstance(given, str | list) and given and given not in EDITOR_VERBS:
            return compact(given, limit)
    # `in (None, False)` would be wrong: 0 equals False, but is a real value.
    known = {name: item for name, item in fields.items() if item is not None and item is not False}
    telling = {name: item for name, item in known.items() if name not in _ASIDE} or fields
    only = next(iter(telling.values())) if len(telling) == 1 else None
    return quote_text(only, limit) if isinstance(only, str) and only else compact(telling, limit)


def call(entry: EntryView, limit: int = 160) -> str:
    """Return an action and its input as words: ``Bash "pytest -q"``."""
    return f"{display_name(entry.action)} {brief_input(entry.input, limit)}".rstrip()


def speaker(event: EventView, person: str = "a person", you: str | None = None) -> str:
    """Return who said a message: a person, the client by itself, or an agent, in words that the reader ``you`` understands."""
    if event.type in (*PEOPLE, *BY_CLIENT):
        return person if event.type in PEOPLE else "the client"
    return "you" if you is not None and event.agent == you else display_name(event.agent or "an agent")


def short_call(entry: EntryView) -> str:
    """Return an action and the most telling value of its input."""
    fields = fields_of(entry)
    telling = next((value for name in _TELLING if isinstance(value := fields.get(name), str) and value), None)
    if telling is None or command_of(entry):
        return call(entry, 100)
    return f"{display_name(entry.action)} {quote_text(telling, 100)}"


def outcome(entry: EntryView, limit: int = EXCERPT) -> str:
    """Return how an entry ended, in the record's own words."""
    if entry.status == "open":
        return "no result is recorded"
    told = [compact(part, limit) for part in answers(entry)]
    return f"{entry.status}: {', '.join(told)}" if told else entry.status


def answers(entry: EntryView) -> list[Any]:
    """Return the parts of an entry's result: its error message, and its output if the message is missing or says nothing."""
    message, output = _message(entry.error), entry.output
    if output in (None, "", {}, []):
        return [] if message is None else [message]
    if message is None:
        return [output]
    return [message, output] if isinstance(message, str) and len(message) < _EMPTY_MESSAGE else [message]


def answer_text(entry: EntryView) -> str:
    """Return an entry's result as plain text for a search; it is not fit to be shown."""
    return "\n".join(part if isinstance(part, str) else compact(part, 8_000) for part in answers(entry))


def _message(error: Any) -> Any:
    if isinstance(error, dict):
        fields = cast("dict[str, Any]", error)
        return fields.get("message") or fields or None
    return error or None


def times(number: int) -> str:
    """Return a number of times in words: once, twice, 4 times."""
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def citable_ids(ids: list[str], most: int = 20) -> list[str]:
    """Return the ids to cite: the first and last ones of many, without those longer than `CITABLE`."""
    fair = [name for name in dict.fromkeys(ids) if len(name) <= CITABLE]
    return both_ends(fair, most)


def both_ends(items: Sequence[_Item], most: int) -> list[_Item]:
    """Return the items; if there are more than ``most``, the first and last ones."""
    return list(items) if len(items) <= most else [*items[: most - most // 2], *items[len(items) - most // 2 :]]


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


_OMITTED = lazy_pattern(r"(?m)^…(?:\n\s*…)+$")
_TICKS = lazy_pattern(r"`{3,}")
_SHOWN_FIRST = ("file_path", "filePath", "notebook_path", "path", "pattern", "query", "url", "prompt", "description", "name")
_KEPT = "\n\t"
_JSON = lazy_pattern(r"\s{0,20}\[?\{\"")
_LONGEST = 20_000
_LEAST_PART = 40
"""Room in characters from which a part of a long line is shown."""


def clean(text: str) -> str:
    """Return text without invisible characters: controls and escapes, writing directions, zero-width characters."""
    text = strip_escapes(text[:_LONGEST]).replace("\r\n", "\n").replace("\r", "\n")
    text = text.replace("\u2028", "\n").replace("\u2029", "\n")
    return "".join(map(_visible_character, text))


def _visible_character(char: str) -> str:
    if char in _KEPT or char.isprintable():
        return char
    return " " if unicodedata.category(char) == "Zs" else ""


def in_line(text: str, limit: int) -> str:
    """Return text in one line, to be used in a sentence."""
    return clip_middle(" ".join(clean(text).split()), limit)


def fence_text(text: str, limit: int) -> str:
    """Return text in a fence of backticks longer than any in the text; its middle is left out beyond ``limit`` characters."""
    lines = [_plain(line) for line in clean(text).strip("\n").split("\n")]
    shown = _OMITTED.sub("…", cut_lines("\n".join(lines), limit))
    ticks = max((len(run) for run in _TICKS.findall(shown)), default=2) + 1
    mark = "`" * max(ticks, 3)
    return f"{mark}\n{shown}\n{mark}"


def _plain(line: str) -> str:
    """Return a line; in a line of JSON, escaped line breaks and quotation marks are resolved."""
    return read_escapes(line).replace("\\n", "\n").replace('\\"', '"') if _JSON.match(line) else line


def cut_lines(text: str, limit: int) -> str:
    """Return at most ``limit`` characters: whole lines from the beginning and the end of a text, with a mark between them."""
    if len(text) <= limit:
        return text
    lines = text.split("\n")
    head: list[str] = []
    tail: list[str] = []
    room = limit - 2
    while lines and room > 0:
        side, line = (head, lines.pop(0)) if len(tail) >= len(head) else (tail, lines.pop())
        if len(line) + 1 > room:
            if not head and not tail:
                return clip_middle(text, limit)
            # Output is often one long line, such as JSON. A part of that line says more than nothing.
            if room > _LEAST_PART:
                side.append(clip_middle(line, room - 1))
            break
        side.append(line)
        room -= len(line) + 1
    return "\n".join([*head, *(["…"] if lines else []), *reversed(tail)])


def mark_cuts(part: str, text: str) -> str:
    """Return a part of a text with marks where it begins or ends within a line; the text if there is no part."""
    if not part:
        return text
    before, found, after = text.partition(part)
    head, tail = before.rpartition("\n")[2].strip(), after.partition("\n")[0].strip()
    return f"{'… ' if found and head else ''}{part}{' …' if tail else ''}"


def quote_person(text: str, limit: int) -> str:
    """Return a person's words with a quotation mark (``>``) before each line."""
    lines = clip_middle(clean(text).strip(), limit).splitlines()
    return "\n".join(f"> {line}".rstrip() for line in lines)


def call_line(entry: EntryView, limit: int = 120) -> str:
    """Return a call in one line, written as its agent would: ``$ pytest -q``, ``Read app.py``."""
    if command := command_of(entry):
        return f"$ {in_line(command, limit)}"
    fields = fields_of(entry)
    told = next((value for name in _SHOWN_FIRST if isinstance(value := fields.get(name), str) and value), None)
    pattern = fields.get("pattern")
    if told is not None and isinstance(pattern, str) and pattern not in ("", told):
        told = f"{pattern} in {told}"  # searches of one folder differ in what they look for
    if told is None:
        told = entry.input if isinstance(entry.input, str) else flat_text(entry.input)
    return f"{in_line(entry.action, 60)} {in_line(told, limit)}".rstrip()


def result_text(entry: EntryView) -> str:
    """Return a call's result as text."""
    return "\n".join(part if isinstance(part, str) else flat_text(part) for part in answers(entry))


def since_when(ts: str | None) -> str:
    """Return the time of a record as words after "since": `` 23:05``, or ""."""
    return clock(ts).removeprefix(" on").removeprefix(" at")


_LEADING = lazy_pattern(r"^(?:> |… |\s*\d+[\t|:→] ?)")
"""A mark before a line: the ``>`` of a person's words, that it was cut, or the line number that a client adds."""
_LONG, _LEAST_NEWS, _BEGINNING = 25, 12, 80
"""Characters of a line that is compared, of a text that is worth a quote, and those by which (or by half) a text is known."""


class ShownText:
    """The lines that a prompt has shown so far."""

    def __init__(self) -> None:
        self._text, self._lines = "", set[str]()

    def add(self, text: str) -> None:
        """Mark the lines of a text as shown."""
        self._text += f" {' '.join(text.split())}"
        self._lines.update(_keys(text))

    def without_shown(self, text: str) -> str:
        """Return a text without lines that clients add. A mark replaces lines shown before. Returns "" if little is left."""
        text = strip_wrapper(clean(text)).strip("\n") or clean(text)
        keys, seen = _keys(text), set(self._lines)
        plain = " ".join(text.split()).removeprefix("… ")
        if seen.issuperset([*filter(None, keys)]) or plain[: max(_BEGINNING, len(plain) // 2)] in self._text:
            return ""
        left: list[str] = []
        for line, key in zip(text.split("\n"), keys, strict=True):
            again = len(key) > _LONG and key in seen
            if not again or left[-1:] != ["…"]:
                left.append("…" if again else line)
            seen.add(key)
        news = "\n".join(left)
        return news if news == text or sum(map(str.isalnum, news)) >= _LEAST_NEWS else ""


def _keys(text: str) -> list[str]:
    """Return a key that is equal for lines with the same words: no marks before the line, single spaces."""
    return [" ".join(_LEADING.sub("", line).split()) for line in text.split("\n")]
