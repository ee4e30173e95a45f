"""The report of an import, as a person reads it and as a pipe gets it."""

from __future__ import annotations

from ctxmgr.cli.commands.import_export import show_import
from tests.cli import view_samples as s


def test_an_import_tells_what_it_did_not_understand() -> None:
    """The report gives totals, the files when they are few, unknown types with counts, and damage with its place."""
    text = s.draw(lambda out: show_import(out, s.import_report()), width=100)

    assert "two      claude-code    1,000    321       3     1   1.2 M  logs/b.jsonl\n" in text
    assert "Not understood: 0.15% of 2,001 records\n  COUNT  TYPE\n      3  odd\n      1  (damaged)\n" in text
    assert "\n  logs/b.jsonl\n    damaged: 40 bytes at 12: not JSON\n    skipped: too large\n" in text


def test_an_import_of_many_files_names_the_troubled_ones() -> None:
    """Of many files a terminal shows those in which something was wrong; a pipe shows all."""
    good, bad = s.import_report().files
    many = s.import_report(files=[*([good] * 20), bad])

    assert s.draw(lambda out: show_import(out, many)).count("logs/a.jsonl") == 0
    assert s.draw(lambda out: show_import(out, many), terminal=False).count("logs/a.jsonl") == 20
