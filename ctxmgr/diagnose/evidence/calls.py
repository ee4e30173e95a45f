"""Read a call: its command, its file and its edit under any client's names for these, and whether its result reports a failure.

The status alone does not tell that: a pipe hides exit codes, and servers refuse in words.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, cast

from ctxmgr.detect.step import reported_exit_code
from ctxmgr.detect.text import vocabulary
from ctxmgr.detect.text.fingerprints import canonical
from ctxmgr.diagnose.evidence.texts import clean, clip, clip_middle, clock, code, strip_wrapper, text_of
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.view import EntryView

_COMMANDS = ("command", "cmd", "script")
_PATHS = ("file_path", "filePath", "absolute_path", "path", "target_file", "filename", "file", "notebook_path")
_OLD = ("old_string", "old_str", "oldString", "oldText", "old_text", "search", "find")
_NEW = ("new_string", "new_str", "newString", "newText", "new_text", "replace")
_CONTENT = ("content", "file_text", "contents", "text")
FOLDER_FIELDS = ("workdir", "cwd", "working_directory", "directory")
"""Fields of a call that name the folder in which it runs."""
_TELLING = ("pattern", "query", "url", "prompt", "name", "description")
EDITOR_VERBS = ("view", "create", "str_replace", "insert", "undo_edit")
"""Values that editing tools have in a field named "command". A tuple, because a recorded value may have any type."""
_MOST_COMMAND, _MOST_QUESTION = 4_000, 2_000
_MOST_WORDS = 80
_KEPT = 1_000
"""Number of commands whose words are cached."""
_MOST_BLANKS = 2
# `/bin/bash -lc 'make test'` runs the text between the quotes.
_WRAPPER = lazy_pattern(r"^(?:/\S{0,60}/)?(?:bash|sh|zsh)\s+-l?c\s+(['\"])(.*)\1$", re.DOTALL)
_PART = lazy_pattern(r"&&|\|\||;|\||\n")
_PATH_WORDS = lazy_pattern(r"(?:\[[\w.-]{1,60}\]|\([\w.-]{1,60}\)|[\w@+=~%./:, -])+")
_TOOL = lazy_pattern(r"[A-Za-z][\w.:-]{0,59}")
# Cline's `------- SEARCH` to `+++++++ REPLACE`, Aider's `<<<<<<< SEARCH` to `>>>>>>> REPLACE`
_SEARCH_BLOCK = lazy_pattern(r"^[-<]{5,9} SEARCH\n(.*?)\n?^={5,9}\n(.*?)\n?^[+>]{5,9} REPLACE", re.MULTILINE | re.DOTALL)
_QUOTED = lazy_pattern(r"'[^']*'|\"[^\"]*\"")
_ASSIGNED = lazy_pattern(r"[A-Za-z_]\w*=\S*")
_MOST_TEXT, _MOST_PARTS = 20_000, 400
CHECKS = lazy_pattern(
    r"\b(?:pytest|py\.test|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|playwright|cypress)\b"
    r"|\b(?:go|cargo|mvn|gradle|gradlew|npm|yarn|pnpm|bun|make|dotnet|mix|rake|rails|bazel|deno"
    r"|just)(?: run)?(?: -\S+)* (?:\S*test|check|verify|spec)"
)
_ASKS_SERVER = lazy_pattern(r"(?:curl|wget -\S*O-|http GET)\b[^|;&>]{0,2000}$")
_SENDS = lazy_pattern(r"\s(?:-X|--request|-d|--data\S*|-F|--form|-T|--upload-file|-o|-O|--output|--json)\b")
_FILTERS = frozenset(("cd", "head", "tail", "grep", "cut", "tr", "wc", "sort", "uniq", "tee", "sleep", "echo", "true"))


class Change(NamedTuple):
    """One replacement in a file. ``old`` is empty if a text is only added; ``name`` is the tool's name for it."""

    old: str
    new: str
    name: str = "the text it replaces"


