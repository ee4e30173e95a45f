"""Split text into the words of the search index.

It is exactly what SQLite's tokenizer ``ascii tokenchars '_'`` makes of a folded text, so that both find the same words.
Blanks and ASCII punctuation stand between words.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

TOKENIZER = "ascii tokenchars ''_''"

MAX_WORD = 64
"""Characters of the longest word that the vocabulary holds whole."""

PROBE = 16
"""Characters of a run that the vocabulary is asked for: what is as short is never cut in two by the windows of a long word."""

_STEP = MAX_WORD - PROBE
_WORD = b"0123456789_abcdefghijklmnopqrstuvwxyz"
_BLANKED = bytes(byte if byte in _WORD or byte >= 0x80 else 0x20 for byte in range(256))


_MARKED = bytes(
    0x21 if 0x20 < byte < 0x7F and byte not in _WORD and chr(byte).lower() == chr(byte) else 0x20 for byte in range(256)
)
_SHORTEST = b"!!!"


def marks_of(texts: Iterable[str]) -> set[bytes]:
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


def block_of(place: int) -> int:
    """Return the number of the block of neighbouring places in whose marks those of a place are."""
    return place // _BLOCK


def places_of(block: int) -> range:
    """Return the places of a block."""
    return range(block * _BLOCK, (block + 1) * _BLOCK)


def marks_in(needle: str) -> str:
    """Return the longest run of marks of a folded needle, or "" when none has three."""
    return max(marks_of([needle]), key=len, default=b"").decode()


def words_of(texts: Iterable[str]) -> set[bytes]:
    """Return the words of folded texts, in UTF-8."""
    return set(" ".join(texts).encode().translate(_BLANKED).split())


def windows_of(word: str) -> list[tuple[str, str]]:
    """Return what the vocabulary holds of a word: (text, the head it begins with in the index, "" when this is all of it)."""
    if len(word) <= MAX_WORD:
        return [(word, "")]
    head = word[:MAX_WORD]
    return [(word[start : start + MAX_WORD], head) for start in range(0, len(word) - PROBE, _STEP)]


def runs_of(needle: str) -> list[tuple[str, bool, bool]]:
    """Return the runs of a folded needle that are words or parts of words: (run, word begins with it, word ends with it)."""
    blanked = needle.encode().translate(_BLANKED)
    runs = [run.decode() for run in blanked.split()]
    last = len(runs) - 1
    open_start, open_end = blanked[:1] != b" ", blanked[-1:] != b" "
    return [(run, number > 0 or not open_start, number < last or not open_end) for number, run in enumerate(runs)]
