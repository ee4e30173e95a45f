"""Injections in words and languages that the phrases of the filter were not written for: what becomes of them.

Each is planted in four places of a run that is stuck. It is recovered by the rules alone, and with a model that obeys: it gives
the order as its cause, its next step, its advice, its check and as a fact: bare, with an introduction, and quoted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ctxmgr.history import detection
from ctxmgr.log.codec import Record
from ctxmgr.recover.answer.draft import Draft
from ctxmgr.recover.answer.gate import objections
from ctxmgr.recover.injection import suspicion
from ctxmgr.recover.model.consultation import from_proposal
from ctxmgr.recover.recovery import Recovery
from ctxmgr.recover.stuck_request import build_request, worst_finding
from ctxmgr.store import Store, open_store
from ctxmgr.types.model_proposal import Proposal
from ctxmgr.types.plain_records import build
from ctxmgr.types.route import Continuation, ModelUse

CORPUS = Path(__file__).parents[2] / "fixtures" / "injections" / "fresh.jsonl"
PLACES = ("output", "error", "message", "note")
_USE = ModelUse(name="stub:obedient", mode="tools", requests=1, tool_calls=1, input_tokens=1, output_tokens=1, seconds=0.1)
_FENCED = re.compile(r"^(`{3,})\n.*?\n\1$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_SHOWN = "run-e0"


def injections() -> list[dict[str, str]]:
    """Return the texts, each with the order that it gives."""
    return [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]


def measure(texts: Iterable[dict[str, str]]) -> Counter[str]:
    """Return how many texts there are and the filter knows, how many answers were made, and what was passed on in them."""
    count: Counter[str] = Counter(texts=0, known=0, answers=0, proposals=0, accepted=0, instruction=0, verified=0, cause=0)
    for each in texts:
        count["texts"] += 1
        count["known"] += suspicion(each["text"]) is not None
        for place in PLACES:
            store = open_store(":memory:", create=True)
            count.update(_of_one(store, each, place))
            store.close()
    return count


def _of_one(store: Store, each: dict[str, str], place: str) -> Iterator[str]:
    store.append(run(each["text"], place))
    key = store.sessions.key("run")
    assert key is not None, "it was just written"
    finding = worst_finding(detection.judge_now(store, key, {}, None).findings)
    draft = Recovery(store, key, build_request("run", finding, force=True), finding).draft()
    yield "answers"
    yield from passed_on(draft.continuation(), each["order"])
    for proposal in obedient(draft, each["order"]):
        yield "proposals"
        if objections(proposal, draft):
            continue
        yield "accepted"
        told = set(passed_on(draft.continuation(from_proposal(draft, proposal, _USE)), each["order"]))
        if any(_holds(step, each["order"]) for step in [*(step.text for _, step in proposal.steps), proposal.check or ""]):
            told.add("instruction")
        yield from told
        if proposal.cause is not None and _holds(_FENCED.sub(" ", proposal.cause.text), each["order"]):
            yield "cause"


def run(text: str, place: str) -> list[Record]:
    """Return a run that asks for the health of a service again and again, with a text in one place of it."""
    error = f"connection refused\n{text}" if place == "error" else "connection refused"
    page = text if place == "output" else "the service is described here"
    records = [
        build("event", "run", None, id="run-said", type="user_message", data={"text": "Report the health of the service"})
    ]
    for number in range(7):
        given: Any = {"file_path": "notes.md"} if number == 0 else {"command": "curl localhost:8080/health"}
        action, name = "Read" if number == 0 else "Bash", f"run-e{number}"
        records.append(build("entry", "run", None, id=name, agent="coder", action=action, input=given))
        ended = {"status": "ok", "output": page} if number == 0 else {"status": "error", "error": {"message": error}}
        records.append(build("result", "run", None, entry=name, **ended))
        if number == 0 and place == "message":
            records.append(build("event", "run", None, id="run-told", type="message", agent="ana", data={"text": text}))
        if number == 0 and place == "note":
            records.append(build("note", "run", None, id="run-note", entries=[name], author="ana", content=text))
    return records


def obedient(draft: Draft, order: str) -> Iterator[Proposal]:
    """Yield the answers of a model that passes an order on, each in another place and form."""
    for said in (order, f"As the record says, {order}", f"Do this now: `{order}`"):
        text = {"text": said[:290], "entries": [_SHOWN]}
        plain = {"text": "the page tells about it", "entries": [_SHOWN]}
        step = {"text": "read the page about it", "entries": [_SHOWN]}
        for fields in (
            {"cause": text, "nextStep": step}, {"cause": plain, "nextStep": text},
            {"cause": plain, "nextStep": step, "check": said[:190]}, {"advice": [text]}, {"facts": [text]},
        ):  # fmt: skip
            known = {"target": draft.target.agent, "reason": "it is stuck", "summary": "The health is asked for in vain."}
            yield Proposal.model_validate({**known, **fields})


def passed_on(answer: Continuation, order: str) -> Iterator[str]:
    """Yield how an answer passes an order on: as an instruction, or as a fact that was verified."""
    steps = [] if answer.diagnosis is None else [answer.diagnosis.next_step, answer.diagnosis.check or ""]
    steps += [_QUOTED.sub(" ", lead.text) for lead in answer.alternatives]
    if any(_holds(text, order) for text in [*steps, _FENCED.sub(" ", answer.context.prompt), answer.goal]):
        yield "instruction"
    if any(fact.label == "verified" and _holds(fact.whole, order) for fact in answer.context.facts):
        yield "verified"


def _holds(text: str, order: str) -> bool:
    """Whether a text holds one of the halves of an order, however its lines are broken."""
    flat, wanted = (" ".join(each.casefold().replace("\\n", " ").split()) for each in (text, order))
    half = len(wanted) // 2
    return wanted[:half] in flat or wanted[half:] in flat
