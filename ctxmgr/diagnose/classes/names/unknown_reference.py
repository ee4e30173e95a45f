"""A remote, branch, table, column or host is not known by that name. The record has the right one."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from ctxmgr.diagnose.classes.names.moved_names import CREATED, find_moved_name, list_columns
from ctxmgr.diagnose.evidence import Evidence, call_input
from ctxmgr.diagnose.evidence.calls import command_of, edited_paths, split_command
from ctxmgr.diagnose.evidence.files import is_file_name
from ctxmgr.diagnose.evidence.nearest_names import SMALL_WORDS, likeness, shares_only_ending
from ctxmgr.diagnose.evidence.texts import (
    capital,
    code,
    contains_word,
    find_line,
    find_nearest,
    first_group,
    join_names,
    plain_name,
    replace_word,
)
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "unknownReference"

_NAME = r"[`'\"‘]?([\w.:/@-]{1,100}?)[`'\"’]?"


class _Unknown(NamedTuple):
    """How a program says that it does not know a name, and the kind of the name.

    Each pattern contains one of the ``signs``. A text without any is not searched, and the pattern is not compiled for it.
    """

    noun: str
    signs: tuple[str, ...]
    pattern: re.Pattern[str]


def _make_unknown(noun: str, signs: tuple[str, ...], pattern: str) -> _Unknown:
    return _Unknown(noun, signs, lazy_pattern(pattern, re.IGNORECASE))


_UNKNOWN = (
    _make_unknown("remote", ("git repository", "no such remote"),
             rf"{_NAME} does not appear to be a git repository|no such remote:? {_NAME}(?=\s|$)"),
    _make_unknown("branch", ("match any", "remote ref", "reference", "revision", "branch", "a commit", "a valid", "can merge",
                        "upstream"),
             rf"pathspec {_NAME} did not match any|src refspec {_NAME} does not match any"
                       rf"|couldn't find remote ref {_NAME}(?=\s|$)"
             rf"|invalid reference: {_NAME}(?=\s|$)|ambiguous argument {_NAME}: unknown revision"
             rf"|remote branch {_NAME} not found|{_NAME} is not a commit|not a valid (?:object name|ref):? {_NAME}(?=\s|$)"
             rf"|branch {_NAME} not found|bad revision {_NAME}(?=\s|$)|merge: {_NAME} - not something we can merge"
             rf"|fatal: invalid upstream {_NAME}(?=\s|$)"),
    _make_unknown("table", ("table", "relation"),
             rf"no such table: {_NAME}(?=[\s,)]|$)|relation {_NAME} does not exist|table {_NAME} doesn't exist"
                      rf"|unknown table {_NAME}(?=\s|$)"
             rf"|undefinedtable\W+{_NAME}"),
    _make_unknown("column", ("column",),
             rf"no such column: {_NAME}(?=[\s,)]|$)|column {_NAME} does not exist|unknown column {_NAME}(?=\s|$)"
                       rf"|has no column named {_NAME}(?=\s|$)"),
    _make_unknown("host", ("resolve host", "getaddrinfo", "name or service", "no such host", "unknown host"),
             rf"could not resolve host(?:name)?:? {_NAME}(?=[\s:;,]|$)|getaddrinfo (?:ENOTFOUND"
                     rf"|EAI_AGAIN) {_NAME}(?=[\s:;,]|$)"
             rf"|ssh: {_NAME}: name or service not known|lookup {_NAME}(?: on \S+)?: no such host"
             rf"|unknown host:? {_NAME}(?=\s|$)"),
)  # fmt: skip
_REMOTE = lazy_pattern(
    r"^([\w.-]{1,60})\t|^([\w.-]{1,60}) +\S+ \((?:fetch|push)\)|remotes/([\w.-]{1,60})/|git remote add ([\w.-]{1,60})"
    r"|clone -o ([\w.-]{1,60})",
    re.MULTILINE,
)
_BRANCH = lazy_pattern(
    r"^[*+ ] (?:remotes/[\w.-]{1,40}/)?([\w./-]{1,100})(?= |$)|On branch ([\w./-]{1,100})"
    r"|(?:switch -c|checkout -b|branch -m|switch|checkout) ([\w./-]{1,100})"
    r"|refs/(?:heads|remotes/[\w.-]{1,40}|tags)/([\w./-]{1,100})|origin/([\w./-]{1,100})"
    r"|Switched to a new branch '([\w./-]{1,100})'",
    re.MULTILINE,
)
_TABLE = lazy_pattern(
    r"create (?:virtual )?table (?:if not exists )?[\"'`\[]?([\w.]{1,80})|^ *(?:public|main) \| (\w{1,80}) +\| table"
    r"|insert into [\"'`]?(\w{1,80})",
    re.IGNORECASE | re.MULTILINE,
)
# SQLite's `0|id|INTEGER|0||1` and psql's ` id | integer |`
_TABLE_INFO = lazy_pattern(
    r"^\d{1,4}\|(\w{1,80})\||^ (\w{1,80}) +\| (?:integer|text|bigint|boolean|numeric|timestamp|character|uuid|jsonb?|date)",
    re.MULTILINE,
)
# MySQL's `| id | bigint |`, and similar lists of columns
_DESCRIBED = lazy_pattern(
    r"^[^\w\n]{0,6}(\w{1,80}) *[|\t ]\s*(?:\w*int|varchar|text|date\w*|time\w*|decimal|float|double|bool|json|char|enum)",
    re.MULTILINE,
)
_HOST = lazy_pattern(
    r"(?<![\w.-])((?:[a-z0-9][a-z0-9-]{0,62}\.){1,5}[a-z][a-z0-9-]{0,30}[a-z])(?![\w-])(?!\()|^ *Host(?:Name)? +([\w.-]{1,80})",
    re.IGNORECASE | re.MULTILINE,
)
_HINT = lazy_pattern(r"perhaps you meant to reference the (?:column|table) [\"']?(?:\w+\.)?(\w{1,80})", re.IGNORECASE)
_FILES = word_set("py js ts json md txt yml yaml toml html css sh rs go java c h cpp log csv lock sql xml ini cfg")
_REVISIONS = lazy_pattern(
    r"\bgit (?:-\S+ \S+ )?(?:checkout|switch|merge|rebase|branch|push|pull|fetch|cherry-pick|log|diff|show|reset|worktree|tag"
    r"|rev-parse|clone|revert|bisect|describe|range-diff)\b"
)


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return the unknown name, and the nearest recorded one."""
    shared = _find_shared_column(evidence)
    for entry in [*([shared] if shared is not None else []), *evidence.failing_calls]:
        said, asked = evidence.text(entry)[:12_000], _requested_text(evidence, entry)
        folded = said.casefold()
        for noun, signs, pattern in _UNKNOWN:
            match = pattern.search(said) if any(sign in folded for sign in signs) else None
            name = first_group(match)
            # A name that the call does not have comes from a hook or a library.
            if name and name.rpartition(".")[2] and name in asked and _is_reference(noun, name, command_of(entry)):
                found = _diagnose_unknown_name(evidence, entry, noun, name, said)
                if found is not None:
                    return found
    return None


