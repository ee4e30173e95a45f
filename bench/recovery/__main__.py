"""Measure recovery in a simulated world, where stuck agents go on if the help they get is right.

    python -m bench.recovery [--set first|second|all] [--seeds N] [--family NAME] [--policy NAME] [--show-failures]
                             [--write FILE]

A set is a folder beside this file whose ``__init__`` holds ``FAMILIES: dict[str, Family]``. The agents are scripts; the
families are listed in the report. The same seeds give the same report.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.recovery import measures
from bench.recovery.case import Case, Family
from bench.recovery.policies import POLICIES, PRODUCT
from bench.recovery.world import ATTEMPTS, WINDOW, Played, play
from ctxmgr import __version__

SEEDS = 20
_NAMES = {
    "first": "First set: the rules may be tuned on it",
    "second": "Second set: written without knowing the rules",
    "third": "Third set: rows of real runs",
}
_EXCERPT = 1_500


def sets() -> list[str]:
    """Return the names of the sets that are there."""
    return sorted(path.parent.name for path in Path(__file__).parent.glob("*/__init__.py"))


def families(name: str) -> Mapping[str, Family]:
    """Return the families of a set."""
    found: Mapping[str, Family] = importlib.import_module(f"bench.recovery.{name}").FAMILIES
    return found


def cases(chosen: Mapping[str, Family], seeds: int) -> Iterator[Case]:
    """Yield every case of some families."""
    for name, family in chosen.items():
        for seed in range(seeds):
            yield family(random.Random(f"{name}/{seed}"), seed)


def main() -> int:
    """Play all cases under all policies; print what came of it, and write it where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--set", default="first", choices=[*sets(), "all"], help="which families")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"cases for each family ({SEEDS})")
    parser.add_argument("--family", action="append", default=[], help="only this one; may be repeated")
    parser.add_argument("--policy", action="append", default=[], choices=list(POLICIES), help="only this one; may be repeated")
    parser.add_argument("--show-failures", action="store_true", help="show each case that the product did not free at first")
    parser.add_argument("--write", type=Path, help="file for the report")
    options = parser.parse_args()
    lines = ["# Recovery in a simulated world", "", *_preface(options.seeds)]
    for name in sets() if options.set == "all" else [options.set]:
        chosen = {key: family for key, family in families(name).items() if not options.family or key in options.family}
        if not chosen:
            parser.error(f"no such family; there are {', '.join(families(name))}")
        results = {
            policy: [play(case, POLICIES[policy]) for case in cases(chosen, options.seeds)]
            for policy in options.policy or POLICIES
        }
        lines += ["", *_part(_NAMES.get(name, f"Set: {name}"), results)]
        if options.show_failures:
            sys.stdout.write("\n".join(_failures(results.get(PRODUCT, []))) + "\n")
    text = "\n".join(lines) + "\n"
    sys.stdout.write(text)
    if options.write is not None:
        options.write.write_text(text, encoding="utf-8")
    return 0


def _preface(seeds: int) -> list[str]:
    return [
        f"ctxmgr {__version__}, {seeds} seeds of each family, made by `python -m bench.recovery`. The agents are simulated: a "
        f"scripted agent reads the first {WINDOW:,} characters of the request and the context of its one branch and goes on "
        "when it is the right agent, everything it needs stands there in any of several wordings, and nothing that misleads "
        f"it does; else it repeats itself, and help is asked for again, {ATTEMPTS} times in all. Where the history holds no "
        "answer, it goes on when it is told so plainly. Intervals are Wilson, 95 %, over cases; but the cases of one family "
        "resemble each other, so that it is the number of families and not of cases that is independent, and the true "
        "uncertainty is larger.",
    ]


def _part(title: str, results: Mapping[str, Sequence[Played]]) -> list[str]:
    played = results.get(PRODUCT) or next(iter(results.values()))
    names = dict.fromkeys(each.case.family for each in played)
    unanswered = sum(not each.case.answered for each in played)
    lines = [
        f"## {title}",
        "",
        f"{len(played)} cases of {len(names)} families; {unanswered} have no answer in their history.",
        "",
    ]
    if PRODUCT in results:
        lines += ["### The rules alone", "", *measures.headline(played), ""]
        lines += ["### What finds the needed entries", "", *measures.retrieval(played), ""]
    lines += ["### Beside other ways to help", "", *measures.policies({name: list(each) for name, each in results.items()})]
    if PRODUCT in results:
        lines += ["", "### By family, the rules alone", "", *measures.families(played)]
    return lines


def _failures(played: Sequence[Played]) -> list[str]:
    lines: list[str] = []
    for each in played:
        attempt = each.attempts[0]
        if each.first:
            continue
        case, answer = each.case, attempt.answer
        later = ", ".join(later.outcome for later in each.attempts[1:])
        lines += [
            f"=== {case.family} seed {case.seed}{'' if case.answered else ' (no answer)'}: {attempt.outcome}, then {later}",
            f"    target {answer.target}, wanted {sorted(case.targets)}; missing {attempt.missing}; misled {attempt.misled}",
            f"    uncited {sorted(case.cites - answer.cited)}",
            *(f"    | {line}" for line in answer.text[:_EXCERPT].splitlines()),
        ]
    return lines


if __name__ == "__main__":
    sys.exit(main())
