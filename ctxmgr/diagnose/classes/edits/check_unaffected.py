"""A check keeps its outcome through edits because it does not see them.

It uses a copy, an old build, or a cached result, or the edits are taken back before it runs.
"""

from __future__ import annotations

import re

from ctxmgr.detect.text.fingerprints import mask_volatile
from ctxmgr.diagnose.classes.edits.order_dependent import diagnose_order
from ctxmgr.diagnose.evidence import Evidence, clock
from ctxmgr.diagnose.evidence.calls import command_of, edited_paths, list_changes, path_of, same_file, split_command
from ctxmgr.diagnose.evidence.files import is_file_name
from ctxmgr.diagnose.evidence.manifests import find_build_command
from ctxmgr.diagnose.evidence.texts import code, first_group, how_often, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "testUnaffected"

_FRAME = lazy_pattern(r"File \"([^\"\n]{1,300})\"|(?:^|[\s(])((?:/|\.{0,2}/)?[\w@./+-]{1,300}\.\w{1,5}):\d{1,6}", re.MULTILINE)
# Go says `(cached)`, make `Nothing to be done`, ninja `no work to do`, Turbo `FULL TURBO`, Gradle `UP-TO-DATE`, Docker `CACHED`
_CACHED = lazy_pattern(
    r"^.{0,200}?(\(cached\)|\b(?:nothing to be done|is up to date|already up[- ]to[- ]date|from cache|cache hit|FULL TURBO"
    r"|no work to do|UP-TO-DATE|CACHED)\b)",
    re.MULTILINE | re.IGNORECASE,
)
# In the words of pytest, unittest, Jest, Go and cargo
_NONE_RUN = lazy_pattern(
    r"^.{0,80}?\b(no tests ran|ran 0 tests|0 tests? (?:collected|run|passed)|collected 0 items|no tests? (?:found|to run)"
    r"|running 0 tests)\b",
    re.MULTILINE | re.IGNORECASE,
)
_BUILDS = lazy_pattern(
    r"\b(?:gcc|g\+\+|clang|cc|rustc|javac|go build|cargo build|make|cmake|ninja|tsc|npm run build\S*|yarn build|mvn|gradle"
    r"|dotnet build|docker build)\b(?! +--?(?:version|help|[vVh])\b)"
)
_RUNS = lazy_pattern(
    r"test|spec|check|\b(?:make|ninja|gradlew?|mvn|bazel|tsc|turbo|nx|cargo|go|dotnet|docker build|npm run|yarn|pnpm)\b"
)
_SOURCES = (".c", ".cc", ".cpp", ".h", ".hpp", ".rs", ".go", ".java", ".ts", ".tsx", ".kt", ".swift", ".cs")
# Folders by their whole names: `layout/` is not `out/`.
_COPIES = lazy_pattern(
    r"(?:^|/)(?:build|dist|site-packages|target|out|lib|\.next|node_modules|__pycache__|vendor|[^/\s]{1,100}\.egg)/"
)
_OUTPUT = lazy_pattern(r"-o\s+(\S{1,120})")
_LEAST_RUNS, _LEAST_EDITS, _MOST_RUNS = 2, 2, 8
"""Runs with the same outcome, edits between them, and newest runs that are compared."""


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return why the check does not see the edits."""
    # A check that never ends does not show what it sees.
    if evidence.is_hung:
        return None
    if (found := diagnose_order(KIND, evidence)) is not None:
        return found
    distinct = {entry.index: entry for entry in [*evidence.rounds, *evidence.failing_calls]}
    for entry in distinct.values():
        command = command_of(entry)
        if not command or entry.status == "open":
            continue
        runs = evidence.equal_calls(entry)[-_MOST_RUNS:]
        # Equal calls first, because they surely run the same check.
        outcome = _outcome
        if len(runs) < _LEAST_RUNS:
            runs, outcome = _list_same_checks(evidence, entry), _last_lines
        # A changed outcome means that the check sees the edits.
        if len(runs) < _LEAST_RUNS or len({outcome(evidence, each) for each in runs[-_LEAST_RUNS:]}) > 1:
            continue
        # Edits before the first of these outcomes prove nothing: the check may have seen them.
        start = next((each.index for each in runs if outcome(evidence, each) == outcome(evidence, entry)), entry.index)
        edits = [each for each in evidence.edits if start < each.index < entry.index]
        # A single edit without effect is usual. It may simply be the wrong edit.
        if len(edits) < _LEAST_EDITS:
            continue
        found = (
            _diagnose_undone_edits(evidence, runs, edits)
            or _diagnose_other_file(evidence, entry, edits)
            or _diagnose_loaded_copy(evidence, entry, edits)
            or _diagnose_stale_image(evidence, entry, edits)
            or _diagnose_stale_program(evidence, entry, command, edits)
            or _diagnose_cached_output(evidence, entry, edits)
        )
        if found is not None:
            return found
    return None


def _diagnose_undone_edits(evidence: Evidence, runs: list[EntryView], edits: list[EntryView]) -> Diagnosis | None:
    """Say that each edit is taken back by the next one before the check runs, so that it never sees one of them."""
    pairs = list(zip(edits[::2], edits[1::2], strict=False))
    between = [run for run in runs if any(one.index < run.index < two.index for one, two in pairs)]
    # An edit that stays may have been seen.
    if len(edits) % 2 or between or not evidence.has_failed(runs[-1]) or not all(_takes_back(two, one) for one, two in pairs):
        return None
    one, two = pairs[-1]
    entry, path = runs[-1], code(evidence.name(path_of(two) or ""), 80)
    who = "you undo your own" if evidence.is_own(two) else f"{evidence.maker(two)} undoes its own"
    cause = (
        f"{evidence.describe_failure(entry, 70)} in the same way: {who} change of "
        f"{path} before it runs{how_often(len(pairs))}, so it has seen none of them."
    )
    step = (
        f"Make the change that you think is right, leave {path} so, and run {code(command_of(entry), 80)}: its output says "
        "whether that helps. If it does not, make another change, and none of these."
    )
    quotes = evidence.quote(one, _describe_change(one)), evidence.quote(two, _describe_change(two)), evidence.quote(entry)
    return diagnosis(KIND, cause, step, *quotes, check="The check must have run between two changes.")


def _takes_back(edit: EntryView, before: EntryView) -> bool:
    """Whether an edit undoes the one before it."""
    changes, earlier = list_changes(edit), reversed(list_changes(before))
    same = (path_of(edit), edit.agent) == (path_of(before), before.agent)
    return same and bool(changes) and [(each.old, each.new) for each in changes] == [(each.new, each.old) for each in earlier]


def _describe_change(edit: EntryView) -> str:
    return "\n".join(f"{each.old} → {each.new}" for each in list_changes(edit))


def _outcome(evidence: Evidence, entry: EntryView) -> str:
    """Return the output of a check without times."""
    return mask_volatile(_TIMES.sub("", evidence.text(entry)), ids=True)


def _last_lines(evidence: Evidence, entry: EntryView) -> str:
    """Return the last lines of a check's output, which a filter leaves as they are."""
    return "\n".join(_outcome(evidence, entry).strip().split("\n")[-_LAST_LINES:]) if evidence.has_failed(entry) else ""


