"""Last progress: which entry of a session was the last to bring it further, at its end or before a finding.

An entry is progress when its result says that it succeeded, whichever agent made it. The last progress of a finding is
the last such entry when its first member happened; of a stall, when it was seen. A session in which something lasts has
that finding's last progress: the rounds of a loop bring nothing, though they succeed. Whatever a person says resets the
evidence of loops, but takes no progress back.

What silence is measured from is another matter (design ruling 9): any new entry or result, a failed one too.
"""

from __future__ import annotations

from ctxmgr.detect.step import has_failed
from ctxmgr.types.observation import Observation, Progress


def progress_of(finish: Observation) -> Progress | None:
    """Return the progress that a result is, or None when it is none."""
    return Progress(finish.id, finish.index, finish.at) if finish.status == "ok" and not has_failed(finish) else None
