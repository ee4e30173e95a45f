"""Something is searched again and again in the wrong place. An earlier output shows the right one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxmgr.detect.text import vocabulary
from ctxmgr.diagnose.evidence import MOST_LATEST, Evidence, Message, call_key, clock
from ctxmgr.diagnose.evidence.calls import (
    command_of,
    edited_paths,
    fields_of,
    same_file,
    split_command,
    tool_phrase,
)
from ctxmgr.diagnose.evidence.files import PATH, asked_paths, is_file_name
from ctxmgr.diagnose.evidence.items import find_ids, find_listing, topic_words
from ctxmgr.diagnose.evidence.messages import user_sentences
from ctxmgr.diagnose.evidence.searches import parse_searches
from ctxmgr.diagnose.evidence.texts import capital, code, plain_name, strip_line_numbers
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "searchElsewhere"

_NOTHING = lazy_pattern(
    r"\A(?:Exit code:? \d+\s*|Wall time[^\n]*\s*|Output:\s*)*(?:no (?:matches|files|results|hits|entries|records"
    r"|rows|documents|items)?\s?(?:were )?(?:found|match\w*)?[^\n]{0,80}|0 (?:matches|results|hits"
    r"|files)[^\n]{0,40}|\[\s*\]|\(?empty\)?|nothing found[^\n]{0,40}"
    r"|\{[^\n{}]{0,80}\"(?:\w{1,40}\"\s?:\s?\[\s*\]"
    r"|(?:hits|results|items|matches|files|documents|data|rows|total|count)\"\s?:\s?0)[^\n{}]{0,80}\})?\s*\Z",
    re.IGNORECASE,
)
_SEARCH = lazy_pattern(r"grep|glob|search|find|lookup|query|locate", re.IGNORECASE)
_HEADS = frozenset(["grep", "rg", "ag", "ack", "find", "fd", "git", "locate"])
_TERM = lazy_pattern(r"[A-Za-z_][\w-]{3,60}")
_TERM_FIELDS = ("pattern", "query", "q", "term", "text", "name", "glob", "search")
_PLACE_FIELDS = (
    "path", "folder", "directory", "dir", "scope", "collection", "index", "bucket", "mailbox", "space", "repo", "project",
    "database", "db", "schema", "namespace", "region", "calendar", "account", "workspace", "channel", "table", "catalog",
    "store", "site", "tenant", "list", "board", "drive", "source", "archive", "env", "environment", "cluster", "queue",
    "topic", "dataset", "library", "owner", "org", "team", "group", "location", "warehouse",
)  # fmt: skip
_LEAST_SEARCHES, _LEAST_LOOKUPS = 2, 3
"""Searches for one thing, and look-ups of one value or in one place."""
_MOST_SINCE, _MOST_EMPTY, _MOST_TERMS, _MOST_OTHERS = 6, 400, 6, 3
"""Entries since the last search, characters of an answer that finds nothing, terms of a search, other places that are shown."""


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return where an earlier output has what is searched in vain."""
    if (excluded := _diagnose_excluded_value(evidence)) is not None:
        return excluded
    empty = [entry for entry in evidence.tail if _is_search(entry) and _is_empty(evidence, entry)]
    # A search from long ago is no trouble any more.
    if len(empty) < _LEAST_SEARCHES or evidence.is_past(empty[-1], _MOST_SINCE):
        return None
    for entry in reversed(empty):
        for term in _search_terms(entry):
            # One search in vain is a normal way to learn that nothing is there.
            same = [each for each in empty if term.casefold() in _search_text(each).casefold()]
            found = _find_output(evidence, term, entry) if len(same) >= _LEAST_SEARCHES else None
            if found is not None:
                return _explain_other_place(evidence, entry, term, same, *found)
    return _diagnose_named_file(evidence, empty) or _diagnose_single_place(evidence, empty)


_QUERY = lazy_pattern(r"\bselect\b[^;]{1,4000}\bfrom\b", re.IGNORECASE)
_NO_ROWS = lazy_pattern(r"(?:\A|\n)(?:count[^\n]{0,40}\n[-+| ]*\n?)?\s*(?:0|\(0 rows\)|Empty set[^\n]{0,20})\s*\Z")
_EXCLUDES = lazy_pattern(
    r"\b(?:not|never|no longer|instead of|rather than|(?:is|are|was|were) (?:only|just))\b|n['’]t\b"
    r"|\b(?:an?|the|its|their|our|your|my) (?:\w+ ){0,2}(?:old|former|wrong|test|dummy|demo|retired|closed|deprecated)\b",
    re.IGNORECASE,
)
_OF_RESULT = lazy_pattern(r":(?!\s)")
_PART = lazy_pattern(r"[,;:] | but | and (?=not )")


