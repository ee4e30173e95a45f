"""Mask secrets of known shapes in one encoded line, before anything is written.

Masking works on the ASCII JSON of a whole record. So it covers every string, key and nested document at once, and an escaped
line end counts as the end of a word. Only the secret part is replaced, by ``[masked:<kind>]``. A public prefix such as
``ghp_`` stays, and the line stays valid JSON. Standard library only.

The shapes are in `ctxmgr.log.secret_shapes` (tokens) and `ctxmgr.log.secret_names` (values that are named as secrets). Both
are also found behind terminal escapes, invisible characters, line ends and encodings.

The design is for speed. First, sieves search the line in an alphabet in which the anchors of many shapes are one byte. A line
that passes no sieve holds no secret; that is nearly every line. Then the finders decide exactly. Each begins with one literal
byte that is rare in text, which the ``re`` module finds without entering its matcher, and distinguishes the shapes by
lookbehind. No pattern has an unbounded repeat before something that can still fail at overlapping places, so hostile text
costs linear time.
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64, a2b_hex
from collections.abc import Iterator
from functools import cache
from itertools import chain

from ctxmgr.log.codec import digest
from ctxmgr.log.secret_names import PUBLISHED, Span, may_hold_url, named_spans
from ctxmgr.log.secret_shapes import ALNUM, FRAMED, MIN_ENCODED, OWNERS, TOKENS, WORD, token_starts, word_start

_MIN_TOKEN = 16
"""Smallest number of word characters behind the anchor of a token."""
_INSIDE_DOTTED = "[A-Za-z0-9_]"
"""Characters that can't precede a token with a dot as its anchor. Other tokens may follow an underscore."""


def _alphabet() -> bytes:
    """Return the translation table of the sieves.

    It lowers the case and maps several letters to one byte: anchors of tokens to ``_``, and the letters with which the middle
    of a name begins to ``k`` and ``e``. Other places that a sieve searches begin with ``u``.
    """
    # A sieve may let too much pass, but never too little, and a single literal is found fastest.
    table = bytearray(bytes(range(256)).lower())
    for letters, one in ((b"_.AS", b"_"), (b"wckbWCKB", b"k"), (b"deroDERO", b"e"), (b"pquPQU", b"u")):
        for letter in letters:
            table[letter] = one[0]
    return bytes(table)


_ALPHABET = _alphabet()
_HEXLIKE, _FOLDED = "[0-9aefk]", r"[a-z0-9_\-\\]"
"""In the alphabet of the sieves: hex digits, and word characters, which an escaped line end may divide."""
_QUOTE = r"""[\\"'`]{0,8}"""
"""An optional quote, which in nested documents is escaped several times."""
_BEFORE_DASH = "[g-z_]"
"""Characters before the dash of nearly all tokens, but before few dashes of a UUID."""


@cache
def _finders() -> tuple[tuple[re.Pattern[bytes], tuple[str, ...]], ...]:
    """Return, for each anchor, its pattern and the kinds of the pattern's groups."""
    shapes: dict[str, list[tuple[str, str, str]]] = {}
    for kind, starts, body, _ in TOKENS:
        same: dict[tuple[int, str, str], list[str]] = {}
        for start in starts.split():
            at = find_anchor(start)
            same.setdefault((at, start[at], start[at + 1 :]), []).append(start[: at + 1])
        for (_, anchor, tail), heads in same.items():
            shapes.setdefault(anchor, []).append((kind, "|".join(map(re.escape, heads)), f"{tail}({body})"))
    return tuple((_pattern(anchor, rows), tuple(kind for kind, _, _ in rows)) for anchor, rows in sorted(shapes.items()))


def find_anchor(start: str) -> int:
    """Return the index of the anchor in the beginning of a token: the last of ``_-.`` or of the capitals A and S.

    These five bytes are rare in text, so the matcher is seldom entered.

    Raises:
        ValueError: there is no anchor, so the shape belongs into `FRAMED`.
    """
    at = max(map(start.rfind, "_-.AS"))
    if at < 0:
        raise ValueError(f"the beginning {start} of a token has no anchor")
    return at


