"""A test passes alone and fails in the full run, because a test before it leaves something behind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ctxmgr.diagnose.evidence import CHECKS, Evidence
from ctxmgr.diagnose.evidence.calls import command_of, folder_of, path_of, program_name, split_command
from ctxmgr.diagnose.evidence.texts import capital, code, contains_word, join_names, plain_name, strip_line_numbers
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

# In the words of pytest, Go, unittest, Jest and cargo
_FAILED = lazy_pattern(
    r"^(?:FAILED|ERROR) (?P<file>[\w./-]{3,200}?)(?:::(?P<test>[\w:]{2,200}))?(?:\[|\s|$)"
    r"|^\s{0,8}--- FAIL: (?P<go>\w{2,120})|^(?:FAIL|ERROR): (?P<unit>\w{2,120}) \((?P<module>[\w.]{2,200})\)"
    r"|^\s{0,4}FAIL\s{1,2}(?P<jest>[\w./@-]{3,200}\.[cm]?[jt]sx?)|^test (?P<cargo>[\w:]{2,200}) \.\.\. FAILED",
    re.MULTILINE,
)
_PASSED = lazy_pattern(
    r"(?i)\b[1-9]\d{0,5} (?:passed|passing|tests? passed)\b|^ok\b|^PASS\b|^OK\b|\bRan [1-9]\d{0,5} tests?\b", re.MULTILINE
)
_TEST_FILE = lazy_pattern(r"(?:^|/)(?:test_[^/]+|[^/]+_test|[^/]+[._](?:test|spec))\.\w{1,4}$")
_HEADER = lazy_pattern(r"^==> (?P<file>[\w./-]{1,200}) <==$")
_GREP = lazy_pattern(r"^(?P<file>[\w./-]{3,200}\.\w{1,5}):\d{1,6}:(?P<line>.*)$")
_TARGET = r"[A-Za-z_][\w.]{0,80}"
_WRITES = lazy_pattern(
    rf"^\s*(?P<called>{_TARGET})\.(?:update|clear|append|extend|pop|popitem|setdefault|insert|remove|add|discard|push|splice"
    rf"|set)\("
    rf"|^\s*(?P<item>{_TARGET})\[[^\]\n]{{1,80}}\]\s*(?:[-+*/|]?=)(?!=)"
    r"|^\s*(?P<member>[A-Za-z_]\w*(?:\.\w+(?:\(\))?)+)\s*[-+*/|]?=(?!=)"
    rf"|^\s*(?:global)\s+(?P<shared>\w{{2,80}})|^\s*setattr\((?P<set>{_TARGET})\s*,|^\s*del\s+(?P<gone>{_TARGET})\["
    r"|^\s*os\.(?P<env>Setenv|putenv|chdir|Chdir)\("
)
"""Lines that write to an object which may be shared: `RATES.update(`, `os.environ["A"] =`, `settings.DEBUG =`, `global x`."""
_RESTORES = lazy_pattern(
    r"monkeypatch|patch\.dict|mock\.patch|addCleanup|t\.Cleanup|tearDown|teardown|\bfinally\b|\byield\b|after(?:Each|All)|restore"
    r"|t\.Setenv|\breset\w*\(|deepcopy"
)
_PARALLEL = lazy_pattern(r"\s-n ?(?:auto|\d)|--numprocesses|--parallel|\s-race\b|--shuffle")
"""Options by which tests run beside each other or in another order, which may be why they fail."""
_OWN = frozenset(("self", "cls", "this", "t", "result", "expected", "data", "response", "client", "mock", "cart", "app"))
_NEAR, _MOST_LINES, _LEAST_NAME = 10, 2_000, 3


class _Run(NamedTuple):
    """A full run that fails, a run of less that passes, and the names of what fails in the first and passes in the second."""

    full: EntryView
    alone: EntryView
    names: list[str]


class _Writer(NamedTuple):
    """A line of a test that writes to a shared object."""

    path: str
    line: str
    target: str
    entry: EntryView


def diagnose_order(kind: str, evidence: Evidence) -> Diagnosis | None:
    """Return that a test fails only after others, with the line of another test that leaves something behind, if seen."""
    run = next((found for entry in evidence.failing_calls if (found := _find_run(evidence, entry)) is not None), None)
    if run is None:
        return None
    full, alone = code(command_of(run.full), 60), code(command_of(run.alone), 80)
    cause = (
        f"{full} fails at {join_names(run.names, 2)}, and {evidence.source(run.alone)} passes, with nothing changed in between:"
        " most likely another test that runs before leaves something behind."
    )
    writer = _find_writer(evidence, run)
    quotes = [evidence.quote(run.full), evidence.quote(run.alone)]
    if writer is None:
        step = (
            "Leave the code under test as it is. Find the test: run the failing ones behind one half of the others,"
            f" {code(f'{_program_words(run.full)} OTHERS {run.names[0]}', 80)}, and halve again; then let that one put back"
            " what it changes (a shared object, a variable of the environment, a file)."
        )
        return diagnosis(kind, cause, step, *quotes, check=f"{full} must pass as a whole.", confidence="medium")
    cause += f" {capital(evidence.source(writer.entry))} shows one, {code(writer.path, 60)}, that changes what they use:"
    cause += f" {code(writer.line, 90)}."
    step = (
        f"Leave the code under test as it is. Let {code(writer.path, 60)} put {code(writer.target, 50)} back after its test"
        f" ({_describe_restore(writer.path)}), and run {full}."
    )
    quotes.insert(0, evidence.quote(writer.entry, writer.line))
    return diagnosis(kind, cause, step, *quotes, check=f"{full} must pass as a whole, not only {alone}.", confidence="medium")


def _describe_restore(path: str) -> str:
    if path.endswith(".py"):
        return "with `monkeypatch.setattr` or `monkeypatch.setitem`, or a fixture that copies it before and restores it"
    return "in a cleanup of its own, or on a copy"


def _program_words(entry: EntryView) -> str:
    """Return the words of a command up to the test program: "python3 -m pytest"."""
    words = " ".join(_list_check_words(entry)[-1])
    program = CHECKS.search(words)
    return words[: program.end()] if program is not None else ""


def _find_run(evidence: Evidence, entry: EntryView) -> _Run | None:
    """Return a failing call as a full run, if a run of some of what fails in it passes with nothing changed in between."""
    command = command_of(entry)
    if not CHECKS.search(command) or _PARALLEL.search(command):
        return None
    failing = _list_failing(evidence.text(entry))
    for full in reversed(evidence.equal_calls(entry)):
        for alone in reversed(evidence.recent):
            other = command_of(alone)
            if other == command or not CHECKS.search(other) or program_name(alone) != program_name(entry):
                continue
            names = [name for name in failing if contains_word(name, other) and not contains_word(name, command)]
            passes = evidence.has_succeeded(alone) and _PASSED.search(evidence.text(alone)) is not None
            first, second = sorted((full, alone), key=lambda each: each.index)
            names = [name for name in names if not any(name != each and each.endswith(f"/{name}") for each in names)]
            # The full run must fail there as well: its runs may differ.
            same = set(names) & set(_list_failing(evidence.text(full)))
            if same and passes and _is_part(alone, full) and not evidence.possible_changes(first, second):
                return _Run(full, alone, names)
    return None


def _is_part(part: EntryView, whole: EntryView) -> bool:
    """Whether a call runs a part of what another one runs: it has its words, in its folder and with its settings."""
    one, two = ([word for words in _list_check_words(each) for word in words] for each in (part, whole))
    places = {word for word in two if "/" in word or word in (".", "tests", "test")}
    same = folder_of(part) == folder_of(whole) and _list_settings(part) == _list_settings(whole)
    return same and all(word in one for word in two if word not in places and not _SHOWS_MORE.fullmatch(word))


def _list_check_words(entry: EntryView) -> list[list[str]]:
    """Return the words of the commands of a call that run tests. Its filters are left out."""
    return [words for words in split_command(command_of(entry)) if CHECKS.search(" ".join(words))]


def _list_settings(entry: EntryView) -> list[str]:
    return [word for word in command_of(entry).split() if "=" in word and not word.startswith("-")]


_SHOWS_MORE = lazy_pattern(
    r"-[qvxsl]{1,3}|-r\w{1,3}|--tb=\w{2,6}|--no-header|--verbose|--quiet|--(?:maxfail|color)=\w{1,6}|--bail"
)
"""Options that change what a run shows, or where it stops."""


def _list_failing(said: str) -> list[str]:
    """Return the names of failing tests and of their files, as a command may name them."""
    found: list[str] = []
    for match in _FAILED.finditer(said[-12_000:]):
        file = match["file"] or match["jest"] or ""
        module = (match["module"] or "").rpartition(".")[2]
        test = (match["test"] or "").rpartition(":")[2]
        named = (file, file.rpartition("/")[2], module, test, match["go"], match["unit"], match["cargo"])
        found += [name for name in named if name and len(name) >= _LEAST_NAME and plain_name(name)]
    return list(dict.fromkeys(found))


def _find_writer(evidence: Evidence, run: _Run) -> _Writer | None:
    """Return a line of a test file that writes to something shared which the failing tests, or the code they use, name."""
    lines = list(_list_shown_lines(evidence, run.full.index))
    failing = set(_list_failing(evidence.text(run.full)))
    about = "\n".join(line for path, line, _ in lines if any(path.endswith(name) for name in failing))
    # What the failing tests import, and the last names in its code.
    stems = set(re.findall(r"\w{3,60}", about))
    used = "\n".join(line for path, line, _ in lines if not _TEST_FILE.search(path) and _stem(path) in stems)
    for place, (path, line, entry) in enumerate(lines):
        match = _WRITES.match(line)
        if match is None or not _TEST_FILE.search(path) or any(path.endswith(name) for name in failing if "." in name):
            continue
        # A test that runs in the smaller run as well does no harm there.
        if contains_word(path.rpartition("/")[2], command_of(run.alone)):
            continue
        target = next((group for group in match.groups() if group), "")
        parts = [part for part in target.split(".") if len(part) >= _LEAST_NAME and part not in _OWN]
        near = "\n".join(each[1] for each in lines[max(0, place - _NEAR) : place + _NEAR] if each[0] == path)
        shared = (
            match["env"]
            or "environ" in target
            or any(contains_word(part, about) or contains_word(part, used) for part in parts)
        )
        local = re.search(rf"^\s*{re.escape(target.partition('.')[0])}\s*=", near, re.MULTILINE) and not match["shared"]
        if parts and shared and not local and not _RESTORES.search(near) and plain_name(path):
            return _Writer(path, line.strip(), target, entry)
    return None


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]


def _list_shown_lines(evidence: Evidence, before: int) -> Iterator[tuple[str, str, EntryView]]:
    """Yield the lines of files that looks have shown, each with its file and its call."""
    for entry in evidence.recent:
        if entry.index >= before or entry.status != "ok" or CHECKS.search(command_of(entry)):
            continue
        files = [
            word for words in split_command(command_of(entry))[:1] for word in words[1:] if re.search(r"\w\.\w{1,4}$", word)
        ]
        lines = strip_line_numbers(evidence.text(entry)).split("\n")[:_MOST_LINES]
        starts = _list_file_starts(lines)
        path = path_of(entry) or (files[0] if files and len(files) in (1, len(starts)) else "")
        for place, line in enumerate(lines):
            if len(files) == len(starts) > 1 and place in starts:
                path = files[starts.index(place)]
            if (header := _HEADER.match(line)) is not None:
                path = header["file"]
            elif (hit := _GREP.match(line)) is not None:
                yield hit["file"], hit["line"], entry
            elif path:
                yield path, line, entry


def _list_file_starts(lines: list[str]) -> list[int]:
    """Return the places in the text of several files where one may begin: imports, after the end of a function or at first."""
    filled = [place for place, line in enumerate(lines) if line.strip()]
    ends = [True, *(_ENDS.match(lines[place]) is not None for place in filled)]
    return [place for place, after_end in zip(filled, ends, strict=False) if after_end and _IMPORTS.match(lines[place])]


_IMPORTS = lazy_pattern(r"(?:import|from|use|using|package|#include|const \w{1,60} = require)\b")
_ENDS = lazy_pattern(r"\s|\}")
