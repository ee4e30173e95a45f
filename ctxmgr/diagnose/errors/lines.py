"""Find the lines of an output that say why: the error itself, its reason, and the remedy that the tool names.

All tools state a reason in few forms: "must be", "expected A, got B", "because", "hint:", "did you mean". If our own sentence
repeats a line, it shows only known words and names of it (`told_words`), and nothing that could be an order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ctxmgr.detect.text.fingerprints import mask_volatile
from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.diagnose.evidence.paths import FOREIGN
from ctxmgr.diagnose.evidence.texts import ORDERS
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.view import EntryView

_TELLING = lazy_pattern(
    r"error|exception|fail|fatal|denied|refused|cannot|can't|not found|missing|invalid|expected|unable|rejected|conflict"
    r"|could not|couldn't|undefined|unresolved|no such|does not exist|doesn't|mismatch|timed? ?out|unknown",
    re.IGNORECASE,
)
_NAMED = lazy_pattern(r"(?:E\s+)?(?:[\w.]+(?:Error|Exception|Fault)\b|error(?:\[\w+\])?:|fatal:|panic:)", re.IGNORECASE)
# gcc's `a.c:3:4: error`, rustc's `error[E0308]: `
_PLACED = lazy_pattern(r"^\S{1,160}:\d{1,6}:(?:\d{1,5}:)? (?:fatal )?error\b|^error(?:\[\w+\])?: ", re.IGNORECASE)
_REASON = lazy_pattern(
    r"\b(?:because|must(?: not)?|should(?: not)?|only|requires?|required|needs?|expected|expects|instead|already|until|since"
    r"|allowed|permitted|supported|ignored|protected|locked|held by|owned by|used by|in use|reserved|policy|deprecated|removed"
    r"|renamed|moved|has been|does not match|differs?|mismatch|exceeds?|limit|at least|at most|older|newer|outdated|stale"
    r"|expired|disabled|read-only|undefined|unresolved|nothing|empty|wants|given|got|found|not yet"
    r"|unless|up to date|unchanged|nothing to)\b",
    re.IGNORECASE,
)
_ADVICE = lazy_pattern(
    r"^\s{0,8}(?:remote: )?(?:hint|help|tip|note|try|fix|suggestion|to fix|see|= (?:help|note))\b\s?[:-]?"
    r"|\b(?:did you mean|(?:maybe|perhaps) you meant|try|use|run|consider|please|instead|add|set|pass|install|make sure|you can"
    r"|you (?:need|may|might|must|should))\b",
    re.IGNORECASE,
)
_ADVISES = lazy_pattern(
    r"^\s{0,8}(?:hint|help|tip|try|fix|suggestion|to fix)\b\s?[:-]?|(?<![\w/.-])(?:use|try|run|set|pass|add|must be|should be)"
    r" [`'\"-]{0,2}\w|\b(?:try|please|first|re-?(?:run|fetch|read|load)) \w+ing\b",
    re.IGNORECASE,
)
_SUMMARY = lazy_pattern(
    r"^(?:found \d+ |=*\s?\d+ (?:failed|passed|errors?)\b|(?:g?make|ninja)(?:\[\d+\])?: \*\*\*|\[?exit(?: code"
    r"| status)?[ :]*\d+|node\.js v\d|and |or "
    r"|failed\b[^\n]{0,60}::|.{0,80}\bnote:|traceback|file \"|at (?:async )?[\w.<>]+ ?(?:\[as \w+\] ?)?\("
    r"|at (?:node|file):|\s*\^+\s*$|={4}|-{4}|_{4}"
    r"|npm (?:err!|error) (?:code|a complete log)|a complete log of"
    r"|throw \w+; //|emitted '\w+' event on |errno: -?\d|syscall: '|node:[\w/]+:\d+$"
    r"|(?:code|address): '[^'\n]*',$"
    r"|error: (?:process completed|aborting|failed to push some refs)|collect2: )",
    re.IGNORECASE,
)
"""Lines that only count or repeat the error."""
_DECORATION = lazy_pattern(r"^[│╷╵|>\s]{1,12}|^(?:remote|npm (?:err!|error)|E)(?::|\s)\s*|</?tool_use_error>", re.IGNORECASE)
_ASSERTED = lazy_pattern(r"^(?:assert\b|Expected|Received|[+-] ?(?:expected|actual)|AssertionError:)")
_SPECIFIC = lazy_pattern(r"['\"`‘“][^'\"`]{2,80}['\"`’”]|\w/\w|\w\.\w|\d{2}|\w_\w|\s-{1,2}\w")
_FRAME = lazy_pattern(r"\s*File \"([^\"\n]{1,300})\", line \d+")
_LETTERS = lazy_pattern(r"[^\W\d_]{2}")
_FORMS, _READ, _MOST, _CHAIN = 6, 8_000, 600, 2


class _Line(NamedTuple):
    """A line of an output, its score for how much it says, and its number."""

    text: str
    score: int
    place: int

    @property
    def rank(self) -> tuple[int, int]:
        """Sort key: greater for a more telling line. Of equal scores, the later line wins, but the first place in a source."""
        return self.score, -self.place if _PLACED.search(self.text) else self.place


def telling_line(evidence: Evidence, step: EntryView) -> str:
    """Return the line of a call's output that says most about its outcome; "" if it printed nothing."""
    return max(_list_lines(evidence, step), key=lambda each: each.rank, default=_Line("", 0, 0)).text


