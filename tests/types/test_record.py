"""Records of the plain shape pass without the models, and never against them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.errors import InvalidInput
from ctxmgr.log.codec import Record
from ctxmgr.types.record import check, is_plain
from ctxmgr.types.record_models import check_whole

_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([10**400, -(2**60)]),
    st.floats(),
    st.sampled_from(["", "x", "ok", "error", "open", "failed", "1", "\ud800"]),
    st.lists(st.text(max_size=2) | st.none(), max_size=2),
    st.dictionaries(st.sampled_from(["type", "message"]), st.none() | st.integers()),
)
_FIELDS = (
    "session", "ts", "id", "agent", "action", "inputType", "process", "turn", "step", "parent", "task", "timeoutMs",
    "durationMs", "status", "error", "entry", "type", "data", "output", "input", "entries", "content", "tags", "author",
    "supersedes", "summary", "reasoning", "hash", "workflow", "outcome", "source", "meta",
)  # fmt: skip
_PLAIN: dict[str, dict[str, Any]] = {
    "entry": {"v": 1, "kind": "entry", "session": "s", "id": "e", "agent": "a", "action": "Read", "status": "ok"},
    "result": {"v": 1, "kind": "result", "session": "s", "entry": "e", "status": "error", "error": {"type": "T"}},
    "event": {"v": 1, "kind": "event", "session": "s", "id": "v", "type": "message", "data": [1]},
    "note": {
        "v": 1,
        "kind": "note",
        "session": "s",
        "id": "n",
        "entries": ["e"],
        "content": "look",
        "tags": ["t"],
        "links": [7],
    },
    "snapshot": {
        "v": 1,
        "kind": "snapshot",
        "session": "s",
        "id": "p",
        "entries": ["e"],
        "summary": "",
        "reasoning": "",
        "hash": "",
    },
    "session": {"v": 1, "kind": "session", "session": "s", "process": "p", "meta": {"title": "t"}, "source": 1},
    "sessionEnd": {"v": 1, "kind": "sessionEnd", "session": "s", "outcome": "failed"},
}


@pytest.mark.parametrize("kind", sorted(_PLAIN))
def test_a_plain_record_needs_no_model(kind: str) -> None:
    """Records of the usual shape are passed without the models, whatever programs and tools write."""
    assert is_plain(_PLAIN[kind])
    assert check(_PLAIN[kind]) is _PLAIN[kind]


@given(
    st.sampled_from(sorted(_PLAIN)),
    st.dictionaries(st.sampled_from(_FIELDS), _VALUES, max_size=4),
    st.lists(st.sampled_from(_FIELDS), max_size=1),
    st.sampled_from([1, 1, 1, 1.0, True, "1", 2, None]),
)
def test_what_passes_at_once_passes_the_models(kind: str, changes: dict[str, Any], without: list[str], version: Any) -> None:
    """Whatever is called plain the models accept, and whatever they refuse is refused, in their words."""
    record = {name: value for name, value in {**_PLAIN[kind], **changes, "v": version}.items() if name not in without}
    refusal = _refusal(check_whole, record)
    assert _refusal(check, record) == refusal
    assert refusal is None or not is_plain(record)


def _refusal(checked: Callable[[Record], Record], record: Record) -> str | None:
    try:
        assert checked(record) is record
    except InvalidInput as error:
        return error.message
    return None


def test_checking_a_plain_record_loads_no_model_library() -> None:
    """Whoever writes plain records never loads pydantic for it."""
    entry = _PLAIN["entry"]
    code = f"import sys; from ctxmgr.types.record import check; check({entry!r}); sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
