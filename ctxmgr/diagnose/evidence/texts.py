"""Make recorded text fit to be quoted or compared: no control characters, bounded; find similar names."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

from ctxmgr.text.patterns import lazy_pattern

OMISSION = " … "
_LEAST_MARKED = 60
"""Characters of a shortened text in which there is room for a mark with braces."""
SHORT, EXCERPT = 120, 300
"""Characters of a quote within a sentence, and of a separate quote."""

_ENDS = 12_000
_MOST_NAMES = 600
_LONGEST_NAME = 80
ORDERS = lazy_pattern(r"\|\s{0,3}(?:ba|z)?sh\b|\b(?:curl|wget)\s|\bthe user\b", re.IGNORECASE)
"""Text that fetches and runs something, or speaks for the user. It is neither quoted nor searched for names."""
# Colours and moves (CSI), titles and links (OSC), and sequences of one letter
_ESCAPE = lazy_pattern(r"\x1b(?:\[[0-?]{0,40}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,300}(?:\x07|\x1b\\)?|[ -/]{0,4}[0-~])")
# Colours whose escape character is lost; source code that writes one is no colour
_COLOUR = lazy_pattern(
    r"(?<!\\033)(?<!\\x1[bB])(?<!\\u001[bB])(?<!\\e)\[(?:\d|[2-4]\d|9[0-7]|10[0-7])(?:;\d{1,3}){0,8}m(?!\])|\[m$", re.MULTILINE
)
_COLOUR_END = lazy_pattern(r"\[0m(?!\])|\[m$", re.MULTILINE)
_SAFE = lazy_pattern(r"[\w@+=~%./:,-]{1,200}")
_PARTS = (
    "text", "content", "stdout", "stderr", "output", "message", "error", "result", "formatted_output", "aggregated_output",
)  # fmt: skip


def clean(text: str) -> str:
    """Return text without escapes and other unprintable characters. Lines and indentation are kept."""
    text = strip_escapes(text).replace("\r\n", "\n").replace("\t", "    ")
    if text.replace("\n", "").isprintable():
        return text
    return "".join(char for char in text if char == "\n" or char.isprintable())


def strip_escapes(text: str) -> str:
    """Return text without a terminal's escape sequences, and without colours that have lost their escape character.

    A text is coloured if something ends a colour: a lone `[5m` may be a time.
    """
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    return _COLOUR.sub("", text) if _COLOUR_END.search(text) else text


LINE_NUMBER = r" {0,8}\d{1,7}(?:\t| {4}|→|\| ?|: )"
"""An expression for the number that clients and `cat -n` put before a line. ``clean`` turns its tab into four spaces."""
NUMBERED = lazy_pattern(rf"^{LINE_NUMBER}", re.MULTILINE)
"""The number at the beginning of a line that is shown."""


# Text that clients put around an output: Codex up to `Output:`, Gemini CLI down to the process group, OpenHands in brackets,
# others in tags; and what ctxmgr itself said there
_WRAPPER = lazy_pattern(
    r"^(?:\[ctxmgr\] .*|CTXMGR-CONTINUATION: .*"
    r"|Chunk ID: \w+|Wall time: [\d.]+ seconds|Process exited with code \d+|Original token count: \d+|Output:"
    r"|Command: .*|Directory: .*|Error: \(none\)|Exit [Cc]ode:? \d+|Signal: \(none\)|Background PIDs: \(none\)"
    r"|Process Group PGID: .*"
    r"|Command output:|```|exit=\d+|Command executed\.|Command execution was not successful, resulting in exit code \d+\."
    r"|</?(?:untrusted_context|task_result|bash-std(?:out|err)|tool_use_error|std(?:out|err)|output)>"
    r"|<returncode>\d+</returncode>"
    r"|\[(?:The command completed with|Current working directory:|Python interpreter:|Command finished with).*\])$\n?"
    r"|^Output: ",
    re.MULTILINE,
)


_UNICODE = lazy_pattern(r"(?<!\\)\\u([0-9a-fA-F]{4})")


def read_escapes(text: str) -> str:
    """Return a text with the visible characters that the escapes of its JSON stand for, such as accents."""
    return _UNICODE.sub(_visible_character, text) if '{"' in text or '["' in text else text


def _visible_character(match: re.Match[str]) -> str:
    char = chr(int(match[1], 16))
    # A quotation mark or a backslash would end or change the string in which it stands.
    return char if char.isprintable() and char not in '"\\' else match[0]


def strip_wrapper(text: str) -> str:
    """Return a command's output without its client's lines around it, which have no names of the subject."""
    return _WRAPPER.sub("", text)


def strip_line_numbers(text: str) -> str:
    """Return a text without the numbers before its lines."""
    return NUMBERED.sub("", text)


def clip_ends(text: str, most: int = _ENDS) -> str:
    """Return a text; of a long one only its first and last ``most`` characters, since errors often say most at their ends."""
    return text if len(text) <= 2 * most else f"{text[:most]}\n…\n{text[-most:]}"


def clip(text: str, limit: int) -> str:
    """Return text of at most ``limit`` characters; the middle of a longer one is left out."""
    if len(text) <= limit:
        return text
    head = (limit - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def clip_middle(text: str, limit: int) -> str:
    """Return text of at most ``limit`` characters; a longer one loses its middle: errors often say most at their ends.

    The mark shows where the rest belongs to another JSON object than the beginning.
    """
    if len(text) <= limit:
        return text
    room = limit - len(OMISSION)
    mark = omission_mark(text[room // 2 : len(text) - (room - room // 2)]) if limit > _LEAST_MARKED else OMISSION
    room = limit - len(mark)
    return f"{text[: room // 2]}{mark}{text[len(text) - (room - room // 2) :]}"


def omission_mark(omitted: str) -> str:
    """Return the mark for text that is left out: with braces, if it ends the JSON object in which it begins.

    >>> omission_mark('"size": 2}, {"id": "b", ')
    ' … }, { … '
    """
    depth = 0
    for place, char in enumerate(omitted):
        depth += (char == "{") - (char == "}")
        if depth < 0:
            return f"{OMISSION}}}, {{{OMISSION}" if "{" in omitted[place:] else f"{OMISSION}}}{OMISSION}"
    return OMISSION


# What follows a semicolon in lower case, or begins with a quoted name, goes on with the same sentence
_SENTENCE_END = lazy_pattern(r"(?<=\.) (?=[A-Z`])|(?<=;) (?=[A-Z])")


def sentences_in(text: str) -> list[str]:
    """Return the sentences of a text of ours. A quote in backticks is never split."""
    found: list[str] = []
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if text.count("`", start, end.start()) % 2 == 0:
            found.append(text[start : end.start()])
            start = end.end()
    return [each for part in (*found, text[start:]) if (each := part.strip())]


def excerpt(text: str) -> str:
    """Return recorded text as a separate quote: clean, bounded, with its line breaks; of several lines only whole ones."""
    shown = clean(text[: EXCERPT * 8]).strip("\n")
    if len(shown) <= EXCERPT:
        return shown
    room = EXCERPT - 3
    ends = room * 2 // 3
    # The halves of two lines would look like one line that nobody wrote.
    head, tail = shown[:ends].rpartition("\n")[0], shown[len(shown) - (room - ends) :].partition("\n")[2]
    whole = head and tail and len(head) + len(tail) >= EXCERPT // 2  # otherwise a long line says more when it is cut
    return f"{head}\n…\n{tail}" if whole else clip(shown, EXCERPT)


def code(text: str, limit: int = SHORT) -> str:
    """Return recorded text as a quote within a sentence: one line in backticks, with its indentation."""
    line = clean(text[: limit * 8]).strip("\n").replace("\n", " ⏎ ").replace("`", "'")
    return f"`{clip(line, limit)}`"


def capital(text: str) -> str:
    """Return a text as the beginning of a sentence."""
    return f"{text[:1].upper()}{text[1:]}"


def agent_name(name: str, most: int = 40) -> str:
    """Return the name of an agent for a sentence."""
    return clean(name)[:most]


def how_often(times: int) -> str:
    """Return how often a call was made as the end of a clause, ", 3 times"; "" for a single call."""
    return f", {times} times" if times > 1 else ""


def quote_match(pattern: re.Pattern[str], text: str) -> str:
    """Return what a pattern matched, as a quote within a sentence.

    Our sentences quote only the words of an output by which it was recognised, because the text beside them may be an order.
    The whole line is evidence, and shown separately.
    """
    match = pattern.search(text) or pattern.search(blanks_for_underscores(text))
    return code(text[match.start() : match.end()].strip(), 60) if match else ""


def first_group(match: re.Match[str] | None) -> str:
    """Return the first group of a match that is not empty; "" without a match."""
    return next((group for group in match.groups() if group), "") if match else ""


def contains_word(word: str, text: str) -> bool:
    """Whether a text has a word or name that is no part of a longer one."""
    return re.search(_whole_word(word), text) is not None


def replace_word(text: str, word: str, other: str) -> str:
    """Return a text with another word in the place of a word or name that is no part of a longer one."""
    return re.sub(_whole_word(word), lambda _: other, text)


def _whole_word(word: str) -> str:
    return rf"(?<![\w-]){re.escape(word)}(?![\w-])"


def find_line(text: str, part: str, instead: str | None = None) -> str:
    """Return the first line of a text that has a part, else ``instead``, by default the whole text."""
    return next((line for line in text.split("\n") if part in line), text if instead is None else instead)


def blanks_for_underscores(text: str) -> str:
    """Return a text of the same length with spaces instead of underscores, so that "invalid_token" reads like words."""
    return text.replace("_", " ")


def plain_name(text: str) -> bool:
    """Whether recorded text is only a name or path, without spaces and without characters that a shell interprets."""
    return _SAFE.fullmatch(text) is not None and not text.startswith("-") and "://" not in text


def text_of(value: Any, most: int = 2 * _ENDS) -> str:
    """Return a recorded output or error as text: a string, the telling members of an object, or joined blocks."""
    found: list[str] = []
    room = most
    waiting: list[tuple[Any, int]] = [(value, 0)]
    while waiting and room > 0:
        item, depth = waiting.pop()
        if isinstance(item, str):
            found.append(clip_ends(item, max(room // 2, 1)))
            room -= len(found[-1])
        elif isinstance(item, list) and depth < 6:
            waiting += [(part, depth + 1) for part in reversed(cast("list[Any]", item)[:200])]
        elif isinstance(item, dict) and depth < 6:
            fields = cast("dict[str, Any]", item)
            telling = [fields[name] for name in _PARTS if fields.get(name) not in (None, "")]
            if telling:
                waiting += [(part, depth + 1) for part in reversed(telling)]
            elif fields.get("message") != "" or fields.keys() - {"type", "message"}:  # an error without words says nothing
                found.append(_dump_json(fields)[:room])
                room -= len(found[-1])
        elif item is not None:
            found.append(str(cast("object", item))[:80])
    return "\n".join(found)


def _dump_json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return ""


def find_nearest(name: str, known: Iterable[str], least: float = 0.6) -> str | None:
    """Return the known name most like ``name``, or None when none is; equal names are no answer.

    ``least`` is the share of letters that must agree, 0 to 1.
    """
    folded = name.casefold()[:_LONGEST_NAME]
    fair: dict[str, str] = {}
    for other in known:
        if other != name and 0 < len(other) <= _LONGEST_NAME:
            fair.setdefault(other.casefold(), other)
            if len(fair) >= _MOST_NAMES:
                break
    if folded in fair:
        return fair[folded]
    found = difflib.get_close_matches(folded, fair, n=2, cutoff=least)
    if not found:
        parts = [other for other in fair if len(folded) > 3 and (folded in other or (len(other) > 3 and other in folded))]
        return fair[parts[0]] if len(parts) == 1 else None
    return fair[found[0]]


def join_names(names: Iterable[str], most: int = 6) -> str:
    """Return names in words: `a`, `b` and `c`; only the first ones of many."""
    shown = [code(name, 60) for name in names]
    more = len(shown) - most
    return join_texts([*shown[:most], f"{more} more"] if more > 0 else shown)


def join_texts(texts: Sequence[str]) -> str:
    """Return texts as a list in words: a, b and c."""
    return f"{', '.join(texts[:-1])} and {texts[-1]}" if len(texts) > 1 else "".join(texts)


_DAY: ContextVar[str | None] = ContextVar("day", default=None)
"""The only day of the records at hand, which a time need not name; "" if they have several, None if they have no times."""


@contextmanager
def days_named(times: Iterable[str | None]) -> Generator[None]:
    """Let `clock` name the day of a time within the block, if these times are of several days, or the time of another one."""
    days = {ts[:10] for ts in times if ts}
    token = _DAY.set(None if not days else days.pop() if len(days) == 1 else "")
    try:
        yield
    finally:
        _DAY.reset(token)


def clock(ts: str | None) -> str:
    """Return the time of a record in words, " at 12:03", with its day where that is in doubt, or ""."""
    match = re.match(r"(\d{4}-(?:0[1-9]|1[0-2])-[0-3]\d)[T ](\d\d:\d\d)", ts or "")
    if match is None:
        return ""
    return f" at {match[2]}" if _DAY.get() in (None, match[1]) else f" on {match[1]} at {match[2]}"
