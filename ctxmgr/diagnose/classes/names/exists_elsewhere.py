"""The missing name exists in another namespace, database, folder, host or account that the record shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ctxmgr.diagnose.errors.refusals import unknown_names
from ctxmgr.diagnose.evidence import Evidence, call_input
from ctxmgr.diagnose.evidence.calls import FOLDER_FIELDS, command_of, fields_of, split_command
from ctxmgr.diagnose.evidence.texts import capital, code, first_group, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "existsElsewhere"

_ABSENT = lazy_pattern(
    r"no such (?:table|relation|key|object|image|container|service|bucket|secret|index|topic|queue|branch|remote|ref)"
    r"|not ?found|does(?:n't| not) exist|unknown (?:database|table|host|resource|branch)|NotFound|No resources found"
    r"|NoSuch\w+|404",
    re.IGNORECASE,
)
_SCOPES = (
    "-n", "--namespace", "--context", "--cluster", "--region", "--profile", "--project", "--zone", "--account",
    "--subscription", "--host", "-h", "-H", "--db", "-d", "--dbname", "--database", "--schema", "--registry", "--repo",
    "-R", "--org", "--tenant", "--endpoint-url", "--workspace", "-w", "--prefix", "-C", "--chdir", "--directory", "--env",
    "-e", "--server", "-s",
)  # fmt: skip
_COLUMNS = {"namespace": "-n", "database": "-d", "schema": "--schema", "region": "--region", "project": "--project"}
_EVERY = lazy_pattern(r"\bkubectl\b.*\s(?:-A|--all-namespaces)\b")
_LEAST_NAME = 3


class _Place(NamedTuple):
    """The place in which a call looks: ``word`` names its kind as in the call, ``value`` is the place."""

    word: str
    value: str


_MODULES = "node_modules|site-packages|vendor|gems"
_MODULE = lazy_pattern(
    r"cannot find (?:module|package) [`'\"]([\w@/.-]{2,80})['\"]|no module named [`'\"]([\w.]{2,80})", re.IGNORECASE
)


def _diagnose_installed_package(evidence: Evidence, entry: EntryView, said: str) -> Diagnosis | None:
    """Say in which folder of the project a package is installed that the call does not find from its own folder."""
    match = _MODULE.search(said)
    name = first_group(match)
    # A relative import names a file, not a package.
    if not name or name.startswith(("/", ".")) or not plain_name(name):
        return None
    holds = re.compile(rf"(?<![\w@+-])((?:[~.]{{0,2}}/)?(?:[\w.@+-]{{1,60}}/){{0,10}})({_MODULES})/{re.escape(name)}(?![\w-])")
    for other in evidence.latest_before(entry.index):
        found = None if not evidence.has_succeeded(other) else holds.search(evidence.text(other))
        folder = evidence.relative_path(found.group(1).rstrip("/")) if found else ""
        # The call names that folder already.
        if found is None or not folder or folder in (".", evidence.folder) or f"{folder}/" in command_of(entry):
            continue
        source = evidence.source(other)
        cause = (
            f"{evidence.describe_failure(entry, 90)}: {code(name, 60)} is not found from"
            f" where it is loaded. {capital(source)} shows it in {code(f'{folder}/{found.group(2)}', 90)}."
        )
        step = (
            f"Run what needs {code(name, 60)} from {code(folder, 80)}, where it is installed, with a file that lies there; or"
            " make it a dependency of the part of the project that you run."
        )
        return diagnosis(KIND, cause, step, evidence.quote(entry), evidence.quote(other, found.group(0)),
                         check="The answer must no longer say that it is missing.")  # fmt: skip
    return None


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return where the record shows the name that a call does not find."""
    for entry in evidence.refusals():
        said = evidence.text(entry)
        if command_of(entry) and (installed := _diagnose_installed_package(evidence, entry, said)) is not None:
            return installed
        # Only an error that denies a name shows that it was not found.
        if not _ABSENT.search(said[:4_000]):
            continue
        asked = call_input(entry)
        for unknown in unknown_names(said):
            name = unknown.name
            # Paths have their own class, wrong_place. Short names occur everywhere.
            if len(name) >= _LEAST_NAME and plain_name(name) and name in asked and "/" not in name:
                found = _diagnose_seen_name(evidence, entry, name)
                if found is not None:
                    return found
    return None


