"""Split folded text into the words of the search index, and check whether a stored record contains a text.

The check, which is also an SQL function, answers as ``needle in folded_text(record)`` would. Most bodies are told by
their bytes, without decoding them: JSON in ASCII spells a text in one way, but for escapes and numbers, and what those may
stand for is looked for first.

The words are exactly those that SQLite's tokenizer ``ascii tokenchars '_'`` makes of a folded text, so that both find the same
ones. Blanks and ASCII punctuation stand between words.
"""

from __future__ import annotations

from ctxmgr.log import fast_json
from ctxmgr.log.fast_json import cast
from ctxmgr.store.row_mapper import forget_decoded, placeholders, remember_decoded
from ctxmgr.store.text_normalisation import find, fold, plain_texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ctxmgr.log.codec import Record
    from ctxmgr.store.engine.interface import Engine, Row

_ESCAPES = str.maketrans({
    '"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
})  # fmt: skip

_MEANING_ASCII = ("\\u00", "\\u01", "\\u1e9", "\\u212", "\\ufb0")
"""How escapes begin, in lower case; some represent ASCII or for what folds to ASCII (\u0130, \u017f, \u212a)."""

_NUMBER = frozenset("0123456789.+-e")
"""Characters of numbers as they are searched. JSON may spell a number otherwise: 1E2 is the text "100.0"."""


def _record(body: str) -> Record | None:
    try:
        record: object = fast_json.loads(body)
    except (ValueError, RecursionError):
        return None
    return cast("Record", record) if isinstance(record, dict) else None


def stored_texts(body: str) -> list[str]:
    """Return the searchable texts of a stored record; for an altered record, every text in it."""
    record = _record(body)
    return [body] if record is None else plain_texts(record)


class SearchTerm:
    """A folded text, prepared for being looked for in many bodies."""

    __slots__ = ("_cased", "_needle", "_numeric", "_plain", "_slashed", "_spelling")

    def __init__(self, needle: str) -> None:
        # What was decoded for another search is of no use for this one.
        forget_decoded()
        self._needle = needle
        self._spelling = needle.translate(_ESCAPES)
        # Digits and marks have no case: then no body need be lowered.
        self._cased = needle.upper() != needle
        self._numeric = _NUMBER.issuperset(needle)
        self._plain = needle.isascii()
        self._slashed = "/" in needle

    def matches(self, body: str) -> bool:
        """Whether the record of a body holds the text; what it was decoded to is kept for whoever shows it."""
        if not self._may_match(body):
            return False
        record = _record(body)
        if record is None:
            return self._needle in fold(body)
        for text in plain_texts(record):
            if self._needle in fold(text):
                remember_decoded(body, record)
                return True
        return False

    def match(self, kind: str, row: Row) -> tuple[Row, tuple[str, str] | None] | None:
        """Return a row of `BY_PLACE` with its bodies decoded, and what `find` says of it; None where neither holds the text.

        None stands for what `find` says, and bodies stay as they are, where only the row as it is shown can tell.
        """
        body, answer = (str(row[4]), row[5]) if kind == "entry" else (str(row[3]), None)
        if not self._may_match(body) and (answer is None or not self._may_match(str(answer))):
            return None
        record = _record(body)
        done = record if answer is None else _record(str(answer))
        if record is None or done is None or (record.get("kind"), done.get("kind")) != (kind, "result" if answer else kind):
            return (row, None) if self._is_in_one(body, answer) else None
        shown = record if done is record else {**record, "output": done.get("output"), "error": done.get("error")}
        found = find(shown, self._needle)
        if found is None:  # what an action came with is not shown once it has a result, and found nevertheless
            return (row, None) if done is not record and self._is_in_one(body, answer) else None
        decoded = (*row[:4], record, None if done is record else done) if kind == "entry" else (*row[:3], record)
        # Names are shown as texts, whatever they are: then another place may be the first.
        return decoded, found if _NAME.issuperset(map(type, map(record.get, _NAMES[kind]))) else None

    def _is_in_one(self, body: str, answer: object) -> bool:
        return self.matches(body) or (answer is not None and self.matches(str(answer)))

    def _may_match(self, body: str) -> bool:
        text = body.lower() if self._cased else body
        if self._spelling in text or self._numeric or not body.isascii():
            return True
        # Then its texts can hold this one only by an escape.
        escaped = "\\u" in text and (not self._plain or any(escape in text.lower() for escape in _MEANING_ASCII))
        return escaped or (self._slashed and "\\/" in text)


