"""``ctxmgr detect --backtest``: the score as JSON and as tables, whatever it is with exit code 0."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxmgr.cli.exits import Exit
from tests import builders as b
from tests.cli.console import run

HOSTILE = "evil\x1b[31m[bold]"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run where no configuration and no store is."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a loop, healthy work with a hostile name, a healthy loop, and a missed one."""
    place = tmp_path / "cases"
    place.mkdir()
    loop = ["Read:a.py -> text", *["Bash:ls -> same"] * 4]
    work = ["Read:a.py -> text", "Edit:a.py -> done"]
    stories = {"loop": loop, HOSTILE: loop, "work": work, "drift": work}
    records = [record for name, story in stories.items() for record in b.steps(name, story)]
    (place / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    labels = [
        {"session": "loop", "loop": True, "pattern": "repetition", "onset": 0, "thirdIteration": b.entry_id("loop", 2)},
        {"session": HOSTILE, "loop": False},
        {"session": "work", "loop": False},
        {"session": "drift", "loop": True, "pattern": "drift"},
        {"session": "gone", "loop": True},
    ]
    (place / "labels.json").write_text(json.dumps(labels), encoding="utf-8")
    return place


def test_json_is_one_envelope(folder: Path) -> None:
    """The score, its baselines and every name behind it are in the data; what is missing is a warning."""
    ran = run("detect", "--backtest", str(folder), "--json")
    envelope = ran.envelope
    assert (ran.code, envelope["schema"], envelope["command"], envelope["status"]) == (0, "ctxmgr/1", "detect backtest", "ok")
    data = envelope["data"]
    assert {name: data["detectors"][name] for name in ("truePositives", "falsePositives", "mcc")} == {
        "truePositives": 1, "falsePositives": 1, "mcc": 0.0,
    }  # fmt: skip
    assert [score["rule"] for score in data["baselines"] + data["rules"]] == [
        "always", "never", "longer", "sameInARow", "abab", "anyRepeat",
    ]  # fmt: skip
    assert [alarm["session"] for alarm in data["falseAlarms"]] == [HOSTILE]
    assert data["onset"]["off"][0]["entries"] == 1
    assert data["delay"]["largest"] == 1
    assert envelope["warnings"] == ["1 labelled sessions are in no log: gone"]


def test_people_see_tables_and_every_name(folder: Path) -> None:
    """The table has a row for each rule, and each thing that went wrong is named, filtered."""
    ran = run("detect", "--backtest", str(folder))
    assert ran.code == Exit.OK
    assert "same call 3 in a row" in ran.out
    for title in ("False alarms", "Missed", "Begins elsewhere than labelled", "Raised after the third iteration"):
        assert f"\n{title}\n" in ran.out
    assert "drift" in ran.out
    assert "\x1b" not in ran.out


def test_nothing_to_score_is_an_empty_answer(folder: Path) -> None:
    """Labels that no log knows leave nothing to score, which is no error."""
    (folder / "labels.json").write_text('[{"session": "gone", "loop": true}]', encoding="utf-8")
    ran = run("detect", "--backtest", str(folder), "--json")
    assert (ran.code, ran.envelope["status"], ran.envelope["data"]["scored"]) == (0, "empty", 0)
    assert run("detect", "--backtest", str(folder)).out == ""


def test_configuration_is_measured(folder: Path, tmp_path: Path) -> None:
    """The thresholds that hold where the command runs are the ones that are scored."""
    (tmp_path / "ctxmgr.toml").write_text("[detect]\nrepeat_rounds = 5\n", encoding="utf-8")
    data = run("detect", "--backtest", str(folder), "--json").envelope["data"]
    assert (data["detectors"]["truePositives"], data["detectors"]["falsePositives"]) == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--session", "x"), Exit.USAGE),
        (("--all-sessions",), Exit.USAGE),
        (("--now", "now"), Exit.USAGE),
        (("--ever",), Exit.USAGE),
    ],
)
def test_options_about_a_store_are_refused(folder: Path, arguments: tuple[str, ...], code: Exit) -> None:
    """A backtest reads no store, so what would choose in one is not silently passed over."""
    ran = run("detect", "--backtest", str(folder), *arguments, "--json")
    assert (ran.code, ran.envelope["error"]["kind"]) == (code, "invalid")


def test_folder_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    """No folder ends like everything else that is not there."""
    ran = run("detect", "--backtest", str(tmp_path / "nowhere"), "--json")
    assert (ran.code, ran.envelope["error"]["kind"]) == (Exit.NOT_FOUND, "notFound")
