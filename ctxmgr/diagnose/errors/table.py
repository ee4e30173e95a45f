"""The table of what tools say: finds the row that a failed call meets, or a repeated success, and fills its words.

The rows come from the files of `known_errors`: first `traps.toml`, then `general.toml`, then one file for each domain. Parsing
all of them as TOML takes longer than a diagnosis, so a row is parsed only when an output holds one of its keys.

A slot is filled with names alone: a text of several words could be an order, and is not passed on. What the words leave open
the failing call may name: its host, the file it reads, the path it writes to.

A success can be the symptom too: calls that say the same again and again although something should change. Healthy sessions
have such lines as well: a build with nothing to do, a pull without news. So at least `_LEAST_SAME` of an agent's last calls
must say exactly the same, up to the end. Nothing may fail, and none of these calls may have had another answer since.
"""

from __future__ import annotations

import itertools
import os
import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache, cached_property, lru_cache, partial
from typing import Any, NamedTuple

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.base.paths import packaged_text
from ctxmgr.diagnose.evidence import CHECKS, Evidence, call_input, call_key
from ctxmgr.diagnose.evidence.calls import call_phrase, command_of, edited_paths, fields_of, split_command
from ctxmgr.diagnose.evidence.texts import blanks_for_underscores, code, first_group, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.log import fast_json
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

