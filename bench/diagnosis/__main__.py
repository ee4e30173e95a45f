"""Does the diagnosis name cause and next step? Replays logs and scores what is said; README.md tells the format.

.venv/bin/python -m bench.diagnosis [--prompts] [FOLDER or ARCHIVE]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from bench.diagnosis.score import judged, prompted, summary, unpacked


def main(folder: Path, *, prompts: bool = False) -> int:
    """Print each answer for the logs of a folder or an archive, and the figures; return 1 when anything false was said."""
    with tempfile.TemporaryDirectory() as temporary:
        logs = sorted((unpacked(folder, Path(temporary)) if folder.is_file() else folder).glob("*.jsonl"))
        scores = [judged(log) for log in logs]
        asked = [log for log, score in zip(logs, scores, strict=True) if score.asked]
        early = sum(map(prompted, asked)) if prompts else 0
    for score in scores:
        print(score.line())
    print()
    print(summary(scores))
    if prompts:
        print(f"{'in prompt':10} {early:3} of {len(asked)}")
    return 1 if any(score.false for score in scores) else 0


if __name__ == "__main__":
    default = Path(__file__).parents[2] / "fixtures" / "diagnose"
    given = [each for each in sys.argv[1:] if each != "--prompts"]
    sys.exit(main(Path(given[0]) if given else default, prompts="--prompts" in sys.argv))
