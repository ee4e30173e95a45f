"""Between the rules' answer and a model: whether one is asked, what it is told, and what of its answer counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ctxmgr.recover.agent import Consult
from ctxmgr.recover.draft import Draft
from ctxmgr.recover.write_up import count_tokens
from ctxmgr.store import Store
from ctxmgr.types.desk import ModelRequest, PlanView


def consulting(
    store: Store,
    wanted: ModelRequest,
    environment: Mapping[str, str],
    table: Mapping[str, Any],
    progress: Callable[[str], None] | None,
) -> Consult | None:
    return None


def planned(
    drafted: Draft, store: Store, wanted: ModelRequest, environment: Mapping[str, str], table: Mapping[str, Any]
) -> PlanView:
    prompt = drafted.continuation().context.prompt
    return PlanView(
        candidates=drafted.target.candidates, fixed=drafted.target.fixed, prompt_tokens=count_tokens(prompt), prompt=None,
        model=None, sends=None,
    )  # fmt: skip