def _list_same_checks(evidence: Evidence, entry: EntryView) -> list[EntryView]:
    """Return the calls that run the same file in another form and end alike."""
    end, files = _last_lines(evidence, entry), _list_named_files(entry)
    # A check that passes silently ends like any other.
    if not end.strip():
        return []
    return [each for each in evidence.tail if files & _list_named_files(each) and _last_lines(evidence, each) == end]


def _list_named_files(entry: EntryView) -> set[str]:
    return {word.removeprefix("./") for words in split_command(command_of(entry)) for word in words if is_file_name(word)}


_LAST_LINES = 2


def _diagnose_loaded_copy(evidence: Evidence, entry: EntryView, edits: list[EntryView]) -> Diagnosis | None:
    """Say that the check loads a built copy of the edited file, as its own source shows."""
    edited = list(dict.fromkeys(path for each in edits for path in edited_paths(each)))
    stems = [path.rpartition("/")[2].partition(".")[0] for path in edited]
    for other in evidence.latest_before(entry.index):
        if other.status != "ok" or not _is_of_check(other, entry):
            continue
        # A bundle on one line holds every name.
        for line in evidence.text(other)[:20_000].split("\n"):
            for path, stem in zip(edited, stems, strict=True):
                copy = _find_loaded_copy(line, stem) if stem in line and len(line) < _MOST_LINE else None
                # A build since the edits has renewed the copy, so it is not the cause.
                if copy is None or any(same_file(copy, each) for each in edited) or _was_rebuilt(evidence, edits, copy):
                    continue
                return _explain_loaded_copy(evidence, entry, edits, path, copy, other, line)
    return None


