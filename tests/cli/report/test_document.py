"""``ctxmgr report``: one file that shows what is wrong, quotes no secret, runs nothing and leaves other files alone."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ctxmgr.log.codec import Record
from tests import builders as b
from tests.cli.console import run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

TASK = "Make the build green."
WORDS = ["> " + TASK, "Read:/app/a.py -> x = 1", *(["!Bash:make build -> missing separator on line 7"] * 4)]


class _Elements(HTMLParser):
    """Collects elements with their attributes, and the text outside of the style sheet."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside.append(tag)

    def handle_data(self, data: str) -> None:
        if self._inside[-1:] != ["style"]:
            self.text += data

    def handle_endtag(self, tag: str) -> None:
        self._inside.append("")


def log(folder: Path, records: list[Record], name: str = "run.jsonl") -> Path:
    """Write records as a log of format 1."""
    path = folder / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def page(*arguments: str) -> str:
    """Return the page that a command wrote."""
    ended = run("report", *arguments)
    assert ended.code == 0, ended.err
    return ended.out


def test_the_page_leads_with_cause_and_next_step(tmp_path: Path) -> None:
    """What is wrong, why, what to do, and the text to copy stand before the evidence."""
    text = _Elements(page(str(log(tmp_path, b.steps("s1", WORDS))))).text

    order = [
        text.index(part) for part in ("loop", TASK, "What to do", "Next step", "[ctxmgr]", "Timeline", "Findings", "Entries")
    ]
    assert order == sorted(order)
    assert "@4" in text[order[-1] :]


def test_a_healthy_session_says_so(tmp_path: Path) -> None:
    """No answer is invented where nothing is wrong."""
    text = _Elements(page(str(log(tmp_path, b.steps("s1", ["> " + TASK, "Read:a", "Read:b"]))))).text

    assert "Nothing to do" in text
    assert "[ctxmgr]" not in text


def test_damage_is_told_on_the_page(tmp_path: Path) -> None:
    """Whoever opens the file sees that a part of the log could not be read."""
    source = log(tmp_path, b.steps("s1", WORDS))
    with source.open("a", encoding="utf-8") as stream:
        stream.write('{"v":1,"kind":"entry"')

    assert "incomplete" in _Elements(page(str(source))).text


def test_nothing_recorded_becomes_markup_or_a_link_outside(tmp_path: Path) -> None:
    """Hostile text in every field stays text: no element, attribute, address or hidden character comes from it."""
    hostile = (
        "</pre></title></style><script>alert(1)</script><img src=http://evil.example/x onerror=go()>\u202e\x1b[2J{{ 7*7 }}"
    )
    records = [
        b.event("s1", 0, "user_message", {"text": hostile}, agent=hostile),
        *(
            record
            for number in range(4)
            for record in (
                b.entry("s1", number, hostile, {"command": hostile, hostile: hostile}, agent=hostile),
                b.result("s1", number, status="error", error={"type": hostile, "message": hostile}),
            )
        ),
        b.event("s1", 1, "message", {"text": hostile}, agent=hostile, after=4),
    ]
    written = page(str(log(tmp_path, records)))
    clean = page(str(log(tmp_path, b.steps("s1", WORDS), "clean.jsonl")))

    found = _Elements(written)
    assert {tag for tag, _ in found.elements} <= {tag for tag, _ in _Elements(clean).elements} | {
        "pre",
        "details",
        "summary",
        "h4",
    }
    assert "script" not in {tag for tag, _ in found.elements}
    for _, attributes in found.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        assert all((attributes.get(name) or "#").startswith("#") for name in ("href", "src", "action", "xlink:href"))
    assert "alert(1)" in found.text
    assert "{{ 7*7 }}" in found.text
    assert "\u202e" not in written
    assert "\x1b" not in written


def test_the_policy_allows_the_style_sheet_alone(tmp_path: Path) -> None:
    """The content security policy names the hash of the style sheet and permits nothing else."""
    written = page(str(log(tmp_path, b.steps("s1", WORDS))))

    style = re.search(r"<style>(.*?)</style>", written, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style.group(1).encode()).digest()).decode()
    policy = next(each["content"] for tag, each in _Elements(written).elements if "http-equiv" in each and tag == "meta")
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_secrets_are_masked_in_a_log_that_holds_them(tmp_path: Path) -> None:
    """A log in place was written by others, unmasked; the page never shows a known shape."""
    key = "sk-ant-api03-" + "Zq7" * 31 + "AA"
    written = page(str(log(tmp_path, b.steps("s1", [f"> use {key}", *[f"!Bash:curl -H {key} -> refused {key}"] * 4]))))

    assert key not in written
    assert key[:40] not in written


