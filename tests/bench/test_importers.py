"""The bench of the importers: damage costs nothing that is whole, and what is measured is what a long log holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.importers.detection import compare
from bench.importers.fuzz import fuzz
from bench.importers.logs import lengthened, samples
from ctxmgr.types.import_report import FileCount

SEED = 20_26


@pytest.mark.parametrize("files", [90, pytest.param(240, marks=pytest.mark.slow)])
def test_damaged_logs_of_every_format_cost_no_fault_and_no_intact_entry(files: int) -> None:
    """A small part of what ``python -m bench.importers fuzz`` does; each line of a failure names what repeats it."""
    tally = fuzz(files, SEED)
    assert (tally.faults, tally.losses) == ([], []), f"seed {SEED}"
    assert tally.files.total() == files
    assert tally.compared > files // 6


def test_a_lengthened_log_holds_the_sample_many_times(tmp_path: Path) -> None:
    """The measure of speed is of calls that are read, not of repeats that are left out."""
    importer, path = next((i, p) for i, p in samples() if i.name == "codex" and "0.148" in str(p))
    log = tmp_path / path.name
    log.write_bytes(lengthened(path, 400_000) or b"")
    counts: list[list[FileCount]] = [[], []]
    for place, file in enumerate((path, log)):
        for _ in importer.read([file], counts[place]):
            continue
    assert counts[1][0].tool_calls.total() >= 5 * counts[0][0].tool_calls.total()


def test_alarms_through_an_importer_are_those_of_the_reader_of_the_data_set(tmp_path: Path) -> None:
    """A run of tau-bench in which one call fails the same way again and again."""
    turn = [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c{n}", "type": "function", "function": {"name": "book", "arguments": '{"seat": 1}'}}]},
        {"role": "tool", "tool_call_id": "c{n}", "content": "Error: no seat"},
    ]  # fmt: skip
    traj = [{"role": "user", "content": "Book it."}]
    for number in range(5):
        traj += json.loads(json.dumps(turn).replace("{n}", str(number)))
    for name in ("tau2_official", "tau2_gemma", "taubench", "agentrx/tau_retail", "sweagent_traj"):
        (tmp_path / name).mkdir(parents=True)
    runs = json.dumps([{"task_id": 1, "reward": 0.0, "info": {}, "traj": traj}])
    (tmp_path / "taubench" / "gpt-4o-airline.json").write_text(runs)
    (tmp_path / "agentrx" / "tau_retail" / "tau_dataset_full.json").write_text(runs)
    compared = compare(tmp_path)
    assert (compared["taubench"].runs, compared["taubench"].alarms) == (1, 1)
    assert not any(each.differing or each.unread for each in compared.values())