def _is_of_check(other: EntryView, entry: EntryView) -> bool:
    """Whether an entry shows the source of a check: a test, or a file that the command names."""
    shown = path_of(other) or next(
        (words[1] for words in split_command(command_of(other))[:1] if words[0] == "cat" and words[1:]), ""
    )
    name = shown.rpartition("/")[2]
    return bool(name) and (name in command_of(entry) or _TESTS.search(shown) is not None)


def _find_loaded_copy(line: str, stem: str) -> str | None:
    """Return the built file with that name that a line loads, or None."""
    # A path in a comment or a message loads nothing.
    if not _LOADS.search(line):
        return None
    for match in re.finditer(rf"((?:\.{{0,2}}/)?(?:[\w.@-]{{1,40}}/){{1,8}}{re.escape(stem)}(?:\.\w{{1,5}})?)(?![\w/])", line):
        copy = match.group(1).lstrip("./")
        # Only folders for built files: elsewhere, a file with the same name may be another module.
        if plain_name(copy) and _COPIES.search(copy):
            return copy
    return None


def _explain_loaded_copy(
    evidence: Evidence, entry: EntryView, edits: list[EntryView], path: str, copy: str, other: EntryView, line: str
) -> Diagnosis:
    own, (build, _) = evidence.relative_path(path), find_build_command(evidence, copy, entry.index)
    cause = (
        f"{_describe_check(evidence, entry, edits)}, because it loads {code(copy, 80)}, as {evidence.source(other)} "
        "shows, and you edit"
        f" {code(own, 70)}; no build of the one from the other is recorded since."
    )
    how = f": run {code(build, 60)}" if build else " (look for the build step in the manifest)"
    step = (
        f"Build first, so that {code(copy, 80)} is made from {code(own, 70)}{how}; then run {code(command_of(entry), 80)} once."
    )
    quotes = (evidence.quote(other, line), evidence.quote(edits[-1], path), evidence.quote(entry, evidence.text(entry)[-400:]))
    return diagnosis(KIND, cause, step, *quotes, check="The outcome of the check must change.")


def _was_rebuilt(evidence: Evidence, edits: list[EntryView], copy: str) -> bool:
    first = edits[0].index
    return any(
        # Any build may have renewed the copy, so the record must hold none.
        entry.index > first and entry.status == "ok" and (_BUILDS.search(command_of(entry)) or copy in command_of(entry))
        for entry in evidence.recent
    )


_TIMES = lazy_pattern(
    r"\b(?:duration|time|elapsed|took|start(?:ed)? at)\w*[: =]+[\d.:]+ ?\w{0,3}|\b\d+\.\d+ ?(?:ms|s|sec"
    r"|seconds)?\b|\(\d+ ?ms\)",
    re.IGNORECASE,
)
_LOADS = lazy_pattern(
    r"require|import|from|load|include|main|module|exec|run|node|python|java|path|use|entry|bin|test", re.IGNORECASE
)
_TESTS = lazy_pattern(r"(?:^|[/_.-])(?:tests?|specs?|check\w*|bench\w*|__tests__)(?:[/_.-]|$)", re.IGNORECASE)
_MOST_LINE = 400


def _describe_check(evidence: Evidence, entry: EntryView, edits: list[EntryView]) -> str:
    files = list(dict.fromkeys(evidence.name(path) for each in edits for path in edited_paths(each)))
    shown = ", ".join(code(name, 60) for name in files[:2])
    return f"{code(command_of(entry), 80)} answers the same after {len(edits)} edits of {shown}"


