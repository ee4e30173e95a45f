"""A call ends at a time limit, and the record shows that it needs longer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxmgr.detect.step import duration
from ctxmgr.diagnose.evidence import Evidence, call_input
from ctxmgr.diagnose.evidence.calls import call_phrase, command_of, split_command
from ctxmgr.diagnose.evidence.durations import describe_stop, durations_in, find_stop, without_wrappers
from ctxmgr.diagnose.evidence.texts import capital, code, how_often
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.finding import Diagnosis, Quote
from ctxmgr.types.view import EntryView

_WORD, _FOLDER = lazy_pattern(r"[A-Za-z0-9]{3,40}"), lazy_pattern(r"[\w.~-]{0,80}/")
_GENERAL = word_set(
    "make build test tests run runs all main bash python python3 pytest node true false timeout npm yarn pnpm cargo task exec"
    " time with src out log logs txt file files home work repo debug release stderr stdout null dev tmp json yaml full data"
)
"""Words of a command that many others have too."""
_LIMIT = lazy_pattern(r"^(?:\S*/)?g?timeout(?: -\S+(?: (?=\d+[smhd]? \d)\S+)?)* \d[\d.]*[smhd]? (?=\S)")
_LEAST_LONGER, _LEAST_LETTERS = 1.05, 4


def diagnose_limit(kind: str, evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Say that a call was stopped at a time limit below the time that it takes according to the record."""
    stop = find_stop(evidence, entry)
    longer = _find_longer_run(evidence, entry, stop[0]) if stop is not None else None
    if stop is None or longer is None:
        return None
    seconds, line, source, quote = longer
    cause = (
        f"{call_phrase(entry, 80)} {describe_stop(stop)}{how_often(evidence.times(entry))}: that limit ends it, no want of"
        f" memory, and it need not hang. {capital(source)} names a longer time, {code(line, 70)}."
    )
    step = (
        f"Do not stop it at that limit again: run it once as it is with a limit well above {duration(seconds)}, or in the"
        f" background with its output in a file, {code(f'{remove_limit(command_of(entry))} > out.log 2>&1 &', 110)}, and look"
        " at that file now and then. Change nothing about it before it has had that time."
    )
    return diagnosis(
        kind, cause, step, quote, evidence.quote(entry), check="It must end by itself, with a result or an error of its own.",
        confidence="medium",
    )  # fmt: skip


def remove_limit(command: str) -> str:
    """Return a command without the `timeout` in front of it."""
    return _LIMIT.sub("", command)


def _find_longer_run(evidence: Evidence, entry: EntryView, limit: float) -> tuple[float, str, str, Quote] | None:
    """Return the seconds, the line, its source and its quote of a time longer than a limit that the record tells of a call."""
    words = _words_of(command_of(entry))
    for other in evidence.latest_before(entry.index):
        if other.status != "ok" or (other.agent != entry.agent and not words):
            continue
        said = evidence.text(other)
        found = [(line, seconds) for line, seconds in durations_in(said) if seconds > limit * _LEAST_LONGER]
        found = [each for each in found if _is_about(words, f"{call_input(other)}\n{each[0]}") or _is_same(entry, other)]
        if found:
            line, seconds = max(found, key=lambda each: each[1])
            return (
                seconds,
                line,
                evidence.source(other),
                evidence.quote(other, "\n".join(dict.fromkeys(each[0] for each in found))),
            )
        if _is_same(entry, other) and other.duration_ms is not None and other.duration_ms / 1_000 > limit * _LEAST_LONGER:
            return other.duration_ms / 1_000, "it ended ok", evidence.source(other), evidence.quote(other)
    for message in reversed(evidence.user_texts):
        for line, seconds in durations_in(message.text):
            if seconds > limit * _LEAST_LONGER and _is_about(words, line):
                quote = evidence.quote_message(message, line)
                return seconds, line, quote.source, quote
    return None


def _is_about(words: set[str], text: str) -> bool:
    return any(word in words for word in _list_words(text))


def _is_same(entry: EntryView, other: EntryView) -> bool:
    """Whether two calls run one command, whatever its time limit."""
    one, two = ([without_wrappers(words) for words in split_command(command_of(each))] for each in (entry, other))
    return bool(one) and one[-1] == two[-1] if two else False


def _words_of(command: str) -> set[str]:
    return set(_list_words(remove_limit(command)))


def _list_words(text: str) -> Iterator[str]:
    """Yield the words that may name what a command is about: long ones, and those with digits or capitals within."""
    # Many files share a folder.
    for word in _WORD.findall(_FOLDER.sub("", text[:4_000])):
        telling = len(word) >= _LEAST_LETTERS or re.search(r"\d|[a-z][A-Z]", word)
        if telling and not word.isdigit() and word.casefold() not in _GENERAL:
            yield word
