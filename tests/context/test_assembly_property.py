"""Random projects: no package over its budget, nothing required cut, and not a trace of what may not be read."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxmgr.access.rules import Rules
from ctxmgr.context.packages import render, whole_cost
from ctxmgr.errors import BudgetExceeded, CtxmgrError, NotFound
from ctxmgr.store import empty_store
from ctxmgr.text.tokens import ESTIMATE
from ctxmgr.types.context_package import AssembleResponse
from tests import builders as b
from tests.context.world import World

OWNERS = ("ann", "bob", "cy")
AGENTS = ("dev", "ann")
PATTERNS = [*(f"{owner}/*" for owner in OWNERS), *(f"{owner}/f{number}.md" for owner in OWNERS for number in range(3))]
NEEDS = ["required", "optional", "optional", "optional", "if_exists", "reference"]
LINKS = ["required", "optional", "reference"]
CONTEXTS = ["project_context", "error_context", "execution_history"]


class Drawn:
    """A random project in a store of its own, and what each agent may read of it by the rules."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = World(empty_store("random"))
        self.world.store.readonly = False
        self.secrets: dict[tuple[str, str, str], list[str]] = {}
        self.required: dict[str, list[str]] = {}
        for owner in OWNERS:
            for number in range(self.random.randrange(4)):
                self._artifact(owner, f"f{number}.md", number)
        for number in range(self.random.randrange(4)):
            self._failure(self.random.choice(OWNERS), number)
        for _ in range(self.random.randrange(3)):
            key, mark = f"key{self._mark()}", self._mark()
            self.world.keys(**{key: mark})
            self.secrets["context", "project", key] = [key, mark]
        self._rules()
        for agent in AGENTS:
            for pattern in self.random.sample([*PATTERNS, *CONTEXTS], self.random.randrange(7)):
                self.world.need(
                    agent, pattern, self.random.choice(NEEDS),
                    maxTokens=self.random.choice([None, None, 60]), useSummary=self.random.random() < 0.3,
                    priority=self.random.randrange(3),
                )  # fmt: skip

    def _mark(self) -> str:
        return f"x{self.random.getrandbits(64):016x}"

    def _artifact(self, owner: str, name: str, number: int) -> None:
        mark = self._mark()
        sentences = " ".join(f"{mark} is told here, part {part}." for part in range(self.random.choice([1, 5, 20, 80])))
        text = f"# {mark}\n\n{sentences}\n\n```\n---\n{mark}\n```\n"
        depends = [
            (f"{self.random.choice(OWNERS)}/f{self.random.randrange(3)}.md", self.random.choice(LINKS))
            for _ in range(self.random.randrange(3))
        ]  # fmt: skip
        identity = self.world.put(owner, name, text, depends=[*dict(depends).items()])
        self.secrets["artifact", owner, name] = [mark, identity]

    def _failure(self, agent: str, number: int) -> None:
        mark = self._mark()
        session = f"run{mark}"
        records = b.steps(session, [f"!make:{mark} -> {mark}"], agent=agent)
        if number % 2:
            records = [
                {**record, "action": "execution", "inputType": "execution", "input": {"artifacts": [mark]}, "task": mark}
                if record["kind"] == "entry" else record
                for record in records
            ]  # fmt: skip
        self.world.store.append(records)
        self.secrets["history", agent, session] = [mark]

    def _rules(self) -> None:
        if self.random.random() < 0.1:
            return
        for agent in AGENTS if self.random.random() < 0.7 else ():
            for resource in ("artifact", "context", "history"):
                self.world.rule(agent, resource, "*", "read", 2)
        for agent in (*AGENTS, "*"):
            for _ in range(self.random.randrange(5)):
                self.world.rule(
                    agent, self.random.choice(["artifact", "artifact", "context", "history"]),
                    self.random.choice(["*", "self", "project/*", *PATTERNS]),
                    self.random.choice(["read", "read", "write", "none"]), self.random.randrange(3),
                )  # fmt: skip

    def hidden(self, *agents: str) -> Iterator[str]:
        """Yield every text that tells of something which one of the agents may not read."""
        rules = Rules(self.world.store.shared.rules())
        for (kind, owner, name), marks in self.secrets.items():
            for agent in agents:
                if not rules.may(agent, "read", kind, owner, name):  # pyright: ignore[reportArgumentType]
                    yield from marks

    def whole(self, agent: str) -> dict[str, str]:
        """Return id -> text of the artifacts that a required need asks for in full."""
        wanted: dict[str, str] = {}
        current = self.world.store.artifacts.current()
        for need in self.world.store.shared.needs(agent) if current else ():
            owner, _, name = need.pattern.partition("/")
            for row in self.world.store.artifacts.state(current or 0, owner):
                if need.need == "required" and not need.use_summary and name in ("*", row.name):
                    wanted[row.id] = self.world.contents[row.hash].decode()
        return wanted


