"""Calls that hold a lock: one that took a thing and did not give it back, or began a transaction that nobody has ended."""

from __future__ import annotations

import re

from ctxmgr.diagnose.classes.waiting.documented_answers import avoids_questions
from ctxmgr.diagnose.evidence import Evidence, Message, call_input, clock
from ctxmgr.diagnose.evidence.calls import command_of, runs_in_background, split_command, tool_phrase
from ctxmgr.diagnose.evidence.items import find_ids
from ctxmgr.diagnose.evidence.messages import split_sentences
from ctxmgr.diagnose.evidence.texts import ORDERS, capital, code, join_names, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis, Quote
from ctxmgr.types.view import EntryView

_KIND = "waitingOnLock"
_BEGIN = r"(?:begin(?: (?:immediate|exclusive|deferred|concurrent|tran\w*|work))*|start transaction)\b[^\n;\"']{0,40}"
_BEGINS = lazy_pattern(
    # A quoted word in a statement begins nothing.
    rf"(?:^|;|\(\s*[\"'])\s*{_BEGIN}(?:;|$|[\"']\s*[,)])|[\"']\s*{_BEGIN};",
    re.IGNORECASE | re.MULTILINE,
)
_ENDS = lazy_pattern(
    r"(?:^|[;\"'])\s*(?:commit|rollback(?! to)|end(?: transaction)?|abort)\b\s*(?:[;\"']|$)|\.(?:commit|rollback|close)\(\)"
    r"|^(?:close|disconnect|quit|\.quit|\\q)$",
    re.IGNORECASE | re.MULTILINE,
)
_ASKS = lazy_pattern(
    r"\b(?:as soon as|once|until|when|after|before|unless) (?:you|your|i (?:have|hear|get|know))\b|\bwait\w* (?:for|on)\b"
    r"|\b(?:answer|reply|confirm|tell me|let me know)\b",
    re.IGNORECASE,
)


def find_open_transaction(evidence: Evidence, entry: EntryView, database: str | None) -> EntryView | None:
    """Return the newest call before another one that began a transaction in a database and left it open."""
    name = (database or "").rpartition("/")[2]
    ended: list[EntryView] = []
    for other in evidence.latest_before(entry.index) if name else ():
        asked = call_input(other)
        # The session of a command ends with it.
        if not evidence.has_succeeded(other) or (command_of(other) and not runs_in_background(command_of(other))):
            continue
        if _ENDS.search(asked):
            ended.append(other)
        elif _BEGINS.search(asked) and not any(_is_same_session(other, each) for each in ended):
            return other if _is_of_database(evidence, other, name) else None
    return None


def _is_same_session(one: EntryView, other: EntryView) -> bool:
    """Whether two calls are of one database session: of one agent, with a common id if they have any."""
    ids = find_ids(call_input(one))
    return one.agent == other.agent and (not ids or bool(ids & find_ids(call_input(other))))


def _is_of_database(evidence: Evidence, begun: EntryView, name: str) -> bool:
    """Whether a call names a database, or a call of its session does."""
    return any(
        name in call_input(each) and (each.id == begun.id or (not command_of(each) and _is_same_session(begun, each)))
        for each in evidence.recent
        if each.index <= begun.index
    )


def diagnose_open_transaction(evidence: Evidence, begun: EntryView, cause: str, quotes: list[Quote]) -> Diagnosis:
    """Say who holds the transaction, and what that agent said it waits for."""
    ids = sorted(find_ids(call_input(begun)))
    what = f"a transaction{f' ({join_names(ids, 2)})' if ids else ''}"
    own, who = evidence.is_own(begun), evidence.maker(begun)
    holder = "You hold it yourself" if own else f"{capital(who)} holds it"
    cause += f" {holder}: the {tool_phrase(begun)} call{clock(begun.ts)} began {what}, and no commit of it follows."
    quotes.append(evidence.quote(begun, call_input(begun)))
    check = "Running it again while the transaction is open can't help."
    if own:
        step = "Commit that transaction, or roll it back, in its own session; then run this once more."
        return diagnosis(_KIND, cause, step, *quotes, check=check)
    asked = _find_question(evidence, begun)
    if asked is None:
        step = f"Ask {who} to commit that transaction or to roll it back, and run this once more after that."
        return diagnosis(_KIND, cause, step, *quotes, check=check)
    message, sentence = asked
    cause += f" {capital(who)} said{clock(message.at)}: {code(sentence, 150)}."
    quotes.append(evidence.quote_message(message, sentence))
    step = f"Answer {who} what it asks, {code(sentence, 150)}, and run this once more when {who} has committed."
    return diagnosis(_KIND, cause, step, *quotes, check=check)


def _find_question(evidence: Evidence, begun: EntryView) -> tuple[Message, str] | None:
    """Return the newest sentence with which the agent of a transaction said, since it began, what it waits for."""
    return next(
        (
            (message, sentence)
            for message in reversed(evidence.messages)
            if message.by == "agent" and message.who == begun.agent and (message.after or 0) >= begun.index
            for sentence in split_sentences(message.text)
            if _ASKS.search(sentence) and not ORDERS.search(sentence)
        ),
        None,
    )


