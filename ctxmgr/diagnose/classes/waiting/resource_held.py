"""A port or other resource is taken. The record shows by whom, and since when."""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxmgr.diagnose.evidence import Evidence, Message, call_key, clock
from ctxmgr.diagnose.evidence.calls import command_of, fields_of, runs_in_background, split_command, tool_phrase
from ctxmgr.diagnose.evidence.messages import user_sentences
from ctxmgr.diagnose.evidence.texts import ORDERS, agent_name, capital, code, plain_name, quote_match, strip_line_numbers
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis, Quote
from ctxmgr.types.view import EntryView

KIND: str = "resourceHeld"

_TAKEN = lazy_pattern(
    r"address already in use|EADDRINUSE|port is already allocated|only one usage of each socket"
    r"|port \d{2,5} (?:is )?(?:already )?(?:in use|taken|being used|used)|address in use|port already in use"
    r"|something is already running on port",
    re.IGNORECASE,
)
_PORT_SAID = lazy_pattern(
    r"(?:EADDRINUSE|in use|allocated|port|bind|listen)[^\n]{0,60}?(?<![\d.])(?:\[?[\d.]{7,15}\]?|\[?::\]?|localhost"
    r"|\*)?:?(\d{2,5})\b(?!\.\d)",
    re.IGNORECASE,
)
_PORT_GIVEN = lazy_pattern(r"(?:--port[= ]|-p[= ]?|PORT=|http\.server |:|--bind \S+ )(\d{4,5})\b|(?<=\s)(\d{4,5})(?=\s|$)")
# The formats in which `ss -ltnp`, `lsof -i` and `netstat -ltnp` show who listens
_HOLDER = lazy_pattern(
    r"users:\(\(\"([^\"]{1,40})\",pid=(\d{1,8})|^(\S{1,40})\s+(\d{1,8})\s+\S+\s+\d+u|(\d{1,8})/(\S{1,40})\s*$", re.MULTILINE
)
_ENDS = lazy_pattern(
    r"\b(?:kill|pkill|killall|docker (?:stop|rm|compose down)|systemctl stop)\b|fuser -k|TaskStop|KillShell|KillBash"
)
_LOOKS = lazy_pattern(r"\b(?:lsof|netstat|curl|wget|grep|cat|sed)\b|\bss -|\bnc ")
_WRAPPERS = frozenset(("cd", "nohup", "timeout", "setsid", "sleep", "echo", "export", "curl", "npm", "npx", "yarn", "pnpm"))
_LISTS = lazy_pattern(r"\b(?:lsof|ss|netstat|fuser)\b")
_MOST_NOTE = 20_000


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return who holds the resource that a call needs."""
    for entry in evidence.failing_calls:
        said = evidence.text(entry)
        match = _TAKEN.search(said)
        if match is None:
            continue
        line = evidence.line(entry, _TAKEN)
        port = _find_port(line, command_of(entry)) or _find_port_in_context(evidence, entry, said)
        return _diagnose_taken_port(evidence, entry, line, port) if port else None
    return None


def _find_port(line: str, command: str) -> str | None:
    said = [port for port in re.findall(r"(?<!\d)(\d{2,5})(?!\d)", line) if int(port) > 100 or port in ("80",)]
    given = [one or other for one, other in _PORT_GIVEN.findall(command)]
    both = [port for port in said if port in given]
    named = _PORT_SAID.search(line)
    return (
        next(iter(both), None) or next(iter(given), None) or (named.group(1) if named and int(named.group(1)) > 100 else None)
    )


_FIXED = lazy_pattern(
    r"\bport\b.{0,60}\b(?:must (?:be|stay)|has to be|only|always|fixed|hard-?(?:wired|coded)|expected|do(?:n['’]t"
    r"| not) change)\b"
    r"|\b(?:must|has to|only) (?:listen|run|be) (?:on|at)\b",
    re.IGNORECASE,
)
_BOUND = lazy_pattern(
    r"(?:[\"'](?:[\d.]{7,15}|localhost|::1?)?[\"'], ?|(?:127\.0\.0\.1|0\.0\.0\.0|localhost|\[::1?\]):"
    r"|\bport[\"']?\s?[:=]\s?|(?<![A-Za-z0-9])PORT\b\W{1,6}|--port[ =]|listen\(|\$\{\w{1,30}:-)[\"']?(\d{2,5})\b",
    re.IGNORECASE,
)


def _find_port_in_context(evidence: Evidence, entry: EntryView, said: str) -> str | None:
    """Return the port in the whole message, or in the source of the program, if there is only one."""
    texts = [said]
    for word in dict.fromkeys(re.findall(r"[\w./-]{1,200}\.(?:py|js|ts|mjs|rb|sh|php|go)\b", command_of(entry))):
        content = evidence.last_content(word, entry.index)
        texts += [content.text] if content is not None else []
        name = word.rpartition("/")[2]
        shown = (
            other
            for other in evidence.entries_before(entry.index)
            if name in command_of(other) and call_key(other) != call_key(entry) and not evidence.has_failed(other)
        )
        texts += [evidence.text(other) for other in list(shown)[:3]]
    for text in texts:
        ports = dict.fromkeys(port for port in _BOUND.findall(text[:20_000]) if int(port) > 100 or port == "80")
        if len(ports) == 1:
            return next(iter(ports))
    return None


def _diagnose_taken_port(evidence: Evidence, entry: EntryView, line: str, port: str) -> Diagnosis:
    quotes = [evidence.quote(entry, line)]
    demand = _find_message_about(evidence, port)
    # The user wants this very port, so another one is no remedy.
    fixed = demand is not None and _FIXED.search(demand[1]) is not None
    cause = (
        f"{code(command_of(entry) or tool_phrase(entry), 90)} can't start: port {port} is taken, {quote_match(_TAKEN, line)}."
    )
    own = _find_starter(evidence, entry, port)
    listing = _find_listing(evidence, port)
    if own is not None:
        quotes += [evidence.quote_message(*demand)] if demand is not None and fixed else []
        return _diagnose_own_holder(evidence, entry, port, *own, cause, quotes, fixed=fixed)
    if demand is not None:
        message, sentence = demand
        cause += f" The user said{clock(message.at)}: {code(sentence, 150)}."
        quotes.append(evidence.quote_message(message, sentence))
    note = None if fixed else _find_note(evidence, entry, port)
    if note is not None:
        return _diagnose_noted_holder(evidence, entry, port, note, listing, cause, quotes)
    other = _next_port(port)
    check = f"Port {port} must be free before you start yours." if fixed else f"It must say that it listens on port {other}."
    if listing is not None:
        shown, program, pid = listing
        cause += (
            " It is held by "
            f"{f'the container {code(program, 40)}' if not pid else f'{code(program, 40)}, process {pid}'}, as "
            f"{evidence.source(shown)} shows."
        )
        quotes.append(evidence.quote(shown))
        holder = f"the container {code(program, 40)}" if not pid else f"{code(program, 40)} (process {pid})"
        step = f"You did not start {holder}, so leave it alone: " + (
            f"tell the user that it holds port {port}, which is to stay as it is, and ask whether it may be stopped."
            if fixed
            else f"start yours on another port, such as {other}, or ask the user."
        )
        return diagnosis(KIND, cause, step, *quotes, check=check)
    if demand is not None:
        step = (
            f"See what holds it with `ss -ltnp` and leave that alone: tell the user that port {port}, which is to stay as it"
            " is, is taken, and ask whether what holds it may be stopped."
            if fixed
            else f"Leave what holds it alone, and start yours on another port, such as {other}; if it must be {port}, ask the"
            " user."
        )
        return diagnosis(KIND, cause, step, *quotes, check=check)
    server = _find_started_server(evidence, entry)
    # Without a listing, the agent's own server is the likeliest holder, but not a sure one.
    if server is not None:
        return _diagnose_own_server(evidence, server, cause, port, quotes)
    way = _find_setting(evidence, entry, other, [])
    step = (
        f"See what holds it with `ss -ltnp`, and start yours on another port, such as {f'{other} ({way})' if way else other},"
        " unless that process is yours."
    )
    return diagnosis(KIND, cause, step, *quotes, check="It must say that it listens.", confidence="medium")


class _Note(NamedTuple):
    """A note about a port: the call that showed it, its part about the port, and the whole text."""

    entry: EntryView
    part: str
    text: str


_PART = lazy_pattern(r"\n|;\s|\.\s")
_HOLDS = lazy_pattern(
    r"\b(?:is|are|belongs?|used|reserved|held|taken|owned|leave|keep|stays?|kept|never|don['’]t|do not)\b", re.IGNORECASE
)
_FREE = lazy_pattern(
    r"\b(?:free|spare|available|unused|every(?:body|one)|any(?:body|one)|others?|the rest|else|yours?|instead|use|take|pick)\b",
    re.IGNORECASE,
)
_PORTS = lazy_pattern(r"(?<![\w.:-])(\d{4,5})(?: ?(?:-|–|\.{2,3}|to|through) ?(\d{4,5}))?(?![\w.:-]*\w)")
_VARIABLE = lazy_pattern(r"(?<![\w-])(?:([A-Z][A-Z0-9_]{0,30}_PORT|PORT)|(--(?:[a-z]{2,12}-)?port))(?![\w-])")
_LEAST_WORDS = 6


def _find_note(evidence: Evidence, entry: EntryView, port: str) -> _Note | None:
    """Return the note that was read and says in words whose a port is or that it is to be left alone."""
    pattern = re.compile(rf"(?<![\d.-]){port}(?![\d-])")
    for other in evidence.latest_before(entry.index):
        text = strip_line_numbers(evidence.text(other)[:_MOST_NOTE])
        if not evidence.has_succeeded(other) or not pattern.search(text):
            continue
        for part in _PART.split(text):
            words = re.findall(r"(?<!\S)[(\"'`]?[A-Za-z][a-z'’]*(?=[\s,.:;)]|$)", part)
            # A program's own message names a port in a few words, or is about itself.
            if (
                pattern.search(part) and len(words) >= _LEAST_WORDS and _HOLDS.search(part) and not ORDERS.search(part)
                and not re.search(r"\b(?:listening|serving|started)\b", part, re.IGNORECASE)
            ):  # fmt: skip
                return _Note(other, part.strip(" -*#"), text)
    return None


def _list_free_ports(evidence: Evidence, port: str, text: str) -> list[str]:
    """Return the ports that a note gives to others, without those that a listing or a failed start shows as taken."""
    seen = [each for each in evidence.recent if _LISTS.search(command_of(each)) or evidence.has_failed(each)]
    taken = {port, *re.findall(r"\d{4,5}", " ".join(f"{command_of(each)} {evidence.text(each)[:_MOST_NOTE]}" for each in seen))}
    free: list[str] = []
    for part in _PART.split(text):
        if _FREE.search(part):
            for first, last in _PORTS.findall(part):
                free += [str(each) for each in range(int(first), min(int(last or first), int(first) + 200) + 1)]
    return [each for each in free if each not in taken]


def _find_setting(evidence: Evidence, entry: EntryView, port: str, texts: list[str]) -> str:
    """Return how the program of a call takes its port, according to its source or a note: `APP_PORT=8081`; or ""."""
    files = dict.fromkeys(re.findall(r"[\w./-]{1,200}\.(?:py|js|ts|mjs|rb|sh|php|go)\b", command_of(entry)))
    sources = [content.text[:_MOST_NOTE] for file in files if (content := evidence.last_content(file, entry.index)) is not None]
    shown = [*sources, *texts]
    match = next((match for text in shown if (match := _VARIABLE.search(text)) is not None), None)
    if match is not None:
        return code(f"{match.group(1)}={port}" if match.group(1) else f"{match.group(2)} {port}")
    # A script takes its port as its first argument.
    return code(f"{next(iter(files))} {port}") if files and any(re.search(r"\$\{1:-\d", text) for text in shown) else ""


def _diagnose_noted_holder(
    evidence: Evidence, entry: EntryView, port: str, note: _Note, listing: tuple[EntryView, str, str] | None,
    cause: str, quotes: list[Quote],
) -> Diagnosis:  # fmt: skip
    """Say whose the port is according to a note, and which port is free for others."""
    if listing is not None:
        shown, program, pid = listing
        cause += f" {code(program, 40)}{f', process {pid},' if pid else ''} holds it, as {evidence.source(shown)} shows."
        quotes.append(evidence.quote(shown))
    cause += f" {capital(evidence.source(note.entry))} says of it: {code(note.part, 160)}. So waiting does not free it."
    quotes.append(evidence.quote(note.entry, note.part))
    free = _list_free_ports(evidence, port, note.text)
    other = free[0] if free else _next_port(port)
    way = _find_setting(evidence, entry, other, [note.text])
    step = (
        f"Leave what holds port {port} alone. Start yours on another port, such as {f'{other} with {way}' if way else other}"
        f"{', which that note gives to others' if free else ''}, and use that address."
    )
    return diagnosis(KIND, cause, step, *quotes, check=f"It must say that it listens on port {other}.")


def _next_port(port: str) -> str:
    return str(int(port) + 1) if int(port) < 65_000 else str(int(port) - 1)


def _diagnose_own_holder(
    evidence: Evidence,
    entry: EntryView,
    port: str,
    started: EntryView,
    worked: bool,
    cause: str,
    quotes: list[Quote],
    *,
    fixed: bool,
) -> Diagnosis:
    """Say which call of the session took the port."""
    who = "You" if started.agent == entry.agent else agent_name(started.agent)
    cause += f" {who} started what holds it{clock(started.ts)} with {code(command_of(started), 90)}."
    quotes.append(evidence.quote(started, command_of(started)))
    own = started.agent == entry.agent
    # An agent may stop what it started itself. For a process of another agent, it must ask.
    again = (
        f"If it must be a new one, stop the one you started{clock(started.ts)} first, then start it once."
        if own
        else f"It is {who}'s: start no second one, and do not stop that one without asking {who}."
    )
    if _is_same_program(started, entry) or (own and not worked):
        step = f"Use the one that runs already: send your request to port {port}. {again}"
    else:
        free = _next_port(port)
        another = f"start yours on another port, such as {free} (`PORT={free}`, `--port {free}`)"
        leave = "ask which of the two is to have the port, which the user wants for yours" if fixed else another
        step = f"That is another program: leave it, and {leave}."
        if own:
            step = f"You started that other program: if you no longer need it, stop it and start yours; else {leave}."
    return diagnosis(
        KIND, cause, step, *quotes, check=f"A request to port {port} must be answered.",
        confidence="high" if worked else "medium",
    )  # fmt: skip


def _diagnose_own_server(evidence: Evidence, begun: EntryView, cause: str, port: str, quotes: list[Quote]) -> Diagnosis:
    """Say that a server that was left running probably holds the port."""
    number = re.search(r"^\D{0,20}(\d{2,7})\s*$", evidence.text(begun), re.MULTILINE)
    process = f" (process {number.group(1)})" if number else ""
    own, who = evidence.is_own(begun), evidence.maker(begun)
    cause += (
        f" {'You' if own else who} started a server{' yourself' if own else ''}{clock(begun.ts)}{process}, with"
        f" {code(command_of(begun), 80)}, and did not end it."
    )
    kill = f"`kill {number.group(1)}`" if number else "end that process"
    step = (
        f"Make sure that it is yours that still listens at port {port}, stop it ({kill}), and start it once; port {port}"
        " is free then."
        if own
        else f"See with `ss -ltnp` whether it still listens at port {port}. If it does, use it, or ask {who} to stop it; do not"
        " stop it yourself."
    )
    return diagnosis(
        KIND, cause, step, *quotes, evidence.quote(begun, command_of(begun)),
        check=f"A request to port {port} must be answered by the new one.", confidence="medium",
    )  # fmt: skip


def _find_started_server(evidence: Evidence, entry: EntryView) -> EntryView | None:
    """Return the call that left a server running, if it is of the same kind as a call that fails now."""
    failing = {" ".join(words) for each in evidence.failing_calls for words in split_command(command_of(each))}
    for other in evidence.latest_before(entry.index):
        command = command_of(other)
        # A process that was ended since may have been that server.
        if _ENDS.search(command) and other.status == "ok":
            return None
        begins = {
            " ".join(word for word in words if word not in ("nohup", "setsid", "exec"))
            for part in command.split("&")
            for words in split_command(part)
        }
        same = any(f"{begun} ".startswith(f"{call} ") for begun in begins for call in failing)
        if runs_in_background(command) and other.status == "ok" and same:
            return other
    return None


def _find_message_about(evidence: Evidence, port: str) -> tuple[Message, str] | None:
    """Return what a person last said about a port."""
    pattern = re.compile(rf"(?<![\d.]){port}(?!\d)")
    return next(((message, sentence) for message, sentence in user_sentences(evidence) if pattern.search(sentence)), None)


def _list_programs(command: str) -> set[str]:
    """Return the files that a command runs, else its programs with their first word."""
    files = {
        word.rpartition("/")[2]
        for words in split_command(command)
        for word in words
        if re.search(r"\.(?:py|js|ts|mjs|rb|sh|php|jar)$", word)
    }
    return files or {" ".join(words[:2]) for words in split_command(command) if words[0] not in _WRAPPERS and len(words) > 1}


def _is_same_program(one: EntryView, other: EntryView) -> bool:
    """Whether two calls start the same program: the same file, script or module."""
    words = [
        {
            word
            for words in split_command(command_of(each))
            for word in words[1:]
            # Numbers, options and short words don't identify the program.
            if len(word) > 3 and not word.isdigit() and word[0] not in "-&>"
        }
        for each in (one, other)
    ]
    return bool(words[0] & words[1]) or bool(_list_programs(command_of(one)) & _list_programs(command_of(other)))


def _find_starter(evidence: Evidence, entry: EntryView, port: str) -> tuple[EntryView, bool] | None:
    """Return the earlier call of the session that took the port, and whether the record shows that it did."""
    pattern = re.compile(rf"(?<!\d){port}(?!\d)")
    for other in evidence.latest_before(entry.index):
        command = command_of(other)
        if _ENDS.search(command or other.action) and other.status == "ok":
            return None  # some process was ended since, and may have been the holder
        same = runs_in_background(command) and bool(_list_programs(command) & _list_programs(command_of(entry)))
        # Another program on the port may have failed to take it too.
        if other.status not in ("ok", "open") or not (same or pattern.search(command)) or evidence.has_failed(other):
            continue
        # A look at the port starts nothing.
        if _LOOKS.search(command):
            continue
        said = evidence.text(other)
        stays = other.status == "open" or runs_in_background(command)
        serves = re.search(r"(?:serving|listening|running|started|ready)\b[^\n]{0,80}", said, re.IGNORECASE) is not None
        background = any("background" in name and value is True for name, value in fields_of(other).items())
        if stays or serves or background:
            return other, stays or background or serves
    return None


def _find_listing(evidence: Evidence, port: str) -> tuple[EntryView, str, str] | None:
    pattern = re.compile(rf":{port}(?!\d)")
    for other in evidence.latest:
        if re.search(r"\b(?:docker|podman)\b.{0,40}\bps\b", command_of(other)):
            line = next((line for line in evidence.text(other).split("\n") if re.search(rf":{port}->", line)), "")
            first = evidence.text(other).lstrip().upper().startswith("NAMES")
            name = line.split()[0 if first else -1] if line.split() else ""
            if plain_name(name) and "->" not in name:
                return other, name, ""
        # Other outputs name ports without their holders.
        if not _LISTS.search(command_of(other)):
            continue
        for line in evidence.text(other).split("\n")[:200]:
            match = _HOLDER.search(line) if pattern.search(line) else None
            if match is not None:
                groups = match.groups()
                program, pid = (
                    (groups[0], groups[1]) if groups[0] else (groups[2], groups[3]) if groups[2] else (groups[5], groups[4])
                )
                return other, program, pid
    return None
