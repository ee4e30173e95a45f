"""What a prompt has shown is not shown again, whatever a client puts around it."""

from __future__ import annotations

import pytest

from ctxmgr.recover.evidence.quotes import ShownText


def test_a_quote_is_not_shown_again_in_the_wrapper_of_a_client() -> None:
    """What a client puts around an output makes it no other text."""
    wrapped = "Exit code: 0\nWall time: 0.0 seconds\nOutput:\nset -e\nmake all"
    shown = ShownText()
    shown.add("Your `cat a.sh` at 08:08:\n```\nset -e\n```")
    assert shown.without_shown(wrapped) == "set -e\nmake all"
    shown.add("Your `cat a.sh` at 08:08:\n```\nmake all\n```")
    assert not shown.without_shown(wrapped)


def test_a_line_that_was_shown_becomes_a_mark() -> None:
    """Long lines that were shown are left out, together one mark; with too little news nothing is left of a text."""
    first, second = "the service listens on port 8471 of the host", "and its configuration lies in deploy/service.toml"
    shown = ShownText()
    shown.add(f"{first}\n{second}")

    assert shown.without_shown(f"   7\t{first}\n> {second}\nnobody has looked at its log") == "…\nnobody has looked at its log"
    assert shown.without_shown(f"{first}\n{second}\nok") == ""
    assert shown.without_shown(second) == ""


@pytest.mark.parametrize("text", ["", "\n\n", " ", "…", "\x00\x1b[31m", "> " * 50, "\ud83d"])
def test_odd_text_is_left_out_or_shown(text: str) -> None:
    """No text makes it fail, and what was shown is never shown again."""
    shown = ShownText()
    shown.add(shown.without_shown(text))

    assert shown.without_shown(text) == ""
