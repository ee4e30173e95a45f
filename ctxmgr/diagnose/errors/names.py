"""Read from an error text of any tool which name it does not know, and which values it accepts.

Tools share a few grammars: "no such X: Y", "X 'Y' not found", "cannot find Y", "'Y' is not one of A, B", "did you mean Z".
Only names and lists of names are read. The words around them are never passed on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ctxmgr.diagnose.evidence.texts import plain_name
from ctxmgr.text.patterns import lazy_pattern, word_set

_Q = r"[`'\"‘’“”«»]"
# A dot, a slash or a colon belongs to a name only inside it, since `app.py.` ends a sentence.
_NAME = rf"{_Q}?((?:[\w@~$%+-]|[./:](?=[\w@~/$*-])){{2,120}}){_Q}?"
_QUOTED = rf"{_Q}([^`'\"‘’“”«»\n]{{2,120}}){_Q}"
_LACKS = (
    r"(?:no such|unknown|undefined|unrecogni[sz]ed|non-?existent|unsupported|undeclared|unresolved|unexpected|no "
    r"matching|no|not a(?: valid| known)?|invalid)"
)
# A thing that is taken at present, or by somebody, is known.
_NOT_NOW = (
    r"(?!\s+(?:(?:on|from|at|between|until|before|for)\s+)?(?:(?:the )?(?:date|day|time)s?\W{1,2})?\d"
    r"|\s*[:;,(-]\s*(?:it is )?(?:overlaps|held|taken|booked|reserved|busy|in use|occupied))"
)
_ABSENT = (
    r"(?:(?:was |is |were |could |can |has )?(?:not|n't|n’t) (?:be )?(?:found|exist|defined|known|recogni[sz]ed"
    rf"|available{_NOT_NOW}|registered|declared|resolved|supported|located)"
    r"|(?:does|do|did)(?: not|n't|n’t) (?:exist|match any(?:thing)?|resolve|appear)|is (?:unknown|undefined"
    r"|missing|unrecogni[sz]ed)"
    rf"|is not (?:an? )?(?:known|valid|recogni[sz]ed|available{_NOT_NOW}|existing|configured)|isn't (?:an? )?(?:known|valid"
    r"|recogni[sz]ed)|not found|unknown)"
)
_FINDS = (
    r"(?:can(?:not|'t|’t| not)|could(?: not|n't|n’t)|unable to|failed to|did(?: not|n't)|doesn't|does not) (?:find"
    r"|locate|resolve|load|open|read|know|access|get|import|stat)"
)

_UNKNOWN = tuple(
    lazy_pattern(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b{_LACKS} (?P<noun>(?:[A-Za-z-]{{2,24}} ){{0,2}}[A-Za-z-]{{2,24}}?) ?(?:named|called|with (?:the "
        rf")?(?:name|id)|by the name(?: of)?|for|of|is|are|was)?[:=]? ?{_QUOTED.replace('(', '(?P<name>', 1)}",
        rf"\b{_LACKS} (?P<noun>(?:[A-Za-z-]{{2,24}} ){{0,2}}[A-Za-z-]{{2,24}}?)(?: (?:named|called|with (?:the "
        rf")?(?:name|id)|by the name(?: of)?))?[:=] ?{_NAME.replace('(', '(?P<name>', 1)}",
        rf"\b{_LACKS} (?P<noun>[a-z][a-z-]{{2,24}}) {_NAME.replace('(', '(?P<name>', 1)}(?=[\s.,;]|$)",
        rf"\b(?P<noun>(?:[A-Za-z-]{{2,24}} ){{0,1}}[A-Za-z-]{{2,24}})[:=]? "
        rf"{_QUOTED.replace('(', '(?P<name>', 1)}(?: \S{{1,40}}){{0,4}}? {_ABSENT}",
        rf"(?:^|[\s:]){_QUOTED.replace('(', '(?P<name>', 1)},? (?:\S{{1,40}} ){{0,4}}?{_ABSENT}",
        rf"\b(?P<noun>[a-z][a-z-]{{2,24}}) {_NAME.replace('(', '(?P<name>', 1)} {_ABSENT}",
        rf"(?:^|[\s:]){_NAME.replace('(', '(?P<name>', 1)}:? {_ABSENT}",
        rf"\b{_FINDS} (?:any |the |an? )?(?P<noun>(?:[a-z-]{{2,24}} ){{0,3}}?)(?:named |called |for |of "
        rf")?{_QUOTED.replace('(', '(?P<name>', 1)}",
        rf"\b{_FINDS} (?:any |the |an? )?(?P<noun>(?:[a-z-]{{2,24}} ){{0,2}}?)(?:named |called "
        rf")?{_NAME.replace('(', '(?P<name>', 1)}(?=[\s.,;:]|$)",
        rf"(?:^|[\s:]){_NAME.replace('(', '(?P<name>', 1)}: no such (?P<noun>[a-z-]{{2,24}}(?: or [a-z]{{2,20}})?)",
        r"\binstall the (?P<name>[\w:.@/-]{2,80}) (?P<noun>module|package|crate|gem|library)",
        rf"\bdon't know how to (?:make|build)(?P<noun> target| task)? {_NAME.replace('(', '(?P<name>', 1)}",
        rf"\b(?:name|key|attribute|id|ref)(?P<noun>)[:=] ?{_QUOTED.replace('(', '(?P<name>', 1)} "
        rf".{{0,30}}(?:unknown|not found)",
    )
)
_LIST = (
    r"\s{0,6}[\[({]?\s{0,2}(?P<list>(?:(?:[`'\"‘“]?[\w./:@+-]{1,80}[`'\"’”]?)(?:\s?[,|]\s?(?:or |and )?|\s(?:or|and)\s"
    r"|\n\s{1,12}[-*]?\s{0,2})?){1,24})"
)
_OFFERS = tuple(
    lazy_pattern(pattern + _LIST, re.IGNORECASE)
    for pattern in (
        r"\b(?:did you mean|(?:perhaps|maybe) you meant|you might want|most similar \w{2,20}|is similar|similar names? exists?)"
        r"(?: (?:to reference the|one of|these|this|instead|is|are|the|column|table|commands?|names?|targets?"
        r"|options?))*\s?[:?]?",
        r"\b(?:not (?:one |any )?of|must be (?:one |any )?of|(?:expected|should be|choose|chosen|pick|use|want"
        r"|got none) (?:either|one of|from|any of)|one of)"
        r"(?: (?:the following|these|the|values?|names?|following|allowed|enum))*\s?:?",
        r"\b(?:available|valid|allowed|known|supported|possible|permitted|accepted|existing|defined|registered"
        r"|expected|candidates?|options|choices|enum)"
        r"(?: [a-z]{2,20}){0,2}(?:\s?[:=]| (?:are|is|include):?)",
    )
)
_WORD = lazy_pattern(r"[\w@+-](?:[\w./:@+-]{0,80}[\w*-])?")
_SMALL = word_set(
    "a an the this that it is are was of in on at to for from by or and not no such file files directory be any one with "
    "name command you your mean use try see all new as its these those there here which what value values following instead "
    "did does do"
)
_MOST = 8_000


class Unknown(NamedTuple):
    """A name that is not known according to a text. ``noun`` is the text's word for such a thing, or ""."""

    name: str
    noun: str
    start: int


