"""The parts of all views: spans, columns and wrapped lines; times, sizes, statuses and recorded values as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.cli.views.safe_text import Keep, cells, safe, take
from ctxmgr.log.fast_json import json_object
from ctxmgr.log.ids import format_time, parse_time
from ctxmgr.text.patterns import lazy_pattern

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.view import EntryView, EventView


GAP = "  "
"""The blanks between two columns."""

TIME_STEPS = (16, 10)
"""Widths of a time without its seconds ("2026-01-22 14:03") and of a date alone, in cells."""

_WORDS = lazy_pattern(r" +|[^ ]+")


@dataclass(frozen=True, slots=True)
class Symbols:
    """The signs that views draw with. `ASCII` replaces them if the encoding lacks them."""

    ok: str = "●"
    error: str = "✗"
    denied: str = "⊘"
    interrupted: str = "◌"
    open: str = "○"
    unknown: str = "·"
    healthy: str = "✓"
    dots: str = "⋯"
    times: str = "×"
    arrow: str = "→"
    bar: str = "━"
    thin: str = "─"
    limit: str = "┃"
    tip: str = "▶"
    note: str = "✎"
    ellipsis: str = "…"
    dash: str = "–"


UNICODE = Symbols()
ASCII = Symbols(
    ok="*", error="x", denied="!", interrupted="~", open="o", unknown=".", healthy="+", dots="..", times="x",
    arrow="->", bar="=", thin="-", limit="|", tip=">", note="#", ellipsis="...", dash="-",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text with a style by meaning (a key of the colour table), e.g. ``Span("error", "error")``.

    ``keep`` says which part stays if the text is cut to fit into a table.
    """

    text: str
    style: str = ""
    keep: Keep = "start"


