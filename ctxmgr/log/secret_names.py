"""Find secrets by their names: assignments, options of programs, headers, URLs, password files, private key blocks.

The functions work on one encoded line or a view of it. All repeats are bounded before anything that can still fail, so hostile
text costs linear time. Standard library only.
"""

from __future__ import annotations

import re
import string
from binascii import Error, a2b_base64
from collections.abc import Iterator
from functools import cache

from ctxmgr.log.secret_shapes import OWNERS

Span = tuple[int, int, str]

_ASSIGN = (
    rb"""(?:[_\-](?:key|token))?[0-9]{0,2}(?P<close>(?:\\{0,7}["'`])?)[ \t]{0,4}"""
    rb"""(?::[ ]?&?(?:str|string|bytes)(?:[ ]?\|[ ]?none)?[ ]{1,2}(?==))?(?P<sign>:=|=>|[:=])(?:[ ]|\\{1,7}t){0,4}"""
    rb"""(?:[bfru](?=\\{0,7}["'`]))?(?P<open>(?:\\{0,7}["'`])?)"""
    # Match only if the value could be a secret: a member of the record, a digit or a special character nearby, or a shell
    # variable.
    rb"""(?:(?<=[^\\]":")|(?=[^\s"'`\\=]{0,80}[0-9!@#$^&*+])|(?<==)|(?<==\\["'])|(?<==["']))"""
)
_KEY = "|".join(f"(?<={owner}{joint}k)" for owner in OWNERS.split("|") for joint in ("", r"[_\- ]")).encode()


@cache
def _name_patterns() -> tuple[tuple[str, re.Pattern[bytes]], ...]:
    return (
        ("password", re.compile(rb"w(?:(?<=passw)(?:or)?d|(?<=pw)d)" + _ASSIGN)),
        # "compass=" and "bypass=" are not names of passwords, PGPASS is.
        ("passphrase", re.compile(rb"p(?:(?<=[^a-z]p)|(?<=pgp))ass(?:phrase|code)?" + _ASSIGN)),
        ("secret", re.compile(rb"c(?<=sec)ret" + _ASSIGN)),
        # This also finds private key blocks, whose first line ends in "private key-----".
        ("key", re.compile(rb"k(?:(?<=tok)en|(?=ey)(?:" + _KEY + rb")ey)(?:" + _ASSIGN + rb"|(?: block)?-----)")),
    )


_DIGITS, _LETTERS, _LOWER, _UPPER = (
    each.encode() for each in (string.digits, string.ascii_letters, string.ascii_lowercase, string.ascii_uppercase)
)
_STRONG = frozenset({"password", "passphrase", "secret"})
_MEMBER = re.compile(rb"(?:[^\"\\]++|\\.)*+")
_QUOTED = re.compile(rb"[^\"'`\\\s]{4,}+")
_BARE = re.compile(rb"[A-Za-z0-9_\-.+/~!@#$%^*?]{6,}+={0,2}")
_DOTTED = re.compile(rb"[A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)++")
_SHELL_NAME = re.compile(rb"(?<![A-Za-z0-9_])[A-Z][A-Z0-9]{0,40}(?:_[A-Z0-9]{1,40}){0,8}=(?:\\{0,7}[\"'])?\Z")
_AWS_SECRET = re.compile(rb"[A-Za-z0-9/+]{40}")
_STAND_IN = re.compile(
    rb"(?i)your|example|changeme|change_me|change-me|placeholder|redacted|xxx|\*\*\*|\.\.\.|dummy|sample|insert|todo|none|null|"
    rb"true|false|optional|required|undefined|string|process|getenv|environ|config|settings|secret|token|passw|api_?key|value|test|fake"
)

