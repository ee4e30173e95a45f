"""A tool or command is missing. The record shows which ones exist."""

from __future__ import annotations

import re
from collections import Counter

from ctxmgr.diagnose.classes.environment.environment_missing import find_environment
from ctxmgr.diagnose.evidence import Evidence, clock
from ctxmgr.diagnose.evidence.calls import command_of, path_of, split_command
from ctxmgr.diagnose.evidence.files import mentions
from ctxmgr.diagnose.evidence.texts import capital, code, find_nearest, first_group, join_names, plain_name, quote_match
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.related.notes import diagnose_note
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "toolMissing"

# In this order: bash, zsh, Windows, Go and Node
_COMMAND = lazy_pattern(
    r"(?:^|[\s:])([\w.+-]{1,40}): (?:command )?not found(?=\s|$)|command not found: ([\w.+-]{1,40})"
    r"|'([\w.+-]{1,40})' is not recognized as|exec: \"([\w.+-]{1,40})\": executable file not found"
    r"|spawn ([\w.+-]{1,40}) ENOENT",
    re.MULTILINE,
)
_TOOL = lazy_pattern(
    r"(?:no such tool(?: available)?|unknown (?:tool|function)(?: name)?|(?:tool|function) not found):? [`'\"]?([\w.-]{1,60})"
    r"|(?:tool|function) [`'\"]?([\w.-]{1,60})[`'\"]? (?:not found|does not exist"
    r"|is not (?:available|defined|a (?:known|valid)))",
    re.IGNORECASE,
)
_OFFERED = lazy_pattern(
    r"(?:available (?:tools|functions)|(?:tools|functions) available|valid tools|one of|did you mean)\s*(?:are"
    r"|is)?[:?]?\s*\[?([\w.`'\", -]{2,600})",
    re.IGNORECASE,
)
_ABSENT = lazy_pattern(r"(?:command |executable file )?not found|not recognized|ENOENT")
_RUNS_ANY = lazy_pattern(r"(conda|(?:micro)?mamba) (?:activate|run -n) ([\w.-]{1,40})$")
"""Environments that hold programs of any language."""
_LAUNCHERS = frozenset(("sudo", "env", "exec", "xargs", "npx", "time", "nohup", "timeout", "command", "nice"))
_LIKE = {
    "rg": ("grep -rn",), "ag": ("grep -rn",), "ack": ("grep -rn",), "fd": ("find",), "fdfind": ("find",), "bat": ("cat",),
    "tree": ("find", "ls -R"), "jq": ("python3 -m json.tool",), "wget": ("curl",), "curl": ("wget",), "python": ("python3",),
    "pip": ("python3 -m pip",), "pip3": ("python3 -m pip",),
    "pytest": ("python3 -m pytest",),
    "yarn": ("npm",), "pnpm": ("npm",), "docker-compose": ("docker compose",), "docker": ("podman",), "podman": ("docker",),
    "nodejs": ("node",), "netstat": ("ss",), "ifconfig": ("ip",), "vim": ("sed",), "nano": ("sed",), "gsed": ("sed",),
    "http": ("curl",), "httpie": ("curl",), "hub": ("gh",), "shasum": ("sha256sum",), "md5": ("md5sum",),
    "open": ("xdg-open",), "exa": ("ls",), "ripgrep": ("grep -rn",),
    "mysql": ("mariadb",), "mysqldump": ("mariadb-dump",), "mysqladmin": ("mariadb-admin",), "mysqlcheck": ("mariadb-check",),
    "mysqlimport": ("mariadb-import",), "mysqlshow": ("mariadb-show",), "mysqlbinlog": ("mariadb-binlog",),
    "mysqlpump": ("mariadb-dump", "mysqldump"), "mariadb": ("mysql",), "mariadb-dump": ("mysqldump",),
    "libreoffice": ("soffice",), "soffice": ("libreoffice",), "convert": ("magick",), "identify": ("magick identify",),
    "magick": ("convert",), "google-chrome": ("chromium", "chromium-browser"),
    "chromium": ("google-chrome", "chromium-browser"),
    "gpg": ("gpg2",), "gpg2": ("gpg",), "gmake": ("make",), "gawk": ("awk",), "ggrep": ("grep",), "gtar": ("tar",),
    "gdate": ("date",), "greadlink": ("readlink",), "gtimeout": ("timeout",), "nc": ("ncat", "netcat"), "netcat": ("nc",),
    "telnet": ("nc",), "nslookup": ("dig", "getent hosts"), "dig": ("getent hosts", "nslookup"), "host": ("getent hosts",),
    "traceroute": ("tracepath",), "service": ("systemctl",), "systemctl": ("service",), "route": ("ip route",),
    "arp": ("ip neigh",), "lsof": ("fuser", "ss -ltnp"), "fuser": ("lsof",), "pgrep": ("ps",), "pkill": ("kill",),
    "apt": ("apt-get",), "yum": ("dnf",), "dnf": ("yum",), "perl5": ("perl",), "ruby2": ("ruby",), "py": ("python3",),
    "python2": ("python3",), "virtualenv": ("python3 -m venv",), "pyvenv": ("python3 -m venv",), "poetry": ("uv",),
    "terraform": ("tofu",), "tofu": ("terraform",), "kubectl": ("oc", "k3s kubectl"), "oc": ("kubectl",), "helm3": ("helm",),
    "xmllint": ("python3 -m xml.dom.minidom",), "unzip": ("python3 -m zipfile -e", "bsdtar -xf"), "7z": ("7za", "7zz"),
    "zip": ("python3 -m zipfile -c",), "xxd": ("od -A x -t x1z",), "hexdump": ("od -A x -t x1z",), "redis-cli": ("valkey-cli",),
    "mongo": ("mongosh",), "mongosh": ("mongo",), "ffmpeg": ("avconv",), "gcloud-sdk": ("gcloud",),
    "ansible": ("ansible-playbook",),
    "batcat": ("bat",), "code": ("codium",), "sha256sum": ("shasum -a 256",), "md5sum": ("md5",), "bc": ("awk",),
    "lua5.4": ("lua",),
    "tsc": ("npx tsc",), "eslint": ("npx eslint",), "jest": ("npx jest",), "vitest": ("npx vitest",),
    "prettier": ("npx prettier",),
    "ruff": ("python3 -m ruff",), "mypy": ("python3 -m mypy",), "black": ("python3 -m black",),
    "uvicorn": ("python3 -m uvicorn",),
    "flask": ("python3 -m flask",), "alembic": ("python3 -m alembic",), "celery": ("python3 -m celery",),
}  # fmt: skip
"""Equivalent commands, found on most systems."""


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return what is missing, and what exists instead."""
    for entry in evidence.failing_calls:
        said = evidence.text(entry)[:4_000]
        command = command_of(entry)
        match = _COMMAND.search(said) if command else _TOOL.search(said)
        name = first_group(match)
        if not name:
            continue
        if not command:
            # A tool may report that another tool is missing. The call itself names only its own tool.
            if name == entry.action or find_nearest(name, [entry.action], 0.8):
                return _diagnose_tool(evidence, entry, said)
        # If the command does not run the named program, the trouble belongs to another program. `count = 5` was to be an
        # assignment.
        elif (_is_run(command, name) or _is_missing_in_script(command, said, name)) and not re.search(
            rf"(?:^|[;&|\n])\s*{re.escape(name)}\s+=\s", command
        ):
            return _diagnose_command(evidence, entry, command, name)
    return None


def _is_run(command: str, name: str) -> bool:
    """Whether a command runs a program with this name, directly or through another program."""
    heads = [
        word.rpartition("/")[2] for words in split_command(command) for word in words[: 2 if words[0] in _LAUNCHERS else 1]
    ]
    return name in heads


def _is_missing_in_script(command: str, said: str, name: str) -> bool:
    """Whether a script that the command runs misses the program: "build.sh: 3: NAME: not found"."""
    found = re.findall(
        rf"^([\w./~+-]{{1,160}}): (?:line )?\d{{1,5}}: {re.escape(name)}: (?:command )?not found\s*$", said, re.M
    )
    words = [word for words in split_command(command) for word in words]
    return any(script in words for script in found)


def _diagnose_command(evidence: Evidence, entry: EntryView, command: str, name: str) -> Diagnosis:
    said = quote_match(_ABSENT, evidence.text(entry))
    missing = [name, *(each for each in _list_missing_programs(evidence) if each != name)]
    names = f"there is no command {code(name, 40)}" if len(missing) == 1 else f"there are no commands {join_names(missing, 4)}"
    cause = f"{code(command, 90)} can't work: {names} here{f', {said}' if said else ''}."
    quotes = [evidence.quote(entry)]
    found = {each: _find_wrapper(evidence, each) or _find_program(evidence, each) for each in missing}
    there = [(each, *place) for each, place in found.items() if place is not None]
    if there:
        other = there[0][2]
        places = join_names(dict.fromkeys(place for _, place, at in there if at is other))
        cause += f" {capital(evidence.source(other))} shows {places}."
        pairs = [f"{code(place, 80)} for {code(each, 40)}" for each, place, _ in there]
        quotes += [evidence.quote(other, place) for _, place, other in there[:2]]
        step = f"Do the same with {' and '.join(pairs[:3])}."
        return diagnosis(KIND, cause, step, *quotes, check="The new command must print a result.")
    for like in _LIKE.get(name, ()):
        served = _find_successful_call(evidence, like)
        if served is not None:
            cause += f" {code(like, 40)} is there: {code(command_of(served), 80)} worked{clock(served.ts)}."
            quotes.append(evidence.quote(served, command_of(served)))
            return diagnosis(
                KIND, cause, f"Do the same with {code(like, 40)}.", *quotes, check="The new command must print a result."
            )
    # If a similar program has worked, no note is needed. Otherwise a note knows the project's way.
    if (noted := diagnose_note(KIND, evidence, entry, name)) is not None:
        return noted
    named = find_environment(evidence, entry, command)
    if named is not None and (runs := _RUNS_ANY.match(named.text)) is not None:
        way = f"{runs.group(1)} run -n {runs.group(2)}"
        cause += f" {capital(named.quote.source)} names the environment {code(named.text, 80)}."
        step = f"See whether it is there (`{way} which {name}`), and run {code(f'{way} {command}', 160)}."
        return diagnosis(
            KIND, cause, step, named.quote, *quotes, check="The new command must print a result.", confidence="medium"
        )
    failed = {command_of(each) for each in evidence.failing_calls}
    like = next((each for each in _LIKE.get(name, ()) if not any(each in command for command in failed)), None)
    if like is not None:
        step = f"Do the same with {code(like, 40)}, or ask the user before you install {code(name, 40)}."
        return diagnosis(KIND, cause, step, *quotes, confidence="medium")
    step = (
        f"Find out with {code(f'command -v {name}', 60)} whether it lies elsewhere; if not, ask the user before you install it."
    )
    return diagnosis(KIND, cause, step, *quotes, confidence="medium")


def _list_missing_programs(evidence: Evidence) -> list[str]:
    """Return the programs that recent calls did not find, the newest first, whatever the status of the call."""
    found: dict[str, None] = {}
    for entry in reversed(evidence.tail):
        for match in _COMMAND.finditer(evidence.text(entry)[:4_000]) if command_of(entry) else ():
            name = first_group(match)
            if _is_run(command_of(entry), name):
                found.setdefault(name)
    return list(found)


def _find_wrapper(evidence: Evidence, name: str) -> tuple[str, EntryView] | None:
    """Return the path of the project's own wrapper, as `gradlew`, or of a script in its folder, that a listing shows."""
    for each in mentions(evidence, f"{name}w", _end(evidence)) if name in ("gradle", "mvn") else ():
        if plain_name(each.path) and not evidence.was_tried(each.path):
            return each.path if "/" in each.path else f"./{each.path}", each.entry
    for other in reversed(evidence.recent):
        lists = other.status == "ok" and any(words[:1] == ["ls"] for words in split_command(command_of(other)))
        # Elsewhere, a bare name may be that of a folder.
        if lists and re.search(rf"^-[rw-]{{2}}x[^\n/]* \*?{re.escape(name)}\*?$", evidence.text(other)[:20_000], re.MULTILINE):
            return None if evidence.was_tried(f"./{name}") else (f"./{name}", other)
    return None


