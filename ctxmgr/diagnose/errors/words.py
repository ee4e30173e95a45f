"""The words of an error that our own sentences may repeat: usual words of errors, names, and what the error offers instead.

An output may contain orders. A run of usual words of errors, with names between them, is none. The members of a
structured error may be named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, cast

from ctxmgr.diagnose.errors.table import error_words
from ctxmgr.diagnose.evidence import call_input
from ctxmgr.diagnose.evidence.items import find_json
from ctxmgr.diagnose.evidence.texts import ORDERS, code, plain_name
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.view import EntryView

_TOKEN = lazy_pattern(r"\S+")
_CODED = lazy_pattern(r"[\d_./:=@#<>\[\](){}-]|[a-z][A-Z]|^[A-Z]{2,8}$")
_NAMED = lazy_pattern(r"^\w*(?:Error|Exception|Fault|Warning)$")
_LEAST, _MOST, _READ = 2, 160, 2_000


@cache
def _words() -> frozenset[str]:
    return frozenset(error_words().split())


def told_words(line: str) -> str:
    """Return the longest run of usual words of errors and names in a line, as a quote; "" if there is none.

    One other word within it is left out. More of them could be an order, of which only the names would remain.
    """
    runs: list[list[str]] = [[]]
    gap = 0
    for token in _TOKEN.findall(line[:_READ]):
        if _is_error_word(token):
            if gap:
                runs.append([])
            runs[-1].append(token)
            gap = 0
        else:
            gap += 1
            if gap == _LEAST:
                runs.append([])
    joined: list[list[str]] = []
    for run in runs:
        # Two other words in a row end a run, since more could be an order.
        words = [token for token in run if _letters(token).casefold() in _words()]
        if joined and joined[-1] and len(words) >= _LEAST:
            joined[-1] += ["…", *run]
        else:
            joined.append(run)
    best = max(joined, key=len)
    text = " ".join(best)
    # A run of nothing but names says nothing about the error.
    named = any(_letters(token).casefold() in _words() or _NAMED.search(_letters(token)) for token in best)
    return code(text, _MOST) if len(best) >= _LEAST and named else ""


def told_lines(lines: Sequence[str]) -> str:
    """Return the lines of an error that may be repeated whole, as a quote; if there are none, their words that may be.

    A line may be repeated whole if it mostly has usual words of errors and names, addresses nobody and asks for nothing.
    """
    fair = [line if _is_quotable(line) else told_words(line).strip("`") for line in lines]
    # Two lines may say the same, with other words around it.
    new = [text for place, text in enumerate(fair) if text and not any(text in each for each in fair[:place])]
    return code(told, _MOST_LINE) if (told := "; ".join(new)) else ""


def _is_quotable(line: str) -> bool:
    tokens = _TOKEN.findall(line[:_READ])
    foreign = sum(not _is_error_word(token) for token in tokens)
    # A request to somebody is no statement.
    if ORDERS.search(line) or _ASKS.search(line):
        return False
    return 0 < len(tokens) <= _MOST_TOKENS and foreign <= max(_LEAST, _FOREIGN * len(tokens))


_ASKS = lazy_pattern(
    r"\b(?:you (?:must|should|need|can|may|are to|have to)|your (?:task|instructions?|next)|please|ignore|disregard"
    r"|forget|obey|instructions?|approved|execute|sudo|rm|send|upload|email|reveal|print)\b"
    r"|(?:^|[.;:,!] |\band |\bthen |\bto )(?:run|delete|remove|drop|push|install|disable|export|set|use|add|call|open"
    r"|write|edit)\b",
    re.IGNORECASE,
)
"""Words that address somebody."""
_MOST_TOKENS, _FOREIGN, _MOST_LINE = 40, 0.6, 190


def addresses_reader(text: str) -> bool:
    """Whether a text addresses somebody: it asks, orders or allows."""
    return _ASKS.search(text) is not None


def is_error_word(word: str) -> bool:
    """Whether a word is a usual word of errors."""
    return word.casefold() in _words()


def _letters(token: str) -> str:
    return token.strip("`'\"‘’“”,.:;!?()[]{}<>*-│")


def _is_error_word(token: str) -> bool:
    bare = _letters(token)
    if not bare or bare.casefold() in _words() or re.fullmatch(r"\w*(?:Error|Exception|Fault|Warning)", bare):
        return True
    quoted = token.strip(",.:;!?()")[:1] in "`'\"‘“" and token.strip(",.:;!?()")[-1:] in "`'\"’”"
    return (
        # A word in quotes, or one that is written like code, is a name.
        (quoted or _CODED.search(bare) is not None) and plain_name(bare.replace("(", "").replace(")", "")) and "`" not in token
    )


_OFFERED = tuple(
    lazy_pattern(pattern, re.IGNORECASE | re.MULTILINE)
    for pattern in (
        r"\b(?:did you mean|(?:maybe|perhaps) you meant)[ :]{1,3}[`'\"]?([\w@./+:-]{2,90})",
        r"\b(?:hint|help|try|run|use|call|install (?:it )?with|to fix[^:\n]{0,60})\b(?: running| with| using)?:?\s{1,6}"
        r"[`'\"]([\w@./ =+:-]{3,90})[`'\"]",
        r"\b(?:call|run|try|use|hint)(?: the following)?:\s{1,8}((?:git|npm|pip|python3?|apt|docker|kubectl|cargo|go|yarn|pnpm)"
        r" [\w@./ =+:-]{3,90})$",
        r"\b(?:use|pass|add|specify|set) (?:the )?(--?[a-z][\w-]{0,30}|[A-Z][A-Z0-9]{1,20}_[A-Z0-9_]{2,40})\b",
        r"\brun:? ((?:aws|gcloud|az|gh|npm|npx|pnpm|yarn|docker|kubectl|git|cargo|pip|poetry|uv|terraform|helm|make"
        r"|go|firebase|heroku"
        r"|fly|vercel|brew|bundle|composer|rustup|pre-commit) [a-z][\w-]*(?: [a-z][\w-]*){0,2}?)(?= (?:with|to|in|for"
        r"|first|and|before"
        r"|again|from|on|then|or|if|using|manually|instead)\b|[.,;:)]?\s*$)",
        r"\bendpoint: ?([\w.-]{4,90})",
        r"\b(?:use|try) [`'\"]?([\w.-]{2,40}(?:\(\))?)[`'\"]? instead",
    )
)
_DULL = word_set(
    "message error code status type ok success detail details stderr stdout exitcode exit_code iserror is_error stack trace "
    "body requestid request_id name title text documentation_url help content description durationms timestamp path method "
    "url date validation waited elapsed took http content-type content_type received"
)
_POINTS = frozenset(("this", "that", "it", "these", "those", "one", "the", "them", "here", "there"))
# An option has no word boundary before it: `git reset --hard`.
_HARM = lazy_pattern(r"\b(?:rm|sudo|curl|wget|sh|bash|eval|chmod|chown|force)\b|(?<![\w-])(?:-f|--no-verify|--hard)\b|\||;|&")
_MOST_DEPTH, _MOST_MEMBERS, _OFFERS_READ, _MOST_PARSED = 4, 4, 6_000, 20_000


def error_details(entry: EntryView, said: str, told: str) -> str:
    """Return a sentence with members of an error that the call and earlier sentences do not have; "" if there are none."""
    asked = f"{call_input(entry)}\n{told}"
    members = [
        f"{code(name, 40)} {code(value, 60)}"
        for name, value in error_members(entry, said)
        if value not in asked and name not in told
    ]
    sentences = [f"The answer names {', '.join(members[:_MOST_MEMBERS])}."] if members else []
    offer = next((each for each in list_offers(said) if each not in asked), "")
    if offer:
        sentences.append(f"The error itself names {code(offer, 90)}.")
    return " ".join(sentences)


def list_offers(said: str) -> list[str]:
    """Return the names and calls that an error offers, without any that delete, force or fetch something."""
    text = said[:_OFFERS_READ]
    found = [match.group(1).strip().rstrip(".,:?") for pattern in _OFFERED for match in pattern.finditer(text)]
    return [
        each for each in dict.fromkeys(found)
        # A call that deletes, forces or fetches something is never offered.
        if len(each) > 1 and "://" not in each and "  " not in each and not _HARM.search(each)
        and each.casefold() not in _POINTS
    ]  # fmt: skip


def error_members(entry: EntryView, said: str) -> list[tuple[str, str]]:
    """Return the plain members of a structured error, the outer ones first."""
    waiting: list[tuple[Any, int]] = [(entry.error, 0), (entry.output, 0), (_parse_json(said), 0)]
    found: dict[str, str] = {}
    while waiting:
        item, depth = waiting.pop(0)
        item = _parse_json(item) if isinstance(item, str) else item
        if isinstance(item, list) and depth < _MOST_DEPTH:
            waiting += [(each, depth + 1) for each in cast("list[Any]", item)[:10]]
        if not isinstance(item, dict) or depth >= _MOST_DEPTH:
            continue
        for name, value in list(cast("dict[Any, Any]", item).items())[:20]:
            if isinstance(value, dict | list | str) and not (isinstance(value, str) and plain_name(value.strip('"'))):
                waiting.append((cast("Any", value), depth + 1))
            elif (
                not isinstance(value, bool)
                and value is not None
                # These members say nothing about the failure.
                and str(name).casefold() not in _DULL
                and plain_name(str(name))
            ):
                text = str(value).strip('"')
                if plain_name(text) and len(text) <= 40:
                    found.setdefault(str(name), text)
    return list(found.items())


def _parse_json(text: str) -> Any:
    return next(find_json(text), None) if len(text) <= _MOST_PARSED else None
