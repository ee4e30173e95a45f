"""Histories of any length for measuring: the same at each run, made once, with words planted whose places are known.

Texts are slices of the standard library's sources and prose, so that words and punctuation are spread as in what agents
read and write. 60 % of the records are actions with their outcome, 40 % are messages; a line has 1.1 KB on average; each
record holds a random id of 32 hexadecimal digits. The logs are valid: format 1, with the chain of sums.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path
from pydoc_data.topics import topics

from bench.speed.figures import HUGE
from ctxmgr.log.codec import chain, seal
from ctxmgr.log.ids import format_time

RARE, PERCENT, COMMON, ABSENT = "zxqvortex", "quillfish", "brindlewick", "qqqzzzqq"
RARE_ACTION = "surveyTheReef"
RARE_MARKS = "<|~%>"
"""Planted with the rare word, as it may stand in a text."""

MEAN_LINE = 1_150
"""Bytes of a line, a little more than the mean."""

_SEED = 20_260_122
_START = 1_767_225_600  # 2026-01-01
_SESSION = "bench"
_RARE_LINES = 10
_ACTIONS = ("Bash", "Read", "Edit", "Grep", "WebFetch", "kickOffDiscoveryAgents", "Write", "Glob")
_SAID = ("message", "message", "user_message", "thought")
_MEDIAN, _SPREAD, _LONGEST = 6.4, 0.7, 90_000  # of the lognormal number of characters of a record's text
_LOOP_EVERY, _LOOP_FIRST, _LOOP_STEPS = 20_000, 5_000, 10  # records between planted loops, before the first, and in one
_LOOP = (
    b',"agent":"agent-0","action":"Read","inputType":"object","input":{"path":"src/lost.py","command":"look for it again"},'
    b'"status":"ok","output":"it is not here","durationMs":12.5}'
)
_CHUNK = 2_000


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a history because it was planted.

    Attributes:
        records: lines, the session's own included; entries, messages: of these.
        rare: records that hold the rare word; percent, common, rare_action: likewise.
        loops: planted; rare_call: the hexadecimal id that the first record with the rare word holds.
    """

    records: int
    entries: int
    messages: int
    rare: int
    percent: int
    common: int
    rare_action: int
    loops: int
    rare_call: str
    bytes: int


@dataclass(frozen=True, slots=True)
class History:
    """One generated log, and what is known of it."""

    size: int
    path: Path
    facts: Facts

    @property
    def is_huge(self) -> bool:
        """Whether it is only searched."""
        return self.size >= HUGE


EVERYTHING, ASKED, SEARCHED = 9, 5, 2
"""Times the bytes of a log that must be free for all measurements, for those without importing, and for one that is huge."""


def prepared(folder: Path, size: int, times: int = EVERYTHING) -> History:
    """Return the history of so many records, made now or earlier.

    Args:
        folder: it lies there.
        size: records.
        times: how many times its bytes must be free on the disk.

    Raises:
        OSError: there is not room for it and for what is made of it.
    """
    stem = folder / f"h{size}-{_edition()}"
    log, told = stem.with_suffix(".jsonl"), stem.with_suffix(".json")
    if not told.exists():
        require_room(folder, size * MEAN_LINE * times)
        for old in folder.glob(f"h{size}-*"):
            old.unlink()
        facts = write(log, size)
        told.write_text(json.dumps(asdict(facts)), encoding="ascii")
    return History(size, log, Facts(**json.loads(told.read_text(encoding="ascii"))))


def require_room(folder: Path, needed: int) -> None:
    """Refuse to begin what would fill the disk.

    Raises:
        OSError: there are not so many bytes free.
    """
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(f"{needed / 1e9:.1f} GB of disk are needed, {free / 1e9:.1f} GB are free")


def write(path: Path, size: int) -> Facts:
    """Write a history of so many records, at least 100; it appears whole or not at all."""
    unfinished = path.with_name(f"unfinished-{path.name}")
    counts: dict[str, int] = dict.fromkeys(("entries", "messages", "rare", "percent", "common", "rare_action", "loops"), 0)
    calls: list[str] = []
    total, length = "", 0
    with unfinished.open("wb") as stream:
        chunk: list[bytes] = []
        for body in _bodies(size, counts, calls):
            total = chain(total, body)
            chunk.append(seal(body, total))
            if len(chunk) == _CHUNK:
                length += stream.write(b"\n".join(chunk) + b"\n")
                chunk.clear()
        if chunk:
            length += stream.write(b"\n".join(chunk) + b"\n")
    unfinished.rename(path)
    return Facts(records=size + 1, rare_call=calls[0], bytes=length, **counts)


