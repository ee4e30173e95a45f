"""``ctxmgr check``: which runs are stuck, told in the words of a person, of GitHub, of JUnit and of SARIF."""

from __future__ import annotations

import json
import re
import shlex
from itertools import takewhile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ctxmgr.log.codec import Record
from ctxmgr.recorder import Recorder
from tests import builders as b
from tests.cli.console import run

LOOP = ["> Make it green.", *["!Bash:make build -> missing separator"] * 4]
CALM = ["> Look around.", "Read:a", "Read:b"]
HUNG = ["Read:a", "?Bash:sleep 9"]
HOSTILE = "<b>@ann</b> [x](http://evil.example) ``` `a` ::error::owned\n::warning::owned %0A # | \x1b[2J \ud800]]>"


def log(folder: Path, name: str, records: list[Record]) -> Path:
    """Write records as a log of format 1."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a loop, a hung run and a calm one, in the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    folder = tmp_path / "logs"
    for name, words in (("loop", LOOP), ("hung", HUNG), ("calm", CALM)):
        log(folder, f"{name}.jsonl", b.steps("main", words))
    return Path("logs")


def test_each_log_is_judged_by_itself(logs: Path) -> None:
    """Three runs whose sessions share a name are three sessions; the exit code names both kinds of trouble."""
    ended = run("check", str(logs), "--json")

    assert ended.code == 12
    rows = {Path(row["log"]).name: row for row in ended.envelope["data"]}
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "loop.jsonl": "loop",
        "hung.jsonl": "hung",
        "calm.jsonl": "healthy",
    }
    assert [name for name, row in rows.items() if row["failed"]] == ["hung.jsonl", "loop.jsonl"]
    assert rows["loop.jsonl"]["prompt"].startswith("[ctxmgr]")
    assert rows["calm.jsonl"]["prompt"] is None
    assert all({"log", "session", "verdict", "cause", "nextStep", "prompt"} <= row.keys() for row in rows.values())


def test_one_of_several_named_logs_that_cannot_be_read_is_named(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are judged all the same, and the answer is partial; alone, it is an error of the store."""
    from ctxmgr.history import formats

    read = formats.read_head

    def refuse(path: Path) -> bytes:
        if path.name == "loop.jsonl":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(formats, "read_head", refuse)
    ended = run("check", str(logs / "loop.jsonl"), str(logs / "calm.jsonl"), "--json")

    assert (ended.code, [Path(row["log"]).name for row in ended.envelope["data"]]) == (8, ["calm.jsonl"])
    assert any("Permission denied" in line for line in ended.envelope["warnings"])
    assert run("check", str(logs / "loop.jsonl")).code == 5


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("fail_on", "code"), [("loop", 10), ("hung", 11), ("loop,hung", 12), ("warn", 12), (" loop, warn", 12)]
)
def test_only_what_is_named_fails(logs: Path, fail_on: str, code: int) -> None:
    """The exit code speaks of the severities that --fail-on names."""
    assert run("check", str(logs), "--fail-on", fail_on).code == code


@pytest.mark.cases(1)
@pytest.mark.parametrize("form", ["text", "md", "github"])
def test_what_fail_on_leaves_out_is_not_called_healthy(logs: Path, form: str) -> None:
    """A stuck run that does not fail the check is counted as stuck, in every format."""
    calm = run("check", str(logs / "calm.jsonl"), "--fail-on", "hung", "--format", form)
    alone = run("check", str(logs / "loop.jsonl"), "--fail-on", "hung", "--format", form)
    both = run("check", str(logs), "--fail-on", "hung", "--format", form)

    assert "1 session, none stuck" in calm.out
    assert alone.code == 0
    assert "1 session, 1 stuck that --fail-on leaves out" in alone.out
    assert "none stuck" not in alone.out
    assert "without trouble" not in alone.out
    assert "1 of 3 sessions stuck, 1 more stuck that --fail-on leaves out" in both.out
    assert form == "github" or "2 sessions passed, 1 of them with findings that --fail-on leaves out" in both.out


