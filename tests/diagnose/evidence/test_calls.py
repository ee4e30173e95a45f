"""What calls ask for: the files that they edit, and how."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.evidence.calls import diff_changes, edited_paths, may_change, only_looks, short_path, written_content
from tests.diagnose.build import Call, bash, view

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


LOOKS = [
    bash("cd src && pytest -q 2>&1 | tail -5"), bash("git status"), bash("find . -name a.py"), bash("curl -s localhost/health"),
    bash("make test"), bash("sleep 5"), bash("git branch -a"), Call("get_order", {"id": 1}), Call("can_send_mms", {}),
    Call("query", {"sql": "select a from b"}), Call("http_get", {"method": "GET"}), Call("think", {"text": "rm -rf /"}),
    Call("TodoWrite", {"todos": []}), bash("python3 -c 'import time; time.sleep(20)'"), bash("rg --files"),
    Call("WebSearch", {"query": "how to delete a row"}), Call("write_stdin", {"chars": "", "session_id": 3}),
]  # fmt: skip
MAY_ACT = [
    bash("python a.py"), bash("pip install pytest"), bash("find . -name a.py -delete"), bash("env A=1 ./deploy.sh"),
    bash("git branch -D old"), bash("ls > list.txt"), bash("echo $(./deploy.sh)"), bash("pytest --snapshot-update"),
    bash("curl -X POST localhost/start"), bash("npx eslint --fix ."), Call("zorgify", {}), Call("toggle_wifi", {}),
    Call("query", {"sql": "update t set a = 1"}), Call("fetch", {"method": "POST"}), Call("check_in_guest", {"id": 1}),
    Call("open_valve", {"id": 1}), Call("write_stdin", {"chars": "yes", "session_id": 3}),
    bash("python3 -c 'import time, job; job.run()'"),
    Call("browser_navigate", {"url": "a"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "looks"), [*((each, True) for each in LOOKS), *((each, False) for each in MAY_ACT)],
    ids=[f"{each.action} {each.given}"[:60] for each in (*LOOKS, *MAY_ACT)],
)  # fmt: skip
def test_a_call_only_looks_where_that_is_sure(call: Call, looks: bool) -> None:
    """What a program or a tool of an unknown name does, nobody can tell."""
    assert only_looks(view(1, call)) == looks


@pytest.mark.parametrize(
    ("command", "path", "content"),
    [
        ("cat > a.sql <<'E'\nselect 1;\nE", "a.sql", "select 1;"),
        ("mkdir -p x && cat <<EOF > x/a.sql\nselect 1;\nEOF\n", "x/a.sql", "select 1;"),
        ("tee a.sql > /dev/null <<E\nselect 1;\nE", "a.sql", "select 1;"),
        ("cat >> a.sql <<E\nselect 1;\nE", "a.sql", None),
        ("cat > a.sql <<E\nselect 1;\nE\nsqlite3 x.db < a.sql", "", None),  # it runs something too
        ("cat a.sql <<E\nselect 1;\nE", "", None),
        ("sqlite3 x.db <<E\nselect 1 > 2;\nE", "", None),
    ],
)
def test_a_command_that_writes_a_file_is_an_edit(command: str, path: str, content: str | None) -> None:
    """Agents that have a shell alone write files so."""
    entry = view(1, bash(command))

    assert edited_paths(entry) == ([path] if path else [])
    assert written_content(entry) == content
    assert may_change(entry) == ("> a.sql" in command or bool(path))
