"""Secrets that a name, an option or a notation gives away; and what documentation shows, which is none."""

from __future__ import annotations

import base64
import json
import random

import pytest

from ctxmgr.log.codec import encode
from ctxmgr.log.mask_prefilter import is_secret_free
from ctxmgr.log.masking import mask, mask_without_sieves
from tests.log.test_masking import ALNUM, ASSIGNMENTS, SEED, draw, masked_text


@pytest.mark.parametrize("form", ASSIGNMENTS)
def test_an_assigned_secret_is_masked(form: str) -> None:
    """A value that looks like a secret is masked behind a name that says so, in every notation."""
    source = random.Random(f"{SEED}{form}")
    for _ in range(50):
        secret = draw(source, ALNUM, 24)
        assert secret not in masked_text(form.format(secret)), (SEED, form, secret)


@pytest.mark.parametrize("name", ["password", "apiKey", "client_secret", "access_token"])
def test_a_secret_in_a_member_of_the_record_is_masked(name: str) -> None:
    """A member named like a secret loses its whole value, quotes and blanks included."""
    secret = draw(random.Random(SEED), ALNUM, 20) + ("" if "_token" in name or name == "apiKey" else ' "and" more')
    line = json.dumps({"input": {name: secret, "path": "a.py"}}, separators=(",", ":")).encode()

    masked = json.loads(mask(line))["input"]

    assert masked[name].startswith("[masked:")
    assert masked["path"] == "a.py"


@pytest.mark.parametrize("kind", ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
@pytest.mark.parametrize("end", [True, False])
def test_a_private_key_block_is_masked(kind: str, end: bool) -> None:
    """The body of a private key is masked with real and with escaped line ends, and when it was cut short."""
    body = "\n".join(draw(random.Random(SEED + row), ALNUM + "+/", 64) for row in range(12))
    text = f"before\n-----BEGIN {kind}-----\n{body}\n" + (f"-----END {kind}-----\nafter" if end else "")
    for shape in (text, json.dumps(text), json.dumps(json.dumps(text))):
        masked = masked_text(shape)

        assert not any(row in masked for row in body.split("\n"))
        assert "[masked:private-key]" in masked
        assert masked.startswith("before") or masked.startswith(('"before', '"\\"before'))
        assert ("after" in masked) == end


@pytest.mark.parametrize(
    "text",
    [
        r'{"env":"DB_PASSWORD\u003dhunter2abc"}',
        "password:\thunter2abc", "docker login -u me -p hunter2abc ghcr.io", "openssl enc -aes256 -pass pass:hunter2abc -in a",
    ],
)  # fmt: skip
def test_a_password_behind_what_programs_write_is_masked(text: str) -> None:
    """JSON of other programs, terminals, tabs, and programs that are given a password, with the sieves and without them."""
    line = encode({"v": 1, "input": text})

    assert "hunter2abc" not in masked_text(text)
    assert mask(line) == mask_without_sieves(line)
    assert not is_secret_free(line)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ('"client_token": "a1b2c3d4e5f6a1b2c3d4e5f6"', "a1b2c3d4e5f6a1b2c3d4e5f6"),
        ('"authToken": "1eb5ec48-1234-4bcd-8a9b-ee9b906c541e"', "1eb5ec48-1234-4bcd-8a9b-ee9b906c541e"),
        ("https://user:password1@example.org/", "password1"),
        ("Authorization: Bearer a1b2c3d4e5f6a1b2", "a1b2c3d4e5f6a1b2"),
    ],
)
def test_what_looks_like_the_exceptions_is_still_masked(text: str, secret: str) -> None:
    """A request's id is one by its name and its form."""
    assert secret not in masked_text(text)


@pytest.mark.parametrize(
    "text",
    [
        'PASSWORD="My@Example$Password3!",SECRET_HASH=ExampleOfAHash=', '"password": "my-Example-7-password"',
        "DB_PASSWORD=placeholder-value-1", "secret: 'your_sample_secret_42'", 'password: "your-api-key-12"',
        "&X-Amz-Signature=88EXAMPLE1EXAMPLE2EXAMPLE3", '"SecurityToken": "je7MtGbClwBF/2Zp9Utk/h3yCo8nvbEXAMPLEKEY"',
        "`RFC6749#Authorization`: https://tools.ietf.org/html/rfc6749#section-3.1", "Authorization: Bearer mF_9.B5f-4.1JqM",
        'Authorization: "Basic ' + base64.b64encode(b"s6BhdRkqt3:gX1fBat3bV").decode(),
        '"access_token":"2YotnFZFEjr1zCsicMWpAA"',
    ],
)  # fmt: skip
def test_what_documentation_shows_is_kept(text: str) -> None:
    """A value that says itself that it is an example, and one that is published, come back as the same bytes."""
    line = encode({"v": 1, "input": text})

    assert mask_without_sieves(line) is line
    assert mask(line) is line


@pytest.mark.parametrize("word", ["example", "Example", "EXAMPLE", "placeholder", "sample"])
@pytest.mark.parametrize(
    "form",
    [
        '~_password = "{}"', "PASSWORD={}  # ~", "https://~:{}@~.com/~", "mysql -h ~.com -u ~ -p{} ~",
        "Authorization: Bearer {}, ~", 'password="{}~"', 'password="~{}"', 'secret: "my-~-{}"',
        "client_secret=~.{}.~", 'password="~-{}-~-password"',
    ],
)  # fmt: skip
def test_a_secret_beside_a_word_of_examples_is_masked(form: str, word: str) -> None:
    """Neither around a secret nor inside of it does such a word help: it counts where nothing to guard is left besides it."""
    source = random.Random(SEED)
    for length in (8, 16, 24):
        secret = "4z7" + "".join(source.choices("abcdefghijkmnopqrstuvwxyz0123456789", k=length - 3))
        if "Bearer" in form and length < 16:
            continue

        assert secret not in masked_text(form.replace("~", word).format(secret)), (SEED, form, secret)


def test_a_word_of_examples_hides_no_signs_and_no_signature() -> None:
    """Signs in a row are a secret, a signature stays one with the word added, and so does what a published value begins."""
    assert "!#@" not in masked_text('password="example!#@^&+=*!"')
    signature, token = "a1b2c3d4" * 8, "mF_9.B5f-4.1JqM"

    assert signature not in masked_text(f"&X-Amz-Signature=EXAMPLE{signature}EXAMPLE")
    assert "7d2" not in masked_text(f"Authorization: Bearer {token}7d2")
