"""Does the diagnosis name cause and next step? Replays logs and scores what is said; README.md tells the format.

.venv/bin/python -m bench.diagnosis [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.diagnosis.score import judged, summary


def main(folder: Path) -> int:
    """Print each answer and the figures; return 1 when anything false was said."""
    scores = [judged(log) for log in sorted(folder.glob("*.jsonl"))]
    for score in scores:
        print(score.line())
    print()
    print(summary(scores))
    return 1 if any(score.false for score in scores) else 0


if __name__ == "__main__":
    default = Path(__file__).parents[2] / "fixtures" / "diagnose"
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else default))