def test_files_of_ctxmgr_itself_are_no_remark(logs: Path) -> None:
    """The marks of live sessions and the state of a goal are passed over in silence."""
    recorder = Recorder(logs / "calm.jsonl", session="odd / name")
    recorder.entry("main", "Read", "a")
    assert run("goal", "start", "Make it green", "--dir", str(logs)).code == 0

    ended = run("check", str(logs), "--json")

    assert len(list((logs / "calm.jsonl.live").iterdir())) == 1
    assert (logs / ".agent_context" / "state.json").is_file()
    assert not [line for line in ended.envelope["warnings"] if "no logs" in line or "not read" in line]
    recorder.end()


def test_the_recipes_of_the_documentation_run(logs: Path) -> None:
    """Every ``ctxmgr check`` of docs/ci.md is a command that judges, and finds the stuck runs."""
    page = (Path(__file__).parents[3] / "docs" / "ci.md").read_text(encoding="utf-8")
    commands = [line.strip().removeprefix("run: ").removeprefix("- ") for line in page.splitlines() if "ctxmgr check " in line]
    # What takes the output, a file or jq, is the shell's to start.
    words = [shlex.split(command.partition(" > ")[0]) for command in commands if command.startswith("ctxmgr check ")]
    recipes = [[*takewhile(lambda word: word != "|", each)] for each in words]

    assert len(recipes) >= 5
    for recipe in recipes:
        assert run(*recipe[1:]).code in (10, 12), recipe


def test_the_jq_recipe_of_the_documentation_names_the_stuck(logs: Path) -> None:
    """The filter that docs/ci.md shows gives a line for each stuck run, and none for the calm one."""
    jq = pytest.importorskip("jq")
    page = (Path(__file__).parents[3] / "docs" / "ci.md").read_text(encoding="utf-8")
    (recipe,) = [line for line in page.splitlines() if "| jq -r " in line]
    told = jq.compile(shlex.split(recipe)[-1]).input_value(run("check", str(logs), "--json").envelope).all()

    assert [Path(line.partition(": ")[0]).name for line in told] == ["hung.jsonl", "loop.jsonl"]


def test_unknown_words_are_refused(logs: Path) -> None:
    """A misspelt severity or format must not turn a build green."""
    for wrong in ("lop", "loop,lop", "", ",", " , "):
        assert run("check", str(logs), "--fail-on", wrong).code == 2, wrong
    assert run("check", str(logs), "--format", "html").code == 2


def test_nothing_read_is_no_success(tmp_path: Path) -> None:
    """An empty folder, a folder of other files and a missing one fail; a file that was passed over beside others shows."""
    (tmp_path / "empty").mkdir()
    ended = run("check", str(tmp_path / "empty"))
    assert (ended.code, "'ctxmgr formats' lists" in ended.err) == (2, True)
    assert run("check", str(tmp_path / "missing")).code == 3
    assert run("check").code == 3
    log(tmp_path / "mixed", "calm.jsonl", b.steps("s", CALM))
    (tmp_path / "mixed" / "other.jsonl").write_text('{"type":"weather"}\n', encoding="utf-8")

    ended = run("check", str(tmp_path / "mixed"))

    assert ended.code == 8
    assert "other.jsonl" in ended.err


@pytest.mark.parametrize("others", [False, True])
def test_a_log_of_one_torn_line_is_named_with_the_reason(logs: Path, others: bool) -> None:
    """Nothing can be judged in it: alone it ends with 2, beside a healthy log with 8."""
    torn = logs / "torn.jsonl"
    torn.write_text('{"v":1,"kind":"entry","session":"s1"', encoding="utf-8")
    ended = run("check", str(torn), *([str(logs / "calm.jsonl")] if others else []))

    assert ended.code == (8 if others else 2)
    assert "torn.jsonl: no record of it can be read: torn last line, or one still being written" in ended.err


