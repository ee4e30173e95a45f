"""Files of rules are taken whole or refused with the place and the reason; the default rules are those of the spec."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.access.patterns import parse_resource
from ctxmgr.access.rule_changes import MAX_TEXT, default_needs, default_rules, parse_rules_file
from ctxmgr.access.rules import Rules
from ctxmgr.errors import InvalidInput
from ctxmgr.types.access import AccessRule, Asked
from ctxmgr.types.project_state import AgentNeed
from tests.access.worlds import RULES, rule, thing

ROW = {"agent": "a", "resource_type": "artifact", "pattern": "b/*", "permission": "read"}


@given(st.lists(RULES, max_size=20, unique_by=lambda one: (one.agent, one.resource_type, one.pattern, one.permission)))
def test_rules_come_back_from_their_json(rules: list[AccessRule]) -> None:
    """What the shapes write is read again, in the same order."""
    text = json.dumps({"rules": [one.to_json() for one in rules]})

    assert parse_rules_file(text, "rules.json") == rules


def test_toml_is_read_in_both_spellings() -> None:
    """Tables of TOML say the type as Python or as JSON does, and the priority is 100 unless it is said."""
    text = (
        '\ufeff[[rules]]\nagent = "a"\nresource_type = "artifact"\npattern = "b/*"\npermission = "read"\n'
        '[[rules]]\nagent = "*"\nresourceType = "history"\npattern = "self"\npermission = "none"\npriority = -3\n'
    )

    assert parse_rules_file(text, "rules.toml") == [rule("a", "b/*", "read"), rule("*", "self", "none", -3, "history")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"agent": "self"}, "means something else"),
        ({"agent": ["a"]}, "agent must be text"),
        ({"agent": None}, "agent must be text"),
        ({"pattern": "b/**"}, "pattern 'b/\\*\\*'"),
        ({"pattern": {"b": "*"}}, "pattern must be text"),
        ({"resource_type": "files"}, "unknown resource type 'files'"),
        ({"resource_type": 1}, "resource type must be text"),
        ({"resourceType": "history"}, "both resource_type and resourceType"),
        ({"permission": "NONE"}, "unknown permission 'NONE'"),
        ({"permission": None}, "permission must be text"),
        ({"priority": "1"}, "priority must be"),
        ({"priority": True}, "priority must be"),
        ({"priority": 1.0}, "priority must be"),
        ({"priority": 10**30}, "priority must be"),
        ({"priority": None}, "priority must be"),
        ({"prioritiy": 1}, "unknown field 'prioritiy'"),
    ],
)
def test_one_wrong_rule_refuses_the_file(change: dict[str, Any], message: str) -> None:
    """The error names the rule and what is wrong with it; no rule of the file is taken."""
    text = json.dumps({"rules": [{**ROW, "pattern": "*"}, {**ROW, **change}]})

    with pytest.raises(InvalidInput, match=rf"^r\.json: rules\[1\]: .*{message}") as caught:
        parse_rules_file(text, "r.json")
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "[]",
            "null",
            "3",
            '"rules"',
            "{}",
            '{"rules": {}}',
            '{"rules": [[]]}',
            '{"rules": [null]}',
            '{"rules": [], "x": 1}',
        ),
        *(
            "{",
            "\0",
            '{"rules": [], "needs": NaN}',
            '{"rules": [], "rules": []}',
            '{"rules": [{}]}',
            '{"rules": 1' + "0" * 5000 + "}",
        ),
        *("[" * 100_000, '{"rules":' * 100_000, '{"\\ud800": 1}', " " * (MAX_TEXT + 1)),
    ],
    ids=range(20),
)
def test_broken_json_is_refused(text: str) -> None:
    """What is no object with an array of rules is an error, however deep, long or odd."""
    with pytest.raises(InvalidInput, match=r"^r\.json: "):
        parse_rules_file(text, "r.json")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "rules",
            "rules = 1",
            "rules = [1]",
            "rules = [{}]",
            "rules = []\nother = 1",
            "rules = []\nrules = []",
            "\ufeff\ufeff",
        ),
        *("rules = 1" + "0" * 5000, "rules = " + "[" * 100_000, "\0", '{"rules": []}', "rules = [{agent = 1979-05-27}]"),
    ],
    ids=range(13),
)
def test_broken_toml_is_refused(text: str) -> None:
    """What is no table with an array of rules is an error, however deep, long or odd."""
    with pytest.raises(InvalidInput, match=r"^r\.toml: "):
        parse_rules_file(text, "r.toml")


def test_a_rule_stands_in_a_file_once() -> None:
    """The same agent, type, pattern and permission twice is an error, since only one priority can hold."""
    text = json.dumps({"rules": [ROW, {**ROW, "permission": "write"}, {**ROW, "priority": 1}]})

    with pytest.raises(InvalidInput, match=r"rules\[2\]"):
        parse_rules_file(text, "r.json")


DEFAULT = Rules(default_rules())
ARCHITECTS = {"system_architect", "data_architect", "security_architect"}
CODE = {"parser_developer", "staff_engineer_rust", "staff_engineer_python"}
AGENTS = {
    *("workflow_orchestrator", "project_manager", "debugger", "code_reviewer", "requirements_gatherer", "cli_ux_designer"),
    *("consulting_cpa", "newcomer", *ARCHITECTS, *CODE),
}
ALL = AGENTS | {"anybody_else"}

READS = {
    **dict.fromkeys(
        ("workflow_orchestrator", "project_manager", "staff_engineer_rust", "staff_engineer_python", "debugger"), ALL
    ),
    "code_reviewer": {"system_architect", *CODE},
    "parser_developer": {*ARCHITECTS, "cli_ux_designer"},
    "system_architect": {"requirements_gatherer"},
    "data_architect": {"requirements_gatherer", "system_architect"},
    "security_architect": {"requirements_gatherer", "system_architect"},
}
"""Whose artifacts an agent reads besides its own."""
READS_NO_CONTEXT = {"cli_ux_designer", "consulting_cpa", "newcomer"}
READS_ALL_HISTORY = {"workflow_orchestrator", "project_manager", "staff_engineer_rust", "staff_engineer_python"} | {
    "debugger",
    "code_reviewer",
}


def owners(agent: str, asked: Asked, kind: str) -> set[str]:
    """Return whose things of a type an agent may read or write."""
    return {owner for owner in ALL if DEFAULT.allows(agent, asked, thing(owner, "some.thing", kind))}


@pytest.mark.requirement("003-A6", "003-A7")
@pytest.mark.parametrize("agent", sorted(AGENTS))
def test_each_agent_may_do_what_its_row_says(agent: str) -> None:
    """Artifacts, context and history, to read and to write: what each agent may is listed in full."""
    assert owners(agent, "read", "artifact") == {agent, *READS.get(agent, ())}
    assert owners(agent, "write", "artifact") == (ALL if agent == "workflow_orchestrator" else {agent})
    assert owners(agent, "read", "history") == (ALL if agent in READS_ALL_HISTORY else {agent})
    assert owners(agent, "write", "history") == {agent}
    key = parse_resource("context", "current_sprint")
    assert DEFAULT.allows(agent, "read", key) == (agent not in READS_NO_CONTEXT)
    assert DEFAULT.allows(agent, "write", key) == (agent in ("workflow_orchestrator", "project_manager"))


@pytest.mark.requirement("003-A8")
@pytest.mark.parametrize("need", default_needs(), ids=lambda need: f"{need['agent']} {need['pattern']}")
def test_each_agent_may_read_what_it_needs(need: dict[str, str]) -> None:
    """No need of the template names what the template's rules deny."""
    agent, pattern = need["agent"], need["pattern"]
    if pattern in ("project_context", "task_context"):
        things = [thing("project", "current_sprint", "context")]
    elif pattern in ("error_context", "execution_history"):
        things = [thing(owner, "any", "history") for owner in (*AGENTS, "user")]
    else:
        assert pattern.removesuffix("/*") in AGENTS
        things = [thing(pattern.removesuffix("/*"), name) for name in ("architecture.yaml", "a/b.md")]

    assert all(DEFAULT.allows(agent, "read", one) for one in things)


