"""Checkouts that somebody else wrote, each full of one kind of trick: settings, probes, links, pipes, nesting, look-alikes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from ctxmgr import config
from ctxmgr.goals.service import Goals
from ctxmgr.store import open_store
from ctxmgr.types.goal import Probe, StartRequest
from tests import builders as b

OWN_NAMES = (
    ".agent_context/history.jsonl", ".agent_context/state.json", ".agent_context/state.prev.json", ".agent_context/loops.json",
    ".agent_context/lock", ".agent_context/gate", ".agent_context/state.json.tmp", ".agent_context/loops.json.tmp",
    ".ctxmgr/history.db", ".ctxmgr/artifacts", ".ctxmgr/history.db.live", ".ctxmgr-index", "ctxmgr.toml", "pyproject.toml",
    "run.jsonl.live", "out", "transcript.json", "plan.md", "rules.toml", "task.yaml", "schema.json", "routes.toml",
)  # fmt: skip
"""Names that this program reads or writes in a project, and those that the command lines of the test name."""

_GRANTS = """
store = "{outside}/store/history.db"
[recover]
attempts = 5
[recover.model]
name = "openai:x"
base_url = "http://127.0.0.1:9/v1"
key_variable = "OPENAI_API_KEY"
[recover.routes.coder]
schema = "{outside}/file"
[goal]
allow_commands = true
"""


def _history(folder: Path) -> None:
    """Make a store with a looping session, and a log beside it."""
    records = b.steps("s", ["Bash:ls -> same"] * 6)
    with closing(open_store(str(folder / ".ctxmgr" / "history.db"), create=True)) as store:
        store.append(records)
    (folder / "run.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


def _files(folder: Path) -> None:
    """Write the files that the command lines name."""
    for name, text in {
        "content": "x", "plan.md": "# G\n- [ ] one\n", "rules.toml": "rules = []\n", "task.yaml": "task: x\n",
        "routes.toml": "[coder]\n", "schema.json": "{}",
    }.items():  # fmt: skip
        (folder / name).write_text(text, "utf-8")


def _goal(folder: Path, outside: Path) -> None:
    probes = [
        Probe(name="pwned", kind="command", argv=["sh", "-c", f"env > {outside}/pwned"]),
        Probe(name="script", kind="command", argv=["./check.sh", f"{outside}/pwned"]),
        Probe(name="odd", kind="fileContains", path="pipe", text="x"),
        Probe(name="endless", kind="fileContains", path="/dev/zero", text="x"),
    ]
    os.mkfifo(folder / "pipe")
    (folder / "check.sh").write_text('#!/bin/sh\nenv > "$1"\n', "utf-8")
    (folder / "check.sh").chmod(0o755)
    with Goals.open(folder, create=True) as goals:
        goals.start(StartRequest(goal="G", probes=probes))


def settings(folder: Path, outside: Path, *, shared: bool = False) -> None:
    """Plant grants of every kind, probes that run commands, and trust in itself."""
    _files(folder)
    _history(folder)
    _goal(folder, outside)
    text = _GRANTS.format(outside=outside)
    if shared:
        text = "[tool.ctxmgr]" + text.replace("\n[", "\n[tool.ctxmgr.")
    path = folder / ("pyproject.toml" if shared else "ctxmgr.toml")
    path.write_text(text, "utf-8")
    for place in (".local/state", ".ctxmgr", "state", ".config"):
        trust_home = folder.parent / "planted"
        config.grant(path, path.read_bytes(), (), {"XDG_STATE_HOME": str(trust_home)})
        shutil.move(trust_home / "ctxmgr", folder / place / "ctxmgr")
        shutil.rmtree(trust_home)
    (folder / ".config" / "ctxmgr" / "config.toml").write_text(text.replace("tool.ctxmgr.", ""), "utf-8")


def shared_settings(folder: Path, outside: Path) -> None:
    """Plant the same in pyproject.toml."""
    settings(folder, outside, shared=True)


def nested_checkout(folder: Path, outside: Path) -> None:
    """Plant a checkout inside of a checkout, with a repository of its own whose settings start programs."""
    settings(folder, outside)
    command = f"touch {outside}/pwned"
    for git in (folder / ".git", folder / "bare"):
        (git / "objects").mkdir(parents=True)
        (git / "refs").mkdir()
        (git / "HEAD").write_text("ref: refs/heads/main\n", "utf-8")
        (git / "config").write_text(
            f'[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "{command}"\n\tpager = "{command}"\n'
            f'[pager]\n\tcheck-ignore = "{command}"\n[alias]\n\tcheck-ignore = "!{command}"\n',
            "utf-8",
        )


def links(folder: Path, outside: Path) -> None:
    """Make every name of ours a link to a file outside."""
    _plant(folder, lambda place: place.symlink_to(outside / "file"))


def dangling_links(folder: Path, outside: Path) -> None:
    """Make every name of ours a link to what is not there yet, so that writing would make it."""
    _plant(folder, lambda place: place.symlink_to(outside / place.name))


def hard_links(folder: Path, outside: Path) -> None:
    """Make every name of ours a second name of a file outside, as an archive unpacked above both can do."""
    _plant(folder, lambda place: place.hardlink_to(outside / "file"))


def folder_links(folder: Path, outside: Path) -> None:
    """Make every folder of ours a link to a folder outside, and the log and the folder that the command lines name."""
    _files(folder)
    for name in (".agent_context", ".ctxmgr", ".ctxmgr-index", "run.jsonl.live", "logs"):
        (folder / name).symlink_to(outside)
    (outside / "other").mkdir()
    (outside / "other" / "run.jsonl").write_text(json.dumps(b.entry("s", 0)) + "\n", "utf-8")
    (folder / "run.jsonl").symlink_to(outside / "other" / "run.jsonl")


def linked_beside_a_store(folder: Path, outside: Path) -> None:
    """Plant a sound store whose side files, artifacts and views are links."""
    _files(folder)
    _history(folder)
    for name in ("history.db-wal", "history.db-shm", "history.db-journal", "artifacts", "v1", "current"):
        place = folder / ".ctxmgr" / name
        place.unlink(missing_ok=True)
        place.symlink_to(outside / "file" if "-" in name else outside)


def planted_artifacts(folder: Path, outside: Path) -> None:
    """Plant an artifacts folder in which everything is a link, and an index folder with files of everybody."""
    _files(folder)
    _history(folder)
    artifacts = folder / ".ctxmgr" / "artifacts"
    artifacts.mkdir()
    (artifacts / ".store").write_text("history.db\n", "utf-8")
    for name in ("objects", "current", "v1", ".lock"):
        (artifacts / name).symlink_to(outside if name != ".lock" else outside / "file")
    (folder / ".ctxmgr-index").mkdir(mode=0o700)
    for name in ("a.db", ".gitignore", "CACHEDIR.TAG"):
        (folder / ".ctxmgr-index" / name).symlink_to(outside / "file")


def pipes(folder: Path, _outside: Path) -> None:
    """Make every name of ours a pipe that nobody writes to."""
    _plant(folder, os.mkfifo)


def devices(folder: Path, _outside: Path) -> None:
    """Make every name of ours a link to a device that never ends."""
    _plant(folder, lambda place: place.symlink_to("/dev/zero"))


def nesting(folder: Path, _outside: Path) -> None:
    """Make every file of ours nested without end."""
    _plant(folder, lambda place: place.write_text("[" * 20_000 if place.suffix != ".toml" else "x=" + "[" * 20_000, "utf-8"))


def huge(folder: Path, _outside: Path) -> None:
    """Make every file that is read whole a terabyte long, most of which takes no room."""
    _files(folder)
    _history(folder)
    (folder / ".agent_context").mkdir()
    names = (".agent_context/state.json", ".agent_context/loops.json", "pyproject.toml", "schema.json", "routes.toml")
    for name in (*names, "plan.md", "rules.toml", "task.yaml"):
        with (folder / name).open("wb") as stream:
            stream.truncate(1 << 40)


def look_alikes(folder: Path, outside: Path) -> None:
    """Plant modules and programs by the names of those that are imported and started."""
    settings(folder, outside)
    code = f"open({str(outside / 'pwned')!r}, 'w')\n"
    for name in ("sitecustomize", "usercustomize", "tomllib", "json", "typing", "pydantic", "jq", "pysqlite3", "marshal"):
        (folder / f"{name}.py").write_text(code, "utf-8")
    (folder / "ctxmgr").mkdir()
    (folder / "ctxmgr" / "__init__.py").write_text(code, "utf-8")
    for name in ("git", "python", "python3", "sh"):
        (folder / name).write_text(f"#!/bin/sh\ntouch {outside}/pwned\n", "utf-8")
        (folder / name).chmod(0o755)
    (folder / ".env").write_text(
        "CTXMGR_ALLOW_COMMANDS=1\nCTXMGR_MODEL=openai:x\nOPENAI_BASE_URL=http://127.0.0.1:9\n", "utf-8"
    )


def _plant(folder: Path, make: Callable[[Path], object]) -> None:
    _files(folder)
    for name in OWN_NAMES:
        place = folder / name
        place.parent.mkdir(exist_ok=True, mode=0o700)
        place.unlink(missing_ok=True)
        make(place)


WORLDS: dict[str, Callable[[Path, Path], None]] = {
    make.__name__: make
    for make in (
        settings, shared_settings, nested_checkout, links, dangling_links, hard_links, folder_links, linked_beside_a_store,
        planted_artifacts, pipes, devices, nesting, huge, look_alikes,
    )
}  # fmt: skip
