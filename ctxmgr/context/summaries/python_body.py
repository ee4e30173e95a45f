"""The implementation of a Python function in a few lines that are themselves Python: what it calls, returns and raises."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

MOST_LINES = 60
"""Lines of one function that are told at most."""

_WIDTH = 100
_DEPTH = 6
_STEP = "    "

Line = tuple[int, str]
"""How deep a line stands in its function, and what it says."""


def first_lines(node: ast.FunctionDef | ast.AsyncFunctionDef, count: int, indent: str) -> list[str]:
    """Return the first lines of a function's body, its docstring left out; an ellipsis stands for what is not told."""
    lines: list[Line] | None = getattr(node, "lines", None)
    if lines is None:
        body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
        lines = []
        for line in _block(body, 0):
            lines.append(line)
            if len(lines) > MOST_LINES:
                break
        vars(node)["lines"] = lines  # every draft needs them
    told = lines[:count]
    found = [indent + _STEP * depth + text for depth, text in told]
    opened = next(((depth, text) for depth, text in reversed(told) if not text.startswith("#")), None)
    if opened is not None and opened[1].endswith(":"):  # a block without a statement is no Python
        found.append(indent + _STEP * (opened[0] + 1) + "...")
    elif len(lines) > count or opened is None:
        found.append(indent + "...")
    return found


def _block(body: Sequence[ast.stmt], depth: int) -> Iterator[Line]:
    for node in body:
        yield from _statement(node, depth)


def _statement(node: ast.stmt, depth: int) -> Iterator[Line]:
    if isinstance(node, ast.Try | ast.TryStar):  # told without its frame, which would not be whole after a cut
        yield depth, "# try"
        yield from _block(node.body, depth)
        for handler in node.handlers:
            caught = _short(handler.type, "...") if handler.type is not None else "anything"
            yield depth, f"# except {caught}"
            yield from _block(handler.body, depth)
        for name, part in (("else", node.orelse), ("finally", node.finalbody)):
            if part:
                yield depth, f"# {name}"
                yield from _block(part, depth)
        return
    opening = _opening(node)
    if opening is None:
        yield depth, _simple(node)
        return
    yield depth, opening
    inner: list[ast.stmt] = getattr(node, "body", [])
    if depth + 1 >= _DEPTH or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield depth + 1, "..."
    else:
        yield from _filled(inner, depth + 1)
    if otherwise := getattr(node, "orelse", []):
        yield depth, "else:"
        yield from _filled(otherwise, depth + 1)


def _filled(body: Sequence[ast.stmt], depth: int) -> Iterator[Line]:
    """Yield the lines of a block, of which one at least is a statement."""
    if depth >= _DEPTH:
        yield depth, "..."
        return
    bare = True
    for line in _block(body, depth):
        bare = bare and line[1].startswith("#")
        yield line
    if bare:
        yield depth, "..."


def _opening(node: ast.stmt) -> str | None:
    """Return the line that opens a compound statement; None for a simple one."""
    wait = "async " if isinstance(node, ast.AsyncFor | ast.AsyncWith | ast.AsyncFunctionDef) else ""
    if isinstance(node, ast.If | ast.While):
        return f"{'if' if isinstance(node, ast.If) else 'while'} {_short(node.test, '...')}:"
    if isinstance(node, ast.For | ast.AsyncFor):
        return f"{wait}for {_short(node.target, '_')} in {_short(node.iter, '...')}:"
    if isinstance(node, ast.With | ast.AsyncWith):
        return f"{wait}with {', '.join(_short(item, '...') for item in node.items)}:"
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return f"{wait}def {node.name}({_short(node.args, '*_')}):"
    return f"class {node.name}:" if isinstance(node, ast.ClassDef) else None


def _simple(node: ast.stmt) -> str:
    """Return a simple statement in one line, with an ellipsis in the place of what is long."""
    told = _short(node, "")
    if told:
        return told
    if isinstance(node, ast.Return):
        return "return ..."
    if isinstance(node, ast.Assign):
        return f"{' = '.join(_short(target, '_') for target in node.targets)} = ..."
    if isinstance(node, ast.Raise):
        return f"raise {_call(node.exc)}"
    return _call(node.value) if isinstance(node, ast.Expr) else "..."


def _call(node: ast.expr | None) -> str:
    name = _short(node.func, "") if isinstance(node, ast.Call) else ""
    return f"{name}(...)" if name else "..."


def _short(node: ast.AST, instead: str) -> str:
    """Return how a node is written where that is short, and plain to print in one line."""
    told = ast.unparse(node)
    return told if told and len(told) <= _WIDTH and told.isprintable() else instead