@pytest.mark.requirement("003-A9")
def test_the_needs_are_those_of_the_specification() -> None:
    """Each need of the specification is there once, by ids of existing agents, with its priority and no limit."""
    needs = [AgentNeed.model_validate(need) for need in default_needs()]

    assert [(need.agent, need.pattern, need.need, need.priority) for need in needs] == [
        ("requirements_gatherer", "project_context", "required", 1),
        ("system_architect", "requirements_gatherer/*", "required", 1),
        ("system_architect", "project_context", "required", 2),
        ("data_architect", "requirements_gatherer/*", "required", 1),
        ("data_architect", "system_architect/*", "required", 2),
        ("parser_developer", "system_architect/*", "required", 1),
        ("parser_developer", "data_architect/*", "required", 2),
        ("parser_developer", "cli_ux_designer/*", "optional", 3),
        ("code_reviewer", "system_architect/*", "optional", 1),
        ("code_reviewer", "task_context", "required", 2),
        ("debugger", "error_context", "required", 1),
        ("debugger", "execution_history", "optional", 2),
    ]
    assert all(need.max_tokens is None and not need.use_summary for need in needs)


@pytest.mark.requirement("003-A10")
def test_the_pull_of_the_specification_is_answered_as_there() -> None:
    """The parser's developer gets the security requirements and does not get the tax categories."""
    wanted = ("security_architect/security-requirements.yaml", "consulting_cpa/tax-categories.yaml")

    answers = [DEFAULT.allows("parser_developer", "read", parse_resource("artifact", text)) for text in wanted]

    assert answers == [True, False]


def test_every_id_of_the_template_is_written_with_underscores() -> None:
    """No agent and no owner is written with a hyphen, so that rules, needs and operations mean the same agents."""
    named = [(rule.agent, rule.pattern) for rule in default_rules()] + [
        (row["agent"], row["pattern"]) for row in default_needs()
    ]

    assert len(named) == len(DEFAULT) + 12
    assert "-" not in "".join(agent + pattern for agent, pattern in named)


def test_nothing_is_open_to_an_agent_that_nobody_named() -> None:
    """Agents with a hyphen, in capitals or unheard of have no more than their own."""
    for agent, asked, kind in product(
        ("project-manager", "Debugger", "x"), ("read", "write"), ("artifact", "context", "history")
    ):
        assert owners(agent, asked, kind) == set()