def reasons(evidence: Evidence, steps: Sequence[EntryView], room: int) -> list[str]:
    """Return what calls say about their failure: the most telling lines of the first call, then what other calls add.

    Args:
        evidence: the session.
        steps: the calls; the first one is the main one.
        room: characters of each text; a short output is returned whole.
    """
    texts: list[str] = []
    known: set[str] = set()
    for step in steps[:_FORMS]:
        # From other calls, take only new lines that say something.
        lines = [
            line
            for line in _list_lines(evidence, step)
            if _comparison_key(line.text) not in known and (not texts or line.score > 0)
        ]
        chosen = _choose_lines(lines, room)
        known |= {_comparison_key(line.text) for line in lines}
        if chosen:
            texts.append(" ⏎ ".join(_clip_to_end(line.text, room) for line in chosen))
    return texts


def _clip_to_end(line: str, room: int) -> str:
    """Return a line; of a long chain of errors its end, because "a: b: c" names the root cause last."""
    end = line[-room + 1 :]
    return f"… {end.partition(' ')[2]}" if len(line) > room and line.count(": ") > _CHAIN else line


def _choose_lines(lines: Sequence[_Line], room: int) -> list[_Line]:
    """Return the most telling lines that fit into ``room``, in their order. The most telling one may be longer."""
    chosen: list[_Line] = []
    for line in sorted(lines, key=lambda each: each.rank, reverse=True):
        used = sum(len(each.text) + 3 for each in chosen)
        # A line that only counts is used only if there is no other.
        if not chosen or (line.score >= 0 and used + len(line.text) <= room):
            chosen.append(line)
    # A part of another line is no news.
    whole = [line for line in chosen if not any(line.text in each.text and each is not line for each in chosen)]
    return sorted(whole, key=lambda each: each.place)


def _list_lines(evidence: Evidence, step: EntryView) -> list[_Line]:
    """Return the distinct lines of an output that have words and are no order."""
    found: dict[str, _Line] = {}
    texts = evidence.text(step)[-_READ:].split("\n")
    frames = _passed_frames(texts)
    for place, text in enumerate(texts):
        line = _DECORATION.sub("", text).strip()[:_MOST]
        # An order in an output is never repeated.
        if place not in frames and _LETTERS.search(line) and not ORDERS.search(text):
            found.setdefault(line, _Line(line, _score(line), place))
    return list(found.values())


def _passed_frames(texts: Sequence[str]) -> set[int]:
    """Return the indexes of source lines in tracebacks that only lead to the error: all but the last in an own file."""
    frames = [
        (place + 1, match.group(1)) for place, text in enumerate(texts[:-1])
        # A frame of a built-in has no source line, and the error may follow it.
        if (match := _FRAME.match(text)) and texts[place + 1].startswith("    ")
    ]  # fmt: skip
    own = [place for place, path in frames if not any(part in path for part in (*FOREIGN, "<frozen"))]
    return {place for place, _ in frames if place not in own[-1:]}


def _score(line: str) -> int:
    if _SUMMARY.search(line):
        return -1
    score = (
        3 if _PLACED.search(line) or _ASSERTED.match(line) else 2 if _NAMED.match(line) else 1 if _TELLING.search(line) else 0
    )
    advice = _ADVICE.search(line) is not None
    return (
        score
        + (1 if _REASON.search(line) else 0)
        + (1 if _SPECIFIC.search(line) and score else 0)
        # Advice is handled separately, so the error itself comes first.
        - (1 if advice and score < 2 else 0)
    )


def is_advice(line: str) -> bool:
    """Whether a line is meant to name a remedy."""
    return _ADVISES.search(line) is not None and not _SUMMARY.search(line)


def tells(line: str) -> bool:
    """Whether a line says what went wrong, instead of only counting or repeating it."""
    return _score(line.strip()) > 0


def _comparison_key(line: str) -> str:
    return mask_volatile(line, ids=True)