def _requested_text(evidence: Evidence, entry: EntryView) -> str:
    """Return the input of a call, and what its agent recently wrote into files that the call names."""
    wrote = [each for each in evidence.edits[-_MOST_EDITS:] if each.agent == entry.agent and each.index < entry.index]
    names = {path.rpartition("/")[2]: each for each in wrote for path in edited_paths(each)}
    return "\n".join([call_input(entry), *(call_input(each) for name, each in names.items() if name in call_input(entry))])


_MOST_EDITS, _MOST_COMMAND = 12, 160
"""Last edits whose text counts as the call's own, and characters of a command that is repeated corrected."""


def _is_reference(noun: str, name: str, command: str) -> bool:
    """Whether the call uses the name for such a thing: a path that git does not know is no branch."""
    return noun != "branch" or (_REVISIONS.search(command) is not None and not is_file_name(name))


def _diagnose_unknown_name(evidence: Evidence, entry: EntryView, noun: str, name: str, said: str) -> Diagnosis | None:
    by_user = {each for message in evidence.user_texts for each in _list_names(noun, message.text) if plain_name(each)}
    places = _find_recorded_names(evidence, entry, noun)
    # Neither the name itself nor its last part alone is a candidate.
    unfit = {name, name.rpartition("/")[2]}
    fair = [each for each in (*by_user, *places) if each not in unfit and not _was_tried(evidence, each, name, entry)]
    hint = _HINT.search(said)
    near = _find_column(evidence, entry, name, fair) if noun == "column" else find_nearest(name, fair, 0.55)
    near = near or (hint.group(1) if hint and plain_name(hint.group(1)) else None)
    moved = _diagnose_moved_name(evidence, entry, noun, name, near) if noun in ("column", "table") else None
    if moved is not None:
        return moved
    of_table = _diagnose_column(evidence, entry, name, near) if noun == "column" else None
    if of_table is not None:
        return of_table
    if near is None:
        # With several tables, it is unclear whose columns are meant.
        of_one_table = len(set(_FROM.findall(_requested_text(evidence, entry)))) == 1 and len(fair) > _FEW_NAMES
        candidates = (
            sorted(set(places) - unfit) if noun in ("remote", "table") else fair if noun == "column" and of_one_table else []
        )
        if noun in ("remote", "branch") and (only := _diagnose_only_remote(evidence, entry, noun, name)) is not None:
            return only
        return _diagnose_unlike_name(evidence, entry, noun, name, candidates)
    line = find_line(said, name)
    quotes = [evidence.quote(entry, line)]
    cause = f"There is no {noun} {code(name, 80)}."
    if near in places:
        other, shown = places[near]
        cause += f" {capital(evidence.source(other))} has {code(near, 80)}."
        quotes.append(evidence.quote(other, shown))
    elif near in by_user:
        cause += f" The user spoke of {code(near, 80)}."
    else:
        cause += f" The message offers {code(near, 80)}."
    # A host that only an output names may belong to somebody else.
    if noun == "host" and not evidence.is_known_to_agent(near):
        step = (
            f"The output names the host {code(near, 80)}; if you trust it, use it in place of {code(name, 80)}, else ask the"
            " user."
        )
        return diagnosis(KIND, cause, step, *quotes, confidence="medium")
    step = _describe_replacement(command_of(entry), noun, name, near)
    return diagnosis(KIND, cause, step, *quotes, check=f"The message that there is no such {noun} must be gone.")


