"""Summarise Python as a stub with signatures and the first words of docstrings.

Where there is room, the first lines of each function's implementation follow.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ctxmgr.context.summaries.plain_text import beginnings
from ctxmgr.context.summaries.prose import first_paragraph, first_sentence, one_line, shortened
from ctxmgr.context.summaries.python_body import first_lines
from ctxmgr.text.content_kind import PYTHON

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class _Detail:
    """Characters of what is told: 0 leaves it out; ``whole`` takes a docstring's first paragraph, not its first sentence.

    ``body`` counts the lines of each function's implementation.
    """

    docs: int
    private_docs: int
    whole: bool
    fields: int
    constants: int
    imports: int
    body: int = 0


_LEVELS = (
    *(_Detail(400, 400, True, 100, 80, 2_000, lines) for lines in (60, 40, 28, 20, 14, 10, 7, 5, 4, 3, 2, 1)),
    _Detail(400, 400, True, 100, 80, 2_000),
    _Detail(240, 120, True, 80, 60, 600),
    _Detail(160, 80, False, 60, 40, 300),
    _Detail(100, 40, False, 60, 30, 200),
    _Detail(72, 0, False, 40, 0, 200),
    _Detail(48, 0, False, 30, 0, 120),
    _Detail(0, 0, False, 30, 0, 80),
    _Detail(0, 0, False, 0, 0, 0),
)


class PythonSummariser:
    """Python by its syntax tree: module and class bodies, also below ``if``, ``try`` and ``with``; no inner functions."""

    strategy = "python/2"
    kinds = frozenset({PYTHON})
    target = 30
    limit = 600_000

    def drafts(self, text: str, kind: str) -> Iterator[str]:
        """Yield stubs; the last has the signatures alone. Raises SyntaxError, ValueError, RecursionError or MemoryError."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a strange escape in somebody's string is no concern here
            tree = ast.parse(text.removeprefix("\ufeff"))
        for detail in _LEVELS:
            lines = [*_docstring(tree, detail, "", private=False), *_imports(tree, detail), *_members(tree.body, detail, "")]
            if lines:
                yield "\n".join(lines) + "\n"
        if not any(isinstance(node, Definition) for node in ast.walk(tree)):
            yield from beginnings(text)  # data in the form of a module


def _members(body: Sequence[ast.stmt], detail: _Detail, indent: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _definition(node, detail, indent)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            yield from _assignment(node, detail, indent)
        else:
            for part in _inner(node):
                yield from _members(part, detail, indent)


def _inner(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(node, ast.If | ast.For | ast.AsyncFor | ast.While):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.Try | ast.TryStar):
        yield from (node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody)
    elif isinstance(node, ast.With | ast.AsyncWith):
        yield node.body
    elif isinstance(node, ast.Match):
        yield from (case.body for case in node.cases)


def _definition(node: Definition, detail: _Detail, indent: str) -> Iterator[str]:
    told: list[str] | None = getattr(node, "told", None)
    if told is None:
        told = _signature(node)
        vars(node)["told"] = told  # every draft needs it, and it takes most of the time
    *decorators, signature = told
    inner = list(_docstring(node, detail, indent + "    ", private=_is_private(node.name)))
    if isinstance(node, ast.ClassDef):
        inner += _members(node.body, detail, indent + "    ")
    elif detail.body:
        inner += first_lines(node, detail.body, indent + "    ")
    yield from (indent + line for line in decorators)
    yield indent + signature + ("" if inner else " ...")
    yield from inner


def _signature(node: Definition) -> list[str]:
    """Return the decorators and the line that opens the definition, each on one line."""
    empty: list[ast.stmt] = [ast.Pass()]
    if isinstance(node, ast.ClassDef):
        bare: Definition = ast.ClassDef(node.name, node.bases, node.keywords, empty, [])
    else:
        bare = type(node)(node.name, node.args, empty, [], node.returns)
    for name in ("type_params",):  # from Python 3.12 on
        if hasattr(node, name):
            setattr(bare, name, getattr(node, name))
    opening = ast.unparse(ast.fix_missing_locations(bare)).rpartition("\n")[0]
    return [*("@" + ast.unparse(decorator) for decorator in node.decorator_list), opening]


def _docstring(node: Definition | ast.Module, detail: _Detail, indent: str, *, private: bool) -> Iterator[str]:
    limit = detail.private_docs if private else detail.docs
    docstring = ast.get_docstring(node) if limit else None
    if docstring:
        told = first_paragraph(docstring) if detail.whole else first_sentence(docstring, limit)
        told = shortened(told, limit).replace("\\", "\\\\").replace('"""', "'''")
        told = "".join(sign if sign.isprintable() else "?" for sign in told)
        yield f'{indent}"""{told}{" " if told.endswith(chr(34)) else ""}"""'


def _assignment(node: ast.Assign | ast.AnnAssign, detail: _Detail, indent: str) -> Iterator[str]:
    limit = detail.fields if indent else detail.constants
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    if not limit or not names or (not indent and names[0].startswith("_") and limit < 60):
        return
    if isinstance(node, ast.AnnAssign):
        annotation = f"{names[0]}: {ast.unparse(node.annotation)}"
        value = _value(node.value, limit) if node.value is not None else ""
        yield indent + annotation + (f" = {value}" if value else "")
    else:
        yield f"{indent}{' = '.join(names)} = {_value(node.value, limit)}"


def _value(node: ast.expr, limit: int) -> str:
    """Return the value where it is short, else an ellipsis, so that the line stays Python."""
    if (node.end_lineno or node.lineno) - node.lineno > 3:
        return "..."
    told = one_line(ast.unparse(node)) if not isinstance(node, ast.Constant) else repr(node.value)
    return told if len(told) <= limit else "..."


def _imports(tree: ast.Module, detail: _Detail) -> Iterator[str]:
    """Yield one comment with the modules that are imported anywhere at the top level."""
    found: dict[str, None] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            found.update(dict.fromkeys(alias.name for alias in node.names))
        elif isinstance(node, ast.ImportFrom):
            found[f"{'.' * node.level}{node.module or ''}"] = None
    found.pop("__future__", None)
    if found and detail.imports:
        yield shortened(f"# imports {', '.join(found)}", detail.imports)


def _is_private(name: str) -> bool:
    return bool(re.match(r"_(?!_)", name))
