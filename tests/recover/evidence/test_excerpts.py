"""A request is read as clauses: what they ask for, whether they ask, and the telling words with their other forms."""

from __future__ import annotations

import pytest

from ctxmgr.base.paths import packaged_text
from ctxmgr.recover.evidence import excerpts
from ctxmgr.recover.evidence.excerpts import alike, clauses, key_terms, stated_needs
from ctxmgr.text.tokens import stem


def test_clauses_that_ask() -> None:
    """A clause that says that something is not known asks; one that tells does not."""
    found = clauses("I read the plan. I do not know which bucket holds the state.")

    assert [clause.asks for clause in found] == [False, True]


def test_a_request_asks() -> None:
    """Where no clause of a request says that it asks, all do, and are marked as implied."""
    assert [(clause.asks, clause.implied) for clause in clauses("the decision of ADR 14", ask=True)] == [(True, True)]
    assert [clause.implied for clause in clauses("which decision is in ADR 14?", ask=True)] == [False]


def test_reasons_are_asked_for() -> None:
    """Who asks why, or for a reason, asks for a reason; who asks for a value does not."""
    assert clauses("why was the limit cut")[0].reason
    assert clauses("nobody told me the reasons for the limit")[0].reason
    assert not clauses("which limit holds")[0].reason


def test_names_come_first() -> None:
    """Names of things come before words of prose, and words that fill any sentence are left out."""
    assert [term.word for term in key_terms("please tell me the bucket in infra/backend.tf")] == ["infra/backend.tf", "bucket"]


def test_forms_of_a_word() -> None:
    """The forms of a word share a stem, and words of the same meaning are found by each other."""
    assert stem("merging") == stem("merged")
    assert stem("hostname") in set(alike("machine"))
    assert stem("machine") in set(alike("hostname"))


SAME = """
port:machine password:passphrase folder:place deadline:schedule version:tag database:sql config:option repo:repository
env:environment test:suite error:crash delete:erase create:insert fix:hotfix server:daemon user:account branch:ref
target:destination build:compile limit:threshold minimum:floor peak:top timeout:ttl name:title column:property
number:quantity region:datacenter owner:assignee decide:settled start:begin stop:abort file:doc price:charge
flag:toggle key:id bucket:store approve:signoff reject:denied function:routine library:module deploy:ship
require:mandatory bill:invoice slow:elapsed fast:speed load:requests staging:preprod production:live encrypt:cipher
discount:rebate weights:model asynchronous:queue infrastructure:infra state:condition alert:pager retry:attempt
certificate:ssl permission:grant wait:hold migrate:transfer container:docker restore:recover backup:snapshot
size:bytes reduce:cut increase:extend incident:postmortem review:audit mail:smtp login:signin signature:hmac
lock:mutex colour:color language:lang country:nation phone:mobile meeting:appointment employee:personnel
salary:wage supplier:provider order:purchase shipment:parcel warehouse:inventory refund:chargeback tax:vat
contract:agreement budget:funds report:digest metric:kpi dashboard:graph log:trace cluster:pod network:vpc domain:zone
proxy:ingress cron:job interval:every format:encoding compress:zip body:content schema:structure
index:indices query:select deprecated:retired forbid:disallow allow:enable disable:deactivate
"""
"""What people ask for, and the word under which programs or others record it: a pair of each group of synonyms."""


def test_each_group_of_synonyms_is_in_use() -> None:
    """Who asks with one word of a group finds what was recorded with another, in whatever case."""
    pairs = [pair.split(":") for pair in SAME.split()]
    found = {(asked, told): set(alike(asked.upper())) for asked, told in pairs}

    assert [pair for pair, forms in found.items() if not forms & {pair[1], stem(pair[1])}] == []


def test_a_group_of_synonyms_is_well_formed() -> None:
    """Words stand in lower case, once in their group; each group has another word to offer, and has its pair in `SAME`."""
    groups = [line.split() for line in packaged_text(excerpts.__file__, "synonyms.txt").splitlines()]
    pairs = [pair.split(":") for pair in SAME.split()]

    assert [group for group in groups if len(set(group)) != len(group) or len({*map(stem, group)}) < 2] == []
    assert [word for group in groups for word in group if word != word.casefold() or not word.isalnum()] == []
    assert [group for group in groups if not any({*pair} <= {*group} for pair in pairs)] == []


@pytest.mark.parametrize(
    ("goal", "wanted"),
    [
        ("deployer rolls it out; it needs the image reference", ["the image reference"]),
        ("server loads the adapter; tell it where that was saved", ["where that was saved"]),
        ("publisher has to know which table was checked, and publishes it", ["which table was checked, and publishes it"]),
        ("the README needs an update", []),
        ("merge the approved branch into the target branch", []),
        ("it needs to be done by Friday", []),
    ],
)
def test_what_an_instruction_says_that_somebody_needs(goal: str, wanted: list[str]) -> None:
    """Only what is said to be needed or to be told is taken out of an instruction; work that is needed is none of it."""
    assert stated_needs(goal) == wanted


def test_a_passage_of_a_long_line_stands_in_it() -> None:
    """Parts of a line are joined as they were, and the lines around them stay lines."""
    line = ", ".join(f'"member_{number}": "value {number}"' for number in range(60))
    text = excerpts.Text("", tuple(excerpts.split_lines(f"first\n{line}\nlast")))
    scale = excerpts.Scale([text])
    for word in ("member_9", "member_31", "member_59"):
        passage = excerpts.best_passage(text, scale.matches(key_terms(word))).excerpt
        assert word in passage
        assert passage in f"first\n{line}\nlast"
