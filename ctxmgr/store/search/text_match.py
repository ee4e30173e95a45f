"""Split folded text into the words of the search index, and check whether a stored record contains a text.

The check, which is also an SQL function, gives the same answer as ``needle in folded_text(record)``. Most bodies need no
decoding: except for escapes and numbers, ASCII JSON has only one spelling of a text, so searching the bytes is enough.

The words are exactly those of SQLite's tokenizer ``ascii tokenchars '_'`` for a folded text, so that both find the same ones.
Blanks and ASCII punctuation separate words.
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
"""Beginnings of the escapes, in lower case, that can mean ASCII or letters that fold to ASCII (\u0130, \u017f, \u212a)."""

_NUMBER = frozenset("0123456789.+-e")
"""Characters of numbers in their searched form. JSON may spell a number differently: 1E2 is searched as "100.0"."""


def _record(body: str) -> Record | None:
    try:
        record: object = fast_json.loads(body)
    except (ValueError, RecursionError):
        return None
    return cast("Record", record) if isinstance(record, dict) else None


def stored_texts(body: str) -> list[str]:
    """Return the searchable texts of a stored record; for an altered record that is no longer JSON, its whole body."""
    record = _record(body)
    return [body] if record is None else plain_texts(record)


class SearchTerm:
    """A folded text, prepared for searching many bodies."""

    __slots__ = ("_cased", "_needle", "_numeric", "_plain", "_slashed", "_spelling")

    def __init__(self, needle: str) -> None:
        # Records decoded for another search are of no use for this one.
        forget_decoded()
        self._needle = needle
        self._spelling = needle.translate(_ESCAPES)
        # If the text has only digits and marks, which have no case, bodies need not be lowered.
        self._cased = needle.upper() != needle
        self._numeric = _NUMBER.issuperset(needle)
        self._plain = needle.isascii()
        self._slashed = "/" in needle

    def matches(self, body: str) -> bool:
        """Whether the record of a body contains the text. If so, cache the decoded record for the answer."""
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
        """Return a row of `BY_PLACE` with decoded bodies and the result of `find`; None if neither body contains the text.

        If only the row in its final form can show the place, the bodies stay undecoded and the result of `find` is None.
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
        if found is None:  # a search also finds the entry's own output and error, which its result replaces in the answer
            return (row, None) if done is not record and self._is_in_one(body, answer) else None
        decoded = (*row[:4], record, None if done is record else done) if kind == "entry" else (*row[:3], record)
        # Names are shown as texts, whatever their type is. If one is not a text, another place may be the first match.
        return decoded, found if _NAME.issuperset(map(type, map(record.get, _NAMES[kind]))) else None

    def _is_in_one(self, body: str, answer: object) -> bool:
        return self.matches(body) or (answer is not None and self.matches(str(answer)))

    def _may_match(self, body: str) -> bool:
        text = body.lower() if self._cased else body
        if self._spelling in text or self._numeric or not body.isascii():
            return True
        # Now its texts can contain this one only by an escape.
        escaped = "\\u" in text and (not self._plain or any(escape in text.lower() for escape in _MEANING_ASCII))
        return escaped or (self._slashed and "\\/" in text)


_NAMES = {"entry": ("action", "agent", "inputType", "task"), "event": ("type", "agent")}
_NAME = frozenset({str, type(None)})


class _Holds:
    """The SQL function ``holds``. It caches the `SearchTerm` of the last needle."""

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
    """Register ``holds(body, needle)`` for statements of this engine. The folded needle is bound as UTF-8 bytes.

    As text it would end at its first NUL, because drivers pass texts to functions as C strings.
    """
    engine.function("holds", 2, _Holds())


def find_matching_places(engine: Engine, places: Sequence[int], needle: str) -> list[int]:
    """Return the places, among a few, whose record contains a folded text, in order."""
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
    """Return a condition equal to ``holds``, with ``{}`` for the body, and its values.

    SQLite itself excludes bodies that can't contain the text, in a third of the time of a call.
    """
    needed: dict[str, object] = {"needle": needle.encode()}
    condition, values = may_hold_condition(needle)
    if not values:
        return "holds({}, :needle)", needed
    return f"({condition} AND holds({{0}}, :needle))", {**needed, **values}