def _pattern(anchor: str, rows: list[tuple[str, str, str]]) -> re.Pattern[bytes]:
    """Return one pattern with a branch for each shape of an anchor. Few processes ever need to compile it."""
    inside = _INSIDE_DOTTED if anchor == "." else ALNUM
    branches: list[str] = []
    for _, heads, rest in rows:
        behind = f"(?:{heads})"
        # A beginning with a leading dot is inside a token, so it need not be the start of a word.
        branches.append(
            f"(?<={behind}){rest}" if heads.startswith(r"\.") else f"(?<={behind})(?:{word_start(behind, inside)}){rest}"
        )
    before = "".join(
        sorted({head[-2:-1] for _, heads, _ in rows for head in heads.replace("\\", "").split("|") if len(head) > 1})
    )
    # For most anchors, a check of the byte before them avoids trying the branches.
    near = f"(?<=[{re.escape(before)}]{re.escape(anchor)})" if before and anchor in "_-." else ""
    return re.compile(f"{re.escape(anchor)}{near}(?={WORD}{{{_MIN_TOKEN}}})(?:{'|'.join(branches)})".encode())


@cache
def _compile_framed() -> tuple[tuple[re.Pattern[bytes], re.Pattern[bytes], str], ...]:
    return tuple((re.compile(pattern.encode()), re.compile(gate.encode()), kind) for kind, gate, pattern, _ in FRAMED)


_DIGIT = re.compile(rb"[0-9][^0-9]{0,64}[0-9]")  # two digits near each other, which words and names do not have
_DENSE = re.compile(rb"[A-Za-z0-9]{12}")


def _token_spans(line: bytes, *, anchored: bool = True) -> Iterator[Span]:
    """Yield (start, end, kind) of every token; only those of `FRAMED` if ``anchored`` is false."""
    for pattern, kinds in _finders() if anchored else ():
        for match in pattern.finditer(line):
            index = match.lastindex or 1
            kind, value = kinds[index - 1], match[index]
            if kind == "openai":
                if not _is_api_key(value):
                    continue
                kind = _provider(value)
            yield match.start(index), match.end(index), kind
    for pattern, gate, kind in _compile_framed():
        if gate.search(line):
            yield from ((*match.span(1), kind) for match in pattern.finditer(line))


def _is_api_key(value: bytes) -> bool:
    """Whether the text behind ``sk-`` is a key and not a name such as ``sk-toggleable__content``."""
    return _DIGIT.search(value) is not None and _DENSE.search(value) is not None


def _provider(value: bytes) -> str:
    if value.startswith(b"ant-"):
        return "anthropic"
    return "openrouter" if value.startswith(b"or-") else "openai"


def _fold(start: str) -> str:
    return start.encode().translate(_ALPHABET).decode("ascii")


def _is_hex_start(start: str) -> bool:
    return any(start in starts.split() and body.startswith("[0-9a") for _, starts, body, _ in TOKENS)


_DASHED = frozenset(word for word in map(_fold, token_starts()) if re.search(_BEFORE_DASH + "-$", word))
_CROSSED = frozenset(word for word in map(_fold, token_starts()) if re.match("x.*-$", word)) - _DASHED
"""Beginnings whose dash could be one of a UUID. They are found by their x, like an escaped byte such as ``\\x41``."""


def _dash_sieve() -> re.Pattern[bytes]:
    """Return a pattern that matches in every line with a token whose anchor is a dash.

    It checks the text before the dash, because every record has several UUIDs, which contain dashes too.
    """
    ends: dict[int, set[str]] = {}
    for word in _DASHED:
        ends.setdefault(len(word), set()).add(f"{re.escape(word)}.{{{_MIN_TOKEN}}}")
    # Many words end in "ask" or "isk" (task-, disk-) and would pass as "sk-". After an escape such as \u001b only hex digits
    # precede the letter.
    words = "(?<!isk-.{16})(?<![^0-9aefk]ask-.{16})"
    # Grouped by length, because a lookbehind must have a fixed width.
    found = "|".join(f"(?<={'|'.join(sorted(endings))})" for _, endings in sorted(ends.items()))
    return re.compile(f"-(?<={_BEFORE_DASH}-){_FOLDED}{{16}}+{words}(?:{found})".encode())


