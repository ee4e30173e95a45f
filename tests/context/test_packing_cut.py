"""The beginning of a text that fits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.context.packing import MARK, cut


@given(text=st.text(st.sampled_from("ab\n"), max_size=60), limit=st.integers(0, 80))
def test_the_longest_beginning_that_fits(text: str, limit: int) -> None:
    """What is kept begins the text and fits with its mark; one line more, or one sign more of the first, would not."""
    kept = cut(text, lambda part: len(part) <= limit)
    room = limit - len(MARK)
    first = text.partition("\n")[0]

    if kept is None:
        assert room <= 0 or not first
        return
    body = kept.removesuffix(MARK)
    assert text.startswith(body)
    assert len(kept) <= limit
    rest = text[len(body) :].partition("\n")
    assert len(body) + len(rest[0]) + 1 > room or not rest[1]
