"""A script, target or sub-command has a name that its manifest or program does not know."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import NamedTuple

from ctxmgr.diagnose.errors.refusals import find_violations
from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.diagnose.evidence.calls import command_of, last_command, split_command
from ctxmgr.diagnose.evidence.manifests import read_scripts
from ctxmgr.diagnose.evidence.messages import find_task_words
from ctxmgr.diagnose.evidence.nearest_names import find_nearest_recorded
from ctxmgr.diagnose.evidence.texts import (
    ORDERS,
    clock,
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
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis, Quote
from ctxmgr.types.view import EntryView

KIND: str = "unknownName"


class _Way(NamedTuple):
    """How a program says that it does not know a name, the kind of the name, and where names are listed.

    Each pattern contains the ``sign``. A text without it is not searched, and the pattern is not compiled for it.
    """

    sign: str
    pattern: re.Pattern[str]
    noun: str
    manifests: tuple[str, ...]


def _make_way(sign: str, pattern: str, noun: str, *manifests: str) -> _Way:
    return _Way(sign, lazy_pattern(pattern, re.IGNORECASE | re.MULTILINE), noun, manifests)


_NAME = r"[`'\"‘]?([\w:./@-]{1,60}?)[`'\"’]?"
_WAYS = (
    _make_way("missing script", rf"missing script:? {_NAME}(?=[\s.]*$|\s)", "script", "package.json"),
    _make_way("script not found", rf"error: script not found {_NAME}(?=\s|$)", "script", "package.json"),
    _make_way("error command", rf"^error command {_NAME} not found", "script", "package.json"),
    _make_way("no rule to make", rf"no rule to make target {_NAME}\.?  ?stop", "target", "Makefile", "GNUmakefile"),
    _make_way("justfile does not", rf"justfile does not contain recipe {_NAME}(?=[.\s]|$)", "recipe", "justfile", "Justfile"),
    _make_way("command: ", rf"no such (?:sub)?command: {_NAME}(?=\s|$)", "command"),
    _make_way("target named", rf"no (?:test|bin|example|bench) target named {_NAME}(?=[\s.]|$)", "target", "Cargo.toml"),
    _make_way("not found in", rf"task {_NAME} not found in (?:root )?project", "task", "build.gradle", "build.gradle.kts"),
    _make_way("know how to build", rf"don't know how to build task {_NAME}", "task", "Rakefile"),
    _make_way("does not exist", rf"task:? {_NAME} does not exist", "task", "Taskfile.yml"),
    _make_way("task not found", rf"task not found: {_NAME}(?=\s|$)", "task", "deno.json"),
    _make_way("is not a", rf"(?:git|docker|npm): {_NAME} is not an? \w+ command", "command"),
    _make_way("unknown command", rf"unknown command:? {_NAME}(?=[\s.]|$)", "command"),
    _make_way("no such command", rf"no such command {_NAME}(?=[.\s]|$)", "command"),
    _make_way("has no command", rf"has no command named {_NAME}(?=[\s.]|$)", "command"),
    _make_way("invalid choice", rf"invalid choice: {_NAME} \(", "choice"),
    _make_way("is not defined", rf"command {_NAME} is not defined", "command", "composer.json"),
    _make_way("no such service", rf"no such service: {_NAME}(?=\s|$)", "service",
              "docker-compose.yml", "compose.yaml", "docker-compose.yaml"),
    _make_way("unknown lifecycle", rf"unknown lifecycle phase {_NAME}(?=[.\s]|$)", "phase", "pom.xml"),
    _make_way("could not find task", rf"could not find tasks? {_NAME}(?=[\s.]|$)", "task", "turbo.json", "package.json"),
    _make_way("sessions not found", rf"sessions not found: {_NAME}(?=[\s.,]|$)", "session", "noxfile.py"),
    _make_way("no idea what", rf"no idea what {_NAME} is", "task", "tasks.py"),
    _make_way("could not be found", rf"the task {_NAME} could not be found", "task", "mix.exs"),
    _make_way("unknown target", rf"unknown target {_NAME}(?=[\s,.]|$)", "target"),
    _make_way("failed to spawn", rf"failed to spawn: {_NAME}(?=[\s.]|$)", "command", "pyproject.toml"),
    _make_way("in the reactor", rf"could not find the selected project in the reactor: {_NAME}(?=[\s.]|$)", "module",
              "pom.xml"),
    _make_way("no hook with id", rf"no hook with id {_NAME}(?=[\s.]|$)", "hook", ".pre-commit-config.yaml"),
    _make_way("no such preset", rf"no such preset in [^:\n]{{1,200}}: {_NAME}(?=[\s.]|$)", "preset", "CMakePresets.json"),
    _make_way("profile", rf"no such profile:? {_NAME}(?=[\s.]|$)", "profile", "docker-compose.yml", "compose.yaml"),
    _make_way("environment", rf"(?:unknown|undefined) (?:tox )?environments? {_NAME}(?=\s|$)", "environment", "tox.ini"),
)  # fmt: skip
_CHOICES = lazy_pattern(r"\(choose from ([^)]{1,2000})\)")
_SUGGESTED = lazy_pattern(
    r"(?:did you mean(?: (?:one of )?(?:these|this))?\??:?|most similar commands? (?:is|are)|is similar:|similar name exists:"
    r"|some candidates are:)\s{0,12}((?:[`'\"\w:.@/ \t-]{1,80}\n?){1,4})",
    re.IGNORECASE,
)
_WORD = lazy_pattern(r"[\w:.@/-]{1,60}")
_TARGET = lazy_pattern(r"^([A-Za-z][\w./-]{0,59})\s*:(?![=:])", re.MULTILINE)
_RECIPE = lazy_pattern(r"^@?([A-Za-z][\w-]{0,59})(?: [^:=\n]{1,80})?:(?!=)", re.MULTILINE)
_FUNCTION = lazy_pattern(r"^def (\w{1,60})\(", re.MULTILINE)
_HOOK = lazy_pattern(r"^\s*- id: ([\w-]{1,60})", re.MULTILINE)
_PRESET = lazy_pattern(r"\"name\"\s*:\s*\"([\w.-]{1,60})\"")
_MODULE = lazy_pattern(r"<module>([\w./-]{1,60})</module>")
_GRADLE = lazy_pattern(r"^[ \t]*(?:task |tasks\.(?:register|create)\(\s*[\"'])([\w-]{1,60})", re.MULTILINE)
_TASK = lazy_pattern(r"^ {2}([A-Za-z][\w:.-]{0,59}):\s*(?:$|\{|&)", re.MULTILINE)
_SECTIONED = lazy_pattern(r"^(?:\[testenv:([\w.-]{1,60})\]|name\s*=\s*\"([\w.-]{1,60})\")", re.MULTILINE)
_PATTERNS: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(("build.gradle", "build.gradle.kts"), _GRADLE),
    **dict.fromkeys(("Taskfile.yml", "docker-compose.yml", "docker-compose.yaml", "compose.yaml"), _TASK),
    **dict.fromkeys(("Cargo.toml", "tox.ini"), _SECTIONED),
    **dict.fromkeys(("justfile", "Justfile"), _RECIPE),
    **dict.fromkeys(("noxfile.py", "tasks.py"), _FUNCTION),
    ".pre-commit-config.yaml": _HOOK, "CMakePresets.json": _PRESET, "pom.xml": _MODULE,
}  # fmt: skip
"""How a manifest names what can be called; any other does it like a Makefile."""
_WITH_SCRIPTS = ("package.json", "turbo.json", "deno.json", "composer.json")


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return the unknown name, and the nearest known one."""
    for entry in evidence.failing_calls:
        command = command_of(entry)
        if not command:
            continue
        said = evidence.text(entry)
        folded = said.casefold()
        for way in _WAYS:
            match = way.pattern.search(said) if way.sign in folded else None
            name = first_group(match)
            # A missing prerequisite of a target is a file, which is a matter of wrong_place.
            if name and _is_asked(name, command) and "needed by" not in said[match.start() :][:200] if match else False:
                return _diagnose_unknown_name(evidence, entry, command, name or "", way)
    return None


