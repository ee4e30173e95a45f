"""What is waited for and can't begin."""

from __future__ import annotations

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import bash, evidence, require_told


def test_the_value_made_of_the_same_parts_is_offered() -> None:
    """Of the labels that are there the one of the same kind is offered, and no name of a runner."""
    rows = "ID  NAME  STATUS  LABELS\n3  kiln-x64  idle  x64-large,docker\n7  kiln-arm  idle  arm64,docker"
    listing = bash("fj runner list", rows)
    job = '{"id": 5520, "jobs": [{"name": "pack", "status": "queued", "needs_label": "arm64-large"}]}'
    view = bash("fj run view 5520 --json", job)
    told = diagnose(evidence(listing, view, *[bash("sleep 300; fj run view 5520", "test  success\npack  queued")] * 5))

    assert told is not None
    assert "such as `arm64`" in told.next_step
    assert "kiln-arm" not in told.cause


def test_an_earlier_look_shows_that_it_is_paused() -> None:
    """A look at the whole object, in another form than the polls, has the switch."""
    look = bash(
        "flux get kustomization ledger -o yaml", "kind: Kustomization\nname: ledger\nspec:\n  suspend: true\n  interval: 5m"
    )
    poll = bash("flux wait kustomization/ledger --timeout=60s", "waiting for ledger: pending\nerror: timed out waiting")

    require_told(evidence(look, *[poll] * 5), "cannotBegin", ["`suspend: true`", "`ledger`"], ["Stop polling"])
