"""Edits of several processes at once lose nothing of each other."""

from __future__ import annotations

import threading
from pathlib import Path

from ctxmgr.types.goal import Probe
from tests.goals.scene import begun, open_goals


def test_probes_that_are_added_at_once_are_all_kept(tmp_path: Path) -> None:
    """Who adds a probe keeps those that others added in the meantime."""
    begun(tmp_path)
    names = [f"p{number}" for number in range(8)]
    together = threading.Barrier(len(names))

    def add(name: str) -> None:
        goals = open_goals(tmp_path)
        together.wait()
        goals.add_probe(Probe(name=name, kind="fileExists", path=name))

    threads = [threading.Thread(target=add, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(each.name for each in open_goals(tmp_path).state().probes) == names
