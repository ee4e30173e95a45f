"""Searches in vain, where a text that was read names a file that nobody opened."""

from __future__ import annotations

from ctxmgr.diagnose import diagnose
from ctxmgr.diagnose.classes.names import search_elsewhere
from tests.diagnose.build import Call, bash, evidence, failed, read, require_told

USE = read("lib/mail.rb", "def host\n  Config.secret(:smtp_relay_host)\nend")
NOTE = read("OPERATIONS.md", "# Operations\n\nAll secrets live in ops/vault/mail.yml, encrypted.")


def searches(*options: str) -> list[Call]:
    """Return searches for a name in folders that do not set it."""
    return [
        failed(f"rg -n {term} {' '.join(options)} lib spec", "") for term in ("smtp_relay_host", "relay_host", "smtp_relay")
    ]


def test_a_search_that_brings_nothing_once_is_no_trouble() -> None:
    """One search in vain is a look."""
    found = diagnose(evidence(NOTE, USE, bash("ls lib", "mail.rb"), searches()[0]))

    assert found is None or found.kind != search_elsewhere.KIND


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
