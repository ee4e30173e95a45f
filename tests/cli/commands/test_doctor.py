"""``doctor``: what it looks at, how it ends, and that it changes nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.cli.commands.doctor import show_checks
from ctxmgr.types.setup import Check
from tests.artifacts.putting import meddle, object_of
from tests.cli import view_samples as s
from tests.cli.console import make_history, run

NAMES = [
    "ctxmgr", "sqlite", "config", "settings", "routes", "store.path",
    "store.contents", "store.damage", "store.permissions", "store.access",
    "store.space", "cache", "logs", "extra.jq", "extra.zstd", "extra.postgresql", "extra.archive", "extra.s3",
    "extra.llm", "model",
]  # fmt: skip


@pytest.fixture(autouse=True)
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the command find the small history of `console.records`, from a folder of its own."""
    monkeypatch.chdir(tmp_path)
    place = make_history(tmp_path / "history.db")
    monkeypatch.setenv("CTXMGR_STORE", str(place))
    monkeypatch.setenv("PATH", str(tmp_path))  # no client is on it
    return place


def test_everything_is_looked_at() -> None:
    """In order: every check is a row, none of them fails, and the envelope is as everywhere."""
    ran = run("doctor", "--json")
    rows: list[dict[str, Any]] = ran.envelope["data"]

    assert (ran.code, ran.envelope["status"], ran.err) == (0, "ok", "")
    assert [row["name"] for row in rows] == NAMES
    assert {row["level"] for row in rows} <= {"ok", "info"}


def test_warnings_do_not_fail(history: Path) -> None:
    """A store that others may read is warned of, and the exit code stays 0."""
    history.chmod(0o644)
    ran = run("doctor")

    assert (ran.code, ran.err) == (0, "1 warning\n")
    assert "warn  store.permissions  " in ran.out


@pytest.mark.parametrize(
    ("arguments", "code", "name"),
    [
        (("--store", "torn.jsonl"), 5, "store.damage"),
        (("--store", "gone.db"), 3, "store.path"),
        (("--model", "nothing"), 2, "model"),
        (("--model", "nothing", "--store", "torn.jsonl"), 5, "store.damage"),
    ],
)
def test_a_failure_ends_with_the_code_that_other_commands_end_with(
    arguments: tuple[str, ...], code: int, name: str, tmp_path: Path
) -> None:
    """A damaged store is 5 whatever else fails, a missing one 3, a model that can't be meant 2."""
    (tmp_path / "torn.jsonl").write_bytes(b'{"v":1,"kind":"eve')
    ran = run("doctor", *arguments, "--json")

    assert (ran.code, ran.envelope["status"], ran.envelope["error"]) == (code, "partial", None)
    names = [row["name"] for row in ran.envelope["data"]]
    assert name in [row["name"] for row in ran.envelope["data"] if row["level"] == "fail"]
    assert len(set(names)) == len(names)


def test_a_faulty_configuration_stops_no_other_check(tmp_path: Path) -> None:
    """What is wrong with the configuration is one failure among the checks, which all take place."""
    (tmp_path / "ctxmgr.toml").write_text("stroe = 1\n", encoding="utf-8")
    ran = run("doctor", "--json")

    assert ran.code == 2
    assert [row["name"] for row in ran.envelope["data"]] == NAMES


def test_looking_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is made where there is nothing, and a store's bytes stay as they are."""
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    run("doctor")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name in before} == before

    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    monkeypatch.delenv("CTXMGR_STORE")
    assert run("doctor").code == 0
    assert list(empty.iterdir()) == []


def test_artifacts_are_verified(tmp_path: Path) -> None:
    """Of a store that has artifacts every content and every view is looked at; what was changed is named, and is 5."""
    (tmp_path / "a.md").write_text("# a\n")
    assert run("artifact", "put", "a.md", "--agent", "arch").code == 0
    assert "ok    store.artifacts  " in run("doctor").out

    meddle(object_of(tmp_path / "artifacts", "# a\n"), b"# x\n")
    ran = run("doctor", "--json")

    row = next(row for row in ran.envelope["data"] if row["name"] == "store.artifacts")
    assert (ran.code, row["level"], row["kind"], len(row["detail"]["faults"])) == (5, "fail", "damaged", 1)


