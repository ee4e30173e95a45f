"""Copy long JSON strings into answers without decoding them.

Encoding a text takes twice as long as reading it, and most of the time that a record of 10,000 characters takes to be shown. A
mark stands in for the text until the line is ready. What another program escaped in its own way stays so.
"""

from __future__ import annotations

import os

from ctxmgr.log import fast_json
from ctxmgr.store.row_mapper import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxmgr.log.codec import Record

_LONG_TEXT = 4_096
"""Characters of the shortest text with which this pays."""

_PASSED_ON = frozenset(("input", "output", "data"))
"""Members of a record that are shown as they are: nothing here looks into them."""

_MAX_MEMBERS = 200
_LEVELS = 8


class Verbatim:
    """Decodes records but for their long texts, and puts these into the line that shows them."""

    def __init__(self) -> None:
        # Nobody who writes a history can know it, so that no text in it is taken for a mark.
        self._mark = f"verbatim {os.urandom(16).hex()} "
        self._texts: list[str] = []
        self._members = 0

    def load(self, body: str) -> Record:
        """Return the record of a stored body, with marks for its long texts.

        Raises:
            Damaged: as `ctxmgr.store.row_mapper.load`.
        """
        if fast_json.parts is None or not body.isascii():
            return load(body)
        self._scans = fast_json.parts
        held, self._members = len(self._texts), 0
        try:
            record, end = self._object(body, 0, _LEVELS)
            if end == len(body):
                return record
        except (StopIteration, ValueError, IndexError):
            pass
        del self._texts[held:]
        return load(body)  # which has the last word

    def _object(self, text: str, at: int, levels: int) -> tuple[Record, int]:
        scan, scan_text = self._scans
        found: Record = {}
        if text[at] != "{" or text[at + 1] != '"':
            raise ValueError("not as it is written here")
        while True:
            name, at = scan_text(text, at + 2)
            if text[at] != ":":
                raise ValueError("not as it is written here")
            if levels == _LEVELS and name not in _PASSED_ON:
                found[name], at = scan(text, at + 1)
            else:
                found[name], at = self._value(text, at + 1, levels)
            self._members += 1
            if text[at] == "}":
                return found, at + 1
            if text[at] != "," or text[at + 1] != '"' or self._members > _MAX_MEMBERS:
                raise ValueError("not as it is written here")

    def _value(self, text: str, at: int, levels: int) -> tuple[object, int]:
        scan, scan_text = self._scans
        if text[at] == '"':
            value, end = scan_text(text, at + 1)
            if end - at < _LONG_TEXT:
                return value, end
            if "\x7f" in value:  # the one control character that JSON admits as it is: no terminal shall get it
                return value, end
            self._texts.append(text[at:end])
            return f"{self._mark}{len(self._texts) - 1}", end
        if text[at] == "{" and text[at + 1] == '"' and levels:
            return self._object(text, at, levels - 1)
        return scan(text, at)

    def restored(self, line: str) -> str:
        """Return a line of JSON with the texts in the place of their marks."""
        first, *rest = line.split(f'"{self._mark}')
        pieces = [first]
        for part in rest:
            number, _, behind = part.partition('"')
            pieces += (self._texts[int(number)], behind)
        return "".join(pieces)