def _diagnose_excluded_value(evidence: Evidence) -> Diagnosis | None:
    """Say that all look-ups in vain name one value, of which the user said that another one is meant."""
    empty = [entry for entry in evidence.tail if evidence.is_own(entry) and _finds_nothing(evidence, entry)]
    if len(empty) < _LEAST_LOOKUPS or evidence.is_past(empty[-1], _MOST_SINCE):
        return None
    for value in sorted(find_ids(call_key(empty[-1]))):
        same = [entry for entry in empty if value in find_ids(call_key(entry))]
        for message, sentence in user_sentences(evidence) if len(same) >= _LEAST_LOOKUPS else ():
            other = _find_meant_value(sentence, value)
            # A value that was asked for as well did not help.
            if other and not any(other in call_key(entry) for entry in evidence.recent if entry.index >= same[0].index):
                return _explain_excluded_value(evidence, same, value, other, message, sentence)
    return None


def _finds_nothing(evidence: Evidence, entry: EntryView) -> bool:
    asks = _QUERY.search(command_of(entry)) if command_of(entry) else vocabulary.classify(entry.action, "", "") == "query"
    nothing = _is_empty(evidence, entry) or _NO_ROWS.search(evidence.text(entry)[-400:]) is not None
    return entry.status == "ok" and nothing and (bool(asks) or _is_search(entry))


def _find_meant_value(sentence: str, value: str) -> str:
    """Return the only value in the form of another one that a sentence names and does not exclude, if it excludes the other."""
    parts = _PART.split(sentence)
    excluded = any(value in find_ids(part) and _EXCLUDES.search(part) for part in parts)
    form = re.sub(r"\d", "0", value)
    meant = {
        each for part in parts if not _EXCLUDES.search(part) for each in find_ids(part) if re.sub(r"\d", "0", each) == form
    }
    return meant.pop() if excluded and len(meant) == 1 and value not in meant else ""


def _explain_excluded_value(
    evidence: Evidence, same: list[EntryView], value: str, other: str, message: Message, sentence: str
) -> Diagnosis:
    cause = (
        f"All {len(same)} look-ups that find nothing name {code(value, 60)}. The user said{clock(message.at)}: "
        f"{code(sentence, 200)}."
    )
    quotes = [evidence.quote_message(message, sentence), evidence.quote(same[-1])]
    compacted = next((each for each in reversed(evidence.messages) if each.kind == "compaction"), None)
    if compacted is not None and compacted.text and value not in compacted.text:
        cause += f" The summary of the compaction{clock(compacted.at)} leaves that out."
        quotes.append(evidence.quote_message(compacted))
    step = (
        f"Make the look-up with {code(other, 60)} in place of {code(value, 60)}, as the user said, and keep it in your notes."
    )
    return diagnosis(KIND, cause, step, *quotes, check="The answer must hold what you look for.")


def _diagnose_named_file(evidence: Evidence, empty: list[EntryView]) -> Diagnosis | None:
    """Say which file an output names beside the words that were searched, if no search looked there and no call opened it."""
    searches = [entry for entry in evidence.tail if _is_search(entry) and entry.index >= empty[0].index - _MOST_SINCE]
    terms = {term.casefold() for entry in searches for term in (*_search_terms(entry), *_VALUE.findall(_search_text(entry)))}
    asked = [path for each in evidence.recent for path in asked_paths(each)]
    found: dict[str, tuple[set[str], tuple[EntryView, str, str]]] = {}
    for entry in evidence.latest_before(empty[-1].index) if len(empty) >= _LEAST_LOOKUPS else ():
        shows = entry.status == "ok" and not _is_search(entry) and not edited_paths(entry)
        for line in evidence.text(entry).split("\n")[:_MOST_LINES] if shows else ():
            for path in _list_unopened_files(evidence, line[:_MOST_LINE], asked, empty):
                named = terms & set(_TERMS.findall(line.replace(path, " ").casefold()))
                if len(named) > len(found[path][0] if path in found else ()):
                    found[path] = named, (entry, line, path)
    ordered = sorted(found.values(), key=lambda each: -len(each[0]))
    # Several files beside as many of the words decide nothing.
    if not ordered or (len(ordered) > 1 and len(ordered[0][0]) == len(ordered[1][0])):
        return None
    rest = set[str]().union(*(named for named, _ in ordered[1:]))
    term = max(ordered[0][0] - rest or ordered[0][0], key=len)
    return _explain_unopened_file(evidence, empty, term, *ordered[0][1])


