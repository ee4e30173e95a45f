"""Mask secrets quickly: run the patterns of `ctxmgr.log.masking` only on lines that may hold a secret.

Loading and compiling the patterns takes as long as starting Python, and the line that a hook records mostly has none of the
words with which secrets begin. A process that masks many lines switches to the patterns, which are then faster.
"""

from __future__ import annotations

from ctxmgr.log.secret_shapes import MIN_ENCODED, OWNERS, token_starts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_TOKEN_STARTS = [start.encode() for start in token_starts()]
"""The literal beginnings of tokens. At least `_MIN_TOKEN` characters of `_TOKEN_BYTES` follow."""
_MIN_TOKEN = 12
_TOKEN_BYTES = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-./+=\\:"

_NAMES = (
    b"password", b"passwd", b"pwd", b"secret", b"token", b"key", b"authorization", b"bearer", b"pass",
    b"passphrase", b"passcode", b"auth", b"cookie", b"ignature", b"sig", b"login",
)  # fmt: skip
"""The ends, in lower case, of all names to which secrets are assigned. A character of `_AFTER_NAME` follows."""
_AFTER_NAME = b"_-0123456789\\\"'` \t:=>"
_SUSPICIOUS_TEXTS = (
    b"curl ", b"mysql", b"sshpass", b"pgpass", b":*:", b"slack.com/", b"/webhooks/", b":aa", b"rzp_", b"dapi", b"-us",
    b".eyj", b"eztk", b"\\x", b"\\u00ad", b"\\u034f", b"\\u061c", b"\\u180e", b"\\u200", b"\\u202", b"\\u206", b"\\ufeff",
    b"\\u001b", b"\\u009b",
    b"\\u002", b"\\u003", b"\\u004", b"\\u005", b"\\u006", b"\\u007",
)  # fmt: skip
"""Texts for which the patterns check a line: programs that take passwords, and escapes that can hide secrets."""

_OWNERS = tuple(OWNERS.encode().split(b"|"))

_HIGH_NIBBLES = b"234567"
"""First hex digits of the printable ASCII characters."""
_MIN_WORD = 40
"""Length of the shortest word that may be encoded text."""
_WORD_BYTES = bytes(code if (chr(code).isalnum() and code < 128) or code in b"+/.-_" else 32 for code in range(256))

_MAX_PREFILTERED = 32
"""Number of lines after which the patterns are loaded, because compiling them pays for a process that masks more."""
_mask_count = 0


def mask(line: bytes) -> bytes:
    """Return the line with every secret masked; see `ctxmgr.log.masking.mask`."""
    return _mask(line)


def _mask_with_prefilter(line: bytes) -> bytes:
    global _mask, _mask_count
    _mask_count += 1
    if _mask_count <= _MAX_PREFILTERED and is_secret_free(line):
        return line
    from ctxmgr.log.masking import mask as mask_by_patterns

    # From the next line on, call the patterns directly.
    _mask = mask_by_patterns
    return mask_by_patterns(line)


_mask: Callable[[bytes], bytes] = _mask_with_prefilter


def mask_value(value: Any) -> Any:
    """Return a JSON value with every secret of a known shape in its texts replaced; without a secret, the same object."""
    import json

    # Not encoded as a record is, because a text may be longer than a record.
    line = json.dumps(value, separators=(",", ":")).encode("ascii")
    shown = mask(line)
    return value if shown is line else json.loads(shown)


def is_secret_free(line: bytes) -> bool:
    """Whether a line certainly holds no secret. False does not mean that it holds one."""
    if b"@" in line and b"://" in line:  # perhaps a password in a URL
        return False
    lowered = line.lower()
    if (
        any(text in lowered for text in _SUSPICIOUS_TEXTS)
        or (b"%" in line and _has_percent_code(line))
        or _has_long_words(line)
    ):
        return False
    return not any(_may_start_token(line, start) for start in _TOKEN_STARTS if start in line) and not any(
        _may_be_assigned(lowered, name) for name in _NAMES if name in lowered
    )


def _has_percent_code(line: bytes) -> bool:
    """Whether a character may be percent-encoded, e.g. as ``%5F``."""
    at = line.find(b"%")
    # At the end of the line the slice is empty, and the empty text is in every text.
    while at >= 0:
        if line[at + 1 : at + 2] in _HIGH_NIBBLES and line[at + 1 : at + 2]:
            return True
        at = line.find(b"%", at + 1)
    return False


def _has_long_words(line: bytes) -> bool:
    """Whether a line has words as long as encoded text, or parts joined by dots like tokens of Discord and Airtable."""
    words = line.translate(_WORD_BYTES).split()
    return any(len(word) >= _MIN_WORD for word in words) and any(
        len(part) >= MIN_ENCODED or (word.count(b".") and len(word) >= _MIN_WORD) for word in words for part in word.split(b".")
    )


def _may_start_token(line: bytes, start: bytes) -> bool:
    """Whether a token may follow one of the places at which it could begin."""
    at = line.find(start)
    while at >= 0:
        rest = line[at + len(start) : at + len(start) + _MIN_TOKEN]
        if len(rest) == _MIN_TOKEN and not rest.translate(None, _TOKEN_BYTES):
            return True
        at = line.find(start, at + 1)
    return False


def _may_be_assigned(lowered: bytes, name: bytes) -> bool:
    """Whether something may be assigned to a name at one of its places."""
    at = lowered.find(name)
    while at >= 0:
        end = at + len(name)
        # The longest owner has ten letters. Separators may follow it.
        if lowered[end : end + 1] in _AFTER_NAME and (name != b"key" or _follows_owner(lowered[max(0, at - 16) : at])):
            return True
        at = lowered.find(name, at + 1)
    return False


def _follows_owner(before: bytes) -> bool:
    return before.rstrip(b"_- ").endswith(_OWNERS)