def fields_of(entry: EntryView) -> dict[str, Any]:
    """Return an entry's input as an object; empty if it is none."""
    return cast("dict[str, Any]", entry.input) if isinstance(entry.input, dict) else {}


def command_of(entry: EntryView) -> str:
    """Return the shell command that an entry ran, or "". A list of words is joined as a shell would join it."""
    value: Any = entry.input if vocabulary.is_shell(entry.action) else None
    fields = fields_of(entry)
    for name in _COMMANDS:
        if name in fields:
            value = fields[name]
            break
    if isinstance(value, list):
        words = [str(word)[:_MOST_COMMAND] for word in cast("list[Any]", value)[:_MOST_WORDS]]
        # The third word of the list is the command in `bash -c COMMAND`.
        value = words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else shlex.join(words)
    # Editing tools name their verbs "command".
    if not isinstance(value, str) or value in EDITOR_VERBS:
        return ""
    text = value[:_MOST_COMMAND].strip()
    wrapped = _WRAPPER.match(text)
    return wrapped.group(2) if wrapped else text


def split_command(command: str) -> list[list[str]]:
    """Return the commands within a command, each as words, without leading assignments and redirections."""
    return [list(words) for words in _split_command(command)]


@lru_cache(_KEPT)  # each failure class asks for the same calls
def _split_command(command: str) -> tuple[tuple[str, ...], ...]:
    found: list[tuple[str, ...]] = []
    for part in _PART.split(command)[:20]:
        try:
            words = shlex.split(part[:_MOST_COMMAND])[:_MOST_WORDS]
        # An unclosed quote: the command was cut within it, or a quoted character looked like the end of a part.
        except ValueError:
            words = part.split()[:_MOST_WORDS]
        # The program is the word after these.
        while words and (_ASSIGNED.fullmatch(words[0]) or words[0] in ("sudo", "env", "time", "exec")):
            words = words[1:]
        words = [word for word in words if not re.match(r"\d?[<>]", word)]
        if words:
            found.append(tuple(words))
    return tuple(found)


def runs_in_background(command: str) -> bool:
    """Whether a command leaves something running."""
    bare = _QUOTED.sub("''", command)
    # An ampersand after `>` or beside another one joins streams or commands.
    return re.search(r"(?<![&>|])&(?![&>\d])|\b(?:nohup|setsid|disown)\b|\s--?d(?:etach|aemon)?\b", bare) is not None


def path_of(entry: EntryView) -> str | None:
    """Return the file in a call's own field, or None."""
    fields = fields_of(entry)
    for name in _PATHS:
        value = fields.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()[:1_000]
    return None


def list_changes(entry: EntryView) -> list[Change]:
    """Return the replacements that a call of an editing tool asks for; empty for other calls."""
    fields = fields_of(entry)
    edits = fields.get("edits")
    asked = cast("list[Any]", edits)[:50] if isinstance(edits, list) else []
    found: list[Change] = []
    for each in [fields, *(cast("dict[str, Any]", edit) for edit in asked if isinstance(edit, dict))]:
        old = next((name for name in _OLD if isinstance(each.get(name), str)), None)
        new = next((name for name in _NEW if isinstance(each.get(name), str)), None)
        if old is not None and new is not None:
            found.append(Change(each[old], each[new], f"its {old}"))
    if not found and isinstance(diff := fields.get("diff"), str) and path_of(entry):
        found = [Change(old, new, "its SEARCH block") for old, new in _SEARCH_BLOCK.findall(diff[:200_000])]
    return found