def _diagnose_moved_name(evidence: Evidence, entry: EntryView, noun: str, name: str, near: str | None) -> Diagnosis | None:
    """Say what became of a column or table, if the record tells it, and where to look instead."""
    alias, _, last = name.rpartition(".")
    used = _find_used_tables(_requested_text(evidence, entry))
    tables = ({used.get(alias.lower(), alias.lower())} if alias else set(used.values())) if noun == "column" else set[str]()
    moved = find_moved_name(evidence, last, tables, entry.index) if tables or noun == "table" else None
    # A name that is very similar says more than a word about the whole table.
    if moved is None or (not moved.named and near is not None and likeness(near, last) > _VERY_LIKE):
        return None
    if moved.new and any(contains_word(moved.new, call_input(each)) for each in evidence.failing_calls):
        return None
    about = f"that {noun}" if moved.named else f"the columns of {join_names(sorted(tables), 2)}"
    source = evidence.source(moved.entry)
    cause = f"There is no {noun} {code(name, 80)}. {capital(source)} says of {about}: {code(moved.line, 150)}."
    others = [(each, columns) for each, columns in moved.made if each.lower() not in used.values()][:_FEW_NAMES]
    shown = " and ".join(f"{code(each, 60)} ({join_names(columns, 8)})" for each, columns in others)
    if moved.new and plain_name(moved.new):
        step = f"Use {code(moved.new, 80)}, which took the place of {code(last, 80)}."
    elif shown:
        cause += f" It makes {shown}."
        keys = {f"{table}_id" for table in tables}
        by = f" by {join_names(keys)}" if len(keys) == 1 and all(keys & set(columns) for _, columns in others) else ""
        step = f"Look into {join_names([each for each, _ in others])}, and join the one that has what you need{by}."
    else:
        step = f"Read what {source} says took its place."
    step += f" Put no other {noun} in its place only because its name looks alike." if not moved.new else ""
    return diagnosis(
        KIND, cause, step, evidence.quote(moved.entry, moved.line), evidence.quote(entry), confidence="medium",
        check="The message must be gone, and a few rows must hold what was asked for.",
    )  # fmt: skip


