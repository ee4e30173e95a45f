"""Searches in vain, where a text that was read names a file that nobody opened."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from ctxmgr.diagnose.classes.names import search_elsewhere
from tests.diagnose.build import Call, Said, bash, evidence, failed, read, require_told

USE = read("lib/mail.rb", "def host\n  Config.secret(:smtp_relay_host)\nend")
NOTE = read("OPERATIONS.md", "# Operations\n\nAll secrets live in ops/vault/mail.yml, encrypted.")


def searches(*options: str) -> list[Call]:
    """Return searches for a name in folders that do not set it."""
    return [
        failed(f"rg -n {term} {' '.join(options)} lib spec", "") for term in ("smtp_relay_host", "relay_host", "smtp_relay")
    ]


def test_the_file_for_such_values_is_told_if_nobody_opened_it() -> None:
    """The note names the place of secrets, and the name that is searched is used as one."""
    known = evidence(NOTE, USE, *searches(), loop=3)

    require_told(known, search_elsewhere.KIND, ["ops/vault/mail.yml", "smtp_relay_host"], ["ops/vault/mail.yml"])


@pytest.mark.parametrize(
    "steps",
    [
        [NOTE, USE, read("ops/vault/mail.yml", "smtp: 1"), *searches()],
        [NOTE, USE, *searches("ops")],
        [read("OPERATIONS.md", "Backups of the mail go to ops/backup/mail.tar, each night."), USE, *searches()],
        [NOTE, read("OTHER.md", "The secrets of CI are in ci/secrets.yml."), USE, *searches()],
    ],
    ids=["opened", "searched", "on something else", "two files"],
)
def test_a_file_that_need_not_hold_it_is_not_told(steps: list[Call]) -> None:
    """A file that was looked into, is for something else, or is one of several, says nothing."""
    found = diagnose(evidence(*steps, loop=3))

    assert found is None or "ops/" not in found.next_step


def test_a_filter_of_names_leaves_the_file_out_of_a_search() -> None:
    """A search of everything in Ruby files has not looked into a file of YAML."""
    known = evidence(
        NOTE, USE, *[failed(f"grep -rn {term} --include=*.rb .", "") for term in ("smtp_relay", "relay_host=")], loop=2
    )

    require_told(known, search_elsewhere.KIND, ["ops/vault/mail.yml"], ["ops/vault/mail.yml"])


def test_a_search_that_brings_nothing_once_is_no_trouble() -> None:
    """One search in vain is a look."""
    found = diagnose(evidence(NOTE, USE, bash("ls lib", "mail.rb"), searches()[0]))

    assert found is None or found.kind != search_elsewhere.KIND


MOVED = Said("I no longer fill queue.csv, the rows are in spool/rows.parquet now.", "filler")


@pytest.mark.parametrize(
    ("calls", "kind"),
    [
        ([bash("ls -l spool/queue.csv", "-rw-r--r-- 1 me me 0 queue.csv")] * 4, "searchElsewhere"),
        ([failed("wc -l queue.csv", "wc: queue.csv: No such file or directory")] * 3, "wrongPlace"),
    ],
)
def test_a_message_says_where_the_file_is_now(calls: list[Call], kind: str) -> None:
    """Another agent said so, whether the old place is empty, or gone."""
    require_told(evidence(MOVED, *calls), kind, ["no longer fill"], ["spool/rows.parquet", "filler"])


LOG = read("tmp/boot.log", "12:01:07 use base=etc/base.ini\n12:01:08 use extra=site/extra.ini keys=quota,burst\n12:01:09 up")


def test_a_file_beside_a_searched_word_is_told_if_nobody_opened_it() -> None:
    """A log says which file sets the key; the searches looked for its value in other places."""
    words = ("burst", "limit = 40", "max_burst", "Limiter")
    known = evidence(LOG, *[failed(f"grep -rn '{word}' lib bin etc", "") for word in words], found=False)

    require_told(known, search_elsewhere.KIND, ["4 searches find nothing", "site/extra.ini"], ["site/extra.ini", "burst"])


def test_a_time_is_no_place() -> None:
    """The hour before a line of a log is no file, and a folder that was searched is no word that was sought."""
    known = evidence(
        read("tmp/boot.log", "11:02:19 lib loaded\n11:02:20 Limiter off"),
        *[failed(f"grep -rn '{word}' bin lib", "") for word in ("Limiter", "Limiter.new", "Limiter(")],
    )
    found = search_elsewhere.diagnose(known)

    assert found is None or ("`11`" not in found.next_step and "`lib`" not in found.cause)
