"""``version`` through the command line: create, rollback, list and prune, with settings and faults."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ctxmgr.types.artifact import NewVersion, PruneResult, RollbackResult, VersionView
from tests.cli.console import run


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder whose store has three versions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CTXMGR_STORE", str(tmp_path / "history.db"))
    for number in (1, 2, 3):
        (tmp_path / "a.yaml").write_text(f"a: {number}\n")
        assert run("artifact", "put", "a.yaml", "--agent", "arch").code == 0
    return tmp_path


@pytest.mark.parametrize("part", ["create", "rollback", "list", "prune"])
def test_every_part_explains_itself_with_examples(part: str) -> None:
    """The help of each part shows examples that begin with it."""
    ran = run("version", part, "--help")

    assert ran.code == 0
    assert re.search(rf"\n +ctxmgr version {part}", ran.out.partition("Examples:")[2])


@pytest.mark.requirement("003-V1", "003-V2")
def test_versions_are_made_rolled_back_and_listed(place: Path) -> None:
    """Each step answers its shape, and the list shows them all with the current one marked."""
    made = run("version", "create", "reviewed", "--json").envelope["data"]
    assert NewVersion.model_validate(made).to_json() == made == {
        "version": 4, "previousVersion": 3, "path": "artifacts/v4/",
    }  # fmt: skip
    ran = run("version", "rollback", "2", "--reason", "broke the parser", "--json")
    assert RollbackResult.model_validate(ran.envelope["data"]).to_json() == ran.envelope["data"]
    assert ran.envelope["next"] == ['ctxmgr version rollback 4 --reason "undo"']
    assert os.readlink(place / "artifacts" / "current") == "v2"
    assert run("artifact", "get", "arch/a.yaml").out == "a: 2\n"

    rows = run("version", "list", "--json").envelope["data"]
    assert [(row["version"], row["current"]) for row in rows] == [(1, False), (2, True), (3, False), (4, False)]
    assert [VersionView.model_validate(row).to_json() for row in rows] == rows
    (marked,) = [line for line in run("version", "list").out.splitlines() if line.startswith("current")]
    assert marked.split()[1] == "2"


@pytest.mark.requirement("003-V4")
def test_pruning_follows_options_and_configuration(place: Path) -> None:
    """Options say what stays; without them the configuration's table does; a dry run removes nothing."""
    options = ("--keep-versions", "1", "--keep-days", "0", "--always-keep", "2", "--json")
    told = run("version", "prune", "--dry-run", *options).envelope["data"]
    assert (told["removed"], told["dryRun"]) == ([1], True)
    assert PruneResult.model_validate(told).to_json() == told
    assert run("version", "prune", "--json").envelope["data"]["removed"] == []

    (place / "ctxmgr.toml").write_text("[artifacts]\nkeep_versions = 1\nkeep_days = 0\nalways_keep = []\n")
    assert run("version", "prune", "--json").envelope["data"]["removed"] == [1, 2]
    assert sorted(path.name for path in (place / "artifacts").glob("v*")) == ["v3"]


@pytest.mark.parametrize(
    "table", ["keep_versions = 0", 'keep_versions = "ten"', "keep_days = -1", "always_keep = 1", "keep = 1", "keep_days = true"]
)
def test_wrong_settings_are_named(place: Path, table: str) -> None:
    """A setting that is unknown or can't be used is refused by its name, and nothing is pruned."""
    (place / "ctxmgr.toml").write_text(f"[artifacts]\n{table}\n")

    ran = run("version", "prune", "--json")

    assert (ran.code, ran.envelope["error"]["kind"]) == (2, "invalid")
    assert f"artifacts.{table.split()[0]}" in ran.envelope["error"]["message"]


FAULTS: list[tuple[tuple[str, ...], int, str]] = [
    (("create", " "), 2, "invalid"),
    (("create", ""), 2, "invalid"),
    (("rollback", "9", "--reason", "x"), 3, "notFound"),
    (("rollback", "3", "--reason", "x"), 2, "invalid"),
    (("rollback", "1", "--reason", " "), 2, "invalid"),
    (("rollback", "0", "--reason", "x"), 2, "invalid"),
    (("rollback", "1", "--reason", "x", "--as", "spy"), 4, "denied"),
    (("create", "x", "--as", "spy"), 4, "denied"),
    (("prune", "--as", "spy"), 4, "denied"),
    (("prune", "--keep-versions", "0"), 2, "invalid"),
    (("prune", "--keep-days", "-1"), 2, "invalid"),
]


@pytest.mark.parametrize(("arguments", "code", "kind"), FAULTS, ids=[" ".join(fault[0]) for fault in FAULTS])
def test_faults_have_one_code_and_two_forms(arguments: tuple[str, ...], code: int, kind: str) -> None:
    """A fault has its exit code and kind, on stderr or in the envelope, and changes nothing."""
    text, told = run("version", *arguments), run("version", *arguments, "--json")

    assert (text.code, text.out) == (code, "")
    assert (told.code, told.envelope["error"]["kind"]) == (code, kind)
    assert [row["version"] for row in run("version", "list", "--json").envelope["data"]] == [1, 2, 3]


def test_a_rollback_without_a_reason_is_no_command() -> None:
    """The reason is an option that can't be left out."""
    assert run("version", "rollback", "1").code == 2


def test_what_a_version_is_may_be_said_as_an_option() -> None:
    """The description is an argument or an option, once."""
    for words in (("--description", "reviewed"), ("-d", "again"), ("once more",)):
        assert run("version", "create", *words).code == 0
    for words in ((), ("one", "-d", "two")):
        assert run("version", "create", *words).code == 2
    assert [row["description"] for row in run("version", "list", "--json").envelope["data"]][3:] == [
        "reviewed", "again", "once more",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("word", "code"), [("1", 0), ("v1", 0), ("current", 2), ("3", 2), ("9", 3), ("x", 2), ("0", 2), ("²", 2)]
)
def test_a_version_is_named_by_its_number(word: str, code: int) -> None:
    """A number or v and a number names a version; what is none is refused as that."""
    assert run("version", "rollback", word, "--reason", "tested").code == code
