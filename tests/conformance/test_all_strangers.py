"""A detector and an importer of somebody else, run as a stranger would: by pytest, in a folder of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DETECTOR = """
from ctxmgr.conformance import DetectorConformance
from ctxmgr.detect.interface import Opinion, Sighting, StepDetector, Wake


class KnockDetector(StepDetector):
    kind = "repetition"
    wake = Wake.ALWAYS

    def take(self, step, past):
        count = (self.state or 0) + 1 if step.action == "Knock" else 0
        self.state = count or None
        if count < THRESHOLD:
            return None
        steps = (*past, step)[-THRESHOLD:]
        return Sighting(self.kind, "knock", 1, steps, THRESHOLD, 0.9)

    def opinion(self, step, past):
        return Opinion(self.kind, step.action, self.state or 0, 3, "it counts knocks")


class TestKnock(DetectorConformance):
    detector = KnockDetector

    def round(self, story, number, **fields):
        return story.call("Knock", {"at": "door"}, "no answer", **fields)
"""

IMPORTER = """
import json
from pathlib import Path

from ctxmgr.conformance import ImporterConformance
from ctxmgr.types.import_report import FileCount
from ctxmgr.types.plain_records import build

LOG = Path(__file__).parent / "run.diary"
LOG.write_text("".join(json.dumps(line) + "\\n" for line in [
    {"diary": "run-1"}, {"did": "look", "at": "door", "saw": "closed"}, {"did": "knock", "at": "door", "saw": "nobody"},
]))


class Diary:
    name, title = "diary", "Diary"

    def sniff(self, path, head):
        return head.startswith(b'{"diary"')

    def discover(self, home, environment):
        yield from sorted(home.glob(".diary/*.diary"))

    def companions(self, path):
        return []

    def groups(self, paths):
        return [[path] for path in paths]

    def read(self, group, counts):
        for path in group:
            count = FileCount(path)
            counts.append(count)
            place = 0
            for number, line in enumerate(path.read_bytes().splitlines(keepends=True)):
                try:
                    value = json.loads(line)
                except ValueError:
                    count.damaged.append((place, len(line), "not JSON"))
                    continue
                finally:
                    place += len(line)
                count.records += 1
                if "diary" in value:
                    yield build("session", "run-1", None, process="run-1")
                elif "did" in value:
                    count.tool_calls[value["did"]] += 1
                    NAME
                    yield build("entry", "run-1", None, id=name, agent="main", action=value["did"], input=value["at"])
                    yield build("result", "run-1", None, entry=name, status="ok", output=value["saw"])
                else:
                    count.unknown[str(value.get("type"))] += 1


class TestDiary(ImporterConformance):
    importer = Diary()
    logs = [LOG]
"""


def _run(folder: Path, text: str) -> tuple[int, str]:
    (folder / "test_mine.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [DETECTOR.replace("THRESHOLD", "3"), IMPORTER.replace("NAME", 'name = f"{path.stem}-{number}"')],
    ids=["detector", "importer"],
)
def test_what_follows_the_rules_passes(tmp_path: Path, text: str) -> None:
    """It needs nothing but the installed package and pytest."""
    code, said = _run(tmp_path, text)
    assert code == 0, said


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "failing"),
    [
        (DETECTOR.replace("THRESHOLD", "2"), "test_raises_when_the_last_needed_round_is_complete"),
        (DETECTOR.replace("THRESHOLD", "9"), "test_raises_when_the_last_needed_round_is_complete"),
        (DETECTOR.replace("THRESHOLD", "3").replace(' if step.action == "Knock" else 0', ""), "test_is_quiet_on_healthy_work"),
        (IMPORTER.replace("NAME", "import uuid; name = str(uuid.uuid4())"), "test_reading_twice_yields_the_same_bytes"),
        (IMPORTER.replace("NAME", 'name = "always the same"'), "test_every_record_follows_format_1"),
        (
            IMPORTER.replace("NAME", "name = str(number)").replace("except ValueError", "except KeyError"),
            "test_damage_is_counted_and_costs_only_itself",
        ),
    ],
    ids=["too early", "too late", "on anything", "new ids each time", "one id for all", "damage raises"],
)
def test_a_fault_fails_visibly(tmp_path: Path, text: str, failing: str) -> None:
    """The test that fails is named for the rule that was broken."""
    code, said = _run(tmp_path, text)
    assert code == 1, said
    assert f"::{failing}" in said
