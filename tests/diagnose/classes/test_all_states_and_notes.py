"""States, limits and notes that an earlier answer shows: what is said of them in many domains, and where nothing may be."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.diagnose import diagnose
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import Call, Said, bash, edit, evidence, failed, read

TIMES = 4


def call(action: str, answer: str, status: Any = "ok", agent: str = "main", **given: Any) -> Call:
    """Return a call of a tool of its own with a structured answer."""
    return Call(action, given, answer, status, agent)


def refused(action: str, answer: str, **given: Any) -> list[Call]:
    """Return the same refused call several times."""
    return [call(action, answer, "error", **given)] * TIMES


SPEAKS: list[tuple[str, str, list[str], Evidence]] = [
    (
        "an invoice needs a second release, the policy names who gives it",
        "waitsForPerson",
        ["Marchetti"],
        evidence(
            call("policy_read", "Payments above 5000 are approved by the treasurer (currently Marchetti, room 12)."),
            call("payment_create", '{"payment": "PAY-771", "state": "pending", "approved_by": null}', amount=9000),
            *refused("payment_send", '{"error": "APPROVAL_MISSING", "message": "PAY-771 not approved"}', payment="PAY-771"),
        ),
    ),
    (
        "the one who is to sign is away, the directory names who stands in",
        "waitsForPerson",
        ["Ilse Quandt"],
        evidence(
            call(
                "people_find",
                '{"name": "Jan Roos", "note": "out of office until Monday, substitute: Ilse Quandt"}',
                name="Roos",
            ),
            call("sign_request", '{"request": "SG-90", "to": "j.roos", "state": "sent"}', doc="D-14"),
            *refused("doc_publish", '{"error": "UNSIGNED", "message": "D-14 not signed, SG-90 is open"}', doc="D-14"),
        ),
    ),
    (
        "the answer says who has it and until when",
        "waitingOnLock",
        ["m.sato", "14:30"],
        evidence(*refused("room_edit", '{"error": "locked", "locked_by": "m.sato", "until": "14:30"}', room="R-3")),
    ),
    (
        "the account tells when the quota is renewed",
        "rateLimited",
        ["00:00 UTC"],
        evidence(
            call("mail_account", '{"plan": "free", "messages_per_day": 100, "used_today": 100, "resets": "00:00 UTC"}'),
            *refused("mail_send", '{"code": 429, "message": "Daily limit reached"}', to="a"),
        ),
    ),
    (
        "a feed that is waited for is disabled",
        "cannotBegin",
        ["enabled: false"],
        evidence(
            call("feed_get", '{"id": "feed-22", "enabled": false, "owner": "press"}', id="feed-22"),
            *[call("feed_status", '{"id": "feed-22", "state": "pending"}', id="feed-22")] * 5,
        ),
    ),
    (
        "a build wants a runner that is not there",
        "cannotBegin",
        ["gpu-large", "gpu-small"],
        evidence(
            bash("ci runners", '[{"name": "r1", "labels": "gpu-small"}, {"name": "r2", "labels": "cpu-large"}]'),
            *[bash("ci show b-77", '{"id": "b-77", "state": "queued", "needs_label": "gpu-large"}')] * 5,
        ),
    ),
    (
        "what a note says of a closed folder",
        "permissionDenied",
        ["incoming/lab"],
        evidence(
            read("/data/RULES.md", "- `results/` belongs to the registry. Files of agents go to `incoming/lab/`."),
            *refused("file_put", '{"error": "EACCES", "message": "may not write results/a.csv"}', path="results/a.csv"),
        ),
    ),
    (
        "what a note says of another way to log in",
        "authenticationRefused",
        ["ci-deploy"],
        evidence(
            read("/app/ACCESS.md", "The registry takes no passwords since May; bots log in with the account ci-deploy."),
            *[failed("registry push app", "denied: authentication failed, password login is off")] * TIMES,
        ),
    ),
    (
        "the user named a role for the case of a refusal",
        "permissionDenied",
        ["deployer-eu"],
        evidence(
            Said("Deploy to eu. If it is refused, use the role deployer-eu."),
            *refused("deploy", '{"error": "FORBIDDEN", "message": "role viewer is not allowed to deploy"}', role="viewer"),
        ),
    ),
    (
        "the user set a limit, and the refusals are over it",
        "constraintBroken",
        ["at most 200"],
        evidence(
            Said("Import the rows, at most 200 rows per call."),
            *refused("rows_import", '{"error": "CHANGE_RULE", "message": "refused"}', rows=["1"], note="rows 500"),
        ),
    ),
    (
        "the help names the option that spares the question",
        "callHangs",
        ["--assume-yes"],
        evidence(
            bash("./ship --help", "usage: ship [--assume-yes] RELEASE"),
            *[failed("./ship 4", "Ship release 4? [y/N] \nCommand timed out after 60s")] * TIMES,
        ),
    ),
    (
        "two agents need a file of each other",
        "mutualWait",
        ["parts.csv", "sizes.csv"],
        evidence(
            bash("cat a.status", "agent: cutter\nneeds: sizes.csv (from fitter)"),
            bash("cat b.status", "agent: fitter\nneeds: parts.csv (from cutter)"),
            *[failed("ls sizes.csv", "ls: cannot access 'sizes.csv': No such file or directory")] * TIMES,
        ),
    ),
]

SILENT: list[tuple[str, str, Evidence]] = [
    (
        "the decision was made meanwhile",
        "waitsForPerson",
        evidence(
            call("release_get", '{"release": "REL-5", "state": "pending", "decided_by": null}', release="REL-5"),
            call("release_get", '{"release": "REL-5", "state": "approved", "decided_by": "Okafor"}', release="REL-5"),
            *refused("pay", '{"error": "BAD_IBAN", "message": "IBAN of REL-5 is not valid"}', release="REL-5"),
        ),
    ),
    (
        "another request is pending",
        "waitsForPerson",
        evidence(
            call("release_get", '{"release": "REL-5", "state": "pending", "decided_by": null}', release="REL-5"),
            *refused("pay", '{"error": "BAD_IBAN", "message": "IBAN of PAY-9 is not valid"}', payment="PAY-9"),
        ),
    ),
    (
        "the switch was turned on meanwhile",
        "cannotBegin",
        evidence(
            call("feed_get", '{"id": "feed-22", "enabled": false}', id="feed-22"),
            call("feed_get", '{"id": "feed-22", "enabled": true}', id="feed-22"),
            *[call("feed_status", '{"id": "feed-22", "state": "pending"}', id="feed-22")] * 5,
        ),
    ),
    (
        "another job of the same house is paused",
        "cannotBegin",
        evidence(
            bash("jobs list", '[{"id": "j-1", "paused": true}, {"id": "j-2", "paused": false}]'),
            *[bash("jobs show j-2", '{"id": "j-2", "state": "queued"}')] * 5,
        ),
    ),
    (
        "the numbers keep to the limit",
        "constraintBroken",
        evidence(
            Said("Import the rows, at most 200 rows per call."),
            *refused("rows_import", '{"error": "SCHEMA", "message": "column 3 is not a date"}', note="rows 100"),
        ),
    ),
    (
        "a person says no once",
        "constraintBroken",
        evidence(
            Said("Make it blue, never red."),
            edit("a.css", "green", "navy"),
            Said("No, lighter."),
            edit("a.css", "navy", "sky"),
            found=False,
        ),
    ),
    (
        "the note is about something else",
        "permissionDenied",
        evidence(
            read("/app/README.md", "Use `make docs` for the manual. It goes to `public/manual/`."),
            failed("cat /etc/shadow", "cat: /etc/shadow: Permission denied"),
            failed("cat /etc/gshadow", "cat: Permission denied"),
            found=False,
        ),
    ),
    (
        "only one of the two waits",
        "mutualWait",
        evidence(
            bash("cat a.status", "agent: cutter\nneeds: sizes.csv (from fitter)"),
            bash("cat b.status", "agent: fitter\nstate: working"),
            *[failed("ls sizes.csv", "ls: cannot access 'sizes.csv': No such file or directory")] * TIMES,
        ),
    ),
]


@pytest.mark.parametrize(("what", "kind", "words", "known"), SPEAKS, ids=[each[0] for each in SPEAKS])
def test_what_an_earlier_answer_shows_is_named(what: str, kind: str, words: list[str], known: Evidence) -> None:
    """The cause and the next step name whom or what the record shows, in domains of which no class knows a word."""
    found = diagnose(known)

    assert found is not None, what
    assert found.kind == kind, found.cause
    for word in words:
        assert word in f"{found.cause} {found.next_step}", found.next_step


@pytest.mark.parametrize(("what", "kind", "known"), SILENT, ids=[each[0] for each in SILENT])
def test_what_an_earlier_answer_denies_is_not_said(what: str, kind: str, known: Evidence) -> None:
    """A state that has changed, another one's state, or a note of another matter is no cause."""
    found = diagnose(known)

    assert found is None or found.kind != kind, f"{what}: {found.cause}"
