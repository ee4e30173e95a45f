"""What documents of a record say of a program that waits for an answer."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from ctxmgr.diagnose.classes.waiting.call_hangs import KIND
from ctxmgr.diagnose.classes.waiting.documented_answers import (
    avoids_questions,
    find_documented_option,
    find_password_file,
    find_recorded_question,
)
from tests.diagnose.build import Call, bash, evidence, require_told

IMPORT = "keytool -importcert -file ca.pem -keystore trust.p12 -storepass:file trust.pass"
EXPORT = "openssl pkcs12 -export -in broker.crt -inkey broker.key -out broker.p12"
NOTE = bash("cat INSTALL.txt", "Our installer runs keytool with -importcert -noprompt, nothing may be asked there.")


def hangs(command: str) -> Call:
    """Return a command that has not returned."""
    return bash(command, status="open")


def test_the_option_of_a_document_is_named_with_the_question() -> None:
    """The question is known, and a document runs the program with the option against it."""
    require_told(
        evidence(NOTE, hangs(IMPORT), severity="hung", kind="hung"),
        KIND,
        ["Trust this certificate?"],
        ["-noprompt", "INSTALL.txt"],
    )


def test_the_file_of_a_password_is_named_with_its_option() -> None:
    """A document names the file; a word of the command ties the two."""
    note = bash("cat README", "p12 password : in the file .storepass (mode 600)")
    known = evidence(note, hangs(EXPORT), severity="hung", kind="hung")

    require_told(known, KIND, ["password"], ["-passout file:.storepass", "README"])


@pytest.mark.parametrize("status", ["open", "interrupted"])
def test_a_program_that_nobody_knows_is_run_as_its_document_says(status: str) -> None:
    """The document shows the program with an option that answers everything."""
    note = bash("cat OPERATIONS.md", "Run `shipctl rotate --yes` at night.")
    call = Call("Bash", {"command": "shipctl rotate --key main", "timeout": 60}, "no end after 60 s", status)  # type: ignore[arg-type]
    known = evidence(note, *[call] * 2, severity="hung", kind="hung", found=status == "open")

    require_told(known, KIND, ["shipctl rotate", "`--yes`"], ["`--yes`", "OPERATIONS.md"])


@pytest.mark.parametrize(
    ("note", "command"),
    [
        ("shipctl rotate --verbose", "shipctl rotate --key main"),
        ("shipctl delete --yes", "shipctl rotate --key main"),
        ("otherctl rotate --yes", "shipctl rotate --key main"),
        ("Never run shipctl rotate --yes.", "shipctl rotate --key main"),
        ("shipctl rotate --yes", "shipctl rotate --yes"),
    ],
)
def test_other_options_programs_and_bans_say_nothing(note: str, command: str) -> None:
    """An option that answers nothing, of another use, that is forbidden, or that the call has."""
    known = evidence(bash("cat NOTES.md", note), hangs(command), severity="hung", kind="hung")

    assert find_documented_option(known, known.recent[-1]) is None


@pytest.mark.parametrize(
    "note",
    [
        "gpg passphrase: in the file .gpgpass",
        "p12 password: ask vault.internal",
        "p12 file: .store",
        "p12 password: a.pass or b.pass",
    ],
)
def test_other_files_are_not_named(note: str) -> None:
    """Of something else, a host, without a word of a password, or one of two."""
    known = evidence(bash("cat README", note), hangs(EXPORT), severity="hung", kind="hung")

    assert find_password_file(known, known.recent[-1]) is None


def test_a_stopped_call_that_worked_since_is_no_trouble() -> None:
    """Only the newest calls are the trouble."""
    stopped = Call("Bash", {"command": IMPORT, "timeout": 60}, "no end after 60 s", "interrupted")
    found = diagnose(evidence(stopped, *[bash(f"ls {n}") for n in range(8)], found=False))

    assert found is None


@pytest.mark.parametrize(("option", "silent"), [("--yes", True), ("-noprompt", True), ("--verbose", False)])
def test_options_that_answer_all_questions(option: str, silent: bool) -> None:
    """The usual ones are known."""
    assert avoids_questions(option) is silent


LOG = bash(
    "tail deploy-8.13.log",
    "16:04 dorota: console doctrine:migrations:migrate\n\n WARNING! You are about to execute a migration. Are you sure you wish"
    " to continue? (yes/no) [yes]:\n > yes\n\n[notice] finished in 310 ms",
)
MIGRATE = 'ssh -tt stage "cd /srv/shop && php bin/console doctrine:migrations:migrate 2>&1 | tail -5"'


@pytest.mark.parametrize(
    ("note", "command", "question"),
    [
        (LOG, MIGRATE, "`Are you sure you wish to continue? (yes/no) [yes]`"),
        (
            bash("cat docs/PURGE.md", "Run ./purge-cache.sh by hand; it asks:\nDelete 40 files [y/N]:"),
            "./purge-cache.sh > purge.out 2>&1",
            "`Delete 40 files [y/N]`",
        ),
    ],
)
def test_a_question_that_another_output_shows_is_waited_for(note: Call, command: str, question: str) -> None:
    """A pipe or a file takes the output, so that nothing of the question is seen."""
    known = evidence(note, hangs(command), severity="hung", kind="hung")

    require_told(known, KIND, ["most likely it waits for an answer", question], ["does not ask"])


def test_the_option_of_a_console_program_is_named() -> None:
    """The option is that of the program behind ssh, and not of ssh."""
    require_told(evidence(LOG, hangs(MIGRATE), severity="hung", kind="hung"), KIND, [], ["`--no-interaction`"])


@pytest.mark.parametrize(
    ("note", "command"),
    [
        # No question is recorded, or one of another program.
        (bash("tail deploy.log", "console doctrine:migrations:migrate\n[notice] finished in 310 ms"), MIGRATE),
        (LOG, MIGRATE.replace("doctrine:migrations:migrate", "cache:clear")),
        # The question stands far below, so it is of something else.
        (bash("cat a.log", "console doctrine:migrations:migrate\n" + "done\n" * 9 + "Proceed? [y/N]"), MIGRATE),
        # The call answers, asks for no questions, or shows its output.
        (LOG, MIGRATE.replace("php", "yes | php")),
        (LOG, MIGRATE.replace("migrate 2", "migrate -n 2")),
        (LOG, MIGRATE.replace(" 2>&1 | tail -5", "")),
        # A single usual word names no program.
        (bash("cat a.log", "make\nProceed? [y/N]"), "make | tail -5"),
    ],
)
def test_without_a_question_of_that_program_nothing_is_said_of_one(note: Call, command: str) -> None:
    """It may hang for any reason."""
    known = evidence(note, hangs(command), severity="hung", kind="hung")

    assert find_recorded_question(known, known.entries[-1]) is None