def _is_asked(name: str, command: str) -> bool:
    """Whether the last part of a command asks for a name. A failure before a semicolon does not decide how the command ends."""
    last = [part for part in re.split(r";\s|\n", command) if part.strip()][-1:]
    return bool(last) and contains_word(name, last[0])


def _diagnose_unknown_name(evidence: Evidence, entry: EntryView, command: str, name: str, way: _Way) -> Diagnosis | None:
    suggested = [other for other in _list_suggestions(evidence.text(entry), name) if plain_name(other)]
    manifest, definitions, shown = _find_known_names(evidence, way, name, entry)
    names = list(definitions)
    near = find_nearest(name, names, 0.5) or find_nearest(name, suggested, 0.4)
    quotes = [evidence.quote(entry), *shown]
    where = (
        f"{evidence.name(manifest)} has no {way.noun} {code(name, 60)}"
        if manifest
        else f"there is no {way.noun} {code(name, 60)}"
    )
    cause = f"{code(command, 90)} can't work: {where}."
    if definitions and not manifest and (near is None or _spelling(name, near) < _CLOSE):
        return _list_described_names(cause, way.noun, definitions, quotes)
    better = _diagnose_better_name(evidence, entry, cause, _Refused(command, name, way), near, definitions, quotes)
    if better is not None:
        return better
    if near is not None:
        source = "It has" if manifest and near in names else "Its list has" if near in names else "The output names"
        corrected = _correct_command(command, name, near)
        cause += f" {source} {code(near, 60)}, the nearest name."
        # The nearest name was tried and failed, so it is not the right one.
        if not evidence.was_tried(corrected) or corrected not in {command_of(each) for each in evidence.failing_calls}:
            return diagnosis(
                KIND, cause, f"Run {code(corrected, 160)} instead.", *quotes,
                check="The command must start its work instead of naming the missing one.",
            )  # fmt: skip
    # No name is near, but the existing names can be listed.
    if names:
        cause += f" It has {join_names(names, 8)}."
        step = f"Choose the {way.noun} among these that does what you need; if none does, ask the user which one is meant."
        return diagnosis(KIND, cause, step, *quotes)
    if find_nearest_recorded(evidence, name, entry) is not None or find_violations(None, evidence.text(entry)):
        return None  # the wider search has it, or it is an option's value, which the schema judges
    manifest_name = way.manifests[0] if way.manifests else None
    program = command.split()[0]
    step = (
        f"Read {manifest_name} to see which {way.noun}s there are."
        if manifest_name
        else f"Run {code(program + ' --help', 60)} to see what it knows."
    )
    return diagnosis(KIND, cause, step, *quotes, confidence="medium")