def test_damage_in_a_log_is_told(logs: Path) -> None:
    """A healthy verdict about a log of which a part could not be read says so, to people and to programs."""
    with (logs / "calm.jsonl").open("a", encoding="utf-8") as stream:
        stream.write('{"v":1,"kind":"entry","session":"ma\n')

    ended = run("check", "logs/calm.jsonl")

    assert (ended.code, "calm.jsonl: damaged" in ended.err) == (8, True)
    assert "damaged" in run("check", "logs/calm.jsonl", "--format", "junit").err
    assert any("damaged" in warning for warning in run("check", "logs/calm.jsonl", "--json").envelope["warnings"])


def test_what_many_logs_lack_is_said_once(logs: Path) -> None:
    """A note on three logs or more is one line with their number; on two it names them."""

    def told(count: int) -> list[str]:
        for number in range(count):
            records = [{name: value for name, value in each.items() if name != "ts"} for each in b.steps("s", CALM)]
            log(logs.parent / f"timeless{count}", f"{number}.jsonl", records)
        said = run("check", str(logs.parent / f"timeless{count}")).err
        return [line for line in said.splitlines() if "no timestamps" in line]

    assert [line.partition("timeless2/")[2] for line in told(2)] == [
        f"{number}.jsonl: no timestamps: stalls are not judged" for number in (0, 1)
    ]
    assert told(3) == ["ctxmgr: 3 logs: no timestamps: stalls are not judged"]


def test_nothing_is_written_beside_the_logs(logs: Path) -> None:
    """A check leaves the folder as it was, but for the index that reading a log in place makes."""
    run("check", str(logs))
    assert {path.name for path in logs.iterdir()} <= {"calm.jsonl", "hung.jsonl", "loop.jsonl", ".ctxmgr-index"}


def test_markdown_names_the_stuck_and_counts_the_rest(logs: Path) -> None:
    """The summary leads with the number, then each stuck run with its next step and the text to copy."""
    text = run("check", str(logs), "--format", "md").out

    assert text.startswith("## ctxmgr: 2 of 3 sessions stuck\n")
    assert "### loop: `logs/loop.jsonl`" in text
    assert "**Next step**" in text
    assert "<summary>1 session without trouble</summary>" in text
    assert text.index("logs/loop.jsonl") < text.index("logs/calm.jsonl")


