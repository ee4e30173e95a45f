"""Read durations: how long a call may take or waits, by its own words, and how long something took."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, cast

from ctxmgr.detect.step import duration
from ctxmgr.detect.text import vocabulary
from ctxmgr.diagnose.evidence.calls import command_of, fields_of, split_command
from ctxmgr.diagnose.evidence.session import Evidence
from ctxmgr.log.ids import parse_time
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.view import EntryView

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_NUMBER = r"\d{1,9}(?:\.\d{1,6})?"
DURATION = (
    rf"(?:{_NUMBER} ?h(?:ours?|rs?)?,? ?)?(?:{_NUMBER} ?m(?:in(?:ute)?s?)?,? ?)?{_NUMBER} ?s(?:ec(?:ond)?s?)?(?![a-z])"
    rf"|{_NUMBER} ?(?:ms|milliseconds)\b|{_NUMBER} ?h(?:ours?|rs?)?(?: ?{_NUMBER} ?m(?:in(?:ute)?s?)?)?(?![a-z])"
    rf"|{_NUMBER} ?m(?:in(?:ute)?s?)?(?![a-z])|\d{{1,3}}:\d\d:\d\d"
)
"""An expression for a duration: `27m41s`, `1384.20s`, `41 min`, `2 hours`, `00:27:41`, `120000 ms`."""
_PART = lazy_pattern(rf"({_NUMBER}) ?(milliseconds|ms|h|m|s)")
_TOOK = lazy_pattern(
    r"(?i)\b(?:real|took|takes?|(?:finished|completed|succeeded|built|done|ready|passed) (?:in|after)|elapsed(?: time)?"
    r"|duration|(?:total|wall|run|running|build|route|execution)[ -]?time|ran for|needs|needed|lasted|lasts)"
    r"[ \t]{0,8}[:=]?[ \t]{0,8}(?:(?:about|around|roughly|some|up to|almost|nearly|over|more than|well over|~|≈)[ \t]?){0,2}"
    rf"({DURATION})"
)
_ENDED_AFTER = lazy_pattern(
    r"(?i)\b(?:killed|stopped|terminated|cancel+ed|aborted|interrupted|timed? ?out|time ?limit|no (?:end|output|result|answer)"
    rf"|did not (?:end|return|finish)|exceeded)\b[^\n\d]{{0,40}}?({DURATION})(?![\w.]?\d)"
)
_BY_CLIENT = lazy_pattern(
    r"(?i)\W{0,3}(?:(?:the )?(?:command|process|call|execution|tool)(?: was| timed? ?out)?\b|killed|stopped"
    rf"|terminated|no (?:end|output))[^\n\d]{{0,60}}?({DURATION})(?![\w.]?\d)"
)
"""Messages that only a client writes. A program may speak of a time-out of its own: `connect timed out after 30 s`."""
_ENDED = lazy_pattern(
    r"(?i)\b(?:killed|terminated|timed? ?out)\b|\bexit(?:ed)?(?: with)?(?: code| status)?:? ?(?:124|137|143)\b"
)
_LIMIT_NAME = lazy_pattern(
    r"(?i)time_?out(?:_?(?P<unit>ms|s|sec\w*|millis\w*|min\w*))?|(?:max_?time|time_?limit)(?:_?(?P<more>ms|s|sec\w*))?"
)
_WAITING_NAME = lazy_pattern(r"(?i)(?:^|[._]|__)(?:wait|sleep|pause|delay|snooze)(?![a-z])")
_WAIT_FIELDS = {
    "minutes": 60.0, "mins": 60.0, "hours": 3_600.0, "seconds": 1.0, "secs": 1.0, "sec": 1.0, "duration_seconds": 1.0,
    "duration_s": 1.0, "ms": 0.001, "milliseconds": 0.001, "duration_ms": 0.001, "timeout_minutes": 60.0, "max_minutes": 60.0,
    "timeout_seconds": 1.0, "timeout_s": 1.0, "timeout_ms": 0.001, "timeoutMs": 0.001,
}  # fmt: skip
"""Fields of a tool that waits, with their unit in seconds. A bare number without a unit says nothing sure."""
_WAIT_OPTIONS = {
    "inotifywait": ("-t", "--timeout"),
    "kubectl": ("--timeout",),
    "oc": ("--timeout",),
    "flock": ("-w", "--timeout"),
}
_WORDED = lazy_pattern(r"\s{0,4}(\d{1,9}(?:\.\d{1,6})?)\s?([smhd]?)\s{0,4}")
_MOST_SECONDS, _LEAST_WAIT = 30 * 86_400, 5
_MOST_END, _MOST_LINES, _MOST_LINE, _NEAR = 600, 400, 400, 1.05


def parse_duration(text: str) -> float | None:
    """Return the seconds of a duration as `DURATION` matches it; a number alone, or with one letter, is in seconds."""
    if (clocked := re.fullmatch(r"(\d{1,3}):(\d\d):(\d\d)", text.strip())) is not None:
        hours, minutes, seconds = map(int, clocked.groups())
        return hours * 3_600.0 + minutes * 60 + seconds
    parts = _PART.findall(text)
    if parts:
        return sum(float(number) * _UNITS["ms" if unit.startswith("mil") else unit] for number, unit in parts)
    worded = _WORDED.fullmatch(text)
    return float(worded[1]) * _UNITS[worded[2] or "s"] if worded is not None else None


def durations_in(text: str) -> Iterator[tuple[str, float]]:
    """Yield the lines of a text that say how long something took or takes, each with the seconds."""
    for line in text.split("\n")[-_MOST_LINES:]:
        for match in _TOOK.finditer(line[:_MOST_LINE]):
            seconds = parse_duration(match[1].lower())
            if seconds is not None and 0 < seconds < _MOST_SECONDS:
                yield line.strip(), seconds


def own_limits(entry: EntryView) -> list[float]:
    """Return the time limits in seconds that a call sets for itself: by `timeout`, or by a field of the tool."""
    found = [] if entry.timeout_ms is None else [entry.timeout_ms / 1_000]
    for name, value in fields_of(entry).items():
        match = _LIMIT_NAME.fullmatch(name)
        if match is None or isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e10:
            continue
        unit = (match["unit"] or match["more"] or "").lower()
        # A field without a unit may be in either. The result says which one it is.
        units = [1 if unit.startswith("s") else 60 if unit.startswith("min") else 0.001] if unit else [1, 0.001]
        found += [value * each for each in units]
    for words in split_command(command_of(entry)):
        if words[0].rpartition("/")[2] in ("timeout", "gtimeout") and (given := _timeout_words(words)) is not None:
            found.append(given[0])
    return found


def _timeout_words(words: list[str]) -> tuple[float, int] | None:
    """Return the seconds of the words of a `timeout` call, and the place of the program behind them."""
    place = 1
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] in ("-k", "-s", "--signal", "--kill-after") else 1
    worded = _WORDED.fullmatch(words[place]) if place < len(words) else None
    return None if worded is None else (float(worded[1]) * _UNITS[worded[2] or "s"], place + 1)


def without_wrappers(words: list[str]) -> list[str]:
    """Return the words of a command behind `timeout 60`, `nice -n 5`, `nohup` and the like."""
    while words:
        program = words[0].rpartition("/")[2]
        if program in ("timeout", "gtimeout"):
            given = _timeout_words(words)
            if given is None:
                return words
            words = words[given[1] :]
        elif program in ("nice", "ionice", "nohup", "setsid", "stdbuf"):
            place = 1
            while place < len(words) and words[place].startswith("-"):
                place += 2 if words[place] in ("-n", "-c") else 1
            words = words[place:]
        else:
            return words
    return words


def find_stop(evidence: Evidence, entry: EntryView) -> tuple[float, bool] | None:
    """Return the time limit in seconds at which a call was stopped, and whether the call had set it itself.

    None if the result does not say that the call was stopped, or by which limit: a program may speak of time-outs of its own,
    so a figure counts only where it is the call's own, or stands alone as the error of the client.
    """
    if entry.status in ("open", "ok"):
        return None
    said = evidence.text(entry)
    ends = f"{said[:_MOST_END]}\n{said[-_MOST_END:]}"
    limits = own_limits(entry)
    stated = [seconds for match in _ENDED_AFTER.finditer(ends) if (seconds := parse_duration(match[1].lower())) is not None]
    own = next((limit for limit in limits for seconds in stated if abs(limit - seconds) <= 0.02 * limit), None)
    if own is not None:
        return own, True
    if not stated and len(limits) == 1 and _ENDED.search(ends):
        return limits[0], True
    client = _BY_CLIENT.match(_error_text(entry))
    seconds = parse_duration(client[1].lower()) if client is not None else None
    return None if seconds is None or limits else (seconds, False)


def describe_stop(stop: tuple[float, bool]) -> str:
    """Return that a call was stopped at a limit, as the predicate of a sentence."""
    seconds, own = stop
    return f"is stopped by {'its own' if own else 'a'} time limit of {duration(seconds)}"


def _error_text(entry: EntryView) -> str:
    """Return the short message of a client about a call."""
    error: Any = entry.error
    said: Any = cast("dict[str, Any]", error).get("message") if isinstance(error, dict) else error
    return said if isinstance(said, str) and len(said) < _MOST_LINE else ""


def wait_of(entry: EntryView) -> float | None:
    """Return for how many seconds a call waits by its own words; None for a call that does something else."""
    command = command_of(entry)
    if not command:
        if vocabulary.classify(entry.action, "", "") != "sleep" and not _WAITING_NAME.search(entry.action):
            return None
        given = [
            value * _WAIT_FIELDS[name] for name, value in fields_of(entry).items()
            if name in _WAIT_FIELDS and isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e9
        ]  # fmt: skip
        return sum(given) if len(given) == 1 and given[0] >= _LEAST_WAIT else None
    parts = split_command(command)
    waits = [_wait_of_words(words) for words in parts]
    # What follows a pause may itself not return.
    if not waits or any(each is None for each in waits[-1:]) or re.search(r"(?<![\w-])(?:while|until|for|do)\b", command):
        return None
    total = sum(each for each in waits if each is not None)
    return total if total >= _LEAST_WAIT else None


def is_wait_field(name: str) -> bool:
    """Whether a field of a waiting tool says how long it waits."""
    return name in _WAIT_FIELDS


def _wait_of_words(words: list[str]) -> float | None:
    program = words[0].rpartition("/")[2]
    if program == "sleep":
        amounts = [_WORDED.fullmatch(word) for word in words[1:]]
        if not amounts or any(each is None for each in amounts):
            return None
        return sum(float(each[1]) * _UNITS[each[2] or "s"] for each in amounts if each is not None)
    options = _WAIT_OPTIONS.get(program, ())
    if program in ("kubectl", "oc") and "wait" not in words[1:2]:
        return None
    for place, word in enumerate(words):
        name, _, value = word.partition("=")
        if name in options:
            value = value or (words[place + 1] if place + 1 < len(words) else "")
            amount = _WORDED.fullmatch(value)
            return float(amount[1]) * _UNITS[amount[2] or "s"] if amount is not None else None
    return None


def end_of_wait(evidence: Evidence, entry: EntryView) -> tuple[str, bool] | None:
    """Return when an open call that waits will have waited as long as it was told, and whether that is past.

    The record tells the time: of its last record, or of a stall by how long it lasts.
    """
    seconds, start = wait_of(entry), parse_time(entry.ts)
    if entry.ts is None or seconds is None or start is None or seconds > _MOST_SECONDS:
        return None
    times = [each.ts for each in evidence.recent] + [each.at for each in evidence.messages]
    now = max((moment for each in times if each and (moment := parse_time(each)) is not None), default=start)
    stalled = evidence.finding.evidence.get("stalledSeconds") if evidence.finding is not None else None
    if isinstance(stalled, int | float):
        now = max(now, start + stalled)
    # By the clock of the record, whose zone may be another.
    begun = datetime.fromisoformat(entry.ts)
    if evidence.is_hung and not isinstance(stalled, int | float):
        return (begun + timedelta(seconds=seconds)).isoformat(), True
    return (begun + timedelta(seconds=seconds)).isoformat(), now > start + max(seconds * _NEAR, seconds + _LATE)


_LATE = 90
"""Seconds by which a wait may end later than told, for what its client does around it."""
