"""Summarise Python: signatures, docstrings, and the first lines of bodies."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from ctxmgr.context.summaries.prose import Draft, beginnings, first_paragraph, first_sentence, join_lines, one_line, shorten
from ctxmgr.text.tokens import PYTHON

MAX_FUNCTION_LINES = 60
"""Maximum number of lines of one function's body in a summary."""

_MAX_WIDTH = 100  # characters of a line
_MAX_DEPTH = 6  # levels of nesting in a function
_INDENT = "    "

Line = tuple[int, str]
"""The nesting depth of a line in its function, and its text."""


def first_lines(node: ast.FunctionDef | ast.AsyncFunctionDef, count: int, indent: str) -> list[str]:
    """Return the first lines of a function's body without its docstring. An ellipsis replaces the rest."""
    lines: list[Line] | None = getattr(node, "lines", None)
    if lines is None:
        body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
        lines = []
        for line in _block(body, 0):
            lines.append(line)
            if len(lines) > MAX_FUNCTION_LINES:
                break
        vars(node)["lines"] = lines  # stored at the node, because every draft needs them
    shown = lines[:count]
    found = [indent + _INDENT * depth + text for depth, text in shown]
    # A comment opens no block, even if it ends with a colon.
    opened = next(((depth, text) for depth, text in reversed(shown) if not text.startswith("#")), None)
    if opened is not None and opened[1].endswith(":"):  # a block without a statement is a syntax error
        found.append(indent + _INDENT * (opened[0] + 1) + "...")
    elif len(lines) > count or opened is None:
        found.append(indent + "...")
    return found


def _block(body: Sequence[ast.stmt], depth: int) -> Iterator[Line]:
    for node in body:
        yield from _statement(node, depth)


def _statement(node: ast.stmt, depth: int) -> Iterator[Line]:
    if isinstance(node, ast.Try | ast.TryStar):  # as comments: a cut could leave a try without its except
        yield depth, "# try"
        yield from _block(node.body, depth)
        for handler in node.handlers:
            caught = _shorten(handler.type, "...") if handler.type is not None else "anything"
            yield depth, f"# except {caught}"
            yield from _block(handler.body, depth)
        for name, part in (("else", node.orelse), ("finally", node.finalbody)):
            if part:
                yield depth, f"# {name}"
                yield from _block(part, depth)
        return
    opening = _opening_line(node)
    if opening is None:
        yield depth, _simple(node)
        return
    yield depth, opening
    inner: list[ast.stmt] = getattr(node, "body", [])
    if depth + 1 >= _MAX_DEPTH or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield depth + 1, "..."
    else:
        yield from _block_with_statement(inner, depth + 1)
    if otherwise := getattr(node, "orelse", []):
        yield depth, "else:"
        yield from _block_with_statement(otherwise, depth + 1)


def _block_with_statement(body: Sequence[ast.stmt], depth: int) -> Iterator[Line]:
    """Yield the lines of a block; at least one of them is a statement."""
    if depth >= _MAX_DEPTH:
        yield depth, "..."
        return
    bare = True
    for line in _block(body, depth):
        bare = bare and line[1].startswith("#")
        yield line
    if bare:
        yield depth, "..."


def _opening_line(node: ast.stmt) -> str | None:
    """Return the line that opens a compound statement, or None for a simple one."""
    wait = "async " if isinstance(node, ast.AsyncFor | ast.AsyncWith | ast.AsyncFunctionDef) else ""
    if isinstance(node, ast.If | ast.While):
        return f"{'if' if isinstance(node, ast.If) else 'while'} {_shorten(node.test, '...')}:"
    if isinstance(node, ast.For | ast.AsyncFor):
        return f"{wait}for {_shorten(node.target, '_')} in {_shorten(node.iter, '...')}:"
    if isinstance(node, ast.With | ast.AsyncWith):
        return f"{wait}with {', '.join(_shorten(item, '...') for item in node.items)}:"
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return f"{wait}def {node.name}({_shorten(node.args, '*_')}):"
    return f"class {node.name}:" if isinstance(node, ast.ClassDef) else None


def _simple(node: ast.stmt) -> str:
    """Return a simple statement as one line, with an ellipsis in the place of long parts."""
    text = _shorten(node, "")
    if text:
        return text
    if isinstance(node, ast.Return):
        return "return ..."
    if isinstance(node, ast.Assign):
        return f"{' = '.join(_shorten(target, '_') for target in node.targets)} = ..."
    if isinstance(node, ast.Raise):
        return f"raise {_call(node.exc)}"
    return _call(node.value) if isinstance(node, ast.Expr) else "..."


def _call(node: ast.expr | None) -> str:
    name = _shorten(node.func, "") if isinstance(node, ast.Call) else ""
    return f"{name}(...)" if name else "..."


def _shorten(node: ast.AST, instead: str) -> str:
    """Return the source of a node if it is short and fits on one printable line, else ``instead``."""
    text = ast.unparse(node)
    return text if text and len(text) <= _MAX_WIDTH and text.isprintable() else instead


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class _Detail:
    """Limits of a draft in characters; 0 leaves a part out. ``whole`` takes the first paragraph of a docstring, not sentence.

    ``body`` is the number of lines per function body.
    """

    docs: int
    private_docs: int
    whole: bool
    fields: int
    constants: int
    imports: int
    body: int = 0


