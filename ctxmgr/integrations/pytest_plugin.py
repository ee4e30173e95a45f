"""The fixture ``ctxmgr_guard``, which fails a test if its agent run goes in circles or hangs.

pytest loads this module at every start, so it imports other modules of ctxmgr only if a test uses the fixture.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ctxmgr.recorder import Recorder


class Guard:
    """Records or watches the agent run of one test.

    Attributes:
        path: the log that `recorder` writes (format 1), in the folder of the test.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._recorder: Recorder | None = None
        self._logs: list[Path] = []

    @property
    def recorder(self) -> Recorder:
        """A recorder for the run, opened at first access."""
        if self._recorder is None:
            from ctxmgr.recorder import Recorder

            self._recorder = Recorder(self.path, session="test")
        return self._recorder

    def watch(self, path: str | os.PathLike[str]) -> None:
        """Judge this log too at the end of the test. It may be any log that ctxmgr can read."""
        self._logs.append(Path(path))

    def check(self) -> None:
        """Judge the recorded run and the watched logs. The fixture calls this at the end of the test.

        Raises:
            pytest.fail.Exception: a run is in a loop or hung; the message has the text for the agent.
            CtxmgrError: a watched log can't be read.
        """
        from ctxmgr.types.operations import DetectRequest, RecoverRequest
        from ctxmgr.workspace import Workspace

        if self._recorder is not None:
            self._recorder.end()
            self._recorder = None
        logs = [self.path, *self._logs] if self.path.exists() else self._logs
        for log in logs:
            with Workspace.open(str(log), readonly=True, scratch=True) as workspace:
                for verdict in workspace.detect(DetectRequest(all_sessions=True)).verdicts:
                    # A warning is not a loop, so it fails no test.
                    if verdict.verdict in ("healthy", "warn"):
                        continue
                    # ``plan`` records nothing. ``force`` also answers if a recovery would find nothing wrong.
                    request = RecoverRequest(session=verdict.session, plan=True, force=True)
                    prompt = workspace.recover(request).continuation.prompt
                    pytest.fail(f"the agent's run is stuck ({verdict.verdict}) in {log}\n\n{prompt}", pytrace=False)


@pytest.fixture
def ctxmgr_guard(tmp_path: Path) -> Iterator[Guard]:
    """Fail the test when the agent run that it records or names is in a loop or hung."""
    guard = Guard(tmp_path / "ctxmgr.jsonl")
    yield guard
    guard.check()
