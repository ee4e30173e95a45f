"""The commands of ``goal`` whose JSON is pinned, each on a project of its own, and how what changes is masked.

Loaded by `golden`, which writes and compares them with all the others.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from tests.cli.console import Ran, run
from tests.cli.goals import PLAN

Line = tuple[str, ...]

_ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\b20\d\d-\d\d-\d\dT[0-9:.]+Z")
_CLOCK = re.compile(r"(?<=since )\d\d:\d\d|(?<= at )\d\d:\d\d|(?<=\"basis\":\")\w{12}|(?<=\"question\":\")\w{12}")
_OWN = re.compile(r'"(sum|pid|host|owner|finding|identity|diffOf|durationMs|stalledSeconds)":(?:"[^"]*"|[\d.]+)')
_HASH = re.compile(r'"(hash|id)":"[0-9a-f]{12,16}"')

_START: Line = ("start", "--from", "plan.md")
_AGAIN: Line = ("record", "run_tests", "--args", '{"path": "tests"}', "--result", "error: 2 failed")
_BEGUN: tuple[Line, ...] = (_START, ("next",))
_LOOPING = (*_BEGUN, _AGAIN, _AGAIN, _AGAIN)
_PROBED = (*_BEGUN, ("probe", "add", "has_plan", "--exists", "plan.md"))

CASES: dict[str, tuple[tuple[Line, ...], Line]] = {
    "goal-start": ((), _START),
    "goal-start-plan": ((), (*_START, "--plan")),
    "goal-start-conflict": ((_START,), ("start", "another goal")),
    "goal-start-error": ((), ("start", "--from", "broken.yaml")),
    "goal-tree": (_BEGUN, ("tree",)),
    "goal-tree-error": ((), ("tree",)),
    "goal-next": ((_START,), ("next",)),
    "goal-done": (_BEGUN, ("done",)),
    "goal-done-error": (_BEGUN, ("done", "t9")),
    "goal-fail-blocked": ((*_BEGUN, ("fail", "--reason", "no"), ("next",)), ("fail", "--reason", "no again")),
    "goal-record": (_BEGUN, ("record", "read", "--args", '{"path": "a.py"}', "--result", "text")),
    "goal-record-refused": (_LOOPING, _AGAIN),
    "goal-record-error": (_BEGUN, ("record", "x", "--args", "{", "--result", "success")),
    "goal-brief": ((*_LOOPING, _AGAIN), ("brief",)),
    "goal-brief-short": ((*_LOOPING, _AGAIN), ("brief", "--max-chars", "120")),
    "goal-resume": ((*_PROBED, ("record", "deploy", "--begin")), ("resume",)),
    "goal-recover": ((*_LOOPING, _AGAIN), ("recover",)),
    "goal-recover-healthy": (_BEGUN, ("recover",)),
    "goal-say": ((*_LOOPING, _AGAIN), ("say", "use the other server")),
    "goal-unblock": ((*_LOOPING, _AGAIN), ("unblock", "run_tests", "--reason", "the server is up")),
    "goal-block": (_BEGUN, ("block", "t2", "--reason", "waiting for the key")),
    "goal-add": (_BEGUN, ("add", "handle zero", "--after", "t1.2")),
    "goal-split": (_BEGUN, ("split", "t2.1", "head", "body", "--reason", "too big")),
    "goal-move": (_BEGUN, ("move", "t2.2", "--before", "t2.1")),
    "goal-drop": (_BEGUN, ("drop", "t2", "--reason", "not needed")),
    "goal-probe-add": (_BEGUN, ("probe", "add", "has_add", "--file", "a.py", "--contains", "def add(")),
    "goal-probe-list-empty": (_BEGUN, ("probe", "list")),
    "goal-probe-check": (_PROBED, ("probe", "check")),
    "goal-compare": (_LOOPING, ("compare",)),
}
"""Name of the golden file -> what is done before, and the command."""


def answer(name: str) -> Ran:
    """Run a command in a project of its own; return what it printed, masked."""
    before, command = CASES[name]
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        project = Path(folder)
        (project / "broken.yaml").write_text("a:\n\t- b\n", "utf-8")
        (project / "plan.md").write_text(PLAN, "utf-8")
        for line in before:
            _run(project, line)
        return _masked(_run(project, command), folder)


def _run(project: Path, line: Line) -> Ran:
    files = {"plan.md", "broken.yaml"} if line[0] == "start" else set[str]()
    words = [str(project / word) if word in files else word for word in line]
    return run("goal", *words, "--dir", str(project), "--json")


def _masked(ran: Ran, folder: str) -> Ran:
    text = ran.out.replace(str(Path(folder).resolve()), "<folder>").replace(folder, "<folder>")
    text = _HASH.sub('"hash":"<hash>"', _OWN.sub(r'"\1":"<\1>"', text))
    return ran._replace(out=_CLOCK.sub("<clock>", _TIME.sub("<time>", _ID.sub("<id>", text))))
