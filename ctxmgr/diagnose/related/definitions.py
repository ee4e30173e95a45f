"""Find where the record describes the thing that a refused call names: its balance, its state, its size.

Answers of services are long lines of JSON. The object that belongs to a name says more than any other part of them. If there is
none, objects with a name of the same form say what there is instead, and so does the member that the error names by its kind.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, cast

from ctxmgr.diagnose.errors.lines import telling_line
from ctxmgr.diagnose.evidence import Evidence, may_change
from ctxmgr.diagnose.evidence.calls import command_of, fields_of
from ctxmgr.diagnose.related.related_lines import RelatedLine, quotable_parts
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.view import EntryView

IDENTIFIER = lazy_pattern(r"(?=[\w.@#-]*\d)[A-Za-z][\w.@#-]{2,60}")
"""A value with a letter and a digit: what an object is called, and no amount or date."""
_WORD = lazy_pattern(r"[a-z]{3,}")
_KIND = lazy_pattern(
    r"(?i)\b([a-z]{3,20}(?:[ _][a-z]{3,20}){0,2}) (?:with id )?(\S{1,60}) (?:not found|does not exist|is unknown)"
)
"""An error that names a thing by its kind, and the thing."""
_OBJECT = r'"{name}"\s?:\s?\{{[^{{}}]{{1,220}}\}}|\{{[^{{}}]{{0,220}}"id"\s?:\s?"{name}"[^{{}}]{{0,220}}\}}'
_REFERENCE = r'\{{\s?"[a-z]+_?[iI]d"\s?:\s?"{name}"[^{{}}]{{1,220}}\}}'
"""Objects that are called so, and objects that begin with the name of another one."""
_RELEVANCE, _MOST_SHOWN, _MOST_OBJECTS, _MOST_VALUES, _LEAST_WORDS = 0.95, 220, 4, 500, 2


def find_definitions(evidence: Evidence, steps: Sequence[EntryView]) -> list[RelatedLine]:
    """Return what the newest answers say of the thing that a tool refuses: what it is, and which change took it.

    If no answer describes it, those like it are described instead, or what the error calls it by its kind.

    Args:
        evidence: the session.
        steps: the failing calls; the first one is the main one.
    """
    step = steps[0]
    if command_of(step) or not evidence.has_failed(step):
        return []
    line = telling_line(evidence, step)
    for name in islice(list_subjects(step, line), _MOST_OBJECTS):
        own, start = re.escape(name), re.split(r"\d", name)[0]
        alike = re.sub(r"\d+", r"\\d+", own)
        spent = _find_match(evidence, step, name, _REFERENCE.format(name=own), changes=True)
        defined = _find_match(evidence, step, name, _OBJECT.format(name=own)) or _find_match(
            evidence, step, f'"{start}', _OBJECT.format(name=alike)
        )
        if defined is None and (words := find_kind(line, name)):
            defined = _find_match(evidence, step, f'"{words}', rf'"{words}s?"\s?:\s?[\[{{].{{2,{_MOST_SHOWN}}}')
        found = [each for each in (spent, defined) if each is not None]
        if found:
            return found if len({each.entry for each in found}) > 1 else found[:1]
    return []


def _find_match(evidence: Evidence, step: EntryView, part: str, pattern: str, *, changes: bool = False) -> RelatedLine | None:
    """Return the newest answer with a match; ``part``: what each match has; ``changes``: of a call that changes something."""
    expression = re.compile(pattern)
    for entry in evidence.entries_before(step.index):
        if part in evidence.text(entry) and evidence.has_succeeded(entry) and may_change(entry) >= changes:
            shown = _list_matches(expression, evidence.text(entry))
            if shown:
                quote = evidence.quote(entry, shown)
                return RelatedLine(_RELEVANCE, evidence.source(entry), shown, quotable_parts(shown), entry.id, quote=quote)
    return None


def _list_matches(pattern: re.Pattern[str], text: str) -> str:
    """Return the matches of a text that fit into a quote, as they stand."""
    found: list[str] = []
    for match in pattern.finditer(text):
        shown = match[0][:_MOST_SHOWN]
        if len(found) == _MOST_OBJECTS or len("".join(found)) + len(shown) > _MOST_SHOWN:
            break
        found.append(shown)
    return " … ".join(dict.fromkeys(found))


def find_kind(line: str, name: str) -> str:
    """Return what an error calls a thing that it does not find, as a member of JSON is named; "" if it does not say.

    >>> find_kind("Payment method card_1 not found", "card_1")
    'payment_method'
    """
    kind = _KIND.search(line.replace(name, "X1"))
    return "_".join(kind[1].casefold().split()[-2:]) if kind is not None else ""


def list_subjects(step: EntryView, line: str) -> Iterator[str]:
    """Yield the identifiers of a call that its answer is about: it names them, or two words of which they consist."""
    values = [value for value in list_values(fields_of(step)) if IDENTIFIER.fullmatch(value)]
    yield from (value for value in values if value in line)
    said = set(_WORD.findall(line.casefold()))
    yield from (value for value in values if len(said & set(_WORD.findall(value.casefold()))) >= _LEAST_WORDS)


def list_values(value: Any) -> Iterator[str]:
    """Yield the texts within a JSON value."""
    waiting = deque([value])
    for _ in range(_MOST_VALUES):
        if not waiting:
            return
        item = waiting.popleft()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            waiting += cast("dict[str, Any]", item).values()
        elif isinstance(item, list):
            waiting += cast("list[Any]", item)
