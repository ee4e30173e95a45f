"""How the time of a piece of work grows with the size of what it is given."""

from __future__ import annotations

import time
from collections.abc import Callable


def grows_linearly(work: Callable[[int], object], size: int) -> bool:
    """Whether four times the size takes at most eight times as long; what grows with the square takes sixteen times."""

    def took(many: int) -> float:
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            work(many)
            best = min(best, time.process_time() - start)
        return best

    return took(4 * size) <= 8 * took(size) + 0.03