def test_a_redacted_page_holds_no_recorded_text(tmp_path: Path) -> None:
    """Contents are told by their length; agents, actions, statuses and the shape of the loop stay."""
    words = [
        "> Ship the PLOVER release",
        "Read:/srv/PLOVER/a.py -> PLOVER = 1",
        *["!Bash:make PLOVER -> no rule for PLOVER"] * 4,
    ]
    written = page(str(log(tmp_path, b.steps("s1", words))), "--redact")

    assert "PLOVER" not in written
    text = _Elements(written).text
    assert "coder" in text
    assert "Bash" in text
    assert "characters]" in text
    assert "repetition" in text


def test_focus_leaves_out_what_happened_before_the_trouble(tmp_path: Path) -> None:
    """A few entries before the loop stay; what is left out is counted."""
    words = [f"Read:/app/file{number}.py" for number in range(40)]
    written = page(str(log(tmp_path, b.steps("s1", [*words, *["!Bash:make -> boom"] * 4]))), "--focus")

    assert "file3.py" not in written
    assert "file39.py" in written
    assert "35 earlier rows are left out" in written


def test_a_report_is_replaced_and_another_file_never(tmp_path: Path) -> None:
    """Writing again renews the page; a file that is no report stays as it is, and a link is not followed."""
    source, target = str(log(tmp_path, b.steps("s1", WORDS))), tmp_path / "run.html"
    assert run("report", source, "-o", str(target)).code == 0
    first = target.read_bytes()
    assert run("report", source, "-o", str(target), "--redact").code == 0
    assert target.read_bytes() != first
    assert target.stat().st_mode & 0o777 == 0o600

    mine = tmp_path / "mine.html"
    mine.write_text("<!doctype html>\nmine", encoding="utf-8")
    refused = run("report", source, "-o", str(mine))
    assert refused.code == 2
    assert "is no report" in refused.err
    assert mine.read_text(encoding="utf-8") == "<!doctype html>\nmine"

    link = tmp_path / "link.html"
    link.symlink_to(target)
    assert run("report", source, "-o", str(link)).code != 0
    assert link.is_symlink()
    assert {path.name for path in tmp_path.iterdir()} <= {"link.html", "mine.html", "run.html", "run.jsonl", ".ctxmgr-index"}


def test_all_sessions_get_a_page_each_and_an_index(tmp_path: Path) -> None:
    """The stuck ones stand first; a session's id never becomes a path."""
    records = [*b.steps("quiet", ["Read:a"]), *b.steps("../../escape", ["!Bash:x -> boom"] * 4)]
    folder = tmp_path / "out"

    ended = run("report", str(log(tmp_path, records)), "--all-sessions", "-o", str(folder), "--json")

    assert ended.code == 0, ended.err
    rows = ended.envelope["data"]
    assert {row["session"] for row in rows[:-1]} == {"quiet", "../../escape"}
    names = {path.name for path in folder.iterdir()}
    assert len(names) == 3
    listed = (folder / "index.html").read_text(encoding="utf-8")
    linked = [each["href"] or "" for tag, each in _Elements(listed).elements if tag == "a"]
    assert set(linked) == names - {"index.html"}
    assert linked[0].startswith("escape-")
    assert {path.name for path in tmp_path.iterdir()} <= {"out", "run.jsonl", ".ctxmgr-index"}


def test_an_empty_history_has_no_report(tmp_path: Path) -> None:
    """A log without a session, as a recorder leaves that was ended at once, is named as what it is."""
    empty = tmp_path / "run.jsonl"
    empty.write_bytes(b"")
    assert run("report", str(empty)).code in (2, 3)
    assert run("report").code == 3


def test_all_sessions_need_a_folder(tmp_path: Path) -> None:
    """Pages of several sessions can't go to stdout."""
    assert run("report", str(log(tmp_path, b.steps("s1", WORDS))), "--all-sessions").code == 2


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_shows_it_without_a_complaint(tmp_path: Path) -> None:
    """The browser applies the style sheet, sends nothing and logs no error."""
    target = tmp_path / "run.html"
    assert run("report", str(log(tmp_path, b.steps("s1", WORDS))), "-o", str(target)).code == 0
    options = [
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
        *("--disable-background-networking", "--disable-component-update", f"--user-data-dir={tmp_path / 'profile'}"),
    ]
    ended = subprocess.run(
        [str(CHROMIUM), *options, "--enable-logging=stderr", "--dump-dom", target.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip

    assert "What to do" in ended.stdout
    assert "CONSOLE" not in ended.stderr