def _end(evidence: Evidence) -> int:
    return len(evidence.recent) + evidence.recent[0].index


def _find_program(evidence: Evidence, name: str) -> tuple[str, EntryView] | None:
    """Return the path, in an output, of a program with this name or of an equivalent one."""
    alike = "|".join(re.escape(each) for each in (name, *(each for each in _LIKE.get(name, ()) if " " not in each)))
    place = re.compile(
        rf"(?:^|(?<=[\s'\"`:=(]))((?:[\w.~/@+-]{{1,120}}/(?:{alike}))|(?:{alike}))(?=[\s'\"`),:;*]|$)", re.MULTILINE
    )
    for each in mentions(evidence, name, _end(evidence)):
        # Only folders for programs count: elsewhere, a file may have the same name.
        if "bin/" in each.path and plain_name(each.path) and not evidence.was_tried(each.path):
            return each.path, each.entry
    for other in reversed(evidence.recent):
        lists = any(words[0].rpartition("/")[2] in _SHOWS for words in split_command(command_of(other)))
        if not evidence.has_succeeded(other) or not (lists or path_of(other)):
            continue
        for match in place.finditer(evidence.text(other)[:20_000]):
            shown = match.group(1)
            bare = "/" not in shown
            # Outside of a list, a bare name is only a word. A path that was tried has not helped.
            if (bare and (shown == name or not lists)) or not plain_name(shown) or evidence.was_tried(f"{shown} "):
                continue
            return shown, other
    return None


