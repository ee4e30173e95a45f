"""What a caller tells of a task: JSON or YAML, small, a map, and nothing in it that could blow up."""

from __future__ import annotations

import pytest

from ctxmgr.context.task_files import MOST_BYTES, read_task_context
from ctxmgr.errors import InvalidInput


def test_json_and_yaml() -> None:
    """Both give the same plain map; dates become text, keys that are no text become some."""
    told = {"title": "Parser", "n": 1.5, "parts": [{"x": None}], "done": False}
    as_yaml = b"\xef\xbb\xbftitle: Parser\nn: 1.5\nparts:\n- {x: null}\ndone: false\n"

    assert read_task_context(b' {"title":"Parser","n":1.5,"parts":[{"x":null}],"done":false} ', "f") == told
    assert read_task_context(as_yaml, "f") == told
    assert read_task_context(b"due: 2026-01-31\n1: one\n", "f") == {"due": "2026-01-31", "1": "one"}


BOMB = b"a: &a [x, x, x, x]\n" + b"".join(b"k%d: &k%d [*a, *a]\n" % (number, number) for number in range(9))
BAD = {
    "empty": b"", "a list": b"[1]", "a text": b"hello", "broken": b"{", "tabs": b"a:\n\t- b", "twice": b"a: 1\na: 2\n",
    "a bomb": BOMB, "deep": b"a: " + b"[" * 60 + b"]" * 60, "very deep": b'{"a":' * 5_000, "no text": b"\xff\xfe\0",
    "two documents": b"a: 1\n---\nb: 2\n", "a class": b"!!python/object/apply:os.system [ls]", "NaN": b"[" * 300,
    "too large": b"a: " + b"x" * MOST_BYTES,
}  # fmt: skip


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_files_that_tell_nothing(content: bytes) -> None:
    """What is no map, broken, too large, too deep, refers to itself or names code is refused, never executed."""
    with pytest.raises(InvalidInput):
        read_task_context(content, "task.yaml")
