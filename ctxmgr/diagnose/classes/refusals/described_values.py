"""Values of a refused call that do not fit what an earlier answer describes: limits, a type, a list, or words about the form.

A device describes its points, a form its fields, a service its parameters; the refusal itself often gives no reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.diagnose.evidence.calls import call_input, call_phrase, command_of, fields_of
from ctxmgr.diagnose.evidence.items import find_objects
from ctxmgr.diagnose.evidence.texts import capital, code, contains_word, join_names, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

_LEAST = ("min", "minimum", "min_value", "minValue")
_MOST = ("max", "maximum", "max_value", "maxValue")
_STEP = ("step", "increment", "multipleOf", "multiple_of")
_LISTS = ("enum", "allowed", "allowed_values", "allowedValues", "options", "choices")
_LENGTH = ("maxLength", "max_length")
_LIMITS = (*_LEAST, *_MOST, *_STEP, *_LISTS, *_LENGTH)
_MEASURED = frozenset(("avg", "average", "mean", "median", "count", "sum", "std", "stddev", "p50", "p95", "p99", "samples"))
"""Members beside which a least and a greatest value were measured, and limit nothing."""
_NAMES = ("name", "key", "field", "id", "point", "parameter", "param", "attribute", "code")
"""Members of an object that describes one value and says in another member which."""
_WHOLE = lazy_pattern(r"u?int(?:eger)?\d*|whole", re.IGNORECASE)
_SCALE = lazy_pattern(r"(\d{1,4}(?:\.\d{1,4})?) ?[A-Za-z°%µ]")
_OF_FORM = lazy_pattern(
    r"\bISO\b|\bformat|\bform\b|\bdigits?\b|\bone of\b|\bat (?:least|most)\b|\bmust\b|\bonly\b|\bbetween\b|\be\.g\.|for example"
    r"|\blike\b|\bwithout\b|\bwith (?:a|the|its)\b|\bnot the\b"
    r"|\bin (?:cents|minor|units|seconds|minutes|hours|UTC|metres|mm|kg)\b"
    r"|\b(?:upper|lower) ?case\b|\bwritten\b|\bprefix|\binterval\b|\bcode\b",
    re.IGNORECASE,
)
_MOST_SAID, _MOST_TEXT, _MOST_SHOWN, _LEAST_WORDS = 2_000, 12_000, 160, 3


class _Described(NamedTuple):
    """An argument, the name that it is described under, the description, and the call whose answer holds it."""

    argument: str
    name: str
    about: dict[str, Any]
    source: EntryView


def diagnose_described_value(evidence: Evidence, entry: EntryView, said: str) -> Diagnosis | None:
    """Return which value of a refused call does not fit what an earlier answer says of it."""
    own = fields_of(entry)
    if command_of(entry) or not own:
        return None
    return _diagnose_by_limits(evidence, entry, own) or _diagnose_by_words(evidence, entry, own, said[:_MOST_SAID])


def _diagnose_by_limits(evidence: Evidence, entry: EntryView, own: dict[str, Any]) -> Diagnosis | None:
    for each in _find_descriptions(evidence, entry, own):
        value = own[each.argument]
        wanted = _find_misfit(value, each.about)
        accepted = (other for other in evidence.recent if other.action == entry.action and evidence.has_succeeded(other))
        # What a like call was allowed is no limit.
        if not wanted or any(
            each.name in call_input(other) and _find_misfit(fields_of(other).get(each.argument), each.about)
            for other in accepted
        ):
            continue
        under = "" if each.name == each.argument else f" of {code(each.name, 40)}"
        cause = (
            f"{call_phrase(entry, 70)} is refused with {code(each.argument, 40)} {code(str(value), 40)}, and "
            f"{evidence.source(each.source)} says{under or ' of it'}: {_describe(each.about)}."
        )
        scaled = _rescale(value, each.about)
        unit = code(str(each.about.get("unit")), 24)
        meant = f": {code(scaled, 24)} for {code(str(value), 24)}, because it counts in units of {unit}" if scaled else ""
        step = f"Make the same call with {code(each.argument, 40)} as {wanted}{meant}; keep the other arguments as they are."
        return diagnosis(
            "schemaRefused", cause, step, evidence.quote(each.source), evidence.quote(entry),
            check="The answer must no longer refuse this value.", confidence="high" if scaled else "medium",
        )  # fmt: skip
    return None


def _find_descriptions(evidence: Evidence, entry: EntryView, own: dict[str, Any]) -> Iterator[_Described]:
    """Yield the descriptions of a call's values, newest first: under their name, or under a name that the call also gives."""
    names = [(name, name) for name in own]
    subjects = [value for value in own.values() if isinstance(value, str) and plain_name(value)]
    numbers = [name for name, value in own.items() if isinstance(value, int | float) and not isinstance(value, bool)]
    names += [(numbers[0], subject) for subject in subjects] if len(numbers) == 1 else []
    for other in filter(evidence.has_succeeded, evidence.latest_before(entry.index)):
        output: Any = other.output
        for fields in find_objects(output):
            called = {str(fields[key]) for key in _NAMES if isinstance(fields.get(key), str)}
            for argument, name in names:
                about = fields.get(name) if isinstance(fields.get(name), dict) else fields if name in called else None
                if about is not None and any(key in about for key in _LIMITS) and _MEASURED.isdisjoint(about):
                    yield _Described(argument, name, cast("dict[str, Any]", about), other)


