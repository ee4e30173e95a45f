"""The history that the browser reads: what changed meanwhile is told at the next look, also after one that failed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ctxmgr.cli.browse.history import History
from ctxmgr.errors import CtxmgrError
from tests.readme import RUN


def test_a_change_is_told_after_a_look_that_failed(tmp_path: Path) -> None:
    """Between two files of a rotation there is none; what comes then is drawn when it is there."""
    log = tmp_path / "run.jsonl"
    whole = RUN.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(whole[:40]))

    async def walked() -> None:
        history = History(str(log))
        try:
            await history.open()
            assert not await history.catch_up(None)
            log.unlink()
            with pytest.raises(CtxmgrError):
                await history.catch_up(None)
            log.write_bytes(b"".join(whole))
            assert await history.catch_up(None)
            assert not await history.catch_up(None)
        finally:
            history.close()

    asyncio.run(walked())
