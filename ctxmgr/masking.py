"""Mask secrets of known shapes in one encoded line, before anything is written.

Works on the ASCII JSON of a whole record, so every string, key and nested document is covered at once, and an escaped
line end counts as the end of a word. Only the secret part is replaced, by ``[masked:<kind>]``; a public
prefix such as ``ghp_`` stays, and the line stays valid JSON. Standard library only.

Speed decides the form. Two sieves first look at the line in an alphabet in which all anchors are one byte; what passes
neither holds no secret, which is nearly every line. The finders then say exactly what is one. Each begins with one
literal byte that is rare in text, which the ``re`` module looks for without entering its matcher, and tells the shapes
apart by looking behind. No pattern has an unbounded repeat before something that can still fail at overlapping places,
so hostile text costs linear time.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from itertools import product

_Span = tuple[int, int, str]
_Shape = tuple[str, str, str]

_ALNUM = "[A-Za-z0-9]"
_WORD = r"[A-Za-z0-9_\-]"
_HEX = "[0-9a-fA-F]"


class _Finder:
    """Several shapes that share one literal byte, the anchor.

    A shape is (kind, what must end at the anchor, what must follow it, with one group around the secret).
    """

    def __init__(self, anchor: str, shapes: Sequence[_Shape], inside: str = _ALNUM, ahead: str = "") -> None:
        self.shapes = shapes
        self._anchor, self._inside, self._ahead = anchor, inside, ahead

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        """All shapes as branches of one pattern; few processes ever need it compiled."""
        branches: list[str] = []
        for _, behind, rest in self.shapes:
            # A word begins after anything but `inside`, or right after an escape, whose last letter is no letter.
            start = rf"(?:(?<!{self._inside}{behind})|(?<=\\[bfnrt]{behind})|(?<=\\u[0-9a-f]{{4}}{behind}))"
            branches.append(f"(?<={behind}){start}{rest}")
        return re.compile(f"{re.escape(self._anchor)}{self._ahead}(?:{'|'.join(branches)})".encode())

    def spans(self, line: bytes) -> Iterator[_Span]:
        for match in self.pattern.finditer(line):
            index = match.lastindex or 0
            kind, value = self.shapes[index - 1][0], match[index]
            if kind == "openai":
                if not _is_api_key(value):
                    continue
                kind = _provider(value)
            yield match.start(index), match.end(index), kind


def _is_api_key(value: bytes) -> bool:
    """Whether what follows ``sk-`` is a key and not a name such as ``sk-toggleable__content``."""
    return _DIGIT.search(value) is not None and _DENSE.search(value) is not None


def _provider(value: bytes) -> str:
    if value.startswith(b"ant-"):
        return "anthropic"
    return "openrouter" if value.startswith(b"or-") else "openai"


_DIGIT = re.compile(rb"[0-9][^0-9]{0,64}[0-9]")
_DENSE = re.compile(rb"[A-Za-z0-9]{12}")

_UNDERSCORE = _Finder(
    "_",
    [
        ("github", "gh[pousr]_", f"({_ALNUM}{{36,}}+)"),
        ("github", "github_pat_", "([A-Za-z0-9_]{40,}+)"),
        ("stripe", "[sr]k_(?:live|test)_", f"({_ALNUM}{{16,}}+)"),
        ("stripe", "whsec_", "([A-Za-z0-9+/=]{24,}+)"),
        ("npm", "npm_", f"({_ALNUM}{{36,}}+)"),
        ("huggingface", "hf_", f"({_ALNUM}{{30,}}+)"),
        ("shopify", "shp(?:at|ss|ca|pa)_", f"({_HEX}{{32,}}+)"),
        ("digitalocean", "do[opr]_v1_", f"({_HEX}{{64}})"),
        ("linear", "lin_api_", f"({_ALNUM}{{32,}}+)"),
        ("figma", "figd_", f"({_WORD}{{36,}}+)"),
        ("rubygems", "rubygems_", f"({_HEX}{{48}})"),
        ("docker", "dckr_pat_", f"({_WORD}{{20,}}+)"),
        ("groq", "gsk_", f"({_ALNUM}{{40,}}+)"),
        ("replicate", "r8_", f"({_ALNUM}{{36,}}+)"),
        ("grafana", "glsa_", f"({_ALNUM}{{32}}_{_HEX}{{8}})"),
        ("grafana", "glc_", "([A-Za-z0-9+/=]{32,}+)"),
        ("sentry", "sntry[su]_", "([A-Za-z0-9+/=_]{40,}+)"),
        ("supabase", "sbp_", f"({_HEX}{{40}})"),
        ("notion", "ntn_", f"({_ALNUM}{{40,}}+)"),
        ("notion", "secret_", f"({_ALNUM}{{43}})"),
        ("posthog", "phx_", f"({_ALNUM}{{40,}}+)"),
    ],
    ahead=rf"(?<=[abceghlmprstvy][acdefikmnoprstux18]_)(?={_WORD}{{16}})",
)

_DASH = _Finder(
    "-",
    [
        ("openai", "sk-", f"({_WORD}{{20,}}+)"),
        ("gitlab", "gl(?:pat|ptt|cbt|imt)-", f"({_WORD}{{20,}}+)"),
        ("gitlab", "gl(?:rt|dt|ft)-", f"({_WORD}{{20,}}+)"),
        ("gitlab", "glsoat-", f"({_WORD}{{20,}}+)"),
        ("slack", "xox[abeoprs]-", r"([A-Za-z0-9\-]{20,}+)"),
        ("slack", "xapp-", r"([A-Za-z0-9\-]{20,}+)"),
        ("xai", "xai-", f"({_ALNUM}{{60,}}+)"),
        ("perplexity", "pplx-", f"({_ALNUM}{{40,}}+)"),
        ("nvidia", "nvapi-", f"({_WORD}{{50,}}+)"),
        ("tavily", "tvly-", f"({_WORD}{{20,}}+)"),
        ("postman", "PMAK-", f"({_HEX}{{24}}-{_HEX}{{34}})"),
        ("newrelic", "NRAK-", "([A-Z0-9]{27})"),
        ("square", "sq0(?:atp|csp)-", f"({_WORD}{{22,}}+)"),
        ("google", "GOCSPX-", f"({_WORD}{{28}})"),
        ("pypi", "pypi-", f"(AgE{_WORD}{{50,}}+)"),
        ("mailgun", "key-", f"({_HEX}{{32}})(?!{_ALNUM})"),
        ("brevo", "xkeysib-", f"({_HEX}{{64}})"),
        ("pulumi", "pul-", f"({_HEX}{{40}})"),
        ("tailscale", "tskey-", f"({_WORD}{{20,}}+)"),
        ("age", "AGE-SECRET-KEY-", "(1[A-Z0-9]{58})"),
    ],
    # No dash of a UUID follows one of these letters, and every record holds several UUIDs.
    ahead=rf"(?:(?<=[g-zA-Z]-)|(?<=ox[abe]-)|(?<=sib-))(?={_WORD}{{16}})",
)

_DOT = _Finder(
    ".",
    [
        ("sendgrid", r"SG\.", rf"({_WORD}{{16,}}+\.{_WORD}{{32,}}+)"),
        ("google", r"ya29\.", f"({_WORD}{{20,}}+)"),
        ("vault", r"hv[sbr]\.", f"({_WORD}{{24,}}+)"),
        ("doppler", r"dp\.(?:pt|st|ct|sa)\.", f"({_ALNUM}{{40,}}+)"),
        ("slack", r"slack\.", r"com/(?:services|workflows)/([A-Z0-9]{6,16}/[A-Z0-9]{6,16}/[A-Za-z0-9/]{16,}+)"),
    ],
    inside="[A-Za-z0-9_]",
)

_A = _Finder(
    "A",
    [
        ("aws", "A", f"(?:KI|SI|BI|CC)A([A-Z0-9]{{16}})(?!{_ALNUM})"),
        ("google", "A", f"Iza({_WORD}{{35}})"),
        ("atlassian", "A", r"TATT3([A-Za-z0-9_=\-]{60,}+)"),
        ("telegram", "A", f"(?<=[0-9]:A)(A{_WORD}{{33}})"),
    ],
    ahead=rf"(?=[KSBCITA])(?:(?<!{_ALNUM}{_ALNUM}A)|(?<=\\u[0-9a-f]{{4}}A))",
)

_TOKENS = (
    _UNDERSCORE,
    _DASH,
    _DOT,
    _A,
    _Finder("S", [("twilio", "S", f"K([0-9a-f]{{32}})(?!{_ALNUM})")]),
)
# Here a word may hold "-" and "_": in "eyJ-eyJ-..." each "eyJ" would else be followed to the end of the text.
_JWT = _Finder("J", [("jwt", "eyJ", rf"({_WORD}{{6,}}+\.eyJ{_WORD}{{4,}}+\.{_WORD}*+)")], inside=_WORD)


def _alphabet() -> bytes:
    """Return the table of the sieves: lower case, an anchor of a token is ``_``, the middle of a name begins with ``ke``."""
    table = bytearray(bytes(range(256)).lower())
    for letters, one in ((b"_-.AS", b"_"), (b"wckbWCKB", b"k"), (b"deroDERO", b"e")):
        for letter in letters:
            table[letter] = one[0]
    return bytes(table)


_ALPHABET = _alphabet()
_PARTS = re.compile(r"\\(.)|\[([^]]+)\]|\(\?:([^)]+)\)|(.)")


def _words(behind: str) -> Iterator[bytes]:
    """Yield every text that ``behind`` matches, in the alphabet of the sieves."""
    parts = [[m[1]] if m[1] else list(m[2] or "") or (m[3] or "").split("|") if m[2] or m[3] else [m[4]]
             for m in _PARTS.finditer(behind)]  # fmt: skip
    return ("".join(chosen).encode().translate(_ALPHABET) for chosen in product(*parts))


def _token_sieve() -> re.Pattern[bytes]:
    """Return what finds a place in every line in which a finder of `_TOKENS` finds one, save for a web hook of Slack."""
    words = {word for finder in _TOKENS for _, behind, _ in finder.shapes if len(behind) > 1 for word in _words(behind)}
    sizes = sorted({len(word) for word in words})
    ends = b"|".join(b"(?<=%b)" % b"|".join(sorted(word + b".{16}" for word in words if len(word) == size)) for size in sizes)
    # All have 16 characters of a word behind the anchor. What tells most others apart are the two bytes before it.
    lasts = {word[-3]: bytes(sorted({other[-2] for other in words if other[-3] == word[-3]})) for word in sorted(words)}
    pairs = b"(?<=%b)" % b"|".join(b"%c[%b]_.{16}" % pair for pair in lasts.items())
    # The shapes that begin with their anchor, A or S.
    begun = rb"(?<=_(?:ki_.{13}|_i_.{13}|kk_.{13}|iza.{13}|t_tt3.{11}|k[0-9aefk]{15}|_(?<=[0-9]:__).{15}))"
    # Behind hex digits stand the dashes of a UUID, of which every record holds several. Here r is one too: r8_ stands apart.
    begun += rb"|(?<=e8_.{16})(?:(?<![0-9aefk]{2}e8_.{16})|(?<=\\u[0-9aefk]{4}e8_.{16}))"
    return re.compile(rb"_[a-z0-9_=]{16}+(?:%b(?<![0-9aefk]{4}_.{16})(?:%b)|%b)" % (pairs, ends, begun))


# Assignments. The name is looked for in the lowered line, with the same one-literal trick.
_ASSIGN = (
    rb"""(?:[_\-](?:key|token))?[0-9]{0,2}(?P<close>(?:\\{0,7}["'`])?)[ \t]{0,4}"""
    rb"""(?::[ ]?&?(?:str|string|bytes)(?:[ ]?\|[ ]?none)?[ ]{1,2}(?==))?(?P<sign>:=|=>|[:=])[ ]{0,4}"""
    rb"""(?:[bfru](?=\\{0,7}["'`]))?(?P<open>(?:\\{0,7}["'`])?)"""
    # Only what could be a secret is worth leaving the matcher for: a member of the record, or a digit or sign nearby.
    rb"""(?:(?<=[^\\]":")|(?=[^\s"'`\\=]{0,80}[0-9!@#$^&*+]))"""
)
_OWNERS = "api|access|secret|private|account|auth|encryption|signing|master|shared|license"
_KEY = "|".join(f"(?<={owner}{joint}k)" for owner in _OWNERS.split("|") for joint in ("", r"[_\- ]")).encode()


@cache
def _names() -> tuple[tuple[str, re.Pattern[bytes]], ...]:
    return (
        ("password", re.compile(rb"w(?:(?<=passw)(?:or)?d|(?<=pw)d)" + _ASSIGN)),
        ("secret", re.compile(rb"c(?<=sec)ret" + _ASSIGN)),
        # A private key block is met here too: its first line ends in "private key-----".
        ("key", re.compile(rb"k(?:(?<=tok)en|(?=ey)(?:" + _KEY + rb")ey)(?:" + _ASSIGN + rb"|(?: block)?-----)")),
    )


def _name_sieve() -> re.Pattern[bytes]:
    """Return what finds a place in every line in which a name of `_names` is given a value, or a bearer stands."""
    sign = rb"""(?:_(?:key|teken))?[0-9]{0,2}\\{0,7}["'`]?[ \t]{0,4}[:=]"""
    # The same and more, behind its first byte: what begins with a byte of a set is left sooner than what looks behind.
    short = rb"""[_0-9\\"'` \t:=](?<=[s_p]ke.)(?:(?<=[:=])|[ketny0-9\\"'` \t]{0,20}[:=])"""
    owners = _OWNERS.encode().translate(_ALPHABET).replace(b"a", b"[a_]").replace(b"s", b"[s_]").split(b"|")
    key = b"|".join(b"(?<=%b%bkey)" % (owner, joint) for owner in owners for joint in (b"", b"[_ ]"))
    key = rb"y(?:%b)(?:%b|(?: klekk)?_____)" % (key, sign)
    hook = rb"m/(?<=slakk_kem/)"  # of Slack; at the anchors of tokens, which are many, one branch more would cost much
    return re.compile(
        rb"ke(?:n(?<=teken)%b|e(?:t(?<=[s_]ekeet)|e(?<=[s_]keee))%b|%b|%b|[a_]eee |%b)" % (sign, sign, short, key, hook)
    )


_DIGITS, _LETTERS = string.digits.encode(), string.ascii_letters.encode()
_passes_tokens, _passes_names = _token_sieve().search, _name_sieve().search
_passes_authorization = re.compile(rb"z[a_]tien(?<=[a_]utheeiz[a_]tien)").search
_STRONG = frozenset({"password", "secret"})
_MEMBER = re.compile(rb"(?:[^\"\\]++|\\.)*+")
_QUOTED = re.compile(rb"[^\"'`\\\s]{4,}+")
_BARE = re.compile(rb"[A-Za-z0-9_\-.+/~!@#$%^*?]{6,}+={0,2}")
_DOTTED = re.compile(rb"[A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)++")

_AUTHORIZATION = re.compile(
    rb"""z(?<=authoriz)ation(?:\\{0,7}["'`])?[ ]{0,4}[:=][ ]{0,4}(?:\\{0,7}["'`])?"""
    rb"(?P<scheme>(?:bearer|basic|token|digest|apikey|negotiate)[ ]{1,2})?([a-z0-9._~+/=\-:]{8,}+)"
)
_BEARER = re.compile(rb"bearer[ ]{1,2}([a-z0-9._~+/=\-]{16,}+)")
_J, _Z, _AT = b"Jz@"  # as numbers they are looked for without any call
_USERINFO = re.compile(rb"://[^\s/@:\"'\\<>]{0,64}:([^\s/@\"'\\<>${}%*]{2,128})@")

_PEM_HEADER = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(rb"(?:[A-Za-z0-9+/= :,.>|\-]++|\\{1,8}+(?:[nrt]|u[0-9a-f]{4}))*+")
_PEM_DATA = re.compile(rb"(?:[A-Za-z0-9+/=]++|\\{1,8}+[nrt])*+")
_PEM_END = re.compile(rb"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_PEM_LEAST = 24


def mask(line: bytes) -> bytes:
    """Return the line with every secret of a known shape replaced by ``[masked:<kind>]``.

    ``line`` is one record as ASCII JSON (from `ctxmgr.wire.encode`); the answer is valid JSON again. A line without
    secrets comes back as the same object.
    """
    folded = line.translate(_ALPHABET)
    if (
        _passes_tokens(folded)
        or _passes_names(folded)
        or (_Z in folded and _passes_authorization(folded))
        or (_J in line and b"eyJ" in line and _JWT.pattern.search(line))
        or (_AT in line and _USERINFO.search(line))
    ):
        return mask_unsieved(line)
    return line


def mask_unsieved(line: bytes) -> bytes:
    """Return what `mask` returns, which asks here about the few lines that its sieves let pass."""
    spans: list[_Span] = []
    for finder in (*_TOKENS, _JWT):
        spans.extend(finder.spans(line))
    lowered = line.lower()
    for kind, pattern in _names():
        if pattern.search(lowered):
            spans.extend(_assignments(line, lowered, kind, pattern))
            if kind == "key":
                spans.extend(_private_keys(line))
    spans.extend((*match.span(1), "url-password") for match in _USERINFO.finditer(line))
    spans.extend(_credentials(lowered))
    return _replace(line, spans) if spans else line


def _replace(line: bytes, spans: list[_Span]) -> bytes:
    spans.sort()
    parts: list[bytes] = []
    at = 0
    for start, end, kind in spans:
        if start >= at:
            parts += (line[at:start], b"[masked:" + kind.encode() + b"]")
        at = max(at, end)
    parts.append(line[at:])
    return b"".join(parts)


def _assignments(line: bytes, lowered: bytes, kind: str, pattern: re.Pattern[bytes]) -> Iterator[_Span]:
    strong = kind in _STRONG
    for match in pattern.finditer(lowered):
        start = match.end()
        opened = match["open"]
        if opened is None:  # the header of a private key block
            continue
        if match["close"] == b'"' and opened == b'"':  # a member of the record itself: its value is one JSON string
            member = _MEMBER.match(line, start)
            if member and _is_secret_member(member[0], strong):
                yield start, member.end(), kind
            continue
        value = (_QUOTED if opened else _BARE).match(line, start)
        if value is None:
            continue
        after = line[value.end() : value.end() + 1]
        if opened:
            if after in b"\"'`\\" and _is_secret_literal(value[0], strong):
                yield start, value.end(), kind
        elif after not in (b"(", b"[", b"{", b"<") and _is_secret_word(value[0], strong):
            yield start, value.end(), kind


def _is_placeholder(value: bytes) -> bool:
    return value[:1] in b"$%{<*[" or b"masked:" in value


def _is_secret_member(value: bytes, strong: bool) -> bool:
    if _is_placeholder(value):
        return False
    return len(value) >= 4 if strong else b" " not in value and _is_secret_literal(value, strong)


def _is_secret_literal(value: bytes, strong: bool) -> bool:
    """Whether a quoted value looks like a secret rather than a label, a path or a format."""
    if _is_placeholder(value) or value.startswith((b"/", b"http", b".")):
        return False
    digits, letters = _count(value)
    if strong:
        return len(value) >= 6 and (digits > 0 or any(sign in value for sign in b"!@#$^&*+="))
    return len(value) >= 12 and digits >= 2 and letters >= 2


def _is_secret_word(value: bytes, strong: bool) -> bool:
    """Whether an unquoted value looks like a secret rather than an expression of a program."""
    if _is_placeholder(value) or value.startswith((b"/", b"http", b".", b"~", b"0x")):
        return False
    digits, letters = _count(value)
    if _DOTTED.fullmatch(value) and (len(value) < 24 or digits < 6):
        return False
    if strong:
        return len(value) >= 8 and digits >= 1 and letters >= 1
    names = b"_" in value or b"." in value
    return len(value) >= 16 and digits >= (3 if names else 2) and letters >= 2


def _count(value: bytes) -> tuple[int, int]:
    length = len(value)
    return length - len(value.translate(None, _DIGITS)), length - len(value.translate(None, _LETTERS))


def _credentials(lowered: bytes) -> Iterator[_Span]:
    for match in _AUTHORIZATION.finditer(lowered):
        digits, _ = _count(match[2])
        if digits and (match["scheme"] or len(match[2]) >= 16):
            yield *match.span(2), "authorization"
    for match in _BEARER.finditer(lowered):
        if _count(match[1])[0]:
            yield *match.span(1), "authorization"


def _private_keys(line: bytes) -> Iterator[_Span]:
    """Yield the body of every private key block, from after its header to its end line.

    A block cut short is masked as far as it looks like base64. What may follow a header is scanned once and not once
    for each header.
    """
    stop = taken = 0
    endless = -1  # the stop before which no end line was found
    for header in _PEM_HEADER.finditer(line):
        start = header.end()
        if start < taken:
            continue
        if start >= stop:
            body = _PEM_BODY.match(line, start)
            stop = body.end() if body else start
        end = _PEM_END.search(line, start, stop) if endless != stop else None
        if end is not None:
            taken = end.start()
        else:
            endless = stop
            data = _PEM_DATA.match(line, start)
            taken = data.end() if data else start
        if taken - start >= _PEM_LEAST:
            yield start, taken, "private-key"