_SHOWS = frozenset(
    ("ls", "find", "which", "whereis", "type", "command", "dpkg", "rpm", "compgen", "locate", "tree", "cat", "brew")
)


def _find_successful_call(evidence: Evidence, like: str) -> EntryView | None:
    words = like.split()
    program_words = words[:1] if words[-1].startswith("-") else words
    for other in reversed(evidence.recent):
        if evidence.has_succeeded(other):
            for ran in split_command(command_of(other)):
                if ran[: len(program_words)] == program_words:
                    return other
    return None


def _find_nearest_tool(name: str, offered: list[str]) -> str | None:
    """Return the offered tool that shares the rarest word with a name; of several, that with its first word, else None."""
    words = {each: set(_PART.findall(each.casefold())) for each in offered}
    word_counts = Counter(word for each in words.values() for word in each)
    shared = {each: max((1 / word_counts[word] for word in own & set(_PART.findall(name.casefold()))), default=0.0)
              for each, own in words.items()}  # fmt: skip
    best = max(shared.values(), default=0.0)
    found = [each for each in offered if best and shared[each] == best]
    first = [each for each in found if _PART.findall(name.casefold())[0] in words[each]]
    # If several tools are equally similar, the first word decides, which is mostly the verb.
    return found[0] if len(found) == 1 else first[0] if len(first) == 1 else None