_MOST = _Detail(docs=400, private_docs=400, whole=True, fields=100, constants=80, imports=2_000)
_LEVELS = (
    *(replace(_MOST, body=lines) for lines in (60, 40, 28, 20, 14, 10, 7, 5, 4, 3, 2, 1)),
    _MOST,
    _Detail(docs=240, private_docs=120, whole=True, fields=80, constants=60, imports=600),
    _Detail(docs=160, private_docs=80, whole=False, fields=60, constants=40, imports=300),
    _Detail(docs=100, private_docs=40, whole=False, fields=60, constants=30, imports=200),
    _Detail(docs=72, private_docs=0, whole=False, fields=40, constants=0, imports=200),
    _Detail(docs=48, private_docs=0, whole=False, fields=30, constants=0, imports=120),
    _Detail(docs=48, private_docs=0, whole=False, fields=0, constants=0, imports=0),
    _Detail(docs=0, private_docs=0, whole=False, fields=0, constants=0, imports=0),
)
"""What a summary shows, from the most detailed to the shortest that says anything."""


class PythonSummariser:
    """Summarises Python by its syntax tree: modules and classes, also in ``if``, ``try``, ``with``; no inner functions."""

    strategy = "python/3"
    kinds = frozenset({PYTHON})
    target = 30
    limit = 600_000

    def drafts(self, text: str, kind: str) -> Iterator[Draft]:
        """Yield stubs, the last one with only signatures. Raises SyntaxError, ValueError, RecursionError or MemoryError."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # e.g. an invalid escape in somebody's string
            tree = ast.parse(text.removeprefix("\ufeff"))
        for detail in _LEVELS:
            head = [*_docstring(tree, detail, "", private=False), *_imports(tree, detail)]
            parts = [head, *_members(tree.body, detail, "")]
            if any(parts):
                yield tuple(map(join_lines, parts))
        if not any(isinstance(node, Definition) for node in ast.walk(tree)):
            yield from beginnings(text)  # a module that only holds data


def _members(body: Sequence[ast.stmt], detail: _Detail, indent: str) -> Iterator[list[str]]:
    """Yield the lines of each member, of which there are as many at every level of detail."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _definition(node, detail, indent)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            yield list(_assignment(node, detail, indent))
        else:
            for part in _inner_blocks(node):
                yield from _members(part, detail, indent)


def _inner_blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(node, ast.If | ast.For | ast.AsyncFor | ast.While):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.Try | ast.TryStar):
        yield from (node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody)
    elif isinstance(node, ast.With | ast.AsyncWith):
        yield node.body
    elif isinstance(node, ast.Match):
        yield from (case.body for case in node.cases)


def _definition(node: Definition, detail: _Detail, indent: str) -> Iterator[list[str]]:
    lines: list[str] | None = getattr(node, "signature_lines", None)
    if lines is None:
        lines = _signature(node)
        vars(node)["signature_lines"] = lines  # stored: every draft needs them, and unparsing takes most of the time
    *decorators, signature = lines
    inner = list(_docstring(node, detail, indent + "    ", private=_is_private(node.name)))
    members: list[list[str]] = []
    if isinstance(node, ast.ClassDef):
        members = list(_members(node.body, detail, indent + "    "))
        # Only a method is in every draft. Another draft may lack the fields, and a class without a body is no Python.
        if not any(isinstance(part, Definition) for part in ast.walk(node) if part is not node):
            inner, members = [*inner, *chain.from_iterable(members)], []
    elif detail.body:
        inner += first_lines(node, detail.body, indent + "    ")
    opening = indent + signature + ("" if inner or any(members) else " ...")
    yield [*(indent + line for line in decorators), opening, *inner]
    yield from members


def _signature(node: Definition) -> list[str]:
    """Return the decorators and the opening line of a definition, each as one line."""
    # `ast.unparse` also writes a body, so use the shortest one and remove it.
    empty: list[ast.stmt] = [ast.Pass()]
    if isinstance(node, ast.ClassDef):
        bare: Definition = ast.ClassDef(node.name, node.bases, node.keywords, empty, [])
    else:
        bare = type(node)(node.name, node.args, empty, [], node.returns)
    for name in ("type_params",):  # since Python 3.12
        if hasattr(node, name):
            setattr(bare, name, getattr(node, name))
    opening = ast.unparse(ast.fix_missing_locations(bare)).rpartition("\n")[0]
    return [*("@" + ast.unparse(decorator) for decorator in node.decorator_list), opening]


def _docstring(node: Definition | ast.Module, detail: _Detail, indent: str, *, private: bool) -> Iterator[str]:
    limit = detail.private_docs if private else detail.docs
    docstring = ast.get_docstring(node) if limit else None
    if docstring:
        text = first_paragraph(docstring) if detail.whole else first_sentence(docstring, limit)
        # Escape the text so that it can't end its docstring: the summary must stay valid Python.
        text = shorten(text, limit).replace("\\", "\\\\").replace('"""', "'''")
        text = "".join(sign if sign.isprintable() else "?" for sign in text)
        yield f'{indent}"""{text}{" " if text.endswith(chr(34)) else ""}"""'


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
    """Return the value if it is short, else an ellipsis, so that the line is valid Python."""
    # Such a value is too long, and unparsing a table of thousands of lines takes long.
    if (node.end_lineno or node.lineno) - node.lineno > 3:
        return "..."
    value = one_line(ast.unparse(node)) if not isinstance(node, ast.Constant) else repr(node.value)
    return value if len(value) <= limit else "..."


def _imports(tree: ast.Module, detail: _Detail) -> Iterator[str]:
    """Yield one comment with all modules that are imported at the top level."""
    found: dict[str, None] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            found.update(dict.fromkeys(alias.name for alias in node.names))
        elif isinstance(node, ast.ImportFrom):
            found[f"{'.' * node.level}{node.module or ''}"] = None
    found.pop("__future__", None)
    if found and detail.imports:
        yield shorten(f"# imports {', '.join(found)}", detail.imports)


def _is_private(name: str) -> bool:
    return bool(re.match(r"_(?!_)", name))
