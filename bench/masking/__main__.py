"""Print how well and how fast secrets are masked: ``python -m bench.masking [--growth] [FOLDER...]``.

Recall on both halves of the corpus, false maskings on ordinary lines of these folders (else of the installed Python), the
time for a record, and with ``--growth`` (some minutes) how time grows on hostile text.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench.masking.growth import growths, order_growths
from bench.masking.measures import false_maskings, recall, seconds
from ctxmgr.errors import CtxmgrError
from ctxmgr.log.codec import encode
from ctxmgr.log.masking import mask

_FIXTURES = Path(__file__).parents[2] / "fixtures"
_LINES = 20_000


def main(arguments: list[str]) -> None:
    """Print each figure on a line of its own."""
    for half in ("first", "second"):
        share, missed = recall(mask, half, 1)
        print(f"recall, {half} half of the shapes: {share:.3f}; missed: {', '.join(name[:40] for name in missed) or 'none'}")
    folders = [Path(name) for name in arguments if not name.startswith("-")]
    count, changed = false_maskings(mask, _LINES, folders)
    print(f"false maskings: {len(changed)} of {count:,} lines")
    for before, _ in changed[:10]:
        print(f"  {before[:100]!r}")
    lines = [encode(json.loads(row)) for path in sorted(_FIXTURES.rglob("*.jsonl")) for row in _objects(path)]
    took = seconds(lambda: [mask(line) for line in lines], 7)
    size = sum(map(len, lines))
    print(
        f"cost: {took / len(lines) * 1e6:.1f} us a record of {size // len(lines)} bytes, "
        f"{took / size * 1e9 * 1.024:.1f} us a KB"
    )
    if "--growth" in arguments:
        for what, rows in (("slowest pattern 1 MB / 0.5 MB", growths()), ("slowest order 24 KB / 12 KB", order_growths())):
            found = [row for row in rows if row[1] >= 0.02]
            for growth, took, name in sorted(found, reverse=True)[:3]:
                print(f"{what}: {growth:.2f} x, {took:.3f} s, {name}")


def _objects(path: Path) -> list[str]:
    rows: list[str] = []
    for row in path.read_text("utf-8", "replace").splitlines():
        try:
            if isinstance(json.loads(row), dict):
                encode(json.loads(row))
                rows.append(row)
        except (ValueError, CtxmgrError):  # fixtures hold broken lines on purpose
            continue
    return rows


if __name__ == "__main__":
    main(sys.argv[1:])
