"""The sieves in front of the masks, and the words in front of these, let every line pass in which the masks find something."""

from __future__ import annotations

import json
import random
import string
import uuid
from itertools import product
from pathlib import Path

import pytest

from ctxmgr.log.codec import decode, encode, unseal
from ctxmgr.log.journal import Journal
from ctxmgr.log.mask_prefilter import is_secret_free
from ctxmgr.log.masking import mask, mask_without_sieves
from ctxmgr.recorder import Recorder

SEED = 20_261_122
LETTERS = string.ascii_letters + string.digits

_PREFIXES = """
    ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- glptt- glcbt- glimt- glrt- gldt- glft- glsoat- sk-ant-api03- sk-or-v1- sk-
    sk_live_ sk_test_ rk_live_ whsec_ xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp- AKIA ASIA ABIA ACCA AIza ATATT3 1:AA
    ya29. GOCSPX- npm_ pypi-AgE hf_ SK dop_v1_ doo_v1_ dor_v1_ shpat_ shpss_ shpca_ shppa_ lin_api_ figd_ rubygems_ dckr_pat_
    gsk_ r8_ glc_ glsa_ sntrys_ sntryu_ sbp_ ntn_ secret_ phx_ xai- pplx- nvapi- tvly- PMAK- NRAK- sq0atp- sq0csp- key-
    xkeysib- pul- tskey- AGE-SECRET-KEY-1 hvs. hvb. hvr. SG. dp.pt. dp.st. dp.sa. dp.ct. eyJ eyJhbGci.eyJ
    slack.com/services/T0ABCDEFG/B0ABCDEFG/ slack.com/workflows/
"""
_NAMES = """
    password passwd pwd PASSWORD Pwd db_pwd secret SECRET clientSecret token TOKEN access_token api_key apiKey API-KEY
    secret_key private_key account-key signing_key shared_key license_key encryption_key AUTH_KEY authorization AUTHORIZATION
    token_key secret-token password2 key monkey bearer BEARER
"""
PREFIXES = _PREFIXES.split()
NAMES = [*_NAMES.split(), "access key", "Authorization: Bearer ", "bearer  ", "BEARER "]
GLUE = [
    "=", ":", ": ", " = ", " := ", "=>", '": "', "': '", '\\": \\"', ": str = ", ": string|none =", "\n", "\t", "\b", " ", '"',
    "'", "`", "\\", "\\\\", "é", "\u1234", "\u00e8", "\ud800", "\x7f", "/", "@", "://u:", "-----BEGIN RSA PRIVATE KEY-----",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----", "-----END PRIVATE KEY-----", ".", "_", "-", "A", "S", "J", "z", "k", "(", "$", "{",
]  # fmt: skip
ALPHABETS = (LETTERS, LETTERS + "-_", "0123456789abcdef", LETTERS.upper(), LETTERS + "/+=", "=", "-", "_", "A", string.digits)


def _body(source: random.Random) -> str:
    alphabet = source.choice(ALPHABETS)
    return "".join(
        source.choice(alphabet) for _ in range(source.choice([1, 6, 12, 15, 16, 17, 20, 24, 32, 35, 36, 48, 64, 80]))
    )


def _text(source: random.Random) -> str:
    """Return pieces of secrets and of what stands around them, most in an order that makes none."""
    pieces: list[str] = []
    for _ in range(source.randrange(1, 9)):
        prefix, name, glue = source.choice(PREFIXES), source.choice(NAMES), source.choice(GLUE)
        pieces.append(
            source.choice([prefix, name, glue, glue, _body(source), prefix + _body(source), name + glue + _body(source)])
        )
    return "".join(pieces)


@pytest.mark.slow
def test_no_secret_is_held_back_by_a_sieve() -> None:
    """On 3,000 lines made of pieces of secrets the masks find the same with the sieves as without them."""
    source = random.Random(SEED)
    changed = 0
    for _ in range(3_000):
        text = _text(source)
        value = source.choice([text, json.dumps({"k": text}), {source.choice(NAMES): text}, [text, _text(source)]])
        line = encode({"v": 1, source.choice(["a", "token", _text(source)]): value})
        masked = mask_without_sieves(line)
        assert mask(line) == masked, (SEED, line)
        assert masked == line or not is_secret_free(line), (SEED, line)
        changed += masked != line

    assert 1_200 < changed < 2_700


@pytest.mark.cases(1)
@pytest.mark.parametrize("before", ["", " ", "\n", "\b", "é", "\u00aa", "x", "e8", "/", "=", "_", "."])
def test_every_shape_passes_wherever_it_may_begin(before: str) -> None:
    """Behind every kind of letter, sign and escape the masks find the same with the sieves as without them."""
    source = random.Random(SEED)
    for prefix, length, alphabet in product(PREFIXES, (16, 24, 36, 40, 64), ALPHABETS):
        body = "".join(source.choices(alphabet, k=length))
        line = encode({"v": 1, "text": before + prefix + body})
        masked = mask_without_sieves(line)
        assert mask(line) == masked, (SEED, line)
        assert masked == line or not is_secret_free(line), (SEED, line)


@pytest.mark.parametrize("name", ["pwd", "passwd", "PASSWORD", "secret", "Token", "API-KEY"])
def test_every_sign_passes_behind_a_name(name: str) -> None:
    """However a name and its value are joined, the masks find the same with the sieves as without them."""
    joints = product(
        ["", "_key", "-TOKEN"], ["", "2", "47"], ["", '"', "'", "`", '\\\\\\"'], ["", " ", "   \t"], ["=", ":", "=>", ":="]
    )
    found = 0
    for joint in joints:
        line = encode({"v": 1, "text": f"x {name}{''.join(joint)} 'hunter22!a1B2c3D4e5'"})
        masked = mask_without_sieves(line)
        assert mask(line) == masked, line
        found += masked != line

    assert found > 300


@pytest.mark.parametrize(
    "text", ["authorization stands for the scope", "curl -s url | jq; sudo -u me", "curl https://example.org"]
)
def test_words_without_a_place_for_a_secret_are_held_back(text: str) -> None:
    """A line that only speaks of authorization or curl is not given to the finders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ctxmgr.log.masking._find_spans", None)
        line = encode({"v": 1, "text": text})
        assert mask(line) is line


def test_an_entry_is_masked_in_its_parts_as_it_is_as_a_whole(tmp_path: Path) -> None:
    """Of 300 entries made of pieces of secrets, whose parts are masked apart, each is as if its whole line had been masked."""
    source = random.Random(SEED)
    changed = 0
    with Journal(tmp_path / "a.jsonl") as log:
        for _ in range(60):
            session, process = _text(source), _text(source)
            recorder = Recorder(log, session=session, process=process)
            for _ in range(5):
                text = _text(source)
                value = source.choice(
                    [text, 4747, None, [text], {"k": text}, {source.choice(NAMES): text}, {text: _text(source)}]
                )
                names = {"agent": _text(source), "action": source.choice(NAMES), "inputType": _text(source)}
                recorder.entry(names["agent"], names["action"], value, input_type=names["inputType"])
                body = unseal((tmp_path / "a.jsonl").read_bytes().splitlines()[-1])[0]
                made = {name: decode(body)[name] for name in ("ts", "id")}
                whole = {"v": 1, "kind": "entry", "session": session, **made, **names, "input": value, "process": process}
                assert body == mask_without_sieves(encode(whole)), (SEED, body)
                changed += body != encode(whole)

    assert changed > 150


def test_ordinary_text_is_held_back() -> None:
    """Nearly all pieces of this project's own programs are held back, and so are all ids."""
    programs = [path.read_text(encoding="utf-8") for path in Path(__file__).parents[2].glob("ctxmgr/detect/*.py")]
    pieces = [text[at : at + 900] for text in programs for at in range(0, len(text), 900)]
    passed: list[bytes] = []

    def note(line: bytes) -> bytes:
        passed.append(line)
        return line

    source = random.Random(SEED)
    ids = [{"v": 1, "id": str(uuid.UUID(int=source.getrandbits(128), version=4)), "ts": "2026-01-22T10:00:00.123456Z"}
           for _ in range(2_000)]  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ctxmgr.log.masking.mask_without_sieves", note)
        for record in ids:
            mask(encode(record))
        assert passed == []
        for piece in pieces:
            mask(encode({"v": 1, "text": piece}))

    assert len(pieces) > 100
    assert len(passed) < len(pieces) / 10
