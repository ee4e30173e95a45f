"""What the content of single records tells: here, whose words a text begins with."""

from __future__ import annotations

import pytest

from ctxmgr.importers.claude_code.events import text_origin
from tests.growth import grows_linearly

REMINDER = "<system-reminder>x</system-reminder>"


@pytest.mark.parametrize(
    ("words", "origin", "said"),
    [
        ("Do it", None, "Do it"),
        (" Do it ", None, " Do it "),
        (f"{REMINDER}\n{REMINDER} Do it \n", None, "Do it"),
        (f"{REMINDER}{REMINDER}\n ", "system-reminder", f"{REMINDER}{REMINDER}\n "),
        (f"{REMINDER}<tick>", "tick", f"{REMINDER}<tick>"),
        (f"{REMINDER}<system-reminder>half", "system-reminder", f"{REMINDER}<system-reminder>half"),
    ],
)
def test_reminders_before_a_persons_words_are_left_out(words: str, origin: str | None, said: str) -> None:
    """A text of reminders alone is the program's."""
    assert text_origin(words) == (origin, said)


@pytest.mark.cases(1)
@pytest.mark.parametrize("end", ["", "Do it", "<tick>"])
def test_reminders_cost_linear_time(end: str) -> None:
    """There may be thousands before the words."""
    assert grows_linearly(lambda size: text_origin(REMINDER * (size // len(REMINDER)) + end), 500_000)