def test_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the key of a provider nor that of a server appears in any form of the answer."""
    secret = "sk-very-secret-0123456789"
    for name in ("OPENAI_API_KEY", "CTXMGR_API_KEY"):
        monkeypatch.setenv(name, secret)
    asked = ("doctor", "--model", "openai-chat:a", "--base-url", "http://127.0.0.1:9/v1")
    shown = [run(*asked, *form) for form in ((), ("--json",), ("--format", "md"))]

    assert all("OPENAI_API_KEY" in ran.out for ran in shown)
    assert all(secret not in ran.out + ran.err for ran in shown)


def test_the_home_is_only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs of other tools under the home folder are counted, and their bytes are not read."""
    folder = Path(os.environ["HOME"]) / ".claude" / "projects" / "-x"
    folder.mkdir(parents=True)
    (folder / "7e999fd2-d31f-46eb-9632-55e969fb3852.jsonl").write_bytes(b"")

    assert run("doctor", "--jq", '.data[] | select(.name == "logs") | .detail["claude-code"]').out == "1\n"


def test_people_see_a_sign_a_name_and_what_to_do() -> None:
    """On a terminal long findings wrap under their column, hints stand below, and a pipe gets words."""
    checks = [
        Check(name="store.path", level="ok", finding="here"),
        Check(name="model", level="fail", finding="a model is named, but nothing can ask it", hint="pip install it"),
    ]

    assert s.draw(lambda out: show_checks(out, checks, {"ok": 1, "fail": 1}), width=40).splitlines() == [
        "✓  store.path  here",
        "✗  model       a model is named, but",
        "               nothing can ask it",
        "               pip install it",
    ]
    assert s.draw(lambda out: show_checks(out, checks, {}), terminal=False).splitlines()[1:] == [
        "fail  model       a model is named, but nothing can ask it",
        "                  pip install it",
    ]


def test_a_client_is_told_of_until_it_calls_the_hook(tmp_path: Path) -> None:
    """One that is on the path and does not call the hook, one that does, one that must still trust it, one that is gone."""
    for name, version in (("claude", "2.1.330"), ("codex", "0.169.0")):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho {version}\n")
        program.chmod(0o755)
    rows = {row["name"]: row for row in run("doctor", "--json").envelope["data"]}
    assert (rows["hook.claude-code"]["level"], rows["hook.codex"]["level"]) == ("info", "info")
    assert "ctxmgr install claude-code" in rows["hook.claude-code"]["hint"]

    for client in ("claude-code", "codex"):
        assert run("install", client, "--yes").code == 0
    rows = {row["name"]: row for row in run("doctor", "--json").envelope["data"]}
    assert (rows["hook.claude-code"]["level"], rows["hook.codex"]["level"]) == ("ok", "warn")
    assert "never called yet" in rows["hook.claude-code"]["finding"]
    assert rows["hook.claude-code"]["detail"]["callSeconds"] > 0
    assert "--trust" in rows["hook.codex"]["hint"]

    (tmp_path / "ctxmgr.toml").write_text('[live]\nmode = "foo"\n', encoding="utf-8")
    rows = {row["name"]: row for row in run("doctor", "--json").envelope["data"]}
    assert rows["config"]["level"] == "fail"
    assert rows["hook.claude-code"]["level"] == "warn"
    assert rows["hook.claude-code"]["finding"].endswith("while the settings are wrong")
    (tmp_path / "ctxmgr.toml").unlink()

    settings = Path(os.environ["HOME"]) / ".claude" / "settings.json"
    settings.write_text(settings.read_text().replace("ctxmgr/live/hook.py", "gone/ctxmgr/live/hook.py"))
    rows = {row["name"]: row for row in run("doctor", "--json").envelope["data"]}
    assert rows["hook.claude-code"]["level"] == "warn"
    assert "is gone" in rows["hook.claude-code"]["finding"]
