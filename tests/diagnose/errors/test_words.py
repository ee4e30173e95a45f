"""What an error offers may be told as a way out; what does harm may not."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.errors.words import offers_of


def test_what_an_error_offers_is_found() -> None:
    """A command in quotes behind a word of advice is an offer."""
    assert offers_of("missing packages: run 'npm ci'") == ["npm ci"]


@pytest.mark.parametrize(
    "command",
    [
        "git reset --hard",
        "git clean -f",
        "git push --no-verify",
        "git push --force",
        "sudo make install",
        "rm -rf build",
        "a | b",
    ],
)
def test_what_does_harm_is_no_offer(command: str) -> None:
    """Recorded text may name such a command; nothing of ours passes it on, whether its option or its program does the harm."""
    assert offers_of(f"could not go on: run '{command}'") == []
