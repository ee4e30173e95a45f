"""What a guarded run records, whatever framework it is of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxmgr.integrations.guarded_run import GuardedRun


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Do it", "Do it"),
        ([{"type": "input_text", "text": "Do it"}, {"type": "input_image", "image_url": "data:x"}], "Do it"),
        ([{"type": "text", "text": "Do"}, "it"], "Do\nit"),
        ([{"type": "input_image", "image_url": "data:x"}], ""),
        (7, "7"),
    ],
)
def test_blocks_of_content_are_recorded_as_their_words(said: object, text: str, tmp_path: Path) -> None:
    """A person's message may be a list of blocks; what is recorded is what the person wrote."""
    path = tmp_path / "run.jsonl"
    with GuardedRun(path) as run:
        run.hear([said])
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [row["data"]["text"] for row in records if row.get("type") == "user_message"] == [text]
