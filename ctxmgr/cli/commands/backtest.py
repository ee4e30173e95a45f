"""``detect --backtest DIR``: score the detectors on labelled sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ctxmgr.cli.detector_options import merged
from ctxmgr.cli.output import Answer, Shown, answer_alone
from ctxmgr.cli.views.backtest import show_backtest
from ctxmgr.config import load_config
from ctxmgr.errors import InvalidInput
from ctxmgr.history.backtest import backtest_folder

if TYPE_CHECKING:
    pass

COMMAND = "detect backtest"
_SHOWN = 5


def backtest(folder: Path, settings: list[str] | None, how: Shown, *, beside: list[str]) -> None:
    """Judge the labelled sessions of a folder and show the score; exit 0 whatever it is.

    Args:
        folder: logs and a ``labels.json``.
        settings: what ``--set`` gave.
        how: the answer is wanted.
        beside: options that were given and say something about a store, which a backtest does not read.
    """

    def work() -> Answer:
        if beside:
            raise InvalidInput(f"--backtest can't be combined with {beside[0]}", "it judges the logs of its folder, no store")
        found, notes = backtest_folder(folder, merged(dict(load_config(Path.cwd()).detect), settings))
        warnings = list(notes)
        if found.absent:
            shown = ", ".join(found.absent[:_SHOWN]) + (", ..." if len(found.absent) > _SHOWN else "")
            warnings.append(f"{len(found.absent)} labelled sessions are in no log: {shown}")
        return Answer(
            found.to_json(), lambda out: show_backtest(out, found), "ok" if found.scored else "empty", warnings=warnings
        )

    answer_alone(COMMAND, how, work)
