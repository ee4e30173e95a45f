"""Edits that do not arrive, because a copy of the edited folder is used."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import Call, bash, edit, evidence, failed, read, require_told

MANIFEST = '{\n  "scripts": {\n    "sync": "rsync -a web/ public/",\n    "test": "jest"\n  }\n}'
CONFIG = 'module.exports = {\n  moduleDirectories: ["public"],\n}'
SYNC = "import shutil\nshutil.copytree('web', 'public', dirs_exist_ok=True)"


def failing_rounds(*between: Call) -> list[Call]:
    """Return a test that fails the same way after each of three edits; other calls follow the first edit."""
    check = failed("npx jest cart", "expected 12 but got 10\nTests: 1 failed, 4 passed")
    edits = [edit("/home/dev/shop/web/cart.js", f"n = {n}", f"n = {n + 1}") for n in range(3)]
    return [check, edits[0], *between, check, edits[1], check, edits[2], check]


@pytest.mark.parametrize(
    ("place", "text", "how"),
    [
        ("package.json", MANIFEST, "npm run sync"),
        ("tools/sync.py", SYNC, "python3 tools/sync.py"),
        ("Makefile", "all: test\n\nsync:\n\t@cp -R ./web/. public\n", "make sync"),
        ("ci.yml", "steps:\n  - run: cp -r web public", "cp -r web public"),
    ],
)
def test_the_command_that_renews_the_copy_is_named(place: str, text: str, how: str) -> None:
    """The file that copies the folder says which command renews the copy."""
    known = evidence(read(place, text), read("jest.config.js", CONFIG), *failing_rounds())

    require_told(known, "madeElsewhere", ["`public`", "`web`", "jest.config.js"], [how, "web/cart.js"])


def test_a_copy_that_a_call_made_before_the_edits_is_old() -> None:
    """Whoever copied the folder by hand before the edits has to copy it again."""
    known = evidence(
        bash("mkdir -p public && cp -r web/. public/ && ls public", "cart.js"),
        read("jest.config.js", CONFIG),
        *failing_rounds(),
    )

    require_told(known, "madeElsewhere", ["`public`", "`web`"], ["cp -r web/. public/", "web/cart.js"])


def test_a_message_from_the_copied_file_shows_that_it_is_used() -> None:
    """Without a setting, the place in the check's own output says which file it runs."""
    rounds = [
        step._replace(output=f"{step.output}\n  at total (/home/dev/shop/public/cart.js:4:11)")
        if step.status == "error"
        else step
        for step in failing_rounds()
    ]

    require_told(evidence(read("package.json", MANIFEST), *rounds), "madeElsewhere", ["public/cart.js"], ["npm run sync"])


@pytest.mark.parametrize("command", ["npm run sync", "rsync -a web/ public/"])
def test_a_copy_that_was_renewed_is_no_cause(command: str) -> None:
    """If the copy was renewed after the first edit, the check sees an edit."""
    known = evidence(read("package.json", MANIFEST), read("jest.config.js", CONFIG), *failing_rounds(bash(command, "done")))

    assert (told := diagnose(known)) is None or told.kind != "madeElsewhere"


def test_a_copy_that_nothing_uses_is_no_cause() -> None:
    """A folder is copied for many reasons; only a setting that takes files from there makes it a cause."""
    backup = read("tools.conf", "backup_to = public")
    known = evidence(read("package.json", MANIFEST), backup, *failing_rounds())

    assert (told := diagnose(known)) is None or told.kind != "madeElsewhere"


def test_a_check_that_names_the_edited_file_sees_it() -> None:
    """A frame of the edited file in the output shows that the check runs it."""
    rounds = [
        step._replace(output=f"{step.output}\n  at total (web/cart.js:4:11)") if step.status == "error" else step
        for step in failing_rounds()
    ]
    known = evidence(read("package.json", MANIFEST), read("jest.config.js", CONFIG), *rounds)

    assert (told := diagnose(known)) is None or told.kind != "madeElsewhere"