# `{name}`, `{name_plain}` for several words, `{name_word}` without quotes, `{name|text if no name was found}`
_SLOT = lazy_pattern(r"\{(\w+?)(_plain|_word)?(?:\|([^{}]*))?\}")
_PLACES = lazy_pattern(r"(?<![\w=$-])(?:HOST|PORT|SCRIPT)(?![\w-])")
"""Parts that a step leaves open and a call may name."""
_STANDS_IN = ("name", "other", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_OPEN = lazy_pattern(r"\[\^\\n\]|\[\\s\\S\]|\(\?s\)|\.\{|\.\*|\[\^[^\]]{1,8}\]")
"""Parts of an expression that match any text."""
_WORDS = lazy_pattern(r"[\w.%'-]+(?:[ ,/=]{1,2}[\w.%'-]+){0,3}")
_HEAD, _SHOWN, _MOST_MATCHES, _PART, _MOST_CALL = 3_000, 70, 20, 4, 2_000
_TABLE = lazy_pattern(r"\n(?=\[\[?\w)")
_KEY = lazy_pattern(r"\nkey = (.*)")
_ROW = "[[error]]"
_FIRST = ("traps.toml", "general.toml")
"""The files whose rows are tried first. Traps look at the call, too, so they know more than the words of an error tell."""


@dataclass(frozen=True)
class ErrorRow:
    """A row of the table. Its fields are parsed and its expressions compiled when a text first contains one of its keys."""

    key: tuple[str, ...]
    late: bool
    ok: bool
    fails: bool
    source: str

    @cached_property
    def fields(self) -> dict[str, Any]:
        """All that the row says, {key of the table: value}."""
        return tomllib.loads(self.source)["error"][0]

    @property
    def meaning(self) -> str:
        """The text after "fails, because"."""
        return self.fields["means"]

    @property
    def step(self) -> str:
        """What helps."""
        return self.fields["step"]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The expression that the text must match."""
        return re.compile(self.fields.get("said") or f"(?i){'|'.join(re.escape(key) for key in self.key)}")

    @cached_property
    def caller(self) -> re.Pattern[str] | None:
        """The expression that the command or the name of the tool must match."""
        call = self.fields.get("call")
        return re.compile(call, re.IGNORECASE) if call else None

    def match(self, text: str, folded: str, call: str) -> re.Match[str] | None:
        """Return the match of a text with the row, or None."""
        # The keys are plain texts, and rule out most rows without a regular expression.
        if self.key and not any(key in folded for key in self.key):
            return None
        if self.caller is not None and not self.caller.search(call):
            return None
        found = list(itertools.islice(self.pattern.finditer(text), _MOST_MATCHES))
        if not found:
            # The text may have underscores where an expression without a key has spaces.
            return None if self.key else self.pattern.search(blanks_for_underscores(text))
        return max(found, key=lambda each: sum(group is not None for group in each.groups()))

    def words(self, match: re.Match[str]) -> str:
        """Return the words that matched the row as a quote, without text that an expression accepts unread."""
        text = match.group(0).strip()
        # If the expression accepts any text, that text may be an order, so only the key is quoted.
        if not _OPEN.search(self.fields.get("said", "")) and 2 < len(text) < 2 * _SHOWN and "\n" not in text:
            return code(text, _SHOWN)
        known = next((key for key in self.key if key in match.string.casefold()), "")
        start = match.string.casefold().find(known)
        return code(match.string[start : start + len(known)].strip(), _SHOWN) if len(known) > 3 else ""


@cache
def _index_key_starts() -> dict[str, list[int]]:
    """Return the indexes of the rows by the beginning of their keys. Rows with short or no keys are under ""."""
    starts: dict[str, list[int]] = {}
    for place, row in enumerate(error_rows()):
        for start in dict.fromkeys(key[:_PART] if len(key) >= _PART else "" for key in row.key or ("",)):
            starts.setdefault(start, []).append(place)
    return starts


def _list_candidates(folded: str) -> Iterator[ErrorRow]:
    """Yield the rows that a text may match, in their order. Nearly all rows are ruled out without looking at them."""
    starts = _index_key_starts()
    rows = error_rows()
    places = {place for start in (_substrings(folded) & starts.keys()) | {""} for place in starts.get(start, ())}
    return (rows[place] for place in sorted(places))


@lru_cache(maxsize=16)
def _substrings(folded: str) -> frozenset[str]:
    return frozenset(folded[at : at + _PART] for at in range(len(folded) - _PART + 1))


@cache
def _load_tables() -> tuple[str, ...]:
    """Return the texts of all TOML tables, in their order."""
    folder = os.path.join(os.path.dirname(__file__), "known_errors")
    domains = sorted(name for name in os.listdir(folder) if name.endswith(".toml") and name not in _FIRST)
    names = (os.path.join(folder, name) for name in (*_FIRST, *domains))
    return tuple(f"{part}\n" for name in names for part in _TABLE.split(packaged_text(__file__, name)))


@cache
def _load_table(name: str) -> Any:
    starts = f"[{name}]", f"[{name}.", f"[[{name}]]"
    return tomllib.loads("".join(part for part in _load_tables() if part.startswith(starts)))[name]


def read_table(name: str) -> list[dict[str, str]]:
    """Return the rows of a table for another module."""
    return _load_table(name)


def error_words() -> str:
    """Return the usual words of errors."""
    return _load_table("words")["error"]


@cache
def error_rows() -> tuple[ErrorRow, ...]:
    """Return the rows in their order."""
    return tuple(
        ErrorRow(
            _row_keys(part),
            "\nlate = true\n" in part,
            "\nok = true\n" in part,
            "\nok = true\n" not in part or "\nfails = true\n" in part,
            part,
        )
        for part in _load_tables()
        if part.startswith(_ROW)
    )


def _row_keys(row: str) -> tuple[str, ...]:
    """Return the keys of a row. A TOML array on one line is nearly always valid JSON too."""
    match = _KEY.search(row)
    if match is None:
        return ()
    try:
        return tuple(fast_json.loads(match.group(1)))
    except ValueError:
        return tuple(tomllib.loads(row)["error"][0]["key"])


@dataclass(frozen=True)
class Fact:
    """The recorded content of something, and the error that it explains; see `record_facts`."""

    error: re.Pattern[str]
    shown: str
    call: str
    about: str
    files: str
    means: str
    step: str
    late: bool
    given: str
    ok: bool
    fails: bool
    undone: str
    also: str

    def pattern(self, names: dict[str, str], also: bool = False) -> re.Pattern[str]:
        """Return the expression that a file (``also``: another one) must match, with the names from error and call."""
        said = self.also if also else self.shown
        for name, value in names.items():
            said = said.replace(f"{{{name}}}", re.escape(value))
        return re.compile(said)


@cache
def fact_rows() -> tuple[Fact, ...]:
    """Return the facts in their order."""
    return tuple(
        Fact(
            re.compile(row["error"]), row["shown"], row.get("call", ""), row.get("about", ""), row.get("files", ""),
            row["means"], row["step"], bool(row.get("late", False)), row.get("given", ""), bool(row.get("ok", False)),
            bool(row.get("fails", not row.get("ok", False))), row.get("undone", ""), row.get("also", ""),
        )
        for row in _load_table("fact")
    )  # fmt: skip


class Topic(NamedTuple):
    """The topic of a failure: how an error names it, and other words for it."""

    name: str
    meets: re.Pattern[str]
    words: re.Pattern[str]


@cache
def topics() -> tuple[Topic, ...]:
    """Return the topics of failures, in the order in which they are tried."""
    return tuple(
        Topic(name, lazy_pattern(row["meets"]), lazy_pattern(rf"(?<![\w-])(?:{row['words']})(?![\w-])", re.IGNORECASE))
        for name, row in _load_table("topics").items()
    )


def find_topic(said: str) -> Topic | None:
    """Return the topic of a text, or None."""
    return next((topic for topic in topics() if topic.meets.search(said[:6_000])), None)


def known_error(kind: str, evidence: Evidence, *, late: bool, once: bool = False) -> Diagnosis | None:
    """Return the meaning of a failing call's message, according to the rows that are tried early or late.

    The next call may solve an error that was seen once, so such an error counts only with ``once``.
    """
    for entry in evidence.failing_calls:
        if not once and evidence.times(entry) < 2 and len(evidence.failing_calls) < 2:
            continue
        for row, match in matching_rows(evidence, entry):
            if row.late != late or not row.fails or _only_warns(row, match):
                continue
            if (found := diagnose_row(kind, evidence, entry, row, match)) is not None:
                return found
    return None


_WARNS = lazy_pattern(r"(?:(?!error)[^\n]){0,80}?\bwarn(?:ing)?\b", re.IGNORECASE)
_FAILS = lazy_pattern(
    r"(?:\W{0,4}(?:FAIL(?:ED|URE)?|not ok|ERROR|Error|fatal|panic)\b[: ]|E {2,4}\S"
    r"|\S{1,160}:\d{1,6}:(?:\d{1,5}:)? (?:fatal )?error\b|(?:\w{1,40}\.){0,6}\w{0,40}(?:Error|Exception): )"
)


def _only_warns(row: ErrorRow, match: re.Match[str]) -> bool:
    """Whether a row matches only in lines that call themselves a warning, while another line says what failed."""
    lines = match.string.split("\n")
    said = [line for line in lines if not _WARNS.match(line)]
    # A row may join lines, so it is tried on all of them.
    return len(said) < len(lines) and not row.pattern.search("\n".join(said)) and any(map(_FAILS.match, said))


def any_known_error(kind: str, evidence: Evidence) -> Diagnosis | None:
    """Return what the table says about the failing calls, for a class that has found nothing in the record itself."""
    return known_error(kind, evidence, late=False) or known_error(kind, evidence, late=True)


def matching_rows(evidence: Evidence, entry: EntryView) -> Iterator[tuple[ErrorRow, re.Match[str]]]:
    """Yield the rows that a call's result matches, with the matches, in order. Of two overlapping ones, the longer is first."""
    found = [
        (row, match) for row in _list_candidates(_folded(_head_and_tail(evidence, entry)))
        if (match := match_row(evidence, entry, row)) is not None
    ]  # fmt: skip
    while found:
        first = found[0]
        # "ENOSPC: System limit for number of file watchers" is about watchers. "ENOSPC" alone is about the disk.
        chosen = next((each for each in found[1:] if _contains_match(each, first)), first)
        found.remove(chosen)
        yield chosen


def _contains_match(one: tuple[ErrorRow, re.Match[str]], other: tuple[ErrorRow, re.Match[str]]) -> bool:
    """Whether the words that matched one row contain the bare key of another, and more, on the same line."""
    (_, long), (row, short) = one, other
    said, bare = long.group(0), short.group(0).casefold()
    return "\n" not in said and bare in row.key and bare != said.casefold() and long.start() <= short.start() < long.end()


def match_row(evidence: Evidence, entry: EntryView, row: ErrorRow) -> re.Match[str] | None:
    """Return the match of a call's result with a row, or None.

    A test may print anything. So the late rows are tried on its result only if they name the test runner.
    """
    command = command_of(entry)
    if row.late and row.caller is None and CHECKS.search(command) is not None:
        return None
    short = _head_and_tail(evidence, entry)
    return row.match(short, _folded(short), command or f"{entry.action} {call_input(entry)}"[:_MOST_CALL])


_folded = lru_cache(maxsize=16)(str.casefold)


def _head_and_tail(evidence: Evidence, entry: EntryView) -> str:
    said = evidence.text(entry)
    return said[:_HEAD] + said[-_HEAD:] if len(said) > 2 * _HEAD else said


def diagnose_row(
    kind: str, evidence: Evidence, entry: EntryView, row: ErrorRow, match: re.Match[str], start: str = ""
) -> Diagnosis | None:
    """Return what a row says about a call, or None if a slot stays open. ``start`` replaces the beginning "CALL fails"."""
    slots = _find_slot_values(evidence, entry, match)
    means, step = fill_slots(row.meaning, slots), fill_slots(row.step, slots)
    # An empty slot would leave a hole in the sentence.
    if means is None or step is None:
        return None
    step = _PLACES.sub(lambda place: _fill_place(place.group(0), slots), step)
    start = start or f"{evidence.describe_failure(entry, 90)}"
    words = row.words(match)
    cause = f"{start}, because {means}{f': {words}' if words else ''}."
    line = next((line.strip() for line in evidence.text(entry).split("\n") if match.group(0).split("\n")[0] in line), "")
    # A successful call has no error that could disappear.
    check = "The quoted error must be gone." if evidence.has_failed(entry) else "The answer must be another one."
    return diagnosis(
        kind, cause, step, evidence.quote(entry, line or None), check=check,
        confidence="medium",
    )  # fmt: skip


def _fill_place(place: str, slots: dict[str, str]) -> str:
    """Return what the call names for an open part, or the part itself."""
    value = slots.get(place.lower(), "")
    return value if plain_name(value) else place


def _find_slot_values(evidence: Evidence, entry: EntryView, match: re.Match[str]) -> dict[str, str]:
    return {**_find_call_slots(evidence, entry), **named_groups(match)}


def named_groups(match: re.Match[str]) -> dict[str, str]:
    """Return the groups that were met, {name: text}; the other names of a thing stand in for `name`."""
    groups = {name: value.strip() for name, value in match.groupdict().items() if value}
    for name in _STANDS_IN:
        if name in groups:
            groups.setdefault("name", groups[name])
    return {name.removesuffix("_too"): value for name, value in groups.items()}


def fill_slots(text: str, slots: dict[str, str]) -> str | None:
    """Return a text with its slots filled, or None if a slot without a default stays empty."""
    parts: list[str] = []
    last = 0
    for slot in _SLOT.finditer(text):
        name, form, instead = slot.groups()
        value = slots.get(name, "").rstrip(".,:;")
        if form == "_plain":
            shown = value if value and len(value) < 60 and _WORDS.fullmatch(value) else instead
        # A text with spaces or special characters is no name, and may be an order.
        elif value and (plain_name(value) or (form is None and name in ("podman",))):
            inside = "".join(parts).count("`") + text[last : slot.start()].count("`")
            shown = value if form == "_word" or name == "podman" or inside % 2 else code(value, 90)
        else:
            shown = instead
        if shown is None:
            return None
        parts += [text[last : slot.start()], shown or "\0"]
        last = slot.end()
    filled = "".join([*parts, text[last:]])
    return re.sub(r" ?\0(?=[ ,:;.)]|$)|\0", "", filled)


_HOST = lazy_pattern(
    r"(?:https?|wss?|postgres(?:ql)?|mysql|redis|amqp|mongodb)://(?:[^@/\s'\"]{1,80}@)?([\w.-]{1,100})|@([\w.-]{1,80})"
)
_ADDRESS = lazy_pattern(r"https?://[^/\s'\"]{1,100}(/[\w./~-]{1,120})")
_METHOD = lazy_pattern(r"(?:-X|--request)[ =]?([A-Z]{3,7})\b")
_WRITES = lazy_pattern(r"(?:\s(?:-o|-f|-O|--output|--file|--out|--target|of|-C|--dest)[ =]|of=|>{1,2}\s?)([~.\w/@%+-]{2,160})")
_OPENED = lazy_pattern(r"(?:open|read_\w+|load|Path)\(\s?(?:\w+=)?[`'\"]([\w./@+-]{1,120})[`'\"]")
_DATA = lazy_pattern(r"[\w./@+-]{1,100}\.(?:csv|tsv|txt|json|xml|ya?ml|log|html?|ini|sql|md|dat)\b")
_SCRIPT = lazy_pattern(r"(?:^|[\s;&])((?:[\w.~-]{0,40}/){0,6}[\w.-]{1,60}\.(?:sh|bash|ksh|zsh))(?![\w.])")
_LOGIN = lazy_pattern(r"\bssh (?:-\S+ (?:[\w./~-]+ )?)*(?:[\w.-]+@)?([\w.-]{2,80})|\s(?:[\w.-]+@)?([\w.-]{2,80}):[~/\w.]")
_FRAME = lazy_pattern(r"File \"([^\"\n]{1,200})\", line")


def _find_call_slots(evidence: Evidence, entry: EntryView) -> dict[str, str]:
    """Return the slots that a failing call can fill."""
    command, asked = command_of(entry), call_input(entry)
    host = _HOST.search(asked)
    writes = _WRITES.search(command)
    paths = [
        word for words in split_command(command) for word in words[1:] if "/" in word and "://" not in word and word[0] != "-"
    ]
    program = next((words[0].rpartition("/")[2] for words in split_command(command) if words[0] != "cd"), "")
    found = {
        "host": first_group(host),
        "method": _find_method(entry, command),
        "address": address.group(1) if (address := _ADDRESS.search(asked)) else "",
        "path": writes.group(1) if writes else paths[-1] if paths else "",
        "file": _find_data_file(evidence, entry, command),
        "program": program,
        "script": script.group(1) if (script := _SCRIPT.search(command)) else "",
        "target": _find_login_host(command),
        "trace": _find_last_frames(evidence, entry),
        "own": _find_own_test(evidence) if CHECKS.search(command) else "",
        "podman": _advise_podman(evidence) if program == "docker" else "",
    }
    return {name: value for name, value in found.items() if value}


def _find_method(entry: EntryView, command: str) -> str:
    value = fields_of(entry).get("method")
    match = _METHOD.search(command)
    return value if isinstance(value, str) and value.isalpha() else match.group(1) if match else ""


def _find_data_file(evidence: Evidence, entry: EntryView, command: str) -> str:
    """Return the data file that the call reads, from its traceback or its command."""
    opened = _OPENED.findall(evidence.text(entry)[-6_000:])
    named = _DATA.search(command)
    return opened[-1] if opened else named.group(0) if named else ""


def _find_login_host(command: str) -> str:
    """Return the host of an ssh, scp or rsync call."""
    match = _LOGIN.search(command)
    return first_group(match)


def _find_last_frames(evidence: Evidence, entry: EntryView) -> str:
    """Return the last two files of the project in a traceback, joined by a comma."""
    named = [evidence.relative_path(path) for path in _FRAME.findall(evidence.text(entry)[-8_000:])]
    own = list(dict.fromkeys(path for path in named if not path.startswith(("/usr/", "<")) and "-packages/" not in path))
    return ",".join(own[-2:]) if len(own) > 1 else ""


def _find_own_test(evidence: Evidence) -> str:
    """Return the test file that the agent wrote last."""
    written = [path for each in evidence.edits for path in edited_paths(each)]
    return next((evidence.relative_path(path) for path in reversed(written) if re.search(r"test|check|spec", path)), "")


def _advise_podman(evidence: Evidence) -> str:
    """Return what to do if the record shows a podman beside a docker that does not answer."""
    for entry in evidence.latest:
        if entry.status == "ok" and re.search(
            r"^/\S{0,60}/podman$|^podman version", evidence.text(entry)[:4_000], re.MULTILINE
        ):
            return "`podman` is here: make the same call with it. If it has to be docker, ask the user to start the daemon."
    return ""


_LEAST_SAME, _MOST_SINCE, _LAST_CALLS = 3, 3, 14


class SameAnswer(NamedTuple):
    """The newest of the calls that say the same, the place where it says so, and the number of these calls."""

    entry: EntryView
    match: re.Match[str]
    times: int


def same_answer(evidence: Evidence, find: Callable[[EntryView], re.Match[str] | None]) -> SameAnswer | None:
    """Return the calls at the end of a session in which ``find`` finds the same words each time, or None.

    Args:
        evidence: the session's record.
        find: returns the match in the result of a successful call, or None.
    """
    last = [entry for entry in evidence.tail[-_LAST_CALLS:] if entry.agent == evidence.agent and entry.status != "open"]
    found: list[tuple[EntryView, re.Match[str]]] = []
    other: set[str] = set()
    for since, entry in enumerate(reversed(last)):
        match = find(entry) if entry.status == "ok" and (command_of(entry) or not edited_paths(entry)) else None
        if not found and since >= _MOST_SINCE:
            return None
        # Another answer since then means that something has changed.
        if match is not None and call_key(entry) in other:
            break
        if match is not None and (not found or match.group(0) == found[0][1].group(0)):
            found.append((entry, match))
        else:
            other.add(call_key(entry))
    return SameAnswer(*found[0], len(found)) if len(found) >= _LEAST_SAME else None


def _is_answered_since(evidence: Evidence, row: ErrorRow, entry: EntryView) -> bool:
    """Whether a later call of the kind that a row is about, in another form, had another answer."""
    later = (each for each in evidence.tail if each.index > entry.index and each.agent == entry.agent and each.status == "ok")
    return row.caller is not None and any(
        row.caller.search(command_of(each) or each.action) and match_row(evidence, each, row) is None for each in later
    )


def known_success(kind: str, evidence: Evidence) -> Diagnosis | None:
    """Return what the rows of the table say about a repeated success; None if a call fails."""
    if evidence.failing_calls:
        return None
    last = [entry for entry in evidence.tail[-_LAST_CALLS:] if entry.agent == evidence.agent and entry.status == "ok"]
    rows = {id(row): row for entry in last[-_MOST_SINCE:] for row, _ in matching_rows(evidence, entry) if row.ok}
    for row in rows.values():
        same = same_answer(evidence, partial(match_row, evidence, row=row))
        if same is not None and not _is_answered_since(evidence, row, same.entry):
            own = min(same.times, len(evidence.equal_calls(same.entry)))
            forms = " and other forms of it say" if own < same.times else " says"
            start = f"{call_phrase(same.entry)}{forms} the same {same.times} times"
            if (found := diagnose_row(kind, evidence, same.entry, row, same.match, start)) is not None:
                return found
    return None
