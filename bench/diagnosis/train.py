"""Train the ranker of related lines on logs whose answers are known, and write `ctxmgr/diagnose/related/line_ranker.json`.

python -m bench.diagnosis.train [--check]          (needs lightgbm; --check only prints how well it does on unseen logs)

A line is relevant if it holds a word of the expected answer that neither the failing calls nor their output have. The sets
with "unseen" in their name are never trained on. Each figure is of logs that the ranker has not seen.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from bench.diagnosis.score import is_named, read, unpacked
from ctxmgr.diagnose.related.line_ranker import LineFeatures
from ctxmgr.diagnose.related.related_lines import RecordSearch

FIXTURES = Path(__file__).parents[2] / "fixtures" / "diagnose"
TARGET = Path(__file__).parents[2] / "ctxmgr" / "diagnose" / "related" / "line_ranker.json"
ROOM, MOST_RECORDS, SOURCE = 420, 4, 50
"""Characters of quotes in which the words must stand, the records that may be quoted, and the characters of a source."""
TREES, LEAVES, LEARNING_RATE, LEAST_LINES = 100, 8, 0.05, 40
SEEDS, FOLDS = 3, 5


class Example(NamedTuple):
    """The lines of a log, their records, and the expected items that each names; ``items``: how many there are."""

    features: list[LineFeatures]
    texts: list[str]
    records: list[int]
    named: list[set[int]]
    items: int

    def rows(self) -> list[list[float]]:
        """Return the features of each line as numbers."""
        return [list(map(float, line)) for line in self.features]


def examples(*, unseen: bool) -> list[Example]:
    """Return an example for each log of the sets of strangers in which the answer needs another record."""
    archives = sorted(each for each in FIXTURES.glob("strangers*.jsonl.gz") if ("unseen" in each.name) is unseen)
    found: list[Example | None] = []
    for archive in archives:
        with tempfile.TemporaryDirectory() as folder:
            found += map(_example, sorted(unpacked(archive, Path(folder)).glob("*.jsonl")))
    return [each for each in found if each is not None]


def _example(log: Path) -> Example | None:
    expected: dict[str, Any] = json.loads(log.with_suffix(".json").read_text(encoding="utf-8"))
    evidence = read(log)
    steps = evidence.failing_calls or evidence.repeated_calls or evidence.loop[-1:]
    if not steps:
        return None
    search = RecordSearch(evidence, steps)
    known = " ".join(search.known.split()).casefold()
    items = [item for item in [*expected["cause"], *expected["next"]] if not is_named(known, item)]
    lines = search.candidates()
    if not items or not lines:
        return None
    texts = [" ".join(line.text.split()).casefold() for line in lines]
    return Example(
        [line.features for line in lines], texts, [line.record.number for line in lines],
        [{number for number, item in enumerate(items) if is_named(text, item)} for text in texts], len(items),
    )  # fmt: skip


def fit(known: Sequence[Example]) -> Any:
    """Return a lightgbm booster trained on examples. The same examples give the same booster."""
    lightgbm, numpy = import_module("lightgbm"), import_module("numpy")
    rows = [row for each in known for row in each.rows()]
    labels = [1.0 if named else 0.0 for each in known for named in each.named]
    weights = [1.0 + 0.7 * max(len(named) - 1, 0) for each in known for named in each.named]
    settings = {
        "objective": "binary", "num_leaves": LEAVES, "learning_rate": LEARNING_RATE, "min_data_in_leaf": LEAST_LINES,
        "lambda_l2": 5.0, "verbose": -1, "deterministic": True, "force_row_wise": True, "num_threads": 1,
    }  # fmt: skip
    return lightgbm.train(
        settings, lightgbm.Dataset(numpy.array(rows), numpy.array(labels), weight=numpy.array(weights)), TREES
    )


def covered(example: Example, scores: Sequence[float]) -> int:
    """Return how many of the expected items stand in the first lines that fit, by their scores."""
    room, seen, found, told = ROOM, set[int](), set[int](), set[str]()
    for place in sorted(range(len(scores)), key=lambda place: -scores[place]):
        if example.texts[place] in told:
            continue
        told.add(example.texts[place])
        record = example.records[place]
        cost = len(example.texts[place]) + 1 + (0 if record in seen else SOURCE)
        if cost <= room and (record in seen or len(seen) < MOST_RECORDS):
            room -= cost
            seen.add(record)
            found |= example.named[place]
    return len(found)


def score(known: Sequence[Example], booster: Any) -> str:
    """Return the figures of examples as text: items named, and logs with all of theirs named."""
    found = [covered(each, booster.predict(each.rows())) for each in known]
    whole = sum(count == each.items for count, each in zip(found, known, strict=True))
    best = sum(covered(each, [float(len(named)) for named in each.named]) == each.items for each in known)
    items = sum(each.items for each in known)
    return f"items {sum(found)} of {items}, logs {whole} of {len(known)} (with perfect scores {best})"


def export(booster: Any) -> dict[str, Any]:
    """Return a booster as JSON: a leaf is a number, a node [feature, threshold, low, high]."""

    def node(tree: dict[str, Any]) -> Any:
        if "leaf_value" in tree:
            return round(tree["leaf_value"], 4)
        assert tree["decision_type"] == "<="
        return [tree["split_feature"], float(f"{tree['threshold']:.6g}"), node(tree["left_child"]), node(tree["right_child"])]

    return {
        "features": list(LineFeatures._fields),
        "trees": [node(tree["tree_structure"]) for tree in booster.dump_model()["tree_info"]],
    }


def _reset_outdated_ranker() -> None:
    """Write a ranker without trees if the present one has other features. It is asked while logs are read."""
    names = list(LineFeatures._fields)
    if not TARGET.exists() or json.loads(TARGET.read_text(encoding="utf-8"))["features"] != names:
        TARGET.write_text(json.dumps({"features": names, "trees": []}), encoding="utf-8")


def main() -> None:
    """Print the figures, and write the ranker unless only they are wanted."""
    parser = argparse.ArgumentParser(description="Train the ranker of related lines.")
    parser.add_argument("--check", action="store_true", help="print the figures and write nothing")
    arguments = parser.parse_args()
    _reset_outdated_ranker()
    known = examples(unseen=False)
    for seed in range(SEEDS):
        order = random.Random(seed).sample(known, len(known))
        folds = [(order[part::FOLDS], [e for n, e in enumerate(order) if n % FOLDS != part]) for part in range(FOLDS)]
        print(f"held back, seed {seed}:", *(score(test, fit(train)) for test, train in folds), sep="\n  ")
    booster = fit(known)
    print(f"unseen sets: {score(examples(unseen=True), booster)}")
    if not arguments.check:
        data = export(booster)
        lines = ",\n".join(f"  {json.dumps(tree, separators=(',', ':'))}" for tree in data["trees"])
        names = json.dumps(data["features"])
        TARGET.write_text(f'{{"features": {names},\n "trees": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