_VALUE, _TERMS = lazy_pattern(r"(?<![\w.])\d{3,12}(?![\w.])"), lazy_pattern(r"[a-z_][\w-]{3,60}|\d{3,12}")


def _explain_unopened_file(
    evidence: Evidence, searches: list[EntryView], name: str, other: EntryView, line: str, path: str
) -> Diagnosis:
    shown, last = code(evidence.name(path), 100), searches[-1]
    cause = (
        f"{len(searches)} searches find nothing, the last {code(command_of(last) or tool_phrase(last), 80)}."
        f" {capital(evidence.source(other))} says {code(strip_line_numbers(line).strip(), 130)}, and no"
        f" call has opened {shown}."
    )
    return diagnosis(
        KIND, cause, f"Read {shown}, look there for {code(name, 60)}, and make the change there if it holds it.",
        evidence.quote(other, line), evidence.quote(last, command_of(last) or _search_text(last)),
        check="The file must hold what you look for.", confidence="high",
    )  # fmt: skip


def _list_unopened_files(evidence: Evidence, line: str, asked: list[str], searches: list[EntryView]) -> Iterator[str]:
    """Yield the files that a line names, if no call has opened them and no search has looked into them."""
    for match in PATH.finditer(line):
        path = match.group(1).rstrip("/.")
        if (
            is_file_name(path)
            and "/" in path
            and plain_name(path)
            and not any(same_file(path, each) for each in asked)
            and not any(_has_searched(evidence, path, each) for each in searches)
        ):
            yield path


def _has_searched(evidence: Evidence, path: str, entry: EntryView) -> bool:
    """Whether a search has looked into a file: it lies in the searched folder, and no filter of names leaves it out."""
    filters = _FILTER.findall(command_of(entry))
    ending = path.rpartition(".")[2]
    return _is_in_searched_place(evidence, path, entry) and (not filters or any(each.endswith(ending) for each in filters))


_FILTER = lazy_pattern(r"(?:--include|--glob|--type|-g|-t|-i?name)[= ][\"']?([^\s\"']{1,60})")
_MOST_LINES, _MOST_LINE = 2_000, 400


def _diagnose_single_place(evidence: Evidence, empty: list[EntryView]) -> Diagnosis | None:
    """Say that every search asked one place of several that a recorded list has."""
    last = empty[-1]
    own = [each for each in empty if each.action == last.action and not command_of(each)]
    for field, value in fields_of(last).items():
        if field not in _PLACE_FIELDS or not isinstance(value, str) or len(own) < _LEAST_LOOKUPS:
            continue
        # If another place was tried too, the place is not the fault.
        if any(fields_of(each).get(field) != value for each in evidence.tail if each.action == last.action):
            continue
        listing = find_listing(evidence, last, field, value)
        others = listing.siblings(topic_words(evidence, last), value) if listing is not None else []
        # A value that the list does not have is no place of that list.
        if listing is None or not others or value not in {row[listing.column] for row in listing.rows}:
            continue
        descriptions = ", ".join(each.description for each in others[:_MOST_OTHERS])
        cause = (
            f"All {len(own)} {tool_phrase(last)} calls that find nothing ask {code(field, 30)} {listing.describe(value)}. "
            f"{capital(evidence.source(listing.entry))} has others: {descriptions}."
        )
        # A place that another record names too is meant more likely than the others of the list.
        likely = [each for each in others if _is_named_elsewhere(evidence, each.name, listing.entry)] or others
        step = f"Make the same call with {code(field, 30)} {' or '.join(each.description for each in likely[:2])}."
        return diagnosis(
            KIND, cause, step, evidence.quote(listing.entry), evidence.quote(last),
            check="The answer must hold what you look for; if no place has it, say so.", confidence="medium",
        )  # fmt: skip
    return None


def _is_named_elsewhere(evidence: Evidence, name: str, listing: EntryView) -> bool:
    """Whether a person, an agent or an output beside a list of names has a name."""
    outputs = (evidence.text(each) for each in evidence.latest if each.id != listing.id and each.status == "ok")
    return any(name in text for text in (*(message.text for message in evidence.messages[-MOST_LATEST:]), *outputs))


def _is_search(entry: EntryView) -> bool:
    command = command_of(entry)
    if command:
        return any(
            # Git has many sub-commands, of which only grep searches.
            words[0].rpartition("/")[2] in _HEADS and (words[0] != "git" or words[1:2] == ["grep"])
            for words in split_command(command)[:2]
        )
    return _SEARCH.search(entry.action) is not None


