"""Mask secrets like `ctxmgr.masking`, without its patterns for lines in which no secret can begin.

To load and compile the patterns takes as long as Python takes to start, and a hook that records one action mostly meets
none of the words that secrets begin with. Whoever masks many lines gets the patterns, which are quicker then.
"""

from __future__ import annotations

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than to mask a line
if TYPE_CHECKING:
    from collections.abc import Callable

_BEGIN = (
    b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"github_pat_", b"k_live_", b"k_test_", b"whsec_", b"npm_", b"hf_", b"shpat_",
    b"shpss_", b"shpca_", b"shppa_", b"_v1_", b"lin_api_", b"figd_", b"rubygems_", b"dckr_pat_", b"gsk_", b"r8_", b"glsa_",
    b"glc_", b"sntrys_", b"sntryu_", b"sbp_", b"ntn_", b"secret_", b"phx_", b"sk-", b"glpat-", b"glptt-", b"glcbt-", b"glimt-",
    b"glrt-", b"gldt-", b"glft-", b"glsoat-", b"xox", b"xapp-", b"xai-", b"pplx-", b"nvapi-", b"tvly-", b"PMAK-", b"NRAK-",
    b"sq0", b"GOCSPX-", b"pypi-", b"key-", b"xkeysib-", b"pul-", b"tskey-", b"AGE-SECRET-KEY-", b"SG.", b"ya29.", b"hvs.",
    b"hvb.", b"hvr.", b"dp.", b"slack.", b"AKIA", b"ASIA", b"ABIA", b"ACCA", b"AIza", b"ATATT3", b":AA", b"SK", b"eyJ",
)  # fmt: skip
"""What every token of a known shape holds, as it is written; behind it stand at least so many of these signs."""
_LEAST = 15
_TOKEN = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-./+="

_NAMES = (b"password", b"passwd", b"pwd", b"secret", b"token", b"key", b"authorization", b"bearer")
"""What the name of every assigned secret ends in, in small letters; one of these signs stands behind it."""
_BEHIND = b"_-0123456789\\\"'` \t:="

_OWNERS = (
    b"api", b"access", b"secret", b"private", b"account", b"auth", b"encryption", b"signing", b"master", b"shared", b"license",
)  # fmt: skip
"""Whose key is a secret."""

_FEW = 32
_asked = 0


def mask(line: bytes) -> bytes:
    """Return the line with every secret masked, see `ctxmgr.masking.mask`."""
    return _mask(line)


def _mask_one_of_few(line: bytes) -> bytes:
    global _mask, _asked
    _asked += 1
    if _asked <= _FEW and is_free(line):
        return line
    from ctxmgr.masking import mask as by_patterns

    _mask = by_patterns
    return by_patterns(line)


_mask: Callable[[bytes], bytes] = _mask_one_of_few


def is_free(line: bytes) -> bool:
    """Whether a line holds no secret beyond doubt; False says nothing."""
    if b"@" in line and b"://" in line:  # perhaps a password in a URL
        return False
    lowered = line.lower()
    return not any(_is_begun(line, begin) for begin in _BEGIN if begin in line) and not any(
        _is_assigned(lowered, name) for name in _NAMES if name in lowered
    )


def _is_begun(line: bytes, begin: bytes) -> bool:
    """Whether a token may follow one of the places at which it could begin."""
    at = line.find(begin)
    while at >= 0:
        behind = line[at + len(begin) : at + len(begin) + _LEAST]
        if len(behind) == _LEAST and not behind.translate(None, _TOKEN):
            return True
        at = line.find(begin, at + 1)
    return False


def _is_assigned(lowered: bytes, name: bytes) -> bool:
    """Whether something may be assigned to a name at one of its places."""
    at = lowered.find(name)
    while at >= 0:
        end = at + len(name)
        if lowered[end : end + 1] in _BEHIND and (name != b"key" or _is_owned(lowered[max(0, at - 16) : at])):
            return True
        at = lowered.find(name, at + 1)
    return False


def _is_owned(before: bytes) -> bool:
    return before.rstrip(b"_- ").endswith(_OWNERS)