STAND_IN = b"EXAMPLE"
"""Word that documentation, especially that of AWS, puts into example keys."""
_EXAMPLE = rb"(?i)example|sample|placeholder|dummy|your"
_OF_EXAMPLES = (
    _EXAMPLE + rb"|passw(?:or)?d|secret|token|api|key|value|user|this|here|the|my|is|a(?![a-z])|[^a-z0-9](?![^a-z0-9])"
)
"""Parts of made-up values: words like "example", words for what they replace, and single separators between them."""
_MAX_UNEXPLAINED, _MAX_EXAMPLE = 2, 64
"""Number of other characters that an example may have, so that no secret hides in it, and its largest length."""
PUBLISHED = {
    "6c96130f130ab0d6": "RFC 6749, 5.1: access token",
    "00cf4c781dc37003": "RFC 6749, 5.1: refresh token",
    "ca7459e2b26776de": "RFC 6749, 4.1.3: credentials of the client",
    "b8e148545b13c78b": "RFC 6750, 2.1: bearer token",
    "ad71fb4165536675": "OpenID Connect Core 1.0, 3.1.3.3: access token",
    "c1a7d81af675893c": "docs.aws.amazon.com/cli: ecr-public get-authorization-token",
}
"""Published example values: the first 16 hex digits of their SHA-256, and where they are published. Hashes, so that the project
has no text that looks like a secret."""
_NO_SECRET = re.compile(
    rb"(?:next|page|pagination|continuation|idempotency)[_-]?(?:to)?\Z|aws::[a-z0-9]{2,40}::[a-z]{0,32}\Z|arn:[a-z0-9:\-]{2,80}:se\Z"
)
"""Texts before a name which then is not that of a secret: of a page, of a request, of a type in a template, of a resource."""
_OF_A_REQUEST = re.compile(rb"(?:client|request|change|lock|update)[_-]?to\Z")
_UUID = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
"""Names of tokens that identify a request, so that it is executed once, and the form of such a token. Together they are no
secret."""
_CONTEXT_BEFORE = 96
"""Number of characters before a name that these patterns search."""

_AUTHORIZATION = re.compile(
    rb"""z(?<=authoriz)ation(?:\\{0,7}["'`])?[ ]{0,4}[:=][ ]{0,4}(?:\\{0,7}["'`])?"""
    rb"(?P<scheme>(?:bearer|basic|token|digest|apikey|negotiate)[ ]{1,2})?([a-z0-9._~+/=\-:]{8,}+)"
)
_BEARER = re.compile(rb"bearer[ ]{1,2}([a-z0-9._~+/=\-]{16,}+)")
_PASSWORD_WORDS = frozenset({b"pass", b"passwd", b"password", b"pwd", b"secret", b"token"})
"""Words that documentation writes in place of a password."""
USERINFO = re.compile(rb"://[^\s/@:\"'\\<>\[]{0,64}:((?:[^\s/@\"'\\<>${}%*]|%[0-9A-Fa-f]{2}){2,128})@")
URL_TOKEN = re.compile(rb"://([A-Za-z0-9_\-]{20,128})(?::x-oauth-basic)?@")

_MAX_URL_DISTANCE, _MAX_URLS = 512, 256
"""Largest distance of the "@" from the start of a URL in both patterns, and the number of "@" checked one by one."""


def may_hold_url(line: bytes) -> bool:
    """Whether a line may hold a URL with a user or a password. Searches for "@", which is rarer than "://"."""
    at = line.find(b"@")
    for _ in range(_MAX_URLS):
        if at < 0:
            return False
        start = line.rfind(b"://", max(0, at - _MAX_URL_DISTANCE), at)
        if start >= 0 and (USERINFO.match(line, start) or URL_TOKEN.match(line, start)):
            return True
        at = line.find(b"@", at + 1)
    return USERINFO.search(line) is not None or URL_TOKEN.search(line) is not None