Cell = str | int | Span | Sequence[str | Span] | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, and how it shrinks on a narrow terminal.

    Attributes:
        give: columns with a higher number shrink first, down to ``least`` cells; 0 never shrinks.
        optional: may disappear if shrinking is not enough.
        fill: gets the room that the other columns leave, at least ``least``; at most one column per table.
        steps: the only widths to which it may shrink, widest first; empty for any width.
    """

    title: str
    right: bool = False
    give: int = 0
    least: int = 6
    optional: bool = False
    fill: bool = False
    steps: Sequence[int] = ()

    def shrunk_width(self, width: int) -> int:
        """Return the width of the column if at most this one is available."""
        return max(self.least, next((step for step in self.steps if step <= width), self.least) if self.steps else width)


def as_span(part: str | Span) -> Span:
    """Return text as a span without a style."""
    return Span(part) if isinstance(part, str) else part


def wrap_spans(spans: Iterable[Span], first: int, rest: int) -> list[list[Span]]:
    """Return the spans in rows of at most ``first`` and then ``rest`` cells, broken at blanks if possible."""
    rows: list[list[Span]] = [[]]
    room = max(first, 8)
    for span in spans:
        for word in _WORDS.findall(span.text):
            wide = cells(word)
            # A word longer than a whole row starts in this row if there is room, because it would not fit into its own
            # row either.
            if wide > room and len(rows[-1]) and (word[0] == " " or wide <= rest or room < rest // 2):
                if not rows[-1][-1].text.strip(" ") and len(rows[-1]) > 1:
                    rows[-1].pop()
                rows.append([])
                room = max(rest, 8)
                if word[0] == " ":
                    continue
            while wide > room:
                head = take(word, room) or word[:1]
                rows[-1].append(Span(head, span.style))
                rows.append([])
                word, room = word[len(head) :], max(rest, 8)
                wide = cells(word)
            rows[-1].append(Span(word, span.style))
            room -= wide
    return rows


def fit_columns(columns: Sequence[Column], natural: Sequence[int], room: int) -> list[int]:
    """Return the width of each column so that a row takes at most ``room`` cells. 0 hides the column."""
    widths = [min(wide, column.least) if column.fill else wide for column, wide in zip(columns, natural, strict=True)]

    def excess_width() -> int:
        shown = [width for width in widths if width]
        return sum(shown) + len(GAP) * (len(shown) - 1) - room

    # Three steps, each only as far as needed: shrink, hide optional columns, cut from the right. The first columns say
    # what a row is, so they stay longest.
    order = sorted(range(len(columns)), key=lambda place: -columns[place].give)
    for place in order:
        if columns[place].give and excess_width() > 0 and widths[place] > columns[place].least:
            widths[place] = columns[place].shrunk_width(widths[place] - excess_width())
    for place in order:
        if columns[place].optional and excess_width() > 0:
            widths[place] = 0
    for place in reversed(range(len(columns))):
        if excess_width() > 0 and widths[place]:
            widths[place] = max(0, widths[place] - excess_width())
    for place, column in enumerate(columns):
        if column.fill and widths[place]:
            widths[place] = min(natural[place], widths[place] - excess_width())
    return widths


_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_SHORTEST = 8


def ago(ts: str | None, now: float) -> str:
    """Return the time from ``ts`` to ``now`` (seconds since 1970) as text: "3 min ago"; after a month, the date."""
    moment = parse_time(ts)
    if moment is None:
        return safe(ts)
    passed = now - moment
    # The clocks of two machines differ by seconds, so a time slightly in the future counts as now.
    if passed < -_MINUTE:
        return "in the future"
    if passed < 5:
        return "just now"
    for unit, name, upto in ((1, "s", _MINUTE), (_MINUTE, "min", _HOUR), (_HOUR, "h", 2 * _DAY), (_DAY, "d", 31 * _DAY)):
        if passed < upto:
            return f"{int(passed // unit)} {name} ago"
    return day(ts)


def duration(seconds: float | None) -> str:
    """Return a duration with about three digits: "85 ms", "4.2 s", "2 min 5 s", "34 min", "3 h 20 min"."""
    if seconds is None or not math.isfinite(seconds):
        return ""
    if seconds < 0:
        return f"-{duration(-seconds)}"
    # The limits are where rounding would give four digits: 999.5 ms is "1.0 s", not "1000 ms".
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    rounded = round(seconds)
    for big, small, names in ((_DAY, _HOUR, ("d", "h")), (_HOUR, _MINUTE, ("h", "min")), (_MINUTE, 1, ("min", "s"))):
        if rounded >= big:
            first, rest = divmod(rounded, big)
            if first >= 10:
                return f"{rounded / big:,.0f} {names[0]}"
            return f"{first} {names[0]}" + (f" {rest // small} {names[1]}" if rest >= small else "")
    return f"{rounded} s"


def clock(ts: str | None) -> str:
    """Return the time of day in UTC ("14:03:22"), or the text itself if it is no time."""
    moment = parse_time(ts)
    return safe(ts) if moment is None else format_time(moment)[11:19]


def day(ts: str | None) -> str:
    """Return the date in UTC ("2026-01-22"), or "" if the text is no time."""
    moment = parse_time(ts)
    return "" if moment is None else format_time(moment)[:10]


def date_span(ts: str | None, terminal: bool) -> Span:
    """Return a time for a column with `TIME_STEPS`; in a pipe, the time exactly as recorded."""
    return Span(f"{day(ts)} {clock(ts)}".strip() if terminal else ts or "", keep="bare")


def amount(number: float | None) -> str:
    """Return a number of tokens or items with up to three digits: "950", "1.2 k", "34 M"."""
    return _in_units(number, ("", " k", " M", " G", " T"))


def size(number: float | None) -> str:
    """Return a number of bytes as text: "12 B", "1.2 kB", "34 MB"."""
    return _in_units(number, (" B", " kB", " MB", " GB", " TB"))


def _in_units(number: float | None, units: tuple[str, ...]) -> str:
    # ``not ... <`` also catches NaN: every comparison with it is false, so ``>=`` would let it pass.
    if number is None or not abs(number) < 1e18:
        return "" if number is None else safe(number, limit=20)
    value = float(number)
    for unit in units[:-1]:
        if abs(value) < 999.5:
            return f"{value:.1f}{unit}" if unit.strip(" B") and abs(value) < 9.95 else f"{value:.0f}{unit}"
        value /= 1000
    return f"{value:,.0f}{units[-1]}"


def plural(number: int, noun: str) -> str:
    """Return "1 entry", "2,000 entries"."""
    many = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {noun if number == 1 else many}"


_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Return for each id its shortest unique prefix. Ids that people chose (not UUIDs) stay whole."""
    ordered = sorted(set(ids))
    shorts: dict[str, str] = {}
    for place, name in enumerate(ordered):
        if len(name) < 24 or name.count("-") < 4 or not _HEXADECIMAL.issuperset(name.replace("-", "")[:20]):
            shorts[name] = name
            continue
        shared = 0
        # In sorted order, an id shares its longest common prefix with a neighbour.
        for other in (*ordered[max(place - 1, 0) : place], *ordered[place + 1 : place + 2]):
            common = next((at for at, (a, b) in enumerate(zip(name, other, strict=False)) if a != b), len(other))
            shared = max(shared, common)
        shorts[name] = name[: max(_SHORTEST, shared + 1)].rstrip("-") if shared + 1 < len(name) else name
    return shorts


