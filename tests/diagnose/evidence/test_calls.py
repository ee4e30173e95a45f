"""What calls ask for: the files that they edit, and how."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.evidence.calls import diff_changes, short_path

HEAD = "--- a/shop.sql\n+++ b/shop.sql\n"


@pytest.mark.parametrize(
    ("hunk", "old", "new"),
    [
        ("--- old comment\n select 1;", "-- old comment\nselect 1;", "select 1;"),
        ("--- old comment\n+-- new comment\n select 1;", "-- old comment\nselect 1;", "-- new comment\nselect 1;"),
        ("+++ counter\n select 1;", "select 1;", "++ counter\nselect 1;"),
        ("--- old\n+++ new\n select 1;", "-- old\nselect 1;", "++ new\nselect 1;"),
    ],
)
def test_a_line_of_a_hunk_may_look_like_a_head(hunk: str, old: str, new: str) -> None:
    """A comment of SQL that is removed is no head of a file; the head of the next file is one."""
    diff = f"{HEAD}@@ -1,2 +1,1 @@\n{hunk}\n--- a/b.sql\n+++ b/b.sql\n@@ -1 +1 @@\n-a\n+b\n"

    found = [(path, change.old, change.new) for path, change in diff_changes(diff)]
    assert found == [("shop.sql", old, new), ("b.sql", "a", "b")]


def test_a_path_is_told_so_that_it_can_be_read() -> None:
    """Its end alone would be another path. A long one shows that it is cut."""
    assert short_path("/srv/data/lab/proj/check.py") == "/srv/data/lab/proj/check.py"
    assert short_path(f"/srv/{'deep/' * 30}lab/proj/check.py") == "…/lab/proj/check.py"
