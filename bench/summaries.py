"""How much shorter summaries by structure are, on real files, and what they keep: ``python bench/summaries.py [FOLDER...]``.

Without a folder the packages of the running Python are read. Up to a number of files of each kind are taken, spread evenly
over all that are there. Shown are the tokens of summaries against those of the files (all together, and the median file),
the target of spec 003, how many summaries are longer than their file (must be 0), and how many headings (Markdown) and
signatures (Python) of the files their summaries lack.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import statistics
import sys
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ctxmgr.context.summaries import summarise
from ctxmgr.text.tokens import ESTIMATE, content_kind

TARGETS = {"yaml": 20, "json": 20, "markdown": 25}
"""Percent of the original that spec 003 names; of code it is `CODE_TARGET`."""
CODE_TARGET = 30
SUFFIXES = (".py", ".md", ".json", ".yaml", ".yml", ".js", ".ts", ".c", ".h", ".rs", ".go", ".sh", ".java", ".rb")
_FEW, _MANY = 2_000, 400_000
_HEADING = re.compile(r"^#{1,6} +(.+?)(?: +#+)?$", re.MULTILINE)


@dataclass
class Tally:
    """What was found of one kind; tokens by the estimate."""

    originals: int = 0
    summaries: int = 0
    ratios: list[float] = field(default_factory=list[float])
    longer: int = 0
    wanted: int = 0
    lacking: int = 0
    seconds: float = 0.0


def files(folders: list[Path], most: int) -> dict[str, list[Path]]:
    """Return up to ``most`` files of each kind, between 2 and 400 KB, spread evenly over the sorted names."""
    found: dict[str, list[Path]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in SUFFIXES and path.is_file() and _FEW <= path.stat().st_size <= _MANY:
                found.setdefault(content_kind(path.name, ""), []).append(path)
    return {kind: paths[:: max(1, len(paths) // most)][:most] for kind, paths in found.items()}


def named(kind: str, text: str) -> Iterator[str]:
    """Yield what a summary of the text has to keep: headings of Markdown, names of the functions and classes of Python."""
    if kind == "markdown":
        fenced = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
        yield from (heading.strip() for heading in _HEADING.findall(fenced))
    elif kind == "python":
        body = ast.parse(text).body
        for node in [*body, *(part for item in body if isinstance(item, ast.ClassDef) for part in item.body)]:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield node.name


def measured(paths: list[Path], kind: str) -> Tally:
    """Summarise files of one kind."""
    tally = Tally()
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="replace")
        began = time.process_time()
        made = summarise(path.name, text, kind, ESTIMATE)
        tally.seconds += time.process_time() - began
        tally.originals += made.original_tokens
        tally.summaries += made.tokens
        tally.ratios.append(made.tokens / max(1, made.original_tokens))
        tally.longer += made.tokens > made.original_tokens or len(made.text) > len(text)
        try:
            wanted = set(named(kind, text))
        except (SyntaxError, ValueError, RecursionError):
            continue
        tally.wanted += len(wanted)
        tally.lacking += sum(name not in made.text for name in wanted)
    return tally


def main() -> int:
    """Print the table; return 1 when a summary is longer than its file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--most", type=int, default=300, help="files of each kind")
    options = parser.parse_args()
    folders = options.folders or [Path(sysconfig.get_path("purelib")), Path(sysconfig.get_path("stdlib"))]
    print(f"{os.pathsep.join(map(str, folders))}; tokens by the estimate")
    titles = ("kind", "files", "tokens", "in all", "median", "target", "longer", "lacking", "ms a file")
    widths = (-12, 6, 12, 8, 8, 8, 8, 16, 11)
    print(
        "".join(f"{title:<{-width}}" if width < 0 else f"{title:>{width}}" for title, width in zip(titles, widths, strict=True))
    )
    longer = 0
    for kind, paths in sorted(files(folders, options.most).items()):
        tally = measured(paths, kind)
        longer += tally.longer
        lacking = f"{tally.lacking} of {tally.wanted:,}" if tally.wanted else "-"
        print(
            f"{kind:<12}{len(paths):>6}{tally.originals:>12,}{tally.summaries / max(1, tally.originals):>8.0%}"
            f"{statistics.median(tally.ratios):>8.0%}{TARGETS.get(kind, CODE_TARGET):>7}%{tally.longer:>8}{lacking:>16}"
            f"{1000 * tally.seconds / len(paths):>11.1f}"
        )
    return int(longer > 0)


if __name__ == "__main__":
    sys.exit(main())
