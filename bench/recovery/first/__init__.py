"""The first set of families: the rules may be tuned on them."""

from __future__ import annotations

from bench.recovery.case import Family
from bench.recovery.first.handing import back_and_forth
from bench.recovery.first.loops import error_elsewhere, wrong_path, wrong_rounds
from bench.recovery.first.lost import compacted, lost
from bench.recovery.first.review import merge_conflict, review_done, review_filtered
from bench.recovery.first.trusted import injected, superseded
from bench.recovery.first.waiting import climbing_failure, frozen_poll, hung_call

FAMILIES: dict[str, Family] = {
    "known-elsewhere": lost("known-elsewhere", "result"),
    "only-in-message": lost("only-in-message", "message"),
    "only-in-input": lost("only-in-input", "input"),
    "only-in-error": lost("only-in-error", "error"),
    "long-history": lost("long-history", "result", before=(150, 300), after=(250, 350)),
    "compacted": compacted,
    "superseded": superseded,
    "injected": injected,
    "wrong-path": wrong_path,
    "wrong-rounds": wrong_rounds,
    "error-elsewhere": error_elsewhere,
    "back-and-forth": back_and_forth,
    "frozen-poll": frozen_poll,
    "climbing-failure": climbing_failure,
    "hung-call": hung_call,
    "review-filtered": review_filtered,
    "review-done": review_done,
    "merge-conflict": merge_conflict,
}