def test_github_gets_an_annotation_each_and_a_summary(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Annotations go to stdout, one a line; the summary is added to the file that the runner names."""
    summary = tmp_path / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))

    lines = run("check", str(logs), "--format", "github").out.splitlines()

    assert [line.split("::")[1].split(",")[0] for line in lines if line.startswith("::")] == [
        "error file=logs/hung.jsonl", "error file=logs/loop.jsonl",
    ]  # fmt: skip
    assert summary.read_text(encoding="utf-8").startswith("before\n## ctxmgr: 2 of 3")


def test_junit_counts_cases_and_failures(logs: Path) -> None:
    """A case for each session, a failure with the text for the agent for each stuck one."""
    suite = ElementTree.fromstring(run("check", str(logs), "--format", "junit").out)[0]

    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "2", "0")
    failures = {case.get("classname"): case.find("failure") for case in suite}
    assert failures["logs/calm.jsonl"] is None
    loop = failures["logs/loop.jsonl"]
    assert loop is not None
    assert (loop.text or "").startswith("[ctxmgr]")


def test_sarif_has_a_result_for_each_finding(logs: Path) -> None:
    """Rules, levels and places as SARIF 2.1.0 names them (sections 3.27, 3.28 and 3.49)."""
    found = json.loads(run("check", str(logs), "--format", "sarif").out)
    (part,) = found["runs"]
    rules = [rule["id"] for rule in part["tool"]["driver"]["rules"]]

    assert found["version"] == "2.1.0"
    assert {result["ruleId"] for result in part["results"]} == {"repetition", "hung"}
    for result in part["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] == "error"
        assert result["message"]["text"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].startswith("logs/")
        assert result["partialFingerprints"]["identity/v1"]


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a log whose every recorded text tries to leave its place."""
    monkeypatch.chdir(tmp_path)
    records = [b.event("s1", 0, "user_message", {"text": HOSTILE}, agent=HOSTILE)]
    for number in range(4):
        records.append(b.entry("s1", number, HOSTILE, {"command": HOSTILE}, agent=HOSTILE))
        records.append(b.result("s1", number, status="error", error={"type": HOSTILE, "message": HOSTILE}))
    return log(tmp_path, "run,a:b`c.jsonl", records)


def test_recorded_text_is_no_workflow_command(hostile: Path) -> None:
    """A line end or a sign in recorded text never begins another command or ends a property."""
    lines = run("check", hostile.name, "--format", "github").out.splitlines()

    commands = [line for line in lines if line.startswith("::")]
    assert len(commands) == len([line for line in lines if not line.startswith("ctxmgr:")])
    assert all(re.match(r"::(error|warning) file=[^:,]*,title=[^:,]*::", line) for line in commands)


def test_recorded_text_is_no_markdown(hostile: Path) -> None:
    """Outside of code no markup, no mention and no link comes from recorded text; the fences hold."""
    text = run("check", hostile.name, "--format", "md").out

    fence = max(re.findall(r"^(`{3,})text$", text, re.MULTILINE), key=len)
    outside = re.sub(rf"^{fence}text\n.*?^{fence}$", "", text, flags=re.MULTILINE | re.DOTALL)
    outside = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", outside)
    assert "<b>" not in outside.replace("\\<b>", "")
    assert not re.search(r"(?<!\\)\[x(?<!\\)\]", outside)
    assert not re.search(r"@ann", outside)
    assert not re.search(r"https?://\w", outside)
    assert "\x1b" not in text


def test_recorded_text_leaves_xml_and_json_sound(hostile: Path) -> None:
    """Control characters, lone surrogates and ends of sections are shown, not passed on."""
    assert len(ElementTree.fromstring(run("check", hostile.name, "--format", "junit").out)[0]) == 1
    (part,) = json.loads(run("check", hostile.name, "--format", "sarif").out)["runs"]
    assert part["results"]
    assert "\x1b" not in part["results"][0]["message"]["text"]


def test_logs_of_one_name_get_a_page_each(logs: Path, tmp_path: Path) -> None:
    """Runs of a build often share both the name of their log and their session's id."""
    for place in ("one", "two"):
        log(logs / place, "agent.jsonl", b.steps("main", LOOP))
    run("check", "logs/one", "logs/two", "--report", "out")

    pages = {path.name for path in (tmp_path / "out").iterdir()} - {"index.html", "summary.md"}
    assert len(pages) == 2
    listed = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert all(f'href="{page}"' in listed for page in pages)


def test_the_report_folder_holds_a_page_for_each_stuck_run(logs: Path, tmp_path: Path) -> None:
    """Pages, index and summary can be kept as an artifact of the build."""
    assert run("check", str(logs), "--report", "out").code == 12

    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert len(names) == 4
    assert {"index.html", "summary.md"} < set(names)
    assert (tmp_path / "out" / "summary.md").read_text(encoding="utf-8").startswith("## ctxmgr: 2 of 3")
    assert run("check", str(logs), "--report", "out").code == 12


def test_a_session_that_ended_in_an_error_is_not_without_trouble(logs: Path) -> None:
    """It passes, and its line says what is wrong, as that of `detect` does (ruling 28)."""
    path = log(logs, "ended.jsonl", b.steps("main", ["> Go.", "Read:a", *(f"!Bash:make {n} -> no rule {n}" for n in range(3))]))
    ended = run("check", str(path))
    assert (ended.code, "✓ 1 session passed: no loop found, 3 failures in a row" in ended.out) == (0, True)
    assert "✓ 1 session without trouble" in run("check", str(logs / "calm.jsonl")).out
