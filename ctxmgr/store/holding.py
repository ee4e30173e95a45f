"""Whether a stored record holds a folded text, as a function that statements call: ``holds(body, needle)``.

The answer is that of ``needle in folded_text(record)``. Most bodies are told by their bytes, without decoding them: JSON
in ASCII spells a text in one way, but for escapes and numbers, and what those may stand for is looked for first.
"""

from __future__ import annotations

from ctxmgr import jsontext
from ctxmgr.jsontext import cast
from ctxmgr.store.folding import fold, plain_texts

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than a whole query
if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxmgr.store.interface import Engine

_ESCAPES = str.maketrans({
    '"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
})  # fmt: skip

_MEANING_ASCII = ("\\u00", "\\u01", "\\u1e9", "\\u212", "\\ufb0")
"""How escapes begin, in lower case, of which some stand for ASCII or for what folds to ASCII (\u0130, \u017f, \u212a)."""

_NUMBER = frozenset("0123456789.+-e")
"""Characters of numbers as they are searched. JSON may spell a number otherwise: 1E2 is the text "100.0"."""


def texts_in(body: str) -> list[str]:
    """Return the searchable texts of a stored record as they stand there; of one that was altered, all that stands there."""
    try:
        record: object = jsontext.loads(body)
    except (ValueError, RecursionError):
        return [body]
    return plain_texts(cast("dict[str, object]", record)) if isinstance(record, dict) else [body]


def _test(needle: str) -> Callable[[str], bool]:
    """Return the test of a body for one folded text."""
    spelling = needle.translate(_ESCAPES)
    numeric, plain, slashed = _NUMBER.issuperset(needle), needle.isascii(), "/" in needle

    def test(body: str) -> bool:
        folded = body.lower()
        if spelling not in folded and body.isascii() and not numeric:
            # Then its texts can hold this one only by an escape.
            escaped = "\\u" in folded and (not plain or any(escape in folded for escape in _MEANING_ASCII))
            if not escaped and not (slashed and "\\/" in folded):
                return False
        return any(needle in fold(text) for text in texts_in(body))

    return test


class _Holds:
    def __init__(self) -> None:
        self._needle = b""
        self._test = _test("")

    def __call__(self, body: object, needle: bytes) -> bool:
        if needle != self._needle:
            self._needle, self._test = needle, _test(needle.decode())
        return body is not None and self._test(body if type(body) is str else str(body))


def know_holds(engine: Engine) -> None:
    """Let statements of this engine call ``holds(body, needle)``; the folded needle is bound as UTF-8.

    As text it would end at its first NUL: drivers hand texts to functions as C does.
    """
    engine.function("holds", 2, _Holds())