_VERDICT_STYLE = {"loop+hung": "loop"}


def status_sign(symbols: Symbols, status: str | None) -> str:
    """Return the one-cell sign of an entry's status; a dot for an unknown status."""
    signs = {
        "ok": symbols.ok, "error": symbols.error, "denied": symbols.denied, "interrupted": symbols.interrupted,
        "open": symbols.open,
    }  # fmt: skip
    return signs.get(status or "", symbols.unknown)


def status_span(printer: Printer, status: str) -> Span:
    """Return a status for a table; in a pipe, the word alone."""
    return Span(f"{status_sign(printer.symbols, status)} {status}" if printer.terminal else status, status)


def verdict_style(verdict: str) -> str:
    """Return the style of a verdict or severity."""
    return _VERDICT_STYLE.get(verdict, verdict)


def verdict_sign(symbols: Symbols, verdict: str) -> str:
    """Return the sign of a verdict: a tick for healthy, a cross for a loop or stall, an open circle for a warning."""
    return {"healthy": symbols.healthy, "warn": symbols.open}.get(verdict, symbols.error)


# Input fields that identify a call for people, the best first.
_INPUT_FIELDS = (
    "command", "cmd", "script", "code", "file_path", "filePath", "notebook_path", "pattern", "query", "url", "path", "uri",
    "prompt", "question", "description", "subject", "title", "message", "text", "content", "task", "name", "id",
)  # fmt: skip
_WHERE = ("path", "file_path", "glob", "directory", "workdir")
_TEXT_FIELDS = ("text", "content", "message", "thought", "delta", "title", "summary", "error", "reason", "prompt")
_SHELLS = ("sh", "bash", "zsh", "dash")
_MAX_DEPTH = 8


def brief(value: Any) -> str:
    """Return the part of an input that identifies the call: a command, path or pattern; else compact JSON. Never raises."""
    if value is None or value in ({}, [], ""):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        for name in _INPUT_FIELDS:
            text = _input_text(fields.get(name))
            if text:
                where = _place(fields) if name in ("pattern", "query") else ""
                return f"{text}  in {where}" if where else text
    return compact(value)


def end_to_keep(text: str) -> Keep:
    """Return which part of a brief to keep when it is cut: the end of a path, else the beginning."""
    return "end" if text.startswith(("/", "./", "../", "~/")) and not any(map(str.isspace, text)) else "start"