_FILE, _HERE = r"(?P<path>[^\s<>|;&'\"$*]{1,200})", r"<<-?\s*['\"]?(?P<end>\w{1,40})['\"]?"
_WRITES_FILE = tuple(
    lazy_pattern(
        rf"\s*(?:(?:cd|mkdir -p) [^\s;&|]{{1,200}} ?(?:&&|;|\n) ?){{0,3}}{begin}[^\S\n]*\n(?P<text>.*?)\n?(?P=end)\s*",
        re.DOTALL,
    )
    for begin in (
        rf"cat\s*>(?P<more>>)?\s*{_FILE}\s*{_HERE}", rf"cat\s*{_HERE}\s*>(?P<more>>)?\s*{_FILE}",
        rf"tee (?P<more>-a )?{_FILE}\s*(?:>\s*/dev/null\s*)?{_HERE}",
    )
)  # fmt: skip


def find_written_file(entry: EntryView) -> tuple[str, str | None] | None:
    """Return the file that a command does nothing but write, `cat > app.py <<'EOF'`, and its content; None if it adds to it."""
    command = command_of(entry)
    match = next(filter(None, (form.fullmatch(command) for form in _WRITES_FILE)), None) if "<<" in command else None
    return None if match is None else (match.group("path"), None if match.group("more") else match.group("text"))