def _token_sieve(*, dotted: bool) -> re.Pattern[bytes]:
    """Return a pattern that matches in every line with a token whose anchor is not a dash.

    With ``dotted`` it also matches text like a token of Discord, which is recognised by the positions of its dots. That is the
    only group.
    """
    usual: dict[int, set[str]] = {}
    apart: set[str] = set()
    before: set[str] = set()
    begun: set[str] = set()
    pairs: dict[str, set[str]] = {}
    for start in (*token_starts(), ":AA"):
        word = _fold(start)
        if word in _DASHED or word in _CROSSED:
            continue
        at = word.rfind("_")
        head, tail = word[: at + 1], word[at + 1 :]
        # Hex digits; the capital A among them is an anchor here.
        fill = f"{'[0-9a_efk]' if _is_hex_start(start) and tail else '.'}{{{_MIN_TOKEN - len(tail)}}}"
        found = f"{re.escape(head)}{tail}{fill}"
        if at < 2:
            begun.add(rf"(?<={found})(?=[0-9aefkn\\]{{14}})" if _is_hex_start(start) else f"(?<={found})")
        elif re.fullmatch(_HEXLIKE + "*", head[max(0, at - 4) : at]):
            apart.add(f"(?<={found})")
            before.add(head[-2])
        else:
            usual.setdefault(at, set()).add(found)
            pairs.setdefault(head[-3], set()).add(head[-2])
    ends = "|".join(f"(?<={'|'.join(sorted(found))})" for _, found in sorted(usual.items()))
    # All tokens have 16 word characters behind the anchor. The two bytes before it exclude most other texts.
    lasts = "|".join(f"{re.escape(one)}[{re.escape(''.join(sorted(others)))}]_.{{16}}" for one, others in sorted(pairs.items()))
    # Two dots with six characters between them, not all of them anchors. The long parts around them are checked last.
    found = rf"(?<=_.{{6}}_.{{16}})(?<!_{{8}}.{{16}})(?={_FOLDED}{{11}})(?<={_FOLDED}{{22}}_{_FOLDED}{{6}}_.{{16}})"
    discord = f"|({found})" if dotted else ""
    setting = "(?<!num_kenfig_.{9})"  # names like npm_config_cache are frequent, and no token begins so
    return re.compile(
        f"_[={_FOLDED[1:]}{{16}}+(?:(?<={lasts}){setting}(?:{ends})|(?<=[{''.join(sorted(before))}]_.{{16}})(?:{'|'.join(sorted(apart))})|(?<=_[ikutnh].{{15}})(?:{'|'.join(sorted(begun))}){discord})".encode()
    )


def _name_sieve() -> re.Pattern[bytes]:
    """Return a pattern that matches in every line in which a name such as "secret" gets a value, or with a bearer token."""
    sign = rf"(?:[_\-](?:key|teken))?[0-9]{{0,2}}{_QUOTE}[ \t]{{0,4}}[:=>]"
    # The same and more, behind its first byte. A branch that begins with a set of bytes fails sooner than a lookbehind.
    short = r"""[_\-0-9\\"'` \t:=>](?<=[s_u]ke.)(?:(?<=[:=>])|[ketny0-9\\"'` \t]{0,28}[:=>])"""
    owners = OWNERS.encode().translate(_ALPHABET).decode().replace("a", "[a_]").replace("s", "[s_]").split("|")
    key = "|".join(f"(?<={owner}{joint}key)" for owner in owners for joint in ("", r"[_\- ]"))
    key = rf"y(?:(?<=-key)[ ]|(?:{key})(?:{sign}|(?: klekk)?-----))"
    option = r"(?<=-[s_]ekeet) "
    cookie = rf"kie(?<=keekie){_QUOTE}[ ]{{0,2}}[:= ]"
    login = " legin [^|;]{0,200}-u"  # of docker
    hooks = r"m/(?<=slakk_kem/)|kheek[s_]/"  # of Slack and Discord; a further branch at the anchors of tokens would be slow
    return re.compile(
        (
            rf"ke(?:n(?<=teken)(?:{sign}|(?<=-teken) )|e(?:{cookie}|{login}|t(?:(?<=[s_]ekeet){sign}|{option})"
            rf"|e(?<=[s_]{{2}}keee){sign})|{short}|{key}|aeee |_eee |{hooks})"
        ).encode()
    )