def _find_recorded_names(evidence: Evidence, entry: EntryView, noun: str) -> dict[str, tuple[EntryView, str]]:
    """Return the names of such things in earlier calls, each with the newest call that has it and the line there."""
    found: dict[str, tuple[EntryView, str]] = {}
    for other in evidence.latest_before(entry.index):
        # A failing answer repeats the wrong name.
        if evidence.has_failed(other):
            continue
        # Only the output of a listing call is the list.
        for text, command in ((evidence.text(other), command_of(other)), (call_input(other), "")):
            for each in _list_names(noun, text, command, _requested_text(evidence, entry)):
                if plain_name(each):
                    found.setdefault(each, (other, find_line(text, each)))
    return found


def _describe_replacement(command: str, noun: str, name: str, near: str) -> str:
    """Return the step that puts a known name in the place of an unknown one, as a corrected command where it is short."""
    if command and len(command) < _MOST_COMMAND:
        corrected = replace_word(command, name, near)
        if corrected != command:
            return f"Run {code(corrected, 170)}."
    return f"Use the {noun} {code(near, 80)} in place of {code(name, 80)}."


def _find_column(evidence: Evidence, entry: EntryView, name: str, known: list[str]) -> str | None:
    """Return the column most similar to all names tried in vain, unless the call also has it already."""
    noun = next(each for each in _UNKNOWN if each.noun == "column")
    tried_names = {name.rpartition(".")[2]}
    for each in evidence.tail:
        # Only all tried forms together show which column was meant.
        match = noun.pattern.search(evidence.text(each)[:12_000]) if evidence.has_failed(each) else None
        tried_names |= {group.rpartition(".")[2] for group in match.groups() if group} if match else set()
    own = set(re.findall(r"\w+", _requested_text(evidence, entry)))
    rated = sorted(
        (
            (max(0.0 if shares_only_ending(one, each) else likeness(one, each) for one in tried_names), each)
            for each in known
            if each not in tried_names | own
        ),
        reverse=True,
    )
    fair = [rate for rate in rated if rate[0] >= _LEAST_ALIKE and rate[0] > rated[0][0] - _MARGIN]
    return fair[0][1] if len(fair) == 1 or (fair and fair[0][0] > fair[1][0]) else None


_LEAST_ALIKE, _MARGIN, _FEW_NAMES = 0.6, 0.05, 2
"""Likeness of a column that was meant, its lead over the next one, and names that are too few to be a table's columns."""
_FROM = lazy_pattern(r"\b(?:from|join|into|update)\s+[\"'`]?([\w.]{1,80})", re.IGNORECASE)


class _Table(NamedTuple):
    """The columns of a table, in their order, and the call that shows them."""

    columns: tuple[str, ...]
    entry: EntryView


def _find_shared_column(evidence: Evidence) -> EntryView | None:
    """Return the newest call with an unknown column, if several had one, and only the very last call an unknown table."""
    noun = next(each for each in _UNKNOWN if each.noun == "column")
    failed = [entry for entry in evidence.tail if evidence.has_failed(entry)]
    found = [entry for entry in failed if noun.pattern.search(evidence.text(entry)[:12_000])]
    if evidence.finding is not None or len(found) < _ROUNDS or found[-1] in failed[-1:]:
        return None
    table = next(each for each in _UNKNOWN if each.noun == "table")
    return found[-1] if failed[-2] is found[-1] and table.pattern.search(evidence.text(failed[-1])[:12_000]) else None