_OPTIONAL_QUOTE = rb"(?:\\{0,7}[\"'])?"
_VALUE = rb"([^\s\"'`\\<>(){}\[\]$;|&]{3,128})"
_OPTION = re.compile(
    rb"--(?:[a-z0-9]{1,20}-){0,3}?(?:password|passwd|pass|passphrase|secret|(?<![a-z]-)token|(?:api|auth|access|bot|deploy)-token|"
    rb"(?:api|access|secret|private|auth|account)-key)[ ]{1,3}" + _OPTIONAL_QUOTE + rb"(?!-)" + _VALUE
)
_SSHPASS = re.compile(rb"sshpass[ ]{1,3}(?:-[a-oq-z]{1,3}[ ]{1,3}){0,3}-p[ ]{0,3}" + _OPTIONAL_QUOTE + _VALUE)
_SQL = re.compile(rb"mysql[a-z\-]{0,12}[ ](?:[^\n|;&\\]{0,200}?[ ])?-p" + _OPTIONAL_QUOTE + _VALUE)
_CURL = re.compile(
    rb"curl[ ](?:[^\n|;\\]{0,300}?[ ])?(?:-[a-z]{0,4}u|--(?:proxy-)?user)[ =]{0,2}"
    + _OPTIONAL_QUOTE
    + rb"[^\s:\"'\\]{0,64}:"
    + _VALUE
)
_DOCKER = re.compile(rb"docker login[ ](?:[^\n|;&\\]{0,200}?[ ])?-p[ =]{1,2}" + _OPTIONAL_QUOTE + _VALUE)
_OPENSSL = re.compile(rb"openssl[ ][^\n|;&\\]{0,300}?[ ]" + _OPTIONAL_QUOTE + rb"pass:" + _VALUE)
_COOKIES = re.compile(
    rb"cookie" + _OPTIONAL_QUOTE + rb"(?:[ ]{0,2}[:=]|(?<=--cookie))[ ]{0,2}" + _OPTIONAL_QUOTE + rb"([^\"'\\]{8,4096})"
)
_COOKIE = re.compile(rb"[a-z0-9_.\-]{1,64}=([^=;\s,]{8,}={0,2})")
_MIN_SIGNATURE = 20  # length of the shortest signature
_SIGNATURE = re.compile(rb"=(?:(?<=[Ss]ignature=)|(?<=[&;]sig=))([A-Za-z0-9%%+/=_~\-]{%d,})" % _MIN_SIGNATURE)
_NETRC = re.compile(
    rb"login(?:[ \t]|\\{1,7}[nrt]){1,8}[^\s\\\"']{1,64}(?:[ \t]|\\{1,7}[nrt]){1,8}password"
    rb"(?:[ \t]|\\{1,7}[nrt]){1,8}([^\s\\\"'<>$]{3,128})"
)
# host:port:database:user:password. The port, 5432 or a star, distinguishes it from other texts with colons.
_PGPASS = re.compile(rb"(?<![^\s\"n])[\w.*\-]{1,64}:(?:5432|\*):[\w*\-]{1,64}:[\w*\-]{1,64}:([^\s\"'\\:\[]{4,128})")
# Only the ends of apikey, accesskey, secretkey and privatekey, because a lookbehind must have a fixed width.
_ELEMENT = re.compile(
    rb">(?:(?<=password>)|(?<=passwd>)|(?<=pwd>)|(?<=secret>)|(?<=token>)|(?<=(?:api|ess|ret|ate)key>)|(?<=(?:api|ess|ret|ate)_key>))"
    rb"([^\s<>\"'\\${}]{4,128})</"
)
_AUTH = re.compile(
    rb"auth(?<![a-z0-9]auth)" + _OPTIONAL_QUOTE + rb"[ ]{0,4}[:=][ ]{0,4}" + _OPTIONAL_QUOTE + rb"([a-z0-9+/]{8,}={0,2})"
)
_COOKIE_ATTRIBUTES = frozenset({b"path", b"expires", b"max-age", b"domain", b"samesite"})

