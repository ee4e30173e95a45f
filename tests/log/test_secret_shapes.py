"""The table of tokens: each row names its source, has an anchor, and finds what is made from it."""

from __future__ import annotations

import importlib
import random
import re
from typing import Any

import pytest

from bench.masking.corpus import cases
from ctxmgr.log.codec import encode
from ctxmgr.log.mask_prefilter import is_secret_free
from ctxmgr.log.masking import find_anchor, mask
from ctxmgr.log.secret_shapes import FRAMED, TOKENS

SEED = 20_261_123


def test_every_shape_names_its_source() -> None:
    """A shape that nobody can check is no shape."""
    assert all(source and kind and starts for kind, starts, _, source in (*TOKENS, *FRAMED))


def _written(parsed: Any, source: random.Random) -> str:
    """Return a text that a parsed expression matches, of letters and digits where it leaves the choice."""
    parts: list[str] = []
    for operation, value in parsed:
        name = str(operation)
        if name == "LITERAL":
            parts.append(chr(value))
        elif name == "IN":
            signs = [chr(code) for kind, of in value for code in ([of] if str(kind) == "LITERAL" else range(of[0], of[1] + 1))]
            digits = [sign for sign in signs if sign.isdigit()]
            # A random text may by chance hold none, which no real key does.
            parts.append(source.choice(digits if digits and source.random() < 0.3 else [s for s in signs if s.isalnum()]))
        elif name in ("MAX_REPEAT", "POSSESSIVE_REPEAT"):
            parts += [_written(value[2], source) for _ in range(value[0])]
        elif name == "SUBPATTERN":
            parts.append(_written(value[-1], source))
        elif name == "BRANCH":
            parts.append(_written(source.choice(value[1]), source))
        else:
            assert name in ("ASSERT", "ASSERT_NOT"), name
    return "".join(parts)


@pytest.mark.parametrize("row", TOKENS, ids=lambda row: f"{row[0]} {row[1].split()[0]}")
def test_every_beginning_has_an_anchor_and_is_found(row: tuple[str, str, str, str]) -> None:
    """A token made from its row is masked behind each beginning of the row, in five of five draws."""
    parser = importlib.import_module("re._parser")
    _, starts, body, _ = row
    for start in starts.split():
        find_anchor(start)
        source = random.Random(f"{SEED}{start}")
        for _ in range(5):
            secret = _written(parser.parse(body), source)
            for before in ("use ", "\n", "="):
                line = encode({"v": 1, "input": f"{before}{start}{secret} here"})
                assert not is_secret_free(line), (start, secret)
                assert secret not in mask(line).decode(), (start, secret)


def test_a_beginning_without_an_anchor_is_refused() -> None:
    """The patterns look for an anchor: a row that has none would never be found."""
    with pytest.raises(ValueError, match="EZTK"):
        find_anchor("EZTK")


@pytest.mark.parametrize("row", FRAMED, ids=lambda row: f"{row[0]} {row[1][:14]}")
def test_every_framed_shape_has_its_place_in_a_sieve(row: tuple[str, str, str, str]) -> None:
    """The corpus has tokens of the row, and each is masked, not only by the patterns behind the sieves."""
    kind, _, pattern, _ = row
    lines = [encode({"v": 1, "input": text}) for half in ("first", "second") for _, text, _ in cases(half, SEED, 2)]
    found = [line for line in lines if re.search(pattern.encode(), line)]

    assert found
    for line in found:
        assert f"[masked:{kind}]".encode() in mask(line), line
        assert not is_secret_free(line), line
