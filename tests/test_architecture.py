"""The rules of the project: sizes, words, imports between packages, and what is loaded only when it is needed."""

from __future__ import annotations

import ast
import json
import os
import re
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxmgr.store import open_store
from tests.conftest import CONTRACT, spread_evenly

ROOT = Path(__file__).parents[1]
MODULE_LINES, FUNCTION_LINES = 600, 60

MADE = ROOT / "bench" / "out"
"""What the benches install and generate lies there; none of it is the project's own."""

CODE = sorted(
    path for folder in ("ctxmgr", "tests", "bench") for path in (ROOT / folder).rglob("*.py") if not path.is_relative_to(MADE)
)
PRODUCT = [path for path in CODE if path.is_relative_to(ROOT / "ctxmgr")]

DATA = (
    "ctxmgr/access/default_rules.toml",
    *(str(path.relative_to(ROOT)) for path in (ROOT / "ctxmgr" / "diagnose" / "errors" / "known_errors").glob("*.toml")),
    "ctxmgr/diagnose/related/line_ranker.json",
    "ctxmgr/recover/evidence/synonyms.txt",
    "ctxmgr/recover/injection_patterns.toml",
    *(f"ctxmgr/cli/report/{name}" for name in ("base.html", "index.html", "report.css", "session.html")),
)
"""Files beside the code that the product reads."""

CROSS_PACKAGE = (
    "stories", "faults", "golden", "hostile_repo", "llm", "bench",
    *(f"test_{name}.py" for name in ("architecture", "docs", "install", "made_pages", "readme", "requirements", "startup")),
)  # fmt: skip
"""Tests across packages, and of the project as a whole."""

_SHAPES = (
    "declares shapes; tests/types/test_plain_check.py tries values of each, and whoever answers with one tests what it says"
)
_GENERATED = "is generated; tests/cli/fast/test_generate.py compares it with what it is made of"
_FRAMEWORK = "is tried with the real package, where that is installed: tests/integrations/test_all_frameworks.py"
_CLASS = "tests/diagnose/classes holds every class to one contract, and has rows that each speaks of and on which it is silent"
WITHOUT_OWN_TESTS = {
    f"{folder}/{name}": reason
    for folder, names, reason in (
        ("cli", "declarations", "stands for typer's own names; tests/cli/test_application.py builds the commands of it"),
        ("cli/fast", "help_texts table", _GENERATED),
        ("clients", "claude_code codex gemini", "tests/clients/test_all_contract.py holds every client to one contract"),
        (
            "conformance",
            "detector",
            "is a battery itself; tests/detect/detectors/test_all_contract.py runs it on our detectors",
        ),
        ("diagnose", "interface", "a protocol and its limits; tests/diagnose/classes/test_all_contract.py holds classes to it"),
        ("diagnose/classes/context", "context_lost", _CLASS),
        ("diagnose/classes/edits", "undone_by_other", _CLASS),
        ("diagnose/classes/environment", "other_folder worked_elsewhere", _CLASS),
        ("diagnose/classes/names", "wrong_place", _CLASS),
        ("diagnose/classes/refusals", "limit_exceeded", _CLASS),
        ("diagnose/classes/statements", "documented_way known_error noted_way stated_reason", _CLASS),
        ("diagnose/classes/waiting", "waiting_on_process", _CLASS),
        (
            "exporters",
            "atif claude_code conversation messages otlp",
            "tests/exporters/test_all_round_trip.py reads back what each wrote of every sample",
        ),
        (
            "importers",
            "atif copilot inspect_ai openai_agents opencode openhands",
            "tests/importers/test_all_battery.py reads the samples in fixtures/formats and knows what they truly hold",
        ),
        ("integrations", "claude_agent_sdk openai_agents pydantic_ai", _FRAMEWORK),
        ("store/engine", "interface", "a protocol; each engine that follows it has tests of its own"),
        ("store/engine", "postgresql_select", "tests/store/test_read_query_on_server.py runs every query through it"),
        ("store/repositories", "blobs", "tests/artifacts/test_server_blobs.py writes and reads every content through it"),
        ("types", "access analysis artifact context_package goal memory operations project_state setup view", _SHAPES),
    )
    for name in names.split()
}
"""Modules that no file of tests is named after, each with the reason and the place of its tests."""

