"""Rank lines of a record by how likely they name what an answer about failing calls needs.

The ranker is a sum of small decision trees (gradient boosting: Friedman 2001) over a few simple features. The trees are in
``line_ranker.json``. ``python -m bench.diagnosis.train`` learns them from logs of stuck agents whose answers are known.
"""

from __future__ import annotations

import json
from functools import cache
from math import exp
from typing import NamedTuple, cast

from ctxmgr.base.paths import packaged_text

_TREES = "line_ranker.json"


class LineFeatures(NamedTuple):
    """The features of a line. Weights of shared words are higher for rarer words.

    Attributes:
        characters, words, letters: its length, its words of letters, and the share of characters in them.
        has_digit, has_path, has_colon: whether it has a digit, a slash, a name followed by ``:`` or ``=``.
        new_names: names in it that no call of the agent has used and the failing calls' output lacks.
        task_names, task_words: names and words that it shares with the task.
        user_names: names that a person has mentioned and the calls lack.
        error_weight, call_weight: the weights of words that it shares with the error and with the calls.
        position, lines: its place in its record, and the lines of the record.
        record_error_weight, record_call_weight: the same weights for the whole record with its request.
        age, relative_age: the number of newer records, and its share of all records.
        by_user, by_agent: whether a person or an agent said it.
        by_other: whether it is by another agent than the stuck one, or by a person.
        is_document: whether its record is a document that explains.
    """

    characters: int
    words: int
    letters: float
    has_digit: bool
    has_path: bool
    has_colon: bool
    new_names: int
    task_names: int
    task_words: int
    user_names: int
    error_weight: float
    call_weight: float
    position: int
    lines: int
    record_error_weight: float
    record_call_weight: float
    age: int
    relative_age: float
    by_user: bool
    by_agent: bool
    by_other: bool
    is_document: bool


class Node(NamedTuple):
    """A question of a tree: ``low`` follows if the feature is at most the threshold, ``high`` if it is more."""

    feature: int
    threshold: float
    low: Node | float
    high: Node | float


def relevance(features: LineFeatures) -> float:
    """Return the estimated probability, from 0 to 1, that a line names what the answer needs."""
    total = 0.0
    for tree in load_trees():
        while isinstance(tree, Node):
            tree = tree.low if features[tree.feature] <= tree.threshold else tree.high
        total += tree
    return 1.0 / (1.0 + exp(-total))


@cache
def load_trees() -> tuple[Node | float, ...]:
    """Return the trees of the ranker.

    Raises:
        ValueError: the file was made for other features than `LineFeatures`.
    """
    data = json.loads(packaged_text(__file__, _TREES))
    if data["features"] != list(LineFeatures._fields):
        raise ValueError("line_ranker.json was made for other features; run python -m bench.diagnosis.train")
    return tuple(_read_tree(tree) for tree in data["trees"])


def _read_tree(node: object) -> Node | float:
    if isinstance(node, list):
        feature, threshold, low, high = cast("list[object]", node)
        return Node(cast("int", feature), float(cast("float", threshold)), _read_tree(low), _read_tree(high))
    return float(cast("float", node))
