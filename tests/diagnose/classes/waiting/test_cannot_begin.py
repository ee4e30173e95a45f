"""What is waited for and can't begin."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from ctxmgr.diagnose.classes.waiting import cannot_begin
from tests.diagnose.build import Call, Said, bash, evidence, require_told


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


POLL = bash("kubectl -n shop rollout status deploy/cart", "Waiting for deployment cart rollout to finish: 0 out of 3")


def test_the_call_that_switches_it_on_and_what_stands_beside_the_switch() -> None:
    """The tool's own verb is named with the kind of the thing, and a note beside the switch is told."""
    note = 'annotations:\n  note: "frozen for the audit of March, resume after it"\nname: cart\npaused: true\nreplicas: 3'
    known = evidence(bash("kubectl -n shop get deploy cart -o yaml", note), *[POLL] * 4)

    require_told(known, "cannotBegin", ["frozen for the audit"], ["`kubectl rollout resume deploy/cart -n shop`"])


def test_a_switch_that_the_user_wants_as_it_is() -> None:
    """What the user wants to stay is not switched on."""
    look = bash("kubectl -n shop get deploy cart -o yaml", "name: cart\npaused: true\nstrategy: Recreate")
    known = evidence(Said("Keep cart paused until the audit is over."), look, *[POLL] * 4)

    require_told(known, "cannotBegin", ["Keep cart paused"], ["leave `paused: true` as it is"])


@pytest.mark.parametrize(
    ("shown", "switch"),
    [
        ({"name": "nightly-7", "replicas": 0}, "`replicas: 0`"),
        ({"name": "nightly-7", "locked": True}, "`locked: true`"),
        ({"name": "nightly-7", "dryRun": True}, "`dryrun: true`"),
        ({"name": "nightly-7", "replicas": 2, "locked": False}, ""),
        ({"name": "weekly-2", "locked": True}, ""),
    ],
)
def test_the_same_answer_again_and_again(shown: dict[str, object], switch: str) -> None:
    """Answers that never differ are polls as well, whatever their words."""
    poll = Call("sync.info", {"id": "nightly-7"}, {"id": "nightly-7", "rows": 1200, "last": "2026-03-02"})
    told = cannot_begin.diagnose(evidence(Call("jobs.get", {"all": True}, shown), *[poll] * 5))

    assert (told is not None) == bool(switch)
    assert told is None or switch in told.cause
    assert told is None or "alike" in told.cause


def test_an_open_call_waits_for_what_is_held() -> None:
    """One call that waits is enough, if an answer shows the switch of the same thing."""
    shown = {"id": "J-311", "state": "held", "note": "held by the night shift until the tape is changed"}
    wait = Call("jobs.wait", {"id": "J-311"}, status="open")
    told = cannot_begin.diagnose(evidence(Call("jobs.get", {"id": "J-311"}, shown), wait, severity="hung"))

    assert told is not None
    assert "has not returned" in told.cause
    assert "until the tape is changed" in told.cause


def test_no_copies_are_wanted() -> None:
    """A table shows that none are to run."""
    table = bash(
        "kubectl get deploy", "NAME   READY   UP-TO-DATE   AVAILABLE   AGE\nworker   0/0     0            0           9d"
    )
    poll = bash("kubectl get pods -l app=worker", "No resources found in default namespace.")

    require_told(evidence(table, *[poll] * 5), "cannotBegin", ["`ready: 0/0` for `worker`"], ["Stop polling"])
