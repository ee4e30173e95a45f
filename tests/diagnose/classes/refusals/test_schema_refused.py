"""What to give in place of an option that is not taken."""

from __future__ import annotations

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import bash, evidence, failed


def test_an_option_of_the_help_that_was_read_is_named() -> None:
    """Where the error names `--help` alone, the help of that command tells which option takes such a value."""
    help_text = "Options:\n  --after DATE    Only changes after this date.\n  --author TEXT\n  --help  Show this message."
    refused = "Usage: ripdoc list [OPTIONS]\nTry 'ripdoc list --help' for help.\n\nError: No such option: --since"
    told = diagnose(evidence(bash("ripdoc list --help", help_text), *[failed("ripdoc list --since 2026-10-01", refused)] * 3))

    assert told is not None
    assert "`--after` in place of `--since`" in told.next_step