def _other_sieve(*, hidden: bool) -> re.Pattern[bytes]:
    """Return a pattern that matches in every line with a token or a name that the other sieves do not find.

    With ``hidden`` it also matches escapes that can hide a secret. These are its groups.
    """
    passwords = (
        rf"[s_][s_](?:(?:keee|uhe[a_][s_]e)?(?:[_\-](?:key|teken))?[0-9]{{0,2}}{_QUOTE}[ \t]{{0,4}}[:=]"
        r"|keee(?:[ \t]|\\+[nrt])|(?:ke|uhe[a_][s_]e)[ ](?:(?<=-u.{3}ke )|(?<=-u.{3}uhe.{3} ))"
        r"|[ ](?:(?<=-u[a_][s_]{2} )|(?<=h.{4} ))|(?<=gu[a_][s_]{2}))"
    )
    auth = rf"h(?<=[a_]uth)(?:eeiz[a_]tien)?{_QUOTE}[ ]{{0,4}}[:=]"
    curl = r"l (?<=kuel )(?:[^|;]{0,300} )?-[a-z_\-]{0,4}u"  # with an option for a user
    escapes = r"|0(0(?:1k|ae|9k|[2-7][0-9aefk])|34f|61k)|1(80e)|2(0(?:0[kef]|2[aekf]|6[0-9aefk]))|f(eff)"
    airtable, razorpay = f"t[a-z0-9_]{{14}}_{_HEXLIKE}{{16}}", "(?<=ezu_)(?:live|te[s_]t)_"
    # Two branches that each begin with a letter fail sooner than one that begins with a set of both letters.
    return re.compile(
        (
            rf"u(?:a(?:{passwords}|{airtable})|_(?:{passwords}|{airtable}|{razorpay})|e(?:e=(?<=n[a_]tuee=)|{curl})|t{auth}"
            rf"|l(?<=my[s_]ul)|i(?<=eaui){_HEXLIKE}{{32}}"
            rf"|s[0-9](?<={_HEXLIKE}{{16}}-us[0-9]){escapes if hidden else ''})"
        ).encode()
    )


_passes_tokens, _passes_tokens_surely = (_token_sieve(dotted=dotted).search for dotted in (True, False))
_passes_names, _passes_dashes = _name_sieve().search, _dash_sieve().search
_passes_x = re.compile(f"x(?:[2-7]{_HEXLIKE}|{'|'.join(sorted(word[1:] for word in _CROSSED))})".encode()).search
_dotted = re.compile(rb"\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27}").search
_passes_others, _passes_others_openly = (_other_sieve(hidden=hidden).search for hidden in (True, False))
_may_quote = re.compile(rb"%[2-7][0-9aefk]").search
# One rare byte is found much faster than the first of several. The lookarounds check the rest.
_passes_jwt, _passes_signature, _passes_pgpass = (
    re.compile(pattern).search for pattern in (rb"J(?<=\.eyJ)", rb"=(?<=[&;]sig=)", rb"\*(?<=:\*)(?=:)")
)
_J, _AT, _AND, _STAR, _X, _PERCENT, _DASH = b"J@&*x%-"  # as integers, for which ``in`` needs no further call
_EASYPOST = b"EZTK"  # has no byte that a sieve searches, but the token is a run as long as encoded text


def mask(line: bytes) -> bytes:
    """Return the line with every secret of a known shape replaced by ``[masked:<kind>]``.

    ``line`` is one record as ASCII JSON (from `ctxmgr.log.codec.encode`), and the result is valid JSON again. A line without
    secrets is returned as the same object.
    """
    # Nearly every line holds no secret. So the checks are ordered by cost: sieves over the folded line, single bytes, runs that
    # may be encoded text, and last the views without escapes.
    folded = line.translate(_ALPHABET)
    tokens, other = _passes_tokens(folded), _passes_others(folded)
    if tokens is not None and tokens.lastindex is not None:
        tokens = _dotted(line) or _passes_tokens_surely(folded, tokens.start())
    coded = _X in folded and _passes_x(folded)
    tokens = (
        tokens or (_DASH in folded and _passes_dashes(folded)) or (coded and any(word.encode() in folded for word in _CROSSED))
    )
    hidden = other is not None and other.lastindex is not None
    if hidden:
        other = _passes_others_openly(folded)
    named = bool(
        other or _passes_names(folded) or ((_J in line or _AT in line or _AND in line or _STAR in line) and _passes_signs(line))
    )
    runs = line.translate(RUNS)
    has_run = RUN_OF in runs
    named = named or (has_run and _EASYPOST in line)
    if tokens or named or (has_run and any(_find_kind(said) for _, _, said in decode_pieces(line, runs))):
        return _mask_line(line, tokens=bool(tokens), named=named)
    if (hidden or coded or (_PERCENT in folded and _may_quote(folded))) and any(_passes(view.text) for view in views(line)):
        return mask_without_sieves(line)
    return line


