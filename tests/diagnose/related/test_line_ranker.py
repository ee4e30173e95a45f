"""The ranker of lines: its trees, its features, and what it prefers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isfinite
from pathlib import Path

import pytest

from ctxmgr.diagnose.related import line_ranker
from ctxmgr.diagnose.related.line_ranker import LineFeatures, Node, load_trees, relevance
from ctxmgr.diagnose.related.related_lines import RecordSearch, find_related_lines
from tests.diagnose.build import Said, bash, evidence, failed, read

PLAIN = LineFeatures._make([20, 3, 0.8, *[0] * 9, 0, 10, 0.0, 0.0, 5, 0.5, *[0] * 4])


def nodes(tree: Node | float) -> Iterator[Node | float]:
    """Yield a tree's nodes and leaves."""
    yield tree
    if isinstance(tree, Node):
        yield from nodes(tree.low)
        yield from nodes(tree.high)


def test_the_trees_ask_for_known_features() -> None:
    """Every node asks for a feature that exists, and every leaf is a number."""
    every = [node for tree in load_trees() for node in nodes(tree)]

    assert len(every) > len(load_trees())
    assert all(0 <= node.feature < len(LineFeatures._fields) if isinstance(node, Node) else isfinite(node) for node in every)


def test_a_ranker_for_other_features_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever changes the features must train anew; the message says how."""
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"features": ["length"], "trees": []}))
    monkeypatch.setattr(line_ranker, "_TREES", str(other))
    load_trees.cache_clear()
    with pytest.raises(ValueError, match=r"bench\.diagnosis\.train"):
        load_trees()
    load_trees.cache_clear()


def test_a_line_with_rare_words_of_the_calls_and_a_new_name_is_more_relevant() -> None:
    """The estimate is a probability, and grows with what a line shares and adds."""
    telling = PLAIN._replace(characters=80, words=9, new_names=2, call_weight=1.5, error_weight=0.5, record_call_weight=2.0)

    assert 0.0 < relevance(PLAIN) < relevance(telling) < 1.0


def test_equal_lines_are_chosen_once() -> None:
    """What three records say alike is one line; the room is for others."""
    note = "the queue loom-west takes jobs of the kind weave"
    known = evidence(
        *[bash(f"cat notes-{number}.md", note) for number in range(3)],
        read("docs/spindle.md", "spindle weave needs --queue NAME"),
        *[failed("spindle run weave", "spindle: weave rejected, code 71")] * 3,
    )
    lines = [line.text for _, group in RecordSearch(known, known.failing_calls).choose_lines() for line in group]

    assert lines.count(note) == 1
    assert len(lines) == len(set(lines))


def test_the_message_of_another_agent_is_quoted_and_named_as_said() -> None:
    """An agent's words are evidence like an output: in a fence, with who said them and when."""
    told = Said("The kind weave is for the queue loom-west since Monday.", "dyer")
    known = evidence(Said("Weave it."), told, *[failed("spindle run weave", "spindle: weave rejected, code 71")] * 3)
    found = next(each for each in find_related_lines(known, known.failing_calls) if each.entry is None and not each.by_user)

    assert found.source == "what dyer said at 10:00"
    assert found.quote is not None
    assert found.quote.key == found.key
    assert "loom-west" in found.quote.text