def _diagnose_column(evidence: Evidence, entry: EntryView, name: str, near: str | None) -> Diagnosis | None:
    """Say which columns the table of an unknown column has, and which of them the user's task is about."""
    alias, _, column = name.rpartition(".")
    asked = _requested_text(evidence, entry)
    used, known = _find_used_tables(asked), _read_tables(evidence, entry.index)
    own = {used.get(alias.lower(), "")} if alias else set(used.values())
    tables = {each: known[each] for each in own if each in known}
    columns = [each for table in tables.values() for each in table.columns]
    tried = [each for each in _list_tried_columns(evidence, own) if each != column]
    best, why, is_like = _choose_column(evidence, [each for each in columns if each not in asked], [column, *tried])
    # A table that is not known may have the column. A name that is very similar says more than the task.
    if (
        not tables
        or len(tables) < len(own)
        or (near is not None and (not is_like or near == best or likeness(near, column) > _VERY_LIKE))
    ):
        return None
    cause = f"There is no column {code(name, 80)}{f', as there was no {join_names(tried, 4)}' if tried else ''}."
    for table, (names, shown) in tables.items():
        cause += f" The table {code(table, 60)} has {join_names(names, 12)}, as {evidence.source(shown)} shows."
    quotes = [evidence.quote(entry), *(evidence.quote(table.entry) for table in tables.values())]
    has = next((each for each in used.values() if each not in own and each in known and column in known[each].columns), "")
    other = f"Take {code(column, 60)} from {code(has, 60)}, which has it." if has else _look_into_referring(used, known, tables)
    if is_like and not has:
        other = f"Use {code(best, 60)} in place of {code(name, 80)}: {why}."
    # With several tables, it is unclear whose column is meant; a few columns are hardly the whole table.
    if not other and (len(tables) > 1 or len(columns) <= _FEW_NAMES):
        return None
    named = f"See whether {code(best, 60)} is meant: {why}. " if best else ""
    step = other or "Choose the right column among these; if none is, ask the user which column is meant."
    step = step if has or is_like else f"{named}{step}"
    return diagnosis(KIND, cause, step, *quotes, confidence="medium")


def _look_into_referring(used: dict[str, str], known: dict[str, _Table], tables: dict[str, _Table]) -> str:
    """Return the step that looks into the tables that refer to those of a column, or ""."""
    keys = {f"{table}_id" for table in tables}
    refers = [each for each, (columns, _) in known.items() if each not in used and keys & {name.lower() for name in columns}]
    shown = " and ".join(f"{code(each, 60)} ({join_names(known[each].columns, 8)})" for each in refers[:2])
    return f"Look into {shown}, whose rows belong to {join_names(tables)}: join it if it has what you need." if refers else ""


def _choose_table(evidence: Evidence, entry: EntryView, name: str, names: list[str]) -> str:
    """Return the step that looks into the one table whose definition has most words of the task and of the unknown name."""
    known = {
        each: table for each, table in _read_tables(evidence, entry.index).items() if each in {one.lower() for one in names}
    }
    wanted = {word for message in evidence.user_texts for word in _WORD.findall(message.text[:8_000].casefold())}
    wanted |= set(_WORD.findall(name.casefold()))
    words = {
        each: {word for word in _WORD.findall(f"{each} {' '.join(table.columns)}".casefold()) if {word, f"{word}s"} & wanted}
        for each, table in known.items()
    }
    best = max(known, key=lambda each: len(words[each]), default="")
    rates = [len(each) for each in words.values()]
    if not 1 < len(known) == len(names) or not words[best] or rates.count(len(words[best])) > 1:
        return ""
    columns = join_names(known[best].columns, 8)
    return f"Look into {code(best, 60)} ({columns}) first: it shares {join_names(sorted(words[best]), 3)} with what is asked."