def _passes(line: bytes) -> bool:
    """Whether a line may hold a secret that is not behind escapes or encodings."""
    folded = line.translate(_ALPHABET)
    found = (
        _passes_tokens_surely(folded)
        or _passes_dashes(folded)
        or _passes_x(folded)
        or _dotted(line)
        or _passes_names(folded)
        or _passes_others_openly(folded)
    )
    return bool(found) or _passes_signs(line) or _EASYPOST in line


def _passes_signs(line: bytes) -> bool:
    """Whether a line may hold a secret with a rare byte: a JWT, a URL, a signature, a pgpass line."""
    return bool(
        (_J in line and _passes_jwt(line))
        or (_AT in line and may_hold_url(line))
        or (_AND in line and _passes_signature(line))
        or (_STAR in line and _passes_pgpass(line))
    )


def mask_without_sieves(line: bytes) -> bytes:
    """Return the same as `mask`, without using its sieves."""
    return _mask_line(line, tokens=True, named=True)


def secret_spans(line: bytes) -> list[Span]:
    """Return (start, end, kind) of everything that `mask` would replace in a line, in order."""
    found: list[Span] = []
    for span in sorted(_find_spans(line, tokens=True, named=True)) if mask(line) is not line else ():
        if not found or span[0] >= found[-1][1]:
            found.append(span)
    return found


def _mask_line(line: bytes, *, tokens: bool, named: bool) -> bytes:
    spans = _find_spans(line, tokens=tokens, named=named)
    return _replace(line, spans) if spans else line


def _find_spans(line: bytes, *, tokens: bool, named: bool) -> list[Span]:
    """Return (start, end, kind) of the secrets in a line, unordered.

    Args:
        line: one record.
        tokens: whether it may hold tokens that are not hidden.
        named: whether it may hold secrets that are not hidden and are recognised by their names or by rare bytes.
    """
    spans = [*(_token_spans(line, anchored=tokens) if tokens or named else ()), *(named_spans(line) if named else ())]
    ends = {start: end for start, end, _ in spans}
    # A longer secret in a view replaces the piece of it that is visible in the line itself.
    for view in views(line):
        for start, end, kind in (*_token_spans(view.text), *named_spans(view.text)):
            first, last = view.origin(start, end)
            if last > ends.get(first, 0):
                spans.append((first, last, kind))
    if tokens:
        view = View(
            line, _BROKEN if _may_hide(line) else _WRAPPED, b""
        )  # without escaped line ends, because a token may be wrapped over lines
        for start, end, kind in _token_spans(view.text) if view.changed else ():
            first, last = view.origin(start, end)
            if first not in ends or (last > ends[first] and _is_continued(line[ends[first] : last])):
                spans.append((first, last, kind))
    for start, end, said in decode_pieces(line, line.translate(RUNS)):
        kind = _find_kind(said)
        if kind:
            spans.append((start, end, kind))
    # Examples in standards are not secrets. They are compared by hash, so that this file has no text that looks like one.
    return [span for span in spans if digest(line[span[0] : span[1]])[:16] not in PUBLISHED]


def _is_continued(rest: bytes) -> bool:
    """Whether the text on the lines after a token continues the token and is not a separate word."""
    return len(rest) >= _MIN_TOKEN and _DIGIT.search(rest) is not None


def _find_kind(said: bytes) -> str:
    """Return the kind of the first secret in a text, or ""."""
    return next((kind for found in (_token_spans, named_spans) for _, _, kind in found(said)), "")


def _replace(line: bytes, spans: list[Span]) -> bytes:
    spans.sort()
    parts: list[bytes] = []
    at = 0
    for start, end, kind in spans:
        if start >= at:
            parts += (line[at:start], b"[masked:" + kind.encode() + b"]")
        at = max(at, end)
    parts.append(line[at:])
    return b"".join(parts)


_ESCAPE = rb"\\{0,7}u00(?:(?:1b\[|9b)[0-9;:?]{0,24}[A-Za-z]|1b[()][0-9A-Z])"
_INVISIBLE = rb"\\{0,7}u(?:00ad|034f|061c|180e|200[b-f]|202[a-e]|206[0-9a-f]|feff|001b)"
_CODED = rb"(?<=%)[2-7][0-9A-Fa-f]|\\{0,7}(?<=\\)(?:x|u00)[2-7][0-9a-fA-F]"
_BREAK = rb"(?<=[A-Za-z0-9_\-]{3}\\)\\{0,7}(?:n|r\\{1,8}n)(?=[A-Za-z0-9_\-]{4})"
_HIDDEN = re.compile(rb"[\\%](?:(?P<escape>" + _ESCAPE + b")|" + _INVISIBLE + b"|(?P<coded>" + _CODED + b"))")
_COLOURED = re.compile(rb"\\" + _ESCAPE)
_BROKEN = re.compile(rb"[\\%](?:(?P<escape>" + _ESCAPE + b")|" + _INVISIBLE + b"|(?P<coded>" + _CODED + b")|" + _BREAK + b")")
_WRAPPED = re.compile(rb"\\" + _BREAK)
"""The rest of `_BROKEN`, for a line in which nothing else is hidden."""
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:/+=@?& ~!,;")

