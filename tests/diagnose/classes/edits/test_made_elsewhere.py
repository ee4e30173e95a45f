"""Edits that do not arrive, because a copy of the edited folder is used."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ctxmgr.diagnose import diagnose
from ctxmgr.diagnose.evidence import Evidence
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


MAKE_LINE = "gcc -O1 -iquote build/gen -Iinclude -c -o build/c.o src/c.c"
LISTED = bash("ls -R .", ".:\nMakefile\nbuild\n\n./build/gen:\nlimits.h\n\n./include:\nlimits.h\nprobe.h")
INCLUDES = bash("cat src/c.c", '#include <probe.h>\n#include "limits.h"\nint f(int t) { return t >= ALARM; }')
RECIPE = bash("cat tools/gen.sh", "#!/bin/sh\n# conf/limits.csv -> build/gen/limits.h\nsh -c x > build/gen/limits.h")
MAKEFILE = bash("cat Makefile", "test: build/t\n\t./build/t\n\ngen:\n\tsh tools/gen.sh\n")
CHANGE = bash("sed -i 's/A 80/A 75/; s/B 6/B 5/' include/limits.h && git diff -U0")


def header_runs(line: str = MAKE_LINE, *, looks: Sequence[Call] = (LISTED, INCLUDES), change: Call = CHANGE) -> Evidence:
    """Return a check that fails the same way before and after a change of a header."""
    check = failed("make test", f"{line}\n./build/t\nFAIL alarm: got 1, want 2\nmake: *** [Makefile:6: test] Error 1")
    return evidence(*looks, check, change, check, check)


def test_a_header_of_an_earlier_folder_is_named() -> None:
    """The compiler takes the first file of that name on its path."""
    require_told(
        header_runs(),
        "madeElsewhere",
        ["`include/limits.h` are not used", "`build/gen/limits.h` before it", "`-iquote build/gen` comes before `-I include`"],
        ["Read `build/gen/limits.h`"],
    )


def test_what_the_earlier_header_is_made_from_is_named() -> None:
    """The script that writes it says from what, and a target of the makefile runs that script."""
    require_told(
        header_runs(looks=(LISTED, INCLUDES, RECIPE, MAKEFILE)),
        "madeElsewhere",
        ["made from `conf/limits.csv`"],
        ["Make the change in `conf/limits.csv`, run `make gen`"],
    )


@pytest.mark.parametrize(
    "known",
    [
        # The edited one comes first.
        header_runs("gcc -O1 -Iinclude -Ibuild/gen -c -o build/c.o src/c.c"),
        # Names in angles are not looked for there.
        header_runs(looks=(LISTED, bash("cat src/c.c", "#include <limits.h>"))),
        # No look has listed the other one.
        header_runs(looks=(bash("ls include", "limits.h\nprobe.h"), INCLUDES)),
        # The file that includes it lies beside the edited one.
        header_runs(looks=(LISTED, bash("cat include/probe.h", '#include "limits.h"'))),
        # The other one was changed as well.
        header_runs(change=bash("sed -i 's/A 80/A 75/' include/limits.h build/gen/limits.h")),
        # Another file was changed.
        header_runs(change=bash("sed -i 's/A 80/A 75/' include/probe.h")),
    ],
)
def test_a_header_that_the_compiler_may_reach_is_no_cause(known: Evidence) -> None:
    """Nothing is said where the order, the kind of the name or the record leaves it open."""
    found = diagnose(known)

    assert found is None or "before it" not in found.cause