def _input_text(value: Any) -> str:
    if isinstance(value, list):
        words = [word for word in cast("list[Any]", value) if isinstance(word, str)]
        if not words or len(words) != len(cast("list[Any]", value)):
            return ""
        # ``["bash", "-lc", "make test"]`` is how Codex writes a command. The last word is what runs.
        shell = len(words) == 3 and words[0].rpartition("/")[2] in _SHELLS and words[1] in ("-c", "-lc", "-ic")
        return words[2] if shell else _join_words(words)
    return value if isinstance(value, str) and value.strip() else ""


def _place(fields: Mapping[str, Any]) -> str:
    return next((place for name in _WHERE if (place := _input_text(fields.get(name)))), "")


def compact(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON for people, in one line or indented. Never raises."""
    import json

    separators = (", ", ": ") if indent is None else (",", ": ")
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, separators=separators, default=_odd)
    except (TypeError, ValueError, RecursionError):  # keys that are no text, numbers with too many digits, deep nesting
        return _odd(value)


def scalar_text(value: Any) -> str:
    """Return text unchanged, "" for null, and other values as JSON in one line."""
    return "" if value is None else value if isinstance(value, str) else compact(value)


def _odd(value: object) -> str:
    return f"<{type(value).__name__}>"


def pretty(value: Any) -> str:
    """Return a value in full: text unchanged, text blocks joined, other values as indented JSON."""
    if isinstance(value, str):
        return value
    joined = _blocks(value)
    return joined if joined is not None else compact(value, indent=2)


def _blocks(value: Any) -> str | None:
    """Return the joined text of a list of content blocks, or None if any block holds more than text."""
    if not isinstance(value, list) or not value:
        return None
    texts: list[str] = []
    for block in cast("list[Any]", value):
        fields = json_object(block)
        text = fields.get("text")
        # ``cache_control`` is a mark for the model provider, not content.
        if not isinstance(text, str) or set(fields) - {"type", "text", "cache_control"}:
            return None
        texts.append(text)
    return "\n".join(texts)


def event_text(data: Any, depth: int = 0) -> str:
    """Return the text of an event, wherever its format keeps it, else compact JSON."""
    if isinstance(data, str):
        return data
    if isinstance(data, list) and depth < _MAX_DEPTH:
        parts = [event_text(part, depth + 1) for part in cast("list[Any]", data)]
        return "\n".join(part for part in parts if part)
    if isinstance(data, dict) and depth < _MAX_DEPTH:
        fields = cast("dict[str, Any]", data)
        for name in _TEXT_FIELDS:
            if name in fields and (text := event_text(fields[name], depth + 1)):
                return text
    return "" if data is None or data in ({}, []) else compact(data)


def row_text(row: EntryView | EventView) -> str:
    """Return the content of a row in one line."""
    return brief(row.input) if row.kind == "entry" else event_text(row.data)


def error_text(error: Any) -> str:
    """Return an error as text: "TypeError: no such field"."""
    if isinstance(error, dict):
        fields = cast("dict[str, Any]", error)
        parts = [part for part in (fields.get("type"), fields.get("message")) if isinstance(part, str) and part]
        if len(parts) > 1 and parts[1].startswith(f"{parts[0]}:"):  # "Error: Error: no such file"
            return parts[1]
        if parts:
            return ": ".join(parts)
    return "" if error is None else error if isinstance(error, str) else compact(error)


def command(*words: str) -> str:
    """Return a command line that can be pasted, with words quoted where needed."""
    return _join_words(["ctxmgr", *words])


def _join_words(words: Iterable[str]) -> str:
    import shlex  # imported here because it loads `re`, which few views need

    return shlex.join(words)


def session_command(name: str, session: str, store: str | None) -> str:
    """Return a command about a session that can be pasted. ``store`` is the one that the user named, if any."""
    return command(name, "--session", session, *(["--store", store] if store is not None else []))