_PART = lazy_pattern(r"[a-z0-9]{3,}")


_VERBS = (
    frozenset(("edit", "write", "replace", "patch", "create", "insert", "modify", "update", "put", "save", "set", "change")),
    frozenset(("read", "view", "open", "cat", "get", "show", "fetch", "load", "list", "ls", "search", "find", "grep", "glob")),
    frozenset(("run", "exec", "execute", "shell", "bash", "command", "terminal")),
    frozenset(("delete", "remove", "cancel", "drop")),
)
"""Groups of equivalent verbs in names of tools. A tool of another group is no substitute."""


def _list_tools_of_kind(name: str, tools: list[str]) -> list[str]:
    """Return the tools with an equivalent verb, else those without a known verb; all tools if the name has none."""
    kinds = {each: {place for place, verbs in enumerate(_VERBS) if verbs & set(_WORDS.findall(each.casefold()))}
             for each in [name, *tools]}  # fmt: skip
    same = [each for each in tools if kinds[each] & kinds[name]]
    return same or [each for each in tools if not kinds[each] or not kinds[name]]


_WORDS = lazy_pattern(r"[a-z]+")


def _diagnose_tool(evidence: Evidence, entry: EntryView, said: str) -> Diagnosis:
    name = entry.action[:60]
    worked = {other.action: other for other in evidence.recent if other.status == "ok" and other.action != entry.action}
    offers = " ".join(match.group(1) for match in _OFFERED.finditer(said))
    offered = [word for word in re.findall(r"[\w.-]{2,60}", offers) if word != name and plain_name(word)]
    offered = _list_tools_of_kind(name, offered)
    worked = {each: worked[each] for each in _list_tools_of_kind(name, list(worked))}
    near = _find_nearest_tool(name, offered) or find_nearest(name, worked, 0.5) or find_nearest(name, offered, 0.5)
    cause = f"There is no tool {code(name, 60)}."
    quotes = [evidence.quote(entry)]
    if near is not None and near in worked:
        other = worked[near]
        cause += f" {code(near, 60)} is there; it worked{clock(other.ts)}."
        return diagnosis(KIND, cause, f"Call {code(near, 60)} instead.", evidence.quote(other), *quotes)
    names = offered or list(worked)
    if near is not None:
        return diagnosis(KIND, f"{cause} The answer offers {code(near, 60)}.", f"Call {code(near, 60)} instead.", *quotes)
    if not names:
        return diagnosis(
            KIND, cause, "Do this step with a tool that you have, or tell the user that it is missing.", *quotes,
            confidence="medium",
        )  # fmt: skip
    source = "The answer offers" if offered else "These tools worked in this session:"
    return diagnosis(
        KIND, f"{cause} {source} {join_names(names)}.", "Use one of these tools for this step.", *quotes, confidence="medium"
    )