def _edition() -> str:
    """Return what changes when the same size would give another history."""
    sources = Path(__file__).read_bytes() + repr(sys.version_info).encode()
    return hashlib.sha256(sources).hexdigest()[:8]


def _corpus() -> str:
    root = Path(sysconfig.get_path("stdlib"))
    files = [*sorted({*root.glob("*.py")} - {root / "locale.py"}), *sorted((root / "asyncio").glob("*.py"))]  # no tables
    prose = "\n".join(text for _, text in sorted(topics.items()))
    # Prose is an eighth of the sources; three times as much comes nearer to what is said between actions.
    return "\n".join([*(path.read_text(encoding="utf-8") for path in files), prose, prose, prose])


def _bodies(size: int, counts: dict[str, int], calls: list[str]) -> Iterator[bytes]:
    """Yield the lines without their sums; count what is planted."""
    chance = random.Random(_SEED)
    text_of, clock = _texts(chance), _clock()
    rare = {(2 * place + 1) * size // (2 * _RARE_LINES) - 3 for place in range(_RARE_LINES)}
    yield f'{{"v":1,"kind":"session","session":"{_SESSION}","ts":"{clock(0)}","process":"p1"}}'.encode("ascii")
    for number in range(size):
        call = f"{chance.getrandbits(128):032x}"
        head = f'{{"v":1,"kind":"%s","session":"{_SESSION}","ts":"{clock(number)}","id":"r{number:09}{call[:8]}"'
        place = number % _LOOP_EVERY - _LOOP_FIRST
        if 0 <= place < _LOOP_STEPS:
            counts["entries"] += 1
            counts["loops"] += place == 0
            yield (head % "entry").encode("ascii") + _LOOP
            continue
        text = text_of()
        if number in rare:
            text += f" {RARE} was {RARE_MARKS} here"
            calls.append(call)
            counts["rare"] += 1
        if number % 100 == 37:
            text = f"{PERCENT} {text}"
            counts["percent"] += 1
        if number % 4 == 0:
            middle = len(text) // 2
            text = f"{text[:middle]} {COMMON} {text[middle:]}"
            counts["common"] += 1
        if number % 5 < 3:
            counts["entries"] += 1
            yield (head % "entry").encode("ascii") + _entry(number, text, call, chance, counts)
        else:
            counts["messages"] += 1
            agent = f',"agent":"agent-{number % 7}","type":"{_SAID[number % 4]}","data":{{"text":'
            yield (f'{head % "event"}{agent}{quoted(text)},"request":"{call}"}}}}').encode("ascii")


def _entry(number: int, text: str, call: str, chance: random.Random, counts: dict[str, int]) -> bytes:
    """Return an entry's members behind its id."""
    action = _ACTIONS[chance.getrandbits(3)]
    if number % 5_000 == 11 or number == 1:
        action = RARE_ACTION
        counts["rare_action"] += 1
    command, output = text[: len(text) // 4], text[len(text) // 4 :]
    failed = number % 50 == 1
    outcome = f'"status":"error","error":{{"type":"Error","message":{quoted(output)}}}' if failed else (
        f'"status":"ok","output":{quoted(output)}'
    )  # fmt: skip
    return (
        f',"agent":"agent-{number % 7}","action":"{action}","inputType":"object",'
        f'"input":{{"path":"src/module_{number % 977}.py","command":{quoted(command)},"call":"{call}"}},'
        f'"turn":{number},{outcome},"durationMs":{number % 900}.5}}'
    ).encode("ascii")


def _texts(chance: random.Random) -> Callable[[], str]:
    corpus = _corpus()
    last = len(corpus) - _LONGEST
    length_of, place_of = chance.lognormvariate, chance.random

    def text() -> str:
        place = int(place_of() * last)
        return corpus[place : place + min(_LONGEST, 20 + int(length_of(_MEDIAN, _SPREAD)))]

    return text


def _clock() -> Callable[[int], str]:
    """Return what gives the time so many seconds after the start; texts are made once a minute."""
    minute, text = -1, ""

    def at(second: int) -> str:
        nonlocal minute, text
        if second // 60 != minute:
            minute = second // 60
            text = format_time(_START + minute * 60)[:17]
        return f"{text}{second % 60:02}Z"

    return at
