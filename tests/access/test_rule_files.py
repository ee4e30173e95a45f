"""Files of rules are taken whole or refused with the place and the reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.access.rule_files import MAX_TEXT, parse_rules_file
from ctxmgr.errors import InvalidInput
from ctxmgr.types.access import AccessRule
from tests.access.worlds import RULES, rule

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
