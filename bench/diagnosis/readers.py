"""Measure what a reader makes of a prompt: people or language models name cause and next step, somebody else grades them.

    python -m bench.diagnosis.readers write ARCHIVE|LOGS FOLDER   one file of texts for each way to read, and the key
    python -m bench.diagnosis.readers mix FOLDER                  the readers' answers beside the truth, in random order
    python -m bench.diagnosis.readers score FOLDER                the grades by way to read

A way to read is `early` (the first 900 characters of the prompt), `whole` (the prompt), or `end` (as many characters of the
history's end as the prompt has). Each reader gets one file alone and writes ``FOLDER/answers/WAY.json``, an object of
``{cause, next}`` by case number. The expectation of each log needs ``truth``, an object of cause and next step in words. The
grader does not know the ways and writes ``FOLDER/grades.json``: for each case ``[cause, next]`` of each answer, 2 for right,
1 for partly right or one look away, 0 for wrong.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from pathlib import Path
from typing import Any

from bench.diagnosis.score import SHOWN, unpacked
from bench.recovery.lost import workspace_of
from bench.recovery.world import told
from ctxmgr.types.operations import RecoverRequest

WAYS = ("early", "whole", "end")
_SEED = 7
_RIGHT = 2


def write(logs: Path, folder: Path) -> None:
    """Write a file of texts for each way to read, and ``key.json``, the truth by case number."""
    folder.mkdir(parents=True, exist_ok=True)
    texts: dict[str, list[str]] = {way: [] for way in WAYS}
    key: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        found = sorted((unpacked(logs, Path(temporary)) if logs.is_file() else logs).glob("*.jsonl"))
        for number, log in enumerate(random.Random(_SEED).sample(found, len(found)), 1):
            records = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
            with workspace_of(records) as workspace:
                prompt = workspace.recover(RecoverRequest(plan=True, force=True)).continuation.prompt
            end = "\n".join(map(told, records))[-len(prompt) :]
            for way, text in zip(WAYS, (prompt[:SHOWN], prompt, end), strict=True):
                texts[way].append(f"=== CASE {number} ===\n{text}\n")
            key[str(number)] = {"name": log.stem, **json.loads(log.with_suffix(".json").read_text(encoding="utf-8"))["truth"]}
    for way in WAYS:
        (folder / f"{way}.txt").write_text("\n".join(texts[way]), encoding="utf-8")
    (folder / "key.json").write_text(json.dumps(key, ensure_ascii=False, indent=1), encoding="utf-8")


def mix(folder: Path) -> None:
    """Write ``to_grade.txt``: the truth of each case, and the answers in an order that tells nothing of the ways."""
    key = json.loads((folder / "key.json").read_text(encoding="utf-8"))
    answers = {way: json.loads((folder / "answers" / f"{way}.json").read_text(encoding="utf-8")) for way in WAYS}
    with (folder / "to_grade.txt").open("w", encoding="utf-8") as file:
        for number, truth in key.items():
            file.write(f"=== CASE {number} ===\nTRUE CAUSE: {truth['cause']}\nTRUE NEXT STEP: {truth['next']}\n")
            for place, way in enumerate(_order(number), 1):
                answer = answers[way][number]
                file.write(f"ANSWER {place}\n  cause: {answer['cause']}\n  next: {answer['next']}\n")


def score(folder: Path) -> str:
    """Return a table of the grades: cause right, next step right, both, and those that lead on at least."""
    grades = json.loads((folder / "grades.json").read_text(encoding="utf-8"))
    rows = [
        "| read | cases | cause | next step | both | right cause, right step or one look away |",
        "|---|---|---|---|---|---|",
    ]
    for way in WAYS:
        each = [row[_order(number).index(way)] for number, row in grades.items()]
        counts = (
            sum(cause == _RIGHT for cause, _ in each), sum(step == _RIGHT for _, step in each),
            sum(cause == step == _RIGHT for cause, step in each), sum(cause == _RIGHT and step > 0 for cause, step in each),
        )  # fmt: skip
        rows.append(f"| {way} | {len(each)} | {' | '.join(map(str, counts))} |")
    return "\n".join(rows)


def _order(number: str) -> list[str]:
    return random.Random(f"{_SEED}/{number}").sample(WAYS, len(WAYS))


def main() -> None:
    """Do one of the three parts."""
    parser = argparse.ArgumentParser(description="Measure what readers make of prompts.")
    parts = parser.add_subparsers(dest="part", required=True)
    writer = parts.add_parser("write", help="write the texts to read")
    writer.add_argument("logs", type=Path)
    mixer, scorer = (
        parts.add_parser("mix", help="write what is to be graded"),
        parts.add_parser("score", help="print the table"),
    )
    for each in (writer, mixer, scorer):
        each.add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.part == "write":
        write(options.logs, options.folder)
    elif options.part == "mix":
        mix(options.folder)
    else:
        print(score(options.folder))


if __name__ == "__main__":
    main()
