"""A line without any word that a secret begins with is passed without the patterns, and a secret never is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ctxmgr.log import mask_prefilter
from ctxmgr.log.codec import encode
from ctxmgr.log.masking import mask_without_sieves

SECRET = "ghp_" + "a1B2" * 9
RUN = """
import sys
from ctxmgr.log.mask_prefilter import mask
lines = [line.encode() for line in sys.argv[1:]]
sys.stdout.write("\\n".join(mask(line).decode() for line in lines))
sys.stderr.write(str("ctxmgr.log.masking" in sys.modules))
"""


def _masked(*lines: str) -> tuple[list[str], bool]:
    """Return what a new process makes of lines, and whether it has loaded the patterns."""
    ran = subprocess.run([sys.executable, "-c", RUN, *lines], capture_output=True, text=True, check=True)
    return ran.stdout.split("\n"), ran.stderr == "True"


def test_ordinary_lines_load_no_patterns() -> None:
    """What hooks record mostly, counts of tokens and other keys included, is passed as it is."""
    lines = ['{"input":{"command":"ls -la risk-free"}}', '{"usage":{"inputTokens":3}}', '{"key":"monkey","secretary":1}']

    assert _masked(*lines) == (lines, False)


def test_the_first_secret_loads_the_patterns() -> None:
    """A secret among the first lines is masked, and so is one behind a line with it."""
    line = f'{{"a":"{SECRET}"}}'

    assert _masked('{"a":1}', line, line) == (['{"a":1}', *['{"a":"ghp_[masked:github]"}'] * 2], True)


def test_many_lines_load_the_patterns() -> None:
    """Whoever masks many lines gets what is quicker for many."""
    assert _masked(*['{"a":1}'] * 60) == (['{"a":1}'] * 60, True)


@pytest.mark.parametrize("text", [
    "token=abcdefgh12345678", "sk-abcdefghijsk-a1b2c3d4e5f6", "xoxoxb-1234567890abcdef1234", "apikeykey=", "api key",
    "tokentoken: 'a1b2c3d4e5f6g7'", "https://u:pw1@host",
])  # fmt: skip
def test_places_that_overlap_are_all_looked_at(text: str) -> None:
    """Where one beginning stands inside another both count."""
    line = encode({"v": 1, "text": text})

    assert mask_without_sieves(line) == line or not mask_prefilter.is_secret_free(line)


def test_most_ordinary_text_is_free() -> None:
    """Of the project's own programs most pieces are passed without the patterns."""
    programs = [path.read_text(encoding="utf-8") for path in Path(__file__).parents[2].glob("ctxmgr/detect/*.py")]
    pieces = [encode({"v": 1, "text": text[at : at + 900]}) for text in programs for at in range(0, len(text), 900)]

    assert sum(map(mask_prefilter.is_secret_free, pieces)) > len(pieces) * 0.9