_PEM_HEADER = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(rb"(?:[A-Za-z0-9+/= :,.>|\-]++|\\{1,8}+(?:[nrt]|u[0-9a-f]{4}))*+")
_PEM_DATA = re.compile(rb"(?:[A-Za-z0-9+/=]++|\\{1,8}+[nrt])*+")
_PEM_END = re.compile(rb"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_MIN_PEM_DATA = 24


def named_spans(line: bytes) -> Iterator[Span]:
    """Yield (start, end, kind) of every secret that is recognised by a name."""
    lowered = line.lower()
    for kind, pattern in _name_patterns():
        if pattern.search(lowered):
            yield from _assignments(line, lowered, kind, pattern)
            if kind == "key":
                yield from _private_keys(line)
    yield from _url_secrets(line)
    yield from _credentials(lowered)
    yield from _options(line, lowered)
    yield from _file_secrets(line, lowered)


def _assignments(line: bytes, lowered: bytes, kind: str, pattern: re.Pattern[bytes]) -> Iterator[Span]:
    reported = "password" if kind == "passphrase" else kind
    for match in pattern.finditer(lowered):
        # Without an opening it is the header of a private key block.
        if match["open"] is not None and not _names_no_secret(line, lowered, match, kind):
            end = _value_end(line, match, strong=kind in _STRONG)
            if end is not None:
                yield match.end(), end, reported


def _names_no_secret(line: bytes, lowered: bytes, match: re.Match[bytes], kind: str) -> bool:
    """Whether a name that a pattern found is another word, by what stands before it."""
    # The pattern begins at a rare letter of a name, so the beginning of the name is before the match.
    start = match.start()
    before = max(0, start - _CONTEXT_BEFORE), start
    if kind in {"key", "secret"} and _NO_SECRET.search(lowered, *before):
        return True
    if kind == "key":
        return _OF_A_REQUEST.search(lowered, *before) is not None and _UUID.match(line, match.end()) is not None
    # "pass" alone is a word in programs and test reports. With a quoted value, or behind "_" or "-", it names a password.
    return (
        kind == "passphrase"
        and not match["open"]
        and line[start - 1 : start] not in b"_-"
        and line[start : start + 4] != b"PASS"
        and b"passp" not in lowered[start : start + 5]
    )


def _value_end(line: bytes, match: re.Match[bytes], *, strong: bool) -> int | None:
    """Return where a secret behind its name ends, None where no secret stands there.

    Args:
        line: the line of the log.
        match: the name, with what stands between it and the value.
        strong: whether the name means a secret by itself; "key" and "token" mean many other things.
    """
    start, opened = match.end(), match["open"]
    if match["close"] == b'"' and opened == b'"':  # a member of the record itself: its value is one JSON string
        member = _MEMBER.match(line, start)
        return member.end() if member and _is_secret_member(member[0], strong) else None
    value = (_QUOTED if opened else _BARE).match(line, start)
    if value is None:
        return None
    after = line[value.end() : value.end() + 1]
    # No closing quote follows the value, so this is a sentence, e.g. a message about passwords.
    if opened and after not in b"\"'`\\":
        return None
    # A call or an index in program code, e.g. ``token = read_token(path)``.
    if not opened and after in (b"(", b"[", b"{", b"<"):
        return None
    is_secret = (_is_secret_literal if opened else _is_secret_word)(value[0], strong) or _is_of_shell(line, start, value[0])
    return value.end() if is_secret else None


def _is_of_shell(line: bytes, start: int, value: bytes) -> bool:
    """Whether a value without a digit is assigned to a shell variable, e.g. ``API_KEY=abcdefghijkl``."""
    if len(value) < 8 or not value.isalpha() or value.isupper() or _STAND_IN.search(value) is not None:
        return False
    return _SHELL_NAME.search(line, max(0, start - 64), start) is not None


def _is_placeholder(value: bytes, strong: bool) -> bool:
    return value[:1] in b"$%{<*[" or b"masked:" in value or (not strong and STAND_IN in value) or _is_example(value)


def _is_example(value: bytes) -> bool:
    """Whether a value consists of words that mark it as an example."""
    return (
        len(value) <= _MAX_EXAMPLE
        and re.search(_EXAMPLE, value) is not None
        and len(re.sub(_OF_EXAMPLES, b"", value)) <= _MAX_UNEXPLAINED
    )


def _is_reference(value: bytes, strong: bool) -> bool:
    """Whether a value is a path, a URL, the name of a resource, or a key that documentation made up."""
    return value.startswith((b"/", b"http", b".", b"arn:")) or (not strong and value[-len(STAND_IN) :].upper() == STAND_IN)


def _is_secret_member(value: bytes, strong: bool) -> bool:
    if _is_placeholder(value, strong):
        return False
    return len(value) >= 4 if strong else b" " not in value and _is_secret_literal(value, strong)


def _is_secret_literal(value: bytes, strong: bool) -> bool:
    """Whether a quoted value looks like a secret and not like a label, a path or a format."""
    if _is_aws_secret(value):
        return True
    if _is_placeholder(value, strong) or _is_reference(value, strong):
        return False
    digits, letters = _count_characters(value)
    if strong:
        return len(value) >= 6 and (digits > 0 or any(sign in value for sign in b"!@#$^&*+="))
    return len(value) >= 12 and digits >= 2 and letters >= 2


def _is_secret_word(value: bytes, strong: bool) -> bool:
    """Whether an unquoted value looks like a secret and not like an expression in program code."""
    if _is_aws_secret(value):
        return True
    if _is_placeholder(value, strong) or _is_reference(value, strong) or value.startswith((b"~", b"0x")):
        return False
    digits, letters = _count_characters(value)
    if _DOTTED.fullmatch(value) and (len(value) < 24 or digits < 6 or value.lower().endswith((b"key", b"token", b"secret"))):
        return False
    if strong:
        return len(value) >= 8 and digits >= 1 and letters >= 1
    names = b"_" in value or b"." in value  # like names in program code, which may have digits too
    return len(value) >= 16 and digits >= (3 if names else 2) and letters >= 2


def _is_aws_secret(value: bytes) -> bool:
    """Whether a value is a secret key of AWS, which may begin with a slash like a path. Keys with `STAND_IN` are examples."""
    if _AWS_SECRET.fullmatch(value) is None or STAND_IN in value:
        return False
    digits, _ = _count_characters(value)
    # A SHA-1 in hex has 40 characters too, but letters of one case only.
    return digits >= 2 and len(value.translate(None, _LOWER)) <= 36 and len(value.translate(None, _UPPER)) <= 36


def _count_characters(value: bytes) -> tuple[int, int]:
    length = len(value)
    return length - len(value.translate(None, _DIGITS)), length - len(value.translate(None, _LETTERS))


def _url_secrets(line: bytes) -> Iterator[Span]:
    if b"@" in line:
        for match in USERINFO.finditer(line):
            if match[1].lower() not in _PASSWORD_WORDS:
                yield *match.span(1), "url-password"
        for match in URL_TOKEN.finditer(line):  # a long user name may be a token, e.g. for pushing to GitHub
            digits, letters = _count_characters(match[1])
            if digits >= 2 and letters >= 4:
                yield *match.span(1), "url-password"
    for match in _SIGNATURE.finditer(line):
        if _count_characters(match[1])[0] >= 2 and len(match[1].replace(STAND_IN, b"")) >= _MIN_SIGNATURE:
            yield *match.span(1), "signature"


def _credentials(lowered: bytes) -> Iterator[Span]:
    for match in _AUTHORIZATION.finditer(lowered):
        digits, _ = _count_characters(match[2])
        if (
            digits
            and (match["scheme"] or len(match[2]) >= 16)
            and not match[2].startswith((b"http://", b"https://"))
            and not _NO_SECRET.search(lowered, max(0, match.start() - _CONTEXT_BEFORE), match.start())
        ):
            yield *match.span(2), "authorization"
    for match in _BEARER.finditer(lowered):
        if _count_characters(match[1])[0]:
            yield *match.span(1), "authorization"
    for found in _COOKIES.finditer(lowered):
        for match in _COOKIE.finditer(lowered, *found.span(1)):
            digits, letters = _count_characters(match[1])
            if (
                letters
                and digits
                and not _is_placeholder(match[1], strong=False)
                and not match[0].startswith(tuple(_COOKIE_ATTRIBUTES))
            ):
                yield *match.span(1), "cookie"


def _options(line: bytes, lowered: bytes) -> Iterator[Span]:
    """Yield the secrets in arguments of programs."""
    for match in _OPTION.finditer(lowered):
        digits, letters = _count_characters(match[1])
        if (
            len(match[1]) >= 5
            and digits
            and letters
            and b"example" not in match[1]
            and not match[1].startswith((b"/", b"./", b"~"))
        ):
            yield *match.span(1), "password"
    if b"sshpass" in lowered:
        yield from ((*match.span(1), "password") for match in _SSHPASS.finditer(lowered))
    if b"mysql" in lowered:
        # -p is the option for the password, -P that for the port.
        yield from ((*match.span(1), "password") for match in _SQL.finditer(lowered)
                    if line[match.start() : match.start(1)].rstrip(b"\\\"'").endswith(b"-p"))  # fmt: skip
    if b"docker login" in lowered:
        yield from ((*match.span(1), "password") for match in _DOCKER.finditer(lowered))
    if b"openssl" in lowered:
        yield from ((*match.span(1), "password") for match in _OPENSSL.finditer(lowered))
    if b"curl" in lowered:
        yield from ((*match.span(1), "password") for match in _CURL.finditer(lowered) if not match[1].isdigit())


def _file_secrets(line: bytes, lowered: bytes) -> Iterator[Span]:
    """Yield the secrets in the formats of password files: netrc, pgpass, XML, Docker's and npm's."""
    if b"login" in lowered and b"password" in lowered:
        yield from ((*match.span(1), "password") for match in _NETRC.finditer(lowered))
    if b":*:" in line or b"pgpass" in lowered:
        yield from ((*match.span(1), "password") for match in _PGPASS.finditer(line))
    if b"</" in line:
        for match in _ELEMENT.finditer(lowered):
            if _count_characters(match[1])[0]:
                yield *match.span(1), "password"
    if b"auth" in lowered:
        for match in _AUTH.finditer(lowered):
            if _is_basic(line[match.start(1) : match.end(1)]):
                yield *match.span(1), "authorization"


def _is_basic(value: bytes) -> bool:
    """Whether a value is a name and a password in base64, as in an HTTP header."""
    try:
        decoded = a2b_base64(value + b"=" * (-len(value) % 4))
    except Error:
        return False
    return b":" in decoded and decoded.isascii() and decoded.decode("ascii").isprintable()


def _private_keys(line: bytes) -> Iterator[Span]:
    """Yield the body of every private key block, from its header to its end line.

    A block without an end line is masked as far as it looks like base64. The text behind several headers is scanned only once.
    """
    stop = masked_to = 0
    endless = -1  # the stop before which no end line was found
    for header in _PEM_HEADER.finditer(line):
        start = header.end()
        if start < masked_to:
            continue
        if start >= stop:
            body = _PEM_BODY.match(line, start)
            stop = body.end() if body else start
        end = _PEM_END.search(line, start, stop) if endless != stop else None
        if end is not None:
            masked_to = end.start()
        else:
            endless = stop
            data = _PEM_DATA.match(line, start)
            masked_to = data.end() if data else start
        if masked_to - start >= _MIN_PEM_DATA and STAND_IN not in line[start : start + _MIN_PEM_DATA]:
            yield start, masked_to, "private-key"
