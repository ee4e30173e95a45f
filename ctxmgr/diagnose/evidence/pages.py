"""Read what an answer says of entries that it does not show: that there is more, how much, and how to ask for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ctxmgr.diagnose.evidence.calls import call_input, command_of, fields_of, program_name
from ctxmgr.diagnose.evidence.session import Evidence
from ctxmgr.diagnose.evidence.texts import code, plain_name
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.view import EntryView

_MORE = lazy_pattern(
    r"\"?\b(next_?(?:cursor|page_?token|page|token|offset|marker|link|url)?|end_?cursor|cursor|(?:next_?)?continuation_?token"
    r"|continue|after|marker|last_?evaluated_?key)\"?\s?[:=]\s?\"?([\w=+/.:?&%-]{1,200})\"?",
    re.IGNORECASE,
)
_HAS_MORE = lazy_pattern(
    r"\"?(?:has_?more|has_?next(?:_?page)?|(?:is_?)?truncated|more|incomplete_?results|partial)\"?\s?[:=]\s?true|\brel=\"?next\b",
    re.IGNORECASE,
)
_SIZES = lazy_pattern(
    r"\"?(?P<name>total[_-]?(?:count|rows|results|items|hits|size|lines)?|returned|shown|count|page_?size|limit|rows_?returned)\"?\s?"
    r"[:=]\s?(?P<size>\d{1,9})\b",
    re.IGNORECASE,
)
_OF = lazy_pattern(
    r"\b(?:showing|returned|displaying|listing|first|page)?\s?(?:\d{1,7}\s?(?:-|–|to)\s?)?(\d{1,7}) (?:of|out of) (\d{1,8})\b"
    r"(?: (?:results|rows|entries|items|records|matches|pages|shown|hits|lines))?",
    re.IGNORECASE,
)


class Rest(NamedTuple):
    """What an answer says of the rest: the name and value of the next page, if given, and the sizes in words."""

    name: str
    token: str
    sizes: str


def find_rest(said: str) -> Rest | None:
    """Return what an answer says of entries that it does not show, or None."""
    ends = f"{said[:600]}\n{said[-1_500:]}"
    sizes = _read_sizes(ends)
    for match in _MORE.finditer(ends):
        name, token = match.group(1), match.group(2)
        # A token without "next" in its name may be the one that the call itself passed.
        sure = "next" in name.lower() or "continuation" in name.lower() or _HAS_MORE.search(ends) is not None
        if sure and token.lower() not in ("null", "none", "false", "true") and (plain_name(token) or "://" in token):
            return Rest(name, token, sizes)
    # A text with paragraphs is prose that contains "more" by chance.
    return Rest("", "", sizes) if sizes or (_HAS_MORE.search(ends) and "\n\n" not in said[:200]) else None


def _read_sizes(said: str) -> str:
    known = {match.group("name").lower().replace("_", ""): int(match.group("size")) for match in _SIZES.finditer(said)}
    total = max((size for name, size in known.items() if name.startswith("total")), default=0)
    part = next((known[name] for name in ("returned", "rowsreturned", "shown", "count", "pagesize") if name in known), 0)
    if 0 < part < total:
        return f"{part} of {total}"
    whole = _OF.search(said)
    named = whole is not None and re.search(r"[a-z]", whole.group(0).replace("of", "").replace("out", ""), re.IGNORECASE)
    return f"{whole.group(1)} of {whole.group(2)}" if whole and named and int(whole.group(1)) < int(whole.group(2)) else ""


def describe_next_page(entry: EntryView, rest: Rest) -> str:
    """Return how to ask for what an answer does not show."""
    if not rest.token:
        return (
            "Ask for the next part with the argument that the tool has for it (an offset, a page number, a higher limit), or"
            " search for the one entry that you need."
        )
    own = re.sub(r"^next_?", "", rest.name, flags=re.IGNORECASE)
    argument = own[:1].lower() + own[1:] if own else "page"
    host = re.match(r"\w+://[\w.:-]+", rest.token)
    # An address on another host comes only from the answer, so the agent must decide whether to trust it.
    if host is not None and host.group(0) not in call_input(entry):
        return (
            f"Ask for the address that the answer gives as {code(rest.name, 40)}, if you trust it, and so on until none is"
            f" given."
        )
    if host is not None or rest.token.startswith("/"):
        return (
            f"Ask for {code(rest.token, 120)}, which the answer gives as {code(rest.name, 40)}, and so on until none is given."
        )
    return (
        f"Make the same call with the token of the answer, {code(rest.token, 60)} (its {code(rest.name, 40)}), in the argument"
        f" that the tool has for it ({code(argument, 40)} or the like), and so on until the answer gives none."
    )


_PART = r"page|offset|cursor|start|skip|after|marker|limit|token|continuation"
_PART_NAME = lazy_pattern(rf"(?i)(?:next|start|end)?_?(?:{_PART})_?\w{{0,10}}")
_PART_GIVEN = lazy_pattern(rf"(?i)\b(?:{_PART})_?\w{{0,10}}=")
"""The name of an argument that says which part of a list is wanted, and such an argument in an address."""


def find_unread_pages(evidence: Evidence, before: int) -> Iterator[tuple[EntryView, Rest]]:
    """Yield the answers before an index that say there is more, while no later call asked for it, the newest first."""
    for entry in evidence.latest_before(before):
        rest = find_rest(evidence.text(entry)) if evidence.has_succeeded(entry) else None
        # A mere "25 of 64" may count anything.
        if rest is None or not (rest.token or _HAS_MORE.search(evidence.text(entry))):
            continue
        if not any(_asks_for_rest(entry, rest, each) for each in evidence.recent if each.index > entry.index):
            yield entry, rest


def _asks_for_rest(entry: EntryView, rest: Rest, later: EntryView) -> bool:
    """Whether a later call gives the token of an answer, or differs from its call in the wanted part alone."""
    if rest.token and rest.token in call_input(later):
        return True
    if command_of(entry):
        return _PART_GIVEN.search(command_of(later)) is not None and program_name(later) == program_name(entry)
    own, other = fields_of(entry), fields_of(later)
    differing = {name for name in own.keys() | other.keys() if own.get(name) != other.get(name)}
    return later.action == entry.action and bool(differing) and all(map(_PART_NAME.fullmatch, differing))
