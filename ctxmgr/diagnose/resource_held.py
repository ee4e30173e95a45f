"""A port or other resource is taken; the record shows by whom, and since when."""

from __future__ import annotations

import re

from ctxmgr.diagnose.calls import command_of, fields_of, in_background, tool
from ctxmgr.diagnose.evidence import Evidence, clock
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.texts import code, words_of
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.diagnosis import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "resourceHeld"

_TAKEN = lazy_pattern(
    r"address already in use|EADDRINUSE|port is already allocated|only one usage of each socket"
    r"|port \d{2,5} (?:is )?(?:already )?(?:in use|taken|being used|used)|address in use|port already in use"
    r"|something is already running on port",
    re.IGNORECASE,
)
_PORT_SAID = lazy_pattern(
    r"(?:EADDRINUSE|in use|allocated|port|bind|listen)[^\n]{0,60}?(?<![\d.])(?:[\d.]{7,15}|\[?::\]?|localhost"
    r"|\*)?:?(\d{2,5})\b",
    re.IGNORECASE,
)
_PORT_GIVEN = lazy_pattern(r"(?:--port[= ]|-p[= ]?|PORT=|http\.server |:|--bind \S+ )(\d{4,5})\b|(?<=\s)(\d{4,5})(?=\s|$)")
_HOLDER = lazy_pattern(
    r"users:\(\(\"([^\"]{1,40})\",pid=(\d{1,8})|^(\S{1,40})\s+(\d{1,8})\s+\S+\s+\d+u|(\d{1,8})/(\S{1,40})\s*$", re.MULTILINE
)
_ENDS = lazy_pattern(
    r"\b(?:kill|pkill|killall|docker (?:stop|rm|compose down)|systemctl stop)\b|fuser -k|TaskStop|KillShell|KillBash"
)
_LOOKS = lazy_pattern(r"\b(?:lsof|netstat|curl|wget|grep|cat|sed)\b|\bss -|\bnc ")
_LOOKED_AT = 400


def applies(evidence: Evidence) -> Diagnosis | None:
    """Return who holds what a call needs."""
    for entry in evidence.failing:
        said = evidence.text(entry)
        match = _TAKEN.search(said)
        if match is None:
            continue
        line = evidence.line(entry, _TAKEN)
        port = _port(line, command_of(entry))
        return _told(evidence, entry, line, port) if port else None
    return None


def _port(line: str, command: str) -> str | None:
    said = [port for port in re.findall(r"(?<!\d)(\d{2,5})(?!\d)", line) if int(port) > 100 or port in ("80",)]
    given = [one or other for one, other in _PORT_GIVEN.findall(command)]
    both = [port for port in said if port in given]
    named = _PORT_SAID.search(line)
    return (
        next(iter(both), None) or next(iter(given), None) or (named.group(1) if named and int(named.group(1)) > 100 else None)
    )


def _told(evidence: Evidence, entry: EntryView, line: str, port: str) -> Diagnosis:
    quotes = [evidence.quote(entry, line)]
    cause = f"{code(command_of(entry) or tool(entry), 90)} can't start: port {port} is taken, {words_of(_TAKEN, line)}."
    own = _starter(evidence, entry, port)
    listing = _listing(evidence, port)
    if own is not None:
        started, worked = own
        cause += f" You started what holds it yourself{clock(started.ts)} with {code(command_of(started), 90)}."
        quotes.append(evidence.quote(started, command_of(started)))
        step = (
            f"Use the one that runs already: send your request to port {port}. If it must be a new one, stop the one you"
            f" started{clock(started.ts)} first, then start it once."
        )
        return diagnosis(
            KIND, cause, step, *quotes, check=f"A request to port {port} must be answered.",
            confidence="high" if worked else "medium",
        )  # fmt: skip
    other = str(int(port) + 1) if int(port) < 65_000 else str(int(port) - 1)
    if listing is not None:
        shown, program, pid = listing
        cause += f" It is held by {code(program, 40)}, process {pid}, as {evidence.source(shown)} shows."
        quotes.append(evidence.quote(shown))
        step = (
            f"You did not start that process, so leave it alone: start yours on another port, such as {other}, or ask the user."
        )
        return diagnosis(KIND, cause, step, *quotes, check=f"It must say that it listens on port {other}.")
    step = f"See what holds it with `ss -ltnp`, and start yours on another port, such as {other}, unless that process is yours."
    return diagnosis(
        KIND, cause, step, *quotes, check="Trying the same port again can't help while it is held.", confidence="medium"
    )


def _starter(evidence: Evidence, entry: EntryView, port: str) -> tuple[EntryView, bool] | None:
    """Return the earlier call of the session that took the port, and whether it is shown that it did."""
    pattern = re.compile(rf"(?<!\d){port}(?!\d)")
    for other in list(evidence.before(entry.index))[:_LOOKED_AT]:
        command = command_of(other)
        if _ENDS.search(command or other.action) and other.status == "ok":
            return None  # something was ended since: what it was can't be told
        if other.status not in ("ok", "open") or not pattern.search(command) or evidence.failed(other):
            continue
        if _LOOKS.search(command):
            continue
        said = evidence.text(other)
        stays = other.status == "open" or in_background(command)
        serves = re.search(r"(?:serving|listening|running|started|ready)\b[^\n]{0,80}", said, re.IGNORECASE) is not None
        background = any("background" in name and value is True for name, value in fields_of(other).items())
        if stays or serves or background:
            return other, stays or background or serves
    return None


def _listing(evidence: Evidence, port: str) -> tuple[EntryView, str, str] | None:
    pattern = re.compile(rf":{port}(?!\d)")
    for other in reversed(evidence.recent[-_LOOKED_AT:]):
        if not re.search(r"\b(?:lsof|ss|netstat|fuser)\b", command_of(other)):
            continue
        for line in evidence.text(other).split("\n")[:200]:
            match = _HOLDER.search(line) if pattern.search(line) else None
            if match is not None:
                groups = match.groups()
                program, pid = (
                    (groups[0], groups[1]) if groups[0] else (groups[2], groups[3]) if groups[2] else (groups[5], groups[4])
                )
                return other, program, pid
    return None
