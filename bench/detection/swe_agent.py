"""Read the demonstration runs of SWE-agent: one agent with a shell, each step a command and what it printed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.detection.runs import Run, Writer, dicts, load

DATASET = "swe-agent"


def swe_agent(folder: Path) -> Iterator[Run]:
    """Yield the demonstrations that have steps; all of them ended with a submission, so all count as successful."""
    for path in sorted((folder / "sweagent_traj").glob("*.traj")):
        source = load(path)
        run = Run(f"{DATASET}/{path.stem}", DATASET, success=True)
        writer = Writer(run)
        for step in dicts(source.get("trajectory")):
            thought, action, seen = (str(step.get(name) or "") for name in ("thought", "action", "observation"))
            if thought.strip():
                writer.event("thought", "agent", {"text": thought}, at=None)
            command = action.strip()
            if command:
                entry = writer.call("agent", command.split()[0], {"command": command}, at=None)
                writer.result(entry, seen, failed=False, at=None)
        if run.records:
            yield run
