"""Judging a folder of logs: what is wrong with the command is no fault of the logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import builders as b
from tests.cli.console import lines, run


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--set", "nonsense=1"), "unknown setting 'nonsense'"),
        (("--set", "repeat_rounds=1"), "repeat_rounds must be at least 2"),
        (("--now", "soon"), "soon"),
    ],
)
def test_a_wrong_option_is_told_as_for_one_log(options: tuple[str, ...], reason: str, tmp_path: Path) -> None:
    """Not as logs that could not be read."""
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "a.jsonl"
    log.write_text(lines(*b.steps("s", ["Bash:ls -> same"] * 3)), "utf-8")
    one, all_ = run("detect", str(log), *options), run("detect", str(tmp_path / "logs"), *options)

    assert (all_.code, all_.err) == (one.code, one.err)
    assert (all_.code, reason in all_.err) == (2, True)


def test_in_a_pipe_it_is_said_which_of_several_sessions_was_judged(tmp_path: Path) -> None:
    """A script reads it on stderr, and a program in the warnings; a named session needs no word."""
    path = tmp_path / "two.jsonl"
    path.write_text(lines(*b.steps("s1", ["Read:a"]), *b.steps("s2", ["Read:b"])), "utf-8")
    chosen = "session s2 (the latest of 2; --session chooses another)"
    for _ in range(2):  # the second answer comes from the cache
        assert run("detect", str(path), "--json").envelope["warnings"] == [chosen]
        assert chosen in run("detect", str(path)).err
    for words in (("detect", str(path), "--session", "s1"), ("detect", str(path), "--all-sessions")):
        assert chosen not in run(*words, "--json").out
    assert chosen in run("recover", str(path), "--plan").err
    assert chosen in run("recover", str(path), "--plan", "--force", "--json").envelope["warnings"]
