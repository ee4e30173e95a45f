"""What is waited for can't begin: the record shows it paused or switched off, or it asks for a name that no list has."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxmgr.diagnose.evidence import CHECKS, Evidence, given
from ctxmgr.diagnose.evidence.calls import changes_of, command_of
from ctxmgr.diagnose.evidence.nearest_names import likeness
from ctxmgr.diagnose.evidence.texts import capital, code, listed, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

_KIND = "pollingFrozen"

_WAITS = lazy_pattern(
    r"\b(?:queued|pending|waiting|scheduled|not[ _-]started|timed out waiting|not ready|no logs|0/[1-9]\d{0,3}|PENDING"
    r"|created|idle)\b",
    re.IGNORECASE,
)
_OFF_NAMES = (
    r"is_?paused|paused?|suspend(?:ed)?|disabled|is_?draft|draft|on_?hold|held|frozen|archived|maintenance(?:_?mode)?"
    r"|cordoned|unschedulable"
)
_ON_NAMES = r"enabled|active|is_?active|schedulable|auto_?start|published"
_SIZES = r"replicas|workers|concurrency|slots|desired_?count|min_?instances|max_?(?:instances|workers)|parallelism|capacity"
_OFF = lazy_pattern(
    rf"[\"']?\b(?P<off>{_OFF_NAMES})\b[\"']?\s?[:=]\s?[\"']?(?P<yes>true|yes|on|1)\b"
    rf"|[\"']?\b(?P<on>{_ON_NAMES})\b[\"']?\s?[:=]\s?[\"']?(?P<no>false|no|off|0)\b"
    rf"|[\"']?\b(?P<size>{_SIZES})\b[\"']?\s?[:=]\s?(?P<none>0)\b"
    r"|[\"']?\b(?P<key>state|status|mode)\b[\"']?\s?[:=]\s?[\"']?(?P<state>paused|suspended|disabled|draft|on[-_ ]hold"
    r"|stopped|inactive|frozen"
    r"|archived|blocked)\b",
    re.IGNORECASE,
)
_HEADS = lazy_pattern(rf"^(?:{_OFF_NAMES})$", re.IGNORECASE)
_NAME = lazy_pattern(r"(?<![\w-])(?=[\w-]*[_\d-])[A-Za-z][\w-]{3,59}(?![\w-])")
_ASKS = lazy_pattern(
    r"[\"']?\b(?P<key>(?:needs_?|required_?)?labels?|runs-on|queue|pool|tags?|(?:storage|runtime|priority)ClassName|node_?(?:pool|group)"
    r"|runner|worker_?(?:pool|group)|partition|executor)\b[\"']?\s?[:=]\s?[\[\"']{0,3}(?P<value>[\w./-]{3,60})",
    re.IGNORECASE,
)
_LISTS = lazy_pattern(r"\b(?:ls|list\w*|get|show\w*|describe|sinfo|ps|status|nodes?)\b", re.IGNORECASE)
_TOKEN = lazy_pattern(r"[\w./-]{3,60}")
_LOOKED_AT, _MOST, _NEAR = 200, 8_000, 0.55


def why(evidence: Evidence) -> Diagnosis | None:
    """Return what keeps the thing that is waited for from beginning."""
    waits = [each for each in (*evidence.repeated, *evidence.failing) if not CHECKS.search(command_of(each))]
    waits = [each for each in waits if _WAITS.search(evidence.text(each)[:_MOST])]
    if not waits or len(evidence.repeated) + len(evidence.failing) == 0:
        return None
    names = {name for each in waits for name in _NAME.findall(f"{given(each)}\n{evidence.text(each)[:_MOST]}")}
    return _switched_off(evidence, waits[0], names) or _not_offered(evidence, waits[0])


def _switched_off(evidence: Evidence, wait: EntryView, names: set[str]) -> Diagnosis | None:
    asked = [name for name in _NAME.findall(given(wait)) if name in names]
    for name in dict.fromkeys([*asked, *sorted(names)]):
        for other in list(reversed(evidence.recent))[:_LOOKED_AT]:
            shown = _shown_off(evidence, other, name)
            if shown is None or _resumed(evidence, other, name):
                continue
            key, value = shown
            source = evidence.source(other)
            cause = (
                f"{code(name, 60)} can't begin: {source} shows {code(f'{key}: {value}', 50)} for it. To wait and to"
                f" look again can't"
                " change that."
            )
            step = (
                f"Have {code(name, 60)} resumed, so that {code(key, 40)} is no longer {code(value, 20)} (its resume,"
                f" unpause or enable"
                " command, or the file that says so); if the user has not asked for that, ask first. Then look once."
            )
            return diagnosis(_KIND, cause, step, evidence.quote(other), evidence.quote(wait), check="Its state must change.")
    return None


def _resumed(evidence: Evidence, shown: EntryView, name: str) -> bool:
    word = re.compile(r"resume|unpause|enable|activate|start|suspend=false|publish|scale", re.IGNORECASE)
    later = (each for each in evidence.recent if each.index > shown.index and each.status == "ok")
    return any(name in given(each) and word.search(f"{each.action} {given(each)}") for each in later)


def _shown_off(evidence: Evidence, entry: EntryView, name: str) -> tuple[str, str] | None:
    """Return the field and value by which an output shows that a name is switched off."""
    text = evidence.text(entry)[:_MOST]
    if entry.status != "ok" or name not in text:
        return None
    lines = text.split("\n")
    for line in lines:
        if name in line and (cells := _cells(line)):
            heads = next((heads for heads in _headers(evidence, entry, len(cells))), None)
            for head, cell in zip(heads or (), cells, strict=False):
                if _HEADS.match(head) and cell.casefold() in ("true", "yes", "t", "1"):
                    return head, cell
    near = [line for line in lines if name in line]
    whole = (
        text
        if sum(name in line for line in lines) and re.search(rf"(?:name|id|key)[\"']?\s?[:=]\s?[\"']?{re.escape(name)}\b", text)
        else ""
    )
    match = next((found for part in (*near, whole) if (found := _OFF.search(part)) is not None), None)
    if match is None:
        return None
    groups = {key: value for key, value in match.groupdict().items() if value}
    key, value = list(groups.values())[:2]
    return (key, value) if plain_name(key) else None


def _cells(line: str) -> list[str]:
    parts = line.split("|") if "|" in line else re.split(r"\s{2,}|\t", line.strip())
    cells = [part.strip() for part in parts]
    return cells if len(cells) > 1 else []


def _headers(evidence: Evidence, entry: EntryView, columns: int) -> Iterator[list[str]]:
    """Yield the headings of a table with as many columns, of this output or of another call of the same program."""
    for other in (entry, *(each for each in evidence.recent if each.action == entry.action and each.id != entry.id)):
        for line in evidence.text(other)[:2_000].split("\n")[:3]:
            cells = _cells(line)
            if len(cells) == columns and any(_HEADS.match(cell) for cell in cells):
                yield cells


def _not_offered(evidence: Evidence, wait: EntryView) -> Diagnosis | None:
    """Say that what waits asks for a name which the list of those that are there does not have."""
    asked: dict[str, tuple[str, EntryView]] = {}
    for entry in evidence.tail:
        own = "\n".join(change.new for change in changes_of(entry)) or given(entry)
        for match in _ASKS.finditer(f"{own[:_MOST]}\n{evidence.text(entry)[:_MOST]}"):
            asked.setdefault(match.group("value").strip("."), (match.group("key"), entry))
    for value, (key, _) in asked.items():
        for other in list(evidence.before(wait.index))[:_LOOKED_AT]:
            text = evidence.text(other)[:_MOST]
            words = {word for line in text.split("\n")[1:] for part in _TOKEN.findall(line) for word in part.split(",")}
            if other.status != "ok" or value in words or value in text or not _LISTS.search(command_of(other) or other.action):
                continue
            stem = re.sub(r"^(?:needs|required)_?|s$|_", "", key.casefold())
            near = sorted(word for word in words if likeness(value, word) >= _NEAR)
            near.sort(key=lambda word: (not value.startswith(word), not word.startswith(value), -likeness(value, word)))
            if not near or (stem not in text.casefold() and stem not in ("runs-on", "label")):
                continue
            source = evidence.source(other)
            cause = (
                f"What is waited for asks for {code(value, 60)} ({code(key, 30)}), and {source} shows none that has it:"
                f" there {'is' if len(near) == 1 else 'are'} {listed(near, 3)}. It can't begin."
            )
            step = (
                f"Set {code(key, 30)} where it is written to one that is there and fits the task ({listed(near, 3)}); else"
                f" ask who runs them to add {code(value, 60)}. Do not wait longer."
            )
            return diagnosis(
                _KIND,
                capital(cause),
                step,
                evidence.quote(other),
                evidence.quote(wait),
                check="Its state must change.",
                confidence="medium",
            )
    return None