def may_hold_condition(needle: str) -> tuple[str, dict[str, object]]:
    """Return a condition, with ``{0}`` for the body, that is false only for bodies that can't contain the text, and its values.

    If no such condition is possible, it is always true and has no values.
    """
    if _NUMBER.issuperset(needle) or len(needle) > _MAX_PATTERN_CHARS:
        return "TRUE", {}
    escapes = [like("\\u")]
    if "/" in needle:
        escapes.append(like("\\/"))
    spelling = needle.translate(_ESCAPES)
    # Characters beyond ASCII and the other control characters are always spelled as escapes.
    spelled = [like(spelling)] if needle.isascii() and min(spelling, default="") >= " " else []
    likes = {f"like{number}": text for number, text in enumerate([*spelled, *escapes])}
    return f"({' OR '.join(f'{{0}} LIKE :{name} ESCAPE :mark' for name in likes)})", {"mark": _MARK, **likes}


_MAX_PATTERN_CHARS = 5_000
"""Length in characters of the longest text in a LIKE, because SQLite limits the length of a pattern."""

_MARK = "!"


def like(text: str) -> str:
    """Return the LIKE pattern for texts that contain this one."""
    for special in (_MARK, "%", "_"):
        text = text.replace(special, _MARK + special)
    return f"%{text}%"


_GRAM = 3
_MOST_GRAMS, _MOST_TRIED = 12, 48
_FEW = 16
"""If more than one of this many texts in a sample contains all rare trigrams, an index can't narrow the search."""


def rare_parts(text: str, sample: Sequence[str]) -> str:
    """Return the LIKE pattern for texts that contain the rare trigrams of this one, in its order.

    An index of trigrams reads all places of each trigram in the pattern. Common trigrams take longest and exclude least, so
    they are left out. The chosen ones together have at most half as many places as there are texts.

    Args:
        text: the text to search.
        sample: some of the searched texts. If they are too few, the pattern is that of the whole text.
    """
    starts = [start for start in range(len(text) - _GRAM + 1) if text[start : start + _GRAM].isalnum()]
    starts = starts[:: len(starts) // _MOST_TRIED + 1]
    held = {start: sum(text[start : start + _GRAM] in each for each in sample) for start in starts}
    chosen: list[int] = []
    for start in sorted(starts, key=lambda start: (held[start], start % _GRAM)):  # disjoint ones first: they exclude most
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
            continue  # to join it with the last part would add a common trigram
        end = start + _GRAM
    return f"%{'%'.join(parts)}%"


TOKENIZER = "ascii tokenchars ''_''"

MAX_WORD = 64
"""Length in characters of the longest word that the vocabulary holds whole."""

PROBE = 16
"""Number of characters of a run that are looked up. Windows of a long word overlap by as many, so none cuts the part in two."""

_STEP = MAX_WORD - PROBE
_WORD = b"0123456789_abcdefghijklmnopqrstuvwxyz"
# In UTF-8, bytes from 0x80 on are parts of letters beyond ASCII, which belong to words.
_BLANKED = bytes(byte if byte in _WORD or byte >= 0x80 else 0x20 for byte in range(256))


_MARKED = bytes(
    0x21 if 0x20 < byte < 0x7F and byte not in _WORD and chr(byte).lower() == chr(byte) else 0x20 for byte in range(256)
)
_SHORTEST = b"!!!"


def find_marks(texts: Iterable[str]) -> set[bytes]:
    """Return the runs of three or more ASCII punctuation marks in folded texts."""
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
    """Return the number of the block of neighbouring places that contains a place. Marks are indexed by block."""
    return place // _BLOCK


def block_places(block: int) -> range:
    """Return the places of a block."""
    return range(block * _BLOCK, (block + 1) * _BLOCK)


def find_longest_mark(needle: str) -> str:
    """Return the longest run of marks in a folded needle, or "" if none has three."""
    return max(find_marks([needle]), key=len, default=b"").decode()


def split_words(texts: Iterable[str]) -> set[bytes]:
    """Return the words of folded texts, in UTF-8."""
    return set(" ".join(texts).encode().translate(_BLANKED).split())


def word_windows(word: str) -> list[tuple[str, str]]:
    """Return the vocabulary's rows for a word: (word, ""), or for a long word (window, the beginning stored in the index)."""
    if len(word) <= MAX_WORD:
        return [(word, "")]
    head = word[:MAX_WORD]
    return [(word[start : start + MAX_WORD], head) for start in range(0, len(word) - PROBE, _STEP)]


def split_runs(needle: str) -> list[tuple[str, bool, bool]]:
    """Return the runs of a folded needle that are words or parts of words: (run, begins a word, ends a word)."""
    blanked = needle.encode().translate(_BLANKED)
    runs = [run.decode() for run in blanked.split()]
    last = len(runs) - 1
    open_start, open_end = blanked[:1] != b" ", blanked[-1:] != b" "
    return [(run, number > 0 or not open_start, number < last or not open_end) for number, run in enumerate(runs)]