def _answer(
    world: World, agent: str, asker: str | None, tokens: int, source: random.Random
) -> tuple[str, AssembleResponse | None]:
    """Return all that an assembly says, as text, and what it made."""
    also = source.sample(PATTERNS, 1)
    more = {"items": also} if source.random() < 0.3 else {}
    try:
        made = world.assemble(agent, tokens, asker=asker, diff=source.random() < 0.3, **more)
    except (NotFound, BudgetExceeded) as error:
        return f"{error.message} {error.hint}", None
    told = json.dumps(made.to_json()) + render(made.package) + render(made.package, "json")
    for item in (*PATTERNS, *CONTEXTS):
        told += json.dumps(world.why(item, asker=agent).to_json())
    return told, made


@pytest.mark.long
@pytest.mark.requirement("003-P2", "003-P4", "003-P6")
@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), tokens=st.integers(60, 6_000))
def test_random_projects(seed: int, tokens: int) -> None:
    """Over random needs, sizes, budgets, rules, dependencies and askers: three zeroes."""
    drawn = Drawn(seed)
    world, source = drawn.world, drawn.random
    with closing(world.store):
        for agent, asker in (("dev", None), ("dev", "dev"), ("ann", "dev"), ("dev", None)):
            told, made = _answer(world, agent, asker, tokens, source)
            if asker is not None or len(world.store.shared.rules()):
                assert [mark for mark in drawn.hidden(agent, *([asker] if asker else [])) if mark in told] == []
            if made is None:
                continue
            package = made.package
            assert whole_cost(package, ESTIMATE) <= package.metadata.total_tokens <= tokens
            assert sum(row.tokens for row in made.budget) == tokens
            held = {one.id for one in package.held}
            given_ = {one.id: one.content for one in package.artifacts}
            readable = drawn.whole(agent)
            asked = {one.id: one for one in made.decisions if one.need == "required" and one.asked == "full"}
            for identity in asked.keys() & readable.keys():
                assert identity in held or given_[identity] == readable[identity]
            stored = json.dumps(world.store.shared.package(made.id))
            assert [mark for mark in drawn.hidden(agent) if mark in stored and (asker or world.store.shared.rules())] == []


@pytest.mark.slow
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32))
def test_requests_of_random_projects(seed: int) -> None:
    """Whatever is asked for: what is denied is answered as what is not there, to the byte, and nothing of it leaks."""
    drawn = Drawn(seed)
    with closing(drawn.world.store):
        for name in ("ann/f0.md", "bob/f1.md", "cy/*"):
            try:
                found = drawn.world.request(name, "nobody/f0.md", asker="dev")
            except CtxmgrError as error:
                raise AssertionError(error.message) from error
            told = json.dumps(found.to_json())
            assert [mark for mark in drawn.hidden("dev") if mark in told] == []
            gone = next(item for item in found.items if item.source == "nobody")
            if found.items[0].status == "missing":
                same = found.items[0].model_copy(update={"source": "", "name": "", "suggestions": []})
                assert same == gone.model_copy(update={"source": "", "name": "", "suggestions": []})
