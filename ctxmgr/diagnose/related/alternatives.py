"""Find what the record offers instead of what is refused.

That is a value in the form of the error's example, the id beside another field, a free one of the same kind, a place with
room, another release, a tool that the error advises, or an installed version that the project requires. What is said of the
arguments themselves stands in `ctxmgr.diagnose.related.arguments`.
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Iterator, Sequence
from time import strptime
from typing import Any, NamedTuple, cast

from ctxmgr.detect.text import vocabulary
from ctxmgr.diagnose.errors.lines import is_advice
from ctxmgr.diagnose.evidence import Evidence, call_input, clock
from ctxmgr.diagnose.evidence.calls import command_of, fields_of, tool_phrase
from ctxmgr.diagnose.evidence.files import is_file_name
from ctxmgr.diagnose.evidence.items import find_objects
from ctxmgr.diagnose.evidence.messages import forbids, name_message, split_sentences
from ctxmgr.diagnose.evidence.texts import ORDERS, agent_name, capital, code, join_names, plain_name
from ctxmgr.diagnose.related.arguments import Alternative, compare_arguments, find_last_resorts, mask_digits
from ctxmgr.diagnose.related.newer_names import find_newer_name
from ctxmgr.log.ids import parse_time
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.view import EntryView

FREE_INSTEAD = "Leave "
"""The beginning of a step that names what is free in place of what somebody holds."""
_EXAMPLE = lazy_pattern(
    r"\b(?:as in|such as|like|e\.g\.|for example|for instance|example:?|form(?:at)?:?|look like)[: ]{1,3}[`'\"<(]?"
    r"(?=[\w/-]*\d)([A-Za-z][\w/-]{2,30})",
    re.IGNORECASE,
)
_NAME = lazy_pattern(r"(?<![\w-])(?=[\w-]*\d)[A-Za-z][A-Za-z]*[-_#]?\d[\w-]{0,20}(?![\w-])")
_FREE = lazy_pattern(
    r"\b(?:free|available|open|todo|to do|unassigned|unclaimed|ready|idle|unlocked|vacant|none)\b"
    r"(?!\W{1,4}(?:false|no|0|null)\b)",
    re.IGNORECASE,
)
_BLOCKS = lazy_pattern(r"overlap|conflict|collides|clash|already exists", re.IGNORECASE)
_HELD = lazy_pattern(
    r"leased|claimed|assigned|locked|held|taken|in use|busy|reserved|occupied|already (?:has|being)|booked|checked out",
    re.IGNORECASE,
)
_WORD = lazy_pattern(r"[a-z]{5,20}")
_NO_TOOL = frozenset(("error", "found", "current", "please", "first", "again", "there", "calls", "again", "before", "value"))
_VERSION = lazy_pattern(r"v?(\d{1,3}(?:\.\d{1,3}){1,2})")
_WANTS = lazy_pattern(
    r"\"(?P<program>node|npm|python|ruby|go|php|java)\"\s?:\s?\"[>=^~ ]{1,4}(?P<least>\d{1,3}(?:\.\d{1,3}){0,2})"
    r"|requires-(?P<other>python)\s?=\s?\"[>=~ ]{1,4}(?P<python>\d(?:\.\d{1,2}){1,2})|rust-version\s?=\s?\"(?P<rust>[\d.]{3,9})"
    r"|^(?P<go>go) (?P<gover>1\.\d{1,2})",
    re.MULTILINE,
)
_SHOWS_VERSION = lazy_pattern(r"^(?P<program>[a-z]{2,10})[\d.]*\s(?:--version|-v|-V|version)$")
_MOST_TEXT, _MOST_NAMED = 6_000, 4


def alternatives(evidence: Evidence, steps: Sequence[EntryView]) -> Iterator[Alternative]:
    """Yield what the record offers instead of what calls were refused, the surest first."""
    yield from compare_arguments(evidence, steps)
    for find in (
        find_newer_name, _find_other_field, _find_value_in_form, _find_own_holder, _find_leave_to_release, _find_free_sibling,
        _find_sibling_free_then, _find_place_with_room, _find_expired_certificate, _find_installed_version,
        _find_other_release, _find_advised_tool,
    ):  # fmt: skip
        if (found := find(evidence, steps)) is not None:
            yield found
    yield from find_last_resorts(evidence, steps)


def _find_value_in_form(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return a name given by the user in the form of the example in the error, and its place in the call."""
    for match in _EXAMPLE.finditer(evidence.text(steps[0])[:_MOST_TEXT]):
        example = match.group(1)
        for message in reversed(evidence.user_texts):
            name = next(
                # The example itself is no name given by the user.
                (each for each in _NAME.findall(message.text) if mask_digits(each) == mask_digits(example) and each != example),
                None,
            )
            if name is not None:
                end = evidence.text(steps[0])[match.end(1) :][:1]
                shown = f"{name}{end}" if end in ":/)]" and end else name
                cause = (
                    f"The error shows {code(example, 40)} as an example; the user named {code(name, 40)}{clock(message.at)}."
                )
                return Alternative(
                    cause, f"Put {code(shown, 40)} in the place that the error speaks of, in the form of its example."
                )
    return None