DATABASES = {"sqlite3", "pysqlite3", "sqlite_utils", "psycopg"}


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _functions(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield the first line, the name and the length of each function of a module."""
    for node in _statements(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def _printing_lines(text: str) -> Iterator[int]:
    """Yield the lines of a module that call ``print`` or name a standard stream."""
    may_print = any(word in text for word in ("print", "stdout", "stderr"))  # to parse and walk takes long
    for node in ast.walk(ast.parse(text)) if may_print else ():
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id == "print":
                yield node.lineno
        elif isinstance(node, ast.Attribute) and node.attr in ("stdout", "stderr") and ast.unparse(node).startswith("sys."):
            yield node.lineno


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements within a node and, as functions can stand in nothing else, no expression."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield child
            yield from _statements(child)


def _texts() -> Iterator[tuple[str, str]]:
    """Yield the name and text of every file of the project that people write; recorded logs are not among them."""
    places = [*CODE, *ROOT.glob("*"), *(ROOT / ".ci").glob("*"), *(ROOT / "fixtures").rglob("*.md")]
    for path in places:
        if path.is_file() and path.name != ".git":  # in a worktree a file that names the folder of the repository
            yield _name(path), path.read_text(encoding="utf-8")


def test_modules_stay_small() -> None:
    """No module is longer than 600 lines."""
    lengths = {_name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in CODE}

    assert {name: length for name, length in lengths.items() if length > MODULE_LINES} == {}


@pytest.mark.cases(1)
@pytest.mark.parametrize("folder", ["ctxmgr", "tests", "bench"])
def test_functions_stay_small(folder: str) -> None:
    """No function is longer than 60 lines, its docstring included."""
    long = [
        f"{_name(path)}:{line} {name} has {length} lines"
        for path in CODE
        if path.is_relative_to(ROOT / folder)
        for line, name, length in _functions(path.read_text(encoding="utf-8"))
        if length > FUNCTION_LINES
    ]

    assert long == []


def test_tests_are_named_after_their_module() -> None:
    """A file of tests is named after a module or package of the same folder, or ``test_all_`` where it is about all of them."""
    lost: list[str] = []
    for path in (ROOT / "tests").rglob("test_*.py"):
        place = path.relative_to(ROOT / "tests")
        if place.parts[0] in CROSS_PACKAGE or str(place) in CROSS_PACKAGE:
            continue
        name = place.stem.removeprefix("test_")
        there = {"all", *(each.stem for each in (ROOT / "ctxmgr" / place.parent).glob("[!_]*"))}
        if not any(f"{name}_".startswith(f"{each}_") for each in there):
            lost.append(str(place))

    assert lost == []


def _tests_of(module: Path) -> list[str]:
    """Return the files of tests that are named after a module, and after no longer name beside it."""
    place, beside = (
        ROOT / "tests" / module.relative_to(ROOT / "ctxmgr").parent,
        [path.stem for path in module.parent.glob("[!_]*")],
    )
    return [
        file.name
        for file in place.glob(f"test_{module.stem}*.py")
        if max((stem for stem in beside if f"{file.stem[5:]}_".startswith(f"{stem}_")), key=len, default="") == module.stem
    ]


def test_modules_have_tests_of_their_name() -> None:
    """Whoever looks for the tests of a module finds them at its place in the tree, or reads here why there are none."""
    tested = {
        str(path.relative_to(ROOT / "ctxmgr").with_suffix("")): _tests_of(path)
        for path in PRODUCT
        if not path.name.startswith("_")
    }

    assert [name for name, found in tested.items() if not found and name not in WITHOUT_OWN_TESTS] == []
    assert [name for name in WITHOUT_OWN_TESTS if tested.get(name, ["no such module"])] == []
    named = {
        place for reason in WITHOUT_OWN_TESTS.values() for place in re.findall(r"(?:tests|fixtures)/[\w/]+(?:\.py)?", reason)
    }
    assert [place for place in sorted(named) if not (ROOT / place).exists()] == []


def test_tests_for_every_store_exist() -> None:
    """A module of tests that was renamed would quietly run on no server any more; so does one whose tests take no store."""
    assert [name for name in sorted(CONTRACT) if not (ROOT / name).is_file()] == []
    taken = {
        name: {
            argument.arg
            for node in ast.parse((ROOT / name).read_text(encoding="utf-8")).body
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
            for argument in node.args.args
        }
        for name in CONTRACT
    }
    assert [name for name in sorted(taken) if not taken[name] & {"store", "store_path", "ask", "artifacts"}] == []


def test_cases_are_spread_evenly() -> None:
    """Of many cases the first, the last and those between run by default, of few all, and of one place the first."""
    assert [spread_evenly(count, 3) for count in (1, 3, 4, 10, 101)] == [[0], [0, 1, 2], [0, 1, 3], [0, 4, 9], [0, 50, 100]]
    assert (spread_evenly(10, 1), spread_evenly(10, 2), len({*spread_evenly(1_000, 40)})) == ([0], [0, 9], 40)


def test_tests_named_on_pages_exist() -> None:
    """What proves a promise of a page, or what the Makefile runs, was not renamed meanwhile."""
    named = [
        (_name(page), name)
        for page in (*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md"), *(ROOT / "bench").glob("*/RESULTS.md"))
        for name in re.findall(r"[` ](tests/[\w/]+(?:\.py)?)`", page.read_text(encoding="utf-8"))
    ]
    run = [("Makefile", name) for name in re.findall(r" (tests/[\w/.]+)", (ROOT / "Makefile").read_text(encoding="utf-8"))]

    assert len(named) > 30
    assert [(page, name) for page, name in [*named, *run] if not (ROOT / name).exists()] == []


def test_modules_say_their_responsibility() -> None:
    """Every module opens with a docstring whose first line is a sentence."""
    first = re.compile(r'(?:#.*\n)*r?"""[A-Z0-9`].*\w.*[.?!:](?:\n|""")')

    assert [_name(path) for path in CODE if not first.match(path.read_text(encoding="utf-8"))] == []


def test_only_the_command_line_prints() -> None:
    """No module outside the command line calls ``print`` or writes to the standard streams."""
    talking: list[str] = []
    for path in PRODUCT:
        if path.is_relative_to(ROOT / "ctxmgr" / "cli") or path.name == "__main__.py":
            continue
        talking += [f"{_name(path)}:{line}" for line in _printing_lines(path.read_text(encoding="utf-8"))]

    assert talking == []


def test_no_open_tasks_are_noted() -> None:
    """No text of the project puts work off to later by the usual marks."""
    marks = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")

    assert [name for name, text in _texts() if marks.search(text)] == []


def test_no_file_names_one_machine() -> None:
    """No text of the project names a path that exists on one machine only."""
    paths = re.compile("|".join(["/wo" + "rk/(main|shared|[.])", "/ro" + r"ot\b", r"\bsha" + "red/(spec|design|ref|sam)"]))

    assert [name for name, text in _texts() if paths.search(text)] == []


def _loaded(code: str, *arguments: str) -> set[str]:
    """Run code in a fresh interpreter and return the top-level names of the modules it has loaded at its end."""
    tail = "\nimport json, sys\nsys.stderr.write('\\n' + json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    ran = subprocess.run([sys.executable, "-c", code + tail, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return set(json.loads(ran.stderr.splitlines()[-1]))


RUN_CLI = """
from ctxmgr.__main__ import main
try:
    code = main()
except SystemExit as ended:
    code = ended.code
assert not code, code
"""


def test_the_recorder_loads_only_the_standard_library() -> None:
    """Importing the recorder loads nothing from outside the standard library."""
    loaded = _loaded("import ctxmgr.recorder")

    assert loaded & {"pydantic", "pydantic_core", "typer", "click", "rich", "jinja2", "mcp", *DATABASES} == set()


def test_the_version_loads_neither_shapes_nor_stores() -> None:
    """Asking for the version loads no pydantic, no rich and no database."""
    loaded = _loaded(RUN_CLI, "--version")

    assert loaded & {"pydantic", "pydantic_core", "rich", "jinja2", "mcp", *DATABASES} == set()


def test_listing_loads_no_more_than_it_needs(tmp_path: Path) -> None:
    """A list for a program loads no model library, no other engine and nothing that draws."""
    location = tmp_path / "history.db"
    open_store(str(location), create=True).close()

    loaded = _loaded(RUN_CLI, "list", "--store", str(location), "--json")

    assert loaded & {"pydantic", "typer", "pydantic_ai", "mcp", "psycopg", "sqlite_utils", "rich"} == set()


def test_imports_follow_the_contracts() -> None:
    """The contracts between layers, front ends and pure packages hold (import-linter)."""
    command = Path(sys.executable).with_name("lint-imports")
    ran = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_wheel_holds_the_product_alone(tmp_path: Path) -> None:
    """The built wheel holds the modules of ctxmgr, its type marker, the demo's recorded run and its metadata, no more."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert names == {*(_name(path) for path in PRODUCT), "ctxmgr/py.typed", "ctxmgr/cli/demo_run.jsonl", *DATA}


def test_no_test_reaches_the_network() -> None:
    """A connection by address, and the look-up of a name, are refused in every test."""
    with socket.socket() as opened, pytest.raises(AssertionError, match="network"):
        opened.connect(("127.0.0.1", 9))
    with pytest.raises(AssertionError, match="network"):
        socket.getaddrinfo("localhost", 9)


def test_no_test_sees_this_machine(tmp_path: Path) -> None:
    """Home, cache and store lie beside the test's own folder, which is empty."""
    places = [Path.home(), *(Path(os.environ[name]) for name in ("XDG_CACHE_HOME", "CTXMGR_STORE"))]

    assert all(place.is_relative_to(tmp_path.parent) for place in places)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [".ci/run", "ctxmgr/__main__.py"])
def test_names_used_as_text_exist(name: str) -> None:
    """What others start by its path exists, and the script among them may be executed."""
    path = ROOT / name

    assert path.is_file()
    assert path.suffix == ".py" or os.access(path, os.X_OK)
