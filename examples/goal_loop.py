"""An agent loop that survives a crash: its plan, its guard and its prompt come from ctxmgr instead of the message history.

Run it, stop it at any point (Ctrl-C, kill -9), run it again: it goes on where it was. The scripted model stands in for yours.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ctxmgr.goals import GoalTracker, Subtask, Task

Call = tuple[str, dict[str, Any]]


def scripted_model() -> Iterator[Call]:
    """Answer like a model that gets stuck once: it runs tests that can't pass until it writes the missing file."""
    yield "write_file", {"path": "mathx/__init__.py", "content": "def add(a, b):\n    return a + b\n"}
    yield "finish", {}
    for _ in range(4):
        yield "run_tests", {"path": "mathx/test_add.py"}
    yield "write_file", {"path": "mathx/test_add.py", "content": "from mathx import add\nassert add(2, 3) == 5\n"}
    yield "run_tests", {"path": "mathx/test_add.py"}
    yield "finish", {}


def do(root: Path, name: str, args: dict[str, Any]) -> str:
    """Do what the model asks for; the result is what the guard compares."""
    path = root / args["path"]
    if name == "write_file":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(args["content"])
        return "success"
    return "success" if path.exists() else f"error: {args['path']} is not there"


def main(root: Path) -> None:
    """Work on the goal until nothing is left."""
    with GoalTracker(root / ".agent_context") as ctx:
        ctx.load_or_init("Create the mathx package")
        if not ctx.state.goal.tasks:
            ctx.state.goal.tasks.append(Task("Create the package", [Subtask("Write add()"), Subtask("Test add()")]))
        for name, args in scripted_model():
            prompt = ctx.get_compact_context(max_chars=2000)  # what you would send, instead of all messages so far
            print(f"{len(prompt)} characters -> {name} {args.get('path', '')}")
            if name == "finish":
                ctx.mark_subtask_complete(success=True)
                if ctx.advance_to_next_subtask() is None:
                    break
            elif not (verdict := ctx.record_action(name, args, do(root, name, args))):
                print(f"refused: {verdict.reason}")  # the next prompt says so too
        print(ctx.get_compact_context())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