def _is_empty(evidence: Evidence, entry: EntryView) -> bool:
    text = evidence.text(entry)
    # A long answer has found something, and holds such words by chance.
    return entry.status in ("ok", "error") and len(text) < _MOST_EMPTY and _NOTHING.match(text.strip()) is not None


def _search_text(entry: EntryView) -> str:
    command = command_of(entry)
    if command:
        # Without a pattern, the places themselves are looked for.
        return " ".join(word for search in parse_searches(command) for word in search.patterns or search.places)
    fields = fields_of(entry)
    return " ".join(str(fields[name]) for name in _TERM_FIELDS if isinstance(fields.get(name), str))


def _search_terms(entry: EntryView) -> list[str]:
    words = _TERM.findall(_search_text(entry))
    return list(
        dict.fromkeys(
            sorted((word for word in words if word not in ("name", "type", "include", "iname")), key=len, reverse=True)
        )
    )[:_MOST_TERMS]


def _find_output(evidence: Evidence, term: str, entry: EntryView) -> tuple[EntryView, str] | None:
    """Return the newest output that has the term, and in which file."""
    word = re.compile(rf"(?<![\w-]){re.escape(term)}(?![\w-])")
    for other in evidence.latest_before(entry.index):
        # The failed search repeats its own term.
        if not evidence.has_succeeded(other) or call_key(other) == call_key(entry) or _asks_same_place(other, entry):
            continue
        for line in evidence.text(other).split("\n")[:2_000]:
            match = word.search(line)
            if match is None:
                continue
            path = next(
                (
                    m.group(1).rstrip("/.")
                    for m in PATH.finditer(line[: match.start() + 200])
                    # A bare word is a path only if a colon follows it, as in search results. Before a blank it is a field.
                    if "/" in m.group(1) or _OF_RESULT.match(line, m.end())
                ),
                None,
            )
            if (
                path is not None
                and plain_name(path)
                # A number is a time or a line.
                and any(map(str.isalpha, path))
                and not any(evidence.same_place(path, place) for place in _list_places(entry))
                and not _is_in_searched_place(evidence, path, entry)
            ):
                return other, path
    return None


def _asks_same_place(other: EntryView, entry: EntryView) -> bool:
    """Whether the same tool searched the same place for something else. Its answer repeats its query, and is no other place."""
    return not command_of(entry) and other.action == entry.action and _list_places(other) == _list_places(entry)


def _list_places(entry: EntryView) -> list[str]:
    command = command_of(entry)
    if command:
        return [place for search in parse_searches(command) for place in search.places]
    fields = fields_of(entry)
    return [str(fields[name]) for name in _PLACE_FIELDS if isinstance(fields.get(name), str)]


def _is_in_searched_place(evidence: Evidence, path: str, entry: EntryView) -> bool:
    """Whether the searched place holds the file. Then the search is at fault, not the place."""
    own = evidence.relative_path(path)
    places = [evidence.relative_path(place) if place not in ("/", evidence.folder) else place for place in _list_places(entry)]
    is_outside = bool(evidence.folder) and own.startswith(("/", "~", ".."))
    return any(
        place == "/" or (place in ("", ".", evidence.folder) and not is_outside) or own.startswith(f"{place.rstrip('/')}/")
        for place in places
    )


def _explain_other_place(
    evidence: Evidence, entry: EntryView, term: str, same: list[EntryView], other: EntryView, path: str
) -> Diagnosis:
    places = [evidence.name(place) for place in _list_places(entry) if plain_name(place) and term not in place]
    where = f" in {code(places[-1], 60)}" if places else ""
    call = code(command_of(entry), 80) if command_of(entry) else f"{tool_phrase(entry)}"
    source = evidence.source(other)
    name = evidence.name(path)
    others = f"{len(same) - 1} other searches" if len(same) > _LEAST_SEARCHES else "another search"
    cause = (
        f"{call} looks for {code(term, 60)}{where} and finds nothing, like {others} for it. It is not there: "
        f"{source} has it in {code(name, 100)}."
    )
    step = (
        f"Read {code(name, 100)}, where that output has {code(term, 60)}, and go on from there; do not "
        f"search{where or ' the same place'} again."
    )
    return diagnosis(
        KIND, cause, step, evidence.quote(other), evidence.quote(entry, command_of(entry) or _search_text(entry)),
        check="The file must hold what you look for.",
    )  # fmt: skip
