"""The fixture ``ctxmgr_guard``: a test fails when the agent run in it goes in circles or hangs.

pytest loads this module at every start, so it imports nothing of the project before a test asks for the fixture.
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
        path: where `recorder` writes, a log of format 1 in the test's own folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._recorder: Recorder | None = None
        self._logs: list[Path] = []

    @property
    def recorder(self) -> Recorder:
        """A recorder for the run, opened when it is first asked for."""
        if self._recorder is None:
            from ctxmgr.recorder import Recorder

            self._recorder = Recorder(self.path, session="test")
        return self._recorder

    def watch(self, path: str | os.PathLike[str]) -> None:
        """Judge this log too at the end of the test; any log that ctxmgr can read."""
        self._logs.append(Path(path))

    def check(self) -> None:
        """Judge what was recorded and the watched logs now; the fixture does it at the end of the test.

        Raises:
            pytest.fail.Exception: a run is in a loop or hung; the message is the text for the agent.
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
                    # A warning is no loop yet, and fails no test.
                    if verdict.verdict in ("healthy", "warn"):
                        continue
                    # `plan` records nothing; `force` answers also where a recovery would see nothing wrong.
                    request = RecoverRequest(session=verdict.session, plan=True, force=True)
                    prompt = workspace.recover(request).continuation.prompt
                    pytest.fail(f"the agent's run is stuck ({verdict.verdict}) in {log}\n\n{prompt}", pytrace=False)


@pytest.fixture
def ctxmgr_guard(tmp_path: Path) -> Iterator[Guard]:
    """Fail the test when the agent run that it records or names is in a loop or hung."""
    guard = Guard(tmp_path / "ctxmgr.jsonl")
    yield guard
    guard.check()
