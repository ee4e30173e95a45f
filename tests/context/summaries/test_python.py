"""Summaries of Python are Python: every signature in its order, and first statements where there is room."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from ctxmgr.context.summaries import summarise
from ctxmgr.context.summaries.python import PythonSummariser, first_lines
from ctxmgr.text.tokens import ESTIMATE

ROOT = Path(__file__).parents[3]


def signatures(body: list[ast.stmt], inside: str = "") -> Iterator[str]:
    """Yield each definition of a module with its arguments, bases and decorators, wherever it stands outside functions."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            decorators = [ast.unparse(one) for one in node.decorator_list]
            told = ast.unparse(node.bases) if isinstance(node, ast.ClassDef) else ast.unparse(node.args)  # pyright: ignore[reportArgumentType]
            result = "" if isinstance(node, ast.ClassDef) or node.returns is None else ast.unparse(node.returns)
            yield f"{inside}{node.name}({told}) {result} {decorators} {type(node).__name__}"
            if isinstance(node, ast.ClassDef):
                yield from signatures(node.body, f"{inside}{node.name}.")
        else:
            for part in ("body", "orelse", "handlers", "finalbody", "cases"):
                below: list[ast.stmt] = getattr(node, part, [])
                for one in below:
                    yield from signatures(one.body if isinstance(one, ast.ExceptHandler | ast.match_case) else [one], inside)


MODULES = [
    path for path in sorted((ROOT / "ctxmgr").rglob("*.py")) if "\ndef " in (text := path.read_text()) or "\nclass " in text
]


@pytest.mark.long
@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_all_signatures_are_kept(path: Path) -> None:
    """Each draft of a module of this project is Python, and has all its signatures in their order."""
    text = path.read_text(encoding="utf-8")
    expected = list(signatures(ast.parse(text).body))

    drafts = list(PythonSummariser().drafts(text, "python"))
    assert drafts
    for draft in drafts:
        assert list(signatures(ast.parse("".join(draft)).body)) == expected
    for longer, shorter in pairwise(draft for draft in drafts if isinstance(draft, tuple)):
        assert len(longer) == len(shorter)
        for place in range(0, len(shorter), max(1, len(shorter) // 5)):
            mixed = "".join([*longer[:place], *shorter[place:]])
            assert list(signatures(ast.parse(mixed).body)) == expected


def test_python_signatures_in_odd_places() -> None:
    """Definitions below conditions, with every sort of argument, and docstrings full of quotes survive as Python."""
    text = (
        "import os, sys\n"
        "if os:\n"
        "    def a(x, /, y: int = 1, *z: str, k=None, **o) -> 'None': pass\n"
        "else:\n"
        "    async def b(): pass\n"
        "try:\n"
        "    @d(1)\n"
        "    class C(dict, metaclass=type):\n"
        "        x: int = 1\n"
        "        def m(self): r'''Say \"\"\"a\\ b\"'''\n"
        "except E:\n"
        "    def f(): 'Ends in a quote\"'\n"
    )
    drafts = list(PythonSummariser().drafts(text, "python"))
    assert drafts
    for draft in drafts:
        assert list(signatures(ast.parse("".join(draft)).body)) == list(signatures(ast.parse(text).body))


@pytest.mark.requirement("003-P17")
def test_a_summary_of_code_tells_of_the_implementation() -> None:
    """Where there is room, the first statements of a function follow its signature, and the whole is Python."""
    body = "".join(f"    step_{number} = call_{number}(value, {number})\n" for number in range(30))
    doc = '    """Do it."""\n'
    opening = f"def work(value):\n{doc}    try:\n        first(value)\n    except ValueError:\n        pass\n"
    text = f"{opening}{body}    return done(value)\n"
    made = summarise("a.py", text, "", ESTIMATE)

    ast.parse(made.text)
    assert "    first(value)\n    # except ValueError\n    pass\n    step_0 = call_0(value, 0)\n" in made.text
    assert made.text.endswith("    ...\n")


@pytest.mark.parametrize("path", MODULES[::7], ids=lambda path: str(path.relative_to(ROOT)))
def test_an_implementation_is_cut_anywhere(path: Path) -> None:
    """However few lines of each function are told, what is told is Python."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for count in (*range(1, 12), 60):
                told = "\n".join(first_lines(node, count, "    "))
                ast.parse(f"async def f():\n{told}\n")
