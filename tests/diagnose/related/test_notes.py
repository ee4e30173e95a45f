"""Notes in a record: the paragraph that speaks of what fails, and the way that it names."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.related.notes import diagnose_note, find_way_in_note
from tests.diagnose.build import Call, bash, evidence, failed, read

FAILURE = failed("deployctl push --to stage", "error: profile 'blue-harbor' is locked")
NOTE = (
    "# Deploying\n\nThe profile blue-harbor is locked outside of office hours. Ask the release desk to unlock it.\n\n"
    "Other profiles are open."
)


def test_a_note_that_names_what_fails_is_quoted() -> None:
    """With its source, and only the paragraph that speaks of it."""
    record = evidence(read("docs/deploy.md", NOTE), *[FAILURE] * 3)
    found = diagnose_note("notedWay", record, record.entries[-1])

    assert found is not None
    assert "blue-harbor" in found.cause
    assert any("docs/deploy.md" in quote.source and "office hours" in quote.text for quote in found.evidence)
    assert "Other profiles" not in found.cause


@pytest.mark.parametrize(
    "note",
    [
        read("docs/deploy.md", NOTE.replace("blue-harbor", "red-harbor")), read("docs/deploy.md", NOTE)._replace(agent="other"),
        read("docs/deploy.md", NOTE)._replace(status="error"), bash("ls", "blue-harbor.toml"),
    ],
)  # fmt: skip
def test_another_matter_is_no_note(note: Call) -> None:
    """Another name, another agent's reading, a look that failed, a bare list."""
    record = evidence(note, *[FAILURE] * 3)

    assert diagnose_note("notedWay", record, record.entries[-1]) is None


def test_a_way_is_what_a_note_says_to_use() -> None:
    """Of what a call was refused; a name that failed already is no other way."""
    refused = failed("curl -O https://files.example/archive.tgz", "curl: (56) proxy refuses files.example for archive.tgz")
    note = "Files of files.example are refused by the proxy: for archive downloads use `mirror.internal` instead."
    record = evidence(read("README.md", note), *[refused] * 3)
    found = find_way_in_note(record, record.entries[-1])

    assert found is not None
    assert found.names == ["mirror.internal"]
    again = evidence(
        read("README.md", note), *[failed("curl -O https://mirror.internal/archive.tgz", "curl: (56) refused")] * 3
    )
    assert find_way_in_note(again, again.entries[-1]) is None
