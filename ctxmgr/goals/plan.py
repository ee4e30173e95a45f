"""Read a plan in Markdown or YAML as tasks and subtasks."""

from __future__ import annotations

from pathlib import Path

from ctxmgr.errors import InvalidInput, NotFound
from ctxmgr.goals.plan_markdown import from_markdown
from ctxmgr.goals.plan_steps import MAX_STEPS, MAX_TITLE, Plan, Step
from ctxmgr.goals.plan_yaml import from_yaml
from ctxmgr.paths import open_regular
from ctxmgr.text.lazy_pattern import lazy_pattern

__all__ = ["MAX_BYTES", "MAX_LINE", "MAX_LINES", "MAX_TITLE", "Plan", "Step", "parse_plan", "read_content", "read_plan"]

MAX_BYTES = 256 * 1024
MAX_LINES = 10_000
MAX_LINE = 10_000
"""Characters of one line; a longer one is no step of a plan."""

_YAML, _MARKDOWN = frozenset({".yaml", ".yml", ".json"}), frozenset({".md", ".markdown", ".mdown", ".txt", ".rst"})
_YAML_START = lazy_pattern(r"(?:---\s|%YAML|[{\[]|(?!https?:)[\w\"'][^#\n]*:(?:\s|$))")


def read_plan(path: Path) -> Plan:
    """Return the plan in a file.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it is no plain file, too big, no UTF-8, broken, or holds no step.
    """
    return parse_plan(read_content(path), str(path))


def parse_plan(data: bytes, name: str) -> Plan:
    """Return the plan in a text; ``name`` says by its ending whether it is YAML or Markdown, else its beginning does.

    Raises:
        InvalidInput: it is too big, no UTF-8, broken, or holds no step.
    """
    text = _decoded(data, name)
    ending = Path(name).suffix.lower()
    if ending in _YAML or (ending not in _MARKDOWN and _YAML_START.match(text.lstrip())):
        plan = from_yaml(text, name)
    else:
        plan = from_markdown(text)
    if not plan.tasks:
        raise InvalidInput(
            f"{name}: no step found", "a plan is a list ('- [ ] write the parser'), nested where a task has subtasks"
        )
    if plan.size > MAX_STEPS:
        raise InvalidInput(f"{name}: {plan.size:,} steps, at most {MAX_STEPS:,} are read", "split the plan")
    return plan


def read_content(path: Path) -> bytes:
    """Return the beginning of a plain file, one byte more than a plan may have; pipes and devices are never waited for.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it is no plain file, or can't be read.
    """
    try:
        descriptor = open_regular(path)
    except FileNotFoundError:
        raise NotFound(f"{path}: no such file", "name the plan's file, or '-' for stdin") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidInput(f"{path}: {reason}", "check the path, and its permissions") from None
    try:
        with open(descriptor, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}", "check the file") from None


def _decoded(data: bytes, name: str) -> str:
    if len(data) > MAX_BYTES:
        raise InvalidInput(f"{name}: a plan is at most {MAX_BYTES // 1024} KiB", "split it, or keep the steps only")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{name}: no UTF-8 at byte {error.start:,}", "save the plan as UTF-8") from None
    if "\0" in text:
        raise InvalidInput(f"{name}: not a text", "save the plan as UTF-8")
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        raise InvalidInput(f"{name}: {len(lines):,} lines, at most {MAX_LINES:,} are read", "split the plan")
    longest = max(range(len(lines)), key=lambda number: len(lines[number]), default=0)
    if lines and len(lines[longest]) > MAX_LINE:
        raise InvalidInput(
            f"{name}: line {longest + 1:,} has {len(lines[longest]):,} characters, at most {MAX_LINE:,} are read",
            "a step is a short line of text",
        )
    return text