def _find_misfit(value: Any, about: dict[str, Any]) -> str:
    """Return in words what a value ought to be, "" if it is, or if nobody can tell."""
    listed = next((about[key] for key in _LISTS if isinstance(about.get(key), list)), None)
    if listed is not None:
        options = [str(each) for each in cast("list[Any]", listed) if isinstance(each, str | int | float)]
        told = 1 < len(options) <= 12 and all(map(plain_name, options)) and isinstance(value, str | int | float)
        return f"one of {join_names(options, 8)}" if told and str(value) not in options else ""
    longest = _read_number(about, _LENGTH)
    if isinstance(value, str) and longest is not None:
        return f"at most {longest:g} characters" if len(value) > longest else ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    least, most, step = (_read_number(about, keys) for keys in (_LEAST, _MOST, _STEP))
    whole = _WHOLE.match(str(about.get("type"))) is not None
    outside = (least is not None and value < least) or (most is not None and value > most)
    fraction = whole and value != int(value)
    off = step is not None and step > 0 and abs((value - (least or 0)) / step - round((value - (least or 0)) / step)) > 1e-6
    if not (outside or fraction or off):
        return ""
    parts = ["a whole number" if whole else "a number"]
    parts += [f"of at least {least:g}"] if least is not None else []
    parts += [f"and at most {most:g}" if least is not None else f"of at most {most:g}"] if most is not None else []
    parts += [f"in steps of {step:g}"] if off else []
    return " ".join(parts)


def _read_number(about: dict[str, Any], keys: tuple[str, ...]) -> float | None:
    values = (about.get(key) for key in keys)
    return next((float(each) for each in values if isinstance(each, int | float) and not isinstance(each, bool)), None)


def _rescale(value: Any, about: dict[str, Any]) -> str:
    """Return a value in the unit of its description, "0.1 degC", if it fits then; else ""."""
    match = _SCALE.match(str(about.get("unit")))
    scale = float(match.group(1)) if match else 0.0
    if not scale or scale == 1 or isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    scaled = round(value / scale, 6)
    return f"{scaled:g}" if scaled == int(scaled) and not _find_misfit(int(scaled), about) else ""


def _describe(about: dict[str, Any]) -> str:
    shown = [(key, about[key]) for key in ("type", "unit", *_LIMITS) if isinstance(about.get(key), str | int | float | list)]
    return ", ".join(f"{key} {code(str(value), 60)}" for key, value in shown)


def _diagnose_by_words(evidence: Evidence, entry: EntryView, own: dict[str, Any], said: str) -> Diagnosis | None:
    """Return what an answer says in words of an argument that the refusal names."""
    for name, value in own.items():
        if len(name) < _LEAST_WORDS or not plain_name(name) or not contains_word(name, said):
            continue
        found = _find_words(evidence, entry, name, [each for key, each in own.items() if key != name])
        if found is None or found[1] in said:
            continue
        source, words = found
        cause = (
            f"{call_phrase(entry, 70)} is refused for its {code(name, 40)}, {code(json.dumps(value, ensure_ascii=False), 60)}. "
            f"{capital(evidence.source(source))} says of it: {code(words, _MOST_SHOWN)}."
        )
        step = f"Give {code(name, 40)} in that form, and keep the other arguments as they are."
        return diagnosis(
            "schemaRefused", cause, step, evidence.quote(source), evidence.quote(entry),
            check="The answer must no longer refuse this value.", confidence="medium",
        )  # fmt: skip
    return None


def _find_words(evidence: Evidence, entry: EntryView, name: str, others: list[Any]) -> tuple[EntryView, str] | None:
    """Return the answer that describes an argument in words, and these; of several the one with most of the call's values."""
    told = re.compile(
        rf"(?<![\w./-]){re.escape(name)}[`\"']?(?: ?:| is| must| =)[ `\"']{{1,2}}([^\n\"]{{8,400}})", re.IGNORECASE
    )
    values = [str(each) for each in others if isinstance(each, str | int) and len(str(each)) > 1]
    best: dict[str, tuple[int, EntryView]] = {}
    for other in filter(evidence.has_succeeded, evidence.latest_before(entry.index)):
        text = evidence.text(other)[:_MOST_TEXT]
        for line in text.split("\n") if contains_word(name, text) else ():
            for match in told.finditer(line[:_MOST_TEXT]):
                words = re.split(r"(?<=[a-z)\d])[.;](?: |$)", match.group(0))[0].strip()
                if _OF_FORM.search(words) and len(words.split()) > _LEAST_WORDS:
                    score = sum(value in line or value in call_input(other) for value in values)
                    best.setdefault(words, (score, other))
    most = max((score for score, _ in best.values()), default=0)
    top = [(other, words) for words, (score, other) in best.items() if score == most]
    # Several descriptions are of several things, and nothing says which this is.
    return top[0] if len(top) == 1 else None
