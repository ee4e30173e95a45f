"""A transaction that a call began in a database session and nobody has ended: it holds the locks of that database."""

from __future__ import annotations

import re

from ctxmgr.diagnose.evidence import Evidence, Message, call_input, clock
from ctxmgr.diagnose.evidence.calls import command_of, runs_in_background, tool_phrase
from ctxmgr.diagnose.evidence.items import find_ids
from ctxmgr.diagnose.evidence.messages import split_sentences
from ctxmgr.diagnose.evidence.texts import ORDERS, capital, code, join_names
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
_LOOKED_AT = 300


def find_open_transaction(evidence: Evidence, entry: EntryView, database: str | None) -> EntryView | None:
    """Return the newest call before another one that began a transaction in a database and left it open."""
    name = (database or "").rpartition("/")[2]
    ended: list[EntryView] = []
    for other in list(evidence.entries_before(entry.index))[:_LOOKED_AT] if name else ():
        asked = call_input(other)
        # The session of a command ends with it.
        if (
            other.status != "ok"
            or evidence.has_failed(other)
            or (command_of(other) and not runs_in_background(command_of(other)))
        ):
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