def _diagnose_other_file(evidence: Evidence, entry: EntryView, edits: list[EntryView]) -> Diagnosis | None:
    """Say that the message comes from another file with the same name as the edited one."""
    frames = [one or two for one, two in _FRAME.findall(evidence.text(entry))]
    for each in reversed(edits):
        for path in edited_paths(each):
            name = path.rpartition("/")[2]
            # The message comes from the edited file, so the check sees it.
            if any(same_file(frame, path) for frame in frames):
                return None
            copy = next((frame for frame in reversed(frames) if frame.rpartition("/")[2] == name and plain_name(frame)), None)
            if copy is None:
                continue
            # Built copies must be rebuilt. Others are files of their own.
            shown, own = evidence.name(copy), evidence.name(path)
            built = _COPIES.search(copy) is not None
            cause = (
                f"{_describe_check(evidence, entry, edits)}, because it runs another file: its message comes from "
                f"{code(shown, 90)}, not"
                f" from {code(own, 70)}."
            )
            step = f"Find out which of {code(shown, 90)} and {code(own, 70)} the check is meant to use, and edit that one."
            if built:
                step = (
                    f"Build or install anew, so that {code(shown, 90)} is made from {code(own, 70)}, or let the check import"
                    f" {code(own, 70)} itself."
                )
            return diagnosis(
                KIND, cause, step, evidence.quote(entry, evidence.text(entry)[-500:]), evidence.quote(each, path),
                check=f"The message of the check must name {code(own, 70)}, or change.",
            )  # fmt: skip
    return None


def _diagnose_stale_program(evidence: Evidence, entry: EntryView, command: str, edits: list[EntryView]) -> Diagnosis | None:
    """Say that the running program was built before its source was edited."""
    elsewhere = _diagnose_other_build(evidence, entry, command, edits)
    # If two places are named, the wrong place explains more than an old build.
    if elsewhere is not None:
        return elsewhere
    words = _find_built_file(command)
    source = next((path for each in reversed(edits) for path in edited_paths(each) if path.endswith(_SOURCES)), None)
    # A command that builds before it runs can't be stale.
    if words is None or source is None or _BUILDS.search(command):
        return None
    program = words[0].removeprefix("./")
    # Scripts run from their source.
    if program.endswith((".sh", ".py", ".rb", ".pl")) or (program.endswith(".js") and "/" not in program):
        return None
    builds = [each for each in evidence.entries_before(entry.index) if _BUILDS.search(command_of(each)) and each.status == "ok"]
    made = next((each for each in builds if program in command_of(each) or not _OUTPUT.search(command_of(each))), None)
    # Without a recorded build, it is not known how it was built. A later build includes the edits.
    if made is None or made.index > edits[0].index:
        return None
    build = command_of(made)
    cause = (
        f"{_describe_check(evidence, entry, edits)}, because {code(words[0], 60)} was built before them, "
        f"last{clock(made.ts)} with"
        f" {code(build, 90)}."
    )
    step = f"Build it again with {code(build, 110)}, and then run {code(command, 80)}."
    return diagnosis(
        KIND, cause, step, evidence.quote(made, build), evidence.quote(edits[-1], source), evidence.quote(entry),
        check="The output must change; if it does not, the edit is not the cause.",
    )  # fmt: skip


_BUILDS_TO = lazy_pattern(
    r"\b(?:javac|kotlinc|scalac|tsc|gcc|g\+\+|cc|clang|go build|esbuild|babel|rollup|webpack|cmake|swiftc"
    r"|rustc)\b[^|;&\n]{0,300}?\s(?:-d|-o|--out-?[dD]ir|--outfile|--out|-B|--output-path)[ =](\S{1,120})"
)
_RUNS_FROM = lazy_pattern(
    r"\b(?:java|kotlin|scala)\b[^|;&\n]{0,200}?\s(?:-cp|-classpath|--class-path)[ =](\S{1,200})|\bnode "
    r"(\S{1,120}\.[cm]?js)\b|(?:^|[;&|]\s{0,4})(\./\S{1,120})"
)


def _diagnose_other_build(evidence: Evidence, entry: EntryView, command: str, edits: list[EntryView]) -> Diagnosis | None:
    """Say that the build writes to another place than the one that is run."""
    builds = [
        (each, match.group(1))
        for each in [entry, *evidence.entries_before(entry.index)]
        if each.index >= edits[0].index
        for match in [_BUILDS_TO.search(command_of(each))]
        if match
    ]
    runs = _RUNS_FROM.search(command)
    if not builds or runs is None:
        return None
    made = builds[0][1].rstrip("/")
    places = [part.rstrip("/") for part in first_group(runs).split(":")]
    if (
        # Compare only plain paths, since a variable may stand for either one.
        not plain_name(made)
        or not all(plain_name(part) for part in places)
        or any(_contains_path(made, part) or _contains_path(part, made) for part in places)
    ):
        return None
    ran = places[0]
    cause = (
        f"{_describe_check(evidence, entry, edits)}, because the build writes to {code(made, 60)} and what is run comes from "
        f"{code(ran, 60)}: that is an old build."
    )
    step = f"Let both name one place: build to {code(ran, 60)}, or run from {code(made, 60)}; then run the check once."
    return diagnosis(
        KIND, cause, step, evidence.quote(builds[0][0], command_of(builds[0][0])), evidence.quote(entry),
        check="The outcome of the check must change.",
    )  # fmt: skip


