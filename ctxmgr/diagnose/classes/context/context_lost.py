"""The context was compacted, and the agent looks again for what was dropped."""

from __future__ import annotations

import re

from ctxmgr.diagnose.evidence import Evidence, Message, call_input, call_key, clock, may_change
from ctxmgr.diagnose.evidence.calls import command_of, path_of, tool_phrase
from ctxmgr.diagnose.evidence.texts import code, join_names, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "contextLost"

_LEAST_LOOKUPS = 2


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return what was known before the compaction and is asked for again after it."""
    compactions = [message for message in evidence.messages if message.kind == "compaction" and message.after is not None]
    # Without a repeated call, nothing is looked for again.
    if not compactions or not evidence.loop:
        return None
    last = compactions[-1]
    place = last.after if last.after is not None else -1
    if evidence.finding is not None and evidence.finding.kind != "contextLoop" and evidence.onset > place:
        return None  # the loop began after the compaction, and repeats only itself
    again = _list_repeated_lookups(evidence, place)
    # If two compactions follow each other quickly, the look-ups come before the first one.
    if len(again) < _LEAST_LOOKUPS and len(compactions) > 1:
        again = _list_repeated_lookups(evidence, compactions[-2].after or 0)
    # A lost value is the better cause, since repeated look-ups follow from it.
    if len(again) >= _LEAST_LOOKUPS and _find_dropped_value(evidence, last, place) is None:
        return _explain_repeated_lookups(evidence, compactions, last, again)
    return _diagnose_dropped_value(evidence, last, place)


def _list_repeated_lookups(evidence: Evidence, place: int) -> list[tuple[EntryView, EntryView]]:
    """Return pairs of equal look-ups with equal answers, one before and one after the compaction."""
    before = {
        call_key(entry): entry
        for entry in evidence.recent
        # A repeated change is work, not a look-up.
        if entry.index <= place and entry.status == "ok" and not may_change(entry)
    }
    found: dict[str, tuple[EntryView, EntryView]] = {}
    for entry in evidence.recent:
        key = call_key(entry)
        if (
            entry.index > place
            and key in before
            and entry.status == "ok"
            # Another answer is news
            and evidence.text(entry) == evidence.text(before[key])
        ):
            found.setdefault(key, (before[key], entry))
    return list(found.values())


def _explain_repeated_lookups(
    evidence: Evidence, compactions: list[Message], last: Message, again: list[tuple[EntryView, EntryView]]
) -> Diagnosis:
    names = [evidence.name(path) if (path := path_of(each)) else command_of(each) or tool_phrase(each) for each, _ in again]
    often = f" {len(compactions)} times, last" if len(compactions) > 1 else ""
    earlier = clock(again[0][0].ts)
    cause = (
        f"The context was compacted{often}{clock(last.at)}, and since then you look up again what you knew{earlier}:"
        f" {join_names(names, 4)}. The answers are the same."
    )
    dropped = _find_dropped_message(evidence, last)
    if dropped is not None:
        cause += f" The summary also leaves out what the user said{clock(dropped.at)}: {code(dropped.text, 120)}."
    change = next((entry for entry in reversed(evidence.recent) if entry.status == "ok" and may_change(entry)), None)
    onward = (
        (f" Then go on behind your last change, {evidence.source(change)}.")
        if change is not None
        else " Then make the next change of the task."
    )
    step = (
        "Write down in one note the task, what these files and answers show, and the next step; do not read them"
        f" again.{onward}"
    )
    quotes = [evidence.quote(again[0][0]), evidence.quote_message(last)] + (
        [evidence.quote_message(dropped)] if dropped else []
    )
    return diagnosis(KIND, cause, step, *quotes, check="The note must answer what you looked up after the compaction.")


def _find_dropped_message(evidence: Evidence, last: Message) -> Message | None:
    """Return the newest message of a person of which the summary holds next to nothing."""
    if not last.text.strip():
        return None
    summary_words = {word for word in last.text.casefold().split() if len(word) > 3}
    for message in reversed(evidence.user_texts):
        # A message after the compaction could not be in its summary.
        if message.after is not None and last.after is not None and message.after > last.after:
            continue
        words = {word for word in message.text.casefold().split() if len(word) > 3}
        # A summary uses its own words, so a few shared ones are enough.
        if len(words) > 2 and len(words & summary_words) * 5 < len(words):
            return message
    return None


# Values by their form: `v23`, `db-main`, `orders_eu`, `eu/west`. Plain words occur in every message.
_VALUE = lazy_pattern(r"(?<![\w-])(?=[\w./:@-]{0,60}[\d_/@:-])[A-Za-z0-9][\w./:@-]{1,60}[A-Za-z0-9](?![\w-])|`([^`\n]{2,60})`")
_LEAST_SINCE = 3


def _find_dropped_value(evidence: Evidence, last: Message, place: int) -> tuple[Message, str] | None:
    """Return the newest value of a person that calls used only before the compaction, and that its summary lacks."""
    before = "\n".join(call_input(entry) for entry in evidence.recent if entry.index <= place)
    since = [entry for entry in evidence.recent if entry.index > place]
    # After one or two calls, the value may simply not have been needed yet.
    if len(since) < _LEAST_SINCE:
        return None
    used = "\n".join(call_input(entry) for entry in since)
    for message in reversed(evidence.user_texts):
        # Newer words of the user may have replaced the value.
        if message.after is not None and message.after > place:
            return None
        for match in _VALUE.finditer(message.text[:8_000]):
            value = (match.group(1) or match.group(0)).rstrip(".,:")
            if (
                len(value) > 2
                and plain_name(value)
                and value in before
                and value not in used
                # A value in the summary is not lost.
                and value not in last.text
                # A bare number occurs in most texts by chance.
                and not value.replace(".", "").replace(",", "").isdigit()
            ):
                return message, value
    return None


def _diagnose_dropped_value(evidence: Evidence, last: Message, place: int) -> Diagnosis | None:
    """Say which value of the user the compaction dropped."""
    found = _find_dropped_value(evidence, last, place)
    # If nothing is wrong, the value is just not needed any more.
    if found is None or (evidence.finding is None and not evidence.failing_calls):
        return None
    message, value = found
    sentence = next((part.strip() for part in re.findall(r"[^.!?\n]{1,300}[.!?]?", message.text) if value in part), value)
    cause = (
        f"The context was compacted{clock(last.at)}, and its summary leaves out {code(value, 60)}. The user "
        f"said{clock(message.at)}: {code(sentence, 150)}."
        " Your calls used it before, and none has since."
    )
    step = f"Go on with {code(value, 60)}, as the user said; look it up no more, and keep it in your notes."
    used = next((entry for entry in evidence.entries_before(place + 1) if value in call_input(entry)), None)
    quotes = [evidence.quote_message(message, sentence), evidence.quote_message(last)] + (
        [evidence.quote(used, call_input(used)[:300])] if used else []
    )
    return diagnosis(KIND, cause, step, *quotes, check="The next call must name it.")
