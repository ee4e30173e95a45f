"""A name holds an invisible character: a byte order mark, a carriage return or another space."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ctxmgr.diagnose.evidence import Evidence, call_input
from ctxmgr.diagnose.evidence.calls import command_of, path_of, split_command
from ctxmgr.diagnose.evidence.texts import code, plain_name, text_of
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "hiddenCharacter"


class _Kind(NamedTuple):
    """A kind of character: how a record shows it, its name, and the remedy; ``{file}`` is the file, if known."""

    shown: re.Pattern[str]
    means: str
    step: str


_KINDS = (
    _Kind(
        lazy_pattern(r"\ufeff|\\ufeff|\\xef\\xbb\\xbf|ï»¿|\bef ?bb ?bf|U\+FEFF", re.IGNORECASE),
        "begins with a byte order mark (BOM, `\\ufeff`)",
        "Read {file} with the encoding `utf-8-sig`, or remove the mark once (`sed -i '1s/^\\xEF\\xBB\\xBF//' FILE`)",
    ),
    _Kind(
        lazy_pattern(
            r"(?<=[\w'\"/.-])\\r(?![\w\\])|\^M(?=\$|$|['\":])|[\w'\"/.-]\r(?!\n|$)|CRLF line terminators", re.MULTILINE
        ),
        "ends in a carriage return (`\\r`, a Windows line ending)",
        "Turn the line endings of {file} to LF (`sed -i 's/\\r$//' FILE` or `dos2unix`), and see with "
        "`cat -A` that they are gone",
    ),
    _Kind(
        lazy_pattern(
            r"[\u200b-\u200f\u2060\u00a0\u202f]|\\x[aA]0|\\u(?:200[b-fB-F]|2060|00[aA]0|202[fF])|M-BM-|\bc2 ?a0\b|e280 ?8b"
        ),
        "holds a blank that is no ordinary one (no-break or zero-width)",
        "Type the name anew with ordinary characters, or replace that character in {file} (`sed -i 's/\\xC2\\xA0/ /g' FILE`)",
    ),
)
_DUMPS = lazy_pattern(r"\b(?:xxd|hexdump|od|cat -A|cat -v|cat -e|repr|file|ascii)\b|-A\b")
_FILE = lazy_pattern(r"[\w@+-][\w./@+-]{0,120}\.?\w{1,10}|\.[\w.-]{1,40}")
_MOST_TEXT, _MOST_BESIDE, _MOST_CALLS = 6_000, 24, 4
"""Characters of a result that are read, and those between a character and its name; failing calls that are looked at."""


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return which name of a failing call holds an invisible character."""
    for entry in evidence.failing_calls[:_MOST_CALLS]:
        if (found := _diagnose_shown_character(evidence, entry)) is not None:
            return found
    return None


def _diagnose_shown_character(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Report a character beside a name of the call, in the error itself or in a look at the file concerned."""
    error = _raw_result(entry)
    words = {word.casefold() for word in re.findall(r"\w{3,60}", f"{call_input(entry)}\n{error}")}
    for kind in _KINDS:
        for other in [entry, *evidence.latest]:
            dumps = _DUMPS.search(command_of(other)) is not None
            # An ordinary output may hold such bytes intentionally. A dump was made to find them, and nobody
            # intends a byte order mark.
            if other.id != entry.id and (evidence.has_failed(other) or (not dumps and kind is not _KINDS[0])):
                continue
            raw = error if other.id == entry.id else _raw_result(other)
            match = kind.shown.search(raw)
            if match is None:
                continue
            name = _find_adjacent_word(kind, raw, match)
            files = [each for each in _list_named_files(other) if other.id != entry.id]
            file = next(
                (each for each in files if each.rpartition("/")[2].casefold() in f"{call_input(entry)}{error}".casefold()), ""
            )
            # A character beside another name has nothing to do with the call.
            if file or (name and name.casefold() in words):
                file = file or next(iter(files), "") or _find_file(evidence, name)
                return _explain_character(evidence, entry, other, kind, name or file, file)
    return None


def _find_adjacent_word(kind: _Kind, raw: str, match: re.Match[str]) -> str:
    """Return the word beside the character: a byte order mark comes before a name, a line end after it."""
    # Remove only the sign, because a name may end in M itself: `TEAM^M`.
    before = re.search(r"([\w.-]{2,60})(?:\\r|\^M|\r)*\Z", raw[max(0, match.start() - _MOST_BESIDE) : match.end()])
    behind = re.match(r"\W{0,8}?(\w{2,60})", raw[match.end() : match.end() + 2 * _MOST_BESIDE])
    found = behind if kind is _KINDS[0] else before
    if kind is _KINDS[0] and (
        dumped := re.search(r"\s{2,}\.{2,4}(\w{2,60})", raw[match.end() : match.end() + 3 * _MOST_BESIDE])
    ):
        found = dumped
    return found.group(1) if found else ""


def _find_file(evidence: Evidence, name: str) -> str:
    """Return the file that was last seen to hold a name, or ""."""
    for other in evidence.latest:
        file = next(_list_named_files(other), "")
        if file and evidence.has_succeeded(other) and name in evidence.text(other):
            return file
    return ""


def _explain_character(evidence: Evidence, entry: EntryView, other: EntryView, kind: _Kind, name: str, file: str) -> Diagnosis:
    file = file if plain_name(file) else ""
    where = f" in {code(evidence.relative_path(file), 80)}" if file and name != file else ""
    source = "the error itself" if other.id == entry.id else evidence.source(other)
    what = f"{code(name, 60)}{where} {kind.means}, which cannot be seen; {source} shows it"
    cause = f"{evidence.describe_failure(entry, 90)}: {what}."
    step = f"{kind.step.replace('{file}', code(evidence.relative_path(file), 80) if file else 'the file it comes from')}."
    return diagnosis(
        KIND, cause, step, evidence.quote(other), evidence.quote(entry), check="The name in the answer must be without it.",
        confidence="medium",
    )  # fmt: skip


def _raw_result(entry: EntryView) -> str:
    message, output = text_of(entry.error, _MOST_TEXT), text_of(entry.output, _MOST_TEXT)
    return f"{message}\n{output}"


def _list_named_files(entry: EntryView) -> Iterator[str]:
    """Yield the files that a call names."""
    path = path_of(entry)
    if path:
        yield path
    for words in split_command(command_of(entry)):
        yield from (
            word for word in words[1:] if not word.startswith("-") and _FILE.fullmatch(word) and re.search(r"[./]", word)
        )
