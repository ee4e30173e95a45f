"""A server refuses because of too many requests. The record says how long to wait."""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxmgr.diagnose.errors.lines import addresses_reader, error_members
from ctxmgr.diagnose.evidence import Evidence, call_input, clock, program_name
from ctxmgr.diagnose.evidence.calls import command_of, fields_of
from ctxmgr.diagnose.evidence.items import answers, list_items
from ctxmgr.diagnose.evidence.texts import (
    ORDERS,
    blanks_for_underscores,
    capital,
    code,
    join_names,
    plain_name,
    quote_match,
    strip_line_numbers,
)
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.log.ids import parse_time
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis, Quote
from ctxmgr.types.view import EntryView

KIND: str = "rateLimited"

_LIMITED = lazy_pattern(
    r"\b429 too many requests|too (?:many|frequent) (?:requests|attempts|calls)|\bHTTP[ :]{1,2}429\b|slow down\b"
    r"|(?-i:\bSlowDown\b)|resource[ _]exhausted|request limit (?:reached|exceeded)|too frequently|rate[ _-]?limit|ratelimit"
    r"|(?<!disk )(?<!storage )(?<!inode )(?<!block )(?<!mailbox )quota exceeded|insufficient_quota|throttl(?:ed|ing)"
    r"|\b429\b[^\n]{0,40}(?:error|too|limit|status)|(?:status|http/[\d.]+|error|code)\W{0,3}429\b"
    r"|\b(?:GET|POST|PUT|PATCH|DELETE) \S{1,200} 429\b|^[\s<]{0,4}retry-after: ?\d|too many [\w ]{3,30}(?:\(\d+\) )?"
    r"(?:already )?(?:issued|sent|created|made)\b|(?:daily|hourly|monthly) (?:limit|quota)|quota (?:is )?exhausted"
    r"|(?:rate|request|usage|api|call|message|quer(?:y|ies)|search|download|upload|token|minute|hour|day)s?[ _-]"
    r"(?:\w+ )?limit (?:is |was |has been )?reached",
    re.IGNORECASE | re.MULTILINE,
)
_USED_UP = lazy_pattern(
    r"insufficient[_ ]quota|exceeded your current quota|credit balance is too low|out of credits|billing hard limit"
    r"|quota (?:is )?used up|usage limit (?:is |was |has been )?reached",
    re.IGNORECASE,
)
# `retry-after: 30`, `try again in 2 minutes`. The end excludes `try again after 12:30`, which names a time of day.
_SECONDS = lazy_pattern(
    r"(?:retry[-_ ]?after(?:[-_ ]?(?:seconds|secs?|s|ms))?|try again (?:in|after)|wait(?: for)?|retry in"
    r"|reset(?:s)?(?:[-_ ]in)?"
    r"|available in)[\"'\s:=]{1,5}(?:about |at least )?(\d{1,6}(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?"
    r"|minutes?|h|hours?)?(?:\s*(\d{1,2})\s*s)?\b(?![-:]\d)",
    re.IGNORECASE,
)
_UNTIL = lazy_pattern(
    r"(?:resets?(?: at)?|until|after)[\"'\s:=]{1,4}(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?Z?|\d\d:\d\d(?::\d\d)?)",
    re.IGNORECASE,
)
_ENDS = lazy_pattern(r"reset|retry|until|expire", re.IGNORECASE)
_MOMENT = lazy_pattern(r"\d{4}-\d\d-\d\d[T ]?\d\d:\d\d|\d\d:\d\d")
_UNITS = {"s": 1, "m": 60, "h": 3600}


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return how long to wait according to the record."""
    for entry in evidence.refusals():
        said = evidence.text(entry)
        match = _LIMITED.search(blanks_for_underscores(said))
        if match is None:
            continue
        line = evidence.line(entry, _LIMITED)
        return _explain_limit(evidence, entry, said, line)
    return None


def _explain_limit(evidence: Evidence, entry: EntryView, said: str, line: str) -> Diagnosis:
    # A used-up quota comes back with the day or with money, so waiting for seconds does not help.
    if _USED_UP.search(said):
        cause = f"The server refuses because the quota is used up: {quote_match(_USED_UP, said)}. A short wait does not help."
        step = (
            "Tell the user that the quota of this account is used up, and ask which other one you may use. Make no more calls."
        )
        return diagnosis(KIND, cause, step, evidence.quote(entry, said[:600]))
    limited = [each for each in evidence.loop if _LIMITED.search(blanks_for_underscores(evidence.text(each)))]
    spoken = [
        match
        for match in _LIMITED.finditer(blanks_for_underscores(said[:8_000]))
        if " " in match.group(0) or "-" in match.group(0)
    ]
    words = {
        re.sub(r"[\W_]", "", match.group(0).casefold()): said[match.start() : match.end()]
        for match in spoken
        if not match.group(0)[-1].isdigit()
    }
    shown = join_names(sorted(words.values(), key=len, reverse=True)[:2]) or quote_match(_LIMITED, line)
    cause = f"The server refuses because you ask too often: {shown}."
    if re.search(r"\b429\b", said) and "429" not in cause:
        cause += " It answers 429."
    wait = _find_longest_wait(said)
    until = _find_end(entry, said)
    quotes = [evidence.quote(entry, said[:600])]
    spacing = _compute_mean_interval(limited)
    other = _find_other_way(evidence, entry, said)
    if other is not None:
        cause += f" It asks for a wait of {_duration_text(wait)}." if wait is not None else ""
        return _diagnose_other_way(evidence, other, cause, quotes)
    if wait is not None:
        cause += f" It asks for a wait of {_duration_text(wait)}"
        cause += (
            f"; your last {len(limited)} calls came about {_duration_text(spacing)} apart."
            if spacing is not None and spacing < wait
            else "."
        )
        step = f"Wait {_duration_text(wait)}{_describe_start(entry)} before you make this call again, and make it once."
    elif until is not None:
        cause += f" The limit ends (it is reset) at {until}."
        step = f"Do not make this call before {until}; then make it once."
    elif (pause := _find_pause(evidence, entry)) > _MINUTE and not _SHORT.search(said):
        return _diagnose_quota(evidence, entry, shown, pause, quotes)
    else:
        if spacing is not None and len(limited) > 1:
            cause += f" Your last {len(limited)} calls came about {_duration_text(spacing)} apart."
        known = _find_limit(evidence, entry)
        step = known.step if known else _STEP_UNKNOWN
        cause += known.cause if known else ""
        quotes += [evidence.quote(known.entry)] if known else []
    return diagnosis(
        KIND, cause, f"{step} Until then go on with what needs no answer of that server.", *quotes,
        check="If it is refused again after the wait, tell the user that the quota is used up.",
    )  # fmt: skip


_MINUTE = 62
"""Seconds. After a longer pause, no rate per second or minute can be the reason."""
_SHORT = lazy_pattern(
    r"(?:per|a|every|/)[ _-]?(?:s|sec|second|m|min|minute)\b|\b(?:qps|rps|rpm|tpm|concurren\w*|parallel|in flight)\b",
    re.IGNORECASE,
)


def _find_pause(evidence: Evidence, entry: EntryView) -> float:
    """Return the seconds between a refused call and the call of its kind before it; 0 if that is not known."""
    before = [each for each in evidence.entries_before(entry.index) if each.action == entry.action and _is_like(each, entry)]
    times = [parse_time(each.ts) if each.ts else None for each in (entry, *before[:1])]
    return max(0.0, times[0] - times[1]) if len(times) > 1 and times[0] is not None and times[1] is not None else 0.0


def _is_like(one: EntryView, other: EntryView) -> bool:
    """Whether two calls may ask the same server: commands by their program."""
    return not command_of(one) or program_name(one) == program_name(other)


def _diagnose_quota(evidence: Evidence, entry: EntryView, shown: str, pause: float, quotes: list[Quote]) -> Diagnosis:
    """Say that a quota of a longer time is used up, because the last call came long after the one before it."""
    cause = (
        f"The server refuses ({shown}), although the last call came {_duration_text(pause)} after the one before it. No rate"
        " per second or minute forbids that: most likely what is allowed for a longer time, an hour or a day, is used up."
    )
    known, quota = _find_limit(evidence, entry), _find_quota(evidence, entry)
    step = (
        "Longer pauses of minutes don't help. Look up what is left of the quota and when it is refilled (a call or page of the"
        " service that shows its limits, the headers of its answer), or ask the user; make this call again only then."
    )
    if quota is not None:
        cause += f" {quota.description}."
        step = (
            f"Make no such call before {code(quota.refill, 40)}, when it is refilled"
            if quota.refill
            else "Make no such call now"
        )
        step += f"; make {quota.look} again to see what is left."
        step += f" {quota.other}" if quota.other else ""
        quotes.append(evidence.quote(quota.entry))
    elif known is not None:
        cause, step = f"{cause}{known.cause}", known.step if known.step != _STEP_UNKNOWN else step
        quotes.append(evidence.quote(known.entry))
    return diagnosis(
        KIND, cause, step, *quotes, check="If it is refused again after the refill, tell the user that the quota is used up.",
        confidence="medium",
    )  # fmt: skip


_CEILING = lazy_pattern(r"ceiling|limit|max\w*|quota|allow\w*|total|cap|capacity|budget", re.IGNORECASE)
_USED = lazy_pattern(r"(?:\w+_)?(?:used|spent|consumed|current|usage|count)", re.IGNORECASE)


class _Quota(NamedTuple):
    """A row of a list of limits: how many there are, how many were used when it was shown, and when they come back."""

    name: str
    ceiling: int
    used: int
    refill: str


class _UsedQuota(NamedTuple):
    """The quota of a refused call, in words, with the call that lists it and what else its list has."""

    description: str
    refill: str
    look: str
    other: str
    entry: EntryView


def _find_quota(evidence: Evidence, entry: EntryView) -> _UsedQuota | None:
    """Return the only quota of a longer time that a list of limits has for a refused call."""
    words = set(re.findall(r"[a-z][a-z0-9_-]{2,40}", f"{entry.action} {call_input(entry)[:600]}".casefold()))
    rows: dict[int, list[_Quota]] = {}
    entries: dict[int, EntryView] = {}
    for other, item in answers(evidence):
        if other.index < entry.index and not evidence.has_failed(other) and (row := _read_quota(item.fields)) is not None:
            rows.setdefault(other.index, []).append(row)
            entries[other.index] = other
    for index, listed in rows.items():
        # What was left after a refusal is not used up.
        refused = any(evidence.has_failed(each) and each.action == entry.action for each in evidence.entries_before(index))
        own = [row for row in listed if re.split(r"[^\w-]", row.name.casefold())[0] in words]
        if len(own) != 1 or (refused and own[0].used < own[0].ceiling):
            continue
        look, row = entries[index], own[0]
        first = re.split(r"[^\w-]", row.name)[0]
        spare = next((each for each in listed if each is not row and first in each.name and each.used < each.ceiling), None)
        units = _count_units(evidence, entry, look, row.ceiling - row.used)
        rest = f", and your calls since then have used the other {units}" if units else ""
        name = f"{code(row.name, 50)}: {code(str(row.ceiling), 20)}, of which {code(str(row.used), 20)} were used then{rest}"
        other = (
            f"Or see whether {code(spare.name, 50)} does the work: the same answer lists it with"
            f" {spare.ceiling - spare.used} left."
            if spare is not None
            else ""
        )
        return _UsedQuota(f"{capital(evidence.source(look))} lists {name}", row.refill, evidence.source(look), other, look)
    return None


def _read_quota(fields: dict[str, str]) -> _Quota | None:
    """Return a row of limits as a quota, if it is one of a longer time than a minute."""
    name = next((value for value in fields.values() if plain_name(value) and not _NUMBER.fullmatch(value)), "")
    numbers = {key: int(value) for key, value in fields.items() if _NUMBER.fullmatch(value)}
    ceiling = next((value for key, value in numbers.items() if _CEILING.fullmatch(key)), None)
    used = next((value for key, value in numbers.items() if _USED.fullmatch(key)), None)
    refill = next((value for key, value in fields.items() if _RESETS.search(key)), "")
    if not name or ceiling is None or used is None or _SHORT.search(f"{name} {refill}"):
        return None
    return _Quota(name, ceiling, used, refill if _TIME.fullmatch(refill) else "")


def _count_units(evidence: Evidence, entry: EntryView, look: EntryView, left: int) -> int:
    """Return how many units the successful calls since a look have used, if one way to count them gives all that was left."""
    since = [each for each in evidence.recent if look.index < each.index < entry.index and each.action == entry.action]
    done = [each for each in since if not command_of(each) and evidence.has_succeeded(each)]
    answered = [next(iter(list_items(evidence.text(each))), None) for each in done]
    units = sum(int(value) for item in answered if item for value in item.fields.values() if _NUMBER.fullmatch(value))
    offset = fields_of(entry).get("offset")
    return left if left > 0 and done and left in (len(done), units, offset) else 0


_STEP_UNKNOWN = "Wait at least 60 seconds before you make this call again, and double the wait each time it is refused."
_LEAST_FIELDS = 2
"""Members of an answer about a limit."""
_DAY = 86_400
_SHORTEST_WAIT, _LONGEST_WAIT = 0.5, 7 * _DAY
"""Seconds. Shorter ones are measured durations, and longer ones are no wait for an agent."""
_LIMIT = lazy_pattern(
    r"window|period|interval|quota|burst|reset|remaining|renew|used|budget|allowance|(?:rate|max|limit|per)[ _-]?"
    r"(?:limit|per|calls|requests|minute|hour|day|week|month|second)|^limit",
    re.IGNORECASE,
)
_RESETS = lazy_pattern(r"reset|renew|refill|available|until|next", re.IGNORECASE)
_WINDOW = lazy_pattern(r"(?:window|period|interval|cool_?down)\w*", re.IGNORECASE)
_TIME = lazy_pattern(
    r"(?:\d{4}-\d\d-\d\d[T ]?)?\d{1,2}:\d\d(?::\d\d)?(?: ?(?:Z|UTC|[A-Z]{3,4}|[A-Z]\w{2,12}/[A-Z]\w{2,20}))?|midnight"
)
_NUMBER = lazy_pattern(r"\d{1,9}")
_EVERY = lazy_pattern(r"(?:per|each|a)[ _-]?(second|minute|hour|day|week|month)|(daily|hourly|weekly|monthly)", re.IGNORECASE)


class _Limit(NamedTuple):
    """A limit that another answer names, and what to do about it."""

    cause: str
    step: str
    entry: EntryView


def _find_limit(evidence: Evidence, entry: EntryView) -> _Limit | None:
    """Return the limit that an earlier answer names by its members; the newest one that says when it ends."""
    found: list[_Limit] = []
    for other, item in answers(evidence):
        fields = {
            name: value for name, value in item.fields.items()
            if _LIMIT.search(name) and plain_name(name) and (_NUMBER.fullmatch(value) or _TIME.fullmatch(value))
        }  # fmt: skip
        # A single value may be any number in an answer.
        if other.index == entry.index or evidence.has_failed(other) or len(fields) < _LEAST_FIELDS:
            continue
        shown_fields = ", ".join(f"{code(name, 40)} {code(value, 40)}" for name, value in list(fields.items())[:5])
        cause = f" {capital(evidence.source(other))} names the limit: {shown_fields}."
        found.append(_Limit(cause, _describe_wait(fields), other))
    return next((each for each in found if each.step != _STEP_UNKNOWN), None)


class _Way(NamedTuple):
    """Another endpoint of the same service, what is written beside it, and the answer that names it."""

    path: str
    beside: list[str]
    entry: EntryView


_PATH = lazy_pattern(r"(?<![\w./:-])/[A-Za-z][\w.:{}-]{0,40}(?:/[\w.:{}-]{1,40}){0,8}")
_HOST = lazy_pattern(
    r"\bhttps?://[^\s/'\"]{1,100}|(?<![\w./-])(?:localhost|[\w-]{1,60}(?:\.[\w-]{1,60}){1,5})(?::\d{2,5})?(?=/)"
)
_SCOPE = lazy_pattern(r"(?:scope|resource|endpoint|route)[\"']?\s{0,2}[:=]\s{0,2}[\"']?(/[\w./:-]{1,80})", re.IGNORECASE)
_MANY = lazy_pattern(
    r"(?<![a-z])(?:bulk|batch|multi|many|mget|export|dump)|\b(?:at once|at a time)\b"
    r"|\b(?:per|in one|in a single) (?:call|request)\b|\d [\w ]{2,30} each\b|\bup to \d",
    re.IGNORECASE,
)
_MOST_TEXT, _MOST_BESIDE = 20_000, 2


def _find_other_way(evidence: Evidence, entry: EntryView, said: str) -> _Way | None:
    """Return the endpoint for many things at once that an earlier answer names together with the refused one."""
    refused = {*_list_paths(call_input(entry)), *_SCOPE.findall(said)}
    if not refused:
        return None
    used = "\n".join(_HOST.sub(" ", call_input(each)) for each in evidence.recent)
    for other in evidence.latest_before(entry.index):
        text = strip_line_numbers(evidence.text(other)[:_MOST_TEXT])
        paths = list(dict.fromkeys(_list_paths(text)))
        if not evidence.has_succeeded(other) or not any(_is_form(path, each) for path in paths for each in refused):
            continue
        for path in paths:
            beside = _list_texts_beside(text, path)
            near = any(_is_form(parent, each) for each in refused for parent in _list_bases(path))
            # One that was called already is known to the agent.
            if (
                near
                and path not in used
                and not any(_is_form(path, each) for each in refused)
                and plain_name(path)
                and _MANY.search(" ".join([path, *beside]))
            ):
                return _Way(path, beside, other)
    return None


def _list_paths(text: str) -> list[str]:
    """Return the paths in a text, those of addresses without their host."""
    return [each.rstrip(":.") for each in _PATH.findall(_HOST.sub(" ", text))]


def _list_bases(path: str) -> list[str]:
    """Return what an endpoint for many belongs to: `/users` and `/users/{}` for `/users:batchGet` and `/users/bulk`."""
    base = path.rpartition(":" if ":" in path.rpartition("/")[2] else "/")[0]
    return [base, f"{base}/{{}}"]


def _is_form(template: str, path: str) -> bool:
    """Whether a path is of the form of another, in which `{id}` and `:id` stand for anything."""
    parts = [r"[^/]+" if re.fullmatch(r"\{.*\}|:\w+", part) else re.escape(part) for part in template.split("/")]
    return re.fullmatch("/".join(parts), path) is not None


def _list_texts_beside(text: str, path: str) -> list[str]:
    """Return what stands behind a path on its lines, or as its value."""
    # An OpenAPI file has the method and the name of the text in between.
    between = r"(?::\s{1,12}(?:get|post|put|patch):\s{1,14}(?:summary|description))?[\s:=|)–—-]{1,12}"
    path = rf"(?<![\w/.-]){re.escape(path)}(?![\w/-])[\"'`]?"
    pattern = re.compile(rf"{path}{between}[\"'`]?((?:\\.|[^\"\\\n|]){{3,100}})")
    found = (match.group(1).replace('\\"', '"').strip() for match in pattern.finditer(text))
    return list(dict.fromkeys(each for each in found if not ORDERS.search(each) and not addresses_reader(each)))[:_MOST_BESIDE]


def _diagnose_other_way(evidence: Evidence, way: _Way, cause: str, quotes: list[Quote]) -> Diagnosis:
    """Say which other endpoint takes many at once, so that nobody needs to wait."""
    shown = ", ".join(code(each, 80) for each in way.beside)
    cause += f" {capital(evidence.source(way.entry))} names {code(way.path, 60)} beside it{f': {shown}' if shown else ''}."
    step = (
        f"Do not wait for this one: get what is left with one call to {code(way.path, 60)}"
        f"{f' ({code(way.beside[-1], 80)})' if way.beside else ''}, which is for many at once, and keep to the limit that is"
        " named for it."
    )
    return diagnosis(
        KIND, cause, step, *quotes, evidence.quote(way.entry),
        check="If that is refused too, tell the user how long the limit lasts.",
    )  # fmt: skip


def _describe_wait(fields: dict[str, str]) -> str:
    """Return how long to wait according to the members of a limit: until it is reset, else a whole window."""
    reset = next((value for name, value in fields.items() if _RESETS.search(name) and _TIME.fullmatch(value)), None)
    window = next((value for name, value in fields.items() if _WINDOW.search(name) and _NUMBER.fullmatch(value)), None)
    every = next((match for name in fields if (match := _EVERY.search(name.replace("_", " ")))), None)
    if reset is not None:
        return f"Smaller or other calls count too: make none before the limit is reset at {code(reset, 50)}."
    if window is not None:
        return (
            f"Make no such call for a whole window, {_duration_text(float(window))}: a refused call may count too, and may"
            " start the window anew. Then make it once, with no more than the limit allows."
        )
    if every is not None:
        return (
            f"The limit is one {every.group(0).replace('_', ' ')}: make no such call until that is over, or ask"
            " the user for more."
        )
    return _STEP_UNKNOWN


def _find_end(entry: EntryView, said: str) -> str | None:
    """Return the time at which the limit ends, as the answer names it."""
    match = _UNTIL.search(said)
    if match is not None:
        return match.group(1)
    members = error_members(entry, said)
    return next((value for name, value in members if _ENDS.search(name) and _MOMENT.match(value)), None)


def _find_longest_wait(said: str) -> float | None:
    """Return the longest wait in seconds that the answer names. Plain numbers are seconds."""
    found: list[float] = []
    for number, unit, rest in _SECONDS.findall(said[:20_000]):
        short = unit.lower()
        factor = 0.001 if short.startswith(("ms", "milli")) else _UNITS.get(short[:1], 1)
        found.append(float(number) * factor + (float(rest) if rest else 0))
    fair = [seconds for seconds in found if _SHORTEST_WAIT <= seconds <= _LONGEST_WAIT]
    return max(fair) if fair else None


def _compute_mean_interval(limited: list[EntryView]) -> float | None:
    times = [moment for entry in limited if entry.ts and (moment := parse_time(entry.ts)) is not None]
    return max(0.0, (times[-1] - times[0]) / (len(times) - 1)) if len(times) > 1 else None


def _describe_start(entry: EntryView) -> str:
    return f", counted from the last refusal{clock(entry.ts)}," if entry.ts else ""


def _duration_text(seconds: float) -> str:
    if seconds < 120:
        rounded = round(seconds) if seconds >= 1 else round(seconds, 1)
        return "1 second" if rounded == 1 else f"{rounded} seconds"
    longer = f"{round(seconds / 60)} minutes" if seconds < 7_200 else f"{seconds / 3600:.1f} hours"
    return f"{round(seconds)} seconds ({longer})"
