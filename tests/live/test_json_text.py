"""Items are put into a JSON text of any form, and the rest of it stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.live.json_text import insert_items

KEYS = st.text(alphabet='ab"\\{}[],:/ \té', max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
WRITERS: list[Callable[[Any], str]] = [
    json.dumps,
    lambda value: json.dumps(value, indent="\t", ensure_ascii=False),
    lambda value: json.dumps(value, indent=3).replace("\n", "\r\n"),
]


@given(st.dictionaries(KEYS.filter(lambda key: key != "hooks"), VALUES, max_size=4), st.sampled_from(WRITERS))
def test_any_settings_get_the_item_and_keep_the_rest(value: dict[str, Any], write: Callable[[Any], str]) -> None:
    """Whatever JSON it is, the result is that value with the item in its list."""
    after = insert_items(write(value), [(("hooks", "E"), {"x": 1}), (("hooks", "E"), {"y": 2})], comments=False)

    assert json.loads(after) == {**value, "hooks": {"E": [{"x": 1}, {"y": 2}]}}