def written_content(entry: EntryView) -> str | None:
    """Return the whole content that a call writes to its file, or None."""
    if (written := find_written_file(entry)) is not None:
        return written[1]
    fields = fields_of(entry)
    # Only the verb "create" of an editing tool writes a whole file. Other verbs only name the place.
    if path_of(entry) is None or list_changes(entry) or fields.get("command") not in (None, "create"):
        return None
    content = next((fields[name] for name in _CONTENT if isinstance(fields.get(name), str)), None)
    words = set(re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", entry.action[:80]))
    # A tool that sends a text and names a file may only attach the file.
    makes = {word.lower() for word in words} & {"write", "create", "save"} or fields.get("command") == "create"
    return content if makes else None


def tool_phrase(entry: EntryView) -> str:
    """Return the name of a call's tool for a reader. A text that is no name is not passed on."""
    return entry.action if _TOOL.fullmatch(entry.action) else "tool"


_CHANGES_FOLDER, _LONG, _LONGEST_PATH = lazy_pattern(r"^cd \S+ (?:&&|;) (?=\S)"), 60, 90


def subject(entry: EntryView, name: Callable[[str], str] | None = None) -> str:
    """Return a call in words for a reader: "`npm test`", "Read of app.py", "Grep of `name`"."""
    command = command_of(entry)
    if command:
        plain = " ".join(command.split())
        # The folder says least in a long command: many clients begin each command with it.
        return code(_CHANGES_FOLDER.sub("", plain) if len(plain) > _LONG else plain, 80)
    action = tool_phrase(entry)
    patched = patched_paths(entry)
    path = path_of(entry) or (patched[0] if patched else None)
    fields = fields_of(entry)
    if path and is_readable(path):
        place = (name or short_path)(path)
        # What is searched for says more than the folder.
        pattern = fields.get("pattern")
        return f"{action} of {code(pattern, 60)} in {place}" if isinstance(pattern, str) and pattern else f"{action} of {place}"
    subject_field = next((fields[name] for name in _TELLING if isinstance(fields.get(name), str) and fields[name]), None)
    subject_field = entry.input if subject_field is None and isinstance(entry.input, str) and entry.input else subject_field
    return f"{action} of {code(subject_field, 60)}" if isinstance(subject_field, str) else f"{action} call"


def call_phrase(entry: EntryView, room: int = 90, article: str = "The") -> str:
    """Return a call as the beginning of a sentence: its command as a quote, else "The Read call"."""
    command = command_of(entry)
    return code(command, room) if command else f"{article} {tool_phrase(entry)} call"


def question_of(entry: EntryView) -> str:
    """Return the first line of what a call asks a person."""
    fields = fields_of(entry)
    asked = fields.get("questions") or fields.get("question") or fields.get("message") or entry.input
    return text_of(asked, _MOST_QUESTION).split("\n")[0].strip()


def folder_of(entry: EntryView) -> str:
    """Return the folder that a call names for itself, by `cd` or in a field, or ""."""
    moved = [words[1] for words in split_command(command_of(entry)) if words[0] == "cd" and len(words) > 1]
    fields = fields_of(entry)
    return moved[-1] if moved else next((str(fields[name]) for name in FOLDER_FIELDS if isinstance(fields.get(name), str)), "")


def is_readable(path: str) -> bool:
    """Whether a path may be part of a sentence. A name of many words could be read as text."""
    return path.count(" ") <= _MOST_BLANKS and _PATH_WORDS.fullmatch(path[:1_000]) is not None


def short_path(path: str) -> str:
    """Return a path for a reader, clean. A long one is shortened to its last three parts, and shows that it is."""
    whole = clean(path[:1_000]).replace("\n", " ").replace("`", "'").rstrip("/")
    parts = whole.split("/")
    # The last parts alone would look like a path that may not exist.
    return whole if len(whole) <= _LONGEST_PATH or len(parts) <= 4 else clip(f"…/{'/'.join(parts[-3:])}", 100)


def same_file(one: str, other: str) -> bool:
    """Whether two paths may name one file: they are equal, or one is the end of the other."""
    first, second = one.strip().removeprefix("./").rstrip("/"), other.strip().removeprefix("./").rstrip("/")
    return bool(first and second) and (first == second or first.endswith(f"/{second}") or second.endswith(f"/{first}"))


_PATCH_FILE = lazy_pattern(r"^\*\*\* (?:Update|Add|Delete) File: (.{1,400})$", re.MULTILINE)


def find_patch(entry: EntryView) -> str:
    """Return the patch that a call applies, in the form that starts with ``*** Begin Patch``, or ""."""
    fields = fields_of(entry)
    texts: list[Any] = [entry.input, *(fields.get(name) for name in ("input", "patch", "diff", *_COMMANDS))]
    for text in texts:
        if isinstance(text, list):
            text = next((each for each in cast("list[Any]", text) if isinstance(each, str) and "*** Begin Patch" in each), None)
        if isinstance(text, str) and "*** Begin Patch" in text:
            return text[text.index("*** Begin Patch") :][:200_000]
    return ""


def patched_paths(entry: EntryView) -> list[str]:
    """Return the files that a call's patch names, in its order."""
    patch = find_patch(entry)
    if patch:
        return [path.strip() for path in _PATCH_FILE.findall(patch)[:50]]
    command = command_of(entry)
    return [path for path, _ in diff_changes(command)] if _APPLIES.search(command) else []


def edited_paths(entry: EntryView) -> list[str]:
    """Return the files that an editing tool's call, a patch or `cat > FILE <<` changes; empty for any other call."""
    if (written := find_written_file(entry)) is not None:
        return [written[0]]
    own = path_of(entry)
    return [own] if own and (list_changes(entry) or written_content(entry) is not None) else patched_paths(entry)


_APPLIES = lazy_pattern(r"\bgit (?:-\S+ )*(?:apply|am)\b|\bpatch\b(?!\.)")
_DIFF_FILE = lazy_pattern(r"^\+\+\+ (?:b/)?([^\t\n]{1,300})", re.MULTILINE)


def diff_changes(text: str) -> list[tuple[str, Change]]:
    """Return the replacements in a unified diff, one for each hunk, each with its file."""
    if "\n@@" not in text or "+++ " not in text:
        return []
    found: list[tuple[str, Change]] = []
    path, old, new = "", list[str](), list[str]()

    def close() -> None:
        if path and (old or new):
            found.append((path, Change("\n".join(old), "\n".join(new), "the text its hunk replaces")))
        old.clear()
        new.clear()

    inside = False
    lines = text[:200_000].split("\n")
    for place, line in enumerate(lines):
        named = _DIFF_FILE.match(line)
        # A line of a file header ends the hunk before it.
        if line.startswith("diff --git") or ((named or line.startswith("--- ")) and not (inside and _is_content(lines, place))):
            close()
            inside = False
            path = named.group(1).strip() if named is not None else path
        elif line.startswith("@@"):
            close()
            inside = True
        elif inside and line[:1] in ("-", "+", " "):
            old += [line[1:]] if line[0] != "+" else []
            new += [line[1:]] if line[0] != "-" else []
        # A line that belongs to no diff ends the hunk.
        elif inside and line.strip():
            inside = False
    close()
    return found


def _is_content(lines: list[str], place: int) -> bool:
    """Whether a line of a hunk that looks like a file header is a removed or added line: `--- old` is a comment in SQL."""
    head = lines[place : place + 3]
    behind = head[1:] if head[0].startswith("+++ ") else head[2:] if head[1:2] and head[1].startswith("+++ ") else []
    return not behind or not behind[0].startswith("@@")


def patch_changes(entry: EntryView, path: str) -> list[Change]:
    """Return the replacements in a file that a call's patch asks for, one for each hunk."""
    patch = find_patch(entry)
    if not patch and _APPLIES.search(command_of(entry)):
        return [change for named, change in diff_changes(command_of(entry)) if same_file(named, path)]
    found: list[Change] = []
    is_file = False
    hunk: list[str] = []
    for line in [*patch.split("\n"), "*** End Patch"]:
        if not line.startswith(("*** ", "@@")):
            hunk.append(line)
            continue
        change = _hunk_change(hunk)
        if is_file and change is not None:
            found.append(change)
        hunk = []
        if line.startswith("*** "):
            named = _PATCH_FILE.match(line)
            is_file = named is not None and same_file(named.group(1), path)
    return found


def _hunk_change(lines: list[str]) -> Change | None:
    # An empty line within a hunk has lost its leading space.
    old = [line[1:] for line in lines if line[:1] in ("-", " ", "")]
    new = [line[1:] for line in lines if line[:1] in ("+", " ", "")]
    return Change("\n".join(old), "\n".join(new)) if old or new else None


def call_key(entry: EntryView) -> str:
    """Return a key that is equal for entries with the same call."""
    return f"{entry.action}\n{canonical(entry.input)}"


def call_input(entry: EntryView) -> str:
    """Return the input of a call as one bounded text."""
    return text_of(entry.input, _MOST_TEXT) if isinstance(entry.input, str | list) else _flatten(entry.input)


def _flatten(value: Any) -> str:
    parts: list[str] = []
    waiting: list[Any] = [value]
    room = _MOST_PARTS
    while waiting and room > 0:
        item = waiting.pop()
        room -= 1
        if isinstance(item, dict):
            waiting += list(cast("dict[str, Any]", item).values())[:100]
        elif isinstance(item, list):
            waiting += cast("list[Any]", item)[:100]
        elif isinstance(item, str):
            parts.append(item[:_MOST_TEXT])
    return "\n".join(reversed(parts))


def input_text(entry: EntryView) -> str:
    """Return a call's input as text; the name of the argument is left out if there is only one text."""
    fields = fields_of(entry)
    return flat_text(next(iter(fields.values())) if len(fields) == 1 else entry.input)


def flat_text(value: Any) -> str:
    """Return a JSON value as a reader would write it: texts unquoted, members as ``name: value``."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if fields.keys() <= {"type", "text"}:
            return str(fields.get("text", ""))
        return ", ".join(f"{name}: {_short(item)}" for name, item in list(fields.items())[:12])
    if isinstance(value, list):
        items = cast("list[Any]", value)[:12]
        return "\n".join(flat_text(item) if isinstance(item, dict | str) else _short(item) for item in items)
    return "" if value is None else str(value)[:200]


def _short(value: Any) -> str:
    return clip_middle(value, 400) if isinstance(value, str) else clip_middle(str(value), 200)


def program_name(entry: EntryView) -> str:
    """Return the program that a command runs last, else the name of the tool."""
    words = last_command(command_of(entry))
    return words[0].rpartition("/")[2] if words else entry.action


def last_command(command: str) -> list[str]:
    """Return the words of the last command within a command that is no filter, or []. A filter at the end is not what fails."""
    return next((words for words in reversed(split_command(command)) if words[0] not in _FILTERS), list[str]())


def may_change(entry: EntryView) -> bool:
    """Whether an action may change files or the like. A command is judged by the program it runs."""
    fields = fields_of(entry)
    verb = next((value for name in ("action", "operation") if isinstance(value := fields.get(name), str)), "")
    command = command_of(entry)
    # A request to a server that sends no data changes nothing.
    if command and _ASKS_SERVER.match(command) and not _SENDS.search(command):
        return False
    writes = "<<" in command and _WRITES_HERE.search(command) is not None
    return writes or vocabulary.classify(entry.action, verb, command) == "mutation"


_WRITES_HERE = lazy_pattern(
    r"(?:^|[;&|])\s*(?:cat|tee)\b(?:[^\n|]{0,200}>\s*[^\n]{1,200}<<|[^\n|]{0,200}<<[^\n]{1,60}>)", re.MULTILINE
)
"""A command that writes what stands in it into a file."""
_LOOKS = frozenset(("query", "poll", "sleep"))
SILENT = frozenset(("think", "say", "respond", "TodoWrite"))
"""Calls that neither look at anything nor change it."""


# Options and verbs by which a program that looks, or a test, writes something; what a substitution runs is not read
_ALTERS = lazy_pattern(
    r"\s-(?:delete|exec\w*|ok|okdir|fprint\w*)\b|^env\s+\S*=|^date\s+-s|^sort\b.*\s-o|\$\(|`"
    r"|^git (?:\S+ )*?(?:branch|remote)\s+(?!-[arv]+(?:\s|$)|--(?:list|all|show)|show\b|get-url\b)\S"
    r"|\b(?:install|uninstall|add|remove|upgrade|update|init)\b|--(?:fix|write|snapshot-update|updateSnapshot|in-place)\b"
)
# `python3 -c 'import time; time.sleep(20)'`
_PAUSES = lazy_pattern(
    r"python3? -c (['\"])(?:\s*(?:import time|from time import sleep|(?:time\.)?sleep\([\d.]{1,9}\)"
    r"|print\([^()\n;>]{0,200}\))\s*;?){1,9}\1"
)
_OPENS = lazy_pattern(r"(?i:^(?:open|log|visit|check_?in|check_?out))(?![a-z])|(?i:navigate|goto)")
_WRITES_ROWS = lazy_pattern(
    r"(?i)\b(?:insert\s+into|update\s+\S+\s+set|delete\s+from|merge\s+into|replace\s+into|(?:drop|alter|create|truncate|grant|call)\s+\w)"
)


def only_looks(entry: EntryView) -> bool:
    """Whether a call surely changes nothing but an agent's own notes: it reads, asks, waits, or runs a test.

    False is no proof of a change: nobody can tell what a tool of an unknown name does, or a program.
    """
    if entry.action in SILENT:
        return True
    if command := command_of(entry):
        if _PAUSES.fullmatch(command):
            return True
        parts = [part.strip() for part in _PART.split(command) if part.strip()]
        asks = _ASKS_SERVER.match(command) is not None and not _SENDS.search(command)
        return asks or all(_part_looks(part) for part in parts)
    fields = fields_of(entry)
    sends = str(fields.get("method", "GET")).upper() not in ("GET", "HEAD") or bool(fields.get("chars"))  # keys for a terminal
    if may_change(entry) or sends or _OPENS.search(entry.action) or _WRITES_ROWS.search(call_input(entry)):
        return False
    return vocabulary.classify(entry.action, "", "") in _LOOKS


def _part_looks(part: str) -> bool:
    kind = vocabulary.classify("", "", part)
    return not _ALTERS.search(part) and (kind in _LOOKS or (kind == "other" and CHECKS.search(part) is not None))


def start_clause(entry: EntryView) -> str:
    """Return the start time of a call as a clause, ", started at 12:03,", or ""."""
    return f", started{clock(entry.ts)}," if clock(entry.ts) else ""


_EXIT = lazy_pattern(r"\b(?:exit(?:ed with)?(?: exit)?(?: code| status)|returncode|exit_code)\W{1,4}(\d{1,3})\b", re.IGNORECASE)
# The first line of an answer, a field `"status": 404`, or a lone `404`, as printed by `curl -w '%{http_code}'`
_HTTP = lazy_pattern(
    r"^(?:< )?HTTP(?:/[\d.]{1,3})?[ :=]{1,3}[45]\d\d\b|^\s{0,4}[\"']?(?:http_?)?(?:status"
    r"|code)(?:_?code)?[\"']?\s{0,2}[:=]\s{0,2}[45]\d\d\b|^[45]\d\d$"
    r"|^\s{0,4}\{\s{0,4}\"(?:status|code|statusCode)\"\s{0,2}:\s{0,2}[45]\d\d\b",
    re.MULTILINE | re.IGNORECASE,
)
_REFUSAL = lazy_pattern(
    r"\A\s{0,4}[\[{].{0,300}?\"(?:error|errors|error_code|errorMessage|fault|exception)\"\s{0,2}:"
    r"(?!\s{0,2}(?:null|false|\[\s?\]|\{\s?\}|\"\"|0\b))"
    r"|\A\s{0,4}\{.{0,200}?\"(?:isError|is_error|failed)\"\s{0,2}:\s{0,2}true"
    r"|\A\s{0,4}\{\s{0,4}\"(?:detail|message|msg|title)\"\s{0,2}:\s{0,2}(?:\[|\"[^\"\n]{0,200}(?:not found|invalid"
    r"|required|denied|unauthori[sz]ed|forbidden|must be|unknown|no such|not allowed|failed))"
    r"|\A\s{0,4}\{.{0,200}?\"(?:ok|success|successful)\"\s{0,2}:\s{0,2}false"
    r"|\A\s{0,4}\{.{0,80}?\"(?:status|result|outcome)\"\s{0,2}:\s{0,2}\"(?:error|fail(?:ed|ure)?|rejected|refused"
    r"|denied|invalid)\"",
    re.DOTALL | re.IGNORECASE,
)
# In this order: TAP, Go, pytest, Gradle, Python, git and Go, npm, compilers, make and ninja, shells, exceptions,
# the summary of pytest, curl, the editor of SWE-agent
_REPORT = lazy_pattern(
    r"^(?:not ok \d|--- FAIL|FAILED\b|FAIL(?:URE)?[:!]|BUILD FAILED|Traceback \(most recent call last\)|(?:fatal"
    r"|panic): |npm (?:ERR!|error)"
    r"|\s{0,4}(?:\S{1,200}:\d{1,6}:(?:\d{1,5}:)? )?(?:fatal )?error(?:\[\w{1,12}\])?: |(?:g?make"
    r"|ninja)(?:\[\d\])?: (?:\*\*\*|error|build stopped)"
    r"|(?:/\S{0,60}/)?(?:ba|z|da|k)?sh: (?:line \d{1,5}: |\d{1,5}: )|(?:\w{1,40}\.){0,6}\w{0,40}(?:Error|Exception): "
    r"|={3,}.{0,80}\b[1-9]\d{0,5} (?:failed|errors?)\b|curl: \(\d"
    r"|Your (?:proposed edit has introduced|changes have NOT been applied))",
    re.MULTILINE,
)
_SAYS_ERROR = lazy_pattern(r"\A\W{0,4}(?:error|failure|failed)[:!] ", re.IGNORECASE)
"""The beginning of a tool's answer that says that it failed."""
_SHOWS = word_set(
    "cat head tail less more sed grep rg ag awk ls find tree git diff wc sort uniq echo printf jq nl bat strings journalctl "
    "stat file history sleep date pwd env which type"
)
"""Programs that show what others have recorded. An error in their output is not their own."""
_COUNTED = lazy_pattern(r"(?: {2,6}\d{1,6} [1-5]\d\d\n?){0,8} {2,6}\d{1,6} [45]\d\d\n?(?: {2,6}\d{1,6} [45]\d\d\n?){0,8}")
"""HTTP status codes as `uniq -c` counts them, with refusals at the end."""
_HEAD = 20_000
ENDED = lazy_pattern(
    r"\b(?:ImagePullBackOff|ErrImagePull|CrashLoopBackOff|OOMKilled|InvalidImageName|CreateContainerConfigError"
    r"|FailedScheduling|Evicted|manifest unknown|\d+/\d+ +(?:Init:)?(?:Error|Unknown|Completed"
    r"|ContainerStatusUnknown)"
    r"|ROLLBACK_\w{4,20}|(?:CREATE|UPDATE|DELETE)_FAILED|exit(?:ed)?(?: with)?(?: exit| error)?(?: status| code)[ "
    r"=:]{0,2}[1-9]\d{0,2}|Exited \([1-9]\d{0,2}\)"
    r"|(?:was |been |got |is )?(?:killed|aborted|crashed|terminated|cancelled)\b|no such (?:table|column|file|host"
    r"|image)[: ]{0,2}[\w./-]{0,60}|oom-kill|Killed process|segmentation fault|core dumped|out of memory"
    r"|Traceback|(?:fatal|FATAL|panic)\b|No space left on device|connection refused|permission denied|gave up"
    r"|giving up|BackoffLimitExceeded|DeadlineExceeded"
    r"|[Ff]ailed to \w{3,15}|(?:[Ss]tatus|[Ss]tate|[Rr]esult|[Cc]onclusion)\W{1,4}(?:failed|failure|error|dead"
    r"|cancelled)|\w{0,30}(?:Error|Exception)(?=:|$)"
    r"|(?:import|job|build|run|task|upload|export|migration|deploy\w*|sync|backup|worker|process"
    r"|pipeline)\b[^\n]{0,30}\b(?:failed|died|stopped))"
)
"""Messages about a job, a process or a service that has failed and will not go on."""


def reports_failure(entry: EntryView, text: str) -> bool:
    """Whether a finished call failed, by its status, its exit code, or a text in a form that only failures have.

    Args:
        entry: the call.
        text: the text of its result.
    """
    if entry.status in ("error", "denied"):
        return True
    if entry.status != "ok":
        return False
    output = cast("dict[str, Any]", entry.output) if isinstance(entry.output, dict) else {}
    # Some clients put the code beside the output, others into an object of their own.
    if any(reported_exit_code(holder) for holder in (output, output.get("metadata"))):
        return True
    command = command_of(entry)
    if not command:
        return (
            # The content of a file may hold any words.
            path_of(entry) is None
            and vocabulary.classify(entry.action, "", "") != "sleep"
            and (
                _REFUSAL.search(text[:2_000]) is not None
                or _SAYS_ERROR.match(text) is not None
                or _REPORT.match(strip_wrapper(text[:2_000]).strip()) is not None
            )
        )
    # Clients put the exit code before or after the output. Within the output, it may be part of the content.
    exits = _EXIT.findall(text[:200]) + _EXIT.findall(text[-200:])
    # If several commands were run, the last exit code counts.
    if exits and exits[-1] != "0":
        return True
    # A format that prints only the status ends the output with it.
    if "http_code" in command and re.search(r"[45]\d\d\s{0,4}\Z", text):
        return True
    said = strip_wrapper(text[:_HEAD])
    if _COUNTED.fullmatch(said.strip("\n")):
        return True
    # These show the output of other programs.
    if all(words[0].rpartition("/")[2] in _SHOWS for words in split_command(command)[:1]):
        return False
    return any(pattern.search(said) is not None for pattern in (_REPORT, _HTTP, _REFUSAL))
