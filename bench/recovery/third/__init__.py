"""The third set: the background and the facts are rows of real runs, so that the needed row is as odd as its neighbours.

A fact is one real call among others of the same kind, each there once. Where the history holds no answer, that one call is
missing. Only questions, tasks and the wrong calls at the end are made up; these get errors as the same runs have them.
"""

from __future__ import annotations

from bench.recovery.case import Family
from bench.recovery.third.asked import COMMON, DESCRIBED, KEYED, asked, other_row, replaced
from bench.recovery.third.stuck import ROUNDS, SINGLE, TRIED, stuck

FAMILIES: dict[str, Family] = {
    "real-keyed": asked("real-keyed", KEYED),
    "real-described": asked("real-described", DESCRIBED),
    "real-common": asked("real-common", COMMON),
    "real-far-back": asked("real-far-back", (*KEYED, *DESCRIBED), around=(90, 150)),
    "real-review": asked("real-review", DESCRIBED, review=True),
    "real-other-row": other_row,
    "real-replaced": replaced,
    "real-wrong-call": stuck("real-wrong-call", SINGLE),
    "real-rounds": stuck("real-rounds", ROUNDS),
    "real-tried": stuck("real-tried", TRIED),
    "real-long-loop": stuck("real-long-loop", SINGLE, around=(90, 150)),
}