RUNS = bytes(97 if (chr(code).isalnum() and code < 128) or code in b"+/" else 32 for code in range(256))
RUN_OF = b"a" * MIN_ENCODED
_HEX = b"0123456789abcdef", b"0123456789ABCDEF"
_HEX_BEGIN = b"0x", b"0X"
_SAYS = re.compile(rb"(?:0[xX])?(?:(?:[0-7][0-9a-fA-F]){16}|(?:[A-Za-f][A-Za-z0-9+/]{3}){9})")
"""Pattern for the beginning of ASCII text in hex or base64, in which the highest bit of each byte is 0. Hashes and pictures
rarely match."""
_NO_TEXT = bytes((0, 1, 2, 3, 4, 5, 6, 7, 8, 14, 15, 16, 127))


class View:
    """A line with some pieces replaced, and the offset in the line from which each byte comes."""

    def __init__(self, line: bytes, pattern: re.Pattern[bytes], gap: bytes) -> None:
        parts: list[bytes] = []
        self._kept: list[range] = []
        at = 0
        for found in pattern.finditer(line):
            new = _replacement(found, gap)
            if new is None:
                continue
            parts += (line[at : found.start()], new)
            self._kept.append(range(at, found.start()))
            if new:
                self._kept.append(range(found.start(), found.start() + 1))
            at = found.end()
        parts.append(line[at:])
        self._kept.append(range(at, len(line)))
        self.changed = len(parts) > 1
        self.text = b"".join(parts)
        self._length = len(line)
        self._from: list[int] | None = None

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return (start, end) in the line, in bytes, of a part of the view."""
        if self._from is None:
            self._from = [*chain.from_iterable(self._kept), self._length]
        return self._from[start], self._from[end]


def _replacement(found: re.Match[bytes], gap: bytes) -> bytes | None:
    if found.lastgroup == "coded":
        code = int(found[0][-2:], 16)
        return bytes((code,)) if code in _PLAIN else None
    return gap if found.lastgroup == "escape" else b""


def _may_hide(line: bytes) -> bool:
    """Whether `_HIDDEN` may find something. Searching for its fixed beginnings is faster."""
    return b"\\u" in line or b"\\x" in line or _PERCENT in line


def views(line: bytes) -> Iterator[View]:
    """Yield views of the line without its escapes, if it has any: one with blanks in their place, one without anything.

    An escape may be between two words or inside a token, so secrets are searched in both.
    """
    if _may_hide(line) and _HIDDEN.search(line):
        if _COLOURED.search(line):
            yield View(line, _HIDDEN, b" ")
        yield View(line, _HIDDEN, b"")


def decode_pieces(line: bytes, runs: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield (start, end, decoded text) of every text in base64 or hex; ``runs`` is the line translated by `RUNS`."""
    start = runs.find(RUN_OF)
    while start >= 0:
        end = runs.find(b" ", start)
        end = len(line) if end < 0 else end
        said = _decode_text(line[start:end])
        if said is not None:
            yield start, end, said
        start = runs.find(RUN_OF, end)


def _decode_text(piece: bytes) -> bytes | None:
    """Return the text that a piece encodes, or None if it is not a text but an id, a hash or a picture."""
    if _SAYS.match(piece) is None:
        return None
    piece = piece[2:] if piece.startswith(_HEX_BEGIN) else piece
    # Hex digits in one case only. Mixed case is base64 that happens to have no other letters.
    is_hex = len(piece) % 2 == 0 and any(not piece.translate(None, digits) for digits in _HEX)
    part = piece[: len(piece) - (len(piece) % 4 == 1)]  # base64 never has one character left over, so the piece was truncated
    try:
        plain = a2b_hex(piece) if is_hex else a2b_base64(part + b"=" * (-len(part) % 4))
    except Error:
        return None
    return plain if plain.isascii() and plain.translate(None, _NO_TEXT) == plain else None