_NAMES = {"entry": ("action", "agent", "inputType", "task"), "event": ("type", "agent")}
_NAME = frozenset({str, type(None)})


class _Holds:
    """The function; it remembers what it found out about the last needle."""

    def __init__(self) -> None:
        self._bytes: bytes | None = None
        self._sought = SearchTerm("")

    def __call__(self, body: object, needle: bytes) -> bool:
        if body is None:
            return False
        if needle != self._bytes:
            self._sought, self._bytes = SearchTerm(needle.decode()), needle
        return self._sought.matches(body if type(body) is str else str(body))


def register_holds(engine: Engine) -> None:
    """Let statements of this engine call ``holds(body, needle)``; the folded needle is bound as UTF-8.

    As text it would end at its first NUL: drivers hand texts to functions as C does.
    """
    engine.function("holds", 2, _Holds())


def find_matching_places(engine: Engine, places: Sequence[int], needle: str) -> list[int]:
    """Return those of a few places, in order, at which a record stands that holds a folded text."""
    names, bound = placeholders(places, "s")
    # A server can't call functions of Python.
    if engine.shared:
        sought = SearchTerm(needle)
        rows = engine.query(f"SELECT seq, body FROM record WHERE seq IN ({names}) ORDER BY seq", bound)
        return [int(row[0]) for row in rows if sought.matches(str(row[1]))]
    register_holds(engine)
    rows = engine.query(
        f"SELECT seq FROM record WHERE seq IN ({names}) AND holds(body, :needle) ORDER BY seq",
        {**bound, "needle": needle.encode()},
    )
    return [int(row[0]) for row in rows]


def holds_condition(needle: str) -> tuple[str, dict[str, object]]:
    """Return a condition, with ``{}`` for the body, that says what ``holds`` says, and the values that it needs.

    What can't hold the text is told by SQLite itself, in a third of the time of a call.
    """
    needed: dict[str, object] = {"needle": needle.encode()}
    condition, values = may_hold_condition(needle)
    if not values:
        return "holds({}, :needle)", needed
    return f"({condition} AND holds({{0}}, :needle))", {**needed, **values}


def may_hold_condition(needle: str) -> tuple[str, dict[str, object]]:
    """Return a condition, with ``{0}`` for the body, that is false only of what can't hold the text, and its values.

    Where it can't tell there are no values, and it is always true.
    """
    if _NUMBER.issuperset(needle) or len(needle) > _MAX_PATTERN_CHARS:
        return "TRUE", {}
    escapes = [like("\\u")]
    if "/" in needle:
        escapes.append(like("\\/"))
    spelling = needle.translate(_ESCAPES)
    # What is beyond ASCII has no spelling but an escape; nor have the other control characters.
    spelled = [like(spelling)] if needle.isascii() and min(spelling, default="") >= " " else []
    likes = {f"like{number}": text for number, text in enumerate([*spelled, *escapes])}
    return f"({' OR '.join(f'{{0}} LIKE :{name} ESCAPE :mark' for name in likes)})", {"mark": _MARK, **likes}


_MAX_PATTERN_CHARS = 5_000
"""Characters of the longest text that SQLite is asked for: what it takes for a pattern is limited."""

_MARK = "!"


def like(text: str) -> str:
    """Return the pattern of texts that contain this one."""
    for special in (_MARK, "%", "_"):
        text = text.replace(special, _MARK + special)
    return f"%{text}%"


_GRAM = 3
_MOST_GRAMS, _MOST_TRIED = 12, 48
_FEW = 16
"""One of so many texts: where a sample has more that hold all of a text's rare letters, no index makes it few."""


