"""Judge whether recorded text reads like instructions to an agent, by the patterns of `injection_patterns.toml`.

`suspicion` tries the patterns on the text itself, and on the text with its disguises removed. A hit withholds the text, so
ordinary output, code and manuals must pass. After a miss the text goes on inside its fence, marked as not trusted. This is a
sieve, not a proof: an order in words that the patterns do not know passes. Imports nothing of `ctxmgr.recover`.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from ctxmgr.base.paths import packaged_text
from ctxmgr.text.patterns import lazy_pattern

_LEADS = lazy_pattern(
    r"(?:[.!?:;,>*#\])\"(\[-]\s{0,3}|\n\s{0,4}[*_#<( \[]{0,4}|\b(?:must|should|shall|now|please|immediately|always|instead|"
    r"need to|have to|required to|then|and|will|just|only)\s)$"
)
_LEAD = 16


class Pattern(NamedTuple):
    """One pattern: name, reason for the suspicion, groups of literals, and the expression.

    A hit needs one literal of each group; they are a cheap test before the expression. ``led`` patterns count only at the
    beginning of a sentence or after a word of command; ``exact`` ones respect punctuation and case.
    """

    name: str
    reason: str
    anchors: tuple[tuple[str, ...], ...]
    words: str
    led: bool
    exact: bool


class Patterns(NamedTuple):
    """The patterns of `injection_patterns.toml`, in the order in which they are tried."""

    words: dict[str, str]
    english: tuple[Pattern, ...]
    foreign: tuple[Pattern, ...]
    marks: tuple[Pattern, ...]

    @property
    def orders(self) -> tuple[Pattern, ...]:
        """The patterns of all languages."""
        return (*self.english, *self.foreign)


@cache
def patterns() -> Patterns:
    """Return the patterns; the file is read once."""
    data = tomllib.loads(packaged_text(__file__, "injection_patterns.toml"))
    reasons: dict[str, str] = data["reasons"]

    def made(row: dict[str, Any], kind: str) -> Pattern:
        anchors = tuple(sorted((tuple(_join_lines(group).split("|")) for group in row["anchors"]), key=len))  # the least first
        words, led = _join_lines(row["words"]), row.get("led", False)
        return Pattern(row["name"], reasons[row["reason"]], anchors, words, led, exact=kind == "mark")

    words = {name: _join_lines(text) for name, text in data["words"].items()}
    return Patterns(words, *(tuple(made(row, kind) for row in data[kind]) for kind in ("english", "foreign", "mark")))


def _join_lines(text: str) -> str:
    return text.replace("\n", "")


def matches(pattern: Pattern, text: str, *, loose: bool = False) -> bool:
    """Return whether a pattern hits a text; with ``loose`` even if no spaces separate the words.

    A group named ``tag`` is the name of a closing tag. It counts only if more such tags are closed than opened, since
    balanced pairs are ordinary markup.
    """
    for hit in expression(pattern, loose).finditer(text):
        tag = hit.groupdict().get("tag")
        if tag is not None and text.count(f"<{tag}", 0, hit.start()) > text.count(f"</{tag}", 0, hit.start()):
            continue
        before = text[max(0, hit.start() - _LEAD) : hit.start()]
        if not pattern.led or loose or not before or _LEADS.search(before):
            return True
    return False


@cache
def expression(pattern: Pattern, loose: bool = False) -> re.Pattern[str]:
    """Return the compiled expression of a pattern. Few are ever needed, and it would be slow to compile all of them."""
    words = pattern.words
    while "«" in words:
        words = re.sub("«(\\w+)»", lambda found: f"(?:{patterns().words[found[1]]})", words)
    if not pattern.exact:
        words = words.replace(" ", "[ ,_\n]?" if loose else "[ ,_\n]")
    return lazy_pattern(words, re.DOTALL)


WHOLE = 24_000
"""Longest text, in characters, that is judged completely. Of a longer one, both ends and the surroundings of key words are."""
END = 8_000
"""Characters judged at each end of a longer text."""
AROUND = 240
"""Characters judged on each side of a key word."""
REACH = 250_000
"""Characters at each end of a long text in which key words are searched for."""
MOST_AROUND = 24_000
"""Maximum characters judged around the key words of one text. It bounds the time for a hostile text."""

_CORE = ("skip orders", "hand over control")
"""Patterns that are also tried without spaces between the words."""
# Parts of key words, in the spellings that `str.find` looks for: a case-insensitive search would be slower.
_TELLING = (
    "gnore ", "GNORE ", "isregard", "ISREGARD", "orget ", "nstructions", "NSTRUCTIONS", "ou are now", "SYSTEM:", "SYSTEM]",
    "system prompt", "<|", "[INST", "<<SYS", "</tool", "</untrusted", "<!--", "verride", "OVERRIDE", "must now", "and over",
    "arget", "oute ", "elegate", "ransfer", "isten to", "obey", "id_rsa", ".env", "assword", "redential", "API key", "ecret",
    "uthori", "onfirmation", "rom now", "no longer", "ust not know", "mmediately", "egardless", " tell the", "otify",
    " agent", "ssistant", "mention", "without ", "instead", "nweisung", "instrucciones", "consignes", "\u6307\u4ee4",
    "\u6307\u793a", "\u5ffd\u7565", "\u0438\u043d\u0441\u0442\u0440\u0443\u043a\u0446",
)  # fmt: skip


def suspicion(text: str) -> str | None:
    """Return why a text reads like instructions to its reader, or None if it reads like data."""
    for part in _parts(text):
        clear = visible(part)
        decoded = (why for said in decode_pieces(clear) if (why := _plainly(visible(said))))
        if reason := _reason(clear) or next(decoded, None):
            return reason
    return None


def _reason(clear: str) -> str | None:
    """Return why a text is suspicious, trying one disguise after the other; ``clear`` has no invisible characters."""
    reason = _plainly(clear)
    if reason is None and (said := resolve_escapes(clear)) is not None:
        reason = _plainly(visible(said))
    if reason is None:
        lowered = clear.casefold()
        reason = next(
            (why for form in plain_forms(lowered) if (why := _search_patterns(normalise_separators(form), "english"))), None
        )
        if reason is None and (joined := normalise_separators(join_spelled_words(lowered))):
            reason = _search_patterns(joined, "core", loose=True) or _search_patterns(
                joined.translate(LEET), "core", loose=True
            )
    return reason


def _plainly(clear: str) -> str | None:
    lowered = clear.casefold()
    words = normalise_separators(lowered)
    return _search_patterns(clear, "marks", lowered) or _search_patterns(words, "ascii" if words.isascii() else "orders")


def _search_patterns(text: str, which: str, lowered: str | None = None, *, loose: bool = False) -> str | None:
    plain = text if lowered is None else lowered
    # Most texts lack the literals, and searching for them is far faster than for an expression. Loops are faster than `any`.
    for each in _chosen(which):
        for group in each.anchors:
            for part in group:
                if part in plain:
                    break
            else:
                break  # the text has no literal of this group
        else:
            if matches(each, text, loose=loose):
                return each.reason
    return None


@cache
def _chosen(which: str) -> Sequence[Pattern]:
    """Return some patterns: ``marks``, ``english``, ``orders`` of all languages, ``ascii`` or ``core`` ones."""
    known = patterns()
    if which == "ascii":
        return [each for each in known.orders if all(any(map(str.isascii, group)) for group in each.anchors)]
    if which == "core":
        return [each for each in known.english if each.name in _CORE]
    return {"marks": known.marks, "english": known.english, "orders": known.orders}[which]


def _parts(text: str) -> Iterator[str]:
    """Yield the text; of a long one, its ends and the surroundings of key words."""
    if len(text) <= WHOLE:
        yield text
        return
    yield text[:END]
    yield text[-END:]
    low, high = min(REACH, len(text) // 2), max(len(text) - REACH, len(text) // 2)
    spots = [text.find(word, END, low) for word in _TELLING] + [text.rfind(word, high, len(text) - END) for word in _TELLING]
    spots += [text.rfind(word, END, low) for word in _TELLING] + [text.find(word, high, len(text) - END) for word in _TELLING]
    seen: list[int] = []
    for spot in spots:
        if spot >= 0 and len(seen) * 2 * AROUND < MOST_AROUND and all(abs(spot - other) > AROUND // 2 for other in seen):
            seen.append(spot)
            yield text[max(0, spot - AROUND) : spot + AROUND]


MOST_BLOBS = 24
"""Maximum encoded pieces (base64, hex) of one text that are decoded."""
_BLOB_CHARS = 24_000

_COMBINING = lazy_pattern("[\u0300-\u036f\u0483-\u0489\u20d0-\u20f0]+")
_INVISIBLE = lazy_pattern(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e01ef\x00-\x08\x0e-\x1f\x7f-\x9f]+"
)
_TERMINAL = lazy_pattern(r"\x1b\[[0-9;?]{0,16}[A-Za-z]")
_TAGS = {0xE0000 + code: code for code in range(0x20, 0x7F)}
_TAGGED = lazy_pattern("[\U000e0020-\U000e007e]{4,}")
_TURNED = lazy_pattern("\u202e([^\u202c\u202d\n]{4,2000})")

_MARKUP = lazy_pattern("</?[a-z][^<>]{0,20}>")
_PARTS = "\t\r\x0b\x0c*#()[]{}^\\+<-\u2010\u2011\u2012\u2013\u2026\u3000"
_QUOTES = '"`|>=\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d'
_PARTING = str.maketrans(dict.fromkeys(_PARTS, " ") | dict.fromkeys(_QUOTES, ","))
_BLANKS = lazy_pattern(" {2,}")
_COMMAS = lazy_pattern(",{2,}")
_LINES = lazy_pattern("\n{2,}")
_DOTTED = lazy_pattern(r"(?<![a-z])[a-z]{2,20}+(?:\.[a-z]{2,20}+){2,12}+")
_LONG = lazy_pattern(r"(?<![a-z])[a-z]{16,200}+")

# Cyrillic, Greek, IPA and small capital letters that look like Latin ones.
_LOOKS = str.maketrans(
    "аеорсухіјѕԁһќԛԝѵгпмткнвьзӏєαβεηικνορτυχγωδσ" + "ɑɡɩʟɴʀʏıȷᴀʙᴄᴅᴇɢʜᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢ",
    "aeopcyxijsdhkqwvrnmtkhbb3leabenikvoptuxywds" + "agilnryijabcdeghjkmoptuvwz",
)
_MIXED = lazy_pattern("[a-z][\u0250-\u0260\u0370-\u052f]|[\u0250-\u0260\u0370-\u052f][a-z]|[\u1d00-\u1d22]")
LEET = str.maketrans("013457@$!|", "oieastasil")
_LEETED = lazy_pattern(r"[a-z][0134570@$!|][a-z]")
_SPACED = lazy_pattern(r"(?<![^\W_])(?:[^\W_][^\w\n]{1,2}|[^\W_]_{1,2}){6,}[^\W_](?![^\W_])")
_BETWEEN = lazy_pattern(r"(?<=[^\W_])[\W_](?=[^\W_](?:[\W_]|$))")
# Words of injections spelled backwards, and in rot13. Only a text with one of them is turned around and tried again.
_BACKWARDS = ("erongi", "snoitcurtsn", "dragersid", "tpmorp", "stcurtsni", "etuor")
_ROTATED = ("vtaber", "qvfertneq", "sbetrg", "vafgehpgvba", "bireevqr", "flfgrz cebzcg")
_BASE64 = lazy_pattern(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}+(?:\r?\n[A-Za-z0-9+/_-]{16,}+){0,40}+={0,2}")
_HEX = lazy_pattern(r"(?<![0-9A-Fa-f])(?:(?:\\x|0x|%)?[0-9A-Fa-f]{2}[\s,:]?){16,}+(?![0-9A-Fa-f])")
_HEX_MARKS = lazy_pattern(r"\\x|0x|[%\s,:]")
_ESCAPED = lazy_pattern(r"\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|\\[nrt\"'/]")
_SIGNS = {"n": "\n", "r": "\n", "t": " ", '"': '"', "'": "'", "/": "/"}


def visible(text: str) -> str:
    """Return the text without invisible characters, styled letters, accents and reversed runs (bidi overrides)."""
    if text.isascii() and text.isprintable():
        return text
    clear = _TERMINAL.sub("", text)
    if clear.isascii():
        return _INVISIBLE.sub("", clear)
    if _TURNED.search(clear):
        clear = _TURNED.sub(lambda found: found[1][::-1], clear)
    if _TAGGED.search(clear):
        clear = clear.translate(_TAGS)
    clear = unicodedata.normalize("NFKD", _INVISIBLE.sub("", clear))
    return unicodedata.normalize("NFC", _COMBINING.sub("", clear))


def normalise_separators(lowered: str) -> str:
    """Return a lower-case text with one separator between words (a line end, a comma or a space) and without markup."""
    clear = _MARKUP.sub(",", lowered) if "<" in lowered else lowered
    clear = _BLANKS.sub(" ", clear.translate(_PARTING)).replace(" ,", ",").replace(", ", ",")
    clear = _COMMAS.sub(",", clear).replace(" \n", "\n").replace("\n ", "\n").replace(",\n", "\n")
    return _LINES.sub("\n", clear)


def resolve_escapes(text: str) -> str | None:
    """Return the text with JSON, HTML and URL escapes resolved, or None if it has none."""
    clear = text
    if "\\" in clear:
        clear = _ESCAPED.sub(_sign, clear)
    if "&" in clear and ";" in clear:
        from html import unescape

        clear = unescape(clear)
    if "%2" in clear or "%3" in clear:
        from urllib.parse import unquote

        clear = unquote(clear, errors="replace")
    return None if clear == text else clear


def _sign(found: re.Match[str]) -> str:
    code = found[0][1:]
    return _SIGNS[code] if code in _SIGNS else chr(int(code[1:], 16))


def plain_forms(lowered: str) -> Iterator[str]:
    """Yield lower-case forms of a text with look-alikes and digits replaced by letters, or with reversed or rotated letters."""
    if not lowered.isascii() and _MIXED.search(lowered):
        yield lowered.translate(_LOOKS)
    if _LEETED.search(lowered):
        yield lowered.translate(LEET)
    if any(word in lowered for word in _BACKWARDS):
        yield lowered[::-1]
    if any(word in lowered for word in _ROTATED):
        yield codecs.encode(lowered, "rot13")


def join_spelled_words(lowered: str) -> str:
    """Return the words of a lower-case text that are spelled letter by letter, or written without spaces between them."""
    spelt = [_BETWEEN.sub("", found[0]) for found in _SPACED.finditer(lowered)]
    dotted = [found[0].replace(".", " ") for found in _DOTTED.finditer(lowered)]
    return "\n".join((*spelt, *dotted, *_LONG.findall(lowered)))


def decode_pieces(text: str) -> Iterator[str]:
    """Yield the decoded base64 and hexadecimal pieces of a text that are text themselves; the first and last of many."""
    for pattern, decode in ((_BASE64, _from_base64), (_HEX, _from_hex)):
        pieces: list[str] = []
        for found in pattern.finditer(text):
            pieces.append(found[0][:_BLOB_CHARS])
            if len(pieces) > MOST_BLOBS:
                del pieces[MOST_BLOBS // 2]
        yield from filter(None, (_as_text(decode(piece)) for piece in pieces))


def _from_base64(piece: str) -> bytes:
    letters = re.sub(r"\s", "", piece).rstrip("=").replace("-", "+").replace("_", "/")
    whole = letters[: len(letters) - (len(letters) % 4 == 1)]
    try:
        return base64.b64decode(whole + "=" * (-len(whole) % 4))
    except (binascii.Error, ValueError):
        return b""


def _from_hex(piece: str) -> bytes:
    digits = _HEX_MARKS.sub("", piece)
    return bytes.fromhex(digits[: len(digits) // 2 * 2])


def _as_text(data: bytes) -> str:
    for encoding in ("utf-8", "utf-16-le"):
        said = data.decode(encoding, "ignore")
        letters = sum(char.isalpha() or char.isspace() for char in said[:400])
        if len(said) >= 12 and letters >= len(said[:400]) * 7 // 10 and len(said) * 4 >= len(data):
            return said
    return ""