def _spelling(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()


def _list_described_names(cause: str, noun: str, known: dict[str, str], quotes: list[Quote]) -> Diagnosis:
    """Return the answer with what a list says of each name: words of a description decide less than a command."""
    shown = ", ".join(_describe(each, known) for each in list(known)[:_MOST_DESCRIBED])
    step = f"Choose the {noun} by these descriptions, not by its spelling; if none does what you need, ask the user."
    return diagnosis(KIND, f"{cause} Its list has {shown}.", step, *quotes)


class _Refused(NamedTuple):
    """A command, the name in it that is not known, and how the program said so."""

    command: str
    name: str
    way: _Way


def _diagnose_better_name(
    evidence: Evidence,
    entry: EntryView,
    cause: str,
    refused: _Refused,
    near: str | None,
    known: dict[str, str],
    quotes: list[Quote],
) -> Diagnosis | None:
    """Say which name has a definition with more of the wanted words than the name nearest in spelling, or None."""
    wanted = _list_wanted_words(evidence, refused)
    shared = {each: wanted & _words(f"{each} {body}") for each, body in known.items()}
    asked = {each: set(find_task_words(evidence, f"{each} {body}")) for each, body in known.items()}
    tried = [command_of(each) for each in evidence.failing_calls]
    done = _find_success(evidence, entry, refused, near) if near else None
    fair = [
        each
        for each in known
        if shared[each] and not (done and each == near) and _correct_command(refused.command, refused.name, each) not in tried
    ]
    best = max(fair, key=lambda each: (len(shared[each]), len(asked[each])), default="")
    spelt = 0.0 if near is None else _spelling(refused.name, near)
    # Almost the same name is a slip of the keys.
    if best in ("", near) or spelt > _SAME or (near is not None and near not in known):
        return None
    rates = sorted(((len(shared[each]), len(asked[each])) for each in fair), reverse=True)
    mine, task = (shared[near], asked[near]) if near else (set[str](), set[str]())
    more = shared[best] > mine or (shared[best] == mine and asked[best] > task)
    # Several names that do as much of it decide nothing.
    if rates[1:2] == rates[:1] or not (shared[best] - mine if done else more and (mine or not near)):
        return None
    cause += f" It has {_describe(best, known)}."
    ran = f", and was run already{clock(done.ts)}" if done else ""
    others = [each for each in known if each != best]
    cause += f" {_describe(near, known)} is nearer in spelling{ran}." if near else ""
    cause += f" It has {join_names(others, 8)} too." if others and not near else ""
    words = join_names(sorted(shared[best] - mine) or sorted(asked[best]), 3)
    step = f"Run {code(_correct_command(refused.command, refused.name, best), 160)}: its definition has {words}."
    step += "" if near else f" If it does not do what you need, choose the {refused.way.noun} among the others."
    check = "The command must start its work instead of naming the missing one."
    return diagnosis(KIND, cause, step, *quotes, check=check)


def _describe(name: str, known: dict[str, str]) -> str:
    body = " ".join(known[name].split())
    return f"{code(name, 60)} ({code(body, 70)})" if body and not ORDERS.search(body) else code(name, 60)


def _list_wanted_words(evidence: Evidence, refused: _Refused) -> set[str]:
    """Return the words of all names that were refused in this way."""
    said = [evidence.text(each) for each in evidence.tail if evidence.has_failed(each)]
    names = (group for text in said for match in refused.way.pattern.finditer(text) for group in match.groups() if group)
    return _words(" ".join((refused.name, *names)))


def _words(text: str) -> set[str]:
    return {part.casefold().rstrip("s") for part in _PART.findall(text)}


_PART = lazy_pattern(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}")
_SAME, _CLOSE, _MOST_DESCRIBED = 0.85, 0.7, 6


def _find_success(evidence: Evidence, entry: EntryView, refused: _Refused, name: str) -> EntryView | None:
    """Return the newest call of the same program with another name that worked."""
    word, program = re.compile(rf"(?<![\w:-]){re.escape(name)}(?![\w:-])"), refused.command.split()[0]
    return next(
        (
            each
            for each in evidence.entries_before(entry.index)
            if each.status == "ok"
            and command_of(each).startswith(program)
            and word.search(command_of(each))
            and not evidence.has_failed(each)
        ),
        None,
    )


_SHORTHANDS = ("test", "start", "stop", "restart")


def _correct_command(command: str, name: str, near: str) -> str:
    # `npm test` is short for `npm run test`, which other scripts need.
    is_short = name in _SHORTHANDS and "npm" in command.split() and not re.search(r"\brun(?:-script)?\b", command)
    near = f"run {near}" if is_short and near not in _SHORTHANDS else near
    return replace_word(command, name, near)


def _list_suggestions(said: str, name: str) -> Iterator[str]:
    for match in _CHOICES.finditer(said):
        yield from (word for word in _WORD.findall(match.group(1).replace(",", " ")) if word != name)
    for match in _SUGGESTED.finditer(said):
        for line in match.group(1).split("\n"):
            words = [word for word in _WORD.findall(line) if word.lower() not in ("npm", "run", "git", "cargo", "pnpm", "yarn")]
            yield from (word for word in words[:1] if word != name)


def _find_known_names(
    evidence: Evidence, way: _Way, name: str, entry: EntryView
) -> tuple[str | None, dict[str, str], list[Quote]]:
    """Return the manifest that was read, what it defines, and the quote of the line nearest to the unknown name."""
    for manifest in way.manifests:
        content = evidence.last_content(manifest, entry.index)
        if content is None:
            continue
        names = _read_definitions(manifest, content.text)
        if names:
            near = find_nearest(name, names, 0.5) or next(iter(names))
            line = find_line(content.text, near)
            return manifest, names, [evidence.quote(content.entry, line)]
    return None, *_read_help(evidence, entry)


def _read_help(evidence: Evidence, entry: EntryView) -> tuple[dict[str, str], list[Quote]]:
    """Return the names that a list of the refused program has, each with its description, and the quote of the list."""
    program = last_command(command_of(entry))[:1]
    for each in evidence.entries_before(entry.index):
        asks = any(words[:1] == program and _ASKS_LIST.search(" ".join(words)) for words in split_command(command_of(each)))
        found = _HELP.findall(evidence.text(each)[:20_000]) if asks and each.status == "ok" else []
        if len(found) >= _LEAST_COMMANDS:
            return {name: text for name, text in found[:200] if plain_name(name)}, [evidence.quote(each)]
    return {}, []


_ASKS_LIST = lazy_pattern(r" (?:--?h(?:elp)?|help|--list|list|-l|tasks|commands|run|-T|-p|targets|--summary)(?= |$)")
# `  build, b  Compile the package`, `    deploy # send it`, and npm's script with its command below it
_HELP = lazy_pattern(
    r"^ {1,8}([a-z][\w:-]{1,40})(?:, [\w-]{1,20})?(?: <[^>\n]{1,40}>| \[[^\]\n]{1,40}\]){0,4}(?: {2,40}| # |\n {4,8})"
    r"(\S[^\n]{2,200})$",
    re.MULTILINE,
)
_LEAST_COMMANDS = 2


def _read_definitions(manifest: str, text: str) -> dict[str, str]:
    """Return the first 200 names that can be called by a manifest, each with what defines it."""
    text = text[:100_000]
    if manifest in _WITH_SCRIPTS:
        found = read_scripts(text)
    else:
        matches = list(_PATTERNS.get(manifest, _TARGET).finditer(text))
        ends = [*(match.start() for match in matches[1:]), len(text)]
        found = {
            name: text[match.end() : end][:_MOST_DEFINITION].strip()
            for match, end in reversed(list(zip(matches, ends, strict=False)))
            for name in match.groups()
            if name
        }
        found = dict(reversed(found.items()))
    return {name: body for name, body in list(found.items())[:200] if plain_name(name)}


_MOST_DEFINITION = 300
