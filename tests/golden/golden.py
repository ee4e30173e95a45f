"""The commands whose JSON is pinned, and how what changes from run to run is masked.

``python -m tests.golden.golden`` writes what the commands print now into fixtures/golden; `test_golden` compares.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.cli.invocation import set_agent
from ctxmgr.store import open_store
from ctxmgr.types.artifact import PutRequest
from tests.cli.console import Ran, lines, make_history, records, run
from tests.golden import artifact_cases, goals, project_cases

GOLDEN = Path(__file__).parents[2] / "fixtures" / "golden"

_ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b")
_CLOCK = re.compile(r"(?<=since )\d\d:\d\d|(?<= at )\d\d:\d\d")
_TIME = re.compile(r"\b20\d\d-(?!01-2[12])\d\d-\d\dT[0-9:.]+Z")

CASES: dict[str, tuple[str, ...]] = {
    "trust-list-empty": ("trust", "--list"),
    "sessions": ("sessions",),
    "sessions-not-judged": ("sessions", "--no-judge", "--limit", "1"),
    "sessions-empty": ("sessions", "--store", "EMPTY"),
    "sessions-stuck": ("sessions", "--stuck", "--limit", "1"),
    "stats": ("stats", "--by", "agent"),
    "stats-session": ("stats", "healthy"),
    "stats-empty": ("stats", "--store", "EMPTY"),
    "stats-error": ("stats", "--by", "nosuch"),
    "sql": ("sql", "SELECT session, idx, action, status, error FROM entries WHERE status <> 'ok'"),
    "sql-findings": ("sql", "SELECT session, kind, severity, count, first, last FROM findings"),
    "sql-cut": ("sql", "SELECT idx FROM entries ORDER BY idx", "--limit", "1"),
    "sql-views": ("sql", "--views"),
    "sql-empty": ("sql", "SELECT * FROM sessions", "--store", "EMPTY"),
    "sql-error": ("sql", "DELETE FROM entry"),
    "list": ("list", "--session", "healthy"),
    "list-all": ("list", "--session", "healthy", "--kind", "all", "--limit", "3"),
    "list-newest": ("list", "--session", "looping", "--newest-first", "--limit", "2"),
    "list-fields": ("list", "--session", "healthy", "--fields", "index,error.message"),
    "list-empty": ("list", "--store", "EMPTY"),
    "list-none": ("list", "--session", "healthy", "--action", "nosuch"),
    "list-error": ("list", "--session", "nosuch"),
    "usage-error": ("list", "--limit", "many"),
    "trace": ("trace", "Bash", "--session", "healthy"),
    "trace-empty": ("trace", "--store", "EMPTY"),
    "search": ("search", "ship", "--session", "healthy"),
    "search-empty": ("search", "ship", "--store", "EMPTY"),
    "search-error": ("search", ""),
    "show": ("show", "healthy@1"),
    "show-error": ("show", "healthy@99"),
    "show-empty": ("show", "@0", "--store", "EMPTY"),
    "messages": ("messages", "--session", "healthy"),
    "messages-of-entry": ("messages", "healthy@2"),
    "messages-empty": ("messages", "--store", "EMPTY"),
    "note-add": ("note", "add", "0", "2", "-m", "kept", "-t", "routing", "--link", "healthy@1", "--author", "bo"),
    "note-add-error": ("note", "add", "0", "-m", " "),
    "note-list": ("note", "list"),
    "note-list-empty": ("note", "list", "--store", "EMPTY"),
    "note-search": ("note", "search", "flaky", "--all-sessions"),
    "snapshot-create": ("snapshot", "create", "0", "1", "--summary", "the first two", "--reasoning", "to look at"),
    "snapshot-create-error": ("snapshot", "create", "99", "--summary", "x"),
    "snapshot-list": ("snapshot", "list"),
    "snapshot-list-empty": ("snapshot", "list", "--store", "EMPTY"),
    "snapshot-show": ("snapshot", "show", "snap"),
    "snapshot-show-error": ("snapshot", "show", "nosuch"),
    "memory-retain": (
        "memory", "retain", "ship only after make", "--entry", "healthy@1", "-t", "release", "--author", "bo",
    ),
    "memory-retain-error": ("memory", "retain", " "),
    "memory-recall": ("memory", "recall", "flaky", "--notes", "--expand", "1"),
    "memory-recall-empty": ("memory", "recall", "flaky", "--store", "EMPTY"),
    "memory-recall-error": ("memory", "recall", ""),
    "memory-reflect": ("memory", "reflect", "make ships", "--store", "MEMORY"),
    "memory-reflect-empty": ("memory", "reflect", "flaky"),
    "detect": ("detect", "--all-sessions"),
    "detect-healthy": ("detect", "--session", "healthy"),
    "detect-empty": ("detect", "--store", "EMPTY"),
    "recover-loop": ("recover", "--session", "looping"),
    "recover-hung": ("recover", "--session", "hung"),
    "recover-healthy": ("recover", "--session", "healthy"),
    "recover-empty": ("recover", "--store", "EMPTY"),
    "prompt-agent": ("prompt", "agent", "--for", "coder"),
    "prompt-agent-empty": ("prompt", "agent", "--store", "EMPTY"),
    "prompt-agent-error": ("prompt", "agent", "--routes", "ABSENT"),
    "request": (
        "request", "--session", "healthy", "--type", "proceed", "--review", "--from", "reviewer", "--to", "merger",
        "--reason", "reviewed", "--goal", "merge it",
    ),
    "request-error": ("request", "--type", "odd", "--from", "a", "--reason", "b", "--goal", "c"),
    "context-assemble": (
        "context", "assemble", "dev", "--max-tokens", "900", "--task", "T-1", "--with", "arch/none.md", "--store", "PROJECT",
    ),
    "context-assemble-empty": ("context", "assemble", "dev", "--store", "EMPTY"),
    "context-assemble-error": ("context", "assemble", "strict", "--max-tokens", "300", "--store", "PROJECT"),
    "context-assemble-missing": ("context", "assemble", "lost", "--store", "PROJECT"),
    "context-request": ("context", "request", "dev", "arch/plan.md", "arch/plam.md", "--store", "PROJECT"),
    "context-request-empty": ("context", "request", "dev", "data/secret.md", "--as", "dev", "--store", "PROJECT"),
    "context-request-error": ("context", "request", "dev", "**"),
    "context-why": ("context", "why", "arch/long.md", "--store", "PROJECT"),
    "context-why-absent": ("context", "why", "data/secret.md", "--as", "dev", "--store", "PROJECT"),
    "context-why-empty": ("context", "why", "arch/long.md", "--store", "EMPTY"),
    "context-why-error": ("context", "why", "nonsense"),
    "context-need-add": ("context", "need", "add", "dev", "data/*", "--need", "reference", "--max-tokens", "50"),
    "context-need-add-error": ("context", "need", "add", "dev", "data/**"),
    "context-need-remove": ("context", "need", "remove", "dev", "arch/*", "--store", "PROJECT"),
    "context-need-remove-error": ("context", "need", "remove", "dev", "arch/*"),
    "context-need-list": ("context", "need", "list", "--store", "PROJECT"),
    "context-need-list-empty": ("context", "need", "list", "--store", "EMPTY"),
    **artifact_cases.CASES,
    **project_cases.CASES,
    "formats": ("formats",),
    "import": ("import", "LOG"),
    "import-empty": ("import", "FOLDER"),
    "import-error": ("import", "--from", "odd"),
    "record": ("record",),
    "record-error": ("record", "--session", "s"),
    "index": ("index",),
    "store-migrate": ("store", "migrate"),
    "store-init-error": ("store", "init"),
    "store-grant-error": ("store", "grant", "alice", "--team", "one"),
    "store-revoke-error": ("store", "revoke", "alice"),
    "store-teams-error": ("store", "teams"),
    "index-error": ("index", "--store", "ABSENT"),
    "verify": ("verify",),
    "verify-damaged": ("verify", "--store", "TORN"),
    "schema": ("schema",),
    "schema-exits": ("schema", "exits"),
    "schema-error": ("schema", "nosuch"),
}  # fmt: skip
"""Name of the golden file -> command line; words in capitals stand for files that `answer` lays out."""


def answer(name: str) -> Ran:
    """Run a command on a history of its own, with fixed ids and times; return what it printed, masked."""
    if name not in CASES:
        return goals.answer(name)
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        return _masked(_run(Path(folder), name, CASES[name]), folder)


def _run(folder: Path, name: str, command: tuple[str, ...]) -> Ran:
    snapshot = {"v": 1, "kind": "snapshot", "session": "healthy", "ts": "2026-01-22T10:00:06Z", "id": "snap-1",
                "entries": ["healthy-e0000", "gone"], "summary": "s", "reasoning": "r", "hash": "0"}  # fmt: skip
    store = make_history(folder / "history.db", snapshot)
    if "EMPTY" in command:
        run("record", "--store", str(folder / "empty.db"), given="")
    (folder / "log.jsonl").write_text(lines(*records()), encoding="utf-8")
    (folder / "torn.jsonl").write_text(lines(*records())[:-30], encoding="utf-8")
    (folder / "none").mkdir()
    kept = {"v": 1, "kind": "note", "session": "healthy", "entries": ["healthy-e0001"], "tags": ["memory"], "author": "bo"}
    said = ("make fails at first, then ships", "make never ships at first", "does make ship twice?")
    kept_log = lines(*records(), *({**kept, "ts": f"2026-01-22T10:01:0{n}Z", "id": f"k{n}", "content": text}
                                   for n, text in enumerate(said)))  # fmt: skip
    (folder / "memory.jsonl").write_text(kept_log, encoding="utf-8")
    places = {
        "EMPTY": "empty.db",
        "ABSENT": "absent.db",
        "LOG": "log.jsonl",
        "TORN": "torn.jsonl",
        "FOLDER": "none",
        "MEMORY": "memory.jsonl",
    }
    if "PROJECT" in command:
        places["PROJECT"] = "project.db"
        shutil.copytree(_project().name, folder, symlinks=True, dirs_exist_ok=True)
    words = [str(folder / places[word]) if word in places else word for word in command]
    if "--store" not in words and command[0] not in ("schema", "formats"):
        words += ["--store", str(folder / "imported.db" if name.startswith("import") else store)]
    given = {"record": lines(*records()[-3:], {**snapshot, "id": "snap-2"}), "record-error": "no json\n"}
    return run(*words, "--json", given=given.get(name))


@cache
def _project() -> tempfile.TemporaryDirectory[str]:
    """Lay out a project, once: three artifacts, a rule, needs of three agents, and a package of one of them."""
    made: tempfile.TemporaryDirectory[str] = tempfile.TemporaryDirectory(prefix="golden-")
    place = os.path.join(made.name, "project.db")
    set_agent(None)
    with closing(open_store(place, create=True)) as store:
        artifacts = ArtifactStore(store)
        for agent, name, content in (
            ("arch", "plan.md", "# Plan\n\nShip it.\n"), ("data", "secret.md", "hidden\n"),
            ("arch", "long.md", "# Long\n\n" + "The same sentence stands here. " * 150 + "\n"),
        ):  # fmt: skip
            artifacts.put(PutRequest.model_validate({"agent": agent, "artifacts": [{"name": name, "content": content}]}))
    for command in (
        ("access", "allow", "dev", "artifact", "arch/*"), ("access", "allow", "dev", "context", "*"),
        ("access", "allow", "strict", "artifact", "*"), ("context", "set", "project_name", "Finance CLI"),
        ("context", "need", "add", "dev", "arch/*", "--need", "optional"), ("context", "need", "add", "strict", "arch/*"),
        ("context", "need", "add", "lost", "arch/*"), ("context", "assemble", "dev", "--max-tokens", "900"),
    ):  # fmt: skip
        assert run(*command, "--store", place).code == 0
    return made


def _masked(ran: Ran, folder: str) -> Ran:
    text = ran.out.replace(os.path.realpath(folder), "<folder>").replace(folder, "<folder>")
    return ran._replace(out=_CLOCK.sub("<clock>", _TIME.sub("<time>", _ID.sub("<id>", text))))


def names() -> set[str]:
    """Return the names of all golden files."""
    return {*CASES, *goals.CASES}


def commands() -> set[str]:
    """Return the commands that are pinned."""
    return {command[0] for command in CASES.values()} | {"goal"}


def golden(ran: Ran) -> str:
    """Return the text of a golden file: how the command ended, and its answer for people to read."""
    return json.dumps({"exit": ran.code, "answer": ran.envelope}, indent=2) + "\n"


def main() -> None:
    """Write all golden files anew."""
    GOLDEN.mkdir(exist_ok=True)
    for old in GOLDEN.glob("*.json"):
        old.unlink()
    for name in names():
        (GOLDEN / f"{name}.json").write_text(golden(answer(name)), encoding="ascii")


if __name__ == "__main__":
    main()