def _list_tried_columns(evidence: Evidence, tables: set[str]) -> list[str]:
    """Return the columns that the last calls did not find in statements with these tables, the newest first."""
    noun = next(each for each in _UNKNOWN if each.noun == "column")
    failed = [each for each in reversed(evidence.tail) if evidence.has_failed(each)]
    said = [evidence.text(each)[:12_000] for each in failed if tables & set(_find_used_tables(call_input(each)).values())]
    found = (group for text in said if (match := noun.pattern.search(text)) for group in match.groups() if group)
    return list(dict.fromkeys(each.rpartition(".")[2] for each in found))


def _choose_column(evidence: Evidence, columns: list[str], tried: list[str]) -> tuple[str, str, bool]:
    """Return the one column with most words of the task and of tried names, why, and whether it has a part of a tried name."""
    task = {word for message in evidence.user_texts for word in _WORD.findall(message.text[:8_000].casefold())}
    named = {word for each in tried for word in each.casefold().split("_")}
    parts = {each: each.casefold().split("_") for each in columns}
    of_task = {each: [word for word in parts[each] if len(word) > _SHORT and {word, f"{word}s"} & task] for each in columns}
    rates = {each: (len(of_task[each]), len(named.intersection(parts[each]))) for each in columns}
    best = max(columns, key=lambda each: rates[each], default="")
    shared = sorted(word for word in named.intersection(parts.get(best, ())) - SMALL_WORDS if len(word) > _SHORT)
    if not best or not (of_task[best] or shared) or list(rates.values()).count(rates[best]) > 1:
        return "", "", False
    why = f"the task speaks of {join_names(of_task[best], 2)}" if of_task[best] else f"it has {join_names(shared, 2)}"
    # A small word such as `at` chooses among columns of the task, and makes none of them the one that was meant.
    return best, why, bool(named.intersection(parts[best]) - SMALL_WORDS)


def _read_tables(evidence: Evidence, before: int) -> dict[str, _Table]:
    """Return the tables whose columns were shown before an entry, by their names in lower case."""
    found: dict[str, _Table] = {}
    for entry in evidence.latest_before(before):
        if evidence.has_succeeded(entry):
            for name, columns in _list_shown_tables(evidence, entry):
                if columns and plain_name(name):
                    found.setdefault(name.rpartition(".")[2].lower(), _Table(tuple(columns), entry))
    return found


def _list_shown_tables(evidence: Evidence, entry: EntryView) -> Iterator[tuple[str, list[str]]]:
    said, command = evidence.text(entry)[:20_000], command_of(entry) or call_input(entry)
    for table, body in CREATED.findall(f"{said}\n{call_input(entry)[:20_000]}"):
        yield table, list(list_columns(body))
    # An answer about several tables does not show where each begins.
    if len(names := _DESCRIBES.findall(command)) == 1:
        yield names[0], list(_list_groups(_TABLE_INFO, said)) or _DESCRIBED.findall(said)
    if len(names := _ALL_OF.findall(command)) == 1 and (heads := _HEADS.match(said)) is not None:
        yield names[0], re.split(r" *[|,\t] *", heads.group(1))


def _find_used_tables(statement: str) -> dict[str, str]:
    """Return the tables that a statement uses, by their names and aliases in lower case."""
    found: dict[str, str] = {}
    for table, alias in _USED.findall(statement):
        name = table.rpartition(".")[2].lower()
        found |= {name: name, **({alias.lower(): name} if alias and alias.lower() not in _CLAUSES else {})}
    return found


