"""Which words of a record are names."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.related.related_lines import names_in


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("see https://npm.int.example/simple/ for it", ["npm.int.example/simple"]),
        ("-rw-r--r-- 1 dev dev 134 Nov 3 09:12 model.onnx", ["model.onnx"]),
        ("the shed is open", []),
        ("allowed: PUT; use --depth 3", ["PUT", "--depth"]),
    ],
    ids=["address", "listing", "words", "capitals"],
)
def test_names_are_what_no_sentence_is_made_of(text: str, names: list[str]) -> None:
    """Addresses lose their scheme; numbers, times and modes are no names."""
    assert names_in(text) == names
