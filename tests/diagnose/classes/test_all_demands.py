"""What validators, documents, people and pages demand: the answer names it, and is silent where nothing is demanded."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.diagnose import CLASSES, Evidence, diagnose
from tests.diagnose.build import Call, Said, bash, edit, evidence, failed, read


def refused(action: str, given: Any, answer: str) -> list[Call]:
    """Return three refusals of one call."""
    return [Call(action, given, answer, "error")] * 3


def polled(command: str, output: str) -> list[Call]:
    """Return polls with longer and longer pauses."""
    return [bash(f"sleep {30 * pause}; {command}", output) for pause in (1, 2, 4, 8)]


UNKNOWN_STATUS = (
    '[{"code":"unrecognized_keys","keys":["status"],"path":[],"message":"Unrecognized key(s) in object: \'status\'"}]'
)
LACKS_GRAMS = (
    '[{"code":"invalid_type","expected":"integer","received":"undefined","path":["loads",0,"grams"],"message":"Required"}]'
)
LACKS_TIMEOUT = '{"detail":[{"loc":["body","timeout_ms"],"msg":"field required","type":"missing"}]}'
TWO_PLACES = (
    "pydantic_core.ValidationError: 2 validation errors for Damage\npolicy\n  String should match pattern '^HP-\\d{4}$'\n"
    "channel\n  Input should be 'phone' or 'portal' [type=enum, input_value='web', input_type=str]"
)
WRONG_PULL = (
    'The Deployment "api" is invalid: spec.template.spec.containers[0].imagePullPolicy: Unsupported value: "always": supported'
    ' values: "Always", "IfNotPresent", "Never"'
)
TOLD: list[tuple[str, Evidence, str, list[str]]] = [
    (
        "a unit from what the user said",
        evidence(Said("Set it to 2 minutes"), *refused("set_timeout", {"timeout": "2 minutes"}, LACKS_TIMEOUT)),
        "schemaRefused",
        ["`timeout_ms`", "`120000`"],
    ),
    (
        "a unit from a neighbour",
        evidence(*refused("book", {"loads": [{"kg": 380}]}, LACKS_GRAMS)),
        "schemaRefused",
        ["`loads[0].grams`", "`380000`"],
    ),
    (
        "two places at once",
        evidence(*refused("intake", {"policy": "P2044", "channel": "web"}, TWO_PLACES)),
        "schemaRefused",
        ['`"HP-2044"`', "`phone` and `portal`"],
    ),
    (
        "a choice in other letters",
        evidence(*[failed("kubectl apply -f d.yaml", WRONG_PULL)] * 3),
        "schemaRefused",
        ["imagePullPolicy", '`"Always"`'],
    ),
    (
        "a document rules it out",
        evidence(
            read("CLAUDE.md", "- Never run npm install in web/: it breaks the lock. Use bin/deps instead."),
            *[failed("npm install react", "npm ERR! lock refused")] * 3,
            found=False,
        ),
        "notedWay",
        ["bin/deps"],
    ),
    (
        "a decision in notes",
        evidence(
            Said("Build the settings page"),
            read("docs/notes.md", "# Notes\n- 3 May: we agreed on a left sidebar, tabs are out.\n- fonts open"),
            Said("Sidebar or tabs for the settings?", "main"),
            edit("a.tsx", "x", "tabs"),
            Said("Tabs might be better on mobile. Back to tabs.", "main"),
            edit("a.tsx", "sidebar", "tabs"),
            Said("Hard to say, sidebar or tabs?", "main"),
            found=False,
        ),
        "decidedBefore",
        ["`sidebar`"],
    ),
    (
        "a page asked for in other forms",
        evidence(
            *[Call("invoices", {"state": each}, {"items": [1], "has_more": True, "next_cursor": "c_9a"}) for each in "abcd"],
            found=False,
        ),
        "outputCut",
        ["`c_9a`"],
    ),
    (
        "over the user's limit",
        evidence(
            Said("Send it, no more than 200 recipients per call"),
            *[Call("send_bulk", {"batch_size": size}, "refused by gateway", "error") for size in (1000, 800, 500)],
            found=False,
        ),
        "constraintBroken",
        ["at most 200"],
    ),
]


@pytest.mark.parametrize(("known", "kind", "step"), [each[1:] for each in TOLD], ids=[each[0] for each in TOLD])
def test_a_demand_is_named_in_the_next_step(known: Evidence, kind: str, step: list[str]) -> None:
    """The next step names the value, name, page or rule that is demanded."""
    found = diagnose(known)

    assert found is not None
    assert found.kind == kind, found.cause
    assert [word for word in step if word not in found.next_step] == [], found.next_step


SILENT: list[tuple[str, Evidence, str]] = [
    (
        "a missing file",
        evidence(*refused("get", {"path": "/srv/x"}, '{"path": "/srv/x", "message": "file is missing"}')),
        "schemaRefused",
    ),
    (
        "a comparison that was asked for",
        evidence(
            Said("Compare Redis and Memcached for our cache"),
            read("docs/adr/3.md", "Status: accepted\nDecision: Postgres as the database."),
            Said("Redis or Memcached: first compare speed.", "main"),
            Said("Redis vs Memcached memory next.", "main"),
            Said("Redis fits better for streams; decide later.", "main"),
            found=False,
        ),
        "decidedBefore",
    ),
    (
        "a decision that is followed",
        evidence(
            Said("go"),
            read("docs/adr/3.md", "Decision: Kafka for events, not NATS."),
            Said("Kafka or NATS?", "main"),
            Said("Compare Kafka and NATS.", "main"),
            Said("NATS may be better, but Kafka is decided.", "main"),
            edit("a", "x", "kafka client"),
            found=False,
        ),
        "decidedBefore",
    ),
    (
        "a rule of something else",
        evidence(
            read("README.md", "Never commit secrets.env. Use vault/keys instead."),
            *[failed("npm run lint", "1 problem: expected 3 got 4")] * 3,
        ),
        "decidedBefore",
    ),
    (
        "pages that are walked",
        evidence(
            *[
                Call("invoices", {"cursor": asked}, {"items": [1], "has_more": True, "next_cursor": next_})
                for asked, next_ in (("", "c1"), ("c1", "c2"), ("c2", "c3"))
            ],
            found=False,
        ),
        "outputCut",
    ),
    (
        "a tail that tells",
        evidence(*[failed("make 2>&1 | tail -2", "a.c:3: error: expected ';'")] * 3),
        "outputCut",
    ),
    (
        "another thing is paused",
        evidence(
            bash("dags", "dag_id|is_paused\nother_dag|True\nmeter_x|False"),
            *polled("dags runs meter_x", "meter_x|queued"),
            found=False,
        ),
        "cannotBegin",
    ),
    (
        "it was switched on since",
        evidence(
            Call("flow_get", {"id": "wf_22"}, {"id": "wf_22", "active": False}),
            Call("flow_activate", {"id": "wf_22"}, {"ok": 1}),
            *[Call("flow_runs", {"flow": "wf_22"}, {"flow": "wf_22", "status": "waiting"})] * 5,
            found=False,
        ),
        "cannotBegin",
    ),
    (
        "a time is no amount",
        evidence(
            Said("It takes up to 10 minutes."),
            *[failed(f"export --limit {size}", "boom") for size in (500, 400, 300)],
            found=False,
        ),
        "constraintBroken",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("known", "kind"), [each[1:] for each in SILENT], ids=[each[0] for each in SILENT])
def test_nothing_is_demanded(known: Evidence, kind: str) -> None:
    """The class is silent where the same words demand nothing of the call."""
    each = next(each for each in CLASSES if kind == each.KIND)

    assert each.diagnose(known) is None