_WORD, _SHORT, _ROUNDS, _VERY_LIKE = lazy_pattern(r"[a-z]{4,30}"), 3, 2, 0.84
_DESCRIBES = lazy_pattern(
    r"(?:table_info\s*\(\s*|\b(?:desc(?:ribe)?|columns\s+from)\s+|\\d\+?\s+)[\"'`]?([\w.]{1,80})", re.IGNORECASE
)
_ALL_OF = lazy_pattern(r"\bselect\s+\*\s+from\s+[\"'`]?([\w.]{1,80})", re.IGNORECASE)
_HEADS = lazy_pattern(r"\A {0,9}([a-z]\w{0,79}(?: {0,60}[|,\t] {0,60}[a-z]\w{0,79}){1,60}) {0,60}(?:\n|\Z)", re.IGNORECASE)
_USED = lazy_pattern(
    r"\b(?:from|join|into|update)\s+[\"'`\[]?([\w.]{1,80})[\"'`\]]?(?:\s+(?:as\s+)?(\w{1,40}))?", re.IGNORECASE
)
_CLAUSES = word_set(
    "on join inner left right full outer cross natural where group order limit set using values union having returning select"
)


def _diagnose_unlike_name(evidence: Evidence, entry: EntryView, noun: str, name: str, known: list[str]) -> Diagnosis | None:
    """Say which names exist if the record lists them and none is similar to the requested one."""
    if not known:
        return None
    cause = f"There is no {noun} {code(name, 80)}. The record knows {join_names(known)}."
    other = _find_other_database(evidence, entry) if noun == "table" else None
    if other is not None:
        file, shown = other
        cause += f" {capital(evidence.source(shown))} names another database, {code(file, 80)}."
        step = f"See whether {code(name, 60)} is in {code(file, 80)}: make the same call with that file, to read only."
        return diagnosis(KIND, cause, step, evidence.quote(entry), evidence.quote(shown), confidence="medium")
    table = _choose_table(evidence, entry, name, known) if noun == "table" else ""
    one = (
        f"{table} Else choose the right table among these; if none is,"
        if table
        else f"Use {code(known[0], 80)} if that is the one you mean; else"
        if len(known) == 1
        else f"Choose the right {noun} among these; if none is,"
    )
    return diagnosis(KIND, cause, f"{one} ask the user which {noun} is meant.", evidence.quote(entry), confidence="medium")


def _diagnose_only_remote(evidence: Evidence, entry: EntryView, noun: str, name: str) -> Diagnosis | None:
    """Say which remote there is, and its main branch, if the record knows exactly one remote."""
    remotes = _find_recorded_names(evidence, entry, "remote")
    remote, (listing, shown) = next(iter(remotes.items()), ("", (entry, "")))
    failed = [words for each in evidence.tail if evidence.has_failed(each) for words in split_command(command_of(each))]
    asked = [word for words in failed if words[0] == "git" for word in words[2:]]
    mains = Counter(word.rpartition("/")[2] for word in asked if word.rpartition("/")[2] in _MAIN)
    there, branch = _find_remote_branches(evidence, remote)
    # A branch of that name may be pushed.
    there |= set(_find_recorded_names(evidence, entry, "branch"))
    lost = next((each for each, _ in mains.most_common() if each not in there), "") if branch else ""
    unknown = name if noun == "remote" else name.rpartition("/")[0]
    unknown = unknown if unknown != remote else ""
    # A remote that failed too is not the way.
    if len(remotes) != 1 or remote in asked or not (unknown if noun == "remote" else lost and name.endswith(lost)):
        return None
    missing = [f"no remote {code(unknown, 60)}"] * bool(unknown) + [f"no branch {code(lost, 60)}"] * bool(lost)
    cause = f"There is {' and '.join(missing)}. The record knows one remote, {code(remote, 60)}"
    cause += f", and its branch {code(branch, 80)}." if lost else "."
    steps = [f"{code(remote, 60)} in place of {code(unknown, 60)}"] * bool(unknown)
    steps += [f"{code(f'{remote}/{branch}', 80)} in place of {code(f'{unknown or remote}/{lost}', 80)}"] * bool(lost)
    return diagnosis(
        KIND, cause, f"Use {', and '.join(steps)}.", evidence.quote(entry), evidence.quote(listing, shown),
        check=f"The message that there is no such {noun} must be gone.",
    )  # fmt: skip