def _readable_part(text: str) -> str:
    """Return the part of a text to read, with the quotes that JSON has escaped as plain ones."""
    return text[:_MOST].replace('\\"', '"')


def unknown_names(text: str) -> Iterator[Unknown]:
    """Yield the names that are unknown, missing or not found according to a text, in the order of the patterns."""
    seen: set[str] = set()
    for pattern in _UNKNOWN:
        for match in pattern.finditer(_readable_part(text)):
            name = match.group("name").strip().rstrip(".,:;")
            noun = " ".join((match.groupdict().get("noun") or "").lower().split())
            # A small word means that the pattern has matched a sentence.
            if name not in seen and len(name) > 1 and name.casefold() not in _SMALL:
                seen.add(name)
                yield Unknown(name, " ".join(word for word in noun.split() if word not in _SMALL), match.start())


def meant_names(text: str) -> list[str]:
    """Return the names that were probably meant according to a text."""
    found = [word for match in _OFFERS[0].finditer(_readable_part(text)) for word in _WORD.findall(match.group("list"))]
    return list(dict.fromkeys(word for word in found if word.casefold() not in _SMALL and plain_name(word)))[:8]


def offered_names(text: str) -> list[str]:
    """Return the names that a text offers instead of a refused one, in its order."""
    found: list[str] = []
    for pattern in _OFFERS:
        for match in pattern.finditer(_readable_part(text)):
            found += [word for word in _WORD.findall(match.group("list")) if word.casefold() not in _SMALL and plain_name(word)]
    return list(dict.fromkeys(found))[:40]


_RAISED = lazy_pattern(r"^(?:\w+\.)*\w*(?:Error|Exception)\b(?=:|$)", re.MULTILINE)


def last_match(pattern: re.Pattern[str], said: str) -> re.Match[str] | None:
    """Return the last match of a pattern, or None if another exception follows it, since that one ends the call."""
    matches = list(pattern.finditer(said))
    if not matches:
        return None
    found = matches[-1]
    line = said.find("\n", found.end())
    return None if line >= 0 and _RAISED.search(said, line) else found
