"""How the time of every pattern that looks at recorded text grows with its length, on text made to slow it down."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from bench.masking.measures import seconds
from ctxmgr.log.codec import encode
from ctxmgr.log.masking import mask, mask_without_sieves
from ctxmgr.recover.injection import (
    WHOLE,
    decode_pieces,
    expression,
    join_spelled_words,
    normalise_separators,
    patterns,
    plain_forms,
    resolve_escapes,
    suspicion,
    visible,
)

SHORT, LONG = 500_000, 1_000_000

SECRETS = (
    (
        "_ - a A = / \\ @ { AKIA ghp_ sk- sk-a1 eyJ eyJ- eyJaaaaaa. token= token=a1 password password= pass= cookie: "
        "cookie:a=b a=b; "
        ":// ://a: &sig= signature= *:*: *:*:*:a:b auth= auth: <password> password>x< -us1 0a-us1 M. aaaaaa.aaaaaa. dapi pat "
        "bearer ke -----BEGIN·RSA·PRIVATE·KEY----- login·a·password· "
        "machine·a·login·b·password·c1 mysql· mysql·-u·- curl· curl·-u·a sshpass·-p· "
        "--password· slack.com/services/ SG.aaaaaaaaaaaaaaaa. %41 \\x41 é"
    )
    .replace("·", " ")
    .split(" ")
)
ESCAPES = ("\x1b", "\x1b[", "\x1b[31m", "\u200b", "a\n", "ab1\nab12", "a" * 40 + " ", "0" * 32 + "-us", "M" * 24 + ".")
WORDS = (
    "a", "a ", "a.", "a_b_", "a b c ", "ignore ", "ignore previous ", "the ", "agent ", "you are now ", "i g n o r e ",
    "<", "<a", "</a>", "<!--", "%41", "\\x41", "&amp;", "\u202eab", "\u200b", "A" * 16 + "\n", "41 ", "0x41,",
    "send the token to ",
    "hand over to ", "-", "\n", "a\n", "é", "а", "ab.cd.", "(", "[", "system: ", "please ", "do not ", "tell the user ",
)  # fmt: skip


def growths() -> Iterator[tuple[float, float, str]]:
    """Yield (how many times longer twice the text takes, seconds for the longer one, what)."""
    for unit in (*filter(None, SECRETS), *ESCAPES):
        for name, work in (("mask", mask), ("mask without sieves", mask_without_sieves)):
            yield _growth(f"{name} {unit[:20]!r}", lambda text, work=work: work(encode({"t": text})), unit, SHORT)
    forms: dict[str, Callable[[str], object]] = {
        "judge": suspicion, "visible": visible, "words": normalise_separators, "unescaped": resolve_escapes,
        "squeezed": join_spelled_words,
        "unmasked": lambda text: list(plain_forms(text)), "decoded": lambda text: list(decode_pieces(text)),
    }  # fmt: skip
    for unit in WORDS:
        for name, work in forms.items():
            yield _growth(f"{name} {unit[:20]!r}", work, unit, SHORT)


def order_growths() -> Iterator[tuple[float, float, str]]:
    """Yield the same of each pattern of orders, on the longest text that it is given and half of it."""
    for order in (*patterns().orders, *patterns().marks):
        work = partial(_count, expression(order))
        for unit in WORDS:
            if seconds(partial(work, unit * (WHOLE // len(unit))), 1) > 0.01:
                yield _growth(f"{order.name} {unit[:20]!r}", work, unit, WHOLE // 2)


def _count(found: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in found.finditer(text))


def _growth(name: str, work: Callable[[str], object], unit: str, short: int) -> tuple[float, float, str]:
    """Return the growth; what looks worse than it may be on a busy machine is measured again, each time more often."""
    lower, upper = unit * (short // len(unit)), unit * (2 * short // len(unit))
    first = second = float("inf")
    for rounds in (2, 4, 8):
        first = min(first, seconds(lambda: work(lower), rounds))
        second = min(second, seconds(lambda: work(upper), rounds))
        if second < 0.02 or second / first <= 2.2:
            break
    return second / first, second, name
