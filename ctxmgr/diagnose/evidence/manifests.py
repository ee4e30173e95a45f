"""What the manifests that were read define: scripts and targets with their commands, and which of them makes a file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ctxmgr.diagnose.evidence.calls import command_of, path_of, split_command
from ctxmgr.diagnose.evidence.texts import plain_name
from ctxmgr.text.patterns import lazy_pattern

if TYPE_CHECKING:  # `session` imports modules beside this one
    from ctxmgr.diagnose.evidence.session import Evidence

_SCRIPT = lazy_pattern(r"\"([\w:.@/-]{1,60})\"\s*:\s*\"((?:[^\"\\\n]|\\.){0,400})")
_RULE = lazy_pattern(r"^([A-Za-z][\w./-]{0,59})\s*:(?![=:])([^\n]{0,200}(?:\n\t[^\n]{0,200}){0,8})", re.MULTILINE)
_BUILD = lazy_pattern(r"(?:build|compile|transpile|bundle|dist|prepare|all)(?:[:-][\w:-]{1,30})?$")
_NO_BUILD = lazy_pattern(r"(?:pre|post)?(?:start|serve|test|dev|clean|lint|watch|format|check|publish|deploy|prettier)")
_REMOVES = lazy_pattern(r"\s*(?:rm|rimraf|del|shx rm|git clean)\b[^&|;\n]*$")
_MOST_TEXT = 100_000


def read_scripts(text: str) -> dict[str, str]:
    """Return the scripts, or tasks, of a package.json or a file like it, each with its command."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        start = text.find('"scripts"')
        return dict(_SCRIPT.findall(text[start : start + 8_000])) if start >= 0 else {}
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    scripts = fields.get("scripts") or fields.get("tasks")
    return {str(name): str(body) for name, body in cast("dict[str, Any]", scripts).items()} if isinstance(scripts, dict) else {}


def find_build_command(evidence: Evidence, made: str, before: int) -> tuple[str | None, bool]:
    """Return the command that makes a file by a manifest that was read, and whether any manifest was read.

    A script that names the file or its folder comes before one that is only named like a build.
    """
    folder, name = made.removeprefix("./").partition("/")[0], made.rpartition("/")[2]
    parts = rf"{re.escape(folder)}/?(?![\w./-])|(?:[\w.-]{{1,40}}/)*{re.escape(name)}(?!\w)"
    makes = re.compile(rf"(?<![\w./-])(?:\./)?(?:{parts})")
    found: list[tuple[int, str]] = []
    read: dict[str, dict[str, str]] = {}
    for manifest in ("package.json", "Makefile"):
        read |= _read_manifests(evidence, manifest, before)
    for path, scripts in read.items():
        for script, body in scripts.items():
            rank = 0 if makes.search(body) or script in (folder, made) else 1 if _BUILD.match(script) else 2
            if rank < 2 and plain_name(script) and not _NO_BUILD.match(script) and not _REMOVES.match(body):
                # The same script at the root starts that of each package.
                above = any(script in names and _is_above(other, path) for other, names in read.items())
                folder = "" if above or path.startswith("/") else path.rpartition("/")[0]
                found.append((rank, _run_command(folder, script, make=path.endswith("Makefile"))))
    return min(found, key=lambda each: each[0])[1] if found else None, bool(read)


class Step(NamedTuple):
    """A line that a script or target runs: its name, the line, and the manifest."""

    name: str
    line: str
    manifest: str


def list_steps(evidence: Evidence, command: str, before: int) -> list[Step]:
    """Return what a command runs by the manifests that were read: first what comes before its target, then that itself."""
    found: list[Step] = []
    for words in split_command(command):
        program = words[0].rpartition("/")[2]
        is_make = program in ("make", "gmake")
        named = [word for word in words[1:] if not word.startswith("-") and "=" not in word and word not in _RUN_VERBS]
        if not is_make and program not in _RUNNERS:
            continue
        for path, scripts in _read_manifests(evidence, "Makefile" if is_make else "package.json", before).items():
            asked = (named if is_make else named[:1]) or list(scripts)[:1]
            found += [
                Step(name, line, path) for each in asked for name, line in _list_lines(scripts, each, set(), make=is_make)
            ]
    return found


_RUNNERS = ("npm", "pnpm", "yarn", "bun")
_RUN_VERBS = ("run", "run-script")
_NESTED = lazy_pattern(r"\b(?:npm|pnpm|yarn|bun)(?: -\S+)* (?:run )?([\w:.-]{1,60})")


def _list_lines(scripts: dict[str, str], name: str, seen: set[str], *, make: bool) -> Iterator[tuple[str, str]]:
    """Yield the lines of a target with those of what it needs, or of a script with those of the scripts that it runs."""
    if name in seen or name not in scripts or len(seen) >= _MOST_NEEDED:
        return
    seen.add(name)
    head, _, body = scripts[name].partition("\n") if make else ("", "", scripts[name])
    needed = head.partition("#")[0].split() if make else [f"pre{name}", *_NESTED.findall(body)]
    for each in needed:
        yield from _list_lines(scripts, each, seen, make=make)
    yield from ((name, text) for line in body.split("\n") if (text := line.strip().lstrip("@-").strip()))


_MOST_NEEDED = 12


def _is_above(one: str, other: str) -> bool:
    """Whether a manifest lies in a folder above that of another one."""
    folder, below = one.rpartition("/")[0], other.rpartition("/")[0]
    return folder != below and (not folder or below.startswith(f"{folder}/"))


def _run_command(folder: str, script: str, *, make: bool) -> str:
    if make:
        return f"make -C {folder} {script}" if folder else f"make {script}"
    return f"npm --prefix {folder} run {script}" if folder else f"npm run {script}"


def _read_manifests(evidence: Evidence, name: str, before: int) -> dict[str, dict[str, str]]:
    """Return the manifests with this name that were read whole, each with its scripts or rules."""
    found: dict[str, dict[str, str]] = {}
    for entry in evidence.entries_before(before):
        words = [path_of(entry) or "", *(word for part in split_command(command_of(entry)) for word in part[1:])]
        for word in words:
            path = evidence.relative_path(word)
            if word.rpartition("/")[2] != name or path in found or not plain_name(path):
                continue
            content = evidence.last_content(word, entry.index + 1)
            if content is not None and content.whole:
                text = content.text[:_MOST_TEXT]
                found[path] = read_scripts(text) if name == "package.json" else dict(_RULE.findall(text))
    return found
