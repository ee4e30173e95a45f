"""The second set: families of stuck workflows written without knowledge of the rules that are measured with them."""

from __future__ import annotations

from bench.recovery.case import Family
from bench.recovery.second import blame, edges, loops, people, review, told, waiting

FAMILIES: dict[str, Family] = {
    family.__name__: family
    for family in (
        told.secondhand_output,
        told.seen_in_input,
        told.hallway_message,
        told.buried_in_error,
        people.person_said,
        people.after_the_border,
        people.replaced_value,
        blame.cause_elsewhere,
        blame.growing_failure,
        blame.look_alikes,
        loops.known_detour,
        loops.two_steps,
        loops.three_steps,
        loops.tennis,
        waiting.frozen_poll,
        waiting.hung_call,
        review.starved_reviewer,
        review.review_done,
        review.merge_conflict,
        edges.planted_order,
        edges.long_haul,
        edges.data_gone,
        edges.thin_history,
    )
}