_OUTPUT = lazy_pattern(r">{1,2} ?([\w./-]{3,80})")
_AWAITS = lazy_pattern(
    r"[^\n]{0,120}(?:\[[yY](?:es)?/[nN]o?\]|\([yY](?:es)?/[nN]o?[^)\n]{0,30}\)"
    r"|\b(?:enter|type|press|choose|select|confirm|continue|proceed|overwrite|pass(?:word|phrase|code)|username|your)\b"
    r"[^\n?:]{0,80})(?: ?[?:])?\Z|[^\n]{3,120}\?\Z",
    re.IGNORECASE,
)
"""The end of an output that waits for an answer."""
_AWAITS_THING = lazy_pattern(
    r"[^\n]{0,80}\b(?:waiting|waits?|blocked|paused|held) (?:for|until|on)\b[^\n]{2,80}\Z", re.IGNORECASE
)
"""The end of an output that waits for something to be done or made."""
_THING = lazy_pattern(
    r"(?<![\w./-])(?:[\w.-]{1,60}/){1,8}[\w.-]{1,60}|(?<![\w.])[\w-]{2,60}\.[a-z]{1,8}(?![\w.])|`[^`\n]{2,60}`"
)
_SHOWS_PROCESS = lazy_pattern(r"\b(?:ps|pgrep|kill|pkill|fuser|lsof|wait)\b")


def find_open_prompt(evidence: Evidence, holder: EntryView, number: str | None) -> tuple[EntryView, str] | None:
    """Return the prompt in which the output of a call that was left running ends, and the newest call that shows it."""
    file = _OUTPUT.search(command_of(holder))
    names = [name for name in (file.group(1).rpartition("/")[2] if file else "", number) if name and name != "null"]
    looks = (
        each
        for each in reversed(evidence.recent)
        if each.index > holder.index and each.status == "ok" and any(name in call_input(each) for name in names)
        if not _SHOWS_PROCESS.search(command_of(each)) and evidence.text(each).strip()
    )
    look = next(looks, None)
    said = (evidence.output_so_far(holder) if look is None else evidence.text(look)).rstrip()[-400:]
    match = _AWAITS.search(said) or _AWAITS_THING.search(said)
    return (look or holder, match.group(0).strip()) if match is not None else None


def diagnose_asking_holder(
    evidence: Evidence, holder: EntryView, number: str | None, question: tuple[EntryView, str], cause: str, quotes: list[Quote]
) -> Diagnosis:
    """Say that what holds the lock waits for an answer that nobody can give."""
    shown, prompt = question
    own, who = evidence.is_own(holder), evidence.maker(holder)
    if _AWAITS.search(prompt) is None:
        return _diagnose_awaiting_holder(evidence, holder, number, question, cause, quotes)
    asked = "a question" if ORDERS.search(prompt) else code(prompt, 50)
    cause += f" Its output ends in {asked}, as {evidence.source(shown)} shows: it waits for an answer that nobody gives."
    given = [word for each in evidence.failing_calls[:1] for words in split_command(command_of(each)) for word in words]
    option = next((each for each in given if avoids_questions(each) and each not in command_of(holder).split()), None)
    end = f"`kill {number}`" if number and number.isdigit() else number or f"end {code(command_of(holder), 80)}"
    step = (
        f"Waiting can't end it. {f'Stop it ({end})' if own else f'Ask {who} to stop it ({end})'} and do not remove the lock by"
        " hand. When it is gone, run yours once, "
        f"{f'with {code(option, 40)}, which asks nothing' if option else 'with the option that answers its question'}"
        ", if the user wants what it asks."
    )
    check = "Make sure that process is gone before you run it again."
    return diagnosis(_KIND, cause, step, *quotes, evidence.quote(shown, prompt), check=check)


def _diagnose_awaiting_holder(
    evidence: Evidence, holder: EntryView, number: str | None, question: tuple[EntryView, str], cause: str, quotes: list[Quote]
) -> Diagnosis:
    """Say that what holds the lock waits for something that somebody has to make or do."""
    shown, line = question
    own, who = evidence.is_own(holder), evidence.maker(holder)
    names = [each.strip("`") for each in _THING.findall(line) if plain_name(each.strip("`"))]
    told = f", {code(line, 110)}" if not ORDERS.search(line) else ""
    cause += f" Its output ends there{told}, as {evidence.source(shown)} shows: until it has that, it keeps the lock."
    thing = join_names(names[:2]) if names else "what it waits for"
    end = f"`kill {number}`" if number and number.isdigit() else number or f"end {code(command_of(holder), 60)}"
    step = (
        f"See to {thing}, which it waits for, as its source or notes say, if the task allows it; then it can go on and give the"
        f" lock back. {f'End it ({end})' if own else f'Ask {who} to end it'} only if its work may be lost. Then run this once"
        " more."
    )
    check = "Make sure that it has ended before you run it again."
    return diagnosis(_KIND, cause, step, *quotes, evidence.quote(shown, line), check=check)