def rare_parts(text: str, sample: Sequence[str]) -> str:
    """Return the pattern of texts that contain what is rare of this one, in its order.

    An index of trigrams reads all places of each trigram that it is asked for. Those that nearly every text holds take the
    longest and leave out the least, so they are not asked for: the rest stands in half as many places as there are texts.

    Args:
        text: that is looked for.
        sample: some of the texts that are looked through; the pattern is that of the whole text where they say too little.
    """
    starts = [start for start in range(len(text) - _GRAM + 1) if text[start : start + _GRAM].isalnum()]
    starts = starts[:: len(starts) // _MOST_TRIED + 1]
    held = {start: sum(text[start : start + _GRAM] in each for each in sample) for start in starts}
    chosen: list[int] = []
    for start in sorted(starts, key=lambda start: (held[start], start % _GRAM)):  # apart first: they say the most
        if len(chosen) == _MOST_GRAMS or 2 * sum(held[each] for each in (*chosen, start)) > len(sample):
            break
        chosen.append(start)
    grams = [text[start : start + _GRAM] for start in chosen]
    if len(sample) < _FEW or not grams or sum(all(map(each.__contains__, grams)) for each in sample) > len(sample) // _FEW:
        return like(text)
    parts: list[str] = []
    end = -1
    for start in sorted(chosen):
        if start == end - _GRAM + 1:  # one letter on
            parts[-1] += text[end]
        elif start >= end:
            parts.append(text[start : start + _GRAM])
        else:
            continue  # what lies between is common
        end = start + _GRAM
    return f"%{'%'.join(parts)}%"


TOKENIZER = "ascii tokenchars ''_''"

MAX_WORD = 64
"""Characters of the longest word that the vocabulary holds whole."""

PROBE = 16
"""Characters of a run that the vocabulary is asked for: what is as short is never cut in two by the windows of a long word."""

_STEP = MAX_WORD - PROBE
_WORD = b"0123456789_abcdefghijklmnopqrstuvwxyz"
# In UTF-8 the bytes from 0x80 on are parts of letters beyond ASCII, which belong to words.
_BLANKED = bytes(byte if byte in _WORD or byte >= 0x80 else 0x20 for byte in range(256))


_MARKED = bytes(
    0x21 if 0x20 < byte < 0x7F and byte not in _WORD and chr(byte).lower() == chr(byte) else 0x20 for byte in range(256)
)
_SHORTEST = b"!!!"


def find_marks(texts: Iterable[str]) -> set[bytes]:
    """Return the runs of ASCII punctuation in folded texts, of three marks and more: what lies between words and blanks."""
    raw = " ".join(texts).encode()
    marked = raw.translate(_MARKED)
    runs: set[bytes] = set()
    start = marked.find(_SHORTEST)
    while start >= 0:
        end = marked.find(b" ", start)
        end = len(raw) if end < 0 else end
        runs.add(raw[start:end])
        start = marked.find(_SHORTEST, end)
    return runs


_BLOCK = 8


def block_number(place: int) -> int:
    """Return the number of the block of neighbouring places in whose marks those of a place are."""
    return place // _BLOCK


def block_places(block: int) -> range:
    """Return the places of a block."""
    return range(block * _BLOCK, (block + 1) * _BLOCK)


def find_longest_mark(needle: str) -> str:
    """Return the longest run of marks of a folded needle, or "" when none has three."""
    return max(find_marks([needle]), key=len, default=b"").decode()


def split_words(texts: Iterable[str]) -> set[bytes]:
    """Return the words of folded texts, in UTF-8."""
    return set(" ".join(texts).encode().translate(_BLANKED).split())


def word_windows(word: str) -> list[tuple[str, str]]:
    """Return what the vocabulary holds of a word: (text, the head it begins with in the index, "" when this is all of it)."""
    if len(word) <= MAX_WORD:
        return [(word, "")]
    head = word[:MAX_WORD]
    return [(word[start : start + MAX_WORD], head) for start in range(0, len(word) - PROBE, _STEP)]


def split_runs(needle: str) -> list[tuple[str, bool, bool]]:
    """Return the runs of a folded needle that are words or parts of words: (run, word begins with it, word ends with it)."""
    blanked = needle.encode().translate(_BLANKED)
    runs = [run.decode() for run in blanked.split()]
    last = len(runs) - 1
    open_start, open_end = blanked[:1] != b" ", blanked[-1:] != b" "
    return [(run, number > 0 or not open_start, number < last or not open_end) for number, run in enumerate(runs)]
