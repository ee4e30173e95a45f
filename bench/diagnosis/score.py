"""Score one diagnosis against what is expected of it; README.md tells the format."""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxmgr.diagnose import CLASSES, contrast, diagnose
from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.history.session_evidence import build_evidence
from ctxmgr.types.finding import Diagnosis, Finding
from ctxmgr.types.operations import DetectRequest, RecoverRequest
from ctxmgr.workspace import Workspace

SHOWN = 900
"""Characters of cause and next step that count."""
UNKNOWN = "unknown"
"""The kind of an answer that claims no cause: it says so, and names the next look."""


@dataclass(slots=True)
class Score:
    """How one log was answered."""

    name: str
    expected: dict[str, Any]
    finding: str | None
    answer: Diagnosis | None
    cause: bool
    next: bool
    kind: bool
    false: list[str]
    crossed: list[str] = field(default_factory=list[str])

    @property
    def asked(self) -> bool:
        """Whether a cause is expected at all."""
        return _asked(self.expected)

    def line(self) -> str:
        """Return the score as lines for a reader."""
        if self.answer is None:
            mark = "silent" if self.asked else "ok    "
            return f"{mark} {self.name} ({self.finding or 'no finding'})"
        mark = "FALSE " if self.false else "ok    " if self.cause and self.next else "part  "
        lines = [
            f"{mark} {self.name} ({self.finding or 'no finding'}) {self.answer.kind}{'' if self.kind else ' (other kind)'}"
            f"{'' if self.cause else ' cause?'}{'' if self.next else ' next?'} {' '.join(self.false)}"
        ]
        lines += [f"       | {self.answer.cause}", f"       > {self.answer.next_step}"]
        lines += [f"       x crossed: {', '.join(self.crossed)}"] if self.crossed else []
        return "\n".join(lines)


def unpacked(archive: Path, folder: Path) -> Path:
    """Write the logs of an archive, one ``{name, expected, log}`` a line, into a folder, each with its expectation."""
    for line in gzip.decompress(archive.read_bytes()).decode("utf-8").splitlines():
        row = json.loads(line)
        (folder / f"{row['name']}.jsonl").write_text(row["log"], encoding="utf-8")
        (folder / f"{row['name']}.json").write_text(json.dumps(row["expected"]), encoding="utf-8")
    return folder


def judged(log: Path, evidence: Evidence | None = None) -> Score:
    """Return how the log beside its expectation is answered; whoever has its evidence already hands it over."""
    expected = json.loads(log.with_suffix(".json").read_text(encoding="utf-8"))
    evidence = evidence or read(log)
    answer = diagnose(evidence) or contrast(evidence)
    said = "" if answer is None else " ".join(f"{answer.cause}\n{answer.next_step}"[:SHOWN].split()).casefold()
    cause = "" if answer is None else " ".join(answer.cause[:SHOWN].split()).casefold()
    step = "" if answer is None else said[len(cause) :]
    false = [word for word in expected["never"] if _has(said, word)] + [w for w in expected["neverNext"] if _has(step, w)]
    kinds: list[str] = expected["kind"]
    if answer is not None and answer.kind != UNKNOWN and not _asked(expected):
        false.append("nothing may be said")
    return Score(
        log.stem, expected, None if evidence.finding is None else evidence.finding.kind, answer,
        cause=answer is not None and all(is_named(cause, word) for word in expected["cause"]),
        next=answer is not None and all(is_named(step, word) for word in expected["next"]),
        kind=answer is not None and (answer.kind in kinds or not kinds), false=false,
        crossed=[f"{found.kind}: {found.cause}" for each in CLASSES
                 if (found := each.diagnose(evidence)) is not None and kinds and found.kind not in kinds],
    )  # fmt: skip


def prompted(log: Path) -> bool:
    """Return whether the first 900 characters that an agent is sent hold every word of a log's cause and next step."""
    expected = json.loads(log.with_suffix(".json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(log, Path(folder) / log.name)
        with Workspace.open(str(copy)) as workspace:
            sent = workspace.recover(RecoverRequest(plan=True, force=True)).continuation.prompt
    early = " ".join(sent[:SHOWN].split()).casefold()
    return all(is_named(early, word) for word in [*expected["cause"], *expected["next"]])


def read(log: Path) -> Evidence:
    """Return the evidence of a log's worst unresolved finding, or of its end."""
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(log, Path(folder) / log.name)
        with Workspace.open(str(copy)) as workspace:
            verdict = workspace.detect(DetectRequest()).verdicts[0]
            found = build_evidence(workspace.store, verdict.session, worst(verdict.findings))
            len(found.related)  # read while the store is open
            return found


def worst(findings: Sequence[Finding]) -> Finding | None:
    """Return the unresolved finding that matters most: loops and stalls before warnings, the longest first."""
    last = [finding for finding in findings if finding.resolved is None]
    return max(last, key=lambda each: (each.severity != "warn", each.count), default=None)


def summary(scores: Sequence[Score]) -> str:
    """Return the figures."""
    asked = [score for score in scores if score.asked]
    figures = {
        "cause": sum(score.cause for score in asked), "next step": sum(score.next for score in asked),
        "both": sum(score.cause and score.next for score in asked), "kind": sum(score.kind for score in asked),
        "silent": sum(score.answer is None for score in asked),
    }  # fmt: skip
    told = [f"{name:10} {number:3} of {len(asked)}" for name, number in figures.items()]
    return "\n".join([*told, f"{'false':10} {sum(bool(score.false) for score in scores):3} of {len(scores)}"])


def _asked(expected: dict[str, Any]) -> bool:
    """Whether a log has a cause: by the kinds that are right, or, where any is, by the words of the cause."""
    return bool(expected["kind"] or expected["cause"])


def is_named(text: str, word: str | list[str]) -> bool:
    """Return whether a folded text has a word, or any of several words, regardless of case and runs of blanks."""
    return any(_has(text, each) for each in ([word] if isinstance(word, str) else word))


def _has(text: str, word: str) -> bool:
    return " ".join(word.split()).casefold() in text