def _diagnose_seen_name(evidence: Evidence, entry: EntryView, name: str) -> Diagnosis | None:
    word = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
    own = list(_list_places(entry))
    asked = {each.value for each in own} | set(call_input(entry).split())
    for other in evidence.latest_before(entry.index):
        # Names in another program are a different kind of name.
        if not evidence.has_succeeded(other) or not _is_same_program(entry, other):
            continue
        said = evidence.text(other)
        line = next((line for line in said.split("\n") if word.search(line)), None)
        if line is None:
            continue
        place = _find_place_in_table(other, said, line, name) or next(
            (each for each in _list_places(other) if each not in own), None
        )
        # The same place was asked, so the name is gone from there.
        if place is None or not plain_name(place.value) or place.value in asked:
            continue
        return _explain_other_place(evidence, entry, name, place, own, other, line)
    return None


def _is_same_program(entry: EntryView, other: EntryView) -> bool:
    if not command_of(entry):
        return entry.action == other.action
    mine, theirs = ({words[0].rpartition("/")[2] for words in split_command(command_of(each))} for each in (entry, other))
    # Programs that show files or wait are no clients of a server.
    return bool((mine & theirs) - {"cd", "echo", "cat", "grep", "ls", "sleep"})


def _list_places(entry: EntryView) -> Iterator[_Place]:
    """Yield the places in which a call looks: options of scope, paths of databases, fields, and its folder."""
    for words in split_command(command_of(entry)):
        for number, word in enumerate(words):
            option, _, value = word.partition("=")
            if option in _SCOPES and (value or number + 1 < len(words)):
                yield _Place(option, value or words[number + 1])
            elif re.fullmatch(r"[\w./~-]{1,160}\.(?:db|sqlite3?|sdb)", word):
                yield _Place("", word)
    for name, value in fields_of(entry).items():
        if (
            isinstance(value, str)
            and name not in ("command", "cmd", "description", *FOLDER_FIELDS)
            and len(value) < 120
            and not command_of(entry)
        ):
            yield _Place(name, value)
    for name in FOLDER_FIELDS:
        value = fields_of(entry).get(name)
        if isinstance(value, str) and value:
            yield _Place("in", value)


def _find_place_in_table(other: EntryView, said: str, line: str, name: str) -> _Place | None:
    """Return the place that the first column of a table gives for the row of a name."""
    # Only a table with a column of places shows the place of a row.
    head = next((each.split() for each in said.split("\n") if each.split() and each.split()[0].casefold() in _COLUMNS), None)
    head = ["namespace"] if head is None and _EVERY.search(command_of(other)) else head
    cells = line.split()
    # A row that begins with the name has no column of places.
    if head is None or not cells or cells[0] == name or len(cells) < 2:
        return None
    return _Place(_COLUMNS[head[0].casefold()], cells[0])


def _explain_other_place(
    evidence: Evidence, entry: EntryView, name: str, place: _Place, own: list[_Place], other: EntryView, line: str
) -> Diagnosis:
    mine = next((each for each in own if each.word == place.word), None)
    # kubectl looks in this namespace if none is named.
    here = f" ({code(mine.value, 60)})" if mine and plain_name(mine.value) else " (`default`)" if place.word == "-n" else ""
    source = evidence.source(other)
    cause = (
        f"{evidence.describe_failure(entry, 90)}: {code(name, 60)} is not in the place where it looks{here}. "
        f"{capital(source)} shows it in another one, {code(place.value, 80)}."
    )
    option = f"{place.word} {place.value}" if place.word.startswith("-") else place.value
    instead = f" in place of {code(mine.value, 60)}" if mine and plain_name(mine.value) else ""
    step = f"Make the same call with {code(option, 90)}{instead}."
    if place.word == "--schema" and re.search(r"(?i)\b(?:select|from|insert|update|delete|alter)\b", call_input(entry)):
        step = f"Write the name with its schema: {code(f'{place.value}.{name}', 90)}."
    if place.word == "in":
        step = f"Run it in {code(place.value, 90)}: a call that worked there saw it."
    return diagnosis(
        KIND, cause, step, evidence.quote(entry), evidence.quote(other, line),
        check="The answer must no longer say that it is missing.",
    )  # fmt: skip
