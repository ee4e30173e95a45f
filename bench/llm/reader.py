"""Let a small model choose the next step of a stuck run that it reads: the prompt of a recovery, the history's end, or nothing.

    python -m bench.llm.reader [--logs N] [--seed N] [--threads N] [--folder DIR]

The runs are those of the archives in ``fixtures/diagnose`` that may be looked at. Of four steps one is what the run's
expectation names (``next``), the others are those of runs of other classes. The model writes nothing: a step is chosen by the
likelihood of its words after what was read, per token. ``raised`` chooses by how much the reading raised it above that after
nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from bench.diagnosis.score import unpacked
from bench.llm.packages import default_folder
from bench.llm.server import Server, running, set_up
from bench.recovery.lost import workspace_of
from bench.recovery.measures import Share
from bench.recovery.world import told
from ctxmgr.log.codec import Record
from ctxmgr.types.operations import RecoverRequest

CHARS = 3_000
"""What is read at most: that much fits into a prompt."""
_FIXTURES = Path(__file__).parents[2] / "fixtures" / "diagnose"
_LIKELIEST = 4_000
"""So many tokens are told with their likelihood; one that is not among them counts as the last of them."""
_SECONDS = 120.0
_ASKED = (
    "<|im_start|>user\n{read}\n\nAn agent is stuck. Which command, name or value does it need for its next step?<|im_end|>\n"
)
_ANSWERED = "<|im_start|>assistant\nFor its next step it needs "


class Log(NamedTuple):
    """A stuck run: its name, its class, the words of its right next step, and its records."""

    name: str
    kind: str
    step: str
    records: list[Record]


def logs(folder: Path) -> Iterator[Log]:
    """Yield the runs of the archives that have a class and a next step."""
    for archive in sorted(_FIXTURES.glob("*.jsonl.gz")):
        if "unseen" in archive.name:
            continue
        place = folder / archive.stem
        place.mkdir()
        for path in sorted(unpacked(archive, place).glob("*.json")):
            expected: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if expected["kind"] and expected["next"]:
                words = [word if isinstance(word, str) else word[0] for word in expected["next"]]
                lines = path.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
                yield Log(path.stem, expected["kind"][0], " ".join(words), [json.loads(line) for line in lines])


def readings(log: Log) -> dict[str, str]:
    """Return what can be read of a run."""
    with workspace_of(log.records) as workspace:
        prompt = workspace.recover(RecoverRequest(plan=True, force=True)).continuation.prompt
    return {"nothing": "", "end of the history": "\n".join(map(told, log.records))[-CHARS:], "prompt": prompt[:CHARS]}


def likelihood(server: Server, read: str, step: str) -> float:
    """Return the mean logarithm of the likelihood of a step's tokens after a text."""
    before = _tokens(server, _ASKED.format(read=read) + _ANSWERED)
    tokens = _tokens(server, step)
    return sum(_next(server, before + tokens[:place], token) for place, token in enumerate(tokens)) / len(tokens)


def _next(server: Server, before: list[int], token: int) -> float:
    asked = {"prompt": before, "n_predict": 1, "n_probs": _LIKELIEST, "temperature": 0, "cache_prompt": True}
    found = _ask(server, "completion", asked)["completion_probabilities"][0]["top_logprobs"]
    told_of = {each["id"]: max(-100.0, each["logprob"] or -100.0) for each in found}
    return float(told_of.get(token, min(told_of.values())))


def _tokens(server: Server, text: str) -> list[int]:
    return cast("list[int]", _ask(server, "tokenize", {"content": text, "parse_special": True})["tokens"])


def _ask(server: Server, what: str, body: dict[str, Any]) -> dict[str, Any]:
    address = f"{server.base_url.removesuffix('/v1')}/{what}"
    request = urllib.request.Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=_SECONDS) as answer:
        return cast("dict[str, Any]", json.load(answer))


def choices(server: Server, log: Log, steps: Sequence[str]) -> dict[str, bool]:
    """Return for each way to read and choose whether the first of some steps was chosen."""
    scores = {name: [likelihood(server, read, step) for step in steps] for name, read in readings(log).items()}
    right = {name: _first(found) for name, found in scores.items()}
    for name in [name for name in scores if name != "nothing"]:
        right[f"{name}, raised"] = _first(
            [after - before for after, before in zip(scores[name], scores["nothing"], strict=True)]
        )
    return right


def _first(found: Sequence[float]) -> bool:
    return not math.isnan(found[0]) and found[0] > max(found[1:])


def main() -> int:
    """Set up, start, ask, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--logs", type=int, default=40, help="how many are drawn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=default_folder(), help="where model and server are kept")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="ctxmgr-bench-") as folder:
        found = list(logs(Path(folder)))
    chosen = rng.sample(found, min(options.logs, len(found)))
    right: dict[str, list[bool]] = defaultdict(list)
    binary, model = set_up(options.folder)
    with running(binary, model, threads=options.threads) as server:
        for log in chosen:
            others = rng.sample([other.step for other in found if other.kind != log.kind and other.step != log.step], 3)
            for name, was in choices(server, log, [log.step, *others]).items():
                right[name].append(was)
            sys.stderr.write(f"{log.name}: {', '.join(name for name, each in right.items() if each[-1])}\n")
    sys.stdout.write(
        f"{len(chosen)} of {len(found)} runs, one step of four; by chance 25 %.\n\n| read | right |\n| --- | --- |\n"
    )
    sys.stdout.writelines(f"| {name} | {Share.where(each)} |\n" for name, each in right.items())
    return 0


if __name__ == "__main__":
    sys.exit(main())