def _contains_path(one: str, other: str) -> bool:
    first, second = one.removeprefix("./"), other.removeprefix("./")
    return first == second or second.startswith(f"{first}/") or first in (".", "")


_LAUNCHERS = ("java", "node", "dotnet", "mono", "wasmtime", "php", "python3", "python", "lua", "kotlin", "scala")
_BUILT = ("build", "target", "bin", "dist", "out", "classes", "lib")


def _find_built_file(command: str) -> list[str] | None:
    """Return the built file that a command runs: a program, or the argument of java, node and the like."""
    for words in split_command(command):
        if words[0].startswith(("./", *(f"{part}/" for part in _BUILT))):
            return words
        for word in words[1:]:
            first = word.removeprefix("./").partition("/")[0]
            built = first in _BUILT or word.endswith((".jar", ".class", ".dll", ".wasm", ".pyc"))
            if built and words[0] in _LAUNCHERS:
                return [word.rpartition(":")[2] or word]
    return None


def _diagnose_stale_image(evidence: Evidence, entry: EntryView, edits: list[EntryView]) -> Diagnosis | None:
    """Say that a container runs an image that was built before the edits."""
    command = command_of(entry)
    if (
        not re.search(r"\b(?:docker|podman)\b.{0,20}\b(?:run|exec|up|restart|start)\b", command)
        # A call that rebuilds the image or mounts the folder runs the edited files.
        or "--build" in command
        or re.search(r"\s(?:-v|--volume|--mount)\b", command)
    ):
        return None
    builds = [
        each
        for each in evidence.entries_before(entry.index)
        if re.search(r"\b(?:docker|podman)\b.{0,30}\bbuild\b|--build\b", command_of(each)) and each.status == "ok"
    ]
    # The image is newer than the first edit.
    if not builds or builds[0].index > edits[0].index:
        return None
    build = command_of(builds[0])
    cause = (
        f"{_describe_check(evidence, entry, edits)}, because the container runs an image that was built before them, "
        f"last{clock(builds[0].ts)} with {code(build, 90)}."
    )
    return diagnosis(
        KIND, cause, "Build the image again with "
            f"{code(build, 110)}, and then run "
            f"{code(command, 80)}.", evidence.quote(builds[0], build), evidence.quote(entry),
        check="The output must change; if it does not, the edit is not the cause.",
    )  # fmt: skip


def _diagnose_cached_output(evidence: Evidence, entry: EntryView, edits: list[EntryView]) -> Diagnosis | None:
    # Only runners and builds are known to use old results.
    if not _RUNS.search(command_of(entry)):
        return None
    said = evidence.text(entry)[:8_000]
    match = _NONE_RUN.search(said)
    if match is not None:
        cause = (
            f"{_describe_check(evidence, entry, edits)}, because it runs no test at all: {code(match.group(1).strip(), 60)}."
        )
        step = (
            "A runner takes files and functions by their names alone (pytest `test_*.py` and `test_*`, jest `*.test.*`): rename"
            " them, or name the right folder, and see that they are collected (`pytest --collect-only`) before you edit on."
        )
        return diagnosis(
            KIND, cause, step, evidence.quote(entry, match.group(0)), check="The output must count at least one test."
        )
    match = _CACHED.search(said)
    if match is None:
        return None
    cause = f"{_describe_check(evidence, entry, edits)}, because the result is an old one: {code(match.group(1).strip(), 60)}."
    force = "go test -count=1" if "go test" in command_of(entry) else "make -B" if command_of(entry).startswith("make") else ""
    step = (
        (f"Run it once without the cache, with {code(force, 40)}.")
        if force
        else ("Run it once without the cache, or remove the built result, and then look again.")
    )
    return diagnosis(
        KIND, cause, step, evidence.quote(entry, match.group(0)),
        check="The output must no longer speak of a cached or finished result.",
    )  # fmt: skip