def _find_remote_branches(evidence: Evidence, remote: str) -> tuple[set[str], str]:
    """Return the listed branches of a remote, and the main one: its HEAD, or the only one besides the agent's own."""
    said = [evidence.text(each)[:20_000] for each in evidence.recent if evidence.has_succeeded(each)]
    of_remote = re.compile(rf"\bremotes/{re.escape(remote)}/([\w./-]+)(?: -> {re.escape(remote)}/([\w./-]+))?")
    found = [match.groups("") for text in said for match in of_remote.finditer(text)] if remote else []
    there = {name for name, _ in found if name != "HEAD"}
    head = next((target for _, target in found if target), "")
    own = {name for text in said for name in _list_groups(_CURRENT, text)}
    others = there - own
    return there, head or (next(iter(others)) if len(others) == 1 else "")


_MAIN = frozenset(("main", "master", "trunk", "develop", "mainline", "default"))
_CURRENT = lazy_pattern(
    r"^\* ([\w./-]{1,100})(?= |$)|^## ([\w./-]{1,100}?)(?=\.\.\.|$)|^On branch ([\w./-]{1,100})", re.MULTILINE
)


_DATABASE = lazy_pattern(r"(?<![\w./~-])((?:[\w.@~-]{0,60}/){0,10}[\w.-]{1,80}\.(?:db|sqlite3?|duckdb))(?![\w-]|\.\w)")


def _find_other_database(evidence: Evidence, entry: EntryView) -> tuple[str, EntryView] | None:
    """Return a database file that an answer names and no failing call has opened, if the call opens such a file."""
    opened = _DATABASE.search(command_of(entry))
    if opened is None:
        return None
    asked = "\n".join(call_input(each) for each in evidence.failing_calls)
    found = [
        (file, other)
        for other in evidence.latest_before(entry.index)
        if evidence.has_succeeded(other)
        for file in _DATABASE.findall(evidence.text(other)[:20_000])
        if file.rpartition("/")[2] not in asked and plain_name(file)
    ]
    # A full path says more than the name in a listing.
    return max(found, key=lambda each: "/" in each[0], default=None)


def _was_tried(evidence: Evidence, near: str, name: str, entry: EntryView) -> bool:
    """Whether the same call with the other name failed already."""
    command = command_of(entry)
    swapped = command.replace(name, near)
    # The same call with the nearest name failed already.
    return bool(command) and any(command_of(each) == swapped for each in evidence.failing_calls)


def _list_names(noun: str, text: str, command: str = "", asked: str = "") -> Iterator[str]:
    """Yield the names of such things in the first 20,000 characters of a text.

    Args:
        noun: what the names are of.
        text: an output, what a call was given, or a message.
        command: the command whose output it is, or "".
        asked: what the failing call was given; only columns of tables that it names are candidates.
    """
    text = text[:20_000]
    if noun == "column":
        return _list_column_names(text, command, asked)
    if noun == "host":
        return _list_host_names(text)
    if noun == "branch":
        return (name for name in _list_groups(_BRANCH, text) if not name.startswith("-"))
    if noun == "remote":
        # Only a bare `git remote` prints nothing but names.
        pattern, is_list = _REMOTE, re.fullmatch(r"\s*git remote\s*", command) is not None
    else:
        pattern, is_list = _TABLE, ".tables" in command and "create" not in text.lower()
    return itertools.chain(text.split() if is_list else (), _list_groups(pattern, text))


def _list_column_names(text: str, command: str, asked: str) -> Iterator[str]:
    for table, body in CREATED.findall(text):
        # Columns of a table that the statement does not use are no candidates.
        if re.search(rf"\b{re.escape(table)}\b", asked, re.IGNORECASE) is None:
            continue
        yield from list_columns(body)
    if re.search(r"\b(?:describe|desc|show columns)\b", command, re.IGNORECASE):
        yield from _DESCRIBED.findall(text)
    yield from _list_groups(_TABLE_INFO, text)


def _list_host_names(text: str) -> Iterator[str]:
    # Names of files look like hosts.
    return (name for name in _list_groups(_HOST, text) if name.rpartition(".")[2].lower() not in _FILES)


def _list_groups(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    return (name for match in pattern.finditer(text) for name in match.groups() if name)