def _find_free_sibling(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return the free ones of the same kind, if a call is refused because somebody holds the one that it names."""
    said = evidence.text(steps[0])[:_MOST_TEXT]
    own = next((name for name in _NAME.findall(call_input(steps[0])) if name in said), None)
    # If nobody holds it, it is refused for another reason.
    if own is None or not _HELD.search(said):
        return None
    for other in evidence.latest_before(steps[0].index):
        text = evidence.text(other)[:_MOST_TEXT]
        # Only an answer with the call's own name lists its siblings.
        if not evidence.has_succeeded(other) or own not in text:
            continue
        parts = re.split(r"\}\s*,|\n", text)
        free = [
            name for part in parts if _FREE.search(part) and not _HELD.search(part)
            for name in _NAME.findall(part)[:1] if name != own and mask_digits(name) == mask_digits(own) and plain_name(name)
        ]  # fmt: skip
        if free:
            names = join_names(dict.fromkeys(free), _MOST_NAMED)
            source = evidence.source(other)
            one = "is" if len(set(free)) == 1 else "are"
            return Alternative(
                f"{capital(source)} shows {names} as free.",
                f"{FREE_INSTEAD}{code(own, 40)} to its holder: {names} {one} free; take that.",
            )
    return None


def _find_own_holder(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return what is in the way, if an earlier call of the same agent made it, so that nobody else must give it up."""
    said = evidence.text(steps[0])[:_MOST_TEXT]
    given = call_input(steps[0])
    names = [name for name in _NAME.findall(said) if name not in given and plain_name(name)]
    if not names or not (_HELD.search(said) or _BLOCKS.search(said)):
        return None
    for other in reversed(evidence.latest_before(steps[0].index)):
        text = evidence.text(other)[:_MOST_TEXT]
        name = next((each for each in names if each in text or each in call_input(other)), None)
        if name is None:
            continue
        # The oldest call that has the name has made it, unless its input had the name already.
        looks = command_of(other) or vocabulary.classify(other.action, "", "") == "query"
        if other.agent != steps[0].agent or other.status != "ok" or looks or name in call_input(other):
            return None
        return Alternative(
            f"{code(name, 40)}, which the answer names, is your own: {evidence.source(other)} made it.",
            f"Use {code(name, 40)}, or release it, before you make the call again.",
        )
    return None


_LEAVE = lazy_pattern(
    r"(?i)\b(?:may|can|feel free|free to|works? for|safe to|fine to|okay? to|anyone|anybody|any of (?:us|you)|everyone)\b"
)
_RELEASE = lazy_pattern(
    r"(?i)(?<![\w./-])([a-z]\w{0,20}[._-])?(?:end|release|unlock|close|check_?in|free|cancel|discard|abort)(?:[._-]?[a-z]\w{0,20})?"
)
"""A tool that gives free what somebody holds: `docs.end_session`, `unlock_file`."""


def _find_leave_to_release(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return the tool with which others may release what a call finds held, as somebody else said in a message about it."""
    names = [each for each in _NAME.findall(call_input(steps[0])) if plain_name(each)]
    for message in reversed(evidence.messages) if names and _HELD.search(evidence.text(steps[0])[:_MOST_TEXT]) else ():
        name = next((each for each in names if each in message.text), None)
        if name is None or message.by == "program" or message.who == steps[0].agent:
            continue
        for sentence in split_sentences(message.text):
            fair = _LEAVE.search(sentence) and not (ORDERS.search(sentence) or forbids(sentence) or sentence.endswith("?"))
            tools = [match[0] for match in _RELEASE.finditer(sentence) if {"_", "."} & {*match[0]} or "-" in match[0]]
            if fair and tools and plain_name(tools[0]):
                who = "the user" if message.by == "user" else agent_name(message.who)
                return Alternative(
                    f"{capital(name_message(message))} about {code(name, 40)} names {code(tools[0], 60)} to release it.",
                    f"See who holds {code(name, 40)}; if it is what {who} spoke of, release it with {code(tools[0], 60)}, and"
                    " make the call again.",
                    alone=True,
                )
    return None


_TIME = lazy_pattern(r"(?:(\d{4}-\d\d-\d\d)[T ])?([01]\d|2[0-4]):([0-5]\d)(?::\d\d)?(?:Z|[+-]\d\d:?\d\d)?$")
_DATE = lazy_pattern(r"\d{4}-\d\d-\d\d$")
_BEGINS, _ENDS = ("from", "start", "begin", "starts", "starts_at", "since"), ("to", "end", "until", "ends", "ends_at", "till")
_ROOM = lazy_pattern(r"seats?|capacity|places|size|max_?(?:people|persons|guests)?|beds|people|persons", re.IGNORECASE)
_COUNTS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_PEOPLE = lazy_pattern(
    rf"\b(\d{{1,3}}|{'|'.join(_COUNTS)}) (?:\w+ )?(?:people|persons?|guests|participants|attendees|seats|adults|places)\b",
    re.IGNORECASE,
)


class _Span(NamedTuple):
    """A time of day in minutes, and its date or ""."""

    date: str
    start: int
    end: int

    def overlaps(self, other: _Span) -> bool:
        """Whether both may be at one time. Without a date, a span is taken for one of that day."""
        one_day = not self.date or not other.date or self.date == other.date
        return one_day and self.start < other.end and other.start < self.end


def _find_sibling_free_then(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return the ones like a taken thing whose times in a list leave room for the wanted time, and that suit as it does."""
    given = fields_of(steps[0])
    wanted = _read_span(given)
    if wanted is None or not _HELD.search(evidence.text(steps[0])[:_MOST_TEXT]):
        return None
    asked = _list_texts(given)
    need = max((_count(match) for message in evidence.user_texts for match in _PEOPLE.findall(message.text)), default=0)
    for other in evidence.latest_before(steps[0].index):
        if not evidence.has_succeeded(other):
            continue
        rows = [(fields, spans) for fields in find_objects(other.output) if (spans := _busy_spans(fields)) is not None]
        mine = next((row for row in rows if not asked.isdisjoint(_list_texts(row[0]))), None)
        # If the list shows it as free, the list is old or about something else.
        if mine is None or not any(map(wanted.overlaps, mine[1])):
            continue
        own = mine[0]
        key = next(name for name, value in own.items() if isinstance(value, str) and value in asked)
        free = [
            fields[key] for fields, spans in rows
            if _suits(fields, own, need) and isinstance(fields.get(key), str) and plain_name(fields[key])
            and not any(map(wanted.overlaps, spans))
        ]  # fmt: skip
        if free:
            names, source = join_names(free, _MOST_NAMED), evidence.source(other)
            one = "is" if len(free) == 1 else "are"
            return Alternative(
                f"{capital(source)} shows {names} as free then.",
                f"{FREE_INSTEAD}{code(own[key], 40)} to its holder: {names} {one} free at that time by {source}; take that.",
            )
    return None


def _read_span(fields: dict[str, Any]) -> _Span | None:
    """Return the time from a begin to an end in the members of an object."""
    times: list[int] = []
    date = next((value for value in fields.values() if isinstance(value, str) and _DATE.match(value)), "")
    for names in (_BEGINS, _ENDS):
        value = next((fields[name] for name in names if isinstance(fields.get(name), str)), "")
        match = _TIME.match(value[:40])
        if match is None:
            return None
        date = match.group(1) or date
        times.append(60 * int(match.group(2)) + int(match.group(3)))
    return _Span(date, *times) if times[0] < times[1] else None


def _busy_spans(fields: dict[str, Any]) -> list[_Span] | None:
    """Return the times at which a thing is taken; None if it has no list of such times."""
    lists = [cast("list[Any]", value) for value in fields.values() if isinstance(value, list)]
    if len(lists) != 1 or not all(isinstance(each, dict) for each in lists[0]):
        return None
    spans = [_read_span(cast("dict[str, Any]", each)) for each in lists[0]]
    return None if None in spans else [each for each in spans if each is not None]


def _list_texts(fields: dict[str, Any]) -> set[str]:
    return {value for value in fields.values() if isinstance(value, str)}


def _suits(fields: dict[str, Any], own: dict[str, Any], need: int) -> bool:
    """Whether a thing has the features of another one, and room for so many people."""
    same = all(fields.get(name) == value for name, value in own.items() if value is True)
    return same and all(value >= need for name, value in fields.items() if _ROOM.fullmatch(name) and isinstance(value, int))


def _count(word: str) -> int:
    return int(word) if word.isdigit() else _COUNTS.index(word.casefold()) + 1


_NO_ROOM = lazy_pattern(r"(?i)no space left|ENOSPC|disk quota exceeded|disk (?:is )?full|not enough (?:free )?(?:disk )?space")
# A row of `df`: size, used, free, use in percent, and the mount point
_MOUNTED = lazy_pattern(
    r"^\S+ +(?:\S+ +)?[\d.]+[KMGTPi]{0,2} +[\d.]+[KMGTPi]{0,2} +(?P<free>[\d.]+[KMGTPi]{0,2}) +(?P<used>\d{1,3})%"
    r" +(?P<at>/\S*)$",
    re.MULTILINE,
)
_PLACE = lazy_pattern(r"(?<![\w/.~-])/(?:[\w.@+-]{1,60}/?){1,10}")
_FULL = 95


def _find_place_with_room(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return the place that the user named, if a look-up shows it on a file system with room, while another one is full."""
    # ENOSPC also reports a lack of inotify watchers.
    if not _NO_ROOM.search(said := evidence.text(steps[0])[:_MOST_TEXT]) or "watch" in said:
        return None
    asked = "\n".join(call_input(step) for step in steps)
    named = [
        place.rstrip("/.") for message in evidence.user_texts for place in _PLACE.findall(message.text)
        if place.rstrip("/.") not in asked
    ]  # fmt: skip
    for other in evidence.latest:
        rows = list(_MOUNTED.finditer(evidence.text(other)[:_MOST_TEXT])) if other.status == "ok" else []
        # The innermost mount holds the place.
        rows.sort(key=lambda row: -len(row["at"]))
        for place in named:
            row = next((row for row in rows if f"{place}/".startswith(f"{row['at'].rstrip('/')}/")), None)
            if row is not None and int(row["used"]) < _FULL and plain_name(place):
                return Alternative(
                    f"{capital(evidence.source(other))} shows {code(row['free'], 20)} free at {code(row['at'], 40)}.",
                    f"Write to {code(place, 80)}, which the user named and which has {row['free']} free.",
                )
    return None


_SECURE = lazy_pattern(r"(?i)https|\btls\b|\bssl\b|x509|certificate|handshake|transport|verif(?:y|ication)")
_NOT_AFTER = lazy_pattern(r"(?i)\bnot ?after\s?[:=]\s?([A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d \d{4}) GMT")
"""The end of a certificate, as OpenSSL prints it."""
_TARGET = lazy_pattern(r"^([\w-]{0,30}cert[\w-]{0,30})\s?:(?!=)", re.MULTILINE)
_MOST_ABOVE = 6
"""Lines above the end of a certificate among which the file's name is looked for."""


def _find_expired_certificate(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return the certificate that had expired when a secure connection failed, and the target that may renew it."""
    said, at = f"{call_input(steps[0])}\n{evidence.text(steps[0])[:_MOST_TEXT]}", parse_time(steps[0].ts or "")
    for other in evidence.entries_before(steps[0].index) if at and _SECURE.search(said) else ():
        lines = evidence.text(other)[:_MOST_TEXT].split("\n") if evidence.has_succeeded(other) else []
        for place, line in enumerate(lines):
            match = _NOT_AFTER.search(line)
            end = None if match is None else _read_openssl_time(match[1])
            if match is not None and end is not None and at is not None and end < at:
                above = (each.strip() for each in reversed(lines[max(place - _MOST_ABOVE, 0) : place]))
                name = next((code(each, 80) for each in above if is_file_name(each) and plain_name(each)), "a certificate")
                targets = [each for entry in evidence.latest for each in _TARGET.findall(evidence.text(entry)[:_MOST_TEXT])]
                made = f"; the target {code(targets[0], 40)} may make it anew" if targets else ""
                return Alternative(
                    f"{capital(evidence.source(other))} shows that {name} was valid until {code(f'{match[1]} GMT', 40)}: it had"
                    " expired.",
                    f"Renew {name}{made}; then make the call again.",
                    alone=True,
                )
    return None


def _read_openssl_time(text: str) -> int | None:
    """Return seconds since 1970 for a time such as `Nov 26 17:12:04 2026`; None if there is no such time."""
    try:
        return timegm(strptime(text, "%b %d %H:%M:%S %Y"))
    except ValueError:
        return None


def _find_installed_version(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return the version that the project requires, the one that runs, and where a suitable one is installed."""
    wants = shows = None
    for other in evidence.latest:
        if other.status != "ok":
            continue
        text = evidence.text(other)[:_MOST_TEXT]
        wants = wants or _WANTS.search(text)
        asked = _SHOWS_VERSION.match(command_of(other))
        if asked is not None and (number := _VERSION.search(text)) is not None:
            shows = shows or (asked.group("program"), number.group(1), other)
    # The record must show both the required and the running version.
    if wants is None or shows is None:
        return None
    groups = wants.groupdict()
    program = groups["program"] or groups["other"] or groups["go"] or "rustc"
    least = groups["least"] or groups["python"] or groups["rust"] or groups["gover"]
    # The failing calls must be about that program.
    if not shows[0].startswith(program[:4]) or not any(
        shows[0][:4] in f"{command_of(s)} {evidence.text(s)[:_MOST_TEXT]}" for s in steps
    ):
        return None
    # The version is sufficient, so it is not the cause.
    if _version_numbers(shows[1]) >= _version_numbers(least):
        return None
    cause = f"It runs with {program} {code(shows[1], 20)}, and the project asks for {code(least, 20)} or newer."
    for other in evidence.latest:
        lines = evidence.text(other)[:_MOST_TEXT].split("\n")
        found = [
            m.group(1)
            for line in lines
            if (m := _VERSION.fullmatch(line.strip(" *"))) and _version_numbers(m.group(1)) >= _version_numbers(least)
        ]
        # The installed version that is too old is not offered.
        if other.status == "ok" and found and other.id != shows[2].id and program[:4] in call_input(other):
            source = evidence.source(other)
            return Alternative(
                f"{cause} {capital(source)} shows {code(found[-1], 20)} as installed.",
                f"Make the call with {program} {code(found[-1], 20)}, which is installed, by its full path or after "
                "switching to it in the same call.",
            )
    return Alternative(
        cause, f"Make the call with a {program} of {code(least, 20)} or newer: see which are installed, or ask the user."
    )


def _version_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part)


def _find_advised_tool(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return the tool that a line of advice in the error names, if it has worked in this session."""
    lines = [line for line in evidence.text(steps[0])[:_MOST_TEXT].split("\n") if is_advice(line) and not ORDERS.search(line)]
    words = {word for line in lines for word in _WORD.findall(line.casefold())} - _NO_TOOL
    for other in evidence.latest:
        parts = set(re.findall(r"[a-z]{5,20}", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", other.action).casefold()))
        if other.status == "ok" and other.action != steps[0].action and not command_of(other) and parts & words:
            name = code(tool_phrase(other), 60)
            return Alternative(
                "", f"Call {name} anew first, as it worked{clock(other.ts)}, and take the values of this call from its answer."
            )
    return None


_OBJECT = lazy_pattern(r"\{[^{}]{4,1500}\}")
_FIELD = lazy_pattern(r"\"([\w-]{1,40})\"\s?:\s?(?:\"([^\"]{1,60})\"|(-?\d{1,18}))")
_MISSES = lazy_pattern(
    r"not[ _]found|no such|no \w+ (?:with|for|of)|unknown|invalid|does not exist|doesn't exist", re.IGNORECASE
)


def _find_other_field(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return the id of a thing that a call names by another field, if the record shows both side by side."""
    entry, said = steps[0], evidence.text(steps[0])[:_MOST_TEXT]
    # A command has no fields.
    if command_of(entry) or not _MISSES.search(said):
        return None
    values = {str(value).lstrip("#") for value in fields_of(entry).values() if isinstance(value, str | int)} & set(
        re.findall(r"[\w.@-]+", said)
    )
    for other in evidence.latest_before(entry.index):
        if not evidence.has_succeeded(other):
            continue
        for whole in _OBJECT.findall(evidence.text(other)[:_MOST_TEXT]):
            fields = {name: text or number for name, text, number in _FIELD.findall(whole)}
            name = next(
                (name for name, value in fields.items() if value in values and not name.casefold().endswith("id")), None
            )
            key = next(
                (each for each in fields if each.casefold() == "id" or each.casefold().endswith(("_id", "uuid", "key"))), None
            )
            # A value without a name or an id can't be exchanged.
            if name is None or key is None or not plain_name(fields[key]) or fields[key] in call_input(entry):
                continue
            source = evidence.source(other)
            return Alternative(
                f"{code(fields[name], 40)} is its {code(name, 30)}, and no {code(key, 30)}: {source} shows "
                f"{code(fields[key], 60)} beside it.",
                f"Make the same call with the {code(key, 30)} {code(fields[key], 60)} in place of {code(fields[name], 40)}.",
            )
    return None


_CONFLICTS = lazy_pattern(
    r"conflict|ERESOLVE|ResolutionImpossible|incompatible|requires? .{0,60}but|unmet|peer dep|version solving", re.IGNORECASE
)
_PINNED = lazy_pattern(r"(?<![\w.-])([A-Za-z][\w.-]{1,50}?)(?:==|@| )v?(\d{1,3}(?:\.\d{1,3}){1,2})(?![\w.])")


def _find_other_release(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return another release of a package with conflicting versions, if a look-up shows that it exists."""
    said = evidence.text(steps[0])[-_MOST_TEXT:]
    if not _CONFLICTS.search(said):
        return None
    for name, version in dict.fromkeys(_PINNED.findall(said)):
        there = re.compile(rf"(?<![\w.-]){re.escape(name)}(?:-|==|@)v?(\d{{1,3}}(?:\.\d{{1,3}}){{1,2}})(?!\d)", re.IGNORECASE)
        for other in evidence.latest_before(steps[0].index):
            if not evidence.has_succeeded(other):
                continue
            found = [
                each
                for each in there.findall(evidence.text(other)[:_MOST_TEXT])
                # A release that the conflict names is part of it.
                if _version_numbers(each) > _version_numbers(version) and each not in said
            ]
            if found:
                source = evidence.source(other)
                return Alternative(
                    f"{capital(source)} shows {code(name, 50)} {code(found[-1], 20)} beside {code(version, 20)}.",
                    f"Try {code(f'{name} {found[-1]}', 70)}, which is there, in place of {code(version, 20)}: see "
                    "first what it asks for.",
                )
    return None
