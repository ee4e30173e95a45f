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


SCALE = failed("kubectl scale deploy shop-api --replicas=8", "Error (Forbidden): deployments.apps shop-api: bot may not scale")
TRIED = "2. CPU bound: scale shop-api to 8."
WAY = (
    "How to scale. Nothing in prod is changed by hand; the accounts are read-only there. Replica counts of shop-api live in "
    "the repository fleet.git, file envs/prod/replicas.yaml. Commit on a branch, and open the merge request with "
    "`glab mr create`."
)


def test_a_line_that_only_says_what_was_tried_is_no_way() -> None:
    """The paragraph that says how and where is told instead; without one, nothing is."""
    whole = evidence(read("runbooks/slow.md", f"# Slow\n{TRIED}\n\n{WAY}"), *[SCALE] * 3)
    found = diagnose_note("notedWay", whole, whole.entries[-1])

    assert found is not None
    assert "envs/prod/replicas.yaml" in found.cause
    assert "CPU bound" not in found.cause
    assert "`glab mr create`" in found.next_step
    bare = evidence(read("runbooks/slow.md", f"# Slow\n{TRIED}"), *[SCALE] * 3)
    assert diagnose_note("notedWay", bare, bare.entries[-1]) is None


def test_a_long_note_is_cut_between_sentences_and_keeps_the_way() -> None:
    """The sentence on what failed stays, with the one that allows something else; no name loses its end."""
    rules = (
        "R-11 moving house: the contract goes along to the new place.\nR-12 no change before the fixed term ends, for nobody.\n"
        "R-13 instalment: may be lowered on request once in three months to what the usage of the year supports (estimate x "
        "price / 12 + base fee), with instalment.set.\nR-14 unpaid bills: plan in up to six parts."
    )
    refused = Call("contract.change", {"to": "Calm"}, "R-12: change refused", "error")
    record = evidence(Call("rules.get", {"topic": "changes"}, rules), *[refused] * 3)
    found = diagnose_note("notedWay", record, record.entries[-1])

    assert found is not None
    assert "R-12 no change before the fixed term ends, for nobody. R-13" in found.cause
    assert "with instalment.set.`" in found.cause
    assert "`instalment.set`" in found.next_step
    assert "R-12" not in found.next_step


def test_a_long_sentence_is_cut_between_words() -> None:
    """If no sentence fits, the first one on the matter is shown as far as it goes."""
    word = "harbourmaster"
    record = evidence(read("docs/deploy.md", f"The profile blue-harbor is locked {' '.join([word] * 40)}."), *[FAILURE] * 3)
    found = diagnose_note("notedWay", record, record.entries[-1])

    assert found is not None
    assert f"{word} …`" in found.cause
