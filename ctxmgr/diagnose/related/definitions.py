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
from ctxmgr.diagnose.evidence.items import find_objects
from ctxmgr.diagnose.evidence.messages import name_message, split_sentences
from ctxmgr.diagnose.evidence.texts import clip
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


_PLAIN_VALUE, _SHORT_VALUE = lazy_pattern(r"[A-Za-z][a-z]{4,24}"), lazy_pattern(r"[A-Za-z0-9]{1,4}")
_RULE = lazy_pattern(
    r"(?i)\b(?:only|must|may|not|never|cannot|can['’]?t|forbidden|needs?|requires?|instead|through|ask|approv\w+|allowed|except"
    r"|unless|until)\b"
)
_MOST_RULES, _LEAST_RULE, _MOST_RULE_TEXT = 3, 30, 12_000
RULE_RELEVANCE = 0.96
"""The relevance of a rule on the thing that is refused, higher than that of any other line."""


def find_rules_on_values(evidence: Evidence, steps: Sequence[EntryView]) -> list[RelatedLine]:
    """Return rules on things like the one that a tool refuses: its tier is "regulated", and a message says who may use that.

    The call names a thing, an answer shows its values, and a message or document has a rule on one of these.
    """
    step = steps[0]
    if command_of(step) or not evidence.has_failed(step):
        return []
    asked = set(list_values(fields_of(step)))
    subjects = {value for value in asked if len(value) > _LEAST_WORDS and re.search(r"[\d_.-]", value)}
    phrases: dict[str, None] = {}
    for entry in evidence.entries_before(step.index):
        output: Any = entry.output
        objects = (
            find_objects(output) if evidence.has_succeeded(entry) and any(map(evidence.text(entry).count, subjects)) else ()
        )
        for fields in objects:
            if subjects.isdisjoint(str(value) for value in fields.values() if isinstance(value, str)):
                continue
            for name, value in fields.items():
                if isinstance(value, str) and value not in asked and _PLAIN_VALUE.fullmatch(value):
                    phrases[value.casefold()] = None
                elif isinstance(value, str) and _SHORT_VALUE.fullmatch(value):
                    phrases[f"{name} {value}".casefold()] = None
    found: list[tuple[int, RelatedLine]] = []
    for phrase in phrases:
        rules = list(islice(_list_rules(evidence, step, phrase), _MOST_RULES + 1))
        # What many sentences speak of is a common word.
        found += [(len(rules), each) for each in rules] if len(rules) <= _MOST_RULES else []
    return [min(found, key=lambda each: each[0])[1]] if found else []


def _list_rules(evidence: Evidence, step: EntryView, phrase: str) -> Iterator[RelatedLine]:
    """Yield the sentences of others and of documents that have a phrase and words of a rule, the newest first."""
    words = re.compile(rf"(?i)(?<![\w-]){re.escape(phrase)}(?![\w-])")
    for message in reversed(evidence.messages):
        if message.by in ("program", "user") or message.who == step.agent:
            continue
        for shown in _list_rule_sentences(message.text, words):
            source = name_message(message)
            quote = evidence.quote_message(message, shown).model_copy(update={"source": source})
            yield RelatedLine(RULE_RELEVANCE, source, shown, quotable_parts(shown), None, quote=quote)
    for entry in evidence.entries_before(step.index):
        for shown in _list_rule_sentences(evidence.text(entry), words) if evidence.has_succeeded(entry) else ():
            quote = evidence.quote(entry, shown)
            yield RelatedLine(RULE_RELEVANCE, evidence.source(entry), shown, quotable_parts(shown), entry.id, quote=quote)


def _list_rule_sentences(text: str, phrase: re.Pattern[str]) -> Iterator[str]:
    """Yield the sentences of a text that have a phrase and words of a rule, as they are quoted."""
    text = text[:_MOST_RULE_TEXT]
    for sentence in split_sentences(text) if phrase.search(text) else ():
        if len(sentence) > _LEAST_RULE and phrase.search(sentence) and _RULE.search(sentence):
            yield clip(sentence, _MOST_SHOWN)
